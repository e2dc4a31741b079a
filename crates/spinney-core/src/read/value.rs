//! Values in memory as trees to be read.

use std::slice;

use crate::error::Result;
use crate::key::{EncodedKey, Key};
use crate::members;
use crate::node::NodeKind;
use crate::value::Value;
use crate::visit::Visitor;

use super::{Children, Leaf, Name, Node};

impl<'v> Node for &'v Value {
    type Children = ValueChildren<'v>;

    fn kind(&self) -> Result<NodeKind> {
        Ok(self.node_kind())
    }

    fn leaf<'a>(&'a self, _long: &'a mut Vec<u8>) -> Result<Option<Leaf<'a>>> {
        Ok(match self {
            Value::Null => Some(Leaf::Null),
            Value::Bool(value) => Some(Leaf::Bool(*value)),
            Value::Number(number) => Some(Leaf::Number(number.as_num())),
            Value::String(text) => Some(Leaf::String(text)),
            Value::Bytes(bytes) => Some(Leaf::Bytes(bytes)),
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

    fn enter(&mut self, name: &Name) -> Result<bool> {
        Ok(match self {
            Value::Map(map) => put(self, map.get_encoded(name.encoded())),
            _ => false,
        })
    }

    fn enter_position(&mut self, position: u64) -> Result<bool> {
        Ok(match self {
            Value::List(list) => {
                put(self, usize::try_from(position).ok().and_then(|at| list.get(at)))
            }
            _ => false,
        })
    }

    fn children(&self) -> Result<Option<ValueChildren<'v>>> {
        match self {
            Value::Map(map) => Ok(Some(ValueChildren::Map(map.entries(), None))),
            _ => self.elements(0),
        }
    }

    fn members_from(&self, key: &EncodedKey) -> Result<Option<ValueChildren<'v>>> {
        Ok(match self {
            Value::Map(map) => Some(ValueChildren::Map(map.entries_from(key), None)),
            _ => None,
        })
    }

    fn elements(&self, from: u64) -> Result<Option<ValueChildren<'v>>> {
        Ok(match self {
            Value::List(list) => {
                let from = usize::try_from(from).unwrap_or(usize::MAX).min(list.len());
                Some(ValueChildren::List(list[from..].iter()))
            }
            _ => None,
        })
    }

    fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        Value::visit(self, visitor)
    }

    /// Values in memory have none.
    fn meta(&self, _found: &mut dyn FnMut(&str, &str)) -> Result<()> {
        Ok(())
    }
}

/// Moves to another value, if there is one.
fn put<'v>(node: &mut &'v Value, next: Option<&'v Value>) -> bool {
    *node = next.unwrap_or(node);
    next.is_some()
}

/// Children of a value in memory.
pub enum ValueChildren<'v> {
    /// Members, and the key of the one that was given last.
    Map(members::Iter<'v, Value>, Option<&'v EncodedKey>),
    /// Elements.
    List(slice::Iter<'v, Value>),
}

impl<'v> Children for ValueChildren<'v> {
    type Node = &'v Value;

    fn next(&mut self, node: &mut &'v Value) -> Result<bool> {
        Ok(match self {
            ValueChildren::Map(entries, last) => {
                let next = entries.next();
                *last = next.map(|(key, _)| key).or(*last);
                put(node, next.map(|(_, value)| value))
            }
            ValueChildren::List(elements) => put(node, elements.next()),
        })
    }

    fn key<'k>(&'k self, _buffer: &'k mut Vec<u8>) -> Result<Option<Key<'k>>> {
        Ok(match self {
            ValueChildren::Map(_, Some(key)) => Key::decode(key),
            _ => None,
        })
    }
}
