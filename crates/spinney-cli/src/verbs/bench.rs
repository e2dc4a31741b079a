//! `bench`: the lab, as the command line asks for it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use clap::{Args, ValueEnum};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use spinney::{Error, Result};
use spinney_lab::compare::compare;
use spinney_lab::splice::splice;
use spinney_lab::system::Durability;
use spinney_lab::throughput::item::Fill;
use spinney_lab::{Options, Report, SheetFile, systems};

use super::query;
use crate::global::Global;

/// `spinney bench`.
#[derive(Args)]
#[command(after_help = "\
Without options a run on the memory and LMDB backends beside a JSON file and SQLite finishes \
within a minute. Losses are printed first. Every result is compared with all others: the exit \
code is 1 when one is wrong. `--store` has no effect: each run makes stores of its own and \
removes them.

The suite `datastore` is whole: every row of sysrepo's published tables and those added to them, \
each write at three levels, with a schema that judges each commit and a subscriber that is given \
it. It takes half an hour.

Examples:
  spinney bench
  spinney bench datastore --sizes 1000 --backends lmdb --records run.jsonl
  spinney bench datastore --compat --sizes 10000    # as it was published
  spinney bench documents --backends memory,lmdb    # hello, person, keys
  spinney bench --data own.jsonl --peers sqlite     # your documents
  spinney bench throughput --fill random --sizes 1,100
  spinney bench datastore --rows 15,A1 --baseline sqlite
  spinney bench --compare old.jsonl new.jsonl       # what became faster
  spinney bench --report report.html                # with charts
  spinney bench --from run.jsonl --report report.md # tables alone
  spinney bench --splice README.md --from docs/measured/run.jsonl
  spinney bench --sizes 1000,1000000 --tries 30 --records run.jsonl
  spinney bench --backends lmdb --peers sqlite --durability durable
  spinney bench --backends lmdb,fjall,json,redis    # starts a server
  spinney bench --backends lmdb,redis=redis://localhost/9

Ctrl-C ends the run and prints what was measured; pressed again, it ends at once. A long run goes \
on where it ended, or was killed, with --resume:

  spinney bench datastore --records run.jsonl --resume")]
pub struct Bench {
    /// The whole suite instead of a short run
    #[arg(value_enum)]
    suite: Option<Suite>,

    /// As it was published: of `datastore` ten tries, nothing put back between them in eight rows, the
    /// mean; of `documents` one try of three rows, in whole milliseconds; of `throughput` as much as a
    /// second holds
    #[arg(long, requires = "suite")]
    compat: bool,

    /// Compare two files of records instead of measuring
    #[arg(long, num_args = 2, value_names = ["OLD.jsonl", "NEW.jsonl"], exclusive = true)]
    compare: Vec<PathBuf>,

    /// Measure `documents` on these files: JSON or JSON5, or `.jsonl` with a document a line
    #[arg(long, value_name = "FILE,..", value_delimiter = ',')]
    data: Vec<PathBuf>,

    /// Make the copies of a document differ, in `documents`
    #[arg(long)]
    vary: bool,

    /// The texts of an item, in `throughput` [default: const]
    #[arg(long, value_enum)]
    fill: Option<Filled>,

    /// At most so many pushes or reads in a try of `throughput`; without it as many as were published
    #[arg(long, value_name = "N")]
    iterations: Option<usize>,

    /// The system against which ratios stand [default: file; of `documents` and `throughput` sqlite]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,

    /// Numbers of items or documents; of `throughput` texts in an item
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    sizes: Option<Vec<usize>>,

    /// Backends of spinney: memory, lmdb, fjall, json, redis on a server of the run's own, and redis=URL
    /// or mongodb=URL, whose store must be empty and will be again; `none` for no backend
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    backends: Option<Vec<String>>,

    /// What to measure beside them: file, sqlite, lmdb-raw, redb, fjall-raw, rocksdb, kyoto, tkrzw,
    /// redis-direct, gtm, postgres; `all` for every peer of this build, `none` for no peer
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    peers: Option<Vec<String>>,

