//! A write, from the guard to the answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use spinney_core::attempts::if_newest;
use spinney_core::backend::WriteGuard;
use spinney_core::build::NewScratch;
use spinney_core::index::Derived;
use spinney_core::scratch::{MemoryScratch, Scratch};
use spinney_core::transaction::{Commit, Proposed, Review, Transaction};
use spinney_core::{Error, ErrorKind, Result};

use super::{Committed, Durability, LOOK_AT_LOG_EVERY, Shared, now_ms};
use crate::access::{self, Right, Seat, Sight};
use crate::datastores;
use crate::file_scratch::FileScratch;
use crate::locks::{self, Passes};
use crate::owners::RESERVED;
#[cfg(feature = "schema")]
use crate::schemas;
use crate::subscribers::Questions;

/// A commit that was made.
struct Passed<T> {
    value: T,
    commit: Commit,
    /// Locks of dead owners that it has met.
    void_locks: Vec<locks::Void>,
    /// What its writer may see of it.
    sight: Option<Sight>,
}

/// What a try of a write holds from when it knows its store until the commit.
pub(crate) struct Attempt<'s> {
    durability: Durability,
    guard: Box<dyn WriteGuard + 's>,
    questions: Option<Questions>,
    /// What does not keep the write from being made.
    passes: Passes,
    /// Who writes; the store's owner, without.
    seat: Option<&'s Seat>,
}

