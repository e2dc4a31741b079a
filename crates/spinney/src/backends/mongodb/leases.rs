//! Leases on older states. Owns when one is written to the server, and how long it holds.
//!
//! A state that is superseded can be read for the lease's time by whomever, so a short look costs
//! nothing. A lease that is held for longer becomes a document, which who makes states unreadable
//! respects. It is a courtesy and no guard: whether a state is still complete is asked after each read.

use std::collections::HashMap;

use mongodb::bson::{DateTime, doc};

use super::known::Moment;
use super::shared::Shared;
use crate::network::server::{Failure, LeaseId, Reply, State, View};

/// The part of the lease's time after which a lease is written, and written again.
const WRITTEN_EVERY: u32 = 4;

/// A lease of this client.
pub struct Lease {
    read: Moment,
    noted: Moment,
    is_written: bool,
}

/// The leases of this client.
pub type Leases = HashMap<LeaseId, Lease>;

impl Shared {
    /// Gives a lease on the newest state.
    pub fn grant(&self, id: LeaseId) {
        let now = Moment::now();
        self.leases().insert(id, Lease { read: now, noted: now, is_written: false });
    }

    /// Ends leases.
    pub async fn release(&self, ids: &[LeaseId]) -> Reply<()> {
        let is_written = |id: &LeaseId| self.leases().get(id).is_some_and(|lease| lease.is_written);
        let written: Vec<i64> =
            ids.iter().filter(|id| is_written(id)).map(|&id| id as i64).collect();
        if !written.is_empty() {
            let leases = doc! { "_id": { "$in": written } };
            self.ask(self.leased.delete_many(leases)).await?;
        }
        self.leases().retain(|id, _| !ids.contains(id));
        Ok(())
    }

    /// Takes note that a view is read; whether it has a lease. One of another connection is taken on
    /// trust: it is for that one to renew it.
    pub async fn renew(&self, view: View) -> Reply<bool> {
        let Some(id) = view.lease else { return Ok(false) };
        let time = self.network.lease;
        {
            let mut leases = self.leases();
            let Some(lease) = leases.get_mut(&id) else { return Ok(true) };
            if lease.read.age() > time {
                return Err(Failure::Expired);
            }
            lease.read = Moment::now();
            if self.is_read_only || lease.noted.age() <= time / WRITTEN_EVERY {
                return Ok(true);
            }
            lease.noted = lease.read;
            lease.is_written = true;
        }
        let until = DateTime::from_millis(self.now() + time.as_millis() as i64);
        let set = doc! { "$set": { "state": view.state as i64, "until": until } };
        self.ask(self.leased.update_one(doc! { "_id": id as i64 }, set).upsert(true)).await?;
        Ok(true)
    }

    /// The oldest state that somebody has written a lease on.
    pub async fn oldest_leased(&self) -> Reply<Option<State>> {
        let now = DateTime::from_millis(self.now());
        let held = doc! { "state": { "$exists": true }, "until": { "$gt": now } };
        let held = self.leased.find_one(held);
        let oldest = self.ask(held.sort(doc! { "state": 1 })).await?;
        let state = oldest.and_then(|lease| lease.get_i64("state").ok());
        Ok(state.map(|state| state as State))
    }

    /// Deletes the leases of clients that are gone.
    pub async fn forget_leases(&self) -> Reply<()> {
        let over = doc! { "until": { "$lte": DateTime::from_millis(self.now()) } };
        self.ask(self.leased.delete_many(over)).await?;
        Ok(())
    }
}
