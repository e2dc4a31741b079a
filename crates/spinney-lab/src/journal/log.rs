//! What the change log costs a commit: the same commits on a store that keeps history and on one that
//! keeps none.

use std::time::Instant;

use spinney::backends::lmdb::{Lmdb, Options};
use spinney::history::{Retention, log_key};
use spinney::{Durability, Limits, Store};
use spinney_core::Result;
use spinney_core::backend::Backend;

use super::{Bench, Found, stores, wrong};
use crate::claims::{Claim, Unit};
use crate::statistics::median;

const ROUNDS: usize = 20;
const COMMITS: [(Durability, usize); 2] = [(Durability::Durable, 100), (Durability::Process, 500)];

/// Bytes that the log may take of a commit of any size.
const RECORD_LEN_MAX: f64 = 4_096.0;

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let items = bench.options.items;
    let with =
        stores::filled(&bench.folder.join("with"), Durability::Durable, Limits::DEFAULT, items)?;
    let none = Retention { revisions_max: 0, ..Retention::DEFAULT };
    let without = stores::fill(stores::open_keeping(&bench.folder.join("without"), none)?, items)?;
    let mut found = Found::default();
    for (level, commits) in COMMITS {
        let (mut logged, mut silent) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            change(&with, level, commits, round, items, &mut logged)?;
            change(&without, level, commits, round, items, &mut silent)?;
        }
        let parts = [median(&logged), median(&silent)].map(Option::unwrap_or_default);
        found.claims.push(match level {
            Durability::Durable => {
                let promise = "a durable commit with the change log against one without";
                Claim::ratio(promise, "lmdb", Some(items), parts, Unit::Microseconds).at_most(1.1)
            }
            _ => {
                let promise = "what the change log adds to a commit, process";
                let added = (parts[0] - parts[1]).max(0.0);
                Claim::value(promise, "lmdb", Some(items), added, Unit::Microseconds).at_most(3.0)
            }
        });
        found.facts.push(format!(
            "{level:?}: {:.1} us with the log, {:.1} us without",
            parts[0], parts[1]
        ));
    }
    if without.read()?.log()?.next().is_some() || with.read()?.log()?.next().is_none() {
        return Err(wrong("the change logs"));
    }
    drop(with);
    found.claims.extend(records(bench, items)?);
    Ok(found)
}

fn change(
    store: &Store,
    level: Durability,
    commits: usize,
    round: usize,
    items: usize,
    times: &mut Vec<f64>,
) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(round as u64);
    for commit in 0..commits {
        let (path, text) = (stores::leaf_path(random.usize(..items)), format!("{round} {commit}"));
        let begin = Instant::now();
        store.write_with(level, |transaction| transaction.set(&path, &(&*text).into()))?;
        times.push(begin.elapsed().as_secs_f64() * 1e6);
    }
    Ok(())
}

/// The log records of a store's import and of its removal.
fn records(bench: &Bench<'_>, items: usize) -> Result<Vec<Claim>> {
    let folder = bench.folder.join("records");
    let store = stores::filled(&folder, Durability::Durable, Limits::DEFAULT, items)?;
    let imported = store.read()?.revision()?;
    let removed = store.write(|transaction| transaction.remove("/running"))?.revision;
    drop(store);
    let options = Options { create: false, read_only: false, limits: Limits::DEFAULT };
    let snapshot = Lmdb::open(&folder, options)?.snapshot()?;
    [("import", imported), ("removal", removed)]
        .into_iter()
        .map(|(what, revision)| {
            let record = snapshot.get(&log_key(revision))?.ok_or_else(|| wrong("the log"))?;
            let promise = format!("the log record of the {what} of all items");
            let len = record.len() as f64;
            Ok(Claim::value(promise, "lmdb", Some(items), len, Unit::Bytes).at_most(RECORD_LEN_MAX))
        })
        .collect()
}
