//! fjall without anything on top: a keyspace a table, a batch a commit.
//!
//! A batch reads nothing, so a commit reads a snapshot, and one lock keeps other writers away until it
//! has been applied. A keyspace can be emptied at once, but not in one commit with other changes, so
//! `clear` removes record by record.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ::fjall::{
    Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode, Readable, Snapshot,
};
use spinney_core::{Error, Result};

use crate::engine::{Each, Engine, EngineFactory, Reader, Records, TABLES};
use crate::system::Durability;

/// Makes databases.
pub struct Fjall;

impl EngineFactory for Fjall {
    fn name(&self) -> &'static str {
        "fjall-raw"
    }

    fn design(&self) -> &'static str {
        "a keyspace of fjall a table, a batch a commit, one writer at a time, a snapshot a read; \
         removing all is removing each"
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        let persist = match durability {
            Durability::Durable => "SyncData with each batch",
            Durability::Process => "Buffer with each batch",
            Durability::None => "none",
        };
        vec![("persist".into(), persist.into()), ("all else".into(), "the defaults".into())]
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![("fjall".into(), env!("LAB_FJALL").into())]
    }

    fn lacks(&self, _durability: Durability) -> Option<String> {
        None
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Engine>> {
        let database = Database::builder(folder.join("store")).open().map_err(failed)?;
        let tables = (0..TABLES)
            .map(|table| database.keyspace(&table.to_string(), KeyspaceCreateOptions::default))
            .collect::<::fjall::Result<_>>()
            .map_err(failed)?;
        let persist = match durability {
            Durability::Durable => Some(PersistMode::SyncData),
            Durability::Process => Some(PersistMode::Buffer),
            Durability::None => None,
        };
        Ok(Box::new(Store { database, tables, persist, writer: Mutex::new(()) }))
    }
}

struct Store {
    database: Database,
    tables: Vec<Keyspace>,
    persist: Option<PersistMode>,
    writer: Mutex<()>,
}

impl Store {
    fn reading(&self) -> Reading<'_> {
        Reading { snapshot: self.database.snapshot(), tables: &self.tables }
    }
}

impl Engine for Store {
    fn write(&self, work: &mut dyn FnMut(&mut dyn Records) -> Result<()>) -> Result<()> {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let batch = self.database.batch().durability(self.persist);
        let mut writing = Writing { reading: self.reading(), batch };
        work(&mut writing)?;
        writing.batch.commit().map_err(failed)
    }

    fn read(&self, work: &mut dyn FnMut(&dyn Reader) -> Result<()>) -> Result<()> {
        work(&self.reading())
    }
}

struct Reading<'a> {
    snapshot: Snapshot,
    tables: &'a [Keyspace],
}

impl Reader for Reading<'_> {
    fn get(&self, table: usize, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let found = self.snapshot.get(&self.tables[table], key).map_err(failed)?;
        value.extend_from_slice(found.as_deref().unwrap_or_default());
        Ok(found.is_some())
    }

    fn scan(&self, table: usize, from: &[u8], each: Each<'_>) -> Result<()> {
        for record in self.snapshot.range(&self.tables[table], from..) {
            let (key, value) = record.into_inner().map_err(failed)?;
            if !each(&key, &value)? {
                break;
            }
        }
        Ok(())
    }

    fn last(&self, table: usize, key: &mut Vec<u8>) -> Result<bool> {
        key.clear();
        let Some(last) = self.snapshot.last_key_value(&self.tables[table]) else {
            return Ok(false);
        };
        key.extend_from_slice(&last.key().map_err(failed)?);
        Ok(true)
    }
}

struct Writing<'a> {
    reading: Reading<'a>,
    batch: OwnedWriteBatch,
}

impl Reader for Writing<'_> {
    fn get(&self, table: usize, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.reading.get(table, key, value)
    }

    fn scan(&self, table: usize, from: &[u8], each: Each<'_>) -> Result<()> {
        self.reading.scan(table, from, each)
    }

    fn last(&self, table: usize, key: &mut Vec<u8>) -> Result<bool> {
        self.reading.last(table, key)
    }
}

impl Records for Writing<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.batch.insert(&self.reading.tables[table], key, value);
        Ok(())
    }

    fn delete(&mut self, table: usize, key: &[u8]) -> Result<()> {
        self.batch.remove(&self.reading.tables[table], key);
        Ok(())
    }

    fn clear(&mut self, table: usize) -> Result<()> {
        let keyspace = &self.reading.tables[table];
        for record in self.reading.snapshot.iter(keyspace) {
            self.batch.remove(keyspace, record.key().map_err(failed)?);
        }
        Ok(())
    }
}

#[cold]
fn failed(error: ::fjall::Error) -> Error {
    Error::io("peer `fjall-raw` failed").with_source(error)
}
