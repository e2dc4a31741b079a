//! The counts above a list's pages: which page holds a position, and where a page starts.
//!
//! A B+tree over page ranks whose entries carry element counts. Its root lies in the container's
//! head; lower nodes are records of their own, loaded as they are needed. It knows pages only by
//! their rank.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::backend::{Snapshot, TreeId};
use crate::error::Result;
use crate::layout::{RecordKind, prefix};
use crate::rank::{self, Rank};
use crate::record::{SEAL_LEN, damaged, seal, unseal};
use crate::varint;

/// Entries of a count node; a fuller one splits in two. Who changes a list reads and writes one of each level: fewer
/// would cost less there, and on servers, whose pages are larger, a request more for a page of a large list.
pub const NODE_ENTRIES_MAX: usize = 128;

#[derive(Clone, Debug, Default)]
struct CountNode {
    /// Rank of a page or name of a node below, and the elements there.
    entries: Vec<(Rank, u64)>,
    dirty: bool,
}

impl CountNode {
    fn decode(bytes: &[u8]) -> Option<CountNode> {
        let mut at = 0;
        let count = varint::read(bytes, &mut at)?;
        let mut entries: Vec<(Rank, u64)> = Vec::with_capacity(count.min(256) as usize);
        for _ in 0..count {
            let rank = rank::read(varint::read_bytes(bytes, &mut at)?)?;
            if entries.last().is_some_and(|&(last, _)| last >= rank) {
                return None;
            }
            entries.push((rank, varint::read(bytes, &mut at)?));
        }
        (at == bytes.len()).then_some(CountNode { entries, dirty: false })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        varint::write(self.entries.len() as u64, out);
        for &(rank, count) in &self.entries {
            varint::write(rank::len(rank) as u64, out);
            rank::write(rank, out);
            varint::write(count, out);
        }
    }

    /// Bytes that are reserved for it; most entries need eight.
    fn len_about(&self) -> usize {
        8 * (self.entries.len() + 1)
    }

    /// The entry under which `rank` lies: the last at or before it, or the first.
    fn index_of(&self, rank: Rank) -> usize {
        self.entries.partition_point(|&(name, _)| name <= rank).saturating_sub(1)
    }

    fn total(&self) -> u64 {
        self.entries.iter().map(|&(_, count)| count).sum()
    }
}

/// A list's count tree as far as it has been read, with changes not yet saved.
#[derive(Clone, Debug)]
pub struct CountTree {
    tree: TreeId,
    id: u64,
    height: u8,
    root: CountNode,
    /// Nodes below the root by level (1 is just above the pages) and name.
    nodes: BTreeMap<(u8, Rank), CountNode>,
    removed: Vec<(u8, Rank)>,
}

/// The way from the root to a page: for each node its level, its name and the entry taken.
type Trail = SmallVec<[(u8, Rank, usize); 3]>;

impl CountTree {
    /// A tree without pages.
    pub fn new(tree: TreeId, id: u64) -> CountTree {
        CountTree {
            tree,
            id,
            height: 0,
            root: CountNode::default(),
            nodes: BTreeMap::new(),
            removed: Vec::new(),
        }
    }

    /// The tree whose root is `root`, as the container's head holds it; `None` for damaged bytes.
    pub fn open(tree: TreeId, id: u64, height: u8, root: &[u8]) -> Option<CountTree> {
        Some(CountTree { height, root: CountNode::decode(root)?, ..CountTree::new(tree, id) })
    }

    /// Elements in all.
    pub fn total(&self) -> u64 {
        self.root.total()
    }

    /// Whether there are no pages.
    pub fn is_empty(&self) -> bool {
        self.root.entries.is_empty()
    }

    fn key(&self, level: u8, name: Rank) -> Vec<u8> {
        let mut key = prefix(self.tree, RecordKind::Count, self.id).to_vec();
        key.push(level);
        rank::write(name, &mut key);
        key
    }

    fn node(&mut self, snapshot: &dyn Snapshot, level: u8, name: Rank) -> Result<&mut CountNode> {
        if level == self.height + 1 {
            return Ok(&mut self.root);
        }
        if !self.nodes.contains_key(&(level, name)) {
            let key = self.key(level, name);
            let record = snapshot.get(&key)?.ok_or_else(|| damaged(&key, "it is missing"))?;
            let content = &record[unseal(&key, &record)?..];
            let node = CountNode::decode(content)
                .filter(|node| !node.entries.is_empty())
                .ok_or_else(|| damaged(&key, "its fields do not read"))?;
            self.nodes.insert((level, name), node);
        }
        Ok(self.nodes.get_mut(&(level, name)).expect("just loaded"))
    }

