//! Values in memory, for callers; stored trees never pass through them.

use std::borrow::Cow;
use std::fmt;
use std::ops::{Deref, DerefMut};

use smallvec::SmallVec;

use crate::error::{Error, Result};
use crate::key::{EncodedKey, Key, StoredKey};
use crate::members::{self, Members};
use crate::node::NodeKind;
use crate::number::Number;
use crate::stretch::Stretch;
use crate::visit::{Container, Scalar, Text, Visitor};

/// A node and all below it. `==` means *identical*: numbers by their text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// JSON `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A lossless number.
    Number(Number),
    /// A UTF-8 text.
    String(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// Unique keys in the order of the model.
    Map(Map),
    /// Elements in the user's order.
    List(List),
}

impl Value {
    /// An empty map.
    pub fn map() -> Value {
        Value::Map(Map::new())
    }

    /// An empty list.
    pub fn list() -> Value {
        Value::List(List::default())
    }

    /// The member or element that a JSON Pointer names below this value.
    pub fn pointer(&self, path: &str) -> Option<&Value> {
        crate::path::segments(path).try_fold(self, |value, segment| match value {
            Value::Map(map) => map.get(&segment),
            Value::List(list) => list.get(usize::try_from(crate::path::position(&segment)?).ok()?),
            _ => None,
        })
    }

    /// The text, when it is a string.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The kind in words: `null`, `bool`, `number`, `string`, `bytes`, `map` or `list`.
    pub fn kind(&self) -> &'static str {
        self.node_kind().name()
    }

    /// The kind of node that it is.
    pub fn node_kind(&self) -> NodeKind {
        match self {
            Value::Null => NodeKind::Null,
            Value::Bool(_) => NodeKind::Bool,
            Value::Number(_) => NodeKind::Number,
            Value::String(_) => NodeKind::String,
            Value::Bytes(_) => NodeKind::Bytes,
            Value::Map(_) => NodeKind::Map,
            Value::List(_) => NodeKind::List,
        }
    }

    /// Drives `visitor` over this value, without recursion.
    pub fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        let mut next = match self.shape() {
            Shape::Scalar(scalar) => return visitor.scalar(scalar),
            Shape::Container(open) => Some(open),
        };
        let mut stack: SmallVec<[Open<'_>; 4]> = SmallVec::new();
        loop {
            match next.take() {
                Some(open) => {
                    visitor.open(open.container())?;
                    stack.push(open);
                }
                None => {
                    visitor.close()?;
                    stack.pop();
                }
            }
            next = match stack.last_mut() {
                Some(open) => open.scalars(visitor)?,
                None => return Ok(()),
            };
        }
    }

    #[inline(always)]
    fn shape(&self) -> Shape<'_> {
        Shape::Scalar(match self {
            Value::Null => Scalar::Null,
            Value::Bool(value) => Scalar::Bool(*value),
            Value::Number(number) => Scalar::Number(number.as_num()),
            Value::String(text) => Scalar::String(Text::new(text)),
            Value::Bytes(bytes) => Scalar::Bytes(bytes),
            Value::Map(map) => return Shape::Container(Open::Map(map.0.iter())),
            Value::List(list) => return Shape::Container(Open::List(list.0.iter())),
        })
    }
}

