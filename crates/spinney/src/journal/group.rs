//! One sync for all who wait for one.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use spinney_core::{Error, Result};

use super::Position;

/// Shares the syncs of a journal's files among the threads of a process.
#[derive(Default)]
pub struct Group {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Everything before it is durable.
    synced: Position,
    is_syncing: bool,
    /// Who waits while another syncs, and until what is durable.
    waiting: Vec<(Position, Thread)>,
    syncs: u64,
    failure: Option<Error>,
}

impl Group {
    /// Everything before it is durable.
    pub fn synced(&self) -> Position {
        self.state().synced
    }

    /// Syncs so far.
    pub fn syncs(&self) -> u64 {
        self.state().syncs
    }

    /// Learns that everything before a position is durable, by another's sync or a checkpoint.
    pub fn advance(&self, synced: Position) {
        let mut state = self.state();
        if state.synced < synced {
            state.synced = synced;
            state.wake();
        }
    }

    /// Why nothing more can be promised, after a sync has failed.
    pub fn failure(&self) -> Option<Error> {
        self.state().failure.clone()
    }

    /// Returns when everything before `position` is durable. Who finds no sync running runs `sync`, for
    /// all who wait: given up to where everything is durable, it makes more so and returns up to where.
    ///
    /// # Errors
    /// That of the failed sync, from then on for ever: the system may have dropped what it could not
    /// write.
    pub fn sync(
        &self,
        position: Position,
        sync: impl Fn(Position) -> Result<Position>,
    ) -> Result<()> {
        let mut state = self.state();
        loop {
            if state.synced >= position {
                return Ok(());
            }
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            if state.is_syncing {
                let this = thread::current();
                let id = this.id();
                state.waiting.push((position, this));
                drop(state);
                thread::park();
                state = self.state();
                // It may have woken by itself.
                state.waiting.retain(|(_, waiting)| waiting.id() != id);
                continue;
            }
            state.is_syncing = true;
            let before = state.synced;
            drop(state);
            let synced = sync(before);
            state = self.state();
            state.is_syncing = false;
            state.syncs += 1;
            match synced {
                Ok(synced) => state.synced = state.synced.max(synced),
                Err(error) => state.failure = Some(error),
            }
            state.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Wakes who need wait no longer, and of the others one to sync, unless one does: to wake all of
    /// them only to wait again costs as much as their commits.
    fn wake(&mut self) {
        let (synced, all) = (self.synced, self.failure.is_some());
        let mut needs_leader = !self.is_syncing;
        self.waiting.retain(|(position, thread)| {
            let is_done = all || *position <= synced;
            let wakes = is_done || std::mem::take(&mut needs_leader);
            if wakes {
                thread.unpark();
            }
            !wakes
        });
    }
}
