//! A lock that somebody has.

use std::time::Duration;

use spinney_core::{Error, Path, Result};

use super::{entry_path, expires_ms};
use crate::Transaction;
use crate::owners::{Holding, OwnerId};
use crate::store::{Durability, Store};

/// Keeps a path locked, and the store open, until it is dropped or [unlocked](Lock::unlock).
///
/// Both make a commit, so do neither within a write of the same thread.
#[must_use = "dropping it unlocks"]
pub struct Lock {
    store: Store,
    id: u64,
    place: Path,
    lease: Option<Duration>,
    holding: Holding,
    is_released: bool,
}

impl Lock {
    pub(super) fn new(
        store: Store,
        id: u64,
        place: &Path,
        lease: Option<Duration>,
        holding: Holding,
    ) -> Lock {
        Lock { store, id, place: place.clone(), lease, holding, is_released: false }
    }

    /// Who has it: another handle that was opened for this [owner](crate::OpenOptions::owner) may write
    /// what is locked, too.
    pub fn owner(&self) -> OwnerId {
        self.holding.owner().record.id
    }

    /// Whether it is in force: nobody has broken it, and its lease has not run out. False, too, when that
    /// cannot be read.
    pub fn is_held(&self) -> bool {
        self.try_is_held().unwrap_or(false)
    }

    fn try_is_held(&self) -> Result<bool> {
        let snapshot = self.store.read()?;
        let view = snapshot.view();
        let locks = self.store.locks_and_owners();
        let table = locks.cache.of(&view)?;
        let Some(entry) = table.find(self.id) else { return Ok(false) };
        Ok(locks.is_in_force(entry, &view)? && self.holding.owner().is_heard_of(&view)?)
    }

    /// Begins its lease anew; does nothing when it has none.
    ///
    /// # Errors
    /// `NotFound` when it was broken, or its time was up and another commit has removed it; those of
    /// [`Store::write`].
    pub fn renew(&self) -> Result<()> {
        let Some(lease) = self.lease else { return Ok(()) };
        let renew = |transaction: &mut Transaction<'_>| {
            let entry = entry_path(self.id);
            match transaction.exists(&entry)? {
                true => transaction.set(&format!("{entry}/expires"), &expires_ms(lease).into()),
                false => Err(Error::not_found("it was broken, or its time was up; lock it again")),
            }
        };
        let renewed = self.store.write_with(Durability::Process, |tx| tx.at_root(renew));
        renewed
            .map(drop)
            .map_err(|error| error.at(format_args!("renew the lock of {}", self.shown())))
    }

    /// Unlocks the path; returns whether it was still locked by this. Where that fails, it stays locked
    /// until the process ends.
    ///
    /// # Errors
    /// Those of [`Store::write`].
    pub fn unlock(mut self) -> Result<bool> {
        self.is_released = true;
        self.release().map_err(|error| error.at(format_args!("unlock {}", self.shown())))
    }

    fn release(&self) -> Result<bool> {
        let remove = |transaction: &mut Transaction<'_>| {
            let was_locked = transaction.remove(&entry_path(self.id))?;
            self.holding.end(transaction)?;
            Ok(was_locked)
        };
        let released = self.store.write_with(Durability::Process, |tx| tx.at_root(remove))?;
        Ok(released.value)
    }

    fn shown(&self) -> String {
        let base = self.store.base_path();
        let path = self.place.strip_prefix(base).unwrap_or(&self.place);
        spinney_core::path::Display(path).to_string()
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if !self.is_released
            && let Err(error) = self.release()
        {
            log::warn!("{} stays locked until this process ends: {error}", self.shown());
        }
    }
}
