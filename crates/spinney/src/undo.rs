//! Undoing commits: one of them, or all behind a revision.

use spinney_core::backend::Revision;
use spinney_core::diff::Diff;
use spinney_core::history::{Entry, History};
use spinney_core::overlay::Overlay;
use spinney_core::view::View;
use spinney_core::{Error, Result};

use crate::store::{Committed, Store};

impl Store {
    /// Undoes what one commit did, as a commit of its own; what came after it stays.
    ///
    /// # Errors
    /// `Conflict` when something that the commit changed has changed since, `NotFound` when the
    /// revision is not kept any more; those of [`Store::write`].
    ///
    /// # Complexity
    /// That of what the commit changed, and of what changed since.
    pub fn revert(&self, revision: Revision) -> Result<Committed<()>> {
        if revision == 0 {
            return Err(Error::invalid_input("revision 0 is the empty store; no commit made it"));
        }
        self.write(|transaction| {
            let newest = self.backend().snapshot()?;
            let mut undo = None;
            let mut after = Overlay::default();
            History::of(&*newest).undo_to(revision - 1, |undone, entry, before| {
                if undone == revision {
                    let diff = Entry::decode(entry)?.diff;
                    undo = Some((diff, std::mem::take(&mut after), before));
                } else {
                    after = before;
                }
                Ok(())
            })?;
            let Some((diff, after, before)) = undo else {
                return Err(Error::not_found(format!("revision {revision} does not exist yet")));
            };
            let (after, before) =
                (after.over(self.backend().snapshot()?), before.over(self.backend().snapshot()?));
            let key_len_max = self.capabilities().key_len_max;
            let expanded = diff.expand(
                &View { snapshot: &before, key_len_max },
                &View { snapshot: &after, key_len_max },
            )?;
            transaction.set_message(&format!("revert {revision}"))?;
            transaction.apply_exactly(&self.below_base(expanded.invert()))
        })
    }

    /// Makes the store what it was at a revision, as one commit.
    ///
    /// # Errors
    /// `NotFound` when the revision is not kept any more; those of [`Store::write`].
    ///
    /// # Complexity
    /// That of what changed since.
    pub fn restore(&self, revision: Revision) -> Result<Committed<()>> {
        self.write(|transaction| {
            let newest = self.backend().snapshot()?;
            let key_len_max = self.capabilities().key_len_max;
            let mut after = Overlay::default();
            History::of(&*newest).undo_to(revision, |_, entry, before| {
                let states = (
                    before.clone().over(self.backend().snapshot()?),
                    std::mem::replace(&mut after, before).over(self.backend().snapshot()?),
                );
                let expanded = Entry::decode(entry)?.diff.expand(
                    &View { snapshot: &states.0, key_len_max },
                    &View { snapshot: &states.1, key_len_max },
                )?;
                transaction.apply(&self.below_base(expanded.invert()))
            })?;
            transaction.set_message(&format!("restore {revision}"))
        })
    }

    /// A diff from the store's root as one from where paths of this store begin.
    fn below_base(&self, mut diff: Diff) -> Diff {
        diff.begin_below(self.base_len());
        diff
    }
}
