//! One collection on which rows of the suite are done: what it holds, and what came out.

use std::rc::Rc;
use std::time::Instant;

use spinney_core::{Error, Result};

use super::collection::{By, Calls, Collection};
use super::rows::{Batch, Operation, Row};
use super::set::Set;
use crate::canonical;
use crate::record::Record;
use crate::suite::{self, Outcome, changed, is_in_time};
use crate::system::Effect;

/// What the collection holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    Unknown,
    Empty,
    /// The documents of this source, put this way; with one leaf changed.
    Filled(usize, By, bool),
}

/// A collection between its rows.
pub struct Bench {
    collection: Box<dyn Collection>,
    sets: Rc<Vec<Set>>,
    standing: Standing,
    /// The calls of the last try.
    calls: Option<Calls>,
}

impl Bench {
    /// An empty collection.
    pub fn new(collection: Box<dyn Collection>, sets: Rc<Vec<Set>>) -> Bench {
        Bench { collection, sets, standing: Standing::Empty, calls: None }
    }

    fn empty(&mut self) -> Result<()> {
        if self.standing != Standing::Empty {
            self.collection.clear()?;
            self.collection.settle()?;
            self.standing = Standing::Empty;
        }
        Ok(())
    }

    /// Commits all documents in batches.
    fn commit(
        &mut self,
        row: &Row,
        batch: Batch,
        mut one: impl FnMut(&mut dyn Collection, &Set, std::ops::RangeInclusive<usize>) -> Result<()>,
    ) -> Result<Outcome> {
        let set = &self.sets[row.source];
        let len = row.len(set.len());
        let step = batch.len(len);
        let begin = Instant::now();
        for first in (1..=len).step_by(step) {
            one(&mut *self.collection, set, first..=len.min(first + step - 1))?;
            if step < len {
                is_in_time(begin.elapsed(), first, len)?;
            }
        }
        Ok(Outcome::Effect(Effect::from(len > 0)))
    }

    /// All that the collection holds, or a row gives back, as a line each; and what it must be.
    fn lines(&mut self, row: &Row) -> Result<[Vec<u8>; 2]> {
        let set = &self.sets[row.source];
        let is_leaf = row.operation == Operation::GetLeaf;
        let is_changed = matches!(self.standing, Standing::Filled(_, _, true));
        let (mut got, mut expected, mut count) = (Vec::new(), Vec::new(), 0);
        let mut each = |number: usize, answer: crate::answer::Answer| {
            count += 1;
            let wanted = match is_leaf {
                true => crate::answer::Answer::Tree(set.leaf_of(number, is_changed)).to_json()?,
                false => set.text_of(number, is_changed).as_bytes().to_vec(),
            };
            let mut text = answer.to_json()?;
            // Equal texts hash equal; canonical form is made only where they differ.
            if number != count || text != wanted {
                text = canonical::canonical(&text)?;
            }
            got.extend_from_slice(&text);
            expected.extend_from_slice(&wanted);
            [&mut got, &mut expected].into_iter().for_each(|lines| lines.push(b'\n'));
            if number != count {
                got.extend_from_slice(format!("{number}\n").as_bytes());
            }
            Ok(())
        };
        let collection = &mut *self.collection;
        match row.operation {
            Operation::Get(reading) => collection.get(reading, set, &mut each)?,
            Operation::GetLeaf => collection.get_leaves(set, &mut each)?,
            Operation::Scan(by) => collection.scan(by, set, &mut each)?,
            Operation::Set(by, _) => collection.scan(by, set, &mut each)?,
            Operation::SetLeaf(_) => collection.scan(By::Leaf, set, &mut each)?,
            Operation::Replace(_) => collection.scan(By::Document, set, &mut each)?,
            Operation::Find => return found(collection, set),
        }
        if count != set.len() {
            got.extend_from_slice(format!("{count} of {}\n", set.len()).as_bytes());
        }
        Ok([got, expected])
    }
}

/// The numbers of the documents that a query finds, as a line each; and what they must be.
fn found(collection: &mut dyn Collection, set: &Set) -> Result<[Vec<u8>; 2]> {
    let lines = |numbers: &[usize]| -> Vec<u8> {
        numbers.iter().flat_map(|number| format!("{number}\n").into_bytes()).collect()
    };
    let mut numbers = Vec::new();
    collection.find(set, &mut |number| {
        numbers.push(number);
        Ok(())
    })?;
    Ok([lines(&numbers), lines(set.matching())])
}

impl suite::Bench for Bench {
    type Row = Row;

