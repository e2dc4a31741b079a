//! The records of items and entries, as bytes.
//!
//! An item is `k1` (4 bytes, lowest first), the length of `k2` (4 bytes), `k2`, and then either nothing
//! or `1` and the text of `l`. An entry is `k` (4 bytes) and the same end.

use serde_json::{Value, json};
use spinney_core::{Error, Result};

/// An item of `lst`.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    pub k1: u32,
    pub k2: &'a str,
    pub l: Option<&'a str>,
}

/// An entry of `usr-lst`.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    pub k: u32,
    pub l: Option<&'a str>,
}

impl<'a> Item<'a> {
    /// Its bytes, in place of what was there.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.k1.to_le_bytes());
        out.extend_from_slice(&(self.k2.len() as u32).to_le_bytes());
        out.extend_from_slice(self.k2.as_bytes());
        write_leaf(self.l, out);
    }

    pub fn read(bytes: &'a [u8]) -> Result<Item<'a>> {
        let (k1, rest) = number(bytes)?;
        let (len, rest) = number(rest)?;
        let (k2, rest) = rest.split_at_checked(len as usize).ok_or_else(damaged)?;
        Ok(Item { k1, k2: text(k2)?, l: read_leaf(rest)? })
    }

    /// Nodes as sysrepo counts them.
    pub fn nodes(&self) -> u64 {
        3 + u64::from(self.l.is_some())
    }

    pub fn of_json(json: &'a Value) -> Option<Item<'a>> {
        let k2 = json["k2"].as_str()?;
        Some(Item { k1: key(&json["k1"])?, k2, l: leaf(json, 2)? })
    }

    pub fn to_json(self) -> Value {
        with_leaf(json!({ "k1": self.k1, "k2": self.k2 }), self.l)
    }
}

impl<'a> Entry<'a> {
    /// Its bytes, in place of what was there.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.k.to_le_bytes());
        write_leaf(self.l, out);
    }

    pub fn read(bytes: &'a [u8]) -> Result<Entry<'a>> {
        let (k, rest) = number(bytes)?;
        Ok(Entry { k, l: read_leaf(rest)? })
    }

    /// Nodes as sysrepo counts them.
    pub fn nodes(&self) -> u64 {
        2 + u64::from(self.l.is_some())
    }

    pub fn of_json(json: &'a Value) -> Option<Entry<'a>> {
        Some(Entry { k: key(&json["k"])?, l: leaf(json, 1)? })
    }

    pub fn to_json(self) -> Value {
        with_leaf(json!({ "k": self.k }), self.l)
    }
}

fn key(json: &Value) -> Option<u32> {
    json.as_u64()?.try_into().ok()
}

/// The text of `l`, if the object has it beside so many keys; `None` where the object is of no model.
fn leaf(json: &Value, keys: usize) -> Option<Option<&str>> {
    let members = json.as_object()?.len();
    match json.get("l") {
        Some(l) if members == keys + 1 => Some(Some(l.as_str()?)),
        None if members == keys => Some(None),
        _ => None,
    }
}

fn with_leaf(mut json: Value, leaf: Option<&str>) -> Value {
    if let Some(leaf) = leaf {
        json["l"] = leaf.into();
    }
    json
}

fn write_leaf(leaf: Option<&str>, out: &mut Vec<u8>) {
    if let Some(leaf) = leaf {
        out.push(1);
        out.extend_from_slice(leaf.as_bytes());
    }
}

fn read_leaf(bytes: &[u8]) -> Result<Option<&str>> {
    match bytes {
        [] => Ok(None),
        [1, leaf @ ..] => text(leaf).map(Some),
        _ => Err(damaged()),
    }
}

fn number(bytes: &[u8]) -> Result<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
    Ok((u32::from_le_bytes(*number), rest))
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| damaged())
}

#[cold]
fn damaged() -> Error {
    Error::corrupted("a record of a peer is neither an item nor an entry")
}
