//! What 100 access rules cost a read and a commit of a leaf.

use std::hint::black_box;
use std::time::Instant;

use spinney::access::{AccessRule, AccessRules, Effect, Principal, Right, Rule, Subject};
use spinney::{Durability, Limits, Path, Result, Store};

use super::{Bench, Found, stores, wrong};
use crate::claims::{Claim, Unit};
use crate::statistics::median;

const RULES: usize = 100;
const ROUNDS: usize = 60;
const READS: usize = 500;
const COMMITS: usize = 40;

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let items = bench.options.items;
    let folder = bench.folder.join("access");
    let store = stores::filled(&folder, Durability::None, Limits::DEFAULT, items)?;
    store.checkpoint()?;
    store.set_access_rules(&rules(items)?, true)?;
    let ann = store.as_principal(Principal::new("ann").in_group("staff"));
    let paths: Vec<String> = stores::spread(READS, items).collect();
    let (mut open, mut ruled) = (Vec::new(), Vec::new());
    let (mut free, mut bound) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        open.push(read(&store, &paths)?);
        ruled.push(read(&ann, &paths)?);
        free.push(commit(&store, &paths, 2 * round)?);
        bound.push(commit(&ann, &paths, 2 * round + 1)?);
    }
    let added = |promise: &str, ruled: &[f64], open: &[f64]| {
        let [ruled, open] = [ruled, open].map(|times| median(times).unwrap_or_default());
        Claim::value(promise, "lmdb", Some(items), ruled - open, Unit::Microseconds).at_most(5.0)
    };
    Ok(Found {
        claims: vec![
            added("what 100 access rules add to a state and a leaf of it read", &ruled, &open),
            added("what 100 access rules add to a commit of a leaf", &bound, &free),
        ],
        ..Found::default()
    })
}

/// Rules about members of the list, of which the last lets everything be written.
fn rules(items: usize) -> Result<AccessRules> {
    let mut rules = Vec::with_capacity(RULES);
    for number in 1..RULES {
        let path = format!("{}/hidden", stores::leaf_path(number * items / RULES + 1));
        let rule = Rule { path: Path::parse(&path)?, effect: Effect::Deny(Right::Read) };
        rules.push(AccessRule { subject: Subject::Everyone, rule });
    }
    let rule = Rule { path: Path::root(), effect: Effect::Allow(Right::Write) };
    rules.push(AccessRule { subject: Subject::User("ann".to_owned()), rule });
    Ok(AccessRules(rules))
}

/// Microseconds for a state and a leaf of it.
fn read(store: &Store, paths: &[String]) -> Result<f64> {
    let begin = Instant::now();
    for path in paths {
        black_box(store.read()?.get(path)?).ok_or_else(|| wrong(path))?;
    }
    Ok(begin.elapsed().as_secs_f64() * 1e6 / paths.len() as f64)
}

/// Microseconds for a commit.
fn commit(store: &Store, paths: &[String], round: usize) -> Result<f64> {
    let begin = Instant::now();
    for path in &paths[..COMMITS] {
        store.write(|transaction| transaction.set(path, &format!("value {round}").into()))?;
    }
    Ok(begin.elapsed().as_secs_f64() * 1e6 / COMMITS as f64)
}
