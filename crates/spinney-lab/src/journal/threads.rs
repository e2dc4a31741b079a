//! Durable commits of eight threads, each of a leaf of its own, beside those of one thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use spinney::{Durability, Limits, Store};
use spinney_core::Result;

use super::{Bench, Found, stores, wrong};
use crate::claims::{Claim, Side, Unit};
use crate::statistics::median;

const THREADS: usize = 8;
/// Turns of one thread and of all.
const ROUNDS: usize = 7;
const TURN: Duration = Duration::from_millis(400);

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let items = bench.options.items;
    let store = stores::filled(bench.folder, Durability::Durable, Limits::DEFAULT, items)?;
    let mut writers: Vec<Writer> =
        stores::spread(THREADS, items).map(|path| Writer { path, commits: 0 }).collect();
    let (mut alone, mut together, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    // The first round warms up.
    for round in 0..=ROUNDS {
        let one = turn(&store, &mut writers[..1], TURN)?;
        let before = counts(&store)?;
        let all = turn(&store, &mut writers, TURN)?;
        let after = counts(&store)?;
        if round > 0 {
            alone.push(one);
            together.push(all);
            shared.push((after[0] - before[0]) / (after[1] - before[1]).max(1.0));
        }
    }
    for writer in &writers {
        let left = stores::number_at(&store, &writer.path)?;
        if left != writer.commits {
            return Err(wrong(format!("{left} and not {} at `{}`", writer.commits, writer.path)));
        }
    }
    let parts = [median(&alone), median(&together)].map(Option::unwrap_or_default);
    let promise = format!("durable commits a second: {THREADS} threads against one");
    let claim = Claim::ratio(promise, "lmdb", Some(items), parts, Unit::Microseconds)
        .bounded(Side::AtLeast, 4.0);
    let shared = median(&shared).unwrap_or_default();
    let fact = format!("{THREADS} threads: {shared:.1} commits shared a sync");
    Ok(Found { claims: vec![claim], facts: vec![fact] })
}

/// Commits and syncs since the store was opened.
fn counts(store: &Store) -> Result<[f64; 2]> {
    let number = |name: &str| Ok(stores::fact(store, name)?.parse().unwrap_or_default());
    Ok([number("commits")?, number("syncs")?])
}

struct Writer {
    path: String,
    commits: u64,
}

/// Lets some writers commit for a while; returns the time a commit.
fn turn(store: &Store, writers: &mut [Writer], time: Duration) -> Result<f64> {
    let is_over = AtomicBool::new(false);
    let before: u64 = writers.iter().map(|writer| writer.commits).sum();
    let begin = Instant::now();
    thread::scope(|scope| {
        let threads: Vec<_> = writers
            .iter_mut()
            .map(|writer| {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let next = writer.commits + 1;
                        store.write(|transaction| transaction.set(&writer.path, &next.into()))?;
                        writer.commits = next;
                    }
                    Ok(())
                })
            })
            .collect();
        thread::sleep(time);
        is_over.store(true, Ordering::Relaxed);
        threads.into_iter().try_for_each(|thread| thread.join().expect("a writer"))
    })?;
    let us = begin.elapsed().as_secs_f64() * 1e6;
    let after: u64 = writers.iter().map(|writer| writer.commits).sum();
    Ok(us / (after - before) as f64)
}
