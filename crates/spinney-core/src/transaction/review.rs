//! What may stand between a commit's diff and its batch: authorisation, validation, vetoes, indexes.

use crate::backend::{Revision, Snapshot};
use crate::diff::Diff;
use crate::error::Result;
use crate::history::Note;
use crate::index::Derived;
use crate::overlay::{Layered, Overlay};
use crate::pending::Pending;
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
    pub(super) pending: &'p Pending<'p>,
}

impl Proposed<'_> {
    /// The state before, to be kept and read by another thread.
    ///
    /// # Errors
    /// `Conflict` when the store has changed; those of taking a snapshot.
    pub fn fork_before(&self) -> Result<Box<dyn Snapshot>> {
        self.pending.fork_before()
    }

    /// The state after, to be kept and read by another thread. It still names the revision before.
    ///
    /// # Errors
    /// As [`Proposed::fork_before`].
    pub fn fork_after(&self) -> Result<Layered<Box<dyn Snapshot>>> {
        self.pending.fork()
    }

    /// The records that make the state after of the state before.
    pub fn staged(&self) -> &Overlay {
        self.pending.staged()
    }
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

/// Several, in their order: the first that refuses ends it.
impl Review for Vec<&mut dyn Review> {
    fn review(&mut self, proposed: &Proposed<'_>, derived: &mut Vec<Derived>) -> Result<()> {
        self.iter_mut().try_for_each(|reviewer| reviewer.review(proposed, derived))
    }
}
