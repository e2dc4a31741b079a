//! Several trees read as one, the highest first: at each node the highest that has it decides, and
//! maps are merged member by member. Lists and scalars are whole.
//!
//! Nothing is built: a step costs one step in each tree that still has something there. What a layer
//! says beyond its values is in [`Marks`]. It must not know where the trees come from.

use std::collections::BTreeMap;

use super::marks::{self, Marks};
use super::{Children, Descended, Leaf, Name, Node, count_by_steps, descend_by_steps};
use crate::Path;
use crate::error::{Error, ErrorKind, Result};
use crate::key::{EncodedKey, Key, no_key};
use crate::node::NodeKind;
use crate::visit::{Container, Scalar, Text, Visitor};

/// A node of several layers read as one.
#[derive(Clone)]
pub struct Merged<N> {
    /// What decides, the highest first: one node, or several maps.
    parts: Vec<Part<N>>,
}

/// The node of one layer.
#[derive(Clone)]
struct Part<N> {
    layer: usize,
    node: N,
    marks: Marks,
}

impl<N: Node> Part<N> {
    /// A node of a layer, which may have marks only if `is_marked`.
    #[inline]
    fn new(layer: usize, node: N, is_marked: bool) -> Result<Part<N>> {
        let marks = if is_marked { Marks::of(&node)? } else { Marks::NONE };
        Ok(Part { layer, node, marks })
    }
}

impl<N: Node> Merged<N> {
    /// Trees read as one, the highest first, each with the number of its layer; `None` when no one is
    /// there.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub fn new(layers: impl IntoIterator<Item = (usize, N)>) -> Result<Option<Merged<N>>> {
        let parts: Result<_> =
            layers.into_iter().map(|(layer, root)| Part::new(layer, root, true)).collect();
        let mut merged = Merged { parts: parts? };
        Ok(merged.settle()?.then_some(merged))
    }

    /// The layers that it comes from, the highest first: one, or those whose maps are merged.
    pub fn layers(&self) -> impl Iterator<Item = usize> + '_ {
        self.nodes().map(|(layer, _)| layer)
    }

    /// The nodes that decide, the highest first, each with the number of its layer.
    pub fn nodes(&self) -> impl Iterator<Item = (usize, &N)> {
        self.parts.iter().map(|part| (part.layer, &part.node))
    }

    /// The node that decides alone, with the number of its layer and its marks, when none are below it.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub fn whole(&self) -> Result<Option<(usize, &N, Marks)>> {
        let [Part { layer, node, marks }] = &*self.parts else { return Ok(None) };
        // Only maps are read with the marks of their members.
        let has_marks_below = marks.has(Marks::BELOW) && node.kind()? == NodeKind::Map;
        Ok((!has_marks_below).then_some((*layer, node, *marks)))
    }

    /// The node that decides alone, or the maps that are merged, the highest first, each with the number
    /// of its layer; `None` when marks are concerned.
    pub fn unmarked(&self) -> Option<impl Iterator<Item = (usize, &N)> + Clone> {
        let is_unmarked = self.parts.iter().all(|part| part.marks == Marks::NONE);
        is_unmarked.then(|| self.parts.iter().map(|part| (part.layer, &part.node)))
    }

    /// What [`Merged::unmarked`] gave.
    pub fn of_unmarked(parts: impl IntoIterator<Item = (usize, N)>) -> Merged<N> {
        let part = |(layer, node)| Part { layer, node, marks: Marks::NONE };
        Merged { parts: parts.into_iter().map(part).collect() }
    }

    /// Whether both come from the same nodes of the same layers, as `is_same` tells of two.
    pub fn is_same<M>(&self, other: &Merged<M>, is_same: impl Fn(&N, &M) -> bool) -> bool {
        let same = |(a, b): (&Part<N>, &Part<M>)| {
            a.layer == b.layer && a.marks == b.marks && is_same(&a.node, &b.node)
        };
        self.parts.len() == other.parts.len() && self.parts.iter().zip(&other.parts).all(same)
    }

    /// Keeps what decides of the nodes at one place; false when there is nothing.
    #[inline]
    fn settle(&mut self) -> Result<bool> {
        if let [only] = &*self.parts
            && only.marks == Marks::NONE
        {
            return Ok(true);
        }
        marks::decide(&mut self.parts, |part| {
            let is_map = part.node.kind()? == NodeKind::Map;
            Ok((is_map && !part.marks.has(Marks::DELETED), part.marks))
        })?;
        Ok(!self.parts.is_empty())
    }

    /// The first that decides.
    fn top(&self) -> &Part<N> {
        &self.parts[0]
    }

    /// Its node, when no other layer and no mark is concerned here or below.
    fn alone(&self) -> Option<&N> {
        match &*self.parts {
            [only] if only.marks == Marks::NONE => Some(&only.node),
            _ => None,
        }
    }

    /// Moves all parts; those that cannot go on are left behind.
    fn enter_with(&mut self, mut enter: impl FnMut(&mut N) -> Result<bool>) -> Result<bool> {
        let mut result = Ok(());
        self.parts.retain_mut(|part| {
            if result.is_err() {
                return false;
            }
            let entered = enter(&mut part.node).and_then(|found| {
                let is_marked = found && part.marks.has(Marks::BELOW);
                part.marks = if is_marked { Marks::of(&part.node)? } else { Marks::NONE };
                Ok(found)
            });
            entered.unwrap_or_else(|error| {
                result = Err(error);
                false
            })
        });
        result?;
        Ok(!self.parts.is_empty() && self.settle()?)
    }

    /// Its members from a key on, or its elements, as `children` gives them of one layer's node.
    fn merge(
        &self,
        children: impl Fn(&N) -> Result<Option<N::Children>>,
    ) -> Result<Option<MergedChildren<N>>> {
        let mut runs = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let Some(children) = children(&part.node)? else { return Ok(None) };
            let is_marked = part.marks.has(Marks::BELOW);
            runs.push(Run { part: part.clone(), children, is_marked, key: EncodedKey::default() });
        }
        Ok(Some(match self.alone().is_some() || self.top().node.kind()? == NodeKind::List {
            true => MergedChildren::Alone(runs.pop().expect("a node has a part")),
            false => MergedChildren::Map { ahead: Vec::with_capacity(runs.len()), runs, key: None },
        }))
    }
}

