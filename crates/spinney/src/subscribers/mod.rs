//! Subscribers that are asked before a commit is made, and told how it ended.
//!
//! `Questions` asks them for a write, in their order; a `Mailbox` holds what one of them is asked and
//! told, `Workers` call them. What they are asked is a [`Proposal`]. Those of other processes are found by a `Registry` and asked
//! over a `Link`. Nothing here knows how a commit is made.

mod concern;
#[cfg(feature = "lmdb")]
mod link;
mod mailbox;
mod parties;
mod proposal;
mod questions;
#[cfg(feature = "lmdb")]
mod registry;
#[cfg(feature = "lmdb")]
mod serve;
#[cfg(all(test, feature = "lmdb"))]
mod tests;
#[cfg(feature = "lmdb")]
mod wire;
mod workers;

use std::sync::Arc;
#[cfg(feature = "lmdb")]
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use spinney_core::backend::Revision;
use spinney_core::{Error, Path, Result, Value};

use crate::access::Right;
use crate::layers::Stack;
#[cfg(feature = "lmdb")]
use crate::os_error::os_error;
use crate::store::Store;
use mailbox::Mailbox;
use parties::{Member, Party, Terms, insert};

pub(crate) use parties::Subscribers;
pub use proposal::Proposal;
pub(crate) use questions::Questions;
#[cfg(feature = "lmdb")]
pub(crate) use registry::Registry;
#[cfg(feature = "lmdb")]
pub use wire::FRAME_LEN_MAX as QUESTION_LEN_MAX;

/// The longest time that a subscriber may be waited for.
pub const TIMEOUT_MAX: Duration = Duration::from_secs(600);

/// Bytes of a subscriber's name.
pub const NAME_LEN_MAX: usize = 255;

/// How often one subscriber may amend one commit.
pub const AMENDMENTS_MAX: usize = 8;

/// Is asked before each commit that concerns its path is made.
///
/// It is called on threads of the store's, on one at a time. While it is asked, the writer and those behind it wait, so it
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
    /// It was made, and is as durable as its writer wanted it: one that nobody synced may be lost in a
    /// crash, and another one then has its revision.
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
    /// Whether it is also asked by other processes that have the store open (default: no).
    pub required: bool,
}

impl SubscriberOptions {
    /// A subscriber of priority 0 that has 5 s to answer, for the writes of its own process.
    pub fn new(name: &str) -> SubscriberOptions {
        let timeout = Duration::from_secs(5);
        SubscriberOptions { name: name.to_owned(), priority: 0, timeout, required: false }
    }

    /// Sets who is asked first: the higher priority.
    pub fn priority(self, priority: i32) -> SubscriberOptions {
        SubscriberOptions { priority, ..self }
    }

    /// Sets how long a commit waits for the answer.
    pub fn timeout(self, timeout: Duration) -> SubscriberOptions {
        SubscriberOptions { timeout, ..self }
    }

    /// Sets whether it is also asked by other processes.
    pub fn required(self, required: bool) -> SubscriberOptions {
        SubscriberOptions { required, ..self }
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

/// Keeps a subscriber subscribed, and the store open, until it is dropped.
///
/// Once it is dropped the subscriber is asked no more; a commit that waits for its answer goes on
/// without. It is still told how the commits ended that it was asked about.
#[must_use = "dropping it unsubscribes"]
pub struct Subscription {
    store: Store,
    member: Arc<Member>,
    /// Dropped after the others were told to ask no more.
    #[cfg(feature = "lmdb")]
    registration: Option<registry::Registration>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        #[cfg(feature = "lmdb")]
        drop(self.registration.take());
        self.store.subscribers().change(|parties| parties.retain(|party| !party.is(&self.member)));
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
    /// A [required](SubscriberOptions::required) one of an LMDB store is asked about the commits of all
    /// processes that begin after this, until its own ends; their errors name that process.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path and options that make no sense; `Denied` to who may not read
    /// everything; `Io` when no thread starts. For
    /// a required one, also `ReadOnly` and those of registering it.
    pub fn before_commit(
        &self,
        path: &str,
        options: SubscriberOptions,
        subscriber: impl Subscriber + 'static,
    ) -> Result<Subscription> {
        options.check()?;
        // It is shown the whole states before and after.
        self.require("", Right::Read)?;
        let this = self.holding_or_new(path)?;
        if this.forest().is_some() {
            return Err(Error::unsupported(
                "one commit changes one tree of this store; subscribe to a tree, such as `/people`",
            ));
        }
        let terms = Terms::new(this.base_path(), Path::parse(path)?, options, None);
        this.subscribe(terms, Box::new(subscriber))
    }

    fn subscribe(self, terms: Terms, subscriber: Box<dyn Subscriber>) -> Result<Subscription> {
        let workers = &self.subscribers().workers;
        let mailbox = Mailbox::new(workers, &terms.options.name, subscriber)?;
        let member = Arc::new(Member { terms, mailbox });
        #[cfg(feature = "lmdb")]
        let registration = self.register(&member).inspect_err(|_| member.mailbox.close())?;
        self.subscribers().change(|parties| insert(parties, Party::Own(Arc::clone(&member))));
        Ok(Subscription {
            store: self,
            member,
            #[cfg(feature = "lmdb")]
            registration,
        })
    }

    /// Has other processes ask a required subscriber, too, where there may be some.
    #[cfg(feature = "lmdb")]
    fn register(&self, member: &Member) -> Result<Option<registry::Registration>> {
        if !member.terms.options.required {
            return Ok(None);
        }
        let Some(registry) = &self.subscribers().registry else {
            return match self.capabilities().multi_process {
                false => Ok(None),
                true => Err(Error::unsupported(
                    "other processes cannot ask a required subscriber of this kind of store",
                )),
            };
        };
        let registration = registry.register(&member.terms.of_store())?;
        let (backend, origin) = self.foundation();
        let (mailbox, terms) = (Arc::clone(&member.mailbox), member.terms.clone());
        let server = serve::Server { backend, origin, mailbox, terms, open: AtomicUsize::new(0) };
        let listener = registration.listener().map_err(|error| os_error("cannot listen", error))?;
        Arc::new(server).start(listener)?;
        Ok(Some(registration))
    }
}

impl Stack {
    /// Has a subscriber asked before each commit of the layers' store that changes what is at a path of the tree that
    /// the layers are read as, or below it: with the changes of that tree, and its states. What it amends are
    /// edits of the store, whose paths begin at the store's root.
    ///
    /// # Errors
    /// `Unsupported` when the layers are in several stores or in the past; `Denied` to who may not read everything; as
    /// [`Store::before_commit`].
    pub fn before_commit(
        &self,
        path: &str,
        options: SubscriberOptions,
        subscriber: impl Subscriber + 'static,
    ) -> Result<Subscription> {
        options.check()?;
        let stack = self.following()?;
        let store = stack.store().clone();
        // It is shown the whole states before and after.
        store.require("", Right::Read)?;
        store.subscribe(Terms::of_stack(stack, Path::parse(path)?, options), Box::new(subscriber))
    }
}
