//! Edits of one layer: what is below it in the stack decides which marks an edit leaves.

use spinney_core::read::marks::{self, decide};
use spinney_core::read::{Marks, Node};
use spinney_core::{Container, Error, ErrorKind, Key, Result, Scalar, Value, Visitor, path};

use super::{Layer, leads_to};
use crate::access::Right;
use crate::snapshot::Snapshot;
use crate::transaction::Existing;
use crate::{NodeKind, Transaction};

/// A transaction as an edit of one layer of a stack. Paths are those of the stack.
pub struct LayerEdit<'e, 't> {
    layers: &'e [Layer],
    /// The layer that is edited.
    at: usize,
    transaction: &'e mut Transaction<'t>,
    /// States of the lower layers that are not in the transaction's store.
    others: Vec<Option<Snapshot>>,
    /// The way to the parent of the node that was edited last.
    way: Option<Way>,
}

/// A map that edits have found, and the layers whose members of it are seen.
struct Way {
    parent: String,
    live: Vec<usize>,
}

/// A node of one layer on the way to a path.
#[derive(Clone, Copy)]
struct Seen {
    layer: usize,
    container: Option<Container>,
    marks: Marks,
}

impl Seen {
    fn is_map(&self) -> bool {
        self.container == Some(Container::Map) && !self.marks.has(Marks::DELETED)
    }
}

/// What was found at a path and on the way.
struct Place {
    /// The node that the layer itself has there.
    own: Option<Seen>,
    /// The layer that decides there; `None` when there is nothing.
    decides: Option<usize>,
    /// Whether lower layers would show through if the layer had nothing there.
    shows_through: bool,
    /// A lower layer with locks at the path or below.
    locked_below: Option<usize>,
    /// How many bytes of the path lead to a list of a lower layer, and of which.
    list_below: Option<(usize, usize)>,
    /// How many bytes of the path lead to a deletion of this layer.
    deletion: Option<usize>,
    /// How many bytes of the path lead to a scalar, and of which layer.
    scalar: Option<(usize, usize)>,
}

impl<'e, 't> LayerEdit<'e, 't> {
    pub(super) fn new(
        layers: &'e [Layer],
        at: usize,
        transaction: &'e mut Transaction<'t>,
    ) -> Result<LayerEdit<'e, 't>> {
        let other = |layer: &Layer| match layer.is_same_state(&layers[at]) {
            true => Ok(None),
            false => layer.state().map(Some),
        };
        let others: Vec<Option<Snapshot>> =
            layers[at..].iter().map(other).collect::<Result<_>>()?;
        // What an edit does to a layer depends on all that the layers have there.
        for (layer, other) in layers[at..].iter().zip(&others) {
            let is_seen = match other {
                None => transaction.reads_all(&layer.path)?,
                Some(state) => state.permits(&layer.path, Right::Read)?,
            };
            if !is_seen {
                return Err(Error::new(
                    ErrorKind::Denied,
                    "a layer is written by those who may read it and all below it; you may not",
                ));
            }
        }
        Ok(LayerEdit { layers, at, transaction, others, way: None })
    }

