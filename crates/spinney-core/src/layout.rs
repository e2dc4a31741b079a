//! How engine keys are made: `tree u32 | kind u8 | id u64 | separator`, big-endian.
//!
//! Only this module and the codec know byte layouts; see `docs/format.md`.

use crate::backend::{Revision, TreeId};
use crate::error::{Error, Result};

/// What a record is. The numbers are part of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RecordKind {
    /// A tree's revision, next id and root value.
    Head = 0,
    /// A page of a container.
    Page = 1,
    /// The count of a container and, in a list, its count tree.
    Count = 2,
    /// A piece of a long string or bytes value.
    Chunk = 3,
    /// A container or chunk sequence that waits to be reclaimed.
    Reclaim = 4,
    /// What a commit changed, and how to undo it.
    Log = 5,
    /// What is derived from a tree: entries of indexes and of constraints.
    Derived = 6,
}

impl RecordKind {
    /// The kinds, as the fifth byte of keys, of what containers and long values consist of.
    pub const CONTENT: [u8; 3] =
        [RecordKind::Page as u8, RecordKind::Count as u8, RecordKind::Chunk as u8];
}

/// Bytes before the separator: tree, kind and id.
pub const PREFIX_LEN: usize = 4 + 1 + 8;

/// The first bytes of every key of a record: tree, kind and id.
#[inline]
pub fn prefix(tree: TreeId, kind: RecordKind, id: u64) -> [u8; PREFIX_LEN] {
    let mut key = [0; PREFIX_LEN];
    key[..4].copy_from_slice(&tree.to_be_bytes());
    key[4] = kind as u8;
    key[5..].copy_from_slice(&id.to_be_bytes());
    key
}

/// The tree, the kind and the id in the key of a record.
#[inline]
pub fn split_prefix(key: &[u8]) -> Option<(TreeId, u8, u64)> {
    let head = key.first_chunk::<PREFIX_LEN>()?;
    let id = u64::from_be_bytes(*head.last_chunk()?);
    Some((TreeId::from_be_bytes(*head.first_chunk()?), head[4], id))
}

/// The key of the record that holds a tree's revision in its first eight bytes.
///
/// Tree 0 holds the store's own revision, which numbers all commits of a store that can commit to
/// several trees at once.
#[inline]
pub fn head_key(tree: TreeId) -> [u8; PREFIX_LEN] {
    prefix(tree, RecordKind::Head, 0)
}

/// The tree whose head record has this key; `None` for the key of any other record.
#[inline]
pub fn head_tree(key: &[u8]) -> Option<TreeId> {
    let tree = TreeId::from_be_bytes(*key.first_chunk::<4>()?);
    (key == head_key(tree)).then_some(tree)
}

/// The revision in a head record; 0 where there is none.
///
/// # Errors
/// `Corrupted` when the record is too short to hold one.
#[inline]
pub fn head_revision(record: Option<&[u8]>) -> Result<Revision> {
    match record {
        None => Ok(0),
        Some(bytes) => match bytes.first_chunk::<8>() {
            Some(revision) => Ok(Revision::from_be_bytes(*revision)),
            None => Err(Error::corrupted("a head record is shorter than a revision")),
        },
    }
}
