//! Commits: atomic, numbered, seen by later snapshots only, described by their diffs.

use spinney::ErrorKind::{Conflict, InvalidInput};
use spinney::{
    Container, Error, Existing, Key, Receiver, Result, Scalar, Transaction, Value, Visitor,
};

use super::Case;
use crate::subject::{Subject, json, text};

pub(super) const CASES: &[Case] = &[
    ("a snapshot stays while others write", snapshots_stay),
    ("a transaction given up changes nothing", given_up),
    ("a source that fails changes nothing", failing_source),
    ("a source that fails at the root changes nothing", failing_source_at_the_root),
    ("an edit that fails leaves the others", failed_edit),
    ("writes without effect keep the revision", no_effect),
    ("two edits of a node make one operation", one_operation),
    ("edits that cancel out", cancelled),
    ("a diff applies only where it belongs", misplaced_diffs),
    ("conflicting transactions", conflicts),
    ("several trees in one commit", several_trees),
    ("threads count together", threads),
];

fn snapshots_stay(s: &Subject) {
    let list: Vec<Value> = (0..3_000_u64).map(Value::from).collect();
    s.write(|tx| tx.set("/a/l", &list.clone().into()));
    s.write(|tx| tx.set("/a/text", &"t".repeat(60_000).into()));
    let held = s.store.read().expect("a snapshot");
    let before = held.get("").expect("reads");
    for n in 0..20_u64 {
        s.store.write(|tx| tx.remove(&format!("/a/l/{}", n * 31))).expect("removes");
        s.store.write(|tx| tx.set("/a/text", &n.into())).expect("sets");
    }
    s.store.write(|tx| tx.remove("/a")).expect("removes");
    s.store.reclaim().expect("reclaims");
    s.store.write(|tx| tx.set("/a/l", &Value::list())).expect("sets");
    assert!(held.get("").expect("reads") == before);
    assert_eq!(held.revision().expect("revision"), 2);
    assert_eq!(held.count("/a/l").expect("counts"), Some(3_000));
    assert!(held.check().expect("reads").is_sound());
    assert_eq!(s.text(""), r#"{"a":{"l":[]}}"#);
}

fn given_up(s: &Subject) {
    s.set("/a", r#"{"x": 1, "l": [1, 2]}"#);
    let (before, records) = (text(&s.store), s.records());
    s.refused(InvalidInput, "given up", |tx| {
        tx.set("/a/x", &2.into())?;
        tx.remove("/a/l/0")?;
        tx.set("/b/big", &vec![Value::from("x".repeat(500)); 300].into())?;
        tx.mv("/a", "/c")?;
        Err::<(), _>(Error::invalid_input("given up"))
    });
    assert_eq!((text(&s.store), s.records()), (before, records));
}

/// Some members, and then an error.
fn fails_after(members: usize, len: usize) -> impl Fn(&mut Receiver<'_, '_>) -> Result<()> {
    move |visitor| {
        visitor.open(Container::Map)?;
        for n in 0..members {
            visitor.key(Key::new(&format!("k{}", n * 7_919 % members)))?;
            visitor.scalar(Scalar::String(spinney::Text::new(&"v".repeat(len))))?;
        }
        Err(Error::invalid_input("the source broke"))
    }
}

fn failing_source(s: &Subject) {
    s.set("/a", r#"{"x": 1}"#);
    for (members, len) in [(0, 0), (5, 5), (2_000, 10), (300, 9_000)] {
        for path in ["/a", "/a/x", "/a/new", "/b", "/b/c/d/e"] {
            let source = fails_after(members, len);
            s.refused(InvalidInput, "the source broke", |tx| {
                tx.set_with(path, Existing::Any, &source)
            });
            // The transaction goes on without it.
            let before = s.text("/a");
            s.store
                .write(|tx| {
                    tx.set_with(path, Existing::Any, &source).expect_err("it broke");
                    assert!(!tx.exists("/b")?, "{path}: maps on the way were made");
                    tx.set("/other", &Value::from((members + path.len()) as u64))
                })
                .expect("commits");
            assert_eq!((s.text("/a"), s.get("/b")), (before, None), "{path}");
            s.store.write(|tx| tx.remove("/other")).expect("removes");
        }
        s.check();
    }
}

fn failing_source_at_the_root(s: &Subject) {
    if !s.backend.capabilities().multi_tree_commit {
        return super::skipped("a failing source at the root", "it has no multi_tree_commit");
    }
    s.set("", r#"{"a": {"x": 1}, "b": 2}"#);
    let before = s.text("");
    let source = |visitor: &mut Receiver<'_, '_>| {
        visitor.open(Container::Map)?;
        for name in ["a", "c"] {
            visitor.key(Key::new(name))?;
            json(&format!("[{}0]", "\"0123456789\",".repeat(1_000))).visit(visitor)?;
        }
        Err(Error::invalid_input("the source broke"))
    };
    s.refused(InvalidInput, "the source broke", |tx| tx.set_with("", Existing::Any, source));
    s.store
        .write(|tx| {
            tx.set_with("", Existing::Any, source).expect_err("it broke");
            tx.set("/other", &1.into())
        })
        .expect("commits");
    s.check();
    s.store.write(|tx| tx.remove("/other")).expect("removes");
    assert_eq!(s.text(""), before);
}

fn failed_edit(s: &Subject) {
    s.set("/a", r#"{"n": 1, "l": [1]}"#);
    s.write(|tx| {
        tx.set("/a/x", &1.into())?;
        tx.set("/a/n/below", &1.into()).expect_err("through a scalar");
        tx.insert("/a/l/5", &1.into()).expect_err("behind the end");
        tx.create("/a/n", &1.into()).expect_err("exists");
        tx.set("/new/way/n", &1.into())?;
        tx.set("/new/way/n/m", &1.into()).expect_err("through a scalar");
        tx.remove("").expect_err("the root");
        tx.set("/a/y", &2.into())
    });
    assert_eq!(s.text(""), r#"{"a":{"l":[1],"n":1,"x":1,"y":2},"new":{"way":{"n":1}}}"#);
}

fn no_effect(s: &Subject) {
    let big: Vec<Value> = (0..2_000_u64).map(Value::from).collect();
    s.set("/a", r#"{"x": 1, "m": {"y": [1, "two"]}, "l": [1, 2, 3]}"#);
    s.write(|tx| tx.set("/a/big", &big.clone().into()));
    s.write(|tx| tx.set("/a/text", &"t".repeat(60_000).into()));
    s.check();
    let (revision, records) = (s.revision(), s.records());
    s.write(|_| Ok(()));
    s.set("/a/x", "1");
    s.set("/a/m", r#"{"y": [1, "two"]}"#);
    s.set("/a/l/1", "2");
    s.write(|tx| tx.set("/a/big/77", &77.into()));
    s.write(|tx| tx.set("/a/x", &5.into()).and_then(|()| tx.set("/a/x", &1.into())));
    s.write(|tx| tx.set("/a/new", &5.into()).and_then(|()| tx.remove("/a/new")));
    s.write(|tx| tx.remove("/a/none"));
    s.write(|tx| tx.get("/a"));
    s.check();
    assert_eq!((s.revision(), s.records()), (revision, records), "nothing changed");
    let text = s.text("");
    s.write(|tx| tx.set("/a/big", &big.clone().into()));
    s.write(|tx| tx.set("/a/text", &"t".repeat(60_000).into()));
    println!("the same large values again made {} revisions", s.revision() - revision);
    assert_eq!(s.text(""), text);
}

fn one_operation(s: &Subject) {
    s.set("/a", r#"{"x": 1, "l": [1, 2, 3]}"#);
    let diff = s
        .write(|tx| {
            for n in 2..10 {
                tx.set("/a/x", &n.into())?;
                tx.set("/a/new", &n.into())?;
                tx.set("/a/l/1", &n.into())?;
            }
            Ok(())
        })
        .diff;
    assert_eq!(diff.ops.len(), 3, "{diff:?}");
    let diff =
        s.write(|tx| tx.set("/b/c/d", &1.into()).and_then(|()| tx.set("/b/c/e", &1.into()))).diff;
    assert_eq!(diff.ops.len(), 1, "a new container is one node: {diff:?}");
    let diff = s.write(|tx| tx.set("/b/c/d", &2.into()).and_then(|()| tx.remove("/b"))).diff;
    assert_eq!(diff.ops.len(), 1, "{diff:?}");
}

fn cancelled(s: &Subject) {
    s.set("/a/l", "[1, 2, 3]");
    let revision = s.revision();
    s.write(|tx| tx.insert("/a/l/1", &9.into()).and_then(|()| tx.remove("/a/l/1")));
    s.write(|tx| tx.mv("/a/l/0", "/a/l/2").and_then(|()| tx.mv("/a/l/2", "/a/l/0")));
    s.write(|tx| tx.set("/t/x", &1.into()).and_then(|()| tx.remove("/t")));
    s.write(|tx| tx.set_meta("/a", "n", Some("v")).and_then(|()| tx.set_meta("/a", "n", None)));
    assert_eq!(s.text(""), r#"{"a":{"l":[1,2,3]}}"#);
    println!("what cancels out made {} revisions", s.revision() - revision);
}

fn misplaced_diffs(s: &Subject) {
    s.set("/a", r#"{"x": 1, "l": [1]}"#);
    let removed = s.write(|tx| tx.remove("/a/x")).diff;
    let inserted = s.write(|tx| tx.insert("/a/l/0", &0.into())).diff;
    s.write(|tx| tx.remove("/a/l"));
    s.refused(Conflict, "/a/x", |tx| tx.apply(&removed));
    s.refused(Conflict, "/a/l", |tx| tx.apply(&inserted));
}

fn conflicts(s: &Subject) {
    s.set("/a/n", "0");
    let mut first = Transaction::begin(&*s.backend).expect("begins");
    first.set("/a/x", &1.into()).expect("sets");
    s.set("/a/n", "1");
    let error = first.commit(1).expect_err("the store changed");
    assert_eq!(error.kind(), Conflict, "{error}");
    assert_eq!(s.text(""), r#"{"a":{"n":1}}"#);
    // `write` tries again with the new state.
    let mut tries = 0;
    let committed = s.store.write(|tx| {
        tries += 1;
        let n = tx.get("/a/n")?;
        tx.set("/a/seen", &n.expect("a number"))
    });
    assert_eq!((committed.expect("commits").revision, tries), (3, 1));
}

fn several_trees(s: &Subject) {
    if !s.backend.capabilities().multi_tree_commit {
        return super::skipped("several trees in one commit", "it has no multi_tree_commit");
    }
    let committed = s.write(|tx| {
        (0..20)
            .try_for_each(|n| tx.set(&format!("/tree{n}/x"), &Value::from(vec![Value::Null; 800])))
    });
    assert_eq!((committed.revision, s.count("")), (1, Some(20)));
    s.write(|tx| (0..20).step_by(2).try_for_each(|n| tx.remove(&format!("/tree{n}")).map(drop)));
    s.write(|tx| (0..20).try_for_each(|n| tx.set(&format!("/tree{n}/y"), &n.into())));
    assert_eq!((s.revision(), s.count("")), (3, Some(20)));
    assert_eq!((s.count("/tree4"), s.count("/tree5")), (Some(1), Some(2)));
}

fn threads(s: &Subject) {
    const THREADS: u64 = 4;
    const ROUNDS: u64 = 50;
    s.set("/n", "0");
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let store = s.store.clone();
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let count = |tx: &mut Transaction<'_>| {
                        let Some(Value::Number(n)) = tx.get("/n")? else { panic!("a number") };
                        tx.set("/n", &(n.as_u64().expect("small") + 1).into())?;
                        tx.set(&format!("/by/{thread}/{round}"), &round.into())
                    };
                    store.write(count).expect("counts");
                }
            });
        }
    });
    assert_eq!(s.get("/n"), Some((THREADS * ROUNDS).into()));
    assert_eq!(s.revision(), THREADS * ROUNDS + 1);
    assert!((0..THREADS).all(|thread| s.count(&format!("/by/{thread}")) == Some(ROUNDS)));
}
