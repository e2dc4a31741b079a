//! Peak memory of importing large files, each in a child process whose high-water mark is its own.

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Stdio;

use spinney::Existing;
use spinney::formats::{self, Dialect};
use spinney_core::{Error, Result};

use crate::child;
use crate::json_file;
use crate::process;
use crate::record::Record;
use crate::row;
use crate::system::{Durability, Factory, Kind};

/// Name of the row whose members come in the order of the model.
pub const SORTED: &str = "peak memory of import, sorted";
/// Name of the row whose members come by rising number, which is not their order as texts.
pub const NUMBERED: &str = "peak memory of import, by number";

/// In a child: imports a file, and tells the peak of its memory.
pub(crate) fn import(url: &str, file: &Path) -> Result<String> {
    let store = spinney::open(url)?;
    store.write(|transaction| {
        let input = File::open(file).map_err(|error| io(error, file))?;
        transaction.set_with("/running", Existing::Any, |visitor| {
            formats::read(
                BufReader::with_capacity(formats::WINDOW_LEN, input),
                Dialect::Json,
                visitor,
            )
        })
    })?;
    let peak = process::peak_rss_bytes();
    let peak = peak.ok_or_else(|| Error::unsupported("the system tells no peak memory"))?;
    Ok(peak.to_string())
}

/// Imports a file of `size` items in both orders into each backend that stores durably and does not
/// keep the document in memory.
///
/// # Errors
/// `Io` when the file cannot be written or the child not started; what the child reports.
pub(crate) fn measure(
    size: usize,
    factories: &[&dyn Factory],
    folder: &Path,
) -> Result<Vec<Record>> {
    let is_stored = |factory: &&&dyn Factory| {
        factory.kind() == Kind::Backend
            && factory.lacks(Durability::Durable).is_none()
            && factory.name() != json_file::BACKEND
    };
    let mut records = Vec::new();
    for factory in factories.iter().filter(is_stored) {
        for test in [SORTED, NUMBERED] {
            let folder = tempfile::tempdir_in(folder).map_err(|error| io(error, folder))?;
            let file = folder.path().join("items.json");
            let numbers: Box<dyn Iterator<Item = usize>> = match test {
                SORTED => Box::new(Sorted::new(size)),
                _ => Box::new(0..size),
            };
            write_items(numbers, &file).map_err(|error| io(error, &file))?;
            let url = format!("{}:{}", factory.name(), folder.path().join("store").display());
            let peak_bytes = run_child(&url, &file)?;
            let mut record = row::new_record(*factory, Durability::Durable);
            record.test = test.to_owned();
            record.size = size;
            record.unit = "B";
            record.samples = vec![peak_bytes as f64];
            record.peak_rss_bytes = Some(peak_bytes);
            record.disk_bytes = Some(process::disk_bytes(&folder.path().join("store")));
            records.push(record);
        }
    }
    Ok(records)
}

fn run_child(url: &str, file: &Path) -> Result<u64> {
    let output = child::command("import", &[url])?
        .arg(file)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| io(error, Path::new("this program")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    text.trim().parse().map_err(|_| {
        Error::io(format!("the child that imports `{}` told no peak memory", file.display()))
    })
}

fn write_items(numbers: impl Iterator<Item = usize>, file: &Path) -> std::io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(file)?);
    out.write_all(b"{\"cont\":{\"lst\":{")?;
    let mut comma = "";
    for i in numbers {
        write!(out, "{comma}\"{i},str{i}\":{{\"k1\":{i},\"k2\":\"str{i}\",\"l\":\"l{i}\"}}")?;
        comma = ",";
    }
    out.write_all(b"}}}")?;
    out.flush()
}

/// The numbers below a bound in the order of their decimal texts.
struct Sorted {
    next: usize,
    left: usize,
    end: usize,
}

impl Sorted {
    fn new(end: usize) -> Sorted {
        Sorted { next: 0, left: end, end }
    }
}

impl Iterator for Sorted {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        let current = self.next;
        self.next = match current {
            0 => 1,
            _ if current * 10 < self.end => current * 10,
            _ => {
                let parent = if current + 1 < self.end { current } else { current / 10 };
                let mut next = parent + 1;
                while next.is_multiple_of(10) {
                    next /= 10;
                }
                next
            }
        };
        Some(current)
    }
}

fn io(error: std::io::Error, path: &Path) -> Error {
    Error::io(format!("cannot use `{}`", path.display())).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_in_the_order_of_their_texts() {
        for end in [1, 2, 9, 10, 11, 12, 99, 100, 101, 257, 1_000, 1_234, 20_000] {
            let mut expected: Vec<String> = (0..end).map(|i| i.to_string()).collect();
            expected.sort_unstable();
            let got: Vec<String> = Sorted::new(end).map(|i| i.to_string()).collect();
            assert_eq!(got, expected, "below {end}");
        }
    }
}