    /// Tries of each row that count, however long they take
    #[arg(long, value_name = "N")]
    tries: Option<usize>,

    /// Time for the tries of each row on a system; the first three are made in any case
    #[arg(long, value_name = "SECONDS", value_parser = query::seconds, conflicts_with = "tries")]
    budget: Option<Duration>,

    /// What commits must survive before they are answered
    #[arg(long, value_name = "LEVEL,..", value_delimiter = ',', value_enum)]
    durability: Option<Vec<Level>>,

    /// Only these rows, by name or number
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    rows: Vec<String>,

    /// Write a report with charts to FILE.html, or one of tables to FILE.md
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Renew the tables in these pages from the records that they name, or from that of --from
    #[arg(long, num_args = 1.., value_name = "PAGE.md", conflicts_with_all = ["suite", "records", "report"])]
    splice: Vec<PathBuf>,

    /// Report what these files of records hold instead of measuring
    #[arg(long, num_args = 1.., value_name = "RUN.jsonl", conflicts_with_all = ["suite", "records"])]
    from: Vec<PathBuf>,

    /// Write every sample to this file, one JSON object a line
    #[arg(long, value_name = "FILE.jsonl")]
    records: Option<PathBuf>,

    /// Go on with the run whose records stand in that file; what they hold is not measured again
    #[arg(long, requires = "records")]
    resume: bool,

    /// Where the stores live while they are measured [default: target/spinney-lab]
    #[arg(long)]
    dir: Option<PathBuf>,

    /// Seed of the order in which systems take turns
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
}

/// The exit code of what a signal ended, without the number of the signal.
const SIGNALLED: u8 = 128;

/// What is measured as a whole.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Suite {
    /// The 22 tests of sysrepo's datastore plugins, and more
    Datastore,
    /// Many documents, set and read back whole, node by node and leaf by leaf
    Documents,
    /// One array that grows by an item at a time, and its length after each
    Throughput,
}

impl Suite {
    /// As it is written.
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// What the items of `throughput` hold.
#[derive(Clone, Copy, ValueEnum)]
enum Filled {
    /// One text, again and again
    Const,
    /// Texts of random letters
    Random,
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
            anstream::print!("{}", compare(&read(old)?, &read(new)?)?.render());
            return Ok(ExitCode::SUCCESS);
        }
        if !self.splice.is_empty() {
            return splice_pages(&self.splice, &self.from);
        }
        let sheet = self.report.as_deref().map(SheetFile::new).transpose()?;
        if !self.from.is_empty() {
            return report_recorded(&self.from, sheet);
        }
        self.check_suite()?;
        let options = self.options(!global.quiet)?;
        let signal = stop_at_signals(&options.stop)?;
        let report = spinney_lab::run(&options, systems::all(&options.backends, &options.peers)?)?;
        report.print();
        if let Some(sheet) = sheet {
            sheet.write(std::slice::from_ref(&report))?;
        }
        Ok(ExitCode::from(match signal.load(Ordering::Relaxed) {
            0 => report.exit_code(),
            signal => SIGNALLED + u8::try_from(signal).unwrap_or_default(),
        }))
    }

    /// The suite that is asked for by name, or by files of one's own.
    fn suite(&self) -> Option<Suite> {
        self.suite.or((!self.data.is_empty()).then_some(Suite::Documents))
    }

    /// Refuses what another suite would have use for.
    fn check_suite(&self) -> Result<()> {
        let suite = self.suite();
        let of_one = [
            ("--data", !self.data.is_empty(), &[Suite::Datastore, Suite::Documents][..]),
            ("--vary", self.vary, &[Suite::Documents]),
            ("--fill", self.fill.is_some(), &[Suite::Throughput]),
            ("--iterations", self.iterations.is_some(), &[Suite::Throughput]),
        ];
        let wrong = of_one.into_iter().find(|(_, is_given, suites)| {
            *is_given && suite.is_none_or(|suite| !suites.contains(&suite))
        });
        let Some((option, _, suites)) = wrong else { return Ok(()) };
        let names: Vec<String> =
            suites.iter().map(|suite| format!("`bench {}`", suite.name())).collect();
        let names = names.join(" or ");
        Err(Error::invalid_input(format!("`{option}` is of another suite; write {names}")))
    }

    fn options(self, progress: bool) -> Result<Options> {
        let usual = match (self.suite(), self.compat) {
            (None, _) => Options::default(),
            (Some(Suite::Datastore), false) => Options::datastore(),
            (Some(Suite::Datastore), true) => Options::compat(),
            (Some(Suite::Documents), false) => Options::documents(),
            (Some(Suite::Documents), true) => Options::documents_compat(),
            (Some(Suite::Throughput), false) => Options::throughput(),
            (Some(Suite::Throughput), true) => Options::throughput_compat(),
        };
        let is_baseline_named = self.baseline.is_some();
        let level = |level| match level {
            Level::Durable => Durability::Durable,
            Level::Process => Durability::Process,
            Level::None => Durability::None,
        };
        let chosen = Options {
            sizes: self.sizes.unwrap_or(usual.sizes),
            backends: self.backends.map_or(usual.backends, without_none),
            peers: self.peers.map_or(usual.peers, with_all),
            // Whoever asks for a number of tries gets it.
            budget: if self.tries.is_some() { None } else { self.budget.or(usual.budget) },
            readers_turn: self
                .budget
                .map_or(usual.readers_turn, |most| usual.readers_turn.min(most)),
            tries: self.tries,
            durability: self
                .durability
                .map_or(usual.durability, |levels| levels.into_iter().map(level).collect()),
            rows: self.rows,
            vary: self.vary,
            data: self.data,
            fill: match self.fill {
                Some(Filled::Random) => Fill::Random,
                Some(Filled::Const) | None => usual.fill,
            },
            iterations_max: self.iterations,
            baseline: self.baseline.unwrap_or(usual.baseline),
            records: self.records,
            resume: self.resume,
            dir: self.dir,
            seed: self.seed,
            progress,
            ..usual
        };
        match is_baseline_named && !chosen.takes_part(&chosen.baseline) {
            true => Err(Error::invalid_input(format!(
                "`{}` takes no part in this run; the baseline is one of its backends and peers",
                chosen.baseline
            ))),
            false => Ok(chosen),
        }
    }
}

