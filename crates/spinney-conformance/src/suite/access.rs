//! Access rules: what a principal sees and may change, and that nobody is told of what is hidden.

use std::sync::Arc;
use std::time::Duration;

use spinney::ErrorKind::{Busy, Denied, Invalid, InvalidInput, NotFound, Unsupported};
use spinney::access::{AccessRules, Principal, Right};
use spinney::datastores::{CandidateCommit, Datastore, Datastores, Pushed};
use spinney::feed::{Change, Event};
use spinney::layers::{Layer, Stack};
use spinney::query::{Query, QueryLimits};
use spinney::{
    Answer, Error, Expect, Expected, LockOptions, NodeKind, OpenOptions, Proposal, Result, Store,
    SubscriberOptions, Value,
};

use super::{Case, skipped};
use crate::subject::{Subject, json, text_of};

pub(super) const CASES: &[Case] = &[
    ("what may not be read is not there", reading),
    ("what may not be written is refused in the same words, there or not", writing),
    ("elements of a list are seen all or none", lists),
    ("history without what is hidden", history),
    ("large values of the log without what is hidden", large_values),
    ("conditions do not tell", conditions),
    ("locks, schemas and subscribers do not tell", reviewers),
    ("unique values and references do not tell of whom", unique_values),
    ("stacks and datastores", layers),
    ("datastores as far as they may be read", datastores),
    ("datastores of which nothing may be read", unseen_datastores),
    ("what is about the whole store", whole),
    ("somebody administers the rules", administration),
    ("rules outlive imports and older states", reserved),
    ("where rules cannot be kept", nowhere),
];

const PEOPLE: &str = r#"{
    "ann": {"name": "Ann", "salary": 5000, "tags": ["a", "b"]},
    "bob": {"name": "Bob", "salary": 4000, "tags": []}
}"#;

const RULES: &str = r#"[
    {"allow": "admin", "to": "root", "path": ""},
    {"deny": "read", "to": "*", "path": "/people/*/salary"},
    {"allow": "write", "to": "ann", "path": "/people/ann"},
    {"allow": "read", "to": "@staff", "path": "/people"},
    {"allow": "write", "to": "ann", "path": "/notes/shared/ann"}
]"#;

fn set_rules(store: &Store, text: &str) {
    let rules = AccessRules::of_value(&json(text)).expect("rules");
    store.set_access_rules(&rules, false).expect("they are kept");
}

fn ann(s: &Subject) -> Store {
    s.store.as_principal(Principal::new("ann").in_group("staff"))
}

