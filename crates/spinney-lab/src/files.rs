//! Files of JSON, or of a document a line: import, export and bytes on disk beside a plain library's parse and print.

use std::path::Path;
use std::time::{Duration, Instant};

use spinney_core::{Error, Result};

use crate::canonical;
use crate::clock::{Clock, Elapsed};
use crate::documents::source::json_text;
use crate::limits::Sampler;
use crate::process;
use crate::record::{Record, Status};
use crate::row;
use crate::system::{Durability, Effect, Factory, Kind};

/// Runs kept of each direction.
const RUNS_MAX: usize = 40;
/// Runs that the budget never cuts.
const RUNS_MIN: usize = 5;
/// Time for all runs of one file and backend.
const BUDGET: Duration = Duration::from_secs(2);

/// Measures the file at `path` on each backend that stores durably.
///
/// # Errors
/// `Io` when the file cannot be read, `InvalidInput` when it is not JSON, whatever a store reports.
pub fn measure(path: &Path, factories: &[&dyn Factory], folder: &Path) -> Result<Vec<Record>> {
    let text = json_text(path)?;
    let name = path.file_name().map_or("file".into(), |name| name.to_string_lossy());
    let mut records = Vec::new();
    for factory in factories.iter().filter(|factory| factory.kind() == Kind::Backend) {
        if factory.lacks(Durability::Durable).is_none() {
            let measured = measure_backend(&name, &text, *factory, folder);
            records.extend(measured.map_err(|error| error.at(path.display()))?);
        }
    }
    Ok(records)
}

fn measure_backend(
    name: &str,
    text: &[u8],
    factory: &dyn Factory,
    folder: &Path,
) -> Result<[Record; 2]> {
    let canonical = canonical::canonical(text)?;
    let value = serde_json::from_slice(text)
        .map_err(|error| Error::invalid_input("the text is not JSON").with_source(error))?;
    let (mut parse, mut print) = (Sampler::Parse(text.into()), Sampler::Print(value));
    let compact = compact_len(text);
    let mut import = record(format!("import {name}"), compact, factory);
    let mut export = record(format!("export {name}"), compact, factory);
    let mut out = Vec::new();
    let begin = Instant::now();
    // The first run warms up.
    for at in 0..=RUNS_MAX {
        if at > RUNS_MIN && begin.elapsed() > BUDGET {
            break;
        }
        let run = once(text, factory, folder, &mut out)?;
        let (parsed, printed) = (parse.sample()?, print.sample()?);
        if at > 0 {
            keep(&mut import, run.import, parsed);
            keep(&mut export, run.export, printed);
        }
        import.disk_bytes = Some(run.disk_bytes);
    }
    export.disk_bytes = import.disk_bytes;
    let status = match canonical::canonical(&out)? == canonical {
        true => Status::Ok,
        false => Status::VoidHash,
    };
    for record in [&mut import, &mut export] {
        record.hash = Some(canonical::hash(&canonical));
        record.status = status.clone();
    }
    Ok([import, export])
}

struct Run {
    import: Elapsed,
    export: Elapsed,
    disk_bytes: u64,
}

/// One import into a new store and one export from it.
fn once(text: &[u8], factory: &dyn Factory, folder: &Path, out: &mut Vec<u8>) -> Result<Run> {
    let folder = tempfile::tempdir_in(folder)
        .map_err(|error| Error::io("cannot make a folder for a store").with_source(error))?;
    let mut system = factory.open(folder.path(), Durability::Durable)?;
    let clock = Clock::start();
    let _: Effect = system.import(text)?;
    let import = clock.stop();
    system.settle()?;
    out.clear();
    let clock = Clock::start();
    system.export(out)?;
    let export = clock.stop();
    // A journal or a log beside the data is in use only while the store is open.
    drop(system);
    Ok(Run { import, export, disk_bytes: process::disk_bytes(folder.path()) })
}

fn keep(record: &mut Record, run: Elapsed, limit: Elapsed) {
    record.samples.push(run.wall_us);
    record.cpu.push(run.cpu_us);
    record.limit.push(limit.wall_us);
    record.first.get_or_insert(run.wall_us);
}

/// `size` is the length of the compact text.
fn record(test: String, size: usize, factory: &dyn Factory) -> Record {
    Record { test, size, ..row::new_record(factory, Durability::Durable) }
}

/// The length of a JSON text's own tokens without white space.
fn compact_len(text: &[u8]) -> usize {
    let (mut len, mut in_string, mut escaped) = (0, false, false);
    for &byte in text {
        if in_string {
            len += 1;
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            len += 1;
            in_string = byte == b'"';
        }
    }
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_counts_only_inside_strings() {
        assert_eq!(
            compact_len(br#" { "a b" : [ 1 , "\" \\" ] } "#),
            br#"{"a b":[1,"\" \\"]}"#.len()
        );
    }
}
