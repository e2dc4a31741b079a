//! What is needed to read a tree, wherever it is stored: pages, memory, several trees seen as one.

mod guarded;
mod leaves;
pub mod marks;
mod merged;
mod reached;
mod stored;
mod value;

pub use guarded::{Guarded, GuardedChildren};
pub use leaves::{Leaves, Rebuild};
pub use marks::Marks;
pub use merged::{Merged, MergedChildren};
pub use reached::{Entries, Reached, ReachedChildren};
pub use stored::{Stored, StoredChildren};
pub use value::ValueChildren;

use crate::error::Result;
use crate::key::{EncodedKey, Key};
use crate::node::NodeKind;
use crate::number::Num;
use crate::path;
use crate::visit::Visitor;

/// The content of a node that has no members.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leaf<'a> {
    /// JSON `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A lossless number.
    Number(Num<'a>),
    /// A text.
    String(&'a str),
    /// Bytes, which JSON does not know: equal to the same bytes and to nothing else.
    Bytes(&'a [u8]),
}

/// The name of a member, with the bytes that pages are searched for.
#[derive(Clone, Debug)]
pub struct Name {
    text: String,
    encoded: EncodedKey,
}

impl Name {
    /// A name for many searches.
    pub fn new(text: impl Into<String>) -> Name {
        let text = text.into();
        let encoded = Key::new(&text).encoded();
        Name { text, encoded }
    }

    /// The name.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The key as maps hold it.
    pub fn encoded(&self) -> &EncodedKey {
        &self.encoded
    }
}

/// A node of a tree that is being read, cheap to clone, from which its children are reached.
///
/// Nothing below a child is read before it is asked for.
pub trait Node: Clone {
    /// Runs over children.
    type Children: Children<Node = Self>;

    /// What it is.
    fn kind(&self) -> Result<NodeKind>;
    /// Its content; `None` when it is a container. `long` is a buffer for what is not in one piece.
    fn leaf<'a>(&'a self, long: &'a mut Vec<u8>) -> Result<Option<Leaf<'a>>>;
    /// How many children it has; 0 when it is no container.
    ///
    /// # Complexity
    /// O(1).
    fn count(&self) -> Result<u64>;
    /// Moves to the value of a key; false when it is no map or has no such key, and then it is to be
    /// used no more.
    fn enter(&mut self, name: &Name) -> Result<bool>;
    /// Moves to the element at a position; false when it is no list or shorter, and then it is to be
    /// used no more.
    fn enter_position(&mut self, position: u64) -> Result<bool>;
    /// All children; those of a map in the order of their keys in the model. `None` when it is no
    /// container.
    fn children(&self) -> Result<Option<Self::Children>>;
    /// The members from a key on, or from where it would be; `None` when it is no map.
    fn members_from(&self, key: &EncodedKey) -> Result<Option<Self::Children>>;
    /// The elements from a position on; `None` when it is no list.
    fn elements(&self, from: u64) -> Result<Option<Self::Children>>;
    /// Whether it is a map or a list.
    #[inline]
    fn is_container(&self) -> Result<bool> {
        Ok(matches!(self.kind()?, NodeKind::Map | NodeKind::List))
    }
    /// Drives a visitor over it and all below it.
    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()>;
    /// The node that a checked path leads to, a segment after the other.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    fn descend(self, path: &str) -> Result<Descended<Self>> {
        descend_by_steps(self, path)
    }
    /// Its metadata, name and value, in the order of the names.
    fn meta(&self, found: &mut dyn FnMut(&str, &str)) -> Result<()>;
}

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Descended<N> {
    /// To a node.
    Found(N),
    /// To a member that a map does not have, through nothing but maps.
    Missing,
    /// Through a scalar or into a list, where there is nothing at its end.
    Ended,
}

impl<N> Descended<N> {
    /// The same of another type of node.
    #[inline]
    pub fn map<M>(self, of: impl FnOnce(N) -> M) -> Descended<M> {
        match self {
            Descended::Found(node) => Descended::Found(of(node)),
            Descended::Missing => Descended::Missing,
            Descended::Ended => Descended::Ended,
        }
    }

    /// The node, if there is one.
    pub fn found(self) -> Option<N> {
        match self {
            Descended::Found(node) => Some(node),
            _ => None,
        }
    }
}

/// [`Node::count`] of a map that knows no better way: that of running over its members.
fn count_by_steps<N: Node>(node: &N) -> Result<u64> {
    let Some(mut children) = node.children()? else { return Ok(0) };
    let mut child = node.clone();
    let mut count = 0;
    while children.next(&mut child)? {
        count += 1;
    }
    Ok(count)
}

/// [`Node::descend`] for a tree that knows no better way.
fn descend_by_steps<N: Node>(mut node: N, path: &str) -> Result<Descended<N>> {
    let mut absent = Descended::Missing;
    for segment in path::segments(path) {
        let found = match node.kind()? {
            NodeKind::Map => node.enter(&Name::new(segment))?,
            NodeKind::List => {
                absent = Descended::Ended;
                match path::position(&segment) {
                    Some(position) => node.enter_position(position)?,
                    None => false,
                }
            }
            _ => return Ok(Descended::Ended),
        };
        if !found {
            return Ok(absent);
        }
    }
    Ok(Descended::Found(node))
}

/// Children of one node, in order.
pub trait Children {
    /// The node that they are.
    type Node;

    /// Puts the next one into `node`; false, with `node` as it was, behind the last.
    fn next(&mut self, node: &mut Self::Node) -> Result<bool>;
    /// The key of the one that [`Children::next`] gave last; `None` in a list. `buffer` holds it where
    /// it is not in one piece.
    fn key<'k>(&'k self, buffer: &'k mut Vec<u8>) -> Result<Option<Key<'k>>>;
}
