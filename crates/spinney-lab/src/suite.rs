//! What the runner must know of a suite: its rows as data, and how a row is done on an open system.
//!
//! A suite knows nothing of turns, warm-up, statistics or the order of systems.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;
use spinney_core::{Error, Result};

use crate::answer::Answer;
use crate::limits::Sampler;
use crate::options::{Options, Scope};
use crate::process;
use crate::record::Record;
use crate::system::{Delivery, Durability, Effect, Factory};

/// A suite by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Name {
    /// One tree of many items: `datastore`, or its short run.
    Datastore,
    /// Many documents: `documents`.
    Documents,
    /// One array that grows: `throughput`.
    Throughput,
}

/// One row: what is measured, as data.
pub trait Row: Clone {
    /// Its name in records.
    fn id(&self) -> &str;

    /// Whether it changes the store, so that the state is put back before each try.
    fn writes(&self) -> bool;

    /// Whether the level of durability is part of what it measures.
    fn commits(&self) -> bool;

    /// Commits inside one try, where it has any.
    fn commits_of_try(&self, size: usize) -> usize {
        let _ = size;
        1
    }

    /// Commits that one sync may make durable: those of so many clients.
    fn commits_of_sync(&self) -> usize {
        1
    }

    /// The same row with no more commits than are needed to count their syncs.
    fn short(&self) -> Self {
        self.clone()
    }

    /// Operations inside one try, at N = `size`.
    fn ops(&self, size: usize) -> usize;

    /// Whether its tries after the first change nothing in the published procedure.
    fn is_dagger(&self) -> bool {
        false
    }

    /// What a record of it says in any case.
    fn note(&self) -> Option<&'static str> {
        None
    }
}

/// What an operation gave back; dropped after the clock stopped.
pub enum Outcome {
    /// A write.
    Effect(Effect),
    /// A read as a tree.
    Answer(Answer),
    /// A read as a text.
    Text(String),
    /// An export, which stands in a buffer.
    Exported,
    /// So many results, each dropped when it was complete.
    Many(usize),
    /// Operations one by one, and how long each took, in microseconds.
    Series(Vec<f64>),
    /// Commits, and what each subscriber was given of them.
    Told(Vec<Delivery>),
    /// Background work and its bytes, or none.
    Settled(Option<u64>),
}

/// One open system, with the data of one size, on which rows are done.
pub trait Bench {
    /// The rows of the suite.
    type Row: Row;

    /// Lets the system do what a row needs and nothing more; never measured.
    fn allow(&mut self, row: &Self::Row) -> Result<()> {
        let _ = row;
        Ok(())
    }

    /// Puts the start state of a row back; never measured.
    fn prepare(&mut self, row: &Self::Row) -> Result<()>;

    /// What comes directly before the clock starts, whether or not anything was put back.
    fn arm(&mut self, row: &Self::Row) -> Result<()> {
        let _ = row;
        Ok(())
    }

    /// What stands inside the clock.
    fn perform(&mut self, row: &Self::Row) -> Result<Outcome>;

    /// Whether a try did what it had to.
    ///
    /// # Errors
    /// `InvalidInput` when it did not; `Unsupported` when there was nothing to do.
    fn check(&mut self, row: &Self::Row, outcome: &Outcome) -> Result<()>;

    /// The result hash, and whether it is the expected one.
    fn verify(&mut self, row: &Self::Row, outcome: &Outcome) -> Result<(String, bool)>;

    /// The state is not known any more: something failed.
    fn forget(&mut self);

    /// Adds to the record of a row what only the suite knows.
    fn describe(&self, row: &Self::Row, outcome: &Outcome, record: &mut Record) {
        let _ = (row, outcome, record);
    }

    /// Finishes all background work.
    fn settle(&mut self) -> Result<()>;

    /// The processes besides this one that sync what the system commits.
    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The bytes of a store that keeps nothing in its folder.
    fn memory_bytes(&self) -> Option<u64>;
}

/// Where a run takes place.
pub(crate) struct Scene<'a> {
    pub options: &'a Options,
    pub factories: &'a [&'a dyn Factory],
    /// Where files may stand for a while.
    pub folder: &'a Path,
    pub progress: &'a ProgressBar,
}

impl Scene<'_> {
    /// A folder that goes when it is dropped.
    pub fn scratch(&self) -> Result<tempfile::TempDir> {
        folder_in(self.folder, "")
    }
}

/// A folder that goes when it is dropped. Servers that run as another user reach what is in it.
pub(crate) fn folder_in(parent: &Path, prefix: &str) -> Result<tempfile::TempDir> {
    let permissions = std::fs::Permissions::from_mode(0o711);
    let made = tempfile::Builder::new().prefix(prefix).permissions(permissions).tempdir_in(parent);
    made.map_err(|error| unwritable(error, parent))
}

