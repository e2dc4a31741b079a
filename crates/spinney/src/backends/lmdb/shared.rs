//! What the processes of one store tell each other: how far the journal is written, and synced.
//!
//! A small file that all of them map, and a lock on it: each holds it shared while it has the store
//! open, so who gets it exclusively is alone. Nothing in it outlives a power failure, and nothing
//! needs to: whoever is alone sets it anew. It must not know records or the engine.
#![allow(unsafe_code)]

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use memmap2::{MmapMut, MmapOptions};
use rustix::fs::Timespec;
use rustix::thread::futex;
use spinney_core::Result;
use spinney_core::backend::Revision;

use super::engine::Access;
use crate::journal::Position;
use crate::os_error::io_error;

/// The file's name in the store's directory.
pub const SHARED_FILE: &str = "shared";

/// Bytes of the file.
const LEN: u64 = 4_096;

/// Says that the numbers hold, and of what layout they are.
const READY: u64 = u64::from_le_bytes(*b"spinney4");

/// How often who waits looks by itself, in case that who should have woken it was killed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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
    Mapped(MmapMut),
    Own(Box<[AtomicU64; WORDS]>),
}

const WORDS: usize = FOLDS + 2 * FOLDS_MAX;
const STATE: usize = 0;
const PUBLISHED: usize = 1;
const SYNCED: usize = 2;
const COMMITS: usize = 3;
const SYNCS: usize = 4;
/// The engine's transaction before which states are not to be read any more.
const FIRST_READABLE: usize = 5;
/// The newest revision that is known to be durable.
const DURABLE: usize = 6;
/// Threads that wait to be woken.
const WAITING: usize = 7;
/// Counts what they wait for, in its lower half.
const WAKES: usize = 8;
/// How many wait for the writers' lock, or died while they did.
const QUEUED: usize = 9;
/// Counts registrations that have come or gone, in the store's directory.
const REGISTRATIONS: usize = 10;
/// How many processes have the store open, or died while they had.
const PROCESSES: usize = 11;
/// From here on, in turns: a transaction of the engine, and when it was, in seconds.
const FOLDS: usize = 12;
const FOLDS_MAX: usize = 200;

/// The shared numbers, and whether this process is alone and must set them.
pub struct Joined {
    pub shared: Shared,
    pub is_alone: bool,
}

impl Shared {
    /// Joins the processes that have the store in `dir` open.
    pub fn join(dir: &Path, access: Access) -> Result<Joined> {
        let path = dir.join(SHARED_FILE);
        loop {
            let mut options = OpenOptions::new();
            let file = match options.read(true).write(true).create(true).truncate(false).open(&path)
            {
                Ok(file) => file,
                // Nobody writes where the table of readers cannot be written either.
                Err(error) if access == Access::ReadOnly && is_forbidden(&error) => {
                    let words = Words::Own(Box::new([const { AtomicU64::new(0) }; WORDS]));
                    let shared = Shared { words, file: None, path };
                    return Ok(Joined { shared, is_alone: true });
                }
                Err(error) => return Err(io_error("cannot open", &path, error)),
            };
            let joined = Shared::try_join(file, &path);
            if let Some(joined) = joined.map_err(|error| io_error("cannot share", &path, error))? {
                return Ok(joined);
            }
            thread::sleep(RETRY);
        }
    }

    /// `None` when who was alone has died before it had set the numbers up.
    fn try_join(file: File, path: &Path) -> io::Result<Option<Joined>> {
        let is_alone = match file.try_lock() {
            Ok(()) => true,
            Err(TryLockError::WouldBlock) => {
                file.lock_shared()?;
                false
            }
            Err(TryLockError::Error(error)) => return Err(error),
        };
        if file.metadata()?.len() < LEN {
            if !is_alone {
                return Ok(None);
            }
            // Written, not only made long: a full disk must not show when the map is.
            file.write_all_at(&[0; LEN as usize], 0)?;
        }
        // SAFETY: the file is `LEN` bytes long, is never made shorter, and is only read and written
        // through atomics, by this module.
        let map = unsafe { MmapOptions::new().len(LEN as usize).map_mut(&file) }?;
        let shared = Shared { words: Words::Mapped(map), file: Some(file), path: path.to_owned() };
        if is_alone {
            shared.words()[STATE].store(0, Ordering::Release);
        } else if shared.is_ready() {
            shared.words()[PROCESSES].fetch_add(1, Ordering::SeqCst);
        } else {
            return Ok(None);
        }
        Ok(Some(Joined { shared, is_alone }))
    }

