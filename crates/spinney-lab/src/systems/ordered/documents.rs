//! Engines of ordered keys in the suite `documents`.
//!
//! Design: two layouts, each in a table of its own. One record a leaf (see [`crate::documents::leaves`]): nested iteration
//! seeks each next sibling and gets each leaf; the leaf cursor is a scan from the first leaf of a document,
//! which oversteps to that of the next. One record a document: its JSON text, printed and parsed by
//! serde_json. A phase of reads is one transaction.

use std::ops::RangeInclusive;

use serde_json::Value;
use spinney_core::{Error, Result};

use crate::answer::Answer;
use crate::documents::collection::{By, Calls, Collection, Each, Found, Reading};
use crate::documents::leaves::{self, PATH, Segment};
use crate::documents::set::{Set, parsed};
use crate::engine::{Engine, Reader};

/// What a report says of it.
pub const DESIGN: &str = "a record a leaf (document, path; typed) for what reads or changes leaves, a record \
    a document (JSON text by serde_json) for whole ones; nested: a seek a sibling, a get a leaf";

/// One record a leaf.
const LEAVES: usize = 0;
/// One record a document.
const WHOLE: usize = 1;

/// A store with both layouts.
pub struct Documents {
    engine: Box<dyn Engine>,
    calls: Calls,
}

impl Documents {
    /// A store that is empty.
    pub fn new(engine: Box<dyn Engine>) -> Documents {
        Documents { engine, calls: Calls::default() }
    }
}

impl Collection for Documents {
    fn set(&mut self, by: By, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let calls = &mut self.calls;
        self.engine.write(&mut |records| {
            for number in numbers.clone() {
                let document = &set.copy(number).json;
                leaves::begin(number, &mut key);
                if by == By::Document {
                    value.clear();
                    serde_json::to_writer(&mut value, document).expect("a `Value` prints");
                    records.put(WHOLE, &key, &value)?;
                    continue;
                }
                leaves::walk(document, &mut key, |key, leaf| {
                    leaves::write_value(leaf, &mut value);
                    calls.set += 1;
                    records.put(LEAVES, key, &value)
                })?;
            }
            Ok(())
        })
    }

    fn replace(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        self.engine.write(&mut |records| {
            for number in numbers.clone() {
                leaves::begin(number, &mut key);
                value.clear();
                let document = &set.changed(number).json;
                serde_json::to_writer(&mut value, document).expect("a `Value` prints");
                records.put(WHOLE, &key, &value)?;
            }
            Ok(())
        })
    }

    fn clear(&mut self) -> Result<()> {
        self.engine.write(&mut |records| {
            records.clear(LEAVES)?;
            records.clear(WHOLE)
        })
    }

    fn get(&mut self, reading: Reading, set: &Set, each: Each<'_>) -> Result<()> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let calls = &mut self.calls;
        self.engine.read(&mut |reader| {
            for number in 1..=set.len() {
                leaves::begin(number, &mut key);
                let document = match reading {
                    Reading::Whole if reader.get(WHOLE, &key, &mut value)? => parsed(&value)?,
                    Reading::Whole => return Err(missing()),
                    Reading::Nested => nested(reader, &mut key, &mut value, calls)?,
                    Reading::Cursor => by_leaves(reader, &key, calls)?,
                };
                each(number, Answer::Json(document))?;
            }
            Ok(())
        })
    }

    fn scan(&mut self, by: By, _set: &Set, each: Each<'_>) -> Result<()> {
        self.engine.read(&mut |reader| {
            if by == By::Document {
                return reader.scan(WHOLE, &[], &mut |key, value| {
                    each(leaves::number_of(key)?, Answer::Json(parsed(value)?))?;
                    Ok(true)
                });
            }
            let mut present: Option<(usize, Value)> = None;
            reader.scan(LEAVES, &[], &mut |key, value| {
                let number = leaves::number_of(key)?;
                if present.as_ref().is_none_or(|(present, _)| *present != number)
                    && let Some((number, document)) = present.replace((number, Value::Null))
                {
                    each(number, Answer::Json(document))?;
                }
                let (_, document) = present.as_mut().expect("it was made above");
                leaves::add(&key[PATH..], value, document)?;
                Ok(true)
            })?;
            present.map_or(Ok(()), |(number, document)| each(number, Answer::Json(document)))
        })
    }

