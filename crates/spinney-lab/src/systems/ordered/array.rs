//! Engines of ordered keys in the suite `throughput`.
//!
//! Design: a record an item, its position the key, its JSON text the value; the length is one more than
//! the greatest key. A text is read by parsing its item with serde_json. Clients share the store.

use std::sync::Arc;

use spinney_core::{Error, Result};

use crate::documents::set::parsed;
use crate::engine::{Engine, Reader};
use crate::throughput::{Array as Contract, Export, Item};

/// What a report says of it.
pub const DESIGN: &str = "a record an item (position, JSON text); the length is one more than the greatest \
    key; clients are threads that share the store";

const ITEMS: usize = 0;

/// A client of a store with a record an item.
pub struct Array {
    engine: Arc<dyn Engine>,
}

impl Array {
    /// What is in a store, if anything.
    pub fn new(engine: Box<dyn Engine>) -> Array {
        Array { engine: engine.into() }
    }
}

impl Contract for Array {
    fn push(&mut self, item: &Item) -> Result<()> {
        let (mut key, mut json) = (Vec::new(), Vec::new());
        item.write_json(&mut json);
        self.engine.write(&mut |records| {
            let position = len(records, &mut key)?;
            records.put(ITEMS, &position.to_be_bytes(), &json)
        })
    }

    fn count(&mut self) -> Result<u64> {
        let (mut key, mut count) = (Vec::new(), 0);
        self.engine.read(&mut |reader| {
            count = len(reader, &mut key)?;
            Ok(())
        })?;
        Ok(count)
    }

    fn text(&mut self, position: usize) -> Result<String> {
        let mut json = Vec::new();
        self.engine.read(&mut |reader| reader.get(ITEMS, &[0; 8], &mut json).map(drop))?;
        let item = parsed(&json)?;
        item[position].as_str().map(str::to_owned).ok_or_else(missing)
    }

    fn clear(&mut self) -> Result<()> {
        self.engine.write(&mut |records| records.clear(ITEMS))
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let mut export = Export::begin(out);
        self.engine.read(&mut |reader| {
            reader.scan(ITEMS, &[], &mut |_, json| {
                export.item(json);
                Ok(true)
            })
        })?;
        export.end();
        Ok(())
    }

    fn client(&self) -> Result<Box<dyn Contract + Send>> {
        Ok(Box::new(Array { engine: Arc::clone(&self.engine) }))
    }

    fn settle(&mut self) -> Result<()> {
        self.engine.settle()
    }

    fn processes(&self) -> Vec<u32> {
        self.engine.processes()
    }
}

/// One more than the greatest key.
fn len(reader: &(impl Reader + ?Sized), key: &mut Vec<u8>) -> Result<u64> {
    match reader.last(ITEMS, key)? {
        true => key.first_chunk().map(|key| u64::from_be_bytes(*key) + 1).ok_or_else(missing),
        false => Ok(0),
    }
}

fn missing() -> Error {
    Error::not_found("the store does not hold what was put there")
}
