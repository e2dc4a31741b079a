//! One state of a stack: a state of each store that its layers are in.

use spinney_core::backend::Revision;
use spinney_core::node::NodeKind;
use spinney_core::read::{Children, Merged, Node, descend};
use spinney_core::{Error, Path, Result, path};

use super::{Layer, Reached};
use crate::snapshot::Snapshot;

/// The layers of a snapshot, the highest first.
pub(crate) struct Layers {
    /// One for each store.
    states: Vec<Snapshot>,
    layers: Vec<Placed>,
}

/// Where a layer is.
struct Placed {
    name: String,
    state: usize,
    path: Path,
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
    /// The newest states.
    pub fn read(layers: &[Layer]) -> Result<Layers> {
        let mut stores: Vec<&Layer> = Vec::new();
        let mut states = Vec::new();
        let mut placed = Vec::with_capacity(layers.len());
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
            placed.push(Placed { name: layer.name.clone(), state, path: layer.path.clone() });
        }
        Ok(Layers { states, layers: placed })
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
        path::check(path)?;
        let mut roots = Vec::with_capacity(self.layers.len());
        for (at, layer) in self.layers.iter().enumerate() {
            if let Some(node) = self.states[layer.state].node(&layer.path)? {
                roots.push((at, node));
            }
        }
        let Some(root) = Merged::new(roots)? else { return Ok(None) };
        descend(root, path).map_err(|error| error.at(path::Display(path)))
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
            let key = key.ok_or_else(|| Error::corrupted("a member of a map has no key"))?;
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
