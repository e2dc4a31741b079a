//! Runs one hot path many times, for a profiler: `hot_paths import|parse|ratio|export|print|leaf|row|staged|
//! process|durable|pushes|long-pushes|asked|running|operational|remove|sets|typed|batch|appends [TIMES] [FILE]`. `ratio` is that of a durable import to parsing, the least of each.
//!
//! `judged|unjudged|locked` change a leaf under a schema, without one and with a lock elsewhere, `references|values` add 40 000 members under a
//! schema that has them refer to others and under one that does not; collect them with callgrind's
//! `--toggle-collect='*hot_paths::measured*'`.

use std::time::{Duration, Instant};

use spinney::datastores::Datastore;
use spinney::formats::{self, Dialect, Fidelity, JsonWriter, Layout};
use spinney::schemas::SchemaOptions;
use spinney::{
    Answer, Durability, Existing, LockOptions, Map, OpenOptions, Proposal, Store,
    SubscriberOptions, Value,
};

const ITEMS: u32 = 100_000;

fn text() -> String {
    let item = |i: u32| format!("\"{i},str{i}\":{{\"k1\":{i},\"k2\":\"str{i}\",\"l\":\"l{i}\"}}");
    let items: Vec<String> = (0..ITEMS).map(item).collect();
    format!("{{\"cont\":{{\"lst\":{{{}}}}}}}", items.join(","))
}

/// A document of items that refer to each other, all with different names.
fn net() -> String {
    let item = |i: u32| {
        let next = (i + 1) % ITEMS;
        format!("\"{i}\":{{\"name\":\"item {i}\",\"next\":\"{next}\"}}")
    };
    let items: Vec<String> = (0..ITEMS).map(item).collect();
    format!("{{\"items\":{{{}}}}}", items.join(","))
}

/// A schema of [`net`], with what it says of `links`.
fn net_schema(link: &str) -> spinney::Result<Value> {
    formats::parse(
        &r#"{
            "properties": {
                "items": {
                    "additionalProperties": {
                        "type": "object",
                        "required": ["name", "next"],
                        "properties": {
                            "name": { "type": "string", "pattern": "^[a-z]+ [0-9 ]+$", "maxLength": 64 },
                            "next": { "type": "string", "x-spinney-reference": { "key": "/items/*" } }
                        },
                        "additionalProperties": false
                    },
                    "x-spinney-unique": [["/name"]]
                },
                "links": { "additionalProperties": { "type": "string"LINK } }
            }
        }"#
        .replace("LINK", link),
    )
}

/// An item of the tree, as a type.
#[derive(serde::Serialize)]
struct Item {
    k1: u32,
    k2: String,
    l: String,
}

/// An item of the tree.
fn item(i: u32) -> Value {
    let members = [
        ("k1", Value::from(u64::from(i))),
        ("k2", Value::from(format!("str{i}"))),
        ("l", Value::from(format!("l{i}"))),
    ];
    Value::Map(members.into_iter().collect())
}

/// What a profiler is to look at.
#[inline(never)]
fn measured<T>(what: impl FnOnce() -> T) -> T {
    what()
}

/// Changes names of items.
fn change_leaves(store: &Store, times: u32) -> spinney::Result<()> {
    for i in 0..times * 1_000 {
        let path = format!("/net/items/{}/name", i * 7919 % ITEMS);
        let name = Value::from(format!("new {i}"));
        measured(|| store.write_with(Durability::None, |tx| tx.set(&path, &name)))?;
    }
    Ok(())
}

/// Adds many members in one commit, again and again; prints the least that it took.
fn add_links(store: &Store, times: u32) -> spinney::Result<()> {
    let links: Map =
        (0..40_000).map(|i| (format!("link{i}"), Value::from(i.to_string()))).collect();
    let links = Value::Map(links);
    let mut least = Duration::MAX;
    for _ in 0..times {
        let start = Instant::now();
        measured(|| store.write_with(Durability::None, |tx| tx.set("/net/links", &links)))?;
        least = least.min(start.elapsed());
        store.write(|tx| tx.remove("/net/links"))?;
        store.wait_until_reclaimed();
    }
    println!("least: {least:?}");
    Ok(())
}