impl Shared {
    /// One try of a write; `None` when another writer came first.
    pub fn try_write<T>(
        &self,
        seat: Option<&Arc<Seat>>,
        durability: Durability,
        conflicts: u32,
        edit: &mut impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<Option<Committed<T>>> {
        let new_scratch = || self.new_scratch();
        let seat = seat.map(|seat| &**seat).filter(|_| self.origin.base_path.is_empty());
        let attempt = Attempt { seat, ..self.attempt(durability, conflicts)? };
        let edited = self.edited(seat, &new_scratch, edit);
        self.finish(attempt, &new_scratch, edited, edit)
    }

    /// As [`Shared::try_write`], of a write that something does not keep from being made.
    pub fn try_passing<T>(
        &self,
        passes: Passes,
        durability: Durability,
        conflicts: u32,
        edit: &mut impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<Option<Committed<T>>> {
        let new_scratch = || self.new_scratch();
        let mut attempt = Attempt { passes, ..self.attempt(durability, conflicts)? };
        if passes == Passes::Everything {
            attempt.questions.iter_mut().for_each(Questions::overrule);
        }
        let edited = self.edited(None, &new_scratch, edit);
        self.finish(attempt, &new_scratch, edited, edit)
    }

    /// Begins a try.
    pub fn attempt(&self, durability: Durability, conflicts: u32) -> Result<Attempt<'_>> {
        if durability == Durability::Durable {
            self.backend.check_sync()?;
        }
        let guard = self.backend.write_guard(conflicts)?;
        let questions = Questions::new(&self.subscribers, &self.origin)?;
        Ok(Attempt { durability, guard, questions, passes: Passes::Nothing, seat: None })
    }

    /// A transaction on the newest state; the try has begun.
    pub fn begin<'t>(&'t self, new_scratch: &'t NewScratch<'t>) -> Result<Transaction<'t>> {
        let mut transaction = Transaction::begin(&*self.backend)?;
        transaction.set_scratch(new_scratch);
        transaction.set_time_ms(now_ms());
        transaction.set_author(&self.note.author)?;
        transaction.set_message(&self.note.message)?;
        transaction.set_revisions_max(self.revisions_max);
        transaction.set_base_path(self.origin.base_path.clone());
        transaction.keep_trees(RESERVED);
        if let Some(tree) = &self.place.tree {
            transaction.keep_to_tree(tree);
        }
        Ok(transaction)
    }

    fn edited<'t, T>(
        &'t self,
        seat: Option<&Seat>,
        new_scratch: &'t NewScratch<'t>,
        edit: &mut impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<(T, Transaction<'t>)> {
        let mut transaction = self.begin(new_scratch)?;
        if let Some(seat) = seat {
            transaction.set_permissions(seat.permissions(&transaction.view_before())?);
        }
        let value = edit(&mut transaction)?;
        if transaction.replaces_root() {
            transaction.at_root(datastores::carry_imported)?;
        }
        Ok((value, transaction))
    }

    /// Commits what was edited in a try, and ends the try.
    pub fn finish<'t, T>(
        &'t self,
        attempt: Attempt<'_>,
        new_scratch: &'t NewScratch<'t>,
        edited: Result<(T, Transaction<'t>)>,
        edit: &mut impl FnMut(&mut Transaction<'_>) -> Result<T>,
    ) -> Result<Option<Committed<T>>> {
        let Attempt { durability, guard, mut questions, passes, seat } = attempt;
        let mut committed = edited.and_then(|edited| {
            self.commit(edited, new_scratch, edit, (passes, seat), questions.as_mut())
        });
        // What needed no commit may have been decided by what was not the newest state.
        let is_unconfirmed = match &committed {
            Ok(Some(Passed { commit, .. })) => commit.diff.is_empty(),
            Ok(None) => false,
            Err(_) => true,
        };
        if is_unconfirmed {
            committed = if_newest(&*self.backend, committed).map(Option::flatten);
        }
        drop(guard);
        let mut void_locks = Vec::new();
        let settled = match committed {
            Ok(Some(Passed { value, commit, void_locks: met, sight })) => {
                void_locks = met;
                self.settle(durability, value, commit, sight).map(Some)
            }
            Ok(None) => Ok(None),
            Err(error) => Err(error),
        };
        if let Some(questions) = questions {
            match &settled {
                Ok(Some(committed)) => questions.committed(committed.revision),
                Ok(None) => questions.given_up("another writer came first"),
                Err(error) => questions.given_up(&error.to_string()),
            }
        }
        self.remove_locks(&void_locks);
        settled
    }

    /// From the edits to the batch; `None` when another writer came first.
    fn commit<'t, T>(
        &'t self,
        edited: (T, Transaction<'t>),
        new_scratch: &'t NewScratch<'t>,
        edit: &mut impl FnMut(&mut Transaction<'_>) -> Result<T>,
        (passes, seat): (Passes, Option<&Seat>),
        mut questions: Option<&mut Questions>,
    ) -> Result<Option<Passed<T>>> {
        let (mut value, mut transaction) = edited;
        loop {
            // From here on it is not the writer who edits.
            let sight = transaction
                .take_permissions()
                .map(|permissions| Sight { permissions, backend: Arc::clone(&self.backend) });
            if let Some(questions) = &mut questions {
                questions.amend(&mut transaction).map_err(|error| discreet(&sight, error))?;
            }
            match self.reviewed(transaction, passes, &sight, questions.as_deref_mut()) {
                Ok((commit, void_locks)) => {
                    return Ok(Some(Passed { value, commit, void_locks, sight }));
                }
                Err(_) if questions.as_ref().is_some_and(|asks| asks.is_amended()) => {}
                Err(error) if error.kind() == ErrorKind::Conflict => return Ok(None),
                Err(error) => return Err(error),
            }
            (value, transaction) = self.edited(seat, new_scratch, edit)?;
        }
    }

    /// Has a commit looked at, by locks, schemas and then `last`, and makes it. Tells which locks it met
    /// whose owners are dead.
    fn reviewed(
        &self,
        mut transaction: Transaction<'_>,
        passes: Passes,
        sight: &Option<Sight>,
        last: Option<&mut impl Review>,
    ) -> Result<(Commit, Vec<locks::Void>)> {
        let mut reviewers: Vec<&mut dyn Review> = Vec::new();
        let permissions = sight.as_ref().map(|sight| &*sight.permissions);
        // What asks for reviewers lies in trees whose names begin so.
        let has_own_trees = transaction.may_know_trees(".")?;
        if has_own_trees
            && transaction.trims_log()
            && transaction.knows_tree(datastores::UNCONFIRMED_NAME)?
        {
            let first = transaction.at_root(|transaction| datastores::first_needed(transaction))?;
            transaction.keep_log_from(first);
        }
        let mut ruled = access::Guard;
        if has_own_trees && transaction.knows_tree(access::NAME)? {
            reviewers.push(&mut ruled);
        }
        let mut locked =
            locks::Guard::new(&self.locks, &self.origin.base_path, passes, permissions);
        if has_own_trees && !passes.all_locks() && transaction.knows_tree(locks::NAME)? {
            reviewers.push(&mut locked);
        }
        #[cfg(feature = "schema")]
        let mut guard =
            schemas::Guard::new(&self.schemas, &self.origin.base_path, permissions, passes);
        #[cfg(feature = "schema")]
        if has_own_trees && transaction.knows_tree(schemas::NAME)? {
            reviewers.push(&mut guard);
        }
        #[cfg(not(feature = "schema"))]
        if has_own_trees && transaction.knows_tree(".schemas")? {
            return Err(Error::unsupported(
                "the store has schemas, and this build judges none; build it with the feature `schema`",
            ));
        }
        let mut last = last.map(|last| Discreet { last, sight });
        reviewers.extend(last.as_mut().map(|last| last as &mut dyn Review));
        let review = (!reviewers.is_empty()).then_some(&mut reviewers as &mut dyn Review);
        let commit = transaction.commit_reviewed(self.commit_id(), review)?;
        Ok((commit, locked.into_void()))
    }

    /// One try of an edit that is judged and then given up; `None` when another writer came first.
    pub fn try_validate(
        &self,
        seat: Option<&Arc<Seat>>,
        conflicts: u32,
        edit: &mut impl FnMut(&mut Transaction<'_>) -> Result<()>,
    ) -> Result<Option<()>> {
        let _guard = self.backend.write_guard(conflicts)?;
        let seat = seat.map(|seat| &**seat).filter(|_| self.origin.base_path.is_empty());
        if_newest(&*self.backend, self.judged(seat, edit))
    }

    fn judged(
        &self,
        seat: Option<&Seat>,
        edit: &mut impl FnMut(&mut Transaction<'_>) -> Result<()>,
    ) -> Result<()> {
        let new_scratch = || self.new_scratch();
        let ((), mut transaction) = self.edited(seat, &new_scratch, edit)?;
        let sight = transaction
            .take_permissions()
            .map(|permissions| Sight { permissions, backend: Arc::clone(&self.backend) });
        let mut end = GiveUp::default();
        let judged = self.reviewed(transaction, Passes::Nothing, &sight, Some(&mut end));
        if end.is_reached { Ok(()) } else { judged.map(drop) }
    }

    /// Removes the locks of dead owners that a commit has met, as far as nobody else does.
    fn remove_locks(&self, void: &[locks::Void]) {
        if void.is_empty() {
            return;
        }
        let mut remove = |transaction: &mut Transaction<'_>| {
            transaction.set_message("remove what dead owners have left")?;
            transaction.at_root(|transaction| locks::remove_void(transaction, void))
        };
        // What is left is met, and removed, again.
        let _ = self.try_write(None, Durability::Process, 0, &mut remove);
    }

    /// What comes after a commit, without the guard.
    fn settle<T>(
        &self,
        durability: Durability,
        value: T,
        mut commit: Commit,
        sight: Option<Sight>,
    ) -> Result<Committed<T>> {
        let has_changed = !commit.diff.is_empty();
        commit.diff.begin_below(&self.origin.base_path);
        if has_changed {
            match durability {
                Durability::Durable => self.backend.sync(commit.revision)?,
                Durability::Process => self.backend.flush(commit.revision)?,
                Durability::None => {}
            }
        }
        if let Some(sight) = sight {
            // Others may have amended it.
            commit.diff = sight.of_diff(commit.diff, commit.revision)?;
        }
        if commit.reclaims || commit.revision.is_multiple_of(LOOK_AT_LOG_EVERY) {
            self.janitor.wake(&self.backend);
        }
        Ok(Committed { revision: commit.revision, diff: commit.diff, value })
    }

    fn commit_id(&self) -> u128 {
        let commit = self.commits.fetch_add(1, Ordering::Relaxed);
        u128::from(self.process) << 64 | u128::from(commit)
    }

    fn new_scratch(&self) -> Result<Box<dyn Scratch>> {
        match &self.place.scratch_dir {
            Some(dir) => Ok(Box::new(FileScratch::new(dir)?)),
            None => Ok(Box::new(MemoryScratch::default())),
        }
    }
}

/// Asks subscribers, and does not tell who may not see everything why they refuse.
struct Discreet<'r, R> {
    last: &'r mut R,
    sight: &'r Option<Sight>,
}

impl<R: Review> Review for Discreet<'_, R> {
    fn review(&mut self, proposed: &Proposed<'_>, derived: &mut Vec<Derived>) -> Result<()> {
        self.last.review(proposed, derived).map_err(|error| discreet(self.sight, error))
    }
}

fn discreet(sight: &Option<Sight>, error: Error) -> Error {
    match sight {
        Some(sight) if !sight.permissions.root().may_all(Right::Read) => {
            let text =
                "a subscriber of the store does not let it pass; ask who administers the store";
            Error::new(error.kind(), text)
        }
        _ => error,
    }
}

/// The last that looks at a commit which is not to be made.
#[derive(Default)]
struct GiveUp {
    is_reached: bool,
}

impl Review for GiveUp {
    fn review(&mut self, _: &Proposed<'_>, _: &mut Vec<Derived>) -> Result<()> {
        self.is_reached = true;
        Err(Error::closed("it was only to be judged"))
    }
}
