//! The fjall backend's own behaviour: directories, a second process, damage, tables.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use spinney::backend::Backend;
use spinney::backends::fjall::{Fjall, Options};
use spinney::{Durability, Error, ErrorKind, Limits, OpenOptions, Store, Value};
use spinney_conformance::child::{self, kill, said, say, start};
use spinney_conformance::folder;
use spinney_conformance::subject::text;

const EXISTING: Options = Options::EXISTING;

/// Folds what is larger than a leaf.
const FOLDING: Limits = Limits { journaled_len_max_bytes: 2_000, ..Limits::DEFAULT };

fn open(dir: &Path) -> Arc<Fjall> {
    Fjall::open(dir, Options::CREATE).expect("a store")
}

fn store(fjall: Arc<Fjall>) -> Store {
    OpenOptions::new().over(fjall, None)
}

fn refused(dir: &Path, options: Options) -> Error {
    let Err(error) = Fjall::open(dir, options) else { panic!("`{}` opened", dir.display()) };
    assert!(!error.to_string().contains('\n'), "one line: {error}");
    error
}

#[test]
fn child() {
    let Some((role, dir)) = child::role() else { return };
    let fjall = open(&dir);
    assert_eq!(role, "hold");
    say("open");
    thread::sleep(Duration::from_secs(60));
    drop(fjall);
}

#[test]
fn a_second_process_is_told_who_has_it_open() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let mut holder = start("hold", &dir);
    assert_eq!(said(&mut holder).next().as_deref(), Some("open"));
    let error = refused(&dir, EXISTING);
    assert_eq!(error.kind(), ErrorKind::Busy);
    let said = error.to_string();
    assert!(said.contains(&format!("process {}", holder.id())), "{said}");
    assert!(said.contains(&dir.display().to_string()), "{said}");
    let read_only = refused(&dir, Options { read_only: true, ..EXISTING });
    assert_eq!(read_only.kind(), ErrorKind::Busy);
    kill(holder);
    open(&dir);
}

#[test]
fn a_store_opens_once_and_again() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    assert_eq!(refused(&dir, EXISTING).kind(), ErrorKind::NotFound);
    let first = open(&dir);
    let second = Fjall::open(&dir, Options { read_only: true, ..EXISTING }).expect("the same");
    let id = first.store_id();
    let (first, second) = (store(first), store(second));
    first.write(|tx| tx.set("/a/b", &1.into())).expect("writes");
    assert_eq!(text(&second), text(&first));
    let error = second.write(|tx| tx.set("/a/b", &2.into())).expect_err("read-only");
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    let before = text(&first);
    drop((first, second));
    for _ in 0..3 {
        let again = Fjall::open(&dir, EXISTING).expect("it opens");
        assert_eq!(again.store_id(), id);
        assert_eq!(again.wait_durable(0, Duration::ZERO).expect("a revision"), 1);
        let again = store(again);
        assert_eq!(text(&again), before);
        again.checkpoint().expect("folds");
    }
}

#[test]
fn what_is_not_its_store_is_refused_and_stays() {
    let folder = folder::temporary();
    let make = |name: &str, file: &str, text: &str| {
        let dir = folder.path().join(name);
        fs::create_dir(&dir).expect("mkdir");
        fs::write(dir.join(file), text).expect("write");
        dir
    };
    let marker = |format: u32, backend: &str, state: &str| {
        format!("format: {format}\nbackend: {backend}\nstore: 1234\nstate: {state}\n")
    };
    let cases = [
        ("notes.txt", "mine".to_owned(), ErrorKind::InvalidInput, "not a spinney store"),
        ("spinney", "a text".to_owned(), ErrorKind::InvalidInput, "not a spinney store"),
        ("spinney", marker(1, "lmdb", "ready"), ErrorKind::InvalidInput, "lmdb:"),
        ("spinney", marker(99, "fjall", "ready"), ErrorKind::Unsupported, "99"),
        ("spinney", marker(1, "fjall", "ready"), ErrorKind::Corrupted, "missing"),
        ("spinney", marker(1, "fjall", "odd"), ErrorKind::Corrupted, "damaged"),
    ];
    for (number, (file, text, kind, part)) in cases.iter().enumerate() {
        let dir = make(&number.to_string(), file, text);
        let error = refused(&dir, Options::CREATE);
        assert_eq!(error.kind(), *kind, "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
        assert_eq!(fs::read_to_string(dir.join(file)).expect("still there"), *text);
    }
    let file = folder.path().join("file");
    fs::write(&file, "text").expect("write");
    assert_eq!(refused(&file, Options::CREATE).kind(), ErrorKind::InvalidInput);
    // What a killed creation leaves is no store, and is made anew.
    let unfinished = make("unfinished", "spinney", &marker(1, "fjall", "creating"));
    fs::create_dir(unfinished.join("engine")).expect("mkdir");
    fs::write(unfinished.join("engine/half"), "a half").expect("write");
    assert_eq!(refused(&unfinished, EXISTING).kind(), ErrorKind::NotFound);
    store(open(&unfinished)).write(|tx| tx.set("/a", &1.into())).expect("writes");
    assert!(!unfinished.join("engine/half").exists());
}

#[test]
fn a_snapshot_outlives_its_handle() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let first = store(open(&dir));
    first.write(|tx| tx.set("/a", &1.into())).expect("write");
    let snapshot = first.read().expect("read");
    drop(first);
    let second = store(open(&dir));
    second.write(|tx| tx.set("/a", &2.into())).expect("write");
    assert_eq!(snapshot.get("/a").expect("get"), Some(1.into()));
    assert_eq!(second.read().and_then(|all| all.get("/a")).expect("get"), Some(2.into()));
}

