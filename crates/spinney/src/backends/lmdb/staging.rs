//! One open store: commits are checked, appended to the journal and visible at once; shared by all
//! handles.
//!
//! Three rules make every snapshot one consistent state:
//!
//! - the tail is a superset of what the engine lacks: entries leave it only after the engine has
//!   committed them, under the lock that snapshots take;
//! - a snapshot first reads the journal on to what is published, then pins the engine's state; if
//!   that one is beyond the tail, it reads on again;
//! - while anything is buffered this process holds the writer's lock, so nobody else appends. While no
//!   other process has the store open it keeps it until its thread looks next, within 50 ms: to take it
//!   and give it back costs a tenth of a commit.
//!
//! Locks are taken in this order: writer's lock, `committing`, `folding`, `tail`. While the journal is
//! written past the cache the tail is not locked; who would write it too waits for the landing.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use spinney_core::backend::{Batch, Change, Outcome, Revision, Snapshot, WriteGuard};
use spinney_core::overlay::{Layered, Overlay};
use spinney_core::{Error, Result};

use super::directory::Directory;
use super::engine::{Access, DATA_FILE, Engine, EngineSnapshot, Owner};
use super::readers::Reader;
use super::shared::{Joined, Shared};
use super::tail::Tail;
use super::turnstile::{Hold, Turnstile};
use crate::backends::staged::{Flusher, JOURNALED_BATCH_RECORDS_MAX, Keep, UNWRITTEN_LEN_MAX};
use crate::journal::{
    Checkpointed, Failure, Followed, Group, Journal, Landing, Position, Segments,
};
use crate::store_limits::Limits;

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
    /// Held while a checkpoint is written.
    folding: Mutex<()>,
    tail: Mutex<Tail>,
    group: Group,
    landing: Landing,
    segments: Arc<Segments>,
    /// Why the store refuses writes.
    failure: Mutex<Failure>,
    flusher: Arc<Flusher>,
    counts: Counts,
    limits: Limits,
    /// Declared last, so that the store is closed before another process takes it to be.
    pub shared: Shared,
}

/// What this process has done.
struct Counts {
    snapshots: AtomicUsize,
    checkpointed: Mutex<Instant>,
}

/// Facts for `stats`.
pub struct Stats {
    /// Bytes of the journal's files.
    pub journal_len: u64,
    /// Keys that the engine lacks.
    pub staged: usize,
    /// Since this process has folded the journal, or opened the store.
    pub checkpoint_age: Duration,
    /// Of all processes that have it open.
    pub commits: u64,
    pub syncs: u64,
    /// Snapshots that this process holds.
    pub snapshots: usize,
    /// Those of all processes.
    pub snapshots_all: usize,
    /// The oldest of them, when the engine has a newer state, and for how long it had one.
    pub oldest: Option<(Reader, Duration)>,
    /// Bytes of the engine's file that are free but for snapshots.
    pub pinned_len: u64,
}

/// Keeps the store open, and is counted.
pub struct Pin(Arc<Store>);

/// A snapshot: the tail of its moment over the engine's state of its moment.
pub type StoreSnapshot = Layered<EngineSnapshot<Pin>>;

impl Store {
    pub fn new(
        directory: Directory,
        engine: Engine,
        segments: Segments,
        access: Access,
        limits: Limits,
    ) -> Result<Arc<Store>> {
        let turnstile = match access {
            Access::ReadWrite => Some(Turnstile::open(&directory.path)?),
            Access::ReadOnly => None,
        };
        let mut tail = Tail::new(Journal::new(segments));
        let Joined { shared, is_alone } = Shared::join(&directory.path, access)?;
        if is_alone {
            if access == Access::ReadWrite {
                engine.settle()?;
            }
            tail.recover(engine.snapshot(())?.checkpoint()?)?;
            shared.set_up(tail.journal.end())?;
        }
        let store = Arc::new(Store {
            directory,
            engine,
            turnstile,
            writer: Mutex::default(),
            committing: Mutex::default(),
            folding: Mutex::default(),
            segments: Arc::clone(tail.journal.segments()),
            tail: Mutex::new(tail),
            group: Group::default(),
            landing: Landing::default(),
            failure: Mutex::default(),
            flusher: Flusher::new(limits),
            counts: Counts {
                snapshots: AtomicUsize::new(0),
                checkpointed: Mutex::new(Instant::now()),
            },
            limits,
            shared,
        });
        if is_alone {
            // What a killed process has written may not be synced.
            let revision = store.snapshot()?.revision()?;
            if !store.is_read_only() {
                store.sync(revision)?;
            }
            store.shared.advance_durable(revision);
        }
        Ok(store)
    }

