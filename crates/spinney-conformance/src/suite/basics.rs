//! Getting, setting, creating, counting, listing and annotating.

use spinney::ErrorKind::{AlreadyExists, InvalidInput, LimitExceeded, NotFound};
use spinney::{Member, NodeKind, Value};

use super::Case;
use crate::subject::{Subject, json};

pub(super) const CASES: &[Case] = &[
    ("an empty store is an empty map", empty),
    ("set makes the maps on the way", set_makes_parents),
    ("create refuses a node that exists", create),
    ("replace refuses a node that does not exist", replace),
    ("paths that are no paths are refused", bad_paths),
    ("ways through scalars are refused", ways_through_scalars),
    ("the root takes an object of trees", the_root),
    ("reads beside the tree find nothing", absent),
    ("list, from and limit", listing),
    ("kinds", kinds),
    ("metadata", metadata),
    ("metadata of containers and trees", metadata_of_containers),
    ("a transaction reads its own edits", own_edits),
];

fn empty(s: &Subject) {
    assert_eq!(s.text(""), "{}");
    assert_eq!((s.revision(), s.count("")), (0, Some(0)));
    assert_eq!(s.store.read().expect("reads").list("", None, None).expect("lists"), Some(vec![]));
    assert_eq!(s.get("/a"), None);
    assert!(!s.write(|tx| tx.remove("/a")).value);
    assert_eq!(s.revision(), 0);
}