fn main() -> spinney::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "export".into());
    let times: u32 = arguments.next().and_then(|times| times.parse().ok()).unwrap_or(20);
    let folder = tempfile::tempdir_in("target").expect("a folder under target");
    let url = format!("lmdb:{}", folder.path().join("store").display());
    let store = OpenOptions::new().durability(Durability::None).open(&url)?;
    let text = match arguments.next() {
        Some(file) => std::fs::read_to_string(file).expect("the file reads"),
        None => text(),
    };
    let import = |path: &str| {
        store.write(|tx| {
            tx.set_with(path, Existing::Any, |visitor| {
                formats::read(text.as_bytes(), Dialect::Json, visitor)
            })
        })
    };
    let link = match &*what {
        "judged" | "references" => Some(r#", "x-spinney-reference": { "key": "/items/*" }"#),
        "values" => Some(""),
        _ => None,
    };
    let _elsewhere = (what == "locked").then(|| store.lock("/elsewhere", LockOptions::default()));
    if link.is_some() || what == "unjudged" || what == "locked" {
        store.write(|tx| {
            tx.set_with("/net", Existing::Any, |visitor| {
                formats::read(net().as_bytes(), Dialect::Json, visitor)
            })
        })?;
        if let Some(link) = link {
            store.set_schema("/net", &net_schema(link)?, SchemaOptions::default())?;
        }
        store.checkpoint()?;
    } else {
        import("/running")?;
        store.sync()?;
    }
    let start = Instant::now();
    match &*what {
        "judged" | "unjudged" | "locked" => change_leaves(&store, times)?,
        "references" | "values" => add_links(&store, times)?,
        "import" => {
            for _ in 0..times {
                import("/running")?;
                store.wait_until_reclaimed();
            }
        }
        "parse" => {
            for _ in 0..times {
                std::hint::black_box(
                    serde_json::from_str::<serde_json::Value>(&text).expect("parses"),
                );
            }
        }
        "ratio" => {
            let [mut staged_least, mut import_least, mut parse_least] = [Duration::MAX; 3];
            for _ in 0..times {
                store.write(|tx| tx.remove("/running"))?;
                store.wait_until_reclaimed();
                store.sync()?;
                let start = Instant::now();
                import("/running")?;
                staged_least = staged_least.min(start.elapsed());
                store.sync()?;
                import_least = import_least.min(start.elapsed());
                let start = Instant::now();
                let value = serde_json::from_str::<serde_json::Value>(&text).expect("parses");
                parse_least = parse_least.min(start.elapsed());
                drop(std::hint::black_box(value));
            }
            let ratio = parse_least.as_secs_f64() / import_least.as_secs_f64();
            println!(
                "durable import {import_least:?}, until the sync {staged_least:?}, parse {parse_least:?}: {ratio:.2}x"
            );
        }
        "print" => {
            let value: serde_json::Value = serde_json::from_str(&text).expect("parses");
            for _ in 0..times {
                std::hint::black_box(serde_json::to_vec(&value).expect("prints"));
            }
        }
        "export" => {
            for _ in 0..times {
                let mut writer = JsonWriter::new(
                    Vec::with_capacity(text.len()),
                    Layout::Compact,
                    Fidelity::Refuse,
                );
                store.read()?.visit("/running", &mut writer)?;
                assert!(writer.finish()?.len() > 100);
            }
        }
        "leaf" => {
            let path = |i: u32| format!("/running/cont/lst/{i},str{i}/l");
            let paths: Vec<_> = (0..10_000).map(|i| path(i * 7919 % ITEMS)).collect();
            for path in (0..times).flat_map(|_| &paths) {
                assert!(store.read()?.get(path)?.is_some());
            }
        }
        "row" => {
            // One leaf again and again, in batches; then snapshots alone.
            let path = "/running/cont/lst/50000,str50000/l";
            let (mut leaf, mut snapshot) = (Vec::new(), Vec::new());
            for _ in 0..times * 20 {
                let begin = Instant::now();
                for _ in 0..1_000 {
                    assert!(store.read()?.get(path)?.is_some());
                }
                leaf.push(begin.elapsed() / 1_000);
                let begin = Instant::now();
                for _ in 0..1_000 {
                    std::hint::black_box(store.read()?);
                }
                snapshot.push(begin.elapsed() / 1_000);
            }
            leaf.sort_unstable();
            snapshot.sort_unstable();
            for (name, all) in [("leaf", leaf), ("snapshot", snapshot)] {
                println!("{name}: least {:?}, median {:?}", all[0], all[all.len() / 2]);
            }
        }
        "staged" | "process" | "durable" => {
            let level = match &*what {
                "staged" => Durability::None,
                "process" => Durability::Process,
                _ => Durability::Durable,
            };
            for i in 0..times * 1_000 {
                let value = Value::from(format!("x{i}"));
                let path = "/running/cont/lst/50000,str50000/l";
                measured(|| store.write_with(level, |tx| tx.set(path, &value)))?;
            }
        }
        "pushes" | "long-pushes" => {
            store.write(|tx| tx.set("/array", &Value::list()))?;
            let count = if what == "pushes" { 1 } else { 100 };
            let item: Value = vec![Value::from("string"); count].into();
            for _ in 0..times * 1_000 {
                measured(|| store.write(|tx| tx.set("/array/-", &item)))?;
            }
        }
        "asked" => {
            let all = store.datastores()?;
            let subscribe = |number: u32| {
                let options = SubscriberOptions::new(&format!("counts {number}"));
                let mut changes = 0_u64;
                all.before_commit(
                    Datastore::Operational,
                    "/cont",
                    options,
                    move |asked: &Proposal| {
                        let (before, after) = (asked.before.view(), asked.after.view());
                        let counted = asked.diff.changes(&before, &after, &mut |_, _| {
                            changes += 1;
                            Ok(())
                        });
                        counted
                            .map_or_else(|error| Answer::Veto(error.to_string()), |()| Answer::Pass)
                    },
                )
            };
            let _subscribed = (0..12).map(subscribe).collect::<spinney::Result<Vec<_>>>()?;
            for i in 0..times * 1_000 {
                let path = format!("/cont/lst/{0},str{0}/l", i * 7919 % ITEMS);
                let value = Value::from(format!("x{i}"));
                measured(|| all.edit(Datastore::Running, |edit| edit.set(&path, &value)))?;
            }
        }
        "running" | "operational" => {
            let all = store.datastores()?;
            let which = if what == "running" { Datastore::Running } else { Datastore::Operational };
            for i in 0..times * 1_000 {
                let path = format!("/cont/lst/{0},str{0}/l", i * 7919 % ITEMS);
                let value = Value::from(format!("x{i}"));
                measured(|| all.edit(which, |edit| edit.set(&path, &value)))?;
            }
        }
        "remove" => {
            let mut took = Vec::new();
            for _ in 0..times {
                import("/running")?;
                store.wait_until_reclaimed();
                store.sync()?;
                let start = Instant::now();
                store.write_with(Durability::Durable, |tx| tx.remove("/running/cont"))?;
                took.push(start.elapsed());
                store.wait_until_reclaimed();
            }
            took.sort_unstable();
            println!("remove: median {:?}, least {:?}", took[took.len() / 2], took[0]);
        }
        "sets" | "typed" => {
            for _ in 0..times {
                store.write(|tx| tx.set("/running/cont/lst", &Value::map()))?;
                store.wait_until_reclaimed();
                measured(|| {
                    store.write(|tx| {
                        for i in 0..ITEMS {
                            let path = format!("/running/cont/lst/{i},str{i}");
                            if what == "sets" {
                                tx.set(&path, &item(i))?;
                                continue;
                            }
                            let item = Item { k1: i, k2: format!("str{i}"), l: format!("l{i}") };
                            tx.set_as(&path, &item)?;
                        }
                        Ok(())
                    })
                })?;
            }
        }
        "batch" => {
            for _ in 0..times {
                store.write(|tx| tx.remove("/running/cont/lst"))?;
                store.wait_until_reclaimed();
                let items = (0..ITEMS).map(|i| (format!("{i},str{i}"), item(i))).collect();
                let items = Value::Map(items);
                store.write(|tx| tx.set("/running/cont/lst", &items))?;
            }
        }
        "appends" => {
            for _ in 0..times {
                store.write(|tx| tx.set("/running/cont/usr-lst", &Value::list()))?;
                store.wait_until_reclaimed();
                store.write(|tx| {
                    for i in 0..ITEMS {
                        let entry: Map =
                            [("k", Value::from(u64::from(i))), ("l", Value::from(format!("l{i}")))]
                                .into_iter()
                                .collect();
                        tx.set("/running/cont/usr-lst/-", &Value::Map(entry))?;
                    }
                    Ok(())
                })?;
            }
        }
        _ => eprintln!(
            "hot_paths: `{what}` is none of import, parse, ratio, export, print, leaf, row, staged, process, durable, pushes, asked, remove, sets, typed, batch, appends, judged, unjudged, references, values"
        ),
    }
    let per = start.elapsed() / times;
    println!(
        "{what}: {per:?} each (leaf: of 10 000, staged, process, durable, pushes, asked: of 1 000)"
    );
    Ok(())
}
