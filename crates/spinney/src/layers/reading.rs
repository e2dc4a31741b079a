//! One state of a stack: a state of each store that its layers are in.

use std::cell::{Cell, OnceCell, Ref, RefCell};
use std::sync::Arc;

use spinney_core::backend::Revision;
use spinney_core::key::no_key;
use spinney_core::node::NodeKind;
use spinney_core::read::{Children, Descended, Merged, Node, Reached, Stored};
use spinney_core::view::Slot;
use spinney_core::{Key, Path, Result, path};

use super::filter::{Filter, KeyHash};
use super::provided::{Provided, Source};
use super::{Layer, ruled_as};
use crate::snapshot::Snapshot;

/// The layers of a snapshot, the highest first.
pub(crate) struct Layers {
    /// One for each store.
    states: Vec<Snapshot>,
    layers: Vec<Placed>,
    /// Where the last read led through.
    way: RefCell<Option<Way>>,
}

/// A map that several layers may share, without marks, of which one is in pages: reads of members
/// begin there and not at the roots.
struct Way {
    path: String,
    parts: Vec<(usize, Slot<'static>)>,
    /// How often it was taken.
    times: Cell<u32>,
    /// The keys of the maps that have few, once it was taken often.
    filters: OnceCell<Vec<Option<Filter>>>,
}

/// Reads after which it pays to know the keys of small maps.
const OFTEN: u32 = 64;

impl Way {
    fn at(path: &str, node: &Merged<Reached<'_>>) -> Option<Way> {
        let parts = node.unmarked()?;
        let mut is_paged = false;
        let kept = |(at, node): (usize, &Reached<'_>)| match node {
            Reached::Stored(node) => {
                is_paged |= node.is_paged();
                Some((at, node.keep()))
            }
            Reached::Value(_) | Reached::Merged(_) | Reached::Guarded(_) => None,
        };
        let parts = parts.map(kept).collect::<Option<_>>()?;
        is_paged.then(|| Way {
            path: path.to_owned(),
            parts,
            times: Cell::default(),
            filters: OnceCell::new(),
        })
    }
}

/// Where a layer is.
struct Placed {
    name: Arc<str>,
    place: Place,
}

enum Place {
    /// At a path of one of the states.
    Stored(usize, Arc<str>),
    /// Made when it is read.
    Provided(Provided),
}

/// A leaf, or a list or map that one layer alone has the whole of, and which layer that is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sourced<'a> {
    /// Where it is, in the stack.
    pub path: &'a str,
    /// The layer that decides.
    pub layer: &'a str,
}

impl Layers {
    /// The newest states; without the layers of which nothing may be seen.
    pub fn read(layers: &[Layer], provided: &[Arc<Source>]) -> Result<Layers> {
        let mut stores: Vec<&Layer> = Vec::new();
        let mut states = Vec::new();
        let provided = provided.iter().map(|source| Placed {
            name: Arc::from(&*source.name),
            place: Place::Provided(Provided::of(Arc::clone(source))),
        });
        let mut placed: Vec<Placed> = provided.collect();
        for layer in layers {
            let known = stores.iter().position(|known| known.is_same_state(layer));
            let state = match known {
                Some(state) => state,
                None => {
                    states.push(layer.state()?);
                    stores.push(layer);
                    stores.len() - 1
                }
            };
            if !states[state].may_show(ruled_as(&layer.path))? {
                continue;
            }
            let place = Place::Stored(state, Arc::from(&*layer.path));
            placed.push(Placed { name: Arc::from(&*layer.name), place });
        }
        Ok(Layers { states, layers: placed, way: RefCell::default() })
    }

    /// Layers of one state, each with its name and path, the highest first.
    pub fn of(state: Snapshot, layers: &[(Arc<str>, Arc<str>)]) -> Layers {
        let place = |(name, path): &(Arc<str>, Arc<str>)| {
            let place = Place::Stored(0, Arc::clone(path));
            Placed { name: Arc::clone(name), place }
        };
        let layers = layers.iter().map(place).collect();
        Layers { states: vec![state], layers, way: RefCell::default() }
    }

