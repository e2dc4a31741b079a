//! A transaction: edits at paths, then the commit, which reads top to bottom as data flows.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::backend::{self, Backend, Outcome, Revision, TreeId};
use crate::build::{Build, Builder, NewScratch, check_meta};
use crate::diff::{Delta, Diff, MemberChange, Op, Step, What};
use crate::edit::list::{Element, ElementValue};
use crate::edit::read::{self, Found};
use crate::edit::{Base, Body, Edit, Edits, encode_list, encode_map};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::limits::{DEPTH_MAX, KEY_LEN_MAX};
use crate::node::{self, Node};
use crate::path::{self, Display};
use crate::pending::Pending;
use crate::reclaim::{Item, references};
use crate::value::{Value, ValueBuilder};
use crate::view::View;
use crate::visit::{Container, Visitor};

/// Revisions whose diffs the change log keeps.
pub const LOG_REVISIONS_MAX: u64 = 1_000;

/// What a commit did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// The revision that it made, or the one it read when nothing changed.
    pub revision: Revision,
    /// What changed; empty when nothing did.
    pub diff: Diff,
    /// The trees that were written: where reclaim may find work.
    pub trees: Vec<TreeId>,
    /// Whether something was put into the reclaim queue.
    pub reclaims: bool,
}

/// Edits that become visible together or not at all.
///
/// It reads one state of the store with its own edits on top. Paths are JSON Pointers from the
/// store's root; the first segment names a tree.
pub struct Transaction<'b> {
    pending: Pending<'b>,
    edits: Edits,
    builder: Builder,
    scratch: Option<&'b NewScratch<'b>>,
    /// Encoded nodes that edits had made and that were dropped again.
    dropped: Vec<(TreeId, Vec<u8>)>,
    /// The parent path of the last `set`, while the trail still leads there.
    last_parent: Option<String>,
    /// The first map that the current edit made on its way, and what was in its place.
    made: Option<(usize, Box<[u8]>, Option<Edit>)>,
    /// After the diff: the opened containers whose changes are part of it.
    entered: BTreeSet<usize>,
    /// The opened containers from the root to the one that an edit is in, with the position in lists.
    trail: Vec<(usize, Option<u64>)>,
}

/// What a path segment names in an opened container.
enum Child {
    Absent,
    Scalar(Box<[u8]>),
    Open(usize),
}

/// Whether an edit may, must or must not find a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Either way.
    Any,
    /// `AlreadyExists` when there is one.
    MustNot,
}

