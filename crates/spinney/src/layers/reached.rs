//! A node of a snapshot, whichever kind of snapshot it is.

use spinney_core::key::{EncodedKey, Key};
use spinney_core::node::NodeKind;
use spinney_core::read::{
    Children, Descended, Guarded, GuardedChildren, Leaf, Merged, MergedChildren, Name, Node,
    Stored, StoredChildren,
};
use spinney_core::{Result, Visitor};

/// A node of a snapshot.
#[derive(Clone)]
pub enum Reached<'s> {
    /// In pages.
    Stored(Stored<'s>),
    /// Of several layers.
    Merged(Merged<Reached<'s>>),
    /// One of which a principal may see only a part.
    Guarded(Box<Guarded<'s, Reached<'s>>>),
}

/// Children of a node of a snapshot.
pub enum ReachedChildren<'s> {
    /// Of one in pages.
    Stored(StoredChildren<'s>),
    /// Of one of several layers.
    Merged(Box<MergedChildren<Reached<'s>>>),
    /// Of one of which only a part may be seen.
    Guarded(Box<GuardedChildren<'s, Reached<'s>>>),
}

impl<'s> Reached<'s> {
    fn children_with(
        &self,
        stored: impl FnOnce(&Stored<'s>) -> Result<Option<StoredChildren<'s>>>,
        merged: impl FnOnce(&Merged<Reached<'s>>) -> Result<Option<MergedChildren<Reached<'s>>>>,
        guarded: impl FnOnce(
            &Guarded<'s, Reached<'s>>,
        ) -> Result<Option<GuardedChildren<'s, Reached<'s>>>>,
    ) -> Result<Option<ReachedChildren<'s>>> {
        Ok(match self {
            Reached::Stored(node) => stored(node)?.map(ReachedChildren::Stored),
            Reached::Merged(node) => {
                merged(node)?.map(|children| ReachedChildren::Merged(Box::new(children)))
            }
            Reached::Guarded(node) => {
                guarded(node)?.map(|children| ReachedChildren::Guarded(Box::new(children)))
            }
        })
    }
}

impl<'s> Node for Reached<'s> {
    type Children = ReachedChildren<'s>;

    #[inline]
    fn kind(&self) -> Result<NodeKind> {
        match self {
            Reached::Stored(node) => node.kind(),
            Reached::Merged(node) => node.kind(),
            Reached::Guarded(node) => node.kind(),
        }
    }

    #[inline]
    fn leaf<'a>(&'a self, long: &'a mut Vec<u8>) -> Result<Option<Leaf<'a>>> {
        match self {
            Reached::Stored(node) => node.leaf(long),
            Reached::Merged(node) => node.leaf(long),
            Reached::Guarded(node) => node.leaf(long),
        }
    }

    fn count(&self) -> Result<u64> {
        match self {
            Reached::Stored(node) => node.count(),
            Reached::Merged(node) => node.count(),
            Reached::Guarded(node) => node.count(),
        }
    }

    #[inline]
    fn enter(&mut self, name: &Name) -> Result<bool> {
        match self {
            Reached::Stored(node) => node.enter(name),
            Reached::Merged(node) => node.enter(name),
            Reached::Guarded(node) => node.enter(name),
        }
    }

    fn enter_position(&mut self, position: u64) -> Result<bool> {
        match self {
            Reached::Stored(node) => node.enter_position(position),
            Reached::Merged(node) => node.enter_position(position),
            Reached::Guarded(node) => node.enter_position(position),
        }
    }

    #[inline]
    fn children(&self) -> Result<Option<ReachedChildren<'s>>> {
        self.children_with(Node::children, Node::children, Node::children)
    }

    fn members_from(&self, key: &EncodedKey) -> Result<Option<ReachedChildren<'s>>> {
        self.children_with(
            |node| node.members_from(key),
            |node| node.members_from(key),
            |node| node.members_from(key),
        )
    }

    fn elements(&self, from: u64) -> Result<Option<ReachedChildren<'s>>> {
        self.children_with(
            |node| node.elements(from),
            |node| node.elements(from),
            |node| node.elements(from),
        )
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        match self {
            Reached::Stored(node) => node.visit(visitor),
            Reached::Merged(node) => node.visit(visitor),
            Reached::Guarded(node) => node.visit(visitor),
        }
    }

    #[inline]
    fn descend(self, path: &str) -> Result<Descended<Reached<'s>>> {
        let found = match self {
            Reached::Stored(node) => node.descend(path)?.map(Reached::Stored),
            Reached::Merged(node) => node.descend(path)?.map(Reached::Merged),
            Reached::Guarded(node) => {
                (*node).descend(path)?.map(|node| Reached::Guarded(Box::new(node)))
            }
        };
        Ok(found)
    }

    fn meta(&self, found: &mut dyn FnMut(&str, &str)) -> Result<()> {
        match self {
            Reached::Stored(node) => node.meta(found),
            Reached::Merged(node) => node.meta(found),
            Reached::Guarded(node) => node.meta(found),
        }
    }
}

impl<'s> Children for ReachedChildren<'s> {
    type Node = Reached<'s>;

    #[inline]
    fn next(&mut self, node: &mut Reached<'s>) -> Result<bool> {
        match (self, node) {
            (ReachedChildren::Stored(children), Reached::Stored(node)) => children.next(node),
            (ReachedChildren::Merged(children), Reached::Merged(node)) => children.next(node),
            (ReachedChildren::Guarded(children), Reached::Guarded(node)) => children.next(node),
            _ => unreachable!("children are put into a node of the kind that they are of"),
        }
    }

    #[inline]
    fn key<'k>(&'k self, buffer: &'k mut Vec<u8>) -> Result<Option<Key<'k>>> {
        match self {
            ReachedChildren::Stored(children) => children.key(buffer),
            ReachedChildren::Merged(children) => children.key(buffer),
            ReachedChildren::Guarded(children) => children.key(buffer),
        }
    }
}
