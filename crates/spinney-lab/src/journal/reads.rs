//! Reads over a journal of 100 000 small commits, and while the journal is folded, beside reads of a
//! store that holds the same and has an empty journal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spinney::{Durability, Limits, Store};
use spinney_core::Result;

use super::{Bench, Found, stores, wrong};
use crate::claims::{Claim, Side, Unit};
use crate::statistics::median;

const COMMITS: u64 = 100_000;
/// Nothing is folded by itself.
const UNFOLDED: Limits = Limits {
    generation_len_bytes: 1 << 30,
    fold_after: Duration::from_secs(3_600),
    ..Limits::DEFAULT
};
const ROUNDS: usize = 15;
/// Leaves that are read in a turn.
const LEAVES: usize = 2_000;

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let items = bench.options.items;
    let folded = committed(bench, "folded")?;
    folded.checkpoint()?;
    let tail = committed(bench, "tail")?;
    let staged = stores::fact(&tail, "staged records")?;
    if folded.read()?.get("/running")? != tail.read()?.get("/running")? {
        return Err(wrong("what was committed to both stores differs"));
    }
    let mut found = Found::default();
    found.facts.push(format!("{COMMITS} commits left {staged} records over the engine's"));
    compare(&folded, &tail, items, "over 100 000 commits in the journal", &mut found)?;
    drop(tail);

    let busy = committed(bench, "busy")?;
    busy.checkpoint()?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let folder = scope.spawn(|| fold_for_ever(&busy, items, &is_over));
        let compared = compare(&folded, &busy, items, "while the journal is folded", &mut found);
        is_over.store(true, Ordering::Relaxed);
        let folds = folder.join().expect("the folding thread")?;
        found.facts.push(format!("{folds} folds ran beside the reads"));
        compared
    })?;
    Ok(found)
}

/// A store after 100 000 commits of a leaf each.
fn committed(bench: &Bench<'_>, name: &str) -> Result<Store> {
    let items = bench.options.items;
    let store = stores::filled(&bench.folder.join(name), Durability::None, UNFOLDED, items)?;
    let mut random = fastrand::Rng::with_seed(5);
    for commit in 0..COMMITS {
        let path = stores::leaf_path(random.usize(..items));
        store.write(|transaction| transaction.set(&path, &commit.into()))?;
    }
    store.sync()?;
    Ok(store)
}

/// Folds small commits again and again; returns how often.
fn fold_for_ever(store: &Store, items: usize, is_over: &AtomicBool) -> Result<u64> {
    let mut random = fastrand::Rng::with_seed(6);
    let mut folds = 0;
    while !is_over.load(Ordering::Relaxed) {
        for commit in 0..100_u64 {
            let path = stores::leaf_path(random.usize(..items));
            store.write(|transaction| transaction.set(&path, &commit.into()))?;
        }
        store.checkpoint()?;
        folds += 1;
    }
    Ok(folds)
}

fn compare(
    plain: &Store,
    other: &Store,
    items: usize,
    when: &str,
    found: &mut Found,
) -> Result<()> {
    let (mut leaves, mut trees) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    let mut random = fastrand::Rng::with_seed(9);
    for _ in 0..ROUNDS {
        for (at, store) in [other, plain].into_iter().enumerate() {
            leaves[at].push(read_leaves(store, items, &mut random)?);
            let begin = Instant::now();
            let tree = store.read()?.get("/running/cont")?;
            trees[at].push(begin.elapsed().as_secs_f64() * 1e6);
            tree.ok_or_else(|| wrong("no tree"))?;
        }
    }
    for (what, samples) in [("a leaf read by path", leaves), ("the whole tree read", trees)] {
        let parts = samples.map(|samples| median(&samples).unwrap_or_default());
        let promise = format!("{what} {when}");
        let claim = Claim::ratio(promise, "lmdb", Some(items), parts, Unit::Microseconds);
        found.claims.push(claim.bounded(Side::AtMost, 1.3));
    }
    Ok(())
}

/// The time of one read.
fn read_leaves(store: &Store, items: usize, random: &mut fastrand::Rng) -> Result<f64> {
    let paths: Vec<String> =
        (0..LEAVES).map(|_| stores::leaf_path(random.usize(..items))).collect();
    let begin = Instant::now();
    for path in &paths {
        if store.read()?.get(path)?.is_none() {
            return Err(wrong(format!("no `{path}`")));
        }
    }
    Ok(begin.elapsed().as_secs_f64() * 1e6 / LEAVES as f64)
}
