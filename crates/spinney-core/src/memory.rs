//! The memory backend: the reference that every other backend must be indistinguishable from.
//!
//! One persistent ordered map; a snapshot is a clone of it. Nothing survives the process.

use std::ops::Bound;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::backend::{
    Backend, Batch, Capabilities, Change, Direction, Outcome, RecordKey, Revision, Snapshot,
    WriteGuard,
};
use crate::error::Result;
use crate::layout::{self, RecordKind};
use crate::overlay::{Nothing, Overlay};
use crate::record::Head;

/// Bytes of a page that fit LMDB best; the same here, so that the same paths are taken.
pub const PAGE_SIZE: usize = Capabilities::IN_MEMORY.page_size;

/// Bytes of the longest key, as in LMDB.
pub const KEY_LEN_MAX: usize = Capabilities::IN_MEMORY.key_len_max;

/// Bytes of keys and values in one batch.
pub const COMMIT_LEN_MAX: usize = Capabilities::IN_MEMORY.commit_len_max;

/// A store in memory.
///
/// # Durability
/// None: what is committed is gone with the process, and `sync` has nothing to do.
pub struct Memory {
    capabilities: Capabilities,
    writer: Mutex<()>,
    state: Mutex<Overlay>,
    committed: Condvar,
}

impl Memory {
    /// An empty store with the sizes of LMDB.
    pub fn new() -> Self {
        Memory::with_sizes(PAGE_SIZE, KEY_LEN_MAX, COMMIT_LEN_MAX)
    }

    /// An empty store with other sizes, for tests of what depends on them.
    pub fn with_sizes(page_size: usize, key_len_max: usize, commit_len_max: usize) -> Self {
        Memory {
            capabilities: Capabilities {
                page_size,
                key_len_max,
                commit_len_max,
                push_wait: true,
                ..Capabilities::IN_MEMORY
            },
            writer: Mutex::new(()),
            state: Mutex::new(Overlay::default()),
            committed: Condvar::new(),
        }
    }

    /// The same store with the capability that it keeps diffs, for a backend that stands on it.
    pub fn keeping_diffs(mut self) -> Self {
        self.capabilities.keeps_diffs = true;
        self
    }

    /// Says which revision the state is, for a store that was put together from elsewhere. The change
    /// log begins anew.
    ///
    /// # Errors
    /// `Corrupted` when the head is damaged.
    pub fn renumber(&self, revision: Revision) -> Result<()> {
        let mut state = self.state();
        let head = Head::load(&state.clone().over(Nothing), 0)?.unwrap_or_default();
        let log = |id| Box::from(layout::prefix(0, RecordKind::Log, id));
        let record = Head { revision, ..head }.encode(0);
        let changes = vec![
            Change::DeleteRange(log(0), log(u64::MAX)),
            Change::Put(layout::head_key(0).into(), record.into()),
        ];
        *state = applied(state.clone(), changes);
        Ok(())
    }

    /// Commits, and calls `before` between the check of the batch and the change, for a backend that
    /// keeps the batch elsewhere, too. Its error ends the commit, and nothing has changed.
    ///
    /// # Errors
    /// Those of [`Backend::commit`] and of `before`.
    pub fn commit_with(
        &self,
        batch: Batch,
        before: impl FnOnce(&Batch) -> Result<()>,
    ) -> Result<Outcome> {
        batch.check_limits(&self.capabilities)?;
        let mut state = self.state();
        let current = state.clone().over(Nothing);
        if !batch.applies_to(&current)? {
            return Ok(Outcome::Conflict);
        }
        before(&batch)?;
        let is_maintenance = batch.is_maintenance();
        let revision = if is_maintenance { current.revision()? } else { batch.revision };
        *state = applied(state.clone(), batch.changes);
        if !is_maintenance {
            self.committed.notify_all();
        }
        Ok(Outcome::Committed(revision))
    }

    fn state(&self) -> MutexGuard<'_, Overlay> {
        // The state is replaced in one assignment, so a panic elsewhere cannot leave half of it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Memory {
    fn default() -> Self {
        Memory::new()
    }
}

impl Backend for Memory {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(self.state().clone().over(Nothing)))
    }

    fn write_guard(&self, _conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        Ok(Box::new(self.writer.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    fn commit(&self, batch: Batch) -> Result<Outcome> {
        self.commit_with(batch, |_| Ok(()))
    }

    fn sync(&self, _revision: Revision) -> Result<()> {
        Ok(())
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        let unchanged = |state: &mut Overlay| !matches!(revision(state), Ok(now) if now > after);
        let (state, _) = self
            .committed
            .wait_timeout_while(self.state(), timeout, unchanged)
            .unwrap_or_else(PoisonError::into_inner);
        revision(&state)
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        Ok(vec![("records".into(), self.state().len().to_string())])
    }
}

fn revision(state: &Overlay) -> Result<Revision> {
    let head = state.staged(&layout::head_key(0)).and_then(Option::as_deref);
    layout::head_revision(head)
}

/// The state with the changes made; there is nothing below, so what is deleted is forgotten.
fn applied(mut state: Overlay, changes: Vec<Change>) -> Overlay {
    for change in changes {
        match change {
            Change::Put(key, value) => {
                state.stage(key, Some(value));
            }
            Change::Delete(key) => drop(state.forget(&key)),
            Change::DeleteRange(from, to) => {
                let bounds = (Bound::Included(&*from), Bound::Excluded(&*to));
                let doomed: Vec<RecordKey> =
                    state.keys(bounds, Direction::Forward).cloned().collect();
                for key in doomed {
                    state.forget(&key);
                }
            }
        }
    }
    state
}
