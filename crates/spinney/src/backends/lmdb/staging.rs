//! Staged commits: checked and visible at once, written together, shared by all handles.
//!
//! Three rules make every snapshot one consistent state:
//!
//! - what is staged is a superset of what the engine lacks: entries leave the overlay only after
//!   the engine committed them, under the lock that snapshots take;
//! - an entry that is in both is the same in both, or newer in the overlay;
//! - while anything is staged this process holds the writer's lock, so the engine below the
//!   overlay is its own.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use spinney_core::backend::{Batch, Outcome, Revision, Snapshot, WriteGuard};
use spinney_core::overlay::{Layered, Overlay};
use spinney_core::{Error, Result};

use super::directory::Directory;
use super::engine::{Access, Engine, EngineSnapshot};
use super::turnstile::{Hold, Turnstile};

/// How long a staged commit waits for somebody's sync before it is written anyway.
const FLUSH_AFTER: Duration = Duration::from_millis(50);

/// Batches of more bytes are written to the engine without being staged.
const STAGED_BATCH_LEN_MAX: usize = 1 << 20;

/// With more bytes staged a commit flushes before it answers.
const STAGED_LEN_MAX: usize = 16 << 20;

/// Batches of more point changes, after ranges are expanded, are written without being staged.
const STAGED_BATCH_RECORDS_MAX: usize = 50_000;

/// How often `wait` looks for commits of other processes.
const POLL: Duration = Duration::from_millis(10);

/// One open store, shared by its handles and snapshots.
pub struct Store {
    pub directory: Directory,
    pub engine: Engine,
    /// `None` when the store is open read-only.
    turnstile: Option<Arc<Turnstile>>,
    /// Held by a write guard.
    writer: Mutex<()>,
    /// Held from the check of a batch until it is staged.
    committing: Mutex<()>,
    staging: Mutex<Staging>,
    flushed: Condvar,
    committed: Condvar,
    flusher: Arc<Flusher>,
}

#[derive(Default)]
struct Staging {
    /// Everything that the engine lacks.
    overlay: Overlay,
    /// What was staged since the running flush took its copy of the overlay.
    since_flush: Option<Overlay>,
    /// Bytes staged since the last flush began.
    len_bytes: usize,
    /// Counts the staged batches; `flushed` is the last one that is in the engine.
    batch: u64,
    batch_flushed: u64,
    /// The last staged batch that was maintenance, which shares its revision with another.
    batch_maintenance: u64,
    revision: Revision,
    revision_flushed: Revision,
    /// The writer's lock, while anything is staged.
    hold: Option<Hold>,
    /// Why the store refuses writes.
    failure: Option<Error>,
}

/// A snapshot: the overlay of its moment over the engine's state of its moment.
pub type StoreSnapshot = Layered<EngineSnapshot<Arc<Store>>>;

impl Store {
    pub fn new(directory: Directory, engine: Engine, access: Access) -> Result<Arc<Store>> {
        let turnstile = match access {
            Access::ReadWrite => Some(Turnstile::open(&directory.path)?),
            Access::ReadOnly => None,
        };
        Ok(Arc::new(Store {
            directory,
            engine,
            turnstile,
            writer: Mutex::default(),
            committing: Mutex::default(),
            staging: Mutex::default(),
            flushed: Condvar::new(),
            committed: Condvar::new(),
            flusher: Arc::default(),
        }))
    }

    pub fn is_read_only(&self) -> bool {
        self.turnstile.is_none()
    }

    pub fn staged_len(&self) -> usize {
        self.staging().overlay.len()
    }

    pub fn snapshot(self: &Arc<Self>) -> Result<StoreSnapshot> {
        let staging = self.staging();
        let overlay = staging.overlay.clone();
        let engine = self.engine.snapshot(Arc::clone(self))?;
        drop(staging);
        Ok(overlay.over(engine))
    }

