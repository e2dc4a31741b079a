//! Redis itself in the suite `throughput`.
//!
//! Design: a list whose elements are items as JSON texts: `RPUSH`, then `LLEN`, a request each. An item is one
//! value, of which no part is read. Clients have a connection each.

use spinney_core::{Error, Result};

use super::{Link, server};
use crate::throughput::{Array as Contract, Export, Item};

/// What a report says of it.
pub const DESIGN: &str = "a server of its own on a Unix socket; a list of items as JSON texts: RPUSH, LLEN, a \
    request each; a connection a client";

const LIST: &str = "array";

/// A client of a server with one list.
pub struct Array {
    link: Link,
}

impl Array {
    /// A server that holds nothing.
    pub fn new(link: Link) -> Array {
        Array { link }
    }
}

impl Contract for Array {
    fn push(&mut self, item: &Item) -> Result<()> {
        let mut json = Vec::new();
        item.write_json(&mut json);
        self.link.ask(::redis::cmd("RPUSH").arg(LIST).arg(json))
    }

    fn count(&mut self) -> Result<u64> {
        self.link.ask(::redis::cmd("LLEN").arg(LIST))
    }

    fn text(&mut self, _position: usize) -> Result<String> {
        Err(Error::unsupported("an item is one value, of which no part is read"))
    }

    fn clear(&mut self) -> Result<()> {
        self.link.ask(&::redis::cmd("FLUSHDB"))
    }

    fn export(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let mut export = Export::begin(out);
        for position in 0..self.count()? {
            let command = ::redis::cmd("LINDEX").arg(LIST).arg(position).clone();
            let item: Vec<u8> = self.link.ask(&command)?;
            export.item(&item);
        }
        export.end();
        Ok(())
    }

    fn transient(&self) -> Option<&'static str> {
        self.link.is_in_memory.then_some(server::FORGETS)
    }

    fn client(&self) -> Result<Box<dyn Contract + Send>> {
        Ok(Box::new(Array { link: self.link.another()? }))
    }

    fn processes(&self) -> Vec<u32> {
        self.link.server.processes()
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.link.memory_bytes()
    }
}
