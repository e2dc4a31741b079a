//! Spinney in the suite `throughput`.
//!
//! Design: the array is the list `/array`. A push is one transaction that appends one element, which the
//! item itself is written into, text by text; a length is `count` of a fresh snapshot.

use std::sync::Arc;

use spinney::formats::{Fidelity, JsonWriter, Layout};
use spinney::{Existing, Value};
use spinney_core::{Error, Result};

use super::opened::Opened;
use crate::throughput::{Array as Contract, Item};

/// What a report says of it.
pub const DESIGN: &str = "the list `/array`; a push: one transaction that appends an element, written text \
    by text; a length: `count` of a fresh snapshot; a text: `get` by its path of a fresh snapshot";

const ARRAY: &str = "/array";

/// A client of a store that holds the array.
pub struct Array {
    opened: Arc<Opened>,
    path: String,
}

impl Array {
    /// What is in a store, or an empty array.
    ///
    /// # Errors
    /// Those of reading and writing.
    pub fn new(opened: Opened) -> Result<Array> {
        let is_new = opened.store.read()?.count(ARRAY)?.is_none();
        let mut array = Array { opened: Arc::new(opened), path: String::new() };
        if is_new {
            array.clear()?;
        }
        Ok(array)
    }
}

impl Contract for Array {
    fn push(&mut self, item: &Item) -> Result<()> {
        self.opened.store.write(|transaction| {
            transaction.set_with("/array/-", Existing::Any, |visitor| item.visit(visitor))
        })?;
        Ok(())
    }

    fn count(&mut self) -> Result<u64> {
        self.opened.store.read()?.count(ARRAY)?.ok_or_else(missing)
    }

    fn text(&mut self, position: usize) -> Result<String> {
        self.path.clear();
        self.path.push_str("/array/0/");
        self.path.push_str(itoa::Buffer::new().format(position));
        match self.opened.store.read()?.get(&self.path)? {
            Some(Value::String(text)) => Ok(text),
            _ => Err(missing()),
        }
    }

    fn clear(&mut self) -> Result<()> {
        self.opened.store.write(|transaction| transaction.set(ARRAY, &Value::list()))?;
        Ok(())
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let mut writer = JsonWriter::new(out, Layout::Compact, Fidelity::Refuse);
        self.opened.store.read()?.visit("", &mut writer)?;
        writer.finish()?;
        Ok(())
    }

    fn transient(&self) -> Option<&'static str> {
        self.opened.transient
    }

    fn client(&self) -> Result<Box<dyn Contract + Send>> {
        Ok(Box::new(Array { opened: Arc::clone(&self.opened), path: String::new() }))
    }

    fn settle(&mut self) -> Result<()> {
        self.opened.settle().map(drop)
    }

    fn processes(&self) -> Vec<u32> {
        self.opened.processes()
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.opened.memory_bytes()
    }
}

fn missing() -> Error {
    Error::not_found("the store does not hold the array")
}
