//! One sync for all who wait for one, and the next while it runs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use spinney_core::{Error, Result};

use super::segments::SYNCS_MAX;
use super::{Position, Segments};

/// Shares the syncs of a journal's files among the threads of a process.
#[derive(Default)]
pub struct Group {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Everything before it is durable.
    synced: Position,
    /// Up to where the syncs that run now make it so.
    syncing: [Option<Position>; SYNCS_MAX],
    /// Who waits while others sync, and until what is durable.
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

    /// Returns when everything before `position` is durable. Who finds no sync running that will do
    /// syncs all that is `written` by then, for all who wait; who finds too many waits for one of them.
    ///
    /// # Errors
    /// That of the failed sync, from then on for ever: the system may have dropped what it could not
    /// write.
    pub fn sync(
        &self,
        segments: &Segments,
        position: Position,
        written: impl Fn() -> Position,
    ) -> Result<()> {
        let mut state = self.state();
        loop {
            if state.synced >= position {
                return Ok(());
            }
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            let Some(lane) = state.lane_for(position) else {
                let this = thread::current();
                let id = this.id();
                state.waiting.push((position, this));
                drop(state);
                thread::park();
                state = self.state();
                // It may have woken by itself.
                state.waiting.retain(|(_, waiting)| waiting.id() != id);
                continue;
            };
            state.syncing[lane] = Some(position);
            let before = state.synced;
            drop(state);
            let written = written();
            self.state().syncing[lane] = Some(written);
            let synced = sync_between(segments, before, written, lane);
            state = self.state();
            state.syncing[lane] = None;
            state.syncs += 1;
            match synced {
                // What has failed once is not known to be there, whatever ends well after it.
                Ok(()) if state.failure.is_none() => state.synced = state.synced.max(written),
                Ok(()) => {}
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
    /// Which sync to begin so that everything before `position` is durable; `None` when one that runs will
    /// do, or too many run.
    fn lane_for(&self, position: Position) -> Option<usize> {
        let will_do = self.syncing.iter().flatten().any(|written| *written >= position);
        if will_do { None } else { self.syncing.iter().position(Option::is_none) }
    }

    /// Wakes who need wait no longer, and of the others one to sync, unless all that may run do: to wake all
    /// of them only to wait again costs as much as their commits.
    fn wake(&mut self) {
        let (synced, all) = (self.synced, self.failure.is_some());
        let waiting = std::mem::take(&mut self.waiting);
        let mut needs_leader = true;
        for (position, thread) in waiting {
            let is_done = all || position <= synced;
            let leads = !is_done && needs_leader && self.lane_for(position).is_some();
            needs_leader &= !leads;
            match is_done || leads {
                true => thread.unpark(),
                false => self.waiting.push((position, thread)),
            }
        }
    }
}

/// The older generation first: a record that knows something of its own generation to be synced
/// says the same of all before it.
fn sync_between(
    segments: &Segments,
    before: Position,
    written: Position,
    lane: usize,
) -> Result<()> {
    if before.generation < written.generation {
        segments.sync(written.generation - 1, lane)?;
    }
    segments.sync(written.generation, lane)
}
