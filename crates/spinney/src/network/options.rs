//! How a client deals with a server.

use std::time::Duration;

use spinney_core::{Error, Result};

/// How a client deals with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkOptions {
    /// How long it waits for a connection or one answer (default: 5 seconds).
    pub timeout: Duration,
    /// How long it asks again when answers are lost, before it gives up, and once in any case (default: 15 seconds).
    pub patience: Duration,
    /// Bytes of records that it keeps (default: 64 MiB).
    pub cache_len_max: usize,
    /// How long the server keeps the state of a reader that does not read (default: 60 seconds).
    pub lease: Duration,
}

impl NetworkOptions {
    /// What holds unless something else is chosen.
    pub const DEFAULT: NetworkOptions = NetworkOptions {
        timeout: Duration::from_secs(5),
        patience: Duration::from_secs(15),
        cache_len_max: 64 << 20,
        lease: Duration::from_secs(60),
    };

    /// # Errors
    /// `InvalidInput` when a time is zero.
    pub fn check(&self) -> Result<()> {
        let times = [("timeout", self.timeout), ("patience", self.patience), ("lease", self.lease)];
        match times.iter().find(|(_, time)| time.is_zero()) {
            Some((name, _)) => Err(Error::invalid_input(format!(
                "the network option `{name}` is 0; it must be a time"
            ))),
            None => Ok(()),
        }
    }
}

impl Default for NetworkOptions {
    fn default() -> NetworkOptions {
        NetworkOptions::DEFAULT
    }
}

/// How to open a store on a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions {
    /// Make the store when it does not exist.
    pub create: bool,
    /// Refuse writes.
    pub read_only: bool,
    /// Make no store where commits cannot be durable.
    pub durable: bool,
    /// How to deal with the server.
    pub network: NetworkOptions,
}

impl ServerOptions {
    /// Makes a store that does not exist, however durable its commits will be.
    pub const CREATE: ServerOptions = ServerOptions {
        create: true,
        read_only: false,
        durable: false,
        network: NetworkOptions::DEFAULT,
    };

    /// Whether a store that does not exist may be made; where it is to be durable, `durable` says whether
    /// commits can be.
    ///
    /// # Errors
    /// That of `durable`.
    pub fn may_make<E>(
        &self,
        durable: impl FnOnce() -> std::result::Result<(), E>,
    ) -> std::result::Result<bool, E> {
        let may_make = self.create && !self.read_only;
        if may_make && self.durable {
            durable()?;
        }
        Ok(may_make)
    }
}
