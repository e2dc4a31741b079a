//! Locks of paths: what they refuse and what not, how they end, and who is told what.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use spinney::ErrorKind::{Busy, InvalidInput, NotFound};
use spinney::patch::Patch;
use spinney::{Error, ErrorKind, Existing, Lock, LockOptions, OpenOptions, Result, Store, Value};

use super::Case;
use crate::subject::{Subject, json, number, text};

pub(super) const CASES: &[Case] = &[
    ("a lock refuses changes at it, above it and below it", refusals),
    ("a lock refuses every kind of write", kinds_of_writes),
    ("a lock refuses what would bring an older state back", older_states),
    ("a lock does not refuse its holder", holder),
    ("locks do not meet", meetings),
    ("locks outlive what history and imports do", reserved),
    ("a lock that is released", release),
    ("a lock whose time is up", leases),
    ("a lock that is broken", breaking),
    ("who waits for a lock is woken", waiting),
    ("threads that fight for a lock", fight),
    ("a dead holder's lock", dead_holder),
    ("locks that make no sense", nonsense),
];

/// Long enough for whatever is to happen.
const LONG: Duration = Duration::from_secs(60);

/// Another handle of the store.
fn other(s: &Subject, author: &str) -> Store {
    OpenOptions::new().author(author).over(Arc::clone(&s.backend), None)
}

