//! The peers, a file each. Backends of spinney come from outside, as factories.

pub mod file;
pub mod sqlite;

use crate::system::Factory;

/// Every peer that this build holds.
pub fn peers() -> Vec<Box<dyn Factory>> {
    vec![Box::new(file::File), Box::new(sqlite::Sqlite)]
}
