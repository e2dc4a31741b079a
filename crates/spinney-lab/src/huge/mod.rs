//! `huge`: millions of inserts in commits of 100 000, beside LMDB itself, batch by batch in turns.
//!
//! A record is `{"x":i,"y":76 characters}`: a map for spinney, the JSON text for LMDB. Ids and
//! records are made outside of the clock.

mod ids;

use std::path::Path;
use std::time::Instant;

use spinney::{Durability, Limits, Map, Value};
use spinney_core::Result;

use crate::claims::{Claim, Side, Unit};
use crate::engine::EngineFactory;
use crate::engines::Lmdb;
use crate::journal::{Bench, Found, io, stores, wrong};
use crate::process::disk_bytes;
use crate::statistics::{max, min};
use ids::{Order, filling, step};

const BATCH: usize = 100_000;
/// Records that are read at the end.
const CHECKED: u64 = 10_000;
const TREE: &str = "/huge";

/// Measures both orders.
pub(crate) fn measure(bench: &Bench<'_>) -> Result<Found> {
    let mut found = Found::default();
    for order in [Order::Random, Order::Path] {
        let folder = tempfile::tempdir_in(bench.folder).map_err(|error| io(error, bench.folder))?;
        measure_order(order, bench.options.inserts, folder.path(), &mut found)?;
    }
    Ok(found)
}

fn measure_order(order: Order, inserts: usize, folder: &Path, found: &mut Found) -> Result<()> {
    let (own, peer) = (folder.join("store"), folder.join("raw"));
    std::fs::create_dir(&peer).map_err(|error| io(error, &peer))?;
    let store = stores::open(&own, Durability::Durable, Limits::DEFAULT)?;
    let raw = Lmdb.open(&peer, crate::system::Durability::Durable)?;
    let (mut own_us, mut raw_us) = (Vec::new(), Vec::new());
    for first in (0..inserts).step_by(BATCH) {
        let numbers = || (first as u64..).take(BATCH.min(inserts - first));
        let texts: Vec<(String, String)> = numbers()
            .map(|i| (order.id(i), format!("{{\"x\":{i},\"y\":\"{}\"}}", filling(i))))
            .collect();
        let begin = Instant::now();
        raw.write(&mut |records| {
            texts.iter().try_for_each(|(id, text)| records.put(0, id.as_bytes(), text.as_bytes()))
        })?;
        raw_us.push(begin.elapsed().as_secs_f64() * 1e6);
        drop(texts);
        let records: Vec<(String, Value)> =
            numbers().map(|i| (format!("{TREE}{}", order.id(i)), record(i))).collect();
        let begin = Instant::now();
        store.write(|transaction| {
            records.iter().try_for_each(|(path, record)| transaction.set(path, record))
        })?;
        own_us.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    let snapshot = store.read()?;
    for check in 0..CHECKED {
        let i = step(check + 777) % inserts as u64;
        if snapshot.get(&format!("{TREE}{}", order.id(i)))? != Some(record(i)) {
            return Err(wrong(format!("record {i}")));
        }
    }
    let mut count = 0;
    raw.read(&mut |records| {
        records.scan(0, b"", &mut |_, _| {
            count += 1;
            Ok(true)
        })
    })?;
    if count != inserts {
        return Err(wrong("LMDB lacks records"));
    }
    drop(snapshot);
    drop(store);
    drop(raw);
    claim(order, inserts, &own_us, &raw_us, found);
    let name = order.name();
    for (system, samples, folder) in [("spinney", &own_us, &own), ("raw LMDB", &raw_us, &peer)] {
        let s = |value: Option<f64>| value.unwrap_or_default() / 1e6;
        found.facts.push(format!(
            "huge, {name}, {system}: seconds per {BATCH}: min {:.3}, max {:.3}, mean {:.3}, last {:.3}; {} MB",
            s(min(samples)),
            s(max(samples)),
            s(Some(mean(samples))),
            s(samples.last().copied()),
            disk_bytes(folder) / 1_000_000,
        ));
    }
    Ok(())
}

fn claim(order: Order, inserts: usize, own: &[f64], raw: &[f64], found: &mut Found) {
    let (name, size) = (order.name(), Some(inserts));
    let parts = [mean(own), mean(raw)];
    let against = Claim::ratio(
        format!("{BATCH} inserts in one commit, {name}, against raw LMDB"),
        "lmdb",
        size,
        parts,
        Unit::Microseconds,
    );
    found.claims.push(against.bounded(Side::AtMost, 1.0));
    if order == Order::Path {
        let promise = format!("{BATCH} inserts in one commit, {name}");
        let value = Claim::value(promise, "lmdb", size, parts[0], Unit::Microseconds);
        found.claims.push(value.at_most(80_000.0));
    }
    let parts = [max(own).unwrap_or_default(), mean(own)];
    let promise = format!("slowest of these commits against their mean, {name}");
    let steady = Claim::ratio(promise, "lmdb", size, parts, Unit::Microseconds);
    found.claims.push(steady.bounded(Side::AtMost, 3.0));
}

fn record(i: u64) -> Value {
    let mut map = Map::new();
    map.insert("x", i);
    map.insert("y", filling(i));
    Value::Map(map)
}

fn mean(samples: &[f64]) -> f64 {
    samples.iter().sum::<f64>() / samples.len().max(1) as f64
}
