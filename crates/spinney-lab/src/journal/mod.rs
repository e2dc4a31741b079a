//! The suite `journal`: commits of several threads and processes, reads beside and behind commits,
//! recovery, and a store of millions of inserts, on LMDB.
//!
//! Each row compares things of one run that take turns, checks what the store holds at the end, and
//! gives claims. It must not know how a claim is shown.

mod access;
mod feed;
mod latency;
mod layers;
mod log;
mod processes;
mod reads;
mod recovery;
mod schema;
pub(crate) mod stores;
mod subscribers;
mod threads;
mod weak;

use std::path::{Path, PathBuf};

use spinney_core::{Error, Result};

use crate::claims::Claim;
use crate::huge;

/// What a run of the suite measures.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of [`ROWS`]; none means all.
    pub rows: Vec<String>,
    /// Items of the document on which commits and reads are measured.
    pub items: usize,
    /// Inserts of `huge`, in commits of 100 000.
    pub inserts: usize,
    /// Where stores live while they are measured.
    pub dir: PathBuf,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            rows: Vec::new(),
            items: 100_000,
            inserts: 10_000_000,
            dir: PathBuf::from("target/spinney-lab"),
        }
    }
}

/// What a row found: claims, and numbers without a bound.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// What it must show.
    pub claims: Vec<Claim>,
    /// One line each.
    pub facts: Vec<String>,
}

/// What a row may use.
pub(crate) struct Bench<'a> {
    /// An empty folder.
    pub folder: &'a Path,
    pub options: &'a Options,
}

type Measure = fn(&Bench<'_>) -> Result<Found>;

/// The rows, each with the question that it answers.
pub const ROWS: &[(&str, &str)] = &[
    ("threads", "do eight durable writers share syncs?"),
    ("processes", "do two processes of four durable writers, without a lost update?"),
    ("reads", "what do commits behind the store, and a checkpoint, cost readers?"),
    ("latency", "how long does a durable commit take while generations are folded?"),
    ("process", "what does a commit cost that survives the process?"),
    ("recovery", "how fast does a store open whose writer was killed with 64 MB in the journal?"),
    ("log", "what does the change log cost a commit?"),
    (
        "feed",
        "when does a subscriber in another process know of a commit, and what does it cost to wait?",
    ),
    ("schema", "what does a schema cost a commit, and many references at once?"),
    ("layers", "what do layers cost a read, a commit and a copy?"),
    ("access", "what do access rules cost a read and a commit?"),
    ("subscribers", "what do twelve subscribers of operational state cost?"),
    ("huge", "what do millions of inserts cost, by random ids and in the order of paths?"),
];

const MEASURES: [Measure; 13] = [
    threads::measure,
    processes::measure,
    reads::measure,
    latency::measure,
    weak::measure,
    recovery::measure,
    log::measure,
    feed::measure,
    schema::measure,
    layers::measure,
    access::measure,
    subscribers::measure,
    huge::measure,
];

/// Measures the rows that are asked for; `done` gets what each has found.
///
/// # Errors
/// `InvalidInput` for a name that is no row; `Io`; whatever a store reports; `Corrupted` when a
/// store does not hold what was committed.
pub fn run(options: &Options, mut done: impl FnMut(&str, &Found)) -> Result<Found> {
    if let Some(name) = options.rows.iter().find(|name| ROWS.iter().all(|row| row.0 != **name)) {
        let names: Vec<&str> = ROWS.iter().map(|row| row.0).collect();
        let names = names.join(", ");
        return Err(Error::invalid_input(format!("`{name}` is no row; choose from: {names}")));
    }
    std::fs::create_dir_all(&options.dir).map_err(|error| io(error, &options.dir))?;
    let mut all = Found::default();
    for ((name, _), measure) in ROWS.iter().zip(MEASURES) {
        if !options.rows.is_empty() && !options.rows.iter().any(|wanted| wanted == name) {
            continue;
        }
        let folder = tempfile::Builder::new().prefix("journal-").tempdir_in(&options.dir);
        let folder = folder.map_err(|error| io(error, &options.dir))?;
        let found = measure(&Bench { folder: folder.path(), options })
            .map_err(|error| error.at(format!("`{name}`")))?;
        done(name, &found);
        all.claims.extend(found.claims);
        all.facts.extend(found.facts);
    }
    Ok(all)
}

/// Does the work of a child process when the arguments ask for it; the program then ends with this
/// code. The program calls it first with its arguments, its own name left out.
pub fn serve(arguments: &[String]) -> Option<u8> {
    let served = match arguments {
        [child, folder, seed] if child == processes::CHILD => processes::serve(folder, seed),
        [child, folder] if child == recovery::CHILD => recovery::serve(folder),
        [child, folder] if child == feed::CHILD => feed::serve(folder),
        _ => return None,
    };
    Some(match served {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("{error}");
            1
        }
    })
}

/// A store that does not hold what was committed to it.
pub(crate) fn wrong(what: impl std::fmt::Display) -> Error {
    Error::corrupted(format!("the store does not hold what was committed: {what}"))
}

pub(crate) fn io(error: std::io::Error, path: &Path) -> Error {
    Error::io(format!("cannot use `{}`", path.display())).with_source(error)
}
