//! The record by which an engine knows up to where the journal is in it: the adapter's own, under a key
//! before all others.

use std::ops::Bound;

use spinney_core::backend::{Batch, Bounds, Change, is_empty_range};
use spinney_core::{Error, Result};
use twox_hash::XxHash3_64;

use crate::journal::Checkpointed;

/// The adapter's own key.
pub const CHECKPOINT_KEY: &[u8] = &[0];

/// Bytes of its record.
const CHECKPOINT_LEN: usize = 24;

/// The record: generation, checksum, and a checksum of both.
pub fn encode(checkpointed: Checkpointed) -> [u8; CHECKPOINT_LEN] {
    let mut record = [0; CHECKPOINT_LEN];
    record[..8].copy_from_slice(&checkpointed.generation.to_le_bytes());
    record[8..16].copy_from_slice(&checkpointed.checksum.to_le_bytes());
    let seal = XxHash3_64::oneshot(&record[..16]);
    record[16..].copy_from_slice(&seal.to_le_bytes());
    record
}

/// What a record says.
pub fn decode(record: &[u8]) -> Result<Checkpointed> {
    let number = |at: usize| {
        let bytes = record.get(at..at + 8)?.try_into().ok()?;
        Some(u64::from_le_bytes(bytes))
    };
    let checkpointed = number(0).zip(number(8));
    let checkpointed =
        checkpointed.map(|(generation, checksum)| Checkpointed { generation, checksum });
    checkpointed
        .filter(|checkpointed| encode(*checkpointed) == *record)
        .ok_or_else(|| Error::corrupted("the checkpoint's record is damaged; restore a backup"))
}

/// The contract's keys are longer; it would be lost among the adapter's own.
pub fn refuse(batch: &Batch) -> Result<()> {
    let is_own = |change: &Change| matches!(change, Change::Put(key, _) | Change::Delete(key) if **key == *CHECKPOINT_KEY);
    match batch.changes.iter().any(is_own) {
        true => Err(Error::invalid_input("commit: the key `00` is the backend's own")),
        false => Ok(()),
    }
}

/// The bounds without the adapter's own key and the empty one; `None` when nothing can lie between
/// them.
pub fn beyond(bounds: Bounds<'_>) -> Option<Bounds<'_>> {
    let lower = match bounds.0 {
        Bound::Included(lower) | Bound::Excluded(lower) if lower > CHECKPOINT_KEY => bounds.0,
        _ => Bound::Excluded(CHECKPOINT_KEY),
    };
    (!is_empty_range((lower, bounds.1))).then_some((lower, bounds.1))
}
