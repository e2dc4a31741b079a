//! The LMDB backend's own behaviour: directories, processes, crashes and full disks.
//!
//! Other processes are this binary again, which runs `child` with a role from the environment.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use spinney::backend::{Backend, Batch, Change, Outcome, Revision};
use spinney::backends::lmdb::{Lmdb, Options};
use spinney::layout::{self, RecordKind};
use spinney::{Error, ErrorKind, Limits, OpenOptions};
use spinney_conformance::child::{self, ROLE, STORE, child_command, kill, said, say, start};
use spinney_conformance::folder;

const CREATE: Options = Options::CREATE;
const EXISTING: Options = Options::EXISTING;
const READ_ONLY: Options = Options::READ_ONLY;

fn open(dir: &Path) -> Arc<Lmdb> {
    Lmdb::open(dir, CREATE).expect("a store")
}

/// A store whose journal is not folded while nothing fills it, however slow this machine is.
fn open_unfolded(dir: &Path) -> Arc<Lmdb> {
    let limits = Limits { fold_after: Duration::from_secs(3_600), ..Limits::DEFAULT };
    Lmdb::open(dir, Options { limits, ..CREATE }).expect("a store")
}

fn refused(dir: &Path, options: Options) -> Error {
    match Lmdb::open(dir, options) {
        Ok(_) => panic!("`{}` opened", dir.display()),
        Err(error) => {
            assert!(!error.to_string().contains('\n'), "one line: {error}");
            error
        }
    }
}

fn key(name: u64) -> Vec<u8> {
    let mut key = layout::prefix(1, RecordKind::Page, 1).to_vec();
    key.extend_from_slice(&name.to_be_bytes());
    key
}

fn put(key: &[u8], value: &[u8]) -> Change {
    Change::Put(key.into(), value.into())
}

fn batch_after(base: Revision, mut changes: Vec<Change>) -> Batch {
    let revision = base + 1;
    for tree in [0, 1] {
        changes.push(put(&layout::head_key(tree), &revision.to_be_bytes()));
    }
    Batch { bases: vec![(1, base)], revision, changes, ..Batch::default() }
}

fn commit(lmdb: &Lmdb, changes: Vec<Change>) -> Revision {
    let _guard = lmdb.write_guard(0).expect("write guard");
    let base = revision(lmdb);
    let outcome = lmdb.commit(batch_after(base, changes)).expect("commit");
    assert_eq!(outcome, Outcome::Committed(base + 1), "nobody commits beside a guard");
    base + 1
}

fn commit_and_sync(lmdb: &Lmdb, changes: Vec<Change>) -> Revision {
    let revision = commit(lmdb, changes);
    lmdb.sync(revision).expect("sync");
    revision
}

fn revision(lmdb: &Lmdb) -> Revision {
    lmdb.snapshot().expect("snapshot").revision().expect("revision")
}

fn get(lmdb: &Lmdb, key: &[u8]) -> Option<Vec<u8>> {
    lmdb.snapshot().expect("snapshot").get(key).expect("get").map(Vec::from)
}

fn value_of(lmdb: &Lmdb, key: &[u8]) -> u64 {
    get(lmdb, key).map_or(0, |value| u64::from_be_bytes(value.try_into().expect("8 bytes")))
}

fn value_count(lmdb: &Lmdb) -> usize {
    let snapshot = lmdb.snapshot().expect("snapshot");
    let bounds = (std::ops::Bound::Included(&key(0)[..]), std::ops::Bound::Unbounded);
    snapshot.range(bounds, spinney::backend::Direction::Forward).expect("range").count()
}

// Other processes.

#[test]
fn child() {
    let Some((role, dir)) = child::role() else { return };
    match role.as_str() {
        "create" => drop(open(&dir)),
        "count" => count_up(&open(&dir), 200),
        "write and sync" => write_for_ever(&open_unfolded(&dir), true),
        "write" => write_for_ever(&open(&dir), false),
        "read" => hold_snapshots(&open(&dir), 1_000),
        "hog" => hog(&open(&dir)),
        "hold a snapshot" => hold_a_snapshot(&open(&dir)),
        "answer" => answer(&open(&dir)),
        "write and fold" => write_and_fold(&open(&dir)),
        "read a medium" => read_a_medium(&dir),
        "fill the disk" => fill_the_disk(&open(&dir)),
        other => panic!("no role `{other}`"),
    }
}

fn count_up(lmdb: &Lmdb, times: u64) {
    for _ in 0..times {
        let guard = lmdb.write_guard(0).expect("write guard");
        let base = revision(lmdb);
        let sum = value_of(lmdb, &key(0));
        let batch = batch_after(base, vec![put(&key(0), &(sum + 1).to_be_bytes())]);
        assert_eq!(lmdb.commit(batch).expect("commit"), Outcome::Committed(base + 1));
        drop(guard);
        if sum.is_multiple_of(3) {
            lmdb.sync(base + 1).expect("sync");
        }
    }
}

