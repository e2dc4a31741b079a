//! References and unique fields: an index that follows random commits says what a search through the
//! whole document says, and a commit that is refused leaves it as it was.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::session::{Supply, edit, paths, stored};
use common::value;
use fastrand::Rng;
use serde_json::{Value as Json, json};
use spinney_core::backend::Backend;
use spinney_core::read::Stored;
use spinney_core::transaction::Transaction;
use spinney_core::{ErrorKind, Memory, Value};
use spinney_schema::{ChangeContent, Changes, Document, Documents, Options, Report, Schema};

type Index = BTreeMap<Vec<u8>, Vec<u8>>;

fn compile(schema: &Json) -> Schema {
    Schema::compile(&value(schema), &Documents::new(), Options::default()).expect("a schema")
}

/// Interfaces by name, routes that refer to them, neighbours that refer to addresses.
fn schema() -> Schema {
    compile(&json!({
        "properties": {
            "interfaces": {
                "additionalProperties": {
                    "properties": { "parent": { "$ref": "#/$defs/interface" } }
                },
                "x-spinney-unique": [["/address", "/port"], ["/name"]]
            },
            "routes": {
                "items": {
                    "properties": {
                        "via": { "$ref": "#/$defs/interface" },
                        "to": { "x-spinney-reference": { "value": "/interfaces/*/address" } },
                        "hops": { "x-spinney-unique": [["/name"]] }
                    }
                },
                "x-spinney-unique": [["/name"]]
            },
            "pair": {
                "prefixItems": [
                    { "$ref": "#/$defs/interface" },
                    { "x-spinney-reference": { "value": "/interfaces/*/address" } }
                ]
            }
        },
        "$defs": { "interface": { "x-spinney-reference": { "key": "/interfaces/*" } } }
    }))
}

/// Says by itself what the schema above means.
fn holds(document: &Value) -> bool {
    let at = |path: &str| document.pointer(path);
    let members = |value: Option<&Value>| -> Vec<(String, Value)> {
        match value {
            Some(Value::Map(map)) => {
                map.iter().map(|(key, value)| (key.into_owned(), value.clone())).collect()
            }
            Some(Value::List(list)) => {
                list.iter().enumerate().map(|(at, value)| (at.to_string(), value.clone())).collect()
            }
            _ => Vec::new(),
        }
    };
    let text = |value: &Value| match value {
        Value::Number(number) => Some(format!("n{}", number.as_f64())),
        Value::Map(_) | Value::List(_) => None,
        other => Some(format!("{other:?}")),
    };
    let unique = |container: Option<&Value>, fields: &[&str]| {
        let mut seen = BTreeSet::new();
        members(container).iter().all(|(_, member)| {
            let field = |field: &&str| match member {
                Value::Map(map) => map.get(field).and_then(text),
                _ => None,
            };
            let values: Option<Vec<String>> = fields.iter().map(field).collect();
            values.is_none_or(|values| seen.insert(values))
        })
    };
    // `*` is each member of a map and each element of a list.
    let interfaces = members(at("/interfaces"));
    let names: BTreeSet<String> = match at("/interfaces") {
        Some(Value::Map(_)) => interfaces.iter().map(|(name, _)| format!("{name:?}")).collect(),
        _ => BTreeSet::new(),
    };
    let addresses: BTreeSet<String> = interfaces
        .iter()
        .filter_map(|(_, interface)| interface.pointer("/address").and_then(text))
        .collect();
    let refers = |value: Option<&Value>, to_key: bool| match value {
        None | Some(Value::Map(_) | Value::List(_)) => true,
        Some(Value::String(name)) if to_key => names.contains(&format!("{name:?}")),
        Some(Value::Number(number)) if to_key => {
            names.contains(&format!("{:?}", number.to_string()))
        }
        Some(_) if to_key => false,
        Some(other) => text(other).is_some_and(|text| addresses.contains(&text)),
    };
    let is_map = |value: Option<&Value>| matches!(value, Some(Value::Map(_)));
    let interfaces_hold = !is_map(at("/interfaces"))
        || interfaces.iter().all(|(_, interface)| refers(interface.pointer("/parent"), true));
    let routes_hold = !matches!(at("/routes"), Some(Value::List(_)))
        || members(at("/routes")).iter().all(|(_, route)| {
            let field = |name: &str| match route {
                Value::Map(map) => map.get(name).cloned(),
                _ => None,
            };
            refers(field("via").as_ref(), true)
                && refers(field("to").as_ref(), false)
                && unique(field("hops").as_ref(), &["name"])
        });
    let pair = |position: usize| match at("/pair") {
        Some(Value::List(list)) => list.get(position),
        _ => None,
    };
    interfaces_hold
        && routes_hold
        && refers(pair(0), true)
        && refers(pair(1), false)
        && unique(at("/interfaces"), &["address", "port"])
        && unique(at("/interfaces"), &["name"])
        && unique(at("/routes"), &["name"])
}

