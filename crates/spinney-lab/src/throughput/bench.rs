//! One array on which rows of the suite are done: what it holds, and what came out.

use std::rc::Rc;
use std::time::{Duration, Instant};

use spinney_core::{Error, Result};

use super::array::Array;
use super::item::{Item, position};
use super::rows::{Operation, Row};
use crate::canonical;
use crate::options::Mode;
use crate::record::Record;
use crate::suite::{self, Outcome, is_in_time};

/// How long the published procedure goes on.
const LOOP: Duration = Duration::from_secs(1);

/// The clock is looked at once in so many reads, after as many first ones.
const CLOCK_EACH: usize = 64;

/// Opens what there is of an array.
type Open<'f> = Box<dyn Fn() -> Result<Box<dyn Array>> + 'f>;

/// An array between its rows.
pub struct Bench<'f> {
    open: Open<'f>,
    /// `None` where it could not be opened again.
    array: Option<Box<dyn Array>>,
    item: Rc<Item>,
    mode: Mode,
    /// Items that the array holds; `None` when that is not known.
    pushed: Option<usize>,
    /// Clients of the next try.
    clients: Vec<Box<dyn Array + Send>>,
    /// Iterations of each try.
    iterations: Vec<usize>,
}

impl<'f> Bench<'f> {
    /// An array that is empty when it is opened first, to which this item is pushed.
    ///
    /// # Errors
    /// Those of opening it.
    pub fn new(open: Open<'f>, item: Rc<Item>, mode: Mode) -> Result<Bench<'f>> {
        let array = Some(open()?);
        let (pushed, clients, iterations) = (Some(0), Vec::new(), Vec::new());
        Ok(Bench { open, array, item, mode, pushed, clients, iterations })
    }

    fn array(&mut self) -> &mut dyn Array {
        &mut **self.array.as_mut().expect("a run ends where it cannot be opened")
    }

    /// Whether a try is over after so many iterations.
    fn is_over(&self, row: &Row, done: usize, begin: Instant) -> Result<bool> {
        if self.mode == Mode::Compat {
            return Ok(done > 0 && begin.elapsed() >= LOOP);
        }
        let wanted = row.iterations(self.item.len());
        if done > 0 && done < wanted {
            is_in_time(begin.elapsed(), done, wanted)?;
        }
        Ok(done == wanted)
    }

    fn push_alone(&mut self, row: &Row) -> Result<Outcome> {
        let mut times = Vec::with_capacity(row.iterations(self.item.len()));
        let item = Rc::clone(&self.item);
        let begin = Instant::now();
        let mut last = begin;
        while !self.is_over(row, times.len(), begin)? {
            self.array().push(&item)?;
            let len = self.array().count()?;
            let now = Instant::now();
            times.push((now - last).as_nanos() as f64 / 1e3);
            last = now;
            if len != times.len() as u64 {
                return Err(wrong(row, len, times.len()));
            }
        }
        self.pushed = Some(times.len());
        Ok(Outcome::Series(times))
    }

    fn push_together(&mut self, row: &Row) -> Result<Outcome> {
        let clients = std::mem::take(&mut self.clients);
        let each = row.iterations(self.item.len()).div_ceil(clients.len());
        let (item, count) = (&*self.item, each * clients.len());
        let work = |mut client: Box<dyn Array + Send>| -> Result<()> {
            for done in 1..=each as u64 {
                client.push(item)?;
                let len = client.count()?;
                if len < done {
                    return Err(wrong(row, len, done as usize));
                }
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let work = &work;
            let running: Vec<_> =
                clients.into_iter().map(|client| scope.spawn(move || work(client))).collect();
            running.into_iter().try_for_each(|client| client.join().expect("no client panics"))
        })?;
        self.pushed = Some(count);
        Ok(Outcome::Many(count))
    }

    /// What is there afterwards is compared as after any other row.
    fn restart(&mut self) -> Result<Outcome> {
        self.array = None;
        self.array = Some((self.open)()?);
        self.array().count()?;
        Ok(Outcome::Many(1))
    }

    fn read(
        &mut self,
        row: &Row,
        mut one: impl FnMut(&mut dyn Array, usize) -> Result<()>,
    ) -> Result<Outcome> {
        let begin = Instant::now();
        let wanted = match self.mode {
            Mode::Honest => row.iterations(self.item.len()),
            Mode::Compat => usize::MAX,
        };
        let mut done = 0;
        while done < wanted {
            // Reads would feel it, if the clock was looked at after each.
            let is_due = done < CLOCK_EACH || done.is_multiple_of(CLOCK_EACH);
            if is_due && self.is_over(row, done, begin)? {
                break;
            }
            one(self.array(), done)?;
            done += 1;
        }
        Ok(Outcome::Many(done))
    }
}

impl suite::Bench for Bench<'_> {
    type Row = Row;