/// A value as visitors see it.
enum Shape<'a> {
    Scalar(Scalar<'a>),
    Container(Open<'a>),
}

/// A container that a visitor is in, with the members that are still to come.
enum Open<'a> {
    Map(members::Iter<'a, Value>),
    List(std::slice::Iter<'a, Value>),
}

impl<'a> Open<'a> {
    fn container(&self) -> Container {
        match self {
            Open::Map(_) => Container::Map,
            Open::List(_) => Container::List,
        }
    }

    /// Gives the next members up to one that is a container, which it returns.
    fn scalars(&mut self, visitor: &mut (impl Visitor + ?Sized)) -> Result<Option<Open<'a>>> {
        match self {
            Open::Map(entries) => {
                for (key, value) in entries {
                    let suffix = Stretch::from(&key[..]);
                    visitor.stored_key(StoredKey { prefix: &[], suffix })?;
                    match value.shape() {
                        Shape::Scalar(scalar) => visitor.scalar(scalar)?,
                        Shape::Container(open) => return Ok(Some(open)),
                    }
                }
            }
            Open::List(elements) => {
                for value in elements {
                    match value.shape() {
                        Shape::Scalar(scalar) => visitor.scalar(scalar)?,
                        Shape::Container(open) => return Ok(Some(open)),
                    }
                }
            }
        }
        Ok(None)
    }
}

fn decoded(key: &[u8]) -> Key<'_> {
    Key::decode(key).expect("a map holds only encoded keys")
}

#[inline]
fn encoded(key: &str) -> EncodedKey {
    Key::new(key).encoded()
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}
impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Number(value.into())
    }
}
impl From<u64> for Value {
    fn from(value: u64) -> Value {
        Value::Number(value.into())
    }
}
impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Number(i64::from(value).into())
    }
}
impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::String(value.to_owned())
    }
}
impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::String(value)
    }
}
impl From<Map> for Value {
    fn from(value: Map) -> Value {
        Value::Map(value)
    }
}
impl From<Vec<Value>> for Value {
    fn from(value: Vec<Value>) -> Value {
        Value::List(List(value))
    }
}

/// The members of a map, in the collation of [`crate::key`].
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Map(Members<Value>);

impl Map {
    /// No members.
    pub fn new() -> Map {
        Map::default()
    }

    /// Sets a member and returns the value that it replaces.
    pub fn insert(&mut self, key: &str, value: impl Into<Value>) -> Option<Value> {
        self.0.insert(encoded(key), value.into())
    }

    /// Removes a member.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        self.0.remove(&encoded(key))
    }

    /// The value of a member.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(&encoded(key))
    }

    /// The value of a member, to change.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Value> {
        self.0.get_mut(&encoded(key))
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The members in the order of the model.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Cow<'_, str>, &Value)> {
        self.0.iter().map(|(key, value)| (decoded(key).text(), value))
    }
}

impl Map {
    /// The value of a member whose key is encoded.
    pub fn get_encoded(&self, key: &EncodedKey) -> Option<&Value> {
        self.0.get(key)
    }

    /// The members from a key on, or from where it would be, with their encoded keys.
    pub fn entries_from(&self, key: &EncodedKey) -> members::Iter<'_, Value> {
        self.0.iter_from(key)
    }

    /// Takes the members out, in order.
    pub fn into_members(mut self) -> impl Iterator<Item = (String, Value)> {
        let members = std::mem::take(&mut self.0).into_vec();
        members.into_iter().map(|(key, value)| (decoded(&key).text().into_owned(), value))
    }

    /// The members with their encoded keys.
    pub fn entries(&self) -> members::Iter<'_, Value> {
        self.0.iter()
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: AsRef<str>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(members: I) -> Map {
        Map(members.into_iter().map(|(key, value)| (encoded(key.as_ref()), value.into())).collect())
    }
}

/// The elements of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List(Vec<Value>);

impl Deref for List {
    type Target = Vec<Value>;
    fn deref(&self) -> &Vec<Value> {
        &self.0
    }
}

impl DerefMut for List {
    fn deref_mut(&mut self) -> &mut Vec<Value> {
        &mut self.0
    }
}

impl FromIterator<Value> for List {
    fn from_iter<I: IntoIterator<Item = Value>>(elements: I) -> List {
        List(elements.into_iter().collect())
    }
}

/// Takes the containers out of values before they drop, so that depth never becomes recursion.
fn dismantle(mut pending: Vec<Value>) {
    while let Some(value) = pending.pop() {
        match value {
            Value::Map(mut map) => std::mem::take(&mut map.0).move_values_to(&mut pending),
            Value::List(mut list) => pending.append(&mut list.0),
            _ => {}
        }
    }
}

