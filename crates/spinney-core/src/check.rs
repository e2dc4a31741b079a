//! Reading everything that a store holds and telling what is damaged, missing or left over.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::backend::{Backend, Direction, Snapshot, TreeId};
use crate::counts::CountTree;
use crate::error::{Error, ErrorKind, Result};
use crate::history::History;
use crate::key::Key;
use crate::layout::{PREFIX_LEN, RecordKind, head_key, prefix};
use crate::node::{self, Node};
use crate::page::Page;
use crate::path::Path;
use crate::record::{ContainerHead, Head};
use crate::separator::Separator;
use crate::view::{PageRecord, Slot, View, open_counts};
use crate::visit::Container;

/// What [`check`] found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Nodes that were read.
    pub nodes: u64,
    /// Pages that were read.
    pub pages: u64,
    /// Damage, with the path at which it lies.
    pub damaged: Vec<(Path, Error)>,
    /// Records that nothing refers to and that do not wait for reclaim.
    pub orphans: u64,
    /// Records that a large write has put ahead of its commit: it goes on, or it ended without, and the next
    /// writer gives them back.
    pub ahead: u64,
    /// Entries of the reclaim queue.
    pub queued: u64,
    /// Commits in the change log.
    pub logged: u64,
}

impl Report {
    /// Whether everything reads and nothing is left over.
    pub fn is_sound(&self) -> bool {
        self.damaged.is_empty() && self.orphans == 0
    }
}

/// The trees that a store has records of, the catalogue first.
///
/// # Errors
/// Those of the backend.
pub fn trees(snapshot: &dyn Snapshot) -> Result<Vec<TreeId>> {
    let mut trees = vec![0];
    let mut next: TreeId = 0;
    loop {
        let Some(after) = next.checked_add(1) else { return Ok(trees) };
        let from = head_key(after);
        let found =
            snapshot.range((Bound::Included(&from), Bound::Unbounded), Direction::Forward)?.next();
        match found.transpose()? {
            None => return Ok(trees),
            Some((key, _)) => {
                next = TreeId::from_be_bytes(*key.first_chunk().unwrap_or(&[0xff; 4]));
                trees.push(next);
            }
        }
    }
}

/// Reads every node and record of the newest state.
///
/// # Errors
/// Only when the backend cannot be read at all; damage is in the report.
pub fn check(backend: &dyn Backend) -> Result<Report> {
    let snapshot = backend.snapshot()?;
    check_snapshot(View { snapshot: &*snapshot, key_len_max: backend.capabilities().key_len_max })
}

/// Reads every node and record of one state.
///
/// # Errors
/// As [`check`].
pub fn check_snapshot(view: View<'_>) -> Result<Report> {
    let snapshot = view.snapshot;
    let mut checker = Checker { view, report: Report::default(), seen: BTreeSet::new() };
    match view.root() {
        Ok(root) => checker.walk(root),
        Err(error) => checker.report.damaged.push((Path::root(), error)),
    }
    match History::of(snapshot).check() {
        Ok(logged) => checker.report.logged = logged,
        Err(error) => checker.damage(&Path::root(), error),
    }
    let building = Head::load(snapshot, 0).ok().flatten().unwrap_or_default().building;
    for tree in trees(snapshot)? {
        checker.count_left_over(tree, &building)?;
    }
    Ok(checker.report)
}

struct Checker<'s> {
    view: View<'s>,
    report: Report,
    /// Containers and chunks that something refers to.
    seen: BTreeSet<(TreeId, u64)>,
}

impl<'s> Checker<'s> {
    fn damage(&mut self, path: &Path, error: Error) {
        self.report.damaged.push((path.clone(), error));
    }

    /// Reads everything below a node, without recursion, and goes on behind damage.
    fn walk(&mut self, root: Slot<'s>) {
        let mut pending = vec![(Path::root(), root)];
        while let Some((path, slot)) = pending.pop() {
            if let Err(error) = self.node(&path, &slot, &mut pending) {
                self.damage(&path, error);
            }
        }
    }

