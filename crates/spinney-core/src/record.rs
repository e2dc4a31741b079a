//! What the tree stores under an engine key: checksummed records, and the few fixed ones.
//!
//! A sealed record is `checksum u32 | content`. The checksum covers the key too, so that a record
//! under another record's key is damage like any other.

use std::borrow::Cow;

use twox_hash::XxHash3_64;

use crate::backend::{Revision, Snapshot, TreeId};
use crate::error::{Error, Result};
use crate::layout::{self, RecordKind, head_key, prefix};
use crate::varint;
use crate::visit::Container;

/// Bytes of the checksum before the content.
pub const SEAL_LEN: usize = 4;

#[inline]
fn checksum(key: &[u8], content: &[u8]) -> [u8; SEAL_LEN] {
    ((XxHash3_64::oneshot(content) ^ XxHash3_64::oneshot(key)) as u32).to_le_bytes()
}

/// Fills in the checksum of a record whose first four bytes were left free for it.
#[inline]
pub fn seal(key: &[u8], record: &mut [u8]) {
    let (head, content) = record.split_at_mut(SEAL_LEN);
    head.copy_from_slice(&checksum(key, content));
}

/// Checks a record and tells where its content starts.
///
/// # Errors
/// `Corrupted` when the checksum does not match.
#[inline]
pub fn unseal(key: &[u8], record: &[u8]) -> Result<usize> {
    match record.split_at_checked(SEAL_LEN) {
        Some((head, content)) if head == checksum(key, content) => Ok(SEAL_LEN),
        _ => Err(damaged(key, "its checksum does not match")),
    }
}

/// The error for a record that is not what was written.
#[cold]
pub fn damaged(key: &[u8], what: &str) -> Error {
    Error::corrupted(format!("{}: {what}", describe(key)))
}

/// Names a record by its key, for errors.
fn describe(key: &[u8]) -> String {
    let Some((head, rest)) = key.split_first_chunk::<{ layout::PREFIX_LEN }>() else {
        return format!("record {key:02x?}");
    };
    let tree = TreeId::from_be_bytes(*head.first_chunk().expect("13 bytes hold 4"));
    let id = u64::from_be_bytes(*head.last_chunk().expect("13 bytes hold 8"));
    let kind = match head[4] {
        0 => "head",
        1 => "page",
        2 => "count",
        3 => "chunk",
        4 => "reclaim entry",
        5 => "log entry",
        6 => "derived record",
        _ => "unknown record",
    };
    let separator: String = rest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("the {kind} {id}/{separator} of tree {tree} is damaged")
}

/// A tree's head: its revision, the next id for its containers, and its root node.
///
/// `revision u64 | checksum u32 | next id | building | root`; the checksum covers all the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The revision that last changed the tree; of the whole store in tree 0.
    pub revision: Revision,
    /// The id that the next container or chunk sequence gets.
    pub next_id: u64,
    /// In tree 0: the trees in which a big commit is being built, and the first id it uses in each.
    /// Whoever holds the write guard and finds any knows that the builder died.
    pub building: Vec<(TreeId, u64)>,
    /// The encoded root node; empty where there is none.
    pub root: Vec<u8>,
}

impl Head {
    /// Reads the head of a tree; the default where there is none.
    ///
    /// # Errors
    /// `Corrupted` when the record is damaged.
    pub fn load(snapshot: &dyn Snapshot, tree: TreeId) -> Result<Option<Head>> {
        let key = head_key(tree);
        snapshot.get(&key)?.map(|record| Head::decode(&key, &record)).transpose()
    }

    /// Reads a head record.
    ///
    /// # Errors
    /// `Corrupted` when it is damaged.
    pub fn decode(key: &[u8], record: &[u8]) -> Result<Head> {
        let root_at = Head::check(key, record)?;
        let bad = || damaged(key, "its fields do not read");
        let mut at = 12;
        let next_id = varint::read(record, &mut at).ok_or_else(bad)?;
        let mut building = Vec::new();
        for _ in 0..varint::read(record, &mut at).ok_or_else(bad)? {
            let tree = varint::read(record, &mut at).ok_or_else(bad)?;
            let first = varint::read(record, &mut at).ok_or_else(bad)?;
            building.push((TreeId::try_from(tree).map_err(|_| bad())?, first));
        }
        Ok(Head {
            revision: layout::head_revision(Some(record))?,
            next_id,
            building,
            root: record[root_at..].to_vec(),
        })
    }

