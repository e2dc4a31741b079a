//! An open store of spinney, whatever is done with it: where it lives, and how it is cleaned up.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use spinney_core::Result;

use crate::server::Server;

/// An open store.
pub struct Opened {
    /// The store.
    pub store: spinney::Store,
    /// Whether it keeps nothing in its folder.
    pub in_memory: bool,
    /// Why it is gone, or not closed, when it is dropped.
    pub transient: Option<&'static str>,
    /// It lives on a server that was named, where nothing may be left.
    pub slot: Option<Slot>,
    /// That server, where the lab has started it.
    pub server: Option<Server>,
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.slot.is_some() {
            // A server that is gone has nothing to be cleaned.
            let _ = self.remove_all();
            let _ = self.store.forget_before(u64::MAX).and_then(|_| self.store.reclaim());
        }
    }
}

impl Opened {
    /// Removes every tree, those that keep schemas and owners too.
    fn remove_all(&self) -> Result<()> {
        let trees = self.store.read()?.list("", None, None)?.unwrap_or_default();
        self.store.write(|transaction| {
            trees.iter().try_for_each(|tree| {
                let path = spinney_core::Path::root().child(&tree.segment);
                transaction.remove(&path).map(drop)
            })
        })?;
        Ok(())
    }

    /// Finishes all background work; the bytes cleaned up.
    ///
    /// # Errors
    /// Those of the store.
    pub fn settle(&self) -> Result<u64> {
        // What is in the journal is not yet in the pages that are counted.
        self.store.checkpoint()?;
        let before = self.used_bytes()?;
        self.store.wait_until_reclaimed();
        self.store.reclaim()?;
        self.store.checkpoint()?;
        let after = self.used_bytes()?;
        Ok(before.zip(after).map_or(0, |(before, after)| before.saturating_sub(after)))
    }

    /// The processes besides this one that sync what it commits.
    pub fn processes(&self) -> Vec<u32> {
        self.server.as_ref().map_or_else(Vec::new, Server::processes)
    }

    /// The bytes of one that keeps nothing in its folder.
    pub fn memory_bytes(&self) -> Option<u64> {
        // What the records of the store hold is not counted.
        self.in_memory.then_some(0)
    }

    /// Bytes of the engine's pages in use, or `None` where there are no pages.
    fn used_bytes(&self) -> Result<Option<u64>> {
        let stats = self.store.stats()?;
        let number = |wanted: &str| {
            let (_, text) = stats.iter().find(|(name, _)| name == wanted)?;
            text.parse::<u64>().ok()
        };
        Ok((|| {
            let pages = number("engine pages")? - number("engine pages free")?;
            Some(pages * number("engine page bytes")?)
        })())
    }
}

/// The number of a store on a server, which no other one has while it is open.
pub struct Slot(u32);

static TAKEN: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

impl Slot {
    /// The first that is free.
    pub fn take() -> Slot {
        let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
        let free = (1..).find(|number| !taken.contains(number)).unwrap_or_default();
        taken.insert(free);
        Slot(free)
    }

    /// The number.
    pub fn number(&self) -> u32 {
        self.0
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.0);
    }
}
