//! The change log: older states, feeds, undoing.

use std::sync::Arc;
use std::time::{Duration, Instant};

use spinney::feed::{Bookmark, Change, Changes, Event, Gap};
use spinney::history::{History, Retention};
use spinney::{ErrorKind, List, Map, OpenOptions, Store, Value};
use spinney_core::backend::Revision;

use super::Case;
use crate::subject::{Subject, json, text};

pub(super) const CASES: &[Case] = &[
    ("older states read as they were", older_states),
    ("what commits that make trees have changed together", between_made),
    ("what a removal took is read until it is forgotten", removed_subtree),
    ("imports and removals log small records", small_records),
    ("the log says who, when and why", notes),
    ("a feed tells each commit once, in order", feed),
    ("a feed of a path tells what concerns it", feed_of_path),
    ("a feed goes on from a bookmark", bookmarks),
    ("a feed tells of a gap", gaps),
    ("one commit is undone", reverted),
    ("what was changed since is not undone", not_reverted),
    ("an older state is restored", restored),
    ("history takes no more bytes than it may", bounded_bytes),
    ("history holds no more revisions than it may", bounded_revisions),
    ("history grows no older than it may", bounded_age),
    ("no history where none is wanted", no_history),
    ("whether a path has changed since", changed_since),
];

fn large(n: u64) -> Value {
    let item = |k| (format!("item{k}"), Value::Map([("n", k), ("of", n)].into_iter().collect()));
    Value::Map((0..n).map(item).collect())
}

fn older_states(s: &Subject) {
    let mut states: Vec<(Revision, String)> = vec![(s.revision(), s.text(""))];
    let mut note = |s: &Subject| states.push((s.revision(), s.text("")));
    s.write(|tx| tx.set("/a/big", &large(800)));
    note(s);
    s.write(|tx| {
        tx.set("/a/list", &(0..2_000_u64).map(Value::from).collect::<List>().to_vec().into())
    });
    note(s);
    for n in 0..20 {
        s.write(|tx| {
            tx.set(&format!("/a/big/item{}/n", n * 37), &"new".into())?;
            tx.insert(&format!("/a/list/{}", n * 90), &n.into())?;
            tx.remove(&format!("/a/big/item{}", n * 37 + 1)).map(drop)
        });
        note(s);
    }
    // Moved, then changed, then grown smaller until it lies within its parent again.
    s.write(|tx| tx.mv("/a/big", "/a/moved").and_then(|()| tx.set("/a/moved/item5/n", &0.into())));
    note(s);
    s.write(|tx| (0..795).try_for_each(|n| tx.remove(&format!("/a/moved/item{n}")).map(drop)));
    note(s);
    s.write(|tx| tx.set_meta("/a/moved", "origin", Some("here")));
    note(s);
    s.write(|tx| tx.set("/a/text", &"t".repeat(30_000).into()));
    note(s);
    s.write(|tx| tx.remove("/a"));
    note(s);
    s.store.reclaim().expect("reclaims");
    for (revision, expected) in states.iter().rev() {
        let old = s.store.at(*revision).unwrap_or_else(|error| panic!("{revision}: {error}"));
        assert_eq!(old.revision().expect("a revision"), *revision);
        assert!(crate::subject::text_of(&old, "") == *expected, "revision {revision} differs");
        assert!(old.check().expect("it reads").damaged.is_empty(), "revision {revision}");
    }
    let error = s.store.at(s.revision() + 1).map(drop).expect_err("it is in the future");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

/// What is made again in an older state must not meet what was made since: its ids are taken.
fn between_made(s: &Subject) {
    let first = s.revision();
    // Made from the last to the first, while what they have changed is told from the first to the last.
    s.write(|tx| tx.set("/a/z", &large(700)).and_then(|()| tx.set("/a/b", &large(200))));
    let second = s.revision();
    s.write(|tx| tx.set("/c", &large(500)).and_then(|()| tx.set("/a/c", &large(300))));
    s.write(|tx| tx.set("/a/z/item350", &large(400)));
    let last = s.revision();
    for (from, to) in [(first, second), (first, last), (second, last)] {
        let between = s.store.between(from, to).expect("it is kept");
        let states = [(between.before, from), (between.after, to)];
        for (state, revision) in states {
            let expected = crate::subject::text_of(&s.store.at(revision).expect("a state"), "");
            assert!(crate::subject::text_of(&state, "") == expected, "{from} to {to}: {revision}");
        }
    }
}

fn removed_subtree(s: &Subject) {
    s.write(|tx| tx.set("/a/big", &large(3_000)));
    let with = s.revision();
    s.write(|tx| tx.remove("/a/big"));
    s.store.reclaim().expect("reclaims");
    let old = s.store.at(with).expect("it is kept");
    assert_eq!(old.get("/a/big").expect("reads"), Some(large(3_000)));
    drop(old);
    let records = s.records();
    s.store.forget_before(s.revision() + 1).expect("forgets");
    s.store.wait_until_reclaimed();
    assert!(s.records() < records / 2, "{} of {records} records are left", s.records());
    let error = s.store.at(with).map(drop).expect_err("it is forgotten");
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains("not kept"), "{error}");
}

