//! Judges commits by the schemas of the store, and keeps their indexes.

use spinney_core::access::{Permissions, Right};
use spinney_core::backend::TreeId;
use spinney_core::diff::Diff;
use spinney_core::index::{Derived, Index};
use spinney_core::transaction::{Proposed, Review};
use spinney_core::view::{Slot, View};
use spinney_core::{Error, ErrorKind, Result, path};
use spinney_schema::{Changes, Report, Stored};

use super::TREE;
use super::attached::{Attached, Cache, read};

/// Looks at one commit.
pub struct Guard<'c> {
    cache: &'c Cache,
    /// Where the paths of users begin.
    base: &'c str,
    /// What the writer may do; everything, without.
    permissions: Option<&'c Permissions>,
}

impl<'c> Guard<'c> {
    /// One that knows the schemas that were used last.
    pub fn new(cache: &'c Cache, base: &'c str, permissions: Option<&'c Permissions>) -> Guard<'c> {
        Guard { cache, base, permissions }
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
        let report = judge(attached, is_new, states, derived)?;
        let is_told = match self.permissions {
            Some(permissions) => {
                permissions.way(&attached.path, |_| Ok(false))?.may_all(Right::Read)
            }
            None => true,
        };
        match is_told || report.is_valid() {
            true => refuse(&report, attached.path_below(self.base)),
            // It may be about something that this writer may not know of.
            false => Err(Error::new(
                ErrorKind::Invalid,
                "a schema does not allow the change; it is about more than you may read, so ask who administers \
                 it what is wrong",
            )),
        }
    }
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

fn judge(
    attached: &Attached,
    is_new: bool,
    states: &States<'_>,
    derived: &mut Vec<Derived>,
) -> Result<Report> {
    let changes = match is_new {
        true => Changes::everything(),
        false => Changes::of_diff(states.diff, &attached.path)?,
    };
    if changes.root().is_none() {
        return Ok(Report::default());
    }
    let before = match is_new {
        true => Place::default(),
        false => states.before.find(&attached.path)?,
    };
    let after = states.after.find(&attached.path)?;
    let (old, new) = (before.document.as_ref(), after.document.as_ref());
    let mut report = attached.schema.validate_change(old, new, &changes)?;
    // An index goes with its tree.
    if attached.schema.needs_index()
        && let Some(tree) = after.tree
    {
        let is_fresh = before.tree != Some(tree);
        let entries = match is_fresh {
            true => attached.schema.entries(None, new, &Changes::everything())?,
            false => attached.schema.entries(old, new, &changes)?,
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
    let Some(tree) = before.find(&old.path)?.tree else {
        return Ok(());
    };
    derived.extend(Index::of(before.view.snapshot, tree, old.id).remove()?);
    Ok(())
}

/// What a path leads to, and into which tree.
#[derive(Default)]
struct Place<'s> {
    tree: Option<TreeId>,
    document: Option<Stored<'s>>,
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

    fn find(&self, path: &str) -> Result<Place<'s>> {
        self.find_checked(path).map_err(|error| error.at(path::Display(path)))
    }

    fn find_checked(&self, path: &str) -> Result<Place<'s>> {
        let end = path[1..].find('/').map_or(path.len(), |at| at + 1);
        let Some(top) = self.view.descend(self.root.clone(), &path[..end], 0, &mut None)? else {
            return Ok(Place::default());
        };
        let tree = Some(top.tree);
        let slot = self.view.descend(top, path, end, &mut None)?;
        let document = slot.map(|slot| Stored::new(self.view, slot)).transpose()?;
        Ok(Place { tree, document })
    }
}

/// Judges all of what is at a path by the schema that is attached to it; `None` when none is.
pub fn check(view: &View<'_>, path: &str) -> Result<Option<Report>> {
    let attached = read(view)?;
    let Some(attached) = attached.iter().find(|attached| *attached.path == *path) else {
        return Ok(None);
    };
    let Some(document) = State::of(*view)?.find(path)?.document else {
        return Ok(Some(Report::default()));
    };
    let mut report = attached.schema.validate(&document)?;
    let entries = attached.schema.entries(None, Some(&document), &Changes::everything())?;
    let judged = entries.judge(&attached.schema, |_, change| change(&[], &mut Vec::new()))?;
    report.append(judged);
    Ok(Some(report))
}

fn refuse(report: &Report, path: &str) -> Result<()> {
    if report.is_valid() {
        return Ok(());
    }
    let path = path::Display(path);
    // An error is one line.
    let report = report.to_string().replace('\n', "; ");
    Err(Error::new(ErrorKind::Invalid, format!("the schema of {path} does not allow it: {report}")))
}
