//! The peer `sqlite`: one row an item, one prepared statement an operation.
//!
//! Design: `lst(k1, k2, item)` clusters its rows by both keys (`WITHOUT ROWID`) and keeps what is
//! not a key in `item` as JSONB, so that an item may have `l` or not. `usr_lst(rank, k, item)`
//! clusters by an integer order column with gaps of 2^20, so that a scan is in the user's order and
//! an insert in the middle is one row; a unique index keeps `k`. When a gap is used up all ranks
//! are spread again. The presence of `cont` is a row. A list without rows and no list are the same.
//! On opening the log is brought to its working size, so that commits overwrite it as they do in a
//! database that has run for a while; checkpoints keep that size.
//! Removing `lst` is `DELETE` without a condition, which SQLite does by pages and not by rows.
//! Where the configuration is judged, the tables are strict and have `CHECK`s; who subscribed is called with
//! what each statement changes, and reads the rows that a `DELETE` of all of them removes.
//! The rows that force a scan keep the index out with a unary `+`.
//! `durable` is WAL with `synchronous=FULL`, one sync a commit. SQLite has no weaker safe level
//! than WAL with `synchronous=OFF`, where a commit still survives the process: it stands for
//! `process` and for `none`.

mod array;
mod documents;
mod rows;

use std::io::Write;
use std::path::{Path, PathBuf};

use rusqlite::{CachedStatement, Connection, OptionalExtension, Params};
use serde_json::{Value, json};
use spinney_core::{Error, Result};

use crate::answer::Answer;
use crate::canonical::write_string;
use crate::datastore::document::{item_key, leaf_text, numbered};
use crate::documents::Collection;
use crate::system::{Delivery, Durability, Effect, Factory, Kind, System, Told};
use crate::throughput::Array;
use documents::Documents;

/// Nodes of an item of `lst`.
const ITEM_NODES: u64 = 4;
/// Nodes of an entry of `usr-lst`.
const ENTRY_NODES: u64 = 3;

const INSERT_ENTRY: &str = "INSERT INTO usr_lst VALUES (?1, ?2, jsonb_object('l', ?3))";

/// Distance between the ranks of appended entries.
const GAP: i64 = 1 << 20;

const SCHEMA: &str = "
    CREATE TABLE cont(present INTEGER PRIMARY KEY CHECK (present = 1));
    CREATE TABLE lst(k1 INTEGER, k2 TEXT, item BLOB NOT NULL, PRIMARY KEY (k1, k2)) WITHOUT ROWID;
    CREATE TABLE usr_lst(rank INTEGER PRIMARY KEY, k INTEGER NOT NULL UNIQUE, item BLOB NOT NULL);";

/// The same tables, with the model of the suite.
const JUDGED_SCHEMA: &str = "
    DROP TABLE lst;
    DROP TABLE usr_lst;
    CREATE TABLE lst(k1 INTEGER NOT NULL CHECK (k1 BETWEEN 0 AND 4294967295), k2 TEXT NOT NULL,
        item BLOB NOT NULL CHECK (jsonb_remove(item, '$.l') = jsonb('{}'))
            CHECK (coalesce(json_type(item, '$.l'), 'text') = 'text'),
        PRIMARY KEY (k1, k2)) STRICT, WITHOUT ROWID;
    CREATE TABLE usr_lst(rank INTEGER PRIMARY KEY,
        k INTEGER NOT NULL UNIQUE CHECK (k BETWEEN 0 AND 4294967295),
        item BLOB NOT NULL CHECK (jsonb_remove(item, '$.l') = jsonb('{}'))
            CHECK (coalesce(json_type(item, '$.l'), 'text') = 'text')) STRICT;";

const PRAGMAS: [(&str, &str); 6] = [
    ("journal_mode", "WAL"),
    ("cache_size", "-262144"),
    ("mmap_size", "1073741824"),
    ("temp_store", "MEMORY"),
    ("wal_autocheckpoint", "1000"),
    ("journal_size_limit", "4194304"),
];

const DESIGN: &str = "a row per item: lst(k1, k2, item JSONB) WITHOUT ROWID, usr_lst(rank with gaps, \
    k UNIQUE, item JSONB), presence of `cont` as a row; prepared statements, one transaction a commit";

/// Writes and drops as many pages as the log holds between checkpoints.
const GROW_WAL: &str = "
    CREATE TABLE filler AS SELECT zeroblob(4096000) AS bytes;
    DROP TABLE filler;
    VACUUM;
    PRAGMA wal_checkpoint(RESTART);";

/// Makes SQLite databases.
pub struct Sqlite;

impl Factory for Sqlite {
    fn name(&self) -> &str {
        "sqlite"
    }

    fn kind(&self) -> Kind {
        Kind::Peer
    }

    fn design(&self) -> &str {
        DESIGN
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        let synchronous = match durability {
            Durability::Durable => "FULL",
            Durability::Process | Durability::None => "OFF (a commit survives the process)",
        };
        let fixed = PRAGMAS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        fixed.into_iter().chain([("synchronous".into(), synchronous.into())]).collect()
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![("sqlite".into(), rusqlite::version().into())]
    }

