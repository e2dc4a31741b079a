//! The limits of a store: how much waits where, and for how long.

use std::ops::RangeInclusive;
use std::time::Duration;

use spinney_core::{Error, Result};

/// How much of a store in LMDB waits in its journal, how long, and what its readers may keep.
///
/// All handles of a store in a process share those of the first one. Each process has its own; they
/// need not be the same.
///
/// ```
/// use spinney::{Limits, OpenOptions};
/// let limits = Limits { generation_len_bytes: 32 << 20, ..Limits::DEFAULT };
/// let store = OpenOptions::new().limits(limits).open("memory:")?;
/// # Ok::<(), spinney::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the journal after which it is folded in the background, while commits go on in a
    /// second file: 64 KiB to 1 GiB (default: 8 MiB). The journal takes up to twice as much, opening
    /// after a crash reads that, and memory holds what it changes.
    pub generation_len_bytes: u64,
    /// Bytes of keys and values of a commit up to which it is journaled; a bigger one is folded at
    /// once, with two syncs: up to 64 MiB (default: 1 MiB).
    pub journaled_len_max_bytes: usize,
    /// How long a commit that nobody waits for stays in memory: 1 ms to 1 h (default: 50 ms).
    pub write_after: Duration,
    /// How often the journal is synced while commits come for which nobody syncs: 1 ms to 1 h
    /// (default: 1 s).
    pub sync_every: Duration,
    /// After how long without a commit the journal is folded: 1 ms to 1 h (default: 1 s).
    pub fold_after: Duration,
    /// Snapshots that all processes together may hold at once: 16 to 65 536 (default: 1 024). It
    /// counts when the store's table of readers is made, and to make it larger when no process has
    /// the store open.
    pub snapshots_max: u32,
    /// Bytes of the file that old snapshots, of any process, may keep from being used again: from
    /// 1 MiB on (default: 16 GiB). Beyond it the oldest ones answer reads with `LimitExceeded`.
    pub pinned_len_max_bytes: u64,
}

const DURATIONS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(3_600);

impl Limits {
    /// What fits most stores.
    pub const DEFAULT: Limits = Limits {
        generation_len_bytes: 8 << 20,
        journaled_len_max_bytes: 1 << 20,
        write_after: Duration::from_millis(50),
        sync_every: Duration::from_secs(1),
        fold_after: Duration::from_secs(1),
        snapshots_max: 1_024,
        pinned_len_max_bytes: 16 << 30,
    };

    /// Refuses what makes no sense.
    ///
    /// # Errors
    /// `InvalidInput`, naming the limit and its range.
    pub fn check(&self) -> Result<()> {
        within("generation_len_bytes", self.generation_len_bytes, 64 << 10..=1 << 30)?;
        within("journaled_len_max_bytes", self.journaled_len_max_bytes, 0..=64 << 20)?;
        within("write_after", self.write_after, DURATIONS)?;
        within("sync_every", self.sync_every, DURATIONS)?;
        within("fold_after", self.fold_after, DURATIONS)?;
        within("snapshots_max", self.snapshots_max, 16..=65_536)?;
        within("pinned_len_max_bytes", self.pinned_len_max_bytes, 1 << 20..=u64::MAX)
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits::DEFAULT
    }
}

fn within<T: PartialOrd + std::fmt::Debug>(
    name: &str,
    value: T,
    range: RangeInclusive<T>,
) -> Result<()> {
    if range.contains(&value) {
        return Ok(());
    }
    let (least, most) = range.into_inner();
    Err(Error::invalid_input(format!(
        "limits: `{name}` is {value:?}; it must be {least:?} to {most:?}"
    )))
}
