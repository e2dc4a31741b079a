//! Foreign stores of ordered byte keys, a file each.

mod fjall;
mod lmdb;
mod piped;
mod redb;

use crate::engine::EngineFactory;
pub(crate) use lmdb::Lmdb;

/// Every engine that this build holds.
pub fn all() -> Vec<Box<dyn EngineFactory>> {
    let mut all: Vec<Box<dyn EngineFactory>> =
        vec![Box::new(Lmdb), Box::new(redb::Redb), Box::new(fjall::Fjall)];
    all.extend(piped::all().map(|engine| Box::new(engine) as Box<dyn EngineFactory>));
    all
}
