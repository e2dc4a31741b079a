//! Making a tree what it is under a layer above it, for good: the layer's changes become the tree's.

use std::collections::BTreeSet;

use spinney_core::backend::Revision;
use spinney_core::history::History;
use spinney_core::node::NodeKind;
use spinney_core::read::{Children, Marks, Merged, Node, Reached};
use spinney_core::{Error, Path, Result, Value, path};

use crate::Transaction;
use crate::snapshot::Snapshot;
use crate::transaction::Existing;

/// A place that both a layer and the tree below it have changed, to different ends.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerConflict {
    /// Where, below the layer's root.
    pub path: Path,
    /// What was there when the layer was begun; `None` for nothing.
    pub base: Option<Value>,
    /// What the lower tree has there now.
    pub lower: Option<Value>,
    /// What the layer makes of it.
    pub layer: Option<Value>,
}

/// What to do with places that the lower tree has changed, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefer {
    /// Change nothing, and list them.
    #[default]
    Neither,
    /// Leave them as they are in the lower tree.
    Lower,
    /// Make them what the layer says.
    Layer,
}

/// What one layer says of one place.
enum Said<'s> {
    /// Nothing is there.
    Deleted,
    /// It is this, whatever was there.
    Is(Reached<'s>),
    /// It is a map, and this is among its members.
    Has(Reached<'s>),
}

/// A walk over what a layer says.
struct Sayings<'s> {
    levels: Vec<(<Reached<'s> as Node>::Children, bool)>,
    path: Path,
}

impl<'s> Sayings<'s> {
    fn of(root: Reached<'s>, is_marked: bool) -> Result<Said<'s>> {
        let marks = if is_marked { Marks::of(&root)? } else { Marks::NONE };
        Ok(match marks {
            _ if marks.has(Marks::DELETED) => Said::Deleted,
            _ if marks.has(Marks::REPLACES) => Said::Is(root),
            _ if root.kind()? == NodeKind::Map => Said::Has(root),
            _ => Said::Is(root),
        })
    }

    /// Goes into the members of a map.
    fn enter(&mut self, map: &Reached<'s>, is_marked: bool) -> Result<()> {
        let is_marked = is_marked && Marks::of(map)?.has(Marks::BELOW);
        self.levels.extend(map.children()?.map(|children| (children, is_marked)));
        Ok(())
    }
}

/// Tells what a layer says, place by place. Where `saying` answers true for a map, its members follow.
fn each<'s>(
    root: Reached<'s>,
    saying: &mut dyn FnMut(&Path, &Said<'s>) -> Result<bool>,
) -> Result<()> {
    let mut walk = Sayings { levels: Vec::new(), path: Path::root() };
    let said = Sayings::of(root.clone(), true)?;
    if saying(&walk.path, &said)?
        && let Said::Has(map) = &said
    {
        walk.enter(map, true)?;
    }
    let mut child = root;
    let mut buffer = Vec::new();
    while let Some((children, is_marked)) = walk.levels.last_mut() {
        if !children.next(&mut child)? {
            walk.levels.pop();
            walk.path.pop();
            continue;
        }
        let is_marked = *is_marked;
        let key = children.key(&mut buffer)?;
        let key = key.ok_or_else(|| Error::corrupted("a member of a map has no key"))?;
        walk.path.push(&key.text());
        let said = Sayings::of(child.clone(), is_marked)?;
        match &said {
            Said::Has(map) if saying(&walk.path, &said)? => walk.enter(map, is_marked)?,
            Said::Has(_) => walk.path.pop(),
            _ => {
                saying(&walk.path, &said)?;
                walk.path.pop();
            }
        }
    }
    Ok(())
}

/// What commits have changed below a path since a revision.
pub(crate) struct Changed(BTreeSet<String>);

impl Changed {
    /// Reads it from the log.
    ///
    /// # Errors
    /// `NotFound` when the log does not reach back so far.
    pub fn below(state: &Snapshot, top: &str, since: Revision) -> Result<Changed> {
        let mut paths = BTreeSet::new();
        History::of(state.view().snapshot).each_since(since, &mut |logged| {
            for op in &logged.entry.diff.ops {
                let pointer = op.pointer();
                if let Some(rest) = pointer.strip_prefix(top)
                    && (rest.is_empty() || rest.starts_with('/'))
                {
                    paths.insert(rest.to_owned());
                } else if top.strip_prefix(&*pointer).is_some_and(|rest| rest.starts_with('/')) {
                    paths.insert(String::new());
                }
            }
            Ok(true)
        })?;
        Ok(Changed(paths))
    }

    /// Whether a place, something above or something below it was changed.
    fn concerns(&self, place: &str) -> bool {
        let above = |place: &str| {
            let ends = place.match_indices('/').map(|(at, _)| at).chain([place.len()]);
            ends.into_iter().any(|end| self.0.contains(&place[..end]))
        };
        let below = |place: &str| {
            let from = format!("{place}/");
            self.0.range(from.clone()..).next().is_some_and(|path| path.starts_with(&from))
        };
        !self.0.is_empty() && (above(place) || below(place))
    }
}

/// What the merge of a layer rests on.
pub(crate) struct Fold<'f> {
    /// The state that the layer and the tree below it are read from.
    pub state: &'f Snapshot,
    /// Where the layer is.
    pub layer: &'f str,
    /// Where the tree is that it is merged into.
    pub lower: &'f str,
    /// What was changed in the lower tree since the layer was begun.
    pub changed: &'f Changed,
}

/// What is to be done at one place.
enum Verdict {
    /// Go on with the members.
    Descend,
    /// Make it what the layer says, which the lower tree does not speak against.
    Take,
    /// The lower tree was changed to the same.
    Same,
    /// Both were changed.
    Conflict { lower: Option<Value>, layer: Option<Value> },
}

impl Fold<'_> {
    fn judge(&self, path: &str, said: &Said<'_>) -> Result<Verdict> {
        let place = [self.lower, path].concat();
        if matches!(said, Said::Has(_)) && self.state.kind(&place)? == Some(NodeKind::Map) {
            return Ok(Verdict::Descend);
        }
        if !self.changed.concerns(path) {
            return Ok(Verdict::Take);
        }
        let lower = self.state.get(&place)?;
        let layer = match said {
            Said::Deleted => None,
            Said::Is(node) | Said::Has(node) => value_of(node)?,
        };
        Ok(if lower == layer { Verdict::Same } else { Verdict::Conflict { lower, layer } })
    }

    /// The places that both have changed, to different ends. What was there before is read from `base`.
    ///
    /// # Complexity
    /// That of the layer.
    pub fn conflicts(&self, base: &Snapshot) -> Result<Vec<LayerConflict>> {
        let mut found = Vec::new();
        let Some(root) = self.state.node(self.layer)? else { return Ok(found) };
        each(root, &mut |path, said| {
            let verdict = self.judge(path, said)?;
            let is_shared = matches!(verdict, Verdict::Descend);
            if let Verdict::Conflict { lower, layer } = verdict {
                let base = base.get(&[self.lower, path].concat())?;
                found.push(LayerConflict { path: path.clone(), base, lower, layer });
            }
            Ok(is_shared)
        })?;
        Ok(found)
    }

    /// Makes the changes of the layer those of the lower tree.
    ///
    /// # Errors
    /// `Conflict` naming the first places, when neither is preferred; those of the transaction.
    ///
    /// # Complexity
    /// That of the layer.
    pub fn apply(&self, transaction: &mut Transaction<'_>, prefer: Prefer) -> Result<()> {
        let Some(root) = self.state.node(self.layer)? else { return Ok(()) };
        let mut conflicts: Vec<Path> = Vec::new();
        each(root, &mut |path, said| {
            match (self.judge(path, said)?, prefer) {
                (Verdict::Descend, _) => return Ok(true),
                (Verdict::Same, _) | (Verdict::Conflict { .. }, Prefer::Lower) => return Ok(false),
                (Verdict::Conflict { .. }, Prefer::Neither) => {
                    conflicts.push(path.clone());
                    return Ok(false);
                }
                (Verdict::Take, _) | (Verdict::Conflict { .. }, Prefer::Layer) => {}
            }
            let place = [self.lower, path].concat();
            match said {
                Said::Deleted => drop(transaction.remove(&place)?),
                Said::Is(node) | Said::Has(node) => put(transaction, &place, node)?,
            }
            Ok(false)
        })?;
        refuse_conflicts(conflicts.iter())
    }
}

