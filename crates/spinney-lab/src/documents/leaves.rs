//! One record a leaf: its key is the document's number and the path, its value the leaf with its type.
//!
//! A number is eight bytes, highest first. Each segment of the path begins with `k` and has the bytes of a
//! key, where 0 stands as 0 1, then 0 0; or with `e` and has a position as eight bytes. So records are in
//! the order of the document, and no key begins another but those of containers. A value begins with `s`
//! and is a text, or with `j` and is the JSON of anything else, an empty container too.

use serde_json::{Map, Value, map};
use spinney_core::{Error, Result};

use crate::documents::set::parsed;

/// Greater than the begin of any segment.
const BEHIND: u8 = 0xFF;

/// Begins the keys of a document.
pub fn begin(number: usize, key: &mut Vec<u8>) {
    key.clear();
    key.extend_from_slice(&(number as u64).to_be_bytes());
}

/// The number of the document that a key belongs to.
pub fn number_of(key: &[u8]) -> Result<usize> {
    let number = key.first_chunk().ok_or_else(damaged)?;
    usize::try_from(u64::from_be_bytes(*number)).map_err(|_| damaged())
}

/// Where the path begins in a key.
pub const PATH: usize = 8;

/// Makes a key greater than all that begin with it.
pub fn behind(key: &mut Vec<u8>) {
    key.push(BEHIND);
}

/// A segment of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    Key(String),
    Position(u64),
}

impl Segment {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Segment::Key(key) => write_key(key, out),
            Segment::Position(position) => write_position(*position, out),
        }
    }

    /// The segment at the begin of `bytes`, and the rest.
    pub fn read(bytes: &[u8]) -> Result<(Segment, &[u8])> {
        match bytes.split_first() {
            Some((b'e', rest)) => {
                let (position, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
                Ok((Segment::Position(u64::from_be_bytes(*position)), rest))
            }
            Some((b'k', rest)) => {
                let (mut key, mut rest) = (Vec::new(), rest);
                loop {
                    let zero = rest.iter().position(|byte| *byte == 0).ok_or_else(damaged)?;
                    key.extend_from_slice(&rest[..zero]);
                    let is_end = *rest.get(zero + 1).ok_or_else(damaged)? == 0;
                    rest = &rest[zero + 2..];
                    if is_end {
                        let key = String::from_utf8(key).map_err(|_| damaged())?;
                        return Ok((Segment::Key(key), rest));
                    }
                    key.push(0);
                }
            }
            _ => Err(damaged()),
        }
    }

    /// Puts a value where the segment leads, in a container that is made by the first.
    pub fn put(self, value: Value, container: &mut Value) {
        *self.place(container) = value;
    }

    fn place(self, container: &mut Value) -> &mut Value {
        match self {
            Segment::Key(key) => {
                if !container.is_object() {
                    *container = Value::Object(Map::new());
                }
                &mut container[key]
            }
            Segment::Position(position) => {
                if !container.is_array() {
                    *container = Value::Array(Vec::new());
                }
                let elements = container.as_array_mut().expect("it was made an array");
                // Records come in order, so that an element is there or the next.
                if elements.len() as u64 <= position {
                    elements.push(Value::Null);
                }
                elements.last_mut().expect("there is one")
            }
        }
    }
}

/// Puts the leaf of a record into the document.
pub fn add(mut path: &[u8], value: &[u8], document: &mut Value) -> Result<()> {
    let mut place = document;
    while !path.is_empty() {
        let (segment, rest) = Segment::read(path)?;
        place = segment.place(place);
        path = rest;
    }
    *place = read_value(value)?;
    Ok(())
}

/// The key of what a JSON Pointer leads to in a document.
pub fn write_pointer(document: &Value, pointer: &str, key: &mut Vec<u8>) {
    let mut node = document;
    for segment in pointer.split('/').skip(1) {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        let position = segment.parse().ok().filter(|_| node.is_array());
        node = match position {
            Some(position) => node.get(position as usize),
            None => node.get(&segment),
        }
        .unwrap_or(&Value::Null);
        position.map_or(Segment::Key(segment), Segment::Position).write(key);
    }
}

