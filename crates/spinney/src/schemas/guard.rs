//! Judges commits by the schemas of the store, and keeps their indexes.

use std::ops::Bound;
use std::sync::Arc;

use spinney_core::backend::{Direction, Snapshot, TreeId};
use spinney_core::layout::derived_key;
use spinney_core::record::unseal;
use spinney_core::transaction::{Derived, Proposed, Review};
use spinney_core::view::View;
use spinney_core::{Error, ErrorKind, Result, path};
use spinney_schema::{Changes, Report, Stored};

use super::TREE;
use super::attached::{Attached, Cache, read};

/// Looks at one commit.
pub struct Guard<'c> {
    cache: &'c Cache,
    /// Where the paths of users begin.
    base: &'c str,
}

impl<'c> Guard<'c> {
    /// One that knows the schemas that were used last.
    pub fn new(cache: &'c Cache, base: &'c str) -> Guard<'c> {
        Guard { cache, base }
    }
}

impl Review for Guard<'_> {
    fn review(&mut self, proposed: &Proposed<'_>, derived: &mut Vec<Derived>) -> Result<()> {
        let before = self.cache.at(&proposed.before)?;
        if before.is_empty() && proposed.after.resolve(TREE)?.is_none() {
            return Ok(());
        }
        let after = match Changes::of_diff(proposed.diff, TREE)?.root() {
            None => Arc::clone(&before),
            Some(_) => Arc::new(read(&proposed.after)?),
        };
        for old in before.iter() {
            if !stays(old, &after, proposed)? {
                forget(old, &proposed.before, derived)?;
            }
        }
        for attached in after.iter() {
            let is_new = !stays(attached, &before, proposed)?;
            judge(attached, is_new, proposed, derived)
                .and_then(|report| refuse(&report, attached.path_below(self.base)))?;
        }
        Ok(())
    }
}

/// Whether a schema is among others as it is.
fn stays(attached: &Attached, others: &[Attached], proposed: &Proposed<'_>) -> Result<bool> {
    let place = format!("{TREE}/{}", attached.id);
    let is_there = others.iter().any(|other| other.id == attached.id);
    Ok(is_there && Changes::of_diff(proposed.diff, &place)?.root().is_none())
}

fn judge(
    attached: &Attached,
    is_new: bool,
    proposed: &Proposed<'_>,
    derived: &mut Vec<Derived>,
) -> Result<Report> {
    let changes = match is_new {
        true => Changes::everything(),
        false => Changes::of_diff(proposed.diff, &attached.path)?,
    };
    if changes.root().is_none() {
        return Ok(Report::default());
    }
    let before = if is_new { None } else { stored(&proposed.before, &attached.path)? };
    let after = stored(&proposed.after, &attached.path)?;
    let mut report = attached.schema.validate_change(before.as_ref(), after.as_ref(), &changes)?;
    // An index goes with its tree.
    if attached.schema.needs_index()
        && let Some(tree) = tree_of(&proposed.after, &attached.path)?
    {
        let is_fresh = is_new || tree_of(&proposed.before, &attached.path)? != Some(tree);
        let entries = match is_fresh {
            true => attached.schema.entries(None, after.as_ref(), &Changes::everything())?,
            false => attached.schema.entries(before.as_ref(), after.as_ref(), &changes)?,
        };
        let judged = entries.judge(&attached.schema, |key| match is_fresh {
            true => Ok(None),
            false => record(proposed.before.snapshot, &derived_key(tree, attached.id, key)),
        })?;
        report.append(judged.report);
        let owner = attached.id;
        derived.extend(judged.records.into_iter().map(|record| Derived {
            tree,
            owner,
            key: record.key,
            content: record.content,
        }));
    }
    Ok(report)
}

fn record(snapshot: &dyn Snapshot, key: &[u8]) -> Result<Option<Vec<u8>>> {
    let record = snapshot.get(key)?;
    record.map(|record| Ok(record[unseal(key, &record)?..].to_vec())).transpose()
}

/// Removes the index of a schema that goes.
fn forget(old: &Attached, before: &View<'_>, derived: &mut Vec<Derived>) -> Result<()> {
    let Some(tree) = tree_of(before, &old.path)?.filter(|_| old.schema.needs_index()) else {
        return Ok(());
    };
    let (start, end) = (derived_key(tree, old.id, &[]), derived_key(tree, old.id + 1, &[]));
    let bounds = (Bound::Included(&start[..]), Bound::Excluded(&end[..]));
    for record in before.snapshot.range(bounds, Direction::Forward)? {
        let key = record?.0[start.len()..].to_vec();
        derived.push(Derived { tree, owner: old.id, key, content: None });
    }
    Ok(())
}

/// The tree that a path leads into.
fn tree_of(view: &View<'_>, path: &str) -> Result<Option<TreeId>> {
    let end = path[1..].find('/').map_or(path.len(), |at| at + 1);
    Ok(view.resolve(&path[..end])?.map(|slot| slot.tree))
}

fn stored<'s>(view: &View<'s>, path: &str) -> Result<Option<Stored<'s>>> {
    view.resolve(path)?.map(|slot| Stored::new(*view, slot)).transpose()
}

/// Judges all of what is at a path by the schema that is attached to it; `None` when none is.
pub fn check(view: &View<'_>, path: &str) -> Result<Option<Report>> {
    let attached = read(view)?;
    let Some(attached) = attached.iter().find(|attached| *attached.path == *path) else {
        return Ok(None);
    };
    let Some(document) = stored(view, path)? else { return Ok(Some(Report::default())) };
    let mut report = attached.schema.validate(&document)?;
    let entries = attached.schema.entries(None, Some(&document), &Changes::everything())?;
    report.append(entries.judge(&attached.schema, |_| Ok(None))?.report);
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
