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
use spinney_lab::{Options, Report, SheetFile, systems};

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
  spinney bench datastore --rows 15,A1 --baseline sqlite
  spinney bench --compare old.jsonl new.jsonl       # what became faster or slower
  spinney bench --report report.html                # with charts; report.md for tables alone
  spinney bench --from run.jsonl --report report.html

Ctrl-C ends the run and prints what was measured; pressed again, it ends at once.

  spinney bench --sizes 1000,1000000 --tries 30 --records run.jsonl
  spinney bench --backends lmdb --peers sqlite --durability durable
  spinney bench --backends lmdb,fjall,json,redis=redis://localhost/9")]
pub struct Bench {
    /// The whole suite instead of a short run
    #[arg(value_enum)]
    suite: Option<Suite>,

    /// As it was published: ten tries, nothing put back between them in eight rows, the mean
    #[arg(long, requires = "suite")]
    compat: bool,

    /// Compare two files of records instead of measuring
    #[arg(long, num_args = 2, value_names = ["OLD.jsonl", "NEW.jsonl"], exclusive = true)]
    compare: Vec<PathBuf>,

    /// The system against which ratios stand [default: file]
    #[arg(long, value_name = "NAME")]
    baseline: Option<String>,

    /// Numbers of items
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    sizes: Option<Vec<usize>>,

    /// Backends of spinney: memory, lmdb, fjall, json, and redis=URL or mongodb=URL, whose store must
    /// be empty and will be again; `none` for no backend
    #[arg(long, value_name = "NAME,..", value_delimiter = ',')]
    backends: Option<Vec<String>>,

    /// What to measure beside them: file, sqlite; `none` for no peer
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

    /// Write a report with charts to FILE.html, or one of tables to FILE.md
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Report what these files of records hold instead of measuring
    #[arg(long, num_args = 1.., value_name = "RUN.jsonl", conflicts_with_all = ["suite", "records"])]
    from: Vec<PathBuf>,

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
        let sheet = self.report.as_deref().map(SheetFile::new).transpose()?;
        if !self.from.is_empty() {
            return report_recorded(&self.from, sheet);
        }
        let options = self.options(!global.quiet);
        stop_at_interrupt(&options.stop)?;
        let report = spinney_lab::run(&options, systems::all(&options.backends, &options.peers)?)?;
        report.print();
        if let Some(sheet) = sheet {
            sheet.write(std::slice::from_ref(&report))?;
        }
        Ok(ExitCode::from(report.exit_code()))
    }

    fn options(self, progress: bool) -> Options {
        let usual = match (self.suite, self.compat) {
            (None, _) => Options::default(),
            (Some(Suite::Datastore), false) => Options::datastore(),
            (Some(Suite::Datastore), true) => Options::compat(),
        };
        let level = |level| match level {
            Level::Durable => Durability::Durable,
            Level::Process => Durability::Process,
            Level::None => Durability::None,
        };
        Options {
            sizes: self.sizes.unwrap_or(usual.sizes),
            backends: self.backends.map_or(usual.backends, without_none),
            peers: self.peers.map_or(usual.peers, without_none),
            // Whoever asks for a number of tries gets it.
            budget: if self.tries.is_some() { None } else { usual.budget },
            tries: self.tries,
            durability: self
                .durability
                .map_or(usual.durability, |levels| levels.into_iter().map(level).collect()),
            rows: self.rows,
            baseline: self.baseline.unwrap_or(usual.baseline),
            records: self.records,
            dir: self.dir,
            seed: self.seed,
            progress,
            ..usual
        }
    }
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

/// The first Ctrl-C ends the run in order, the next one at once.
fn stop_at_interrupt(stop: &Arc<AtomicBool>) -> Result<()> {
    let registered = flag::register_conditional_default(SIGINT, Arc::clone(stop))
        .and_then(|_| flag::register(SIGINT, Arc::clone(stop)));
    registered.map(drop).map_err(|error| Error::io("cannot watch for Ctrl-C").with_source(error))
}

fn without_none(names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| name != "none").collect()
}
