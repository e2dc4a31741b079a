//! JSON Patch, merge patch, differences and conditions, on stored trees of any size.

use spinney::ErrorKind::{Conflict, InvalidInput, NotFound, Unsupported};
use spinney::difference::{Metadata, PatchWriter, differences};
use spinney::patch::{Patch, PatchReader};
use spinney::{Expect, Expected, Value};

use super::Case;
use crate::subject::{Subject, json};

pub(super) const CASES: &[Case] = &[
    ("a patch of every operation", every_operation),
    ("a patch that fails leaves nothing", failing),
    ("a patch that has failed is not committed by mistake", swallowed),
    ("a patch makes nothing on the way", no_way),
    ("a patch in large containers", large_containers),
    ("a patch moves whole trees", whole_trees),
    ("a patch replaces the document", whole_documents),
    ("a merge writes what changes", merging),
    ("a merge into large containers", large_merges),
    ("differences of stored nodes", stored_differences),
    ("conditions hold within the transaction", conditions),
];

fn patch(text: &str) -> Patch {
    Patch::from_value(&json(text)).expect("a patch")
}

fn swallowed(s: &Subject) {
    s.set("/t", r#"{"a": 1}"#);
    let half = patch(r#"[{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/none"}]"#);
    s.refused(InvalidInput, "there is no node to remove", |tx| {
        let _ = tx.patch("/t", &half);
        tx.set("/t/b", &1.into())
    });
    let test = patch(r#"[{"op": "test", "path": "/a", "value": 2}]"#);
    s.refused(InvalidInput, "return that error", |tx| {
        let _ = tx.patch("/t", &test);
        Ok(())
    });
}

fn numbers(count: u64) -> Value {
    (0..count).map(Value::from).collect::<Vec<_>>().into()
}

fn every_operation(s: &Subject) {
    s.set("/t", r#"{"a": {"b": [1, 2]}, "c": "x"}"#);
    let patch = patch(
        r#"[{"op": "test", "path": "/a/b", "value": [1.0, 2e0]},
            {"op": "add", "path": "/a/b/1", "value": {"new": null}},
            {"op": "replace", "path": "/a/b/0", "value": "one"},
            {"op": "move", "from": "/a/b/2", "path": "/a/two"},
            {"op": "copy", "from": "/a/b", "path": "/a/b/-"},
            {"op": "remove", "path": "/c"},
            {"op": "test", "path": "/a/b/2/0", "value": "one"}]"#,
    );
    let committed = s.write(|tx| tx.patch("/t", &patch));
    assert_eq!(s.text("/t"), r#"{"a":{"b":["one",{"new":null},["one",{"new":null}]],"two":2}}"#);
    assert_eq!(committed.revision, s.revision());
    // One that comes out where it began makes no revision.
    let nothing = self::patch(
        r#"[{"op": "add", "path": "/x", "value": 1}, {"op": "test", "path": "/x", "value": 1},
            {"op": "remove", "path": "/x"}]"#,
    );
    assert_eq!(s.write(|tx| tx.patch("/t", &nothing)).revision, committed.revision);
}

fn failing(s: &Subject) {
    s.set("/t", r#"{"a": {"b": [1, 2]}, "n": 5}"#);
    for (kind, operation, said) in [
        (Conflict, r#"{"op": "test", "path": "/n", "value": 6}"#, "`/n` is 5 and not, as"),
        (NotFound, r#"{"op": "test", "path": "/x", "value": null}"#, "no node to test"),
        (NotFound, r#"{"op": "remove", "path": "/a/b/2"}"#, "remove `/a/b/2`: there is no node"),
        (NotFound, r#"{"op": "remove", "path": "/a/b/-"}"#, "no node to remove"),
        (NotFound, r#"{"op": "remove", "path": "/a/b/01"}"#, "no node to remove"),
        (NotFound, r#"{"op": "replace", "path": "/m", "value": 1}"#, "no node to replace"),
        (NotFound, r#"{"op": "replace", "path": "/a/b/2", "value": 1}"#, "no node to replace"),
        (InvalidInput, r#"{"op": "add", "path": "/a/b/3", "value": 1}"#, "`3` is no position"),
        (InvalidInput, r#"{"op": "add", "path": "/a/b/x", "value": 1}"#, "`x` is no position"),
        (InvalidInput, r#"{"op": "move", "from": "/a", "path": "/a/c"}"#, "below itself"),
        (InvalidInput, r#"{"op": "move", "from": "", "path": "/a/c"}"#, "below itself"),
        (NotFound, r#"{"op": "move", "from": "/x", "path": "/y"}"#, "nothing to move"),
        (InvalidInput, r#"{"op": "move", "from": "/n", "path": "/a/b/9"}"#, "`9` is no position"),
        (NotFound, r#"{"op": "copy", "from": "/a/b/-", "path": "/y"}"#, "nothing to copy"),
    ] {
        let text = format!(
            r#"[{{"op": "add", "path": "/fresh", "value": 1}}, {{"op": "remove", "path": "/a/b/0"}},
                {{"op": "add", "path": "/a/b/0", "value": 1}}, {operation}]"#
        );
        let patch = patch(&text);
        s.refused(kind, said, |tx| tx.patch("/t", &patch));
        s.refused(kind, "patch `/t`: operation `/3`: ", |tx| tx.patch("/t", &patch));
    }
}

fn no_way(s: &Subject) {
    s.set("/t", r#"{"n": 5, "l": []}"#);
    for operation in [
        r#"{"op": "add", "path": "/x/y", "value": 1}"#,
        r#"{"op": "add", "path": "/n/y", "value": 1}"#,
        r#"{"op": "add", "path": "/l/0/y", "value": 1}"#,
        r#"{"op": "copy", "from": "/n", "path": "/x/y"}"#,
        r#"{"op": "move", "from": "/n", "path": "/x/y"}"#,
        r#"{"op": "move", "from": "/l", "path": "/n/y"}"#,
    ] {
        let patch = patch(&format!("[{operation}]"));
        s.refused(NotFound, "there is no map or list", |tx| tx.patch("/t", &patch));
        s.refused(NotFound, "there is no", |tx| tx.patch("/t/none", &patch));
    }
}

fn large_containers(s: &Subject) {
    s.write(|tx| tx.set("/t/list", &numbers(20_000)));
    let map: spinney::Map = (0..20_000).map(|n| (format!("key{n}"), Value::from(n))).collect();
    s.write(|tx| tx.set("/t/map", &map.clone().into()));
    let patch = patch(
        r#"[{"op": "add", "path": "/list/10000", "value": "middle"},
            {"op": "move", "from": "/list/0", "path": "/list/19999"},
            {"op": "remove", "path": "/map/key7"},
            {"op": "move", "from": "/map", "path": "/moved"},
            {"op": "add", "path": "/moved/key7", "value": {"back": true}}]"#,
    );
    let committed = s.write(|tx| tx.patch("/t", &patch));
    assert_eq!((s.count("/t/list"), s.count("/t/moved")), (Some(20_001), Some(20_000)));
    assert_eq!(s.text("/t/list/9999"), r#""middle""#);
    assert_eq!((s.text("/t/list/19999"), s.text("/t/list/20000")), ("0".into(), "19999".into()));
    assert!(committed.diff.encode().len() < 1_000, "containers are held by reference");
    let test = Value::Map([("list", numbers(20_000))].into_iter().collect());
    s.refused(Conflict, "`/list/0` is 1 and not, as expected, 0", |tx| {
        tx.patch("/t", &Patch { operations: vec![operation_test(&test)] })
    });
}

fn operation_test(value: &Value) -> spinney::patch::Operation {
    let path = spinney::Path::root();
    spinney::patch::Operation { path, action: spinney::patch::Action::Test(value.clone()) }
}

fn whole_trees(s: &Subject) {
    s.set("/a", "1");
    s.set("/b", r#"{"x": [2]}"#);
    s.write(|tx| tx.patch("", &patch(r#"[{"op": "move", "from": "/b", "path": "/a"}]"#)));
    assert_eq!(s.text(""), r#"{"a":{"x":[2]}}"#, "a tree in the place of another one");
    s.write(|tx| tx.patch("", &patch(r#"[{"op": "copy", "from": "/a/x", "path": "/c"}]"#)));
    s.write(|tx| tx.patch("", &patch(r#"[{"op": "move", "from": "/a/x", "path": "/a"}]"#)));
    s.write(|tx| tx.patch("", &patch(r#"[{"op": "move", "from": "/c", "path": "/c"}]"#)));
    assert_eq!(s.text(""), r#"{"a":[2],"c":[2]}"#);
    s.write(|tx| tx.patch("", &patch(r#"[{"op": "replace", "path": "", "value": {"d": 1}}]"#)));
    assert_eq!(s.text(""), r#"{"d":1}"#);
    s.set("/e", r#"{"f": {"g": 1}}"#);
    s.write(|tx| tx.patch("", &patch(r#"[{"op": "move", "from": "/e/f", "path": ""}]"#)));
    assert_eq!(s.text(""), r#"{"g":1}"#);
    s.set("/e", r#"{"f": {"g": 1}}"#);
    s.write(|tx| tx.set_meta("/e/f/g", "by", Some("me")));
    s.refused(Unsupported, "a node with metadata", |tx| {
        tx.patch("", &patch(r#"[{"op": "move", "from": "/e/f", "path": ""}]"#))
    });
    s.refused(InvalidInput, "the root cannot be removed", |tx| {
        tx.patch("", &patch(r#"[{"op": "remove", "path": ""}]"#))
    });
}

fn whole_documents(s: &Subject) {
    s.set("/t", r#"{"l": [1, {"x": 2}]}"#);
    s.write(|tx| tx.patch("/t/l/0", &patch(r#"[{"op": "add", "path": "", "value": "one"}]"#)));
    assert_eq!(s.text("/t/l"), r#"["one",{"x":2}]"#, "an element is replaced, not inserted");
    s.write(|tx| tx.patch("/t/l/1", &patch(r#"[{"op": "copy", "from": "/x", "path": ""}]"#)));
    assert_eq!(s.text("/t/l"), r#"["one",2]"#);
    s.set("/t/l/1", r#"{"y": [2]}"#);
    s.write(|tx| tx.set_meta("/t/l/1/y", "by", Some("me")));
    s.write(|tx| tx.patch("/t/l/1", &patch(r#"[{"op": "move", "from": "/y", "path": ""}]"#)));
    s.write(|tx| tx.patch("/t/l/1", &patch(r#"[{"op": "move", "from": "", "path": ""}]"#)));
    s.write(|tx| tx.patch("/t/l/1", &patch(r#"[{"op": "copy", "from": "/0", "path": ""}]"#)));
    assert_eq!(s.text("/t/l"), r#"["one",2]"#);
    s.write(|tx| tx.patch("/t/l/0", &patch(r#"[{"op": "remove", "path": ""}]"#)));
    assert_eq!(s.text("/t/l"), "[2]");
    s.write(|tx| tx.patch("/fresh/way", &patch(r#"[{"op": "add", "path": "", "value": []}]"#)));
    assert_eq!(s.text("/fresh"), r#"{"way":[]}"#);
    s.refused(NotFound, "no node to replace", |tx| {
        tx.patch("/none", &patch(r#"[{"op": "replace", "path": "", "value": 1}]"#))
    });
}

fn merging(s: &Subject) {
    s.set("/t", r#"{"a": {"b": 1, "c": 2}, "d": [1, 2], "e": "x"}"#);
    s.write(|tx| tx.set_meta("/t/a", "by", Some("me")));
    let merged = s.write(|tx| tx.merge("/t", &json(r#"{"a": {"b": null, "c": 2, "n": 1.0}}"#)));
    assert_eq!(merged.diff.ops.len(), 2, "what stays is not written: {:?}", merged.diff);
    assert_eq!(s.text("/t/a/c"), "2");
    let revision = s.revision();
    for same in [r#"{}"#, r#"{"a": {"n": 1.0}, "d": [1, 2], "e": "x", "none": null}"#] {
        assert_eq!(s.write(|tx| tx.merge("/t", &json(same))).revision, revision, "{same}");
    }
    assert_eq!(s.write(|tx| tx.merge("/t", &json(r#"{"a": {"n": 1}}"#))).diff.ops.len(), 1);
    s.write(|tx| tx.merge("/t/a", &json("7")));
    s.write(|tx| tx.merge("/t/e", &json(r#"{"x": null, "y": {"z": null}, "l": [null]}"#)));
    assert_eq!(s.text("/t"), r#"{"a":7,"d":[1,2],"e":{"l":[null],"y":{}}}"#);
    s.write(|tx| tx.merge("", &json(r#"{"t": {"d": null, "e": null}, "u": {"v": [1]}}"#)));
    assert_eq!(s.text(""), r#"{"t":{"a":7},"u":{"v":[1]}}"#);
    s.refused(InvalidInput, "merge the root", |tx| tx.merge("", &json("[]")));
}

fn large_merges(s: &Subject) {
    let map: spinney::Map = (0..10_000).map(|n| (format!("key{n}"), Value::from(n))).collect();
    s.write(|tx| tx.set("/t", &map.clone().into()));
    let merged = s.write(|tx| tx.merge("/t", &json(r#"{"key5": null, "key6": {"x": 1}}"#)));
    assert_eq!((merged.diff.ops.len(), s.count("/t")), (2, Some(9_999)));
    let revision = s.revision();
    let mut same = map;
    same.remove("key5");
    same.remove("key6");
    assert_eq!(s.write(|tx| tx.merge("/t", &same.clone().into())).revision, revision);
}

fn stored_differences(s: &Subject) {
    s.write(|tx| tx.set("/a", &numbers(3_000)));
    s.write(|tx| tx.copy("/a", "/b"));
    s.write(|tx| tx.insert("/b/1500", &json(r#"{"x": [1]}"#)));
    s.write(|tx| tx.remove("/b/7"));
    s.write(|tx| tx.set("/b/2000", &"changed".into()));
    let snapshot = s.store.read().expect("a snapshot");
    let side = |path| snapshot.node(path).expect("reads").expect("it is there");
    let mut operations = Vec::new();
    let mut collect = |_, operation| {
        operations.push(operation);
        Ok(())
    };
    let mut reader = PatchReader::new(&mut collect);
    let mut writer = PatchWriter::new(&mut reader, Metadata::Refuse).expect("begins");
    differences(&side("/a"), &side("/b"), &mut |path, change| writer.write(path, &change))
        .expect("reads");
    writer.finish().expect("ends");
    let said: Vec<String> = operations.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["remove `/7`", "add `/1499`", "replace `/2000`"]);
    s.write(|tx| tx.patch("/a", &Patch { operations: operations.clone() }));
    assert_eq!(s.text("/a"), s.text("/b"));
    let mut found = 0;
    let count = &mut |_: &spinney::Path, _: spinney::difference::Change<'_>| {
        found += 1;
        Ok(())
    };
    let now = s.store.read().expect("a snapshot");
    let side = |path| now.node(path).expect("reads").expect("it is there");
    differences(&side("/a"), &side("/b"), count).expect("reads");
    assert_eq!(found, 0);
}

fn conditions(s: &Subject) {
    s.set("/t", r#"{"n": 5, "l": [1]}"#);
    let hash = s.store.read().unwrap().hash("/t").expect("reads").expect("it is there");
    s.write(|tx| {
        tx.expect("/t/n", &Expected::Value(json("5.0")))?;
        tx.expect("/t", &Expected::Hash(hash))?;
        tx.expect("/t/x", &Expected::Absent)?;
        tx.set("/t/n", &6.into())?;
        // The edits so far count.
        tx.expect("/t/n", &Expected::Value(6.into()))
    });
    s.refused(Conflict, "`/t` is of hash", |tx| tx.expect("/t", &Expected::Hash(hash)));
    s.refused(Conflict, "`/t/n` is 6 and not, as expected, 5", |tx| {
        tx.set("/t/x", &1.into())?;
        tx.expect("/t/n", &Expected::Value(5.into()))
    });
    s.refused(Conflict, "`/t/l` is there", |tx| tx.expect("/t/l", &Expected::Absent));
}
