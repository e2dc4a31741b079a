//! What the backends of servers share: a cache of records, one consistent state for each reader,
//! commits that are sent again when their answer was lost.
//!
//! An adapter implements [`Server`], and [`Network`] makes a backend of it. It must not know which
//! server it is.

mod cache;
mod client;
mod options;
mod patience;
pub mod server;
mod snapshot;
mod url;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use spinney_core::backend::{
    Backend, Batch, Capabilities, Outcome, Revision, Snapshot as _, WriteGuard,
};
use spinney_core::{Error, ErrorKind, Result, backend};

use client::Client;
pub use options::{NetworkOptions, ServerOptions};
pub(crate) use patience::ask_plainly;
use patience::{GivenUp, Pauses, ask};
pub use server::Server;
use server::{Answer, Failure, State};
use snapshot::Snapshot;
pub use url::redacted;

/// Conflicts after which a writer keeps others away.
const CONFLICTS_BEFORE_LOCK: u32 = 8;

/// How long a writer may keep others away.
const LOCK_TIME: Duration = Duration::from_secs(10);

/// How long to wait for a newer state before looking whether it was missed.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// A store on a server.
///
/// # Durability
/// What is answered is as durable as the server says ([`Server::durable`]); a store that asks for
/// more is refused before it commits.
pub struct Network<S: Server> {
    client: Arc<Client<S>>,
    writer: Mutex<()>,
    /// Who writes, and the state that it looks at.
    writing: Mutex<Option<Writing>>,
    /// A commit was given up, and whether it was made is not known.
    is_closed: AtomicBool,
    is_read_only: bool,
}

#[derive(Clone)]
struct Writing {
    thread: ThreadId,
    /// The first look may be a guess: the commit confirms it.
    may_guess: bool,
    /// The state that was guessed.
    guessed: Option<State>,
    /// The server has not kept the state that it looks at.
    is_expired: Arc<AtomicBool>,
}

impl<S: Server + 'static> Network<S> {
    /// A backend of a server that is connected.
    pub fn new(server: S, options: NetworkOptions) -> Network<S> {
        Network {
            client: Arc::new(Client::new(server, options)),
            writer: Mutex::new(()),
            writing: Mutex::new(None),
            is_closed: AtomicBool::new(false),
            is_read_only: false,
        }
    }

    /// As [`Network::new`], for a server that these options have opened.
    pub fn opened(server: S, options: &ServerOptions) -> Network<S> {
        Network { is_read_only: options.read_only, ..Network::new(server, options.network) }
    }

    /// The server.
    pub fn server(&self) -> &S {
        &self.client.server
    }

    fn writing(&self) -> MutexGuard<'_, Option<Writing>> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What this thread writes.
    fn own_writing(&self) -> Option<Writing> {
        self.writing().clone().filter(|writing| writing.thread == thread::current().id())
    }

    /// The newest state for whoever asks: a guess for a writer's first look.
    fn look(&self) -> Result<Snapshot<S>> {
        let Some(writing) = self.own_writing() else { return self.client.snapshot() };
        let guess = if writing.may_guess { self.client.guess() } else { None };
        let Some(guess) = guess else {
            return Ok(self.client.snapshot()?.of_writer(writing.is_expired));
        };
        if let Some(writing) = &mut *self.writing() {
            writing.guessed = guess.version();
        }
        Ok(guess)
    }

    fn refuse_if_closed(&self) -> Result<()> {
        if !self.is_closed.load(Ordering::Acquire) {
            return Ok(());
        }
        Err(Error::closed(
            "the server did not answer a commit, and whether it was made is not known; open the store \
             again and look",
        ))
    }

    /// The newest state that was heard of, when a batch may follow it.
    fn base_of(&self, batch: &Batch) -> Result<Option<State>> {
        if let Some(guess) = self.client.guess() {
            match batch.applies_to(&guess) {
                Ok(true) => return Ok(guess.version()),
                Ok(false) if guess.revision()? >= batch.revision => return Ok(None),
                // It is older, or the server has not kept it.
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        let newest = self.client.snapshot()?;
        Ok(if batch.applies_to(&newest)? { newest.version() } else { None })
    }

    /// Sends a batch made for `base`, until the server answers.
    fn send(&self, base: Option<State>, batch: &Batch) -> Result<Answer> {
        let sent = ask(self.client.options.patience, || self.client.server.commit(base, batch));
        sent.map_err(|given_up| match given_up {
            GivenUp::Refused(error) => error,
            GivenUp::Expired => patience::expired(),
            GivenUp::Unknown(error) => {
                self.is_closed.store(true, Ordering::Release);
                error.at("the commit was given up, and whether it was made is not known; open the store again and look")
            }
        })
    }
}

/// Keeps this client's other writers away, and those of other clients when they came first too often.
struct Guard<'n, S: Server + 'static> {
    network: &'n Network<S>,
    is_locked: bool,
    _writer: MutexGuard<'n, ()>,
}

impl<S: Server> WriteGuard for Guard<'_, S> {}

impl<S: Server> Drop for Guard<'_, S> {
    fn drop(&mut self) {
        *self.network.writing() = None;
        if self.is_locked
            && let Err(Failure::Lost(error) | Failure::Refused(error)) =
                self.network.client.server.unlock()
        {
            // It ends by itself.
            log::debug!("the lock of writers stays until its time is up: {error}");
        }
    }
}

