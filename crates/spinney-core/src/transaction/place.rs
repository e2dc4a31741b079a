//! The way to a container, and putting members into it and taking them out.

use std::sync::Arc;

use crate::backend::TreeId;
use crate::build::Build;
use crate::edit::list::{Element, ElementValue, Now};
use crate::edit::{Base, Body, Edit};
use crate::error::{Error, Result};
use crate::key::EncodedKey;
use crate::limits::DEPTH_MAX;
use crate::node::{self, Node};
use crate::part::Part;
use crate::path::{self};
use crate::reclaim::Item;
use crate::visit::Container;

use super::{Receiver, Transaction, damaged, encoded_key};

/// What a path segment names in an opened container.
pub(super) enum Child {
    Absent,
    Scalar(Part),
    Open(usize),
}

impl<'b> Transaction<'b> {
    /// Opens the container at a checked path; `None` when it does not exist.
    pub(super) fn open_existing(&mut self, path: &str) -> Result<Option<usize>> {
        self.open_path(path, false)
    }

    /// Opens the container at a checked path; `make` tells whether missing maps are made.
    pub(super) fn open_path(&mut self, path: &str, make: bool) -> Result<Option<usize>> {
        self.last_parent = None;
        self.trail.clear();
        let mut node = 0;
        for segment in path::segments(path) {
            if self.trail.len() + 1 >= DEPTH_MAX {
                return Err(Error::limit_exceeded(format!(
                    "the path is deeper than {DEPTH_MAX} levels"
                )));
            }
            let child = self.child(node, &segment)?;
            let position = match self.edits.nodes[node].container() {
                Container::Map => None,
                Container::List => path::position(&segment),
            };
            self.trail.push((node, position));
            node = match child {
                Child::Open(child) => child,
                Child::Scalar(encoded) if make => {
                    return Err(Error::invalid_input(format!(
                        "`{segment}` on the way is a {}, not a map or list",
                        kind_of(&encoded)
                    )));
                }
                Child::Scalar(_) => return Ok(None),
                Child::Absent if !make => return Ok(None),
                Child::Absent => self.make_map(node, &segment)?,
            };
        }
        self.trail.push((node, None));
        Ok(Some(node))
    }

    pub(super) fn make_map(&mut self, parent: usize, segment: &str) -> Result<usize> {
        if self.edits.nodes[parent].container() == Container::List {
            return Err(self.no_position(parent, segment));
        }
        let tree = self.tree_to_write(parent, segment)?;
        let node = self.edits.new_map(tree);
        let key = encoded_key(segment)?;
        let made = Edit::Open { meta: Box::new([]), node, in_place: false };
        let before = self.put_map_member(parent, &key, made);
        self.made.get_or_insert((parent, key, before));
        Ok(node)
    }

    /// When an edit failed, takes the maps back that it made on its way.
    pub(super) fn or_unmake<T>(&mut self, edited: Result<T>) -> Result<T> {
        if edited.is_err() {
            self.last_parent = None;
        }
        if let Some((parent, key, before)) = self.made.take()
            && edited.is_err()
            && let Body::Map(map) = &mut self.edits.nodes[parent].body
        {
            match before {
                Some(before) => map.edits.insert(key, before),
                None => map.edits.remove(&key),
            };
        }
        edited
    }

    pub(super) fn child(&mut self, parent: usize, segment: &str) -> Result<Child> {
        match self.edits.nodes[parent].container() {
            Container::Map => self.map_child(parent, &encoded_key(segment)?),
            Container::List => match path::position(segment) {
                Some(position) => self.list_child(parent, position),
                None => Ok(Child::Absent),
            },
        }
    }

