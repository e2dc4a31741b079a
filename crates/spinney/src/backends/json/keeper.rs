//! The thread that writes what nobody syncs, prints the file when nobody commits, and notices when a
//! person has edited it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::store::Store;

/// How long a commit waits for somebody's sync before it is written and synced anyway.
const FLUSH_AFTER: Duration = Duration::from_millis(50);

/// After so long without a commit the file is printed.
const REST: Duration = Duration::from_secs(1);

/// The file is printed without a rest when the commits that it lacks have more bytes.
const BEHIND_LEN_MAX: usize = 4 << 20;

/// How often the file is looked at for edits of others; what is found twice the same is read.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Tells the thread what to do.
#[derive(Default)]
pub struct Keeper {
    state: Mutex<State>,
    changed: Condvar,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    /// There are commits to write.
    is_due: bool,
    is_stopped: bool,
}

impl Keeper {
    /// Starts the thread. Without it commits wait for a sync, and the file for the store's close.
    pub fn start(&self, store: &Arc<Store>) {
        let kept = Arc::clone(store);
        let thread = thread::Builder::new().name("spinney-json".into());
        *lock(&self.thread) = thread.spawn(move || run(&kept)).ok();
    }

    /// There is a commit to write.
    pub fn wake(&self) {
        let mut state = lock(&self.state);
        if !state.is_due {
            state.is_due = true;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Returns when the thread has ended.
    pub fn stop(&self) {
        lock(&self.state).is_stopped = true;
        self.changed.notify_one();
        if let Some(thread) = lock(&self.thread).take() {
            // A panic there has been printed; closing goes on.
            let _ = thread.join();
        }
    }

    /// Waits for a commit or until the time is up; `None` when the thread shall end.
    fn next(&self, time: Duration) -> Option<bool> {
        let idle = |state: &mut State| !state.is_due && !state.is_stopped;
        let state = lock(&self.state);
        let waited = self.changed.wait_timeout_while(state, time, idle);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        (!state.is_stopped).then_some(state.is_due)
    }

    /// Waits for more commits to share a sync; from here on a commit makes the next one due.
    fn gather(&self) {
        let working = |state: &mut State| !state.is_stopped;
        let waited = self.changed.wait_timeout_while(lock(&self.state), FLUSH_AFTER, working);
        waited.unwrap_or_else(PoisonError::into_inner).0.is_due = false;
    }
}

fn run(store: &Store) {
    let mut last_commit: Option<Instant> = None;
    let mut last_look = Instant::now();
    while let Some(is_due) = store.keeper.next(LOOK_EVERY.min(REST)) {
        if is_due {
            store.keeper.gather();
            last_commit = Some(Instant::now());
            // A failure is kept in the store and met by its next writer.
            let _ = store.sync_all();
        }
        let is_rested = last_commit.is_some_and(|at| at.elapsed() >= REST);
        if is_rested || store.tail().diffs_len > BEHIND_LEN_MAX {
            last_commit = None;
            report(store, store.rewrite());
        } else if last_look.elapsed() >= LOOK_EVERY {
            report(store, store.look());
        } else {
            continue;
        }
        last_look = Instant::now();
    }
}

fn report(store: &Store, done: spinney_core::Result<()>) {
    if let Err(error) = done {
        log::warn!("`{}`: {error}; the journal keeps all commits", store.files.file.display());
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
