//! SQLite in the suite `throughput`.
//!
//! Design: a row an item, its position the integer primary key, its texts as one JSON text. The length is
//! one more than the greatest key, which SQLite finds without counting; a text of an item is `->>`. Clients
//! have a connection each and wait for each other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use spinney_core::Result;

use super::{connect, failed, text};
use crate::system::Durability;
use crate::throughput::{Array as Contract, Export, Item};

/// What a report says of it.
pub const DESIGN: &str = "a row an item: position as the primary key, JSON text; the length is one more \
    than the greatest key; prepared statements, one transaction a push; a connection a client";

/// Its table.
pub const SCHEMA: &str = "CREATE TABLE items(position INTEGER PRIMARY KEY, item TEXT NOT NULL);";
/// How long a client waits for the others.
const BUSY_MAX: Duration = Duration::from_secs(30);

/// A client of a database with a row an item.
pub struct Array {
    database: Connection,
    folder: PathBuf,
    durability: Durability,
}

impl Array {
    /// A connection to the database in `folder`.
    ///
    /// # Errors
    /// Those of SQLite.
    pub fn new(folder: &Path, durability: Durability) -> Result<Array> {
        let database = connect(folder, durability)?;
        database.busy_timeout(BUSY_MAX).map_err(failed)?;
        Ok(Array { database, folder: folder.to_owned(), durability })
    }
}

impl Contract for Array {
    fn push(&mut self, item: &Item) -> Result<()> {
        let mut json = Vec::new();
        item.write_json(&mut json);
        let json = String::from_utf8(json).expect("JSON is UTF-8");
        let sql = "INSERT INTO items SELECT coalesce(max(position) + 1, 0), ?1 FROM items";
        self.database.prepare_cached(sql).and_then(|mut it| it.execute([json])).map_err(failed)?;
        Ok(())
    }

    fn count(&mut self) -> Result<u64> {
        let sql = "SELECT coalesce(max(position) + 1, 0) FROM items";
        let mut select = self.database.prepare_cached(sql).map_err(failed)?;
        let len: i64 = select.query_row([], |row| row.get(0)).map_err(failed)?;
        Ok(len as u64)
    }

    fn text(&mut self, position: usize) -> Result<String> {
        let sql = "SELECT item ->> ?1 FROM items WHERE position = 0";
        let mut select = self.database.prepare_cached(sql).map_err(failed)?;
        select.query_row([position as i64], |row| row.get(0)).map_err(failed)
    }

    fn clear(&mut self) -> Result<()> {
        self.database.execute_batch("DELETE FROM items").map_err(failed)
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let sql = "SELECT item FROM items ORDER BY position";
        let mut select = self.database.prepare_cached(sql).map_err(failed)?;
        let mut rows = select.query([]).map_err(failed)?;
        let mut export = Export::begin(out);
        while let Some(row) = rows.next().map_err(failed)? {
            export.item(text(row, 0)?.as_bytes());
        }
        export.end();
        Ok(())
    }

    fn client(&self) -> Result<Box<dyn Contract + Send>> {
        Ok(Box::new(Array::new(&self.folder, self.durability)?))
    }
}
