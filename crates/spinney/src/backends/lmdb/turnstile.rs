//! The writer's lock between processes, taken through a turnstile so that none of them starves.
//!
//! A process first takes the queue's lock, then the writer's, then gives the queue's back: who
//! waits for the writer holds the queue, and who releases the writer must queue again. While nobody
//! waits, which a number that all processes share tells, the writer's lock alone is taken. The locks
//! are advisory (`flock`) and the system releases them when a process dies.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use spinney_core::Result;

use super::directory::{QUEUE_LOCK, WRITER_LOCK, open_lock};
use crate::os_error::io_error;

/// How long a process keeps the lock before it looks whether another one waits.
const KEEP: Duration = Duration::from_millis(10);

/// This process's share in the locks.
pub struct Turnstile {
    queue: File,
    writer: File,
    holds: Mutex<Holds>,
    takings: AtomicU64,
}

struct Holds {
    count: usize,
    since: Instant,
}

/// Keeps other processes from writing until it is dropped.
pub struct Hold(Arc<Turnstile>);

impl Turnstile {
    /// Opens the lock files in `dir`.
    pub fn open(dir: &Path) -> Result<Arc<Turnstile>> {
        Ok(Arc::new(Turnstile {
            queue: open_lock(&dir.join(QUEUE_LOCK))?,
            writer: open_lock(&dir.join(WRITER_LOCK))?,
            holds: Mutex::new(Holds { count: 0, since: Instant::now() }),
            takings: AtomicU64::new(0),
        }))
    }

    /// Waits until this process has the lock, and keeps it while the answer lives. `queued` counts
    /// those that wait, in all processes; too many in it do no harm.
    pub fn hold(self: &Arc<Self>, queued: &AtomicU64) -> Result<Hold> {
        let mut holds = self.holds();
        if holds.count == 0 {
            self.take(queued)
                .map_err(|error| io_error("cannot lock", Path::new(WRITER_LOCK), error))?;
            holds.since = Instant::now();
            self.takings.fetch_add(1, Ordering::Release);
        }
        holds.count += 1;
        Ok(Hold(Arc::clone(self)))
    }

    /// How often this process has taken the lock from whoever had it.
    pub fn takings(&self) -> u64 {
        self.takings.load(Ordering::Acquire)
    }

    /// Whether this process has had the lock for a while and another one waits for it.
    pub fn is_owed(&self, queued: &AtomicU64) -> bool {
        if queued.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let holds = self.holds();
        if holds.count == 0 || holds.since.elapsed() < KEEP {
            return false;
        }
        match self.queue.try_lock() {
            Ok(()) => {
                let _ = self.queue.unlock();
                false
            }
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(_)) => false,
        }
    }

    fn take(&self, queued: &AtomicU64) -> std::io::Result<()> {
        if queued.load(Ordering::Relaxed) == 0 && self.writer.try_lock().is_ok() {
            return Ok(());
        }
        queued.fetch_add(1, Ordering::Relaxed);
        let taken = self.queue.lock().and_then(|()| {
            let taken = self.writer.lock();
            self.queue.unlock()?;
            taken
        });
        queued.fetch_sub(1, Ordering::Relaxed);
        taken
    }

    fn holds(&self) -> MutexGuard<'_, Holds> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut holds = self.0.holds();
        holds.count -= 1;
        if holds.count == 0 {
            // It fails only for a bad descriptor, and the system releases the lock at the latest
            // when the process ends.
            let _ = self.0.writer.unlock();
        }
    }
}
