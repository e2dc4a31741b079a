//! Undoing commits, one of them or all behind a revision, and what some of them together have changed.

use spinney_core::backend::Revision;
use spinney_core::diff::Diff;
use spinney_core::difference::Found;
use spinney_core::history::{self, Entry, History};
use spinney_core::overlay::Overlay;
use spinney_core::transaction::{Preview, Transaction};
use spinney_core::view::View;
use spinney_core::{Error, Result};

use crate::access::Right;
use crate::owners;
use crate::snapshot::Snapshot;
use crate::store::{Committed, Store};

/// What leads from one state of a store to a later one.
pub struct Between {
    /// The changes of all commits between them, as if of one.
    pub diff: Diff,
    /// The earlier state.
    pub before: Snapshot,
    /// The later state, with the containers that the diff refers to.
    pub after: Snapshot,
}

impl Between {
    /// What leads back.
    pub fn inverted(self) -> Between {
        Between { diff: self.diff.invert(), before: self.after, after: self.before }
    }

    /// Hands over the changes, in an order in which each position holds for those behind it.
    ///
    /// # Errors
    /// Those of reading, and of `found`.
    pub fn changes(&self, found: &mut Found<'_>) -> Result<()> {
        self.diff.changes(&self.before.view(), &self.after.view(), found)
    }
}

impl Store {
    /// What the commits behind one revision, up to another, have changed together.
    ///
    /// # Errors
    /// `InvalidInput` when the second revision is the earlier one, `NotFound` when a revision is not
    /// kept.
    ///
    /// # Complexity
    /// That of what these commits changed, and of what changed since.
    pub fn between(&self, from: Revision, to: Revision) -> Result<Between> {
        if from > to {
            return Err(Error::invalid_input(format!("revision {to} is before {from}")));
        }
        // To look back from, and for the two states to lie over.
        let [newest, under_before, under_start] = self.same_states()?;
        let last = newest.revision()?;
        if to > last {
            return Err(history::in_future(to, last));
        }
        let mut commits = Vec::new();
        let mut start = Overlay::default();
        History::of(&*newest).undo_to(from, |undone, entry, before| {
            let after = std::mem::replace(&mut start, before);
            if undone <= to {
                commits.push((Entry::decode(entry)?.diff, after));
            }
            Ok(())
        })?;
        let key_len_max = self.capabilities().key_len_max;
        let before = start.clone().over(under_before);
        let start = Box::new(start.over(under_start));
        let mut transaction = Transaction::detached(self.backend(), start)?;
        let sight = self.sight(&View { snapshot: &*newest, key_len_max })?;
        let mut later = Overlay::default().over(newest);
        for (diff, after) in commits.into_iter().rev() {
            *later.overlay_mut() = after;
            let view = View { snapshot: &later, key_len_max };
            transaction.apply(&*diff.contained(&view)?)?;
        }
        let Preview { mut diff, state: after } = transaction.preview()?;
        let seen = |state| self.snapshot_of(state).seen_with(sight.clone());
        let (before, after) = (seen(Box::new(before)), seen(Box::new(after)));
        if let Some(sight) = &sight {
            diff = sight.permissions.sieve(diff, &(before.view(), after.view()))?;
        }
        Ok(Between { diff: self.below_base(diff), before, after })
    }

    /// Undoes what one commit did, as a commit of its own; what came after it stays.
    ///
    /// # Errors
    /// `Conflict` when something that the commit changed has changed since, `NotFound` when the
    /// revision is not kept any more; `Denied` to who may not write everything; those of [`Store::write`].
    ///
    /// # Complexity
    /// That of what the commit changed, and of what changed since.
    pub fn revert(&self, revision: Revision) -> Result<Committed<()>> {
        self.require("", Right::Write)?;
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
            transaction.apply_exactly(&self.content_of(expanded.invert()))
        })
    }

    /// Makes the store what it was at a revision, as one commit.
    ///
    /// # Errors
    /// `NotFound` when the revision is not kept any more; `Denied` to who may not write everything; those of
    /// [`Store::write`].
    ///
    /// # Complexity
    /// That of what changed since.
    pub fn restore(&self, revision: Revision) -> Result<Committed<()>> {
        self.require("", Right::Write)?;
        self.write(|transaction| {
            self.restore_in(transaction, "", revision)?;
            transaction.set_message(&format!("restore {revision}"))
        })
    }

    /// Makes what is at a path what it was at a revision, in a transaction on the newest state.
    pub(crate) fn restore_in(
        &self,
        transaction: &mut Transaction<'_>,
        path: &str,
        revision: Revision,
    ) -> Result<()> {
        let newest = self.backend().snapshot()?;
        let key_len_max = self.capabilities().key_len_max;
        let place = [self.base_path(), path].concat();
        let mut after = Overlay::default();
        History::of(&*newest).undo_to(revision, |_, entry, before| {
            let states = (
                before.clone().over(self.backend().snapshot()?),
                std::mem::replace(&mut after, before).over(self.backend().snapshot()?),
            );
            let mut diff = Entry::decode(entry)?.diff;
            diff.retain_concerning(&place);
            let expanded = diff.expand(
                &View { snapshot: &states.0, key_len_max },
                &View { snapshot: &states.1, key_len_max },
            )?;
            transaction.apply(&self.content_of(expanded.invert()))
        })
    }

    /// What a diff from the store's root changes of the content, as one from where paths of this store
    /// begin. Who holds something is not undone.
    fn content_of(&self, mut diff: Diff) -> Diff {
        diff.ops.retain(|op| owners::reserved(op).is_none());
        self.below_base(diff)
    }

    /// A diff from the store's root as one from where paths of this store begin.
    fn below_base(&self, mut diff: Diff) -> Diff {
        diff.begin_below(self.base_path());
        diff
    }
}