struct Network;

impl Supply for Network {
    fn key(&self, rng: &mut Rng) -> String {
        const KEYS: [&str; 9] =
            ["interfaces", "routes", "pair", "a", "b", "1", "address", "name", "via"];
        KEYS[rng.usize(..KEYS.len())].to_owned()
    }

    fn value(&self, rng: &mut Rng, large: bool) -> Value {
        value(&match rng.u32(..if large { 1 } else { 8 }) {
            0 => network(rng),
            1 => interface(rng),
            2 => route(rng),
            3 => json!([scalar(rng), scalar(rng)]),
            _ => scalar(rng),
        })
    }
}

fn scalar(rng: &mut Rng) -> Json {
    let long = "b".repeat(100);
    match rng.u32(..8) {
        0 => json!(1),
        1 => json!(1.0),
        2 => json!(null),
        3 => json!(long),
        _ => json!(["a", "b", "c", "1"][rng.usize(..4)]),
    }
}

fn some(rng: &mut Rng, fields: &[&str]) -> Json {
    let mut members = serde_json::Map::new();
    for field in fields {
        if rng.u32(..3) > 0 {
            members.insert((*field).to_owned(), scalar(rng));
        }
    }
    Json::Object(members)
}

fn interface(rng: &mut Rng) -> Json {
    let fields = if rng.u32(..4) == 0 { &["address", "parent"][..] } else { &["address", "port"] };
    some(rng, fields)
}

fn route(rng: &mut Rng) -> Json {
    let mut route = some(rng, &["via", "to", "name"]);
    if rng.u32(..4) == 0 {
        route["hops"] = json!([some(rng, &["name"]), some(rng, &["name"])]);
    }
    route
}

fn network(rng: &mut Rng) -> Json {
    let names = ["a", "b", "c", "1"];
    let interfaces: serde_json::Map<String, Json> =
        names[..rng.usize(..5)].iter().map(|name| ((*name).to_owned(), interface(rng))).collect();
    let routes: Vec<Json> = (0..rng.usize(..3)).map(|_| route(rng)).collect();
    json!({ "interfaces": interfaces, "routes": routes })
}

/// Lays a change over the index; takes it in when it holds.
fn judge<'s>(
    schema: &Schema,
    index: &mut Index,
    before: Option<&Document<Stored<'s>>>,
    after: Option<&Document<Stored<'s>>>,
    changes: &Changes,
) -> Report {
    let entries = schema.entries(before, after, changes).expect("reads");
    let mut changed = Vec::new();
    let report = entries.judge(schema, |key, change| {
        assert!(key.len() <= 160);
        assert!(changed.last().is_none_or(|(last, _): &(Vec<u8>, _)| **last < *key));
        let mut content = Vec::new();
        change(index.get(key).map_or(&[], |content| content), &mut content)?;
        changed.push((key.to_vec(), content));
        Ok(())
    });
    let report = report.expect("judges");
    if report.is_valid() {
        for (key, content) in changed {
            match content.is_empty() {
                false => drop(index.insert(key, content)),
                true => assert!(index.remove(&key).is_some()),
            }
        }
    }
    report
}