/// Commits revision after revision, each with a key of its own.
fn write_for_ever(lmdb: &Lmdb, is_synced: bool) {
    loop {
        let next = revision(lmdb) + 1;
        commit(lmdb, vec![put(&key(next), &next.to_be_bytes()), put(&key(0), &next.to_be_bytes())]);
        if is_synced {
            lmdb.sync(next).expect("sync");
        }
        if is_synced || next.is_multiple_of(64) {
            say(next);
        }
    }
}

fn hold_snapshots(lmdb: &Lmdb, count: usize) {
    let held: Vec<_> = (0..count).map(|_| lmdb.snapshot().expect("snapshot")).collect();
    say(held.len());
    thread::sleep(Duration::from_secs(60));
}

/// Holds a snapshot and reads it when it is asked to; takes a new one when it is refused.
fn hold_a_snapshot(lmdb: &Lmdb) {
    let mut held = lmdb.snapshot().expect("a snapshot");
    say("holds");
    for _ in std::io::stdin().lines() {
        match held.get(&key(0)) {
            Ok(value) => say(value.map_or(0, |value| value.len())),
            Err(error) => {
                drop(held);
                held = lmdb.snapshot().expect("a new snapshot");
                assert_eq!(error.kind(), ErrorKind::LimitExceeded);
                say(error);
            }
        }
    }
}

fn hog(lmdb: &Lmdb) {
    say("started");
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        commit(lmdb, vec![put(&key(1), b"hog")]);
    }
}

/// Says what it sees when it is asked to, and commits one more before it does.
fn answer(lmdb: &Lmdb) {
    say("ready");
    for line in std::io::stdin().lines() {
        let expected: u64 = line.expect("a line").parse().expect("a number");
        let seen = value_of(lmdb, &key(1));
        assert_eq!(seen, expected, "an answered commit of another process");
        let revision = commit(lmdb, vec![put(&key(1), &(seen + 1).to_be_bytes())]);
        lmdb.flush(revision).expect("flush");
        say(seen + 1);
    }
}

/// Commits revision after revision and folds each into the engine.
fn write_and_fold(lmdb: &Lmdb) {
    loop {
        let next = revision(lmdb) + 1;
        commit(lmdb, vec![put(&key(next), &next.to_be_bytes()), put(&key(0), &next.to_be_bytes())]);
        lmdb.flush(next).expect("flush");
        say(next);
        lmdb.checkpoint().expect("checkpoint");
    }
}

#[test]
fn processes_see_each_others_commits_at_once() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let lmdb = open(&dir);
    let mut child = child_command("answer", &dir).stdin(Stdio::piped()).spawn().expect("a child");
    let mut asked = child.stdin.take().expect("stdin");
    let mut words = said(&mut child);
    assert_eq!(words.next().as_deref(), Some("ready"));
    for round in 0..3_000_u64 {
        // Long enough values for several generations.
        let value = vec![round as u8; 12_000];
        let (own, other) = (2 * round + 1, 2 * round + 2);
        let revision = commit(&lmdb, vec![put(&key(1), &own.to_be_bytes()), put(&key(2), &value)]);
        match round % 3 {
            0 => lmdb.sync(revision).expect("sync"),
            _ => lmdb.flush(revision).expect("flush"),
        }
        if round % 500 == 77 {
            lmdb.checkpoint().expect("checkpoint");
        }
        writeln!(asked, "{own}").expect("the child listens");
        assert_eq!(words.next(), Some(other.to_string()));
        assert_eq!(value_of(&lmdb, &key(1)), other);
        assert_eq!(get(&lmdb, &key(2)), Some(value));
    }
    drop(asked);
    assert!(child.wait().expect("wait").success());
}

#[test]
fn a_checkpoint_may_be_killed_at_any_step() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..100 {
        let mut child = start("write and fold", &dir);
        let mut words = said(&mut child);
        let first = words.next().expect("a commit");
        thread::sleep(Duration::from_micros(random.u64(..3_000)));
        kill(child);
        let last = words.last().unwrap_or(first);
        check_history(&open(&dir), last.parse().expect("a revision"));
    }
}

/// What a killed process leaves behind, cut and changed anywhere.
#[test]
fn a_damaged_journal_is_found_or_loses_its_unsynced_tail() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    drop(open(&dir));
    let mut child = start("write and sync", &dir);
    let last = said(&mut child).take(40).last().expect("a synced commit");
    kill(child);
    let synced: Revision = last.parse().expect("a revision");
    let file = dir.join("journal.1");
    let whole = fs::read(&file).expect("read");
    let used = whole.iter().rposition(|&byte| byte != 0).expect("records") + 1;
    let (mut found, mut cut) = (0, 0);
    for at in (0..used).step_by(29) {
        let copy = folder.path().join("copy");
        for truncate in [false, true] {
            fs::create_dir(&copy).expect("mkdir");
            for name in ["data.mdb", "spinney"] {
                fs::copy(dir.join(name), copy.join(name)).expect("copy");
            }
            let mut bytes = whole.clone();
            match truncate {
                true => bytes.truncate(at.max(1)),
                false => bytes[at] ^= 0x10,
            }
            fs::write(copy.join("journal.1"), bytes).expect("write");
            match Lmdb::open(&copy, EXISTING) {
                // The last record that was synced has no successor that knows it.
                Ok(lmdb) => {
                    assert!(!truncate, "{at}");
                    check_history(&lmdb, synced - 1);
                    cut += 1;
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupted, "{at}: {error}");
                    assert!(error.to_string().contains("journal.1"), "{at}: {error}");
                    found += 1;
                }
            }
            fs::remove_dir_all(&copy).expect("remove");
        }
    }
    println!("{found} damages found, {cut} tails cut");
    assert!(found > cut);
}

