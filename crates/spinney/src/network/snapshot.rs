//! One state of a store on a server, read through what is known of it.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_core::backend::{self, Bounds, Direction, RecordKey, Records};
use spinney_core::{Error, Result};

use super::cache::{Cache, Known};
use super::client::Client;
use super::patience::{self, GivenUp};
use super::server::{LeaseId, Limit, Record, Reply, Server, View};

/// Records of a range that are asked for at first; each time it is twice as many.
const RECORDS_MIN: usize = 4;

/// Records of a range that are asked for at most.
const RECORDS_MAX: usize = 512;

/// Bytes of a range that are asked for at once, about.
const BYTES_MAX: usize = 1 << 20;

/// A lease on a state, which ends with it.
pub struct Lease<S: Server> {
    pub id: LeaseId,
    pub client: Arc<Client<S>>,
}

impl<S: Server> Drop for Lease<S> {
    fn drop(&mut self) {
        self.client.release(self.id);
    }
}

/// One state of a store on a server.
pub struct Snapshot<S: Server> {
    state: u64,
    /// None for a writer's first look, which its commit confirms.
    lease: Option<Lease<S>>,
    client: Arc<Client<S>>,
    known: Mutex<Cache>,
    /// Told when the server has not kept the state, by a writer, who then looks at a newer one.
    is_expired: Option<Arc<AtomicBool>>,
}

impl<S: Server> Snapshot<S> {
    pub fn new(client: Arc<Client<S>>, state: u64, lease: Option<Lease<S>>, known: Cache) -> Self {
        Snapshot { state, lease, client, known: Mutex::new(known), is_expired: None }
    }

    /// What a writer looks at under a lease.
    pub fn of_writer(mut self, is_expired: Arc<AtomicBool>) -> Self {
        self.is_expired = Some(is_expired);
        self
    }

    fn view(&self) -> View {
        View { state: self.state, lease: self.lease.as_ref().map(|lease| lease.id) }
    }

    fn known(&self) -> MutexGuard<'_, Cache> {
        // What is known stays right whoever panics.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ask<T>(&self, request: impl FnMut() -> Reply<T>) -> Result<T> {
        patience::ask(self.client.options.patience, request).map_err(|given_up| match given_up {
            GivenUp::Unknown(error) | GivenUp::Refused(error) => error,
            GivenUp::Expired if self.lease.is_some() => {
                if let Some(is_expired) = &self.is_expired {
                    is_expired.store(true, Ordering::Release);
                }
                patience::expired()
            }
            GivenUp::Expired => Error::conflict("another writer came first"),
        })
    }

    fn learn(&self, learn: impl Fn(&mut Cache)) {
        let max = self.client.options.cache_len_max;
        let mut known = self.known();
        learn(&mut known);
        known.shrink(max);
        drop(known);
        self.client.learn(self.state, learn);
    }

    fn floor_record(&self, lower: &[u8], key: &[u8]) -> Result<Option<Record>> {
        if let Known::Is(record) = self.known().floor(lower, key) {
            return Ok(record);
        }
        let floor = self.ask(|| self.client.server.floor(self.view(), lower, key))?;
        self.learn(|cache| cache.learn_floor(lower, &floor));
        Ok(floor.record)
    }
}

impl<S: Server> backend::Snapshot for Snapshot<S> {
    fn version(&self) -> Option<u64> {
        Some(self.state)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        let record = self.floor_record(key, key)?;
        Ok(record.map(|(_, value)| Cow::Owned(value.to_vec())))
    }

    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>> {
        Ok(Box::new(Range {
            snapshot: self,
            bounds: (bounds.0.map(RecordKey::from), bounds.1.map(RecordKey::from)),
            direction,
            records: VecDeque::new(),
            wanted: RECORDS_MIN,
            is_over: backend::is_empty_range(bounds),
        }))
    }

    fn floor(&self, lower: &[u8], key: &[u8]) -> Result<Option<backend::Record<'_>>> {
        if key < lower {
            return Ok(None);
        }
        Ok(self.floor_record(lower, key)?.map(owned))
    }
}

fn owned<'s>((key, value): Record) -> backend::Record<'s> {
    (Cow::Owned(key.to_vec()), Cow::Owned(value.to_vec()))
}

/// The records of a range: those that are known, then what the server has.
struct Range<'s, S: Server> {
    snapshot: &'s Snapshot<S>,
    /// What is still to come, behind `records`.
    bounds: (Bound<RecordKey>, Bound<RecordKey>),
    direction: Direction,
    records: VecDeque<Record>,
    wanted: usize,
    is_over: bool,
}

impl<S: Server> Range<'_, S> {
    fn next_record(&mut self) -> Result<Option<Record>> {
        if let Some(record) = self.records.pop_front() {
            return Ok(Some(record));
        }
        if self.is_over {
            return Ok(None);
        }
        let bounds = (borrowed(&self.bounds.0), borrowed(&self.bounds.1));
        if let Known::Is(record) = self.snapshot.known().first(bounds, self.direction) {
            match &record {
                Some((key, _)) => self.go_on_behind(key.clone()),
                None => self.is_over = true,
            }
            return Ok(record);
        }
        let limit = Limit { records: self.wanted, bytes: BYTES_MAX };
        let server = &self.snapshot.client.server;
        let view = self.snapshot.view();
        let stretch = self.snapshot.ask(|| server.range(view, bounds, self.direction, limit))?;
        self.snapshot.learn(|cache| cache.learn(bounds, self.direction, &stretch));
        self.wanted = (self.wanted * 2).min(RECORDS_MAX);
        match stretch.records.last() {
            Some((last, _)) if stretch.more => self.go_on_behind(last.clone()),
            _ => self.is_over = true,
        }
        self.records = stretch.records.into();
        Ok(self.records.pop_front())
    }

    fn go_on_behind(&mut self, key: RecordKey) {
        match self.direction {
            Direction::Forward => self.bounds.0 = Bound::Excluded(key),
            Direction::Backward => self.bounds.1 = Bound::Excluded(key),
        }
        let bounds = (borrowed(&self.bounds.0), borrowed(&self.bounds.1));
        self.is_over = backend::is_empty_range(bounds);
    }
}

fn borrowed(bound: &Bound<RecordKey>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| &**key)
}

impl<'s, S: Server> Iterator for Range<'s, S> {
    type Item = Result<backend::Record<'s>>;

    fn next(&mut self) -> Option<Self::Item> {
        let record = self.next_record().transpose()?;
        self.is_over |= record.is_err();
        Some(record.map(owned))
    }
}