fn splice_pages(pages: &[PathBuf], from: &[PathBuf]) -> Result<ExitCode> {
    if from.len() > 1 {
        return Err(Error::invalid_input("a page takes its tables from one file of records"));
    }
    for page in pages {
        let word = match splice(page, from.first().map(PathBuf::as_path))? {
            true => "renewed",
            false => "as it was",
        };
        println!("{}: {word}", page.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// As a document, or as the tables of a terminal.
fn report_recorded(paths: &[PathBuf], sheet: Option<SheetFile>) -> Result<ExitCode> {
    let recorded = |path: &PathBuf| {
        Report::read(&read(path)?).map_err(|error| error.at(format!("`{}`", path.display())))
    };
    let reports: Vec<Vec<Report>> = paths.iter().map(recorded).collect::<Result<_>>()?;
    let reports = reports.concat();
    match sheet {
        Some(sheet) => sheet.write(&reports)?,
        None => reports.iter().for_each(Report::print),
    }
    Ok(ExitCode::from(u8::from(reports.iter().any(Report::is_void))))
}

fn read(path: &PathBuf) -> Result<String> {
    let unread = || Error::io(format!("cannot read `{}`", path.display()));
    std::fs::read_to_string(path).map_err(|error| unread().with_source(error))
}

/// The first Ctrl-C, or another signal to end, ends the run in order and is told; the next one ends it
/// at once.
fn stop_at_signals(stop: &Arc<AtomicBool>) -> Result<Arc<AtomicUsize>> {
    let told = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let value = usize::try_from(signal).unwrap_or_default();
        flag::register_conditional_default(signal, Arc::clone(stop))
            .and_then(|_| flag::register_usize(signal, Arc::clone(&told), value))
            .and_then(|_| flag::register(signal, Arc::clone(stop)))
            .map_err(|error| Error::io("cannot watch for Ctrl-C").with_source(error))?;
    }
    Ok(told)
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
