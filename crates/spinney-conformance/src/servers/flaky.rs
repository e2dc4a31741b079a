//! A server whose answers get lost, before or after it did what it was asked.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fastrand::Rng;
use spinney::network::server::{
    Answer, Failure, Floor, LeaseId, Limit, Newest, Reply, Server, State, Stretch, View,
};
use spinney_core::backend::{Batch, Bounds, Capabilities, Direction};
use spinney_core::{Error, Result};

/// Loses one of so many requests before they arrive, and as many answers.
pub struct Flaky<S> {
    inner: S,
    one_of: u32,
    rng: Mutex<Rng>,
}

impl<S> Flaky<S> {
    /// Wraps a server.
    pub fn new(inner: S, one_of: u32, seed: u64) -> Flaky<S> {
        Flaky { inner, one_of, rng: Mutex::new(Rng::with_seed(seed)) }
    }

    fn draw(&self) -> bool {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).u32(..self.one_of) == 0
    }

    fn pass<T>(&self, request: impl FnOnce(&S) -> Reply<T>) -> Reply<T> {
        let lost = || Failure::Lost(Error::io("the connection was cut by plan"));
        if self.draw() {
            return Err(lost());
        }
        let reply = request(&self.inner);
        if self.draw() { Err(lost()) } else { reply }
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

    fn commit(&self, base: Option<State>, batch: &Batch) -> Reply<Answer> {
        self.pass(|inner| inner.commit(base, batch))
    }

    fn lock(&self, duration: Duration) -> Reply<bool> {
        self.pass(|inner| inner.lock(duration))
    }

    fn unlock(&self) -> Reply<()> {
        self.pass(|inner| inner.unlock())
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