#[test]
fn an_index_that_follows_commits_says_what_a_search_says() {
    let seed = std::env::var("SPINNEY_TEST_SEED")
        .ok()
        .map_or_else(|| fastrand::u64(..), |seed| seed.parse().expect("a number"));
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    let schema = schema();
    let (mut kept, mut refused) = (0, 0);
    for _ in 0..600 {
        let store = Memory::with_sizes(256, 64, 1 << 20);
        let mut index = Index::new();
        let mut document = value(&json!({
            "interfaces": { "a": { "address": "a", "port": 1 }, "b": { "address": "b" } },
            "routes": [{ "via": "a", "to": "b", "name": "a" }, { "via": "b", "to": "a" }]
        }));
        let mut transaction = Transaction::begin(&store).expect("begins");
        transaction.set("/doc", &document).expect("sets");
        transaction.commit(0).expect("commits");
        let start = store.snapshot().expect("a snapshot");
        let start = stored(&store, &*start);
        let all = judge(&schema, &mut index, None, start.as_ref(), &Changes::everything());
        assert!(all.is_valid(), "{all}");
        for _ in 0..60 {
            if paths(&document).len() < 8 {
                break;
            }
            let mut transaction = Transaction::begin(&store).expect("begins");
            let mut edited = document.clone();
            for _ in 0..rng.u32(1..4) {
                edit(&mut rng, &Network, &mut transaction, &edited);
                edited = transaction.get("/doc").expect("reads").expect("is there");
            }
            let before = store.snapshot().expect("a snapshot");
            let diff = transaction.commit(0).expect("commits").diff;
            let after = store.snapshot().expect("a snapshot");
            let [before, after] = [&before, &after].map(|snapshot| stored(&store, &**snapshot));
            let changes = Changes::of_diff(&diff, "/doc").expect("a diff");
            let report = judge(&schema, &mut index, before.as_ref(), after.as_ref(), &changes);
            assert_eq!(report.is_valid(), holds(&edited), "{document:?} -> {edited:?}: {report}");
            // The index is always what one made at once would be.
            let mut fresh = Index::new();
            if report.is_valid() {
                kept += 1;
                document = edited;
                let all = judge(&schema, &mut fresh, None, after.as_ref(), &Changes::everything());
                assert!(all.is_valid(), "{all}");
                assert_eq!(index, fresh, "{document:?}");
            } else {
                refused += 1;
                let mut undo = Transaction::begin(&store).expect("begins");
                undo.set("/doc", &document).expect("sets");
                undo.commit(0).expect("commits");
            }
        }
    }
    println!("{kept} valid and {refused} refused commits");
    assert!(kept > 1_000 && refused > 1_000, "one verdict hardly occurs");
}

#[test]
fn removing_what_is_referred_to_names_it_and_says_how_often() {
    let schema = schema();
    let store = Memory::new();
    let mut transaction = Transaction::begin(&store).expect("begins");
    let document = json!({
        "interfaces": { "eth0": { "address": "10.0.0.1" } },
        "routes": [{ "via": "eth0" }, { "via": "eth0", "to": "10.0.0.1" }]
    });
    transaction.set("/doc", &value(&document)).expect("sets");
    transaction.commit(0).expect("commits");
    let before = store.snapshot().expect("a snapshot");
    let before = stored(&store, &*before);
    let mut index = Index::new();
    let all = judge(&schema, &mut index, None, before.as_ref(), &Changes::everything());
    assert!(all.is_valid(), "{all}");

    let mut transaction = Transaction::begin(&store).expect("begins");
    transaction.remove("/doc/interfaces/eth0").expect("removes");
    let diff = transaction.commit(0).expect("commits").diff;
    let after = store.snapshot().expect("a snapshot");
    let after = stored(&store, &*after);
    let changes = Changes::of_diff(&diff, "/doc").expect("a diff");
    let report = judge(&schema, &mut index, before.as_ref(), after.as_ref(), &changes);
    let lines: Vec<String> = report.violations.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "`/interfaces/eth0`: expected the key `/interfaces/*` that 2 nodes refer to, found nothing that is the string `eth0` (schema `#/$defs/interface/x-spinney-reference`)",
            "`/interfaces/eth0/address`: expected the value `/interfaces/*/address` that a node refers to, found nothing that is the string `10.0.0.1` (schema `#/properties/routes/items/properties/to/x-spinney-reference`)",
        ]
    );
}

