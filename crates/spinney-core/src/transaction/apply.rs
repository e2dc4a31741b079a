//! Applying a diff as edits.

use std::borrow::Cow;
use std::sync::Arc;

use crate::diff::{Diff, Op, Step, What};
use crate::edit::{Body, Edit};
use crate::error::{Error, Result};
use crate::expand::ContainedBuilder;
use crate::node;
use crate::path::{self, Display};

use super::access::Deed;
use super::{Existing, Transaction, damaged};

/// Whether the elements of lists have the ids that a diff names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ids {
    Same,
    Other,
}

impl Transaction<'_> {
    /// Applies the operations of a diff whose containers are not held by reference (see
    /// [`crate::expand`]).
    ///
    /// # Errors
    /// `Conflict` when the state is not the one that an operation expects.
    pub fn apply(&mut self, diff: &Diff) -> Result<()> {
        self.apply_with(diff, Ids::Same)
    }

    /// As [`Transaction::apply`] on a tree whose lists hold the same elements under other ids:
    /// elements are found by their positions, and get new ids.
    ///
    /// # Errors
    /// As [`Transaction::apply`].
    pub fn apply_by_position(&mut self, diff: &Diff) -> Result<()> {
        self.apply_with(diff, Ids::Other)
    }

    /// As [`Transaction::apply`], only where everything that an operation changes is still what it
    /// was.
    ///
    /// # Errors
    /// `Conflict` naming the first path that holds something else.
    pub fn apply_exactly(&mut self, diff: &Diff) -> Result<()> {
        for op in &diff.ops {
            let pointer = op.pointer();
            let path = self.entered(op)?;
            let is_insert =
                op.old.is_none() && matches!(op.path.last(), Some(Step::Element { .. }));
            if !is_insert && self.contained_at(&path, op.what)? != op.old {
                let text = "it was changed since, so this cannot be undone";
                return Err(Error::conflict(text).at(Display(&pointer)));
            }
            self.apply_op(op, Ids::Same)?;
        }
        Ok(())
    }

    /// The path of an operation from the store's root, when the change is allowed.
    fn entered(&mut self, op: &Op) -> Result<String> {
        let pointer = op.pointer();
        let deed = match op.what {
            What::Node => Deed::Changes,
            What::Meta => Deed::Annotates,
        };
        let path = self.checked(&pointer, deed).map(Cow::into_owned);
        path.map_err(|error| error.at(format_args!("apply a diff at {pointer}")))
    }

    /// A node with everything in it, or its metadata, encoded as in expanded diffs.
    fn contained_at(&mut self, path: &str, what: What) -> Result<Option<Arc<[u8]>>> {
        let mut contained = ContainedBuilder::default();
        let found = self.visit_at(path, &mut contained)?;
        let contained = found.then(|| contained.finish());
        match (what, contained) {
            (What::Meta, Some(contained)) => {
                let meta = node::read(&contained).ok_or_else(damaged)?.meta;
                Ok(Some(meta.into()))
            }
            (_, contained) => Ok(contained),
        }
    }

    fn apply_with(&mut self, diff: &Diff, ids: Ids) -> Result<()> {
        diff.ops.iter().try_for_each(|op| self.apply_op(op, ids))
    }

    fn apply_op(&mut self, op: &Op, ids: Ids) -> Result<()> {
        let path = self.entered(op)?;
        let applied = match (&op.what, &op.new, op.path.last()) {
            (What::Meta, Some(meta), _) => self.replace_meta(&path, meta),
            (What::Meta, None, _) => self.replace_meta(&path, &[]),
            (What::Node, _, Some(Step::Element { id, position }))
                if op.old.is_some()
                    && ids == Ids::Same
                    && self.element_id(&path, *position)? != Some(*id) =>
            {
                Err(Error::conflict(format!("the element {id} is not there")))
            }
            (What::Node, None, None) => {
                Err(Error::invalid_input("the root cannot be removed; remove its members"))
            }
            (What::Node, None, _) => self.try_remove(&path).and_then(|existed| match existed {
                true => Ok(()),
                false => Err(Error::conflict("there is nothing to remove")),
            }),
            (What::Node, Some(new), Some(Step::Element { id, position })) if op.old.is_none() => {
                self.apply_insert(&path, *position, Some(*id).filter(|_| ids == Ids::Same), new)
            }
            (What::Node, Some(new), _) => {
                let new = crate::expand::Contained(new);
                self.try_set(&path, Existing::Any, |visitor| new.visit(visitor))
            }
        };
        applied.map_err(|error| error.at(format_args!("apply a diff at {}", op.pointer())))
    }

    /// The id of the element at a position of the list that a path leads to.
    fn element_id(&mut self, path: &str, position: u64) -> Result<Option<u64>> {
        let (parent, _) = path::split_last(path).expect("an element has a list");
        let Some(parent) = self.open_existing(parent)? else { return Ok(None) };
        let view = self.pending.view();
        match &mut self.edits.nodes[parent].body {
            Body::List(list) => Ok(list.element(&view, position)?.map(|element| element.id)),
            Body::Map(_) => Ok(None),
        }
    }

    fn apply_insert(
        &mut self,
        path: &str,
        position: u64,
        id: Option<u64>,
        new: &[u8],
    ) -> Result<()> {
        let (parent, _) = path::split_last(path).expect("an element has a list");
        let Some(parent) = self.open_existing(parent)? else {
            return Err(Error::conflict("the list does not exist"));
        };
        let (tree, depth) = (self.edits.nodes[parent].tree, self.trail.len());
        let encoded = {
            let mut build = self.builder.build(&mut self.pending, tree, depth, self.scratch);
            crate::expand::Contained(new).visit(&mut build)?;
            build.finish()?
        };
        self.put_element(parent, position, id, Edit::Set(encoded))
    }
}
