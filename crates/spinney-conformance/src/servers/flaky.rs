//! A server whose answers get lost, before or after it did what it was asked, by chance or by plan.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use spinney::network::server::{
    Answer, Failure, Floor, LeaseId, Limit, Newest, Reply, Server, State, Stretch, View,
};
use spinney_core::backend::{Batch, Bounds, Capabilities, Direction};
use spinney_core::{Error, Result};

/// What becomes of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Luck {
    /// One of so many is lost before it arrives, and as many answers.
    OneOf(u32),
    /// The server cannot be reached.
    Unreachable,
    /// All are lost on their way.
    LosesRequests,
    /// All are done, and their answers lost.
    LosesAnswers,
}

/// A server that is asked with some luck.
pub struct Flaky<S> {
    inner: S,
    luck: Mutex<Luck>,
    rng: Mutex<Rng>,
}

impl<S> Flaky<S> {
    /// Wraps a server.
    pub fn new(inner: S, luck: Luck, seed: u64) -> Flaky<S> {
        Flaky { inner, luck: Mutex::new(luck), rng: Mutex::new(Rng::with_seed(seed)) }
    }

    /// The server.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Changes what becomes of requests.
    pub fn set_luck(&self, luck: Luck) {
        *self.luck.lock().unwrap_or_else(PoisonError::into_inner) = luck;
    }

    fn draw(&self, one_of: u32) -> bool {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).u32(..one_of) == 0
    }

    fn pass<T>(&self, request: impl FnOnce(&S) -> Reply<T>) -> Reply<T> {
        let lost = || Failure::Lost(Error::io("the connection was cut by plan"));
        let luck = *self.luck.lock().unwrap_or_else(PoisonError::into_inner);
        let (is_request_lost, is_answer_lost) = match luck {
            Luck::OneOf(one_of) => (self.draw(one_of), self.draw(one_of)),
            Luck::Unreachable => {
                return Err(Failure::Undone(Error::io("the server cannot be reached by plan")));
            }
            Luck::LosesRequests => (true, true),
            Luck::LosesAnswers => (false, true),
        };
        if is_request_lost {
            return Err(lost());
        }
        let reply = request(&self.inner);
        if is_answer_lost { Err(lost()) } else { reply }
    }
}

impl<S: Server> Server for Flaky<S> {
    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn store_id(&self) -> String {
        self.inner.store_id()
    }

    fn newest(&self, known: State, lease: Option<LeaseId>, released: &[LeaseId]) -> Reply<Newest> {
        self.pass(|inner| inner.newest(known, lease, released))
    }

    fn floor(&self, view: View, lower: &[u8], key: &[u8]) -> Reply<Floor> {
        self.pass(|inner| inner.floor(view, lower, key))
    }

    fn range(
        &self,
        view: View,
        bounds: Bounds<'_>,
        direction: Direction,
        limit: Limit,
    ) -> Reply<Stretch> {
        self.pass(|inner| inner.range(view, bounds, direction, limit))
    }

    fn commit(&self, base: Option<State>, batch: &Batch, released: &[LeaseId]) -> Reply<Answer> {
        self.pass(|inner| inner.commit(base, batch, released))
    }

    fn lock(&self, duration: Duration) -> Reply<bool> {
        self.pass(|inner| inner.lock(duration))
    }

    fn unlock(&self) -> Reply<()> {
        self.pass(|inner| inner.unlock())
    }

    fn release(&self, leases: &[LeaseId]) -> Reply<()> {
        self.pass(|inner| inner.release(leases))
    }

    fn durable(&self) -> Result<()> {
        self.inner.durable()
    }

    fn await_newer(&self, known: State, timeout: Duration) -> Reply<()> {
        self.pass(|inner| inner.await_newer(known, timeout))
    }

    fn stats(&self) -> Reply<Vec<(String, String)>> {
        self.pass(|inner| inner.stats())
    }
}