    /// The transaction.
    pub fn transaction(&mut self) -> &mut Transaction<'t> {
        self.way = None;
        self.transaction
    }

    /// Sets the node at a path in this layer. What lower layers have there does not show through any
    /// more; missing maps on the way are made and merged with theirs.
    ///
    /// # Errors
    /// `Denied` when a lower layer has locked the path, something above or, if it would be hidden,
    /// below it; `InvalidInput` when the path leads through a scalar; those of [`Transaction::set`].
    pub fn set(&mut self, path: &str, value: &Value) -> Result<()> {
        self.try_set(path, value).map_err(|error| self.placed(error, "set", path))
    }

    /// As [`LayerEdit::set`], to a value of any type, as [`spinney_core::typed`] writes it.
    ///
    /// # Errors
    /// As [`LayerEdit::set`]; `InvalidInput` for what has no form as a tree.
    #[cfg(feature = "serde")]
    pub fn set_as<T: serde_core::Serialize + ?Sized>(
        &mut self,
        path: &str,
        value: &T,
    ) -> Result<()> {
        let written = spinney_core::typed::to_value(value);
        self.set(path, &written.map_err(|error| self.placed(error, "set", path))?)
    }

    fn try_set(&mut self, path: &str, value: &Value) -> Result<()> {
        let place = self.find(path)?;
        self.forget_way(path);
        if let Some(layer) = place.locked_below {
            return Err(self.locked(layer, path, "something below it"));
        }
        if let Some((end, layer)) = place.scalar {
            return Err(Error::invalid_input(format!(
                "{} of the layer `{}` is neither a map nor a list",
                path::Display(&path[..end]),
                self.layers[layer].name
            )));
        }
        self.make_way(path, &place)?;
        let mut own = place.own.map_or(Marks::NONE, |own| own.marks);
        own = own.without(Marks::DELETED.with(Marks::BELOW).with(Marks::LOCKED_BELOW));
        let hides = place.shows_through && matches!(value, Value::Map(_));
        let marks = match hides {
            true => own.with(Marks::REPLACES),
            false => own.without(Marks::REPLACES),
        };
        self.put(path, value, marks)?;
        self.forget_locks(path, place.own.filter(|_| !marks.has(Marks::LOCKED)))
    }

    /// Removes the node at a path from what is read of this layer and those below; returns whether
    /// there was one. Where a lower layer has one, a mark says that it is deleted.
    ///
    /// # Errors
    /// `Denied` as for [`LayerEdit::set`]; those of [`Transaction::remove`].
    pub fn remove(&mut self, path: &str) -> Result<bool> {
        self.try_remove(path).map_err(|error| self.placed(error, "remove", path))
    }

    fn try_remove(&mut self, path: &str) -> Result<bool> {
        let place = self.find(path)?;
        self.forget_way(path);
        if place.decides.is_none() {
            return Ok(false);
        }
        if let Some(layer) = place.locked_below {
            return Err(self.locked(layer, path, "something below it"));
        }
        if place.shows_through {
            self.make_way(path, &place)?;
            self.put(path, &Value::Null, Marks::DELETED)?;
        } else {
            self.make_way(path, &place)?;
            let own = self.own(path);
            self.transaction.remove(&own)?;
        }
        self.forget_locks(path, place.own)?;
        Ok(true)
    }

    /// Takes away what this layer says of the node at a path, so that lower layers show through again;
    /// returns whether it said anything.
    ///
    /// # Errors
    /// Those of [`Transaction::remove`].
    pub fn reset(&mut self, path: &str) -> Result<bool> {
        self.forget_way(path);
        let before = self.seen(self.at, path)?;
        let own = self.own(path);
        let removed = self.transaction.remove(&own)?;
        self.forget_locks(path, before)?;
        Ok(removed)
    }

    /// Locks the node that this layer has at a path: higher layers cannot override it, nor anything
    /// below it.
    ///
    /// # Errors
    /// `NotFound` when this layer has none there.
    pub fn lock(&mut self, path: &str) -> Result<()> {
        let Some(seen) = self.seen(self.at, path)? else {
            let error = Error::not_found(format!(
                "the layer `{}` has nothing there that could be locked; set it first",
                self.layers[self.at].name
            ));
            return Err(self.placed(error, "lock", path));
        };
        self.mark(path, seen.marks.with(Marks::LOCKED))
    }

    /// Takes away a lock; returns whether there was one.
    ///
    /// # Errors
    /// Those of [`Transaction::set_meta`].
    pub fn unlock(&mut self, path: &str) -> Result<bool> {
        match self.seen(self.at, path)? {
            Some(seen) if seen.marks.has(Marks::LOCKED) => {
                self.mark(path, seen.marks.without(Marks::LOCKED))?;
                self.forget_locks(path, Some(seen))?;
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Goes from the roots of the layers to a path, as reading does, or from the parent that it knows.
    fn find(&mut self, path: &str) -> Result<Place> {
        path::check(path)?;
        let parent = path::split_last(path).map(|(parent, _)| parent);
        let known = self.way.as_ref().filter(|way| Some(&*way.parent) == parent);
        let mut place = Place {
            own: None,
            decides: None,
            shows_through: false,
            locked_below: None,
            list_below: None,
            deletion: None,
            scalar: None,
        };
        let (mut live, start) = match known {
            Some(way) => (way.live.clone(), path.len()),
            None => ((self.at..self.layers.len()).collect(), 0),
        };
        let mut ways = Vec::with_capacity(self.layers.len() - self.at);
        for layer in self.at..self.layers.len() {
            ways.push(match live.contains(&layer) {
                true => self.way(layer, path, start)?,
                false => Vec::new(),
            });
        }
        let (mut end, mut level) = (start, 0);
        loop {
            let is_last = end == path.len();
            let parts = live.iter().filter_map(|layer| ways[layer - self.at].get(level));
            let mut parts: Vec<Seen> = parts.copied().collect();
            if let Some(lock) = parts.iter().rev().find(|seen| seen.marks.has(Marks::LOCKED))
                && lock.layer != self.at
            {
                return Err(self.locked(lock.layer, &path[..end], "it"));
            }
            let own = parts.iter().find(|seen| seen.layer == self.at).copied();
            let lower: Vec<Seen> =
                parts.iter().filter(|seen| seen.layer != self.at).copied().collect();
            decide(&mut parts, |seen| Ok((seen.is_map(), seen.marks)))?;
            let decides = parts.first().copied();
            if is_last {
                let mut below = lower;
                decide(&mut below, |seen| Ok((seen.is_map(), seen.marks)))?;
                place.own = own;
                place.decides = decides.map(|seen| seen.layer);
                place.shows_through = !below.is_empty();
                let locked = below.iter().find(|seen| seen.marks.has(Marks::LOCKED_BELOW));
                place.locked_below = locked.map(|seen| seen.layer);
                return Ok(place);
            }
            match decides {
                None => {
                    // Nothing of lower layers is seen from here on.
                    if own.is_some() {
                        place.deletion = Some(end);
                    }
                    return Ok(place);
                }
                Some(seen) if seen.is_map() => {}
                Some(seen) if seen.container == Some(Container::List) => {
                    if seen.layer != self.at {
                        place.list_below = Some((end, seen.layer));
                    }
                    let last = level + path::parts(&path[end..]).count();
                    let at_end = |layer: usize| ways[layer - self.at].get(last);
                    place.own = at_end(self.at).copied();
                    place.decides = at_end(seen.layer).map(|seen| seen.layer);
                    return Ok(place);
                }
                Some(seen) => {
                    place.scalar = Some((end, seen.layer));
                    return Ok(place);
                }
            }
            live.clear();
            live.extend(parts.iter().map(|seen| seen.layer));
            // The edited layer is looked at, whether it has the map yet or not.
            if live.first() != Some(&self.at) {
                live.insert(0, self.at);
            }
            let parent = end;
            end += 1 + path[end + 1..].find('/').unwrap_or(path.len() - end - 1);
            level += 1;
            if end == path.len() {
                self.way = Some(Way { parent: path[..parent].to_owned(), live: live.clone() });
            }
        }
    }

    /// Forgets the way when it leads to or through a node that is edited.
    fn forget_way(&mut self, edited: &str) {
        self.way.take_if(|way| leads_to(edited, &way.parent));
    }

    /// Makes this layer have what leads to a path: a list that is edited becomes its own, and where it
    /// deleted something there is an empty map again.
    fn make_way(&mut self, path: &str, place: &Place) -> Result<()> {
        if let Some((end, layer)) = place.list_below {
            let list = match &self.others[layer - self.at] {
                None => {
                    let path = self.path_in(layer, &path[..end]);
                    self.transaction.get(&path)?
                }
                Some(state) => state.get(&self.path_in(layer, &path[..end]))?,
            };
            let list = list.ok_or_else(|| Error::corrupted("a list that was found is missing"))?;
            self.put(&path[..end], &list, Marks::NONE)?;
        }
        if let Some(end) = place.deletion {
            self.put(&path[..end], &Value::Map(Default::default()), Marks::REPLACES)?;
        }
        Ok(())
    }

    /// Puts a value with marks.
    fn put(&mut self, path: &str, value: &Value, marks: Marks) -> Result<()> {
        let own = self.own(path);
        self.transaction.set_with(&own, Existing::Any, |visitor| {
            if marks != Marks::NONE {
                visitor.meta(marks::NAME, &marks.to_string())?;
            }
            value.visit(visitor)
        })?;
        self.mark_above(path, marks)
    }

    /// Changes the marks of a node that is there.
    fn mark(&mut self, path: &str, marks: Marks) -> Result<()> {
        let own = self.own(path);
        self.put_marks(&own, marks)?;
        self.mark_above(path, marks)
    }

    fn put_marks(&mut self, own: &str, marks: Marks) -> Result<()> {
        let text = marks.to_string();
        let value = (marks != Marks::NONE).then_some(&*text);
        self.transaction.set_meta(own, marks::NAME, value)
    }

    /// Tells all maps above a node of its marks.
    fn mark_above(&mut self, path: &str, marks: Marks) -> Result<()> {
        if marks == Marks::NONE {
            return Ok(());
        }
        let mut wanted = Marks::BELOW;
        if marks.has(Marks::LOCKED) || marks.has(Marks::LOCKED_BELOW) {
            wanted = wanted.with(Marks::LOCKED_BELOW);
        }
        let mut above = path;
        while let Some((parent, _)) = path::split_last(above) {
            above = parent;
            let marks = self.seen(self.at, above)?.map_or(Marks::NONE, |seen| seen.marks);
            if marks.has(wanted) {
                return Ok(());
            }
            let own = self.own(above);
            self.put_marks(&own, marks.with(wanted))?;
        }
        Ok(())
    }

    /// Tells the maps above a node that was locked, or had locks below, when none of them is left.
    ///
    /// # Complexity
    /// That of what the layer has there, up to the first lock.
    fn forget_locks(&mut self, path: &str, before: Option<Seen>) -> Result<()> {
        let had_locks =
            |seen: &Seen| seen.marks.has(Marks::LOCKED) || seen.marks.has(Marks::LOCKED_BELOW);
        if !before.as_ref().is_some_and(had_locks) {
            return Ok(());
        }
        let mut above = path;
        while let Some((parent, _)) = path::split_last(above) {
            above = parent;
            let Some(seen) = self.seen(self.at, above)? else { continue };
            let own = self.own(above);
            let mut search = LockSearch::default();
            let walked = self.transaction.visit(&own, &mut search);
            if search.is_found {
                return Ok(());
            }
            walked?;
            self.put_marks(&own, seen.marks.without(Marks::LOCKED_BELOW))?;
        }
        Ok(())
    }

    /// The node that a layer has at a path; `None` when there is none.
    fn seen(&self, layer: usize, path: &str) -> Result<Option<Seen>> {
        Ok(self.way(layer, path, path.len())?.pop())
    }

    /// The nodes that a layer has on the way to a path, from that at its first `from` bytes on.
    fn way(&self, layer: usize, path: &str, from: usize) -> Result<Vec<Seen>> {
        let path = self.path_in(layer, path);
        let from = from + self.layers[layer].path.len();
        let way = match &self.others[layer - self.at] {
            None => self.transaction.way(&path, from, marks::NAME)?,
            Some(state) => way_in(state, &path, from)?,
        };
        let seen = |(container, marks): (Option<Container>, Option<String>)| {
            let marks = marks.map_or(Ok(Marks::NONE), |marks| Marks::parse(&marks))?;
            Ok(Seen { layer, container, marks })
        };
        way.into_iter().map(seen).collect()
    }

    fn path_in(&self, layer: usize, path: &str) -> String {
        [&*self.layers[layer].path, path].concat()
    }

    /// A path of the stack as one of the layer's store.
    fn own(&self, path: &str) -> String {
        self.path_in(self.at, path)
    }

    fn locked(&self, layer: usize, path: &str, what: &str) -> Error {
        Error::new(
            ErrorKind::Denied,
            format!(
                "{what} is locked in the layer `{}` (at {}), so that no higher layer overrides it",
                self.layers[layer].name,
                path::Display(path)
            ),
        )
    }

    fn placed(&self, error: Error, operation: &str, path: &str) -> Error {
        let layer = &self.layers[self.at].name;
        error.at(format_args!("{operation} {} in the layer `{layer}`", path::Display(path)))
    }
}

/// As [`Transaction::way`] tells of marks, in a state.
fn way_in(
    state: &Snapshot,
    path: &str,
    mut end: usize,
) -> Result<Vec<(Option<Container>, Option<String>)>> {
    let mut way = Vec::new();
    let mut parts = path::parts(&path[end..]);
    let mut next = state.node(&path[..end])?;
    while let Some(node) = next {
        let container = match node.kind()? {
            NodeKind::Map => Some(Container::Map),
            NodeKind::List => Some(Container::List),
            _ => None,
        };
        let marks = node.metadata()?.into_iter().find(|(name, _)| name == marks::NAME);
        way.push((container, marks.map(|(_, value)| value)));
        let Some(part) = parts.next() else { break };
        next = node.descend(&path[end..end + 1 + part.len()])?.found();
        end += 1 + part.len();
    }
    Ok(way)
}

/// Looks for a lock below a node, and ends the walk at the first.
#[derive(Default)]
struct LockSearch {
    depth: usize,
    is_found: bool,
}

impl Visitor for LockSearch {
    fn open(&mut self, _: Container) -> Result<()> {
        self.depth += 1;
        Ok(())
    }

    fn key(&mut self, _: Key<'_>) -> Result<()> {
        Ok(())
    }

    fn scalar(&mut self, _: Scalar<'_>) -> Result<()> {
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.depth -= 1;
        Ok(())
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        if self.depth > 0 && name == marks::NAME && Marks::parse(value)?.has(Marks::LOCKED) {
            self.is_found = true;
            return Err(Error::closed("the search is over"));
        }
        Ok(())
    }
}
