//! The thread that tidies up while nobody waits for it: it forgets history that is not to be kept, and
//! reclaims what was removed, a step at a time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use spinney_core::backend::{Backend, TreeId};
use spinney_core::history::{self, Retention};
use spinney_core::{check, reclaim};

use crate::datastores;
use crate::store::now_ms;

/// How often the log is looked at, at most.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Starts when it is told of something to do, and stops when the store is dropped.
pub struct Janitor {
    queue: Arc<Queue>,
    started: Mutex<bool>,
}

struct Queue {
    retention: Retention,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    has_work: bool,
    working: bool,
    /// Somebody waits for it.
    hurries: bool,
    stopped: bool,
}

impl Janitor {
    /// Keeps so much history.
    pub fn new(retention: Retention) -> Janitor {
        let queue = Queue { retention, state: Mutex::default(), changed: Condvar::new() };
        Janitor { queue: Arc::new(queue), started: Mutex::default() }
    }

    /// Tells that something was removed, or the log has grown.
    pub fn wake(&self, backend: &Arc<dyn Backend>) {
        let mut state = self.queue.state();
        if !std::mem::replace(&mut state.has_work, true) {
            self.queue.changed.notify_all();
        }
        drop(state);
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if !*started {
            let (queue, backend) = (Arc::clone(&self.queue), Arc::downgrade(backend));
            let thread = thread::Builder::new().name("spinney-reclaim".into());
            // Without the thread the queue waits for the next process or for `compact`.
            *started = thread.spawn(move || queue.work(&backend)).is_ok();
        }
    }

    /// Waits until nothing is left to do of what it was told.
    pub fn wait_until_idle(&self) {
        let mut state = self.queue.state();
        let started = *self.started.lock().unwrap_or_else(PoisonError::into_inner);
        while started && !state.stopped && (state.working || state.has_work) {
            state.hurries = true;
            self.queue.changed.notify_all();
            state = self.queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.hurries = false;
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.queue.state().stopped = true;
        self.queue.changed.notify_all();
    }
}

struct End<'q>(&'q Queue);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.state().stopped = true;
        self.0.changed.notify_all();
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, weak: &Weak<dyn Backend>) {
        // Nobody is to wait for a thread that has ended, however it did.
        let _end = End(self);
        let mut looked: Option<Instant> = None;
        while self.next(looked.map(|looked| looked + LOOK_EVERY)) {
            let Some(backend) = weak.upgrade() else { return };
            looked = Some(Instant::now());
            // An error here is met again by `check` or by the next writer, who can report it.
            let _ = history::keep(&*backend, &self.retention, now_ms(), |state| {
                datastores::first_needed(state)
            });
            let Ok(trees) = backend.snapshot().and_then(|state| check::trees(&*state)) else {
                continue;
            };
            drop(backend);
            self.reclaim(weak, &trees);
        }
    }

    /// Step by step, so that the store can be closed between two of them.
    fn reclaim(&self, backend: &Weak<dyn Backend>, trees: &[TreeId]) {
        while !self.state().stopped {
            let Some(backend) = backend.upgrade() else { return };
            if !matches!(reclaim::step(&*backend, trees), Ok(1..)) {
                return;
            }
        }
    }

    /// Waits for work, and until it is due; false when there will be none.
    fn next(&self, due: Option<Instant>) -> bool {
        let mut state = self.state();
        state.working = false;
        self.changed.notify_all();
        loop {
            if state.stopped {
                return false;
            }
            let left =
                due.map_or(Duration::ZERO, |due| due.saturating_duration_since(Instant::now()));
            if state.has_work && (left.is_zero() || state.hurries) {
                state.has_work = false;
                state.working = true;
                return true;
            }
            state = match state.has_work {
                false => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
                true => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }
}