#[test]
fn a_backup_from_a_reader_has_what_is_in_the_journal() {
    let folder = folder::temporary();
    let (dir, target) = (folder.path().join("store"), folder.path().join("copy"));
    drop(open(&dir));
    let mut child = start("write and sync", &dir);
    let last = said(&mut child).take(20).last().expect("a synced commit");
    kill(child);
    Lmdb::open(&dir, READ_ONLY).expect("a reader").backup(&target).expect("backup");
    check_history(&open(&target), last.parse().expect("a revision"));
}

#[test]
fn several_processes_lose_nothing() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let lmdb = open(&dir);
    let mut children: Vec<Child> = (0..3).map(|_| start("count", &dir)).collect();
    count_up(&lmdb, 200);
    lmdb.sync(revision(&lmdb)).expect("sync");
    for child in &mut children {
        assert!(child.wait().expect("wait").success());
    }
    assert_eq!(value_of(&lmdb, &key(0)), 800);
    assert_eq!(revision(&lmdb), 800);
}

#[test]
fn a_busy_process_lets_another_one_write() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let lmdb = open(&dir);
    let mut hog = start("hog", &dir);
    assert!(said(&mut hog).next().is_some());
    for _ in 0..10 {
        commit_and_sync(&lmdb, vec![put(&key(2), b"guest")]);
    }
    kill(hog);
}

#[test]
fn waiting_sees_commits_of_other_processes() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let lmdb = open(&dir);
    let mut child = start("count", &dir);
    assert!(lmdb.wait(0, Duration::from_secs(60)).expect("wait") > 0);
    assert!(child.wait().expect("wait").success());
    assert_eq!(lmdb.wait(199, Duration::from_secs(60)).expect("wait"), 200);
}

#[test]
fn synced_commits_survive_a_killed_writer() {
    for round in 0..20 {
        let folder = folder::temporary();
        let dir = folder.path().join("store");
        drop(open(&dir));
        let mut child = start("write and sync", &dir);
        let last = said(&mut child).take(5 + round * 7).last().expect("a synced commit");
        kill(child);
        check_history(&open(&dir), last.parse().expect("a revision"));
    }
}

#[test]
fn a_killed_writer_that_never_syncs_leaves_one_revision() {
    for round in 0..20 {
        let folder = folder::temporary();
        let dir = folder.path().join("store");
        drop(open(&dir));
        let mut child = start("write", &dir);
        assert!(said(&mut child).take(1 + round * 20).last().is_some());
        kill(child);
        let lmdb = open(&dir);
        check_history(&lmdb, 0);
        let reached = revision(&lmdb);
        assert_eq!(commit_and_sync(&lmdb, vec![put(&key(0), b"01234567")]), reached + 1);
    }
}

/// Every revision up to the head left its key, and none above it did.
fn check_history(lmdb: &Lmdb, synced: Revision) {
    let head = revision(lmdb);
    assert!(head >= synced, "revision {synced} was synced and {head} is left");
    for revision in 1..=head {
        assert_eq!(value_of(lmdb, &key(revision)), revision, "of {head}");
    }
    assert_eq!(get(lmdb, &key(head + 1)), None);
    assert_eq!(value_of(lmdb, &key(0)), head);
}

#[test]
fn slots_of_dead_readers_are_freed() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let lmdb = open(&dir);
    let mut child = start("read", &dir);
    assert_eq!(said(&mut child).next().as_deref(), Some("1000"));
    let mut held = Vec::new();
    let full = loop {
        match lmdb.snapshot() {
            Ok(snapshot) => held.push(snapshot),
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), ErrorKind::Busy, "{full}");
    assert!(held.len() < 100);
    kill(child);
    for _ in 0..100 {
        held.push(lmdb.snapshot().expect("a dead reader's slot"));
    }
}

// Sharing within a process.

#[test]
fn concurrent_commits_share_syncs() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 100;
    let folder = folder::temporary();
    let lmdb = open(&folder.path().join("store"));
    let before = lmdb.syncs();
    let all = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (lmdb, all) = (&lmdb, &all);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let revision = commit(lmdb, vec![put(&key(thread), &round.to_be_bytes())]);
                    all.wait();
                    lmdb.sync(revision).expect("sync");
                    all.wait();
                }
            });
        }
    });
    let syncs = lmdb.syncs() - before;
    println!("{} commits took {syncs} syncs", THREADS * ROUNDS);
    assert_eq!(revision(&lmdb), THREADS * ROUNDS);
    assert!(syncs < THREADS * ROUNDS / 2);
}

