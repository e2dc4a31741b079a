//! What leads from one tree to another, wherever they are: in memory, in pages, of several layers.
//!
//! Maps are merged member by member, lists are aligned by their elements. Changes come in an order in
//! which they apply: the position of an element refers to the state that all changes before it have
//! made. Who prints or applies them is not known here, and nothing recurses.

mod align;
mod layers;
mod merging;
mod writer;

use std::cmp::Ordering;

use crate::diff::{Diff, Op, What};
use crate::error::{Error, Result};
use crate::key::{EncodedKey, Key, not_a_key};
use crate::node::{self, NodeKind};
use crate::patch::{Patch, PatchReader};
use crate::path::Path;
use crate::read::{Children, Entries, Node, Reached, ReachedChildren, Stored};
use crate::value::Value;
use crate::view::{Slot, View};

use align::{Step, Steps};

pub use layers::StackState;
pub use merging::{Conflict, Counts, Decide, merge};
pub use writer::{Metadata, PatchWriter};

/// What happens at one path.
#[derive(Clone, Debug)]
pub enum Change<'a> {
    /// A member is set, or an element inserted.
    Added(Reached<'a>),
    /// A member or an element is taken out.
    Removed(Reached<'a>),
    /// A node takes the place of another one.
    Replaced(Reached<'a>, Reached<'a>),
    /// Only the metadata of a node changes, from these entries to those.
    Annotated(Entries, Entries),
}

/// Receives changes with their paths.
pub type Found<'f> = dyn FnMut(&Path, Change<'_>) -> Result<()> + 'f;

/// Hands over what leads from one node to another; values are compared by their identity, numbers
/// by their text.
///
/// # Errors
/// Those of reading, and of `found`.
///
/// # Complexity
/// O(size) of both; each level of lists within lists reads what is below once more. A container
/// that is the same record of the same state costs nothing.
pub fn differences(old: &Reached<'_>, new: &Reached<'_>, found: &mut Found<'_>) -> Result<()> {
    below(Path::root(), old, new, found)
}

/// Whether two nodes are the same, metadata included.
fn is_identical(old: &Reached<'_>, new: &Reached<'_>) -> Result<bool> {
    is_same_to(Counts::Metadata, old, new)
}

/// Whether two nodes are the same in what counts.
fn is_same_to(counts: Counts, old: &Reached<'_>, new: &Reached<'_>) -> Result<bool> {
    let mut is_different = false;
    let compared = differences(old, new, &mut |_, change| match change {
        Change::Annotated(..) if counts == Counts::Values => Ok(()),
        _ => {
            is_different = true;
            Err(Error::closed("they are not the same"))
        }
    });
    match is_different {
        true => Ok(false),
        false => compared.map(|()| true),
    }
}

fn below(path: Path, old: &Reached<'_>, new: &Reached<'_>, found: &mut Found<'_>) -> Result<()> {
    let mut walk = Walk { path, levels: Vec::new(), found };
    walk.compare(old.clone(), new.clone())?;
    while let Some(level) = walk.levels.last_mut() {
        match level.next()? {
            Some(Next::Added(segment, side)) => walk.tell(&segment, Change::Added(side))?,
            Some(Next::Removed(segment, side)) => walk.tell(&segment, Change::Removed(side))?,
            Some(Next::Both(segment, old, new)) => {
                walk.path.push(&segment);
                if !walk.compare(old, new)? {
                    walk.path.pop();
                }
            }
            None => {
                walk.levels.pop();
                walk.path.pop();
            }
        }
    }
    Ok(())
}