    fn get_leaves(&mut self, set: &Set, each: Each<'_>) -> Result<()> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        self.engine.read(&mut |reader| {
            for number in 1..=set.len() {
                write_leaf_key(set, number, &mut key);
                if !reader.get(LEAVES, &key, &mut value)? {
                    return Err(missing());
                }
                each(number, Answer::Json(leaves::read_value(&value)?))?;
            }
            Ok(())
        })
    }

    fn set_leaves(&mut self, set: &Set, numbers: RangeInclusive<usize>) -> Result<()> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        self.engine.write(&mut |records| {
            for number in numbers.clone() {
                write_leaf_key(set, number, &mut key);
                leaves::write_value(&set.leaf_json(number, true), &mut value);
                records.put(LEAVES, &key, &value)?;
            }
            Ok(())
        })
    }

    fn find(&mut self, set: &Set, each: Found<'_>) -> Result<()> {
        let (mut path, mut wanted) = (Vec::new(), Vec::new());
        leaves::write_pointer(&set.copy(1).json, set.leaf(), &mut path);
        leaves::write_value(&set.wanted(), &mut wanted);
        self.engine.read(&mut |reader| {
            reader.scan(LEAVES, &[], &mut |key, value| {
                if key[PATH..] == path && value == wanted {
                    each(leaves::number_of(key)?)?;
                }
                Ok(true)
            })
        })
    }

    fn calls(&mut self) -> Option<Calls> {
        Some(std::mem::take(&mut self.calls))
    }

    fn settle(&mut self) -> Result<()> {
        self.engine.settle()
    }

    fn processes(&self) -> Vec<u32> {
        self.engine.processes()
    }
}

fn write_leaf_key(set: &Set, number: usize, key: &mut Vec<u8>) {
    leaves::begin(number, key);
    leaves::write_pointer(&set.copy(number).json, set.leaf(), key);
}

/// A container whose siblings are stepped over: where its segment begins and ends, and what it holds so
/// far.
struct Level {
    begin: usize,
    end: usize,
    container: Value,
}

/// Rebuilds the document whose keys begin with `key` by seeking one sibling after the other.
fn nested(
    reader: &dyn Reader,
    key: &mut Vec<u8>,
    value: &mut Vec<u8>,
    calls: &mut Calls,
) -> Result<Value> {
    calls.def += 1;
    if reader.get(LEAVES, key, value)? {
        calls.get += 1;
        return leaves::read_value(value);
    }
    calls.nxt += 1;
    calls.cur += 1;
    let mut levels = vec![Level { begin: key.len(), end: key.len(), container: Value::Null }];
    loop {
        let Level { end: prefix, .. } = *levels.last().expect("the first is left at the end");
        if let Some(end) = next_sibling(reader, key, prefix)? {
            calls.nxt += 1;
            calls.def += 1;
            if !reader.get(LEAVES, key, value)? {
                calls.nxt += 1;
                calls.cur += 1;
                levels.push(Level { begin: prefix, end, container: Value::Null });
                continue;
            }
            calls.get += 1;
            let (segment, _) = Segment::read(&key[prefix..end])?;
            let container = &mut levels.last_mut().expect("it is open").container;
            segment.put(leaves::read_value(value)?, container);
        } else {
            calls.nxt_end += 1;
            let done = levels.pop().expect("it is open");
            let Some(above) = levels.last_mut() else { return Ok(done.container) };
            let (segment, _) = Segment::read(&key[done.begin..done.end])?;
            segment.put(done.container, &mut above.container);
            key.truncate(done.end);
        }
        leaves::behind(key);
    }
}

/// Moves `key` to the next sibling below its first `prefix` bytes; where that ends.
fn next_sibling(reader: &dyn Reader, key: &mut Vec<u8>, prefix: usize) -> Result<Option<usize>> {
    let mut found = None;
    reader.scan(LEAVES, &key.clone(), &mut |next, _| {
        if next.get(..prefix) == key.get(..prefix) {
            let (_, rest) = Segment::read(&next[prefix..])?;
            let end = next.len() - rest.len();
            key.clear();
            key.extend_from_slice(&next[..end]);
            found = Some(end);
        }
        Ok(false)
    })?;
    Ok(found)
}

/// Rebuilds the document whose keys begin with `begin` by one scan.
fn by_leaves(reader: &dyn Reader, begin: &[u8], calls: &mut Calls) -> Result<Value> {
    calls.def += 1;
    calls.nxt += 1;
    calls.cur += 1;
    let (mut document, mut overstepped) = (Value::Null, false);
    reader.scan(LEAVES, begin, &mut |key, value| {
        calls.nxq += 1;
        overstepped = !key.starts_with(begin);
        if !overstepped {
            leaves::add(&key[PATH..], value, &mut document)?;
        }
        Ok(!overstepped)
    })?;
    calls.nxq_end += u64::from(!overstepped);
    Ok(document)
}

fn missing() -> Error {
    Error::not_found("the store does not hold what was put there")
}
