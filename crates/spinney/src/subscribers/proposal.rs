//! What a subscriber is asked.

use std::fmt;

use spinney_core::Result;
use spinney_core::backend::Revision;
use spinney_core::diff::Diff;
use spinney_core::history::Note;

use super::concern::concerning;
use crate::layers::Moved;
use crate::snapshot::Snapshot;

/// A commit that is about to be made, as far as it concerns a subscriber.
pub struct Proposal {
    /// Numbers the questions to this subscriber, from 1.
    pub number: u64,
    /// The revision that it rests on.
    pub base: Revision,
    /// What it says of itself: author, message, time.
    pub note: Note,
    /// What it changes at the subscriber's path and below, and changes of what is above that reach it.
    /// Large values are references; read them from `before` and `after`.
    pub diff: Diff,
    /// The whole state before.
    pub before: Snapshot,
    /// The whole state after; it has no revision of its own yet and names that of `before`.
    pub after: Snapshot,
}

impl Proposal {
    /// The same to who subscribed to a path of the tree that layers are read as, given what it changes in that; `None`
    /// when it does not concern what is there.
    ///
    /// # Errors
    /// Those of reading.
    pub(super) fn of_layers(self, moved: &Moved, segments: &[String]) -> Result<Option<Proposal>> {
        let Proposal { number, base, note, before, after, .. } = self;
        let has = |path: &str| moved.has(path, before.view(), after.view());
        let diff = concerning(&moved.diff, segments, has)?;
        if diff.is_empty() {
            return Ok(None);
        }
        let (before, after) = (moved.before.read(before), moved.after.read(after));
        Ok(Some(Proposal { number, base, note, diff, before, after }))
    }
}

impl fmt::Debug for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Proposal { number, base, note, diff, .. } = self;
        let mut shown = f.debug_struct("Proposal");
        shown.field("number", number).field("base", base).field("note", note).field("diff", diff);
        shown.finish_non_exhaustive()
    }
}
