//! redb: a table a table, a transaction a commit.
//!
//! A commit is synced or, with `Durability::None`, in the memory of the process until a later one is
//! synced; there is nothing in between.

use std::cell::OnceCell;
use std::ops::Bound;
use std::path::Path;

use ::redb::{
    Database, ReadOnlyTable, ReadTransaction, ReadableDatabase, ReadableTable, Table,
    TableDefinition, WriteTransaction,
};
use spinney_core::{Error, Result};

use crate::engine::{Each, Engine, EngineFactory, Reader, Records, TABLES};
use crate::system::Durability;

type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

const DEFINITIONS: [Definition; TABLES] =
    [Definition::new("0"), Definition::new("1"), Definition::new("2"), Definition::new("3")];

/// Makes databases.
pub struct Redb;

impl EngineFactory for Redb {
    fn name(&self) -> &'static str {
        "redb"
    }

    fn design(&self) -> &'static str {
        "a table of redb a table, a write transaction a commit, a read transaction a snapshot"
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        let text = match durability {
            Durability::Durable => "Immediate, the default",
            Durability::Process | Durability::None => "None",
        };
        vec![("durability".into(), text.into()), ("cache".into(), "1 GiB, the default".into())]
    }

    fn versions(&self) -> Vec<(String, String)> {
        vec![("redb".into(), env!("LAB_REDB").into())]
    }

    fn lacks(&self, durability: Durability) -> Option<String> {
        (durability == Durability::Process)
            .then(|| "its commits are synced, or lost with the process".to_owned())
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Engine>> {
        let database = Database::create(folder.join("store.redb")).map_err(failed)?;
        let transaction = database.begin_write().map_err(failed)?;
        for definition in DEFINITIONS {
            transaction.open_table(definition).map(drop).map_err(failed)?;
        }
        transaction.commit().map_err(failed)?;
        let durability = match durability {
            Durability::Durable => ::redb::Durability::Immediate,
            Durability::Process | Durability::None => ::redb::Durability::None,
        };
        Ok(Box::new(Store { database, durability }))
    }
}

struct Store {
    database: Database,
    durability: ::redb::Durability,
}

impl Engine for Store {
    fn write(&self, work: &mut dyn FnMut(&mut dyn Records) -> Result<()>) -> Result<()> {
        let mut transaction = self.database.begin_write().map_err(failed)?;
        transaction.set_durability(self.durability).map_err(failed)?;
        let mut writing = Writing { transaction: &transaction, tables: Default::default() };
        work(&mut writing)?;
        drop(writing);
        transaction.commit().map_err(failed)
    }

    fn read(&self, work: &mut dyn FnMut(&dyn Reader) -> Result<()>) -> Result<()> {
        let transaction = self.database.begin_read().map_err(failed)?;
        work(&Reading { transaction, tables: Default::default() })
    }
}

/// What has been opened of a transaction, in which a table is looked up by its name.
struct Reading {
    transaction: ReadTransaction,
    tables: [OnceCell<ReadOnlyTable<&'static [u8], &'static [u8]>>; TABLES],
}

impl Reading {
    fn table(&self, table: usize) -> Result<&ReadOnlyTable<&'static [u8], &'static [u8]>> {
        opened(&self.tables[table], || {
            self.transaction.open_table(DEFINITIONS[table]).map_err(failed)
        })
    }
}

impl Reader for Reading {
    fn get(&self, table: usize, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        get(self.table(table)?, key, value)
    }

    fn scan(&self, table: usize, from: &[u8], each: Each<'_>) -> Result<()> {
        scan(self.table(table)?, from, each)
    }

    fn last(&self, table: usize, key: &mut Vec<u8>) -> Result<bool> {
        last(self.table(table)?, key)
    }
}

struct Writing<'a> {
    transaction: &'a WriteTransaction,
    tables: [OnceCell<Table<'a, &'static [u8], &'static [u8]>>; TABLES],
}

impl<'a> Writing<'a> {
    fn table(&self, table: usize) -> Result<&Table<'a, &'static [u8], &'static [u8]>> {
        opened(&self.tables[table], || {
            self.transaction.open_table(DEFINITIONS[table]).map_err(failed)
        })
    }

    fn table_mut(&mut self, table: usize) -> Result<&mut Table<'a, &'static [u8], &'static [u8]>> {
        self.table(table)?;
        Ok(self.tables[table].get_mut().expect("it was opened"))
    }
}

impl Reader for Writing<'_> {
    fn get(&self, table: usize, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        get(self.table(table)?, key, value)
    }

    fn scan(&self, table: usize, from: &[u8], each: Each<'_>) -> Result<()> {
        scan(self.table(table)?, from, each)
    }

    fn last(&self, table: usize, key: &mut Vec<u8>) -> Result<bool> {
        last(self.table(table)?, key)
    }
}

impl Records for Writing<'_> {
    fn put(&mut self, table: usize, key: &[u8], value: &[u8]) -> Result<()> {
        self.table_mut(table)?.insert(key, value).map(drop).map_err(failed)
    }

    fn delete(&mut self, table: usize, key: &[u8]) -> Result<()> {
        self.table_mut(table)?.remove(key).map(drop).map_err(failed)
    }

    fn clear(&mut self, table: usize) -> Result<()> {
        self.tables[table].take();
        self.transaction.delete_table(DEFINITIONS[table]).map_err(failed)?;
        self.table(table).map(drop)
    }
}

fn opened<T>(cell: &OnceCell<T>, open: impl FnOnce() -> Result<T>) -> Result<&T> {
    if cell.get().is_none() {
        let table = open()?;
        return Ok(cell.get_or_init(|| table));
    }
    Ok(cell.get().expect("it is there"))
}

fn get(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &[u8],
    value: &mut Vec<u8>,
) -> Result<bool> {
    value.clear();
    let found = table.get(key).map_err(failed)?;
    if let Some(found) = &found {
        value.extend_from_slice(found.value());
    }
    Ok(found.is_some())
}

fn scan(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    from: &[u8],
    each: Each<'_>,
) -> Result<()> {
    let bounds = (Bound::Included(from), Bound::Unbounded);
    for record in table.range::<&[u8]>(bounds).map_err(failed)? {
        let (key, value) = record.map_err(failed)?;
        if !each(key.value(), value.value())? {
            break;
        }
    }
    Ok(())
}

fn last(
    table: &impl ReadableTable<&'static [u8], &'static [u8]>,
    key: &mut Vec<u8>,
) -> Result<bool> {
    key.clear();
    let last = table.last().map_err(failed)?;
    if let Some((last, _)) = &last {
        key.extend_from_slice(last.value());
    }
    Ok(last.is_some())
}

#[cold]
fn failed(error: impl Into<::redb::Error>) -> Error {
    Error::io("peer `redb` failed").with_source(error.into())
}
