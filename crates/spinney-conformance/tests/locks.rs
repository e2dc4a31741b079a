//! Locks of several processes, killed and stopped, on LMDB and on a Redis server.
//!
//! Other processes are this binary again, which runs `child` with a role from the environment.

use std::path::Path;
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use spinney::{Durability, ErrorKind, Lock, LockOptions, OpenOptions, Result, Store};
use spinney_conformance::child::{self, kill, said, say, signal, start};
use spinney_conformance::servers::redis::RedisServer;
use spinney_conformance::subject::number;
use spinney_conformance::{folder, timed};

/// Long enough for whatever is to happen.
const LONG: Duration = Duration::from_secs(60);

/// How often one thread of the fight takes the lock.
const ROUNDS: u64 = 40;
const THREADS: u64 = 4;

fn open(url: &str) -> Store {
    let options = OpenOptions::new().durability(Durability::Process).author("ann");
    options.open(url).unwrap_or_else(|error| panic!("{error}"))
}

fn url_of(dir: &Path) -> String {
    format!("lmdb:{}", dir.display())
}

fn waiting() -> LockOptions {
    LockOptions { wait: Some(LONG), ..LockOptions::default() }
}

#[test]
fn child() {
    let Some((role, url)) = child::role() else { return };
    let store = open(url.to_str().expect("a URL"));
    match role.as_str() {
        "holder" => {
            let options = LockOptions { name: "test".to_owned(), ..waiting() };
            let locked = store.lock("/held", options).expect("locks");
            say(locked.owner());
            loop {
                thread::park_timeout(Duration::from_millis(20));
                if !locked.is_held() {
                    say("lost");
                    thread::park();
                }
            }
        }
        "short" => {
            let lease = Some(Duration::from_secs(4));
            let locked = store.lock("/held", LockOptions { lease, ..waiting() }).expect("locks");
            say(locked.owner());
            thread::sleep(LONG);
        }
        "visitor" => {
            let locked = store.lock("/held", waiting()).expect("locks");
            say("has it");
            thread::sleep(Duration::from_millis(300));
            drop(locked);
            say("gave it");
            thread::park();
        }
        "fighter" => fight(&store),
        other => panic!("no role `{other}`"),
    }
}

/// Counts at `/n`, in two commits that only the lock keeps together.
fn fight(store: &Store) {
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let locked = store.lock("/n", waiting()).expect("locks");
                    let before = store.read().and_then(|state| state.get("/n")).expect("reads");
                    let set = |n: u64| store.write(|tx| tx.set("/n", &n.into()));
                    set(number(before) + 1).expect("it is its own");
                    assert!(locked.is_held());
                    drop(locked);
                }
            });
        }
    });
    say("done");
}

/// A started child and what it says; it has said its first words.
fn begin(role: &str, url: &str) -> (Child, Receiver<String>, String) {
    let mut child = start(role, Path::new(url));
    let words = said(&mut child);
    let (says, heard) = channel();
    thread::spawn(move || words.for_each(|words| drop(says.send(words))));
    let first = next(&heard);
    (child, heard, first)
}

fn next(heard: &Receiver<String>) -> String {
    heard.recv_timeout(LONG).expect("it says something")
}

fn set(store: &Store, path: &str) -> Result<()> {
    store.write(|tx| tx.set(path, &fastrand::u64(..).into())).map(drop)
}

fn assert_busy<T>(child: &Child, tried: Result<T>) {
    let Err(error) = tried else { panic!("it was not refused") };
    let process = format!("`/held` is locked by ann, process {} on ", child.id());
    assert!(error.kind() == ErrorKind::Busy && error.to_string().contains(&process), "{error}");
}

/// What is the same for all stores of several processes.
fn killed_holders(url: &str, rounds: usize) {
    let store = open(url);
    set(&store, "/n").expect("writes");
    for round in 0..rounds {
        let (holder, _heard, _) = begin("holder", url);
        assert_busy(&holder, set(&store, "/held/x"));
        set(&store, "/elsewhere").expect("it is not locked");
        if round % 2 == 0 {
            kill(holder);
            let begun = Instant::now();
            set(&store, "/held/x").expect("a dead holder is in nobody's way");
            assert!(begun.elapsed() < LONG / 6, "it was held up for {:?}", begun.elapsed());
        } else {
            // Who waits is not told by anybody, and finds out.
            let waits = store.clone();
            let waiter = thread::spawn(move || waits.lock("/held/y", waiting()).map(drop));
            thread::sleep(Duration::from_millis(100));
            assert!(!waiter.is_finished(), "it is locked");
            let begun = Instant::now();
            kill(holder);
            waiter.join().expect("waits").expect("locks");
            assert!(begun.elapsed() < LONG / 6, "it was held up for {:?}", begun.elapsed());
        }
        let left = store.read().and_then(|state| state.count("/.locks")).expect("counts");
        assert_eq!(left, Some(0), "the next writer has removed what was left");
    }
}

#[test]
fn a_killed_holder_is_in_nobodys_way() {
    let folder = folder::temporary();
    let url = url_of(&folder.path().join("store"));
    timed("holders of locks killed on LMDB", || killed_holders(&url, 8));
}

