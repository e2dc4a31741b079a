//! Failing disks, on a simulated one for the journal.
//!
//! The engine is fjall itself, of which a power failure leaves what its contract says: a fold as a whole
//! or not at all until it has returned, and from then on as a whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fastrand::Rng;
use spinney_conformance::folder;
use spinney_core::Value;

use super::directory::Directory;
use super::store::Store;
use super::{Fjall, JOURNAL, Options};
use crate::backend::Backend;
use crate::journal::simulated::Disk;
use crate::journal::{Segments, Sizes};
use crate::{Durability, ErrorKind, Limits, OpenOptions, Result};

/// So small that a history fills some generations.
const LIMITS: Limits =
    Limits { generation_len_bytes: 4 << 10, journaled_len_max_bytes: 9_000, ..Limits::DEFAULT };
const SIZES: Sizes = Sizes { first: 4_096, step_max: 8_192 };
const LEVELS: [Durability; 3] = [Durability::Durable, Durability::Process, Durability::None];
const HISTORIES: u64 = 12;
const LEAVES: u64 = 40;

fn open(dir: &Path, disk: &Disk<()>) -> Result<(Arc<Store>, crate::Store)> {
    let segments = Segments::new(Arc::new(disk.clone()), JOURNAL, SIZES);
    let inner = Store::open(Directory::open(dir, true)?, segments, LIMITS)?;
    inner.keep_still();
    let backend: Arc<dyn Backend> = Fjall::over(Arc::clone(&inner), Options::EXISTING);
    Ok((inner, OpenOptions::new().over(backend, None)))
}

#[test]
fn after_a_failed_sync_writes_are_refused_until_the_store_is_opened_again() -> Result<()> {
    let folder = folder::temporary();
    let disk = Disk::new();
    let (inner, store) = open(folder.path(), &disk)?;
    store.write(|tx| tx.set("/t/n", &1.into()))?;
    disk.set_fails_syncs(true);
    let failed = store.write(|tx| tx.set("/t/n", &2.into())).expect_err("the sync fails");
    assert_eq!(failed.kind(), ErrorKind::Io, "{failed}");
    disk.set_fails_syncs(false);
    let refused = store.write(|tx| tx.set("/t/n", &3.into())).expect_err("refused");
    assert_eq!(refused.kind(), ErrorKind::Closed, "{refused}");
    assert_eq!(store.checkpoint().expect_err("refused").kind(), ErrorKind::Closed);
    assert_eq!(store.compact().expect_err("refused").kind(), ErrorKind::Closed);
    inner.sync(1)?;
    assert!(inner.sync(2).is_err(), "what may be lost is not promised");
    assert_eq!(inner.wait_durable(0, std::time::Duration::ZERO), 1);
    assert!(store.read()?.get("/t/n")?.is_some(), "reads go on");
    drop((inner, store));
    let (_inner, store) = open(folder.path(), &disk)?;
    store.write(|tx| tx.set("/t/m", &4.into()))?;
    Ok(())
}

/// The numbered changes: what the store holds follows from how many were made.
fn change(store: &crate::Store, n: u64, level: Durability) {
    let len = if n.is_multiple_of(23) { 12_000 } else { n % 90 } as usize;
    let edit = |tx: &mut crate::Transaction<'_>| {
        tx.set("/t/n", &n.into())?;
        tx.set(&format!("/t/leaves/{}", n % LEAVES), &format!("{n} {}", "x".repeat(len)).into())
    };
    store.write_with(level, edit).expect("commits");
}

