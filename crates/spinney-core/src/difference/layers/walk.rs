//! Comparing what layers are read as, before and after, where it may differ.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::backend::TreeId;
use crate::diff::{Diff, Op, Step, Steps, What};
use crate::difference::is_identical;
use crate::error::Result;
use crate::key::{EncodedKey, Key, not_a_key};
use crate::node::{self, NodeKind};
use crate::read::{Children, Marks, Merged, Name, Node, Reached, Stored};
use crate::reclaim;
use crate::visit::Container;

use super::touched::Touched;

/// What is known of the node that a layer has at a place, before and after.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trace {
    /// It is the same, and all below it.
    Same,
    /// It or something below it was changed in place: a place of [`Touched`].
    Touched(usize),
    /// It was added, removed or replaced: this node itself, or what it lies in.
    Replaced { here: bool },
}

type Layers<'s> = Merged<Stored<'s>>;

/// An encoded node, and the tree that its ids belong to.
type Encoded = (TreeId, Arc<[u8]>);

/// A walk over the places that may differ.
pub struct Walk<'w, 'd, 's> {
    touched: &'w [Touched<'d>],
    /// Leads to the innermost level.
    path: Vec<Step>,
    /// The same, shared by the operations there.
    container: Option<Arc<[Step]>>,
    levels: Vec<Level<'s>>,
    ops: Vec<Op>,
}

/// Maps whose members are compared; one of them, when the other side has no map.
struct Level<'s> {
    before: Option<Layers<'s>>,
    after: Option<Layers<'s>>,
    /// What is known of each layer there.
    traces: Vec<Trace>,
    keys: std::collections::btree_set::IntoIter<EncodedKey>,
    /// What is to be told behind the members.
    end: Vec<Op>,
}