#[test]
fn what_nobody_syncs_is_written_soon() {
    let folder = folder::temporary();
    let lmdb = open(&folder.path().join("store"));
    for _ in 0..3 {
        let before = (lmdb.syncs(), lmdb.engine_transactions());
        commit(&lmdb, vec![put(&key(1), b"1")]);
        let began = Instant::now();
        while (lmdb.syncs(), lmdb.engine_transactions()) == before {
            assert!(began.elapsed() < Duration::from_secs(60), "nobody wrote it");
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn snapshots_are_one_state_while_flushes_run() {
    let folder = folder::temporary();
    let lmdb = open(&folder.path().join("store"));
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for i in 1..=3_000_u64 {
                let mut changes =
                    vec![put(&key(1), &i.to_be_bytes()), put(&key(2), &i.to_be_bytes())];
                if i.is_multiple_of(500) {
                    // Too big to be staged.
                    changes.extend((0..400).map(|n| put(&key(1_000 + n), &[7; 4_000])));
                }
                commit(&lmdb, changes);
            }
            ended.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            while !ended.load(Ordering::SeqCst) {
                lmdb.sync(revision(&lmdb)).expect("sync");
            }
        });
        while !ended.load(Ordering::SeqCst) {
            let snapshot = lmdb.snapshot().expect("snapshot");
            let head = snapshot.revision().expect("revision");
            for name in [1, 2] {
                let value = snapshot.get(&key(name)).expect("get").map(Vec::from);
                assert_eq!(value, (head > 0).then(|| head.to_be_bytes().to_vec()));
            }
        }
    });
}

#[test]
fn a_store_opens_once_and_again() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let (first, second) = (open(&dir), open(&folder.path().join(".").join("store")));
    commit(&first, vec![put(&key(1), b"1")]);
    assert_eq!(get(&second, &key(1)).as_deref(), Some(&b"1"[..]), "one engine, one staging");
    let held = first.snapshot().expect("snapshot");
    drop((first, second));
    let again = open(&dir);
    assert_eq!(revision(&again), 1);
    assert_eq!(held.revision().expect("revision"), 1, "a snapshot outlives the handle");
    drop((held, again));
    thread::scope(|scope| {
        for thread in 0..4_u64 {
            let dir = &dir;
            scope.spawn(move || {
                for i in 0..50_u64 {
                    commit(&open(dir), vec![put(&key(thread), &i.to_be_bytes())]);
                }
            });
        }
    });
    assert_eq!(revision(&open(&dir)), 201, "dropping a handle flushes");
}

// Directories.

#[test]
fn a_new_store_is_small_and_tidy() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let lmdb = open(&dir);
    assert!(fs::metadata(dir.join("data.mdb")).expect("metadata").len() < 100_000);
    let stats = lmdb.stats().expect("stats");
    assert!(stats.iter().any(|(name, value)| name == "store id" && value.len() == 32), "{stats:?}");
    let names: BTreeSet<String> = fs::read_dir(&dir)
        .expect("list")
        .map(|entry| entry.expect("entry").file_name().to_string_lossy().into_owned())
        .collect();
    let expected = ["data.mdb", "lock.mdb", "queue.lock", "shared", "spinney", "writer.lock"];
    assert_eq!(names, expected.map(String::from).into());
}

#[test]
fn what_is_not_a_store_is_refused() {
    let folder = folder::temporary();
    let root = folder.path();
    let missing = refused(&root.join("none"), EXISTING);
    assert_eq!(missing.kind(), ErrorKind::NotFound, "{missing}");
    assert!(!root.join("none").exists());
    let orphan = refused(&root.join("no/parent"), CREATE);
    assert_eq!(orphan.kind(), ErrorKind::Io, "{orphan}");

    fs::create_dir(root.join("empty")).expect("mkdir");
    assert_eq!(refused(&root.join("empty"), EXISTING).kind(), ErrorKind::NotFound);
    drop(open(&root.join("empty")));

    fs::write(root.join("file"), "text").expect("write");
    fs::create_dir(root.join("foreign")).expect("mkdir");
    fs::write(root.join("foreign/data.mdb"), "another program's").expect("write");
    for name in ["file", "foreign"] {
        for options in [CREATE, EXISTING, READ_ONLY] {
            let error = refused(&root.join(name), options);
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
            assert!(error.to_string().contains("is not a spinney store"), "{error}");
        }
    }
    let untouched = fs::read_to_string(root.join("foreign/data.mdb")).expect("read");
    assert_eq!(untouched, "another program's");
}