impl Patch {
    /// The patch that makes `new` of `old`: of the members and elements that differ.
    ///
    /// # Errors
    /// `LimitExceeded` when a path is longer than 1 MiB.
    ///
    /// # Examples
    /// ```
    /// use spinney_core::Value;
    /// use spinney_core::patch::Patch;
    ///
    /// let (old, new) = (Value::from(vec![1.into(), 2.into()]), Value::from(vec![2.into()]));
    /// let patch = Patch::between(&old, &new)?;
    /// assert_eq!(patch.operations[0].to_string(), "remove `/0`");
    /// # Ok::<(), spinney_core::Error>(())
    /// ```
    pub fn between(old: &Value, new: &Value) -> Result<Patch> {
        let mut operations = Vec::new();
        let mut collect = |_, operation| {
            operations.push(operation);
            Ok(())
        };
        let mut reader = PatchReader::new(&mut collect);
        let mut writer = PatchWriter::new(&mut reader, Metadata::Refuse)?;
        differences(&Reached::Value(old), &Reached::Value(new), &mut |path, change| {
            writer.write(path, &change)
        })?;
        writer.finish()?;
        Ok(Patch { operations })
    }
}

impl Diff {
    /// Hands over the changes of a commit, read from the states before and after it. A container
    /// that took the place of another one is compared with it.
    ///
    /// # Errors
    /// Those of reading, and of `found`.
    ///
    /// # Complexity
    /// O(size of what was replaced); what was added or removed is only read by whoever visits it.
    pub fn changes(
        &self,
        before: &View<'_>,
        after: &View<'_>,
        found: &mut Found<'_>,
    ) -> Result<()> {
        for op in &self.ops {
            let path = op.pointer();
            match (op.what, &op.old, &op.new) {
                (What::Meta, old, new) => {
                    let entries = |meta: &Option<_>| {
                        meta.as_deref().map_or(Ok(Vec::new()), |meta: &[u8]| entries(meta))
                    };
                    found(&path, Change::Annotated(entries(old)?, entries(new)?))?;
                }
                (What::Node, Some(old), Some(new)) => {
                    below(path, &side(before, op, old)?, &side(after, op, new)?, found)?;
                }
                (What::Node, Some(old), None) => {
                    found(&path, Change::Removed(side(before, op, old)?))?;
                }
                (What::Node, None, Some(new)) => {
                    found(&path, Change::Added(side(after, op, new)?))?
                }
                (What::Node, None, None) => {}
            }
        }
        Ok(())
    }
}

/// A node that an operation holds, read from a state.
fn side<'a>(view: &View<'a>, op: &Op, encoded: &[u8]) -> Result<Reached<'a>> {
    Stored::new(*view, Slot::owned(op.tree, encoded)).map(Reached::Stored)
}

/// The entries of encoded metadata.
fn entries(meta: &[u8]) -> Result<Entries> {
    node::meta_entries(meta)
        .map(|entry| entry.map(|(name, value)| (name.to_owned(), value.to_owned())))
        .collect::<Option<_>>()
        .ok_or_else(|| Error::corrupted("stored metadata does not read"))
}

struct Walk<'a, 'f, 'g> {
    /// Where the innermost level is.
    path: Path,
    levels: Vec<Level<'a>>,
    found: &'f mut Found<'g>,
}

impl<'a> Walk<'a, '_, '_> {
    fn tell(&mut self, segment: &str, change: Change<'_>) -> Result<()> {
        self.path.push(segment);
        (self.found)(&self.path, change)?;
        self.path.pop();
        Ok(())
    }

    /// Compares the nodes at the path; true when their members come next.
    fn compare(&mut self, old: Reached<'a>, new: Reached<'a>) -> Result<bool> {
        if old.is_same(&new) {
            return Ok(false);
        }
        let level = match (old.kind()?, new.kind()?) {
            (NodeKind::Map, NodeKind::Map) => Some(Level::map(&old, &new)?),
            (NodeKind::List, NodeKind::List) => Some(Level::list(&old, &new)?),
            _ if is_same_leaf(&old, &new)? => None,
            _ => {
                (self.found)(&self.path, Change::Replaced(old, new))?;
                return Ok(false);
            }
        };
        let (before, after) = (old.metadata()?, new.metadata()?);
        if before != after {
            (self.found)(&self.path, Change::Annotated(before, after))?;
        }
        let is_open = level.is_some();
        self.levels.extend(level);
        Ok(is_open)
    }
}

/// Whether both are the same scalar.
fn is_same_leaf(old: &Reached<'_>, new: &Reached<'_>) -> Result<bool> {
    let (mut long_old, mut long_new) = (Vec::new(), Vec::new());
    let (old, new) = (old.leaf(&mut long_old)?, new.leaf(&mut long_new)?);
    Ok(old.is_some() && old == new)
}

