//! One open store: commits are checked, appended to the journal and visible at once; shared by all
//! handles.
//!
//! The tail is a superset of what the engine lacks: entries leave it only after the engine has them,
//! under the lock that snapshots take. Locks are taken in this order: `committing`, `folding`, `tail`.

use std::borrow::Cow;
use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spinney_core::backend::{Batch, Direction, Outcome, Revision, Snapshot};
use spinney_core::overlay::{Layered, Overlay};
use spinney_core::{Error, Result};

use super::directory::Directory;
use super::engine::{Engine, EngineSnapshot, FOLDER, WriteError};
use crate::backends::staged::{
    Flusher, JOURNALED_BATCH_RECORDS_MAX, Keep, Tail, UNWRITTEN_LEN_MAX,
};
use crate::journal::{Checkpointed, Failure, Group, Journal, Landing, Position, Segments};
use crate::store_limits::Limits;

/// One open store, shared by its handles.
pub struct Store {
    engine: Engine,
    /// Held by a write guard.
    writer: Mutex<()>,
    /// Held from the check of a batch until it is staged.
    committing: Mutex<()>,
    /// Held while the engine is written.
    folding: Mutex<()>,
    tail: Mutex<Tail>,
    /// Notified when the newest revision is another.
    committed: Condvar,
    /// The newest durable revision.
    durable: Mutex<Revision>,
    durably: Condvar,
    group: Group,
    landing: Landing,
    segments: Arc<Segments>,
    /// Why the store refuses writes.
    failure: Mutex<Failure>,
    flusher: Arc<Flusher>,
    limits: Limits,
    commits: AtomicU64,
    /// Declared last, so that the store is closed before another process may open it.
    pub directory: Directory,
}

/// The tail of a moment over the engine's state of that moment.
///
/// It keeps the store open: the engine's files stay locked until the last one goes, so whoever opens the
/// store meanwhile must find this one.
pub type StoreSnapshot = Layered<EngineSnapshot<Arc<Store>>>;

impl Store {
    pub fn open(directory: Directory, segments: Segments, limits: Limits) -> Result<Arc<Store>> {
        let engine = Engine::open(&directory.path.join(FOLDER))?;
        let mut tail = Tail::new(Journal::new(segments));
        let state = engine.snapshot(());
        tail.recover(state.checkpoint()?)?;
        let revision = tail.overlay().clone().over(state).revision()?;
        tail.revision = revision;
        let store = Arc::new(Store {
            engine,
            writer: Mutex::default(),
            committing: Mutex::default(),
            folding: Mutex::default(),
            segments: Arc::clone(tail.journal.segments()),
            tail: Mutex::new(tail),
            committed: Condvar::new(),
            durable: Mutex::new(0),
            durably: Condvar::new(),
            group: Group::default(),
            landing: Landing::default(),
            failure: Mutex::default(),
            flusher: Flusher::new(limits),
            limits,
            commits: AtomicU64::new(0),
            directory,
        });
        // What a killed process has written may not be synced.
        store.sync(revision)?;
        Ok(store)
    }

    pub fn snapshot(self: &Arc<Self>) -> StoreSnapshot {
        let tail = self.tail();
        let engine = self.engine.snapshot(Arc::clone(self));
        tail.overlay().clone().over(engine).named(tail.version())
    }

