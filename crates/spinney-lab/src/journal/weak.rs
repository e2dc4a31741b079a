//! Commits that survive the process, beside SQLite's in WAL mode with `synchronous=NORMAL`.

use std::time::Instant;

use rusqlite::{Connection, params};
use spinney::{Durability, Limits};
use spinney_core::{Error, Result};

use super::{Bench, Found, stores, wrong};
use crate::claims::{Claim, Side, Unit};
use crate::datastore::document::numbered;
use crate::statistics::median;

const ROUNDS: usize = 20;
const COMMITS: usize = 1_000;

const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    PRAGMA cache_size = -262144;
    CREATE TABLE lst(k1 INTEGER, k2 TEXT, item BLOB NOT NULL, PRIMARY KEY (k1, k2)) WITHOUT ROWID;";
const FILL: &str = "INSERT INTO lst VALUES (?1, ?2, jsonb_object('l', ?3))";
const UPDATE: &str = "UPDATE lst SET item = jsonb_set(item, '$.l', ?3) WHERE k1 = ?1 AND k2 = ?2";

pub fn measure(bench: &Bench<'_>) -> Result<Found> {
    let items = bench.options.items;
    let folder = bench.folder.join("store");
    let store = stores::filled(&folder, Durability::Process, Limits::DEFAULT, items)?;
    let sqlite = fill_sqlite(bench, items).map_err(failed)?;
    let mut update = sqlite.prepare(UPDATE).map_err(failed)?;
    let mut random = fastrand::Rng::with_seed(11);
    let (mut own, mut peer) = (Vec::new(), Vec::new());
    let mut last = 0;
    for round in 0..ROUNDS {
        for commit in 0..COMMITS {
            last = random.usize(..items);
            let (path, text) = (stores::leaf_path(last), format!("{round} {commit}"));
            let begin = Instant::now();
            store.write(|transaction| transaction.set(&path, &(&*text).into()))?;
            own.push(begin.elapsed().as_secs_f64() * 1e6);
        }
        for commit in 0..COMMITS {
            let item = random.usize(..items);
            let (key, text) = (numbered("str", item), format!("{round} {commit}"));
            let begin = Instant::now();
            let changed = update.execute(params![item as i64, key, text]).map_err(failed)?;
            peer.push(begin.elapsed().as_secs_f64() * 1e6);
            if changed != 1 {
                return Err(wrong("a row of SQLite"));
            }
        }
    }
    let text = format!("{} {}", ROUNDS - 1, COMMITS - 1);
    if store.read()?.get(&stores::leaf_path(last))? != Some((&*text).into()) {
        return Err(wrong("the last commit"));
    }
    let parts = [median(&own), median(&peer)].map(Option::unwrap_or_default);
    let value = Claim::value(
        "one leaf changed, process",
        "lmdb",
        Some(items),
        parts[0],
        Unit::Microseconds,
    );
    let promise = "one leaf changed, process, against sqlite with WAL and NORMAL";
    let ratio = Claim::ratio(promise, "lmdb", Some(items), parts, Unit::Microseconds);
    Ok(Found {
        claims: vec![value.at_most(10.0), ratio.bounded(Side::AtMost, 1.0)],
        ..Found::default()
    })
}

fn fill_sqlite(bench: &Bench<'_>, items: usize) -> rusqlite::Result<Connection> {
    let mut sqlite = Connection::open(bench.folder.join("peer.sqlite"))?;
    sqlite.execute_batch(SCHEMA)?;
    let transaction = sqlite.transaction()?;
    {
        let mut fill = transaction.prepare(FILL)?;
        for item in 0..items {
            fill.execute(params![item as i64, numbered("str", item), numbered("l", item)])?;
        }
    }
    transaction.commit()?;
    Ok(sqlite)
}

fn failed(error: rusqlite::Error) -> Error {
    Error::io("sqlite").with_source(error)
}