fn small_records(s: &Subject) {
    s.set("/a/small", "1");
    s.write(|tx| tx.set("/a/big", &large(20_000)));
    s.write(|tx| tx.remove("/a/big"));
    let snapshot = s.backend.snapshot().expect("a snapshot");
    for revision in [s.revision() - 1, s.revision()] {
        let record = snapshot.get(&spinney::history::log_key(revision)).expect("reads");
        let len = record.expect("it is logged").len();
        assert!(len <= 4_096, "revision {revision} logs {len} bytes");
    }
}

fn notes(s: &Subject) {
    s.write(|tx| {
        tx.set_author("ada")?;
        tx.set_message("first\nline")?;
        tx.set("/a", &1.into())
    });
    let snapshot = s.backend.snapshot().expect("a snapshot");
    let last =
        History::of(&*snapshot).backwards().expect("reads").next().expect("one").expect("one");
    let note = last.entry.note;
    assert_eq!((&*note.author, &*note.message), ("ada", "first\nline"));
    // Since 2025, and not in the future.
    assert!(note.time_ms > 1_735_689_600_000, "{}", note.time_ms);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time");
    assert!(u128::from(note.time_ms) <= now.as_millis());
    let long = "x".repeat(5_000);
    s.refused(ErrorKind::LimitExceeded, "message", |tx| tx.set_message(&long));
}

fn next(changes: &mut Changes) -> Option<Event> {
    changes.next(Duration::ZERO).expect("the feed reads")
}

fn change(changes: &mut Changes) -> Change {
    match next(changes) {
        Some(Event::Change(change)) => change,
        other => panic!("no change: {other:?}"),
    }
}

fn feed(s: &Subject) {
    let start = s.revision();
    let mut early = s.store.changes("", start).expect("a feed");
    assert_eq!(next(&mut early), None);
    for n in 0..600 {
        s.store.write(|tx| tx.set("/a/n", &n.into())).expect("sets");
    }
    let mut late = s.store.changes("", start).expect("a feed");
    for n in 0..600 {
        for feed in [&mut early, &mut late] {
            let change = change(feed);
            assert_eq!(change.revision, start + 1 + n);
            assert_eq!(change.diff.ops.len(), 1);
        }
    }
    assert_eq!((next(&mut early), next(&mut late)), (None, None));
    // One that waits is told.
    let store = s.store.clone();
    let writer = std::thread::spawn(move || store.write(|tx| tx.set("/a/n", &"last".into())));
    let told = early.next(Duration::from_secs(20)).expect("reads");
    writer.join().expect("ends").expect("sets");
    assert!(matches!(told, Some(Event::Change(change)) if change.revision == start + 601));
}

fn feed_of_path(s: &Subject) {
    s.set("/a/b", "{}");
    let mut changes = s.store.changes("/a/b", s.revision()).expect("a feed");
    s.set("/a/other", "1");
    s.set("/x", "1");
    s.set("/a/b/c", "1");
    let below = s.revision();
    s.set("/a/bb", "1");
    s.write(|tx| tx.remove("/a"));
    let above = s.revision();
    let revisions = [change(&mut changes).revision, change(&mut changes).revision];
    assert_eq!(revisions, [below, above]);
    assert_eq!(next(&mut changes), None);
    assert_eq!(changes.bookmark().revision, above);
    s.set("/y", "1");
    assert_eq!(next(&mut changes), None);
    assert_eq!(changes.bookmark().revision, s.revision(), "what does not concern it is passed");
    let error = s.store.changes("a", 0).map(drop).expect_err("no path");
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
}

