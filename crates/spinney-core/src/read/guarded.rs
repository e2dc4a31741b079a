//! A tree as a principal sees it: what may not be read is not there.
//!
//! A map on the way to something that may be read is shown, with the members that lead there and without
//! metadata; of a layer, with its marks, and so is that something on the way is deleted. The elements of a list are
//! shown all or none; a list that is only on the way is not there.

use super::{Children, Leaf, Marks, Name, Node, count_by_steps, marks};
use crate::access::{Permissions, Right, Standing, Veil};
use crate::error::Result;
use crate::key::{EncodedKey, Key, no_key};
use crate::node::NodeKind;
use crate::visit::Visitor;

/// A node of which perhaps only a part may be read.
#[derive(Clone)]
pub struct Guarded<'p, N> {
    node: N,
    permissions: &'p Permissions,
    standing: Standing,
    /// Whether what is only on the way tells what it says as a node of a layer: all above say that there is something.
    tells_marks: bool,
}

impl<'p, N: Node> Guarded<'p, N> {
    /// A node as it is seen; `None` when it is not.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub fn new(
        node: N,
        permissions: &'p Permissions,
        standing: Standing,
    ) -> Result<Option<Guarded<'p, N>>> {
        Guarded { node, permissions, standing, tells_marks: false }.if_shown()
    }

    /// As [`Guarded::new`], for the root of a layer: of maps that are only on the way, and of what is deleted there, it
    /// tells the [marks](super::marks), since what is below them cannot be read as one with other layers without.
    ///
    /// # Errors
    /// As [`Guarded::new`].
    pub fn of_layer(
        node: N,
        permissions: &'p Permissions,
        standing: Standing,
    ) -> Result<Option<Guarded<'p, N>>> {
        Guarded { node, permissions, standing, tells_marks: true }.if_shown()
    }

    fn if_shown(self) -> Result<Option<Guarded<'p, N>>> {
        Ok(self.is_shown()?.then_some(self))
    }

    fn is_whole(&self) -> bool {
        self.standing.may_all(Right::Read)
    }

    fn is_shown(&self) -> Result<bool> {
        self.standing.shows(|| is_way(&self.node, self.tells_marks))
    }

    /// Whether its members tell marks where they are only on the way.
    fn tells_marks_below(&self) -> Result<bool> {
        Ok(self.tells_marks && Marks::of(&self.node)?.has(Marks::BELOW))
    }

    fn children_with(
        &self,
        children: impl FnOnce(&N) -> Result<Option<N::Children>>,
    ) -> Result<Option<GuardedChildren<'p, N>>> {
        let Some(children) = children(&self.node)? else { return Ok(None) };
        let of = match () {
            () if self.is_whole() => Of::Whole(self.standing.clone()),
            () if self.node.kind()? == NodeKind::List => {
                Of::List(self.permissions.element(&self.standing))
            }
            () => Of::Map(self.standing.clone()),
        };
        let (child, permissions) = (self.node.clone(), self.permissions);
        let tells_marks = self.tells_marks_below()?;
        Ok(Some(GuardedChildren { children, child, permissions, of, tells_marks }))
    }
}

/// Whether a node that is only on the way to what may be read is shown.
fn is_way(node: &impl Node, tells_marks: bool) -> Result<bool> {
    Ok(node.kind()? == NodeKind::Map || tells_marks && Marks::of(node)?.has(Marks::DELETED))
}

impl<'p, N: Node> Node for Guarded<'p, N> {
    type Children = GuardedChildren<'p, N>;

    fn kind(&self) -> Result<NodeKind> {
        self.node.kind()
    }

    fn leaf<'a>(&'a self, long: &'a mut Vec<u8>) -> Result<Option<Leaf<'a>>> {
        self.node.leaf(long)
    }

    /// # Complexity
    /// O(1) where everything may be read, and for lists; that of the members for other maps.
    fn count(&self) -> Result<u64> {
        if self.is_whole() {
            return self.node.count();
        }
        if self.node.kind()? == NodeKind::List {
            let is_shown = self.permissions.element(&self.standing).may(Right::Read);
            return if is_shown { self.node.count() } else { Ok(0) };
        }
        count_by_steps(self)
    }

    fn enter(&mut self, name: &Name) -> Result<bool> {
        if !self.is_whole() {
            self.standing = self.permissions.member(&self.standing, name.text());
            self.tells_marks = self.tells_marks_below()?;
        }
        Ok(self.standing.may_some(Right::Read) && self.node.enter(name)? && self.is_shown()?)
    }

    fn enter_position(&mut self, position: u64) -> Result<bool> {
        if !self.is_whole() {
            self.standing = self.permissions.element(&self.standing);
        }
        Ok(self.standing.may(Right::Read) && self.node.enter_position(position)?)
    }

    fn children(&self) -> Result<Option<GuardedChildren<'p, N>>> {
        self.children_with(N::children)
    }

    fn members_from(&self, key: &EncodedKey) -> Result<Option<GuardedChildren<'p, N>>> {
        self.children_with(|node| node.members_from(key))
    }

    fn elements(&self, from: u64) -> Result<Option<GuardedChildren<'p, N>>> {
        self.children_with(|node| node.elements(from))
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        if self.is_whole() {
            return self.node.visit(visitor);
        }
        let mut veil = Veil::new(visitor, self.permissions, &self.standing);
        // Of one type, however many are within each other.
        self.node.visit(&mut veil as &mut dyn Visitor)
    }

    fn meta(&self, found: &mut dyn FnMut(&str, &str)) -> Result<()> {
        match self.standing.may(Right::Read) {
            true => self.node.meta(found),
            false if self.tells_marks => self.node.meta(&mut |name, value| {
                if name == marks::NAME {
                    found(name, value);
                }
            }),
            false => Ok(()),
        }
    }
}

/// The children of a node that are seen.
pub struct GuardedChildren<'p, N: Node> {
    children: N::Children,
    child: N,
    permissions: &'p Permissions,
    of: Of,
    tells_marks: bool,
}

/// What children they are, and what may be done with each or with what they are of.
enum Of {
    /// Of one of which everything is seen.
    Whole(Standing),
    /// Elements.
    List(Standing),
    /// Members of a map.
    Map(Standing),
}

impl<'p, N: Node> Children for GuardedChildren<'p, N> {
    type Node = Guarded<'p, N>;

    fn next(&mut self, node: &mut Guarded<'p, N>) -> Result<bool> {
        let map = match &self.of {
            Of::List(element) if !element.may(Right::Read) => return Ok(false),
            Of::Whole(standing) | Of::List(standing) => {
                let found = self.children.next(&mut node.node)?;
                if found {
                    node.standing.clone_from(standing);
                }
                return Ok(found);
            }
            Of::Map(map) => map,
        };
        let mut buffer = Vec::new();
        while self.children.next(&mut self.child)? {
            let key = self.children.key(&mut buffer)?.ok_or_else(no_key)?;
            let standing = self.permissions.member(map, &key.text());
            if standing.shows(|| is_way(&self.child, self.tells_marks))? {
                node.node.clone_from(&self.child);
                (node.standing, node.tells_marks) = (standing, self.tells_marks);
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn key<'k>(&'k self, buffer: &'k mut Vec<u8>) -> Result<Option<Key<'k>>> {
        self.children.key(buffer)
    }
}