    fn lacks(&self, _durability: Durability) -> Option<String> {
        None
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn System>> {
        let database = create(folder, durability, SCHEMA)?;
        Ok(Box::new(Store { database, told: Told::default() }))
    }

    fn design_in(&self, suite: &str) -> &str {
        match suite {
            "documents" => documents::DESIGN,
            "throughput" => array::DESIGN,
            _ => DESIGN,
        }
    }

    fn array(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Array>> {
        if !path(folder).exists() {
            drop(create(folder, durability, array::SCHEMA)?);
        }
        Ok(Box::new(array::Array::new(folder, durability)?))
    }

    fn collection(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Collection>> {
        Ok(Box::new(Documents::new(create(folder, durability, documents::SCHEMA)?)))
    }
}

/// A new database with these tables.
fn create(folder: &Path, durability: Durability, schema: &str) -> Result<Connection> {
    let database = connect(folder, durability)?;
    database.execute_batch(schema).map_err(failed)?;
    database.execute_batch(GROW_WAL).map_err(failed)?;
    Ok(database)
}

fn path(folder: &Path) -> PathBuf {
    folder.join("store.sqlite")
}

/// A connection to the database in a folder.
fn connect(folder: &Path, durability: Durability) -> Result<Connection> {
    let database = Connection::open(path(folder)).map_err(failed)?;
    for (name, value) in PRAGMAS {
        database.pragma_update(None, name, value).map_err(failed)?;
    }
    let synchronous = if durability == Durability::Durable { "FULL" } else { "OFF" };
    database.pragma_update(None, "synchronous", synchronous).map_err(failed)?;
    database.set_prepared_statement_cache_capacity(64);
    Ok(database)
}

struct Store {
    database: Connection,
    /// What its subscriber was given.
    told: Told,
}

impl Store {
    fn run(&self, sql: &str, values: impl Params) -> Result<usize> {
        self.prepared(sql)?.execute(values).map_err(failed)
    }

    fn prepared(&self, sql: &str) -> Result<CachedStatement<'_>> {
        self.database.prepare_cached(sql).map_err(failed)
    }

    /// One commit of an edit, which says what it has changed.
    fn commit(&mut self, edit: impl FnOnce(&Self) -> Result<Delivery>) -> Result<Effect> {
        self.run("BEGIN IMMEDIATE", [])?;
        match edit(self) {
            Ok(edited) => {
                self.run("COMMIT", [])?;
                Ok(self.told.tell(edited))
            }
            Err(error) => {
                self.run("ROLLBACK", [])?;
                Err(error)
            }
        }
    }

    /// Reads each item for who subscribed, and counts its nodes; without one, tells whether there is any.
    fn item_nodes(&self) -> Result<u64> {
        if !self.told.is_heard() {
            let sql = "SELECT EXISTS (SELECT 1 FROM lst)";
            let any: bool = self.prepared(sql)?.query_row([], |row| row.get(0)).map_err(failed)?;
            return Ok(any.into());
        }
        let mut statement = self.prepared("SELECT k1, k2, json(item) FROM lst")?;
        let mut rows = statement.query([]).map_err(failed)?;
        let mut nodes = 0;
        while let Some(row) = rows.next().map_err(failed)? {
            let _: (i64, &str) = (row.get(0).map_err(failed)?, text(row, 1)?);
            let item: serde_json::Map<String, Value> = serde_json::from_str(text(row, 2)?)
                .map_err(|error| Error::corrupted("an item is no object").with_source(error))?;
            nodes += 3 + item.len() as u64;
        }
        Ok(nodes)
    }

    fn create_cont(&self) -> Result<u64> {
        Ok(self.run("INSERT OR IGNORE INTO cont VALUES (1)", [])? as u64)
    }

    /// Inside SQLite, which takes less time than parsing outside and inserting row by row.
    fn insert_document(&self, json: &str) -> Result<()> {
        let values = [json];
        self.run("INSERT INTO cont SELECT 1 WHERE json_type(?1, '$.cont') IS NOT NULL", values)?;
        self.run(
            "INSERT INTO lst SELECT value ->> '$.k1', value ->> '$.k2', \
             jsonb_remove(value, '$.k1', '$.k2') FROM jsonb_each(?1, '$.cont.lst') ORDER BY 1, 2",
            values,
        )?;
        self.run(
            &format!(
                "INSERT INTO usr_lst SELECT (key + 1) * {GAP}, value ->> '$.k', \
                 jsonb_remove(value, '$.k') FROM jsonb_each(?1, '$.cont.usr-lst')"
            ),
            values,
        )?;
        Ok(())
    }

    fn delete_all(&self) -> Result<Delivery> {
        let items = self.item_nodes()?;
        let removed = self.run("DELETE FROM cont", [])? as u64;
        self.run("DELETE FROM lst", [])?;
        self.run("DELETE FROM usr_lst", [])?;
        Ok(Delivery::removed(removed + items))
    }

    fn insert_items(&mut self, n: usize) -> Result<Effect> {
        self.commit(|store| {
            let mut new = store.create_cont()?;
            let mut insert =
                store.prepared("INSERT INTO lst VALUES (?1, ?2, jsonb_object('l', ?3))")?;
            for i in 0..n {
                insert.execute((i as i64, numbered("str", i), leaf_text(i))).map_err(failed)?;
                new += ITEM_NODES;
            }
            Ok(Delivery::created(new))
        })
    }

    fn tree_of(&self, sql: &str, i: usize) -> Result<Answer> {
        let values = (i as i64, numbered("str", i));
        let leaf: Option<String> =
            self.prepared(sql)?.query_row(values, |row| row.get(0)).map_err(failed)?;
        let mut item = json!({ "k1": i, "k2": numbered("str", i) });
        if let Some(leaf) = leaf {
            item["l"] = leaf.into();
        }
        Ok(Answer::Json(json!({ "cont": { "lst": { item_key(i): item } } })))
    }

    /// The rank halfway to the next entry.
    fn rank_after(&self, k: i64) -> Result<i64> {
        let (rank, step) = self.gap_after(k, 1)?;
        Ok(rank + step)
    }

    /// The rank of the entry `k`, and a step of which `count` end before the next entry; spreads all
    /// ranks when there is none.
    fn gap_after(&self, k: i64, count: i64) -> Result<(i64, i64)> {
        let find = "SELECT a.rank, (SELECT min(b.rank) FROM usr_lst b WHERE b.rank > a.rank) \
             FROM usr_lst a WHERE a.k = ?1";
        loop {
            let (rank, next): (i64, Option<i64>) = self
                .prepared(find)?
                .query_row([k], |row| Ok((row.get(0)?, row.get(1)?)))
                .optional()
                .map_err(failed)?
                .ok_or_else(missing)?;
            match next {
                None => return Ok((rank, GAP)),
                Some(next) if next - rank > count => {
                    return Ok((rank, (next - rank) / (count + 1)));
                }
                Some(_) if count >= GAP => {
                    return Err(Error::unsupported("more entries at one spot than a gap holds"));
                }
                Some(_) => self.spread_ranks()?,
            }
        }
    }

    fn spread_ranks(&self) -> Result<()> {
        // Through negative ranks, so that no row meets one that has not moved yet.
        self.run(
            &format!(
                "UPDATE usr_lst SET rank = -new FROM (SELECT rank AS old, \
                 row_number() OVER (ORDER BY rank) * {GAP} AS new FROM usr_lst) WHERE rank = old"
            ),
            [],
        )?;
        self.run("UPDATE usr_lst SET rank = -rank", [])?;
        Ok(())
    }

    fn export_lists(&self, out: &mut Vec<u8>) -> rusqlite::Result<()> {
        let start = out.len();
        let mut items =
            self.database.prepare_cached("SELECT k1, k2, json(item) FROM lst ORDER BY k1, k2")?;
        let mut rows = items.query([])?;
        while let Some(row) = rows.next()? {
            out.extend_from_slice(if out.len() == start { b"\"lst\":{" } else { b"," });
            let (k1, k2): (i64, &str) = (row.get(0)?, row.get_ref(1)?.as_str()?);
            write_string(&format!("{k1},{k2}"), out);
            write!(out, ":{{\"k1\":{k1},\"k2\":").expect("a vector takes every write");
            write_string(k2, out);
            splice(row.get_ref(2)?.as_str()?, out);
        }
        if out.len() > start {
            out.push(b'}');
        }
        let mut entries =
            self.database.prepare_cached("SELECT k, json(item) FROM usr_lst ORDER BY rank")?;
        let mut rows = entries.query([])?;
        let mut first = true;
        while let Some(row) = rows.next()? {
            if out.len() > start {
                out.push(b',');
            }
            if std::mem::take(&mut first) {
                out.extend_from_slice(b"\"usr-lst\":[");
            }
            write!(out, "{{\"k\":{}", row.get::<_, i64>(0)?).expect("a vector takes every write");
            splice(row.get_ref(1)?.as_str()?, out);
        }
        if !first {
            out.push(b']');
        }
        Ok(())
    }
}

/// Appends the members of the JSON object `item` and closes the object that stands open.
fn splice(item: &str, out: &mut Vec<u8>) {
    if item != "{}" {
        out.push(b',');
    }
    out.extend_from_slice(&item.as_bytes()[1..]);
}

fn text<'r>(row: &'r rusqlite::Row<'_>, column: usize) -> Result<&'r str> {
    let value = row.get_ref(column).map_err(failed)?;
    value.as_str().map_err(|error| Error::corrupted("a column is no text").with_source(error))
}

fn missing() -> Error {
    Error::not_found("the database does not hold the entry; load the document first")
}

#[cold]
fn failed(error: rusqlite::Error) -> Error {
    Error::io("peer `sqlite` failed").with_source(error)
}