#[test]
fn markers_of_others_are_refused() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    drop(open(&dir));
    let marker = dir.join("spinney");
    let text = fs::read_to_string(&marker).expect("read");
    let with = |from: &str, to: &str| {
        assert!(text.contains(from), "{text}");
        fs::write(&marker, text.replace(from, to)).expect("write");
        refused(&dir, EXISTING)
    };
    let newer = with("format: 1", "format: 7");
    assert_eq!(newer.kind(), ErrorKind::Unsupported);
    assert!(newer.to_string().contains("format 7"), "{newer}");
    assert!(newer.to_string().contains("up to 1"), "{newer}");
    let other = with("backend: lmdb", "backend: fjall");
    assert_eq!(other.kind(), ErrorKind::InvalidInput, "{other}");
    assert_eq!(with("state: ready", "state: odd").kind(), ErrorKind::Corrupted);
    fs::write(&marker, "no marker at all").expect("write");
    assert_eq!(refused(&dir, EXISTING).kind(), ErrorKind::InvalidInput);
    fs::write(&marker, &text).expect("write");
    drop(Lmdb::open(&dir, EXISTING).expect("the marker is whole again"));
}

#[test]
fn a_damaged_file_is_found_when_it_is_opened() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let lmdb = open(&dir);
    commit_and_sync(&lmdb, (0..1_000).map(|i| put(&key(i), &[i as u8; 1_000])).collect());
    drop(lmdb);
    let file = dir.join("data.mdb");
    let whole = fs::read(&file).expect("read");
    for len in [whole.len() - 1, whole.len() - 4_096, whole.len() / 2, 8_192, 8_191, 100, 0] {
        fs::write(&file, &whole[..len]).expect("write");
        for options in [CREATE, EXISTING, READ_ONLY] {
            let error = refused(&dir, options);
            assert_eq!(error.kind(), ErrorKind::Corrupted, "{len}: {error}");
            assert!(error.to_string().contains("data.mdb"), "{error}");
        }
        assert_eq!(fs::metadata(&file).expect("metadata").len(), len as u64, "left as it was");
    }
    fs::write(&file, vec![0x55; whole.len()]).expect("write");
    assert_eq!(refused(&dir, EXISTING).kind(), ErrorKind::Corrupted);
    fs::remove_file(&file).expect("remove");
    assert_eq!(refused(&dir, CREATE).kind(), ErrorKind::Corrupted, "a loss is no new store");
    fs::write(&file, &whole).expect("write");
    assert_eq!(value_count(&open(&dir)), 1_000);
}

/// Pages that were allocated and freed in one transaction are never written.
#[test]
fn a_file_without_its_free_last_pages_is_whole() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let mut random = fastrand::Rng::with_seed(7);
    let mut shorter = 0;
    for round in 0..100_u64 {
        let lmdb = open(&dir);
        let first = round * 1_000;
        let count = random.u64(300..600);
        let mut changes: Vec<_> =
            (first..first + count).map(|i| put(&key(i), &[1; 4_000])).collect();
        changes.extend((first + 20..first + count).map(|i| Change::Delete(key(i).into())));
        commit_and_sync(&lmdb, changes);
        let stats = lmdb.stats().expect("stats");
        let number = |name: &str| -> u64 {
            let (_, value) = stats.iter().find(|(found, _)| found == name).expect("a fact");
            value.parse().expect("a number")
        };
        if number("file bytes") < number("engine pages") * number("engine page bytes") {
            shorter += 1;
        }
    }
    println!("{shorter} of 100 files were shorter than their last page");
    assert_eq!(value_count(&open(&dir)), 2_000);
}

#[test]
fn a_killed_creation_can_be_repeated() {
    for round in 0..40_u64 {
        let folder = folder::temporary();
        let dir = folder.path().join("store");
        let child = start("create", &dir);
        thread::sleep(Duration::from_micros(1_000 + 150 * round));
        kill(child);
        commit_and_sync(&open(&dir), vec![put(&key(1), b"1")]);
    }
}

#[test]
fn each_state_of_a_creation_can_be_repeated() {
    let folder = folder::temporary();
    let whole = folder.path().join("whole");
    drop(open(&whole));
    let text = fs::read_to_string(whole.join("spinney")).expect("read");
    let creating = text.replace("state: ready", "state: creating");
    let states: [&[(&str, &str)]; 5] = [
        &[("queue.lock", "")],
        &[("queue.lock", ""), ("spinney.new", "form")],
        &[("queue.lock", ""), ("spinney", &creating)],
        &[("queue.lock", ""), ("spinney", &creating), ("data.mdb", "half"), ("lock.mdb", "")],
        &[("queue.lock", ""), ("spinney", &creating), ("spinney.new", &text), ("data.mdb", "")],
    ];
    for (i, files) in states.iter().enumerate() {
        let dir = folder.path().join(format!("state{i}"));
        fs::create_dir(&dir).expect("mkdir");
        for (name, text) in *files {
            fs::write(dir.join(name), text).expect("write");
        }
        assert_eq!(refused(&dir, EXISTING).kind(), ErrorKind::NotFound);
        commit_and_sync(&open(&dir), vec![put(&key(1), b"1")]);
        assert_eq!(revision(&open(&dir)), 1);
    }
}

#[test]
fn a_store_is_created_once_by_many() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let mut children: Vec<Child> = (0..4).map(|_| start("count", &dir)).collect();
    for child in &mut children {
        assert!(child.wait().expect("wait").success());
    }
    assert_eq!(value_of(&open(&dir), &key(0)), 800);
}

