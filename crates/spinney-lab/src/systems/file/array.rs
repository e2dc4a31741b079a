//! One JSON file in the suite `throughput`.
//!
//! Design: the parsed array stays in memory, where lengths and texts are read; a push prints all of it and
//! replaces the file.

use serde_json::{Value, json};
use spinney_core::{Error, Result};

use super::Place;
use crate::throughput::{Array as Contract, Item};

/// What a report says of it.
pub const DESIGN: &str = "one JSON file whose array stays parsed in memory, where it is read: a push prints \
    all of it and replaces the file (fsync, rename, fsync the folder when durable)";

/// A file, and what it holds.
pub struct Array {
    file: Place,
    root: Value,
}

impl Array {
    /// What is in a file, or one with an empty array.
    ///
    /// # Errors
    /// `Io` when it cannot be read or written.
    pub fn new(file: Place) -> Result<Array> {
        let mut array = Array { file, root: Value::Null };
        match array.file.path.exists() {
            true => array.root = array.file.read()?,
            false => array.clear()?,
        }
        Ok(array)
    }

    fn items(&mut self) -> &mut Vec<Value> {
        self.root["array"].as_array_mut().expect("it was made an array")
    }

    fn write(&self) -> Result<()> {
        self.file.write(&serde_json::to_vec(&self.root).expect("a `Value` prints"))
    }
}

impl Contract for Array {
    fn push(&mut self, item: &Item) -> Result<()> {
        self.items().push(item.texts().map(Value::from).collect());
        self.write()
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.items().len() as u64)
    }

    fn text(&mut self, position: usize) -> Result<String> {
        let text = self.root["array"][0][position].as_str();
        text.map(str::to_owned).ok_or_else(|| Error::not_found("the array does not hold the text"))
    }

    fn clear(&mut self) -> Result<()> {
        self.root = json!({ "array": [] });
        self.write()
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        serde_json::to_writer(out, &self.file.read()?).expect("a vector takes every write");
        Ok(())
    }
}
