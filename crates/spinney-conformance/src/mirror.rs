//! A wrapper that runs two backends in lock-step and asserts that they answer the same.

use std::borrow::Cow;
use std::fmt::Debug;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use spinney_core::backend::{
    Backend, Batch, Bounds, Capabilities, Direction, Outcome, Record, Records, Revision, Snapshot,
    WriteGuard,
};
use spinney_core::{ErrorKind, Result};

/// The longest that the second backend may be behind the first.
const SECOND_WAIT_MAX: Duration = Duration::from_secs(60);

/// Two backends that must be indistinguishable; the first one's answers are given.
pub struct Mirror<A, B> {
    first: A,
    second: B,
    capabilities: Capabilities,
    /// Held by a commit, which reaches one after the other, and shared by who takes snapshots.
    commits: RwLock<()>,
}

impl<A: Backend, B: Backend> Mirror<A, B> {
    /// Runs two backends side by side; both are empty or hold the same.
    pub fn new(first: A, second: B) -> Self {
        let (left, right) = (first.capabilities(), second.capabilities());
        let capabilities = Capabilities {
            persistent: left.persistent && right.persistent,
            multi_process: left.multi_process && right.multi_process,
            versions: left.versions && right.versions,
            multi_tree_commit: left.multi_tree_commit && right.multi_tree_commit,
            page_size: left.page_size.min(right.page_size),
            key_len_max: left.key_len_max.min(right.key_len_max),
            commit_len_max: left.commit_len_max.min(right.commit_len_max),
            push_wait: left.push_wait && right.push_wait,
            keeps_diffs: left.keeps_diffs || right.keeps_diffs,
        };
        Mirror { first, second, capabilities, commits: RwLock::new(()) }
    }
}

/// Both answers, which must be equal; of errors the kinds.
fn agreed<T: PartialEq + Debug>(first: Result<T>, second: Result<T>, call: &str) -> Result<T> {
    let comparable =
        |answer: &Result<T>| -> Option<ErrorKind> { answer.as_ref().err().map(|e| e.kind()) };
    assert_eq!(comparable(&first), comparable(&second), "{call}: {first:?} and {second:?}");
    if let (Ok(first), Ok(second)) = (&first, &second) {
        assert_eq!(first, second, "{call}");
    }
    first
}

impl<A: Backend, B: Backend> Backend for Mirror<A, B> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        let _no_commit = self.commits.read().unwrap_or_else(PoisonError::into_inner);
        let (first, second) = (self.first.snapshot()?, self.second.snapshot()?);
        agreed(first.revision(), second.revision(), "snapshot")?;
        Ok(Box::new(MirrorSnapshot { first, second }))
    }

    fn write_guard(&self, conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        let first = self.first.write_guard(conflicts)?;
        let second = self.second.write_guard(conflicts)?;
        Ok(Box::new(BothGuards { _first: first, _second: second }))
    }

    fn commit(&self, batch: Batch) -> Result<Outcome> {
        let _no_snapshot = self.commits.write().unwrap_or_else(PoisonError::into_inner);
        agreed(self.first.commit(batch.clone()), self.second.commit(batch), "commit")
    }

    fn flush(&self, revision: Revision) -> Result<()> {
        agreed(self.first.flush(revision), self.second.flush(revision), "flush")
    }

    fn sync(&self, revision: Revision) -> Result<()> {
        agreed(self.first.sync(revision), self.second.sync(revision), "sync")
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        // A commit that wakes the first has yet to reach the second.
        let revision = self.first.wait(after, timeout)?;
        if let Some(before) = revision.checked_sub(1) {
            let reached = self.second.wait(before, SECOND_WAIT_MAX)?;
            assert!(reached >= revision, "wait: {revision} and {reached}");
        }
        Ok(revision)
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        self.first.stats()
    }

    fn checkpoint(&self) -> Result<()> {
        agreed(self.first.checkpoint(), self.second.checkpoint(), "checkpoint")
    }

    fn backup(&self, target: &std::path::Path) -> Result<()> {
        self.first.backup(target)
    }
}

struct BothGuards<'b> {
    _first: Box<dyn WriteGuard + 'b>,
    _second: Box<dyn WriteGuard + 'b>,
}

impl WriteGuard for BothGuards<'_> {}

struct MirrorSnapshot {
    first: Box<dyn Snapshot>,
    second: Box<dyn Snapshot>,
}

impl Snapshot for MirrorSnapshot {
    fn revision(&self) -> Result<Revision> {
        agreed(self.first.revision(), self.second.revision(), "revision")
    }

    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        agreed(self.first.get(key), self.second.get(key), "get")
    }

    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>> {
        let mut second = self.second.range(bounds, direction)?;
        let mut first = self.first.range(bounds, direction)?;
        Ok(Box::new(std::iter::from_fn(move || {
            agreed(first.next().transpose(), second.next().transpose(), "range").transpose()
        })))
    }

    fn floor(&self, lower: &[u8], key: &[u8]) -> Result<Option<Record<'_>>> {
        agreed(self.first.floor(lower, key), self.second.floor(lower, key), "floor")
    }
}
