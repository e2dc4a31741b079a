//! Trees read as one: what decides, what marks do, and that every way to read says the same.

use std::collections::BTreeMap;
use std::time::Duration;

use spinney::ErrorKind::{Corrupted, Denied, InvalidInput, NotFound, ReadOnly, Unsupported};
use spinney::formats::{Fidelity, Layout, print};
use spinney::layers::{CASCADE, Layer, LayerSpec, Stack, cascade};
use spinney::query::{Query, QueryLimits};
use spinney::read::Marks;
use spinney::read::marks;
use spinney::{Error, ErrorKind, Map, NodeKind, Path, Result, Snapshot, Value, path};

use super::Case;
use crate::servers::refused;
use crate::subject::{Subject, json, text_of};

pub(super) const CASES: &[Case] = &[
    ("the highest layer decides and maps merge", merging),
    ("a deletion hides what is below", deletions),
    ("a map that is set replaces those below", replacing),
    ("a list is whole, and is taken over when it is edited", lists),
    ("a lock cannot be overridden", locks),
    ("stacks are kept by name", kept),
    ("Elektra's cascade", elektra),
    ("a layer of the past", past),
    ("wrong layers and marks", wrong),
    ("many members", many),
    ("a random history of layers", random),
];

const NAMES: [&str; 3] = ["user", "system", "default"];

fn stack_of(s: &Subject, names: &[&str]) -> Stack {
    let layer = |name: &&str| Layer::new(*name, &s.store, &format!("/{name}")).expect("a layer");
    Stack::new(names.iter().map(layer).collect()).expect("a stack")
}

fn stack(s: &Subject) -> Stack {
    stack_of(s, &NAMES)
}

fn state(stack: &Stack) -> Snapshot {
    stack.read().expect("a state")
}

fn set(stack: &Stack, layer: &str, path: &str, text: &str) {
    stack.write(layer, |edit| edit.set(path, &json(text))).expect("it can be set");
}

fn remove(stack: &Stack, layer: &str, path: &str) -> bool {
    stack.write(layer, |edit| edit.remove(path)).expect("it can be removed").value
}

