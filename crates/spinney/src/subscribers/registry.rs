//! Required subscribers: each registers in the store's directory, so that other processes ask it.
//!
//! `subscribers/ID` says whom to ask, and is locked while its process lives; `subscribers/ID.s` is
//! the socket to ask at. Whoever holds the write guard removes what a dead process has left. A count
//! that the processes share says when to look into the directory again. It must not know what is asked.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path as FilePath, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use spinney_core::backend::Backend;
use spinney_core::{Error, Path, Result, varint};

use super::SubscriberOptions;
use super::parties::Terms;
use crate::backends::lmdb::Lmdb;
use crate::file_system::{if_present, remove_if_present};
use crate::os_error::io_error;

/// The directory in the store's.
const DIR: &str = "subscribers";

/// What a socket's name ends with.
const SOCKET: &str = ".s";

/// The version of a registration, its first byte.
const VERSION: u8 = 1;

/// How often a process that hung up is looked at whether it has died.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// The registrations of a store, as one handle of it sees them.
pub struct Registry {
    dir: PathBuf,
    store: Arc<Lmdb>,
    /// Those of this handle, which asks without the socket.
    own: Mutex<HashSet<String>>,
    /// The count when the directory was last read.
    seen: AtomicU64,
}

/// A subscriber of another process, or of another handle.
pub struct Registered {
    /// Whom to ask, when, and for how long.
    pub terms: Terms,
    /// Grows from one registration to the next.
    number: u64,
    id: String,
    registry: Arc<Registry>,
}

/// Keeps a registration until it is dropped.
pub struct Registration {
    registry: Arc<Registry>,
    id: String,
    /// Where the others ask.
    listener: UnixListener,
    /// Locked.
    _file: File,
}

impl Registry {
    /// The registrations in the directory of a store.
    pub fn new(store_dir: &FilePath, store: Arc<Lmdb>) -> Arc<Registry> {
        Arc::new(Registry {
            dir: store_dir.join(DIR),
            store,
            own: Mutex::default(),
            seen: AtomicU64::new(u64::MAX),
        })
    }

    /// The others' registrations, when they may have changed since the last call. The caller holds
    /// the write guard.
    ///
    /// # Errors
    /// `Io`; `Busy` for one that does not read while its process lives.
    pub fn read_if_changed(self: &Arc<Self>) -> Result<Option<Vec<Arc<Registered>>>> {
        let count = self.store.registrations();
        if self.seen.load(Ordering::Relaxed) == count {
            return Ok(None);
        }
        let others = self.read()?;
        self.seen.store(count, Ordering::Relaxed);
        Ok(Some(others))
    }

    fn read(self: &Arc<Self>) -> Result<Vec<Arc<Registered>>> {
        let mut others = Vec::new();
        let cannot_list = |error| io_error("cannot list", &self.dir, error);
        let Some(entries) = if_present(fs::read_dir(&self.dir)).map_err(cannot_list)? else {
            return Ok(others);
        };
        for entry in entries {
            let name = entry.map_err(cannot_list)?.file_name();
            let Some(name) = name.to_str() else { continue };
            // A socket is made before its registration, and outlives it only if its process died.
            let id = name.strip_suffix(SOCKET).unwrap_or(name);
            if self.own().contains(id) {
                continue;
            }
            if !self.is_alive(id)? {
                self.remove(id)?;
            } else if id == name
                && let Some(registered) = self.read_one(id)?
            {
                others.push(Arc::new(registered));
            }
        }
        others.sort_by_key(|other| other.number);
        Ok(others)
    }

    fn read_one(self: &Arc<Self>, id: &str) -> Result<Option<Registered>> {
        let path = self.dir.join(id);
        let Some(bytes) =
            if_present(fs::read(&path)).map_err(|e| io_error("cannot read", &path, e))?
        else {
            return Ok(None);
        };
        let (terms, number) = decode(&bytes).ok_or_else(|| {
            Error::busy(format!(
                "the subscriber registered in `{}` cannot be asked: this build does not read it; \
                 use the spinney of its process, or end that",
                path.display()
            ))
        })?;
        Ok(Some(Registered { terms, number, id: id.to_owned(), registry: Arc::clone(self) }))
    }

    /// Whether the process of a registration lives, as far as its lock tells.
    fn is_alive(&self, id: &str) -> Result<bool> {
        let path = self.dir.join(id);
        let cannot_open = |error| io_error("cannot open", &path, error);
        let Some(file) = if_present(File::open(&path)).map_err(cannot_open)? else {
            return Ok(false);
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(cannot_open(error)),
        }
    }

    fn remove(&self, id: &str) -> Result<()> {
        for name in [id.to_owned(), [id, SOCKET].concat()] {
            let path = self.dir.join(name);
            remove_if_present(&path).map_err(|error| io_error("cannot remove", &path, error))?;
        }
        self.store.count_registration();
        Ok(())
    }

