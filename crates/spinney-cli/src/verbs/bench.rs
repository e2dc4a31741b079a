//! `bench`: the lab, as the command line asks for it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use signal_hook::consts::SIGINT;
use signal_hook::flag;
use spinney::{Error, Result};
use spinney_lab::compare::compare;
use spinney_lab::system::Durability;
use spinney_lab::{Options, systems};

use crate::global::Global;

/// `spinney bench`.
#[derive(Args)]
#[command(after_help = "\
Without options a run on the memory and LMDB backends beside a JSON file and SQLite finishes within
a minute. Losses are printed first. Every result is compared with all others: the exit code is 1 when
one is wrong. `--store` has no effect: each run makes stores of its own and removes them.

The suite `datastore` is whole: every row of sysrepo's published tables and those added to them, each write
at three levels, with a schema that judges each commit and a subscriber that is given it. It takes half an hour.

Examples:
  spinney bench
  spinney bench datastore --sizes 1000 --backends memory,lmdb,json --records run.jsonl
  spinney bench datastore --compat --sizes 10000    # as it was published, no-op tries included
  spinney bench documents --backends memory,lmdb    # hello, person and keys with a text
  spinney bench datastore --rows 15,A1 --baseline sqlite
  spinney bench --compare old.jsonl new.jsonl       # what became faster or slower

Ctrl-C ends the run and prints what was measured; pressed again, it ends at once.

  spinney bench --sizes 1000,1000000 --tries 30 --records run.jsonl
  spinney bench --backends lmdb --peers sqlite --durability durable
  spinney bench --backends lmdb,fjall,json,redis=redis://localhost/9")]
pub struct Bench {
    /// The whole suite instead of a short run
    #[arg(value_enum)]
    suite: Option<Suite>,

    /// As it was published: of `datastore` ten tries, nothing put back between them in eight rows, the
    /// mean; of `documents` one try of three rows, in whole milliseconds
    #[arg(long, requires = "suite")]
    compat: bool,

    /// Compare two files of records instead of measuring
    #[arg(long, num_args = 2, value_names = ["OLD.jsonl", "NEW.jsonl"], exclusive = true)]
    compare: Vec<PathBuf>,

    /// Make the copies of a document differ, in `documents`
    #[arg(long, requires = "suite")]
    vary: bool,

    /// The system against which ratios stand [default: file; of `documents` sqlite]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,

    /// Numbers of items or documents
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    sizes: Option<Vec<usize>>,

    /// Backends of spinney: memory, lmdb, fjall, json, and redis=URL or mongodb=URL, whose store must
    /// be empty and will be again; `none` for no backend
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    backends: Option<Vec<String>>,

    /// What to measure beside them: file, sqlite, lmdb-raw, redb, fjall-raw, rocksdb, kyoto, tkrzw,
    /// redis-direct, gtm; `all` for every peer of this build, `none` for no peer
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    peers: Option<Vec<String>>,

    /// Tries of each row that count, however long they take
    #[arg(long, value_name = "N")]
    tries: Option<usize>,

    /// What commits must survive before they are answered
    #[arg(long, value_name = "LEVEL,..", value_delimiter = ',', value_enum)]
    durability: Option<Vec<Level>>,

    /// Only these rows, by name or number
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    rows: Vec<String>,

    /// Write every sample to this file, one JSON object a line
    #[arg(long, value_name = "FILE.jsonl")]
    records: Option<PathBuf>,

    /// Where the stores live while they are measured [default: target/spinney-lab]
    #[arg(long)]
    dir: Option<PathBuf>,

    /// Seed of the order in which systems take turns
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

/// What is measured as a whole.
#[derive(Clone, Copy, ValueEnum)]
enum Suite {
    /// The 22 tests of sysrepo's datastore plugins, and more
    Datastore,
    /// Many documents, set and read back whole, node by node and leaf by leaf
    Documents,
}

/// What commits must survive before they are answered.
#[derive(Clone, Copy, ValueEnum)]
enum Level {
    /// Power loss
    Durable,
    /// The end of the process
    Process,
    /// Nothing
    None,
}

impl Bench {
    pub fn run(self, global: &Global) -> Result<ExitCode> {
        if let [old, new] = &*self.compare {
            let read = |path: &PathBuf| {
                let unread = || Error::io(format!("cannot read `{}`", path.display()));
                std::fs::read_to_string(path).map_err(|error| unread().with_source(error))
            };
            anstream::print!("{}", compare(&read(old)?, &read(new)?)?.render());
            return Ok(ExitCode::SUCCESS);
        }
        let options = self.options(!global.quiet);
        stop_at_interrupt(&options.stop)?;
        let report = spinney_lab::run(&options, systems::all(&options.backends, &options.peers)?)?;
        report.print();
        Ok(ExitCode::from(report.exit_code()))
    }

    fn options(self, progress: bool) -> Options {
        let usual = match (self.suite, self.compat) {
            (None, _) => Options::default(),
            (Some(Suite::Datastore), false) => Options::datastore(),
            (Some(Suite::Datastore), true) => Options::compat(),
            (Some(Suite::Documents), false) => Options::documents(),
            (Some(Suite::Documents), true) => Options::documents_compat(),
        };
        let level = |level| match level {
            Level::Durable => Durability::Durable,
            Level::Process => Durability::Process,
            Level::None => Durability::None,
        };
        Options {
            sizes: self.sizes.unwrap_or(usual.sizes),
            backends: self.backends.map_or(usual.backends, without_none),
            peers: self.peers.map_or(usual.peers, with_all),
            // Whoever asks for a number of tries gets it.
            budget: if self.tries.is_some() { None } else { usual.budget },
            tries: self.tries,
            durability: self
                .durability
                .map_or(usual.durability, |levels| levels.into_iter().map(level).collect()),
            rows: self.rows,
            vary: self.vary,
            baseline: self.baseline.unwrap_or(usual.baseline),
            records: self.records,
            dir: self.dir,
            seed: self.seed,
            progress,
            ..usual
        }
    }
}

/// The first Ctrl-C ends the run in order, the next one at once.
fn stop_at_interrupt(stop: &Arc<AtomicBool>) -> Result<()> {
    let registered = flag::register_conditional_default(SIGINT, Arc::clone(stop))
        .and_then(|_| flag::register(SIGINT, Arc::clone(stop)));
    registered.map(drop).map_err(|error| Error::io("cannot watch for Ctrl-C").with_source(error))
}

/// The names of the peers that are meant.
fn with_all(names: Vec<String>) -> Vec<String> {
    match names.as_slice() {
        [all] if all == "all" => {
            systems::peers().iter().map(|peer| peer.name().to_owned()).collect()
        }
        _ => without_none(names),
    }
}

fn without_none(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| name != "none").collect()
}
