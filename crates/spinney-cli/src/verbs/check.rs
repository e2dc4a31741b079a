//! `check`: reads everything and tells what is damaged.

use std::io::Write;
use std::process::ExitCode;

use clap::Args;
use spinney::path::Display;
use spinney::{ErrorKind, Result};

use crate::global::Global;
use crate::message::text;
use crate::output::{cannot_write, stdout};
use crate::progress;

/// `spinney check`.
#[derive(Args)]
#[command(after_help = "\
Each damaged place is printed with its path, then a summary. The exit code is 12 when something is \
damaged; `spinney salvage` then exports the rest. What is left over wastes space and harms nothing.

What is written ahead is of a large write that goes on, or that ended before its commit; then the next \
write or `spinney compact` gives it back.

Examples:
  spinney check
  spinney check --store lmdb:/var/lib/people --quiet")]
pub struct Check {}

impl Check {
    pub fn run(self, global: &Global) -> Result<ExitCode> {
        let snapshot = global.read_damaged()?;
        let bar = progress::activity("checking", global.quiet);
        let report = snapshot.check();
        bar.finish_and_clear();
        let report = report?;
        let mut out = stdout();
        let mut print = || {
            for (path, error) in &report.damaged {
                writeln!(out, "{}: {}", Display(path), text(error))?;
            }
            let ahead = match report.ahead {
                0 => String::new(),
                records => format!(", {} written ahead", counted(records, "record")),
            };
            writeln!(
                out,
                "{}: {}, {} read; {} damaged, {} left over, {} to reclaim{ahead}",
                if report.is_sound() { "sound" } else { "not sound" },
                counted(report.nodes, "node"),
                counted(report.pages, "page"),
                report.damaged.len(),
                report.orphans,
                report.queued
            )?;
            out.flush()
        };
        print().map_err(cannot_write)?;
        match report.damaged.is_empty() {
            true => Ok(ExitCode::SUCCESS),
            false => Ok(ExitCode::from(ErrorKind::Corrupted.exit_code())),
        }
    }
}

fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
