//! The thread that writes what nobody syncs, and folds the journal into the engine.
//!
//! It does not keep the store open.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use spinney_core::Result;

use crate::store_limits::Limits;

/// What the thread does.
pub trait Keep: Send + Sync + 'static {
    /// Hands what is staged to the system.
    fn write(&self) -> Result<()>;

    /// Makes what is staged durable.
    fn flush(&self) -> Result<()>;

    /// Folds the generation that waits for it.
    fn fold_full(&self) -> Result<()>;

    /// Is called when nobody has committed for a while; what was committed last is written and may not
    /// be synced.
    fn rest(self: &Arc<Self>) -> Result<()>;
}

pub struct Flusher {
    limits: Limits,
    start: OnceLock<()>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Nothing to do.
    #[default]
    Idle,
    /// There are commits to write.
    Due,
    /// A generation waits for its checkpoint.
    Full,
    /// Commits have been written; it may rest when no more come.
    Written,
    Stopped,
}

impl Flusher {
    pub fn new(limits: Limits) -> Arc<Flusher> {
        Arc::new(Flusher {
            limits,
            start: OnceLock::new(),
            state: Mutex::default(),
            changed: Condvar::new(),
        })
    }

    /// There is a commit to write.
    pub fn wake<S: Keep>(self: &Arc<Self>, store: &Arc<S>) {
        if matches!(*self.state(), State::Idle | State::Written) {
            self.set(State::Due);
            self.start(store);
        }
    }

    /// There is a generation to fold.
    pub fn wake_full<S: Keep>(self: &Arc<Self>, store: &Arc<S>) {
        self.set(State::Full);
        self.start(store);
    }

    pub fn stop(&self) {
        self.set(State::Stopped);
    }

    fn start<S: Keep>(self: &Arc<Self>, store: &Arc<S>) {
        self.start.get_or_init(|| {
            let (flusher, store) = (Arc::clone(self), Arc::downgrade(store));
            let thread = thread::Builder::new().name("spinney-flush".into());
            // Without the thread commits wait for a sync or for the handle's drop, and whoever
            // fills the journal folds it.
            let _ = thread.spawn(move || flusher.run(&store));
        });
    }

    fn run<S: Keep>(&self, store: &Weak<S>) {
        let mut synced = Instant::now();
        loop {
            let state = self.next();
            if state == State::Stopped {
                return;
            }
            let Some(store) = store.upgrade() else { return };
            // A failure is kept in the store, or met again by its next writer.
            let _ = match state {
                State::Due if synced.elapsed() < self.limits.sync_every => store.write(),
                State::Due => {
                    synced = Instant::now();
                    store.flush()
                }
                State::Full => store.fold_full(),
                _ => store.rest(),
            };
        }
    }

    /// Waits for work; from here on a commit makes the next write due.
    fn next(&self) -> State {
        let mut state = self.state();
        loop {
            let now = *state;
            let time = match now {
                // Whatever comes wakes it.
                State::Idle => Duration::from_secs(3_600),
                State::Due => self.limits.write_after,
                State::Written => self.limits.fold_after,
                State::Full => Duration::ZERO,
                State::Stopped => return now,
            };
            let unchanged = |state: &mut State| *state == now;
            let waited = self.changed.wait_timeout_while(state, time, unchanged);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if *state != now || now == State::Idle {
                continue;
            }
            *state = match now {
                State::Written => State::Idle,
                // It may have come before what was due was written.
                State::Full => State::Due,
                _ => State::Written,
            };
            return now;
        }
    }

    fn set(&self, new: State) {
        let mut state = self.state();
        if *state != State::Stopped {
            *state = new;
        }
        drop(state);
        self.changed.notify_one();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
