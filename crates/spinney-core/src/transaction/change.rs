//! The edits that a user makes: set, remove, insert, move, copy, metadata.

use crate::backend::TreeId;
use crate::build::check_meta;
use crate::edit::list::ElementValue;
use crate::edit::read::{self};
use crate::edit::{Body, Edit};
use crate::error::{Error, Result};
use crate::key::{EncodedKey, Key};
use crate::limits::DEPTH_MAX;
use crate::node::{self};
use crate::path::{self, Display};
use crate::value::Value;
use crate::view::View;
use crate::visit::{Container, Visitor};

use super::access::Deed;
use super::place::Child;
use super::{Existing, Receiver, Transaction, damaged, encoded_key};

impl Transaction<'_> {
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

    /// As [`Transaction::set`], but only where there is a node.
    ///
    /// # Errors
    /// `NotFound`; as [`Transaction::set`].
    pub fn replace(&mut self, path: &str, value: &Value) -> Result<()> {
        self.set_with(path, Existing::Must, |visitor| value.visit(visitor))
    }

    /// Sets the node at a path to a value of any type, as [`crate::typed`] writes it.
    ///
    /// # Errors
    /// As [`Transaction::set`]; `InvalidInput` for what has no form as a tree.
    #[cfg(feature = "serde")]
    pub fn set_as<T: serde_core::Serialize + ?Sized>(
        &mut self,
        path: &str,
        value: &T,
    ) -> Result<()> {
        self.set_with(path, Existing::Any, |visitor| crate::typed::write(value, visitor))
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
        source: impl FnOnce(&mut Receiver<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let set = self
            .checked(path, Deed::Changes)
            .and_then(|path| self.try_set(&path, existing, source));
        self.or_unmake(set).map_err(|error| match error.kind() {
            // The source's own errors say where they are; the path is said once, for all others.
            crate::ErrorKind::InvalidInput if path.is_empty() => error,
            _ => error.at(format_args!("set {}", Display(path))),
        })
    }

    pub(super) fn try_set(
        &mut self,
        path: &str,
        existing: Existing,
        source: impl FnOnce(&mut Receiver<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        let Some((parent, last)) = path::split_last(path) else {
            return self.set_root(source);
        };
        let Some(parent) = self.open_again(parent, existing != Existing::Must)? else {
            return Err(nothing_there());
        };
        match self.edits.nodes[parent].container() {
            Container::Map => self.set_member(parent, &encoded_key(&last)?, existing, source),
            Container::List if last == "-" && existing != Existing::Must => {
                let position = self.list_len(parent);
                self.insert_into(parent, position, source)
            }
            Container::List => match self.child(parent, &last)? {
                Child::Absent if existing == Existing::Must => Err(nothing_there()),
                Child::Absent => Err(self.no_element(parent, &last)),
                _ if existing == Existing::MustNot => Err(exists_already()),
                _ => {
                    let encoded = self.build(self.edits.nodes[parent].tree, source)?;
                    self.put_member(parent, &last, Edit::Set(encoded))
                }
            },
        }
    }

    pub(super) fn set_member(
        &mut self,
        parent: usize,
        key: &EncodedKey,
        existing: Existing,
        source: impl FnOnce(&mut Receiver<'_, '_>) -> Result<()>,
    ) -> Result<()> {
        if existing != Existing::Any {
            match (existing, self.map_child(parent, key)?) {
                (Existing::Must, Child::Absent) => return Err(nothing_there()),
                (Existing::MustNot, Child::Open(_) | Child::Scalar(_)) => {
                    return Err(exists_already());
                }
                _ => {}
            }
        }
        let tree = self.edits.member_tree_to_write(&mut self.pending, parent, key)?;
        let encoded = self.build(tree, source)?;
        if let Some(old) = self.put_map_member(parent, key, Edit::Set(encoded)) {
            self.discard(tree, old);
        }
        self.mark_changed()
    }

    /// As [`Transaction::open_path`]; costs nothing when it is the parent of the last `set` or
    /// `insert`.
    pub(super) fn open_again(&mut self, path: &str, make: bool) -> Result<Option<usize>> {
        if self.last_parent.as_deref() == Some(path) {
            return Ok(self.trail.last().map(|(parent, _)| *parent));
        }
        let parent = self.open_path(path, make)?;
        self.last_parent = parent.map(|_| path.to_owned());
        Ok(parent)
    }

    /// Removes the node at a path and all below it; false when there is none.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path or the root; those of the backend.
    ///
    /// # Complexity
    /// As one changed leaf, however much is below: what it held is reclaimed later, in steps.
    pub fn remove(&mut self, path: &str) -> Result<bool> {
        self.checked_member(path, "the root cannot be removed; remove its members")
            .and_then(|path| self.try_remove(&path))
            .map_err(|error| error.at(format_args!("remove {}", Display(path))))
    }

    pub(super) fn try_remove(&mut self, path: &str) -> Result<bool> {
        let (parent, last) = path::split_last(path).expect("the root is not removed");
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
            let whole =
                self.checked_member(path, "the root is no element; name a position in it")?;
            let (parent, last) = path::split_last(&whole).expect("an element has a list");
            let Some(parent) = self.open_again(parent, false)? else {
                return Err(Error::not_found("the list does not exist; set it to `[]` first"));
            };
            let len = match &self.edits.nodes[parent].body {
                Body::List(list) => list.len(),
                Body::Map(_) => {
                    return Err(Error::invalid_input("it is a map, not a list; use `set`"));
                }
            };
            let position = self.position_to_insert(parent, &last, len)?;
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
        let moved = self
            .checked_member(from, "the root cannot be moved")
            .and_then(|from| {
                Ok((from, self.checked_member(to, "nothing can be moved onto the root")?))
            })
            .and_then(|(from, to)| self.try_move(&from, &to, true));
        self.or_unmake(moved)
            .map_err(|error| error.at(format_args!("move {} to {}", Display(from), Display(to))))
    }

    /// As [`Transaction::mv`], with checked paths; `make` tells whether missing maps are made.
    pub(super) fn try_move(&mut self, from: &str, to: &str, make: bool) -> Result<()> {
        let (from_parent, from_last) = path::split_last(from).expect("it is not the root");
        let (to_parent, to_last) = path::split_last(to).expect("it is not the root");
        if !self.exists_at(from)? {
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
            (true, true) if self.exists_at(to)? => {
                return Err(Error::already_exists("a tree is there already; remove it first"));
            }
            (true, true) => return self.rename_tree(&from_last, &to_last),
            (false, false) if tree_of(from) == tree_of(to) => {}
            _ => {
                self.try_copy(from, to, make)?;
                // Where `to` is above `from`, what was there went with what it replaced.
                if !from.strip_prefix(to).is_some_and(|rest| rest.starts_with('/')) {
                    self.try_remove(from)?;
                }
                return Ok(());
            }
        }
        let (from_depth, to_depth) = (path::segments(from).count(), path::segments(to).count());
        if to_depth > from_depth {
            self.visit_at(from, &mut DepthCheck { depth: to_depth - 1 })?;
        }
        let source = self.open_existing(from_parent)?.expect("what is moved has a parent");
        let same_list =
            from_parent == to_parent && self.edits.nodes[source].container() == Container::List;
        let (edit, id) = self.take(source, &from_last)?;
        self.mark_changed()?;
        let back = edit.clone();
        let placed = self.place(to, edit, id.filter(|_| same_list), make);
        if placed.is_err() {
            self.put_back(source, &from_last, id, back)?;
        }
        placed
    }

    /// Puts a member that was taken out back in its place.
    pub(super) fn put_back(
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

    pub(super) fn rename_tree(&mut self, from: &str, to: &str) -> Result<()> {
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
        let copied = self
            .checked(from, Deed::Copies)
            .and_then(|from| {
                Ok((from, self.checked_member(to, "nothing can be copied onto the root")?))
            })
            .and_then(|(from, to)| self.try_copy(&from, &to, true));
        self.or_unmake(copied)
            .map_err(|error| error.at(format_args!("copy {} to {}", Display(from), Display(to))))
    }

    /// As [`Transaction::copy`], with checked paths; `make` tells whether missing maps are made.
    pub(super) fn try_copy(&mut self, from: &str, to: &str, make: bool) -> Result<()> {
        if !self.is_seen_at(from)? {
            return Err(Error::not_found("there is nothing to copy"));
        }
        let name = path::segments(to).next().expect("it is not the root");
        // The copy is complete before the way to its place is made, which may lead through `from`.
        let tree = self.tree_to_write(0, &name)?;
        let first_id = self.pending.head(tree)?.next_id;
        let depth = path::segments(to).count();
        let fork = self.pending.fork()?;
        let view = View { snapshot: &fork, key_len_max: self.pending.sizes.key_len_max };
        let build = self.builder.build(&mut self.pending, tree, depth, self.scratch);
        let mut build = build.copying_pages();
        let copied = match read::resolve(&self.edits, &view, from)? {
            Some(found) => read::walk(&self.edits, &view, found, &mut build),
            None => Err(Error::not_found("there is nothing to copy")),
        };
        let copied = copied.and_then(|()| build.finish());
        let placed = copied.and_then(|encoded| self.place(to, Edit::Set(encoded), None, make));
        self.or_give_back(tree, first_id, placed)
    }

    /// Puts a node that was moved or copied: a map's member is replaced, a list's inserted.
    pub(super) fn place(
        &mut self,
        to: &str,
        edit: Edit,
        id: Option<u64>,
        make: bool,
    ) -> Result<()> {
        let (parent, last) = path::split_last(to).expect("it is not the root");
        let Some(parent) = self.open_path(parent, make)? else { return Err(no_parent()) };
        match &self.edits.nodes[parent].body {
            Body::Map(_) => self.put_member(parent, &last, edit),
            Body::List(list) => {
                let len = list.len();
                let position = self.position_to_insert(parent, &last, len)?;
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

    pub(super) fn try_set_meta(
        &mut self,
        path: &str,
        name: &str,
        value: Option<&str>,
    ) -> Result<()> {
        self.checked(path, Deed::Annotates)?;
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
        self.replace_meta(&self.below_base(path), &meta)
    }

    /// Replaces the encoded metadata of an existing node.
    pub(super) fn replace_meta(&mut self, path: &str, meta: &[u8]) -> Result<()> {
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
                self.replace_edit(
                    parent,
                    &last,
                    Edit::Open { meta: meta.into(), node, in_place: false },
                )?;
            }
        }
        self.mark_changed()
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

#[cold]
pub(super) fn no_parent() -> Error {
    Error::not_found("there is no map or list to add it to")
}

#[cold]
fn nothing_there() -> Error {
    Error::not_found("there is no node to replace; set it to make one")
}

#[cold]
fn exists_already() -> Error {
    Error::already_exists("there is a node already; set it or remove it first")
}
