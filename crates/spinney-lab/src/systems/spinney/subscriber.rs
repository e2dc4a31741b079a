//! A subscriber that decodes each commit in full and counts what changed in it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use spinney::{
    Answer, Ended, Proposal, Snapshot, Store, Subscriber, SubscriberOptions, Subscription,
};
use spinney_core::diff::{Op, Step, What};
use spinney_core::view::Slot;
use spinney_core::{Container, Error, Key, Result, Scalar, Visitor};

use crate::system::Delivery;

/// How long a commit may wait for a subscriber, and a try for the last word to it.
const PATIENCE: Duration = Duration::from_secs(300);

/// A subscription, and what came by it.
pub struct Counting {
    desk: Arc<Desk>,
    _subscription: Subscription,
}

/// Between the thread of a subscriber and who asks what it was given.
#[derive(Default)]
struct Desk {
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
struct Seen {
    given: Delivery,
    failure: Option<String>,
}

struct Counter {
    desk: Arc<Desk>,
    /// Commits that were shown and not told the end of.
    shown: VecDeque<(u64, Delivery)>,
}

impl Counting {
    /// Subscribes a counter to a path.
    ///
    /// # Errors
    /// Those of subscribing.
    pub fn new(store: &Store, path: &str) -> Result<Counting> {
        let desk = Arc::new(Desk::default());
        let counter = Counter { desk: Arc::clone(&desk), shown: VecDeque::new() };
        let options = SubscriberOptions::new("counter").timeout(PATIENCE);
        Ok(Counting { desk, _subscription: store.before_commit(path, options, counter)? })
    }

    /// What came since the last call, as soon as it was told the end of all commits.
    ///
    /// # Errors
    /// `Busy` when it is not told in time; what it met when it decoded a commit.
    pub fn take(&self) -> Result<Delivery> {
        let seen = self.desk.seen();
        let waits =
            |seen: &mut Seen| seen.failure.is_none() && seen.given.told < seen.given.commits;
        let (mut seen, timed_out) = self
            .desk
            .changed
            .wait_timeout_while(seen, PATIENCE, waits)
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = seen.failure.take() {
            return Err(Error::corrupted(format!(
                "a subscriber could not decode a commit: {failure}"
            )));
        }
        if timed_out.timed_out() {
            return Err(Error::busy("a subscriber was not told how a commit ended"));
        }
        Ok(std::mem::take(&mut seen.given))
    }
}

impl Desk {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Subscriber for Counter {
    fn asked(&mut self, proposal: &Proposal) -> Answer {
        let decoded = decode(proposal);
        let mut seen = self.desk.seen();
        seen.given.commits += 1;
        match decoded {
            Ok(delivery) => self.shown.push_back((proposal.number, delivery)),
            Err(error) => seen.failure = Some(error.to_string()),
        }
        Answer::Pass
    }

    fn told(&mut self, number: u64, ended: &Ended) {
        let at = self.shown.iter().position(|(shown, _)| *shown == number);
        let shown = at.and_then(|at| self.shown.remove(at));
        let mut seen = self.desk.seen();
        seen.given.told += 1;
        if let (Some((_, delivery)), Ended::Committed(_)) = (shown, ended) {
            seen.given.add(delivery);
        }
        drop(seen);
        self.desk.changed.notify_all();
    }
}

fn decode(proposal: &Proposal) -> Result<Delivery> {
    let mut delivery = Delivery::default();
    for op in proposal.diff.ops.iter().filter(|op| op.what == What::Node) {
        let old = nodes(&proposal.before, op, op.old.as_deref())?;
        let new = nodes(&proposal.after, op, op.new.as_deref())?;
        match (old, new) {
            (Some(Nodes { leaf: true, .. }), Some(Nodes { leaf: true, .. })) => {
                delivery.changed += 1;
            }
            (old, new) => {
                delivery.removed += old.map_or(0, |old| old.count);
                delivery.created += new.map_or(0, |new| new.count);
            }
        }
    }
    Ok(delivery)
}

fn nodes(state: &Snapshot, op: &Op, encoded: Option<&[u8]>) -> Result<Option<Nodes>> {
    let Some(encoded) = encoded else { return Ok(None) };
    let last = op.path.iter().last();
    let is_frame = matches!(last, Some(Step::Key(key)) if Key::decode(key).is_some_and(is_frame));
    let mut nodes = Nodes { is_frame, ..Nodes::default() };
    state.view().walk(&Slot::owned(op.tree, encoded), &mut nodes)?;
    Ok(Some(nodes))
}

/// Counts the nodes of a value.
#[derive(Default)]
struct Nodes {
    count: u64,
    leaf: bool,
    /// The value that follows is none of the model's nodes.
    is_frame: bool,
}

/// Whether a container holds nodes and is none: a list, the root of a datastore or of what is pushed.
fn is_frame(key: Key<'_>) -> bool {
    matches!(key, Key::Text("lst" | "usr-lst" | "running" | "pushed" | "data"))
}

impl Visitor for Nodes {
    fn open(&mut self, _container: Container) -> Result<()> {
        self.count += u64::from(!std::mem::take(&mut self.is_frame));
        Ok(())
    }

    fn key(&mut self, key: Key<'_>) -> Result<()> {
        self.is_frame = is_frame(key);
        Ok(())
    }

    fn scalar(&mut self, _scalar: Scalar<'_>) -> Result<()> {
        self.leaf = self.count == 0;
        self.count += 1;
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }

    fn meta(&mut self, _name: &str, _value: &str) -> Result<()> {
        Ok(())
    }
}