impl<'b> Transaction<'b> {
    /// Starts from the newest state. The caller holds the backend's write guard.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn begin(backend: &'b dyn Backend) -> Result<Transaction<'b>> {
        let pending = Pending::new(backend)?.recover()?;
        let edits = Edits::new(&pending)?;
        Ok(Transaction {
            pending,
            edits,
            builder: Builder::default(),
            scratch: None,
            dropped: Vec::new(),
            last_parent: None,
            made: None,
            entered: BTreeSet::new(),
            trail: Vec::new(),
        })
    }

    /// Says where large unsorted containers wait to be merged; the default is memory.
    pub fn set_scratch(&mut self, scratch: &'b NewScratch<'b>) {
        self.scratch = Some(scratch);
    }

    /// Replaces the buffers of imports, for tests of what happens beyond their limit.
    pub fn set_builder(&mut self, builder: Builder) {
        self.builder = builder;
    }

    /// The revision that the transaction reads.
    pub fn base(&self) -> Revision {
        self.pending.base()
    }

    // Reading.

    fn found(&self, path: &str) -> Result<Option<Found<'_>>> {
        path::check(path)?;
        read::resolve(&self.edits, &self.pending.view(), path)
            .map_err(|error| error.at(Display(path)))
    }

    /// The value at a path, with the edits so far; `None` when there is none.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path, `Corrupted` for damage.
    pub fn get(&self, path: &str) -> Result<Option<Value>> {
        let mut builder = ValueBuilder::default();
        Ok(if self.visit(path, &mut builder)? { builder.finish() } else { None })
    }

    /// Drives a visitor over the node at a path; false when there is none.
    ///
    /// # Errors
    /// As [`Transaction::get`], and the visitor's.
    pub fn visit(&self, path: &str, visitor: &mut (impl Visitor + ?Sized)) -> Result<bool> {
        match self.found(path)? {
            None => Ok(false),
            Some(found) => {
                read::walk(&self.edits, &self.pending.view(), found, visitor)?;
                Ok(true)
            }
        }
    }

    /// Whether there is a node at a path.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn exists(&self, path: &str) -> Result<bool> {
        Ok(self.found(path)?.is_some())
    }

    /// How many members the container at a path has; `None` when there is none or it is a scalar.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn count(&self, path: &str) -> Result<Option<u64>> {
        match self.found(path)? {
            None => Ok(None),
            Some(found) => read::count(&self.edits, &self.pending.view(), &found)
                .map_err(|error| error.at(Display(path))),
        }
    }

    /// The metadata of a node, in the order of the names; `None` when there is no node.
    ///
    /// # Errors
    /// As [`Transaction::get`].
    pub fn meta(&self, path: &str) -> Result<Option<Vec<(String, String)>>> {
        let Some(found) = self.found(path)? else { return Ok(None) };
        let own = |meta: &[u8]| -> Option<Vec<(String, String)>> {
            node::meta_entries(meta)
                .map(|entry| entry.map(|(n, v)| (n.to_owned(), v.to_owned())))
                .collect()
        };
        let entries = match &found {
            Found::Open { meta, .. } => own(meta),
            Found::Stored(slot) => own(slot.read()?.meta),
        };
        entries.map(Some).ok_or_else(|| Error::corrupted("stored metadata does not read"))
    }

    // Editing.

    /// Sets the node at a path. Missing maps on the way are made; `-` appends to a list.
    ///
    /// # Errors
    /// `InvalidInput` when the path is malformed, leads through a scalar or behind a list's end;
    /// `LimitExceeded`; those of the backend.
    pub fn set(&mut self, path: &str, value: &Value) -> Result<()> {
        self.set_with(path, Existing::Any, |visitor| value.visit(visitor))
    }

    /// As [`Transaction::set`], but refuses a node that exists.
    ///
    /// # Errors
    /// `AlreadyExists`; as [`Transaction::set`].
    pub fn create(&mut self, path: &str, value: &Value) -> Result<()> {
        self.set_with(path, Existing::MustNot, |visitor| value.visit(visitor))
    }

    /// Sets the node at a path to what `source` drives into the visitor it is given, in bounded
    /// memory however large it is.
    ///
    /// # Errors
    /// As [`Transaction::set`], and those of the source, after which nothing has changed.
    pub fn set_with(
        &mut self,
        path: &str,
        existing: Existing,
        source: impl FnOnce(&mut dyn Visitor) -> Result<()>,
    ) -> Result<()> {
        let set = self.try_set(path, existing, source);
        self.or_unmake(set).map_err(|error| match error.kind() {
            // The source's own errors say where they are; the path is said once, for all others.
            crate::ErrorKind::InvalidInput if path.is_empty() => error,
            _ => error.at(format_args!("set {}", Display(path))),
        })
    }

    fn try_set(
        &mut self,
        path: &str,
        existing: Existing,
        source: impl FnOnce(&mut dyn Visitor) -> Result<()>,
    ) -> Result<()> {
        path::check(path)?;
        let Some((parent, last)) = path::split_last(path) else {
            return self.set_root(source);
        };
        let parent = self.open_or_make_again(parent)?;
        match self.edits.nodes[parent].container() {
            Container::Map => self.set_member(parent, &encoded_key(&last)?, existing, source),
            Container::List if last == "-" => {
                let position = self.list_len(parent);
                self.insert_into(parent, position, source)
            }
            Container::List => match self.child(parent, &last)? {
                Child::Absent => Err(self.no_element(parent, &last)),
                _ if existing == Existing::MustNot => Err(exists_already()),
                _ => {
                    let encoded = self.build(self.edits.nodes[parent].tree, source)?;
                    self.put_member(parent, &last, Edit::Set(encoded))
                }
            },
        }
    }

    fn set_member(
        &mut self,
        parent: usize,
        key: &[u8],
        existing: Existing,
        source: impl FnOnce(&mut dyn Visitor) -> Result<()>,
    ) -> Result<()> {
        if existing == Existing::MustNot && !matches!(self.map_child(parent, key)?, Child::Absent) {
            return Err(exists_already());
        }
        let tree = self.edits.member_tree_to_write(&mut self.pending, parent, key)?;
        let encoded = self.build(tree, source)?;
        if let Some(old) = self.put_map_member(parent, key, Edit::Set(encoded)) {
            self.discard(tree, old);
        }
        self.mark_changed()
    }

    /// As [`Transaction::open_or_make`]; costs nothing when it is the parent of the last `set`.
    fn open_or_make_again(&mut self, path: &str) -> Result<usize> {
        if self.last_parent.as_deref() == Some(path) {
            return Ok(self.trail.last().expect("it ends at the parent").0);
        }
        let parent = self.open_or_make(path)?;
        let last = self.last_parent.get_or_insert_default();
        last.clear();
        last.push_str(path);
        Ok(parent)
    }

    /// Replaces all trees by the members of an object.
    fn set_root(&mut self, source: impl FnOnce(&mut dyn Visitor) -> Result<()>) -> Result<()> {
        self.last_parent = None;
        self.trail.clear();
        self.trail.push((0, None));
        let mut members = RootMembers {
            transaction: self,
            depth: 0,
            name: None,
            tree: 0,
            fresh: Vec::new(),
            first_ids: Vec::new(),
        };
        let built = source(&mut members);
        let RootMembers { fresh, first_ids, .. } = members;
        if let Err(error) = built {
            for (tree, first_id) in first_ids {
                self.give_back(tree, first_id)?;
            }
            return Err(error);
        }
        let names: BTreeSet<&Box<[u8]>> = fresh.iter().map(|(name, _)| name).collect();
        for name in self.root_names()? {
            if !names.contains(&name) {
                self.remove_member(0, &name)?;
            }
        }
        for (name, encoded) in fresh {
            self.put_map_member(0, &name, Edit::Set(encoded));
        }
        self.mark_changed()
    }

    fn root_names(&self) -> Result<Vec<Box<[u8]>>> {
        struct Names(Vec<Box<[u8]>>);
        impl Visitor for Names {
            fn open(&mut self, _: Container) -> Result<()> {
                Ok(())
            }
            fn key(&mut self, key: Key<'_>) -> Result<()> {
                let mut encoded = Vec::new();
                key.encode(&mut encoded);
                self.0.push(encoded.into());
                Ok(())
            }
            fn scalar(&mut self, _: crate::visit::Scalar<'_>) -> Result<()> {
                Ok(())
            }
            fn close(&mut self) -> Result<()> {
                Ok(())
            }
            fn meta(&mut self, _: &str, _: &str) -> Result<()> {
                Ok(())
            }
        }
        let mut names = Names(Vec::new());
        let view = self.pending.view();
        let mut cursor = view.cursor(&view.root()?)?.expect("the root is a map");
        let mut buffer = Vec::new();
        while cursor.advance()? {
            names.key(cursor.key(&mut buffer)?)?;
        }
        if let Body::Map(map) = &self.edits.nodes[0].body {
            names.0.extend(map.edits.keys().cloned());
        }
        names.0.sort_unstable();
        names.0.dedup();
        Ok(names.0)
    }

    /// Removes the node at a path and all below it; false when there is none.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path or the root; those of the backend.
    ///
    /// # Complexity
    /// As one changed leaf, however much is below: what it held is reclaimed later, in steps.
    pub fn remove(&mut self, path: &str) -> Result<bool> {
        self.try_remove(path).map_err(|error| error.at(format_args!("remove {}", Display(path))))
    }

    fn try_remove(&mut self, path: &str) -> Result<bool> {
        path::check(path)?;
        let Some((parent, last)) = path::split_last(path) else {
            return Err(Error::invalid_input("the root cannot be removed; remove its members"));
        };
        let Some(parent) = self.open_existing(parent)? else { return Ok(false) };
        if let Child::Absent = self.child(parent, &last)? {
            return Ok(false);
        }
        match self.edits.nodes[parent].container() {
            Container::Map => self.remove_member(parent, &encoded_key(&last)?)?,
            Container::List => {
                let position = path::position(&last).expect("it names an element");
                let element = self.take_element(parent, position)?;
                if let ElementValue::Edited(edit) = element.value {
                    self.discard(self.edits.nodes[parent].tree, edit);
                }
            }
        }
        self.mark_changed()?;
        Ok(true)
    }

    /// Inserts an element before the position that the path names; `-` is the end.
    ///
    /// # Errors
    /// `NotFound` when the list does not exist, `InvalidInput` when it is no list or the position
    /// is behind its end.
    ///
    /// # Complexity
    /// O(log n).
    pub fn insert(&mut self, path: &str, value: &Value) -> Result<()> {
        let inserted = (|| {
            path::check(path)?;
            let Some((parent, last)) = path::split_last(path) else {
                return Err(Error::invalid_input("the root is no list"));
            };
            let Some(parent) = self.open_existing(parent)? else {
                return Err(Error::not_found("the list does not exist; set it to `[]` first"));
            };
            let len = match &self.edits.nodes[parent].body {
                Body::List(list) => list.len(),
                Body::Map(_) => {
                    return Err(Error::invalid_input("it is a map, not a list; use `set`"));
                }
            };
            let position = match &*last {
                "-" => len,
                segment => path::position(segment)
                    .filter(|&position| position <= len)
                    .ok_or_else(|| self.no_position(parent, segment))?,
            };
            self.insert_into(parent, position, |visitor| value.visit(visitor))
        })();
        self.or_unmake(inserted).map_err(|error| error.at(format_args!("insert {}", Display(path))))
    }

    /// Moves a node: its container, however large, is not copied within one tree.
    ///
    /// In a list the target position refers to the list without the moved element; an element that
    /// moves within its list keeps its id.
    ///
    /// # Errors
    /// `NotFound` when there is nothing at `from`; `AlreadyExists` when a whole tree would replace
    /// another; `InvalidInput` when `to` lies below `from` or is no place.
    ///
    /// # Complexity
    /// O(log n) within a tree; O(size) to another tree, or to a deeper place, whose depth is checked.
    pub fn mv(&mut self, from: &str, to: &str) -> Result<()> {
        let moved = self.try_move(from, to);
        self.or_unmake(moved)
            .map_err(|error| error.at(format_args!("move {} to {}", Display(from), Display(to))))
    }

    fn try_move(&mut self, from: &str, to: &str) -> Result<()> {
        path::check(from)?;
        path::check(to)?;
        let Some((from_parent, from_last)) = path::split_last(from) else {
            return Err(Error::invalid_input("the root cannot be moved"));
        };
        let Some((to_parent, to_last)) = path::split_last(to) else {
            return Err(Error::invalid_input("nothing can be moved onto the root"));
        };
        if !self.exists(from)? {
            return Err(Error::not_found("there is nothing to move"));
        }
        if from == to {
            return Ok(());
        }
        if to.strip_prefix(from).is_some_and(|rest| rest.starts_with('/')) {
            return Err(Error::invalid_input("a node cannot be moved below itself"));
        }
        let tree_of = |path: &str| path[1..].split('/').next().map(str::to_owned);
        let whole_trees = (from_parent.is_empty(), to_parent.is_empty());
        match whole_trees {
            (true, true) if self.exists(to)? => {
                return Err(Error::already_exists("a tree is there already; remove it first"));
            }
            (true, true) => return self.rename_tree(&from_last, &to_last),
            (false, false) if tree_of(from) == tree_of(to) => {}
            _ => {
                self.try_copy(from, to)?;
                // Where `to` is above `from`, what was there went with what it replaced.
                if !from.strip_prefix(to).is_some_and(|rest| rest.starts_with('/')) {
                    self.try_remove(from)?;
                }
                return Ok(());
            }
        }
        let (from_depth, to_depth) = (path::segments(from).count(), path::segments(to).count());
        if to_depth > from_depth {
            self.visit(from, &mut DepthCheck { depth: to_depth - 1 })?;
        }
        let source = self.open_existing(from_parent)?.expect("what is moved has a parent");
        let same_list =
            from_parent == to_parent && self.edits.nodes[source].container() == Container::List;
        let (edit, id) = self.take(source, &from_last)?;
        self.mark_changed()?;
        let back = edit.clone();
        let placed = self.place(to, edit, id.filter(|_| same_list));
        if placed.is_err() {
            self.put_back(source, &from_last, id, back)?;
        }
        placed
    }

    /// Puts a member that was taken out back in its place.
    fn put_back(
        &mut self,
        parent: usize,
        segment: &str,
        id: Option<u64>,
        edit: Edit,
    ) -> Result<()> {
        self.trail.clear();
        match id {
            None => drop(self.put_map_member(parent, &encoded_key(segment)?, edit)),
            Some(id) => {
                let position = path::position(segment).expect("it named an element");
                self.put_element(parent, position, Some(id), edit)?;
            }
        }
        Ok(())
    }

    fn rename_tree(&mut self, from: &str, to: &str) -> Result<()> {
        let (from, to) = (encoded_key(from)?, encoded_key(to)?);
        let tree = self.edits.member_tree_to_write(&mut self.pending, 0, &from)?;
        self.open_existing("")?;
        let (edit, _) = self.take_map_member(0, &from)?;
        // Whatever takes the old name later is another tree.
        let other = TreeId::try_from(self.pending.new_id(0)?)
            .map_err(|_| Error::limit_exceeded("the store has no tree numbers left"))?;
        self.edits.trees.insert(from, other);
        self.edits.trees.insert(to.clone(), tree);
        self.put_map_member(0, &to, edit);
        self.mark_changed()
    }

    /// Copies a node and all below it.
    ///
    /// # Errors
    /// `NotFound` when there is nothing at `from`; as [`Transaction::set`] for `to`.
    ///
    /// # Complexity
    /// O(size of what is copied).
    pub fn copy(&mut self, from: &str, to: &str) -> Result<()> {
        let copied = self.try_copy(from, to);
        self.or_unmake(copied)
            .map_err(|error| error.at(format_args!("copy {} to {}", Display(from), Display(to))))
    }

    fn try_copy(&mut self, from: &str, to: &str) -> Result<()> {
        path::check(from)?;
        if !self.exists(from)? {
            return Err(Error::not_found("there is nothing to copy"));
        }
        path::check(to)?;
        let Some(name) = path::segments(to).next() else {
            return Err(Error::invalid_input("nothing can be copied onto the root"));
        };
        // The copy is complete before the way to its place is made, which may lead through `from`.
        let tree = self.tree_to_write(0, &name)?;
        let first_id = self.pending.head(tree)?.next_id;
        let depth = path::segments(to).count();
        let fork = self.pending.fork()?;
        let view = View { snapshot: &fork, key_len_max: self.pending.sizes.key_len_max };
        let mut build = self.builder.build(&mut self.pending, tree, depth, self.scratch);
        let copied = match read::resolve(&self.edits, &view, from)? {
            Some(found) => read::walk(&self.edits, &view, found, &mut build),
            None => Err(Error::not_found("there is nothing to copy")),
        };
        let copied = copied.and_then(|()| build.finish());
        let placed = copied.and_then(|encoded| self.place(to, Edit::Set(encoded), None));
        self.or_give_back(tree, first_id, placed)
    }

    /// Puts a node that was moved or copied: a map's member is replaced, a list's inserted.
    fn place(&mut self, to: &str, edit: Edit, id: Option<u64>) -> Result<()> {
        let (parent, last) = path::split_last(to).expect("it is not the root");
        let parent = self.open_or_make(parent)?;
        match &self.edits.nodes[parent].body {
            Body::Map(_) => self.put_member(parent, &last, edit),
            Body::List(list) => {
                let len = list.len();
                let position = match &*last {
                    "-" => len,
                    segment => path::position(segment)
                        .filter(|&position| position <= len)
                        .ok_or_else(|| self.no_position(parent, segment))?,
                };
                self.put_element(parent, position, id, edit)
            }
        }
    }

    /// Sets or, with `None`, removes one metadata entry of a node.
    ///
    /// # Errors
    /// `NotFound` when there is no node; `InvalidInput` for the root; `LimitExceeded` above 64 KiB.
    pub fn set_meta(&mut self, path: &str, name: &str, value: Option<&str>) -> Result<()> {
        self.try_set_meta(path, name, value)
            .map_err(|error| error.at(format_args!("metadata of {}", Display(path))))
    }

    fn try_set_meta(&mut self, path: &str, name: &str, value: Option<&str>) -> Result<()> {
        let Some(entries) = self.meta(path)? else {
            return Err(Error::not_found("there is no node"));
        };
        let mut entries: std::collections::BTreeMap<String, String> = entries.into_iter().collect();
        match value {
            Some(value) => entries.insert(name.to_owned(), value.to_owned()),
            None => entries.remove(name),
        };
        let meta = node::encode_meta(entries.iter().map(|(name, value)| (&**name, &**value)));
        check_meta(&meta)?;
        self.replace_meta(path, &meta)
    }

    /// Replaces the encoded metadata of an existing node.
    fn replace_meta(&mut self, path: &str, meta: &[u8]) -> Result<()> {
        let Some((parent, last)) = path::split_last(path) else {
            return Err(Error::invalid_input("the root has no metadata; annotate a tree"));
        };
        let parent = self.open_existing(parent)?.expect("the node exists");
        self.tree_to_write(parent, &last)?;
        match self.child(parent, &last)? {
            Child::Absent => return Err(Error::not_found("there is no node")),
            Child::Scalar(encoded) => {
                let (_, plain) = node::split_meta(&encoded).ok_or_else(damaged)?;
                let mut fresh = Vec::new();
                node::write_meta(meta, &mut fresh);
                fresh.extend_from_slice(plain);
                self.replace_edit(parent, &last, Edit::Set(fresh.into()))?;
            }
            Child::Open(node) => {
                self.edits.nodes[node].changed = true;
                self.replace_edit(parent, &last, Edit::Open { meta: meta.into(), node })?;
            }
        }
        self.mark_changed()
    }

    /// Applies the operations of a diff whose containers are not held by reference (see
    /// [`crate::expand`]).
    ///
    /// # Errors
    /// `Conflict` when the state is not the one that an operation expects.
    pub fn apply(&mut self, diff: &Diff) -> Result<()> {
        for op in &diff.ops {
            let path = op.pointer();
            let applied = match (&op.what, &op.new, op.path.last()) {
                (What::Meta, Some(meta), _) => self.replace_meta(&path, meta),
                (What::Meta, None, _) => self.replace_meta(&path, &[]),
                (What::Node, _, Some(Step::Element { id, position }))
                    if op.old.is_some() && self.element_id(&path, *position)? != Some(*id) =>
                {
                    Err(Error::conflict(format!("the element {id} is not there")))
                }
                (What::Node, None, _) => self.try_remove(&path).and_then(|existed| match existed {
                    true => Ok(()),
                    false => Err(Error::conflict("there is nothing to remove")),
                }),
                (What::Node, Some(new), Some(Step::Element { id, position }))
                    if op.old.is_none() =>
                {
                    self.apply_insert(&path, *position, *id, new)
                }
                (What::Node, Some(new), _) => {
                    let new = crate::expand::Contained(new);
                    self.try_set(&path, Existing::Any, |visitor| new.visit(visitor))
                }
            };
            applied.map_err(|error| error.at(format_args!("apply a diff at {path}")))?;
        }
        Ok(())
    }

    /// The id of the element at a position of the list that a path leads to.
    fn element_id(&mut self, path: &str, position: u64) -> Result<Option<u64>> {
        let (parent, _) = path::split_last(path).expect("an element has a list");
        let Some(parent) = self.open_existing(parent)? else { return Ok(None) };
        let view = self.pending.view();
        match &mut self.edits.nodes[parent].body {
            Body::List(list) => Ok(list.element(&view, position)?.map(|element| element.id)),
            Body::Map(_) => Ok(None),
        }
    }

    fn apply_insert(&mut self, path: &str, position: u64, id: u64, new: &[u8]) -> Result<()> {
        let (parent, _) = path::split_last(path).expect("an element has a list");
        let Some(parent) = self.open_existing(parent)? else {
            return Err(Error::conflict("the list does not exist"));
        };
        let (tree, depth) = (self.edits.nodes[parent].tree, self.trail.len());
        let encoded = {
            let mut build = self.builder.build(&mut self.pending, tree, depth, self.scratch);
            crate::expand::Contained(new).visit(&mut build)?;
            build.finish()?
        };
        self.put_element(parent, position, Some(id), Edit::Set(encoded))
    }

    // The way to a container.

    /// Opens the container at a checked path; `None` when it does not exist.
    fn open_existing(&mut self, path: &str) -> Result<Option<usize>> {
        self.open_path(path, false)
    }

    /// Opens the container at a checked path, making the maps that are missing.
    fn open_or_make(&mut self, path: &str) -> Result<usize> {
        Ok(self.open_path(path, true)?.expect("missing maps are made"))
    }

    fn open_path(&mut self, path: &str, make: bool) -> Result<Option<usize>> {
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

    fn make_map(&mut self, parent: usize, segment: &str) -> Result<usize> {
        if self.edits.nodes[parent].container() == Container::List {
            return Err(self.no_position(parent, segment));
        }
        let tree = self.tree_to_write(parent, segment)?;
        let node = self.edits.new_map(tree);
        let key = encoded_key(segment)?;
        let before = self.put_map_member(parent, &key, Edit::Open { meta: Box::new([]), node });
        self.made.get_or_insert((parent, key, before));
        Ok(node)
    }

    /// When an edit failed, takes the maps back that it made on its way.
    fn or_unmake<T>(&mut self, edited: Result<T>) -> Result<T> {
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

    fn child(&mut self, parent: usize, segment: &str) -> Result<Child> {
        match self.edits.nodes[parent].container() {
            Container::Map => self.map_child(parent, &encoded_key(segment)?),
            Container::List => match path::position(segment) {
                Some(position) => self.list_child(parent, position),
                None => Ok(Child::Absent),
            },
        }
    }

    fn map_child(&mut self, parent: usize, key: &[u8]) -> Result<Child> {
        let Body::Map(map) = &self.edits.nodes[parent].body else { unreachable!("it is a map") };
        let encoded = match map.edits.get(key) {
            Some(Edit::Removed) => return Ok(Child::Absent),
            Some(Edit::Open { node, .. }) => return Ok(Child::Open(*node)),
            Some(Edit::Set(encoded)) => encoded.to_vec(),
            None => match &map.base {
                Base::Inline(body) if body.is_empty() => return Ok(Child::Absent),
                _ => match self.edits.stored_member(&self.pending, parent, key)? {
                    Some(encoded) => encoded,
                    None => return Ok(Child::Absent),
                },
            },
        };
        let tree = self.edits.member_tree(&self.pending, parent, key)?.unwrap_or(0);
        match self.edits.open(&self.pending, tree, &encoded)? {
            None => Ok(Child::Scalar(encoded.into())),
            Some((meta, node)) => {
                if let Body::Map(map) = &mut self.edits.nodes[parent].body {
                    map.edits.insert(key.into(), Edit::Open { meta, node });
                }
                Ok(Child::Open(node))
            }
        }
    }

    fn list_child(&mut self, parent: usize, position: u64) -> Result<Child> {
        let view = self.pending.view();
        let work = &mut self.edits.nodes[parent];
        let tree = work.tree;
        let Body::List(list) = &mut work.body else { unreachable!("it is a list") };
        let Some(element) = list.element(&view, position)? else { return Ok(Child::Absent) };
        let value = element.value.clone();
        let encoded: Box<[u8]> = match &value {
            ElementValue::Edited(Edit::Open { node, .. }) => return Ok(Child::Open(*node)),
            ElementValue::Edited(Edit::Set(encoded)) => encoded.clone(),
            ElementValue::Edited(Edit::Removed) => return Err(damaged()),
            stored => list.stored_bytes(stored).expect("it is stored").into(),
        };
        match self.edits.open(&self.pending, tree, &encoded)? {
            None => Ok(Child::Scalar(encoded)),
            Some((meta, node)) => {
                let view = self.pending.view();
                if let Body::List(list) = &mut self.edits.nodes[parent].body
                    && let Some(element) = list.element(&view, position)?
                {
                    element.value = ElementValue::Edited(Edit::Open { meta, node });
                }
                Ok(Child::Open(node))
            }
        }
    }

    /// The tree of a member that is about to be written.
    fn tree_to_write(&mut self, parent: usize, segment: &str) -> Result<TreeId> {
        match self.edits.nodes[parent].container() {
            Container::List => Ok(self.edits.nodes[parent].tree),
            Container::Map => {
                let key = encoded_key(segment)?;
                self.edits.member_tree_to_write(&mut self.pending, parent, &key)
            }
        }
    }

    fn list_len(&self, node: usize) -> u64 {
        match &self.edits.nodes[node].body {
            Body::List(list) => list.len(),
            Body::Map(_) => 0,
        }
    }

    #[cold]
    fn no_element(&self, list: usize, segment: &str) -> Error {
        let len = self.list_len(list);
        Error::invalid_input(format!(
            "`{segment}` is no element of a list of {len}; name one to replace it, or write `-` to append"
        ))
    }

    #[cold]
    fn no_position(&self, list: usize, segment: &str) -> Error {
        let len = self.list_len(list);
        Error::invalid_input(format!(
            "`{segment}` is no position of a list of {len}; write 0 to {len}, or `-` for its end"
        ))
    }

    /// Marks the containers on the way to an edit.
    fn mark_changed(&mut self) -> Result<()> {
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

    // Putting and taking members.

    fn build(
        &mut self,
        tree: TreeId,
        source: impl FnOnce(&mut dyn Visitor) -> Result<()>,
    ) -> Result<Box<[u8]>> {
        let first_id = self.pending.head(tree)?.next_id;
        let depth = self.trail.len();
        let mut build: Build<'_, 'b> =
            self.builder.build(&mut self.pending, tree, depth, self.scratch);
        let built = source(&mut build).and_then(|()| build.finish());
        self.or_give_back(tree, first_id, built)
    }

    /// When building failed, queues what it had already made.
    fn or_give_back<T>(&mut self, tree: TreeId, first_id: u64, built: Result<T>) -> Result<T> {
        if built.is_err() {
            self.give_back(tree, first_id)?;
        }
        built
    }

    /// Queues everything under the ids from `first_id` on.
    fn give_back(&mut self, tree: TreeId, first_id: u64) -> Result<()> {
        let end = self.pending.head(tree)?.next_id;
        if end > first_id {
            let what = crate::reclaim::What::Ids { end };
            self.pending.reclaim(&Item { tree, id: first_id, what, except: Vec::new() });
        }
        Ok(())
    }

    fn put_member(&mut self, parent: usize, segment: &str, edit: Edit) -> Result<()> {
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

    fn put_map_member(&mut self, parent: usize, key: &[u8], edit: Edit) -> Option<Edit> {
        let work = &mut self.edits.nodes[parent];
        work.changed = true;
        match &mut work.body {
            Body::Map(map) => map.edits.insert(key.into(), edit),
            Body::List(_) => unreachable!("it is a map"),
        }
    }

    /// Puts an edit in the place of an existing member and returns the edit that was there.
    fn replace_edit(&mut self, parent: usize, segment: &str, edit: Edit) -> Result<Option<Edit>> {
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

    fn remove_member(&mut self, parent: usize, key: &[u8]) -> Result<()> {
        let tree = self.edits.member_tree_to_write(&mut self.pending, parent, key)?;
        if let Some(old) = self.put_map_member(parent, key, Edit::Removed) {
            self.discard(tree, old);
        }
        Ok(())
    }

    fn take_element(&mut self, parent: usize, position: u64) -> Result<Element> {
        let view = self.pending.view();
        let work = &mut self.edits.nodes[parent];
        work.changed = true;
        let Body::List(list) = &mut work.body else { unreachable!("it is a list") };
        list.remove(&view, position)?.ok_or_else(damaged)
    }

    fn insert_into(
        &mut self,
        parent: usize,
        position: u64,
        source: impl FnOnce(&mut dyn Visitor) -> Result<()>,
    ) -> Result<()> {
        let tree = self.edits.nodes[parent].tree;
        let encoded = self.build(tree, source)?;
        self.put_element(parent, position, None, Edit::Set(encoded))
    }

    fn put_element(
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
    fn take(&mut self, parent: usize, segment: &str) -> Result<(Edit, Option<u64>)> {
        match self.edits.nodes[parent].container() {
            Container::Map => {
                let (edit, _) = self.take_map_member(parent, &encoded_key(segment)?)?;
                Ok((edit, None))
            }
            Container::List => {
                let position = path::position(segment).expect("it names an element");
                let element = self.take_element(parent, position)?;
                let Body::List(list) = &self.edits.nodes[parent].body else { unreachable!() };
                let edit = match element.value {
                    ElementValue::Edited(edit) => edit,
                    ref stored => {
                        Edit::Set(list.stored_bytes(stored).expect("it is stored").into())
                    }
                };
                Ok((edit, Some(element.id)))
            }
        }
    }

    fn take_map_member(&mut self, parent: usize, key: &[u8]) -> Result<(Edit, TreeId)> {
        let tree = self.edits.member_tree_to_write(&mut self.pending, parent, key)?;
        let edit = match self.put_map_member(parent, key, Edit::Removed) {
            Some(edit) => edit,
            None => match self.edits.stored_member(&self.pending, parent, key)? {
                Some(encoded) => Edit::Set(encoded.into()),
                None => return Err(damaged()),
            },
        };
        Ok((edit, tree))
    }

    /// Notes what a dropped edit had made, to be given back unless it has moved elsewhere.
    fn discard(&mut self, tree: TreeId, edit: Edit) {
        let mut edits = vec![edit];
        while let Some(edit) = edits.pop() {
            match edit {
                Edit::Removed => {}
                Edit::Set(encoded) => self.dropped.push((tree, encoded.into())),
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

    // The commit, as data flows: edits -> pages -> diff -> (authorise, validate, veto, index: to
    // come) -> log -> batch. Pages come first because a diff refers to large containers by id;
    // nothing refers to the pages until the batch is committed.

    /// Commits the edits as one revision. Nothing is durable until the backend has synced it.
    ///
    /// # Errors
    /// `Conflict` when the store has changed since [`Transaction::begin`]; those of the backend.
    pub fn commit(mut self, commit_id: u128) -> Result<Commit> {
        let opened = self.opened()?;
        for &node in opened.iter().rev() {
            match self.edits.nodes[node].body {
                Body::Map(_) => encode_map::encode(&mut self.edits, &mut self.pending, node)?,
                Body::List(_) => encode_list::encode(&mut self.edits, &mut self.pending, node)?,
            }
        }
        let diff = self.diff();
        let base = self.pending.base();
        if diff.is_empty() {
            return Ok(Commit { revision: base, diff, trees: Vec::new(), reclaims: false });
        }
        self.reclaim_dropped(&diff)?;
        if let Some(root) = self.edits.nodes[0].encoded.take() {
            self.pending.head(0)?.root = root;
        } else {
            self.pending.head(0)?;
        }
        let revision = base + 1;
        let encoded: Arc<[u8]> = diff.encode().into();
        self.pending.log(revision, &encoded, LOG_REVISIONS_MAX);
        let trees = self.pending.trees();
        let (backend, reclaims) = (self.pending.backend(), self.pending.reclaims());
        let batch = self.pending.into_batch(revision, commit_id, encoded)?;
        match backend::Backend::commit(backend, batch)? {
            Outcome::Committed(revision) => Ok(Commit { revision, diff, trees, reclaims }),
            Outcome::Conflict => {
                Err(Error::conflict("the store changed while the transaction was open"))
            }
        }
    }

    /// The changed containers that are still in the tree, parents before children.
    fn opened(&mut self) -> Result<Vec<usize>> {
        self.edits.nodes[0].in_diff = true;
        let mut order = vec![0];
        let mut at = 0;
        while let Some(&node) = order.get(at) {
            at += 1;
            let work = &self.edits.nodes[node];
            let (in_diff, list) = (work.in_diff, work.container() == Container::List);
            let mut below = Vec::new();
            for (key, edit) in work.edits() {
                if let Edit::Open { node: child, .. } = edit
                    && self.edits.nodes[*child].changed
                {
                    let stored = || self.edits.stored_member(&self.pending, node, key);
                    let in_diff = in_diff && (list || stored()?.is_some());
                    below.push((*child, in_diff));
                }
            }
            for (child, in_diff) in below {
                self.edits.nodes[child].in_diff = in_diff;
                order.push(child);
            }
        }
        Ok(order)
    }

    /// Puts the changes of all containers together, with their paths.
    fn diff(&mut self) -> Diff {
        enum Next {
            Enter(usize),
            Change(Box<crate::diff::MemberDelta>, TreeId),
            Leave,
        }
        let mut diff = Diff::default();
        let mut path: Vec<Step> = Vec::new();
        let mut stack = vec![Next::Enter(0)];
        while let Some(next) = stack.pop() {
            let op = |step: Option<Step>, what, tree, old, new| {
                let path = path.iter().cloned().chain(step).collect();
                Op { path, what, tree, old, new }
            };
            match next {
                Next::Leave => {
                    path.pop();
                }
                Next::Enter(node) => {
                    self.entered.insert(node);
                    let work = &mut self.edits.nodes[node];
                    let (tree, list) = (work.tree, matches!(work.body, Body::List(_)));
                    let Delta { members, taken, put } = std::mem::take(&mut work.delta);
                    for taken in taken {
                        let step = Step::Element { id: taken.id, position: taken.position };
                        diff.ops.push(op(Some(step), What::Node, tree, Some(taken.value), None));
                    }
                    for put in put {
                        let step = Step::Element { id: put.id, position: put.position };
                        diff.ops.push(op(Some(step), What::Node, tree, None, Some(put.value)));
                    }
                    for member in members.into_iter().rev() {
                        let tree = if list { tree } else { member.tree };
                        stack.push(Next::Change(Box::new(member), tree));
                    }
                }
                Next::Change(member, tree) => match member.change {
                    MemberChange::Node { old, new } => {
                        diff.ops.push(op(Some(member.step), What::Node, tree, old, new));
                    }
                    MemberChange::Below { node, meta } => {
                        if let Some((old, new)) = meta {
                            let step = Some(member.step.clone());
                            diff.ops.push(op(step, What::Meta, tree, Some(old), Some(new)));
                        }
                        path.push(member.step);
                        stack.push(Next::Leave);
                        stack.push(Next::Enter(node));
                    }
                },
            }
        }
        diff
    }

    /// Queues what is referred to no more: what removed and replaced nodes held, stored ones and
    /// those that came and went in this transaction, except what lives on elsewhere.
    fn reclaim_dropped(&mut self, diff: &Diff) -> Result<()> {
        let mut dropped = std::mem::take(&mut self.dropped);
        let nodes = diff.ops.iter().filter(|op| op.what == What::Node);
        dropped.extend(nodes.filter_map(|op| Some((op.tree, op.old.as_deref()?.to_vec()))));
        // Changes below containers that are themselves new, or moved, are no part of the diff.
        let entered = std::mem::take(&mut self.entered);
        for (node, work) in self.edits.nodes.iter_mut().enumerate() {
            if !entered.contains(&node) {
                let Delta { members, taken, .. } = std::mem::take(&mut work.delta);
                let replaced = members.into_iter().filter_map(|member| match member.change {
                    MemberChange::Node { old, .. } => old,
                    MemberChange::Below { .. } => None,
                });
                let old = replaced.chain(taken.into_iter().map(|taken| taken.value));
                dropped.extend(old.map(|old| (work.tree, old.into())));
            }
        }
        let mut items = Vec::new();
        for (tree, encoded) in dropped {
            references(&encoded, |reference| items.extend(reference.item(tree)))
                .ok_or_else(damaged)?;
        }
        if items.is_empty() {
            return Ok(());
        }
        let live = self.live(&entered)?;
        for mut item in items {
            if !live.contains(&(item.tree, item.id)) {
                let moved = live
                    .iter()
                    .filter(|&&(tree, id)| tree == item.tree && !self.pending.is_new(tree, id));
                item.except = moved.map(|&(_, id)| id).collect();
                self.pending.reclaim(&item);
            }
        }
        Ok(())
    }

    /// What the edits refer to: all that could have moved away from where it was stored.
    fn live(&self, entered: &BTreeSet<usize>) -> Result<BTreeSet<(TreeId, u64)>> {
        let mut live = BTreeSet::new();
        let mut nodes = vec![0];
        while let Some(index) = nodes.pop() {
            let work = &self.edits.nodes[index];
            let mut refer = |tree: TreeId, encoded: &[u8]| {
                references(encoded, |reference| {
                    live.extend(reference.item(tree).map(|item| (tree, item.id)));
                })
                .ok_or_else(damaged)
            };
            for (key, edit) in work.edits() {
                match edit {
                    Edit::Removed => {}
                    Edit::Open { node, .. } => nodes.push(*node),
                    Edit::Set(encoded) => {
                        let tree =
                            self.edits.member_tree(&self.pending, index, key)?.unwrap_or(work.tree);
                        refer(tree, encoded)?;
                    }
                }
            }
            if !entered.contains(&index) {
                // The whole container is where it was not before, with the members it still has.
                work.unedited(|encoded| refer(work.tree, encoded))?;
            }
        }
        Ok(live)
    }
}

/// The name of a tree and its encoded root node.
type FreshTree = (Box<[u8]>, Box<[u8]>);

/// Builds each member of the root in its own tree.
struct RootMembers<'t, 'b> {
    transaction: &'t mut Transaction<'b>,
    depth: usize,
    name: Option<Box<[u8]>>,
    tree: TreeId,
    fresh: Vec<FreshTree>,
    /// The trees that were built in, with the first id used in each.
    first_ids: Vec<(TreeId, u64)>,
}

impl<'b> RootMembers<'_, 'b> {
    fn build(&mut self) -> Build<'_, 'b> {
        let t = &mut *self.transaction;
        t.builder.resume(&mut t.pending, self.tree, 1, t.scratch)
    }

    fn refuse_scalar(&self) -> Result<()> {
        match self.depth {
            0 => Err(Error::invalid_input(
                "the store's root is an object of trees; import into a path such as `/data` instead",
            )),
            _ => Ok(()),
        }
    }

    /// A member is complete.
    fn end_member(&mut self) -> Result<()> {
        let encoded = self.build().finish()?;
        let name = self.name.take().expect("a member has a name");
        if self.fresh.iter().any(|(other, _)| *other == name) {
            return Err(crate::value::duplicate_key(Key::decode(&name).unwrap_or(Key::Text("?"))));
        }
        self.fresh.push((name, encoded));
        Ok(())
    }
}

impl Visitor for RootMembers<'_, '_> {
    fn open(&mut self, container: Container) -> Result<()> {
        if self.depth == 0 {
            if container == Container::List {
                self.refuse_scalar()?;
            }
        } else {
            self.build().open(container)?;
        }
        self.depth += 1;
        Ok(())
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        if self.depth > 1 {
            return self.build().key(key);
        }
        let name = encoded_key(&key.text())?;
        let t = &mut *self.transaction;
        self.tree = t.edits.member_tree_to_write(&mut t.pending, 0, &name)?;
        self.first_ids.push((self.tree, t.pending.head(self.tree)?.next_id));
        t.builder.build(&mut t.pending, self.tree, 1, t.scratch);
        self.name = Some(name);
        Ok(())
    }

    fn scalar(&mut self, scalar: crate::visit::Scalar<'_>) -> Result<()> {
        self.refuse_scalar()?;
        self.build().scalar(scalar)?;
        if self.depth == 1 { self.end_member() } else { Ok(()) }
    }

    fn close(&mut self) -> Result<()> {
        self.depth -= 1;
        if self.depth == 0 {
            return Ok(());
        }
        self.build().close()?;
        if self.depth == 1 { self.end_member() } else { Ok(()) }
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        match self.depth {
            0 => Err(Error::invalid_input("the root has no metadata; annotate a tree")),
            _ => self.build().meta(name, value),
        }
    }
}

/// Refuses a subtree that would become too deep.
struct DepthCheck {
    depth: usize,
}

impl Visitor for DepthCheck {
    fn open(&mut self, _: Container) -> Result<()> {
        self.depth += 1;
        match self.depth >= DEPTH_MAX {
            true => Err(Error::limit_exceeded(format!(
                "the node would be deeper than {DEPTH_MAX} levels"
            ))),
            false => Ok(()),
        }
    }
    fn key(&mut self, _: Key<'_>) -> Result<()> {
        Ok(())
    }
    fn scalar(&mut self, _: crate::visit::Scalar<'_>) -> Result<()> {
        Ok(())
    }
    fn close(&mut self) -> Result<()> {
        self.depth -= 1;
        Ok(())
    }
    fn meta(&mut self, _: &str, _: &str) -> Result<()> {
        Ok(())
    }
}

fn encoded_key(text: &str) -> Result<Box<[u8]>> {
    if text.len() > KEY_LEN_MAX {
        return Err(Error::limit_exceeded(format!(
            "a key has {} bytes; at most {KEY_LEN_MAX} are allowed",
            text.len()
        )));
    }
    let mut key = Vec::with_capacity(text.len() + 1);
    Key::new(text).encode(&mut key);
    Ok(key.into())
}

#[cold]
fn exists_already() -> Error {
    Error::already_exists("there is a node already; set it or remove it first")
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

#[cold]
fn damaged() -> Error {
    Error::corrupted("a stored node does not read; run `check` to find what is damaged")
}