fn is_container(value: &Value) -> bool {
    matches!(value, Value::Map(_) | Value::List(_))
}

impl Drop for Map {
    fn drop(&mut self) {
        if self.0.iter().any(|(_, value)| is_container(value)) {
            let mut values = Vec::new();
            std::mem::take(&mut self.0).move_values_to(&mut values);
            dismantle(values);
        }
    }
}

impl Drop for List {
    fn drop(&mut self) {
        if self.0.iter().any(is_container) {
            dismantle(std::mem::take(&mut self.0));
        }
    }
}

/// Makes a [`Value`] from visitor calls. Metadata is left out.
#[derive(Default)]
pub struct ValueBuilder {
    open: Vec<(Value, Option<EncodedKey>)>,
    key: Option<EncodedKey>,
    done: Option<Value>,
}

impl ValueBuilder {
    /// The value, once it is complete.
    pub fn finish(self) -> Option<Value> {
        self.done
    }

    fn add(&mut self, value: Value) -> Result<()> {
        match self.open.last_mut() {
            None => self.done = Some(value),
            Some((Value::List(list), _)) => list.push(value),
            Some((Value::Map(map), _)) => {
                let key = self.key.take().expect("a key comes before each member");
                if map.0.insert(key.clone(), value).is_some() {
                    return Err(duplicate_key(decoded(&key)));
                }
            }
            Some(_) => unreachable!("only containers are open"),
        }
        Ok(())
    }
}

/// The error for a key that stands twice in one map.
#[cold]
pub fn duplicate_key(key: Key<'_>) -> Error {
    Error::invalid_input(format!("the key `{key}` stands twice in one object; keys must be unique"))
}

impl Visitor for ValueBuilder {
    fn open(&mut self, container: Container) -> Result<()> {
        let value = match container {
            Container::Map => Value::map(),
            Container::List => Value::list(),
        };
        self.open.push((value, self.key.take()));
        Ok(())
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.key = Some(key.encoded());
        Ok(())
    }

    fn stored_key(&mut self, key: StoredKey<'_>) -> Result<()> {
        self.key = Some(EncodedKey::from(&*key.check()?));
        Ok(())
    }

    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.add(match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Number(num) => Value::Number(num.to_owned()),
            Scalar::String(text) => Value::String(text.text.to_owned()),
            Scalar::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        })
    }

    fn close(&mut self) -> Result<()> {
        let (value, key) = self.open.pop().expect("close comes after open");
        self.key = key;
        self.add(value)
    }

    fn meta(&mut self, _name: &str, _value: &str) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_levels_drop_without_recursion() {
        let mut value = Value::Null;
        for level in 0..1_000_000 {
            value = match level % 2 {
                0 => Value::from(vec![value]),
                _ => Value::Map([("a", value)].into_iter().collect()),
            };
        }
        drop(value);
    }

    #[test]
    fn visit_and_build_give_the_same_value() {
        let value: Value = Value::Map(
            [
                (
                    "b",
                    Value::from(vec![
                        Value::Null,
                        Value::from(1),
                        Value::from("x\n"),
                        Value::map(),
                    ]),
                ),
                ("10", Value::from(true)),
                ("9", Value::Bytes(vec![1, 2])),
            ]
            .into_iter()
            .collect(),
        );
        let mut builder = ValueBuilder::default();
        value.visit(&mut builder).expect("builds");
        assert_eq!(builder.finish().as_ref(), Some(&value));
        let Value::Map(map) = &value else { panic!("it is a map") };
        assert_eq!(
            map.iter().map(|(key, _)| key.into_owned()).collect::<Vec<_>>(),
            ["9", "10", "b"]
        );
        assert_eq!(value.pointer("/b/1"), Some(&Value::from(1)));
    }
}
