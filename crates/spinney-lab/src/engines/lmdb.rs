//! LMDB without anything on top: a named database a table, a transaction a commit.
//!
//! Below `durable` the map is writable and nothing is synced, so that a commit is in the memory of the
//! system on return and survives the process: it stands for `process` and for `none`.
#![allow(unsafe_code)]

use std::ops::Bound;
use std::path::Path;

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, RoTxn, RwTxn};
use spinney_core::{Error, Result};

use crate::engine::{Each, Engine, EngineFactory, Reader, Records, TABLES};
use crate::system::Durability;

/// Address space for the file.
const MAP_LEN_BYTES: usize = 1 << 38;

/// Makes environments.
pub struct Lmdb;

impl EngineFactory for Lmdb {
    fn name(&self) -> &'static str {
        "lmdb-raw"
    }

    fn design(&self) -> &'static str {
        "LMDB through heed: a named database a table, a write transaction a commit, a read \
         transaction a snapshot"
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        let flags = match durability {
            Durability::Durable => "none, the defaults",
            Durability::Process | Durability::None => {
                "MDB_WRITEMAP, MDB_NOSYNC (a commit survives the process)"
            }
        };
        let map = format!("{} GiB", MAP_LEN_BYTES >> 30);
        vec![("flags".into(), flags.into()), ("map size".into(), map)]
    }

    fn versions(&self) -> Vec<(String, String)> {
        let version = heed::lmdb_version();
        let version = format!("{}.{}.{}", version.major, version.minor, version.patch);
        vec![("lmdb".into(), version)]
    }

    fn lacks(&self, _durability: Durability) -> Option<String> {
        None
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Engine>> {
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP_LEN_BYTES).max_dbs(TABLES as u32);
        if durability != Durability::Durable {
            // SAFETY: nothing but LMDB writes to the map, and what a power failure leaves is never
            // opened.
            unsafe { options.flags(EnvFlags::WRITE_MAP | EnvFlags::NO_SYNC) };
        }
        // SAFETY: the folder is this run's own, and it is opened once at a time.
        let env = unsafe { options.open(folder) }.map_err(failed)?;
        let transaction = env.write_txn().map_err(failed)?;
        let tables = env.create_databases_and_commit(transaction, |opener, transaction| {
            let mut table = |name| opener.create_database(transaction, Some(name));
            let tables = (table("0")?, table("1")?, table("2")?, table("3")?);
            heed::Result::Ok(CommitOrAbort::<_, ()>::Commit(tables))
        });
        let (first, second, third, fourth) = tables.map_err(failed)?.unwrap_commit();
        Ok(Box::new(Store { env, tables: [first, second, third, fourth] }))
    }
}

type Table = Database<'static, Bytes, Bytes>;

struct Store {
    env: Env,
    tables: [Table; TABLES],
}

impl Engine for Store {
    fn write(&self, work: &mut dyn FnMut(&mut dyn Records) -> Result<()>) -> Result<()> {
        let mut writing =
            Writing { transaction: self.env.write_txn().map_err(failed)?, tables: &self.tables };
        work(&mut writing)?;
        writing.transaction.commit().map_err(failed)
    }

    fn read(&self, work: &mut dyn FnMut(&dyn Reader) -> Result<()>) -> Result<()> {
        let transaction = self.env.read_txn().map_err(failed)?;
        work(&Reading { transaction: &transaction, tables: &self.tables })
    }
}

struct Reading<'a> {
    transaction: &'a RoTxn<'a>,
    tables: &'a [Table],
}

impl Reader for Reading<'_> {
    fn get(&self, table: usize, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.tables[table].get(self.transaction, key).map_err(failed)?;
        value.extend_from_slice(found.unwrap_or_default());
        Ok(found.is_some())
    }

    fn scan(&self, table: usize, from: &[u8], each: Each<'_>) -> Result<()> {
        // LMDB has no empty keys, and refuses them as bounds.
        let first = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        let bounds = (first, Bound::Unbounded);
        for record in self.tables[table].range(self.transaction, &bounds).map_err(failed)? {
            let (key, value) = record.map_err(failed)?;
            if !each(key, value)? {
                break;
            }
        }
        Ok(())
    }

    fn last(&self, table: usize, key: &mut Vec<u8>) -> Result<bool> {
        key.clear();
        let last = self.tables[table].last(self.transaction).map_err(failed)?;
        key.extend_from_slice(last.map(|(key, _)| key).unwrap_or_default());
        Ok(last.is_some())
    }
}

struct Writing<'a> {
    transaction: RwTxn<'a>,
    tables: &'a [Table],
}

impl Writing<'_> {
    fn reading(&self) -> Reading<'_> {
        Reading { transaction: &self.transaction, tables: self.tables }
    }
}

impl Reader for Writing<'_> {
    fn get(&self, table: usize, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.reading().get(table, key, value)
    }

    fn scan(&self, table: usize, from: &[u8], each: Each<'_>) -> Result<()> {
        self.reading().scan(table, from, each)
    }

    fn last(&self, table: usize, key: &mut Vec<u8>) -> Result<bool> {
        self.reading().last(table, key)
    }
}

impl Records for Writing<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.tables[table].put(&mut self.transaction, key, value).map_err(failed)
    }

    fn delete(&mut self, table: usize, key: &[u8]) -> Result<()> {
        self.tables[table].delete(&mut self.transaction, key).map(drop).map_err(failed)
    }

    fn clear(&mut self, table: usize) -> Result<()> {
        self.tables[table].clear(&mut self.transaction).map_err(failed)
    }
}

#[cold]
fn failed(error: heed::Error) -> Error {
    Error::io("peer `lmdb-raw` failed").with_source(error)
}
