//! What a store on a server costs, and what it stands: procedures that give figures. Tests and the lab
//! hold them against bounds; whatever must never be is asserted here.

pub mod cluster;
pub mod mongodb;
pub mod redis;

use spinney::{Durability, OpenOptions, Store, Value};

/// A store whose commits need not survive the end of the server.
///
/// # Panics
/// When it cannot be opened.
pub fn open(url: &str) -> Store {
    let opened = OpenOptions::new().durability(Durability::Process).open(url);
    opened.unwrap_or_else(|error| panic!("{error}"))
}

/// A list of small items, as the datastore workload has them.
///
/// # Panics
/// Never.
pub fn items(count: usize) -> Value {
    let item = |i: usize| {
        let text = format!(r#"{{"name": "item{i:07}", "number": {i}}}"#);
        spinney::formats::parse(&text).expect("an item")
    };
    (0..count).map(item).collect::<Vec<_>>().into()
}
