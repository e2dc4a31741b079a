//! What may stand between a commit's diff and its batch: authorisation, validation, vetoes, indexes.

use crate::backend::{Revision, TreeId};
use crate::diff::Diff;
use crate::error::Result;
use crate::history::Note;
use crate::view::View;

/// A commit that is about to be made.
pub struct Proposed<'p> {
    /// The revision that it rests on.
    pub base: Revision,
    /// What it says of itself.
    pub note: &'p Note,
    /// What it changes, from the store's root.
    pub diff: &'p Diff,
    /// The state before.
    pub before: View<'p>,
    /// The state after.
    pub after: View<'p>,
}

/// A record of derived state, such as an entry of an index, that is committed with what it is
/// derived from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Derived {
    /// The tree that it belongs to, and is dropped with.
    pub tree: TreeId,
    /// What it is derived for: an index or a schema.
    pub owner: u64,
    /// Its key within the owner's records.
    pub key: Vec<u8>,
    /// Its content; `None` removes it.
    pub content: Option<Vec<u8>>,
}

/// Looks at commits before they are made.
pub trait Review {
    /// Lets a commit pass, with what is to be derived from it, or refuses it with an error, and then
    /// nothing has changed.
    ///
    /// # Errors
    /// Why the commit is refused.
    fn review(&mut self, proposed: &Proposed<'_>, derived: &mut Vec<Derived>) -> Result<()>;
}