    /// Goes from the root to a page; `choose` picks the entry of each node.
    fn descend(
        &mut self,
        snapshot: &dyn Snapshot,
        mut choose: impl FnMut(&CountNode) -> usize,
    ) -> Result<Trail> {
        let mut trail = Trail::new();
        let mut name = 0;
        for level in (1..=self.height + 1).rev() {
            let node = self.node(snapshot, level, name)?;
            if node.entries.is_empty() {
                return Ok(Trail::new());
            }
            let index = choose(node).min(node.entries.len() - 1);
            trail.push((level, name, index));
            name = node.entries[index].0;
        }
        Ok(trail)
    }

    fn entry(&mut self, step: (u8, Rank, usize)) -> (Rank, u64) {
        let (level, name, index) = step;
        let node = match level == self.height + 1 {
            true => &self.root,
            false => &self.nodes[&(level, name)],
        };
        node.entries[index]
    }

    /// The page that holds a position and the position inside it. The position behind the last
    /// element lies behind the last page's last. `None` when there are no pages.
    pub fn find(&mut self, snapshot: &dyn Snapshot, position: u64) -> Result<Option<(Rank, u64)>> {
        if let Some(behind) = position.checked_sub(self.total()) {
            let trail = self.descend(snapshot, |node| node.entries.len() - 1)?;
            let last = trail.last().copied().map(|step| self.entry(step));
            return Ok(last.map(|(rank, count)| (rank, count + behind)));
        }
        let mut rest = position;
        let trail = self.descend(snapshot, |node| {
            let here = node.entries.iter().position(|&(_, count)| {
                let here = rest < count;
                if !here {
                    rest -= count;
                }
                here
            });
            // Counts that do not add up are found by the page, which has fewer elements.
            here.unwrap_or(node.entries.len() - 1)
        })?;
        Ok(trail.last().copied().map(|step| (self.entry(step).0, rest)))
    }

    /// How many elements lie before a page.
    pub fn position_of(&mut self, snapshot: &dyn Snapshot, page: Rank) -> Result<u64> {
        let mut before = 0;
        self.descend(snapshot, |node| {
            let index = node.index_of(page);
            before += node.entries[..index].iter().map(|&(_, count)| count).sum::<u64>();
            index
        })?;
        Ok(before)
    }

    /// How many elements a page has.
    pub fn count_of(&mut self, snapshot: &dyn Snapshot, page: Rank) -> Result<u64> {
        let trail = self.descend(snapshot, |node| node.index_of(page))?;
        Ok(trail.last().copied().map_or(0, |step| self.entry(step).1))
    }

    /// The page after a page.
    pub fn next(&mut self, snapshot: &dyn Snapshot, page: Rank) -> Result<Option<Rank>> {
        self.beside(snapshot, page, true)
    }

    /// The page before a page.
    pub fn previous(&mut self, snapshot: &dyn Snapshot, page: Rank) -> Result<Option<Rank>> {
        self.beside(snapshot, page, false)
    }

    fn beside(
        &mut self,
        snapshot: &dyn Snapshot,
        page: Rank,
        forward: bool,
    ) -> Result<Option<Rank>> {
        let trail = self.descend(snapshot, |node| node.index_of(page))?;
        for &(level, name, index) in trail.iter().rev() {
            let node = self.node(snapshot, level, name)?;
            let index = match forward {
                true => index + 1,
                false => index.wrapping_sub(1),
            };
            let Some(&(mut rank, _)) = node.entries.get(index) else { continue };
            for level in (1..level).rev() {
                let node = self.node(snapshot, level, rank)?;
                let edge = if forward { node.entries.first() } else { node.entries.last() };
                rank = edge.expect("nodes below the root are never empty").0;
            }
            return Ok(Some(rank));
        }
        Ok(None)
    }

    /// The last page.
    pub fn last(&mut self, snapshot: &dyn Snapshot) -> Result<Option<Rank>> {
        let trail = self.descend(snapshot, |node| node.entries.len() - 1)?;
        Ok(trail.last().copied().map(|step| self.entry(step).0))
    }

    /// All pages with their counts, in order.
    pub fn pages(&mut self, snapshot: &dyn Snapshot) -> Result<Vec<(Rank, u64)>> {
        let mut level_entries = self.root.entries.clone();
        for level in (1..=self.height).rev() {
            let mut below = Vec::new();
            for (name, _) in level_entries {
                below.extend_from_slice(&self.node(snapshot, level, name)?.entries);
            }
            level_entries = below;
        }
        Ok(level_entries)
    }