fn merging(s: &Subject) {
    let stack = stack(s);
    assert_eq!(state(&stack).get("").expect("an answer"), None);
    s.set(
        "/default",
        r#"{"editor": {"tab": 8, "font": "mono", "keys": {"a": 1}}, "name": "none"}"#,
    );
    s.set("/system", r#"{"editor": {"tab": 4, "keys": {"b": 2}}, "z": true}"#);
    set(&stack, "user", "/editor/font", "\"serif\"");
    let state = state(&stack);
    assert_eq!(
        text_of(&state, ""),
        r#"{"editor":{"font":"serif","keys":{"a":1,"b":2},"tab":4},"name":"none","z":true}"#
    );
    let sources = |path: &str| state.sources(path).expect("an answer").expect(path);
    assert_eq!(sources("/editor"), NAMES);
    assert_eq!(sources("/editor/keys"), ["system", "default"]);
    assert_eq!(sources("/editor/font"), ["user"]);
    assert_eq!(sources("/name"), ["default"]);
    assert_eq!(state.sources("/nothing").expect("an answer"), None);
    assert_eq!(state.count("/editor").expect("an answer"), Some(3));
    assert_eq!(state.count("/editor/tab").expect("an answer"), None);
    let named = |from, limit| -> Vec<String> {
        let members = state.list("/editor", from, limit).expect("an answer").expect("a map");
        members.into_iter().map(|member| member.segment).collect()
    };
    assert_eq!(named(None, None), ["font", "keys", "tab"]);
    assert_eq!(named(Some("g"), Some(1)), ["keys"]);
    agrees(&state);
}

fn deletions(s: &Subject) {
    let stack = stack(s);
    s.set("/default", r#"{"a": {"b": 1, "c": 2}, "d": 3}"#);
    assert!(remove(&stack, "user", "/a/b"));
    assert!(!remove(&stack, "user", "/a/b"), "it is gone");
    assert!(!remove(&stack, "user", "/none"));
    assert_eq!(text_of(&state(&stack), ""), r#"{"a":{"c":2},"d":3}"#);
    // What is below stays as it is, and is seen again by a reset.
    assert_eq!(s.text("/default/a"), r#"{"b":1,"c":2}"#);
    assert!(stack.write("user", |edit| edit.reset("/a/b")).expect("it can be reset").value);
    assert_eq!(text_of(&state(&stack), "/a"), r#"{"b":1,"c":2}"#);
    assert!(remove(&stack, "user", "/a"));
    assert_eq!(text_of(&state(&stack), ""), r#"{"d":3}"#);
    // What is set within something deleted does not bring the rest of it back.
    set(&stack, "user", "/a/x/y", "5");
    assert_eq!(text_of(&state(&stack), ""), r#"{"a":{"x":{"y":5}},"d":3}"#);
    // A higher layer may have what a lower one deletes.
    assert!(remove(&stack, "system", "/d"));
    assert_eq!(state(&stack).get("/d").expect("an answer"), None);
    set(&stack, "user", "/d", "[]");
    assert_eq!(text_of(&state(&stack), "/d"), "[]");
    assert_eq!(state(&stack).sources("/d").expect("an answer"), Some(vec!["user"]));
    agrees(&state(&stack));
    // A deletion that hides nothing is not needed.
    set(&stack, "user", "/own", "1");
    assert!(remove(&stack, "user", "/own"));
    assert_eq!(s.get("/user/own"), None);
    assert!(remove(&stack, "user", ""), "a whole layer");
    assert_eq!(state(&stack).get("").expect("an answer"), None);
}

fn replacing(s: &Subject) {
    let stack = stack(s);
    s.set("/default", r#"{"a": {"b": {"c": 1}, "d": 2}}"#);
    set(&stack, "user", "/a/b", r#"{"e": 3}"#);
    assert_eq!(text_of(&state(&stack), ""), r#"{"a":{"b":{"e":3},"d":2}}"#);
    set(&stack, "user", "/a/b/c", "4");
    assert_eq!(text_of(&state(&stack), "/a/b"), r#"{"c":4,"e":3}"#);
    set(&stack, "system", "/a", "{}");
    assert_eq!(text_of(&state(&stack), ""), r#"{"a":{"b":{"c":4,"e":3}}}"#);
    set(&stack, "user", "/a", "null");
    assert_eq!(text_of(&state(&stack), ""), r#"{"a":null}"#);
    refused(
        InvalidInput,
        "neither a map nor a list",
        stack.write("user", |edit| edit.set("/a/b", &1.into())),
    );
    agrees(&state(&stack));
}

fn lists(s: &Subject) {
    let stack = stack(s);
    s.set("/default", r#"{"l": [1, {"x": 2}, 3], "e": []}"#);
    set(&stack, "system", "/l/1/x", "20");
    assert_eq!(text_of(&state(&stack), "/l"), r#"[1,{"x":20},3]"#);
    assert_eq!(s.text("/default/l"), r#"[1,{"x":2},3]"#);
    assert_eq!(state(&stack).sources("/l/0").expect("an answer"), Some(vec!["system"]));
    set(&stack, "user", "/l/-", "4");
    assert_eq!(text_of(&state(&stack), "/l"), r#"[1,{"x":20},3,4]"#);
    assert!(remove(&stack, "user", "/l/0"));
    assert!(!remove(&stack, "user", "/l/9"));
    assert_eq!(text_of(&state(&stack), ""), r#"{"e":[],"l":[{"x":20},3,4]}"#);
    assert_eq!(state(&stack).count("/l").expect("an answer"), Some(3));
    assert_eq!(state(&stack).get("/l/1").expect("an answer"), Some(3.into()));
    set(&stack, "user", "/l", r#"{"now": "a map"}"#);
    assert_eq!(text_of(&state(&stack), "/l"), r#"{"now":"a map"}"#);
    agrees(&state(&stack));
}

fn locks(s: &Subject) {
    let stack = stack(s);
    s.set("/system", r#"{"net": {"proxy": {"host": "p", "port": 1}, "mtu": 9}, "other": 1}"#);
    set(&stack, "user", "/net/proxy/port", "2");
    stack.write("system", |edit| edit.lock("/net/proxy")).expect("it can be locked");
    // The lock counts for what was there before it, too.
    assert_eq!(text_of(&state(&stack), "/net"), r#"{"mtu":9,"proxy":{"host":"p","port":1}}"#);
    let tries: [(&str, &str); 4] =
        [("/net/proxy/port", "3"), ("/net/proxy", "null"), ("/net", "{}"), ("", "{}")];
    let before = text_of(&state(&stack), "");
    for (path, value) in tries {
        let set = stack.write("user", |edit| edit.set(path, &json(value)));
        refused(Denied, "locked in the layer `system`", set);
        let removed = stack.write("user", |edit| edit.remove(path));
        refused(Denied, "locked in the layer `system`", removed);
        assert_eq!(text_of(&state(&stack), ""), before);
    }
    // Who writes past the stack is not asked, and is not listened to.
    s.set("/user/net", r#""gone""#);
    assert_eq!(text_of(&state(&stack), "/net"), r#"{"mtu":9,"proxy":{"host":"p","port":1}}"#);
    s.write(|tx| tx.remove("/user"));
    set(&stack, "user", "/net/mtu", "8");
    set(&stack, "user", "/other", "2");
    set(&stack, "system", "/net/proxy/port", "4");
    set(&stack, "default", "/net/proxy/user", "\"d\"");
    assert_eq!(
        text_of(&state(&stack), ""),
        r#"{"net":{"mtu":8,"proxy":{"host":"p","port":4,"user":"d"}},"other":2}"#
    );
    agrees(&state(&stack));
    assert!(stack.write("system", |edit| edit.unlock("/net/proxy")).expect("an answer").value);
    assert!(!stack.write("system", |edit| edit.unlock("/net/proxy")).expect("an answer").value);
    set(&stack, "user", "/net/proxy/port", "5");
    set(&stack, "user", "/net", "{}");
    assert_eq!(text_of(&state(&stack), ""), r#"{"net":{},"other":2}"#);
    refused(NotFound, "set it first", stack.write("user", |edit| edit.lock("/nothing")));
}

fn kept(s: &Subject) {
    let specs = ["user=/user", "system=/etc/system"].map(|text| text.parse::<LayerSpec>().unwrap());
    assert_eq!(specs[1].to_string(), "system=/etc/system");
    s.store.set_stack("settings", &specs).expect("it can be kept");
    assert_eq!(s.store.stacks().expect("an answer"), [("settings".to_owned(), specs.to_vec())]);
    s.set("/etc/system", r#"{"a": 1}"#);
    let stack = s.store.stack("settings").expect("a stack");
    set(&stack, "user", "/b", "2");
    assert_eq!(text_of(&state(&stack), ""), r#"{"a":1,"b":2}"#);
    s.store.remove_stack("settings").expect("it can be removed");
    refused(NotFound, "no stack `settings`", s.store.stack("settings"));
    refused(NotFound, "no stack `settings`", s.store.remove_stack("settings"));
    for wrong in ["user", "user=user", "user=json:f#x"] {
        refused(InvalidInput, "`user", wrong.parse::<LayerSpec>());
    }
    refused(InvalidInput, "needs a layer", s.store.set_stack("x", &[]));
    refused(InvalidInput, "no name of a stack", s.store.set_stack("", &specs));
}

fn elektra(s: &Subject) {
    s.store.set_stack("app", &cascade(&[]).expect("layers")).expect("it can be kept");
    let stack = s.store.stack("app").expect("a stack");
    let names: Vec<&str> = stack.layers().iter().map(Layer::name).collect();
    assert_eq!(names, ["spec", "proc", "dir", "user", "system", "default"]);
    let found = || {
        let state = state(&stack);
        let origin = state.sources("/a/b").expect("an answer").map(|names| names.join(" "));
        (state.get("/a/b").expect("an answer"), origin)
    };
    for name in CASCADE.into_iter().rev() {
        stack.write(name, |edit| edit.set("/a/b", &name.into())).expect("it can be set");
        stack
            .write(name, |edit| edit.set(&format!("/a/{name}"), &true.into()))
            .expect("it can be set");
        assert_eq!(found(), (Some(name.into()), Some(name.to_owned())));
    }
    assert_eq!(state(&stack).count("/a").expect("an answer"), Some(7));
    agrees(&state(&stack));
    for name in CASCADE {
        assert_eq!(found(), (Some(name.into()), Some(name.to_owned())));
        assert!(stack.write(name, |edit| edit.reset("/a/b")).expect("it can be reset").value);
    }
    assert_eq!(found(), (None, None));
    let specs = |texts: &[&str]| -> Vec<LayerSpec> {
        texts.iter().map(|text| text.parse().expect("a layer")).collect()
    };
    let placed = cascade(&specs(&["user=/home/ann", "dir=json:.app.json#"])).expect("layers");
    let shown: Vec<String> = placed.iter().map(ToString::to_string).collect();
    assert_eq!(shown[2..4], ["dir=json:.app.json#", "user=/home/ann"]);
    assert_eq!(shown[4], "system=/system");
    refused(InvalidInput, "`usr` is no namespace", cascade(&specs(&["usr=/usr"])));
    refused(InvalidInput, "the name `user`", cascade(&specs(&["user=/a", "user=/b"])));
}

fn past(s: &Subject) {
    s.set("/running", r#"{"a": 1, "b": 2}"#);
    let base = s.revision();
    let layers = vec![
        Layer::new("changes", &s.store, "/changes").expect("a layer"),
        Layer::new("base", &s.store, "/running").expect("a layer").at(base),
    ];
    let stack = Stack::new(layers).expect("a stack");
    set(&stack, "changes", "/a", "10");
    s.set("/running/b", "20");
    assert_eq!(text_of(&state(&stack), ""), r#"{"a":10,"b":2}"#);
    refused(ReadOnly, "of the past", stack.write("base", |edit| edit.set("/a", &1.into())));
}

fn wrong(s: &Subject) {
    let layer = |name: &str, path: &str| Layer::new(name, &s.store, path);
    refused(InvalidInput, "no name of a layer", layer("", "/a"));
    refused(InvalidInput, "path", layer("a", "a"));
    refused(InvalidInput, "needs a layer", Stack::new(vec![]));
    let two = |one: &str, other: &str| {
        Stack::new(vec![layer("a", one).expect("a layer"), layer("b", other).expect("a layer")])
    };
    refused(InvalidInput, "overlap", two("/x", "/x/y"));
    refused(InvalidInput, "overlap", two("/x", "/x"));
    two("/x", "/xy").expect("they do not overlap");
    let twice = vec![layer("a", "/x").expect("a layer"), layer("a", "/y").expect("a layer")];
    refused(InvalidInput, "two layers have the name `a`", Stack::new(twice));
    let stack = stack(s);
    let provide =
        |stack: Stack, name| stack.provide(name, "", Duration::from_secs(60), || Ok(None));
    let provided = provide(stack.clone(), "clock").expect("provides");
    for taken in ["user", "clock"] {
        let twice = provide(provided.clone(), taken);
        refused(InvalidInput, &format!("two layers have the name `{taken}`"), twice);
    }
    refused(
        NotFound,
        "user, system, default",
        stack.write("usr", |edit| edit.set("/a", &1.into())),
    );
    refused(InvalidInput, "path", state(&stack).get("a"));
    refused(Unsupported, "no pages of their own", state(&stack).check());
    s.set("/user", r#"{"a": 1}"#);
    s.write(|tx| tx.set_meta("/user", marks::NAME, Some("marks-below deletd")));
    refused(Corrupted, "`deletd`", state(&stack).get("/a"));
}

fn many(s: &Subject) {
    let stack = stack(s);
    let numbers = |from: i64, step: i64, to: i64| -> Value {
        let member = |n: i64| (n.to_string(), Value::from(n * step));
        Value::Map((from..to).step_by(step as usize).map(member).collect())
    };
    s.store.write(|tx| tx.set("/default/m", &numbers(0, 1, 3_000))).expect("it is set");
    s.store.write(|tx| tx.set("/system/m", &numbers(0, 2, 4_000))).expect("it is set");
    s.store.write(|tx| tx.set("/user/m", &numbers(-30, 30, 4_100))).expect("it is set");
    let removed: Vec<i64> = (0..4_100).step_by(7).collect();
    stack
        .write("user", |edit| {
            removed.iter().try_for_each(|n| edit.remove(&format!("/m/{n}")).map(drop))
        })
        .expect("they are removed");
    let mut expected = Map::new();
    for n in -30..4_100_i64 {
        let is_removed = n >= 0 && n % 7 == 0;
        let value = match n {
            _ if is_removed => continue,
            _ if n % 30 == 0 => n * 30,
            0..4_000 if n % 2 == 0 => n * 2,
            0..3_000 => n,
            _ => continue,
        };
        expected.insert(&n.to_string(), value);
    }
    let state = state(&stack);
    assert_eq!(state.count("/m").expect("an answer"), Some(expected.len() as u64));
    assert_eq!(state.get("/m").expect("an answer"), Some(Value::Map(expected)));
    let first = state.list("/m", Some("2995"), Some(4)).expect("an answer").expect("a map");
    let first: Vec<_> = first.iter().map(|member| &*member.segment).collect();
    assert_eq!(first, ["2995", "2997", "2998", "2999"], "2996 is removed");
    agrees(&state);
}

/// A layer's node as it is stored.
struct Raw {
    kind: NodeKind,
    marks: Marks,
    value: Value,
    members: BTreeMap<String, Raw>,
}

fn raw(state: &Snapshot, path: &str) -> Option<Raw> {
    let kind = state.kind(path).expect("a kind")?;
    let meta = state.meta(path).expect("metadata").expect("a node");
    let marks = meta.iter().find(|(name, _)| name == marks::NAME);
    let marks = marks.map_or(Marks::NONE, |(_, words)| Marks::parse(words).expect("marks"));
    let value = state.get(path).expect("a value").expect("a node");
    let mut members = BTreeMap::new();
    if kind == NodeKind::Map {
        for member in state.list(path, None, None).expect("members").expect("a map") {
            let place = format!("{path}{}", &*Path::root().child(&member.segment));
            members.insert(member.segment, raw(state, &place).expect("a member"));
        }
    }
    Some(Raw { kind, marks, value, members })
}

/// What layers mean, the highest first, said without any cleverness.
fn meaning(nodes: &[&Raw]) -> Option<Value> {
    let lock = nodes.iter().rposition(|node| node.marks.has(Marks::LOCKED)).unwrap_or(0);
    let nodes = &nodes[lock..];
    let is_map = |node: &Raw| node.kind == NodeKind::Map && !node.marks.has(Marks::DELETED);
    let holds = |node: &&Raw| is_map(node) && node.marks.has(Marks::LOCKED_BELOW);
    let held = nodes.iter().rposition(holds).unwrap_or(0);
    let mut maps = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        match is_map(node) {
            true => maps.push(*node),
            false if at < held => continue,
            false if maps.is_empty() && !node.marks.has(Marks::DELETED) => {
                return Some(node.value.clone());
            }
            false => break,
        }
        if node.marks.has(Marks::REPLACES) && at >= held {
            break;
        }
    }
    if maps.is_empty() {
        return None;
    }
    let mut merged = Map::new();
    for name in maps.iter().flat_map(|map| map.members.keys()) {
        let found: Vec<&Raw> = maps.iter().filter_map(|map| map.members.get(name)).collect();
        if let Some(value) = meaning(&found) {
            merged.insert(name, value);
        }
    }
    Some(Value::Map(merged))
}

/// Every way to read says the same.
fn agrees(state: &Snapshot) {
    let whole = state.get("").expect("an answer");
    let Some(whole) = whole else {
        assert_eq!(state.kind("").expect("an answer"), None);
        return;
    };
    assert_eq!(
        text_of(state, ""),
        print(&whole, Layout::Compact, Fidelity::Tagged).expect("a text")
    );
    let query = Query::parse("$..*").expect("a query");
    let mut found = state.query("", &query, QueryLimits::default()).expect("an answer");
    let mut queried = BTreeMap::new();
    while let Some(node) = found.next() {
        let place = found.location().expect("a place").pointer()[..].to_owned();
        queried.insert(place, node.and_then(|node| node.value()).expect("a value"));
    }
    let mut walked = BTreeMap::new();
    let mut pending = vec![(String::new(), &whole)];
    while let Some((place, value)) = pending.pop() {
        assert_eq!(state.get(&place).expect("an answer").as_ref(), Some(value), "{place}");
        assert_eq!(state.kind(&place).expect("an answer"), Some(value.node_kind()));
        let members: Vec<(String, &Value)> = match value {
            Value::Map(map) => map.iter().map(|(key, value)| (key.into_owned(), value)).collect(),
            Value::List(list) => {
                list.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect()
            }
            _ => Vec::new(),
        };
        let count = matches!(value, Value::Map(_) | Value::List(_)).then_some(members.len() as u64);
        assert_eq!(state.count(&place).expect("an answer"), count, "{place}");
        if count.is_some() {
            let listed = state.list(&place, None, None).expect("an answer").expect("a container");
            let names: Vec<String> = listed.into_iter().map(|member| member.segment).collect();
            let expected: Vec<String> = members.iter().map(|(name, _)| name.clone()).collect();
            assert_eq!(names, expected, "{place}");
        }
        for (name, value) in members {
            let child = format!("{place}{}", &*Path::root().child(name));
            walked.insert(child.clone(), value.clone());
            pending.push((child, value));
        }
    }
    assert!(queried == walked, "a query finds something else: {queried:?} {walked:?}");
    let mut sourced = 0;
    let told = state.each_source("", &mut |found, node| {
        use spinney::read::Node;
        let mut builder = spinney::value::ValueBuilder::default();
        node.visit(&mut builder)?;
        assert_eq!(whole.pointer(found.path), builder.finish().as_ref(), "{}", found.path);
        assert_eq!(state.sources(found.path)?.as_deref(), Some(&[found.layer][..]));
        sourced += 1;
        Ok(())
    });
    assert!(told.expect("sources"));
    assert!(sourced > 0);
}

/// Sets a value in a value, as a transaction does.
fn put(tree: &mut Option<Value>, path: &str, value: &Value) -> Result<()> {
    let mut place = tree.get_or_insert_with(Value::map);
    let mut segments = path::segments(path).peekable();
    if segments.peek().is_none() {
        *place = value.clone();
        return Ok(());
    }
    while let Some(segment) = segments.next() {
        let is_last = segments.peek().is_none();
        place = match place {
            Value::Map(map) => {
                if map.get(&segment).is_none() {
                    map.insert(&segment, Value::map());
                }
                map.get_mut(&segment).expect("it was made")
            }
            Value::List(list) => {
                let position = path::position(&segment).map(|position| position as usize);
                let position = match position {
                    None if segment == "-" && is_last => list.len(),
                    position => position.ok_or_else(|| Error::invalid_input("no position"))?,
                };
                if position == list.len() && is_last {
                    list.push(Value::Null);
                }
                list.get_mut(position).ok_or_else(|| Error::invalid_input("behind the end"))?
            }
            _ => return Err(Error::invalid_input("a scalar")),
        };
        if is_last {
            *place = value.clone();
        }
    }
    Ok(())
}

fn take(tree: &mut Option<Value>, path: &str) {
    let Some((parent, last)) = path::split_last(path) else {
        *tree = None;
        return;
    };
    let mut place = tree.as_mut();
    for segment in path::segments(parent) {
        place = place.and_then(|node| match node {
            Value::Map(map) => map.get_mut(&segment),
            Value::List(list) => path::position(&segment).and_then(|at| list.get_mut(at as usize)),
            _ => None,
        });
    }
    match place {
        Some(Value::Map(map)) => drop(map.remove(&last)),
        Some(Value::List(list)) => {
            let position = path::position(&last).map(|at| at as usize);
            if let Some(position) = position.filter(|&at| at < list.len()) {
                list.remove(position);
            }
        }
        _ => {}
    }
}

fn random(s: &Subject) {
    let mut random = fastrand::Rng::with_seed(0x5a7e);
    let value = |random: &mut fastrand::Rng| -> Value {
        match random.u8(..8) {
            0 => json(r#"{"a": {"b": 1}, "c": [1, {"a": 2}]}"#),
            1 => json("{}"),
            2 => json(r#"[0, {"b": "x"}]"#),
            3 => json("null"),
            4 => Value::Map(
                (0..random.u8(..40))
                    .map(|n| (format!("k{n}"), Value::from(i64::from(n))))
                    .collect(),
            ),
            _ => Value::from(random.i64(..100)),
        }
    };
    let mut refusals = 0;
    for round in 0..250 {
        let path: String = (0..random.u8(..4))
            .map(|_| ["/a", "/b", "/c", "/k3", "/1", "/-"][random.usize(..6)])
            .collect();
        let at = random.usize(..NAMES.len());
        let all = stack(s);
        let lower = stack_of(s, &NAMES[at..]);
        let whole_before = state(&all).get("").expect("a state");
        let before = state(&lower).get("").expect("a state");
        let mut expected = before.clone();
        let operation = random.u8(..20);
        let (done, is_told) = match operation {
            0..11 => {
                let value = value(&mut random);
                let model = put(&mut expected, &path, &value);
                (all.write(NAMES[at], |edit| edit.set(&path, &value)).map(drop), Some(model))
            }
            11..18 => {
                take(&mut expected, &path);
                (all.write(NAMES[at], |edit| edit.remove(&path)).map(drop), Some(Ok(())))
            }
            18 => (all.write(NAMES[at], |edit| edit.lock(&path)).map(drop), None),
            _ => (all.write(NAMES[at], |edit| edit.unlock(&path)).map(drop), None),
        };
        let after = state(&all);
        match (done, is_told) {
            (Ok(()), Some(model)) => {
                let is_root_append = path.split('/').any(|segment| segment == "-");
                if model.is_ok() || !is_root_append {
                    model.expect("the model can do it");
                    let found = state(&lower).get("").expect("a state");
                    // A removal that leaves an empty layer leaves nothing, or a map.
                    assert_eq!(found, expected, "round {round}: {operation} {path} in {at}");
                }
            }
            (Ok(()), None) => {}
            (Err(error), _) => {
                refusals += 1;
                assert!(
                    matches!(error.kind(), Denied | InvalidInput | ErrorKind::NotFound),
                    "{error}"
                );
                assert_eq!(
                    after.get("").expect("a state"),
                    whole_before,
                    "it was refused: {error}"
                );
            }
        }
        let raws = s.store.read().expect("a state");
        let raws: Vec<Raw> =
            NAMES.iter().filter_map(|name| raw(&raws, &format!("/{name}"))).collect();
        let whole = after.get("").expect("a state");
        assert_eq!(whole, meaning(&raws.iter().collect::<Vec<_>>()), "round {round}");
        if round % 25 == 0 {
            agrees(&after);
        }
    }
    assert!((5..200).contains(&refusals), "{refusals} refusals of 250");
}
