//! Confirmed commits (RFC 6241, section 8.4): rolled back when nobody confirms them in time, whatever
//! has become of the process that made them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use spinney_core::backend::Revision;
use spinney_core::history::{History, NOTE_LEN_MAX};
use spinney_core::{Error, ErrorKind, Result};

use super::candidate::CandidateCommit;
use super::notes::{self, Confirm, Reads};
use super::{Datastore, Datastores};
use crate::Transaction;
use crate::locks::Passes;
use crate::os_error::os_error;
use crate::store::{Committed, Store, WeakStore, now_ms};

/// The longest time that a commit may wait for its confirmation.
const WAIT_MAX: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What the log says of a roll-back.
const NOT_CONFIRMED: &str = "rolled back: the commit was not confirmed";

/// A commit that waits for its confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unconfirmed {
    /// What it was called.
    pub name: String,
    /// The revision that `running` goes back to.
    pub before: Revision,
    /// The time that is left.
    pub left: Duration,
}

/// Notes that a commit is to be confirmed, or that it confirms the one before.
pub(super) fn begin(transaction: &mut Transaction<'_>, options: &CandidateCommit) -> Result<()> {
    let waiting = notes::confirm(transaction)?;
    if let Some(waiting) = &waiting
        && waiting.name != options.name
    {
        return Err(busy(waiting));
    }
    let Some(timeout) = options.confirmed else {
        return match waiting {
            Some(_) => notes::set_confirm(transaction, None),
            None => Ok(()),
        };
    };
    if timeout.is_zero() || timeout > WAIT_MAX {
        return Err(Error::invalid_input(format!(
            "a confirmation cannot be waited for {} s; write more than 0, and at most {} days",
            timeout.as_secs(),
            WAIT_MAX.as_secs() / (24 * 60 * 60)
        )));
    }
    // One that goes on with another goes back to before both.
    let before = waiting.map_or(transaction.base(), |waiting| waiting.before);
    let deadline_ms = now_ms() + u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX / 2);
    let confirm = Confirm { before, deadline_ms, name: options.name.clone() };
    notes::set_confirm(transaction, Some(&confirm))
}

impl Datastores {
    /// The commit that waits for its confirmation.
    ///
    /// # Errors
    /// As [`crate::Store::read`].
    pub fn unconfirmed(&self) -> Result<Option<Unconfirmed>> {
        self.require_all()?;
        let found = notes::confirm(&self.store.read()?)?;
        Ok(found.map(|Confirm { name, before, deadline_ms }| Unconfirmed {
            name,
            before,
            left: Duration::from_millis(deadline_ms.saturating_sub(now_ms())),
        }))
    }

    /// Confirms the commit that waits for it.
    ///
    /// # Errors
    /// `NotFound` when none does; `Busy` when it has another name.
    pub fn confirm(&self, name: &str) -> Result<Committed<()>> {
        self.write(|transaction| {
            waiting(transaction, name)?;
            notes::set_confirm(transaction, None)
        })
    }

    /// Rolls the commit back that waits for its confirmation.
    ///
    /// # Errors
    /// As [`Datastores::confirm`]; as [`crate::Store::restore`].
    pub fn cancel(&self, name: &str) -> Result<Committed<()>> {
        self.write(|transaction| {
            let waiting = waiting(transaction, name)?;
            self.roll_back(transaction, &waiting)
        })
    }

    pub(super) fn watch_confirm(&self) -> Result<()> {
        self.store.shared().confirms.watch(&self.store)
    }

    /// Rolls back what was not confirmed in time, and watches what still may be.
    pub(super) fn roll_back_overdue(&self) -> Result<()> {
        let is_due = |confirm: &Confirm| confirm.deadline_ms <= now_ms();
        match notes::confirm(&self.store.read()?)? {
            None => return Ok(()),
            Some(confirm) if !is_due(&confirm) => return self.watch_confirm(),
            Some(_) => {}
        }
        let roll_back = |passes, message: &str| {
            self.store.write_passing(passes, |transaction| match notes::confirm(transaction)? {
                Some(confirm) if !is_due(&confirm) => Ok(()),
                Some(confirm) if !self.reaches_back(confirm.before)? => {
                    transaction.set_message(&format!(
                        "not rolled back, though the commit was not confirmed: revision {} is not kept any more",
                        confirm.before
                    ))?;
                    notes::set_confirm(transaction, None)
                }
                Some(confirm) => {
                    self.roll_back(transaction, &confirm)?;
                    transaction.set_message(message)
                }
                None => Ok(()),
            })
        };
        // Who locked it knew that the time runs.
        let Err(refusal) = roll_back(Passes::Locks, NOT_CONFIRMED) else { return Ok(()) };
        // What was in force before is in force again, whoever is against it by now.
        let overruled =
            format!("{NOT_CONFIRMED}; it was refused, and made nevertheless: {refusal}");
        let len = overruled.floor_char_boundary(NOTE_LEN_MAX);
        roll_back(Passes::Everything, &overruled[..len]).map(drop)
    }

