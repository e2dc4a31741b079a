//! Transactions of stores that keep each tree in a place of its own: the first path decides which one
//! is changed, and all others must lead into the same tree.

use std::cell::OnceCell;

use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::path::{self, Display};
use crate::pending::Pending;

use super::Transaction;

/// Begins the transaction of the tree that it is given the name of.
pub type Route<'b> = dyn Fn(&str) -> Result<Transaction<'b>> + 'b;

/// What a transaction may change, and how it begins where that is not decided yet.
#[derive(Default)]
pub(super) struct Bounds<'b> {
    /// The one tree that paths lead into; all, when there is none.
    tree: Option<String>,
    /// Begins the transaction once the tree is known.
    route: Option<&'b Route<'b>>,
    /// Where reading has begun it.
    begun: OnceCell<Box<Transaction<'b>>>,
}

impl<'b> Transaction<'b> {
    /// A transaction that `route` begins where the tree of the first path is. `nowhere` is empty, and
    /// is what it stands on until then.
    ///
    /// # Errors
    /// None of an empty store in memory.
    pub fn routed(nowhere: &'b Memory, route: &'b Route<'b>) -> Result<Transaction<'b>> {
        let mut transaction = Transaction::on(Pending::new(nowhere)?)?;
        transaction.bounds.route = Some(route);
        Ok(transaction)
    }

    /// The transaction that was begun for the first path; `None` when no path was named.
    pub fn begun(mut self) -> Option<Transaction<'b>> {
        self.take_begun();
        self.bounds.route.is_none().then_some(self)
    }

    /// The transaction that has begun, or else itself.
    pub(super) fn current(&self) -> &Transaction<'b> {
        self.bounds.begun.get().map_or(self, |begun| begun)
    }

    /// Refuses paths that do not lead into this tree.
    pub fn keep_to_tree(&mut self, tree: &str) {
        self.bounds.tree = Some(tree.to_owned());
    }

    /// The transaction that reads a path of a user.
    #[inline]
    pub(super) fn reading(&self, path: &str) -> Result<&Transaction<'b>> {
        let Bounds { tree, route, .. } = &self.bounds;
        match (tree, route) {
            (None, None) => Ok(self),
            (Some(tree), _) => keep_within(tree, path).map(|()| self),
            (None, Some(route)) => self.begun_for(path, route),
        }
    }

    /// Becomes the transaction that edits at a path of a user.
    #[inline]
    pub(super) fn enter(&mut self, path: &str) -> Result<()> {
        self.reading(path)?;
        if self.bounds.route.is_some() {
            self.take_begun();
        }
        Ok(())
    }

    fn begun_for(&self, path: &str, route: &Route<'b>) -> Result<&Transaction<'b>> {
        let begun = &self.bounds.begun;
        if let Some(begun) = begun.get() {
            return begun.reading(path);
        }
        path::check(path)?;
        let tree = path::segments(path).next().ok_or_else(root_in_pieces)?;
        let fresh = Box::new(route(&tree)?);
        begun.get_or_init(|| fresh).reading(path)
    }

    fn take_begun(&mut self) {
        let Some(mut begun) = self.bounds.begun.take() else { return };
        // What was said of the commit before its first path.
        for (said, takes) in [
            (&mut self.note.author, &mut begun.note.author),
            (&mut self.note.message, &mut begun.note.message),
        ] {
            if !said.is_empty() {
                std::mem::swap(said, takes);
            }
        }
        *self = *begun;
    }
}

fn keep_within(tree: &str, path: &str) -> Result<()> {
    path::check(path)?;
    match path::segments(path).next() {
        Some(first) if first == tree => Ok(()),
        Some(_) => Err(Error::unsupported(format!(
            "one commit changes one tree of this store, and this one is about `{}`, not {}; write to the other \
             tree in a commit of its own",
            &*path::Path::root().child(tree),
            Display(path)
        ))),
        None => Err(root_in_pieces()),
    }
}

/// The root of a store whose trees are kept apart.
fn root_in_pieces() -> Error {
    Error::unsupported(
        "one commit changes one tree of this store, and the root holds all; name a tree, as in `/people`",
    )
}
