//! Transactions of a principal: what may not be read is not there, and an edit of what may not be written
//! is refused, in the same words whether something is there or not.

use std::sync::Arc;

use crate::access::{Permissions, Right, Standing};
use crate::error::{Error, ErrorKind, Result};
use crate::key::Key;
use crate::path::{self, Display};
use crate::view::View;
use crate::visit::{Container, Scalar, Visitor};

use super::Transaction;

/// What an edit does to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Copies it, with everything in it.
    Copies,
    /// Makes, replaces, moves or removes it, with everything in it.
    Changes,
    /// Changes its own metadata.
    Annotates,
}

impl Transaction<'_> {
    /// Says for whom it reads and edits; without permissions, for someone who may do everything.
    pub fn set_permissions(&mut self, permissions: Option<Arc<Permissions>>) {
        self.permissions = permissions;
    }

    /// What its principal may do, and from here on it edits for someone who may do everything.
    pub fn take_permissions(&mut self) -> Option<Arc<Permissions>> {
        self.permissions.take()
    }

    /// Whether everything at a path and below it may be read; nothing need be there.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path; those of reading.
    pub fn reads_all(&self, path: &str) -> Result<bool> {
        path::check(path)?;
        let Some(permissions) = &self.permissions else { return Ok(true) };
        let way = permissions.way(&self.below_base(path), |list| self.is_list(list))?;
        Ok(way.may_all(Right::Read))
    }

    /// The state that it started from, whoever edits: permissions do not bind a view.
    pub fn view_before(&self) -> View<'_> {
        self.pending.view_before()
    }

    /// What may be done at a checked path from the store's root, when not everything below it may be read.
    pub(super) fn veil_at(&self, path: &str) -> Result<Seen<'_>> {
        let Some(permissions) = &self.permissions else { return Ok(Seen::Whole) };
        let way = permissions.way(path, |list| self.is_list(list))?;
        Ok(match () {
            () if way.shows_all() => Seen::Whole,
            () if way.may_show() => Seen::Part(permissions, way.standing),
            () => Seen::Hidden,
        })
    }

    /// Whether there is a node at a checked path from the store's root of which something may be seen.
    pub(super) fn is_seen_at(&self, path: &str) -> Result<bool> {
        Ok(self.exists_at(path)? && !matches!(self.veil_at(path)?, Seen::Hidden))
    }

    fn is_list(&self, path: &str) -> Result<bool> {
        Ok(self.container_at(path)? == Some(Container::List))
    }

    /// Refuses an edit at a checked path from the store's root that is not allowed. Whether it is depends
    /// on the rules and on what may be read alone.
    pub(super) fn permit(&self, path: &str, deed: Deed) -> Result<()> {
        let Some(permissions) = &self.permissions else { return Ok(()) };
        let way = permissions.way(path, |list| self.is_list(list))?;
        let is_allowed = match deed {
            Deed::Copies => way.may_all(Right::Read),
            Deed::Changes => way.may_all(Right::Write),
            Deed::Annotates => way.may(Right::Write),
        };
        // What may not be written cannot be made on the way, either.
        match (is_allowed, way.fixed_len) {
            (true, Some(len)) if deed != Deed::Copies && !self.is_way(&path[..len])? => {
                Err(denied(deed))
            }
            (true, _) => Ok(()),
            (false, _) => Err(denied(deed)),
        }
    }

    /// Whether a path leads to a container that is seen.
    fn is_way(&self, path: &str) -> Result<bool> {
        let container = self.container_at(path)?;
        Ok(match self.veil_at(path)? {
            Seen::Hidden => false,
            Seen::Part(_, standing) if !standing.may(Right::Read) => {
                container == Some(Container::Map)
            }
            Seen::Part(..) | Seen::Whole => container.is_some(),
        })
    }

    /// Refuses to tell when something in the tree of a checked path has changed to whom may not read all of
    /// it: what is replaced as a whole has changed for all that is in it.
    pub(super) fn permit_history(&self, path: &str) -> Result<()> {
        let Some(permissions) = &self.permissions else { return Ok(()) };
        let tree = path.get(1..).and_then(|rest| rest.find('/'));
        let way = permissions.way(tree.map_or(path, |len| &path[..=len]), |_| Ok(false))?;
        match way.may_all(Right::Read) {
            true => Ok(()),
            false => Err(Error::new(
                ErrorKind::Denied,
                "whether it has changed since a revision is told to those who may read the whole tree; \
                 expect a value or a hash instead",
            )
            .at(Display(path))),
        }
    }
}

/// How much of a node is seen.
pub(super) enum Seen<'p> {
    Whole,
    /// What may be done there; nothing may be seen after all.
    Part(&'p Permissions, Standing),
    Hidden,
}

/// Counts the members of a container.
#[derive(Default)]
pub(super) struct Members {
    depth: usize,
    pub count: u64,
}

impl Members {
    fn value(&mut self) {
        self.count += u64::from(self.depth == 1);
    }
}

impl Visitor for Members {
    fn open(&mut self, _: Container) -> Result<()> {
        self.value();
        self.depth += 1;
        Ok(())
    }
    fn key(&mut self, _: Key<'_>) -> Result<()> {
        Ok(())
    }
    fn scalar(&mut self, _: Scalar<'_>) -> Result<()> {
        self.value();
        Ok(())
    }
    fn close(&mut self) -> Result<()> {
        self.depth -= 1;
        Ok(())
    }
    fn meta(&mut self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
}

#[cold]
fn denied(deed: Deed) -> Error {
    Error::new(
        ErrorKind::Denied,
        match deed {
            Deed::Copies => "not everything there may be read by you",
            Deed::Changes => {
                "it may not be written by you, or not everything below it; `access test` names the rule"
            }
            Deed::Annotates => "it may not be written by you; `access test` names the rule",
        },
    )
}