/// People, plans and notes, and rules; false where there can be none.
fn filled(s: &Subject) -> bool {
    if !s.store.capabilities().multi_tree_commit {
        skipped("access rules", "trees do not change together");
        return false;
    }
    s.set("/people", PEOPLE);
    s.set("/plans", r#"{"next": "secret"}"#);
    s.set("/notes", r#"{"private": 1, "shared": {"ann": {}, "bob": 2}, "text": "t"}"#);
    set_rules(&s.store, RULES);
    true
}

/// The words of a refusal without the path that it is about.
fn words<T>(tried: Result<T>, path: &str) -> String {
    let Err(error) = tried else { panic!("{path} was not refused") };
    format!("{:?} {}", error.kind(), error.to_string().replace(path, "PATH"))
}

/// Sets a path, past what follows the subject: access rules do not go along.
fn put(s: &Subject, path: &str, text: &str) {
    s.store.write(|tx| tx.set(path, &json(text))).expect("the owner writes");
}

#[track_caller]
fn is_denied<T>(tried: Result<T>) {
    assert_eq!(tried.map(drop).map_err(|error| error.kind()), Err(Denied));
}

fn reading(s: &Subject) {
    if !filled(s) {
        return;
    }
    let state = ann(s).read().expect("a state");
    let shown = r#"{"notes":{"shared":{"ann":{}}},"people":{"ann":{"name":"Ann","tags":["a","b"]},"bob":{"name":"Bob","tags":[]}}}"#;
    assert_eq!(text_of(&state, ""), shown);
    let bare = spinney::open("memory:").expect("a store");
    let Value::Map(trees) = json(shown) else { panic!("a map") };
    for (name, tree) in trees.iter() {
        bare.write(|tx| tx.set(&format!("/{name}"), tree)).expect("sets");
    }
    let bare = bare.read().expect("a state");
    for path in
        ["", "/notes", "/people", "/people/ann", "/people/ann/tags", "/plans", "/notes/text"]
    {
        assert_eq!(state.get(path).expect("reads"), bare.get(path).expect("reads"), "{path}");
        assert_eq!(state.count(path).expect("counts"), bare.count(path).expect("counts"), "{path}");
        assert_eq!(state.kind(path).expect("reads"), bare.kind(path).expect("reads"), "{path}");
        assert_eq!(state.hash(path).expect("hashes"), bare.hash(path).expect("hashes"), "{path}");
        let list = |state: &spinney::Snapshot| state.list(path, None, None).expect("lists");
        assert_eq!(list(&state), list(&bare), "{path}");
        assert_eq!(state.node(path).expect("reads").is_some(), bare.kind(path).unwrap().is_some());
    }
    for hidden in
        ["/plans", "/plans/next", "/people/ann/salary", "/notes/text", "/.access", "/none"]
    {
        assert_eq!(state.get(hidden).expect("reads"), None, "{hidden}");
        assert_eq!(state.meta(hidden).expect("reads"), None, "{hidden}");
        assert_eq!(state.list(hidden, None, None).expect("lists"), None, "{hidden}");
    }
    let found = |query: &str| {
        let query = Query::parse(query).expect("a query");
        let found = state.query("", &query, QueryLimits::default()).expect("it runs");
        found.map(|node| node.and_then(|node| node.value()).expect("a value")).collect::<Vec<_>>()
    };
    assert_eq!(found("$..salary"), []);
    assert_eq!(found("$.people[?@.salary]"), []);
    assert_eq!(found("$..name"), [Value::from("Ann"), "Bob".into()]);
    assert_eq!(found("$[?length(@) == 1]"), [json(r#"{"shared":{"ann":{}}}"#)]);
    // Nobody is anybody.
    let other = s.store.as_principal(Principal::new("eve")).read().expect("a state");
    assert_eq!((other.get("").expect("reads"), other.count("").expect("counts")), (None, None));
    assert_eq!(s.text("/plans"), r#"{"next":"secret"}"#);
}

fn writing(s: &Subject) {
    if !filled(s) {
        return;
    }
    let ann = ann(s);
    ann.write(|tx| {
        tx.set("/people/ann/name", &"Anna".into())?;
        tx.insert("/people/ann/tags/0", &"z".into())?;
        tx.set("/notes/shared/ann/x/y", &1.into())?;
        tx.mv("/people/ann/name", "/people/ann/called")?;
        tx.merge("/people/ann", &json(r#"{"tags": null}"#))
    })
    .expect("it may be written");
    assert_eq!(s.text("/people/ann"), r#"{"called":"Anna","salary":5000}"#);
    let before = s.revision();
    let pairs = [
        ("/plans/next", "/plans/none"),
        ("/plans", "/none"),
        ("/people/ann/salary", "/people/ann/salary/x"),
        ("/people/bob/name", "/people/bob/none"),
        ("/people/bob", "/people/eve"),
        ("/notes/text/x", "/notes/none/x"),
        ("/.access/rules", "/.none"),
    ];
    for (there, missing) in pairs {
        type Tried = fn(&Store, &str) -> Result<()>;
        let tried: [Tried; 9] = [
            |ann, path| ann.write(|tx| tx.set(path, &1.into())).map(drop),
            |ann, path| ann.write(|tx| tx.create(path, &1.into())).map(drop),
            |ann, path| ann.write(|tx| tx.replace(path, &1.into())).map(drop),
            |ann, path| ann.write(|tx| tx.remove(path)).map(drop),
            |ann, path| ann.write(|tx| tx.insert(path, &1.into())).map(drop),
            |ann, path| ann.write(|tx| tx.mv(path, "/people/ann/x")).map(drop),
            |ann, path| ann.write(|tx| tx.mv("/people/ann/called", path)).map(drop),
            |ann, path| ann.write(|tx| tx.copy("/people/ann/called", path)).map(drop),
            |ann, path| ann.write(|tx| tx.merge(path, &1.into())).map(drop),
        ];
        for (number, tried) in tried.into_iter().enumerate() {
            let (one, other) = (tried(&ann, there), tried(&ann, missing));
            let (one, other) = (words(one, there), words(other, missing));
            assert_eq!(one, other, "{number}: {there}");
            assert!(one.starts_with("Denied"), "{one}");
        }
    }
    for path in ["/plans/next", "/plans/none", "/people", "/people/ann/salary"] {
        is_denied(ann.write(|tx| tx.copy(path, "/people/ann/x")));
    }
    is_denied(ann.write(|tx| tx.set("", &Value::map())));
    is_denied(ann.write(|tx| tx.set_meta("/people/bob", "note", Some("n"))));
    ann.write(|tx| {
        assert_eq!(tx.get("/plans")?, None);
        assert_eq!(tx.count("/people/ann")?, Some(1));
        assert_eq!(tx.count("/notes")?, Some(1));
        assert!(!tx.exists("/people/bob/salary")?);
        assert_eq!(tx.container("/notes/text")?, None);
        assert_eq!(spinney::hash::hash_in(tx, "/notes/text")?, None);
        tx.set_meta("/people/ann/called", "note", Some("n"))
    })
    .expect("it reads and annotates");
    assert_eq!(s.revision(), before + 1);
    assert_eq!(s.text("/plans"), r#"{"next":"secret"}"#);
}

fn lists(s: &Subject) {
    if !filled(s) {
        return;
    }
    put(s, "/list", r#"[{"a": 1, "b": 2}, 3, [4]]"#);
    let with = |rules: &str| {
        let root = r#"{"allow": "admin", "to": "root", "path": ""}"#;
        set_rules(&s.store, &format!("[{root}, {rules}]"));
        text_of(&ann(s).read().expect("a state"), "/list")
    };
    assert_eq!(
        with(r#"{"allow": "read", "to": "ann", "path": "/list"}"#),
        r#"[{"a":1,"b":2},3,[4]]"#
    );
    let members = r#"{"deny": "read", "to": "ann", "path": "/list/*/b"}, {"allow": "read", "to": "ann", "path": "/list"}"#;
    assert_eq!(with(members), r#"[{"a":1},3,[4]]"#);
    let all = r#"{"deny": "read", "to": "ann", "path": "/list/*"}, {"allow": "read", "to": "ann", "path": "/list"}"#;
    assert_eq!(with(all), "[]");
    assert_eq!(ann(s).read().unwrap().count("/list").expect("counts"), Some(0));
    assert_eq!(ann(s).read().unwrap().get("/list/0").expect("reads"), None);
    // Positions come and go, so rules do not name them.
    let named = r#"{"deny": "read", "to": "ann", "path": "/list/0"}, {"allow": "read", "to": "ann", "path": "/list"}"#;
    assert_eq!(with(named), r#"[{"a":1,"b":2},3,[4]]"#);
    assert_eq!(ann(s).read().unwrap().get("/list/0/a").expect("reads"), Some(1.into()));
    assert_eq!(with(r#"{"allow": "read", "to": "ann", "path": "/list/*/a"}"#), "nothing");
    assert_eq!(ann(s).read().unwrap().get("/list/0/a").expect("reads"), None);
    let write = r#"{"allow": "write", "to": "ann", "path": "/list/*"}, {"allow": "read", "to": "ann", "path": "/list"}"#;
    with(write);
    ann(s)
        .write(|tx| {
            tx.insert("/list/-", &5.into())?;
            tx.remove("/list/0").map(drop)
        })
        .expect("elements may be written");
    is_denied(ann(s).write(|tx| tx.set("/list", &Value::map())));
    assert_eq!(s.text("/list"), "[3,[4],5]");
}

/// What a principal sees of the log, without the time.
fn log_of(store: &Store) -> Vec<(u64, String)> {
    let state = store.read().expect("a state");
    let mut seen = Vec::new();
    for logged in state.log().expect("a log") {
        let logged = logged.expect("a commit");
        let paths: Vec<String> =
            logged.entry.diff.ops.iter().map(|op| op.pointer().to_string()).collect();
        if paths.is_empty() {
            assert_eq!(logged.entry.note, spinney::history::Note::default());
        } else {
            seen.push((logged.revision, paths.join(" ")));
        }
    }
    seen
}

fn history(s: &Subject) {
    if !filled(s) {
        return;
    }
    let begin = s.revision();
    put(s, "/plans/next", "\"other\"");
    let both = |tx: &mut spinney::Transaction<'_>| {
        tx.set("/people/ann/salary", &6000.into())?;
        tx.set("/people/ann/name", &"Anna".into())
    };
    s.store.write(both).expect("the owner writes");
    put(s, "/people/bob/salary", "1");
    put(s, "/people/bob", r#"{"name": "Bob", "salary": 7, "tags": []}"#);
    put(s, "/people/bob", r#"{"name": "Rob", "salary": 7, "tags": []}"#);
    let ann = ann(s);
    let log = log_of(&ann);
    assert_eq!(log[0], (begin + 5, "`/people/bob`".to_owned()));
    assert_eq!(log[1], (begin + 2, "`/people/ann/name`".to_owned()));
    assert!(log.iter().all(|(revision, _)| ![begin + 1, begin + 3, begin + 4].contains(revision)));
    let mut feed = ann.changes("", begin).expect("a feed");
    let mut fed = Vec::new();
    while let Some(Event::Change(change)) = feed.next(Duration::ZERO).expect("an event") {
        fed.push(change.revision);
    }
    assert_eq!(fed, [begin + 2, begin + 5]);
    assert_eq!(feed.bookmark().revision, s.revision());
    let between = ann.between(begin, s.revision()).expect("what is between");
    let mut changed = Vec::new();
    between
        .changes(&mut |path, _| {
            changed.push(path.to_string());
            Ok(())
        })
        .expect("changes");
    assert_eq!(changed, ["`/people/ann/name`", "`/people/bob/name`"]);
    let old = ann.at(begin).expect("an older state");
    assert_eq!(text_of(&old, "/people/bob"), r#"{"name":"Bob","tags":[]}"#);
    for revision in [begin + 1, begin + 2] {
        is_denied(ann.revert(revision));
        is_denied(ann.restore(revision));
    }
}

fn large_values(s: &Subject) {
    if !filled(s) {
        return;
    }
    let begin = s.revision();
    let large = |salary: u64| {
        let tags: Vec<Value> = (0..2_000).map(Value::from).collect();
        let mut person = spinney::Map::new();
        person.insert("tags", tags);
        person.insert("salary", salary);
        Value::Map(person)
    };
    for salary in [1, 2] {
        s.store.write(|tx| tx.set("/people/eve", &large(salary))).expect("the owner writes");
    }
    s.store.write(|tx| tx.remove("/people/eve")).expect("the owner writes");
    let ann = ann(s);
    let state = ann.read().expect("a state");
    let mut seen = Vec::new();
    for logged in state.log_from(begin + 1).expect("a log") {
        let logged = logged.expect("a commit");
        for op in &logged.entry.diff.ops {
            for side in [&op.old, &op.new].into_iter().flatten() {
                let mut builder = spinney::value::ValueBuilder::default();
                spinney::expand::Contained(side).visit(&mut builder).expect("it is all there");
                let value = builder.finish().expect("a value");
                assert_eq!(value.pointer("/salary"), None);
                assert_eq!(value.pointer("/tags/1999"), Some(&1999.into()));
            }
            seen.push(logged.revision - begin);
        }
    }
    assert_eq!(seen, [1, 3]);
}

fn conditions(s: &Subject) {
    if !filled(s) {
        return;
    }
    let ann = ann(s);
    let try_one =
        |path: &str, expected: &Expected| ann.write(|tx| tx.expect(path, expected)).map(drop);
    let hash = s.store.read().unwrap().hash("/plans").expect("hashes").expect("it is there");
    for expected in [Expected::Hash(hash), Expected::Value(json(r#"{"next": "secret"}"#))] {
        let (there, missing) = (try_one("/plans", &expected), try_one("/none", &expected));
        assert_eq!(words(there, "/plans"), words(missing, "/none"));
    }
    try_one("/plans", &Expected::Absent).expect("nothing is seen there");
    let revision = s.revision();
    put(s, "/plans/next", "1");
    for path in ["/plans", "/none", "/people", "/people/ann/name", ""] {
        is_denied(try_one(path, &Expected::Unchanged(revision)));
    }
}

fn reviewers(s: &Subject) {
    if !filled(s) {
        return;
    }
    let ann = ann(s);
    let other = OpenOptions::new().over(Arc::clone(&s.backend), None);
    let lock = other.lock("/notes/shared", LockOptions::default()).expect("a lock");
    let refused =
        ann.write(|tx| tx.set("/notes/shared/ann/x", &1.into())).expect_err("it is locked");
    assert_eq!(refused.kind(), Busy);
    assert!(!refused.to_string().contains("`/notes/shared`"), "{refused}");
    assert_eq!(ann.locks().expect("locks").len(), 0);
    let again =
        ann.lock("/notes/shared/ann", LockOptions::default()).map(drop).expect_err("locked");
    assert!(again.kind() == Busy && !again.to_string().contains("`/notes/shared` "), "{again}");
    is_denied(ann.break_lock("/notes/shared"));
    is_denied(ann.lock("/plans", LockOptions::default()));
    lock.unlock().expect("unlocks");
    let own = ann.lock("/notes/shared/ann", LockOptions::default()).expect("it may be locked");
    ann.write(|tx| tx.set("/notes/shared/ann/x", &1.into())).expect("its holder writes");
    own.unlock().expect("unlocks");

    let schema = json(r#"{"properties": {"shared": {"properties": {"bob": {"type": "string"}}}}}"#);
    is_denied(ann.set_schema("/notes/shared/ann", &schema, Default::default()));
    is_denied(ann.check_schema("/notes"));
    let rule = r#"{"properties": {"shared": {"properties": {"ann": {"maxProperties": 1}}}}}"#;
    s.store.set_schema("/notes", &json(rule), Default::default()).expect("it fits");
    let refused = ann.write(|tx| tx.set("/notes/shared/ann/y", &1.into())).expect_err("too many");
    assert_eq!(refused.kind(), Invalid);
    assert!(!refused.to_string().contains("/notes"), "{refused}");
    assert_eq!(ann.schemas().expect("schemas"), []);
    s.store.remove_schema("/notes").expect("it goes");

    let veto = |_: &Proposal| Answer::Veto("because of /plans".to_owned());
    is_denied(ann.before_commit("/people/ann", SubscriberOptions::new("ann's"), veto));
    let subscription =
        s.store.before_commit("/people", SubscriberOptions::new("vetoes"), veto).expect("it asks");
    let refused = ann.write(|tx| tx.set("/people/ann/name", &1.into())).expect_err("a veto");
    assert_eq!(refused.kind(), Denied);
    assert!(!refused.to_string().contains("plans"), "{refused}");
    drop(subscription);
}

/// What is hidden may be why a schema refuses. That it refuses is all that is told, in the same words whatever the reason.
fn unique_values(s: &Subject) {
    if !filled(s) {
        return;
    }
    let deny = r#"[{"deny": "read", "to": "ann", "path": "/people/bob"},"#;
    set_rules(&s.store, &RULES.replacen('[', deny, 1));
    put(s, "/people/bob/badge", "4711");
    put(s, "/people/ann/badge", "1");
    let schema = r#"{
        "x-spinney-unique": [["/badge"]],
        "additionalProperties": {
            "properties": { "badge": {"type": "integer"}, "boss": {"x-spinney-reference": {"key": "/*"}} }
        }
    }"#;
    s.store.set_schema("/people", &json(schema), Default::default()).expect("it fits");
    let ann = ann(s);
    assert_eq!(ann.read().unwrap().kind("/people/bob").expect("reads"), None);
    let refusal = |path: &str, value: &Value| {
        let before = s.revision();
        let refused = ann.write(|tx| tx.set(path, value)).expect_err("it is refused");
        assert_eq!((refused.kind(), s.revision()), (Invalid, before), "{refused}");
        refused.to_string()
    };
    let plain = refusal("/people/ann/badge", &"text".into());
    for part in ["badge", "bob", "4711", "integer", "unique"] {
        assert!(!plain.contains(part), "{plain}");
    }
    assert_eq!(refusal("/people/ann/badge", &4711.into()), plain, "it is taken");
    assert_eq!(refusal("/people/ann/boss", &"nobody".into()), plain, "there is none");
    ann.write(|tx| tx.set("/people/ann/badge", &2.into())).expect("it is free");
    let told = s.store.write(|tx| tx.set("/people/ann/badge", &4711.into())).expect_err("taken");
    assert!(told.to_string().contains("another `/badge` than its siblings"), "{told}");
}

/// What ann sees of `/people` over her own notes.
const IN_PART: &str = r#"{"ann":{"name":"Ann","tags":["a","b"]},"bob":{"name":"Bob","tags":[]}}"#;

fn layers(s: &Subject) {
    if !filled(s) {
        return;
    }
    let ann = ann(s);
    let layer = |name: &str, path: &str| Layer::new(name, &ann, path).expect("a layer");
    let stack = |layers| Stack::new(layers).expect("a stack");
    // What a layer deletes or replaces on the way does not show through, as it does to nobody.
    put(s, "/lower", r#"{"a": {"n": 1, "x": 2}, "b": {"n": 1}, "c": {"n": 1}, "d": {"n": 1}}"#);
    put(s, "/upper", r#"{"d": "a scalar on the way is not there"}"#);
    set_rules(&s.store, RULES_OF_LAYERS);
    let both = |store: &Store| {
        let layer = |name: &str| Layer::new(name, store, &format!("/{name}")).expect("a layer");
        stack(vec![layer("upper"), layer("lower")])
    };
    both(&s.store)
        .write("upper", |edit| {
            edit.remove("/a")?;
            edit.set("/b", &json(r#"{"m": 3}"#))
        })
        .expect("it is written");
    let state = both(&ann).read().expect("a state");
    assert_eq!(text_of(&state, ""), r#"{"b":{},"c":{"n":1},"d":{"n":1}}"#);
    assert_eq!(state.get("/a/n").expect("reads"), None);
    assert_eq!(state.kind("/a").expect("reads"), None);
    assert_eq!(state.count("").expect("counts"), Some(3));
    assert_eq!(state.list("", None, None).expect("lists").map(|all| all.len()), Some(3));
    set_rules(&s.store, RULES);
    let hidden = stack(vec![layer("own", "/notes/shared/ann"), layer("plans", "/plans")]);
    assert_eq!(text_of(&hidden.read().expect("a state"), ""), "{}");
    let partly = stack(vec![layer("people", "/people"), layer("own", "/notes/shared/ann")]);
    assert_eq!(text_of(&partly.read().expect("a state"), ""), IN_PART);
    is_denied(hidden.write("own", |edit| edit.set("/x", &1.into())));
    let own = stack(vec![layer("own", "/notes/shared/ann")]);
    own.write("own", |edit| edit.set("/x", &1.into())).expect("it may be written");
    assert_eq!(text_of(&own.read().expect("a state"), ""), r#"{"x":1}"#);
    // Feeds and logs of layers tell what is seen of them, and subscribers are for who sees everything.
    let since = s.revision();
    s.store.write(|tx| tx.set("/plans/x", &"hidden".into())).expect("it is set");
    own.write("own", |edit| edit.set("/x", &2.into())).expect("it may be written");
    s.store.write(|tx| tx.set("/plans/y", &"hidden".into())).expect("it is set");
    for stack in [&hidden, &own] {
        let mut feed = stack.changes("", since).expect("a feed");
        let mut told = Vec::new();
        while let Some(Event::Change(change)) = feed.next(Duration::ZERO).expect("an event") {
            told.extend(change.diff.ops.iter().map(|op| (*op.pointer()).to_owned()));
            assert_eq!(change.revision, since + 2);
        }
        assert_eq!(told, ["/x"]);
        let mut logged = Vec::new();
        let all = &mut |change: Change| {
            logged.push(change.revision);
            Ok(true)
        };
        stack.log("", all).expect("a log");
        assert_eq!(logged[..2], [since + 2, since]);
        let asked = |_: &Proposal| Answer::Pass;
        is_denied(stack.before_commit("", SubscriberOptions::new("s"), asked));
    }
    is_denied(partly.changes("", since));
    is_denied(partly.log("", &mut |_| Ok(true)));
    let specs =
        ["own=/notes/shared/ann", "plans=/plans"].map(|spec| spec.parse().expect("a layer"));
    is_denied(ann.set_stack("mine", &specs));
    s.store.set_stack("theirs", &specs).expect("it is kept");
    assert_eq!(ann.stacks().expect("stacks"), []);
    assert_eq!(ann.stack("theirs").map(drop).map_err(|error| error.kind()), Err(NotFound));
    let far = json(r#"[{"name": "far", "path": "", "store": "redis://ada:s3cret@h/1"}]"#);
    s.store.write(|tx| tx.set("/.stacks/far", &far)).expect("it is kept");
    assert!(format!("{:?}", s.store.stacks().expect("stacks")).contains("s3cret"));
    let told = format!("{:?}", ann.stacks().expect("stacks"));
    assert!(told.contains("redis://ada:***@h/1"), "{told}");
    s.store.remove_stack("far").expect("it goes");
    // Schemas of stacks are told to who sees everything.
    s.store.set_stack("mine", &specs[..1]).expect("it is kept");
    let schema = json(r#"{"properties": {"x": {"type": "integer"}}}"#);
    let judged = s.store.stack("mine").expect("a stack");
    judged.set_schema("", &schema, Default::default()).expect("it fits");
    let refused =
        own.write("own", |edit| edit.set("/x", &"text".into())).expect_err("it is judged");
    assert_eq!(refused.kind(), Invalid);
    assert!(refused.to_string().contains("ask who administers"), "{refused}");
    assert!(!refused.to_string().contains("integer"), "{refused}");
    let mine = ann.stack("mine").expect("a stack");
    is_denied(mine.check_schema(""));
    is_denied(mine.explain_schema(""));
    is_denied(mine.remove_schema(""));
    is_denied(mine.set_schema("", &schema, Default::default()));
    assert!(ann.schemas().expect("schemas").iter().all(|schema| schema.stack.is_none()));
}

const RULES_OF_LAYERS: &str = r#"[
    {"allow": "admin", "to": "root", "path": ""},
    {"allow": "read", "to": "ann", "path": "/lower/*/n"},
    {"allow": "read", "to": "ann", "path": "/upper/*/n"}
]"#;

const RULES_OF_DATASTORES: &str = r#"[
    {"allow": "admin", "to": "root", "path": ""},
    {"deny": "read", "to": "*", "path": "/*/people/*/salary"},
    {"allow": "read", "to": "ann", "path": "/running/people"},
    {"allow": "read", "to": "ann", "path": "/candidate/people"},
    {"allow": "read", "to": "ann", "path": "/operational/people"}
]"#;

/// Fills the datastores with two layers of changes and one of pushed state, of which all numbers are hidden.
fn fill_datastores(all: &Datastores, pushed: &Pushed, hidden: i64) -> Result<()> {
    all.discard()?;
    let people = json(
        r#"{"ann": {"name": "Ann"}, "bob": {"name": "Bob"}, "cy": {"name": "Cy", "tags": ["x"]}}"#,
    );
    all.edit(Datastore::Running, |edit| {
        edit.set("", &json("{}"))?;
        edit.set("/people", &people)?;
        edit.set("/people/ann/salary", &hidden.into())?;
        edit.set("/plans", &json(&format!("{{\"n\": {hidden}}}")))
    })?;
    all.edit(Datastore::Candidate, |edit| {
        edit.set("/people/ann/salary", &(hidden + 1).into())?;
        edit.set("/people/cy", &json(&format!(r#"{{"salary": {hidden}, "name": "Cyd"}}"#)))?;
        edit.set("/plans/m", &hidden.into())?;
        edit.remove("/people/bob").map(drop)
    })?;
    pushed.edit(|edit| {
        edit.set("/people/ann/room", &"7".into())?;
        edit.set("/people/ann/salary", &(hidden + 2).into())?;
        edit.set("/plans/p", &hidden.into())?;
        edit.remove("/people/bob/name").map(drop)
    })?;
    Ok(())
}

/// Each datastore is read as its tree is, and what is hidden in a layer is hidden in what the layers make.
fn datastores(s: &Subject) {
    if !filled(s) {
        return;
    }
    let all = s.store.datastores().expect("datastores");
    set_rules(&s.store, RULES_OF_DATASTORES);
    let ann = ann(s).datastores().expect("datastores");
    let pushed = all.push("sensor", None).expect("it can be pushed");
    let candidate = r#"{"people":{"ann":{"name":"Ann"},"cy":{"name":"Cyd"}}}"#;
    let running =
        r#"{"people":{"ann":{"name":"Ann"},"bob":{"name":"Bob"},"cy":{"name":"Cy","tags":["x"]}}}"#;
    let operational =
        r#"{"people":{"ann":{"name":"Ann","room":"7"},"bob":{},"cy":{"name":"Cy","tags":["x"]}}}"#;
    let mut before = None;
    for hidden in [10, 20] {
        fill_datastores(&all, &pushed, hidden).expect("they are filled");
        let read = |datastore| ann.read(datastore).expect("a state");
        let mut seen = Vec::new();
        for (datastore, shown) in [
            (Datastore::Running, running),
            (Datastore::Candidate, candidate),
            (Datastore::Operational, operational),
        ] {
            let state = read(datastore);
            assert_eq!(text_of(&state, ""), shown, "{datastore}");
            assert_eq!(state.get("").expect("reads"), Some(json(shown)), "{datastore}");
            assert_eq!(state.count("").expect("counts"), Some(1), "{datastore}");
            let members = json(shown);
            let Some(Value::Map(ann)) = members.pointer("/people/ann") else { panic!("a map") };
            let count = state.count("/people/ann").expect("counts");
            assert_eq!(count, Some(ann.len() as u64), "{datastore}");
            for path in ["/people/ann/salary", "/people/cy/salary", "/plans", "/plans/n", "/none"] {
                assert_eq!(state.get(path).expect("reads"), None, "{datastore} {path}");
                assert_eq!(state.kind(path).expect("reads"), None, "{datastore} {path}");
                assert_eq!(state.count(path).expect("counts"), None, "{datastore} {path}");
                assert_eq!(state.sources(path).expect("reads"), None, "{datastore} {path}");
            }
            let mut sources = Vec::new();
            let told = state.each_source("", &mut |found, _| {
                sources.push(format!("{} {}", found.layer, found.path));
                Ok(())
            });
            assert!(told.expect("reads"), "{datastore}");
            let query = Query::parse("$..*").expect("a query");
            let matches = state.query("", &query, QueryLimits::default()).expect("it runs");
            let value = |node: Result<spinney::query::Match<_>>| node.and_then(|node| node.value());
            let values: Vec<_> = matches.map(|node| value(node).expect("a value")).collect();
            seen.push((state.hash("").expect("hashes"), sources, values));
        }
        assert_eq!(read(Datastore::Startup).get("").expect("reads"), None);
        // Whatever is hidden is, it looks the same.
        assert_eq!(*before.get_or_insert_with(|| seen.clone()), seen);
    }
    assert_eq!(before.expect("it was seen")[2].1[1], "sensor /people/ann/room");
    // What is about all of it, and changes, are for who sees all, and feeds of a part are those of the store.
    is_denied(ann.edit(Datastore::Candidate, |edit| edit.set("/people/ann/name", &"A".into())));
    is_denied(ann.commit(&CandidateCommit::default()));
    is_denied(ann.candidate());
    is_denied(ann.conflicts());
    is_denied(ann.validate());
    is_denied(ann.unconfirmed());
    is_denied(ann.confirm(""));
    is_denied(ann.discard());
    is_denied(ann.copy(Datastore::Running, Datastore::Startup));
    is_denied(ann.push("ann", None));
    is_denied(ann.changes(Datastore::Running, "", 0));
    is_denied(ann.changes(Datastore::Operational, "", 0));
}

const RULES_WITHOUT_CANDIDATE: &str = r#"[
    {"allow": "admin", "to": "root", "path": ""},
    {"deny": "read", "to": "bob", "path": "/operational/secret"},
    {"allow": "read", "to": "bob", "path": "/operational"},
    {"allow": "read", "to": "*", "path": "/running"}
]"#;

/// Who may see nothing of the candidate, or of what is pushed, is not told that it is there; and what is pushed is not
/// found in another place.
fn unseen_datastores(s: &Subject) {
    if !filled(s) {
        return;
    }
    let all = s.store.datastores().expect("datastores");
    set_rules(&s.store, RULES_WITHOUT_CANDIDATE);
    all.edit(Datastore::Running, |edit| edit.set("", &json(r#"{"n": 1}"#))).expect("it is set");
    all.edit(Datastore::Candidate, |edit| edit.set("/m", &2.into())).expect("it is begun");
    all.edit(Datastore::Running, |edit| edit.set("/n", &3.into())).expect("it is set");
    let pushed = all.push("sensor", None).expect("it can be pushed");
    pushed
        .edit(|edit| {
            edit.set("/secret", &json(r#"{"pw": "x"}"#))?;
            edit.set("/pw", &1.into())
        })
        .expect("it is pushed");

    let ann = ann(s).datastores().expect("datastores");
    for datastore in [Datastore::Running, Datastore::Candidate, Datastore::Operational] {
        let state = ann.read(datastore).expect("a state");
        assert_eq!(text_of(&state, ""), r#"{"n":3}"#, "{datastore}");
    }
    for datastore in [Datastore::Candidate, Datastore::Operational] {
        let stack = ann.stack(datastore).expect("a stack");
        let names: Vec<_> = stack.layers().iter().map(Layer::name).collect();
        assert!(!names.contains(&"sensor"), "{names:?}");
        let missing = stack.write("none", |_| Ok(())).map(drop).expect_err("there is none");
        assert!(!missing.to_string().contains("sensor"), "{missing}");
    }
    // After its base is forgotten, too.
    s.store.forget_before(u64::MAX).expect("forgets");
    let state = ann.read(Datastore::Candidate).expect("a state");
    assert_eq!(text_of(&state, ""), r#"{"n":3}"#);

    let bob = s.store.as_principal(Principal::new("bob"));
    let operational = bob.datastores().and_then(|all| all.read(Datastore::Operational));
    let operational = operational.expect("a state");
    assert_eq!(text_of(&operational, ""), r#"{"n":3,"pw":1}"#);
    assert_eq!(operational.sources("/pw").expect("reads"), Some(vec!["sensor"]));
    let place = format!("/.pushed/{}", pushed.order());
    for (place, path) in [
        ("/.pushed".to_owned(), format!("/{}/data/secret/pw", pushed.order())),
        ("/.pushed".to_owned(), format!("/{}/owner", pushed.order())),
        (place.clone(), "/data/secret/pw".to_owned()),
        (place.clone(), "/name".to_owned()),
        (format!("{place}/data/secret"), "/pw".to_owned()),
        (format!("{place}/data/secret/pw"), String::new()),
        (format!("{place}/owner"), "/process".to_owned()),
    ] {
        let layer = Layer::new("x", &bob, &place).expect("a layer");
        let state = Stack::new(vec![layer]).and_then(|stack| stack.read()).expect("a state");
        assert_eq!(state.get(&path).expect("reads"), None, "{place} {path}");
        assert_eq!(state.kind("").expect("reads"), None, "{place}");
    }
}

fn whole(s: &Subject) {
    if !filled(s) {
        return;
    }
    let ann = ann(s);
    is_denied(ann.forget_before(1));
    is_denied(ann.reclaim());
    is_denied(ann.compact());
    is_denied(ann.backup("nowhere".as_ref()));
    is_denied(ann.read().unwrap().check());
    let target = spinney::open("memory:").expect("a store");
    is_denied(target.copy_from(&ann.read().unwrap(), &mut |_| ()));
    assert_eq!(ann.stats().expect("facts"), []);
    let root = s.store.as_principal(Principal::new("root"));
    assert!(root.read().unwrap().check().expect("checks").is_sound());
    assert_eq!(text_of(&root.read().unwrap(), ""), s.text(""));
    root.reclaim().expect("it reclaims");
    root.revert(s.revision() - 1).expect("it reverts");
}

fn administration(s: &Subject) {
    if !filled(s) {
        return;
    }
    let rules = |text: &str| AccessRules::of_value(&json(text)).expect("rules");
    for nobody in [
        r#"[{"allow": "read", "to": "*", "path": ""}]"#,
        r#"[{"deny": "admin", "to": "*", "path": ""}, {"allow": "admin", "to": "root", "path": ""}]"#,
        r#"[{"allow": "admin", "to": "root", "path": "/people"}]"#,
    ] {
        let refused = s.store.set_access_rules(&rules(nobody), false).expect_err(nobody);
        assert_eq!(refused.kind(), InvalidInput, "{refused}");
        assert!(refused.to_string().contains("nobody"), "{refused}");
    }
    let ann = ann(s);
    is_denied(ann.access_rules());
    is_denied(ann.set_access_rules(&rules("[]"), true));
    is_denied(ann.test_access(&Principal::new("ann"), "", Right::Read));
    let root = s.store.as_principal(Principal::new("root"));
    let decided = root.test_access(&Principal::new("ann"), "/people/ann", Right::Write);
    assert_eq!(decided.expect("an answer").rule.map(|(number, _)| number), Some(3));
    for group in [
        r#"[{"allow": "admin", "to": "@wheel", "path": ""}]"#,
        r#"[{"allow": "admin", "to": "*", "path": ""}]"#,
    ] {
        s.store.set_access_rules(&rules(group), false).expect("somebody is left");
    }
    s.store
        .set_access_rules(&rules(r#"[{"deny": "read", "to": "*", "path": ""}]"#), true)
        .expect("forced");
    assert_eq!(root.read().unwrap().kind("").expect("reads"), None);
    s.store.set_access_rules(&rules("[]"), false).expect("everything is open again");
    assert_eq!(root.read().unwrap().kind("").expect("reads"), Some(NodeKind::Map));
    ann.write(|tx| tx.set("/plans", &1.into())).expect("everyone may");
    for bad in [r#"[1]"#, r#"[{"allow": "read", "to": "ann"}]"#, r#"{"allow": "read"}"#] {
        s.refused(InvalidInput, "access", |tx| tx.set("/.access/rules", &json(bad)));
    }
}

fn reserved(s: &Subject) {
    if !filled(s) {
        return;
    }
    let rules = s.store.access_rules().expect("rules");
    let revision = s.revision();
    s.store.write(|tx| tx.set("", &json(r#"{"people": {}}"#))).expect("imports");
    assert_eq!(s.store.access_rules().expect("rules"), rules);
    s.store.restore(revision - 2).expect("it goes back");
    assert_eq!(s.store.access_rules().expect("rules"), rules);
    s.store
        .write(|tx| tx.set("/.access/rules", &Value::from(Vec::<Value>::new())))
        .expect("it is open");
}

fn nowhere(s: &Subject) {
    if s.store.capabilities().multi_tree_commit {
        return;
    }
    let rules = AccessRules::of_value(&json(RULES)).expect("rules");
    let refused: Error = s.store.set_access_rules(&rules, false).expect_err("it cannot be kept");
    assert_eq!(refused.kind(), Unsupported);
    ann(s).write(|tx| tx.set("/tree", &1.into())).expect("everyone may");
}
