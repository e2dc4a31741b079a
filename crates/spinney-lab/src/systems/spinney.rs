//! Spinney itself, a factory a backend, through its public interface and with its defaults.
//!
//! Design: the document is the tree `/running`. Each read takes a fresh snapshot and parses its
//! path. Each write is one transaction; its paths are built and parsed inside the clock. A batch is
//! one `Value`, built in the clock, where `lst` is absent, and item by item where it is not. The
//! ordered list is a list of entries, and keeping `k` unique is left to the writer: it holds the
//! keys that it knows in a hash set, filled from the stored list, for the time of the transaction;
//! where the configuration is judged, the schema does. Operational state is pushed by a connection.
//! Nothing decoded is kept, so `cached` rows do the same as the others. The store reclaims removed
//! subtrees by itself in the background; `settle` waits for that.

mod array;
mod documents;
mod edit;
mod opened;
mod pushing;
mod shape;
mod store;
mod subscriber;

use std::path::Path;

use spinney::OpenOptions;
use spinney_core::{Error, Result};

use super::redis::server;
use crate::documents::Collection;
use crate::system::{Durability, Factory, Kind, System, Transport};
use crate::throughput::Array;
use documents::Documents;
use opened::{Opened, Slot};
use store::Store;

const DESIGN: &str = "the tree `/running`; reads: a fresh snapshot, a path text; writes: one \
    transaction of path texts and structs; the list is user-ordered, the writer keeps `k` unique with a hash \
    set; nothing decoded is kept; reclaim runs in the background";

/// The backend whose server the lab can start.
const REDIS: &str = "redis";

/// Why a store in this process lacks what survives it.
const IN_MEMORY: &str = "it lives in memory";

/// The tree that holds the document.
const TREE: &str = "/running";

/// Makes stores on one backend.
pub struct Spinney {
    backend: Backend,
}

#[derive(Clone, PartialEq, Eq)]
enum Backend {
    Memory,
    Lmdb,
    Fjall,
    Json,
    Server {
        name: &'static str,
        /// Where stores may be made, `bench-1` and so on; they must be empty, and are emptied again.
        url: Option<String>,
    },
}

impl Spinney {
    /// Stores that live in this process.
    pub fn memory() -> Spinney {
        Spinney { backend: Backend::Memory }
    }

    /// Stores in a folder, on LMDB.
    pub fn lmdb() -> Spinney {
        Spinney { backend: Backend::Lmdb }
    }

    /// Stores in a folder, on fjall.
    pub fn fjall() -> Spinney {
        Spinney { backend: Backend::Fjall }
    }

    /// Stores on a server; without a URL the lab starts one of Redis, and any other is skipped.
    pub fn server(name: &'static str, url: Option<&str>) -> Spinney {
        Spinney { backend: Backend::Server { name, url: url.map(str::to_owned) } }
    }

    /// Documents in memory with a journal, beside a JSON file in a folder.
    pub fn json() -> Spinney {
        Spinney { backend: Backend::Json }
    }
}

impl Spinney {
    /// The store in a folder; on a server that was named, a new, empty one.
    fn opened(&self, folder: &Path, durability: Durability) -> Result<Opened> {
        let open = |url: &str| OpenOptions::new().durability(durability.into()).open(url);
        let Backend::Server { name, url } = &self.backend else {
            let url = self.url(folder).ok_or_else(|| Error::not_found("it has no place"))?;
            let store = open(&url)?;
            let in_memory = self.backend == Backend::Memory;
            let transient = in_memory.then_some(IN_MEMORY);
            return Ok(Opened { store, in_memory, transient, slot: None, server: None });
        };
        let Some(url) = url else {
            if *name != REDIS {
                return Err(Error::unsupported(no_server(name)));
            }
            let server = server::start(folder, durability)?;
            let store = open(&format!("{}?store=bench", server::url(server.sockets())))?;
            let transient = (durability == Durability::None).then_some(server::FORGETS);
            return Ok(Opened {
                store,
                in_memory: false,
                transient,
                slot: None,
                server: Some(server),
            });
        };
        let slot = Slot::take();
        let separator = if url.contains('?') { '&' } else { '?' };
        let url = format!("{url}{separator}store=bench-{}", slot.number());
        let store = open(&url)?;
        if store.read()?.count("")? != Some(0) {
            return Err(Error::already_exists(format!(
                "the store `{}` is not empty; the lab writes and empties it",
                spinney::network::redacted(&url)
            )));
        }
        let transient = Some("a server that was named is not stopped");
        Ok(Opened { store, in_memory: false, transient, slot: Some(slot), server: None })
    }

