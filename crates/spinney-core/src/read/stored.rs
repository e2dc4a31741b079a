//! Nodes of a store, read where they lie in pages.

use std::ptr;

use crate::backend::TreeId;
use crate::error::{Error, Result};
use crate::key::{EncodedKey, Key};
use crate::node::{self, LongForm, Node as Encoded, NodeKind};
use crate::reclaim;
use crate::view::{Cursor, KEY_LEN_USUAL, Slot, View};
use crate::visit::{Container, Scalar, Visitor};

use super::{Children, Descended, Leaf, Name, Node};
use crate::path;

/// A node of a store, at one state.
#[derive(Clone)]
pub struct Stored<'s> {
    view: View<'s>,
    slot: Slot<'s>,
}

impl<'s> Stored<'s> {
    /// A node that a view has found.
    ///
    /// # Errors
    /// `Corrupted` when it refers to a tree that is missing.
    #[inline]
    pub fn new(view: View<'s>, mut slot: Slot<'s>) -> Result<Stored<'s>> {
        view.follow(&mut slot)?;
        Ok(Stored { view, slot })
    }

    /// Whether it is a container in pages, so that a step below it asks the engine.
    #[inline]
    pub fn is_paged(&self) -> bool {
        node::is_paged(self.slot.encoded())
    }

    /// The tree that its ids belong to.
    pub fn tree(&self) -> TreeId {
        self.slot.tree
    }

    /// As it is encoded, metadata included.
    pub fn encoded(&self) -> &[u8] {
        self.slot.encoded()
    }

    /// The same node with another encoding, of the same members.
    pub(crate) fn with_encoded(&self, encoded: &[u8]) -> Stored<'s> {
        Stored { view: self.view, slot: Slot::owned(self.slot.tree, encoded) }
    }

    /// The tree that it is in and its bytes, to be kept for [`Stored::kept`].
    pub fn keep(&self) -> Slot<'static> {
        Slot::owned(self.slot.tree, self.slot.encoded())
    }

    /// A node of the same state that was kept.
    #[inline]
    pub fn kept(view: View<'s>, slot: &Slot<'static>) -> Stored<'s> {
        Stored { view, slot: slot.clone() }
    }

    /// Whether both are known to be the same without a look at what is below.
    pub fn is_same(&self, other: &Stored<'_>) -> bool {
        let same_state = ptr::addr_eq(self.view.snapshot, other.view.snapshot);
        self.slot.encoded() == other.slot.encoded()
            && (same_state && self.slot.tree == other.slot.tree
                || !reclaim::refers(self.slot.encoded()))
    }

    #[inline]
    fn children_of(&self, cursor: Option<Cursor<'s>>) -> Option<StoredChildren<'s>> {
        cursor.map(|cursor| StoredChildren { view: self.view, cursor })
    }
}

impl<'s> Node for Stored<'s> {
    type Children = StoredChildren<'s>;

    fn kind(&self) -> Result<NodeKind> {
        let kind = self.slot.read()?.node.kind();
        kind.ok_or_else(|| Error::corrupted("a tree's root refers to a tree"))
    }

    #[inline]
    fn leaf<'a>(&'a self, long: &'a mut Vec<u8>) -> Result<Option<Leaf<'a>>> {
        Ok(match self.slot.read()?.node {
            Encoded::Scalar(scalar) => Some(match scalar {
                Scalar::Null => Leaf::Null,
                Scalar::Bool(value) => Leaf::Bool(value),
                Scalar::Number(num) => Leaf::Number(num),
                Scalar::String(text) => Leaf::String(text.text),
                Scalar::Bytes(bytes) => Leaf::Bytes(bytes),
            }),
            Encoded::Long(stored) => {
                *long = self.view.long(self.slot.tree, stored)?;
                Some(match stored.form {
                    LongForm::Bytes => Leaf::Bytes(long),
                    LongForm::PlainText | LongForm::EscapedText => Leaf::String(
                        std::str::from_utf8(long)
                            .map_err(|_| Error::corrupted("a long text is not UTF-8"))?,
                    ),
                })
            }
            _ => None,
        })
    }

    fn count(&self) -> Result<u64> {
        Ok(self.view.count(&self.slot)?.unwrap_or(0))
    }

    #[inline]
    fn enter(&mut self, name: &Name) -> Result<bool> {
        let found = self.view.enter_key(&mut self.slot, name.encoded())?;
        if found {
            self.view.follow(&mut self.slot)?;
        }
        Ok(found)
    }

    fn enter_position(&mut self, position: u64) -> Result<bool> {
        // Only maps hold references to trees.
        self.view.enter_element(&mut self.slot, position)
    }

    fn children(&self) -> Result<Option<StoredChildren<'s>>> {
        Ok(self.children_of(self.view.cursor(&self.slot)?))
    }

    fn members_from(&self, key: &EncodedKey) -> Result<Option<StoredChildren<'s>>> {
        Ok(self.children_of(self.view.cursor_from_key(&self.slot, key)?))
    }

    fn elements(&self, from: u64) -> Result<Option<StoredChildren<'s>>> {
        Ok(self.children_of(self.view.cursor_from_position(&self.slot, from)?))
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        self.view.walk(&self.slot, visitor)
    }

    #[inline]
    fn descend(mut self, path: &str) -> Result<Descended<Stored<'s>>> {
        let mut key = Vec::with_capacity(KEY_LEN_USUAL);
        let mut absent = Descended::Missing;
        for part in path::parts(path) {
            if self.slot.read()?.node.container() != Some(Container::Map) {
                absent = Descended::Ended;
            }
            if !self.view.enter(&mut self.slot, &path::unescape(part), &mut key)? {
                return Ok(absent);
            }
        }
        Ok(Descended::Found(self))
    }

    fn meta(&self, found: &mut dyn FnMut(&str, &str)) -> Result<()> {
        for entry in node::meta_entries(self.slot.read()?.meta) {
            let (name, value) = entry.ok_or_else(node::damaged_node)?;
            found(name, value);
        }
        Ok(())
    }
}

/// Children of a node of a store.
pub struct StoredChildren<'s> {
    view: View<'s>,
    cursor: Cursor<'s>,
}

impl<'s> Children for StoredChildren<'s> {
    type Node = Stored<'s>;

    #[inline]
    fn next(&mut self, node: &mut Stored<'s>) -> Result<bool> {
        let found = self.cursor.advance_with(&mut node.slot)?;
        if found {
            self.view.follow(&mut node.slot)?;
        }
        Ok(found)
    }

    fn key<'k>(&'k self, buffer: &'k mut Vec<u8>) -> Result<Option<Key<'k>>> {
        match self.cursor.container() {
            Container::Map => self.cursor.key(buffer).map(Some),
            Container::List => Ok(None),
        }
    }
}