    /// Changes the count of a page.
    pub fn set(&mut self, snapshot: &dyn Snapshot, page: Rank, count: u64) -> Result<()> {
        let trail = self.descend(snapshot, |node| node.index_of(page))?;
        let old = trail.last().copied().map_or(0, |step| self.entry(step).1);
        for &(level, name, index) in &trail {
            let node = self.node(snapshot, level, name)?;
            node.entries[index].1 = node.entries[index].1 + count - old;
            node.dirty = true;
        }
        Ok(())
    }

    /// Adds a page whose rank is new.
    pub fn insert(&mut self, snapshot: &dyn Snapshot, page: Rank, count: u64) -> Result<()> {
        let trail = self.descend(snapshot, |node| node.index_of(page))?;
        if trail.is_empty() {
            self.root.entries.push((page, count));
            self.root.dirty = true;
            return Ok(());
        }
        for &(level, name, index) in &trail {
            let node = self.node(snapshot, level, name)?;
            node.dirty = true;
            match level {
                1 => {
                    let at = node.entries.partition_point(|&(rank, _)| rank < page);
                    node.entries.insert(at, (page, count));
                }
                _ => node.entries[index].1 += count,
            }
        }
        self.split(snapshot, &trail)
    }

    /// Splits the nodes of a trail that have become too full, from below.
    fn split(&mut self, snapshot: &dyn Snapshot, trail: &Trail) -> Result<()> {
        for at in (0..trail.len()).rev() {
            let (level, name, taken) = trail[at];
            let node = self.node(snapshot, level, name)?;
            let len = node.entries.len();
            if len <= NODE_ENTRIES_MAX {
                return Ok(());
            }
            // Where pages are added at the end, nothing more will come to the left node.
            let left_len = if taken + 2 == len { len - 1 } else { len / 2 };
            let right = CountNode { entries: node.entries.split_off(left_len), dirty: true };
            let (right_name, right_total) = (right.entries[0].0, right.total());
            let left_total = node.total();
            let left_name = name.min(node.entries[0].0);
            if at == 0 {
                let left = std::mem::take(&mut self.root);
                let left_name = left.entries[0].0;
                self.height += 1;
                self.root.entries = vec![(left_name, left_total), (right_name, right_total)];
                self.root.dirty = true;
                self.nodes.insert((level, left_name), left);
            } else {
                if left_name != name {
                    // Pages were added before the first of this node: its name must not be above them.
                    let left = self.nodes.remove(&(level, name)).expect("it was just split");
                    self.nodes.insert((level, left_name), left);
                    self.removed.push((level, name));
                }
                let (above, above_name, index) = trail[at - 1];
                let parent = self.node(snapshot, above, above_name)?;
                parent.entries[index] = (left_name, left_total);
                parent.entries.insert(index + 1, (right_name, right_total));
            }
            self.removed.retain(|&removed| removed != (level, right_name));
            self.nodes.insert((level, right_name), right);
        }
        Ok(())
    }

    /// Takes a page out.
    pub fn remove(&mut self, snapshot: &dyn Snapshot, page: Rank) -> Result<()> {
        let trail = self.descend(snapshot, |node| node.index_of(page))?;
        let Some(&last) = trail.last() else { return Ok(()) };
        let count = self.entry(last).1;
        let mut empty_below = true;
        for &(level, name, index) in trail.iter().rev() {
            let node = self.node(snapshot, level, name)?;
            node.dirty = true;
            match empty_below {
                true => {
                    node.entries.remove(index);
                }
                false => node.entries[index].1 -= count,
            }
            empty_below = node.entries.is_empty() && level != self.height + 1;
            if empty_below {
                self.nodes.remove(&(level, name));
                self.removed.push((level, name));
            }
        }
        while self.height > 0 && self.root.entries.len() <= 1 {
            let Some(&(name, _)) = self.root.entries.first() else {
                self.height = 0;
                break;
            };
            let level = self.height;
            let child = self.node(snapshot, level, name)?.clone();
            self.nodes.remove(&(level, name));
            self.removed.push((level, name));
            self.root = CountNode { dirty: true, ..child };
            self.height -= 1;
        }
        Ok(())
    }

    /// Levels below the root, and the root encoded for the container's head.
    pub fn root(&self) -> (u8, Vec<u8>) {
        let mut out = Vec::with_capacity(self.root.len_about());
        self.root.encode(&mut out);
        (self.height, out)
    }