/// Two containers whose members are being compared.
enum Level<'a> {
    Map { old: Box<Members<'a>>, new: Box<Members<'a>> },
    List { old: Vec<Reached<'a>>, new: Vec<Reached<'a>>, steps: Steps },
}

/// The next members, with the segment that names them.
enum Next<'a> {
    Added(String, Reached<'a>),
    Removed(String, Reached<'a>),
    Both(String, Reached<'a>, Reached<'a>),
}

impl<'a> Level<'a> {
    fn map(old: &Reached<'a>, new: &Reached<'a>) -> Result<Level<'a>> {
        Ok(Level::Map { old: Box::new(Members::of(old)?), new: Box::new(Members::of(new)?) })
    }

    fn list(old: &Reached<'a>, new: &Reached<'a>) -> Result<Level<'a>> {
        let (old, new) = (elements(old)?, elements(new)?);
        let steps = Steps::align(&old, &new)?;
        Ok(Level::List { old, new, steps })
    }

    fn next(&mut self) -> Result<Option<Next<'a>>> {
        match self {
            Level::Map { old, new } => next_member(old, new),
            Level::List { old, new, steps } => Ok(steps.next().map(|step| match step {
                Step::Both { old: from, new: to } => {
                    Next::Both(to.to_string(), old[from].clone(), new[to].clone())
                }
                Step::Remove { old: from, at } => Next::Removed(at.to_string(), old[from].clone()),
                Step::Insert { new: to } => Next::Added(to.to_string(), new[to].clone()),
            })),
        }
    }
}

/// The first member of two maps, or both if they have the same key.
fn next_member<'a>(old: &mut Members<'a>, new: &mut Members<'a>) -> Result<Option<Next<'a>>> {
    let order = match (old.key(), new.key()) {
        (Some(old), Some(new)) => old.cmp(new),
        (Some(_), None) => Ordering::Less,
        _ => Ordering::Greater,
    };
    let removed = if order.is_le() { old.take()? } else { None };
    let added = if order.is_ge() { new.take()? } else { None };
    let segment = |key: &[u8]| -> Result<String> {
        Ok(Key::decode(key).ok_or_else(not_a_key)?.text().into_owned())
    };
    Ok(match (removed, added) {
        (Some((key, old)), Some((_, new))) => Some(Next::Both(segment(&key)?, old, new)),
        (Some((key, old)), None) => Some(Next::Removed(segment(&key)?, old)),
        (None, Some((key, new))) => Some(Next::Added(segment(&key)?, new)),
        (None, None) => None,
    })
}

/// The members of a map, in their order, with the next one ahead.
struct Members<'a> {
    children: Option<ReachedChildren<'a>>,
    /// What children are put into.
    child: Reached<'a>,
    next: Option<(EncodedKey, Reached<'a>)>,
}

impl<'a> Members<'a> {
    fn of(map: &Reached<'a>) -> Result<Members<'a>> {
        let mut members = Members { children: map.children()?, child: map.clone(), next: None };
        members.take()?;
        Ok(members)
    }

    /// The key of the next member.
    fn key(&self) -> Option<&EncodedKey> {
        self.next.as_ref().map(|(key, _)| key)
    }

    /// The next member, and on to the one behind it.
    fn take(&mut self) -> Result<Option<(EncodedKey, Reached<'a>)>> {
        let mut following = None;
        if let Some(children) = &mut self.children
            && children.next(&mut self.child)?
        {
            let mut buffer = Vec::new();
            let key = children.key(&mut buffer)?.ok_or_else(not_a_key)?.encoded();
            following = Some((key, self.child.clone()));
        }
        Ok(std::mem::replace(&mut self.next, following))
    }
}

/// The elements of a list.
fn elements<'a>(list: &Reached<'a>) -> Result<Vec<Reached<'a>>> {
    let mut elements = Vec::new();
    let mut child = list.clone();
    if let Some(mut children) = list.children()? {
        while children.next(&mut child)? {
            elements.push(child.clone());
        }
    }
    Ok(elements)
}