    pub(super) fn map_child(&mut self, parent: usize, key: &EncodedKey) -> Result<Child> {
        let Body::Map(map) = &self.edits.nodes[parent].body else { unreachable!("it is a map") };
        let edit = map.edits.get(key);
        let in_place = edit.is_none();
        let (tree, encoded) = match edit {
            Some(Edit::Removed) => return Ok(Child::Absent),
            Some(Edit::Open { node, .. }) => return Ok(Child::Open(*node)),
            Some(Edit::Set(encoded)) => {
                let tree = self.edits.member_tree(&self.pending, parent, key)?;
                (tree.unwrap_or(0), Part::from(&**encoded))
            }
            None => match &map.base {
                Base::Inline(body) if body.is_empty() => return Ok(Child::Absent),
                base => match self.edits.unedited_member(&self.pending, parent, key)? {
                    None => return Ok(Child::Absent),
                    // An opened container would keep the whole page.
                    Some((tree, encoded)) if matches!(base, Base::Paged(_)) => {
                        (tree, Part::from(&*encoded))
                    }
                    Some(stored) => stored,
                },
            },
        };
        match self.edits.open(&self.pending, tree, &encoded)? {
            None => Ok(Child::Scalar(encoded)),
            Some((meta, node)) => {
                if let Body::Map(map) = &mut self.edits.nodes[parent].body {
                    let opened = Edit::Open { meta, node, in_place };
                    map.edits.insert(key.clone(), opened);
                }
                Ok(Child::Open(node))
            }
        }
    }

    pub(super) fn list_child(&mut self, parent: usize, position: u64) -> Result<Child> {
        let view = self.pending.view();
        let work = &mut self.edits.nodes[parent];
        let tree = work.tree;
        let Body::List(list) = &mut work.body else { unreachable!("it is a list") };
        let Some(element) = list.element(&view, position)? else { return Ok(Child::Absent) };
        let value = element.value.clone();
        let encoded = match list.now(&value) {
            Now::Edited(Edit::Open { node, .. }) => return Ok(Child::Open(*node)),
            Now::Edited(Edit::Set(encoded)) => Part::from(&**encoded),
            Now::Edited(Edit::Removed) => return Err(damaged()),
            Now::Stored(stored) => Part::from(stored),
        };
        match self.edits.open(&self.pending, tree, &encoded)? {
            None => Ok(Child::Scalar(encoded)),
            Some((meta, node)) => {
                let view = self.pending.view();
                if let Body::List(list) = &mut self.edits.nodes[parent].body
                    && let Some(element) = list.element(&view, position)?
                {
                    let opened = Edit::Open { meta, node, in_place: false };
                    element.value = ElementValue::Edited(opened);
                }
                Ok(Child::Open(node))
            }
        }
    }

    /// The tree of a member that is about to be written.
    pub(super) fn tree_to_write(&mut self, parent: usize, segment: &str) -> Result<TreeId> {
        match self.edits.nodes[parent].container() {
            Container::List => Ok(self.edits.nodes[parent].tree),
            Container::Map => {
                let key = encoded_key(segment)?;
                self.edits.member_tree_to_write(&mut self.pending, parent, &key)
            }
        }
    }

    pub(super) fn list_len(&self, node: usize) -> u64 {
        match &self.edits.nodes[node].body {
            Body::List(list) => list.len(),
            Body::Map(_) => 0,
        }
    }

    /// The position before which a segment inserts into a list of `len`; `-` is its end.
    pub(super) fn position_to_insert(&self, list: usize, segment: &str, len: u64) -> Result<u64> {
        let position = match segment {
            "-" => Some(len),
            segment => path::position(segment).filter(|&position| position <= len),
        };
        position.ok_or_else(|| self.no_position(list, segment))
    }

    #[cold]
    pub(super) fn no_element(&self, list: usize, segment: &str) -> Error {
        let len = self.list_len(list);
        Error::invalid_input(format!(
            "`{segment}` is no element of a list of {len}; name one to replace it, or write `-` to append"
        ))
    }

    #[cold]
    pub(super) fn no_position(&self, list: usize, segment: &str) -> Error {
        let len = self.list_len(list);
        Error::invalid_input(format!(
            "`{segment}` is no position of a list of {len}; write 0 to {len}, or `-` for its end"
        ))
    }