    fn allow(&mut self, row: &Row) -> Result<()> {
        self.collection
            .lacks(row.operation)
            .map_or(Ok(()), |reason| Err(Error::unsupported(reason)))
    }

    fn prepare(&mut self, row: &Row) -> Result<()> {
        let (layout, set) = (row.operation.layout(), &self.sets[row.source]);
        if matches!(row.operation, Operation::Set(..)) {
            return self.empty();
        }
        if self.standing == Standing::Filled(row.source, layout, false) {
            return Ok(());
        }
        let len = set.len();
        self.empty()?;
        self.collection.set(layout, &self.sets[row.source], 1..=len)?;
        self.collection.settle()?;
        self.standing = Standing::Filled(row.source, layout, false);
        Ok(())
    }

    fn arm(&mut self, _row: &Row) -> Result<()> {
        self.collection.calls();
        Ok(())
    }

    fn perform(&mut self, row: &Row) -> Result<Outcome> {
        let layout = row.operation.layout();
        if row.operation.batch().is_some() {
            self.standing = Standing::Unknown;
        }
        let len = row.len(self.sets[row.source].len());
        let whole = self.collection.perform(row.operation, &self.sets[row.source], len)?;
        let outcome = match row.operation {
            operation if whole.is_some() => {
                let count = whole.unwrap_or_default();
                if operation.batch().is_none() {
                    return Ok(Outcome::Many(count));
                }
                Outcome::Effect(Effect::from(count == len))
            }
            Operation::Set(by, batch) => self
                .commit(row, batch, |collection, set, numbers| collection.set(by, set, numbers))?,
            Operation::SetLeaf(batch) => self.commit(row, batch, |collection, set, numbers| {
                collection.set_leaves(set, numbers)
            })?,
            Operation::Replace(batch) => self
                .commit(row, batch, |collection, set, numbers| collection.replace(set, numbers))?,
            operation => {
                let set = &self.sets[row.source];
                let mut count = 0;
                let mut each = |_, answer| {
                    drop(std::hint::black_box(answer));
                    count += 1;
                    Ok(())
                };
                let collection = &mut *self.collection;
                match operation {
                    Operation::Get(reading) => collection.get(reading, set, &mut each)?,
                    Operation::Scan(by) => collection.scan(by, set, &mut each)?,
                    Operation::Find => {
                        let mut found = |_| {
                            count += 1;
                            Ok(())
                        };
                        collection.find(set, &mut found)?;
                    }
                    _ => collection.get_leaves(set, &mut each)?,
                }
                return Ok(Outcome::Many(count));
            }
        };
        if len == self.sets[row.source].len() {
            let is_changed = !matches!(row.operation, Operation::Set(..));
            self.standing = Standing::Filled(row.source, layout, is_changed);
        }
        Ok(outcome)
    }

    fn check(&mut self, row: &Row, outcome: &Outcome) -> Result<()> {
        let set = &self.sets[row.source];
        self.calls = self.collection.calls();
        if let Some((calls, phase)) = self.calls.zip(row.operation.phase()) {
            let expected = set.calls(phase, row.len(set.len()));
            if !calls.agrees(&expected) {
                return Err(Error::invalid_input(format!(
                    "a try of `{}` made {calls:?}; it must be {expected:?}",
                    row.id
                )));
            }
        }
        match outcome {
            Outcome::Effect(effect) => changed(*effect, &row.id),
            Outcome::Many(count) => {
                let expected = match row.operation {
                    Operation::Find => set.matching().len(),
                    _ => set.len(),
                };
                match *count == expected {
                    true => Ok(()),
                    false => Err(Error::invalid_input(format!(
                        "a try of `{}` gave {count} of {expected} documents",
                        row.id
                    ))),
                }
            }
            _ => Ok(()),
        }
    }

    fn verify(&mut self, row: &Row, _outcome: &Outcome) -> Result<(String, bool)> {
        let [got, expected] = self.lines(row)?;
        Ok((canonical::hash(&got), got == expected))
    }

    fn forget(&mut self) {
        self.standing = Standing::Unknown;
    }

    fn describe(&self, row: &Row, _outcome: &Outcome, record: &mut Record) {
        record.counts = self.calls.filter(|_| row.operation.phase().is_some()).map(Calls::to_json);
    }

    fn settle(&mut self) -> Result<()> {
        self.collection.settle()
    }

    fn processes(&self) -> Vec<u32> {
        self.collection.processes()
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.collection.memory_bytes()
    }
}
