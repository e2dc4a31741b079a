//! Turns of clients that write: the lock of writers, which is part of the chain of commits, and a wish
//! for it, which is not.
//!
//! Who takes the lock makes a commit that changes nothing else, and has to be first for that as for any
//! other. Against a client that commits without a pause it might never be, so it leaves a wish; the
//! others look for one behind each of their commits, and then pause once.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{Binary, DateTime, doc};

use super::chain::Inserted;
use super::commit::{Commit, Fields, Lock};
use super::shared::Shared;
use crate::network::server::Reply;

/// Times that the lock is tried for when others come first.
const TRIES_MAX: u32 = 256;

/// How long a client pauses when another wishes for the lock.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a wish lasts.
const WISH: Duration = Duration::from_secs(2);

/// The `_id` of the wish, among leases, whose own are numbers.
const WISHED: &str = "lock";

impl Shared {
    /// Whether another client holds the lock of writers.
    pub fn is_locked(&self, newest: &Commit) -> bool {
        newest.lock.is_some_and(|lock| lock.owner != self.owner && lock.until > self.now())
    }

    /// The lock that the next commit has: the one before, until it is over.
    pub fn carried(&self, newest: &Commit) -> Option<Lock> {
        newest.lock.filter(|lock| lock.until > self.now())
    }

    /// Takes the lock of writers, as a commit that changes nothing else.
    pub async fn lock(&self, duration: Duration) -> Reply<bool> {
        for tries in 0..TRIES_MAX {
            let newest = self.look().await?;
            if self.is_locked(&newest) {
                return Ok(false);
            }
            let lock = Some(Lock { owner: self.owner, until: self.after(duration) });
            if self.insert_lock(&newest, lock).await? {
                return Ok(true);
            }
            if tries % 8 == 1 {
                self.wish().await?;
            }
        }
        Ok(false)
    }

    /// Gives the lock back, if this client has it.
    pub async fn unlock(&self) -> Reply<()> {
        for _ in 0..TRIES_MAX {
            let newest = self.look().await?;
            let is_mine = newest.lock.is_some_and(|lock| lock.owner == self.owner);
            if !is_mine || self.insert_lock(&newest, None).await? {
                break;
            }
        }
        // Where others were always first, it ends with its time.
        Ok(())
    }

    async fn insert_lock(&self, newest: &Commit, lock: Option<Lock>) -> Reply<bool> {
        let id = super::random_id();
        let inserted = self.insert(newest, id, BTreeMap::new(), lock).await;
        // Nobody asks for this commit again.
        self.known().set_unsure(id, None);
        Ok(matches!(inserted?, Inserted::Made(_)))
    }

    /// Leaves a wish for the lock.
    async fn wish(&self) -> Reply<()> {
        let until = DateTime::from_millis(self.after(WISH));
        let bytes = self.owner.to_be_bytes().to_vec();
        let owner = Binary { subtype: BinarySubtype::Generic, bytes };
        let set = doc! { "$set": { "owner": owner, "until": until } };
        self.ask(self.leased.update_one(doc! { "_id": WISHED }, set).upsert(true)).await?;
        Ok(())
    }

    /// Looks whether another client wishes for the lock.
    pub async fn look_for_wishes(&self) -> Reply<()> {
        let wish = self.ask(self.leased.find_one(doc! { "_id": WISHED })).await?;
        let Some(wish) = wish else { return Ok(()) };
        let fields = Fields(&wish);
        if fields.id("owner")? != self.owner && fields.time("until")? > self.now() {
            self.known().pause_until(Instant::now() + PAUSE);
        }
        Ok(())
    }

    /// Pauses when another client wishes for the lock.
    pub async fn give_way(&self) {
        let until = self.known().take_pause();
        if let Some(until) = until {
            tokio::time::sleep_until(until.into()).await;
        }
    }

    fn after(&self, duration: Duration) -> i64 {
        self.now().saturating_add(duration.as_millis() as i64)
    }
}