    /// Marks the containers on the way to an edit.
    pub(super) fn mark_changed(&mut self) -> Result<()> {
        let view = self.pending.view();
        for &(node, position) in &self.trail {
            let work = &mut self.edits.nodes[node];
            work.changed = true;
            if let (Body::List(list), Some(position)) = (&mut work.body, position) {
                list.mark(&view, position)?;
            }
        }
        Ok(())
    }

    pub(super) fn build(
        &mut self,
        tree: TreeId,
        source: impl FnOnce(&mut Receiver<'_, '_>) -> Result<()>,
    ) -> Result<Arc<[u8]>> {
        let first_id = self.pending.head(tree)?.next_id;
        let depth = self.trail.len();
        let build: Build<'_, 'b> = self.builder.build(&mut self.pending, tree, depth, self.scratch);
        let mut receiver = Receiver::of_node(build);
        let built = source(&mut receiver).and_then(|()| receiver.finish());
        self.or_give_back(tree, first_id, built)
    }

    /// When building failed, queues what it had already made.
    pub(super) fn or_give_back<T>(
        &mut self,
        tree: TreeId,
        first_id: u64,
        built: Result<T>,
    ) -> Result<T> {
        if built.is_err() {
            self.give_back(tree, first_id)?;
        }
        built
    }

    /// Queues everything under the ids from `first_id` on.
    pub(super) fn give_back(&mut self, tree: TreeId, first_id: u64) -> Result<()> {
        let end = self.pending.head(tree)?.next_id;
        if end > first_id {
            let what = crate::reclaim::What::Ids { end };
            self.pending.reclaim(&Item::new(tree, first_id, what));
        }
        Ok(())
    }

    pub(super) fn put_member(&mut self, parent: usize, segment: &str, edit: Edit) -> Result<()> {
        match self.edits.nodes[parent].container() {
            Container::Map => {
                let key = encoded_key(segment)?;
                let tree = self.edits.member_tree_to_write(&mut self.pending, parent, &key)?;
                if let Some(old) = self.put_map_member(parent, &key, edit) {
                    self.discard(tree, old);
                }
            }
            Container::List => {
                let tree = self.edits.nodes[parent].tree;
                if let Some(old) = self.replace_edit(parent, segment, edit)? {
                    self.discard(tree, old);
                }
            }
        }
        self.mark_changed()
    }

    pub(super) fn put_map_member(
        &mut self,
        parent: usize,
        key: &EncodedKey,
        edit: Edit,
    ) -> Option<Edit> {
        let work = &mut self.edits.nodes[parent];
        work.changed = true;
        match &mut work.body {
            Body::Map(map) => map.edits.insert(key.clone(), edit),
            Body::List(_) => unreachable!("it is a map"),
        }
    }

    /// Puts an edit in the place of an existing member and returns the edit that was there.
    pub(super) fn replace_edit(
        &mut self,
        parent: usize,
        segment: &str,
        edit: Edit,
    ) -> Result<Option<Edit>> {
        let view = self.pending.view();
        let work = &mut self.edits.nodes[parent];
        work.changed = true;
        match &mut work.body {
            Body::Map(map) => Ok(map.edits.insert(encoded_key(segment)?, edit)),
            Body::List(list) => {
                let position = path::position(segment).expect("it names an element");
                list.mark(&view, position)?;
                let element = list.element(&view, position)?.expect("it exists");
                match std::mem::replace(&mut element.value, ElementValue::Edited(edit)) {
                    ElementValue::Edited(old) => Ok(Some(old)),
                    ElementValue::Stored { .. } => Ok(None),
                }
            }
        }
    }

    pub(super) fn remove_member(&mut self, parent: usize, key: &EncodedKey) -> Result<()> {
        let tree = self.edits.member_tree_to_write(&mut self.pending, parent, key)?;
        if let Some(old) = self.put_map_member(parent, key, Edit::Removed) {
            self.discard(tree, old);
        }
        Ok(())
    }

