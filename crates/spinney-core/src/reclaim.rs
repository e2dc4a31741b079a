//! Giving back what removed containers and long values held, in bounded steps.
//!
//! A queue entry names what is no longer referred to, and the revision that removed it: it waits until
//! that is trimmed from the log, because older states are still read by it. Each step deletes some
//! of its records and queues what they referred to, in one maintenance batch, so that a crash loses
//! nothing and users never wait for it.

use std::ops::Bound;

use smallvec::{SmallVec, smallvec};

use crate::attempts;
use crate::backend::{Backend, Change, Direction, Revision, Snapshot, TreeId};
use crate::error::Result;
use crate::history::History;
use crate::layout::{PREFIX_LEN, RecordKind, head_key, prefix};
use crate::node::{self, Node};
use crate::page::Page;
use crate::record::{Head, SEAL_LEN, damaged, seal, unseal};
use crate::varint;
use crate::view::PageRecord;
use crate::visit::Container;

/// Records that one step deletes.
pub const STEP_RECORDS_MAX: usize = 256;

/// Bytes of the engine key of a queue entry: the prefix with the revision, and the id.
const KEY_LEN: usize = PREFIX_LEN + 8;

/// What a queue entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A container in pages.
    Container(Container),
    /// The chunks of a long value.
    Chunks,
    /// Everything under the ids from the entry's to `end`, excluded, with no need to look inside.
    Ids {
        /// One above the last id.
        end: u64,
    },
}

/// An entry of the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The tree that the id belongs to.
    pub tree: TreeId,
    /// The container, the chunks, or the first of the ids.
    pub id: u64,
    /// What to give back.
    pub what: What,
    /// Ids that the container still names but that have moved elsewhere.
    pub except: Vec<u64>,
    /// The revision that removed it; 0 when no state of the store ever had it.
    pub removed: Revision,
    /// Bytes of the records that it stands for, once somebody has weighed them.
    pub weight: Option<u64>,
}

/// Stands in what an entry is about when its weight follows.
const WEIGHED: u8 = 4;

impl Item {
    /// What no state of the store ever had.
    pub fn new(tree: TreeId, id: u64, what: What) -> Item {
        Item { tree, id, what, except: Vec::new(), removed: 0, weight: None }
    }

    /// The engine key of the entry.
    pub fn key(&self) -> [u8; KEY_LEN] {
        let mut key = [0; KEY_LEN];
        let (head, id) = key.split_at_mut(PREFIX_LEN);
        head.copy_from_slice(&prefix(self.tree, RecordKind::Reclaim, self.removed));
        id.copy_from_slice(&self.id.to_be_bytes());
        key
    }

    /// The sealed record.
    pub fn encode(&self) -> Vec<u8> {
        let mut record = vec![0; SEAL_LEN];
        let tag = match self.what {
            What::Container(Container::Map) => 0,
            What::Container(Container::List) => 1,
            What::Chunks => 2,
            What::Ids { .. } => 3,
        };
        record.push(tag | self.weight.map_or(0, |_| WEIGHED));
        if let What::Ids { end } = self.what {
            varint::write(end, &mut record);
        }
        if let Some(weight) = self.weight {
            varint::write(weight, &mut record);
        }
        for &id in &self.except {
            varint::write(id, &mut record);
        }
        seal(&self.key(), &mut record);
        record
    }

    /// Reads the sealed record.
    ///
    /// # Errors
    /// `Corrupted` when it is damaged.
    pub fn decode(key: &[u8], record: &[u8]) -> Result<Item> {
        let mut at = unseal(key, record)?;
        let mut read = || {
            let (head, id) = key.split_first_chunk::<PREFIX_LEN>()?;
            let tree = TreeId::from_be_bytes(*head.first_chunk()?);
            let removed = Revision::from_be_bytes(*head.last_chunk()?);
            let id = u64::from_be_bytes(id.try_into().ok()?);
            let tag = *record.get(at)?;
            at += 1;
            let what = match tag & !WEIGHED {
                0 => What::Container(Container::Map),
                1 => What::Container(Container::List),
                2 => What::Chunks,
                3 => What::Ids { end: varint::read(record, &mut at)? },
                _ => return None,
            };
            let weight = match tag & WEIGHED {
                0 => None,
                _ => Some(varint::read(record, &mut at)?),
            };
            let mut except = Vec::new();
            while at < record.len() {
                except.push(varint::read(record, &mut at)?);
            }
            Some(Item { tree, id, what, except, removed, weight })
        };
        read().ok_or_else(|| damaged(key, "its fields do not read"))
    }

    /// The ranges of engine keys that belong to the entry.
    fn ranges(&self) -> Vec<(RecordKind, u64)> {
        match self.what {
            What::Container(_) => {
                vec![(RecordKind::Page, self.id + 1), (RecordKind::Count, self.id + 1)]
            }
            What::Chunks => vec![(RecordKind::Chunk, self.id + 1)],
            What::Ids { end } => [RecordKind::Page, RecordKind::Count, RecordKind::Chunk]
                .map(|kind| (kind, end))
                .to_vec(),
        }
    }
}