/// The error for a folder in which no store can be made.
pub(crate) fn unwritable(error: std::io::Error, folder: &Path) -> Error {
    let folder = folder.display();
    let text = format!("cannot write `{folder}`; choose another folder with `--dir`");
    Error::io(text).with_source(error)
}

/// A suite, at one size after the other.
pub(crate) trait Suite {
    /// Its rows.
    type Row: Row;

    /// Its name in records.
    fn name(&self) -> &'static str;

    /// The rows that are asked for, in the order in which they run.
    fn rows(&self) -> Vec<Self::Row>;

    /// The sizes at which anything is asked for.
    fn sizes(&self) -> Vec<usize>;

    /// What this run does not hold, with the reason.
    fn left_out(&self) -> Vec<String>;

    /// How much a system may need on the disk at this size, roughly and rather too much.
    fn disk_bytes(&self, size: usize) -> u64;

    /// Makes the data of a size.
    fn enter(&mut self, size: usize) -> Result<()>;

    /// The bounds at this size that are measured once.
    fn limits(&self, scene: &Scene<'_>) -> Result<Vec<Record>>;

    /// Who takes part in a row at this size and the level of this position.
    fn scope(&self, row: &Self::Row, at: usize) -> Scope;

    /// The bound that is sampled between the tries of a row.
    fn sampler(
        &self,
        row: &Self::Row,
        level: Durability,
        scene: &Scene<'_>,
    ) -> Result<Option<Sampler>>;

    /// A new, empty store; `Unsupported` when the system has none for this suite or level.
    fn open<'f>(
        &self,
        factory: &'f dyn Factory,
        folder: &Path,
        level: Durability,
    ) -> Result<Box<dyn Bench<Row = Self::Row> + 'f>>;

    /// What a record needs besides its tries.
    fn complete(
        &self,
        row: &Self::Row,
        factory: &dyn Factory,
        scene: &Scene<'_>,
        record: &mut Record,
    ) -> Result<()> {
        let _ = (row, factory, scene, record);
        Ok(())
    }

    /// What is measured at this size besides the rows.
    fn beside(&self, scene: &Scene<'_>) -> Result<Vec<Record>> {
        let _ = scene;
        Ok(Vec::new())
    }

    /// What is measured once in a run.
    fn extras(&self, scene: &Scene<'_>) -> Result<Vec<Record>> {
        let _ = scene;
        Ok(Vec::new())
    }
}

/// That a run does not have all rows of its suite, and why.
pub(crate) fn rows_left_out(chosen: usize, all: usize, why: &str) -> Option<String> {
    (chosen < all).then(|| format!("{} of {all} rows {why}", all - chosen))
}

/// Why rows or sizes are left out, most often.
pub(crate) const NOT_ASKED_FOR: &str = "were not asked for";

/// The bytes of a closed store into which `fill` has put its first data, and nothing else: those of a used
/// one tell of its past too. `fill` tells the bytes of a store that keeps nothing in its folder.
pub(crate) fn fresh_disk_bytes(
    scene: &Scene<'_>,
    fill: impl FnOnce(&Path) -> Result<Option<u64>>,
) -> Result<Option<u64>> {
    let folder = scene.scratch()?;
    // A journal or a log beside the data is in use only while the store is open, which it is no longer.
    let in_memory = fill(folder.path())?;
    let bytes = in_memory.unwrap_or_else(|| process::disk_bytes(folder.path()));
    Ok((bytes > 0).then_some(bytes))
}

/// An error of a try that did nothing.
pub(crate) fn changed(effect: Effect, id: &str) -> Result<()> {
    match effect {
        Effect::Changed => Ok(()),
        Effect::Unchanged => Err(Error::invalid_input(format!("a try of `{id}` changed nothing"))),
    }
}

/// Commits of a series whose syncs are counted.
pub(crate) const SHORT: usize = 50;

/// How long a series of operations may take.
const SERIES_MAX: Duration = Duration::from_secs(30);
/// After this it is known how long it will take.
const KNOWN_AFTER: Duration = Duration::from_millis(500);

/// `Unsupported` when a series of which so much is done will not end in time.
pub(crate) fn is_in_time(elapsed: Duration, done: usize, len: usize) -> Result<()> {
    let is_known = elapsed > KNOWN_AFTER;
    if is_known && elapsed.as_secs_f64() / done as f64 * len as f64 > SERIES_MAX.as_secs_f64() {
        return Err(Error::unsupported(format!(
            "{len} of them, one by one, take longer than {} s",
            SERIES_MAX.as_secs()
        )));
    }
    Ok(())
}
