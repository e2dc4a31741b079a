//! A process that dies within a checkpoint, when the engine's file has it and nobody knows.
//!
//! LMDB writes a state and then tells the other processes of it; a kill between the two shows them the
//! state before until the next of them writes.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use spinney_conformance::child::{STORE, kill, said, say};
use spinney_conformance::folder;

use super::{Lmdb, Options};
use crate::{Limits, OpenOptions, Result, Store};

/// Folds when it is told to.
const LIMITS: Limits = Limits { fold_after: Duration::from_secs(3_600), ..Limits::DEFAULT };

fn open(dir: &Path) -> Result<Store> {
    OpenOptions::new().limits(LIMITS).open(&format!("lmdb:{}", dir.display()))
}

#[test]
fn commits_after_a_death_within_a_checkpoint_stay() -> Result<()> {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = open(&dir)?;
    store.write(|tx| tx.set("/t/first", &1_u64.into()))?;
    let mut child = Command::new(std::env::current_exe().expect("the test binary"))
        .args(["backends::lmdb::killed::child", "--exact", "--nocapture", "--test-threads=1"])
        .env(STORE, &dir)
        .stdout(Stdio::piped())
        .spawn()
        .expect("a child process");
    assert_eq!(said(&mut child).next().as_deref(), Some("has committed"));
    kill(child);
    store.write(|tx| tx.set("/t/third", &3_u64.into()))?;
    store.checkpoint()?;
    check(&store)?;
    drop(store);
    check(&open(&dir)?)
}

fn check(store: &Store) -> Result<()> {
    let snapshot = store.read()?;
    for (name, number) in [("first", 1_u64), ("second", 2), ("third", 3)] {
        assert_eq!(snapshot.get(&format!("/t/{name}"))?, Some(number.into()), "{name}");
    }
    assert!(snapshot.check()?.is_sound());
    Ok(())
}

#[test]
fn child() -> Result<()> {
    let Some(dir) = std::env::var_os(STORE) else { return Ok(()) };
    let lmdb = Lmdb::open(Path::new(&dir), Options { limits: LIMITS, ..Options::CREATE })?;
    let store = OpenOptions::new().over(lmdb.clone(), None);
    store.write(|tx| tx.set("/t/second", &2_u64.into()))?;
    let engine = &lmdb.store.engine;
    let known = engine.snapshot(())?.transaction();
    store.checkpoint()?;
    assert_eq!(engine.snapshot(())?.transaction(), known + 1);
    engine.stop_within_commit(known)?;
    assert_eq!(engine.snapshot(())?.transaction(), known);
    say("has committed");
    loop {
        std::thread::park();
    }
}
