//! The candidate: a layer of changes over `running`, as it was when they were begun. Those that were begun under a
//! lock go with it.

use std::time::Duration;

use spinney_core::backend::Revision;
use spinney_core::read::Marks;
use spinney_core::read::marks;
use spinney_core::view::View;
use spinney_core::{Error, ErrorKind, Result, Visitor};

use super::notes::{self, Changes};
use super::{Datastore, Datastores, confirm};
use crate::Transaction;
use crate::layers::{Changed, Fold, LayerConflict, LayerEdit, Prefer, Stack};
use crate::snapshot::Snapshot;
use crate::store::Committed;

/// How the candidate becomes `running`.
#[derive(Clone, Debug, Default)]
pub struct CandidateCommit {
    /// What to do with places that `running` has changed, too, since the candidate was begun.
    pub prefer: Prefer,
    /// Roll back by itself when nobody confirms so soon.
    pub confirmed: Option<Duration>,
    /// The name of the confirmed commit; who goes on with it names it again.
    pub name: String,
}

/// What the candidate is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CandidateState {
    /// It shows `running`.
    Unchanged,
    /// It has changes over `running` as it was at a revision.
    Changed(Revision),
}

/// What is known of the candidate in a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noted {
    /// It shows `running`.
    Unchanged,
    /// It has changes.
    Changed(Changes),
    /// It has changes that were made under a lock which is gone: it shows `running`, and who comes next removes them.
    Void,
}

impl Noted {
    /// The revision of `running` that it rests on, when it has changes.
    pub fn base(self) -> Option<Revision> {
        match self {
            Noted::Changed(changes) => Some(changes.base),
            Noted::Unchanged | Noted::Void => None,
        }
    }
}

impl Datastores {
    /// Whether the candidate has changes, and on which revision they rest.
    ///
    /// # Errors
    /// As [`crate::Store::read`].
    pub fn candidate(&self) -> Result<CandidateState> {
        self.require_all()?;
        let base = self.noted(&self.store.read()?)?.base();
        Ok(base.map_or(CandidateState::Unchanged, CandidateState::Changed))
    }

    pub(super) fn candidate_stack(&self) -> Result<Stack> {
        self.candidate_over(self.noted(&self.store.read()?)?)
    }

    /// What the candidate is in a state. Who may see nothing of it is not told that it was begun.
    pub(super) fn noted(&self, state: &Snapshot) -> Result<Noted> {
        if !state.may_show(&Datastore::Candidate.path())? {
            return Ok(Noted::Unchanged);
        }
        // Who reads it need not be shown the note.
        let view = state.view();
        self.noted_in(notes::candidate(&view)?, &view)
    }

    /// What it is in a transaction, which has not changed it yet.
    fn noted_before(&self, transaction: &Transaction<'_>) -> Result<Noted> {
        self.noted_in(notes::candidate(transaction)?, &transaction.view_before())
    }

    fn noted_in(&self, changes: Option<Changes>, view: &View<'_>) -> Result<Noted> {
        Ok(match changes {
            None => Noted::Unchanged,
            Some(Changes { lock: Some(lock), .. })
                if !self.store.locks_and_owners().is_held(lock, view)? =>
            {
                Noted::Void
            }
            Some(changes) => Noted::Changed(changes),
        })
    }

    /// The candidate's changes over `running`, the newest or that of a revision.
    pub(super) fn candidate_over(&self, noted: Noted) -> Result<Stack> {
        let changes = self.layer(Datastore::Candidate)?;
        let running = self.layer(Datastore::Running)?;
        Stack::new(match noted {
            Noted::Unchanged => vec![changes, running],
            Noted::Changed(Changes { base, .. }) => vec![changes, running.at(base)],
            Noted::Void => vec![running],
        })
    }

