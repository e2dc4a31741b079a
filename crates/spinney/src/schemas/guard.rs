//! Judges commits by the schemas of the store, and keeps their indexes.

use spinney_core::access::{Permissions, Right};
use spinney_core::backend::TreeId;
use spinney_core::diff::Diff;
use spinney_core::difference::StackState;
use spinney_core::index::{Derived, Index};
use spinney_core::read::{Merged, Node, Stored};
use spinney_core::transaction::{Proposed, Review};
use spinney_core::view::{Slot, View};
use spinney_core::{Error, ErrorKind, Result, path};
use spinney_schema::{Changes, Document, Report, Schema};

use super::attached::{Attached, Cache, read};
use super::{Place, TREE};
use crate::layers::{Moved, StackId};
use crate::locks::Passes;

/// Looks at one commit.
pub struct Guard<'c> {
    cache: &'c Cache,
    /// Where the paths of users begin.
    base: &'c str,
    /// What the writer may do; everything, without.
    permissions: Option<&'c Permissions>,
    /// Whether the commit is made whatever is found.
    passes: Passes,
}

impl<'c> Guard<'c> {
    /// One that knows the schemas that were used last.
    pub fn new(
        cache: &'c Cache,
        base: &'c str,
        permissions: Option<&'c Permissions>,
        passes: Passes,
    ) -> Guard<'c> {
        Guard { cache, base, permissions, passes }
    }
}

impl Review for Guard<'_> {
    fn review(&mut self, proposed: &Proposed<'_>, derived: &mut Vec<Derived>) -> Result<()> {
        let states = States {
            diff: proposed.diff,
            before: State::of(proposed.before)?,
            after: State::of(proposed.after)?,
        };
        let before = self.cache.of(&proposed.before, &states.before.root)?;
        if Changes::of_diff(proposed.diff, TREE)?.root().is_none() {
            return before
                .iter()
                .try_for_each(|attached| self.judge(attached, false, &states, derived));
        }
        let after = read(&proposed.after)?;
        for old in before.iter() {
            if !stays(old, &after, proposed.diff)? {
                forget(old, &states.before, derived)?;
            }
        }
        for attached in after.iter() {
            let is_new = !stays(attached, &before, proposed.diff)?;
            self.judge(attached, is_new, &states, derived)?;
        }
        Ok(())
    }
}

impl Guard<'_> {
    fn judge(
        &self,
        attached: &Attached,
        is_new: bool,
        states: &States<'_>,
        derived: &mut Vec<Derived>,
    ) -> Result<()> {
        let Some(stack) = &attached.stack else {
            let place = &attached.place.path;
            let changes = Changes::of_diff(states.diff, place)?;
            let places = || Ok([states.before.find(place)?, states.after.find(place)?]);
            let report = judge(attached, is_new, &changes, states, places, derived)?;
            let may_read = |permissions: &Permissions| may_read_all(permissions, place);
            return self.end(report, may_read, || attached.place.shown(self.base));
        };
        let (before, after) = (states.before.view, states.after.view);
        let moved = stack.moved(states.diff, before, after, self.base)?;
        let changes = Changes::of_diff(&moved.diff, &attached.place.path)?;
        let places = || {
            let layers = [moved.before.state(before), moved.after.state(after)];
            Ok([
                states.before.find_of(&layers[0], attached)?,
                states.after.find_of(&layers[1], attached)?,
            ])
        };
        let report = judge(attached, is_new, &changes, states, places, derived)?;
        if report.is_valid() || (!is_new && states.is_an_end(&attached.place, &moved)?) {
            return Ok(());
        }
        let may_read = |permissions: &Permissions| may_read_all(permissions, "");
        self.end(report, may_read, || {
            let layers: Vec<_> =
                moved.after.concerned(states.diff).map(|(name, _)| format!("`{name}`")).collect();
            let place = attached.place.shown(self.base);
            match &*layers {
                [] => place,
                [layer] => format!("{place}, whose layer {layer} is changed,"),
                layers => format!("{place}, whose layers {} are changed,", layers.join(", ")),
            }
        })
    }

    /// Refuses what a schema does not allow, telling as much as the writer may know.
    fn end(
        &self,
        report: Report,
        may_read: impl FnOnce(&Permissions) -> Result<bool>,
        shown: impl FnOnce() -> String,
    ) -> Result<()> {
        if report.is_valid() || self.passes == Passes::Everything {
            return Ok(());
        }
        let text = match self.permissions.map(may_read).transpose()? {
            // An error is one line.
            None | Some(true) => format!(
                "the schema of {} does not allow it: {}",
                shown(),
                report.to_string().replace('\n', "; ")
            ),
            // It may be about something that this writer may not know of.
            Some(false) => "a schema does not allow the change; it is about more than you may read, so ask who \
                            administers it what is wrong"
                .to_owned(),
        };
        Err(Error::new(ErrorKind::Invalid, text))
    }
}

fn may_read_all(permissions: &Permissions, path: &str) -> Result<bool> {
    Ok(permissions.way(path, |_| Ok(false))?.may_all(Right::Read))
}

/// Whether a schema is among others as it is.
fn stays(attached: &Attached, others: &[Attached], diff: &Diff) -> Result<bool> {
    let place = format!("{TREE}/{}", attached.id);
    let is_there = others.iter().any(|other| other.id == attached.id);
    Ok(is_there && Changes::of_diff(diff, &place)?.root().is_none())
}

/// What a commit changes, and into what.
struct States<'p> {
    diff: &'p Diff,
    before: State<'p>,
    after: State<'p>,
}

