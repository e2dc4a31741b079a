//! The store that the rows begin with, and its leaves.

use std::path::Path;

use spinney::formats::{self, Dialect};
use spinney::history::Retention;
use spinney::{Durability, Existing, Limits, OpenOptions, Store, Value};
use spinney_core::Result;

use crate::datastore::Documents;
use crate::datastore::document::{State, push_item_key};

/// Opens the store in a folder, or makes it.
pub fn open(folder: &Path, durability: Durability, limits: Limits) -> Result<Store> {
    let url = format!("lmdb:{}", folder.display());
    OpenOptions::new().durability(durability).limits(limits).open(&url)
}

/// As [`open`], with another retention of history.
pub fn open_keeping(folder: &Path, retention: Retention) -> Result<Store> {
    OpenOptions::new().retention(retention).open(&format!("lmdb:{}", folder.display()))
}

/// Makes a store with a document of so many items, all of it folded.
pub fn filled(
    folder: &Path,
    durability: Durability,
    limits: Limits,
    items: usize,
) -> Result<Store> {
    fill(open(folder, durability, limits)?, items)
}

/// Puts a document of so many items into a store, and folds it.
pub fn fill(store: Store, items: usize) -> Result<Store> {
    let text = Documents::new(items).text(State::Items);
    store.write(|transaction| {
        transaction.set_with("/running", Existing::Any, |visitor| {
            formats::read(&*text, Dialect::Json, visitor)
        })
    })?;
    store.checkpoint()?;
    Ok(store)
}

/// The path of the leaf of an item.
pub fn leaf_path(item: usize) -> String {
    let mut path = "/running/cont/lst/".to_owned();
    push_item_key(item, &mut path);
    path.push_str("/l");
    path
}

/// The number at a path; 0 where there is none.
pub fn number_at(store: &Store, path: &str) -> Result<u64> {
    Ok(number(store.read()?.get(path)?))
}

/// A number that this suite has stored.
pub fn number(value: Option<Value>) -> u64 {
    match value {
        Some(Value::Number(number)) => number.as_u64().unwrap_or_default(),
        _ => 0,
    }
}

/// `count` different leaves, far from each other.
pub fn spread(count: usize, items: usize) -> impl Iterator<Item = String> {
    (0..count).map(move |at| leaf_path(at * items / count))
}

/// A fact of `stats`; empty where there is none of that name.
pub fn fact(store: &Store, name: &str) -> Result<String> {
    let found = store.stats()?.into_iter().find(|(found, _)| found == name);
    Ok(found.map(|(_, value)| value).unwrap_or_default())
}