    /// Registers a subscriber. Commits that begin after this ask it.
    ///
    /// # Errors
    /// `ReadOnly`, `Io`, and those of the write guard.
    pub fn register(self: &Arc<Self>, terms: &Terms) -> Result<Registration> {
        // No commit is between its look at the registrations and its end, and nobody cleans up.
        let _guard = self.store.write_guard(0)?;
        match DirBuilder::new().create(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(io_error("cannot create", &self.dir, error));
            }
            _ => {}
        }
        let id = format!("{:016x}", fastrand::u64(..));
        let registered = self.try_register(&id, terms);
        if registered.is_err() {
            let _ = self.remove(&id);
        }
        registered
    }

    fn try_register(self: &Arc<Self>, id: &str, terms: &Terms) -> Result<Registration> {
        let path = self.dir.join(id);
        let listener = self.at_socket(id, |path| UnixListener::bind(path));
        let listener =
            listener.map_err(|error| io_error("cannot listen below", &self.dir, error))?;
        let number = self.store.registrations() + 1;
        let written = || {
            let mut file = File::create_new(&path)?;
            file.lock()?;
            file.write_all(&encode(terms, number))?;
            Ok(file)
        };
        let file = written().map_err(|error| io_error("cannot write", &path, error))?;
        self.own().insert(id.to_owned());
        self.store.count_registration();
        Ok(Registration { registry: Arc::clone(self), id: id.to_owned(), listener, _file: file })
    }

    /// Does something at the path of a socket, which has to be short.
    fn at_socket<T>(&self, id: &str, at: impl FnOnce(&str) -> io::Result<T>) -> io::Result<T> {
        let dir = File::open(&self.dir)?;
        at(&format!("/proc/self/fd/{}/{id}{SOCKET}", dir.as_raw_fd()))
    }

    fn own(&self) -> std::sync::MutexGuard<'_, HashSet<String>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Registered {
    /// Shows what this process has committed up to now to the one of the subscriber.
    ///
    /// # Errors
    /// Those of writing it.
    pub fn publish(&self) -> Result<()> {
        let store = &self.registry.store;
        store.flush(store.snapshot()?.revision()?)
    }

    /// Connects without waiting: a process that does not accept for long is not asked.
    ///
    /// # Errors
    /// Those of the system; `WouldBlock` when too many wait already.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        self.registry.at_socket(&self.id, |path| {
            Ok(rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?)
        })?;
        let stream = UnixStream::from(socket);
        stream.set_nonblocking(false)?;
        Ok(stream)
    }

    /// Waits until the subscriber's process has given up its registration, at most until a moment,
    /// and then removes what is left of it. The caller holds the write guard.
    ///
    /// # Errors
    /// `Io`.
    pub fn is_gone_until(&self, deadline: Instant) -> Result<bool> {
        loop {
            if !self.registry.is_alive(&self.id)? {
                return self.registry.remove(&self.id).map(|()| true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

impl Registration {
    /// The next one who asks; `None` when the registration is given up.
    pub fn accept(listener: &UnixListener) -> Option<UnixStream> {
        loop {
            match listener.accept() {
                Ok((stream, _)) => return Some(stream),
                // The listener was shut down.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => return None,
                // Too many files are open; it gets better.
                Err(_) => thread::sleep(LOOK_EVERY * 10),
            }
        }
    }

    /// Where the others ask.
    ///
    /// # Errors
    /// Those of the system.
    pub fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let _ = self.registry.remove(&self.id);
        self.registry.own().remove(&self.id);
        // Wakes who accepts.
        let _ = rustix::net::shutdown(&self.listener, rustix::net::Shutdown::Both);
    }
}

fn encode(terms: &Terms, number: u64) -> Vec<u8> {
    let SubscriberOptions { name, priority, timeout, .. } = &terms.options;
    let mut out = vec![VERSION];
    varint::write(number, &mut out);
    varint::write(u64::from(std::process::id()), &mut out);
    out.extend_from_slice(&priority.to_le_bytes());
    varint::write(timeout.as_nanos().try_into().unwrap_or(u64::MAX), &mut out);
    varint::write_bytes(name.as_bytes(), &mut out);
    varint::write_bytes(terms.path.as_bytes(), &mut out);
    out
}

fn decode(bytes: &[u8]) -> Option<(Terms, u64)> {
    let (&VERSION, bytes) = bytes.split_first()? else { return None };
    let mut at = 0;
    let number = varint::read(bytes, &mut at)?;
    let process = u32::try_from(varint::read(bytes, &mut at)?).ok()?;
    let priority = i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?);
    at += 4;
    let timeout = Duration::from_nanos(varint::read(bytes, &mut at)?);
    let mut text = || std::str::from_utf8(varint::read_bytes(bytes, &mut at)?).ok();
    let options = SubscriberOptions::new(text()?).priority(priority).timeout(timeout);
    let path = Path::parse(text()?).ok()?;
    options.check().ok()?;
    (at == bytes.len()).then(|| (Terms::new("", path, options, Some(process)), number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registrations_read_back_and_damaged_ones_do_not() {
        let options = SubscriberOptions::new("dns").priority(-7).timeout(Duration::from_micros(3));
        let path = Path::parse("/net/a~1b\n").expect("a path");
        let encoded = encode(&Terms::new("", path.clone(), options, None), 300);
        let (terms, number) = decode(&encoded).expect("reads");
        assert_eq!((terms.options.name.as_str(), terms.options.priority, number), ("dns", -7, 300));
        assert_eq!(terms.options.timeout, Duration::from_micros(3));
        assert_eq!((terms.path, terms.process), (path, Some(std::process::id())));
        assert_eq!(terms.segments, ["net", "a/b\n"]);
        for len in 0..encoded.len() {
            assert!(decode(&encoded[..len]).is_none(), "{len}");
        }
        assert!(decode(&[&encoded[..], b"x"].concat()).is_none());
    }
}
