//! Feeds in other processes, while writers and subscribers are killed, subscribers are stopped and the log is trimmed.
//!
//! Other processes are this binary again, which runs `child` with a role from the environment.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

use spinney::expand::Contained;
use spinney::feed::{Bookmark, Change, Event};
use spinney::value::ValueBuilder;
use spinney::{Durability, Store, Value};
use spinney_conformance::child::{self, said, say, signal, start};
use spinney_conformance::{folder, timed};

const RECONNECTS: usize = 1_000;
const KILLS: usize = 150;
/// Events after which a subscriber begins anew from its bookmark.
const EVENTS_MAX: usize = 3;
/// Commits that are made while a subscriber is stopped.
const WHILE_STOPPED: u64 = 20;

fn open(dir: &Path) -> Store {
    spinney::open(&format!("lmdb:{}", dir.display())).expect("the store opens")
}

#[test]
fn child() {
    let Some((role, dir)) = child::role() else { return };
    match role.as_str() {
        "write" => write_for_ever(&open(&dir)),
        "follow" => {
            let options = spinney::OpenOptions::new().create(false).read_only(true);
            let store = options.open(&format!("lmdb:{}", dir.display())).expect("it opens");
            follow_for_ever(&store, &notes(&dir));
        }
        other => panic!("no role `{other}`"),
    }
}

/// Where the subscriber writes what it was told.
fn notes(dir: &Path) -> PathBuf {
    dir.with_extension("notes")
}

/// Commit `n` sets two paths to `n`, so the number is the revision, and half a commit shows.
fn write_for_ever(store: &Store) {
    say("writes");
    loop {
        let levels = [Durability::Durable, Durability::Process, Durability::None];
        let level = fastrand::choice(levels).expect("three levels");
        let next = |tx: &mut spinney::Transaction<'_>| {
            let n = tx.base() + 1;
            tx.set("/left/n", &n.into())?;
            tx.set("/right/n", &n.into())
        };
        store.write_with(level, next).expect("commits");
        thread::sleep(Duration::from_micros(fastrand::u64(..800)));
    }
}

/// Notes each event in a line with the bookmark behind it, so that a killed subscriber goes on from its
/// last whole line.
fn follow_for_ever(store: &Store, path: &Path) {
    let mut text = fs::read_to_string(path).unwrap_or_default();
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    fs::write(path, &text).expect("cuts a line that was torn");
    let last = text.lines().last().and_then(|line| line.rsplit(' ').next());
    let mut bookmark: Option<Bookmark> = last.map(|text| text.parse().expect("a bookmark"));
    let mut file = OpenOptions::new().append(true).open(path).expect("the notes open");
    say("follows");
    loop {
        let mut changes = match &bookmark {
            None => store.changes("", 0),
            Some(bookmark) => store.changes_from("", bookmark),
        }
        .expect("a feed");
        for _ in 0..EVENTS_MAX {
            let event = changes.next(Duration::from_secs(60)).expect("it reads");
            let after = changes.bookmark();
            let line = match event {
                None => break,
                Some(Event::Change(change)) => {
                    format!("{} {} {after}\n", change.revision, numbers(&change))
                }
                Some(Event::Gap(gap)) => format!("gap {} {after}\n", gap.resume),
            };
            file.write_all(line.as_bytes()).expect("notes");
            bookmark = Some(after);
        }
    }
}

/// What the operations of a change set, with `+` between.
fn numbers(change: &Change) -> String {
    let number = |new: &[u8]| {
        let mut builder = ValueBuilder::default();
        Contained(new).visit(&mut builder).expect("it reads");
        match builder.finish() {
            Some(Value::Number(number)) => number.to_string(),
            // The first commit makes the trees.
            Some(Value::Map(map)) => match map.get("n") {
                Some(Value::Number(number)) => number.to_string(),
                other => format!("{other:?}"),
            },
            other => format!("{other:?}"),
        }
    };
    let set = change.diff.ops.iter().map(|op| op.new.as_deref().map_or("-".to_owned(), number));
    set.collect::<Vec<_>>().join("+")
}

