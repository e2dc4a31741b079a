//! Random histories of the tree against a plain value: more than a million edits in all.
//!
//! `SPINNEY_TEST_SEED=7` repeats a run; `SPINNEY_TEST_TIMES=100` makes it a hundred times as long.

use std::sync::Arc;

use spinney::backends::json::{self, Json};
use spinney::backends::lmdb::{Lmdb, Options};
use spinney_conformance::folder::Stores;
use spinney_conformance::mirror::Mirror;
use spinney_conformance::model::{History, run};
use spinney_conformance::strict::Strict;
use spinney_conformance::{folder, timed};
use spinney_core::Memory;
use spinney_core::backend::Backend;

fn variable(names: [&str; 2]) -> Option<u64> {
    names.into_iter().find_map(|name| std::env::var(name).ok()?.parse().ok())
}

/// Edits of one history.
const OPERATIONS_MAX: usize = 25_000;

/// Histories of small and large transactions and maps, `thousands` edits in all.
fn follow(name: &str, thousands: u64, backend: &dyn Fn() -> Arc<dyn Backend>) {
    let seed = variable(["SPINNEY_SEED", "SPINNEY_TEST_SEED"]);
    let mut seed = seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let times = variable(["SPINNEY_TEST_TIMES", "SPINNEY_TIMES"]).unwrap_or(1);
    println!("{name}: SPINNEY_TEST_SEED={seed}");
    // Edits of a transaction and keys of a level at most, whether diffs are followed, and the share.
    let kinds = [(4, 12, true, 5), (12, 60, true, 5), (60, 300, false, 50), (25, 600, false, 40)];
    timed(&format!("random histories on {name}"), || {
        for (batch_max, keys_max, diffs, percent) in kinds {
            let mut left = (thousands * times * 10 * percent) as usize;
            while left > 0 {
                // Stores that grow for longer make comparing slow and find little more.
                let operations = left.min(OPERATIONS_MAX);
                left -= operations;
                seed += 1;
                let history = History { seed, operations, batch_max, keys_max, diffs };
                println!("{name}: {history:?}");
                run(&*backend(), &history);
            }
        }
    });
}

fn lmdb(folder: &tempfile::TempDir) -> Arc<Lmdb> {
    let name = fastrand::u64(..).to_string();
    Lmdb::open(&folder.path().join(name), Options::CREATE).expect("a new store")
}

fn json_in(folder: &tempfile::TempDir, name: &str) -> Arc<Json> {
    let options = json::Options { create: true, ..json::Options::default() };
    Json::open(&folder.path().join(name), options).expect("a JSON file")
}

fn json(folder: &tempfile::TempDir) -> Arc<Json> {
    json_in(folder, &format!("{}.json", fastrand::u64(..)))
}

#[test]
fn memory() {
    follow("memory", 400, &|| Arc::new(Memory::new()));
}

#[test]
fn memory_with_tiny_pages() {
    follow("tiny pages", 400, &|| Arc::new(Memory::with_sizes(256, 64, 1 << 30)));
}

#[test]
fn engine() {
    let folder = folder::temporary();
    follow("LMDB", 150, &|| lmdb(&folder));
}

#[test]
fn fjall() {
    let stores = Stores::default();
    follow("fjall", 60, &|| stores.fjall());
}

#[test]
fn mirror_of_memory_and_fjall_that_folds() {
    let stores = Stores::default();
    let mirror = || Arc::new(Strict::new(Mirror::new(Memory::new(), stores.folding_fjall())));
    follow("a mirror of memory and fjall", 40, &|| mirror());
}

#[test]
fn json_file() {
    let folder = folder::temporary();
    follow("a JSON file", 60, &|| json(&folder));
}

#[test]
fn mirror_of_memory_and_json() {
    let folder = folder::temporary();
    let mirror = || Arc::new(Strict::new(Mirror::new(Memory::new(), json(&folder))));
    follow("a mirror of memory and a JSON file", 40, &|| mirror());
}

#[test]
fn mirror() {
    let folder = folder::temporary();
    let mirror = || Arc::new(Strict::new(Mirror::new(Memory::new(), lmdb(&folder))));
    follow("a mirror", 60, &|| mirror());
}