impl<'w, 'd, 's> Walk<'w, 'd, 's> {
    /// Compares the trees that layers are read as.
    pub fn run(
        touched: &'w [Touched<'d>],
        traces: Vec<Trace>,
        before: Option<Layers<'s>>,
        after: Option<Layers<'s>>,
    ) -> Result<Diff> {
        let (path, levels, ops) = (Vec::new(), Vec::new(), Vec::new());
        let mut walk = Walk { touched, path, container: None, levels, ops };
        let first = walk.compare(None, before, after, traces)?;
        walk.levels.extend(first);
        while let Some(level) = walk.levels.last_mut() {
            let Some(key) = level.keys.next() else {
                let level = walk.levels.pop();
                walk.ops.extend(level.map_or(Vec::new(), |level| level.end));
                walk.path.pop();
                walk.container = None;
                continue;
            };
            let name = Name::new(Key::decode(&key).ok_or_else(not_a_key)?.text());
            let before = entered(&level.before, &name)?;
            let after = entered(&level.after, &name)?;
            let traces = level.traces.iter().zip(touched).map(|(trace, touched)| match trace {
                Trace::Same => Trace::Same,
                Trace::Touched(place) => touched.member(*place, &key),
                Trace::Replaced { .. } => Trace::Replaced { here: false },
            });
            let traces = traces.collect();
            let step = Step::Key(key);
            if let Some(level) = walk.compare(Some(&step), before, after, traces)? {
                walk.path.push(step);
                walk.container = None;
                walk.levels.push(level);
            }
        }
        Ok(Diff { ops: walk.ops })
    }

    /// Compares the nodes at one place; the level of their members, when these come next.
    fn compare(
        &mut self,
        step: Option<&Step>,
        before: Option<Layers<'s>>,
        after: Option<Layers<'s>>,
        traces: Vec<Trace>,
    ) -> Result<Option<Level<'s>>> {
        let (Some(old), Some(new)) = (&before, &after) else {
            return match (before, after) {
                (None, None) => Ok(None),
                (before, after) => self.replace(step, before, after, traces),
            };
        };
        match (old.kind()?, new.kind()?) {
            (NodeKind::Map, NodeKind::Map) => {
                if let (Some((from, ..)), Some((to, ..))) = (old.whole()?, new.whole()?)
                    && from == to
                    && traces[from] == (Trace::Replaced { here: true })
                {
                    self.compare_whole(step, old, new)?;
                    return Ok(None);
                }
                self.compare_metadata(step, old, new)?;
                self.level(before, after, traces, Vec::new()).map(Some)
            }
            (NodeKind::Map, _) | (_, NodeKind::Map) => self.replace(step, before, after, traces),
            (one, other) => {
                let (from, to) = (top(old).0, top(new).0);
                match traces[from] {
                    Trace::Same if from == to => {}
                    Trace::Touched(place)
                        if from == to && (one, other) == (NodeKind::List, NodeKind::List) =>
                    {
                        self.compare_metadata(step, old, new)?;
                        self.tell_elements(step, from, place);
                    }
                    _ => self.compare_whole(step, old, new)?,
                }
                Ok(None)
            }
        }
    }

    /// Tells what became of one node that one layer alone has the whole of.
    fn compare_whole(
        &mut self,
        step: Option<&Step>,
        old: &Layers<'s>,
        new: &Layers<'s>,
    ) -> Result<()> {
        let (from, to) = (encoded(old)?.0, encoded(new)?.0);
        let is_container = old.is_container()? && new.is_container()?;
        // Another map is not looked through: it was put there as a whole.
        let may_be_same = from == to || !is_container || new.kind()? == NodeKind::List;
        if may_be_same {
            let (old, new) = (top(old).1.with_encoded(&from.1), top(new).1.with_encoded(&to.1));
            if is_identical(&Reached::Stored(old), &Reached::Stored(new))? {
                return Ok(());
            }
        }
        let ops = self.node_ops(step, Some(from), Some(to));
        self.ops.extend(ops);
        Ok(())
    }

    fn compare_metadata(
        &mut self,
        step: Option<&Step>,
        old: &Layers<'s>,
        new: &Layers<'s>,
    ) -> Result<()> {
        let (from, to) = (metadata(old)?, metadata(new)?);
        if from != to {
            let op =
                self.op(step, What::Meta, top(new).1.tree(), Some(from.into()), Some(to.into()));
            self.ops.push(op);
        }
        Ok(())
    }

    /// Tells the commit's operations on elements of a list.
    fn tell_elements(&mut self, step: Option<&Step>, layer: usize, place: usize) {
        let list: Vec<Step> = self.path.iter().chain(step).cloned().collect();
        for op in self.touched[layer].elements(place) {
            // The last steps, from the element on.
            let is_key = |step: &&Step| matches!(step, Step::Key(_));
            let within = op.path.iter().skip_while(is_key);
            let path: Vec<Step> = list.iter().chain(within).cloned().collect();
            self.ops.push(Op { path: path.into(), ..(*op).clone() });
        }
    }

    /// Puts one node in the place of another one or of nothing, or takes it away. A map that layers share comes
    /// and goes as an empty one and its members.
    fn replace(
        &mut self,
        step: Option<&Step>,
        before: Option<Layers<'s>>,
        after: Option<Layers<'s>>,
        traces: Vec<Trace>,
    ) -> Result<Option<Level<'s>>> {
        let encode = |node: &Option<Layers<'s>>| -> Result<(bool, Option<Encoded>)> {
            let Some(node) = node else { return Ok((true, None)) };
            let (encoded, is_whole) = encoded(node)?;
            Ok((is_whole, Some(encoded)))
        };
        let ((is_old_whole, old), (is_new_whole, new)) = (encode(&before)?, encode(&after)?);
        let ops = self.node_ops(step, old, new);
        if !is_old_whole {
            return self.level(before, None, traces, ops).map(Some);
        }
        self.ops.extend(ops);
        match is_new_whole {
            true => Ok(None),
            false => self.level(None, after, traces, Vec::new()).map(Some),
        }
    }

    /// The members of two maps, or of one, that may differ.
    fn level(
        &self,
        before: Option<Layers<'s>>,
        after: Option<Layers<'s>>,
        traces: Vec<Trace>,
        end: Vec<Op>,
    ) -> Result<Level<'s>> {
        let mut keys = BTreeSet::new();
        for (side, other) in [(&before, &after), (&after, &before)] {
            for (layer, node) in side.iter().flat_map(Merged::nodes) {
                let has_layer = |other: &Layers<'s>| other.layers().any(|known| known == layer);
                let is_shared = other.as_ref().is_some_and(has_layer);
                match traces[layer] {
                    Trace::Same if is_shared => {}
                    Trace::Touched(place) if is_shared => {
                        keys.extend(self.touched[layer].keys(place).cloned());
                    }
                    _ => add_keys(node, &mut keys)?,
                }
            }
        }
        Ok(Level { before, after, traces, keys: keys.into_iter(), end })
    }

    /// The operation that puts one node in the place of another. Where both refer to records of different trees
    /// it takes two: the ids of one operation are those of one tree.
    fn node_ops(
        &mut self,
        step: Option<&Step>,
        old: Option<Encoded>,
        new: Option<Encoded>,
    ) -> Vec<Op> {
        let refers = |node: &Encoded| reclaim::refers(&node.1);
        match (old, new) {
            (Some(old), Some(new)) if old.0 != new.0 && refers(&old) && refers(&new) => vec![
                self.op(step, What::Node, old.0, Some(old.1), None),
                self.op(step, What::Node, new.0, None, Some(new.1)),
            ],
            (old, new) => {
                let refers = [&new, &old].into_iter().flatten().find(|node| refers(node));
                let tree = refers.or(new.as_ref()).map_or(0, |(tree, _)| *tree);
                let (old, new) = (old.map(|(_, old)| old), new.map(|(_, new)| new));
                vec![self.op(step, What::Node, tree, old, new)]
            }
        }
    }

    fn op(
        &mut self,
        step: Option<&Step>,
        what: What,
        tree: TreeId,
        old: Option<Arc<[u8]>>,
        new: Option<Arc<[u8]>>,
    ) -> Op {
        let path = match step {
            None => Steps::default(),
            Some(step) => {
                let container = self.container.get_or_insert_with(|| Arc::from(&self.path[..]));
                Steps::below(container, step.clone())
            }
        };
        Op { path, what, tree, old, new }
    }
}