    pub(super) fn edit_candidate<T>(
        &self,
        mut edit: impl FnMut(&mut LayerEdit<'_, '_>) -> Result<T>,
    ) -> Result<Committed<T>> {
        self.write(|transaction| {
            let mut noted = self.noted_before(transaction)?;
            let lock = self.lock_of_candidate(transaction)?;
            match noted {
                Noted::Changed(Changes { lock: begun, .. }) if lock.is_some() && lock != begun => {
                    return Err(Error::busy(
                        "the candidate has changes that were made before it was locked; commit or discard them",
                    ));
                }
                Noted::Changed(_) => {}
                Noted::Unchanged => self.begin_candidate(transaction)?,
                Noted::Void => {
                    self.forget_candidate(transaction)?;
                    self.begin_candidate(transaction)?;
                }
            }
            // What is in the transaction is what was there when it began.
            if noted.base().is_none_or(|base| base == transaction.base()) {
                noted = Noted::Unchanged;
            }
            let stack = self.candidate_over(noted)?;
            let mut layer = stack
                .edit(Datastore::Candidate.name(), transaction)
                .map_err(|error| base_is_gone(error, noted.base()))?;
            edit(&mut layer)
        })
    }

    /// The lock that the writer has on the candidate.
    fn lock_of_candidate(&self, transaction: &Transaction<'_>) -> Result<Option<u64>> {
        self.store
            .locks_and_owners()
            .own_at(&Datastore::Candidate.path(), &transaction.view_before())
    }

    /// Notes that the candidate rests on what `running` is now.
    fn begin_candidate(&self, transaction: &mut Transaction<'_>) -> Result<()> {
        let lock = self.lock_of_candidate(transaction)?;
        notes::set_candidate(transaction, Some(Changes { base: transaction.base(), lock }))
    }

    /// Notes that the candidate's tree was replaced as a whole.
    pub(super) fn begin_replacement(&self, transaction: &mut Transaction<'_>) -> Result<()> {
        let path = Datastore::Candidate.path();
        self.begin_candidate(transaction)?;
        match transaction.exists(&path)? {
            true => {
                let marks = Marks::REPLACES.to_string();
                transaction.set_meta(&path, marks::NAME, Some(&marks))
            }
            false => transaction.set_with(&path, crate::Existing::Any, |visitor| {
                visitor.meta(marks::NAME, &Marks::DELETED.to_string())?;
                visitor.scalar(spinney_core::Scalar::Null)
            }),
        }
    }

    pub(super) fn forget_candidate(&self, transaction: &mut Transaction<'_>) -> Result<()> {
        transaction.remove(&Datastore::Candidate.path())?;
        notes::set_candidate(transaction, None)
    }

    /// Forgets the candidate's changes; it shows `running` again.
    ///
    /// # Errors
    /// Those of [`crate::Store::write`].
    ///
    /// # Complexity
    /// O(1): what it held is reclaimed in the background.
    pub fn discard(&self) -> Result<Committed<()>> {
        self.write(|transaction| self.forget_candidate(transaction))
    }

    /// The places that both the candidate and, since it was begun, `running` have changed, to different
    /// ends, with all three states.
    ///
    /// # Errors
    /// `Conflict` when the candidate's base is not kept any more; as [`crate::Store::read`].
    ///
    /// # Complexity
    /// That of the candidate's changes, and of the commits since its base.
    pub fn conflicts(&self) -> Result<Vec<LayerConflict>> {
        self.require_all()?;
        let state = self.store.read()?;
        match self.noted(&state)?.base() {
            None => Ok(Vec::new()),
            Some(base) => self.conflicts_since(&state, base),
        }
    }

    fn conflicts_since(&self, state: &Snapshot, base: Revision) -> Result<Vec<LayerConflict>> {
        self.fold(state, base, |fold| {
            let before = self.store.at(base).map_err(|error| base_is_gone(error, Some(base)))?;
            fold.conflicts(&before)
        })
    }

