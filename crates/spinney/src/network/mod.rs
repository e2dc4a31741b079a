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
mod writing;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use spinney_core::backend::{
    Backend, Batch, Capabilities, Change, Outcome, Revision, Snapshot as _, WriteGuard,
};
use spinney_core::layout::head_key;
use spinney_core::{Error, ErrorKind, Result, backend};

use client::Client;
pub use options::{NetworkOptions, ServerOptions};
pub(crate) use patience::ask_plainly;
use patience::{GivenUp, Pauses, ask};
pub use server::Server;
use server::{Answer, Failure, State};
use snapshot::Snapshot;
pub use url::redacted;
use writing::{Head, Writing};

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
    /// A commit was given up, and whether it was made, or will be, is not known.
    is_unsettled: AtomicBool,
    /// What was built ahead was given up, since another client came first: much work to do once more.
    has_lost_build: AtomicBool,
    is_read_only: bool,
}

impl<S: Server + 'static> Network<S> {
    /// A backend of a server that is connected.
    pub fn new(server: S, options: NetworkOptions) -> Network<S> {
        Network {
            client: Arc::new(Client::new(server, options)),
            writer: Mutex::new(()),
            writing: Mutex::new(None),
            is_unsettled: AtomicBool::new(false),
            has_lost_build: AtomicBool::new(false),
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
        self.writing().clone().filter(Writing::is_own)
    }

    fn change_own_writing(&self, change: impl FnOnce(&mut Writing)) {
        if let Some(writing) = self.writing().as_mut().filter(|writing| writing.is_own()) {
            change(writing);
        }
    }

    /// The newest state for whoever asks: a guess for a writer's looks, unless another came first.
    fn look(&self) -> Result<Snapshot<S>> {
        let Some(writing) = self.own_writing() else { return self.client.snapshot() };
        let guess = if writing.may_guess() { self.client.guess() } else { None };
        let seen = match guess {
            Some(guess) => {
                self.change_own_writing(|writing| writing.guessed = guess.version());
                guess
            }
            None => self.client.snapshot()?.of_writer(writing.is_outdated),
        };
        if writing.head.is_none() {
            let head = head_of(&seen)?;
            self.change_own_writing(|writing| writing.head = Some(head));
        }
        Ok(seen)
    }

    /// Makes sure that a commit which was given up has been made by now, or never will be: it was made for
    /// a state, and that is the newest no longer.
    fn settle(&self) -> Result<()> {
        if !self.is_unsettled.load(Ordering::Acquire) {
            return Ok(());
        }
        let nothing = Batch { commit_id: fastrand::u128(..), ..Batch::default() };
        let patience = self.client.options.patience;
        match ask_plainly(patience, || self.client.server.commit(None, &nothing, &[]))? {
            Answer::Committed(_) => {
                self.is_unsettled.store(false, Ordering::Release);
                Ok(())
            }
            Answer::Moved | Answer::Locked => Err(Error::busy(
                "whether the commit before was made is not known yet, since others write all the time; try again",
            )),
        }
    }

    /// Keeps the writers of other clients away, or goes on doing so; where another client does that for as
    /// long as it may, this one tries its luck.
    fn lock_others_out(&self) -> Result<()> {
        let locked_until = self.own_writing().and_then(|writing| writing.locked_until);
        if locked_until.is_some_and(|until| until > Instant::now() + LOCK_TIME / 2) {
            return Ok(());
        }
        let mut pauses = Pauses::new(LOCK_TIME);
        let patience = self.client.options.patience;
        loop {
            let until = Instant::now() + LOCK_TIME;
            if ask_plainly(patience, || self.client.server.lock(LOCK_TIME))? {
                self.change_own_writing(|writing| writing.locked_until = Some(until));
                return Ok(());
            }
            if !pauses.pause() {
                return Ok(());
            }
        }
    }

    /// The newest state that was heard of, when a batch may follow it that was made by who has seen a head.
    fn base_of(&self, batch: &Batch, seen: Option<&Head>) -> Result<Option<State>> {
        let may_follow = |state: &Snapshot<S>| match seen {
            Some(seen) if head_of(state)? != *seen => Ok(false),
            _ => batch.applies_to(state),
        };
        if let Some(guess) = self.client.guess() {
            match may_follow(&guess) {
                Ok(true) => return Ok(guess.version()),
                Ok(false) if guess.revision()? >= batch.revision => return Ok(None),
                // It is older, or the server has not kept it.
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                Err(error) => return Err(error),
            }
        }
        let newest = self.client.snapshot()?;
        Ok(if may_follow(&newest)? { newest.version() } else { None })
    }

    /// Sends a batch made for `base`, until the server answers.
    fn send(&self, base: Option<State>, batch: &Batch) -> Result<Answer> {
        let released = self.client.take_released();
        let server = &self.client.server;
        let sent = ask(self.client.options.patience, || server.commit(base, batch, &released));
        sent.map_err(|given_up| {
            self.client.release_all(&released);
            // Whatever went wrong, it was not what the writer has guessed.
            self.change_own_writing(|writing| writing.guessed = None);
            match given_up {
                GivenUp::Refused(error) => error,
                GivenUp::Expired => patience::expired(),
                GivenUp::Unknown(error) => {
                    self.is_unsettled.store(true, Ordering::Release);
                    error.at(match batch.is_maintenance() {
                        true => "it was given up, and nothing that is read has changed",
                        false => "the commit was given up, and whether it was made is not known; read the store and look",
                    })
                }
            }
        })
    }
}

