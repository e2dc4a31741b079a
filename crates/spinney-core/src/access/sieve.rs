//! What a principal may see of a diff.

use std::sync::Arc;

use super::permissions::{Permissions, Standing};
use super::rules::Right;
use super::veil::Veil;
use crate::diff::{Diff, Op, Step, What};
use crate::error::{Error, Result};
use crate::expand::{Contained, ContainedBuilder};
use crate::key::{Key, not_a_key};
use crate::node::{self, NodeKind};
use crate::reclaim::references;
use crate::view::{Slot, View};

/// The states that a diff lies between; each is asked for only when something large is to be read in it.
pub trait Between {
    /// The state before.
    ///
    /// # Errors
    /// Those of reading.
    fn before(&self) -> Result<View<'_>>;
    /// The state after.
    ///
    /// # Errors
    /// Those of reading.
    fn after(&self) -> Result<View<'_>>;
}

/// States that are there.
impl Between for (View<'_>, View<'_>) {
    fn before(&self) -> Result<View<'_>> {
        Ok(self.0)
    }

    fn after(&self) -> Result<View<'_>> {
        Ok(self.1)
    }
}

impl Permissions {
    /// A diff from the store's root without what may not be read. An operation on a node of which only a
    /// part may be read has that part, and is left out when nothing of it has changed.
    ///
    /// # Errors
    /// Those of reading; `Corrupted` when the diff does not read.
    ///
    /// # Complexity
    /// That of the operations; of nodes of which only a part is shown, that of the nodes.
    pub fn sieve(&self, diff: Diff, states: &dyn Between) -> Result<Diff> {
        let mut ops = Vec::with_capacity(diff.ops.len());
        for op in diff.ops {
            ops.extend(self.shown_op(op, states)?);
        }
        Ok(Diff { ops })
    }

    fn shown_op(&self, op: Op, states: &dyn Between) -> Result<Option<Op>> {
        let Some(standing) = self.standing_of(&op)? else { return Ok(None) };
        if standing.may_all(Right::Read) || op.what == What::Meta {
            return Ok(standing.may(Right::Read).then_some(op));
        }
        if !standing.may_some(Right::Read) {
            return Ok(None);
        }
        let old = self.shown_node(&standing, &op, &op.old, || states.before())?;
        let new = self.shown_node(&standing, &op, &op.new, || states.after())?;
        Ok((old != new).then_some(Op { old, new, ..op }))
    }

    /// What may be done at the node of an operation; `None` when it is in a list that is not shown.
    fn standing_of(&self, op: &Op) -> Result<Option<Standing>> {
        let mut standing = self.root().clone();
        for step in op.path.iter() {
            standing = match step {
                Step::Key(key) => {
                    let key = Key::decode(key).ok_or_else(not_a_key)?;
                    self.member(&standing, &key.text())
                }
                Step::Element { .. } => {
                    let element = self.element(&standing);
                    if !standing.may(Right::Read) || !element.may(Right::Read) {
                        return Ok(None);
                    }
                    element
                }
            };
        }
        Ok(Some(standing))
    }

    /// The part of an encoded node that may be read, with everything in it.
    fn shown_node<'s>(
        &self,
        standing: &Standing,
        op: &Op,
        side: &Option<Arc<[u8]>>,
        state: impl FnOnce() -> Result<View<'s>>,
    ) -> Result<Option<Arc<[u8]>>> {
        let Some(encoded) = side else { return Ok(None) };
        let damaged = || Error::corrupted("a node in a diff does not read");
        let mut refers = false;
        references(encoded, |_| refers = true).ok_or_else(damaged)?;
        let node = node::read(encoded).ok_or_else(damaged)?.node;
        let mut shown = ContainedBuilder::default();
        let mut veil = Veil::new(&mut shown, self, standing);
        let is_map = match refers {
            false => {
                Contained(encoded).visit(&mut veil)?;
                node.kind() == Some(NodeKind::Map)
            }
            true => {
                let view = state()?;
                let mut slot = Slot::owned(op.tree, encoded);
                view.follow(&mut slot)?;
                view.walk(&slot, &mut veil)?;
                slot.read()?.node.kind() == Some(NodeKind::Map)
            }
        };
        Ok(standing.shows(|| Ok(is_map))?.then(|| shown.finish()))
    }
}
