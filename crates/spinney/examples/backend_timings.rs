//! Prints what the LMDB backend's calls cost, beside a raw 4 kB write and `fdatasync`.
//!
//! `cargo run --release -p spinney --example backend_timings [FOLDER]`; the folder should be on a
//! real disk, and is `target/` by default.

use std::fs::File;
use std::hint::black_box;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use spinney::backend::{Backend, Batch, Change};
use spinney::backends::lmdb::{Lmdb, Options};
use spinney::layout::{self, RecordKind};
use spinney::overlay::Overlay;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let parent = std::env::args().nth(1).map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let folder = tempfile::TempDir::new_in(parent)?;
    let lmdb = Lmdb::open(&folder.path().join("store"), Options::CREATE)?;
    fill(&*lmdb, 0, 10_000)?;
    lmdb.sync(1)?;

    let mut i = 0;
    let mut next_key = || {
        i = (i * 7_919 + 13) % 10_000;
        page_key(i)
    };
    report("snapshot: begin + get + drop", 200_000, || {
        let snapshot = lmdb.snapshot().expect("snapshot");
        black_box(snapshot.get(&next_key()).expect("get"));
    });
    report("snapshot: begin + drop", 200_000, || {
        black_box(lmdb.snapshot().expect("snapshot"));
    });
    let pinned = lmdb.snapshot()?;
    report("get in an open snapshot", 200_000, || {
        black_box(pinned.get(&next_key()).expect("get"));
    });
    report("floor in an open snapshot", 200_000, || {
        black_box(pinned.floor(&page_key(0), &next_key()).expect("floor"));
    });
    drop(pinned);

    let mut overlay = Overlay::default();
    let value: Arc<[u8]> = Arc::from([7; 200]);
    let mut staged = 0;
    report("overlay: stage a record, no snapshot", 100_000, || {
        staged += 1;
        overlay.stage(page_key(staged).into(), Some(Arc::clone(&value)));
    });
    report("overlay: stage a record, a snapshot each", 100_000, || {
        staged += 7;
        let snapshot = overlay.clone();
        overlay.stage(page_key(staged % 100_000).into(), Some(Arc::clone(&value)));
        black_box(snapshot);
    });

    report("staged commit of 3 records under a guard", 20_000, || {
        commit(&*lmdb, vec![put(&next_key(), &[1; 200]), put(&next_key(), &[2; 200])]);
    });
    report("snapshot + get over staged records", 20_000, || {
        let snapshot = lmdb.snapshot().expect("snapshot");
        black_box(snapshot.get(&next_key()).expect("get"));
    });
    lmdb.sync(lmdb.snapshot()?.revision()?)?;

    let mut raw = raw_file(folder.path())?;
    let page = [7; 4_096];
    for _ in 0..2 {
        report("raw 4 kB write + fdatasync", 1_000, || {
            raw.rewind().and_then(|()| raw.write_all(&page)).expect("write");
            raw.sync_data().expect("fdatasync");
        });
        report("commit of 3 records + sync", 1_000, || {
            let changes = vec![put(&next_key(), &[1; 200]), put(&next_key(), &[2; 200])];
            let revision = commit(&*lmdb, changes);
            lmdb.sync(revision).expect("sync");
        });
    }
    concurrent_commits(&lmdb)?;
    let mut first = 20_000;
    report("batch of 5 MB, durable", 10, || {
        let revision = lmdb.snapshot().expect("snapshot").revision().expect("revision");
        fill(&*lmdb, revision, first).expect("fill");
        lmdb.sync(revision + 1).expect("sync");
        first += 10_000;
    });
    Ok(())
}

/// Eight threads that commit and sync as fast as they can.
fn concurrent_commits(lmdb: &Lmdb) -> spinney::Result<()> {
    const THREADS: u64 = 8;
    const EACH: u64 = 500;
    let (began, before) = (Instant::now(), lmdb.engine_transactions());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for _ in 0..EACH {
                    let revision = commit(lmdb, vec![put(&page_key(thread), &[1; 200])]);
                    lmdb.sync(revision).expect("sync");
                }
            });
        }
    });
    let (commits, each) = (THREADS * EACH, began.elapsed() / (THREADS * EACH) as u32);
    let transactions = lmdb.engine_transactions() - before;
    println!(
        "{THREADS} threads, synced: {each:.2?} a commit; {commits} took {transactions} engine transactions"
    );
    Ok(())
}

fn page_key(i: u64) -> [u8; 21] {
    let mut key = [0; 21];
    key[..13].copy_from_slice(&layout::prefix(1, RecordKind::Page, 1));
    key[13..].copy_from_slice(&i.to_be_bytes());
    key
}

fn put(key: &[u8], value: &[u8]) -> Change {
    Change::Put(key.into(), value.into())
}

fn commit_at(backend: &dyn Backend, base: u64, mut changes: Vec<Change>) -> u64 {
    changes.push(put(&layout::head_key(0), &(base + 1).to_be_bytes()));
    let batch = Batch { bases: vec![(1, base)], revision: base + 1, changes, ..Batch::default() };
    black_box(backend.commit(batch).expect("commit"));
    base + 1
}

fn commit(backend: &dyn Backend, changes: Vec<Change>) -> u64 {
    let _guard = backend.write_guard(0).expect("write guard");
    let base = backend.snapshot().expect("snapshot").revision().expect("revision");
    commit_at(backend, base, changes)
}

/// 10 000 records of 500 bytes.
fn fill(backend: &dyn Backend, base: u64, first: u64) -> spinney::Result<()> {
    let changes = (first..first + 10_000).map(|i| put(&page_key(i), &[i as u8; 500])).collect();
    commit_at(backend, base, changes);
    Ok(())
}

fn raw_file(folder: &Path) -> std::io::Result<File> {
    let mut file = File::create(folder.join("raw"))?;
    file.write_all(&[0; 4_096])?;
    file.sync_all()?;
    Ok(file)
}

fn report(name: &str, times: usize, mut call: impl FnMut()) {
    let mut spent: Vec<Duration> = Vec::with_capacity(times);
    let all = Instant::now();
    for _ in 0..times {
        let began = Instant::now();
        call();
        spent.push(began.elapsed());
    }
    let mean = all.elapsed() / times as u32;
    spent.sort_unstable();
    let (p50, p99) = (spent[times / 2], spent[times * 99 / 100]);
    println!("{name:44} p50 {p50:>10.2?}  p99 {p99:>10.2?}  mean {mean:>10.2?}");
}