    pub fn write_guard(&self) -> Result<StoreGuard<'_>> {
        let turnstile = self.turnstile()?;
        let serialised = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.refuse_after_failure(&self.staging())?;
        if turnstile.is_owed() {
            self.flush()?;
        }
        Ok(StoreGuard { _hold: turnstile.hold()?, _serialised: serialised })
    }

    pub fn commit(self: &Arc<Self>, batch: &Batch) -> Result<Outcome> {
        let hold = self.turnstile()?.hold()?;
        let committing = self.committing.lock().unwrap_or_else(PoisonError::into_inner);
        self.refuse_after_failure(&self.staging())?;
        let current = self.snapshot()?;
        if !batch.applies_to(&current)? {
            return Ok(Outcome::Conflict);
        }
        let revision = current.revision()?;
        let revision = if batch.is_maintenance() { revision } else { batch.revision };
        if batch.len_bytes() > STAGED_BATCH_LEN_MAX {
            drop(current);
            return self.commit_directly(batch, revision);
        }
        let changes = Overlay::expand(&batch.changes, &current)?;
        drop(current);
        if changes.len() > STAGED_BATCH_RECORDS_MAX {
            return self.commit_directly(batch, revision);
        }

        let mut staging = self.staging();
        self.refuse_after_failure(&staging)?;
        if let Some(since_flush) = &mut staging.since_flush {
            for (key, staged) in &changes {
                since_flush.stage(Arc::clone(key), staged.clone());
            }
        }
        for (key, staged) in changes {
            staging.overlay.stage(key, staged);
        }
        staging.len_bytes += batch.len_bytes();
        staging.batch += 1;
        if batch.is_maintenance() {
            staging.batch_maintenance = staging.batch;
        }
        staging.revision = revision;
        staging.hold.get_or_insert(hold);
        let is_full = staging.len_bytes > STAGED_LEN_MAX;
        drop(staging);
        drop(committing);
        if !batch.is_maintenance() {
            self.committed.notify_all();
        }
        self.flusher.wake(self);
        if is_full {
            self.flush()?;
        }
        Ok(Outcome::Committed(revision))
    }

    /// Writes a big batch to the engine, durably, after what was staged before it. Nothing can be
    /// staged meanwhile, so no older entry hides what it writes.
    fn commit_directly(&self, batch: &Batch, revision: Revision) -> Result<Outcome> {
        self.flush()?;
        if let Err(failed) = self.engine.write_changes(&batch.changes) {
            // Before the engine commits, nothing is lost but this batch, and its caller knows.
            if failed.in_commit {
                self.fail(&mut self.staging(), &failed.error);
            }
            return Err(failed.error);
        }
        let mut staging = self.staging();
        staging.revision = revision;
        staging.revision_flushed = revision;
        drop(staging);
        if !batch.is_maintenance() {
            self.committed.notify_all();
        }
        Ok(Outcome::Committed(revision))
    }

    /// Returns when everything up to `revision` is in the engine.
    pub fn sync(&self, revision: Revision) -> Result<()> {
        self.flush_until(|staging| {
            staging.revision_flushed >= revision
                && staging.batch_maintenance <= staging.batch_flushed
        })
    }

    /// Returns when everything that is staged now is in the engine.
    pub fn flush(&self) -> Result<()> {
        let batch = self.staging().batch;
        self.flush_until(|staging| staging.batch_flushed >= batch)
    }

    fn flush_until(&self, is_done: impl Fn(&Staging) -> bool) -> Result<()> {
        let mut staging = self.staging();
        loop {
            if is_done(&staging) {
                return Ok(());
            }
            if let Some(failure) = &staging.failure {
                return Err(failure.clone());
            }
            if staging.overlay.is_empty() {
                return Ok(());
            }
            if staging.since_flush.is_some() {
                staging = self.flushed.wait(staging).unwrap_or_else(PoisonError::into_inner);
            } else {
                drop(self.lead_flush(staging));
                staging = self.staging();
            }
        }
    }

    /// Writes the overlay as it is now, in one engine transaction, for everybody who waits.
    fn lead_flush<'a>(&'a self, mut staging: MutexGuard<'a, Staging>) -> Option<Hold> {
        let overlay = staging.overlay.clone();
        staging.since_flush = Some(Overlay::default());
        staging.len_bytes = 0;
        let (batch, revision) = (staging.batch, staging.revision);
        drop(staging);

        let written = self.engine.write_staged(&overlay);

        let mut staging = self.staging();
        let since_flush = staging.since_flush.take().unwrap_or_default();
        match written {
            Ok(()) => {
                staging.overlay = since_flush;
                staging.batch_flushed = batch;
                staging.revision_flushed = staging.revision_flushed.max(revision);
            }
            Err(failed) => self.fail(&mut staging, &failed.error),
        }
        let hold = if staging.overlay.is_empty() { staging.hold.take() } else { None };
        drop(staging);
        self.flushed.notify_all();
        // The caller drops it, and here the overlay, outside of the lock.
        hold
    }

    /// Drops what is staged and refuses writes from now on; reads stay at the last durable state.
    fn fail(&self, staging: &mut Staging, cause: &Error) {
        staging.overlay = Overlay::default();
        staging.revision = staging.revision_flushed;
        staging.failure = Some(cause.clone().at("sync"));
    }

    fn refuse_after_failure(&self, staging: &Staging) -> Result<()> {
        match &staging.failure {
            None => Ok(()),
            Some(cause) => Err(Error::closed(format!(
                "`{}` refuses writes after a failed sync; reopen the store",
                self.directory.path.display()
            ))
            .with_source(cause.clone())),
        }
    }

    /// Returns the newest revision when it is above `after` or the time is up.
    pub fn wait(self: &Arc<Self>, after: Revision, timeout: Duration) -> Result<Revision> {
        let deadline = Instant::now() + timeout;
        loop {
            let revision = self.snapshot()?.revision()?;
            let left = deadline.saturating_duration_since(Instant::now());
            if revision > after || left.is_zero() {
                return Ok(revision);
            }
            let staging = self.staging();
            if staging.revision <= after {
                drop(self.committed.wait_timeout(staging, left.min(POLL)));
            }
        }
    }

    fn turnstile(&self) -> Result<&Arc<Turnstile>> {
        self.turnstile.as_ref().ok_or_else(|| Error::read_only("the store was opened read-only"))
    }

    fn staging(&self) -> MutexGuard<'_, Staging> {
        self.staging.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.flush();
        self.flusher.stop();
    }
}