#[test]
fn read_only_reads() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    assert_eq!(refused(&dir, READ_ONLY).kind(), ErrorKind::NotFound);
    commit_and_sync(&open(&dir), vec![put(&key(1), b"1")]);
    let reader = Lmdb::open(&dir, READ_ONLY).expect("a reader");
    assert_eq!(get(&reader, &key(1)).as_deref(), Some(&b"1"[..]));
    let batch = batch_after(1, vec![put(&key(1), b"2")]);
    assert_eq!(reader.commit(batch).expect_err("refused").kind(), ErrorKind::ReadOnly);
    assert_eq!(reader.write_guard(0).err().expect("refused").kind(), ErrorKind::ReadOnly);
    assert_eq!(refused(&dir, EXISTING).kind(), ErrorKind::Busy, "this process reads only");
    let mut child = start("count", &dir);
    assert!(reader.wait(1, Duration::from_secs(60)).expect("wait") > 1);
    assert!(child.wait().expect("wait").success());
    drop(reader);
    let writer = open(&dir);
    let reader = Lmdb::open(&dir, READ_ONLY).expect("a reader of the same store");
    assert_eq!(commit(&writer, vec![put(&key(1), b"3")]), 202);
    assert_eq!(get(&reader, &key(1)).as_deref(), Some(&b"3"[..]));
    assert_eq!(reader.write_guard(0).err().expect("refused").kind(), ErrorKind::ReadOnly);
}

/// On a mount of its own that is read-only, in a process that a shell gives such a mount.
#[test]
fn a_read_only_medium_reads() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    commit_and_sync(&open(&dir), vec![put(&key(1), b"medium")]);
    fs::remove_file(dir.join("lock.mdb")).expect("remove");
    let child = child_command("read a medium", &dir);
    let mut shell = Command::new("unshare");
    let script = "mount --bind \"$0\" \"$0\" && mount -o remount,bind,ro \"$0\" && exec \"$@\"";
    shell.args(["-m", "sh", "-c", script]).arg(&dir).arg(child.get_program());
    shell.args(child.get_args()).env(ROLE, "read a medium").env(STORE, &dir);
    match shell.output() {
        Ok(output) if String::from_utf8_lossy(&output.stdout).contains("said: medium") => {}
        Ok(output) if !String::from_utf8_lossy(&output.stdout).contains("running 1 test") => {
            println!("skipped: no read-only mount: {}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(output) => panic!("{output:?}"),
        Err(error) => println!("skipped: no read-only mount: {error}"),
    }
}

fn read_a_medium(dir: &Path) {
    let writer = refused(dir, EXISTING);
    assert_eq!(writer.kind(), ErrorKind::ReadOnly, "{writer}");
    let reader = Lmdb::open(dir, READ_ONLY).expect("a reader");
    say(String::from_utf8_lossy(&get(&reader, &key(1)).expect("a value")));
}

#[test]
fn a_backup_is_a_store_of_its_own() {
    let folder = folder::temporary();
    let (dir, target) = (folder.path().join("store"), folder.path().join("copy"));
    let lmdb = open(&dir);
    commit_and_sync(&lmdb, (0..500).map(|i| put(&key(i), &[1; 1_000])).collect());
    lmdb.checkpoint().expect("checkpoint");
    commit_and_sync(&lmdb, vec![Change::DeleteRange(key(10).into(), key(500).into())]);
    commit(&lmdb, vec![put(&key(1), b"staged")]);
    lmdb.backup(&target).expect("backup");
    let again = lmdb.backup(&target).expect_err("the target exists");
    assert_eq!(again.kind(), ErrorKind::AlreadyExists, "{again}");
    commit(&lmdb, vec![put(&key(1), b"later")]);
    let copy = Lmdb::open(&target, EXISTING).expect("the copy");
    assert_eq!((revision(&copy), value_count(&copy)), (3, 10));
    assert_eq!(get(&copy, &key(1)).as_deref(), Some(&b"staged"[..]));
    assert_ne!(copy.store_id(), lmdb.store_id());
    let len = |dir: &Path| fs::metadata(dir.join("data.mdb")).expect("metadata").len();
    assert!(len(&target) < len(&dir) / 4, "the copy is compact");
    assert_eq!(commit_and_sync(&copy, vec![put(&key(2), b"own way")]), 4);
}

#[test]
fn lock_files_that_went_missing_are_made_again() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    commit_and_sync(&open(&dir), vec![put(&key(1), b"1")]);
    for name in ["lock.mdb", "queue.lock", "writer.lock"] {
        fs::remove_file(dir.join(name)).expect("remove");
    }
    assert_eq!(commit_and_sync(&open(&dir), vec![put(&key(1), b"2")]), 2);
    let garbage = File::options().write(true).open(dir.join("lock.mdb"));
    garbage.and_then(|mut file| file.write_all(&[0xAA; 8_192])).expect("write");
    assert_eq!(commit_and_sync(&open(&dir), vec![put(&key(1), b"3")]), 3);
}

// Full disks.