fn bookmarks(s: &Subject) {
    let mut changes = s.store.changes("", s.revision()).expect("a feed");
    for n in 0..10 {
        s.store.write(|tx| tx.set("/a/n", &n.into())).expect("sets");
    }
    for _ in 0..4 {
        change(&mut changes);
    }
    let saved = changes.bookmark().to_string();
    let bookmark: Bookmark = saved.parse().expect("it parses");
    let mut resumed = s.store.changes_from("", &bookmark).expect("resumes");
    assert_eq!(change(&mut resumed).revision, change(&mut changes).revision);
    let foreign = Bookmark { store: "other".into(), ..bookmark };
    let mut anew = s.store.changes_from("", &foreign).expect("resumes");
    assert!(matches!(next(&mut anew), Some(Event::Gap(gap)) if gap.resume == s.revision()));
    assert_eq!(next(&mut anew), None);
    assert!("nonsense".parse::<Bookmark>().is_err());
}

fn gaps(s: &Subject) {
    let start = s.revision();
    let mut changes = s.store.changes("", start).expect("a feed");
    for n in 0..10 {
        s.store.write(|tx| tx.set("/a/n", &n.into())).expect("sets");
    }
    s.store.forget_before(start + 6).expect("forgets");
    let resume = start + 10;
    assert_eq!(next(&mut changes), Some(Event::Gap(Gap { after: start, resume })));
    assert_eq!(next(&mut changes), None);
    s.store.write(|tx| tx.set("/a/n", &"more".into())).expect("sets");
    assert_eq!(change(&mut changes).revision, resume + 1);
    // The future of a store that was put back.
    let mut ahead = s.store.changes("", resume + 100).expect("a feed");
    assert!(matches!(next(&mut ahead), Some(Event::Gap(_))));
}

