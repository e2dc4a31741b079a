//! Requests of a store to the server that has it, and scripts run there.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use redis::{Connection, ConnectionAddr, RedisError, RedisResult, Value};
use spinney_core::Error;

use super::address::Address;
use super::failure::{failure, is_denied, unreached};
use super::reply::Told;
use super::scripts::{self, Script};
use super::servers::Servers;
use crate::network::server::{Failure, Reply};

/// How often a request is sent on to another master at once.
const REDIRECTIONS_MAX: usize = 5;

/// The parts of a store, each a key, in the order in which the scripts take them.
const PARTS: [&str; 10] = [
    "meta",
    "keys",
    "values",
    "undo",
    "undone",
    "leases",
    "ends",
    "changed",
    "commits",
    "commits-before",
];

/// The way to the server of a store, or of a tree of one on a cluster.
pub(super) struct Links {
    pub address: Address,
    servers: Arc<Servers>,
    slot: u16,
    keys: Vec<String>,
    /// The run of the server that was asked last.
    run: Mutex<String>,
}

/// A connection, and which run of the server it leads to.
pub(super) struct Link {
    pub connection: Connection,
    pub server: ConnectionAddr,
    run: String,
}

/// A store, and the server that has it.
struct Place<'p>(&'p Links, &'p ConnectionAddr);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.address.fmt(f)?;
        if self.0.servers.is_cluster() {
            write!(f, ", master {}", self.1)?;
        }
        Ok(())
    }
}

impl Links {
    /// Asks nobody yet.
    pub fn new(address: Address, servers: Arc<Servers>) -> Links {
        let keys = PARTS.map(|part| address.key(part)).into();
        Links { slot: address.slot(), address, servers, keys, run: Mutex::default() }
    }

    /// The keys that the store consists of.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Which run of the server was asked last.
    pub fn run(&self) -> String {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the last request to the server was answered.
    pub fn is_connected(&self) -> bool {
        self.servers.is_connected(self.slot)
    }

    /// The channel that tells of commits.
    pub fn channel(&self) -> String {
        self.address.key("news")
    }

    /// Runs the script that makes or finds the store, on a connection that is kept.
    pub fn open_store(&self, format: &str, new_id: &str, create: bool) -> Reply<Told> {
        self.with_link(|link| {
            let (script, create) = match create {
                true => (&scripts::OPEN, "create"),
                false => (&scripts::OPEN_EXISTING, ""),
            };
            let run = link.run.clone();
            let args = [format, new_id, &run, create].map(str::as_bytes);
            link.run(script, &self.keys, &args)
        })
    }

    /// Runs a script of a store. Where nothing may be written, since the server cannot save its data or the user may
    /// only read, it runs `instead`, if there is one.
    pub fn call(
        &self,
        store: &str,
        script: &Script,
        args: &[&[u8]],
        instead: Option<(&Script, &[&[u8]])>,
    ) -> Reply<Told> {
        let told = self.with_link(|link| {
            let mut is_new_run = false;
            loop {
                let told = match link.run_for(store, script, &self.keys, args) {
                    Err(error) if error.code() == Some("MISCONF") || is_denied(&error) => {
                        let (script, args) = instead.ok_or(error)?;
                        link.run_for(store, script, &self.keys, args)?
                    }
                    told => told?,
                };
                if told.status() != b"run" || is_new_run {
                    return Ok(told);
                }
                link.run_for(store, &scripts::BEGIN, &self.keys, &[])?;
                is_new_run = true;
            }
        })?;
        match told.status() {
            b"gone" => {
                let text = "the store that was open is not there any more: the server was started without its data, \
                            or somebody deleted it; open it again to see what there is";
                Err(Failure::Refused(Error::closed(format!("{}: {text}", self.address))))
            }
            b"run" => {
                let text = "the server started anew again and again";
                Err(Failure::Undone(Error::io(format!("{}: {text}", self.address))))
            }
            _ => Ok(told),
        }
    }

    /// Runs a plain command.
    pub fn command(&self, words: &[&str]) -> Reply<Value> {
        self.try_command(words)?.map_err(|error| failure(&self.address, &error))
    }

    /// As [`Links::command`], with what the server says against it.
    pub fn try_command(&self, words: &[&str]) -> Reply<RedisResult<Value>> {
        self.with_link(|link| {
            let mut command = redis::cmd(words[0]);
            command.arg(&words[1..]);
            match command.query(&mut link.connection) {
                Err(error) if !is_of_server(&error) || error.is_cluster_error() => Err(error),
                answered => Ok(answered),
            }
        })
    }

    /// Runs a script that needs no store.
    pub fn run_once(&self, script: &Script, keys: &[String], args: &[&[u8]]) -> Reply<Told> {
        self.with_link(|link| link.run(script, keys, args))
    }

    /// A connection of its own, for what blocks it.
    pub fn connect(&self) -> RedisResult<Connection> {
        let server = self.servers.master(self.slot)?;
        self.servers.connect(&server).inspect_err(|_| self.servers.lost(&server))
    }

    fn with_link<T>(&self, mut request: impl FnMut(&mut Link) -> RedisResult<T>) -> Reply<T> {
        for _ in 0..REDIRECTIONS_MAX {
            let server = self.servers.master(self.slot);
            let server = server.map_err(|error| unreached(&self.address, &error))?;
            let lost = |error: &RedisError| {
                if !is_of_server(error) {
                    self.servers.lost(&server);
                }
            };
            let mut link = self.servers.link(&server).map_err(|error| {
                lost(&error);
                unreached(&Place(self, &server), &error)
            })?;
            self.run.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&link.run);
            match request(&mut link) {
                Ok(answer) => {
                    self.servers.give_back(link);
                    return Ok(answer);
                }
                Err(error) if self.servers.is_cluster() && error.code() == Some("MOVED") => {
                    self.servers.give_back(link);
                    self.servers.moved(&error, &server);
                }
                Err(error) => {
                    if is_of_server(&error) {
                        self.servers.give_back(link);
                    }
                    // Another master may take over.
                    if error.is_cluster_error() {
                        self.servers.forget_slots();
                    }
                    lost(&error);
                    return Err(failure(&Place(self, &server), &error));
                }
            }
        }
        let text =
            "masters send the request from one to the other; the cluster is being rearranged";
        Err(Failure::Undone(Error::busy(format!("{}: {text}", self.address))))
    }
}

