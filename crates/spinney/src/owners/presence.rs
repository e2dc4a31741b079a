//! How others see that an owner lives: what the operating system knows, where it is asked.
//!
//! Owners of this process are known by a list. Where all processes share a directory, each owner has a
//! byte of the file `owners.lock` locked: the system frees it however the process ends, and nothing of
//! it is left to be cleaned up. Elsewhere a process on the same machine is asked for by its number and
//! start; the others have a lease.

use std::collections::BTreeSet;
use std::fs::File;
#[cfg(feature = "lmdb")]
use std::path::Path;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use spinney_core::Result;

use super::{OwnerId, Record, machine};
use crate::file_system::if_present;
use crate::os_error::io_error;

/// The owners in this process.
pub fn living() -> MutexGuard<'static, BTreeSet<OwnerId>> {
    static LIVING: Mutex<BTreeSet<OwnerId>> = Mutex::new(BTreeSet::new());
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which processes may have a store open.
pub enum Presence {
    /// This one alone.
    OneProcess,
    /// Those that share a directory with this file in it.
    SharedFile(OwnersFile),
    /// Any, on other machines, too.
    Network,
}

/// The file whose bytes living owners have locked.
pub struct OwnersFile {
    path: PathBuf,
    /// Where this process asks.
    asked: OnceLock<File>,
}

/// A byte of the file, locked until it is dropped.
pub struct Byte {
    _file: File,
}

impl Presence {
    /// Whether owners need a lease.
    pub fn is_leased(&self) -> bool {
        matches!(self, Presence::Network)
    }

    /// Makes a new owner's life visible to other processes.
    ///
    /// # Errors
    /// `ReadOnly`, `Io`.
    pub fn show(&self) -> Result<(OwnerId, Option<Byte>)> {
        match self {
            Presence::SharedFile(file) => file.lock().map(|(id, byte)| (id, Some(byte))),
            Presence::OneProcess | Presence::Network => Ok((OwnerId::random(), None)),
        }
    }

    /// Whether an owner lives; `None` when its lease has to tell.
    ///
    /// # Errors
    /// `Io` where the system does not answer.
    pub fn ask(&self, owner: &Record) -> Result<Option<bool>> {
        if living().contains(&owner.id) {
            return Ok(Some(true));
        }
        match (self, &owner.lease) {
            (Presence::OneProcess, _) => Ok(Some(false)),
            (Presence::SharedFile(file), None) => file.is_locked(owner.id).map(Some),
            (_, Some(lease)) if !lease.machine.is_empty() && lease.machine == machine::this() => {
                match owner.process == std::process::id() {
                    // It is not in the list.
                    true => Ok(Some(false)),
                    false => Ok(machine::lives(owner.process, lease.started)),
                }
            }
            _ => Ok(None),
        }
    }
}

impl OwnersFile {
    /// What the file is called in a store's directory.
    #[cfg(feature = "lmdb")]
    const NAME: &str = "owners.lock";

    #[cfg(feature = "lmdb")]
    pub fn new(dir: &Path) -> OwnersFile {
        OwnersFile { path: dir.join(OwnersFile::NAME), asked: OnceLock::new() }
    }

    fn lock(&self) -> Result<(OwnerId, Byte)> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&self.path)
            .map_err(|error| io_error("cannot open", &self.path, error))?;
        loop {
            let id = OwnerId::random();
            match fcntl(&file, FcntlArg::F_OFD_SETLK(&byte_lock(id))) {
                Ok(_) => return Ok((id, Byte { _file: file })),
                // Somebody has this number.
                Err(Errno::EAGAIN | Errno::EACCES) => {}
                Err(error) => return Err(io_error("cannot lock", &self.path, error.into())),
            }
        }
    }

    fn is_locked(&self, id: OwnerId) -> Result<bool> {
        let Some(file) = self.asked()? else { return Ok(false) };
        let mut lock = byte_lock(id);
        fcntl(file, FcntlArg::F_OFD_GETLK(&mut lock))
            .map_err(|error| io_error("cannot ask for locks of", &self.path, error.into()))?;
        Ok(lock.l_type != libc::F_UNLCK as libc::c_short)
    }

    /// `None` while no owner ever was.
    fn asked(&self) -> Result<Option<&File>> {
        if let Some(file) = self.asked.get() {
            return Ok(Some(file));
        }
        let opened = if_present(File::open(&self.path))
            .map_err(|error| io_error("cannot open", &self.path, error))?;
        Ok(opened.map(|file| self.asked.get_or_init(|| file)))
    }
}

/// A lock of an owner's byte.
fn byte_lock(id: OwnerId) -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: id.offset(),
        l_len: 1,
        l_pid: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_is_locked_as_long_as_it_is_held() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = OwnersFile::new(folder.path());
        assert!(!file.is_locked(OwnerId::random()).expect("asks"), "there is no file");
        let (first, byte) = file.lock().expect("locks");
        let (second, _other) = file.lock().expect("locks");
        let same = OwnersFile::new(folder.path());
        for file in [&file, &same] {
            assert!(file.is_locked(first).expect("asks") && file.is_locked(second).expect("asks"));
            assert!(!file.is_locked(OwnerId::random()).expect("asks"));
        }
        drop(byte);
        assert!(!file.is_locked(first).expect("asks") && same.is_locked(second).expect("asks"));
    }
}