fn reverted(s: &Subject) {
    s.set("/a", r#"{"x": 1, "l": [1, 2, 3], "m": {"k": "v"}}"#);
    s.write(|tx| tx.set("/a/big", &large(900)));
    let steps: [fn(&mut spinney::Transaction<'_>) -> spinney::Result<()>; 6] = [
        |tx| tx.set("/a/x", &2.into()),
        |tx| tx.remove("/a/big").map(drop),
        |tx| tx.mv("/a/l/0", "/a/l/2"),
        |tx| tx.mv("/a/big", "/a/m/big").and_then(|()| tx.set("/a/m/big/item7/n", &"x".into())),
        |tx| tx.set_meta("/a/m", "note", Some("1")).and_then(|()| tx.set("/a/new/deep", &1.into())),
        |tx| tx.set("/a/l/1", &"replaced".into()),
    ];
    for (number, step) in steps.into_iter().enumerate() {
        let before = s.text("");
        s.write(step);
        let revision = s.revision();
        // Something else comes after it.
        s.set("/other", &number.to_string());
        s.store.revert(revision).unwrap_or_else(|error| panic!("step {number}: {error}"));
        s.write(|tx| tx.remove("/other"));
        assert_eq!(s.text(""), before, "step {number}");
    }
}

fn not_reverted(s: &Subject) {
    s.set("/a", r#"{"x": 1, "y": 1}"#);
    s.write(|tx| tx.set("/a/x", &2.into()).and_then(|()| tx.set("/a/y", &2.into())));
    let revision = s.revision();
    s.set("/a/y", "3");
    let before = s.text("");
    let error = s.store.revert(revision).expect_err("it was changed since");
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.to_string().contains("/a/y"), "{error}");
    assert_eq!(s.text(""), before);
    assert!(s.store.revert(0).is_err());
    assert!(s.store.revert(s.revision() + 1).is_err());
}

fn restored(s: &Subject) {
    s.set("/a", r#"{"x": 1, "l": [1, 2, 3]}"#);
    s.write(|tx| tx.set("/a/big", &large(900)));
    let (revision, before) = (s.revision(), text(&s.store));
    s.write(|tx| tx.remove("/a/l/1"));
    s.write(|tx| tx.mv("/a/big", "/b"));
    s.write(|tx| tx.set("/b/item3", &json("[1, 2]")));
    s.write(|tx| tx.remove("/a"));
    s.store.restore(revision).expect("restores");
    assert_eq!(text(&s.store), before);
    s.store.restore(revision).expect("it is so already");
    let map: Map = [("k", 1)].into_iter().collect();
    s.write(|tx| tx.set("/c", &map.clone().into()));
}

fn keeping(s: &Subject, retention: Retention) -> Store {
    OpenOptions::new().retention(retention).over(Arc::clone(&s.backend), None)
}

fn logged(s: &Subject) -> usize {
    s.store.read().expect("a snapshot").log().expect("reads").count()
}

fn bounded_bytes(s: &Subject) {
    let store = keeping(s, Retention { len_max_bytes: 400_000, ..Retention::DEFAULT });
    // Each takes about 60 kB, and is removed by the next one.
    for n in 0..40 {
        store.write(|tx| tx.set("/a/big", &large(1_500 + n))).expect("sets");
    }
    store.wait_until_reclaimed();
    let kept = logged(s);
    assert!((2..20).contains(&kept), "{kept} commits are kept");
    let oldest = s.store.at(s.revision() - kept as u64).expect("the oldest state");
    assert!(oldest.check().expect("it reads").damaged.is_empty());
    drop(oldest);
    let records = s.records();
    s.check();
    assert!(s.records() * 20 > records, "{records} records with history, {} without", s.records());
}

fn bounded_revisions(s: &Subject) {
    let store = keeping(s, Retention { revisions_max: 20, ..Retention::DEFAULT });
    for n in 0..200 {
        store.write(|tx| tx.set("/a", &n.into())).expect("sets");
    }
    store.wait_until_reclaimed();
    let newest = s.revision();
    // It is trimmed every 64 revisions, by whom no more than 15 are left beside.
    assert!((20..100).contains(&logged(s)), "{} commits are kept", logged(s));
    assert_eq!(s.store.at(newest - 20).unwrap().get("/a").unwrap(), Some(179.into()));
    assert_eq!(s.store.at(1).map(drop).expect_err("it is forgotten").kind(), ErrorKind::NotFound);
    let fewer = keeping(s, Retention { revisions_max: 5, ..Retention::DEFAULT });
    fewer.write(|tx| tx.remove("/a")).expect("removes");
    fewer.wait_until_reclaimed();
    assert!((5..=20).contains(&logged(s)), "{} commits are kept", logged(s));
}

fn bounded_age(s: &Subject) {
    const HOUR_MS: u64 = 60 * 60 * 1_000;
    let begun = s.revision();
    s.set("/a", "0");
    let young = keeping(s, Retention { age_max_ms: Some(HOUR_MS), ..Retention::DEFAULT });
    for n in 1..100 {
        young.write(|tx| tx.set("/a", &n.into())).expect("sets");
    }
    young.wait_until_reclaimed();
    assert_eq!(logged(s), 100, "none is an hour old");
    let old = keeping(s, Retention { age_max_ms: Some(0), ..Retention::DEFAULT });
    let began = Instant::now();
    // What a later millisecond finds is too old.
    while logged(s) >= 100 {
        assert!(began.elapsed() < Duration::from_secs(60), "{} commits are kept", logged(s));
        // What it replaces is to be reclaimed, so somebody looks.
        old.write(|tx| tx.set("/b", &large(200))).expect("sets");
        old.write(|tx| tx.remove("/b")).expect("removes");
        old.wait_until_reclaimed();
    }
    let forgotten = s.store.at(begun + 1).map(drop).expect_err("it is forgotten");
    assert_eq!(forgotten.kind(), ErrorKind::NotFound);
}

fn no_history(s: &Subject) {
    s.set("/a", "1");
    s.write(|tx| tx.set("/b", &large(2_000)));
    assert_eq!(logged(s), 2);
    let store = keeping(s, Retention { revisions_max: 0, ..Retention::DEFAULT });
    store.write(|tx| tx.remove("/b")).expect("removes");
    store.write(|tx| tx.set("/a", &2.into())).expect("sets");
    assert_eq!(logged(s), 0);
    store.wait_until_reclaimed();
    assert!(s.records() < 10, "{} records are left", s.records());
    s.set("/a", "3");
    assert_eq!(logged(s), 1);
}

fn changed_since(s: &Subject) {
    s.set("/a", r#"{"x": 1, "y": {"z": 1}}"#);
    let first = s.revision();
    s.set("/a/x", "2");
    s.set("/b", "2");
    let since = |path: &str, revision| {
        let mut found = None;
        s.store
            .write(|tx| {
                found = Some(tx.changed_since(path, revision));
                Ok(())
            })
            .expect("nothing is written");
        found.expect("it was asked")
    };
    assert_eq!(since("/a/x", first).expect("tells"), Some(first + 1));
    assert_eq!(since("/a/y", first).expect("tells"), None);
    assert_eq!(since("/a", first).expect("tells"), Some(first + 1));
    assert_eq!(since("/a/y/z", first - 1).expect("tells"), Some(first), "what it lies in came");
    assert_eq!(since("", s.revision()).expect("tells"), None);
    assert_eq!(since("/a", s.revision() + 1).expect_err("the future").kind(), ErrorKind::NotFound);
    s.store.forget_before(s.revision()).expect("forgets");
    assert_eq!(since("/a", first).expect_err("it is forgotten").kind(), ErrorKind::NotFound);
}
