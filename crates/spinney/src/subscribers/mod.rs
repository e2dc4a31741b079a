//! Subscribers that are asked before a commit is made, and told how it ended.
//!
//! `Questions` asks them for a write, in their order; a `Mailbox` is the thread of one of them.
//! What they are asked is a [`Proposal`]. Nothing here knows how a commit is made.

mod concern;
mod mailbox;
mod proposal;
mod questions;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spinney_core::backend::Revision;
use spinney_core::{Error, Path, Result, Value, path};

use crate::store::Store;
use mailbox::Mailbox;

pub use proposal::Proposal;
pub(crate) use questions::Questions;

/// The longest time that a subscriber may be waited for.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// Bytes of a subscriber's name.
pub const NAME_LEN_MAX: usize = 255;

/// How often one subscriber may amend one commit.
pub const AMENDMENTS_MAX: usize = 8;

/// Is asked before each commit that concerns its path is made.
///
/// It runs on a thread of its own. While it is asked, the writer and those behind it wait, so it
/// reads what it was given and does not write to the store: that would wait for the answer.
///
/// A closure `FnMut(&Proposal) -> Answer` is one that does not want to be told how it ended.
pub trait Subscriber: Send {
    /// Answers whether the commit may be made.
    fn asked(&mut self, proposal: &Proposal) -> Answer;

    /// Is told how the commit ended that it was asked about as [`Proposal::number`]: once for each
    /// question, in their order. It delays nobody, so the next question may have come before.
    fn told(&mut self, number: u64, ended: &Ended) {
        let _ = (number, ended);
    }
}

impl<F: FnMut(&Proposal) -> Answer + Send> Subscriber for F {
    fn asked(&mut self, proposal: &Proposal) -> Answer {
        self(proposal)
    }
}

/// What a subscriber says to a commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It may be made.
    Pass,
    /// It must not be made, and why.
    Veto(String),
    /// It may be made with these changes on top. The write's closure then runs again, and everyone is
    /// asked again about the whole.
    Amend(Vec<Edit>),
}

/// A change that a subscriber wants in a commit.
#[derive(Clone, Debug, PartialEq)]
pub enum Edit {
    /// Sets a path.
    Set(String, Value),
    /// Inserts into a list, before a position.
    Insert(String, Value),
    /// Removes what is at a path, if anything is.
    Remove(String),
}

/// How a commit ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It was made, and is as durable as its writer wanted it.
    Committed(Revision),
    /// It was not made, and why; it may be tried again, and is then asked about again. After a failed
    /// sync nobody knows whether it survives.
    GivenUp(String),
}

/// How a subscriber is asked.
#[derive(Clone, Debug)]
pub struct SubscriberOptions {
    /// What it is called in errors.
    pub name: String,
    /// Higher ones are asked first; of equal ones, who has subscribed first.
    pub priority: i32,
    /// How long a commit waits for its answer before it is refused (default: 5 s).
    pub timeout: Duration,
}

impl SubscriberOptions {
    /// A subscriber of priority 0 that has 5 s to answer.
    pub fn new(name: &str) -> SubscriberOptions {
        let timeout = Duration::from_secs(5);
        SubscriberOptions { name: name.to_owned(), priority: 0, timeout }
    }

    /// Sets who is asked first: the higher priority.
    pub fn priority(self, priority: i32) -> SubscriberOptions {
        SubscriberOptions { priority, ..self }
    }

    /// Sets how long a commit waits for the answer.
    pub fn timeout(self, timeout: Duration) -> SubscriberOptions {
        SubscriberOptions { timeout, ..self }
    }

    fn check(&self) -> Result<()> {
        let SubscriberOptions { name, timeout, .. } = self;
        if name.is_empty() || name.len() > NAME_LEN_MAX || name.chars().any(char::is_control) {
            return Err(Error::invalid_input(format!(
                "the subscriber's name {name:?} is not 1 to {NAME_LEN_MAX} bytes of printable text"
            )));
        }
        if timeout.is_zero() || *timeout > TIMEOUT_MAX {
            return Err(Error::invalid_input(format!(
                "the subscriber `{name}` has a timeout of {timeout:?}; it must be above 0 and at most \
                 {TIMEOUT_MAX:?}"
            )));
        }
        Ok(())
    }
}

/// Whom to ask, when, and for how long.
struct Terms {
    /// From the base of the store's paths.
    path: Path,
    /// The same from the store's root, as segments.
    segments: Vec<String>,
    options: SubscriberOptions,
}

struct Member {
    terms: Terms,
    mailbox: Arc<Mailbox>,
}

/// The subscribers of a store.
#[derive(Default)]
pub(crate) struct Subscribers {
    count: AtomicUsize,
    /// In the order in which they are asked.
    members: Mutex<Arc<Vec<Arc<Member>>>>,
}

impl Subscribers {
    /// In the order in which they are asked; `None` when there are none.
    fn members(&self) -> Option<Arc<Vec<Arc<Member>>>> {
        (self.count.load(Ordering::Acquire) > 0).then(|| Arc::clone(&self.list()))
    }

    fn add(&self, member: Arc<Member>) {
        let mut list = self.list();
        let members = Arc::make_mut(&mut list);
        let priority = member.terms.options.priority;
        let at = members.partition_point(|other| other.terms.options.priority >= priority);
        members.insert(at, member);
        self.count.store(members.len(), Ordering::Release);
    }

    fn remove(&self, member: &Arc<Member>) {
        let mut list = self.list();
        let members = Arc::make_mut(&mut list);
        members.retain(|other| !Arc::ptr_eq(other, member));
        self.count.store(members.len(), Ordering::Release);
    }

    fn list(&self) -> MutexGuard<'_, Arc<Vec<Arc<Member>>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a subscriber subscribed, and the store open, until it is dropped.
///
/// Once it is dropped the subscriber is asked no more; a commit that waits for its answer goes on
/// without. It is still told how the commits ended that it was asked about.
#[must_use = "dropping it unsubscribes"]
pub struct Subscription {
    store: Store,
    member: Arc<Member>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.store.subscribers().remove(&self.member);
        self.member.mailbox.close();
    }
}

impl Store {
    /// Has a subscriber asked before each commit of this store and its clones that concerns what is at
    /// a path or below it.
    ///
    /// A commit that it refuses fails with `Denied`; one that it does not answer in time, or at which
    /// it panics, with `Busy`; one that it amends more than [`AMENDMENTS_MAX`] times, with
    /// `LimitExceeded`. None of them changes anything. A subscriber that has panicked stays: were it
    /// gone, everything would pass.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path and options that make no sense; `Io` when no thread starts.
    pub fn before_commit(
        &self,
        path: &str,
        options: SubscriberOptions,
        subscriber: impl Subscriber + 'static,
    ) -> Result<Subscription> {
        options.check()?;
        let path = Path::parse(path)?;
        let whole = [self.base_path(), &path].concat();
        let segments = path::segments(&whole).map(std::borrow::Cow::into_owned).collect();
        let mailbox = Mailbox::start(&options.name, Box::new(subscriber))?;
        let member = Arc::new(Member { terms: Terms { path, segments, options }, mailbox });
        self.subscribers().add(Arc::clone(&member));
        Ok(Subscription { store: self.clone(), member })
    }
}
