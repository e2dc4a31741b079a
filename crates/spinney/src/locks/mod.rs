//! Locks of people and programs: while somebody has a path locked, nobody else changes what is at it,
//! above it or below it.
//!
//! They are data, in the tree [`TREE`]: one commit takes a lock and one gives it up, so of two who want it
//! one wins, other processes see it, and the log tells of it. `table` reads them, `guard` judges commits.
//! Whether an owner lives is the business of [`crate::owners`].

mod guard;
mod info;
mod lock;
mod table;

use std::time::{Duration, Instant};

use spinney_core::backend::Revision;
use spinney_core::{Error, ErrorKind, Path, Result, path};

use crate::Transaction;
use crate::access::Right;
use crate::owners::{self, RESERVED};
use crate::store::{Committed, Durability, Store, now_ms};
use guard::{busy, busy_somewhere};
use table::Entry;

pub(crate) use guard::{Guard, Locks, Passes, Void};
pub use info::LockInfo;
pub use lock::Lock;
pub(crate) use table::Cache;

/// The tree that holds the locks of a store, each under its id.
pub const TREE: &str = "/.locks";

/// The name of [`TREE`].
pub(crate) const NAME: &str = ".locks";

/// Bytes of a lock's name.
pub const NAME_LEN_MAX: usize = 255;

/// How often who waits looks whether the holder lives.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// How often a lock is tried for that nobody has and that another commit took away meanwhile.
const TRIES_MAX: u32 = 16;

/// How a lock is taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LockOptions {
    /// What it is for, so that others know.
    pub name: String,
    /// After this it is void, whether its process lives or not (default: never).
    pub lease: Option<Duration>,
    /// How long to wait for others (default: not at all).
    pub wait: Option<Duration>,
}

impl LockOptions {
    fn check(&self) -> Result<()> {
        let LockOptions { name, lease, .. } = self;
        if name.len() > NAME_LEN_MAX || name.chars().any(char::is_control) {
            return Err(Error::invalid_input(format!(
                "the lock's name {name:?} is not at most {NAME_LEN_MAX} bytes of printable text"
            )));
        }
        if lease.is_some_and(|lease| lease.is_zero()) {
            return Err(Error::invalid_input("a lock with a lease of 0 would be void at once"));
        }
        Ok(())
    }

    fn expires_ms(&self) -> Option<u64> {
        self.lease.map(expires_ms)
    }
}

fn expires_ms(lease: Duration) -> u64 {
    now_ms().saturating_add(u64::try_from(lease.as_millis()).unwrap_or(u64::MAX))
}

impl Store {
    /// Locks a path, which need not exist: until the lock is dropped, only this handle and its clones
    /// change what is at it, above it or below it. Commits of others that would are refused with `Busy`;
    /// reading is free. The root `""` locks everything.
    ///
    /// No two locks of a store meet, those of one handle neither, so they also keep its threads apart. A
    /// lock is void once its process has ended, however that was.
    ///
    /// # Errors
    /// `Busy`, naming who has what is in the way locked, when the time to wait is up; `InvalidInput` for a
    /// malformed path, one of a reserved tree, and options that make no sense; `Unsupported` for the root of
    /// a store whose trees are kept apart; those of [`Store::write`], such as `ReadOnly`.
    ///
    /// # Durability
    /// That of [`Durability::Process`]: a lock need not survive a power failure, as its owner does not.
    ///
    /// # Complexity
    /// Two commits, one to lock and one to unlock, that of the locks that there are.
    ///
    /// # Examples
    /// ```
    /// use spinney::{LockOptions, open};
    ///
    /// let store = open("memory:")?;
    /// let lock = store.lock("/people/42", LockOptions::default())?;
    /// store.write(|tx| tx.set("/people/42/name", &"Ada".into()))?;
    /// let refused = store.lock("/people", LockOptions::default()).map(drop);
    /// assert_eq!(refused.unwrap_err().kind(), spinney::ErrorKind::Busy);
    /// lock.unlock()?;
    /// # Ok::<(), spinney::Error>(())
    /// ```
    pub fn lock(&self, path: &str, options: LockOptions) -> Result<Lock> {
        let locked = || {
            options.check()?;
            let place = self.lock_place(path)?;
            self.require(path, Right::Write)?;
            let this = self.holding_or_new(path)?;
            if this.forest().is_some() {
                return Err(Error::unsupported(
                    "one lock is of one tree of this store; lock a tree, such as `/people`",
                ));
            }
            this.lock_when_free(place, &options)
        };
        locked().map_err(|error| error.at(format_args!("lock {}", path::Display(path))))
    }

