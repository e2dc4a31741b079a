//! Following the tree that a stack is read as, from commit to commit.

use spinney_core::backend::{self, Revision};
use spinney_core::diff::Diff;
use spinney_core::history::{Entry, History};
use spinney_core::overlay::Overlay;
use spinney_core::view::View;
use spinney_core::{Error, Result};

use super::finding::{Finding, Found, Moved};
use super::{Layer, Stack};
use crate::feed::Change;
use crate::store::Store;

/// A stack whose layers are in one store, at each state of that.
#[derive(Clone)]
pub(crate) struct Following {
    store: Store,
    finding: Finding,
}

impl Stack {
    /// The stack at each state of its store.
    ///
    /// # Errors
    /// `Unsupported` when its layers are in several stores, in one that keeps its trees apart, or in the past; `Denied`
    /// to who may read a layer in part.
    pub(crate) fn following(&self) -> Result<Following> {
        let store = &self.layers[0].store;
        if store.forest().is_some() {
            return Err(crate::forest::refusal());
        }
        for layer in &self.layers {
            let why = match (layer.store.is_same(store), layer.at) {
                (true, None) => continue,
                (true, Some(_)) => "is a state of the past",
                (false, _) => "is in a store of its own, whose commits have other revisions",
            };
            return Err(Error::unsupported(format!(
                "the layer `{}` {why}; follow each layer by itself",
                layer.name
            )));
        }
        let finding = self.finding.clone().unwrap_or_else(|| {
            let fixed = |layer: &Layer| (layer.name.clone(), layer.path.clone());
            Finding::fixed(self.layers.iter().map(fixed).collect())
        });
        let following = Following { store: store.clone(), finding };
        following.found(&store.read()?.view())?;
        Ok(following)
    }
}

impl Following {
    pub fn store(&self) -> &Store {
        &self.store
    }

    pub fn finding(&self) -> &Finding {
        &self.finding
    }

    /// What a commit, given by its diff from the store's root, changes in the tree that the layers are read as.
    ///
    /// # Errors
    /// As [`Moved::of`] and [`Found::seen`], and those of finding the layers.
    pub fn moved(&self, diff: &Diff, before: View<'_>, after: View<'_>) -> Result<Moved> {
        Moved::of(diff, (before, self.found(&before)?), (after, self.found(&after)?))
    }

    /// The layers in a state, as far as the rules of now show them to whoever follows.
    fn found(&self, view: &View<'_>) -> Result<Found> {
        let found = self.finding.of(view, self.store.base_path())?;
        match self.store.seat() {
            None => Ok(found),
            Some(_) => found.seen(&self.store.read()?),
        }
    }

    /// The commits behind one revision, up to another, in order.
    ///
    /// # Errors
    /// `NotFound` when the log does not reach back so far; those of the backend.
    ///
    /// # Complexity
    /// That of what was committed since.
    pub fn commits(&self, from: Revision, upto: Revision) -> Result<Commits<'_>> {
        self.commits_in(self.store.same_states()?, from, upto)
    }

    /// All commits that the log has, in order.
    ///
    /// # Errors
    /// Those of the backend.
    ///
    /// # Complexity
    /// That of the log.
    pub fn all_commits(&self) -> Result<Commits<'_>> {
        let states = self.store.same_states()?;
        let [newest, _] = &states;
        let upto = newest.revision()?;
        let from = History::of(&**newest).first()?.map_or(upto, |first| first - 1);
        self.commits_in(states, from, upto)
    }

    fn commits_in(
        &self,
        [before, after]: [Box<dyn backend::Snapshot>; 2],
        from: Revision,
        upto: Revision,
    ) -> Result<Commits<'_>> {
        let mut found = Vec::new();
        let mut newer = Overlay::default();
        History::of(&*before).undo_to(from, |revision, entry, older| {
            let after = std::mem::replace(&mut newer, older);
            if revision <= upto {
                let (entry, before) = (Entry::decode(entry)?, newer.clone());
                found.push(Commit { revision, entry, before, after });
            }
            Ok(())
        })?;
        found.reverse();
        Ok(Commits { of: self, found: found.into(), states: Some((before, after)) })
    }
}

/// A commit, with what makes the states before and after it of the newest.
struct Commit {
    revision: Revision,
    entry: Entry,
    before: Overlay,
    after: Overlay,
}

/// Commits, and what each of them changes in the tree that layers are read as.
pub(crate) struct Commits<'f> {
    of: &'f Following,
    found: std::collections::VecDeque<Commit>,
    /// The newest state, twice; nothing behind an error.
    states: Option<(Box<dyn backend::Snapshot>, Box<dyn backend::Snapshot>)>,
}

impl Commits<'_> {
    fn change(&mut self, commit: Commit) -> Result<Change> {
        let Commit { revision, entry, before, after } = commit;
        let Some((one, other)) = self.states.take() else {
            return Err(Error::closed("a commit before this one could not be read"));
        };
        let (before, after) = (before.over(one), after.over(other));
        let key_len_max = self.of.store.capabilities().key_len_max;
        let moved = self.of.moved(
            &entry.diff,
            View { snapshot: &before, key_len_max },
            View { snapshot: &after, key_len_max },
        )?;
        self.states = Some((before.into_base(), after.into_base()));
        Ok(Change { revision, note: entry.note, diff: moved.diff })
    }
}

impl Iterator for Commits<'_> {
    type Item = Result<Change>;

    fn next(&mut self) -> Option<Result<Change>> {
        let commit = self.found.pop_front()?;
        Some(self.change(commit))
    }
}

impl DoubleEndedIterator for Commits<'_> {
    fn next_back(&mut self) -> Option<Result<Change>> {
        let commit = self.found.pop_back()?;
        Some(self.change(commit))
    }
}
