//! The contract between the tree and what stores it: ordered byte keys, snapshots, atomic batches.
//!
//! A backend orders and stores bytes; it must not know paths, pages or values. What it may know of
//! a key is its first four bytes, the tree, and the key that holds a tree's revision
//! ([`crate::layout::head_key`]).

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::layout::{head_key, head_revision, head_tree};

/// The bytes of an engine key, as batches and overlays hold it.
pub use crate::short_bytes::ShortBytes as RecordKey;

/// Numbers the committed states of a store: 0 is the empty store.
pub type Revision = u64;

/// Numbers the trees of a store; 0 is the store's own tree, the catalogue.
pub type TreeId = u32;

/// How often [`Backend::wait`] looks where nothing tells of commits.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What a backend can and cannot do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Committed data is still there after the process ends.
    pub persistent: bool,
    /// Several processes may open the store at once.
    pub multi_process: bool,
    /// Snapshots are pinned by the engine and need no lease.
    pub versions: bool,
    /// One batch may touch several trees, and one sequence numbers all revisions.
    pub multi_tree_commit: bool,
    /// Bytes of a page that fit the engine best.
    pub page_size: usize,
    /// Bytes of the longest key.
    pub key_len_max: usize,
    /// Bytes of keys and values that one batch may hold; larger changes are built in steps.
    pub commit_len_max: usize,
    /// [`Backend::wait`] is told of commits instead of polling for them.
    pub push_wait: bool,
    /// What outlives the process are the diffs of batches and not their records, so a batch's diff
    /// holds what it adds and no reference to records (see [`crate::diff::Diff::contained`]).
    pub keeps_diffs: bool,
}

impl Capabilities {
    /// Those of a store in memory with the sizes of LMDB, that nobody is told about.
    pub const IN_MEMORY: Capabilities = Capabilities {
        persistent: false,
        multi_process: false,
        versions: true,
        multi_tree_commit: true,
        page_size: 4_080,
        key_len_max: 511,
        commit_len_max: 1 << 30,
        push_wait: false,
        keeps_diffs: false,
    };
}

/// Which way a range is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Ascending keys.
    Forward,
    /// Descending keys.
    Backward,
}

/// A key and its value, borrowed from the snapshot where the engine can.
pub type Record<'s> = (Cow<'s, [u8]>, Cow<'s, [u8]>);

/// The records of a range, in order.
pub type Records<'s> = Box<dyn Iterator<Item = Result<Record<'s>>> + 's>;

/// Lower and upper bound of a range of keys.
pub type Bounds<'k> = (Bound<&'k [u8]>, Bound<&'k [u8]>);

/// Whether no key can lie between the bounds; engines differ in what they make of such a range.
pub fn is_empty_range(bounds: Bounds<'_>) -> bool {
    match bounds {
        (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
        (Bound::Included(lower), Bound::Excluded(upper))
        | (Bound::Excluded(lower), Bound::Included(upper))
        | (Bound::Excluded(lower), Bound::Excluded(upper)) => lower >= upper,
        (Bound::Unbounded, Bound::Excluded(upper)) => upper.is_empty(),
        _ => false,
    }
}

/// One consistent state of the store.
pub trait Snapshot: Send {
    /// The revision that this state is.
    ///
    /// # Errors
    /// `Io` when the engine cannot be read, `Corrupted` when the head record is damaged.
    fn revision(&self) -> Result<Revision> {
        head_revision(self.get(&head_key(0))?.as_deref())
    }

    /// Names the state, as long as the backend is open: two snapshots with the same name are of the
    /// same state. `None` where that is not known without reading.
    fn version(&self) -> Option<u64> {
        None
    }

    /// The value of a key. The default is the [range](Snapshot::range) of that key.
    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        let bounds = (Bound::Included(key), Bound::Included(key));
        let record = self.range(bounds, Direction::Forward)?.next().transpose()?;
        Ok(record.map(|(_, value)| value))
    }

    /// The records between two keys. An empty range is empty, never an error.
    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>>;

    /// The last record whose key is at least `lower` and at most `key`.
    ///
    /// Engines with a cursor answer faster than by a range; the default is that range.
    fn floor(&self, lower: &[u8], key: &[u8]) -> Result<Option<Record<'_>>> {
        let bounds = (Bound::Included(lower), Bound::Included(key));
        self.range(bounds, Direction::Backward)?.next().transpose()
    }
}

/// One change of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets the value of a key.
    Put(RecordKey, Arc<[u8]>),
    /// Removes a key; absent is no error.
    Delete(RecordKey),
    /// Removes all keys from the first, included, to the second, excluded.
    DeleteRange(Box<[u8]>, Box<[u8]>),
}

impl Change {
    /// Sets the value of a key, or with `None` removes the key.
    #[inline]
    pub fn point(key: RecordKey, value: Option<Arc<[u8]>>) -> Change {
        match value {
            Some(value) => Change::Put(key, value),
            None => Change::Delete(key),
        }
    }
}

