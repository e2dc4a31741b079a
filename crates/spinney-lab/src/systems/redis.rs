//! The peer `redis-direct`: Redis itself, without spinney, on a server that the lab starts.
//!
//! Design: the hash `lst` has a field per item, named by its keys, whose value is `=` and the text of
//! `l`, or empty; the sorted set `usr-lst` has each `k` by a rank with gaps of 2^20, and the hash `usr`
//! its value; the key `cont` is the presence of `cont`. A commit is one command, one script or one
//! `MULTI` in a pipeline. Fields of a hash have no order, so there is no range of items. What the model
//! forbids cannot be stored; who subscribed is called with what each commit changes, and reads the items
//! that a removal of all of them removes.
//! `durable` syncs the log before it answers; `process` writes it, which outlives the server; at `none`
//! there is no log.

mod array;
mod documents;
mod rows;
pub(super) mod server;

use std::path::Path;
use std::sync::Arc;

use ::redis::{Connection, FromRedisValue, Pipeline, RedisError, Script};
use spinney_core::{Error, Result};

use crate::documents::Collection;
use crate::server::Server;
use crate::system::{Delivery, Durability, Effect, Factory, Kind, System, Told, Transport};
use crate::throughput::Array;

/// Fields by member name.
const LST: &str = "lst";
/// `k` by rank.
const USR_LST: &str = "usr-lst";
/// Values by `k`.
const USR: &str = "usr";
/// Whether `cont` is there.
const CONT: &str = "cont";

/// Distance between the ranks of appended entries.
const GAP: u64 = 1 << 20;

/// Fields of one command.
const CHUNK: usize = 1_000;

const DESIGN: &str = "a server of its own on a Unix socket; the hash `lst` has a field per item, the \
    sorted set `usr-lst` each `k` by a rank with gaps, the hash `usr` its value, the key `cont` is the \
    presence of `cont`; a commit is one command, one script or one MULTI in a pipeline";

/// Makes databases on servers of their own.
pub struct Redis;

impl Factory for Redis {
    fn name(&self) -> &str {
        "redis-direct"
    }

    fn transport(&self) -> Transport {
        Transport::Socket
    }

    fn kind(&self) -> Kind {
        Kind::Peer
    }

    fn design(&self) -> &str {
        DESIGN
    }

    fn design_in(&self, suite: &str) -> &str {
        match suite {
            "documents" => documents::DESIGN,
            "throughput" => array::DESIGN,
            _ => DESIGN,
        }
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        server::settings(durability)
    }

    fn versions(&self) -> Vec<(String, String)> {
        server::versions()
    }