    /// Whether a change has not been saved.
    pub fn is_dirty(&self) -> bool {
        self.root.dirty
    }

    /// The records to write (`Some`) and to delete (`None`) for the changes so far.
    pub fn save(&mut self) -> Vec<(Vec<u8>, Option<Vec<u8>>)> {
        let mut records = Vec::new();
        for (level, name) in std::mem::take(&mut self.removed) {
            if !self.nodes.contains_key(&(level, name)) {
                records.push((self.key(level, name), None));
            }
        }
        let dirty: Vec<(u8, Rank)> =
            self.nodes.iter().filter(|(_, node)| node.dirty).map(|(&at, _)| at).collect();
        for (level, name) in dirty {
            let key = self.key(level, name);
            let node = self.nodes.get_mut(&(level, name)).expect("it was just listed");
            node.dirty = false;
            let mut record = Vec::with_capacity(SEAL_LEN + node.len_about());
            record.resize(SEAL_LEN, 0);
            node.encode(&mut record);
            seal(&key, &mut record);
            records.push((key, Some(record)));
        }
        self.root.dirty = false;
        records
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Bounds, Direction, Records, Revision};
    use std::borrow::Cow;

    /// The records that a tree has saved.
    #[derive(Default)]
    struct Saved(BTreeMap<Vec<u8>, Vec<u8>>);

    impl Snapshot for Saved {
        fn revision(&self) -> Result<Revision> {
            Ok(0)
        }
        fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
            Ok(self.0.get(key).map(|value| Cow::Borrowed(&value[..])))
        }
        fn range<'s>(&'s self, _: Bounds<'_>, _: Direction) -> Result<Records<'s>> {
            unreachable!("a count tree only gets")
        }
    }

    #[test]
    fn random_pages_come_and_go_as_in_a_plain_list() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut saved = Saved::default();
        let mut counts = CountTree::new(1, 9);
        let mut model: Vec<(Rank, u64)> = Vec::new();
        for round in 0..20_000u32 {
            let grow = if round < 10_000 { 3 } else { 1 };
            if model.is_empty() || rng.u32(0..4) < grow {
                let at = rng.usize(0..=model.len());
                let low = if at == 0 { 0 } else { model[at - 1].0 };
                let fresh = match model.get(at) {
                    Some(&(high, _)) => rank::between(low, high),
                    None => rank::after(low),
                };
                let Some(fresh) = fresh else { continue };
                let count = rng.u64(1..300);
                counts.insert(&saved, fresh, count).unwrap();
                model.insert(at, (fresh, count));
            } else if rng.bool() {
                let (page, _) = model.remove(rng.usize(0..model.len()));
                counts.remove(&saved, page).unwrap();
            } else {
                let entry = rng.choice(&mut model).expect("not empty");
                entry.1 = rng.u64(1..300);
                counts.set(&saved, entry.0, entry.1).unwrap();
            }
            if round % 97 == 0 {
                for (key, record) in counts.save() {
                    match record {
                        Some(record) => saved.0.insert(key, record),
                        None => saved.0.remove(&key),
                    };
                }
                let (height, root) = counts.root();
                counts = CountTree::open(1, 9, height, &root).expect("reads");
            }
            if round % 31 == 0 && !model.is_empty() {
                assert_eq!(counts.total(), model.iter().map(|entry| entry.1).sum::<u64>());
                let at = rng.usize(0..model.len());
                let (page, count) = model[at];
                let before: u64 = model[..at].iter().map(|entry| entry.1).sum();
                assert_eq!(counts.position_of(&saved, page).unwrap(), before);
                assert_eq!(counts.count_of(&saved, page).unwrap(), count);
                assert_eq!(
                    counts.find(&saved, before + count - 1).unwrap(),
                    Some((page, count - 1))
                );
                assert_eq!(
                    counts.next(&saved, page).unwrap(),
                    model.get(at + 1).map(|entry| entry.0)
                );
                let previous = at.checked_sub(1).map(|at| model[at].0);
                assert_eq!(counts.previous(&saved, page).unwrap(), previous);
            }
            if round % 1009 == 0 {
                assert_eq!(counts.pages(&saved).unwrap(), model);
                let last = model.last().copied();
                assert_eq!(counts.last(&saved).unwrap(), last.map(|entry| entry.0));
                let behind = last;
                assert_eq!(counts.find(&saved, counts.total()).unwrap(), behind);
            }
        }
        assert!(model.len() > 100);
    }
}
