//! Redis itself in the suite `documents`.
//!
//! Design: a hash a document, with a field a leaf, whose name is the path and whose value the leaf with its
//! type (see ``documents/leaves.rs``), where leaves are read or changed; a string a document, its JSON text, for
//! whole ones. A commit is one command, or one `MULTI` in a pipeline. Each document that is read is one
//! request; keys have no order, and a hash has no levels, so there are no passes in order and no siblings.

use std::ops::RangeInclusive;

use serde_json::Value;
use spinney_core::{Error, Result};

use super::Link;
use crate::answer::Answer;
use crate::documents::collection::{By, Collection, Each, Found, Reading};
use crate::documents::leaves;
use crate::documents::rows::Operation;
use crate::documents::set::{Set, parsed};

/// What a report says of it.
pub const DESIGN: &str = "a server of its own on a Unix socket; a hash a document with a field a leaf (path; \
    typed), a string a document (JSON text by serde_json) for whole ones; a commit is one command or one MULTI \
    in a pipeline, a document that is read one request";

const BY_KEYS: &str = "it is asked by keys alone";

/// A server with both layouts.
pub struct Documents {
    link: Link,
}

impl Documents {
    /// A server that holds nothing.
    pub fn new(link: Link) -> Documents {
        Documents { link }
    }

    /// Commands as one commit; it is one request.
    fn commit(
        &mut self,
        numbers: RangeInclusive<usize>,
        mut each: impl FnMut(usize, &mut ::redis::Pipeline) -> Result<()>,
    ) -> Result<()> {
        let mut commit = ::redis::pipe();
        if numbers.start() < numbers.end() {
            commit.atomic();
        }
        for number in numbers {
            each(number, &mut commit)?;
        }
        self.link.ask_all(&commit)
    }

    fn whole(&mut self, number: usize) -> Result<Value> {
        let text: Option<Vec<u8>> = self.link.ask(::redis::cmd("GET").arg(whole_key(number)))?;
        parsed(&text.ok_or_else(missing)?)
    }

    /// A document put together from its fields, which come in any order.
    fn by_leaves(&mut self, number: usize) -> Result<Value> {
        let command = ::redis::cmd("HGETALL").arg(leaves_key(number)).clone();
        let mut fields: Vec<(Vec<u8>, Vec<u8>)> = self.link.ask(&command)?;
        if fields.is_empty() {
            return Err(missing());
        }
        fields.sort_unstable();
        let mut document = Value::Null;
        for (path, value) in &fields {
            leaves::add(path, value, &mut document)?;
        }
        Ok(document)
    }
}

impl Collection for Documents {
    fn lacks(&self, operation: Operation) -> Option<String> {
        match operation {
            Operation::Get(Reading::Nested) => Some("a hash has no levels to iterate over".into()),
            Operation::Scan(_) => Some("keys have no order, so there is no pass in order".into()),
            Operation::Find => Some(BY_KEYS.into()),
            _ => None,
        }
    }

    fn set(&mut self, by: By, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let (mut path, mut value) = (Vec::new(), Vec::new());
        self.commit(numbers, |number, commit| {
            let document = &set.copy(number).json;
            if by == By::Document {
                commit.cmd("SET").arg(whole_key(number)).arg(document.to_string()).ignore();
                return Ok(());
            }
            commit.cmd("HSET").arg(leaves_key(number));
            path.clear();
            leaves::walk(document, &mut path, |path, leaf| {
                leaves::write_value(leaf, &mut value);
                commit.arg(path).arg(&*value);
                Ok(())
            })?;
            commit.ignore();
            Ok(())
        })
    }

    fn replace(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        self.commit(numbers, |number, commit| {
            commit
                .cmd("SET")
                .arg(whole_key(number))
                .arg(set.changed(number).json.to_string())
                .ignore();
            Ok(())
        })
    }

    fn clear(&mut self) -> Result<()> {
        self.link.ask(&::redis::cmd("FLUSHDB"))
    }

    fn get(&mut self, reading: Reading, set: &Set, each: Each<'_>) -> Result<()> {
        for number in 1..=set.len() {
            let document = match reading {
                Reading::Whole => self.whole(number)?,
                Reading::Nested | Reading::Cursor => self.by_leaves(number)?,
            };
            each(number, Answer::Json(document))?;
        }
        Ok(())
    }

    fn scan(&mut self, by: By, set: &Set, each: Each<'_>) -> Result<()> {
        let reading = if by == By::Leaf { Reading::Cursor } else { Reading::Whole };
        self.get(reading, set, each)
    }

    fn get_leaves(&mut self, set: &Set, each: Each<'_>) -> Result<()> {
        let mut path = Vec::new();
        for number in 1..=set.len() {
            write_path(set, number, &mut path);
            let command = ::redis::cmd("HGET").arg(leaves_key(number)).arg(&*path).clone();
            let value: Option<Vec<u8>> = self.link.ask(&command)?;
            let leaf = leaves::read_value(&value.ok_or_else(missing)?)?;
            each(number, Answer::Json(leaf))?;
        }
        Ok(())
    }

    fn set_leaves(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let (mut path, mut value) = (Vec::new(), Vec::new());
        self.commit(numbers, |number, commit| {
            write_path(set, number, &mut path);
            leaves::write_value(&set.leaf_json(number, true), &mut value);
            commit.cmd("HSET").arg(leaves_key(number)).arg(&*path).arg(&*value).ignore();
            Ok(())
        })
    }

    fn find(&mut self, _set: &Set, _each: Found<'_>) -> Result<()> {
        Err(Error::unsupported(BY_KEYS))
    }

    fn processes(&self) -> Vec<u32> {
        self.link.server.processes()
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.link.memory_bytes()
    }
}

fn whole_key(number: usize) -> String {
    format!("whole:{number}")
}

fn leaves_key(number: usize) -> String {
    format!("leaves:{number}")
}

fn write_path(set: &Set, number: usize, path: &mut Vec<u8>) {
    path.clear();
    leaves::write_pointer(&set.copy(number).json, set.leaf(), path);
}

fn missing() -> Error {
    Error::not_found("the server does not hold what was put there")
}
