//! Whether a path has changed since a revision, as the change log tells.

use crate::backend::Revision;
use crate::error::Result;
use crate::history::{self, History};
use crate::path::{self, Display};

use super::Transaction;

impl Transaction<'_> {
    /// The first commit after a revision that concerns a path: at it, below it, or on what it lies in.
    /// `None` when there is none. Edits of this transaction do not count.
    ///
    /// # Errors
    /// `NotFound` when the revision is in the future, or the log does not reach back so far.
    ///
    /// # Complexity
    /// That of the commits since.
    pub fn changed_since(&self, path: &str, since: Revision) -> Result<Option<Revision>> {
        let this = self.reading(path)?;
        path::check(path)?;
        let (whole, base) = (this.below_base(path), this.base());
        this.permit_history(&whole)?;
        if since > base {
            return Err(history::in_future(since, base).at(Display(path)));
        }
        let mut found = None;
        let history = History::of(self.pending.view_before().snapshot);
        let looked = history.each_since(since, &mut |mut logged| {
            logged.entry.diff.retain_concerning(&whole);
            found = (!logged.entry.diff.is_empty()).then_some(logged.revision);
            Ok(found.is_none())
        });
        looked.map_err(|error| error.at(Display(path)))?;
        Ok(found)
    }
}