impl States<'_> {
    /// Whether a commit only ends what somebody has pushed over a datastore. That happens to everybody, wanted
    /// or not, so it is not refused.
    fn is_an_end(&self, place: &Place, moved: &Moved) -> Result<bool> {
        if !matches!(place.stack, Some(StackId::Datastore(_))) {
            return Ok(false);
        }
        for (_, path) in moved.after.concerned(self.diff) {
            let is_there = |state: &State<'_>| Ok::<_, Error>(state.view.resolve(path)?.is_some());
            if is_there(&self.before)? || is_there(&self.after)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Judges what is at a place before and after.
fn judge<'s, N: Node>(
    attached: &Attached,
    is_new: bool,
    changes: &Changes,
    states: &States<'s>,
    places: impl FnOnce() -> Result<[Located<N>; 2]>,
    derived: &mut Vec<Derived>,
) -> Result<Report> {
    let everything = Changes::everything();
    let changes = if is_new { &everything } else { changes };
    if changes.root().is_none() {
        return Ok(Report::default());
    }
    let [before, after] = places()?;
    let before = if is_new { Located::default() } else { before };
    let (old, new) = (before.document.as_ref(), after.document.as_ref());
    let mut report = attached.schema.validate_change(old, new, changes)?;
    // An index goes with its tree.
    if attached.schema.needs_index()
        && let Some(tree) = after.tree
    {
        let is_fresh = before.tree != Some(tree);
        let entries = match is_fresh {
            true => attached.schema.entries(None, new, &everything)?,
            false => attached.schema.entries(old, new, changes)?,
        };
        let snapshot = states.before.view.snapshot;
        let mut index = match is_fresh {
            true => Index::new(snapshot, tree, attached.id),
            false => Index::of(snapshot, tree, attached.id),
        };
        report.append(entries.judge(&attached.schema, |key, change| index.change(key, change))?);
        derived.extend(index.finish()?);
    }
    Ok(report)
}

/// Removes the index of a schema that goes.
fn forget(old: &Attached, before: &State<'_>, derived: &mut Vec<Derived>) -> Result<()> {
    if !old.schema.needs_index() {
        return Ok(());
    }
    let tree = match &old.stack {
        None => before.find(&old.place.path)?.tree,
        Some(_) => before.tree(TREE)?,
    };
    let Some(tree) = tree else { return Ok(()) };
    derived.extend(Index::of(before.view.snapshot, tree, old.id).remove()?);
    Ok(())
}

/// What a path leads to, and the tree whose index knows it.
struct Located<N> {
    tree: Option<TreeId>,
    document: Option<Document<N>>,
}

impl<N> Default for Located<N> {
    fn default() -> Located<N> {
        Located { tree: None, document: None }
    }
}

/// A state, with its root found once for all schemas.
struct State<'s> {
    view: View<'s>,
    root: Slot<'s>,
}

impl<'s> State<'s> {
    fn of(view: View<'s>) -> Result<State<'s>> {
        Ok(State { view, root: view.root()? })
    }

    fn find(&self, path: &str) -> Result<Located<Stored<'s>>> {
        self.find_checked(path).map_err(|error| error.at(path::Display(path)))
    }

    fn find_checked(&self, path: &str) -> Result<Located<Stored<'s>>> {
        let end = path[1..].find('/').map_or(path.len(), |at| at + 1);
        let Some(top) = self.view.descend(self.root.clone(), &path[..end], 0, &mut None)? else {
            return Ok(Located::default());
        };
        let tree = Some(top.tree);
        let slot = self.view.descend(top, path, end, &mut None)?;
        let document = |slot| Document::new(Stored::new(self.view, slot)?);
        Ok(Located { tree, document: slot.map(document).transpose()? })
    }

    /// The same of layers read as one. They have no tree of their own, so the schemas' has their index.
    fn find_of(
        &self,
        layers: &StackState<'s>,
        attached: &Attached,
    ) -> Result<Located<Merged<Stored<'s>>>> {
        let path = &attached.place.path;
        let node = layers.node(path).map_err(|error| error.at(path::Display(path)))?;
        let document = node.map(Document::new).transpose()?;
        Ok(Located { tree: self.tree(TREE)?, document })
    }

    /// The tree of a name.
    fn tree(&self, path: &str) -> Result<Option<TreeId>> {
        Ok(self.view.descend(self.root.clone(), path, 0, &mut None)?.map(|slot| slot.tree))
    }
}

/// Judges all of what is at a place by the schema that is attached to it; `None` when none is.
pub fn check(view: &View<'_>, place: &Place, base: &str) -> Result<Option<Report>> {
    let attached = read(view)?;
    let Some(attached) = attached.iter().find(|attached| attached.place == *place) else {
        return Ok(None);
    };
    let state = State::of(*view)?;
    let report = match &attached.stack {
        None => check_all(&attached.schema, state.find(&place.path)?.document),
        Some(stack) => {
            let layers = stack.of(view, base)?;
            check_all(&attached.schema, state.find_of(&layers.state(*view), attached)?.document)
        }
    };
    report.map(Some)
}

fn check_all(schema: &Schema, document: Option<Document<impl Node>>) -> Result<Report> {
    let Some(document) = document else { return Ok(Report::default()) };
    let mut report = schema.validate(&document)?;
    let entries = schema.entries(None, Some(&document), &Changes::everything())?;
    let judged = entries.judge(schema, |_, change| change(&[], &mut Vec::new()))?;
    report.append(judged);
    Ok(report)
}