fn check(store: &crate::Store) -> u64 {
    let snapshot = store.read().expect("a snapshot");
    let n = match snapshot.get("/t/n").expect("it reads") {
        Some(Value::Number(number)) => number.as_u64().expect("a small number"),
        _ => 0,
    };
    for leaf in 0..LEAVES {
        let last = (n.saturating_sub(LEAVES - 1)..=n).find(|n| n % LEAVES == leaf && *n > 0);
        let text = last.map(|n| {
            let len = if n.is_multiple_of(23) { 12_000 } else { n % 90 } as usize;
            Value::from(format!("{n} {}", "x".repeat(len)))
        });
        let read = snapshot.get(&format!("/t/leaves/{leaf}")).expect("it reads");
        assert_eq!(read, text, "leaf {leaf} after {n} changes");
    }
    let report = snapshot.check().expect("it reads");
    assert!(report.damaged.is_empty(), "{report:?}");
    n
}

/// The store's directory without what lies on the simulated disk, of a moment at which no tables were
/// merged.
fn copy(from: &Path, to: &Path) {
    loop {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        list(from, &mut before);
        let copied = try_copy(from, to);
        list(from, &mut after);
        if copied.is_ok() && before == after {
            return;
        }
        fs::remove_dir_all(to).expect("remove");
    }
}

fn list(dir: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        list(&path, found);
        found.push(path);
    }
    found.sort();
}

fn try_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            try_copy(&entry.path(), &target)?;
        } else if entry.path().extension().is_some_and(|extension| extension == "jnl") {
            // The engine's own journal is empty, and as long as a thousand stores of this test.
            File::create(target)?.set_len(entry.metadata()?.len())?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

#[test]
fn a_power_failure_leaves_all_that_was_durable() {
    let seed = std::env::var("SPINNEY_TEST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| fastrand::u64(..));
    println!("SPINNEY_TEST_SEED={seed}");
    let mut random = Rng::with_seed(seed);
    let folder = folder::temporary();
    let (mut states, mut folds) = (0, 0);
    for history in 0..HISTORIES {
        let dir = folder.path().join(format!("history {history}"));
        let disk = Disk::new();
        let (inner, store) = open(&dir, &disk).expect("opens");
        let since = disk.copy();
        let mut engine = folder.path().join("engine before");
        copy(&dir, &engine);
        let (mut changes, mut durable, mut steps) = (0, 0, 0);
        for act in 0..60 {
            let folded = inner.folds();
            let level = *random.choice(LEVELS.iter()).expect("three levels");
            match random.u8(..20) {
                0 => inner.checkpoint().expect("folds"),
                1 => inner.fold_frozen().expect("folds"),
                _ => {
                    changes += 1;
                    change(&store, changes, level);
                }
            }
            let is_fold = inner.folds() != folded;
            let after = folder.path().join(format!("engine after {act}"));
            let before = engine.clone();
            if is_fold {
                copy(&dir, &after);
                engine = after;
                folds += 1;
            }
            let mut replay = disk.replay(&since);
            let mut end = 0;
            while replay.step().is_some() {
                end += 1;
            }
            // Within a fold the order of engine and journal is not known: the moments before and after.
            let moments = match is_fold {
                true => vec![(steps, &before), (steps, &engine), (end, &engine)],
                false => vec![(random.usize(steps..=end), &engine)],
            };
            for (moment, engine) in moments {
                if random.u8(..3) > 0 {
                    continue;
                }
                let mut replay = disk.replay(&since);
                (0..moment).for_each(|_| drop(replay.step()));
                let left = replay.after_power_failure(&mut random);
                let copied = folder.path().join("left");
                copy(engine, &copied);
                let (inner, store) = open(&copied, &left).unwrap_or_else(|error| panic!("{error}"));
                let there = check(&store);
                assert!((durable..=changes).contains(&there), "{there} of {durable} to {changes}");
                drop((inner, store));
                fs::remove_dir_all(&copied).expect("remove");
                states += 1;
            }
            steps = end;
            if is_fold {
                fs::remove_dir_all(&before).expect("remove");
            }
            durable = inner.wait_durable(u64::MAX, std::time::Duration::ZERO);
        }
        drop((inner, store));
        fs::remove_dir_all(&engine).expect("remove");
    }
    println!("{states} states after a power failure, {folds} folds");
    assert!(states > 100 && folds > HISTORIES, "{states} states, {folds} folds");
}
