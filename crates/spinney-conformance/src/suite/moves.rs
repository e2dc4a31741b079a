//! Moving and copying: within a container, a tree, and from tree to tree.

use spinney::ErrorKind::{AlreadyExists, InvalidInput, NotFound};
use spinney::Value;

use super::Case;
use crate::subject::{Subject, json};

pub(super) const CASES: &[Case] = &[
    ("within a tree", within_a_tree),
    ("a node takes the place of its parent", onto_the_parent),
    ("below itself is refused", below_itself),
    ("a refused move leaves the transaction as it was", refused_moves),
    ("renaming a tree", renaming),
    ("renaming a tree and using the old name", renaming_and_reusing),
    ("from tree to tree", between_trees),
    ("copies stand alone", copies),
    ("large maps are copied with their pages", large_copies),
    ("a copy into itself", copy_into_itself),
    ("moved in and out within one transaction", there_and_back),
    ("what moved out of a removed subtree stays", out_of_the_removed),
    ("what moved out of a subtree made and removed in one transaction stays", out_of_the_given_up),
];

fn large(count: u64) -> Value {
    (0..count).map(Value::from).collect::<Vec<_>>().into()
}

/// A map of records, one of which may hold something in pages of its own.
fn records(count: u64, held: Option<Value>) -> Value {
    let record = |n: u64| json(&format!(r#"{{"id": {n}, "tags": ["a", {{"b": {n}}}]}}"#));
    let mut records: spinney::Map = (0..count).map(|n| (format!("key {n}"), record(n))).collect();
    if let Some(held) = held {
        records.insert("key 7", held);
    }
    Value::Map(records)
}

fn large_copies(s: &Subject) {
    let long = Value::from("long ".repeat(20_000));
    for held in [None, Some(large(2_000)), Some(long), Some(records(500, None))] {
        let whole = records(1_500, held);
        s.write(|tx| {
            tx.set("/from", &whole)?;
            tx.set_meta("/from", "who", Some("me"))
        });
        s.write(|tx| tx.copy("/from", "/to"));
        s.write(|tx| tx.copy("/to", "/other/inside"));
        // Neither knows of the others.
        s.write(|tx| {
            tx.remove("/from/key 7")?;
            tx.set("/to/key 8/id", &"changed".into())?;
            tx.set("/other/inside/key 1499", &Value::Null)
        });
        s.write(|tx| tx.remove("/from"));
        s.store.reclaim().expect("it is reclaimed");
        let mut expected = [whole.clone(), whole];
        let [Value::Map(to), Value::Map(inside)] = &mut expected else { unreachable!() };
        let Some(Value::Map(record)) = to.get_mut("key 8") else { unreachable!() };
        record.insert("id", "changed");
        inside.insert("key 1499", Value::Null);
        assert!(s.get("/to") == Some(expected[0].clone()));
        assert!(s.get("/other/inside") == Some(expected[1].clone()));
        assert_eq!(s.count("/to"), Some(1_500));
        let meta = s.store.read().expect("a state").meta("/other/inside").expect("an answer");
        assert_eq!(meta, Some(vec![("who".to_owned(), "me".to_owned())]));
        s.check();
    }
    // A copy of what is edited in the same transaction.
    s.write(|tx| {
        tx.set("/to/key 9", &"edited".into())?;
        tx.copy("/to", "/again")
    });
    assert_eq!((s.count("/again"), s.get("/again/key 9")), (Some(1_500), Some("edited".into())));
}

fn within_a_tree(s: &Subject) {
    s.set("/a", r#"{"x": {"y": [1, 2]}, "z": 5}"#);
    s.write(|tx| tx.mv("/a/x/y", "/a/w"));
    s.write(|tx| tx.mv("/a/z", "/a/made/on/the/way"));
    s.write(|tx| tx.mv("/a/w/0", "/a/x/first"));
    s.write(|tx| tx.mv("/a/x/first", "/a/w/-"));
    assert_eq!(s.text("/a"), r#"{"made":{"on":{"the":{"way":5}}},"w":[2,1],"x":{}}"#);
    s.write(|tx| tx.mv("/a/x", "/a/w"));
    assert_eq!(s.text("/a/w"), "{}", "the target is replaced");
    s.write(|tx| tx.set("/a/big", &large(2_000)));
    s.write(|tx| tx.mv("/a/big", "/a/w/big"));
    s.write(|tx| tx.mv("/a/w/big/1000", "/a/w/middle"));
    assert_eq!((s.count("/a/w/big"), s.get("/a/w/middle")), (Some(1_999), Some(1_000.into())));
}

fn onto_the_parent(s: &Subject) {
    s.set("/t", r#"{"a": {"b": {"b": 1, "c": 2}, "rest": [1]}}"#);
    s.write(|tx| tx.mv("/t/a/b", "/t/a"));
    assert_eq!(s.text("/t"), r#"{"a":{"b":1,"c":2}}"#);
    s.write(|tx| tx.set("/t/a/b", &large(2_000)));
    s.write(|tx| tx.mv("/t/a/b", "/t/a"));
    assert_eq!(s.count("/t/a"), Some(2_000));
    // A tree is a place like any other.
    s.set("/u", r#"{"a": {"a": 1, "c": 2}, "rest": [1]}"#);
    s.write(|tx| tx.mv("/u/a", "/u"));
    assert_eq!(s.text("/u"), r#"{"a":1,"c":2}"#);
    s.set("/v", r#"[[[5], 6], 7]"#);
    s.write(|tx| tx.mv("/v/0", "/v"));
    assert_eq!(s.text("/v"), "[[5],6]");
    s.write(|tx| tx.copy("/v/0", "/v"));
    assert_eq!(s.text("/v"), "[5]");
}

fn below_itself(s: &Subject) {
    s.set("/a", r#"{"x": {"y": 1}, "xy": 1}"#);
    for (from, to) in [("/a", "/a/b"), ("/a/x", "/a/x/z"), ("/a/x", "/a/x/y/z"), ("/a", "/a/x/q")] {
        s.refused(InvalidInput, &format!("`{from}`"), |tx| tx.mv(from, to));
    }
    s.write(|tx| tx.mv("/a/x", "/a/xy"));
    assert_eq!(s.text("/a"), r#"{"xy":{"y":1}}"#, "a longer name is not below");
}

fn refused_moves(s: &Subject) {
    s.set("/a", r#"{"x": {"y": 1}, "n": 5, "l": [1, 2]}"#);
    let before = s.text("");
    let refusals = [
        ("/a/x", "/a/n/deep"),
        ("/a/x", "/a/l/9"),
        ("/a/l/0", "/a/l/5"),
        ("/a/l/0", "/a/n/deep"),
        ("/a/x", "/a/l/x"),
        ("/a", "/a2/../x/~"),
        ("/a/x", "/a/new/way/"),
    ];
    for (from, to) in &refusals[..6] {
        s.refused(InvalidInput, "", |tx| tx.mv(from, to));
        // Whoever goes on after a refusal must find everything where it was.
        s.store
            .write(|tx| {
                tx.mv(from, to).expect_err("refused");
                assert!(tx.exists(from)?, "{from} to {to}: the node is gone");
                tx.set("/other", &from.len().into_value())
            })
            .expect("commits");
        s.store.write(|tx| tx.remove("/other")).expect("removes");
        assert_eq!(s.text(""), before, "{from} to {to}");
    }
    s.refused(NotFound, "`/a/none`", |tx| tx.mv("/a/none", "/a/y"));
    let (from, to) = refusals[6];
    s.write(|tx| tx.mv(from, to));
    assert_eq!(s.get("/a/new/way/"), Some(json(r#"{"y": 1}"#)), "the empty key is a key");
}

trait IntoValue {
    fn into_value(self) -> Value;
}

impl IntoValue for usize {
    fn into_value(self) -> Value {
        (self as u64).into()
    }
}

fn renaming(s: &Subject) {
    s.write(|tx| tx.set("/a/big", &large(3_000)));
    s.set("/b", "1");
    let records = s.records();
    let diff = s.write(|tx| tx.mv("/a", "/c")).diff;
    assert!(s.records() <= records + 3, "a rename moves no pages");
    assert!(diff.ops.len() == 2, "{diff:?}");
    assert_eq!((s.count("/c/big"), s.get("/a")), (Some(3_000), None));
    s.refused(AlreadyExists, "`/b`", |tx| tx.mv("/c", "/b"));
    s.refused(NotFound, "`/a`", |tx| tx.mv("/a", "/d"));
    s.write(|tx| tx.mv("/c", "/a"));
    s.write(|tx| tx.insert("/a/big/7", &"x".into()));
    assert_eq!(s.count("/a/big"), Some(3_001));
}

fn renaming_and_reusing(s: &Subject) {
    s.write(|tx| tx.set("/a/big", &large(1_000)));
    s.write(|tx| {
        tx.mv("/a", "/b")?;
        tx.set("/a/other", &large(900))
    });
    assert_eq!(
        (s.count("/b/big"), s.count("/a/other"), s.get("/a/big")),
        (Some(1_000), Some(900), None)
    );
    // Two trees change places.
    s.write(|tx| {
        tx.mv("/a", "/swap")?;
        tx.mv("/b", "/a")?;
        tx.mv("/swap", "/b")
    });
    assert_eq!(
        (s.count("/a/big"), s.count("/b/other"), s.get("/swap")),
        (Some(1_000), Some(900), None)
    );
    s.write(|tx| {
        tx.remove("/b")?;
        tx.mv("/a", "/b")?;
        tx.set("/b/big/0", &"first".into())
    });
    assert_eq!((s.get("/a"), s.get("/b/big/0")), (None, Some("first".into())));
    s.write(|tx| {
        tx.mv("/b", "/c")?;
        tx.remove("/c")
    });
    assert_eq!(s.text(""), "{}");
}

fn between_trees(s: &Subject) {
    if !s.backend.capabilities().multi_tree_commit {
        return super::skipped("from tree to tree", "it has no multi_tree_commit");
    }
    s.write(|tx| tx.set("/a/big", &large(2_000)));
    s.set("/b", "{}");
    s.write(|tx| tx.mv("/a/big", "/b/big"));
    assert_eq!((s.text("/a").as_str(), s.count("/b/big")), ("{}", Some(2_000)));
    s.write(|tx| tx.mv("/b/big", "/big"));
    s.write(|tx| tx.mv("/big", "/a/in"));
    s.write(|tx| tx.mv("/a/in/1999", "/b/last"));
    assert_eq!((s.count("/a/in"), s.get("/b/last")), (Some(1_999), Some(1_999.into())));
    s.write(|tx| tx.mv("/a", "/b/a"));
    assert_eq!((s.get("/a"), s.count("/b/a/in")), (None, Some(1_999)));
    let list = s.write(|tx| tx.copy("/b/a/in", "/list"));
    assert_eq!(list.revision, s.revision());
    s.write(|tx| tx.mv("/b/last", "/list/0"));
    assert_eq!((s.get("/list/0"), s.count("/list")), (Some(1_999.into()), Some(2_000)));
}

fn copies(s: &Subject) {
    s.write(|tx| tx.set("/a/big", &large(1_000)));
    s.write(|tx| tx.set("/a/text", &"t".repeat(50_000).into()));
    s.write(|tx| tx.copy("/a", "/b"));
    s.write(|tx| tx.copy("/a/big", "/a/again"));
    s.write(|tx| tx.set("/a/big/0", &"changed".into()));
    s.write(|tx| tx.remove("/a/text"));
    assert_eq!((s.get("/b/big/0"), s.get("/a/again/0")), (Some(0.into()), Some(0.into())));
    assert_eq!(s.get("/b/text"), Some("t".repeat(50_000).into()));
    s.write(|tx| tx.copy("/a/big/0", "/a/again/1"));
    assert_eq!(
        (s.get("/a/again/1"), s.get("/a/again/2")),
        (Some("changed".into()), Some(1.into()))
    );
    let revision = s.revision();
    s.write(|tx| tx.copy("/a/big", "/a/big"));
    assert_eq!(s.count("/a/big"), Some(1_000));
    println!("a copy onto itself: {} revisions", s.revision() - revision);
}

fn copy_into_itself(s: &Subject) {
    s.set("/a", r#"{"x": {"y": [1]}}"#);
    s.write(|tx| tx.copy("/a", "/a/x/a"));
    assert_eq!(s.text("/a"), r#"{"x":{"a":{"x":{"y":[1]}},"y":[1]}}"#);
    s.write(|tx| tx.copy("/a/x/y", "/a/x/y/0"));
    assert_eq!(s.text("/a/x/y"), "[[1],1]");
}

fn there_and_back(s: &Subject) {
    s.write(|tx| tx.set("/a/big", &large(1_000)));
    s.set("/a/m", "{}");
    let revision = s.revision();
    s.write(|tx| {
        tx.mv("/a/big", "/a/m/big")?;
        tx.mv("/a/m/big", "/a/big")
    });
    println!("there and back made {} revisions", s.revision() - revision);
    assert_eq!(s.count("/a/big"), Some(1_000));
    s.write(|tx| {
        tx.mv("/a/big", "/a/m/big")?;
        tx.set("/a/m/big/5", &"x".into())?;
        tx.mv("/a/m/big", "/a/m/two")?;
        tx.remove("/a/m/two")
    });
    assert_eq!(s.text(""), r#"{"a":{"m":{}}}"#);
    s.check();
    s.write(|tx| {
        tx.set("/a/new", &large(1_000))?;
        tx.mv("/a/new", "/a/m/new")?;
        tx.copy("/a/m/new", "/a/copy")?;
        tx.set("/a/m/new", &1.into())
    });
    assert_eq!(s.count("/a/copy"), Some(1_000));
}

fn out_of_the_removed(s: &Subject) {
    s.store
        .write(|tx| {
            tx.set("/t/doomed/inner/keep", &large(1_000))?;
            tx.set("/t/doomed/inner/list", &vec![large(700), large(800)].into())?;
            tx.set("/t/doomed/big", &large(1_500))
        })
        .expect("sets");
    s.write(|tx| {
        tx.mv("/t/doomed/inner/keep", "/t/keep")?;
        tx.mv("/t/doomed/inner/list/1", "/t/one")?;
        tx.remove("/t/doomed").map(drop)
    });
    s.check();
    assert_eq!(
        (s.count("/t/keep"), s.count("/t/one"), s.count("/t")),
        (Some(1_000), Some(800), Some(2))
    );
    s.write(|tx| {
        tx.mv("/t/keep", "/t/x")?;
        tx.set("/t/x/500", &large(600))?;
        tx.mv("/t/x/500", "/t/y")?;
        tx.remove("/t/x").map(drop)
    });
    s.check();
    assert_eq!((s.count("/t/y"), s.count("/t")), (Some(600), Some(2)));
}

fn out_of_the_given_up(s: &Subject) {
    s.set("/t", r#"{"stored": {}}"#);
    let long = Value::from("x".repeat(100_000).as_str());
    // In pages that name the long value and the large one.
    let made = || -> Value {
        let numbers = (0..1_500).map(|i| (format!("k{i}"), Value::from(i)));
        let named = [("long".to_owned(), long.clone()), ("large".to_owned(), large(900))];
        Value::Map(numbers.chain(named).collect())
    };
    s.write(|tx| {
        tx.set("/t/given", &vec![made(), made(), large(2_000)].into())?;
        tx.mv("/t/given/0/long", "/t/text")?;
        tx.mv("/t/given/1", "/t/stored/made")?;
        tx.mv("/t/stored/made/large", "/t/large")?;
        tx.remove("/t/given").map(drop)
    });
    s.check();
    assert_eq!(s.get("/t/text"), Some(long.clone()));
    assert_eq!(s.get("/t/stored/made/long"), Some(long.clone()));
    assert_eq!((s.count("/t/large"), s.count("/t")), (Some(900), Some(3)));
    s.write(|tx| {
        tx.set("/t/given", &made())?;
        tx.mv("/t/given", "/t/other")?;
        tx.mv("/t/other/large", "/t/large")?;
        tx.remove("/t/other").map(drop)
    });
    s.check();
    assert_eq!((s.count("/t/large"), s.count("/t")), (Some(900), Some(3)));
}
