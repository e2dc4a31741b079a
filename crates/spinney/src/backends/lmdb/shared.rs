//! What the processes of one store tell each other: how far the journal is written, and synced.
//!
//! A small file that all of them map, and a lock on it: each holds it shared while it has the store
//! open, so who gets it exclusively is alone. Nothing in it outlives a power failure, and nothing
//! needs to: whoever is alone sets it anew. It must not know records or the engine.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use memmap2::{Mmap, MmapMut, MmapOptions};
use spinney_core::{Error, Result};

use super::engine::Access;
use crate::journal::Position;
use crate::os_error::io_error;

/// The file's name in the store's directory.
pub const SHARED_FILE: &str = "shared";

/// Bytes of the file.
const LEN: u64 = 4_096;

/// Says that the numbers hold, and of what layout they are.
const READY: u64 = u64::from_le_bytes(*b"spinney1");

/// How long a process waits before it looks again whether another one has set the file up.
const RETRY: Duration = Duration::from_millis(1);

/// The numbers, or where they cannot be shared, this process's own.
pub struct Shared {
    words: Words,
    /// Locked.
    file: Option<File>,
    path: PathBuf,
}

enum Words {
    Written(MmapMut),
    Read(Mmap),
    Own(Box<[AtomicU64; WORDS]>),
}

const WORDS: usize = 3;
const STATE: usize = 0;
const PUBLISHED: usize = 1;
const SYNCED: usize = 2;

/// The shared numbers, and whether this process is alone and must set them.
pub struct Joined {
    pub shared: Shared,
    pub is_alone: bool,
}

impl Shared {
    /// Joins the processes that have the store in `dir` open.
    pub fn join(dir: &Path, access: Access) -> Result<Joined> {
        let path = dir.join(SHARED_FILE);
        let opened =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if access == Access::ReadOnly && is_forbidden(&error) => {
                return Shared::join_as_guest(path);
            }
            Err(error) => return Err(io_error("cannot open", &path, error)),
        };
        let failed = |error| io_error("cannot share", &path, error);
        loop {
            let is_alone = match file.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => {
                    file.lock_shared().map_err(failed)?;
                    false
                }
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            };
            if is_alone {
                file.set_len(LEN).map_err(failed)?;
            } else if file.metadata().map_err(failed)?.len() < LEN {
                // Who was alone has died before it had set the file up.
                file.unlock().map_err(failed)?;
                thread::sleep(RETRY);
                continue;
            }
            // SAFETY: the file is `LEN` bytes long, is never made shorter, and is only read and
            // written through atomics, by this module.
            let map = unsafe { MmapOptions::new().len(LEN as usize).map_mut(&file) };
            let words = Words::Written(map.map_err(failed)?);
            let shared = Shared { words, file: Some(file), path: path.clone() };
            if is_alone || shared.is_ready() {
                if is_alone {
                    shared.words()[STATE].store(0, Ordering::Release);
                }
                return Ok(Joined { shared, is_alone });
            }
            return Shared::retry(shared, dir, access);
        }
    }

    fn retry(shared: Shared, dir: &Path, access: Access) -> Result<Joined> {
        drop(shared);
        thread::sleep(RETRY);
        Shared::join(dir, access)
    }

    /// Joins without the right to write: follows the others if there are any, and else has numbers
    /// of its own, which nobody moves.
    fn join_as_guest(path: PathBuf) -> Result<Joined> {
        if let Ok(file) = File::open(&path)
            && file.try_lock().is_err()
            && file.try_lock_shared().is_ok()
            && file.metadata().is_ok_and(|metadata| metadata.len() >= LEN)
        {
            // SAFETY: as in `join`.
            let map = unsafe { MmapOptions::new().len(LEN as usize).map(&file) };
            let words = Words::Read(map.map_err(|error| io_error("cannot share", &path, error))?);
            let shared = Shared { words, file: Some(file), path: path.clone() };
            if shared.is_ready() {
                return Ok(Joined { shared, is_alone: false });
            }
        }
        let words = Words::Own(Box::default());
        Ok(Joined { shared: Shared { words, file: None, path }, is_alone: true })
    }

    /// Sets the numbers up and lets the others in.
    pub fn set_up(&self, end: Position) -> Result<()> {
        self.words()[SYNCED].store(0, Ordering::Relaxed);
        self.words()[PUBLISHED].store(end.pack(), Ordering::Relaxed);
        self.words()[STATE].store(READY, Ordering::Release);
        match &self.file {
            Some(file) => {
                file.lock_shared().map_err(|error| io_error("cannot share", &self.path, error))
            }
            None => Ok(()),
        }
    }

    /// Runs the last one's work when this process is the last to have the store open.
    pub fn leave(&self, last: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        if file.try_lock().is_ok() {
            self.words()[STATE].store(0, Ordering::Release);
            last()?;
            self.words()[STATE].store(READY, Ordering::Release);
        }
        Ok(())
    }

    /// Up to where the journal is written, by whichever process.
    #[inline]
    pub fn published(&self) -> Position {
        Position::unpack(self.words()[PUBLISHED].load(Ordering::Acquire))
    }

    /// Tells the others that the journal is written up to `end`; only for who holds the writer's lock.
    pub fn publish(&self, end: Position) {
        self.words()[PUBLISHED].store(end.pack(), Ordering::Release);
    }

    /// Up to where the journal is known to be synced, by whichever process.
    pub fn synced(&self) -> Position {
        Position::unpack(self.words()[SYNCED].load(Ordering::Acquire))
    }

    /// Tells the others that the journal is synced up to `end`.
    pub fn advance_synced(&self, end: Position) {
        self.words()[SYNCED].fetch_max(end.pack(), Ordering::AcqRel);
    }

    fn is_ready(&self) -> bool {
        self.words()[STATE].load(Ordering::Acquire) == READY
    }

    fn words(&self) -> &[AtomicU64] {
        let bytes = match &self.words {
            Words::Written(map) => map.as_ptr(),
            Words::Read(map) => map.as_ptr(),
            Words::Own(words) => return &**words,
        };
        // SAFETY: a map begins at a page's boundary and is longer than the words; it lives as long
        // as `self`. Who has mapped it to read only loads: it holds no writer's lock, and a
        // follower's syncs are its own.
        unsafe { std::slice::from_raw_parts(bytes.cast::<AtomicU64>(), WORDS) }
    }
}

fn is_forbidden(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}

/// The error for a record that is gone although its writer has published it.
#[cold]
pub fn lost(path: &Path, at: Position) -> Error {
    Error::corrupted(format!(
        "`{}` is damaged at byte {}, or was replaced while it was open; restore a backup",
        path.display(),
        at.offset
    ))
}