fn set_makes_parents(s: &Subject) {
    s.set("/a/b/c", "1");
    s.set("/a/b/d", "[]");
    s.set("/a/b/d/-", "2");
    s.set("/e~1f/g~0h", r#""x""#);
    assert_eq!(s.text(""), r#"{"a":{"b":{"c":1,"d":[2]}},"e/f":{"g~h":"x"}}"#);
    assert_eq!(s.get("/a/b/d/0"), Some(2.into()));
    assert_eq!(s.revision(), 4);
}

fn create(s: &Subject) {
    s.write(|tx| tx.create("/a/b", &1.into()));
    s.refused(AlreadyExists, "`/a/b`", |tx| tx.create("/a/b", &2.into()));
    s.refused(AlreadyExists, "`/a`", |tx| tx.create("/a", &2.into()));
    s.set("/l", "[1]");
    s.refused(AlreadyExists, "`/l/0`", |tx| tx.create("/l/0", &2.into()));
    s.write(|tx| tx.create("/l/-", &2.into()));
    assert_eq!(s.text(""), r#"{"a":{"b":1},"l":[1,2]}"#);
}

fn replace(s: &Subject) {
    s.set("/a", r#"{"b":1,"l":[1],"m":{"n":{}}}"#);
    let before = s.revision();
    for path in ["/a/x", "/a/x/y", "/x", "/a/b/c", "/a/l/1", "/a/l/-", "/a/m/n/o/p"] {
        s.refused(NotFound, path, |tx| tx.replace(path, &2.into()));
    }
    assert_eq!(s.revision(), before);
    s.write(|tx| {
        tx.replace("/a/b", &2.into())?;
        tx.replace("/a/l/0", &3.into())?;
        tx.replace("/a/m/n", &4.into())
    });
    assert_eq!(s.text(""), r#"{"a":{"b":2,"l":[3],"m":{"n":4}}}"#);
    s.write(|tx| {
        tx.remove("/a/b")?;
        tx.replace("/a/b", &5.into()).expect_err("it has just been removed");
        tx.replace("/a/m", &6.into())
    });
    assert_eq!(s.text(""), r#"{"a":{"l":[3],"m":6}}"#);
}

fn bad_paths(s: &Subject) {
    for path in ["a", "a/b", "/a~", "/a~2", "/~/b"] {
        s.refused(InvalidInput, path, |tx| tx.set(path, &1.into()));
        s.refused(InvalidInput, path, |tx| tx.remove(path));
        s.refused(InvalidInput, path, |tx| tx.insert(path, &1.into()));
        s.refused(InvalidInput, path, |tx| tx.get(path));
        s.refused(InvalidInput, path, |tx| tx.count(path));
        s.refused(InvalidInput, path, |tx| tx.copy(path, "/x"));
        s.refused(InvalidInput, path, |tx| tx.mv(path, "/x"));
        let error = s.store.read().expect("reads").get(path).expect_err("refused");
        assert_eq!(error.kind(), InvalidInput, "{error}");
    }
    let long = "/a".repeat(1 << 19) + "/";
    s.refused(LimitExceeded, "path", |tx| tx.set(&long, &1.into()));
    assert_eq!(s.store.read().expect("reads").get(&long).expect_err("long").kind(), LimitExceeded);
}

fn ways_through_scalars(s: &Subject) {
    s.set("/a", r#"{"n": 1, "s": "x", "l": [1]}"#);
    s.refused(InvalidInput, "`/a/n/x`", |tx| tx.set("/a/n/x", &1.into()));
    s.refused(InvalidInput, "`/a/s/x/y`", |tx| tx.set("/a/s/x/y", &1.into()));
    for position in ["1", "01", "x", "-1", "+0", "", "99999999999999999999"] {
        let path = format!("/a/l/{position}");
        s.refused(InvalidInput, &format!("`{path}`"), |tx| tx.set(&path, &1.into()));
        if position != "1" {
            s.refused(InvalidInput, &format!("`{path}`"), |tx| tx.insert(&path, &1.into()));
        }
    }
    s.refused(InvalidInput, "`/a/l/-/x`", |tx| tx.set("/a/l/-/x", &1.into()));
    s.refused(InvalidInput, "`/a/n`", |tx| tx.insert("/a/n", &1.into()));
    s.refused(NotFound, "`/a/none/0`", |tx| tx.insert("/a/none/0", &1.into()));
    s.refused(InvalidInput, "the root", |tx| tx.insert("", &1.into()));
    assert!(!s.write(|tx| tx.remove("/a/n/x")).value);
    assert!(!s.write(|tx| tx.remove("/a/l/1")).value);
    assert!(!s.write(|tx| tx.remove("/a/l/-")).value);
}

fn the_root(s: &Subject) {
    if !s.backend.capabilities().multi_tree_commit {
        return super::skipped("the root takes an object", "it has no multi_tree_commit");
    }
    s.set("", r#"{"a": {"x": 1}, "b": [1], "1": 5}"#);
    s.set("/a/y", "2");
    s.set("", r#"{"b": [2], "c": null}"#);
    assert_eq!(s.text(""), r#"{"b":[2],"c":null}"#);
    for text in ["1", "[]", r#""x""#] {
        s.refused(InvalidInput, "root", |tx| tx.set("", &json(text)));
    }
    s.refused(InvalidInput, "root", |tx| tx.remove(""));
    s.refused(InvalidInput, "root", |tx| tx.mv("", "/a"));
    s.refused(InvalidInput, "root", |tx| tx.mv("/b", ""));
    s.refused(InvalidInput, "root", |tx| tx.copy("/b", ""));
    s.refused(InvalidInput, "root", |tx| tx.set_meta("", "a", Some("b")));
    s.set("", "{}");
    assert_eq!(s.text(""), "{}");
}

fn absent(s: &Subject) {
    s.set("/a", r#"{"l": [1, [2]], "m": {"x": 1}}"#);
    let snapshot = s.store.read().expect("reads");
    for path in ["/b", "/a/x", "/a/l/2", "/a/l/-", "/a/l/01", "/a/l/0/0", "/a/m/x/y", "/a/m/"] {
        assert_eq!(snapshot.get(path).expect("reads"), None, "{path}");
        assert_eq!(snapshot.count(path).expect("reads"), None, "{path}");
        assert_eq!(snapshot.meta(path).expect("reads"), None, "{path}");
        assert_eq!(snapshot.kind(path).expect("reads"), None, "{path}");
        assert_eq!(snapshot.list(path, None, None).expect("reads"), None, "{path}");
        s.refused(NotFound, "nothing", |tx| tx.mv(path, "/x"));
        s.refused(NotFound, "nothing", |tx| tx.copy(path, "/x"));
        s.refused(NotFound, &format!("`{path}`"), |tx| tx.set_meta(path, "n", Some("v")));
    }
    assert_eq!(snapshot.count("/a/m/x").expect("reads"), None, "a scalar counts nothing");
}

fn segments(members: Option<Vec<Member>>) -> Vec<String> {
    members.expect("a container").into_iter().map(|member| member.segment).collect()
}

fn listing(s: &Subject) {
    for (tree, count) in [("small", 5_u64), ("large", 3_000)] {
        let map: spinney::Map = (0..count).map(|i| (format!("k{i:05}"), Value::from(i))).collect();
        let list: Vec<Value> = (0..count).map(Value::from).collect();
        s.write(|tx| {
            tx.set(&format!("/{tree}/map"), &map.clone().into())?;
            tx.set(&format!("/{tree}/list"), &list.clone().into())
        });
        let snapshot = s.store.read().expect("reads");
        let list = |path: &str, from: Option<&str>, limit| {
            segments(snapshot.list(&format!("/{tree}/{path}"), from, limit).expect("lists"))
        };
        let keys = |range: std::ops::Range<u64>| -> Vec<String> {
            range.map(|i| format!("k{i:05}")).collect()
        };
        let positions =
            |range: std::ops::Range<u64>| -> Vec<String> { range.map(|i| i.to_string()).collect() };
        assert_eq!(list("map", None, None), keys(0..count));
        assert_eq!(list("map", None, Some(2)), keys(0..2));
        assert_eq!(list("map", Some("k00002"), Some(2)), keys(2..4));
        assert_eq!(list("map", Some("k000020"), Some(1)), keys(3..4), "from between two keys");
        assert_eq!(list("map", Some(""), None), keys(0..count));
        assert_eq!(list("map", Some("z"), None), keys(0..0));
        assert_eq!(list("map", Some("7"), None), keys(0..count), "integers come first");
        assert_eq!(list("map", None, Some(0)), keys(0..0));
        for from in 0..=count.min(600) {
            let expected = keys(from..(from + 3).min(count));
            assert_eq!(list("map", Some(&format!("k{from:05}")), Some(3)), expected);
            let expected = positions(from..(from + 3).min(count));
            assert_eq!(list("list", Some(&from.to_string()), Some(3)), expected, "{tree} {from}");
        }
        assert_eq!(list("list", None, None), positions(0..count));
        assert_eq!(list("list", Some(&(count - 1).to_string()), None), positions(count - 1..count));
        assert_eq!(list("list", Some(&count.to_string()), None), positions(0..0), "at the end");
        assert_eq!(list("list", Some(&(count + 9).to_string()), None), positions(0..0), "behind");
        let error = snapshot.list(&format!("/{tree}/list"), Some("x"), None).expect_err("refused");
        assert_eq!(error.kind(), InvalidInput, "{error}");
        assert!(error.to_string().contains(&format!("/{tree}/list")), "names the path: {error}");
        let error = snapshot.list(&format!("/{tree}/map/k00001"), None, None).expect_err("scalar");
        assert_eq!(error.kind(), InvalidInput, "{error}");
    }
    assert_eq!(
        segments(s.store.read().expect("reads").list("", Some("m"), None).expect("")),
        ["small"]
    );
}

fn kinds(s: &Subject) {
    let long = "x".repeat(100_000);
    s.set("/a", r#"{"0": null, "1": true, "2": 1, "3": "x", "5": {}, "6": []}"#);
    s.write(|tx| {
        tx.set("/a/4", &Value::Bytes(vec![1, 0, 255]))?;
        tx.set("/a/7", &long.as_str().into())?;
        tx.set("/a/8", &Value::Bytes(vec![7; 100_000]))
    });
    use NodeKind::{Bool, Bytes, List, Map, Null, Number, String};
    let expected = [Null, Bool, Number, String, Bytes, Map, List, String, Bytes];
    let snapshot = s.store.read().expect("reads");
    let members = snapshot.list("/a", None, None).expect("lists").expect("a map");
    assert_eq!(members.iter().map(|member| member.kind).collect::<Vec<_>>(), expected);
    for (index, kind) in expected.into_iter().enumerate() {
        assert_eq!(snapshot.kind(&format!("/a/{index}")).expect("reads"), Some(kind));
    }
    assert_eq!(snapshot.kind("").expect("reads"), Some(Map));
    assert_eq!(snapshot.kind("/a").expect("reads"), Some(Map));
}

fn meta(s: &Subject, path: &str) -> Vec<(String, String)> {
    s.store.read().and_then(|snapshot| snapshot.meta(path)).expect("reads").expect("a node")
}

fn metadata(s: &Subject) {
    s.set("/a", r#"{"x": 1, "l": [1, 2]}"#);
    s.write(|tx| tx.set_meta("/a/x", "origin", Some("system")));
    s.write(|tx| tx.set_meta("/a/x", "a", Some("")));
    s.write(|tx| tx.set_meta("/a/l/1", "note", Some("é\0")));
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(meta(s, "/a/x"), [pair("a", ""), pair("origin", "system")]);
    assert_eq!(meta(s, "/a/l/1"), [pair("note", "é\0")]);
    assert_eq!(meta(s, "/a"), []);
    let revision = s.revision();
    s.write(|tx| tx.set_meta("/a/x", "origin", Some("system")));
    s.write(|tx| tx.set_meta("/a/x", "none", None));
    assert_eq!(s.revision(), revision, "nothing changed");
    s.write(|tx| tx.mv("/a/l/1", "/a/l/0"));
    assert_eq!(meta(s, "/a/l/0"), [pair("note", "é\0")]);
    s.write(|tx| tx.copy("/a/x", "/a/y"));
    assert_eq!(meta(s, "/a/y").len(), 2);
    s.write(|tx| tx.set_meta("/a/x", "origin", None));
    s.write(|tx| tx.set_meta("/a/x", "a", None));
    assert_eq!(meta(s, "/a/x"), []);
    s.set("/a/y", "1");
    assert_eq!(meta(s, "/a/y"), [], "a set replaces the node with its metadata");
    let most = "m".repeat(60 * 1024);
    s.write(|tx| tx.set_meta("/a/x", "long", Some(&most)));
    s.refused(LimitExceeded, "`/a/x`", |tx| tx.set_meta("/a/x", "long2", Some(&most)));
}

fn metadata_of_containers(s: &Subject) {
    let large: Vec<Value> = (0..2_000_u64).map(Value::from).collect();
    s.write(|tx| tx.set("/a/large", &large.clone().into()));
    s.set("/a/small", r#"{"x": 1}"#);
    for path in ["/a", "/a/large", "/a/small"] {
        s.write(|tx| tx.set_meta(path, "origin", Some(path)));
        s.write(|tx| tx.set_meta(path, "more", Some("1")));
    }
    s.write(|tx| {
        tx.set("/a/large/7", &"changed".into())?;
        tx.set_meta("/a/large", "both", Some("at once"))
    });
    s.set("/a/small/y", "2");
    assert_eq!(meta(s, "/a").len(), 2);
    assert_eq!(meta(s, "/a/large").len(), 3);
    assert_eq!(meta(s, "/a/small").len(), 2);
    s.write(|tx| tx.mv("/a/large", "/a/moved"));
    s.write(|tx| tx.mv("/a", "/b"));
    assert_eq!(meta(s, "/b/moved").len(), 3);
    assert_eq!(meta(s, "/b").len(), 2);
    assert_eq!(s.count("/b/moved"), Some(2_000));
}

fn own_edits(s: &Subject) {
    s.set("/a", r#"{"x": 1, "l": [1, 2, 3]}"#);
    s.write(|tx| {
        tx.set("/a/x", &5.into())?;
        assert_eq!(tx.get("/a/x")?, Some(5.into()));
        tx.insert("/a/l/1", &9.into())?;
        assert_eq!((tx.get("/a/l/2")?, tx.count("/a/l")?), (Some(2.into()), Some(4)));
        tx.remove("/a/x")?;
        assert!(!tx.exists("/a/x")?);
        tx.set("/b/c", &Value::map())?;
        assert_eq!(
            (tx.count("")?, tx.count("/b")?, tx.count("/b/c")?),
            (Some(2), Some(1), Some(0))
        );
        tx.set_meta("/b", "n", Some("v"))?;
        assert_eq!(tx.meta("/b")?.map(|entries| entries.len()), Some(1));
        tx.mv("/b", "/d")?;
        assert!(!tx.exists("/b")? && tx.exists("/d/c")?);
        assert_eq!(tx.count("/a/l/0")?, None);
        Ok(())
    });
    assert_eq!(s.get("/a"), Some(json(r#"{"l": [1, 9, 2, 3]}"#)));
}