fn lock(store: &Store, path: &str) -> Lock {
    store.lock(path, LockOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn waiting_for(wait: Duration) -> LockOptions {
    LockOptions { wait: Some(wait), ..LockOptions::default() }
}

fn leased(lease: Duration) -> LockOptions {
    LockOptions { lease: Some(lease), ..LockOptions::default() }
}

/// Asserts that something is refused with all of these texts in one line, and nothing has changed.
fn refused<T>(s: &Subject, kind: ErrorKind, parts: &[&str], tried: impl FnOnce() -> Result<T>) {
    let (revision, before) = (s.revision(), text(&s.store));
    let Err(error) = tried() else { panic!("it was not refused: {parts:?}") };
    assert_eq!(error.kind(), kind, "{error}");
    let said = error.to_string();
    assert!(parts.iter().all(|part| said.contains(part)), "`{said}` does not say {parts:?}");
    assert!(!said.contains('\n') && said.len() < 1_000, "one short line: {said}");
    assert_eq!((s.revision(), text(&s.store)), (revision, before), "after {said}");
}

fn refusals(s: &Subject) {
    s.set("/a", r#"{"b": {"c": {"d": 1}, "x": 1}, "list": [0, 1, 2]}"#);
    let ann = other(s, "ann");
    let options = LockOptions { name: "deploy".to_owned(), ..LockOptions::default() };
    let locked = ann.lock("/a/b/c", options).expect("locks");
    let process = format!("ann, process {} on ", std::process::id());
    let says = ["`/a/b/c` is locked by ", &process, "`deploy`", "unlock --break /a/b/c"];
    let set = |path: &'static str| move || s.store.write(|tx| tx.set(path, &7.into()));
    for path in ["/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/b/c/e", "/a/b/c/e/f"] {
        refused(s, Busy, &says, set(path));
    }
    for path in ["/b", "/a/x", "/a/b/x", "/a/b/cc", "/a/list/0"] {
        set(path)().unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    let meta = |path: &'static str| move || s.store.write(|tx| tx.set_meta(path, "k", Some("v")));
    refused(s, Busy, &says, meta("/a/b/c"));
    meta("/a/b")().expect("its metadata is its own");
    // What changes nothing is no commit.
    s.store.write(|tx| tx.set("/a/b/c/d", &1.into())).expect("it is the same");
    drop(locked);
    let element = lock(&ann, "/a/list/1");
    let insert = |at: &'static str| move || s.store.write(|tx| tx.insert(at, &9.into()));
    refused(s, Busy, &["`/a/list/1` is locked"], insert("/a/list/0"));
    refused(s, Busy, &["`/a/list/1` is locked"], || s.store.write(|tx| tx.remove("/a/list/0")));
    insert("/a/list/2")().expect("it stays where it is");
    drop(element);
    insert("/a/list/0")().expect("nothing is locked");
    // Nothing is there yet, nor above it.
    let deep = lock(&ann, "/new/deep/er");
    let make = |path: &'static str, text: &str| {
        let value = json(text);
        move || s.store.write(|tx| tx.set(path, &value))
    };
    for (path, text) in [
        ("/new", "5"),
        ("/new", r#"{"deep": 5}"#),
        ("/new", r#"{"deep": {"er": 5}}"#),
        ("/new/deep/er", "5"),
    ] {
        refused(s, Busy, &["`/new/deep/er` is locked"], make(path, text));
    }
    make("/new/beside", "5")().expect("it makes what is above");
    make("/new/deep/too", "5")().expect("it makes what is above");
    refused(s, Busy, &["`/new/deep/er` is locked"], make("/new/deep", "{}"));
    refused(s, Busy, &["`/new/deep/er` is locked"], || s.store.write(|tx| tx.remove("/new")));
    ann.write(|tx| tx.set("/new/deep/er", &1.into())).expect("it is its own");
    drop(deep);
}

fn kinds_of_writes(s: &Subject) {
    s.set("/held", r#"{"n": 1, "list": [1, 2], "inner": {"k": 1}}"#);
    s.set("/free", r#"{"n": 1, "list": [1, 2]}"#);
    let ann = other(s, "ann");
    let _lock = lock(&ann, "/held");
    type Write = fn(&mut spinney::Transaction<'_>) -> Result<()>;
    let writes: &[(&str, Write)] = &[
        ("set", |tx| tx.set("/held/n", &2.into())),
        ("create", |tx| tx.create("/held/new", &2.into())),
        ("replace", |tx| tx.replace("/held/n", &2.into())),
        ("remove", |tx| tx.remove("/held/n").map(drop)),
        ("remove it", |tx| tx.remove("/held").map(drop)),
        ("insert", |tx| tx.insert("/held/list/0", &2.into())),
        ("move from", |tx| tx.mv("/held/n", "/free/m")),
        ("move to", |tx| tx.mv("/free/n", "/held/m")),
        ("move it", |tx| tx.mv("/held", "/other")),
        ("copy to", |tx| tx.copy("/free/n", "/held/m")),
        ("merge", |tx| tx.merge("/held", &json(r#"{"inner": {"k": null}}"#))),
        ("patch", |tx| {
            let patch = r#"[{"op": "add", "path": "/free/z", "value": 1},
                            {"op": "remove", "path": "/held/list/0"}]"#;
            tx.patch("", &Patch::from_value(&json(patch))?)
        }),
        ("import", |tx| {
            let many: Value = (0..2_000_u64).map(Value::from).collect::<Vec<_>>().into();
            tx.set_with("/held/list", Existing::Any, |visitor| many.visit(visitor))
        }),
        ("several", |tx| {
            tx.set("/free/n", &5.into())?;
            tx.set("/held/inner/k", &5.into())
        }),
    ];
    for (what, write) in writes {
        println!("locks: {what}");
        refused(s, Busy, &["`/held` is locked by ann"], || s.store.write(write));
    }
    s.store.write(|tx| tx.copy("/held/n", "/free/m")).expect("it is only read");
    if !s.backend.capabilities().multi_tree_commit {
        return super::skipped("the root is replaced", "it has no multi_tree_commit");
    }
    refused(s, Busy, &["`/held` is locked by ann"], || {
        s.store.write(|tx| tx.set("", &json(r#"{"free": 1}"#)))
    });
}

fn older_states(s: &Subject) {
    s.set("/held", "1");
    s.set("/free", "1");
    let first = s.revision();
    s.set("/held", "2");
    let held = s.revision();
    s.set("/free", "2");
    let free = s.revision();
    let ann = other(s, "ann");
    let locked = lock(&ann, "/held");
    refused(s, Busy, &["`/held` is locked by ann"], || s.store.revert(held));
    refused(s, Busy, &["`/held` is locked by ann"], || s.store.restore(first));
    s.store.revert(free).expect("it is elsewhere");
    assert_eq!(number(s.get("/free")), 1);
    let with_lock = s.revision();
    drop(locked);
    s.store.restore(with_lock).expect("restores");
    assert!(s.store.locks().expect("reads").is_empty(), "a lock does not come back");
    let locked = lock(&ann, "/held");
    s.store.restore(with_lock - 1).expect("what is locked is as it was then");
    assert!(locked.is_held(), "and a lock does not go");
    drop(locked);
    s.store.restore(first).expect("restores");
    assert_eq!((number(s.get("/held")), number(s.get("/free"))), (1, 1));
}

fn holder(s: &Subject) {
    s.set("/a", r#"{"b": 1}"#);
    let ann = other(s, "ann");
    let locked = lock(&ann, "/a/b");
    for path in ["/a/b", "/a/b/c", "/a"] {
        ann.clone().write(|tx| tx.set(path, &Value::map())).expect("it is its own");
    }
    // As `spinney lock` has its command write.
    let helper = OpenOptions::new().owner(Some(locked.owner())).over(Arc::clone(&s.backend), None);
    helper.write(|tx| tx.set("/a/b", &5.into())).expect("it writes for the holder");
    refused(s, Busy, &["`/a/b` is locked"], || helper.lock("/a", LockOptions::default()).map(drop));
    refused(s, Busy, &["`/a/b` is locked"], || s.store.write(|tx| tx.remove("/a")));
    drop(helper);
    assert!(locked.is_held(), "its helper has gone, and not it");
    assert!(locked.unlock().expect("unlocks"));
    s.store.write(|tx| tx.remove("/a")).expect("nothing is locked");
}

fn meetings(s: &Subject) {
    let (ann, bob) = (other(s, "ann"), other(s, "bob"));
    let locked = lock(&ann, "/a/b");
    for store in [&ann, &bob] {
        for path in ["", "/a", "/a/b", "/a/b/c"] {
            refused(s, Busy, &["lock ", "`/a/b` is locked by ann, process"], || {
                store.lock(path, LockOptions::default()).map(drop)
            });
        }
    }
    let beside = lock(&bob, "/a/c");
    let far = lock(&ann, "/b");
    let paths: Vec<String> =
        s.store.locks().expect("reads").iter().map(|lock| (*lock.path).to_owned()).collect();
    assert_eq!(paths, ["/a/b", "/a/c", "/b"]);
    drop((locked, beside, far));
    let all = lock(&bob, "");
    refused(s, Busy, &["the root is locked by bob"], || {
        s.store.write(|tx| tx.set("/x", &1.into()))
    });
    refused(s, Busy, &["the root is locked by bob"], || {
        ann.lock("/x", LockOptions::default()).map(drop)
    });
    bob.write(|tx| tx.set("/x", &1.into())).expect("it is its own");
    drop(all);
    s.store.write(|tx| tx.set("/x", &2.into())).expect("nothing is locked");
}

fn reserved(s: &Subject) {
    s.set("/a", "1");
    let ann = other(s, "ann");
    let locked = lock(&ann, "/a");
    let entry = format!("/.locks/{}", s.revision());
    refused(s, Busy, &["`/a` is locked"], || s.store.write(|tx| tx.remove("/.locks")));
    refused(s, Busy, &["`/a` is locked"], || s.store.write(|tx| tx.remove(&entry)));
    refused(s, Busy, &["`/a` is locked"], || {
        s.store.write(|tx| tx.set(&format!("{entry}/expires"), &1.into()))
    });
    refused(s, InvalidInput, &["`/.locks` holds locks"], || {
        s.store.write(|tx| tx.set("/.locks/x", &1.into()))
    });
    let stolen = s.get(&entry).expect("an entry");
    refused(s, InvalidInput, &["a lock of somebody else"], || {
        s.store.write(|tx| tx.set("/.locks/999999", &stolen))
    });
    if s.backend.capabilities().multi_tree_commit {
        // As an export taken while something was locked, which is imported while something else is.
        let mut all = json(r#"{"b": 2}"#);
        let Value::Map(members) = &mut all else { unreachable!() };
        members.insert(".locks", json(r#"{"5": 1}"#));
        ann.write(|tx| tx.set("", &all)).expect("it holds what that changes");
        assert!(locked.is_held() && s.get("/a").is_none() && s.get("/.locks/5").is_none());
        let copy = spinney::open("memory:").expect("opens");
        let copied = copy.copy_from(&s.store.read().expect("reads"), &mut |_| ());
        copied.expect("copies");
        assert_eq!(text(&copy), r#"{"b":2}"#, "locks do not go along");
    }
    drop(locked);
    s.store.write(|tx| tx.remove("/.locks")).expect("nothing is locked");
}

fn release(s: &Subject) {
    let ann = other(s, "ann");
    let locked = lock(&ann, "/a");
    assert!(locked.is_held());
    assert!(locked.unlock().expect("unlocks"), "it was locked");
    let locked = lock(&s.store, "/a");
    drop(ann);
    assert!(locked.is_held());
    drop(locked);
    assert!(s.store.locks().expect("reads").is_empty());
    let last = {
        let gone = other(s, "gone");
        lock(&gone, "/a/b")
    };
    refused(s, Busy, &["`/a/b` is locked by gone"], || s.store.write(|tx| tx.set("/a", &1.into())));
    drop(last);
    s.store.write(|tx| tx.set("/a", &1.into())).expect("nothing is locked");
    assert_eq!(s.count("/.locks"), Some(0));
    if s.backend.capabilities().multi_process {
        assert_eq!(s.count("/.owners"), Some(0), "no lease is left");
    }
}

fn leases(s: &Subject) {
    let ann = other(s, "ann");
    let short = Duration::from_secs(1);
    // The lease begins with the commit, and its end is known in milliseconds.
    let until = Instant::now() + short - Duration::from_millis(2);
    let locked = ann.lock("/a", leased(short)).expect("locks");
    let info = s.store.locks().expect("reads").remove(0);
    assert_eq!(info.expires_ms.map(|at| at - info.since_ms), Some(1_000));
    let set = || s.store.write(|tx| tx.set("/a", &fastrand::u64(..).into()));
    while let Err(error) = set() {
        assert_eq!(error.kind(), Busy, "{error}");
        thread::sleep(Duration::from_millis(10));
    }
    assert!(Instant::now() >= until, "it was not locked to the end");
    assert!(!locked.is_held() && s.store.locks().expect("reads").is_empty());
    assert_eq!(s.count("/.locks"), Some(0), "who met it has removed it");
    let gone = locked.renew().expect_err("it is gone");
    assert_eq!(gone.kind(), NotFound, "{gone}");
    assert!(!locked.unlock().expect("unlocks"), "it was not locked any more");
    let locked = ann.lock("/a", leased(LONG)).expect("locks");
    let before = s.store.locks().expect("reads").remove(0).expires_ms;
    thread::sleep(Duration::from_millis(20));
    locked.renew().expect("renews");
    assert!(s.store.locks().expect("reads").remove(0).expires_ms > before);
    drop(locked);
    // Whose time is up may renew as long as nobody came between.
    let late = ann.lock("/b", leased(Duration::from_millis(20))).expect("locks");
    thread::sleep(Duration::from_millis(40));
    assert!(!late.is_held());
    late.renew().expect("nobody was there");
    let _ = late.unlock();
    let late = ann.lock("/b", leased(Duration::from_millis(20))).expect("locks");
    let taken = s.store.lock("/b/c", waiting_for(LONG)).expect("its time is up");
    assert!(late.renew().is_err() && !late.is_held() && taken.is_held());
}

fn breaking(s: &Subject) {
    let (ann, bob) = (other(s, "ann"), other(s, "bob"));
    let options = LockOptions { name: "deploy".to_owned(), ..LockOptions::default() };
    let locked = ann.lock("/a/b", options).expect("locks");
    for path in ["/a", "/a/b/c", "/z", ""] {
        refused(s, NotFound, &["is not locked"], || bob.break_lock(path));
    }
    let broken = bob.break_lock("/a/b").expect("breaks");
    assert_eq!((&*broken.value.path, &*broken.value.user), ("/a/b", "ann"));
    assert!(!locked.is_held());
    let snapshot = s.store.read().expect("reads");
    let logged = snapshot.log().expect("a log").next().expect("a commit").expect("reads");
    let note = logged.entry.note;
    assert_eq!((logged.revision, &*note.author), (broken.revision, "bob"));
    assert!(note.message.starts_with("break a lock: `/a/b` is locked by ann, process"), "{note:?}");
    assert!(note.message.ends_with("(`deploy`)"), "{note:?}");
    s.store.write(|tx| tx.set("/a/b", &1.into())).expect("nothing is locked");
    let again = lock(&bob, "/a/b");
    refused(s, Busy, &["`/a/b` is locked by bob"], || ann.write(|tx| tx.set("/a/b", &2.into())));
    assert!(!locked.unlock().expect("unlocks") && again.is_held(), "it has unlocked its own only");
}

fn waiting(s: &Subject) {
    let ann = other(s, "ann");
    let locked = lock(&ann, "/a");
    let begun = Instant::now();
    let wait = Duration::from_millis(200);
    refused(s, Busy, &["`/a` is locked by ann"], || {
        s.store.lock("/a/b", waiting_for(wait)).map(drop)
    });
    assert!(begun.elapsed() >= wait, "it has waited");
    let (says, heard) = channel();
    thread::scope(|scope| {
        for _ in 0..3 {
            let says = says.clone();
            scope.spawn(move || {
                let locked = s.store.lock("/a", waiting_for(LONG)).expect("locks");
                says.send(Instant::now()).expect("it listens");
                drop(locked);
            });
        }
        // Commits elsewhere wake them in vain.
        for n in 0..5_u64 {
            ann.write(|tx| tx.set("/other", &n.into())).expect("writes");
            thread::sleep(Duration::from_millis(20));
        }
        assert!(heard.try_recv().is_err(), "it is locked");
        drop(locked);
        for _ in 0..3 {
            heard.recv_timeout(LONG).expect("all get it");
        }
    });
}

fn fight(s: &Subject) {
    const ROUNDS: u64 = 6;
    let stores = [s.store.clone(), s.store.clone(), other(s, "ann"), other(s, "bob")];
    thread::scope(|scope| {
        for store in &stores {
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    let locked = store.lock("/n", waiting_for(LONG)).expect("locks");
                    // In two steps, which nobody comes between.
                    let n = number(store.read().and_then(|state| state.get("/n")).expect("reads"));
                    thread::yield_now();
                    store.write(|tx| tx.set("/n", &(n + 1).into())).expect("it is its own");
                    assert!(locked.is_held());
                    drop(locked);
                }
            });
        }
    });
    assert_eq!(number(s.get("/n")), ROUNDS * stores.len() as u64);
}

/// What a process that was killed leaves, which the tests of processes do in truth.
fn dead_holder(s: &Subject) {
    let ann = other(s, "ann");
    let locked = lock(&ann, "/a");
    let entry = format!("/.locks/{}", s.revision());
    let mut stored = s.get(&entry).expect("an entry");
    drop((locked, ann));
    let Value::Map(members) = &mut stored else { panic!("{stored:?}") };
    members.insert("path", "/dead");
    // Its owner has gone with its handle.
    s.store.write(|tx| tx.set("/.locks/1", &stored)).expect("it locks nothing");
    assert!(s.store.locks().expect("reads").is_empty());
    s.store.write(|tx| tx.set("/elsewhere", &1.into())).expect("writes");
    assert_eq!(s.count("/.locks"), Some(1), "nobody has met it");
    s.store.write(|tx| tx.set("/dead/x", &1.into())).expect("writes");
    assert_eq!(s.count("/.locks"), Some(0), "who met it has removed it");
    s.store.write(|tx| tx.set("/.locks/1", &stored)).expect("it locks nothing");
    let locked = lock(&s.store, "/other");
    assert_eq!(s.count("/.locks"), Some(1), "who locks removes all of them");
    drop(locked);
}

fn nonsense(s: &Subject) {
    let refused = |kind: ErrorKind, part: &str, path: &str, options: LockOptions| {
        let tried: Result<Lock, Error> = s.store.lock(path, options);
        refused(s, kind, &["lock ", part], || tried.map(drop));
    };
    refused(InvalidInput, "does not start with `/`", "people", LockOptions::default());
    refused(InvalidInput, "where locks are kept", "/.locks/5", LockOptions::default());
    refused(InvalidInput, "where locks are kept", "/.owners", LockOptions::default());
    refused(InvalidInput, "lease of 0", "/a", leased(Duration::ZERO));
    let name = "two\nlines".to_owned();
    refused(InvalidInput, "printable", "/a", LockOptions { name, ..LockOptions::default() });
    lock(&s.store, "/~01~1\u{7}'").unlock().expect("any path will do");
}