struct Group {
    dir: PathBuf,
    writer: Child,
    follower: Child,
}

impl Group {
    fn begin(dir: &Path, role: &str) -> Child {
        let mut child = start(role, dir);
        assert!(said(&mut child).next().is_some(), "the child has not begun");
        child
    }

    fn kill(child: &mut Child) {
        child.kill().expect("kill");
        child.wait().expect("wait");
    }

    fn events(&self) -> usize {
        fs::read_to_string(notes(&self.dir)).unwrap_or_default().lines().count()
    }
}

/// Stops a subscriber, wherever it is, and waits for commits, for which nobody waits.
fn goes_on_without(store: &Store, follower: &Child) {
    signal(follower, "-STOP");
    let newest = store.read().and_then(|state| state.revision()).expect("reads");
    for upto in newest + 1..newest + WHILE_STOPPED {
        let found = store.wait(upto - 1, Duration::from_secs(60)).expect("waits");
        assert!(found >= upto, "the writer waits for a subscriber that is stopped");
    }
    if fastrand::bool() {
        signal(follower, "-CONT");
    }
}

#[test]
fn feeds_survive_kills_reconnects_and_trimming() {
    let folder = folder::temporary();
    let dir = folder.path().join("store");
    let store = open(&dir);
    let mut group = Group {
        writer: Group::begin(&dir, "write"),
        follower: Group::begin(&dir, "follow"),
        dir: dir.clone(),
    };
    let mut kills = 0;
    timed("kills", || {
        let began = Instant::now();
        while kills < KILLS || group.events() < RECONNECTS * EVENTS_MAX {
            assert!(began.elapsed() < Duration::from_secs(300), "{} events", group.events());
            thread::sleep(Duration::from_millis(fastrand::u64(5..60)));
            if fastrand::bool() {
                Group::kill(&mut group.writer);
                group.writer = Group::begin(&dir, "write");
            } else {
                if fastrand::bool() {
                    goes_on_without(&store, &group.follower);
                }
                Group::kill(&mut group.follower);
                if fastrand::u8(..4) == 0 {
                    thread::sleep(Duration::from_millis(fastrand::u64(..60)));
                    let newest = store.read().and_then(|state| state.revision()).expect("reads");
                    let first = newest.saturating_sub(fastrand::u64(..60));
                    store.forget_before(first).expect("forgets");
                }
                group.follower = Group::begin(&dir, "follow");
            }
            kills += 1;
        }
    });
    Group::kill(&mut group.writer);
    let newest = store.write(|tx| tx.set("/left/n", &"end".into())).expect("commits").revision;
    let began = Instant::now();
    let noted = || fs::read_to_string(notes(&dir)).expect("the notes");
    while !noted().ends_with(&format!(":{newest}\n")) {
        assert!(began.elapsed() < Duration::from_secs(60), "the end was not told");
        thread::sleep(Duration::from_millis(10));
    }
    Group::kill(&mut group.follower);
    let (mut last, mut gaps) = (0, 0);
    for line in noted().lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["gap", resume, _] => {
                let resume: u64 = resume.parse().expect("a revision");
                assert!(resume > last, "a gap that goes back: {line} after {last}");
                (last, gaps) = (resume, gaps + 1);
            }
            [revision, set, _] => {
                let revision: u64 = revision.parse().expect("a revision");
                assert_eq!(revision, last + 1, "out of order: {line}");
                let is_end = revision == newest;
                assert!(is_end || set == format!("{revision}+{revision}"), "not whole: {line}");
                last = revision;
            }
            _ => panic!("no line: {line}"),
        }
    }
    assert_eq!(last, newest);
    println!("{kills} kills, {newest} commits, {gaps} gaps");
}
