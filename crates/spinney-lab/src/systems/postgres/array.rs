//! PostgreSQL in the suite `throughput`.
//!
//! Design: a row an item as JSONB, its position from a sequence; the length is one more than the greatest
//! position, which the primary key finds. Clients have a connection each.

use spinney_core::{Error, Result};
use std::sync::Arc;

use super::{Link, failed};
use crate::throughput::{Array as Contract, Export, Item};

/// What a report says of it.
pub const DESIGN: &str = "a cluster of its own on a Unix socket; a row an item as JSONB, its position from a \
    sequence and the primary key; the length is one more than the greatest; a connection a client";

/// Its table.
pub const SCHEMA: &str = "CREATE TABLE items(position bigint GENERATED ALWAYS AS IDENTITY \
    (MINVALUE 0 START 0) PRIMARY KEY, item jsonb NOT NULL)";

/// A client of a cluster with a row an item.
pub struct Array {
    link: Link,
}

impl Array {
    /// A cluster without items.
    pub fn new(link: Link) -> Array {
        Array { link }
    }
}

impl Contract for Array {
    fn push(&mut self, item: &Item) -> Result<()> {
        let mut json = Vec::new();
        item.write_json(&mut json);
        let json = String::from_utf8(json).expect("JSON is UTF-8");
        self.link.run("INSERT INTO items(item) VALUES ($1::text::jsonb)", &[&json]).map(drop)
    }

    fn count(&mut self) -> Result<u64> {
        let sql = "SELECT coalesce(max(position) + 1, 0) FROM items";
        let len: i64 = self.link.row(sql, &[])?.get(0);
        Ok(len as u64)
    }

    fn text(&mut self, position: usize) -> Result<String> {
        let sql = "SELECT item ->> $1::int FROM items WHERE position = 0";
        let text: Option<String> = self.link.row(sql, &[&(position as i32)])?.get(0);
        text.ok_or_else(|| Error::not_found("the database does not hold what was put there"))
    }

    fn clear(&mut self) -> Result<()> {
        self.link.client.batch_execute("TRUNCATE items RESTART IDENTITY").map_err(failed)
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let mut export = Export::begin(out);
        for position in 0..self.count()? as i64 {
            // One after the other: together they are more than a driver keeps well.
            let sql = "SELECT item::text FROM items WHERE position = $1";
            let row = self.link.row(sql, &[&position])?;
            export.item(row.get::<_, &str>(0).as_bytes());
        }
        export.end();
        Ok(())
    }

    fn client(&self) -> Result<Box<dyn Contract + Send>> {
        Ok(Box::new(Array { link: Link::to(Arc::clone(&self.link.server))? }))
    }

    fn processes(&self) -> Vec<u32> {
        self.link.server.processes()
    }
}
