//! A7: readers of one item, and a writer of one leaf, alone and beside each other.
//!
//! The writer sets two leaves to one value in each commit; a reader that sees them differ has seen half
//! a commit, and the rows are void.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spinney::{Store, Value};
use spinney_core::{Error, Result};

use crate::datastore::Documents;
use crate::datastore::document::{State, write_item_path};
use crate::record::{Record, Status};
use crate::row;
use crate::system::{Durability, Factory};

/// How many readers there are, one count after the other.
const READERS: [usize; 4] = [1, 2, 4, 8];
/// Operations of a thread whose times are kept.
const KEPT_MAX: usize = 100_000;

/// Measures what `factory` opens, each count of readers for the time of `turn`.
///
/// # Errors
/// What the store reports.
pub(crate) fn measure(
    documents: &Documents,
    factory: &dyn Factory,
    level: Durability,
    turn: Duration,
    folder: &Path,
) -> Result<Vec<Record>> {
    let Some(store) = factory.store(folder, level)? else { return Ok(Vec::new()) };
    store.write(|transaction| {
        transaction.set_with("/running", spinney::Existing::Any, |visitor| {
            let text = documents.text(State::Items);
            spinney::formats::read(&*text, spinney::formats::Dialect::Json, visitor)
        })
    })?;
    let pair = Pair::new(documents);
    let mut records = Vec::new();
    let mut note = |test: String, threads: usize, side: Side| {
        let mut record = row::new_record(factory, level);
        record.test = row::levelled(&test, level);
        record.size = documents.size();
        record.singles = side.times;
        record.samples.clone_from(&record.singles);
        record.notes.push(format!("{:.0} a second, by all {threads}", side.rate));
        if side.is_torn {
            record.status = Status::VoidHash;
        }
        records.push(record);
    };
    let (_, alone) = run(&store, &pair, 0, true, turn)?;
    note("commit alone".to_owned(), 1, alone);
    for readers in READERS {
        let (alone, _) = run(&store, &pair, readers, false, turn)?;
        let named = format!("{readers} reader{}", if readers == 1 { "" } else { "s" });
        note(format!("{named} alone"), readers, alone);
        let (reads, commits) = run(&store, &pair, readers, true, turn)?;
        note(format!("{named} beside a writer"), readers, reads);
        note(format!("commit beside {named}"), 1, commits);
    }
    Ok(records)
}

/// Two leaves that are one value.
struct Pair {
    item: String,
    leaves: [String; 2],
}

impl Pair {
    fn new(documents: &Documents) -> Pair {
        let mut item = String::new();
        write_item_path(documents.middle(), &mut item);
        let item = ["/running", &item].concat();
        let mut first = String::new();
        write_item_path(0, &mut first);
        let leaves = [["/running", &first, "/l"].concat(), [&item, "/l"].concat()];
        Pair { item, leaves }
    }

    fn write(&self, store: &Store, count: u64) -> Result<()> {
        let value = Value::from(format!("l{count}"));
        store.write(|transaction| {
            self.leaves.iter().try_for_each(|leaf| transaction.set(leaf, &value))
        })?;
        Ok(())
    }

    /// Reads the item as row 3 does, and whether both leaves are one.
    fn read(&self, store: &Store) -> Result<bool> {
        let state = store.read()?;
        let item = state.get(&self.item)?.ok_or_else(|| Error::not_found("the item is gone"))?;
        Ok(state.get(&self.leaves[0])?.as_ref() == item.pointer("/l"))
    }
}

/// What one side did.
#[derive(Default)]
struct Side {
    /// Of each operation, in microseconds.
    times: Vec<f64>,
    rate: f64,
    is_torn: bool,
}

impl Side {
    fn join(sides: Vec<Side>) -> Side {
        sides.into_iter().fold(Side::default(), |mut all, side| {
            all.times.extend(side.times);
            all.rate += side.rate;
            all.is_torn |= side.is_torn;
            all
        })
    }
}

fn run(
    store: &Store,
    pair: &Pair,
    readers: usize,
    writes: bool,
    turn: Duration,
) -> Result<(Side, Side)> {
    // The leaves begin as two values.
    pair.write(store, 0)?;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let read = || repeat(&stop, |_| pair.read(store));
        let write = || repeat(&stop, |count| pair.write(store, count + 1).map(|()| true));
        let reading: Vec<_> = (0..readers).map(|_| scope.spawn(read)).collect();
        let writing = writes.then(|| scope.spawn(write));
        thread::sleep(turn);
        stop.store(true, Ordering::Relaxed);
        let joined = |thread: thread::ScopedJoinHandle<'_, Result<Side>>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        let reads: Result<Vec<Side>> = reading.into_iter().map(joined).collect();
        let commits = writing.map(joined).transpose()?;
        Ok((Side::join(reads?), commits.unwrap_or_default()))
    })
}

/// Repeats an operation, which tells whether all was well, until `stop`.
fn repeat(stop: &AtomicBool, mut operate: impl FnMut(u64) -> Result<bool>) -> Result<Side> {
    let mut side = Side::default();
    let begin = Instant::now();
    let mut count = 0;
    while count == 0 || !stop.load(Ordering::Relaxed) {
        let one = Instant::now();
        side.is_torn |= !operate(count)?;
        if side.times.len() < KEPT_MAX {
            side.times.push(one.elapsed().as_nanos() as f64 / 1e3);
        }
        count += 1;
    }
    side.rate = count as f64 / begin.elapsed().as_secs_f64();
    Ok(side)
}