/// Changes that apply together or not at all.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    /// The trees that were read or written, with the revision of the state they were read at.
    /// The batch applies only if none of them has changed since.
    pub bases: Vec<(TreeId, Revision)>,
    /// The revision that the batch makes; equal to the base's for maintenance, which never conflicts.
    pub revision: Revision,
    /// Names the commit, so that one whose answer was lost can be recognised.
    pub commit_id: u128,
    /// Puts, deletes and range deletes. Later ones win.
    pub changes: Vec<Change>,
    /// The encoded diff, opaque to adapters; empty for maintenance. With
    /// [`Capabilities::keeps_diffs`] it can be applied without the records.
    pub diff: Arc<[u8]>,
}

impl Batch {
    /// Bytes of keys and values, as [`Capabilities::commit_len_max`] counts them.
    pub fn len_bytes(&self) -> usize {
        let change_len = |change: &Change| match change {
            Change::Put(key, value) => key.len() + value.len(),
            Change::Delete(key) => key.len(),
            Change::DeleteRange(from, to) => from.len() + to.len(),
        };
        self.changes.iter().map(change_len).sum()
    }

    /// Whether the batch changes how the state is stored and not what it is.
    ///
    /// Such a batch read nothing that a user could have changed since, so it has no bases.
    pub fn is_maintenance(&self) -> bool {
        self.bases.is_empty()
    }

    /// Refuses what no backend of these capabilities may be given.
    ///
    /// # Errors
    /// `LimitExceeded` when a key or the batch is too long, `InvalidInput` when a key is empty.
    pub fn check_limits(&self, capabilities: &Capabilities) -> Result<()> {
        for change in &self.changes {
            let (Change::Put(key, _) | Change::Delete(key)) = change else { continue };
            if key.is_empty() {
                return Err(Error::invalid_input("commit: a key is empty; it needs a byte"));
            }
            if key.len() > capabilities.key_len_max {
                let (len, max) = (key.len(), capabilities.key_len_max);
                return Err(Error::limit_exceeded(format!(
                    "commit: a key of {len} bytes is longer than {max}"
                )));
            }
        }
        let (len, max) = (self.len_bytes(), capabilities.commit_len_max);
        if len > max {
            return Err(Error::limit_exceeded(format!(
                "commit: {len} bytes in one batch are more than {max}; build it in steps"
            )));
        }
        Ok(())
    }

