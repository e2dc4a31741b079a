//! The bounds that every run measures: the medium's sync, memory copies, a plain JSON library.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use spinney_core::{Error, Result};

use crate::clock::{Clock, Elapsed};
use crate::options::Mode;
use crate::record::{Record, Status};
use crate::system::{Durability, Kind, Transport};
use crate::{canonical, machine, process};

/// Name of the row that overwrites 4 KiB and syncs.
pub const FDATASYNC: &str = "fdatasync 4 KiB";
/// Name of the row that copies the JSON text.
pub const MEMCPY: &str = "memcpy";
/// Name of the row that parses the JSON text to serde_json's `Value`.
pub const PARSE: &str = "parse";
/// Name of the row that prints that `Value`.
pub const PRINT: &str = "print";

const BLOCK_LEN_BYTES: usize = 4096;
const FILE_LEN_BYTES: usize = 64 * BLOCK_LEN_BYTES;
const SYNCS: usize = 500;
const RUNS_MAX: usize = 30;
const RUNS_MIN: usize = 3;
const BUDGET: Duration = Duration::from_millis(300);

/// Measures all limits for a JSON text of N = `size` parts, syncs in `folder`.
///
/// # Errors
/// `Io` when the folder cannot be written.
pub fn measure(text: &[u8], size: usize, folder: &Path) -> Result<Vec<Record>> {
    let load1 = machine::load1();
    let mut copy = vec![0; text.len()];
    let value: serde_json::Value =
        serde_json::from_slice(text).expect("a generated document is JSON");
    let printed = serde_json::to_vec(&value).expect("a `Value` prints");
    let rows = [
        (FDATASYNC, syncs(folder)?),
        (MEMCPY, repeat(|| copy.copy_from_slice(std::hint::black_box(text)))),
        (PARSE, repeat(|| serde_json::from_slice::<serde_json::Value>(text))),
        (PRINT, repeat(|| serde_json::to_vec(&value))),
    ];
    let hash = canonical::hash(&printed);
    Ok(rows
        .into_iter()
        .map(|(test, (first, kept))| Record {
            test: test.to_owned(),
            size,
            system: "limit".to_owned(),
            kind: Kind::Limit,
            transport: Transport::Embedded,
            mode: Mode::Honest,
            access: "warm",
            samples: kept.iter().map(|elapsed| elapsed.wall_us).collect(),
            cpu: kept.iter().map(|elapsed| elapsed.cpu_us).collect(),
            singles: Vec::new(),
            limit: Vec::new(),
            first: Some(first.wall_us),
            unit: "us",
            ops: 1,
            ops_of_sample: 1,
            durability: match test {
                FDATASYNC => Durability::Durable,
                _ => Durability::None,
            },
            syncs: (test == FDATASYNC).then_some(1.0),
            system_calls: None,
            written_bytes: (test == FDATASYNC).then_some(BLOCK_LEN_BYTES as f64),
            disk_bytes: None,
            peak_rss_bytes: process::peak_rss_bytes(),
            hash: (test == PRINT).then(|| hash.clone()),
            status: if machine::is_noisy(load1) { Status::Noisy } else { Status::Ok },
            ratio: None,
            noop_tries: None,
            counts: None,
            tenths: None,
            notes: Vec::new(),
            load1,
            time: jiff::Timestamp::now().to_string(),
        })
        .collect())
}

type Runs = (Elapsed, Vec<Elapsed>);

/// The result is dropped after the clock stopped.
fn repeat<T>(mut work: impl FnMut() -> T) -> Runs {
    let mut once = || {
        let clock = Clock::start();
        let result = std::hint::black_box(work());
        let elapsed = clock.stop();
        drop(result);
        elapsed
    };
    let first = once();
    let begin = Instant::now();
    let mut kept = Vec::new();
    while kept.len() < RUNS_MIN || (kept.len() < RUNS_MAX && begin.elapsed() < BUDGET) {
        kept.push(once());
    }
    (first, kept)
}

fn syncs(folder: &Path) -> Result<Runs> {
    let mut file = SyncFile::new(folder)?;
    let first = file.overwrite()?;
    let kept = (0..SYNCS).map(|_| file.overwrite()).collect::<Result<_>>()?;
    Ok((first, kept))
}

/// Takes single samples of a limit, between the tries of the row that it bounds.
pub enum Sampler {
    /// Of [`FDATASYNC`].
    Sync(Box<SyncFile>),
    /// Of [`PARSE`].
    Parse(Rc<[u8]>),
    /// Of [`PRINT`].
    Print(serde_json::Value),
}

impl Sampler {
    /// A sampler of syncs in `folder`.
    ///
    /// # Errors
    /// `Io` when the folder cannot be written.
    pub fn syncs(folder: &Path) -> Result<Sampler> {
        Ok(Sampler::Sync(Box::new(SyncFile::new(folder)?)))
    }

    /// A sampler of printing a JSON text.
    pub fn print(text: &[u8]) -> Sampler {
        Sampler::Print(serde_json::from_slice(text).expect("a generated document is JSON"))
    }

    /// One sample.
    ///
    /// # Errors
    /// `Io` when the block cannot be written.
    pub fn sample(&mut self) -> Result<Elapsed> {
        let clock = Clock::start();
        Ok(match self {
            Sampler::Sync(file) => file.overwrite()?,
            Sampler::Parse(text) => {
                let value = serde_json::from_slice::<serde_json::Value>(text);
                let elapsed = clock.stop();
                drop(std::hint::black_box(value));
                elapsed
            }
            Sampler::Print(value) => {
                let text = serde_json::to_vec(value);
                let elapsed = clock.stop();
                drop(std::hint::black_box(text));
                elapsed
            }
        })
    }
}

/// A file whose blocks are all written, of which one block after the other is overwritten.
pub struct SyncFile {
    file: File,
    path: PathBuf,
    block: [u8; BLOCK_LEN_BYTES],
    at: usize,
}

impl SyncFile {
    fn new(folder: &Path) -> Result<SyncFile> {
        let path = folder.join("limit.bytes");
        let made = File::create(&path).and_then(|file| {
            file.write_all_at(&vec![1; FILE_LEN_BYTES], 0)?;
            file.sync_all()?;
            Ok(file)
        });
        let file = made.map_err(|error| cannot_write(error, &path))?;
        Ok(SyncFile { file, path, block: [0; BLOCK_LEN_BYTES], at: 0 })
    }

    fn overwrite(&mut self) -> Result<Elapsed> {
        self.block.fill(self.at as u8);
        let offset = (self.at * BLOCK_LEN_BYTES % FILE_LEN_BYTES) as u64;
        self.at += 1;
        let clock = Clock::start();
        let written = self.file.write_all_at(&self.block, offset);
        written.and_then(|()| self.file.sync_data()).map_err(|e| cannot_write(e, &self.path))?;
        Ok(clock.stop())
    }
}

impl Drop for SyncFile {
    fn drop(&mut self) {
        // It stands in a folder of the run, which is removed anyway.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn cannot_write(error: std::io::Error, path: &Path) -> Error {
    Error::io(format!("cannot write `{}`", path.display())).with_source(error)
}