    /// What a server that was named says that it is.
    fn server_named(&self) -> Option<String> {
        let Backend::Server { url: Some(_), .. } = &self.backend else { return None };
        // One that cannot be asked is told of by the rows.
        let opened = self.opened(Path::new(""), Durability::Process).ok()?;
        let facts = opened.store.stats().ok()?;
        facts.into_iter().find(|(name, _)| name == "server").map(|(_, server)| server)
    }

    /// Whether its stores are on a server that the lab starts.
    fn starts_redis(&self) -> bool {
        matches!(&self.backend, Backend::Server { name, url: None } if *name == REDIS)
    }
}

fn no_server(name: &str) -> String {
    format!("no server was named; write `{name}=URL`")
}

impl Factory for Spinney {
    fn name(&self) -> &str {
        match self.backend {
            Backend::Memory => "memory",
            Backend::Lmdb => "lmdb",
            Backend::Fjall => "fjall",
            Backend::Json => "json",
            Backend::Server { name, .. } => name,
        }
    }

    fn transport(&self) -> Transport {
        match self.backend {
            Backend::Server { .. } => Transport::Socket,
            _ => Transport::Embedded,
        }
    }

    fn kind(&self) -> Kind {
        Kind::Backend
    }

    fn design(&self) -> &str {
        DESIGN
    }

    fn settings(&self, durability: Durability) -> Vec<(String, String)> {
        let answer = match (&self.backend, durability) {
            (Backend::Memory, _) => "in memory",
            (Backend::Server { .. }, Durability::Durable) => "the server says that it is durable",
            (Backend::Server { .. }, _) => "the server has it",
            (_, Durability::None) => "staged in memory, written and synced from 50 ms later on",
            (_, Durability::Process) => "written to the journal, synced from 50 ms later on",
            _ => "synced",
        };
        let mut settings = vec![("answered when".into(), answer.into())];
        if self.starts_redis() {
            settings.extend(server::settings(durability));
        }
        settings.extend(self.server_named().map(|server| ("server".into(), server)));
        settings
    }

    fn versions(&self) -> Vec<(String, String)> {
        if self.starts_redis() { server::versions() } else { Vec::new() }
    }

    fn lacks(&self, durability: Durability) -> Option<String> {
        match (&self.backend, durability) {
            _ if self.starts_redis() => server::lacks(),
            (Backend::Server { name, url: None }, _) => Some(no_server(name)),
            (Backend::Memory, Durability::Durable | Durability::Process) => {
                Some(IN_MEMORY.to_owned())
            }
            _ => None,
        }
    }

    fn url(&self, folder: &Path) -> Option<String> {
        Some(match &self.backend {
            Backend::Memory => "memory:".to_owned(),
            Backend::Lmdb => format!("lmdb:{}", folder.display()),
            Backend::Fjall => format!("fjall:{}", folder.display()),
            Backend::Json => format!("json:{}", folder.join("store.json").display()),
            Backend::Server { .. } => return None,
        })
    }

    fn open(&self, folder: &Path, durability: Durability) -> Result<Box<dyn System>> {
        Ok(Box::new(Store::new(self.opened(folder, durability)?, durability)?))
    }

    fn collection(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Collection>> {
        Ok(Box::new(Documents::new(self.opened(folder, durability)?)))
    }

    fn array(&self, folder: &Path, durability: Durability) -> Result<Box<dyn Array>> {
        Ok(Box::new(array::Array::new(self.opened(folder, durability)?)?))
    }

    fn design_in(&self, suite: &str) -> &str {
        match suite {
            "documents" => documents::DESIGN,
            "throughput" => array::DESIGN,
            _ => DESIGN,
        }
    }
}