impl<S: Server + 'static> Backend for Network<S> {
    fn capabilities(&self) -> &Capabilities {
        self.client.server.capabilities()
    }

    fn snapshot(&self) -> Result<Box<dyn backend::Snapshot>> {
        Ok(Box::new(self.look()?))
    }

    fn write_guard(&self, conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        if self.is_read_only {
            return Err(Error::read_only("the store was opened for reading only"));
        }
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        self.refuse_if_closed()?;
        let mut guard = Guard { network: self, is_locked: false, _writer: writer };
        if conflicts >= CONFLICTS_BEFORE_LOCK {
            let mut pauses = Pauses::new(LOCK_TIME);
            let patience = self.client.options.patience;
            while !guard.is_locked {
                guard.is_locked = ask_plainly(patience, || self.client.server.lock(LOCK_TIME))?;
                if !guard.is_locked && !pauses.pause() {
                    break;
                }
            }
        }
        let thread = thread::current().id();
        *self.writing() = Some(Writing {
            thread,
            may_guess: conflicts == 0,
            guessed: None,
            is_expired: Arc::default(),
        });
        Ok(Box::new(guard))
    }

    fn commit(&self, mut batch: Batch) -> Result<Outcome> {
        self.refuse_if_closed()?;
        batch.check_limits(self.capabilities())?;
        let is_maintenance = batch.is_maintenance();
        if is_maintenance {
            // The server knows commits by their ids, and maintenance has none.
            batch.commit_id = fastrand::u128(..);
        }
        let mut pauses = Pauses::new(LOCK_TIME * 2);
        loop {
            let Some(base) = self.base_of(&batch)? else { return Ok(Outcome::Conflict) };
            match self.send((!is_maintenance).then_some(base), &batch)? {
                Answer::Committed(made) => {
                    self.client.committed(base, made, &batch.changes);
                    return Ok(Outcome::Committed(batch.revision));
                }
                // Perhaps it was only maintenance.
                Answer::Moved => drop(self.client.refresh(None)?),
                Answer::Locked if pauses.pause() => {}
                Answer::Locked => {
                    return Err(Error::busy(
                        "another client keeps writers away for longer than it may; try again",
                    ));
                }
            }
        }
    }

    fn check_sync(&self) -> Result<()> {
        self.client.server.durable()
    }

    fn is_newest(&self) -> Result<bool> {
        match self.own_writing() {
            Some(writing) if writing.is_expired.load(Ordering::Acquire) => Ok(false),
            Some(Writing { guessed: Some(guessed), .. }) => {
                Ok(self.client.refresh(None)?.0 == guessed)
            }
            _ => Ok(true),
        }
    }

    fn flush(&self, _revision: Revision) -> Result<()> {
        // What is committed is the server's.
        self.refuse_if_closed()
    }

    fn sync(&self, _revision: Revision) -> Result<()> {
        self.refuse_if_closed()?;
        self.check_sync()
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        let until = Instant::now().checked_add(timeout);
        loop {
            let (revision, known) = self.client.newest_revision()?;
            let left = until.map_or(LOOK_AGAIN_AFTER, |until| {
                until.saturating_duration_since(Instant::now()).min(LOOK_AGAIN_AFTER)
            });
            if revision > after || left.is_zero() {
                return Ok(revision);
            }
            ask_plainly(self.client.options.patience, || {
                self.client.server.await_newer(known, left)
            })?;
        }
    }

    fn store_id(&self) -> Option<String> {
        Some(self.client.server.store_id())
    }

    fn len_bytes(&self) -> Result<Option<u64>> {
        ask_plainly(self.client.options.patience, || self.client.server.len_bytes())
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        let mut stats = ask_plainly(self.client.options.patience, || self.client.server.stats())?;
        let durable = match self.client.server.durable() {
            Ok(()) => "yes".to_owned(),
            Err(error) => format!("no: {}", error.context()),
        };
        stats.push(("durable".into(), durable));
        stats.push(("cache_bytes".into(), self.client.cache_len().to_string()));
        Ok(stats)
    }
}