/// Whether the server said it, so that the connection can be used further.
pub(super) fn is_of_server(error: &RedisError) -> bool {
    matches!(error.kind(), redis::ErrorKind::Server(_) | redis::ErrorKind::Extension)
}

impl Link {
    pub fn open(mut connection: Connection, server: ConnectionAddr) -> RedisResult<Link> {
        let facts: String = redis::cmd("INFO").arg("server").query(&mut connection)?;
        let run = fact(&facts, "run_id").unwrap_or_default().to_owned();
        Ok(Link { connection, server, run })
    }

    fn run_for(
        &mut self,
        store: &str,
        script: &Script,
        keys: &[String],
        args: &[&[u8]],
    ) -> RedisResult<Told> {
        // Who writes nothing reads what there is, whichever run it is of.
        let run = if script.writes { self.run.clone() } else { String::new() };
        let args: Vec<&[u8]> =
            [store.as_bytes(), run.as_bytes()].into_iter().chain(args.iter().copied()).collect();
        self.run(script, keys, &args)
    }

    /// Runs a script by its name; the text is sent where the server does not know it yet.
    fn run(&mut self, script: &Script, keys: &[String], args: &[&[u8]]) -> RedisResult<Told> {
        let mut run = |command: &str, script: &str| -> RedisResult<Value> {
            let len = args.iter().map(|arg| arg.len()).sum();
            let mut request = redis::Cmd::with_capacity(3 + keys.len() + args.len(), len);
            request.arg(command).arg(script).arg(keys.len()).arg(keys);
            request.arg(args);
            request.query(&mut self.connection)
        };
        let (by_name, by_text) = match script.writes {
            true => ("EVALSHA", "EVAL"),
            false => ("EVALSHA_RO", "EVAL_RO"),
        };
        let answer = match run(by_name, &script.hash) {
            Err(error) if error.code() == Some("NOSCRIPT") => run(by_text, &script.text)?,
            answer => answer?,
        };
        Ok(Told::new(answer))
    }
}

/// The value of a fact in what `INFO` answers.
pub(super) fn fact<'f>(facts: &'f str, name: &str) -> Option<&'f str> {
    facts.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}
