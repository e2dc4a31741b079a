//! Confirmed commits (RFC 6241, section 8.4): rolled back when nobody confirms them in time, whatever
//! has become of the process that made them.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

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
        Ok(found.map(|confirm| {
            let left = left(&confirm, now_ms());
            Unconfirmed { name: confirm.name, before: confirm.before, left }
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

    /// Rolls back what was not confirmed in time, and watches from now on what is to be confirmed, whoever makes it.
    pub(super) fn watch_confirm(&self) -> Result<()> {
        let is_due = |confirm: &Confirm| left(confirm, now_ms()).is_zero();
        let look_after = match notes::confirm(&self.store.read()?)? {
            Some(confirm) if is_due(&confirm) => {
                self.roll_back_if(&is_due).map_err(|error| {
                    error.at("rolling back a commit that was not confirmed in time")
                })?;
                LOOK_EVERY
            }
            Some(confirm) => left(&confirm, now_ms()).min(LOOK_EVERY),
            None => LOOK_EVERY,
        };
        self.store.shared().confirms.watch(&self.store, look_after)
    }

    /// Rolls back what waits for its confirmation, if it is due.
    fn roll_back_if(&self, is_due: &dyn Fn(&Confirm) -> bool) -> Result<()> {
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
        let what = match refusal.kind() {
            ErrorKind::Io | ErrorKind::Closed | ErrorKind::Conflict => "the first try failed",
            _ => "it was refused",
        };
        let overruled = format!("{NOT_CONFIRMED}; {what}, and made nevertheless: {refusal}");
        let len = overruled.floor_char_boundary(NOTE_LEN_MAX);
        roll_back(Passes::Everything, &overruled[..len]).map(drop)
    }

    fn roll_back(&self, transaction: &mut Transaction<'_>, confirm: &Confirm) -> Result<()> {
        let path = Datastore::Running.path();
        self.store.restore_in(transaction, &path, confirm.before)?;
        transaction.set_message(NOT_CONFIRMED)?;
        notes::set_confirm(transaction, None)
    }

    /// Whether the log tells what to undo to be at an older revision again.
    fn reaches_back(&self, revision: Revision) -> Result<bool> {
        let newest = self.store.backend().snapshot()?;
        let first = History::of(&*newest).first()?;
        Ok(revision < newest.revision()? && first.is_some_and(|first| first <= revision + 1))
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

/// The time that is left for a confirmation by a clock, in milliseconds since 1970. No commit waits for longer than
/// [`WAIT_MAX`]: where more is left, that clock was set back, and nothing is.
fn left(confirm: &Confirm, now_ms: u64) -> Duration {
    let left = Duration::from_millis(confirm.deadline_ms.saturating_sub(now_ms));
    if left > WAIT_MAX { Duration::ZERO } else { left }
}

/// The thread of a store that rolls back what nobody confirms in time.
#[derive(Default)]
pub(crate) struct Timer {
    thread: Mutex<Option<Thread>>,
}

impl Timer {
    fn thread(&self) -> MutexGuard<'_, Option<Thread>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at what is to be confirmed, first after some time, until the store's last handle is gone.
    fn watch(&self, store: &Store, look_after: Duration) -> Result<()> {
        let mut thread = self.thread();
        if thread.is_some() {
            return Ok(());
        }
        let weak = store.downgrade();
        let builder = thread::Builder::new().name("spinney-confirm".into());
        let handle = builder.spawn(move || run(&weak, look_after)).map_err(|error| {
            os_error("cannot start the thread that rolls back an unconfirmed commit", error)
        })?;
        *thread = Some(handle.thread().clone());
        Ok(())
    }

    /// Has it look at once.
    pub(super) fn look(&self) {
        self.thread().iter().for_each(Thread::unpark);
    }
}

/// How long it sleeps at most: other processes make and confirm commits, and handles end.
const LOOK_EVERY: Duration = Duration::from_millis(500);

fn run(store: &WeakStore, mut look_after: Duration) {
    let mut watched = None;
    loop {
        // Nothing of the store is held meanwhile.
        thread::park_timeout(look_after.clamp(Duration::from_millis(5), LOOK_EVERY));
        let Some(store) = store.upgrade() else { return };
        let datastores = Datastores { store, durability: None };
        let Some(left) = datastores.look_at_confirm(&mut watched) else { return };
        look_after = left;
    }
}

/// What waits for its confirmation, and until when by a clock that nobody sets.
struct Watched {
    confirm: Confirm,
    until: Instant,
}

impl Watched {
    /// Goes on watching a commit, or begins to.
    fn on(watched: Option<Watched>, confirm: Confirm, now_ms: u64, now: Instant) -> Watched {
        match watched {
            Some(known) if known.confirm == confirm => known,
            _ => Watched { until: now + left(&confirm, now_ms), confirm },
        }
    }

    /// The time that is left by that one of both clocks by which it is less.
    fn left(&self, now_ms: u64, now: Instant) -> Duration {
        left(&self.confirm, now_ms).min(self.until.saturating_duration_since(now))
    }
}

impl Datastores {
    /// Rolls back what is due, and tells when to look again; `None` where nothing can be written.
    fn look_at_confirm(&self, watched: &mut Option<Watched>) -> Option<Duration> {
        let Ok(noted) = self.store.read().and_then(|state| notes::confirm(&state)) else {
            return Some(LOOK_EVERY);
        };
        let Some(confirm) = noted else {
            *watched = None;
            return Some(LOOK_EVERY);
        };
        let known = Watched::on(watched.take(), confirm, now_ms(), Instant::now());
        let left = known.left(now_ms(), Instant::now());
        let rolled_back = match left.is_zero() {
            true => self.roll_back_if(&|due| *due == known.confirm),
            false => Ok(()),
        };
        *watched = Some(known);
        match rolled_back {
            Ok(()) => Some(left),
            Err(error) if error.kind() == ErrorKind::ReadOnly => None,
            // What cannot be written now is tried again.
            Err(_) => Some(LOOK_EVERY),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_MS: u64 = 1_000;

    fn confirm(deadline_ms: u64) -> Confirm {
        Confirm { before: 7, deadline_ms, name: String::new() }
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_make_a_commit_wait_longer() {
        let (now_ms, now) = (1_000_000 * SECOND_MS, Instant::now());
        let made = confirm(now_ms + 60 * SECOND_MS);
        let watched = Watched::on(None, made.clone(), now_ms, now);
        assert_eq!(watched.left(now_ms, now), Duration::from_secs(60));
        // An hour back, after 20 s.
        let (now_ms, now) = (now_ms - 3_600 * SECOND_MS, now + Duration::from_secs(20));
        let watched = Watched::on(Some(watched), made.clone(), now_ms, now);
        assert_eq!(watched.left(now_ms, now), Duration::from_secs(40));
        // One that goes on with it has a time of its own.
        let longer = confirm(now_ms + 90 * SECOND_MS);
        let watched = Watched::on(Some(watched), longer, now_ms, now);
        assert_eq!(watched.left(now_ms, now), Duration::from_secs(90));
    }

    #[test]
    fn no_commit_waits_for_longer_than_one_may() {
        let week_ms = 7 * 24 * 60 * 60 * SECOND_MS;
        let now_ms = 20 * week_ms;
        assert_eq!(left(&confirm(now_ms + week_ms), now_ms), WAIT_MAX);
        // Such as in a machine that begins in 1970 until somebody tells it the time.
        assert_eq!(left(&confirm(now_ms + week_ms), 0), Duration::ZERO);
        assert_eq!(left(&confirm(now_ms), now_ms), Duration::ZERO);
        assert_eq!(left(&confirm(now_ms), now_ms + week_ms), Duration::ZERO);
    }
}
