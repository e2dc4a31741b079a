//! Connections to the server, and scripts run over them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::{Client, Connection, RedisError, RedisResult, Value};
use spinney_core::{Error, Result};

use super::address::Address;
use super::failure::failure;
use super::reply::Told;
use super::scripts::{self, Script};
use crate::network::server::{Failure, Reply};

/// Connections kept for the next request.
const IDLE_MAX: usize = 8;

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

/// Connections to the server of a store; opened as they are needed.
pub(super) struct Links {
    pub address: Address,
    client: Client,
    timeout: Duration,
    keys: Vec<String>,
    idle: Mutex<Vec<Link>>,
    /// The run of the server that was last connected to.
    run: Mutex<String>,
}

/// A connection, and which run of the server it leads to.
struct Link {
    connection: Connection,
    run: String,
}

impl Links {
    /// No connection is opened yet.
    ///
    /// # Errors
    /// `Unsupported` for TLS in a build without it.
    pub fn new(address: Address, timeout: Duration) -> Result<Links> {
        // The program may have chosen another one before; then that one is used.
        #[cfg(feature = "redis-tls")]
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::open(address.info.clone()).map_err(|error| {
            Error::unsupported(format!("{address}: this build cannot connect to it"))
                .with_source(error)
        })?;
        let keys = PARTS.map(|part| address.key(part)).into();
        Ok(Links { address, client, timeout, keys, idle: Mutex::default(), run: Mutex::default() })
    }

    /// The keys that the store consists of.
    pub fn keys(&self) -> &[String] {
        &self.keys
    }

    /// Which run of the server was last connected to.
    pub fn run(&self) -> String {
        self.run.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The channel that tells of commits.
    pub fn channel(&self) -> String {
        self.address.key("news")
    }

    /// Runs the script that makes or finds the store, on a connection that is kept.
    pub fn open_store(&self, format: &str, new_id: &str, create: bool) -> Reply<Told> {
        self.with_link(|link| {
            let create = if create { "create" } else { "" };
            let run = link.run.clone();
            let args = [format, new_id, &run, create].map(str::as_bytes);
            link.run(&scripts::OPEN, &self.keys, &args)
        })
    }

    /// Runs a script of a store. Where the server refuses writes because it cannot save its data, it
    /// runs `instead`, if there is one.
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
                    Err(error) if error.code() == Some("MISCONF") && instead.is_some() => {
                        let (script, args) = instead.expect("it was just seen");
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
                Err(Failure::Lost(Error::io(format!("{}: {text}", self.address))))
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
                Err(error) if !is_of_server(&error) => Err(error),
                answered => Ok(answered),
            }
        })
    }

    /// A connection of its own, for what blocks it.
    pub fn connect(&self) -> RedisResult<Connection> {
        let connection = self.client.get_connection_with_timeout(self.timeout)?;
        connection.set_read_timeout(Some(self.timeout))?;
        connection.set_write_timeout(Some(self.timeout))?;
        Ok(connection)
    }

    fn with_link<T>(&self, mut request: impl FnMut(&mut Link) -> RedisResult<T>) -> Reply<T> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let link = idle.map_or_else(|| Link::open(self), Ok);
        let mut link = link.map_err(|error| failure(&self.address, &error))?;
        let answer = request(&mut link);
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        match &answer {
            // Others are likely to be lost, too, for the same reason.
            Err(error) if !is_of_server(error) => idle.clear(),
            _ if idle.len() < IDLE_MAX => idle.push(link),
            _ => {}
        }
        answer.map_err(|error| failure(&self.address, &error))
    }
}

/// Whether the server said it, so that the connection can be used further.
fn is_of_server(error: &RedisError) -> bool {
    matches!(error.kind(), redis::ErrorKind::Server(_) | redis::ErrorKind::Extension)
}

impl Link {
    fn open(links: &Links) -> RedisResult<Link> {
        let mut connection = links.connect()?;
        let facts: String = redis::cmd("INFO").arg("server").query(&mut connection)?;
        let run = fact(&facts, "run_id").unwrap_or_default().to_owned();
        links.run.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&run);
        Ok(Link { connection, run })
    }

    fn run_for(
        &mut self,
        store: &str,
        script: &Script,
        keys: &[String],
        args: &[&[u8]],
    ) -> RedisResult<Told> {
        let run = self.run.clone();
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
        let answer = match run("EVALSHA", &script.hash) {
            Err(error) if error.code() == Some("NOSCRIPT") => run("EVAL", &script.text)?,
            answer => answer?,
        };
        Ok(Told::new(answer))
    }
}

/// The value of a fact in what `INFO` answers.
pub(super) fn fact<'f>(facts: &'f str, name: &str) -> Option<&'f str> {
    facts.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}