    /// A user's path as one from the store's root, when it may be locked.
    fn lock_place(&self, path: &str) -> Result<Path> {
        path::check(path)?;
        let place = Path::parse(&[self.base_path(), path].concat())?;
        if path::segments(&place).next().is_some_and(|tree| RESERVED.contains(&&*tree)) {
            return Err(Error::invalid_input(format!(
                "{} is where locks are kept, and cannot be locked",
                path::Display(path)
            )));
        }
        Ok(place)
    }

    fn lock_when_free(&self, place: Path, options: &LockOptions) -> Result<Lock> {
        let deadline = options.wait.and_then(|wait| Instant::now().checked_add(wait));
        let is_time_left = || deadline.map_or(options.wait.is_some(), |at| Instant::now() < at);
        let mut refused: Option<(Revision, Error)> = None;
        let mut tries = 0;
        loop {
            let (revision, seen) = self.look_around(&place)?;
            let Some(other) = seen.blocker else {
                if let Some((_, error)) = refused.take().filter(|(at, _)| *at == revision) {
                    // It was no lock.
                    return Err(error);
                }
                match self.take(&place, options, &seen.void) {
                    // Somebody was faster.
                    Err(error) if error.kind() == ErrorKind::Busy && tries < TRIES_MAX => {
                        refused = Some((revision, error));
                        tries += 1;
                    }
                    taken => return taken,
                }
                continue;
            };
            if !is_time_left() {
                return Err(match self.read()?.permits_one(&other.place, Right::Read)? {
                    true => busy(&other, self.base_path()),
                    false => busy_somewhere(),
                });
            }
            (refused, tries) = (None, 0);
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let expires =
                other.expires_ms.map(|at| Duration::from_millis(at.saturating_sub(now_ms())));
            let pause = [left, expires, Some(LOOK_EVERY)].into_iter().flatten().min();
            self.wait(revision, pause.unwrap_or(LOOK_EVERY))?;
        }
    }

    /// What of the newest state is in the way of a lock, and which locks are void.
    fn look_around(&self, place: &str) -> Result<(Revision, Seen)> {
        let snapshot = self.unrestricted().read()?;
        let (revision, view) = (snapshot.revision()?, snapshot.view());
        let locks = self.locks_and_owners();
        let table = locks.cache.of(&view)?;
        let mut seen = Seen::default();
        for entry in table.entries() {
            seen.void.extend(locks.void(entry, &view)?);
        }
        let is_void = |entry: &&Entry| seen.void.iter().any(|void| void.lock == entry.id);
        seen.blocker = table.around(place).into_iter().find(|entry| !is_void(entry)).cloned();
        Ok((revision, seen))
    }

