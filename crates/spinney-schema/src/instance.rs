//! What the evaluator needs to read of a document, wherever it is stored.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;

use spinney_core::error::{Error, Result};
use spinney_core::key::Key;
use spinney_core::node::{LongForm, Node, NodeKind};
use spinney_core::view::{Cursor, Slot, View};
use spinney_core::{Num, Scalar, Value};

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

/// One node of a document, cheap to clone, from which its members are reached.
///
/// Iterators follow the order of the model; nothing below a member is read before it is asked for.
pub trait Instance: Clone {
    /// The members of a map, with their keys.
    type Members: Iterator<Item = Result<(String, Self)>>;
    /// The elements of a list.
    type Elements: Iterator<Item = Result<Self>>;

    /// What it is.
    fn kind(&self) -> Result<NodeKind>;
    /// Its content; `None` when it is a container.
    fn leaf(&self) -> Result<Option<Leaf<'_>>>;
    /// How many members it has; 0 when it is no container.
    ///
    /// # Complexity
    /// O(1).
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

    fn leaf(&self) -> Result<Option<Leaf<'_>>> {
        Ok(match self {
            Value::Null => Some(Leaf::Null),
            Value::Bool(value) => Some(Leaf::Bool(*value)),
            Value::Number(number) => Some(Leaf::Number(number.as_num())),
            Value::String(text) => Some(Leaf::String(text.into())),
            Value::Bytes(bytes) => Some(Leaf::Bytes(bytes.into())),
            Value::Map(_) | Value::List(_) => None,
        })
    }

    fn count(&self) -> Result<u64> {
        Ok(match self {
            Value::Map(map) => map.len() as u64,
            Value::List(list) => list.len() as u64,
            _ => 0,
        })
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

/// A node in a store, at one state.
#[derive(Clone)]
pub struct Stored<'s> {
    view: View<'s>,
    slot: Slot<'s>,
    kind: NodeKind,
    /// The member that was asked for last, in a container: several walks often take the same way.
    last: Option<Rc<RefCell<Option<LastMember<'s>>>>>,
}

type LastMember<'s> = (String, Option<Stored<'s>>);

impl<'s> Stored<'s> {
    /// A node that a view has found.
    ///
    /// # Errors
    /// `Corrupted` when it refers to a tree that is missing.
    pub fn new(view: View<'s>, mut slot: Slot<'s>) -> Result<Stored<'s>> {
        view.follow(&mut slot)?;
        let kind = slot.read()?.node.kind();
        let kind = kind.ok_or_else(|| Error::corrupted("a tree's root refers to a tree"))?;
        let is_container = matches!(kind, NodeKind::Map | NodeKind::List);
        Ok(Stored { view, slot, kind, last: is_container.then(Rc::default) })
    }

    fn moved(&self, enter: impl FnOnce(&mut Slot<'s>) -> Result<bool>) -> Result<Option<Self>> {
        let mut slot = self.slot.clone();
        match enter(&mut slot)? {
            true => Stored::new(self.view, slot).map(Some),
            false => Ok(None),
        }
    }
}

impl<'s> Instance for Stored<'s> {
    type Members = StoredMembers<'s>;
    type Elements = StoredElements<'s>;

    fn kind(&self) -> Result<NodeKind> {
        Ok(self.kind)
    }

    fn leaf(&self) -> Result<Option<Leaf<'_>>> {
        Ok(match self.slot.read()?.node {
            Node::Scalar(scalar) => Some(match scalar {
                Scalar::Null => Leaf::Null,
                Scalar::Bool(value) => Leaf::Bool(value),
                Scalar::Number(num) => Leaf::Number(num),
                Scalar::String(text) => Leaf::String(text.text.into()),
                Scalar::Bytes(bytes) => Leaf::Bytes(bytes.into()),
            }),
            Node::Long(long) => {
                let bytes = self.view.long(self.slot.tree, long)?;
                Some(match long.form {
                    LongForm::Bytes => Leaf::Bytes(bytes.into()),
                    LongForm::PlainText | LongForm::EscapedText => {
                        let text = String::from_utf8(bytes)
                            .map_err(|_| Error::corrupted("a long text is not UTF-8"))?;
                        Leaf::String(text.into())
                    }
                })
            }
            _ => None,
        })
    }

    fn count(&self) -> Result<u64> {
        Ok(self.view.count(&self.slot)?.unwrap_or(0))
    }

    fn member(&self, key: &str) -> Result<Option<Self>> {
        let Some(last) = &self.last else { return Ok(None) };
        if let Some((last, member)) = &*last.borrow()
            && last == key
        {
            return Ok(member.clone());
        }
        let member = self.moved(|slot| self.view.enter_key(slot, &Key::new(key).encoded()))?;
        *last.borrow_mut() = Some((key.to_owned(), member.clone()));
        Ok(member)
    }

    fn element(&self, position: u64) -> Result<Option<Self>> {
        self.moved(|slot| self.view.enter_element(slot, position))
    }

    fn members(&self) -> Result<Self::Members> {
        let cursor = match self.kind()? {
            NodeKind::Map => self.view.cursor(&self.slot)?,
            _ => None,
        };
        Ok(StoredMembers { view: self.view, cursor, buffer: Vec::new() })
    }

    fn elements(&self, from: u64) -> Result<Self::Elements> {
        let cursor = match self.kind()? {
            NodeKind::List if from == 0 => self.view.cursor(&self.slot)?,
            NodeKind::List => self.view.cursor_from_position(&self.slot, from)?,
            _ => None,
        };
        Ok(StoredElements { view: self.view, cursor })
    }
}

/// The members of a stored map.
pub struct StoredMembers<'s> {
    view: View<'s>,
    cursor: Option<Cursor<'s>>,
    /// For keys.
    buffer: Vec<u8>,
}

impl<'s> Iterator for StoredMembers<'s> {
    type Item = Result<(String, Stored<'s>)>;

    fn next(&mut self) -> Option<Self::Item> {
        let cursor = self.cursor.as_mut()?;
        let (view, buffer) = (self.view, &mut self.buffer);
        let mut next = || {
            if !cursor.advance()? {
                return Ok(None);
            }
            let key = cursor.key(buffer)?.text().into_owned();
            Ok(Some((key, Stored::new(view, cursor.slot()?)?)))
        };
        next().transpose()
    }
}

/// The elements of a stored list.
pub struct StoredElements<'s> {
    view: View<'s>,
    cursor: Option<Cursor<'s>>,
}

impl<'s> Iterator for StoredElements<'s> {
    type Item = Result<Stored<'s>>;

    fn next(&mut self) -> Option<Self::Item> {
        let cursor = self.cursor.as_mut()?;
        let view = self.view;
        let mut next = || match cursor.advance()? {
            true => Stored::new(view, cursor.slot()?).map(Some),
            false => Ok(None),
        };
        next().transpose()
    }
}
