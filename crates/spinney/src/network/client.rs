//! A client of a server: what it knows of the newest state, and the leases it gives back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_core::Result;
use spinney_core::backend::{Change, Revision, Snapshot as _};
use spinney_core::layout::head_key;

use super::cache::Cache;
use super::options::NetworkOptions;
use super::patience;
use super::server::{Floor, LeaseId, Server, State, Until};
use super::snapshot::{Lease, Snapshot};

/// What is known of the newest state that was heard of.
#[derive(Clone, Default)]
struct Newest {
    state: State,
    cache: Cache,
    /// Somebody has asked; before that, state 0 is a guess.
    is_known: bool,
}

/// A client of a server.
pub struct Client<S: Server> {
    pub server: S,
    pub options: NetworkOptions,
    newest: Mutex<Newest>,
    leases: Mutex<Leases>,
}

impl<S: Server> Drop for Client<S> {
    /// Nobody will ask or commit again with what readers have given back.
    fn drop(&mut self) {
        loop {
            let released = self.take_released();
            if released.is_empty() {
                return;
            }
            if let Err(failure) = self.server.release(&released) {
                // They end by themselves.
                log::debug!("leases stay until their time is up: {failure:?}");
                return;
            }
        }
    }
}

struct Leases {
    next: LeaseId,
    released: VecDeque<LeaseId>,
}

/// Leases that are given back with one request, at most.
const RELEASED_MAX: usize = 64;

impl<S: Server> Client<S> {
    pub fn new(server: S, options: NetworkOptions) -> Client<S> {
        let leases = Leases { next: fastrand::u64(..), released: VecDeque::new() };
        Client { server, options, newest: Mutex::default(), leases: Mutex::new(leases) }
    }

    fn newest(&self) -> MutexGuard<'_, Newest> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The newest state, from the server, under a lease.
    ///
    /// # Errors
    /// The server's.
    pub fn snapshot(self: &Arc<Self>) -> Result<Snapshot<S>> {
        let lease = self.new_lease();
        let (state, cache) = self.refresh(Some(lease.id))?;
        Ok(Snapshot::new(Arc::clone(self), state, Some(lease), cache))
    }

    /// The newest revision, and the state that it is of.
    ///
    /// # Errors
    /// The server's; `Corrupted` when the head record is damaged.
    pub fn newest_revision(self: &Arc<Self>) -> Result<(Revision, State)> {
        self.refresh(None)?;
        // Its head record has come with the answer.
        let newest = self.guess().expect("somebody has asked");
        Ok((newest.revision()?, newest.version().unwrap_or_default()))
    }

    /// The newest state that was heard of, as long as the server has none that is newer.
    pub fn guess(self: &Arc<Self>) -> Option<Snapshot<S>> {
        let newest = self.newest();
        let Newest { state, cache, .. } = newest.is_known.then(|| newest.clone())?;
        drop(newest);
        Some(Snapshot::new(Arc::clone(self), state, None, cache))
    }

    /// Asks for the newest state; returns it with what is known of it.
    ///
    /// # Errors
    /// The server's.
    pub fn refresh(&self, lease: Option<LeaseId>) -> Result<(State, Cache)> {
        let asked = self.newest().state;
        let released = self.take_released();
        let told = patience::ask_plainly(self.options.patience, || {
            self.server.newest(asked, lease, &released)
        });
        let told = told.inspect_err(|_| self.release_all(&released))?;
        let mut newest = self.newest();
        if told.state < newest.state {
            // A commit of this client came in between; what is known is of that.
            return Ok((told.state, Cache::default()));
        }
        match told.changed {
            Some(changed) if newest.is_known => {
                for key in &changed {
                    newest.cache.forget(key);
                }
            }
            _ => newest.cache = Cache::default(),
        }
        let key = head_key(0);
        let record = told.head.map(|head| (key.as_slice().into(), head));
        let until = Until::Key(super::cache::successor(&key));
        newest.cache.learn_floor(&key, &Floor { record, until });
        newest.state = told.state;
        newest.is_known = true;
        Ok((told.state, newest.cache.clone()))
    }

    /// Takes in what the server said of a state, when it is still the newest.
    pub fn learn(&self, state: State, learn: impl Fn(&mut Cache)) {
        let mut newest = self.newest();
        if newest.is_known && newest.state == state {
            learn(&mut newest.cache);
            newest.cache.shrink(self.options.cache_len_max);
        }
    }

    /// Takes in that a batch of this client made `made` of `base`.
    pub fn committed(&self, base: State, made: State, changes: &[Change]) {
        let mut newest = self.newest();
        // Otherwise there was something in between, and the next question tells what.
        if newest.is_known && newest.state == base && made == base + 1 {
            newest.cache.apply(changes);
            newest.cache.shrink(self.options.cache_len_max);
            newest.state = made;
        }
    }

    fn new_lease(self: &Arc<Self>) -> Lease<S> {
        let mut leases = self.leases();
        leases.next = leases.next.wrapping_add(1);
        Lease { id: leases.next, client: Arc::clone(self) }
    }

    /// Leases that the next request gives back.
    pub fn take_released(&self) -> Vec<LeaseId> {
        let mut leases = self.leases();
        let len = leases.released.len().min(RELEASED_MAX);
        leases.released.drain(..len).collect()
    }

    /// Gives a lease back with the next question or commit.
    pub fn release(&self, lease: LeaseId) {
        let mut leases = self.leases();
        // A client that does neither any more keeps few of them; the server ends them by itself.
        if leases.released.len() < 16 * RELEASED_MAX {
            leases.released.push_back(lease);
        }
    }

    /// Gives leases back that a request should have ended, which came to nothing.
    pub fn release_all(&self, leases: &[LeaseId]) {
        leases.iter().for_each(|&lease| self.release(lease));
    }

    /// Bytes that are known.
    pub fn cache_len(&self) -> usize {
        self.newest().cache.len_bytes()
    }
}