    /// Sets the numbers up and lets the others in.
    pub fn set_up(&self, end: Position) -> Result<()> {
        for word in &self.words()[SYNCED..] {
            word.store(0, Ordering::Relaxed);
        }
        self.words()[PUBLISHED].store(end.pack(), Ordering::Relaxed);
        self.words()[PROCESSES].store(1, Ordering::Relaxed);
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

    /// Whether no other process has the store open. One that comes may not be seen at once, and one that
    /// was killed is counted until all have gone.
    pub fn is_sole(&self) -> bool {
        self.words()[PROCESSES].load(Ordering::Relaxed) == 1
    }

    /// Up to where the journal is written, by whichever process.
    #[inline]
    pub fn published(&self) -> Position {
        Position::unpack(self.words()[PUBLISHED].load(Ordering::Acquire))
    }

    /// Tells the others that the journal is written up to `end`; only for who holds the writer's lock.
    pub fn publish(&self, end: Position) {
        self.words()[PUBLISHED].store(end.pack(), Ordering::SeqCst);
        self.wake_waiting();
    }

    /// Up to where the journal is known to be synced, by whichever process.
    pub fn synced(&self) -> Position {
        Position::unpack(self.words()[SYNCED].load(Ordering::Acquire))
    }

    /// Tells the others that the journal is synced up to `end`.
    pub fn advance_synced(&self, end: Position) {
        self.words()[SYNCED].fetch_max(end.pack(), Ordering::AcqRel);
    }

    /// The newest revision that is known to be durable, by whichever process.
    pub fn durable(&self) -> Revision {
        self.words()[DURABLE].load(Ordering::SeqCst)
    }

    /// Tells the others that a revision is durable, and all before it.
    pub fn advance_durable(&self, revision: Revision) {
        if self.words()[DURABLE].fetch_max(revision, Ordering::SeqCst) < revision {
            self.wake_waiting();
        }
    }

    /// Wakes those who wait, in all processes. Most often nobody does, and then it costs nothing.
    #[inline]
    pub fn wake_waiting(&self) {
        if self.words()[WAITING].load(Ordering::SeqCst) > 0 {
            self.wakes().fetch_add(1, Ordering::SeqCst);
            // It fails only for a word that is none.
            let _ = futex::wake(self.wakes(), futex::Flags::empty(), u32::MAX >> 1);
        }
    }

    /// Asks for a value, again whenever something happens, until it is told that the value is the one
    /// to wait for, or the time is up.
    ///
    /// # Errors
    /// Those of `value`.
    pub fn wait_until<T>(
        &self,
        timeout: Duration,
        mut value: impl FnMut() -> Result<(T, bool)>,
    ) -> Result<T> {
        let (found, is_it) = value()?;
        if is_it || timeout.is_zero() {
            return Ok(found);
        }
        let deadline = Instant::now().checked_add(timeout);
        let waiting = &self.words()[WAITING];
        waiting.fetch_add(1, Ordering::SeqCst);
        let found = loop {
            let seen = self.wakes().load(Ordering::SeqCst);
            let found = match value() {
                Ok((found, false)) => found,
                Ok((found, true)) => break Ok(found),
                Err(error) => break Err(error),
            };
            let left = deadline
                .map_or(LOOK_EVERY, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break Ok(found);
            }
            let left = left.min(LOOK_EVERY);
            let time = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
            let time = if left == LOOK_EVERY { Timespec { tv_sec: 1, tv_nsec: 0 } } else { time };
            // Whatever wakes it, the value tells.
            let _ = futex::wait(self.wakes(), futex::Flags::empty(), seen, Some(&time));
        };
        waiting.fetch_sub(1, Ordering::SeqCst);
        found
    }

    /// How many wait for the writers' lock: 0 only when nobody does.
    pub fn queued(&self) -> &AtomicU64 {
        &self.words()[QUEUED]
    }

    /// Counts a commit, of whichever process.
    pub fn count_commit(&self) {
        self.words()[COMMITS].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a sync.
    pub fn count_sync(&self) {
        self.words()[SYNCS].fetch_add(1, Ordering::Relaxed);
    }

    /// Commits and syncs since the first of the processes that have it open now has opened it.
    pub fn counts(&self) -> (u64, u64) {
        let count = |word: usize| self.words()[word].load(Ordering::Relaxed);
        (count(COMMITS), count(SYNCS))
    }

    /// Changes whenever a registration has come or gone.
    #[inline]
    pub fn registrations(&self) -> u64 {
        self.words()[REGISTRATIONS].load(Ordering::SeqCst)
    }

    /// Counts that a registration has come or gone.
    pub fn count_registration(&self) {
        self.words()[REGISTRATIONS].fetch_add(1, Ordering::SeqCst);
    }

    /// The engine's transaction before which states are not to be read any more.
    #[inline]
    pub fn first_readable(&self) -> u64 {
        self.words()[FIRST_READABLE].load(Ordering::Relaxed)
    }

    /// Ends the reading of states before a transaction, in all processes.
    pub fn refuse_before(&self, transaction: u64) {
        self.words()[FIRST_READABLE].fetch_max(transaction, Ordering::Relaxed);
    }

    /// Remembers when a transaction of the engine was.
    pub fn note_fold(&self, transaction: u64) {
        let words = &self.words()[FOLDS + 2 * (transaction as usize % FOLDS_MAX)..];
        words[0].store(0, Ordering::Release);
        words[1].store(now(), Ordering::Release);
        words[0].store(transaction, Ordering::Release);
    }

    /// How long ago a state of the engine was followed by another one, at least.
    pub fn age(&self, transaction: u64) -> Duration {
        let folds = self.words()[FOLDS..].chunks_exact(2).filter_map(|words| {
            let later = words[0].load(Ordering::Acquire) > transaction;
            later.then(|| words[1].load(Ordering::Acquire))
        });
        let now = now();
        Duration::from_secs(folds.map(|then| now.saturating_sub(then)).max().unwrap_or_default())
    }

    fn is_ready(&self) -> bool {
        self.words()[STATE].load(Ordering::Acquire) == READY
    }

    fn wakes(&self) -> &AtomicU32 {
        let word = &raw const self.words()[WAKES];
        // SAFETY: half of a word is as aligned as it needs to be, lives as long, and is only ever used
        // as this half.
        unsafe { &*word.cast::<AtomicU32>() }
    }

    fn words(&self) -> &[AtomicU64] {
        let bytes = match &self.words {
            Words::Mapped(map) => map.as_ptr(),
            Words::Own(words) => return &**words,
        };
        // SAFETY: a map begins at a page's boundary and is longer than the words; it lives as long
        // as `self`.
        unsafe { std::slice::from_raw_parts(bytes.cast::<AtomicU64>(), WORDS) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.words()[PROCESSES].fetch_sub(1, Ordering::SeqCst);
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn is_forbidden(error: &io::Error) -> bool {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem)
}
