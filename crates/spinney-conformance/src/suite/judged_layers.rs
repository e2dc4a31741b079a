//! Schemas of trees that layers are read as: whichever layer a commit changes, what they make together is judged.

use spinney::ErrorKind::{Invalid, InvalidInput, NotFound, Unsupported};
use spinney::datastores::Datastore;
use spinney::layers::{Layer, LayerSpec, Stack};
use spinney::schemas::SchemaOptions;
use spinney::{ErrorKind, Result, Value};

use super::{Case, skipped};
use crate::servers::refused;
use crate::subject::{Subject, json, text_of};

pub(super) const CASES: &[Case] = &[
    ("a commit to a layer is judged by what it makes of the whole", whole),
    ("schemas of stacks are attached, told and taken away", attached),
    ("what the schemas of stacks refuse changes nothing", unchanged),
    ("state that is pushed is judged, and its end is not", pushed),
    ("layers are judged by what changes as by all", random),
];

const NAMES: [&str; 3] = ["user", "system", "default"];

fn keep(s: &Subject, names: &[&str]) -> Result<()> {
    let spec = |name: &&str| format!("{name}=/{name}").parse::<LayerSpec>();
    let specs: Vec<_> = names.iter().map(spec).collect::<Result<_>>()?;
    s.store.set_stack("settings", &specs).map(drop)
}

/// The stack `settings`, which is judged.
fn stack(s: &Subject, path: &str, schema: &str) -> Option<Stack> {
    keep(s, &NAMES).expect("it can be kept");
    let stack = s.store.stack("settings").expect("a stack");
    let set = stack.set_schema(path, &json(schema), SchemaOptions::default());
    if !s.store.capabilities().multi_tree_commit {
        refused(Unsupported, "tree", set);
        skipped("schemas of layers", "trees do not change together");
        return None;
    }
    set.expect("a schema");
    Some(stack)
}

fn set(stack: &Stack, layer: &str, path: &str, text: &str) -> Result<()> {
    stack.write(layer, |edit| edit.set(path, &json(text))).map(drop)
}

fn remove(stack: &Stack, layer: &str, path: &str) -> Result<()> {
    stack.write(layer, |edit| edit.remove(path)).map(drop)
}

fn whole(s: &Subject) {
    let schema = r#"{
        "properties": {"tab": {"type": "integer"}, "font": {"type": "string"}},
        "required": ["tab"],
        "maxProperties": 3
    }"#;
    let Some(stack) = stack(s, "/editor", schema) else { return };
    set(&stack, "default", "/editor", r#"{"tab": 8}"#).expect("it fits");
    let text = "the schema of `/editor` of the stack `settings`, whose layer `user` is changed, does not allow it: \
                `/tab`: expected an integer";
    refused(Invalid, text, set(&stack, "user", "/editor/tab", "\"x\""));
    set(&stack, "user", "/editor/font", "\"serif\"").expect("it fits");
    set(&stack, "user", "/editor/tab", "4").expect("it fits");
    // What is hidden is of no account until it is seen.
    set(&stack, "system", "/editor/tab", "\"hidden\"").expect("it does not show through");
    let reset = stack.write("user", |edit| edit.reset("/editor/tab"));
    refused(Invalid, "found the string `hidden`", reset);
    refused(Invalid, "the member `tab`", remove(&stack, "user", "/editor/tab"));
    // Neither layer has too many.
    set(&stack, "default", "/editor/c", "3").expect("it fits");
    refused(Invalid, "at most 3 members", set(&stack, "user", "/editor/d", "4"));
    // Who writes past the stack is judged, too.
    refused(
        Invalid,
        "whose layer `system`",
        s.store.write(|tx| tx.set("/system/editor/e", &5.into())),
    );
    refused(Invalid, "of the stack", s.store.write(|tx| tx.remove("/user")));
    // One commit may mend in one layer what it breaks in another.
    s.store
        .write(|tx| {
            stack.edit("user", tx)?.reset("/editor/tab")?;
            stack.edit("system", tx)?.set("/editor/tab", &6.into())
        })
        .expect("it fits");
    // Without the layer, something is missing.
    set(&stack, "user", "/editor/tab", "7").expect("it fits");
    remove(&stack, "default", "/editor/tab").expect("it does not show through");
    s.store.write(|tx| tx.remove("/system").map(drop)).expect("it fits");
    refused(Invalid, "the stack `settings` does not allow", keep(s, &["system", "default"]));
    keep(s, &["user", "default"]).expect("it fits");
    assert!(stack.check_schema("/editor").expect("it has one").is_valid());
}

