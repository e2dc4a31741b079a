//! What the evaluator needs to read of a document, wherever it is stored.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use spinney_core::error::Result;
use spinney_core::key::no_key;
use spinney_core::node::NodeKind;
use spinney_core::read::{self, Children, Name, Node};
use spinney_core::{Num, Value};

/// A node that has no members.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaf<'a> {
    /// JSON `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A lossless number.
    Number(Num<'a>),
    /// A text.
    String(Cow<'a, str>),
    /// Bytes, which are of no type that JSON Schema knows.
    Bytes(Cow<'a, [u8]>),
}

impl Leaf<'_> {
    /// The same, in memory of its own.
    pub fn into_value(self) -> Value {
        match self {
            Leaf::Null => Value::Null,
            Leaf::Bool(value) => Value::Bool(value),
            Leaf::Number(num) => Value::Number(num.to_owned()),
            Leaf::String(text) => Value::String(text.into_owned()),
            Leaf::Bytes(bytes) => Value::Bytes(bytes.into_owned()),
        }
    }
}

impl<'a> From<read::Leaf<'a>> for Leaf<'a> {
    fn from(leaf: read::Leaf<'a>) -> Leaf<'a> {
        match leaf {
            read::Leaf::Null => Leaf::Null,
            read::Leaf::Bool(value) => Leaf::Bool(value),
            read::Leaf::Number(num) => Leaf::Number(num),
            read::Leaf::String(text) => Leaf::String(text.into()),
            read::Leaf::Bytes(bytes) => Leaf::Bytes(bytes.into()),
        }
    }
}

/// One node of a document, cheap to clone, from which its members are reached: a [`Document`], or a value in
/// memory.
///
/// Iterators follow the order of the model; nothing below a member is read before it is asked for.
pub trait Instance: Clone {
    /// The members of a map, with their keys.
    type Members: Iterator<Item = Result<(String, Self)>>;
    /// The elements of a list.
    type Elements: Iterator<Item = Result<Self>>;

    /// What it is.
    fn kind(&self) -> Result<NodeKind>;
    /// Its content; `None` when it is a container. `long` is a buffer for what is not in one piece.
    fn leaf<'a>(&'a self, long: &'a mut Vec<u8>) -> Result<Option<Leaf<'a>>>;
    /// How many members it has; 0 when it is no container.
    ///
    /// # Complexity
    /// That of the tree that it is in: O(1) but for a map that several layers share.
    fn count(&self) -> Result<u64>;
    /// The value of a key; `None` when it is no map or has no such key.
    fn member(&self, key: &str) -> Result<Option<Self>>;
    /// The element at a position; `None` when it is no list or shorter.
    fn element(&self, position: u64) -> Result<Option<Self>>;
    /// All members of a map; none of anything else.
    fn members(&self) -> Result<Self::Members>;
    /// The elements of a list from a position on; none of anything else.
    fn elements(&self, from: u64) -> Result<Self::Elements>;
}

impl<'a> Instance for &'a Value {
    type Members = Box<dyn Iterator<Item = Result<(String, Self)>> + 'a>;
    type Elements = Box<dyn Iterator<Item = Result<Self>> + 'a>;

    fn kind(&self) -> Result<NodeKind> {
        Ok(self.node_kind())
    }

    fn leaf<'v>(&'v self, long: &'v mut Vec<u8>) -> Result<Option<Leaf<'v>>> {
        Ok(Node::leaf(self, long)?.map(Leaf::from))
    }

    fn count(&self) -> Result<u64> {
        Node::count(self)
    }

    fn member(&self, key: &str) -> Result<Option<Self>> {
        Ok(match self {
            Value::Map(map) => map.get(key),
            _ => None,
        })
    }

    fn element(&self, position: u64) -> Result<Option<Self>> {
        Ok(match self {
            Value::List(list) => usize::try_from(position).ok().and_then(|at| list.get(at)),
            _ => None,
        })
    }

    fn members(&self) -> Result<Self::Members> {
        Ok(match self {
            Value::Map(map) => {
                Box::new(map.iter().map(|(key, value)| Ok((key.into_owned(), value))))
            }
            _ => Box::new(std::iter::empty()),
        })
    }

    fn elements(&self, from: u64) -> Result<Self::Elements> {
        Ok(match self {
            Value::List(list) => {
                Box::new(list.iter().skip(usize::try_from(from).unwrap_or(usize::MAX)).map(Ok))
            }
            _ => Box::new(std::iter::empty()),
        })
    }
}

/// A node of any tree: in pages, in memory, of several layers.
#[derive(Clone)]
pub struct Document<N> {
    node: N,
    kind: NodeKind,
    /// The member that was asked for last, in a container: several walks often take the same way.
    last: Option<Rc<RefCell<Option<LastMember<N>>>>>,
}

type LastMember<N> = (Name, Option<Document<N>>);

impl<N: Node> Document<N> {
    /// A document whose root is a node.
    ///
    /// # Errors
    /// `Corrupted` for damage.
    pub fn new(node: N) -> Result<Document<N>> {
        let kind = node.kind()?;
        let is_container = matches!(kind, NodeKind::Map | NodeKind::List);
        Ok(Document { node, kind, last: is_container.then(Rc::default) })
    }

    fn moved(&self, enter: impl FnOnce(&mut N) -> Result<bool>) -> Result<Option<Self>> {
        let mut node = self.node.clone();
        match enter(&mut node)? {
            true => Document::new(node).map(Some),
            false => Ok(None),
        }
    }

    fn run(&self, children: Option<N::Children>) -> Run<N> {
        Run { children, node: self.node.clone() }
    }
}

impl<N: Node> Instance for Document<N> {
    type Members = Members<N>;
    type Elements = Elements<N>;

    fn kind(&self) -> Result<NodeKind> {
        Ok(self.kind)
    }

    fn leaf<'a>(&'a self, long: &'a mut Vec<u8>) -> Result<Option<Leaf<'a>>> {
        Ok(self.node.leaf(long)?.map(Leaf::from))
    }

    fn count(&self) -> Result<u64> {
        self.node.count()
    }

    fn member(&self, key: &str) -> Result<Option<Self>> {
        let Some(last) = &self.last else { return Ok(None) };
        if let Some((last, member)) = &*last.borrow()
            && last.text() == key
        {
            return Ok(member.clone());
        }
        let name = Name::new(key);
        let member = self.moved(|node| node.enter(&name))?;
        *last.borrow_mut() = Some((name, member.clone()));
        Ok(member)
    }

    fn element(&self, position: u64) -> Result<Option<Self>> {
        self.moved(|node| node.enter_position(position))
    }

    fn members(&self) -> Result<Members<N>> {
        let members = match self.kind {
            NodeKind::Map => self.node.children()?,
            _ => None,
        };
        Ok(Members { run: self.run(members), buffer: Vec::new() })
    }

    fn elements(&self, from: u64) -> Result<Elements<N>> {
        let elements = match self.kind {
            NodeKind::List => self.node.elements(from)?,
            _ => None,
        };
        Ok(Elements(self.run(elements)))
    }
}

/// Children that come one after the other.
struct Run<N: Node> {
    children: Option<N::Children>,
    /// The one that came last.
    node: N,
}

impl<N: Node> Run<N> {
    /// The next one, with what is to be known of it beside.
    fn next<T>(
        &mut self,
        beside: impl FnOnce(&N::Children) -> Result<T>,
    ) -> Option<Result<(T, Document<N>)>> {
        let Run { children, node } = self;
        let children = children.as_mut()?;
        let next = || match children.next(node)? {
            true => Ok(Some((beside(children)?, Document::new(node.clone())?))),
            false => Ok(None),
        };
        next().transpose()
    }
}

/// The members of a map.
pub struct Members<N: Node> {
    run: Run<N>,
    /// For keys.
    buffer: Vec<u8>,
}

impl<N: Node> Iterator for Members<N> {
    type Item = Result<(String, Document<N>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let Members { run, buffer } = self;
        run.next(|members| Ok(members.key(buffer)?.ok_or_else(no_key)?.text().into_owned()))
    }
}

/// The elements of a list.
pub struct Elements<N: Node>(Run<N>);

impl<N: Node> Iterator for Elements<N> {
    type Item = Result<Document<N>>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next(|_| Ok(()))?.map(|((), element)| element))
    }
}