/// Under a limit of the file's size: commits until one fails, which has not happened then; what was
/// answered stays, and smaller commits go on once there is room.
fn fill_the_disk(lmdb: &Lmdb) {
    let mut synced = 0;
    let failed = loop {
        let next = synced + 1;
        let changes = (0..10).map(|i| put(&key(next * 10 + i), &[1; 4_000])).collect();
        match lmdb.commit(batch_after(synced, changes)) {
            Ok(outcome) => assert_eq!(outcome, Outcome::Committed(next)),
            Err(error) => break error,
        }
        lmdb.sync(next).expect("what is in the journal can be synced");
        synced = next;
    };
    assert_eq!(failed.kind(), ErrorKind::Io, "{failed}");
    assert_eq!(revision(lmdb), synced, "the commit has not happened");
    assert_eq!(get(lmdb, &key((synced + 1) * 10)), None);
    assert_eq!(get(lmdb, &key(synced * 10)), Some(vec![1; 4_000]));
    lmdb.sync(synced).expect("this one is durable");
    say(format_args!("{synced} {failed}"));
}

#[test]
fn a_full_disk_refuses_commits_and_loses_nothing() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    drop(open(&dir));
    // The limit's signal must be ignored before the process starts; a shell can do that.
    let child = child_command("fill the disk", &dir);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 4000 && exec \"$0\" \"$@\""]);
    shell.arg(child.get_program()).args(child.get_args());
    shell.env(ROLE, "fill the disk").env(STORE, &dir).stdout(Stdio::piped());
    let mut child = match shell.spawn() {
        Ok(child) => child,
        Err(error) => return println!("skipped: no shell to limit the file's size: {error}"),
    };
    let words: Vec<String> = said(&mut child).collect();
    assert!(child.wait().expect("wait").success(), "the child's checks: {words:?}");
    let words = words.first().expect("the child's words");
    println!("full disk: {words}");
    let synced: Revision = words.split(' ').next().expect("a word").parse().expect("a revision");
    assert!(synced > 3);
    let lmdb = open(&dir);
    assert_eq!(revision(&lmdb), synced);
    assert_eq!(commit_and_sync(&lmdb, vec![put(&key(1), b"again")]), synced + 1);
}

// Limits.

#[test]
fn limits_that_make_no_sense_are_refused() {
    let folder = folder::temporary();
    let url = format!("lmdb:{}", folder.path().join("store").display());
    let refused = |limits: Limits, name: &str| {
        let opened = OpenOptions::new().limits(limits).open(&url);
        let error = opened.err().expect("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        assert!(error.to_string().contains(&format!("limits: `{name}` is ")), "{error}");
    };
    let (usual, never) = (Limits::DEFAULT, Duration::from_secs(1 << 40));
    refused(Limits { generation_len_bytes: 4_096, ..usual }, "generation_len_bytes");
    refused(Limits { generation_len_bytes: 1 << 40, ..usual }, "generation_len_bytes");
    refused(Limits { journaled_len_max_bytes: 1 << 30, ..usual }, "journaled_len_max_bytes");
    refused(Limits { write_after: Duration::ZERO, ..usual }, "write_after");
    refused(Limits { sync_every: never, ..usual }, "sync_every");
    refused(Limits { fold_after: never, ..usual }, "fold_after");
    refused(Limits { snapshots_max: 0, ..usual }, "snapshots_max");
    refused(Limits { pinned_len_max_bytes: 0, ..usual }, "pinned_len_max_bytes");
    assert!(!folder.path().join("store").exists());
}

#[test]
fn limits_say_when_the_journal_is_folded() {
    let folder = folder::temporary();
    let never = Duration::from_secs(3_600);
    let transactions = |name: &str, limits: Limits| {
        let options = Options { limits, ..CREATE };
        let lmdb = Lmdb::open(&folder.path().join(name), options).expect("a store");
        let before = lmdb.engine_transactions();
        for i in 0..100 {
            commit_and_sync(&lmdb, vec![put(&key(i), &[1; 10_000])]);
        }
        lmdb.engine_transactions() - before
    };
    let usual = Limits { fold_after: never, ..Limits::DEFAULT };
    assert_eq!(transactions("usual", usual), 0);
    let short = Limits { generation_len_bytes: 64 << 10, ..usual };
    assert!((10..17).contains(&transactions("short", short)), "each 7 commits are folded");
    let direct = Limits { journaled_len_max_bytes: 9_999, ..usual };
    assert_eq!(transactions("direct", direct), 100);
}

#[test]
fn so_many_snapshots_as_the_limit_says() {
    let folder = folder::temporary();
    let limits = Limits { snapshots_max: 20, ..Limits::DEFAULT };
    let options = Options { limits, ..CREATE };
    let lmdb = Lmdb::open(&folder.path().join("store"), options).expect("a store");
    let mut held = Vec::new();
    let full = loop {
        match lmdb.snapshot() {
            Ok(snapshot) => held.push(snapshot),
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), ErrorKind::Busy, "{full}");
    // A few more slots fit into the table's last page.
    assert!((20..64).contains(&held.len()), "{}", held.len());
}

fn fact(lmdb: &Lmdb, name: &str) -> String {
    let stats = lmdb.stats().expect("stats");
    stats.into_iter().find(|(found, _)| found == name).expect("a fact").1
}

/// An old snapshot keeps no writer waiting and the file from growing without end: its process is told
/// to give it up.
#[test]
fn snapshots_that_keep_too_much_are_refused() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let limits =
        Limits { generation_len_bytes: 64 << 10, pinned_len_max_bytes: 1 << 20, ..Limits::DEFAULT };
    let lmdb = Lmdb::open(&dir, Options { limits, ..CREATE }).expect("a store");
    commit_and_sync(&lmdb, (0..20).map(|i| put(&key(i), &[0; 4_000])).collect());
    lmdb.checkpoint().expect("checkpoint");
    let mut child =
        child_command("hold a snapshot", &dir).stdin(Stdio::piped()).spawn().expect("a child");
    let mut asked = child.stdin.take().expect("stdin");
    let mut words = said(&mut child);
    assert_eq!(words.next().as_deref(), Some("holds"));
    let (mut refused, mut kept, mut file_len) = (0, 0, 0);
    for round in 0..1_000_u64 {
        for i in 1..20 {
            commit(&lmdb, vec![put(&key(i), &[round as u8; 4_000])]);
        }
        lmdb.sync(revision(&lmdb)).expect("sync");
        // The journal has been folded then, and the child is not refused yet.
        if round == 5 {
            let oldest = fact(&lmdb, "oldest snapshot");
            assert!(oldest.starts_with(&format!("process {}, ", child.id())), "{oldest}");
            assert_ne!(fact(&lmdb, "snapshots of all processes"), "0");
        }
        kept = fact(&lmdb, "bytes kept by snapshots").parse::<u64>().expect("bytes").max(kept);
        file_len = fact(&lmdb, "file bytes").parse::<u64>().expect("bytes").max(file_len);
        writeln!(asked).expect("the child listens");
        let said = words.next().expect("the child reads");
        if said != "4000" {
            assert!(said.starts_with("the snapshot is too old"), "{said}");
            refused += 1;
        }
    }
    println!("{refused} snapshots refused, at most {kept} bytes kept, a file of {file_len}");
    assert!(refused > 10);
    assert!((1 << 20..4 << 20).contains(&kept), "{kept}");
    assert!(file_len < 6 << 20, "{file_len}");
    drop(asked);
    assert!(child.wait().expect("wait").success());
}