    /// The state that all layers are of, when it is one.
    pub fn only_state(&self) -> Option<&Snapshot> {
        match &*self.states {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The revision of the store that the highest layer is in.
    pub fn revision(&self) -> Result<Revision> {
        self.states[0].revision()
    }

    /// The node at a path, as all layers together have it; `None` when there is none.
    pub fn node(&self, path: &str) -> Result<Option<Reached<'_>>> {
        Ok(self.merged(path)?.map(Reached::Merged))
    }

    fn merged(&self, path: &str) -> Result<Option<Merged<Reached<'_>>>> {
        if let Some(way) = self.on_the_way(path) {
            path::check_from(path, way.path.len())?;
            let rest = &path[way.path.len()..];
            let hash = path::segments(rest).next().map(|key| KeyHash::of(Key::new(&key)));
            let filters = self.filters(&way)?;
            let may_have = |at: usize| match (filters, hash) {
                ([], _) | (_, None) => true,
                (filters, Some(hash)) => filters[at].as_ref().is_none_or(|few| few.may_have(hash)),
            };
            let parts = way.parts.iter().enumerate().filter(|(at, _)| may_have(*at));
            let node = Merged::of_unmarked(parts.map(|(_, part)| self.kept(part)));
            let found = node.descend(rest);
            return found.map(Descended::found).map_err(|error| error.at(path::Display(path)));
        }
        path::check(path)?;
        let mut roots = Vec::with_capacity(self.layers.len());
        for (at, layer) in self.layers.iter().enumerate() {
            let root = match &layer.place {
                Place::Stored(state, place) => self.states[*state].layer(place)?,
                Place::Provided(provided) => provided.root(path)?,
            };
            roots.extend(root.map(|root| (at, root)));
        }
        let Some(mut node) = Merged::new(roots)? else { return Ok(None) };
        // Step by step, to see where a way begins.
        let is_kept = |layer: &Placed| match &layer.place {
            Place::Stored(state, _) => self.states[*state].is_one_state(),
            // Not every read comes by.
            Place::Provided(_) => false,
        };
        let keeps_ways = self.layers.iter().all(is_kept);
        let mut from = 0;
        let mut way = None;
        while from < path.len() {
            if keeps_ways && node.kind()? == NodeKind::Map {
                way = Way::at(&path[..from], &node).or(way);
            }
            let end = path[from + 1..].find('/').map_or(path.len(), |len| from + 1 + len);
            let step = node.descend(&path[from..end]);
            let step = step.map_err(|error| error.at(path::Display(&path[..end])))?;
            let Some(next) = step.found() else {
                self.way.replace(way);
                return Ok(None);
            };
            (node, from) = (next, end);
        }
        self.way.replace(way);
        Ok(Some(node))
    }

    /// A part of a way, to be read.
    fn kept(&self, (at, slot): &(usize, Slot<'static>)) -> (usize, Reached<'_>) {
        let state = match &self.layers[*at].place {
            Place::Stored(state, _) => &self.states[*state],
            Place::Provided(_) => unreachable!("a way leads through what is stored"),
        };
        let view = state.view();
        (*at, Reached::Stored(Stored::kept(view, slot)))
    }

    /// What is known of the keys of a way's maps; nothing while it was not taken often.
    fn filters<'w>(&self, way: &'w Way) -> Result<&'w [Option<Filter>]> {
        if let Some(known) = way.filters.get() {
            return Ok(known);
        }
        let times = way.times.get() + 1;
        way.times.set(times);
        if times < OFTEN {
            return Ok(&[]);
        }
        let filters = way.parts.iter().map(|part| Filter::of(&self.kept(part).1));
        let filters = filters.collect::<Result<_>>()?;
        Ok(way.filters.get_or_init(|| filters))
    }

    /// What was read last, when a path leads through it.
    fn on_the_way(&self, path: &str) -> Option<Ref<'_, Way>> {
        let way = self.way.borrow();
        let leads_on =
            |way: &Way| path.strip_prefix(&*way.path).is_some_and(|rest| rest.starts_with('/'));
        Ref::filter_map(way, |way| way.as_ref().filter(|way| leads_on(way))).ok()
    }

    /// The names of the layers that the node at a path comes from; `None` when there is none.
    pub fn sources(&self, path: &str) -> Result<Option<Vec<&str>>> {
        let names = |node: Merged<_>| node.layers().map(|at| &*self.layers[at].name).collect();
        Ok(self.merged(path)?.map(names))
    }

    /// Tells the layer of each value below a path; false when there is no node.
    pub fn each_source(
        &self,
        path: &str,
        found: &mut dyn FnMut(Sourced<'_>, &Merged<Reached<'_>>) -> Result<()>,
    ) -> Result<bool> {
        let Some(node) = self.merged(path)? else { return Ok(false) };
        let mut here = Path::parse(path)?;
        let mut levels = Vec::new();
        self.enter_sourced(&node, &here, &mut levels, found)?;
        let mut buffer = Vec::new();
        let mut child = node;
        while let Some(level) = levels.last_mut() {
            if !level.next(&mut child)? {
                levels.pop();
                here.pop();
                continue;
            }
            let key = level.key(&mut buffer)?;
            let key = key.ok_or_else(no_key)?;
            here.push(&key.text());
            let depth = levels.len();
            self.enter_sourced(&child, &here, &mut levels, found)?;
            if levels.len() == depth {
                here.pop();
            }
        }
        Ok(true)
    }

    /// Goes into a map that has members, and tells everything else.
    fn enter_sourced<'s>(
        &self,
        node: &Merged<Reached<'s>>,
        path: &Path,
        levels: &mut Vec<<Merged<Reached<'s>> as Node>::Children>,
        found: &mut dyn FnMut(Sourced<'_>, &Merged<Reached<'_>>) -> Result<()>,
    ) -> Result<()> {
        if node.kind()? == NodeKind::Map
            && let Some(mut children) = node.children()?
            && children.next(&mut node.clone())?
        {
            // It was only asked whether there is one.
            levels.extend(node.children()?);
            return Ok(());
        }
        let layer = node.layers().next().map_or("", |at| &*self.layers[at].name);
        found(Sourced { path, layer }, node)
    }
}
