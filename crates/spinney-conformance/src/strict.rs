//! A wrapper that asserts the contract's rules on every call.

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use spinney_core::Result;
use spinney_core::backend::{
    Backend, Batch, Bounds, Capabilities, Change, Direction, Outcome, Record, Records, Revision,
    Snapshot, WriteGuard,
};
use spinney_core::layout;

/// Panics when the backend, or who calls it, breaks a rule of the contract.
pub struct Strict<B> {
    inner: B,
    /// The newest revision that was seen; it never goes back while no sync fails.
    seen: AtomicU64,
}

impl<B: Backend> Strict<B> {
    /// Wraps a backend.
    pub fn new(inner: B) -> Self {
        Strict { inner, seen: AtomicU64::new(0) }
    }

    fn forget_if_lost(&self, answer: Result<()>) -> Result<()> {
        if answer.is_err() {
            // What was staged is lost, so the next snapshot may be older.
            self.seen.store(0, Ordering::SeqCst);
        }
        answer
    }

    fn check_batch(&self, batch: &Batch) {
        if batch.is_maintenance() {
            assert!(batch.diff.is_empty(), "maintenance carries no diff");
            return;
        }
        assert!(batch.revision > 0, "revision 0 is the empty store");
        for (tree, base) in &batch.bases {
            assert!(*base < batch.revision, "tree {tree} was read at the batch's own revision");
        }
        let store_head = layout::head_key(0);
        let head = batch.changes.iter().rev().find_map(|change| match change {
            Change::Put(key, value) if **key == store_head => Some(value),
            _ => None,
        });
        let head = head.expect("a commit writes the store's head");
        assert_eq!(layout::head_revision(Some(head)).ok(), Some(batch.revision), "head record");
    }
}

impl<B: Backend> Backend for Strict<B> {
    fn capabilities(&self) -> &Capabilities {
        let capabilities = self.inner.capabilities();
        assert!(capabilities.key_len_max >= 64, "keys of 64 bytes are the least");
        assert!(capabilities.page_size >= 512, "pages of 512 bytes are the least");
        assert!(capabilities.commit_len_max > capabilities.page_size + capabilities.key_len_max);
        capabilities
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        let before = self.seen.load(Ordering::SeqCst);
        let inner = self.inner.snapshot()?;
        let revision = inner.revision()?;
        assert!(revision >= before, "a snapshot at {revision} after one at {before}");
        self.seen.fetch_max(revision, Ordering::SeqCst);
        let key_len_max = self.inner.capabilities().key_len_max;
        Ok(Box::new(StrictSnapshot { inner, revision, key_len_max }))
    }

    fn write_guard(&self, conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        self.inner.write_guard(conflicts)
    }

    fn commit(&self, batch: Batch) -> Result<Outcome> {
        self.check_batch(&batch);
        let (revision, is_maintenance) = (batch.revision, batch.is_maintenance());
        let outcome = self.inner.commit(batch)?;
        match outcome {
            Outcome::Committed(_) if is_maintenance => {}
            Outcome::Committed(committed) => {
                assert_eq!(committed, revision, "the revision that was asked for");
                self.seen.fetch_max(committed, Ordering::SeqCst);
            }
            Outcome::Conflict => assert!(!is_maintenance, "maintenance never conflicts"),
        }
        Ok(outcome)
    }

    fn flush(&self, revision: Revision) -> Result<()> {
        self.forget_if_lost(self.inner.flush(revision))
    }

    fn sync(&self, revision: Revision) -> Result<()> {
        self.forget_if_lost(self.inner.sync(revision))
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        let began = Instant::now();
        let revision = self.inner.wait(after, timeout)?;
        assert!(revision > after || began.elapsed() >= timeout, "waited less than it was told");
        Ok(revision)
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        self.inner.stats()
    }

    fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()
    }

    fn compact(&self) -> Result<u64> {
        self.inner.compact()
    }

    fn backup(&self, target: &std::path::Path) -> Result<()> {
        self.inner.backup(target)
    }
}

struct StrictSnapshot {
    inner: Box<dyn Snapshot>,
    revision: Revision,
    key_len_max: usize,
}

impl StrictSnapshot {
    fn check_key(&self, key: &[u8]) {
        assert!(!key.is_empty(), "an empty key was stored");
        assert!(key.len() <= self.key_len_max, "a key of {} bytes was stored", key.len());
    }
}

impl Snapshot for StrictSnapshot {
    fn revision(&self) -> Result<Revision> {
        let revision = self.inner.revision()?;
        assert_eq!(revision, self.revision, "a snapshot changed its revision");
        Ok(revision)
    }

    fn version(&self) -> Option<u64> {
        self.inner.version()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        self.inner.get(key)
    }

    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>> {
        let owned = (bounds.0.map(<[u8]>::to_vec), bounds.1.map(<[u8]>::to_vec));
        let mut last: Option<Vec<u8>> = None;
        let records = self.inner.range(bounds, direction)?.inspect(move |record| {
            let Ok((key, _)) = record else { return };
            self.check_key(key);
            assert!(is_within(key, &owned), "a key outside of its range");
            if let Some(last) = &last {
                let is_in_order = match direction {
                    Direction::Forward => **last < **key,
                    Direction::Backward => **last > **key,
                };
                assert!(is_in_order, "keys out of order");
            }
            last = Some(key.to_vec());
        });
        Ok(Box::new(records))
    }

    fn floor(&self, lower: &[u8], key: &[u8]) -> Result<Option<Record<'_>>> {
        let found = self.inner.floor(lower, key)?;
        let bounds = (Bound::Included(lower), Bound::Included(key));
        let expected = self.inner.range(bounds, Direction::Backward)?.next().transpose()?;
        assert_eq!(found, expected, "floor is the last record of the range");
        Ok(found)
    }
}

fn is_within(key: &[u8], (lower, upper): &(Bound<Vec<u8>>, Bound<Vec<u8>>)) -> bool {
    let is_above = match lower {
        Bound::Included(lower) => key >= lower.as_slice(),
        Bound::Excluded(lower) => key > lower.as_slice(),
        Bound::Unbounded => true,
    };
    let is_below = match upper {
        Bound::Included(upper) => key <= upper.as_slice(),
        Bound::Excluded(upper) => key < upper.as_slice(),
        Bound::Unbounded => true,
    };
    is_above && is_below
}
