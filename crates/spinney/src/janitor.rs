//! The thread that reclaims what was removed, a step at a time, while nobody waits for it.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::thread;

use spinney_core::backend::{Backend, TreeId};
use spinney_core::reclaim;

/// Starts reclaiming when it is told of trees, and stops when the store is dropped.
#[derive(Default)]
pub struct Janitor {
    queue: Arc<Queue>,
    started: Mutex<bool>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    trees: BTreeSet<TreeId>,
    working: bool,
    stopped: bool,
}

impl Janitor {
    /// Tells of trees in which something was removed.
    pub fn wake(&self, backend: &Arc<dyn Backend>, trees: &[TreeId]) {
        let mut state = self.queue.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.trees.extend(trees);
        self.queue.changed.notify_all();
        drop(state);
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        if !*started {
            let (queue, backend) = (Arc::clone(&self.queue), Arc::downgrade(backend));
            let thread = thread::Builder::new().name("spinney-reclaim".into());
            // Without the thread the queue waits for the next process or for `compact`.
            *started = thread.spawn(move || queue.work(&backend)).is_ok();
        }
    }

    /// Waits until nothing is left to reclaim of what it was told.
    pub fn wait_until_idle(&self) {
        let mut state = self.queue.state.lock().unwrap_or_else(PoisonError::into_inner);
        let started = *self.started.lock().unwrap_or_else(PoisonError::into_inner);
        while started && !state.stopped && (state.working || !state.trees.is_empty()) {
            state = self.queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Janitor {
    fn drop(&mut self) {
        self.queue.state.lock().unwrap_or_else(PoisonError::into_inner).stopped = true;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn work(&self, backend: &Weak<dyn Backend>) {
        while let Some(trees) = self.next() {
            let mut left = true;
            while left && !self.state.lock().unwrap_or_else(PoisonError::into_inner).stopped {
                let Some(backend) = backend.upgrade() else { break };
                // An error here is met again by `check` or by the next writer, who can report it.
                left = matches!(reclaim::step(&*backend, &trees), Ok(1..));
            }
        }
    }

    fn next(&self) -> Option<Vec<TreeId>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.working = false;
        self.changed.notify_all();
        loop {
            if state.stopped {
                return None;
            }
            if !state.trees.is_empty() {
                state.working = true;
                return Some(std::mem::take(&mut state.trees).into_iter().collect());
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