#[test]
fn a_stopped_holder_keeps_its_lock() {
    let folder = folder::temporary();
    let url = url_of(&folder.path().join("store"));
    let store = open(&url);
    let (holder, heard, owner) = begin("holder", &url);
    signal(&holder, "-STOP");
    let wait = Some(Duration::from_millis(700));
    assert_busy(&holder, store.lock("/held", LockOptions { wait, ..LockOptions::default() }));
    assert_busy(&holder, set(&store, "/held"));
    let locks = store.locks().expect("reads");
    assert_eq!(locks.len(), 1);
    assert_eq!((locks[0].owner.to_string(), locks[0].process), (owner.clone(), holder.id()));
    // Another handle may write for it, as a command that it has started.
    let helper = OpenOptions::new().owner(Some(owner.parse().expect("an id")));
    set(&helper.open(&url).expect("opens"), "/held/x").expect("it writes for the holder");
    // It is broken while it cannot tell.
    let broken = store.break_lock("/held").expect("breaks").value;
    assert_eq!((&*broken.name, broken.process), ("test", holder.id()));
    set(&store, "/held").expect("nobody has it");
    signal(&holder, "-CONT");
    assert_eq!(next(&heard), "lost");
    kill(holder);
    let revision = || store.read().and_then(|state| state.revision()).expect("reads");
    let before = revision();
    set(&store, "/held").expect("writes");
    assert_eq!(revision(), before + 1, "nothing was left to remove");
}

#[test]
fn nothing_is_written_while_a_lock_is_held_on_one_machine() {
    let folder = folder::temporary();
    let store = open(&url_of(&folder.path().join("store")));
    let locked = store.lock("/a", LockOptions::default()).expect("locks");
    let revision = || store.read().and_then(|state| state.revision()).expect("reads");
    assert_eq!(revision(), 1, "one commit");
    thread::sleep(Duration::from_secs(1));
    assert!(locked.unlock().expect("unlocks") && revision() == 2, "and one more");
    let owners = store.read().and_then(|state| state.get("/.owners")).expect("reads");
    assert_eq!(owners, None, "no lease");
}

#[test]
fn who_may_only_read_locks_nothing() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let url = url_of(&dir);
    let store = open(&url);
    set(&store, "/a").expect("writes");
    let reader = OpenOptions::new().read_only(true).open(&url).expect("opens");
    let names = || std::fs::read_dir(&dir).expect("a directory").count();
    let before = names();
    for tried in [
        reader.lock("/a", LockOptions::default()).map(drop),
        reader.lock("/a", waiting()).map(drop),
    ] {
        let error = tried.expect_err("it may only read");
        assert!(error.kind() == ErrorKind::ReadOnly, "{error}");
        assert!(error.to_string().starts_with("lock `/a`: "), "{error}");
    }
    assert_eq!(names(), before, "it has left something");
    let locked = store.lock("/a", LockOptions::default()).expect("locks");
    assert_eq!(reader.locks().expect("reads").len(), 1, "it sees who has something locked");
    let error = reader.break_lock("/a").expect_err("it may only read");
    assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
    drop(locked);
}

#[test]
fn a_lease_runs_out_while_its_process_lives() {
    let folder = folder::temporary();
    let url = url_of(&folder.path().join("store"));
    let store = open(&url);
    let begun = Instant::now();
    let (holder, _heard, _) = begin("short", &url);
    assert_busy(&holder, set(&store, "/held"));
    let locked: Lock = store.lock("/held", waiting()).expect("its time is up");
    assert!(begun.elapsed() >= Duration::from_secs(4) && locked.is_held());
    kill(holder);
}

#[test]
fn a_waiter_in_another_process_is_woken() {
    let folder = folder::temporary();
    let url = url_of(&folder.path().join("store"));
    let store = open(&url);
    let (visitor, heard, first) = begin("visitor", &url);
    assert_eq!(first, "has it");
    let locked = store.lock("/held/below", waiting()).expect("locks");
    assert_eq!(next(&heard), "gave it");
    drop(locked);
    kill(visitor);
}

/// Two processes, each with threads: nobody's count is lost.
fn fights(url: &str) {
    let store = open(url);
    store.write(|tx| tx.set("/n", &0.into())).expect("writes");
    let mut fighters = [start("fighter", Path::new(url)), start("fighter", Path::new(url))];
    for fighter in &mut fighters {
        assert!(fighter.wait().expect("waits").success(), "a fighter has failed");
    }
    let n = number(store.read().and_then(|state| state.get("/n")).expect("reads"));
    assert_eq!(n, 2 * THREADS * ROUNDS, "two held the lock at once");
    assert!(store.locks().expect("reads").is_empty());
}

#[test]
fn processes_and_threads_fight_for_a_lock() {
    let folder = folder::temporary();
    let url = url_of(&folder.path().join("store"));
    timed("2 processes of 4 threads fight for a lock on LMDB", || fights(&url));
}

#[test]
fn locks_on_a_server() {
    let Some(server) = RedisServer::start(&[]) else { return };
    timed("holders of locks killed on Redis", || killed_holders(&server.url("k"), 4));
    timed("2 processes of 4 threads fight for a lock on Redis", || fights(&server.url("f")));
    let store = open(&server.url("k"));
    let locked = store.lock("/held", LockOptions::default()).expect("locks");
    let lease = format!("/.owners/{}/until", locked.owner());
    let until = || number(store.read().and_then(|state| state.get(&lease)).expect("reads"));
    let first = until();
    assert!(first > 0, "others may be on other machines");
    // It is renewed at a third of its time.
    let begun = Instant::now();
    while until() == first {
        assert!(begun.elapsed() < spinney::owners::LEASE, "its lease is not renewed");
        thread::sleep(Duration::from_millis(100));
    }
    assert!(begun.elapsed() > spinney::owners::LEASE / 6, "it is renewed too often");
    drop(locked);
    let owners = store.read().and_then(|state| state.count("/.owners")).expect("counts");
    assert_eq!(owners, Some(0), "no lease is left");
}