    pub(super) fn take_element(&mut self, parent: usize, position: u64) -> Result<Element> {
        let view = self.pending.view();
        let work = &mut self.edits.nodes[parent];
        work.changed = true;
        let Body::List(list) = &mut work.body else { unreachable!("it is a list") };
        list.remove(&view, position)?.ok_or_else(damaged)
    }

    pub(super) fn insert_into(
        &mut self,
        parent: usize,
        position: u64,
        source: impl FnOnce(&mut Receiver<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let tree = self.edits.nodes[parent].tree;
        let encoded = self.build(tree, source)?;
        self.put_element(parent, position, None, Edit::Set(encoded))
    }

    pub(super) fn put_element(
        &mut self,
        parent: usize,
        position: u64,
        id: Option<u64>,
        edit: Edit,
    ) -> Result<()> {
        let view = self.pending.view();
        let work = &mut self.edits.nodes[parent];
        work.changed = true;
        let Body::List(list) = &mut work.body else { unreachable!("it is a list") };
        let id = match id {
            Some(id) => {
                list.moved.insert(id);
                list.next_id = list.next_id.max(id + 1);
                id
            }
            None => list.new_id(),
        };
        list.insert(&view, position, Element { id, value: ElementValue::Edited(edit) })?;
        self.mark_changed()
    }

    /// Takes a member out of its container, keeping what it refers to.
    pub(super) fn take(&mut self, parent: usize, segment: &str) -> Result<(Edit, Option<u64>)> {
        match self.edits.nodes[parent].container() {
            Container::Map => {
                let (edit, _) = self.take_map_member(parent, &encoded_key(segment)?)?;
                Ok((edit, None))
            }
            Container::List => {
                let position = path::position(segment).expect("it names an element");
                let element = self.take_element(parent, position)?;
                let Body::List(list) = &self.edits.nodes[parent].body else { unreachable!() };
                let edit = match list.now(&element.value) {
                    Now::Edited(edit) => edit.clone().displaced(),
                    Now::Stored(stored) => Edit::Set(stored.into()),
                };
                Ok((edit, Some(element.id)))
            }
        }
    }

    pub(super) fn take_map_member(
        &mut self,
        parent: usize,
        key: &EncodedKey,
    ) -> Result<(Edit, TreeId)> {
        let tree = self.edits.member_tree_to_write(&mut self.pending, parent, key)?;
        let edit = match self.put_map_member(parent, key, Edit::Removed) {
            Some(edit) => edit.displaced(),
            None => match self.edits.stored_member(&self.pending, parent, key)? {
                Some(encoded) => Edit::Set((*encoded).into()),
                None => return Err(damaged()),
            },
        };
        Ok((edit, tree))
    }

    /// Notes what a dropped edit had made, to be given back unless it has moved elsewhere.
    pub(super) fn discard(&mut self, tree: TreeId, edit: Edit) {
        let mut edits = vec![edit];
        while let Some(edit) = edits.pop() {
            match edit {
                Edit::Removed => {}
                Edit::Set(encoded) => self.dropped.push((tree, encoded.to_vec())),
                Edit::Open { node, .. } => {
                    let work = &mut self.edits.nodes[node];
                    let mut encoded = Vec::new();
                    work.write_base(&mut encoded);
                    self.dropped.push((tree, encoded));
                    edits.extend(work.take_edits());
                }
            }
        }
    }
}

fn kind_of(encoded: &[u8]) -> &'static str {
    use crate::visit::Scalar;
    match node::read(encoded).map(|annotated| annotated.node) {
        Some(Node::Scalar(Scalar::Null)) => "null",
        Some(Node::Scalar(Scalar::Bool(_))) => "bool",
        Some(Node::Scalar(Scalar::Number(_))) => "number",
        Some(Node::Scalar(Scalar::Bytes(_))) => "bytes value",
        _ => "string",
    }
}