impl<N: Node> Node for Merged<N> {
    type Children = MergedChildren<N>;

    fn kind(&self) -> Result<NodeKind> {
        self.top().node.kind()
    }

    fn leaf<'a>(&'a self, long: &'a mut Vec<u8>) -> Result<Option<Leaf<'a>>> {
        self.top().node.leaf(long)
    }

    /// # Complexity
    /// O(1) for a list, and for a map that one layer alone has, without marks; that of running over
    /// the members for others.
    fn count(&self) -> Result<u64> {
        if self.alone().is_some() || self.kind()? != NodeKind::Map {
            return self.top().node.count();
        }
        count_by_steps(self)
    }

    fn enter(&mut self, name: &Name) -> Result<bool> {
        self.enter_with(|node| node.enter(name))
    }

    fn enter_position(&mut self, position: u64) -> Result<bool> {
        self.enter_with(|node| node.enter_position(position))
    }

    fn children(&self) -> Result<Option<MergedChildren<N>>> {
        self.merge(N::children)
    }

    fn members_from(&self, key: &EncodedKey) -> Result<Option<MergedChildren<N>>> {
        self.merge(|node| node.members_from(key))
    }

    fn elements(&self, from: u64) -> Result<Option<MergedChildren<N>>> {
        self.merge(|node| node.elements(from))
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        let mut walk = Walk { levels: Vec::new(), buffer: Vec::new() };
        walk.run(self.clone(), visitor).map_err(|error| match error.kind() {
            ErrorKind::Corrupted if !walk.levels.is_empty() => {
                error.at(format_args!("at {} below it", walk.trail()))
            }
            _ => error,
        })
    }

    /// Where no marks are, a layer that has a leaf there hides those below it, and they are not read.
    #[inline]
    fn descend(self, path: &str) -> Result<Descended<Merged<N>>> {
        let mut is_shared = self.unmarked().is_none() || path.is_empty();
        for Part { layer, node, .. } in &self.parts {
            if is_shared {
                break;
            }
            match node.clone().descend(path)? {
                Descended::Found(node) if node.kind()? != NodeKind::Map => {
                    return Ok(Descended::Found(Merged::of_unmarked([(*layer, node)])));
                }
                Descended::Found(_) => is_shared = true,
                Descended::Ended => return Ok(Descended::Ended),
                Descended::Missing => {}
            }
        }
        match is_shared {
            true => descend_by_steps(self, path),
            false => Ok(Descended::Missing),
        }
    }

    fn meta(&self, found: &mut dyn FnMut(&str, &str)) -> Result<()> {
        if let Some(node) = self.alone() {
            return node.meta(found);
        }
        let mut entries = BTreeMap::new();
        for part in &self.parts {
            part.node.meta(&mut |name, value| {
                if name != marks::NAME && !entries.contains_key(name) {
                    entries.insert(name.to_owned(), value.to_owned());
                }
            })?;
        }
        entries.iter().for_each(|(name, value)| found(name, value));
        Ok(())
    }
}

/// The children that one layer has of a node, and the one that is ahead.
pub struct Run<N: Node> {
    part: Part<N>,
    children: N::Children,
    /// Whether they may have marks.
    is_marked: bool,
    /// The key of the one ahead.
    key: EncodedKey,
}