    pub fn is_read_only(&self) -> bool {
        self.turnstile.is_none()
    }

    pub fn snapshot(self: &Arc<Self>) -> Result<StoreSnapshot> {
        let mut tail = self.tail();
        let engine = self.catch_up(&mut tail)?;
        let (overlay, version) = (tail.overlay().clone(), tail.version());
        drop(tail);
        Ok(overlay.over(engine).named(version))
    }

    fn catch_up(self: &Arc<Self>, tail: &mut Tail) -> Result<EngineSnapshot<Pin>> {
        self.pin(tail, || Pin::new(self))
    }

    /// Reads what others have published, and pins the state of the engine that belongs below it.
    ///
    /// Who had the writer's lock before may have died in a checkpoint that the engine has, and shows
    /// only when it is written next. Nothing may be appended to a generation that turns out to be
    /// folded then, so who takes the lock makes the engine show it first.
    fn pin<O: Owner>(&self, tail: &mut Tail, owner: impl Fn() -> O) -> Result<EngineSnapshot<O>> {
        loop {
            let followed = tail.catch_up(self.shared.published())?;
            let engine = self.engine.snapshot(owner())?;
            let takings = self.turnstile.as_ref().map_or(0, |turnstile| turnstile.takings());
            if tail.settled != takings {
                if self.engine.is_ahead_of(&engine) {
                    self.engine.settle()?;
                    continue;
                }
                tail.settled = takings;
            }
            match (tail.is_behind(&engine)?, followed) {
                (false, Followed::Reached) => return Ok(engine),
                (false, Followed::Gone) => return Err(tail.lost()),
                (true, _) => {}
            }
        }
    }