    fn allow(&mut self, row: &Row) -> Result<()> {
        match self.array().transient().filter(|_| row.operation == Operation::Restart) {
            Some(reason) => Err(Error::unsupported(reason)),
            None => Ok(()),
        }
    }

    fn prepare(&mut self, row: &Row) -> Result<()> {
        let wanted = row.items_before(self.item.len());
        if self.pushed == Some(wanted) {
            return Ok(());
        }
        if self.pushed.take() != Some(0) {
            self.array().clear()?;
            self.array().settle()?;
        }
        let (item, begin) = (Rc::clone(&self.item), Instant::now());
        for done in 1..=wanted {
            self.array().push(&item)?;
            is_in_time(begin.elapsed(), done, wanted)?;
        }
        if wanted > 0 {
            self.array().settle()?;
        }
        self.pushed = Some(wanted);
        Ok(())
    }

    fn arm(&mut self, row: &Row) -> Result<()> {
        if let Operation::PushTogether(clients) = row.operation {
            self.clients = (0..clients).map(|_| self.array().client()).collect::<Result<_>>()?;
        }
        Ok(())
    }

    fn perform(&mut self, row: &Row) -> Result<Outcome> {
        if suite::Row::writes(row) {
            self.pushed = None;
        }
        let outcome = match row.operation {
            Operation::Push => self.push_alone(row)?,
            Operation::PushTogether(_) => self.push_together(row)?,
            Operation::Restart => self.restart()?,
            Operation::Length => self.read(row, |array, _| match array.count()? {
                1 => Ok(()),
                len => Err(wrong(row, len, 1)),
            })?,
            Operation::Text => {
                let item = Rc::clone(&self.item);
                self.read(row, |array, done| {
                    let position = position(done, item.len());
                    match array.text(position)? {
                        text if text == item.text(position) => Ok(()),
                        text => Err(Error::invalid_input(format!(
                            "`{}` read `{text}` at {position}",
                            row.id
                        ))),
                    }
                })?
            }
        };
        self.iterations.push(match &outcome {
            Outcome::Series(times) => times.len(),
            Outcome::Many(count) => *count,
            _ => 0,
        });
        Ok(outcome)
    }

    fn check(&mut self, _row: &Row, _outcome: &Outcome) -> Result<()> {
        // Each answer was compared when it was given.
        Ok(())
    }

    fn verify(&mut self, _row: &Row, _outcome: &Outcome) -> Result<(String, bool)> {
        let expected = self.item.store(self.pushed.unwrap_or_default());
        let mut got = Vec::with_capacity(expected.len());
        self.array().export(&mut got)?;
        // Equal texts hash equal; canonical form is made only where they differ.
        if got != expected {
            got = canonical::canonical(&got)?;
        }
        Ok((canonical::hash(&got), got == expected))
    }

    fn forget(&mut self) {
        self.pushed = None;
    }

    fn describe(&self, row: &Row, _outcome: &Outcome, record: &mut Record) {
        if self.mode == Mode::Compat {
            // As many as a second held, each try its own count.
            let tries = self.iterations[self.iterations.len() - record.samples.len()..].iter();
            for (sample, iterations) in record.samples.iter_mut().zip(tries) {
                *sample /= *iterations as f64;
            }
            record.ops = self.iterations.last().copied().unwrap_or_default();
            record.ops_of_sample = 1;
        } else if let Operation::PushTogether(clients) = row.operation {
            let each = row.iterations(self.item.len()).div_ceil(clients);
            record.ops = each * clients;
            record.ops_of_sample = record.ops;
        }
    }

    fn settle(&mut self) -> Result<()> {
        self.array().settle()
    }

    fn processes(&self) -> Vec<u32> {
        self.array.as_ref().map_or_else(Vec::new, |array| array.processes())
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.array.as_ref().and_then(|array| array.memory_bytes())
    }
}

fn wrong(row: &Row, len: u64, expected: usize) -> Error {
    Error::invalid_input(format!("`{}` read the length {len}; it must be {expected}", row.id))
}
