//! How long durable commits take while generations of the journal are folded behind them, with raw syncs
//! of the same disk between them.

use std::time::Instant;

use spinney::{Durability, Limits};
use spinney_core::Result;

use super::{Bench, Found, stores, wrong};
use crate::claims::{Claim, Unit};
use crate::limits::Sampler;
use crate::statistics::{self, max, median, p99};

const COMMITS: u64 = 40_000;
/// A raw sync after so many commits.
const RAW_EVERY: u64 = 20;
/// Small enough that some generations are folded, whatever a commit's record takes.
const LIMITS: Limits = Limits { generation_len_bytes: 1 << 20, ..Limits::DEFAULT };

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let mut found = Found::default();
    for (name, limits) in [("usual", Limits::DEFAULT), ("1 MiB", LIMITS)] {
        measure_at(bench, name, limits, &mut found)?;
    }
    Ok(found)
}

fn measure_at(bench: &Bench<'_>, name: &str, limits: Limits, found: &mut Found) -> Result<()> {
    let items = bench.options.items;
    let folder = bench.folder.join(name);
    let store = stores::filled(&folder, Durability::Durable, limits, items)?;
    let mut random = fastrand::Rng::with_seed(7);
    let mut raw = Sampler::syncs(&folder)?;
    let (mut samples, mut raw_samples, mut last) = (Vec::new(), Vec::new(), String::new());
    for commit in 0..COMMITS {
        last = stores::leaf_path(random.usize(..items));
        let begin = Instant::now();
        store.write(|transaction| transaction.set(&last, &commit.into()))?;
        samples.push(begin.elapsed().as_secs_f64() * 1e6);
        if commit % RAW_EVERY == 0 {
            raw_samples.push(raw.sample()?.wall_us);
        }
    }
    if stores::number_at(&store, &last)? != COMMITS - 1 {
        return Err(wrong("the last commit"));
    }
    let [p50, p99, max] =
        [median(&samples), p99(&samples), max(&samples)].map(Option::unwrap_or_default);
    let raw = [median(&raw_samples), statistics::p99(&raw_samples)].map(Option::unwrap_or_default);
    if limits == Limits::DEFAULT {
        let promise = "p99 against p50 of durable commits while generations are folded";
        let claim = Claim::ratio(promise, "lmdb", Some(items), [p99, p50], Unit::Microseconds);
        found.claims.push(claim.at_most(3.0));
    }
    found.facts.push(format!(
        "{COMMITS} durable commits, generations: {name}: p50 {p50:.0} us, p99 {p99:.0} us, max {max:.0} us; raw \
         syncs between them: p50 {:.0} us, p99 {:.0} us",
        raw[0], raw[1]
    ));
    Ok(())
}