fn grow(store: &Store, from: u64, to: u64, len: usize) {
    for n in from..to {
        let page: Vec<Value> =
            (0..20).map(|i| format!("{n} {i} {}", "x".repeat(len)).into()).collect();
        let edit = |tx: &mut spinney::Transaction<'_>| {
            tx.set(&format!("/t/m/{}", n * 7_919 % 300), &page.clone().into())
        };
        store.write_with(Durability::None, edit).expect("writes");
    }
}

/// Bytes of all files in a folder; those that go meanwhile count nothing.
fn files_len(dir: &Path) -> u64 {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let len = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => files_len(&entry.path()),
        found => found.map_or(0, |found| found.len()),
    };
    entries.map(len).sum()
}

#[test]
fn snapshots_stay_while_tables_are_made_and_merged() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let fjall = Fjall::open(&dir, Options { limits: FOLDING, ..Options::CREATE }).expect("a store");
    let store = store(fjall);
    let mut kept = Vec::new();
    for round in 0..12 {
        grow(&store, round * 40, round * 40 + 40, 200);
        kept.push((store.read().expect("a snapshot"), text(&store)));
        if round % 5 == 4 {
            store.compact().expect("merges");
        }
    }
    for (snapshot, text) in &kept {
        assert!(spinney_conformance::subject::text_of(snapshot, "") == *text, "a snapshot changed");
        assert!(snapshot.check().expect("it reads").damaged.is_empty());
    }
    let (full, before) = (files_len(&dir), text(&store));
    drop(kept);
    store.write(|tx| tx.remove("/t/m").map(drop)).expect("removes");
    store.forget_before(u64::MAX).expect("forgets");
    store.compact().expect("merges");
    // The engine may have given some back by itself before.
    let left = files_len(&dir);
    assert!(left + 100_000 < full, "{left} bytes are left of {full}");
    assert!(text(&store) != before);
}

#[test]
fn concurrent_commits_share_syncs() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 100;
    let folder = folder::temporary();
    let fjall = open(&folder.path().join("store"));
    let store = store(Arc::clone(&fjall));
    let before = fjall.syncs();
    let all = Barrier::new(THREADS as usize);
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (fjall, store, all) = (&fjall, &store, &all);
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let edit = |tx: &mut spinney::Transaction<'_>| {
                        tx.set(&format!("/t/{thread}"), &round.into())
                    };
                    let revision =
                        store.write_with(Durability::None, edit).expect("commits").revision;
                    all.wait();
                    fjall.sync(revision).expect("sync");
                    assert!(fjall.wait_durable(0, Duration::ZERO).expect("durable") >= revision);
                    all.wait();
                }
            });
        }
    });
    let syncs = fjall.syncs() - before;
    println!("{} commits took {syncs} syncs", THREADS * ROUNDS);
    assert!(syncs < THREADS * ROUNDS / 2);
}

#[test]
fn what_nobody_syncs_is_synced_soon() {
    let folder = folder::temporary();
    let fjall = open(&folder.path().join("store"));
    let store = store(Arc::clone(&fjall));
    let edit = |tx: &mut spinney::Transaction<'_>| tx.set("/t", &1.into());
    let revision = store.write_with(Durability::None, edit).expect("commits").revision;
    let durable = fjall.wait_durable(revision - 1, Duration::from_secs(20)).expect("a revision");
    assert_eq!(durable, revision);
}

