//! What only a JSON file as a store has: opening it, making the commits of its journal again, and what
//! is on disk after a close.

use std::fs;
use std::path::Path;

use spinney::formats::{self, Dialect};
use spinney::{Existing, OpenOptions};
use spinney_core::{Error, Result};

use crate::clock::Clock;
use crate::datastore::Documents;
use crate::datastore::document::State;
use crate::limits::Sampler;
use crate::process;
use crate::record::Record;
use crate::row;
use crate::system::{Durability, Factory};

/// The backend of JSON files.
pub(crate) const BACKEND: &str = "json";

/// The rows.
pub(crate) const OPEN: &str = "open a JSON file";
pub(crate) const REPLAY: &str = "open a JSON file behind commits";
pub(crate) const CLOSE: &str = "close a JSON file";

/// Commits that are made again, of one leaf each.
const COMMITS: usize = 50_000;
/// Runs kept of each row.
const RUNS: usize = 7;

/// Measures documents of `size` items, where JSON files are among `factories`.
///
/// # Errors
/// `Io` when the folder cannot be written; what the store reports.
pub(crate) fn measure(
    size: usize,
    factories: &[&dyn Factory],
    folder: &Path,
) -> Result<Vec<Record>> {
    let Some(factory) = factories.iter().find(|factory| factory.name() == BACKEND) else {
        return Ok(Vec::new());
    };
    let text = Documents::new(size).text(State::Items);
    let record = |test: &str| Record {
        test: test.to_owned(),
        size,
        ..row::new_record(*factory, Durability::Durable)
    };
    let (mut opened, mut replayed, mut closed) = (record(OPEN), record(REPLAY), record(CLOSE));
    open(&mut opened, &text, folder)?;
    replay(&mut replayed, folder)?;
    close(&mut closed, &text, folder)?;
    Ok(vec![opened, replayed, closed])
}

/// Beside a plain library that parses the same text.
fn open(record: &mut Record, text: &[u8], folder: &Path) -> Result<()> {
    let folder = temporary(folder)?;
    let file = folder.path().join("store.json");
    write(&file, text)?;
    let mut parse = Sampler::Parse(text.into());
    // The first run warms up.
    for run in 0..=RUNS {
        let elapsed = timed_open(&file)?;
        let parsed = parse.sample()?;
        if run > 0 {
            record.samples.push(elapsed);
            record.limit.push(parsed.wall_us);
        }
    }
    Ok(())
}

/// A small document whose last writer has died: each run opens a copy.
fn replay(record: &mut Record, folder: &Path) -> Result<()> {
    let (first, second) = (temporary(folder)?, temporary(folder)?);
    let file = first.path().join("store.json");
    let store = OpenOptions::new().durability(spinney::Durability::None).open(&url(&file))?;
    for commit in 0..COMMITS {
        let path = format!("/{}", commit % 1_000);
        store.write(|transaction| transaction.set(&path, &(commit as u64).into()))?;
    }
    store.sync()?;
    let names = ["store.json", "store.json.journal.0", "store.json.journal.1"];
    let left = names.map(|name| (name, fs::read(first.path().join(name)).unwrap_or_default()));
    drop(store);
    for run in 0..=RUNS {
        for (name, bytes) in left.iter().filter(|(_, bytes)| !bytes.is_empty()) {
            write(&second.path().join(name), bytes)?;
        }
        let elapsed = timed_open(&second.path().join("store.json"))?;
        if run > 0 {
            record.samples.push(elapsed / COMMITS as f64);
        }
    }
    record.ops = COMMITS;
    Ok(())
}

/// What is on disk when a document was imported, changed and closed, as `disk_bytes`.
fn close(record: &mut Record, text: &[u8], folder: &Path) -> Result<()> {
    let folder = temporary(folder)?;
    let store = spinney::open(&url(&folder.path().join("store.json")))?;
    store.write(|transaction| {
        transaction
            .set_with("", Existing::Any, |visitor| formats::read(text, Dialect::Json, visitor))
    })?;
    for commit in 0..1_000_u64 {
        store.write(|transaction| transaction.set(&format!("/new{commit}"), &commit.into()))?;
    }
    let clock = Clock::start();
    drop(store);
    record.samples.push(clock.stop().wall_us);
    record.disk_bytes = Some(process::disk_bytes(folder.path()));
    Ok(())
}

/// Microseconds until a document is open to write.
fn timed_open(file: &Path) -> Result<f64> {
    let clock = Clock::start();
    let store = spinney::open(&url(file))?;
    let elapsed = clock.stop();
    drop(store);
    Ok(elapsed.wall_us)
}

fn url(file: &Path) -> String {
    format!("{BACKEND}:{}", file.display())
}

fn temporary(folder: &Path) -> Result<tempfile::TempDir> {
    tempfile::tempdir_in(folder)
        .map_err(|error| Error::io("cannot make a folder for a store").with_source(error))
}

fn write(file: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(file, bytes)
        .map_err(|error| Error::io(format!("cannot write `{}`", file.display())).with_source(error))
}