/// The locks on the table of readers tell other processes that this one lives: without them its
/// snapshots are taken for those of a dead one.
#[test]
fn what_comes_and_goes_between_folds_is_not_kept() {
    let folder = folder::temporary();
    let lmdb = open_unfolded(&folder.path().join("store"));
    let delete = |name: u64| Change::Delete(key(name)[..].into());
    commit(&lmdb, vec![put(&key(1), b"folded"), put(&key(2), b"folded")]);
    lmdb.checkpoint().expect("folds");
    let base = commit(&lmdb, Vec::new());
    let staged = fact(&lmdb, "staged records");
    for name in 3..50 {
        commit(&lmdb, vec![put(&key(name), b"staged")]);
        commit(&lmdb, vec![delete(name)]);
    }
    assert_eq!(fact(&lmdb, "staged records"), staged, "neither a value nor its absence");
    commit(&lmdb, vec![delete(1), put(&key(3), b"again")]);
    let check = |lmdb: &Lmdb| {
        let values = [1, 2, 3, 4].map(|name| get(lmdb, &key(name)));
        assert_eq!(values, [None, Some(b"folded".to_vec()), Some(b"again".to_vec()), None]);
    };
    check(&lmdb);
    lmdb.checkpoint().expect("folds");
    check(&lmdb);
    assert_eq!(revision(&lmdb), base + 95);
}

#[test]
fn stats_and_folds_keep_the_locks_on_the_table_of_readers() {
    use std::os::unix::fs::MetadataExt;
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = spinney::open(&format!("lmdb:{}", dir.display())).expect("opens");
    let inode = fs::metadata(dir.join("lock.mdb")).expect("the table").ino();
    let holds_lock = || {
        let locks = fs::read_to_string("/proc/locks").expect("the system's locks");
        let (process, file) = (std::process::id().to_string(), format!(":{inode}"));
        locks.lines().filter(|line| line.contains("POSIX")).any(|line| {
            let mut words = line.split_whitespace();
            words.by_ref().nth(4) == Some(&process)
                && words.next().is_some_and(|at| at.ends_with(&file))
        })
    };
    assert!(holds_lock(), "after opening");
    store.write(|tx| tx.set("/a", &1.into())).expect("writes");
    let snapshot = store.read().expect("reads");
    store.write(|tx| tx.set("/a", &2.into())).expect("writes");
    store.checkpoint().expect("folds");
    assert!(holds_lock(), "after a fold beside a snapshot");
    store.stats().expect("stats");
    assert!(holds_lock(), "after `stats`");
    drop(snapshot);
}