    fn lacks(&self, _durability: Durability) -> Option<String> {
        server::lacks()
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn System>> {
        Ok(Box::new(Store {
            link: Link::start(folder, durability)?,
            edit: Script::new(include_str!("redis/edit.lua")),
            insert: Script::new(include_str!("redis/insert.lua")),
            told: Told::default(),
        }))
    }

    fn collection(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Collection>> {
        Ok(Box::new(documents::Documents::new(Link::start(folder, durability)?)))
    }

    fn array(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Array>> {
        Ok(Box::new(array::Array::new(Link::start(folder, durability)?)))
    }
}

/// A connection to a server of the lab, which ends with the last of them.
struct Link {
    connection: Connection,
    server: Arc<Server>,
    /// Whether nothing is in the folder.
    is_in_memory: bool,
}

impl Link {
    fn start(folder: &Path, durability: Durability) -> Result<Link> {
        let server = server::start(folder, durability)?;
        Ok(Link {
            connection: server::connect(&server).map_err(failed)?,
            server: Arc::new(server),
            is_in_memory: durability == Durability::None,
        })
    }

    /// Another connection to the same server.
    fn another(&self) -> Result<Link> {
        Ok(Link {
            connection: server::connect(&self.server).map_err(failed)?,
            server: Arc::clone(&self.server),
            is_in_memory: self.is_in_memory,
        })
    }

    fn ask<T: FromRedisValue>(&mut self, command: &::redis::Cmd) -> Result<T> {
        command.query(&mut self.connection).map_err(failed)
    }

    fn ask_all<T: FromRedisValue>(&mut self, commands: &Pipeline) -> Result<T> {
        commands.query(&mut self.connection).map_err(failed)
    }

    /// What the server holds, where nothing is in the folder.
    fn memory_bytes(&self) -> Option<u64> {
        self.server.memory_bytes().filter(|_| self.is_in_memory)
    }
}

struct Store {
    link: Link,
    edit: Script,
    insert: Script,
    /// What its subscriber was given.
    told: Told,
}

impl Store {
    fn ask<T: FromRedisValue>(&mut self, command: &::redis::Cmd) -> Result<T> {
        self.link.ask(command)
    }

    fn ask_all<T: FromRedisValue>(&mut self, commands: &Pipeline) -> Result<T> {
        self.link.ask_all(commands)
    }

    /// One commit that puts values into hashes, and `k`s under ranks.
    fn put(
        &mut self,
        items: &[(String, String)],
        entries: &[(usize, String)],
        first_rank: u64,
    ) -> Result<Effect> {
        let mut commit = ::redis::pipe();
        commit.atomic().cmd("SETNX").arg(CONT).arg(1);
        for chunk in items.chunks(CHUNK) {
            commit.cmd("HSET").arg(LST).arg(chunk).ignore();
        }
        let ranks: Vec<(u64, usize)> = (first_rank..)
            .step_by(GAP as usize)
            .zip(entries)
            .map(|(rank, (k, _))| (rank, *k))
            .collect();
        for chunk in ranks.chunks(CHUNK) {
            commit.cmd("ZADD").arg(USR_LST).arg(chunk).ignore();
        }
        for chunk in entries.chunks(CHUNK) {
            commit.cmd("HSET").arg(USR).arg(chunk).ignore();
        }
        let (is_new,): (u64,) = self.ask_all(&commit)?;
        let item_nodes: u64 = items.iter().map(|(_, value)| 3 + leaf_nodes(value)).sum();
        let entry_nodes: u64 = entries.iter().map(|(_, value)| 2 + leaf_nodes(value)).sum();
        Ok(self.told.tell(Delivery::created(is_new + item_nodes + entry_nodes)))
    }

    /// Reads each item for who subscribed, and counts its nodes; without one, tells whether there is any.
    fn item_nodes(&mut self) -> Result<u64> {
        if !self.told.is_heard() {
            return self.ask(::redis::cmd("EXISTS").arg(LST));
        }
        let items: Vec<(String, String)> = self.ask(::redis::cmd("HGETALL").arg(LST))?;
        Ok(items.iter().map(|(_, value)| 3 + leaf_nodes(value)).sum())
    }

    /// Each `k` with its value, in the user's order.
    fn entries(&mut self) -> Result<Vec<(usize, String)>> {
        let keys: Vec<usize> = self.ask(::redis::cmd("ZRANGE").arg(USR_LST).arg(0).arg(-1))?;
        let mut values: Vec<Vec<String>> = Vec::new();
        if !keys.is_empty() {
            let mut reads = ::redis::pipe();
            for chunk in keys.chunks(CHUNK) {
                reads.cmd("HMGET").arg(USR).arg(chunk);
            }
            values = self.ask_all(&reads)?;
        }
        Ok(keys.into_iter().zip(values.into_iter().flatten()).collect())
    }
}

/// The value of an item or entry with this `l`.
fn value(leaf: Option<&str>) -> String {
    leaf.map_or_else(String::new, |leaf| format!("={leaf}"))
}

/// The `l` of a value.
fn leaf(value: &str) -> Option<&str> {
    value.strip_prefix('=')
}

fn leaf_nodes(value: &str) -> u64 {
    u64::from(!value.is_empty())
}

fn missing() -> Error {
    Error::not_found("the server does not hold the entry; load the document first")
}

#[cold]
fn failed(error: RedisError) -> Error {
    Error::io("peer `redis-direct` failed").with_source(error)
}
