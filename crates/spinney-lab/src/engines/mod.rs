//! Foreign stores of ordered byte keys, a file each.

mod lmdb;

use crate::engine::EngineFactory;
pub(crate) use lmdb::Lmdb;

/// Every engine that this build holds.
pub fn all() -> Vec<Box<dyn EngineFactory>> {
    vec![Box::new(Lmdb)]
}
