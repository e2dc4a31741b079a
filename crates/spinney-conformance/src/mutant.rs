//! A wrapper that flips bits in the values that are read through it: damage that must be noticed.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use spinney_core::Result;
use spinney_core::backend::{
    Backend, Batch, Bounds, Capabilities, Direction, Outcome, Record, Records, Revision, Snapshot,
    WriteGuard,
};

/// Which values are damaged. The same key is always damaged the same way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Plan {
    /// None.
    #[default]
    Nothing,
    /// One in `one_in` keys, at a byte and bit that follow from the seed and the key.
    Seeded {
        /// Chooses keys, bytes and bits.
        seed: u64,
        /// How rare damage is; 1 is every value.
        one_in: u64,
    },
    /// One bit of one value; nothing when the value is shorter.
    Exact {
        /// The key of the value.
        key: Box<[u8]>,
        /// The byte of the value.
        byte: usize,
        /// The bit of the byte, 0 to 7.
        bit: u8,
    },
}

impl Plan {
    /// The byte and bit of a value of `len` bytes to flip.
    fn flip(&self, key: &[u8], len: usize) -> Option<(usize, u8)> {
        match self {
            Plan::Nothing => None,
            Plan::Seeded { seed, one_in } => {
                // FNV-1a, then a seeded generator: stable over builds, which `Hasher`s are not.
                let fnv =
                    |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
                let hash = key.iter().fold(seed ^ 0xcbf2_9ce4_8422_2325, fnv);
                let mut random = fastrand::Rng::with_seed(hash);
                let is_chosen = len > 0 && random.u64(..).is_multiple_of((*one_in).max(1));
                is_chosen.then(|| (random.usize(..len), random.u8(..8)))
            }
            Plan::Exact { key: damaged, byte, bit } => {
                (**damaged == *key && *byte < len).then_some((*byte, *bit))
            }
        }
    }
}

/// A backend whose values come out damaged.
pub struct Mutant<B> {
    inner: B,
    plan: Mutex<Arc<Plan>>,
    flips: Arc<AtomicU64>,
}

impl<B: Backend> Mutant<B> {
    /// Wraps a backend; without a plan nothing is damaged.
    pub fn new(inner: B) -> Self {
        Mutant { inner, plan: Mutex::default(), flips: Arc::default() }
    }

    /// Sets the plan for snapshots from now on.
    pub fn set_plan(&self, plan: Plan) {
        *self.plan.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(plan);
    }

    /// How many values were damaged when they were read.
    pub fn flips(&self) -> u64 {
        self.flips.load(Ordering::SeqCst)
    }
}

impl<B: Backend> Backend for Mutant<B> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        let plan = Arc::clone(&self.plan.lock().unwrap_or_else(PoisonError::into_inner));
        let flips = Arc::clone(&self.flips);
        Ok(Box::new(MutantSnapshot { inner: self.inner.snapshot()?, plan, flips }))
    }

    fn write_guard(&self, conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        self.inner.write_guard(conflicts)
    }

    fn commit(&self, batch: Batch) -> Result<Outcome> {
        self.inner.commit(batch)
    }

    fn flush(&self, revision: Revision) -> Result<()> {
        self.inner.flush(revision)
    }

    fn sync(&self, revision: Revision) -> Result<()> {
        self.inner.sync(revision)
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.inner.wait(after, timeout)
    }

    fn checkpoint(&self) -> Result<()> {
        self.inner.checkpoint()
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        self.inner.stats()
    }

    fn compact(&self) -> Result<u64> {
        self.inner.compact()
    }

    fn backup(&self, target: &std::path::Path) -> Result<()> {
        self.inner.backup(target)
    }
}

struct MutantSnapshot {
    inner: Box<dyn Snapshot>,
    plan: Arc<Plan>,
    flips: Arc<AtomicU64>,
}

impl MutantSnapshot {
    fn mutated<'s>(&self, key: &[u8], value: Cow<'s, [u8]>) -> Cow<'s, [u8]> {
        let Some((byte, bit)) = self.plan.flip(key, value.len()) else { return value };
        self.flips.fetch_add(1, Ordering::SeqCst);
        let mut damaged = value.into_owned();
        damaged[byte] ^= 1 << bit;
        Cow::Owned(damaged)
    }

    fn mutated_record<'s>(&self, (key, value): Record<'s>) -> Record<'s> {
        let value = self.mutated(&key, value);
        (key, value)
    }
}

impl Snapshot for MutantSnapshot {
    fn revision(&self) -> Result<Revision> {
        self.inner.revision()
    }

    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        Ok(self.inner.get(key)?.map(|value| self.mutated(key, value)))
    }

    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>> {
        let records = self.inner.range(bounds, direction)?;
        Ok(Box::new(records.map(|record| record.map(|record| self.mutated_record(record)))))
    }

    fn floor(&self, lower: &[u8], key: &[u8]) -> Result<Option<Record<'_>>> {
        Ok(self.inner.floor(lower, key)?.map(|record| self.mutated_record(record)))
    }
}