/// Short texts are told by their index keys, all others are not.
#[test]
fn messages_tell_values_whatever_keys_hold_of_them() {
    let keywords = json!({
        "x-spinney-unique": [["/a", "/b"]],
        "additionalProperties": {
            "properties": { "to": { "x-spinney-reference": { "key": "/*" } } }
        }
    });
    let options = Options::default();
    let schema = Schema::compile(&value(&keywords), &Documents::new(), options).expect("compiles");
    let (half, long) = ("h".repeat(40), "l".repeat(100));
    let shown = format!("the string `{}…`", "l".repeat(60));
    for (member, found) in [
        (json!({ "a": "x", "b": "" }), "the string `x` and the string ``".to_owned()),
        (json!({ "a": "x", "b": 1.5 }), "the string `x` and the number 1.5".to_owned()),
        (json!({ "a": half, "b": half }), format!("the string `{half}` and the string `{half}`")),
        (json!({ "a": null, "b": long }), format!("null and {shown}")),
        (json!({ "a": "x", "b": long }), format!("the string `x` and {shown}")),
        (json!({ "to": "none" }), "the string `none`".to_owned()),
        (json!({ "to": 5 }), "the string `5`".to_owned()),
        (json!({ "to": false }), "false".to_owned()),
        (json!({ "to": long }), shown.clone()),
    ] {
        let store = Memory::new();
        let mut transaction = Transaction::begin(&store).expect("begins");
        let document = json!({ "one": member, "two": member });
        transaction.set("/doc", &value(&document)).expect("sets");
        transaction.commit(0).expect("commits");
        let state = store.snapshot().expect("a snapshot");
        let state = stored(&store, &*state);
        let everything = Changes::everything();
        let report = judge(&schema, &mut Index::new(), None, state.as_ref(), &everything);
        let [violation] = &report.violations[..] else { panic!("{document}: {report}") };
        let told = violation.found.strip_suffix(", which another member has");
        assert_eq!(told.unwrap_or(&violation.found), found);
    }
}

#[test]
fn keywords_that_apply_only_at_times_are_refused() {
    for (schema, under) in [
        (
            json!({ "anyOf": [{ "properties": { "a": { "x-spinney-unique": [["/b"]] } } }] }),
            "anyOf",
        ),
        (json!({ "not": { "x-spinney-reference": { "key": "/a/*" } } }), "not"),
        (
            json!({ "if": true, "then": { "$ref": "#/$defs/a" }, "$defs": { "a": { "x-spinney-unique": [["/b"]] } } }),
            "if",
        ),
    ] {
        let error = Schema::compile(&value(&schema), &Documents::new(), Options::default())
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains(&format!("by `{under}`")), "{error}");
    }
    for malformed in [
        json!({ "x-spinney-reference": "/a/*" }),
        json!({ "x-spinney-reference": { "key": "a" } }),
        json!({ "x-spinney-reference": { "key": "/a", "value": "/a" } }),
        json!({ "x-spinney-unique": ["/a"] }),
        json!({ "x-spinney-unique": [[]] }),
        json!({ "x-spinney-uniqe": [["/a"]] }),
    ] {
        let schema = json!({ "properties": { "x": { "items": malformed } } });
        let error = Schema::compile(&value(&schema), &Documents::new(), Options::default())
            .expect_err("refused");
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        let place = "the schema at `#/properties/x/items`: ";
        assert!(error.to_string().starts_with(place), "{error}");
    }
    // A member may have any name.
    let named = json!({ "properties": { "x-spinney-uniqe": { "x-other": 1 } } });
    Schema::compile(&value(&named), &Documents::new(), Options::default()).expect("a schema");
}

/// Nothing recurses on the way down, nor when what was noted on it is dropped.
#[test]
fn documents_may_be_deep() {
    let schema = json!({
        "properties": { "below": { "$ref": "#" }, "other": { "x-spinney-reference": { "key": "/keys/*" } } },
        "x-spinney-unique": [["/other"]]
    });
    let schema = compile(&schema);
    let mut document = value(&json!({ "other": "gone" }));
    for _ in 0..100_000 {
        document = [("below", document)].into_iter().collect::<spinney_core::Map>().into();
    }
    let document = &document;
    let entries = schema.entries(None, Some(&document), &Changes::everything()).expect("reads");
    let change = |_: &[u8], change: ChangeContent<'_>| change(&[], &mut Vec::new());
    let report = entries.judge(&schema, change).expect("judges");
    assert_eq!(report.count(), 1, "{report}");
}