    fn roll_back(&self, transaction: &mut Transaction<'_>, confirm: &Confirm) -> Result<()> {
        let path = Datastore::Running.path();
        self.store.restore_in(transaction, &path, confirm.before)?;
        transaction.set_message(NOT_CONFIRMED)?;
        notes::set_confirm(transaction, None)
    }

    /// Whether the log tells what to undo to be at a revision again.
    fn reaches_back(&self, revision: Revision) -> Result<bool> {
        let newest = self.store.backend().snapshot()?;
        Ok(History::of(&*newest).first()?.is_some_and(|first| first <= revision + 1))
    }
}

/// The first revision of the log that is needed to roll back what waits for its confirmation, if anything does.
///
/// # Errors
/// Those of reading.
pub(crate) fn first_needed(reads: &impl Reads) -> Result<Revision> {
    Ok(notes::confirm(reads)?.map_or(Revision::MAX, |confirm| confirm.before + 1))
}

fn waiting(transaction: &Transaction<'_>, name: &str) -> Result<Confirm> {
    match notes::confirm(transaction)? {
        None => Err(Error::not_found("no commit waits for a confirmation")),
        Some(waiting) if waiting.name != name => Err(busy(&waiting)),
        Some(waiting) => Ok(waiting),
    }
}

fn busy(waiting: &Confirm) -> Error {
    let name = match &*waiting.name {
        "" => "without a name".to_owned(),
        name => format!("named `{name}`"),
    };
    Error::new(
        ErrorKind::Busy,
        format!("a commit {name} waits for its confirmation; confirm or cancel it by that name"),
    )
}

/// Whether a thread of this store waits for a confirmation, to roll back when the time is up.
#[derive(Default)]
pub(crate) struct Timer {
    is_running: Mutex<bool>,
}

impl Timer {
    fn is_running(&self) -> MutexGuard<'_, bool> {
        self.is_running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits in the background for what is to be confirmed; ends when that is settled, or with the
    /// store's last handle.
    pub(super) fn watch(&self, store: &Store) -> Result<()> {
        let mut is_running = self.is_running();
        if *is_running || notes::confirm(&store.read()?)?.is_none() {
            return Ok(());
        }
        let weak = store.downgrade();
        let thread = thread::Builder::new().name("spinney-confirm".into());
        thread.spawn(move || run(&weak)).map_err(|error| {
            os_error("cannot start the thread that rolls back an unconfirmed commit", error)
        })?;
        *is_running = true;
        Ok(())
    }
}

/// How long it sleeps at most: others may change what is to be confirmed, and handles end.
const LOOK_EVERY: Duration = Duration::from_millis(500);

fn run(store: &WeakStore) {
    loop {
        let Some(store) = store.upgrade() else { return };
        let datastores = Datastores { store, durability: None };
        let Some(left) = datastores.look_at_confirm() else { return };
        drop(datastores);
        thread::sleep(left.clamp(Duration::from_millis(5), LOOK_EVERY));
    }
}

impl Datastores {
    /// The time until there is something to do about what is to be confirmed; `None` when there is
    /// nothing, and then nobody watches any more.
    fn look_at_confirm(&self) -> Option<Duration> {
        let mut is_running = self.store.shared().confirms.is_running();
        match self.store.read().and_then(|state| notes::confirm(&state)) {
            Ok(None) => {
                *is_running = false;
                None
            }
            Ok(Some(confirm)) => {
                drop(is_running);
                let left = confirm.deadline_ms.saturating_sub(now_ms());
                if left == 0 {
                    // What cannot be written now is tried again.
                    let _ = self.roll_back_overdue();
                }
                Some(Duration::from_millis(left))
            }
            Err(_) => Some(LOOK_EVERY),
        }
    }
}
