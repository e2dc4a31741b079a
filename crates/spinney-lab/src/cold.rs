//! A5: a new process opens a store, reads one item and ends; with its files in memory, without them, and
//! after the last writer was killed within a commit.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use rustix::fs::{Advice, fadvise};
use spinney::{OpenOptions, Value};
use spinney_core::{Error, Result};

use crate::child;
use crate::clock::Clock;
use crate::datastore::Documents;
use crate::datastore::document::{State, leaf_text, write_item_path};
use crate::record::{Record, Status};
use crate::row;
use crate::system::{Durability, Factory};

/// A child that does nothing: what starting and ending a process costs.
const NOTHING: &str = "a process that does nothing";
const WARM: &str = "cold open";
const DROPPED: &str = "cold open, files not in memory";
const KILLED: &str = "cold open after a kill";

/// Tries of each row.
const TRIES: usize = 20;
/// Writers that are killed.
const KILLS: usize = 10;
/// Commits that a writer has acknowledged when it is killed.
const COMMITS: usize = 200;

/// Measures stores of `factory` that children open.
///
/// # Errors
/// `Io` when no child starts; what a child or the store reports.
pub(crate) fn measure(
    documents: &Documents,
    factory: &dyn Factory,
    level: Durability,
    folder: &Path,
) -> Result<Vec<Record>> {
    let Some(url) = factory.url(folder).filter(|_| factory.lacks(Durability::Process).is_none())
    else {
        return Ok(Vec::new());
    };
    fill(documents, factory, level, folder)?;
    let mut path = String::from("/running");
    let mut item = String::new();
    write_item_path(documents.middle(), &mut item);
    path.push_str(&item);
    let mut records = Vec::new();
    let mut note = |test: &str, samples: Vec<f64>, status: Status| {
        let mut record = row::new_record(factory, level);
        record.test = row::levelled(test, level);
        record.size = documents.size();
        record.samples = samples;
        record.status = status;
        record.access = if test == DROPPED { "cold" } else { "open" };
        records.push(record);
    };
    let repeat = |once: &mut dyn FnMut() -> Result<f64>| -> Result<Vec<f64>> {
        (0..TRIES).map(|_| once()).collect()
    };
    let expected = leaf_text(documents.middle());
    let read = || {
        let (took, answer) = timed("read", &[&url, &path])?;
        (answer == expected).then_some(took).ok_or_else(|| wrong(&answer))
    };
    let nothing = repeat(&mut || Ok(timed("nothing", &[])?.0))?;
    note(NOTHING, nothing, Status::Ok);
    note(WARM, repeat(&mut || read())?, Status::Ok);
    let dropped = repeat(&mut || {
        drop_from_memory(folder)?;
        read()
    })?;
    note(DROPPED, dropped, Status::Ok);
    let (samples, lost) = killed(&url, level, &path)?;
    let status =
        if lost && level != Durability::None { Status::VoidDurability } else { Status::Ok };
    note(KILLED, samples, status);
    Ok(records)
}

fn fill(
    documents: &Documents,
    factory: &dyn Factory,
    level: Durability,
    folder: &Path,
) -> Result<()> {
    let Some(store) = factory.store(folder, level)? else { return Ok(()) };
    let text = documents.text(State::Items);
    store.write(|transaction| {
        transaction.set_with("/running", spinney::Existing::Any, |visitor| {
            spinney::formats::read(&*text, spinney::formats::Dialect::Json, visitor)
        })
    })?;
    store.checkpoint()
}

/// How long a child took from its start to its end, and what it printed.
fn timed(task: &str, arguments: &[&str]) -> Result<(f64, String)> {
    let mut command = child::command(task, arguments)?;
    command.stdin(Stdio::null()).stderr(Stdio::inherit());
    let clock = Clock::start();
    let output = command.output().map_err(|error| io(error, "start a child"))?;
    let elapsed = clock.stop();
    if !output.status.success() {
        return Err(Error::io(format!("a child that should `{task}` failed")));
    }
    Ok((elapsed.wall_us, String::from_utf8_lossy(&output.stdout).trim().to_owned()))
}

/// Has the system forget what it holds of the files in a folder.
fn drop_from_memory(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(|error| io(error, "list the store"))?.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
            continue;
        }
        let dropped = File::open(entry.path()).and_then(|file| {
            // What is not on the disk yet is not forgotten.
            file.sync_all()?;
            Ok(fadvise(&file, 0, None, Advice::DontNeed)?)
        });
        dropped.map_err(|error| io(error, "drop a file from memory"))?;
    }
    Ok(())
}

/// Kills writers, and has a child open what each leaves: how long that took, and whether a commit that
/// was acknowledged is gone.
fn killed(url: &str, level: Durability, path: &str) -> Result<(Vec<f64>, bool)> {
    let mut samples = Vec::new();
    let mut lost = false;
    for _ in 0..KILLS {
        let mut writer = child::command("commit", &[url, level.name(), path])?
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| io(error, "start a writer"))?;
        let out = writer.stdout.take().expect("it is piped");
        let mut lines = BufReader::new(out).lines();
        let mut acknowledged = None;
        for count in 1.. {
            // What it has said until it died counts, to the last whole line.
            let Some(line) = lines.next() else { break };
            acknowledged = Some(line.map_err(|error| io(error, "hear a writer"))?);
            if count == COMMITS {
                writer.kill().map_err(|error| io(error, "kill a writer"))?;
            }
        }
        writer.wait().map_err(|error| io(error, "wait for a writer"))?;
        let acknowledged = acknowledged.ok_or_else(|| wrong("nothing"))?;
        let (took, found) = timed("read", &[url, path])?;
        samples.push(took);
        let number = |text: &str| text.trim_start_matches('l').parse::<u64>().ok();
        let (Some(acknowledged), Some(found)) = (number(&acknowledged), number(&found)) else {
            return Err(wrong(&found));
        };
        lost |= found < acknowledged;
    }
    Ok((samples, lost))
}

/// In a child: opens, reads the item at a path and tells its leaf.
pub(crate) fn read(url: &str, path: &str) -> Result<String> {
    let item = spinney::open(url)?.read()?.get(path)?.ok_or_else(|| wrong("no item"))?;
    match item.pointer("/l") {
        Some(Value::String(text)) => Ok(text.clone()),
        _ => Err(wrong("an item without its leaf")),
    }
}

/// In a child: commits, each time telling what was acknowledged.
pub(crate) fn commit_until_killed(url: &str, level: &str, path: &str) -> Result<String> {
    let level = Durability::of_name(level).ok_or_else(|| wrong("no level"))?;
    let store = OpenOptions::new().durability(level.into()).open(url)?;
    let path = [path, "/l"].concat();
    // Numbers of as many digits, so that one that is cut short does not count.
    for count in 100_000_000_u64.. {
        let text = format!("l{count}");
        store.write(|transaction| transaction.set(&path, &Value::from(&*text)))?;
        println!("{text}");
    }
    Ok(String::new())
}

fn wrong(found: &str) -> Error {
    Error::corrupted(format!("a child found {found} where the item was"))
}

fn io(error: std::io::Error, action: &str) -> Error {
    Error::io(format!("cannot {action}")).with_source(error)
}
