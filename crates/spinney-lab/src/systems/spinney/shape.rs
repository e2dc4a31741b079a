//! Items and entries as spinney has them: where they lie, and what they are.

use std::fmt::Write as _;

use serde::Serialize;
use spinney::{Map, Value};

use crate::datastore::document::{leaf_text, numbered, push_item_key};

/// The map of items.
pub const ITEMS: &str = "/running/cont/lst";
/// The list of entries.
pub const ENTRIES: &str = "/running/cont/usr-lst";

/// An item below the containers that lead to it.
pub fn with_ancestors(key: &str, item: Value) -> Value {
    ["cont", "lst", key].into_iter().rev().fold(item, |below, key| {
        let mut map = Map::new();
        map.insert(key, below);
        Value::Map(map)
    })
}

/// The path of an item.
pub fn write_path(i: usize, path: &mut String) {
    path.clear();
    path.push_str(ITEMS);
    path.push('/');
    push_item_key(i, path);
}

/// That of its `l`.
pub fn write_leaf_path(i: usize, path: &mut String) {
    write_path(i, path);
    path.push_str("/l");
}

/// That of an entry.
pub fn write_element_path(position: usize, path: &mut String) {
    path.clear();
    write!(path, "{ENTRIES}/{position}").expect("strings take all");
}

/// An item as programs have it.
#[derive(Serialize)]
pub struct Item {
    k1: usize,
    k2: String,
    l: String,
}

impl Item {
    /// The one of this number.
    pub fn new(i: usize) -> Item {
        Item { k1: i, k2: numbered("str", i), l: leaf_text(i) }
    }
}

/// An entry of the list in the user's order as programs have it.
#[derive(Serialize)]
pub struct Entry {
    k: usize,
    l: String,
}

impl Entry {
    /// The one of this number.
    pub fn new(i: usize) -> Entry {
        Entry { k: i, l: leaf_text(i) }
    }
}

/// An item as a value.
pub fn item(i: usize) -> Value {
    let mut map = Map::new();
    map.insert("k1", i as u64);
    map.insert("k2", numbered("str", i));
    map.insert("l", leaf_text(i));
    Value::Map(map)
}

/// An entry as a value.
pub fn entry(i: usize) -> Value {
    let mut map = Map::new();
    map.insert("k", i as u64);
    map.insert("l", leaf_text(i));
    Value::Map(map)
}
