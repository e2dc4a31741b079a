//! Stores on a Redis Cluster: each tree in one slot, as a store of its own, and a catalogue of their
//! names in another one. Why is in
//! [decision 23](../../../../../docs/decisions/0023-redis-cluster.md).

use std::fmt;
use std::sync::Arc;

use spinney_core::backend::{Backend, Capabilities};
use spinney_core::{Error, ErrorKind, Result};

use super::address::Address;
use super::failure::unreached;
use super::link::Links;
use super::servers::Servers;
use super::settings::Settings;
use super::{CAPABILITIES, FORMAT, Options, Redis, durable, scripts};
use crate::backends::no_store;
use crate::forest::Trees;
use crate::network::server::Failure;
use crate::network::{Network, ask_plainly};

/// What a store on a cluster can do.
const APART: Capabilities = Capabilities { multi_tree_commit: false, ..CAPABILITIES };

/// A store on a Redis Cluster.
pub struct Cluster {
    address: Address,
    servers: Arc<Servers>,
    /// To the catalogue.
    links: Links,
    options: Options,
}

impl Cluster {
    /// Connects to the cluster that a `redis+cluster:` or `rediss+cluster:` URL names. Which trees there
    /// are is looked for when it is asked, so masters that are down keep nobody from those that are not.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed URL and for a server that is no part of a cluster, `Denied` for a
    /// wrong password, `Io` and `Busy` where no server can be reached.
    pub fn open(url: &str, options: Options) -> Result<Cluster> {
        let address = Address::parse(url)?;
        if !address.is_cluster {
            return Err(Error::invalid_input(format!("{address}: it is no `redis+cluster:` URL")));
        }
        let servers = Arc::new(Servers::new(&address, options.network.timeout)?);
        servers.ask_for_slots().map_err(|error| super::into_error(unreached(&address, &error)))?;
        let links = Links::new(address.of_catalogue(), Arc::clone(&servers));
        Ok(Cluster { address, servers, links, options })
    }

    /// The one tree that the URL names, if it does.
    pub fn only_tree(&self) -> Option<&str> {
        self.address.tree.as_deref()
    }

    /// Connects to a tree; `None` where there is none and none may be made.
    ///
    /// # Errors
    /// As [`Redis::open`].
    pub fn connect(&self, name: &str, create: bool) -> Result<Option<Redis>> {
        // A tree that exists needs no catalogue, whose master may be down.
        let found = self.try_connect(name, false)?;
        // A name is not listed where its tree may not be made.
        let links = self.links_to(name);
        let durable = || {
            ask_plainly(self.options.network.patience, || durable(&links, &Settings::read(&links)?))
        };
        let options = Options { create, ..self.options };
        if found.is_some() || !options.may_make(durable)? {
            return Ok(found);
        }
        self.list(name)?;
        self.try_connect(name, true)
    }

    fn links_to(&self, name: &str) -> Links {
        Links::new(self.address.of_tree(name), Arc::clone(&self.servers))
    }

    fn try_connect(&self, name: &str, create: bool) -> Result<Option<Redis>> {
        let options = Options { create, ..self.options };
        let links = Arc::new(self.links_to(name));
        ask_plainly(self.options.network.patience, || {
            match Redis::connect(Arc::clone(&links), options) {
                Ok(redis) => Ok(Some(redis)),
                Err(Failure::Refused(error)) if error.kind() == ErrorKind::NotFound => Ok(None),
                Err(failure) => Err(failure),
            }
        })
    }

    /// Puts a name into the catalogue.
    fn list(&self, name: &str) -> Result<()> {
        let create = if self.options.create { "create" } else { "" };
        self.catalogue(&scripts::LIST, &[FORMAT.as_bytes(), name.as_bytes(), create.as_bytes()])
            .map(drop)
    }

    /// Runs a script on the catalogue; returns the names that it answers.
    fn catalogue(&self, script: &scripts::Script, args: &[&[u8]]) -> Result<Vec<String>> {
        let keys = ["forest", "trees"].map(|part| self.links.address.key(part));
        let mut told = ask_plainly(self.options.network.patience, || {
            self.links.run_once(script, &keys, args)
        })?;
        let mut words = Vec::new();
        while told.len() > 0 {
            words.push(String::from_utf8_lossy(&told.bytes()?.unwrap_or_default()).into_owned());
        }
        let address = &self.address;
        let word = || words.first().cloned().unwrap_or_default();
        match told.status() {
            b"ok" => Ok(words),
            b"absent" => Err(no_store(address)),
            b"foreign" => Err(Error::invalid_input(format!(
                "{address}: the key `{}` holds something else than a store; nothing was changed; give the store \
                 another name, as in `?store=NAME`",
                word()
            ))),
            b"format" => Err(Error::unsupported(format!(
                "{address}: the store has the format `{}`, this build knows `{FORMAT}`; use a newer spinney",
                word()
            ))),
            _ => Err(told.unexpected()),
        }
    }
}

impl Trees for Cluster {
    fn capabilities(&self) -> &Capabilities {
        &APART
    }

    fn names(&self) -> Result<Vec<String>> {
        match self.catalogue(&scripts::TREES, &[FORMAT.as_bytes()]) {
            // It is made with the first tree.
            Err(error)
                if error.kind() == ErrorKind::NotFound
                    && self.options.create
                    && !self.options.read_only =>
            {
                Ok(Vec::new())
            }
            names => names,
        }
    }

    fn open(&self, name: &str, create: bool) -> Result<Option<Arc<dyn Backend>>> {
        let redis = self.connect(name, create)?;
        Ok(redis
            .map(|redis| -> Arc<dyn Backend> { Arc::new(Network::opened(redis, &self.options)) }))
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        let names = self.names()?;
        let mut facts = vec![
            ("backend".to_owned(), "redis+cluster".to_owned()),
            ("address".to_owned(), self.address.to_string()),
        ];
        for (master, slots) in self.servers.masters() {
            let is_there = |name: &&String| {
                let slot = self.address.of_tree(name).slot();
                self.servers.master(slot).is_ok_and(|found| found == master)
            };
            let trees = names.iter().filter(is_there).count();
            facts
                .push((format!("master {master}"), format!("{trees} trees listed, {slots} slots")));
        }
        Ok(facts)
    }
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}