    /// Does something with the candidate's changes and those of `running` since a revision.
    fn fold<T>(
        &self,
        state: &Snapshot,
        base: Revision,
        run: impl FnOnce(&Fold<'_>) -> Result<T>,
    ) -> Result<T> {
        let (layer, lower) = (Datastore::Candidate.path(), Datastore::Running.path());
        let changed =
            Changed::below(state, &lower, base).map_err(|error| base_is_gone(error, Some(base)))?;
        run(&Fold { state, layer: &layer, lower: &lower, changed: &changed })
    }

    /// Makes `running` what the candidate is, and the candidate show `running` again, as one commit.
    ///
    /// # Errors
    /// `Conflict` naming places that `running` has changed, too; `Invalid` when the schema of `running`
    /// does not allow it; `Busy` while a confirmed commit of another name waits; then nothing has changed.
    ///
    /// # Complexity
    /// That of the candidate's changes, and of the commits since its base.
    pub fn commit(&self, options: &CandidateCommit) -> Result<Committed<()>> {
        let committed = self.write(|transaction| {
            self.fold_into(transaction, options.prefer)?;
            confirm::begin(transaction, options)?;
            self.forget_candidate(transaction)
        })?;
        self.store.shared().confirms.look();
        Ok(committed)
    }

    fn fold_into(&self, transaction: &mut Transaction<'_>, prefer: Prefer) -> Result<()> {
        let Some(base) = self.noted_before(transaction)?.base() else { return Ok(()) };
        let state = self.state_of(transaction)?;
        self.fold(&state, base, |fold| fold.apply(transaction, prefer))
    }

    /// The state that a transaction began with.
    pub(super) fn state_of(&self, transaction: &Transaction<'_>) -> Result<Snapshot> {
        let state = self.store.read()?;
        match state.revision()? == transaction.base() {
            true => Ok(state),
            false => self.store.at(transaction.base()),
        }
    }

    /// Tells whether the candidate could become `running`, as a commit would judge it.
    ///
    /// # Errors
    /// As [`Datastores::commit`].
    ///
    /// # Complexity
    /// As [`Datastores::commit`].
    pub fn validate(&self) -> Result<()> {
        self.require_all()?;
        self.store.validate(|transaction| self.fold_into(transaction, Prefer::Neither))
    }

    /// Makes the candidate rest on `running` as it is now.
    ///
    /// # Errors
    /// `Conflict` naming places that both have changed, unless one is preferred.
    ///
    /// # Complexity
    /// As [`Datastores::commit`].
    pub fn rebase(&self, prefer: Prefer) -> Result<Committed<()>> {
        self.write(|transaction| {
            let Noted::Changed(changes) = self.noted_before(transaction)? else { return Ok(()) };
            if prefer != Prefer::Layer {
                let conflicts = self.conflicts_since(&self.state_of(transaction)?, changes.base)?;
                if prefer == Prefer::Neither {
                    crate::layers::refuse_conflicts(conflicts.iter().map(|found| &found.path))?;
                }
                let stack = self.candidate_over(Noted::Unchanged)?;
                let mut layer = stack.edit(Datastore::Candidate.name(), transaction)?;
                for conflict in &conflicts {
                    layer.reset(&conflict.path)?;
                }
            }
            notes::set_candidate(transaction, Some(Changes { base: transaction.base(), ..changes }))
        })
    }
}

/// Makes the candidate of another store, which was copied to an empty one in this transaction, rest on what was copied
/// with it: revisions of the other store are not of this one.
///
/// # Errors
/// Those of reading and writing.
pub(crate) fn carry_candidate(transaction: &mut Transaction<'_>, from: &Snapshot) -> Result<()> {
    carry(transaction, notes::candidate(from)?)
}

/// The same of a candidate that this transaction has brought with a whole store, as an export has it.
pub(crate) fn carry_imported(transaction: &mut Transaction<'_>) -> Result<()> {
    let noted = notes::candidate(transaction).map_err(|error| match error.kind() {
        // It is what somebody has written, and not yet stored.
        ErrorKind::Corrupted => Error::invalid_input(error.to_string()),
        _ => error,
    })?;
    carry(transaction, noted)
}

fn carry(transaction: &mut Transaction<'_>, noted: Option<Changes>) -> Result<()> {
    match noted {
        None => Ok(()),
        Some(_) => {
            let base = transaction.base() + 1;
            notes::set_candidate(transaction, Some(Changes { base, lock: None }))
        }
    }
}

/// The error of reading the state that a candidate rests on.
pub(super) fn base_is_gone(error: Error, base: Option<Revision>) -> Error {
    match (error.kind(), base) {
        (ErrorKind::NotFound, Some(base)) => Error::conflict(format!(
            "the candidate rests on revision {base}, which is not kept any more; rebase it, preferring \
             the candidate, or discard it"
        )),
        _ => error,
    }
}