/// Whether an encoded node leads to other records, or does not read.
pub fn refers(encoded: &[u8]) -> bool {
    let mut refers = false;
    !node::is_scalar(encoded) && (references(encoded, |_| refers = true).is_none() || refers)
}

/// What an encoded node refers to: containers in pages, long values and trees, looking into inline
/// containers but not into pages. `None` for damaged bytes.
pub fn references(encoded: &[u8], mut found: impl FnMut(Reference)) -> Option<()> {
    if node::is_scalar(encoded) {
        return Some(());
    }
    let mut pending: SmallVec<[&[u8]; 8]> = smallvec![encoded];
    while let Some(encoded) = pending.pop() {
        match node::read(encoded)?.node {
            Node::Scalar(_) => {}
            Node::Long(long) => found(Reference::Chunks(long.id)),
            Node::Paged(container, id) => found(Reference::Container(container, id)),
            Node::Tree(tree) => found(Reference::Tree(tree)),
            Node::Inline(container, body) => {
                let page = Page::parse(container, body)?;
                for entry in page.entries_from(0) {
                    let (.., value) = entry?;
                    // Most members are scalars, which refer to nothing.
                    if !node::is_scalar(value) {
                        pending.push(value);
                    }
                }
            }
        }
    }
    Some(())
}

/// Something that lies outside the node that refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reference {
    /// A container in pages.
    Container(Container, u64),
    /// A long value.
    Chunks(u64),
    /// Another tree.
    Tree(TreeId),
}

impl Reference {
    /// The queue entry for what it refers to; `None` for a tree, whose root has entries of its own.
    pub fn item(self, tree: TreeId) -> Option<Item> {
        let (id, what) = match self {
            Reference::Container(container, id) => (id, What::Container(container)),
            Reference::Chunks(id) => (id, What::Chunks),
            Reference::Tree(_) => return None,
        };
        Some(Item::new(tree, id, what))
    }
}

/// Does one bounded step: deletes at most [`STEP_RECORDS_MAX`] records and queues what they
/// referred to. Returns how many records it deleted; 0 when nothing in the queue of the given trees
/// is free to go.
///
/// # Errors
/// Those of the backend; `Corrupted` when a page on the way is damaged.
pub fn step(backend: &dyn Backend, trees: &[TreeId]) -> Result<usize> {
    step_before(backend, trees, Revision::MAX)
}

/// As [`step`], of what was removed before a revision: others may remove faster than this gives back.
///
/// # Errors
/// As [`step`].
pub fn step_before(backend: &dyn Backend, trees: &[TreeId], end: Revision) -> Result<usize> {
    attempts::maintain(backend, |snapshot| {
        let first_logged = History::of(snapshot).first()?.unwrap_or(Revision::MAX);
        for &tree in trees {
            if let Some(item) = first_item(snapshot, tree, first_logged.min(end))? {
                return step_changes(snapshot, &item);
            }
            if let Some(change) = forgotten_head(snapshot, tree)? {
                return Ok((vec![change], 1));
            }
        }
        Ok((Vec::new(), 0))
    })
}

/// The first entry of a tree that was removed before `end`.
fn first_item(snapshot: &dyn Snapshot, tree: TreeId, end: Revision) -> Result<Option<Item>> {
    let (from, to) = (prefix(tree, RecordKind::Reclaim, 0), prefix(tree, RecordKind::Reclaim, end));
    let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
    match snapshot.range(bounds, Direction::Forward)?.next().transpose()? {
        Some((key, record)) => Item::decode(&key, &record).map(Some),
        None => Ok(None),
    }
}

/// The deletion of the head of a tree that is gone, once nothing of it is left.
fn forgotten_head(snapshot: &dyn Snapshot, tree: TreeId) -> Result<Option<Change>> {
    if tree == 0
        || Head::load(snapshot, tree)?.is_none_or(|head| !head.root.is_empty())
        || first_item(snapshot, tree, Revision::MAX)?.is_some()
    {
        return Ok(None);
    }
    let building = Head::load(snapshot, 0)?.unwrap_or_default().building;
    let built = building.iter().any(|&(other, _)| other == tree);
    Ok((!built).then(|| Change::Delete((&head_key(tree)[..]).into())))
}

fn step_changes(snapshot: &dyn Snapshot, item: &Item) -> Result<(Vec<Change>, usize)> {
    let mut changes = Vec::new();
    let mut deleted = 0;
    for (kind, end) in item.ranges() {
        let (from, to) = (prefix(item.tree, kind, item.id), prefix(item.tree, kind, end));
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        for record in snapshot.range(bounds, Direction::Forward)? {
            if deleted >= STEP_RECORDS_MAX {
                return Ok((changes, deleted));
            }
            let (key, value) = record?;
            if let (RecordKind::Page, What::Container(container)) = (kind, item.what) {
                let page = PageRecord::open(&*key, value)?;
                items_below(item, container, &page, |below| {
                    changes.push(Change::Put((&below.key()[..]).into(), below.encode().into()));
                })?;
            }
            changes.push(Change::Delete((&*key).into()));
            deleted += 1;
        }
    }
    changes.push(Change::Delete((&item.key()[..]).into()));
    Ok((changes, deleted.max(1)))
}

