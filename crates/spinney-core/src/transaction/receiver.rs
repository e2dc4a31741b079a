//! What the source of a value drives.

use std::sync::Arc;

use crate::build::Build;
use crate::error::Result;
use crate::key::{Key, StoredKey};
use crate::view::StoredMap;
use crate::visit::{Container, Scalar, StoredText, Visitor};

/// Takes the value that a transaction is to set, as calls of [`Visitor`].
///
/// It is one type, so that formats are compiled with what it does with each member: there are many more of them
/// than of anything else.
pub struct Receiver<'r, 'b>(To<'r, 'b>);

enum To<'r, 'b> {
    Node(Build<'r, 'b>),
    Root(&'r mut (dyn Visitor + 'r)),
}

impl<'r, 'b> Receiver<'r, 'b> {
    /// Of a node in a tree.
    pub(super) fn of_node(build: Build<'r, 'b>) -> Self {
        Receiver(To::Node(build))
    }

    /// Of the store's root.
    pub(super) fn of_root(members: &'r mut (dyn Visitor + 'r)) -> Self {
        Receiver(To::Root(members))
    }

    /// The encoded node.
    ///
    /// # Errors
    /// `InvalidInput` when the calls did not make exactly one value.
    pub(super) fn finish(self) -> Result<Arc<[u8]>> {
        match self.0 {
            To::Node(build) => build.finish(),
            To::Root(_) => panic!("the root is no node"),
        }
    }
}

macro_rules! to {
    ($receiver:ident, $visitor:ident => $call:expr) => {
        match &mut $receiver.0 {
            To::Node($visitor) => $call,
            To::Root($visitor) => $call,
        }
    };
}

impl Visitor for Receiver<'_, '_> {
    #[inline]
    fn open(&mut self, container: Container) -> Result<()> {
        to!(self, visitor => visitor.open(container))
    }

    #[inline(always)]
    fn key(&mut self, key: Key<'_>) -> Result<()> {
        to!(self, visitor => visitor.key(key))
    }

    #[inline]
    fn stored_key(&mut self, key: StoredKey<'_>) -> Result<()> {
        to!(self, visitor => visitor.stored_key(key))
    }

    #[inline(always)]
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        to!(self, visitor => visitor.scalar(scalar))
    }

    #[inline]
    fn stored_text(&mut self, text: StoredText<'_>) -> Result<()> {
        to!(self, visitor => visitor.stored_text(text))
    }

    #[inline]
    fn close(&mut self) -> Result<()> {
        to!(self, visitor => visitor.close())
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        to!(self, visitor => visitor.meta(name, value))
    }

    fn stored_map(&mut self, map: &StoredMap<'_>) -> Result<bool> {
        to!(self, visitor => visitor.stored_map(map))
    }

    fn wants_element_ids(&self) -> bool {
        true
    }

    #[inline]
    fn element(&mut self, id: u64) {
        to!(self, visitor => visitor.element(id));
    }
}