    fn take(&self, place: &Path, options: &LockOptions, void: &[Void]) -> Result<Lock> {
        let owner = self.owner()?;
        let holding = owner.holding();
        let take = |transaction: &mut Transaction<'_>| {
            remove_void(transaction, void)?;
            holding.begin(transaction)?;
            // Nothing else has this revision, so ids never come again.
            let id = transaction.base() + 1;
            let entry = Entry {
                id,
                place: place.clone(),
                name: options.name.clone(),
                since_ms: now_ms(),
                expires_ms: options.expires_ms(),
                owner: owner.record.clone(),
            };
            transaction.set(&entry_path(id), &entry.to_value())?;
            Ok(id)
        };
        let this = self.unrestricted();
        let taken = this.write_with(Durability::Process, |tx| tx.at_root(take))?;
        Ok(Lock::new(this, taken.value, place, options.lease, holding))
    }

    /// The locks that are in force, in the order in which they were taken; those on what may be read.
    ///
    /// # Errors
    /// Those of [`Store::read`], and of asking whether owners live.
    pub fn locks(&self) -> Result<Vec<LockInfo>> {
        if let Some(forest) = self.forest() {
            let all: Result<Vec<_>> = forest.all()?.iter().map(|(_, tree)| tree.locks()).collect();
            return Ok(all?.into_iter().flatten().collect());
        }
        let snapshot = self.read()?;
        let view = snapshot.view();
        let locks = self.locks_and_owners();
        let mut found = Vec::new();
        for entry in locks.cache.of(&view)?.entries() {
            if locks.is_in_force(entry, &view)?
                && snapshot.permits_one(&entry.place, Right::Read)?
            {
                found.push(LockInfo::new(entry, self.base_path()));
            }
        }
        Ok(found)
    }

    /// Takes the lock of a path away from whoever has it; the log keeps who did that to whom. The next
    /// write of the former holder is judged like anyone's, and its [`Lock::is_held`] says no.
    ///
    /// # Errors
    /// `NotFound` when exactly this path is not locked; `Denied` to who does not administer it; those of [`Store::write`].
    pub fn break_lock(&self, path: &str) -> Result<Committed<LockInfo>> {
        let broken = || {
            let place = self.lock_place(path)?;
            self.require(path, Right::Admin)?;
            let this = self.holding(path)?;
            if this.forest().is_some() {
                return Err(not_locked(path));
            }
            this.try_break(path, &place)
        };
        broken().map_err(|error| error.at(format_args!("unlock {}", path::Display(path))))
    }

    fn try_break(&self, path: &str, place: &Path) -> Result<Committed<LockInfo>> {
        let snapshot = self.read()?;
        let view = snapshot.view();
        let locks = self.locks_and_owners();
        let table = locks.cache.of(&view)?;
        let found = table.entries().iter().find(|entry| entry.place == *place);
        let Some(entry) = found else { return Err(not_locked(path)) };
        if !locks.is_in_force(entry, &view)? {
            return Err(not_locked(path));
        }
        let info = LockInfo::new(entry, self.base_path());
        let message = match self.message() {
            "" => format!("break a lock: {info}"),
            message => format!("{message} (break a lock: {info})"),
        };
        let remove = |transaction: &mut Transaction<'_>| {
            transaction.set_message(&message)?;
            match transaction.remove(&entry_path(entry.id))? {
                true => Ok(()),
                // It was unlocked meanwhile.
                false => Err(not_locked(path)),
            }
        };
        let broken = self.write_passing(Passes::Lock(entry.id), |tx| tx.at_root(remove))?;
        Ok(Committed { revision: broken.revision, diff: broken.diff, value: info })
    }
}

/// What somebody who wants a lock sees.
#[derive(Default)]
struct Seen {
    /// A lock that is in the way.
    blocker: Option<Entry>,
    void: Vec<Void>,
}

fn entry_path(id: u64) -> String {
    format!("{TREE}/{id}")
}

/// Removes what was left, as far as nobody else has; paths begin at the store's root.
///
/// # Errors
/// Those of writing.
pub(crate) fn remove_void(transaction: &mut Transaction<'_>, void: &[Void]) -> Result<()> {
    for Void { lock, dead } in void {
        transaction.remove(&entry_path(*lock))?;
        if let Some(dead) = dead {
            owners::forget(transaction, *dead)?;
        }
    }
    Ok(())
}

fn not_locked(path: &str) -> Error {
    Error::not_found(format!(
        "{} is not locked; `spinney locks` lists what is",
        path::Display(path)
    ))
}