    fn node(
        &mut self,
        path: &Path,
        slot: &Slot<'s>,
        pending: &mut Vec<(Path, Slot<'s>)>,
    ) -> Result<()> {
        self.report.nodes += 1;
        let annotated = slot.read()?;
        for entry in node::meta_entries(annotated.meta) {
            entry.ok_or_else(|| Error::corrupted("metadata does not read"))?;
        }
        match annotated.node {
            Node::Scalar(_) => Ok(()),
            Node::Tree(_) => {
                let mut root = slot.clone();
                self.view.follow(&mut root)?;
                pending.push((path.clone(), root));
                Ok(())
            }
            Node::Long(long) => {
                self.refer(slot.tree, long.id)?;
                self.view.long(slot.tree, long).map(drop)
            }
            Node::Inline(container, body) => {
                let page = Page::parse(container, body)
                    .ok_or_else(|| Error::corrupted("a page does not read"))?;
                self.members(path, slot.tree, container, &page, 0, pending).map(drop)
            }
            Node::Paged(container, id) => {
                self.refer(slot.tree, id)?;
                self.container(path, slot.tree, container, id, pending)
            }
        }
    }

    fn refer(&mut self, tree: TreeId, id: u64) -> Result<()> {
        match self.seen.insert((tree, id)) {
            true => Ok(()),
            false => Err(Error::corrupted(format!(
                "two nodes refer to the container {id} of tree {tree}"
            ))),
        }
    }

    fn container(
        &mut self,
        path: &Path,
        tree: TreeId,
        container: Container,
        id: u64,
        pending: &mut Vec<(Path, Slot<'s>)>,
    ) -> Result<()> {
        let head = ContainerHead::load(self.view.snapshot, tree, id)?;
        let mut counts = match container {
            Container::List => Some(open_counts(tree, id, &head)?),
            Container::Map => None,
        };
        let (from, to) =
            (prefix(tree, RecordKind::Page, id), prefix(tree, RecordKind::Page, id + 1));
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        let mut members = 0;
        let mut last_key: Option<Vec<u8>> = None;
        for record in self.view.snapshot.range(bounds, Direction::Forward)? {
            self.report.pages += 1;
            let mut behind_damage = 0;
            let checked = record.and_then(|(key, value)| {
                if let (Some(counts), Some(rank)) =
                    (&mut counts, crate::rank::read(&key[PREFIX_LEN..]))
                {
                    behind_damage = counts.count_of(self.view.snapshot, rank)?;
                }
                let record = PageRecord::open(key, value)?;
                self.page(
                    path,
                    tree,
                    container,
                    &record,
                    members,
                    &mut last_key,
                    counts.as_mut(),
                    pending,
                )
            });
            match checked {
                Ok(count) => members += count,
                Err(error) => {
                    // The pages behind it are read at the positions that they have.
                    members += behind_damage;
                    self.damage(path, error);
                }
            }
        }
        if head.container != container {
            self.damage(
                path,
                Error::corrupted(format!("the head of container {id} is of another kind")),
            );
        }
        if head.count != members {
            let text =
                format!("container {id} holds {members} members, its head says {}", head.count);
            self.damage(path, Error::corrupted(text));
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "one page in its context")]
    fn page(
        &mut self,
        path: &Path,
        tree: TreeId,
        container: Container,
        record: &PageRecord<'_>,
        first: u64,
        last_key: &mut Option<Vec<u8>>,
        counts: Option<&mut CountTree>,
        pending: &mut Vec<(Path, Slot<'s>)>,
    ) -> Result<u64> {
        let page = record.page(container)?;
        let bad = |what: &str| crate::record::damaged(&record.key, what);
        if let Some(counts) = counts {
            let rank = crate::rank::read(&record.key[PREFIX_LEN..])
                .ok_or_else(|| bad("its rank does not read"))?;
            let start = counts.position_of(self.view.snapshot, rank)?;
            let count = counts.count_of(self.view.snapshot, rank)?;
            if (start, count) != (first, page.count() as u64) {
                return Err(bad("its counts do not fit"));
            }
        } else {
            let separator = Separator::of(record)?;
            if last_key.as_ref().is_some_and(|last| separator.is_at_or_below(last)) {
                return Err(bad("its separator is not above the page before"));
            }
            for index in 0..page.count() {
                let mut key = Vec::new();
                page.key_into(index, &mut key).ok_or_else(|| bad("a key does not read"))?;
                let ascends = last_key.as_ref().is_none_or(|last| *last < key);
                if !ascends || (index == 0 && !separator.is_at_or_below(&key)) {
                    return Err(bad("its keys are not in order"));
                }
                *last_key = Some(key);
            }
        }
        self.members(path, tree, container, &page, first, pending)
    }

    fn members(
        &mut self,
        path: &Path,
        tree: TreeId,
        container: Container,
        page: &Page<'_>,
        first: u64,
        pending: &mut Vec<(Path, Slot<'s>)>,
    ) -> Result<u64> {
        let bad = || Error::corrupted("an entry does not read");
        let mut ids = BTreeSet::new();
        for index in 0..page.count() {
            let value = page.value(index).ok_or_else(bad)?;
            let path = match container {
                Container::List => {
                    if !ids.insert(page.element(index).ok_or_else(bad)?.0) {
                        return Err(Error::corrupted("two elements have one id"));
                    }
                    path.child(first + index as u64)
                }
                Container::Map => {
                    let mut key = Vec::new();
                    page.key_into(index, &mut key).ok_or_else(bad)?;
                    path.child(Key::decode(&key).ok_or_else(bad)?)
                }
            };
            match node::read(value).map(|annotated| (annotated.node, annotated.meta)) {
                Some((Node::Scalar(_), [])) => self.report.nodes += 1,
                _ => pending.push((path, Slot::owned(tree, value))),
            }
        }
        Ok(page.count() as u64)
    }

    /// Counts the records of a tree that nothing refers to.
    fn count_left_over(&mut self, tree: TreeId, building: &[(TreeId, u64)]) -> Result<()> {
        let queued = self.queued(tree)?;
        let is_queued = |id: u64| queued.range(..=id).next_back().is_some_and(|(_, &end)| id < end);
        let is_ahead =
            |id: u64| building.iter().any(|&(other, first)| other == tree && id >= first);
        for kind in [RecordKind::Page, RecordKind::Count, RecordKind::Chunk] {
            let (from, to) = (prefix(tree, kind, 0), prefix(tree, kind, u64::MAX));
            let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
            for record in self.view.snapshot.range(bounds, Direction::Forward)? {
                let (key, _) = match record {
                    Ok(record) => record,
                    Err(error) if error.kind() == ErrorKind::Corrupted => continue,
                    Err(error) => return Err(error),
                };
                let id = key
                    .get(5..PREFIX_LEN)
                    .and_then(|id| id.first_chunk())
                    .map(|id| u64::from_be_bytes(*id));
                match id {
                    Some(id) if self.seen.contains(&(tree, id)) || is_queued(id) => {}
                    Some(id) if is_ahead(id) => self.report.ahead += 1,
                    _ => self.report.orphans += u64::from(queued.is_empty()),
                }
            }
        }
        self.report.queued += queued.len() as u64;
        Ok(())
    }

    /// The ids in the reclaim queue, from the first to one above the last.
    fn queued(&self, tree: TreeId) -> Result<BTreeMap<u64, u64>> {
        let mut queued = BTreeMap::new();
        let (from, to) =
            (prefix(tree, RecordKind::Reclaim, 0), prefix(tree, RecordKind::Reclaim, u64::MAX));
        let bounds = (Bound::Included(&from[..]), Bound::Excluded(&to[..]));
        for record in self.view.snapshot.range(bounds, Direction::Forward)? {
            let (key, record) = record?;
            let item = crate::reclaim::Item::decode(&key, &record)?;
            let end = match item.what {
                crate::reclaim::What::Ids { end } => end,
                _ => item.id + 1,
            };
            queued.insert(item.id, end);
        }
        Ok(queued)
    }
}