/// Hands each leaf of a document with its key to `each`; `key` has the begin of all.
pub fn walk(
    document: &Value,
    key: &mut Vec<u8>,
    mut each: impl FnMut(&[u8], &Value) -> Result<()>,
) -> Result<()> {
    let mut levels: Vec<(usize, Members<'_>)> = Vec::new();
    let mut node = document;
    loop {
        match Members::of(node) {
            Some(members) => levels.push((key.len(), members)),
            None => each(key, node)?,
        }
        node = loop {
            let Some((len, members)) = levels.last_mut() else { return Ok(()) };
            key.truncate(*len);
            if let Some(next) = members.next(key) {
                break next;
            }
            levels.pop();
        };
    }
}

/// What is left of a container with members.
enum Members<'a> {
    Map(map::Iter<'a>),
    List(std::iter::Enumerate<std::slice::Iter<'a, Value>>),
}

impl<'a> Members<'a> {
    fn of(node: &'a Value) -> Option<Members<'a>> {
        match node {
            Value::Object(members) if !members.is_empty() => Some(Members::Map(members.iter())),
            Value::Array(elements) if !elements.is_empty() => {
                Some(Members::List(elements.iter().enumerate()))
            }
            _ => None,
        }
    }

    /// The next one, its segment appended to `key`.
    fn next(&mut self, key: &mut Vec<u8>) -> Option<&'a Value> {
        match self {
            Members::Map(members) => {
                let (name, value) = members.next()?;
                write_key(name, key);
                Some(value)
            }
            Members::List(elements) => {
                let (position, value) = elements.next()?;
                write_position(position as u64, key);
                Some(value)
            }
        }
    }
}

fn write_key(key: &str, out: &mut Vec<u8>) {
    out.push(b'k');
    for (at, part) in key.split('\0').enumerate() {
        if at > 0 {
            out.extend_from_slice(&[0, 1]);
        }
        out.extend_from_slice(part.as_bytes());
    }
    out.extend_from_slice(&[0, 0]);
}

fn write_position(position: u64, out: &mut Vec<u8>) {
    out.push(b'e');
    out.extend_from_slice(&position.to_be_bytes());
}

/// The bytes of a leaf, in place of what was there.
pub fn write_value(leaf: &Value, out: &mut Vec<u8>) {
    out.clear();
    match leaf {
        Value::String(text) => {
            out.push(b's');
            out.extend_from_slice(text.as_bytes());
        }
        leaf => {
            out.push(b'j');
            serde_json::to_writer(out, leaf).expect("a vector takes every write");
        }
    }
}

/// The leaf that these bytes are.
pub fn read_value(bytes: &[u8]) -> Result<Value> {
    match bytes.split_first() {
        Some((b's', text)) => Ok(Value::from(std::str::from_utf8(text).map_err(|_| damaged())?)),
        Some((b'j', json)) => parsed(json),
        _ => Err(damaged()),
    }
}

fn damaged() -> Error {
    Error::corrupted("a record is none that was put there")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_document_is_put_together_from_its_records() {
        let document = json!({
            "a": [1, [], [{ "x": null }, true]], "b\0c": { "d": {}, "": "1e5" }, "bc": -1.5,
        });
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut records = Vec::new();
        begin(7, &mut key);
        walk(&document, &mut key, |key, leaf| {
            write_value(leaf, &mut value);
            records.push((key.to_vec(), value.clone()));
            Ok(())
        })
        .expect("walks");
        assert!(records.is_sorted(), "{records:?}");
        let mut made = Value::Null;
        for (key, value) in &records {
            assert_eq!(number_of(key).expect("a number"), 7);
            add(&key[PATH..], value, &mut made).expect("adds");
        }
        assert_eq!(made, document);
        begin(7, &mut key);
        write_pointer(&document, "/a/2/0/x", &mut key);
        assert!(records.iter().any(|(known, _)| *known == key));
    }
}
