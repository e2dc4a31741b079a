//! One JSON file in the suite `documents`.
//!
//! Design: the file is an array of the documents in the order of their numbers. A commit reads and parses
//! it, changes the array, prints and replaces it; a phase of reads parses it once and hands each document
//! out of the array.

use std::ops::RangeInclusive;

use serde_json::Value;
use spinney_core::{Error, Result};

use super::Place;
use crate::answer::Answer;
use crate::documents::collection::{By, Collection, Each, Found, Reading};
use crate::documents::rows::Operation;
use crate::documents::set::Set;

/// What a report says of it.
pub const DESIGN: &str = "one JSON file, an array of the documents: a commit reads, parses, changes, prints \
    and replaces it (fsync, rename, fsync the folder when durable); a phase of reads parses it once";

/// A file that is an array of documents.
pub struct Documents {
    file: Place,
}

impl Documents {
    /// A file without documents.
    ///
    /// # Errors
    /// `Io` when it cannot be written.
    pub fn new(file: Place) -> Result<Documents> {
        file.write(b"[]")?;
        Ok(Documents { file })
    }

    fn read(&self) -> Result<Vec<Value>> {
        match self.file.read()? {
            Value::Array(documents) => Ok(documents),
            _ => Err(missing()),
        }
    }

    fn write(&self, documents: Vec<Value>) -> Result<()> {
        self.file.write(&serde_json::to_vec(&documents).expect("a `Value` prints"))
    }

    fn each(&self, each: Each<'_>) -> Result<()> {
        let documents = self.read()?.into_iter().enumerate();
        documents.into_iter().try_for_each(|(at, document)| each(at + 1, Answer::Json(document)))
    }
}

impl Collection for Documents {
    fn lacks(&self, operation: Operation) -> Option<String> {
        match operation {
            Operation::Set(By::Leaf, _) => Some("its documents are set whole".to_owned()),
            Operation::Get(Reading::Nested | Reading::Cursor) | Operation::Scan(By::Leaf) => {
                Some("what is parsed of a file is whole documents".to_owned())
            }
            _ => None,
        }
    }

    fn set(&mut self, _by: By, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let mut documents = self.read()?;
        documents.extend(numbers.map(|number| set.copy(number).json.clone()));
        self.write(documents)
    }

    fn replace(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let mut documents = self.read()?;
        for number in numbers {
            let document = documents.get_mut(number - 1).ok_or_else(missing)?;
            document.clone_from(&set.changed(number).json);
        }
        self.write(documents)
    }

    fn find(&mut self, set: &Set, each: Found<'_>) -> Result<()> {
        let (wanted, documents) = (set.wanted(), self.read()?);
        let mut found =
            (1..).zip(&documents).filter(|(_, it)| it.pointer(set.leaf()) == Some(&wanted));
        found.try_for_each(|(number, _)| each(number))
    }

    fn clear(&mut self) -> Result<()> {
        self.write(Vec::new())
    }

    fn get(&mut self, _reading: Reading, _set: &Set, each: Each<'_>) -> Result<()> {
        self.each(each)
    }

    fn scan(&mut self, _by: By, _set: &Set, each: Each<'_>) -> Result<()> {
        self.each(each)
    }

    fn get_leaves(&mut self, set: &Set, each: Each<'_>) -> Result<()> {
        for (at, document) in self.read()?.iter_mut().enumerate() {
            let leaf = document.pointer_mut(set.leaf()).ok_or_else(missing)?;
            each(at + 1, Answer::Json(leaf.take()))?;
        }
        Ok(())
    }

    fn set_leaves(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let mut documents = self.read()?;
        for number in numbers {
            let document = documents.get_mut(number - 1).ok_or_else(missing)?;
            *document.pointer_mut(set.leaf()).ok_or_else(missing)? = set.leaf_json(number, true);
        }
        self.write(documents)
    }
}

fn missing() -> Error {
    Error::not_found("the file does not hold what was put there")
}
