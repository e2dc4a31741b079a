//! The filter query of the suite's first row on LMDB, beside parsing the text and asking another JSONPath
//! crate, with its bounds as claims: `query [SIZE] [ROUNDS]`, in one run. With `profile` behind them only the query on LMDB is run, below
//! `profiled`, for a profiler.

use std::hint::black_box;
use std::time::{Duration, Instant};

use spinney::formats::{self, Dialect};
use spinney::query::{Query, QueryLimits};
use spinney::transaction::Existing;
use spinney_lab::claims::{Claim, Side, Unit};
use spinney_lab::datastore::document::{Documents, State};
use spinney_lab::render_claims;

type Failed = Box<dyn std::error::Error>;

/// What the query may take over 100 000 items.
const QUERY_US_MAX: f64 = 15_000.0;
/// How many times as fast it must be.
const SPEED_MIN: f64 = 5.0;

fn main() -> Result<(), Failed> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default: usize| {
        arguments.get(at).map_or(Ok(default), |text| text.parse::<usize>())
    };
    let (size, rounds) = (number(0, 100_000)?, number(1, 20)?);
    let documents = Documents::new(size);
    let (text, middle) = (documents.text(State::Items), documents.middle());
    let asked = format!(r#"$.cont.lst[?@.k1=={middle} && @.k2=="str{middle}"].l"#);
    let folder = tempfile::tempdir_in(".")?;
    let store = spinney::open(&format!("lmdb:{}", folder.path().display()))?;
    store.write(|tx| {
        tx.set_with("/bench", Existing::Any, |visitor| {
            formats::read(&text[..], Dialect::Json, visitor)
        })
    })?;
    store.checkpoint()?;
    let snapshot = store.read()?;
    let limits = QueryLimits::default();
    let query = || -> Result<String, Failed> {
        let query = Query::parse(&asked)?;
        let mut found = snapshot.query("/bench", &query, limits)?;
        let first = found.next().ok_or("nothing is found")??.value()?;
        match found.next() {
            None => Ok(first.as_str().unwrap_or_default().to_owned()),
            Some(_) => Err("two are found".into()),
        }
    };
    if arguments.get(2).is_some_and(|word| word == "profile") {
        for _ in 0..rounds {
            profiled(&query)?;
        }
        return Ok(());
    }
    let text = std::str::from_utf8(&text)?;
    let parse = || serde_json::from_str::<serde_json::Value>(text);
    let only = |found: Vec<&serde_json::Value>| match found[..] {
        [only] => Ok(only.as_str().unwrap_or_default().to_owned()),
        _ => Err::<_, Failed>("not one is found".into()),
    };
    let ours = measure("spinney, LMDB", rounds, query)?;
    let plain = Query::parse(&asked)?;
    let value = formats::parse(text)?;
    measure("spinney, a value in memory", rounds, || {
        let mut found = spinney::query::Found::new(&plain, &value, limits);
        let found = found.next().ok_or("nothing is found")??.value()?;
        Ok(found.as_str().unwrap_or_default().to_owned())
    })?;
    let path = serde_json_path::JsonPath::parse(&asked)?;
    let parsed = parse()?;
    measure("serde_json_path alone", rounds, || only(path.query(&parsed).all()))?;
    drop(parsed);
    let peer =
        measure("serde_json and serde_json_path", rounds, || only(path.query(&parse()?).all()))?;
    let [ours, peer] = [ours, peer].map(|took| took.as_secs_f64() * 1e6);
    let promise = "a filter query over all items, without an index";
    let query = Claim::value(promise, "lmdb", Some(size), ours, Unit::Microseconds);
    let promise = "its speed against serde_json parsing and serde_json_path";
    let speed = Claim::ratio(promise, "lmdb", Some(size), [peer, ours], Unit::Microseconds);
    let claims = [query.at_most(QUERY_US_MAX), speed.bounded(Side::AtLeast, SPEED_MIN)];
    anstream::print!("{}", render_claims(&claims));
    Ok(())
}

/// Prints and gives the median of the rounds.
fn measure(
    name: &str,
    rounds: usize,
    work: impl Fn() -> Result<String, Failed>,
) -> Result<Duration, Failed> {
    let mut took = Vec::new();
    let mut answer = String::new();
    for _ in 0..rounds.max(1) {
        let begin = Instant::now();
        answer = black_box(work()?);
        took.push(begin.elapsed());
    }
    took.sort_unstable();
    let (median, least) = (took[took.len() / 2], took[0]);
    println!("{name:<32} p50 {median:>10.2?}  min {least:>10.2?}  found {answer}");
    Ok(median)
}

#[inline(never)]
fn profiled(work: &dyn Fn() -> Result<String, Failed>) -> Result<(), Failed> {
    black_box(work()?);
    Ok(())
}
