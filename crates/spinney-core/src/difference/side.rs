//! What is compared: a value in memory or a stored node, read as far as it is asked for.

use std::ptr;

use crate::error::Result;
use crate::key::EncodedKey;
use crate::members;
use crate::node;
use crate::read::Stored;
use crate::reclaim::references;
use crate::value::{Value, ValueBuilder};
use crate::view::{Cursor, Slot, View};
use crate::visit::{Container, Visitor};

use super::{Entries, entries};

/// One of two trees that are compared, or a part of it.
#[derive(Clone)]
pub enum Side<'a> {
    /// A value in memory; it has no metadata.
    Value(&'a Value),
    /// A node of a store.
    Stored(StoredSide<'a>),
}

/// A stored node and the state that it is read from.
#[derive(Clone)]
pub struct StoredSide<'a> {
    view: View<'a>,
    slot: Slot<'a>,
}

impl std::fmt::Debug for Side<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_value().fmt(f)
    }
}

impl<'a> Side<'a> {
    /// A stored node.
    ///
    /// # Errors
    /// `Corrupted` when it refers to a tree that is missing.
    pub fn stored(view: View<'a>, mut slot: Slot<'a>) -> Result<Side<'a>> {
        view.follow(&mut slot)?;
        Ok(Side::Stored(StoredSide { view, slot }))
    }

    /// A node of a store that was reached.
    pub fn of(node: Stored<'a>) -> Side<'a> {
        let (view, slot) = node.into_parts();
        Side::Stored(StoredSide { view, slot })
    }

    /// Drives a visitor over the node and all below it.
    ///
    /// # Errors
    /// Those of reading, and the visitor's.
    pub fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        match self {
            Side::Value(value) => value.visit(visitor),
            Side::Stored(StoredSide { view, slot }) => view.walk(slot, visitor),
        }
    }

    /// The value, without metadata.
    ///
    /// # Errors
    /// Those of reading.
    pub fn to_value(&self) -> Result<Value> {
        let mut builder = ValueBuilder::default();
        self.visit(&mut builder)?;
        Ok(builder.finish().expect("a node is one value"))
    }

    /// What container it is; `None` for a scalar.
    ///
    /// # Errors
    /// Those of reading.
    pub fn container(&self) -> Result<Option<Container>> {
        Ok(match self {
            Side::Value(Value::Map(_)) => Some(Container::Map),
            Side::Value(Value::List(_)) => Some(Container::List),
            Side::Value(_) => None,
            Side::Stored(StoredSide { slot, .. }) => slot.read()?.node.container(),
        })
    }

    /// How many members it has; `None` for a scalar.
    ///
    /// # Errors
    /// Those of reading.
    pub fn count(&self) -> Result<Option<u64>> {
        Ok(match self {
            Side::Value(Value::Map(map)) => Some(map.len() as u64),
            Side::Value(Value::List(list)) => Some(list.len() as u64),
            Side::Value(_) => None,
            Side::Stored(StoredSide { view, slot }) => view.count(slot)?,
        })
    }

    /// Its own metadata.
    ///
    /// # Errors
    /// Those of reading.
    pub fn metadata(&self) -> Result<Entries> {
        match self {
            Side::Value(_) => Ok(Vec::new()),
            Side::Stored(StoredSide { slot, .. }) => entries(slot.read()?.meta),
        }
    }

    /// Whether both are known to be the same without a look at what is below.
    pub(super) fn is_same(&self, other: &Side<'_>) -> Result<bool> {
        Ok(match (self, other) {
            (Side::Value(a), Side::Value(b)) => ptr::eq(*a, *b),
            (Side::Stored(a), Side::Stored(b)) if a.slot.encoded() == b.slot.encoded() => {
                let same_state = ptr::addr_eq(a.view.snapshot, b.view.snapshot);
                same_state && a.slot.tree == b.slot.tree || !a.refers()
            }
            _ => false,
        })
    }

    /// The members of a map.
    pub(super) fn members(&self) -> Result<Members<'a>> {
        let mut members = match self {
            Side::Value(Value::Map(map)) => {
                Members { source: Source::Value(map.entries()), next: None }
            }
            Side::Value(_) => unreachable!("it is a map"),
            Side::Stored(side) => {
                let source = Source::Stored(side.view, Box::new(side.cursor()?));
                Members { source, next: None }
            }
        };
        members.take()?;
        Ok(members)
    }

    /// The elements of a list.
    pub(super) fn elements(&self) -> Result<Vec<Side<'a>>> {
        match self {
            Side::Value(Value::List(list)) => Ok(list.iter().map(Side::Value).collect()),
            Side::Value(_) => unreachable!("it is a list"),
            Side::Stored(side) => {
                let mut elements = Vec::new();
                let mut cursor = side.cursor()?;
                while cursor.advance()? {
                    elements.push(Side::stored(side.view, cursor.slot()?)?);
                }
                Ok(elements)
            }
        }
    }
}

impl<'a> StoredSide<'a> {
    fn cursor(&self) -> Result<Cursor<'a>> {
        Ok(self.view.cursor(&self.slot)?.expect("a container has a cursor"))
    }

    /// Whether it leads to other records, or does not read.
    fn refers(&self) -> bool {
        let mut refers = false;
        !node::is_scalar(self.slot.encoded())
            && (references(self.slot.encoded(), |_| refers = true).is_none() || refers)
    }
}

/// A member, with its encoded key.
type Member<'a> = (EncodedKey, Side<'a>);

/// The members of a map, in their order.
pub(super) struct Members<'a> {
    source: Source<'a>,
    next: Option<Member<'a>>,
}

enum Source<'a> {
    Value(members::Iter<'a, Value>),
    Stored(View<'a>, Box<Cursor<'a>>),
}

impl<'a> Members<'a> {
    /// The key of the next member.
    pub fn key(&self) -> Option<&EncodedKey> {
        self.next.as_ref().map(|(key, _)| key)
    }

    /// The next member, and on to the one behind it.
    pub fn take(&mut self) -> Result<Option<Member<'a>>> {
        let following = match &mut self.source {
            Source::Value(members) => {
                members.next().map(|(key, value)| (key.clone(), Side::Value(value)))
            }
            Source::Stored(view, cursor) => match cursor.advance()? {
                false => None,
                true => {
                    let key = cursor.key(&mut Vec::new())?.encoded();
                    Some((key, Side::stored(*view, cursor.slot()?)?))
                }
            },
        };
        Ok(std::mem::replace(&mut self.next, following))
    }
}