    /// Whether the batch may follow `current`: no base has changed, and it makes the next revision.
    ///
    /// Every adapter of an engine that it can read answers `Conflict` when this is false.
    ///
    /// # Errors
    /// Those of reading the heads; `InvalidInput` when maintenance would change a revision.
    pub fn applies_to(&self, current: &dyn Snapshot) -> Result<bool> {
        let head = |tree| head_revision(current.get(&head_key(tree))?.as_deref());
        if self.is_maintenance() {
            return match self.moves_a_head(head)? {
                false => Ok(true),
                true => Err(Error::invalid_input("commit: maintenance must not change a revision")),
            };
        }
        if self.revision != current.revision()? + 1 {
            return Ok(false);
        }
        for &(tree, base) in &self.bases {
            // No tree is newer than the store, whose revision has just been seen.
            let is_known = base + 1 == self.revision;
            if !is_known && head(tree)? > base {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn moves_a_head(&self, head: impl Fn(TreeId) -> Result<Revision>) -> Result<bool> {
        for change in &self.changes {
            let Change::Put(key, value) = change else { continue };
            let Some(tree) = head_tree(key) else { continue };
            if head_revision(Some(value))? != head(tree)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is ordered and visible to new snapshots; [`Backend::sync`] makes it durable.
    Committed(Revision),
    /// A base has changed: read again, compute again, commit again.
    Conflict,
}

/// Keeps other writers away, as far as the backend can, until it is dropped.
pub trait WriteGuard {}

impl WriteGuard for () {}
impl<T> WriteGuard for std::sync::MutexGuard<'_, T> {}

/// An engine, or a wrapper of one, that stores a tree's keys.
///
/// The contract is synchronous and dyn-compatible. Whatever the engine, the same calls must give
/// the same answers as the memory backend, except where [`Capabilities`] says otherwise.
pub trait Backend: Send + Sync {
    /// What it can do; never changes while it is open.
    fn capabilities(&self) -> &Capabilities;

    /// The newest committed state.
    fn snapshot(&self) -> Result<Box<dyn Snapshot>>;

    /// Serialises writers from snapshot to commit where that is cheap: one machine's at once, a
    /// network's only after some `conflicts` of this write.
    ///
    /// # Errors
    /// `ReadOnly` when the store cannot be written, `Closed` after a failed sync.
    fn write_guard(&self, conflicts: u32) -> Result<Box<dyn WriteGuard + '_>>;

    /// Applies a batch, atomically or not at all.
    ///
    /// # Errors
    /// On any error the batch has not been applied and never will be, or the store answers
    /// `Closed` from then on until it is opened again.
    fn commit(&self, batch: Batch) -> Result<Outcome>;

    /// Whether the state that this thread's write looks at is still the newest. Only a backend whose
    /// snapshots under the write guard may be older asks; the others leave the default.
    ///
    /// # Errors
    /// Those of the engine.
    fn is_newest(&self) -> Result<bool> {
        Ok(true)
    }

    /// Refuses what [`Backend::sync`] could not promise, before anything is committed.
    ///
    /// # Errors
    /// `Unsupported`, with what stands against it and what to do.
    fn check_sync(&self) -> Result<()> {
        Ok(())
    }

    /// Returns when `revision`, and all before it, survives the end of this process. A backend
    /// that has nothing between this and [`Backend::sync`] leaves the default, which syncs.
    ///
    /// # Errors
    /// As [`Backend::sync`].
    fn flush(&self, revision: Revision) -> Result<()> {
        self.sync(revision)
    }

    /// Returns when `revision`, and all before it, survives what the backend promises to survive. The
    /// default is for one whose commits survive it at once, or that promises nothing.
    ///
    /// # Errors
    /// After a failed sync the backend refuses writes with `Closed` until it is opened again.
    fn sync(&self, revision: Revision) -> Result<()> {
        let _ = revision;
        Ok(())
    }

    /// Returns the newest revision as soon as it is above `after`, or when the time is up. The default looks
    /// a hundred times a second.
    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        let began = Instant::now();
        loop {
            let newest = self.snapshot()?.revision()?;
            let left = timeout.saturating_sub(began.elapsed());
            if newest > after || left.is_zero() {
                return Ok(newest);
            }
            thread::sleep(left.min(LOOK_EVERY));
        }
    }

    /// As [`Backend::wait`], for the newest revision that survives what [`Backend::sync`] promises,
    /// by whomever it was synced. A backend that has nothing between the two leaves the default.
    fn wait_durable(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.wait(after, timeout)
    }

    /// Names the sequence of commits that revisions number, for as long as it goes on; `None` where it
    /// ends with the handle.
    fn store_id(&self) -> Option<String> {
        None
    }

    /// Bytes that the store takes; `None` where only reading everything would tell.
    ///
    /// # Errors
    /// Those of the engine.
    fn len_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Facts for `stats`, as pairs of name and value.
    fn stats(&self) -> Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    /// Folds what a journal holds into the store behind it, where there is one.
    ///
    /// # Errors
    /// `Io`, `Closed` after a failed sync, `ReadOnly`.
    fn checkpoint(&self) -> Result<()> {
        Ok(())
    }

    /// Gives space back to the operating system where the engine can; returns the bytes given back.
    fn compact(&self) -> Result<u64> {
        Ok(0)
    }

    /// Writes a consistent copy of the live store to `target`, which must not exist.
    ///
    /// # Errors
    /// `Unsupported` where the backend has nothing to copy.
    fn backup(&self, target: &std::path::Path) -> Result<()> {
        let _ = target;
        Err(Error::unsupported(
            "this backend has no backup; `spinney copy-store` makes a store of another kind from it, `spinney export` a file",
        ))
    }
}

impl<S: Snapshot + ?Sized> Snapshot for Box<S> {
    fn revision(&self) -> Result<Revision> {
        (**self).revision()
    }

    #[inline]
    fn version(&self) -> Option<u64> {
        (**self).version()
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        (**self).get(key)
    }

    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>> {
        (**self).range(bounds, direction)
    }

    #[inline]
    fn floor(&self, lower: &[u8], key: &[u8]) -> Result<Option<Record<'_>>> {
        (**self).floor(lower, key)
    }
}
macro_rules! forward_backend {
    ($($pointer:ident),*) => {$(
        impl<B: Backend + ?Sized> Backend for $pointer<B> {
            fn capabilities(&self) -> &Capabilities {
                (**self).capabilities()
            }

            fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
                (**self).snapshot()
            }

            fn write_guard(&self, conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
                (**self).write_guard(conflicts)
            }

            fn commit(&self, batch: Batch) -> Result<Outcome> {
                (**self).commit(batch)
            }

            fn is_newest(&self) -> Result<bool> {
                (**self).is_newest()
            }

            fn check_sync(&self) -> Result<()> {
                (**self).check_sync()
            }

            fn flush(&self, revision: Revision) -> Result<()> {
                (**self).flush(revision)
            }

            fn sync(&self, revision: Revision) -> Result<()> {
                (**self).sync(revision)
            }

            fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
                (**self).wait(after, timeout)
            }

            fn wait_durable(&self, after: Revision, timeout: Duration) -> Result<Revision> {
                (**self).wait_durable(after, timeout)
            }

            fn store_id(&self) -> Option<String> {
                (**self).store_id()
            }

            fn len_bytes(&self) -> Result<Option<u64>> {
                (**self).len_bytes()
            }

            fn stats(&self) -> Result<Vec<(String, String)>> {
                (**self).stats()
            }

            fn checkpoint(&self) -> Result<()> {
                (**self).checkpoint()
            }

            fn compact(&self) -> Result<u64> {
                (**self).compact()
            }

            fn backup(&self, target: &std::path::Path) -> Result<()> {
                (**self).backup(target)
            }
        }
    )*};
}

forward_backend!(Box, Arc);