/// The member of a name, if there is one.
fn entered<'s>(map: &Option<Layers<'s>>, name: &Name) -> Result<Option<Layers<'s>>> {
    let Some(mut node) = map.clone() else { return Ok(None) };
    Ok(node.enter(name)?.then_some(node))
}

/// The highest layer that decides, and its node.
fn top<'n, 's>(node: &'n Layers<'s>) -> (usize, &'n Stored<'s>) {
    node.nodes().next().expect("a node has a layer")
}

fn add_keys(map: &Stored<'_>, keys: &mut BTreeSet<EncodedKey>) -> Result<()> {
    let Some(mut children) = map.children()? else { return Ok(()) };
    let mut child = map.clone();
    let mut buffer = Vec::new();
    while children.next(&mut child)? {
        keys.insert(children.key(&mut buffer)?.ok_or_else(not_a_key)?.encoded());
    }
    Ok(())
}

/// A node without what its layer says of it as a layer, and whether that is all of it: of a map that layers share,
/// or that has marks below, it is one without members.
fn encoded(node: &Layers<'_>) -> Result<(Encoded, bool)> {
    let tree = top(node).1.tree();
    let mut bytes = Vec::new();
    let Some((_, whole, marks)) = node.whole()? else {
        node::write_meta(&metadata(node)?, &mut bytes);
        node::write_inline(Container::Map, &[], &mut bytes);
        return Ok(((tree, bytes.into()), false));
    };
    if marks == Marks::NONE {
        return Ok(((tree, whole.encoded().into()), true));
    }
    let (_, rest) = node::split_meta(whole.encoded()).ok_or_else(node::damaged_node)?;
    node::write_meta(&metadata(node)?, &mut bytes);
    bytes.extend_from_slice(rest);
    Ok(((tree, bytes.into()), true))
}

/// The metadata of a node, encoded, without what layers say of it as layers.
fn metadata(node: &Layers<'_>) -> Result<Vec<u8>> {
    let mut entries = Vec::new();
    node.meta(&mut |name, value| entries.push((name.to_owned(), value.to_owned())))?;
    Ok(node::encode_meta(entries.iter().map(|(name, value)| (&**name, &**value))))
}
