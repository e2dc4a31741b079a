//! The bounds that every run measures: the medium's sync, memory copies, a plain JSON library.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use spinney_core::{Error, Result};

use crate::clock::{Clock, Elapsed};
use crate::datastore::Documents;
use crate::datastore::document::State;
use crate::record::{Record, Status};
use crate::system::{Durability, Kind};
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

/// Measures all limits for the document with N items, syncs in `folder`.
///
/// # Errors
/// `Io` when the folder cannot be written.
pub fn measure(documents: &Documents, folder: &Path) -> Result<Vec<Record>> {
    let text = documents.text(State::Items);
    let load1 = machine::load1();
    let mut copy = vec![0; text.len()];
    let value: serde_json::Value =
        serde_json::from_slice(&text).expect("a generated document is JSON");
    let printed = serde_json::to_vec(&value).expect("a `Value` prints");
    let rows = [
        (FDATASYNC, syncs(folder)?),
        (MEMCPY, repeat(|| copy.copy_from_slice(std::hint::black_box(&text)))),
        (PARSE, repeat(|| serde_json::from_slice::<serde_json::Value>(&text))),
        (PRINT, repeat(|| serde_json::to_vec(&value))),
    ];
    let hash = canonical::hash(&printed);
    Ok(rows
        .into_iter()
        .map(|(test, (first, kept))| Record {
            test: test.to_owned(),
            size: documents.size(),
            system: "limit".to_owned(),
            kind: Kind::Limit,
            samples: kept.iter().map(|elapsed| elapsed.wall_us).collect(),
            cpu: kept.iter().map(|elapsed| elapsed.cpu_us).collect(),
            singles: Vec::new(),
            first: Some(first.wall_us),
            ops: 1,
            durability: match test {
                FDATASYNC => Durability::Durable,
                _ => Durability::None,
            },
            syncs: (test == FDATASYNC).then_some(1),
            written_bytes: (test == FDATASYNC).then_some(BLOCK_LEN_BYTES as f64),
            disk_bytes: None,
            peak_rss_bytes: process::peak_rss_bytes(),
            hash: (test == PRINT).then(|| hash.clone()),
            status: if machine::is_noisy(load1) { Status::Noisy } else { Status::Ok },
            ratio: None,
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

/// Overwrites one block after the other of a file whose blocks are all written.
fn syncs(folder: &Path) -> Result<Runs> {
    let path = folder.join("limit.bytes");
    let failed = |error: std::io::Error| {
        Error::io(format!("cannot write `{}`", path.display())).with_source(error)
    };
    let file = File::create(&path).map_err(failed)?;
    file.write_all_at(&vec![1; FILE_LEN_BYTES], 0).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    let mut block = [0; BLOCK_LEN_BYTES];
    let mut runs = Vec::with_capacity(SYNCS);
    for at in 0..=SYNCS {
        block.fill(at as u8);
        let clock = Clock::start();
        file.write_all_at(&block, (at * BLOCK_LEN_BYTES % FILE_LEN_BYTES) as u64)
            .map_err(failed)?;
        file.sync_data().map_err(failed)?;
        runs.push(clock.stop());
    }
    drop(file);
    std::fs::remove_file(&path).map_err(failed)?;
    let first = runs.remove(0);
    Ok((first, runs))
}