/// Keeps the other writers of this process and of others away.
pub struct StoreGuard<'s> {
    _hold: Hold,
    _serialised: MutexGuard<'s, ()>,
}

impl WriteGuard for StoreGuard<'_> {}

/// The thread that writes what nobody syncs. It does not keep the store open.
#[derive(Default)]
struct Flusher {
    start: OnceLock<()>,
    state: Mutex<FlusherState>,
    changed: Condvar,
}

#[derive(Default, PartialEq, Eq)]
enum FlusherState {
    #[default]
    Idle,
    Due,
    Stopped,
}

impl Flusher {
    fn wake(self: &Arc<Self>, store: &Arc<Store>) {
        {
            let mut state = self.state();
            if *state != FlusherState::Idle {
                return;
            }
            *state = FlusherState::Due;
        }
        self.changed.notify_one();
        self.start.get_or_init(|| {
            let (flusher, store) = (Arc::clone(self), Arc::downgrade(store));
            let thread = thread::Builder::new().name("spinney-flush".into());
            // Without the thread commits wait for a sync or for the handle's drop.
            let _ = thread.spawn(move || flusher.run(&store));
        });
    }

    fn stop(&self) {
        *self.state() = FlusherState::Stopped;
        self.changed.notify_one();
    }

    fn run(&self, store: &Weak<Store>) {
        loop {
            let idle = |state: &mut FlusherState| *state == FlusherState::Idle;
            let due = |state: &mut FlusherState| *state == FlusherState::Due;
            let state = self.changed.wait_while(self.state(), idle);
            let state = state.unwrap_or_else(PoisonError::into_inner);
            let waited = self.changed.wait_timeout_while(state, FLUSH_AFTER, due);
            let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if *state == FlusherState::Stopped {
                return;
            }
            // From here on a commit makes the next flush due.
            *state = FlusherState::Idle;
            drop(state);
            let Some(store) = store.upgrade() else { return };
            // A failure is kept in the store, and its next writer is told.
            let _ = store.flush();
        }
    }

    fn state(&self) -> MutexGuard<'_, FlusherState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