fn head_of<S: Server + 'static>(state: &Snapshot<S>) -> Result<Head> {
    Ok(state.get(&head_key(0))?.map(|head| Arc::from(&*head)))
}

/// The head of tree 0 that a batch puts.
fn head_put(batch: &Batch) -> Option<Arc<[u8]>> {
    let key = head_key(0);
    batch.changes.iter().rev().find_map(|change| match change {
        Change::Put(put, value) if **put == key => Some(Arc::clone(value)),
        _ => None,
    })
}

/// Keeps this client's other writers away, and those of other clients when they came first too often.
struct Guard<'n, S: Server + 'static> {
    network: &'n Network<S>,
    _writer: MutexGuard<'n, ()>,
}

impl<S: Server> WriteGuard for Guard<'_, S> {}

impl<S: Server> Drop for Guard<'_, S> {
    fn drop(&mut self) {
        let writing = self.network.writing().take();
        if writing.is_some_and(|writing| writing.locked_until.is_some())
            && let Err(Failure::Lost(error) | Failure::Undone(error) | Failure::Refused(error)) =
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
        self.settle()?;
        *self.writing() = Some(Writing::new(conflicts));
        let guard = Guard { network: self, _writer: writer };
        let lost_build = conflicts > 0 && self.has_lost_build.swap(false, Ordering::AcqRel);
        if lost_build || conflicts >= CONFLICTS_BEFORE_LOCK {
            self.lock_others_out()?;
        }
        Ok(Box::new(guard))
    }

    fn commit(&self, mut batch: Batch) -> Result<Outcome> {
        self.settle()?;
        batch.check_limits(self.capabilities())?;
        let head = head_put(&batch);
        if batch.is_maintenance() {
            // The server knows commits by their ids, and maintenance has none.
            batch.commit_id = fastrand::u128(..);
            if self.own_writing().is_some_and(|writing| writing.locked_until.is_some()) {
                self.lock_others_out()?;
            }
        }
        // Other maintenance rests on nothing.
        let is_conditional = head.is_some() || !batch.is_maintenance();
        let seen = self.own_writing().and_then(|writing| writing.head).filter(|_| is_conditional);
        let mut pauses = Pauses::new(LOCK_TIME * 2);
        loop {
            let Some(base) = self.base_of(&batch, seen.as_ref())? else {
                self.change_own_writing(Writing::outdate);
                self.has_lost_build.fetch_or(batch.is_maintenance(), Ordering::AcqRel);
                return Ok(Outcome::Conflict);
            };
            match self.send(is_conditional.then_some(base), &batch)? {
                Answer::Committed(made) => {
                    self.client.committed(base, made, &batch.changes);
                    if made != base + 1 {
                        // Others came in between. Who went on from what was known, as maintenance may,
                        // would do the same again; where this fails, so does what comes next.
                        let _ = self.client.refresh(None);
                    }
                    if head.is_some() {
                        self.change_own_writing(|writing| writing.head = Some(head));
                    }
                    return Ok(Outcome::Committed(batch.revision));
                }
                // Perhaps it was only maintenance.
                Answer::Moved => drop(self.client.refresh(None)?),
                Answer::Locked if pauses.pause() => {}
                Answer::Locked => {
                    return Err(Error::busy(
                        "another client keeps writers away, as one does that makes a large write; try again",
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
            Some(writing) if writing.is_outdated() => Ok(false),
            Some(Writing { guessed: Some(guessed), .. }) => {
                Ok(self.client.refresh(None)?.0 == guessed)
            }
            _ => Ok(true),
        }
    }

    fn flush(&self, _revision: Revision) -> Result<()> {
        // What is committed is the server's.
        Ok(())
    }

    fn sync(&self, _revision: Revision) -> Result<()> {
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