#[test]
fn a_backup_is_a_store_of_its_own() {
    let folder = folder::temporary();
    let (dir, copy) = (folder.path().join("store"), folder.path().join("copy"));
    let fjall = open(&dir);
    let store = store(Arc::clone(&fjall));
    grow(&store, 0, 100, 100);
    store.checkpoint().expect("folds");
    grow(&store, 100, 150, 100);
    store.backup(&copy).expect("a backup");
    assert_eq!(store.backup(&copy).expect_err("it exists").kind(), ErrorKind::AlreadyExists);
    let copied = open(&copy);
    assert_ne!(copied.store_id(), fjall.store_id());
    let copied = OpenOptions::new().over(copied, None);
    assert!(text(&copied) == text(&store));
    assert!(copied.read().and_then(|snapshot| snapshot.check()).expect("checks").is_sound());
    copied.write(|tx| tx.set("/own", &1.into())).expect("writes");
}

/// All files below a folder but locks and what holds nothing.
fn files(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("lists").map(|entry| entry.expect("lists")) {
        let path = entry.path();
        let is_idle = path.extension().is_some_and(|extension| extension == "jnl");
        match entry.file_type().expect("a kind").is_dir() {
            true => files(&path, found),
            false if is_idle || entry.file_name() == "lock" => {}
            false => found.push(path),
        }
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("mkdir");
    for entry in fs::read_dir(from).expect("lists").map(|entry| entry.expect("lists")) {
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a kind").is_dir() {
            true => copy(&entry.path(), &target),
            // The engine's own journal: long, and empty.
            false if target.extension().is_some_and(|extension| extension == "jnl") => {
                let len = entry.metadata().expect("a length").len();
                fs::File::create(target).and_then(|file| file.set_len(len)).expect("a file");
            }
            // A closed engine may still remove a table that it has merged.
            false => match fs::copy(entry.path(), target) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                copied => drop(copied.expect("copy")),
            },
        }
    }
}

/// Whatever is cut or flipped: an error, or a state that the store has been in.
#[test]
fn damage_is_an_error_or_an_older_state() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store_of = |fjall| OpenOptions::new().over(fjall, None);
    let fjall = Fjall::open(&dir, Options { limits: FOLDING, ..Options::CREATE }).expect("a store");
    let written = store_of(fjall);
    let mut states = vec![text(&written)];
    for n in 0..60_u64 {
        let len = if n.is_multiple_of(9) { 6_000 } else { 30 };
        let value = format!("{n} {}", "x".repeat(len));
        written
            .write(|tx| tx.set(&format!("/t/{}", n % 20), &value.as_str().into()))
            .expect("writes");
        states.push(text(&written));
    }
    drop(written);
    let moving = dir;
    let dir = folder.path().join("still");
    copy(&moving, &dir);
    let mut paths = Vec::new();
    files(&dir, &mut paths);
    let (mut errors, mut older, mut whole) = (0, 0, 0);
    for path in paths {
        let len = fs::metadata(&path).expect("a length").len() as usize;
        let used = fs::read(&path).expect("reads").iter().rposition(|&byte| byte != 0);
        let used = used.map_or(len, |last| last + 1);
        for (at, is_cut) in (0..24).map(|n| (used * n / 24, n % 3 == 0)) {
            let damaged = folder.path().join("damaged");
            copy(&dir, &damaged);
            let file = damaged.join(path.strip_prefix(&dir).expect("below"));
            let mut bytes = fs::read(&file).expect("reads");
            match is_cut {
                true => bytes.truncate(at),
                false => bytes[at] ^= 0x10,
            }
            fs::write(&file, bytes).expect("writes");
            let read = catch_unwind(AssertUnwindSafe(|| {
                let store = store_of(Fjall::open(&damaged, EXISTING)?);
                let mut writer = spinney::formats::JsonWriter::new(
                    Vec::new(),
                    spinney::formats::Layout::Compact,
                    spinney::formats::Fidelity::Tagged,
                );
                store.read()?.visit("", &mut writer)?;
                Ok::<_, Error>(String::from_utf8(writer.finish()?).expect("a text"))
            }));
            let shown = format!("{} at {at}, cut: {is_cut}", path.display());
            match read {
                Err(_) => panic!("{shown}: it panicked"),
                Ok(Err(error)) => {
                    let kinds = [
                        ErrorKind::Corrupted,
                        ErrorKind::InvalidInput,
                        ErrorKind::Unsupported,
                        ErrorKind::Io,
                    ];
                    assert!(kinds.contains(&error.kind()), "{shown}: {error:?}");
                    assert!(!error.to_string().contains('\n'), "{shown}: {error}");
                    errors += 1;
                }
                Ok(Ok(text)) if text == *states.last().expect("states") => whole += 1,
                Ok(Ok(text)) => {
                    assert!(states.contains(&text), "{shown}: a state that never was");
                    older += 1;
                }
            }
            fs::remove_dir_all(&damaged).expect("remove");
        }
    }
    println!("{errors} errors, {older} older states, {whole} not noticed and without effect");
    // How many bytes belong to files that are superseded is up to the engine's own threads.
    assert!(errors > (older + whole) / 4, "{errors} errors, {older} older states, {whole} whole");
}
