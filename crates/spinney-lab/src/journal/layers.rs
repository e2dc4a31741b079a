//! What layers cost: a leaf read through five of them, a candidate of one leaf made running, a leaf of
//! operational state that a connection pushes, and a copy of everything to another layer.

use std::hint::black_box;
use std::time::Instant;

use spinney::datastores::{CandidateCommit, Datastore};
use spinney::formats::{self, Dialect};
use spinney::layers::{Layer, Stack};
use spinney::{Durability, Existing, Limits, Result, Snapshot, Store};

use super::subscribers::set_item;
use super::{Bench, Found, stores, wrong};
use crate::claims::{Claim, Unit};
use crate::datastore::Documents;
use crate::datastore::document::State;
use crate::statistics::median;

const ROUNDS: usize = 30;
const READS: usize = 2_000;
const COMMITS: usize = 40;
const COPIES: usize = 7;

/// Items of a layer that has few.
const FEW: usize = 1_000;

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let items = bench.options.items;
    let folder = bench.folder.join("layers");
    let store = stores::filled(&folder, Durability::Durable, Limits::DEFAULT, items)?;
    let few = ["few0", "few1", "few2", "few3"];
    let full = ["full0", "full1", "full2", "full3"];
    few.iter().try_for_each(|name| fill(&store, name, FEW.min(items)))?;
    full.iter().try_for_each(|name| fill(&store, name, items))?;
    store.checkpoint()?;
    let mut found = Found::default();
    let promise = "a leaf read through five layers, four small, against one layer";
    found.claims.push(reads(&store, &few, items, promise, 3.0)?);
    let promise = "a leaf read through five full layers, against one layer";
    found.claims.push(reads(&store, &full, items, promise, 5.5)?);
    found.claims.extend(commits(&store, items)?);
    found.claims.push(copies(&store, items)?);
    Ok(found)
}

fn fill(store: &Store, name: &str, items: usize) -> Result<()> {
    let text = Documents::new(items).text(State::Items);
    store.write(|transaction| {
        transaction.set_with(&format!("/{name}"), Existing::Any, |visitor| {
            formats::read(&*text, Dialect::Json, visitor)
        })
    })?;
    Ok(())
}

/// Reads leaves of `running` alone and under other layers, in turns.
fn reads(store: &Store, above: &[&str], items: usize, promise: &str, bound: f64) -> Result<Claim> {
    let names = above.iter().chain(&["running"]);
    let layers: Result<_> =
        names.map(|name| Layer::new(*name, store, &format!("/{name}"))).collect();
    let stack = Stack::new(layers?)?.read()?;
    let alone = store.read()?;
    let (mut through, mut direct) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        through.push(read(&stack, "/running".len(), round, items)?);
        direct.push(read(&alone, 0, round, items)?);
    }
    let parts = [median(&through), median(&direct)].map(Option::unwrap_or_default);
    Ok(Claim::ratio(promise, "lmdb", Some(items), parts, Unit::Microseconds).at_most(bound))
}

/// Microseconds a read, of leaves all over the tree.
fn read(state: &Snapshot, cut: usize, round: usize, items: usize) -> Result<f64> {
    let mut random = fastrand::Rng::with_seed(round as u64);
    let paths: Vec<String> =
        (0..READS).map(|_| stores::leaf_path(random.usize(..items))[cut..].to_owned()).collect();
    let begin = Instant::now();
    for path in &paths {
        black_box(state.get(path)?).ok_or_else(|| wrong(path))?;
    }
    Ok(begin.elapsed().as_secs_f64() * 1e6 / READS as f64)
}

/// A leaf of `running` set directly, through the candidate, and among as many items that a connection has pushed.
fn commits(store: &Store, items: usize) -> Result<Vec<Claim>> {
    let all = store.datastores()?;
    let connection = all.push("items", None)?;
    connection.edit(|edit| (0..items).try_for_each(|item| set_item(edit, item)))?;
    store.checkpoint()?;
    let (mut direct, mut candidate, mut pushed) = (Vec::new(), Vec::new(), Vec::new());
    let mut random = fastrand::Rng::with_seed(5);
    for round in 0..ROUNDS * COMMITS / 4 {
        let path = stores::leaf_path(random.usize(..items));
        let path = &path["/running".len()..];
        let value = format!("value {round}").into();
        let begin = Instant::now();
        all.edit(Datastore::Running, |edit| edit.set(path, &value))?;
        direct.push(begin.elapsed().as_secs_f64() * 1e6);
        let value = format!("pushed {round}").into();
        let begin = Instant::now();
        connection.edit(|edit| edit.set(path, &value))?;
        pushed.push(begin.elapsed().as_secs_f64() * 1e6);
        if all.read(Datastore::Operational)?.get(path)?.as_ref() != Some(&value) {
            return Err(wrong(path));
        }
        let value = format!("candidate {round}").into();
        all.edit(Datastore::Candidate, |edit| edit.set(path, &value))?;
        let begin = Instant::now();
        all.commit(&CandidateCommit::default())?;
        candidate.push(begin.elapsed().as_secs_f64() * 1e6);
        if all.read(Datastore::Running)?.get(path)?.as_ref() != Some(&value) {
            return Err(wrong(path));
        }
    }
    connection.end()?;
    let [direct, candidate, pushed] =
        [direct, candidate, pushed].map(|times| median(&times).unwrap_or_default());
    let ratio = |promise: &str, time: f64, bound: f64| {
        let parts = [time, direct];
        Claim::ratio(promise, "lmdb", Some(items), parts, Unit::Microseconds).at_most(bound)
    };
    Ok(vec![
        ratio("a candidate of one leaf made running, against a commit of it", candidate, 2.0),
        ratio("a leaf of operational state pushed, against one of configuration", pushed, 1.1),
    ])
}

fn copies(store: &Store, items: usize) -> Result<Claim> {
    let all = store.datastores()?;
    let mut times = Vec::new();
    for _ in 0..COPIES {
        let begin = Instant::now();
        all.copy(Datastore::Running, Datastore::Startup)?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
        let state = store.read()?;
        if state.count("/startup/cont/lst")? != state.count("/running/cont/lst")? {
            return Err(wrong("/startup"));
        }
        store.wait_until_reclaimed();
    }
    let time = median(&times).unwrap_or_default();
    let promise = "a copy of everything to another layer";
    Ok(Claim::value(promise, "lmdb", Some(items), time, Unit::Microseconds).at_most(30_000.0))
}