    pub fn write_guard(&self) -> Result<StoreGuard<'_>> {
        let turnstile = self.turnstile()?;
        let serialised = lock(&self.writer);
        self.refuse_after_failure()?;
        if turnstile.is_owed(self.shared.queued()) {
            Keep::write(self)?;
        }
        Ok(StoreGuard { _hold: self.hold()?, _serialised: serialised })
    }

    fn hold(&self) -> Result<Hold> {
        self.turnstile()?.hold(self.shared.queued())
    }

    pub fn commit(self: &Arc<Self>, batch: Batch) -> Result<Outcome> {
        let hold = self.hold()?;
        let committing = lock(&self.committing);
        self.refuse_after_failure()?;
        let current = self.snapshot()?;
        if !batch.applies_to(&current)? {
            return Ok(Outcome::Conflict);
        }
        let is_maintenance = batch.is_maintenance();
        let revision = if is_maintenance { current.revision()? } else { batch.revision };
        if batch.len_bytes() > self.limits.journaled_len_max_bytes {
            drop(current);
            return self.commit_directly(&batch.changes, revision, is_maintenance);
        }
        // Maintenance has no id of its own, and no two records may be the same.
        let commit_id = if batch.commit_id == 0 { fastrand::u128(..) } else { batch.commit_id };
        let changes = Overlay::expand(batch.changes, &current)?;
        let engine = current.into_base();
        if changes.len() > JOURNALED_BATCH_RECORDS_MAX {
            let changes: Vec<Change> =
                changes.into_iter().map(|(key, staged)| Change::point(key, staged)).collect();
            return self.commit_directly(&changes, revision, is_maintenance);
        }

        let mut tail = self.make_room()?;
        let is_newest = !self.engine.is_ahead_of(&engine);
        let engine_lacks = |key: &[u8]| is_newest && matches!(engine.get(key), Ok(None));
        tail.stage(revision, commit_id, changes, engine_lacks)?;
        tail.hold.get_or_insert(hold);
        let is_full = tail.unwritten_len() > UNWRITTEN_LEN_MAX;
        drop(tail);
        drop(committing);
        self.count_commit(is_maintenance);
        self.flusher.wake(self);
        if is_full {
            self.write()?;
        }
        Ok(Outcome::Committed(revision))
    }

    fn count_commit(&self, is_maintenance: bool) {
        if !is_maintenance {
            self.shared.count_commit();
            self.shared.wake_waiting();
        }
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
            self.fold_frozen()?;
        }
        let mut tail = self.landed_tail();
        if let Err(error) = tail.write(&self.shared, self.group.synced()) {
            return Err(self.fail(&mut tail, error));
        }
        tail.start()?;
        self.flusher.wake_full(self);
        Ok(tail)
    }

    /// Writes the generation that waits for it to the engine.
    pub fn fold_frozen(&self) -> Result<()> {
        let _folding = lock(&self.folding);
        let Some((upto, overlay)) = self.tail().frozen() else { return Ok(()) };
        self.engine.checkpoint(&overlay, &[], upto).map_err(|failed| failed.error)?;
        self.tail().checkpoint(upto);
        self.note_checkpoint(upto);
        Ok(())
    }

    /// Writes the engine's file, with what it lacks, to a directory.
    pub fn copy_to(self: &Arc<Self>, target: &Path) -> Result<()> {
        let mut tail = self.tail();
        drop(self.catch_up(&mut tail)?);
        let (overlay, end) = (tail.overlay().clone(), tail.journal.end());
        drop(tail);
        self.engine.copy_to(&target.join(DATA_FILE))?;
        let readers_max = self.limits.snapshots_max;
        let copy = Engine::open(target, Access::ReadWrite, readers_max)?;
        // A checkpoint may have come in between. It is newer than the overlay, or ends within it.
        if copy.snapshot(())?.checkpoint()?.generation < end.generation {
            let upto = Checkpointed::beyond(end.generation);
            copy.checkpoint(&overlay, &[], upto).map_err(|failed| failed.error)?;
        }
        Ok(())
    }

    fn note_checkpoint(&self, upto: Checkpointed) {
        let beyond = Position { generation: upto.generation + 1, offset: 0 };
        self.group.advance(beyond);
        *lock(&self.counts.checkpointed) = Instant::now();
        self.shared.note_fold(self.engine.transactions());
        if let Err(error) = self.refuse_old_snapshots() {
            log::warn!("`{}`: {error}", self.directory.path.display());
        }
    }

    /// Ends the reading of snapshots that keep more of the engine's file than may be, so that whoever
    /// holds them gives them up.
    fn refuse_old_snapshots(&self) -> Result<()> {
        let pinned = self.engine.pinned()?;
        let before = self.shared.first_readable();
        for reader in pinned.too_old(self.limits.pinned_len_max_bytes) {
            if reader.transaction >= before {
                let (process, len) = (reader.process, pinned.len_behind(reader.transaction));
                log::warn!(
                    "`{}`: process {process} holds a snapshot that keeps {len} bytes; it is not to be \
                     read any more",
                    self.directory.path.display()
                );
            }
            self.shared.refuse_before(reader.transaction + 1);
        }
        Ok(())
    }

    /// Writes a big batch to the engine, durably, together with everything before it.
    fn commit_directly(
        &self,
        changes: &[Change],
        revision: Revision,
        is_maintenance: bool,
    ) -> Result<Outcome> {
        self.fold_all(changes)?;
        self.tail().revision = revision;
        self.shared.advance_durable(revision);
        self.count_commit(is_maintenance);
        Ok(Outcome::Committed(revision))
    }

    /// Folds the whole journal into the engine.
    pub fn checkpoint(self: &Arc<Self>) -> Result<()> {
        let _hold = self.hold()?;
        let _committing = lock(&self.committing);
        self.refuse_after_failure()?;
        let mut tail = self.tail();
        self.catch_up(&mut tail)?;
        let is_empty = tail.is_empty();
        drop(tail);
        if is_empty { Ok(()) } else { self.fold_all(&[]) }
    }

    /// Folds the whole journal and some changes into the engine. The caller holds the writer's lock
    /// and keeps others from committing, so nothing is staged meanwhile.
    fn fold_all(&self, changes: &[Change]) -> Result<()> {
        let _folding = lock(&self.folding);
        let tail = self.tail();
        let overlay = tail.overlay().clone();
        let upto = Checkpointed::beyond(tail.journal.end().generation);
        drop(tail);
        if let Err(failed) = self.engine.checkpoint(&overlay, changes, upto) {
            // Before the engine commits, nothing is lost but this batch, and its caller knows.
            return Err(match failed.in_commit {
                true => self.fail(&mut self.tail(), failed.error),
                false => failed.error,
            });
        }
        let mut tail = self.landed_tail();
        tail.restart(upto);
        self.shared.publish(tail.journal.end());
        self.shared.advance_durable(tail.revision);
        let hold = tail.hold.take();
        drop(tail);
        drop(hold);
        self.note_checkpoint(upto);
        Ok(())
    }

    /// Returns when everything that is staged now would survive the end of this process.
    pub fn write(&self) -> Result<()> {
        let mut tail = self.landed_tail();
        if let Err(error) = tail.write(&self.shared, self.group.synced()) {
            return Err(self.fail(&mut tail, error));
        }
        self.release(tail);
        Ok(())
    }

    /// Unlocks the tail, and gives the writer's lock back if somebody else may want it and nothing needs
    /// it.
    fn release(&self, mut tail: MutexGuard<'_, Tail>) {
        let looks_soon = self.limits.write_after <= Limits::DEFAULT.write_after;
        let hold = if looks_soon && self.shared.is_sole() { None } else { tail.release() };
        drop(tail);
        drop(hold);
    }

    /// Gives the writer's lock back if nothing needs it.
    fn let_go(&self) {
        let hold = self.tail().release();
        drop(hold);
    }

    /// Returns when everything up to `revision` is written.
    pub fn write_until(&self, revision: Revision) -> Result<()> {
        self.refuse_lost(revision)?;
        self.write()
    }

    /// Returns when everything up to `revision` is durable.
    pub fn sync(&self, revision: Revision) -> Result<()> {
        self.refuse_lost(revision)?;
        let synced = self.group.synced();
        // Who shares the store is not to wait for the writer's lock as long as for the disk.
        let is_sole = self.shared.is_sole();
        let mut tail = if is_sole { self.tail() } else { self.landed_tail() };
        if tail.lacks(revision) {
            let added = match is_sole {
                true => tail.append(synced),
                false => tail.write(&self.shared, synced),
            };
            added.map_err(|error| self.fail(&mut tail, error))?;
        }
        let end = tail.end_of(revision);
        let covered = revision.min(tail.revision);
        self.release(tail);
        let Some(end) = end else {
            self.shared.advance_durable(covered);
            return Ok(());
        };
        self.group.advance(self.shared.synced());
        match self.group.sync(end, |synced| self.sync_behind(synced)) {
            Ok(()) => {
                self.shared.advance_synced(self.group.synced());
                self.shared.advance_durable(covered);
                Ok(())
            }
            Err(error) => Err(self.fail(&mut self.tail(), error)),
        }
    }

    /// Makes durable what is behind a position before which everything is, and what others have staged
    /// meanwhile; returns up to where.
    fn sync_behind(&self, synced: Position) -> Result<Position> {
        self.shared.count_sync();
        let mut tail = self.tail();
        tail.append(synced)?;
        // What is written past the cache is read from the disk by the other processes.
        if tail.journal.written() <= synced && self.shared.is_sole() {
            let (tail, is_written) =
                self.landing.write_through(&self.segments, &self.tail, tail)?;
            if is_written {
                self.shared.publish(tail.journal.written());
            }
            let written = tail.journal.written();
            self.release(tail);
            return Ok(written);
        }
        tail.write(&self.shared, synced)?;
        self.release(tail);
        let published = self.shared.published();
        self.segments.sync_between(synced, published)?;
        Ok(published)
    }

    /// Makes everything that is staged now durable.
    pub fn flush(&self) -> Result<()> {
        self.sync(Revision::MAX)
    }

    /// Drops what is not published and refuses writes from now on.
    fn fail(&self, tail: &mut Tail, cause: Error) -> Error {
        let lost_from = tail.first_behind(self.group.synced());
        tail.reset();
        lock(&self.failure).keep(cause, lost_from)
    }

    fn refuse_lost(&self, revision: Revision) -> Result<()> {
        lock(&self.failure).refuse_lost(revision)
    }

    fn refuse_after_failure(&self) -> Result<()> {
        lock(&self.failure).refuse_writes(&self.directory.path)
    }

    /// Returns the newest revision when it is above `after` or the time is up.
    pub fn wait(self: &Arc<Self>, after: Revision, timeout: Duration) -> Result<Revision> {
        self.shared.wait_until(timeout, || {
            let revision = self.snapshot()?.revision()?;
            Ok((revision, revision > after))
        })
    }

    /// Returns the newest durable revision when it is above `after` or the time is up.
    pub fn wait_durable(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.shared.wait_until(timeout, || {
            let revision = self.shared.durable();
            Ok((revision, revision > after))
        })
    }

    pub fn stats(&self) -> Result<Stats> {
        let (commits, syncs) = self.shared.counts();
        let pinned = self.engine.pinned()?;
        let newest = self.engine.transactions();
        let oldest = pinned.readers.first().filter(|oldest| oldest.transaction < newest);
        Ok(Stats {
            journal_len: self.segments.disk_len()?,
            staged: self.tail().overlay().len(),
            checkpoint_age: lock(&self.counts.checkpointed).elapsed(),
            commits,
            syncs,
            snapshots: self.counts.snapshots.load(Ordering::Relaxed),
            // One is that of `pinned` itself.
            snapshots_all: pinned.readers.len().saturating_sub(1),
            oldest: oldest.map(|oldest| (*oldest, self.shared.age(oldest.transaction))),
            pinned_len: pinned.len(),
        })
    }

    /// Syncs of the journal by this process.
    pub fn syncs(&self) -> u64 {
        self.group.syncs()
    }

    /// Whether a generation waits for its checkpoint.
    #[cfg(test)]
    pub fn is_folding_due(&self) -> bool {
        self.tail().frozen().is_some()
    }

    /// Whether the next commit begins a generation.
    #[cfg(test)]
    pub fn is_full(&self) -> bool {
        self.tail().journal.end().offset >= self.limits.generation_len_bytes
    }

    /// Leaves to the caller what the thread does.
    #[cfg(test)]
    pub fn keep_still(&self) {
        self.flusher.stop();
    }

    fn turnstile(&self) -> Result<&Arc<Turnstile>> {
        self.turnstile.as_ref().ok_or_else(|| Error::read_only("the store was opened read-only"))
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        lock(&self.tail)
    }

    /// The tail, with a journal that may be written.
    fn landed_tail(&self) -> MutexGuard<'_, Tail> {
        self.landing.lock(&self.tail)
    }

    /// The last process folds the journal and takes its files away.
    fn close(&mut self) -> Result<()> {
        if self.turnstile.is_none() || lock(&self.failure).is_some() {
            return Ok(());
        }
        self.flush()?;
        self.shared.leave(|| {
            let mut tail = self.tail();
            self.pin(&mut tail, || ())?;
            let is_empty = tail.is_empty();
            drop(tail);
            if !is_empty {
                self.fold_all(&[])?;
            }
            self.segments.remove()
        })
    }
}

impl Keep for Store {
    fn write(&self) -> Result<()> {
        Store::write(self)?;
        self.let_go();
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Store::flush(self)?;
        self.let_go();
        Ok(())
    }

    fn fold_full(&self) -> Result<()> {
        self.fold_frozen()
    }

    fn rest(self: &Arc<Self>) -> Result<()> {
        self.checkpoint()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.flusher.stop();
        // Nobody is left to be told; what is not folded is in the journal.
        let _ = self.close();
    }
}

impl Pin {
    fn new(store: &Arc<Store>) -> Pin {
        store.counts.snapshots.fetch_add(1, Ordering::Relaxed);
        Pin(Arc::clone(store))
    }
}

impl Owner for Pin {
    #[inline]
    fn first_readable(&self) -> u64 {
        self.0.shared.first_readable()
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        self.0.counts.snapshots.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Keeps the other writers of this process and of others away.
pub struct StoreGuard<'s> {
    _hold: Hold,
    _serialised: MutexGuard<'s, ()>,
}

impl WriteGuard for StoreGuard<'_> {}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