/// Puts what a layer has at a place, without its marks.
fn put(transaction: &mut Transaction<'_>, place: &str, node: &Reached<'_>) -> Result<()> {
    match Merged::new([(0, node.clone())])? {
        Some(merged) => transaction.set_with(place, Existing::Any, |to| merged.visit(to)),
        None => transaction.remove(place).map(drop),
    }
}

/// What a layer has at a place, without its marks; `None` when it deletes it.
fn value_of(node: &Reached<'_>) -> Result<Option<Value>> {
    let mut builder = spinney_core::value::ValueBuilder::default();
    if let Some(merged) = Merged::new([(0, node.clone())])? {
        merged.visit(&mut builder)?;
    }
    Ok(builder.finish())
}

/// Refuses what would override changes of somebody else, if there are any.
pub(crate) fn refuse_conflicts<'p>(paths: impl ExactSizeIterator<Item = &'p Path>) -> Result<()> {
    let more = match paths.len() {
        0 => return Ok(()),
        1..=3 => String::new(),
        count => format!(" and {} more", count - 3),
    };
    let shown: Vec<String> = paths.take(3).map(|path| path::Display(path).to_string()).collect();
    Err(Error::conflict(format!(
        "{}{more}: changed by others, too, since this was begun; list the conflicts (`datastore conflicts`), or \
         prefer one side",
        shown.join(", ")
    )))
}
