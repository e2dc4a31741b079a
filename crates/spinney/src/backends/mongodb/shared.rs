//! What all parts of the adapter stand on: the two collections, time limits, the server's clock.

use std::future::IntoFuture;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use mongodb::bson::{RawDocumentBuf, doc};
use mongodb::{Collection, Database};
use spinney_core::Error;

use super::failure::failure;
use super::known::Known;
use super::leases::Leases;
use crate::network::NetworkOptions;
use crate::network::server::{Failure, Reply, State};

/// A store as its requests see it.
pub struct Shared {
    /// The database of the store.
    pub database: Database,
    /// A document for each commit.
    pub commits: Collection<RawDocumentBuf>,
    /// A document for each version of a record.
    pub pages: Collection<RawDocumentBuf>,
    /// A document for each lease that is held for long.
    pub leased: Collection<RawDocumentBuf>,
    /// The place in errors.
    pub shown: String,
    /// How long things may take, and are kept.
    pub network: NetworkOptions,
    /// Whether nothing may be written, leases included.
    pub is_read_only: bool,
    /// Names this client.
    pub owner: u128,
    /// What is known of the commits.
    pub known: Mutex<Known>,
    /// The leases of this client.
    pub leases: Mutex<Leases>,
    /// The newest state whose versions are certainly in `pages`; held while they are put there.
    pub applied: tokio::sync::Mutex<State>,
    /// Milliseconds that the server's clock is ahead of this machine's.
    pub ahead: AtomicI64,
}

impl Shared {
    /// What is known of the commits.
    pub fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The leases of this client.
    pub fn leases(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the driver answers to a request, unless the time is up.
    pub async fn answer<T>(
        &self,
        request: impl IntoFuture<Output = mongodb::error::Result<T>>,
    ) -> Reply<mongodb::error::Result<T>> {
        let timeout = self.network.timeout;
        tokio::time::timeout(timeout, request.into_future()).await.map_err(|_| {
            let (place, timeout) = (&self.shown, timeout.as_millis());
            Failure::Lost(Error::io(format!("{place}: no answer within {timeout} ms")))
        })
    }

    /// As [`Shared::answer`], where every error is one.
    pub async fn ask<T>(
        &self,
        request: impl IntoFuture<Output = mongodb::error::Result<T>>,
    ) -> Reply<T> {
        self.answer(request).await?.map_err(|error| failure(&self.shown, &error))
    }

    /// The time on the server's clock, as far as it was asked for.
    pub fn now(&self) -> i64 {
        local_millis() + self.ahead.load(Ordering::Relaxed)
    }

    /// Asks the server for the time.
    pub async fn set_clock(&self) -> Reply<()> {
        let hello = self.ask(self.database.run_command(doc! { "hello": 1 })).await?;
        if let Ok(time) = hello.get_datetime("localTime") {
            self.ahead.store(time.timestamp_millis() - local_millis(), Ordering::Relaxed);
        }
        Ok(())
    }
}

fn local_millis() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as i64)
}
