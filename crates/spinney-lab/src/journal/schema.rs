//! What a schema costs commits: a leaf changed in documents of several sizes, on a store with a schema
//! and on one without; and many references at once, beside the same members where the schema does not
//! have them refer to anything, and where there is no schema.

use std::path::Path;
use std::time::Instant;

use spinney::history::Retention;
use spinney::schemas::SchemaOptions;
use spinney::{Durability, Existing, Key, Result, Scalar, Store, Text, Visitor, formats};
use spinney_core::Container;

use super::{Bench, Found, stores, wrong};
use crate::claims::{Claim, Unit};
use crate::statistics::median;

const SIZES: [usize; 3] = [1_000, 100_000, 1_000_000];
const ROUNDS: usize = 10;
const COMMITS: usize = 200;
const REFERENCES: usize = 40_000;
const TRIES: usize = 7;

/// What a schema may add in a large document, against what it adds in a small one.
const GROWTH_MAX: f64 = 1.5;

/// Types, required members, patterns, unique names, and a reference for each item. The keyword of the
/// links stands where [`LINK`] does.
const SCHEMA: &str = r#"{
    "type": "object",
    "properties": {
        "items": {
            "type": "object",
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
        "links": {
            "type": "object",
            "additionalProperties": { "type": "string"LINK }
        }
    }
}"#;

/// What makes a link refer to an item.
const LINK: &str = r#", "x-spinney-reference": { "key": "/items/*" }"#;

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let mut found = Found::default();
    let mut added = Vec::new();
    for size in SIZES {
        let store = |name: &str, schema: Option<&str>| {
            open(&bench.folder.join(format!("{name}-{size}")), size, schema)
        };
        let with = store("with", Some(&SCHEMA.replace("LINK", LINK)))?;
        let without = store("without", None)?;
        let parts = leaves(&with, &without, size)?;
        let more = (parts[0] - parts[1]).max(0.0);
        added.push(more);
        found.facts.push(format!(
            "{size} items: {:.1} us a commit with the schema, {:.1} us without",
            parts[0], parts[1]
        ));
        let promise = "what a schema adds to one leaf changed, process";
        let claim = Claim::value(promise, "lmdb", Some(size), more, Unit::Microseconds);
        found.claims.push(claim.at_most(25.0));
        if size == SIZES[1] {
            let unlinked = store("unlinked", Some(&SCHEMA.replace("LINK", "")))?;
            let [linked, unlinked, free] = references(&[&with, &unlinked, &without])?;
            let promise = format!("{REFERENCES} new references in a commit against plain texts");
            let parts = [linked, unlinked];
            let claim = Claim::ratio(promise, "lmdb", Some(size), parts, Unit::Microseconds);
            found.claims.push(claim.at_most(3.0));
            found.facts.push(format!(
                "{REFERENCES} new members: {linked:.0} us as references, {unlinked:.0} us as texts under the \
                 same schema, {free:.0} us without a schema ({:.1}x)",
                linked / free
            ));
        }
    }
    if let ([small, .., large], [few, .., many]) = (&*added, SIZES) {
        let promise = format!("what it adds, against the same at N = {few}");
        let parts = [*large, *small];
        let growth = Claim::ratio(promise, "lmdb", Some(many), parts, Unit::Microseconds);
        found.claims.push(growth.at_most(GROWTH_MAX));
    }
    Ok(found)
}

fn open(folder: &Path, items: usize, schema: Option<&str>) -> Result<Store> {
    let store = stores::open_keeping(folder, Retention::DEFAULT)?;
    store.write(|transaction| {
        transaction.set_with("/net", Existing::Any, |visitor| {
            visitor.open(Container::Map)?;
            visitor.key(Key::new("items"))?;
            visitor.open(Container::Map)?;
            for item in 0..items {
                visitor.key(Key::new(&item.to_string()))?;
                visitor.open(Container::Map)?;
                text(visitor, "name", &format!("item {item}"))?;
                text(visitor, "next", &((item + 1) % items).to_string())?;
                visitor.close()?;
            }
            visitor.close()?;
            visitor.close()
        })
    })?;
    if let Some(schema) = schema {
        store.set_schema("/net", &formats::parse(schema)?, SchemaOptions::default())?;
    }
    store.checkpoint()?;
    Ok(store)
}

fn text(visitor: &mut dyn Visitor, key: &str, text: &str) -> Result<()> {
    visitor.key(Key::new(key))?;
    visitor.scalar(Scalar::String(Text::new(text)))
}

/// Changes names, in turns; returns the medians with and without the schema.
fn leaves(with: &Store, without: &Store, items: usize) -> Result<[f64; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..ROUNDS {
        let changes: Vec<(String, String)> = (0..COMMITS)
            .map(|commit| {
                let item = random.usize(..items);
                (format!("/net/items/{item}/name"), format!("new {round} {commit}"))
            })
            .collect();
        for (store, times) in [with, without].into_iter().zip(&mut times) {
            for (path, name) in &changes {
                let begin = Instant::now();
                store.write_with(Durability::Process, |transaction| {
                    transaction.set(path, &(&**name).into())
                })?;
                times.push(begin.elapsed().as_secs_f64() * 1e6);
            }
        }
    }
    let refused = with.write(|transaction| transaction.set("/net/items/0/name", &5.into()));
    if refused.is_ok() || !with.check_schema("/net")?.is_valid() {
        return Err(wrong("the schema does not hold"));
    }
    Ok([&times[0], &times[1]].map(|times| median(times).unwrap_or_default()))
}

/// Adds members that refer to items in the first store, all in one commit; returns the medians.
fn references<const N: usize>(stores: &[&Store; N]) -> Result<[f64; N]> {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..TRIES {
        for (store, times) in stores.iter().zip(&mut times) {
            store.write(|transaction| transaction.remove("/net/links"))?;
            store.wait_until_reclaimed();
            store.checkpoint()?;
            let begin = Instant::now();
            store.write(|transaction| {
                transaction.set_with("/net/links", Existing::Any, |visitor| {
                    visitor.open(Container::Map)?;
                    for link in 0..REFERENCES {
                        text(visitor, &format!("link{link}"), &link.to_string())?;
                    }
                    visitor.close()
                })
            })?;
            times.push(begin.elapsed().as_secs_f64() * 1e6);
        }
    }
    let dangling = stores[0].write(|transaction| transaction.set("/net/links/x", &"none".into()));
    if dangling.is_ok() {
        return Err(wrong("a reference to nothing"));
    }
    Ok(times.map(|times| median(&times).unwrap_or_default()))
}