/// Bytes of the records that an entry stands for, of those below it, too.
///
/// # Errors
/// Those of the backend; `Corrupted` when a page on the way is damaged.
///
/// # Complexity
/// O(records): it reads all of them.
pub fn weigh(snapshot: &dyn Snapshot, item: &Item) -> Result<u64> {
    let mut len = 0;
    walk(snapshot, item, |record_len| len += record_len as u64, |_| true)?;
    Ok(len)
}

/// Notes in the queue what entries weigh, so that nobody need weigh them again.
///
/// # Errors
/// As [`step`].
pub fn note_weights(backend: &dyn Backend, weighed: &[Item]) -> Result<()> {
    attempts::maintain(backend, |snapshot| {
        let mut changes = Vec::new();
        for item in weighed {
            // Some may have gone meanwhile.
            if snapshot.get(&item.key())?.is_some() {
                changes.push(Change::Put((&item.key()[..]).into(), item.encode().into()));
            }
        }
        Ok((changes, ()))
    })
}

/// The ids below an entry that are live: they have moved elsewhere, with all that is below them.
///
/// # Errors
/// As [`weigh`].
///
/// # Complexity
/// O(pages and counts): it reads them, and no long values.
pub fn live_below(
    snapshot: &dyn Snapshot,
    item: &Item,
    is_live: impl Fn(u64) -> bool,
) -> Result<Vec<u64>> {
    let mut live = Vec::new();
    // Long values name nothing, so their chunks need not be read.
    let names_others = |item: &Item| matches!(item.what, What::Container(_));
    if names_others(item) {
        walk(
            snapshot,
            item,
            |_| (),
            |below| {
                let is_live = is_live(below.id);
                live.extend(is_live.then_some(below.id));
                !is_live && names_others(below)
            },
        )?;
    }
    Ok(live)
}

/// Reads the records that an entry stands for, and those below it where `descend` says so.
fn walk(
    snapshot: &dyn Snapshot,
    item: &Item,
    mut record_len: impl FnMut(usize),
    mut descend: impl FnMut(&Item) -> bool,
) -> Result<()> {
    let mut items = vec![item.clone()];
    while let Some(item) = items.pop() {
        for (kind, end) in item.ranges() {
            let (from, to) = (prefix(item.tree, kind, item.id), prefix(item.tree, kind, end));
            let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
            for record in snapshot.range(bounds, Direction::Forward)? {
                let (key, value) = record?;
                record_len(key.len() + value.len());
                if let (RecordKind::Page, What::Container(container)) = (kind, item.what) {
                    let page = PageRecord::open(&*key, value)?;
                    items_below(&item, container, &page, |below| {
                        if descend(&below) {
                            items.push(below);
                        }
                    })?;
                }
            }
        }
    }
    Ok(())
}

/// The entries of a tree's queue that were removed by logged revisions.
///
/// # Errors
/// As [`step`].
pub fn held(snapshot: &dyn Snapshot, tree: TreeId) -> Result<Vec<Item>> {
    let (from, to) =
        (prefix(tree, RecordKind::Reclaim, 1), prefix(tree, RecordKind::Reclaim, Revision::MAX));
    let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
    let records = snapshot.range(bounds, Direction::Forward)?;
    records.map(|record| record.and_then(|(key, value)| Item::decode(&key, &value))).collect()
}

/// What a page of a removed container refers to.
fn items_below(
    item: &Item,
    container: Container,
    record: &PageRecord<'_>,
    mut found: impl FnMut(Item),
) -> Result<()> {
    let page = record.page(container)?;
    let bad = || damaged(&record.key, "an entry does not read");
    for index in 0..page.count() {
        let value = page.value(index).ok_or_else(bad)?;
        references(value, |reference| {
            if let Some(below) = reference.item(item.tree)
                && !item.except.contains(&below.id)
            {
                found(Item { except: item.except.clone(), removed: item.removed, ..below });
            }
        })
        .ok_or_else(bad)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read_as_they_were_written_weighed_or_not() {
        let whats = [
            What::Container(Container::Map),
            What::Container(Container::List),
            What::Chunks,
            What::Ids { end: 1 << 40 },
        ];
        for (tag, what) in (0..).zip(whats) {
            for weight in [None, Some(0), Some(u64::MAX)] {
                for except in [vec![], vec![3, 1 << 50]] {
                    let item = Item { except, removed: 9, weight, ..Item::new(5, 7, what) };
                    let record = item.encode();
                    assert_eq!(record[SEAL_LEN], if weight.is_some() { tag + 4 } else { tag });
                    assert_eq!(Item::decode(&item.key(), &record).expect("it reads"), item);
                }
            }
        }
        let mut unknown = vec![0; SEAL_LEN];
        unknown.push(8);
        let key = Item::new(5, 7, What::Chunks).key();
        seal(&key, &mut unknown);
        assert!(Item::decode(&key, &unknown).is_err());
    }
}
