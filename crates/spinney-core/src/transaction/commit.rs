//! The commit, as data flows: edits -> pages -> diff -> review (authorise, validate, veto, index) ->
//! log -> batch.
//!
//! Pages come first because a diff refers to large containers by id; nothing refers to the pages
//! until the batch is committed.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::backend::{self, Outcome, Revision, Snapshot, TreeId};
use crate::diff::{Delta, Diff, MemberChange, MemberDelta, Op, Step, Steps, What};
use crate::edit::{Body, Edit, encode_list, encode_map};
use crate::error::{Error, Result};
use crate::history::Entry;
use crate::overlay::Layered;
use crate::reclaim::{self, references};
use crate::visit::Container;

use super::{Proposed, Review, Transaction, damaged};

/// What a commit did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The revision that it made, or the one it read when nothing changed.
    pub revision: Revision,
    /// What changed; empty when nothing did.
    pub diff: Diff,
    /// Whether something was put into the reclaim queue, or the log was trimmed.
    pub reclaims: bool,
}

/// What a transaction would do.
pub struct Preview {
    /// What it would change.
    pub diff: Diff,
    /// The state that it would make.
    pub state: Layered<Box<dyn Snapshot>>,
}

impl Transaction<'_> {
    /// Commits the edits as one revision. Nothing is durable until the backend has synced it.
    ///
    /// # Errors
    /// `Conflict` when the store has changed since [`Transaction::begin`]; those of the backend.
    pub fn commit(self, commit_id: u128) -> Result<Commit> {
        self.commit_reviewed(commit_id, None)
    }

    /// As [`Transaction::commit`], when `review` lets it pass.
    ///
    /// # Errors
    /// As [`Transaction::commit`], and those of `review`.
    pub fn commit_reviewed(
        mut self,
        commit_id: u128,
        review: Option<&mut dyn Review>,
    ) -> Result<Commit> {
        let base = self.pending.base();
        let diff = self.encode()?;
        if diff.is_empty() {
            return Ok(Commit { revision: base, diff, reclaims: false });
        }
        let revision = base + 1;
        self.note.commit_id = commit_id;
        if let Some(review) = review {
            self.review(&diff, review)?;
        }
        self.reclaim_dropped(&diff, revision)?;
        let mut entry: Arc<[u8]> = Entry::encode(&self.note, &diff).into();
        self.pending.log(revision, &entry, self.revisions_max)?;
        if self.pending.backend().capabilities().keeps_diffs
            && let Cow::Owned(contained) = diff.contained(&self.pending.view())?
        {
            entry = Entry::encode(&self.note, &contained).into();
        }
        let (backend, reclaims) = (self.pending.backend(), self.pending.reclaims());
        let batch = self.pending.into_batch(revision, commit_id, entry)?;
        match backend::Backend::commit(backend, batch)? {
            Outcome::Committed(revision) => Ok(Commit { revision, diff, reclaims }),
            Outcome::Conflict => {
                Err(Error::conflict("the store changed while the transaction was open"))
            }
        }
    }

    /// What the edits change, and the state that they make.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn preview(mut self) -> Result<Preview> {
        let diff = self.encode()?;
        Ok(Preview { diff, state: self.pending.into_state() })
    }

    /// Puts the edits into pages; returns what they change.
    fn encode(&mut self) -> Result<Diff> {
        if let Some(error) = self.broken.take() {
            return Err(Error::invalid_input(format!(
                "commit: a part of it has failed ({error}), and nothing of it may stay; return that error"
            )));
        }
        let opened = self.opened()?;
        for &node in opened.iter().rev() {
            match self.edits.nodes[node].body {
                Body::Map(_) => encode_map::encode(&mut self.edits, &mut self.pending, node)?,
                Body::List(_) => encode_list::encode(&mut self.edits, &mut self.pending, node)?,
            }
        }
        let diff = self.diff();
        if !diff.is_empty() {
            let root = self.edits.nodes[0].encoded.take();
            let head = self.pending.head(0)?;
            if let Some(root) = root {
                head.root = root;
            }
        }
        Ok(diff)
    }

    /// The changed containers that are still in the tree, parents before children.
    fn opened(&mut self) -> Result<Vec<usize>> {
        let mut order = Vec::with_capacity(self.edits.nodes.len());
        order.push((0, true));
        let mut at = 0;
        while let Some(&(node, in_diff)) = order.get(at) {
            at += 1;
            self.edits.nodes[node].in_diff = in_diff;
            let work = &self.edits.nodes[node];
            let list = work.container() == Container::List;
            for (key, edit) in work.edits() {
                if let Edit::Open { node: child, in_place, .. } = edit
                    && self.edits.nodes[*child].changed
                {
                    let stored = || self.edits.was_stored(&self.pending, node, key);
                    order.push((*child, in_diff && (list || *in_place || stored()?)));
                }
            }
        }
        Ok(order.into_iter().map(|(node, _)| node).collect())
    }

    /// Puts the changes of all containers together, with their paths.
    fn diff(&mut self) -> Diff {
        enum Next {
            Enter(usize),
            Change(MemberDelta, TreeId),
            Leave,
        }
        let mut diff = Diff::default();
        let mut path: Vec<Step> = Vec::with_capacity(8);
        // What leads to the container whose members come next.
        let mut container: Option<Arc<[Step]>> = None;
        let mut stack = Vec::with_capacity(8);
        stack.push(Next::Enter(0));
        while let Some(next) = stack.pop() {
            let mut op = |step, what, tree, old, new| {
                let container = container.get_or_insert_with(|| Arc::from(&path[..]));
                Op { path: Steps::below(container, step), what, tree, old, new }
            };
            match next {
                Next::Leave => {
                    path.pop();
                    container = None;
                }
                Next::Enter(node) => {
                    let work = &mut self.edits.nodes[node];
                    work.in_written_diff = true;
                    let (tree, list) = (work.tree, matches!(work.body, Body::List(_)));
                    let Delta { members, taken, put } = std::mem::take(&mut work.delta);
                    for taken in taken {
                        let step = Step::Element { id: taken.id, position: taken.position };
                        diff.ops.push(op(step, What::Node, tree, Some(taken.value), None));
                    }
                    for put in put {
                        let step = Step::Element { id: put.id, position: put.position };
                        diff.ops.push(op(step, What::Node, tree, None, Some(put.value)));
                    }
                    for member in members.into_iter().rev() {
                        let tree = if list { tree } else { member.tree };
                        stack.push(Next::Change(member, tree));
                    }
                }
                Next::Change(member, tree) => match member.change {
                    MemberChange::Node { old, new } => {
                        diff.ops.push(op(member.step, What::Node, tree, old, new));
                    }
                    MemberChange::Below { node, meta } => {
                        if let Some((old, new)) = meta {
                            let step = member.step.clone();
                            diff.ops.push(op(step, What::Meta, tree, Some(old), Some(new)));
                        }
                        path.push(member.step);
                        container = None;
                        stack.push(Next::Leave);
                        stack.push(Next::Enter(node));
                    }
                },
            }
        }
        diff
    }

    fn review(&mut self, diff: &Diff, review: &mut dyn Review) -> Result<()> {
        self.pending.stage_heads();
        let (before, after) = (self.pending.view_before(), self.pending.view());
        let base = self.pending.base();
        let pending = &self.pending;
        let proposed = Proposed { base, note: &self.note, diff, before, after, pending };
        let mut derived = Vec::new();
        review.review(&proposed, &mut derived)?;
        self.pending.put_derived(derived);
        Ok(())
    }

    /// Queues what is referred to no more: what removed and replaced nodes held, stored ones and
    /// those that came and went in this transaction, except what lives on elsewhere. Stored ones wait
    /// there as long as `revision` is in the log.
    fn reclaim_dropped(&mut self, diff: &Diff, revision: Revision) -> Result<()> {
        let mut items = Vec::new();
        let mut drop_node = |tree, encoded: &[u8]| {
            references(encoded, |reference| items.extend(reference.item(tree))).ok_or_else(damaged)
        };
        for (tree, encoded) in &self.dropped {
            drop_node(*tree, encoded)?;
        }
        for op in diff.ops.iter().filter(|op| op.what == What::Node) {
            op.old.as_deref().map_or(Ok(()), |old| drop_node(op.tree, old))?;
        }
        // Changes below containers that are themselves new, or moved, are no part of the diff.
        for work in self.edits.nodes.iter().filter(|work| !work.in_written_diff) {
            for member in &work.delta.members {
                if let MemberChange::Node { old: Some(old), .. } = &member.change {
                    drop_node(work.tree, old)?;
                }
            }
            for taken in &work.delta.taken {
                drop_node(work.tree, &taken.value)?;
            }
        }
        if items.is_empty() {
            return Ok(());
        }
        let live = self.live()?;
        for mut item in items {
            if !live.contains(&(item.tree, item.id)) {
                let is_new = self.pending.is_new(item.tree, item.id);
                // What was made and given up here names only what was made here, and costs no more to
                // look through than to make; stored containers are left alone.
                item.except = match is_new {
                    true => {
                        let is_live = |id| live.contains(&(item.tree, id));
                        reclaim::live_below(self.pending.snapshot(), &item, is_live)?
                    }
                    false => {
                        let of_tree = live.range((item.tree, 0)..=(item.tree, u64::MAX));
                        let stored = of_tree.filter(|&&(tree, id)| !self.pending.is_new(tree, id));
                        stored.map(|&(_, id)| id).collect()
                    }
                };
                item.removed = if is_new || self.revisions_max == 0 { 0 } else { revision };
                self.pending.reclaim(&item);
            }
        }
        Ok(())
    }

    /// What the edits refer to: all that could have moved away from where it was stored.
    fn live(&self) -> Result<BTreeSet<(TreeId, u64)>> {
        let mut live = BTreeSet::new();
        let mut nodes = vec![0];
        while let Some(index) = nodes.pop() {
            let work = &self.edits.nodes[index];
            let mut refer = |tree: TreeId, encoded: &[u8]| {
                references(encoded, |reference| {
                    live.extend(reference.item(tree).map(|item| (tree, item.id)));
                })
                .ok_or_else(damaged)
            };
            for (key, edit) in work.edits() {
                match edit {
                    Edit::Removed => {}
                    Edit::Open { node, .. } => nodes.push(*node),
                    Edit::Set(encoded) => {
                        let tree =
                            self.edits.member_tree(&self.pending, index, key)?.unwrap_or(work.tree);
                        refer(tree, encoded)?;
                    }
                }
            }
            if !work.in_written_diff {
                // The whole container is where it was not before, with the members it still has.
                work.unedited(|encoded| refer(work.tree, encoded))?;
            }
        }
        Ok(live)
    }
}
