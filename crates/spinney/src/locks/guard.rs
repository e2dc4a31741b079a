//! Refuses commits that change what others have locked, and locks that meet.

use std::sync::Arc;

use spinney_core::access::{Permissions, Right};
use spinney_core::index::Derived;
use spinney_core::transaction::{Proposed, Review};
use spinney_core::view::View;
use spinney_core::{Error, Result, path};

use super::table::{Cache, Entry, Table, read};
use super::{LockInfo, NAME, TREE};
use crate::owners::{self, OwnerId, Owners};
use crate::store::now_ms;

/// Which locks there are, and for whom.
pub struct Locks {
    pub cache: Cache,
    pub owners: Owners,
}

impl Locks {
    /// What is to be removed when a lock is as good as none: its time is up, or its owner is dead.
    ///
    /// # Errors
    /// Those of asking whether the owner lives.
    pub fn void(&self, entry: &Entry, view: &View<'_>) -> Result<Option<Void>> {
        let dead = (!self.owners.is_alive(&entry.owner, view)?).then_some(entry.owner.id);
        let is_over = entry.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms());
        Ok((is_over || dead.is_some()).then_some(Void { lock: entry.id, dead }))
    }

    /// Whether a lock of a committed state is there and in force.
    ///
    /// # Errors
    /// As [`Locks::void`].
    pub fn is_held(&self, id: u64, view: &View<'_>) -> Result<bool> {
        let table = self.cache.of(view)?;
        table.find(id).map_or(Ok(false), |entry| self.is_in_force(entry, view))
    }

    /// The lock that this handle has on exactly this path, in a committed state.
    ///
    /// # Errors
    /// Those of reading.
    pub fn own_at(&self, place: &str, view: &View<'_>) -> Result<Option<u64>> {
        let table = self.cache.of(view)?;
        let is_own = |entry: &&&Entry| *entry.place == *place && self.owners.is_own(entry.owner.id);
        Ok(table.around(place).iter().find(is_own).map(|entry| entry.id))
    }

    /// Whether a lock is in force.
    ///
    /// # Errors
    /// As [`Locks::void`].
    pub fn is_in_force(&self, entry: &Entry, view: &View<'_>) -> Result<bool> {
        Ok(self.void(entry, view)?.is_none())
    }
}

/// What was left in a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Void {
    pub lock: u64,
    /// Its owner, unless that lives and the time of the lock is up.
    pub dead: Option<OwnerId>,
}

/// What does not keep a commit from being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passes {
    /// Nothing.
    Nothing,
    /// A lock that it takes away.
    Lock(u64),
    /// All locks.
    Locks,
    /// Locks, schemas and subscribers, who are asked nevertheless.
    Everything,
}

impl Passes {
    /// Whether no lock keeps it from anything.
    pub fn all_locks(self) -> bool {
        matches!(self, Passes::Locks | Passes::Everything)
    }
}

/// Looks at one commit.
pub struct Guard<'c> {
    locks: &'c Locks,
    /// Where the paths of users begin.
    base: &'c str,
    passes: Passes,
    /// What the writer may do; everything, without.
    permissions: Option<&'c Permissions>,
    /// Locks that were met and are void.
    void: Vec<Void>,
}

impl<'c> Guard<'c> {
    pub fn new(
        locks: &'c Locks,
        base: &'c str,
        passes: Passes,
        permissions: Option<&'c Permissions>,
    ) -> Guard<'c> {
        Guard { locks, base, passes, permissions, void: Vec::new() }
    }

    /// The locks that the commit has met and that are to be removed.
    pub fn into_void(self) -> Vec<Void> {
        self.void
    }

    /// Refuses to go past a lock of somebody else who lives.
    fn pass(&mut self, entry: &Entry, view: &View<'_>) -> Result<()> {
        let is_known = self.void.iter().any(|void| void.lock == entry.id);
        if is_known || self.locks.owners.is_own(entry.owner.id) {
            return Ok(());
        }
        let is_told = match self.permissions {
            Some(permissions) => permissions.way(&entry.place, |_| Ok(false))?.may(Right::Read),
            None => true,
        };
        let refusal = || if is_told { busy(entry, self.base) } else { busy_somewhere() };
        let void = self.locks.void(entry, view)?.ok_or_else(refusal)?;
        self.void.push(void);
        Ok(())
    }

    /// Looks at the locks that a commit takes, changes or gives up.
    fn judge_locks(&mut self, before: &Table, proposed: &Proposed<'_>) -> Result<()> {
        let (view, after) = (&proposed.before, read(&proposed.after)?);
        for entry in before.entries() {
            if after.find(entry.id) != Some(entry) && self.passes != Passes::Lock(entry.id) {
                self.pass(entry, view)?;
            }
        }
        for entry in after.entries() {
            if before.find(entry.id) == Some(entry) {
                continue;
            }
            if !self.locks.owners.is_own(entry.owner.id) {
                if self.locks.is_in_force(entry, &proposed.after)? {
                    return Err(Error::invalid_input(format!(
                        "`{TREE}/{}` is a lock of somebody else; take one with `lock`",
                        entry.id
                    )));
                }
                continue;
            }
            // Nobody has a lock twice, and what is void is removed before.
            if let Some(other) = after.around(&entry.place).iter().find(|met| met.id != entry.id) {
                return Err(busy(other, self.base));
            }
        }
        // What is not there any more need not be removed.
        self.void.retain(|void| after.find(void.lock).is_some());
        Ok(())
    }
}

impl Review for Guard<'_> {
    fn review(&mut self, proposed: &Proposed<'_>, _derived: &mut Vec<Derived>) -> Result<()> {
        let before: Arc<Table> = self.locks.cache.of(&proposed.before)?;
        let mut changes_locks = false;
        for op in &proposed.diff.ops {
            match owners::reserved(op) {
                Some(tree) => changes_locks |= tree == NAME,
                None => {
                    let met = before.met_by(op);
                    for entry in met.held {
                        self.pass(entry, &proposed.before)?;
                    }
                    for entry in met.below {
                        if op.old.is_some() || !is_left_free(&entry.place, &proposed.after)? {
                            self.pass(entry, &proposed.before)?;
                        }
                    }
                }
            }
        }
        match changes_locks {
            true => self.judge_locks(&before, proposed),
            false => Ok(()),
        }
    }
}

/// Whether nothing is at a path and something may be put there: what is on the way are containers.
fn is_left_free(place: &str, after: &View<'_>) -> Result<bool> {
    if after.resolve(place)?.is_some() {
        return Ok(false);
    }
    let mut above = place;
    while let Some((parent, _)) = path::split_last(above) {
        if let Some(slot) = after.resolve(parent)? {
            return Ok(slot.read()?.node.container().is_some());
        }
        above = parent;
    }
    Ok(true)
}

/// The refusal of what a lock is in the way of.
pub fn busy(entry: &Entry, base: &str) -> Error {
    let info = LockInfo::new(entry, base);
    Error::busy(format!(
        "{info}; wait until it is unlocked, or break the lock: `spinney unlock --break {}`",
        info.path_in_a_command()
    ))
}

/// The refusal of what a lock is in the way of that may not be told of.
pub fn busy_somewhere() -> Error {
    Error::busy(
        "something that it is part of is locked by somebody else; wait until it is unlocked",
    )
}
