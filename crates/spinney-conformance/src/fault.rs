//! A wrapper that fails when its plan says so, and then behaves as the contract demands.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spinney_core::backend::{
    Backend, Batch, Bounds, Capabilities, Change, Direction, Outcome, Record, Records, Revision,
    Snapshot, WriteGuard,
};
use spinney_core::{Error, ErrorKind, Result};

/// What can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A put within a batch; the batch fails as a whole.
    Put,
    /// A commit.
    Commit,
    /// A flush or a sync; from then on writes are refused.
    Sync,
    /// The making of a snapshot.
    Snapshot,
    /// A read of one key, of a range or of a floor.
    Get,
}

/// Which call fails: the `nth` of an operation from now on, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The operation that fails.
    pub operation: Operation,
    /// How many of it succeed first.
    pub nth: u64,
    /// The kind of the error.
    pub kind: ErrorKind,
}

/// A backend that fails by plan.
pub struct Fault<B> {
    inner: B,
    plan: Arc<Armed>,
    is_closed: AtomicBool,
}

#[derive(Default)]
struct Armed {
    plan: Mutex<Option<Plan>>,
    failures: AtomicU64,
}

impl Armed {
    /// Counts `times` calls of an operation; fails when the plan's is among them.
    fn pass(&self, operation: Operation, times: u64) -> Result<()> {
        let mut armed = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(plan) = armed.as_mut().filter(|plan| plan.operation == operation) else {
            return Ok(());
        };
        if plan.nth >= times {
            plan.nth -= times;
            return Ok(());
        }
        let kind = plan.kind;
        *armed = None;
        self.failures.fetch_add(1, Ordering::SeqCst);
        Err(Error::new(kind, format!("{operation:?} failed by plan")))
    }
}

impl<B: Backend> Fault<B> {
    /// Wraps a backend; without a plan nothing fails.
    pub fn new(inner: B) -> Self {
        Fault { inner, plan: Arc::default(), is_closed: AtomicBool::new(false) }
    }

    /// Arms a plan, or disarms it with `None`. It fails one call.
    pub fn set_plan(&self, plan: Option<Plan>) {
        *self.plan.plan.lock().unwrap_or_else(PoisonError::into_inner) = plan;
    }

    /// How many calls have failed.
    pub fn failures(&self) -> u64 {
        self.plan.failures.load(Ordering::SeqCst)
    }

    /// The backend below, as after a reopen.
    pub fn into_inner(self) -> B {
        self.inner
    }

    fn pass_sync(&self) -> Result<()> {
        let passed = self.plan.pass(Operation::Sync, 1);
        if passed.is_err() {
            self.is_closed.store(true, Ordering::SeqCst);
        }
        passed
    }

    fn refuse_if_closed(&self) -> Result<()> {
        match self.is_closed.load(Ordering::SeqCst) {
            true => Err(Error::closed("the store refuses writes after a failed sync; reopen it")),
            false => Ok(()),
        }
    }
}

impl<B: Backend> Backend for Fault<B> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        self.plan.pass(Operation::Snapshot, 1)?;
        Ok(Box::new(FaultSnapshot { inner: self.inner.snapshot()?, plan: Arc::clone(&self.plan) }))
    }

    fn write_guard(&self, conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        self.refuse_if_closed()?;
        self.inner.write_guard(conflicts)
    }

    fn commit(&self, batch: Batch) -> Result<Outcome> {
        self.refuse_if_closed()?;
        let is_put = |change: &&Change| matches!(change, Change::Put(..));
        let puts = batch.changes.iter().filter(is_put).count();
        self.plan.pass(Operation::Put, puts as u64)?;
        self.plan.pass(Operation::Commit, 1)?;
        self.inner.commit(batch)
    }

    fn flush(&self, revision: Revision) -> Result<()> {
        self.refuse_if_closed()?;
        self.pass_sync()?;
        self.inner.flush(revision)
    }

    fn sync(&self, revision: Revision) -> Result<()> {
        self.refuse_if_closed()?;
        self.pass_sync()?;
        self.inner.sync(revision)
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.inner.wait(after, timeout)
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        self.inner.stats()
    }

    fn checkpoint(&self) -> Result<()> {
        self.refuse_if_closed()?;
        self.inner.checkpoint()
    }

    fn compact(&self) -> Result<u64> {
        self.refuse_if_closed()?;
        self.inner.compact()
    }

    fn backup(&self, target: &std::path::Path) -> Result<()> {
        self.inner.backup(target)
    }
}

struct FaultSnapshot {
    inner: Box<dyn Snapshot>,
    plan: Arc<Armed>,
}

impl Snapshot for FaultSnapshot {
    fn revision(&self) -> Result<Revision> {
        self.inner.revision()
    }

    fn version(&self) -> Option<u64> {
        self.inner.version()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        self.plan.pass(Operation::Get, 1)?;
        self.inner.get(key)
    }

    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>> {
        self.plan.pass(Operation::Get, 1)?;
        self.inner.range(bounds, direction)
    }

    fn floor(&self, lower: &[u8], key: &[u8]) -> Result<Option<Record<'_>>> {
        self.plan.pass(Operation::Get, 1)?;
        self.inner.floor(lower, key)
    }
}