fn attached(s: &Subject) {
    let Some(stack) = stack(s, "", r#"{"maxProperties": 2}"#) else { return };
    let schemas = s.store.schemas().expect("schemas");
    let shown: Vec<_> = schemas
        .iter()
        .map(|schema| (&*schema.path, schema.stack.as_ref().map(ToString::to_string)))
        .collect();
    assert_eq!(shown, [("", Some("the stack `settings`".to_owned()))]);
    assert!(!stack.explain_schema("").expect("it has one").is_empty());
    refused(NotFound, "`/x` of the stack `settings` has no schema", stack.check_schema("/x"));
    refused(NotFound, "has no schema", s.store.check_schema("/user"));
    // It judges what is there when it is attached, in place of the one before.
    set(&stack, "user", "", r#"{"a": 1, "b": 2}"#).expect("it fits");
    let stricter = json(r#"{"properties": {"a": {"type": "string"}}}"#);
    let strict = || stack.set_schema("", &stricter, SchemaOptions::default());
    refused(Invalid, "`/a`: expected a string", strict());
    set(&stack, "user", "/a", "\"x\"").expect("it fits");
    strict().expect("it fits");
    set(&stack, "user", "/c", "3").expect("the first one is gone");
    refused(Invalid, "`/a`", set(&stack, "user", "/a", "1"));
    refused(Invalid, "has a schema at the root", s.store.remove_stack("settings"));
    stack.remove_schema("").expect("it goes");
    refused(NotFound, "has no schema", stack.remove_schema(""));
    set(&stack, "user", "/a", "1").expect("nothing is judged");
    s.store.remove_stack("settings").expect("it can be removed");
    // A layer that is alone is a tree; several that a program has put together are known to nobody else.
    let layer = |name: &str| Layer::new(name, &s.store, &format!("/{name}")).expect("a layer");
    let alone = Stack::new(vec![layer("system")]).expect("a stack");
    alone.set_schema("/n", &json(r#"{"type": "integer"}"#), SchemaOptions::default()).expect("one");
    refused(
        Invalid,
        "the schema of `/system/n`",
        s.store.write(|tx| tx.set("/system/n", &"x".into())),
    );
    let several = Stack::new(vec![layer("user"), layer("system")]).expect("a stack");
    refused(Unsupported, "stack set", several.check_schema(""));
    let past = Stack::new(vec![layer("user").at(s.revision())]).expect("a stack");
    refused(Unsupported, "of the past", past.check_schema(""));
}

fn unchanged(s: &Subject) {
    let unique = r#"{"additionalProperties": {"required": ["address"]}, "x-spinney-unique": [["/address"]]}"#;
    let Some(stack) = stack(s, "/net", unique) else { return };
    set(&stack, "default", "/net", r#"{"a": {"address": 1}, "b": {"address": 2}}"#)
        .expect("it fits");
    set(&stack, "user", "/net/c", r#"{"address": 3}"#).expect("it fits");
    let state = || stack.read().and_then(|state| state.get("")).expect("a state");
    let (before, revision) = (state(), s.revision());
    refused(Invalid, "`/c`", set(&stack, "user", "/net/c/address", "1"));
    refused(Invalid, "`/b`", set(&stack, "system", "/net/b/address", "3"));
    refused(Invalid, "the member `address`", remove(&stack, "user", "/net/a/address"));
    refused(Invalid, "address", s.store.write(|tx| tx.set("/system/net/d", &json("{}"))));
    assert_eq!((state(), s.revision()), (before, revision));
    // What a layer hides does not count, and counts again when it shows through.
    remove(&stack, "user", "/net/a").expect("it fits");
    set(&stack, "system", "/net/d", r#"{"address": 1}"#).expect("nobody has it now");
    let reset = stack.write("user", |edit| edit.reset("/net/a"));
    refused(Invalid, "address", reset);
    remove(&stack, "system", "/net/d").expect("it fits");
    stack.write("user", |edit| edit.reset("/net/a")).expect("it fits");
    assert!(stack.check_schema("/net").expect("it has one").is_valid());
}

fn pushed(s: &Subject) {
    if !s.store.capabilities().multi_tree_commit {
        return skipped("schemas of datastores", "trees do not change together");
    }
    let all = s.store.datastores().expect("datastores");
    let operational = || all.followed(Datastore::Operational).expect("a stack");
    let schema =
        r#"{"properties": {"speed": {"type": "integer"}}, "dependentRequired": {"up": ["speed"]}}"#;
    let schema = json(schema);
    operational().set_schema("/eth0", &schema, SchemaOptions::default()).expect("it fits");
    all.edit(Datastore::Running, |edit| edit.set("/eth0/up", &true.into()).map(drop))
        .map(drop)
        .expect_err("it needs a speed");
    let driver = all.push("driver", None).expect("it can be pushed");
    let push = |text: &str| driver.edit(|edit| edit.set("/eth0/speed", &json(text))).map(drop);
    refused(
        Invalid,
        "of the datastore `operational`, whose layer `driver` is changed,",
        push("\"fast\""),
    );
    push("1000").expect("it fits");
    let up = || all.edit(Datastore::Running, |edit| edit.set("/eth0/up", &true.into())).map(drop);
    up().expect("it has a speed");
    let taken = driver.edit(|edit| edit.remove("/eth0/speed")).map(drop);
    refused(Invalid, "`speed`", taken);
    // The end of who pushes cannot be refused. Others are judged by what they change.
    driver.end().expect("it ends");
    let state = all.read(Datastore::Operational).expect("a state");
    assert_eq!(text_of(&state, ""), r#"{"eth0":{"up":true}}"#);
    let report = operational().check_schema("/eth0").expect("it has one");
    assert!(report.to_string().contains("`speed`"), "{report}");
    all.edit(Datastore::Running, |edit| edit.set("/eth1", &json("{}"))).expect("it is apart");
    let wrong = all.edit(Datastore::Operational, |edit| edit.set("/eth0/speed", &"slow".into()));
    refused(Invalid, "whose layer `operational`", wrong);
    refused(InvalidInput, "path", operational().check_schema("eth0"));
}

/// Random edits, made in a store whose stack is judged and in one whose stack is not: an edit is refused exactly
/// when what it makes of the other one is not valid.
fn random(s: &Subject) {
    let schema = r#"{
        "properties": {
            "a": {"type": "object", "maxProperties": 3, "required": ["k"]},
            "b": {"additionalProperties": {"type": ["integer", "object"]}, "x-spinney-unique": [["/id"]]},
            "c": {"items": {"x-spinney-reference": {"key": "/b/*"}}},
            "d": {"anyOf": [{"type": "integer"}, {"required": ["k"]}, {"minProperties": 2}]}
        },
        "propertyNames": {"enum": ["a", "b", "c", "d"]}
    }"#;
    let Some(stack) = stack(s, "", schema) else { return };
    let free = spinney::open("memory:").expect("a store");
    let layer = |name: &&str| Layer::new(*name, &free, &format!("/{name}")).expect("a layer");
    let free_stack = Stack::new(NAMES.iter().map(layer).collect()).expect("a stack");
    let judge = spinney::open("memory:").expect("a store");
    let options = SchemaOptions::default();
    judge.set_schema("/all", &json(schema), options).expect("a schema");
    let values = [
        "1",
        "\"x\"",
        "{}",
        r#"{"k": 1}"#,
        r#"{"id": 1}"#,
        r#"{"id": 2}"#,
        r#"["k", "l"]"#,
        r#"{"k": {"id": 1}}"#,
        r#"{"k": 1, "l": 2, "m": 3}"#,
        "[]",
        r#"{"l": {"id": 2}, "m": 4}"#,
    ];
    let mut random = fastrand::Rng::with_seed(0x1a7e);
    let (mut made, mut refusals) = (0, 0);
    for round in 0..800 {
        let path: String = match random.u8(..12) {
            0 => String::new(),
            more => {
                ["/a", "/b", "/c", "/d"][random.usize(..4)].to_owned()
                    + ["", "/k", "/l", "/m"][usize::from(more) % 4]
            }
        };
        let (name, value) = (NAMES[random.usize(..3)], json(values[random.usize(..values.len())]));
        let operation = random.u8(..12);
        let edit = |stack: &Stack| match operation {
            0..6 => stack.write(name, |edit| edit.set(&path, &value)).map(drop),
            6..9 => stack.write(name, |edit| edit.remove(&path)).map(drop),
            9 => stack.write(name, |edit| edit.reset(&path)).map(drop),
            10 => stack.write(name, |edit| edit.lock(&path)).map(drop),
            _ => stack.write(name, |edit| edit.unlock(&path)).map(drop),
        };
        let read = |stack: &Stack| stack.read().and_then(|state| state.get("")).expect("a state");
        let before = free.read().and_then(|state| state.revision()).expect("a revision");
        let (freely, judged) = (edit(&free_stack), edit(&stack));
        if let Err(error) = freely {
            assert_eq!(
                judged.expect_err("it cannot be made").kind(),
                error.kind(),
                "round {round}"
            );
            continue;
        }
        let all = read(&free_stack);
        let is_valid = judge.write(|tx| match &all {
            Some(all) => tx.set("/all", all),
            None => tx.remove("/all").map(drop),
        });
        match is_valid {
            Ok(_) => {
                judged.unwrap_or_else(|error| {
                    panic!("round {round}: {name} {path} {value:?}: {error}")
                });
                made += 1;
            }
            Err(error) => {
                assert_eq!(error.kind(), Invalid, "{error}");
                let kind = judged.map_err(|error| error.kind());
                assert_eq!(
                    kind,
                    Err(ErrorKind::Invalid),
                    "round {round}: {name} {path} {value:?}: {all:?}"
                );
                free.restore(before).expect("it is taken back");
                refusals += 1;
            }
        }
        let (found, expected): (Option<Value>, _) = (read(&stack), read(&free_stack));
        assert_eq!(found, expected, "round {round}: {name} {path}");
        if round % 50 == 0 {
            assert!(stack.check_schema("").expect("it has one").is_valid(), "round {round}");
        }
    }
    assert!(made > 400 && refusals > 40, "{made} were made and {refusals} refused");
}
