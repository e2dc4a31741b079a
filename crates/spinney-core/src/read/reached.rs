//! A node wherever it is: in pages, in memory, of several layers, or seen by a principal.

use std::fmt;
use std::ptr;

use super::{
    Children, Descended, Guarded, GuardedChildren, Leaf, Merged, MergedChildren, Name, Node,
    Stored, StoredChildren, ValueChildren,
};
use crate::error::Result;
use crate::key::{EncodedKey, Key};
use crate::node::NodeKind;
use crate::value::{Value, ValueBuilder};
use crate::visit::Visitor;

/// A node, whichever kind of tree it is in.
#[derive(Clone)]
pub enum Reached<'s> {
    /// In pages.
    Stored(Stored<'s>),
    /// In memory; it has no metadata.
    Value(&'s Value),
    /// Of several layers.
    Merged(Merged<Reached<'s>>),
    /// One of which a principal may see only a part.
    Guarded(Box<Guarded<'s, Reached<'s>>>),
}

/// Children of a node, whichever kind of tree it is in.
pub enum ReachedChildren<'s> {
    /// Of one in pages.
    Stored(StoredChildren<'s>),
    /// Of one in memory.
    Value(ValueChildren<'s>),
    /// Of one of several layers.
    Merged(Box<MergedChildren<Reached<'s>>>),
    /// Of one of which only a part may be seen.
    Guarded(Box<GuardedChildren<'s, Reached<'s>>>),
}

/// Metadata, in the order of the names.
pub type Entries = Vec<(String, String)>;

/// The same call for each kind of node.
macro_rules! each_kind {
    ($self:expr, $node:ident => $call:expr) => {
        match $self {
            Reached::Stored($node) => $call,
            Reached::Value($node) => $call,
            Reached::Merged($node) => $call,
            Reached::Guarded($node) => $call,
        }
    };
}

/// The same call for the children of each kind of node.
macro_rules! children_of {
    ($self:expr, $node:ident => $call:expr) => {
        Ok(match $self {
            Reached::Stored($node) => $call?.map(ReachedChildren::Stored),
            Reached::Value($node) => $call?.map(ReachedChildren::Value),
            Reached::Merged($node) => {
                $call?.map(|children| ReachedChildren::Merged(Box::new(children)))
            }
            Reached::Guarded($node) => {
                $call?.map(|children| ReachedChildren::Guarded(Box::new(children)))
            }
        })
    };
}

impl<'s> Reached<'s> {
    /// The value, without metadata.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub fn to_value(&self) -> Result<Value> {
        let mut builder = ValueBuilder::default();
        self.visit(&mut builder)?;
        Ok(builder.finish().expect("a node is one value"))
    }

    /// Its own metadata.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub fn metadata(&self) -> Result<Entries> {
        let mut entries = Vec::new();
        self.meta(&mut |name, value| entries.push((name.to_owned(), value.to_owned())))?;
        Ok(entries)
    }

    /// Whether both are known to be the same without a look at what is below.
    pub fn is_same(&self, other: &Reached<'_>) -> bool {
        match (self, other) {
            (Reached::Value(a), Reached::Value(b)) => ptr::eq(*a, *b),
            (Reached::Stored(a), Reached::Stored(b)) => a.is_same(b),
            (Reached::Merged(a), Reached::Merged(b)) => a.is_same(b, Reached::is_same),
            _ => false,
        }
    }
}

impl fmt::Debug for Reached<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_value().fmt(f)
    }
}

impl<'s> Node for Reached<'s> {
    type Children = ReachedChildren<'s>;

    #[inline]
    fn kind(&self) -> Result<NodeKind> {
        each_kind!(self, node => node.kind())
    }

    #[inline]
    fn leaf<'a>(&'a self, long: &'a mut Vec<u8>) -> Result<Option<Leaf<'a>>> {
        each_kind!(self, node => node.leaf(long))
    }

    fn count(&self) -> Result<u64> {
        each_kind!(self, node => node.count())
    }

    #[inline]
    fn enter(&mut self, name: &Name) -> Result<bool> {
        each_kind!(self, node => node.enter(name))
    }

    fn enter_position(&mut self, position: u64) -> Result<bool> {
        each_kind!(self, node => node.enter_position(position))
    }

    #[inline]
    fn children(&self) -> Result<Option<ReachedChildren<'s>>> {
        children_of!(self, node => node.children())
    }

    fn members_from(&self, key: &EncodedKey) -> Result<Option<ReachedChildren<'s>>> {
        children_of!(self, node => node.members_from(key))
    }

    fn elements(&self, from: u64) -> Result<Option<ReachedChildren<'s>>> {
        children_of!(self, node => node.elements(from))
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        match self {
            Reached::Stored(node) => node.visit(visitor),
            Reached::Value(node) => Node::visit(node, visitor),
            Reached::Merged(node) => node.visit(visitor),
            Reached::Guarded(node) => node.visit(visitor),
        }
    }

    #[inline]
    fn descend(self, path: &str) -> Result<Descended<Reached<'s>>> {
        Ok(match self {
            Reached::Stored(node) => node.descend(path)?.map(Reached::Stored),
            Reached::Value(node) => node.descend(path)?.map(Reached::Value),
            Reached::Merged(node) => node.descend(path)?.map(Reached::Merged),
            Reached::Guarded(node) => {
                (*node).descend(path)?.map(|node| Reached::Guarded(Box::new(node)))
            }
        })
    }

    fn meta(&self, found: &mut dyn FnMut(&str, &str)) -> Result<()> {
        each_kind!(self, node => node.meta(found))
    }
}

impl<'s> Children for ReachedChildren<'s> {
    type Node = Reached<'s>;

    #[inline]
    fn next(&mut self, node: &mut Reached<'s>) -> Result<bool> {
        match (self, node) {
            (ReachedChildren::Stored(children), Reached::Stored(node)) => children.next(node),
            (ReachedChildren::Value(children), Reached::Value(node)) => children.next(node),
            (ReachedChildren::Merged(children), Reached::Merged(node)) => children.next(node),
            (ReachedChildren::Guarded(children), Reached::Guarded(node)) => children.next(node),
            _ => unreachable!("children are put into a node of the kind that they are of"),
        }
    }

    #[inline]
    fn key<'k>(&'k self, buffer: &'k mut Vec<u8>) -> Result<Option<Key<'k>>> {
        match self {
            ReachedChildren::Stored(children) => children.key(buffer),
            ReachedChildren::Value(children) => children.key(buffer),
            ReachedChildren::Merged(children) => children.key(buffer),
            ReachedChildren::Guarded(children) => children.key(buffer),
        }
    }
}