impl<N: Node> Run<N> {
    /// Moves on; false behind the last.
    fn advance(&mut self, buffer: &mut Vec<u8>) -> Result<bool> {
        if !self.children.next(&mut self.part.node)? {
            return Ok(false);
        }
        let key = self.children.key(buffer)?.ok_or_else(no_key)?;
        self.key = key.encoded();
        Ok(true)
    }
}

/// The children of a node of several layers, merged by their keys.
pub enum MergedChildren<N: Node> {
    /// One layer's, without marks.
    Alone(Run<N>),
    /// Members of maps.
    Map {
        /// The layers that have more, the highest first.
        runs: Vec<Run<N>>,
        /// The numbers of those whose member was given last, to move on.
        ahead: Vec<usize>,
        /// The key that was given last; `None` before the first.
        key: Option<EncodedKey>,
    },
}

impl<N: Node> Children for MergedChildren<N> {
    type Node = Merged<N>;

    fn next(&mut self, node: &mut Merged<N>) -> Result<bool> {
        match self {
            MergedChildren::Alone(run) => {
                if !run.children.next(&mut run.part.node)? {
                    return Ok(false);
                }
                let Part { layer, node: child, .. } = &run.part;
                match &mut *node.parts {
                    [only] => {
                        only.node.clone_from(child);
                        (only.layer, only.marks) = (*layer, Marks::NONE);
                    }
                    _ => {
                        let child = child.clone();
                        node.parts = vec![Part { layer: *layer, node: child, marks: Marks::NONE }];
                    }
                }
                Ok(true)
            }
            MergedChildren::Map { runs, ahead, key } => {
                if key.is_none() {
                    ahead.extend(0..runs.len());
                }
                let mut buffer = Vec::new();
                loop {
                    // From the last on, so that the numbers stay right.
                    while let Some(at) = ahead.pop() {
                        if !runs[at].advance(&mut buffer)? {
                            runs.remove(at);
                        }
                    }
                    let Some(least) = runs.iter().map(|run| &run.key).min() else {
                        return Ok(false);
                    };
                    let least = key.insert(least.clone());
                    node.parts.clear();
                    for (at, run) in runs.iter().enumerate().filter(|(_, run)| run.key == *least) {
                        let Part { layer, node: child, .. } = &run.part;
                        node.parts.push(Part::new(*layer, child.clone(), run.is_marked)?);
                        ahead.push(at);
                    }
                    if node.settle()? {
                        return Ok(true);
                    }
                }
            }
        }
    }

    fn key<'k>(&'k self, buffer: &'k mut Vec<u8>) -> Result<Option<Key<'k>>> {
        match self {
            MergedChildren::Alone(run) => run.children.key(buffer),
            MergedChildren::Map { key, .. } => Ok(key.as_deref().and_then(Key::decode)),
        }
    }
}

/// A walk in document order; the containers that it is in are a stack of its own.
struct Walk<N: Node> {
    levels: Vec<MergedChildren<N>>,
    buffer: Vec<u8>,
}

impl<N: Node> Walk<N> {
    fn run(&mut self, mut node: Merged<N>, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        self.enter(&node, visitor)?;
        while let Some(level) = self.levels.last_mut() {
            if !level.next(&mut node)? {
                self.levels.pop();
                visitor.close()?;
                continue;
            }
            if let Some(key) = level.key(&mut self.buffer)? {
                visitor.key(key)?;
            }
            self.enter(&node, visitor)?;
        }
        Ok(())
    }

    /// Gives a node to the visitor, or its beginning.
    fn enter(&mut self, node: &Merged<N>, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        if let Some(node) = node.alone() {
            return node.visit(visitor);
        }
        let mut result = Ok(());
        node.meta(&mut |name, value| {
            if result.is_ok() {
                result = visitor.meta(name, value);
            }
        })?;
        result?;
        if let Some(leaf) = node.leaf(&mut self.buffer)? {
            return visitor.scalar(leaf.scalar());
        }
        let is_map = node.kind()? == NodeKind::Map;
        visitor.open(if is_map { Container::Map } else { Container::List })?;
        let children = node.children()?;
        self.levels.push(children.ok_or_else(|| Error::corrupted("a container has no members"))?);
        Ok(())
    }

    /// The path that it stands at, as far as it is known.
    fn trail(&self) -> Path {
        let mut path = Path::root();
        for level in &self.levels {
            match level.key(&mut Vec::new()) {
                Ok(Some(key)) => path.push(&key.text()),
                _ => return path,
            }
        }
        path
    }
}

impl<'a> Leaf<'a> {
    /// The same, as visitors take it.
    pub fn scalar(self) -> Scalar<'a> {
        match self {
            Leaf::Null => Scalar::Null,
            Leaf::Bool(value) => Scalar::Bool(value),
            Leaf::Number(num) => Scalar::Number(num),
            Leaf::String(text) => Scalar::String(Text::new(text)),
            Leaf::Bytes(bytes) => Scalar::Bytes(bytes),
        }
    }
}