    /// The root node of a tree, without copying it; `None` where there is no tree.
    #[inline]
    pub fn root<'s>(
        snapshot: &'s dyn Snapshot,
        tree: TreeId,
    ) -> Result<Option<(Cow<'s, [u8]>, usize)>> {
        let key = head_key(tree);
        match snapshot.get(&key)? {
            None => Ok(None),
            Some(record) => {
                let root_at = Head::check(&key, &record)?;
                Ok(Some((record, root_at)))
            }
        }
    }

    /// Checks a head record and tells where its root node starts.
    fn check(key: &[u8], record: &[u8]) -> Result<usize> {
        let fields = || {
            let (revision, rest) = record.split_first_chunk::<8>()?;
            let (sum, content) = rest.split_first_chunk::<4>()?;
            (Head::checksum(key, revision, content) == *sum).then_some(())?;
            let mut at = 12;
            varint::read(record, &mut at)?;
            for _ in 0..varint::read(record, &mut at)? {
                varint::read(record, &mut at)?;
                varint::read(record, &mut at)?;
            }
            Some(at)
        };
        fields().ok_or_else(|| damaged(key, "its checksum does not match"))
    }

    fn checksum(key: &[u8], revision: &[u8; 8], content: &[u8]) -> [u8; 4] {
        ((XxHash3_64::oneshot(content) ^ XxHash3_64::oneshot(key) ^ XxHash3_64::oneshot(revision))
            as u32)
            .to_le_bytes()
    }

    /// The record of this head.
    pub fn encode(&self, tree: TreeId) -> Vec<u8> {
        let mut record = Vec::with_capacity(32 + self.root.len());
        record.extend_from_slice(&self.revision.to_be_bytes());
        record.extend_from_slice(&[0; 4]);
        varint::write(self.next_id, &mut record);
        varint::write(self.building.len() as u64, &mut record);
        for &(tree, first) in &self.building {
            varint::write(u64::from(tree), &mut record);
            varint::write(first, &mut record);
        }
        record.extend_from_slice(&self.root);
        let sum = Head::checksum(&head_key(tree), &self.revision.to_be_bytes(), &record[12..]);
        record[8..12].copy_from_slice(&sum);
        record
    }
}

/// The head of a container in pages: how many members it has and, in a list, its count tree's root.
///
/// `checksum u32 | kind u8 | count | (list: next id | height u8 | root count node)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerHead {
    /// What it is.
    pub container: Container,
    /// Members in all.
    pub count: u64,
    /// In a list, the id that the next new element gets.
    pub next_id: u64,
    /// In a list, levels of count nodes below the root node.
    pub height: u8,
    /// In a list, the root count node, encoded.
    pub counts: Vec<u8>,
}

impl ContainerHead {
    /// The engine key of a container's head.
    pub fn key(tree: TreeId, id: u64) -> [u8; layout::PREFIX_LEN] {
        prefix(tree, RecordKind::Count, id)
    }

    /// Reads the head of a container in pages.
    ///
    /// # Errors
    /// `Corrupted` when it is missing or damaged.
    pub fn load(snapshot: &dyn Snapshot, tree: TreeId, id: u64) -> Result<ContainerHead> {
        let key = ContainerHead::key(tree, id);
        let record = snapshot.get(&key)?.ok_or_else(|| damaged(&key, "it is missing"))?;
        let mut at = unseal(&key, &record)?;
        let mut read = || {
            let container = match record.get(at)? {
                0 => Container::Map,
                1 => Container::List,
                _ => return None,
            };
            at += 1;
            let count = varint::read(&record, &mut at)?;
            let (mut next_id, mut height) = (0, 0);
            if container == Container::List {
                next_id = varint::read(&record, &mut at)?;
                height = *record.get(at)?;
                at += 1;
            }
            let counts = record[at..].to_vec();
            Some(ContainerHead { container, count, next_id, height, counts })
        };
        read().ok_or_else(|| damaged(&key, "its fields do not read"))
    }

    /// The sealed record.
    pub fn encode(&self, tree: TreeId, id: u64) -> Vec<u8> {
        let mut record = Vec::with_capacity(SEAL_LEN + 24 + self.counts.len());
        record.resize(SEAL_LEN, 0);
        record.push(match self.container {
            Container::Map => 0,
            Container::List => 1,
        });
        varint::write(self.count, &mut record);
        if self.container == Container::List {
            varint::write(self.next_id, &mut record);
            record.push(self.height);
            record.extend_from_slice(&self.counts);
        }
        seal(&ContainerHead::key(tree, id), &mut record);
        record
    }
}