    pub fn write_guard(&self) -> Result<MutexGuard<'_, ()>> {
        let guard = lock(&self.writer);
        self.refuse_after_failure()?;
        Ok(guard)
    }

    pub fn commit(self: &Arc<Self>, batch: Batch) -> Result<Outcome> {
        let committing = lock(&self.committing);
        self.refuse_after_failure()?;
        let current = self.snapshot();
        if !batch.applies_to(&current)? {
            return Ok(Outcome::Conflict);
        }
        let is_maintenance = batch.is_maintenance();
        let revision = if is_maintenance { current.revision()? } else { batch.revision };
        // Maintenance has no id of its own, and no two records may be the same.
        let commit_id = if batch.commit_id == 0 { fastrand::u128(..) } else { batch.commit_id };
        let is_big = batch.len_bytes() > self.limits.journaled_len_max_bytes;
        let changes = Overlay::expand(batch.changes, &current)?;
        if is_big || changes.len() > JOURNALED_BATCH_RECORDS_MAX {
            let mut overlay = current.overlay().clone();
            for (key, staged) in changes {
                overlay.stage(key, staged);
            }
            self.fold_all(overlay, revision)?;
        } else {
            let state = current.into_base();
            let mut tail = self.make_room()?;
            let is_newest = self.engine.folds() == state.folds;
            let engine_lacks = |key: &[u8]| is_newest && matches!(state.get(key), Ok(None));
            tail.stage(revision, commit_id, changes, engine_lacks)?;
            let is_full = tail.unwritten_len() > UNWRITTEN_LEN_MAX;
            drop(tail);
            self.flusher.wake(self);
            if is_full {
                self.write_until(revision)?;
            }
        }
        drop(committing);
        if !is_maintenance {
            self.commits.fetch_add(1, Ordering::Relaxed);
            self.committed.notify_all();
        }
        Ok(Outcome::Committed(revision))
    }

    /// Begins the next generation when the present one is full; folds the one before it first, if
    /// nobody has.
    fn make_room(self: &Arc<Self>) -> Result<MutexGuard<'_, Tail>> {
        let tail = self.tail();
        if tail.journal.end().offset < self.limits.generation_len_bytes {
            return Ok(tail);
        }
        let is_folding_due = tail.frozen().is_some();
        drop(tail);
        if is_folding_due {
            self.fold_full()?;
        }
        let mut tail = self.landed_tail();
        self.write_tail(&mut tail)?;
        tail.start()?;
        self.flusher.wake_full(self);
        Ok(tail)
    }

    /// Folds everything that is staged.
    pub fn checkpoint(&self) -> Result<()> {
        let _committing = lock(&self.committing);
        self.refuse_after_failure()?;
        let (revision, overlay, is_empty) = {
            let tail = self.tail();
            (tail.revision, tail.overlay().clone(), tail.is_empty())
        };
        if is_empty { Ok(()) } else { self.fold_all(overlay, revision) }
    }

    /// Folds a state that is the newest, or the next one. The caller keeps others from committing.
    fn fold_all(&self, overlay: Overlay, revision: Revision) -> Result<()> {
        let _folding = lock(&self.folding);
        let upto = Checkpointed::beyond(self.tail().journal.end().generation);
        // What is staged may be older than what the engine has from here on, so nobody sees both.
        let mut tail = self.fold(&overlay, upto, || self.landed_tail())?;
        tail.restart(upto);
        tail.revision = revision;
        drop(tail);
        self.note_fold(upto);
        self.advance_durable(revision);
        Ok(())
    }

    fn fold<T>(
        &self,
        overlay: &Overlay,
        upto: Checkpointed,
        before: impl FnOnce() -> T,
    ) -> Result<T> {
        let changes = overlay.iter().map(|(key, staged)| {
            let value = staged.as_deref().map(Cow::Borrowed);
            Ok((Cow::Borrowed(&**key), value))
        });
        self.engine.fold(changes, upto, before).map_err(|WriteError { error, in_commit }| {
            // Before the engine commits, nothing is lost but what the caller knows of.
            if in_commit { self.fail(&self.tail(), error) } else { error }
        })
    }

    fn note_fold(&self, upto: Checkpointed) {
        self.group.advance(Position { generation: upto.generation + 1, offset: 0 });
    }

    fn write_tail(&self, tail: &mut Tail) -> Result<()> {
        tail.write(self.group.synced()).map_err(|error| self.fail(tail, error))
    }

    /// Returns when everything up to a revision is written.
    pub fn write_until(&self, revision: Revision) -> Result<()> {
        lock(&self.failure).refuse_lost(revision)?;
        self.write_tail(&mut self.landed_tail())
    }

    /// Returns when everything up to a revision is durable.
    pub fn sync(&self, revision: Revision) -> Result<()> {
        lock(&self.failure).refuse_lost(revision)?;
        let mut tail = self.tail();
        if tail.lacks(revision) {
            tail.append(self.group.synced()).map_err(|error| self.fail(&tail, error))?;
        }
        let end = tail.end_of(revision);
        let covered = revision.min(tail.revision);
        drop(tail);
        if let Some(end) = end {
            let synced = self.group.sync(end, |synced| self.sync_behind(synced));
            synced.map_err(|error| self.fail(&self.tail(), error))?;
        }
        self.advance_durable(covered);
        Ok(())
    }

    /// Makes durable what is behind a position before which everything is, and what others have staged
    /// meanwhile; returns up to where.
    fn sync_behind(&self, synced: Position) -> Result<Position> {
        let mut tail = self.tail();
        tail.append(synced)?;
        self.landing.sync_behind(&self.segments, &self.tail, tail, synced)
    }

    fn advance_durable(&self, revision: Revision) {
        let mut durable = lock(&self.durable);
        if *durable < revision {
            *durable = revision;
            self.durably.notify_all();
        }
    }

    /// Refuses writes from now on.
    fn fail(&self, tail: &Tail, cause: Error) -> Error {
        lock(&self.failure).keep(cause, tail.first_behind(self.group.synced()))
    }

    fn refuse_after_failure(&self) -> Result<()> {
        lock(&self.failure).refuse_writes(&self.directory.path)
    }

    /// Returns the newest revision when it is above `after` or the time is up.
    pub fn wait(&self, after: Revision, timeout: Duration) -> Revision {
        let unchanged = |tail: &mut Tail| tail.revision <= after;
        let waited = self.committed.wait_timeout_while(self.tail(), timeout, unchanged);
        waited.unwrap_or_else(PoisonError::into_inner).0.revision
    }

    /// Returns the newest durable revision when it is above `after` or the time is up.
    pub fn wait_durable(&self, after: Revision, timeout: Duration) -> Revision {
        let unchanged = |durable: &mut Revision| *durable <= after;
        let waited = self.durably.wait_timeout_while(lock(&self.durable), timeout, unchanged);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Bytes of the tables and of the journal.
    pub fn disk_len(&self) -> Result<u64> {
        Ok(self.engine.disk_len() + self.segments.disk_len()?)
    }

    pub fn compact(&self) -> Result<u64> {
        self.refuse_after_failure()?;
        self.engine.compact()
    }

    /// Fills a new engine's folder with the newest state.
    pub fn copy_to(self: &Arc<Self>, folder: &Path) -> Result<()> {
        Engine::create(folder)?;
        let copy = Engine::open(folder)?;
        let state = self.snapshot();
        let all = (Bound::Unbounded, Bound::Unbounded);
        let records = state.range(all, Direction::Forward)?;
        let records = records.map(|record| record.map(|(key, value)| (key, Some(value))));
        let copied = copy.fold(records, Checkpointed::default(), || ());
        copied.map_err(|failed| failed.error)
    }

    pub fn stats(&self) -> Result<Vec<(&'static str, String)>> {
        let (commits, syncs) = (self.commits.load(Ordering::Relaxed), self.syncs());
        Ok(vec![
            ("store id", self.directory.store_id.clone()),
            ("engine bytes", self.engine.disk_len().to_string()),
            ("engine tables", self.engine.tables().to_string()),
            ("engine tables not merged", self.engine.tables_unmerged().to_string()),
            ("folds", self.engine.folds().to_string()),
            ("staged records", self.tail().overlay().len().to_string()),
            ("journal bytes", self.segments.disk_len()?.to_string()),
            ("commits", commits.to_string()),
            ("syncs", syncs.to_string()),
            ("commits per sync", format!("{:.1}", commits as f64 / syncs.max(1) as f64)),
        ])
    }

    /// Leaves to the caller what the thread does.
    #[cfg(test)]
    pub fn keep_still(&self) {
        self.flusher.stop();
    }

    /// Folds by this process.
    #[cfg(test)]
    pub fn folds(&self) -> u64 {
        self.engine.folds()
    }

    /// Folds the generation that waits for it, if one does.
    #[cfg(test)]
    pub fn fold_frozen(&self) -> Result<()> {
        self.fold_full()
    }

    /// Syncs of the journal.
    pub fn syncs(&self) -> u64 {
        self.group.syncs()
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        lock(&self.tail)
    }

    /// The tail, with a journal that may be written.
    fn landed_tail(&self) -> MutexGuard<'_, Tail> {
        self.landing.lock(&self.tail)
    }
}

impl Keep for Store {
    fn write(&self) -> Result<()> {
        self.write_until(0)
    }

    fn flush(&self) -> Result<()> {
        self.sync(Revision::MAX)
    }

    fn fold_full(&self) -> Result<()> {
        let _folding = lock(&self.folding);
        self.refuse_after_failure()?;
        let Some((upto, overlay)) = self.tail().frozen() else { return Ok(()) };
        self.fold(&overlay, upto, || ())?;
        self.tail().checkpoint(upto);
        self.note_fold(upto);
        Ok(())
    }

    /// Only syncs: a fold makes a table, and small ones are merged at the price of large ones.
    fn rest(self: &Arc<Self>) -> Result<()> {
        self.flush()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.flusher.stop();
        // Nobody is left to be told; what the engine lacks is in the journal.
        let _ = self.flush();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
