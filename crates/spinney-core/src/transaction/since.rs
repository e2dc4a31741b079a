//! Whether a path has changed since a revision, as the change log tells.

use crate::backend::Revision;
use crate::error::{Error, Result};
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
        let mut next = since + 1;
        for logged in History::of(this.pending.view_before().snapshot).since(next)? {
            let mut logged = logged?;
            if logged.revision != next {
                break;
            }
            logged.entry.diff.retain_concerning(&whole);
            if !logged.entry.diff.is_empty() {
                return Ok(Some(next));
            }
            next += 1;
        }
        match next > base {
            true => Ok(None),
            false => Err(Error::not_found(format!(
                "what was committed after revision {since} is not kept any more; read it again"
            ))
            .at(Display(path))),
        }
    }
}
