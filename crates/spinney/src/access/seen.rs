//! A state and its history as a principal sees them.

use std::cell::OnceCell;
use std::sync::Arc;

use spinney_core::access::{Between, Permissions};
use spinney_core::backend::{Backend, Revision, Snapshot};
use spinney_core::diff::Diff;
use spinney_core::history::{self, Logged, Note};
use spinney_core::view::View;
use spinney_core::{Error, Result};

/// What a principal may do, and what its history is read from.
pub(crate) struct Sight {
    pub permissions: Arc<Permissions>,
    pub backend: Arc<dyn Backend>,
}

impl Sight {
    /// A diff that a commit made, as far as it is seen.
    ///
    /// # Errors
    /// Those of reading; `NotFound` when the history is forgotten meanwhile.
    pub fn of_diff(&self, diff: Diff, revision: Revision) -> Result<Diff> {
        let states = Commit {
            backend: &*self.backend,
            revision,
            before: OnceCell::new(),
            after: OnceCell::new(),
        };
        self.permissions.sieve(diff, &states)
    }

    /// A commit as far as it is seen: one of which nothing is has neither changes nor a note.
    ///
    /// # Errors
    /// As [`Sight::of_diff`].
    pub fn of_commit(&self, mut logged: Logged) -> Result<Logged> {
        logged.entry.diff = self.of_diff(logged.entry.diff, logged.revision)?;
        if logged.entry.diff.is_empty() {
            logged.entry.note = Note::default();
        }
        Ok(logged)
    }
}

/// The states that a commit lies between.
struct Commit<'b> {
    backend: &'b dyn Backend,
    revision: Revision,
    before: OnceCell<Box<dyn Snapshot>>,
    after: OnceCell<Box<dyn Snapshot>>,
}

impl Commit<'_> {
    fn view<'s>(
        &'s self,
        known: &'s OnceCell<Box<dyn Snapshot>>,
        revision: Revision,
    ) -> Result<View<'s>> {
        if known.get().is_none() {
            let state = history::at(self.backend.snapshot()?, revision)?;
            let _ = known.set(Box::new(state));
        }
        let snapshot = known.get().ok_or_else(|| Error::closed("a state was not kept"))?;
        Ok(View { snapshot: &**snapshot, key_len_max: self.backend.capabilities().key_len_max })
    }
}

impl Between for Commit<'_> {
    fn before(&self) -> Result<View<'_>> {
        self.view(&self.before, self.revision.saturating_sub(1))
    }

    fn after(&self) -> Result<View<'_>> {
        self.view(&self.after, self.revision)
    }
}
