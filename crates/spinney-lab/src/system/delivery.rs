//! What subscribers are given, as counts of nodes.

use super::Effect;

/// What one subscriber was given since it was last looked at: nodes as sysrepo counts them, where an
/// entry of a list is one and the list itself is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Delivery {
    /// Nodes that were not there before.
    pub created: u64,
    /// Nodes that are not there any more.
    pub removed: u64,
    /// Nodes that have another value.
    pub changed: u64,
    /// Commits that it was shown before they were made.
    pub commits: u64,
    /// Commits that it was told the end of.
    pub told: u64,
}

impl Delivery {
    /// One commit that made so many nodes.
    pub fn created(created: u64) -> Delivery {
        Delivery { created, commits: 1, told: 1, ..Delivery::default() }
    }

    /// One commit that removed so many nodes.
    pub fn removed(removed: u64) -> Delivery {
        Delivery { removed, commits: 1, told: 1, ..Delivery::default() }
    }

    /// One commit that changed so many nodes.
    pub fn changed(changed: u64) -> Delivery {
        Delivery { changed, commits: 1, told: 1, ..Delivery::default() }
    }

    /// Whether no node changed.
    pub fn is_empty(&self) -> bool {
        self.created + self.removed + self.changed == 0
    }

    /// Adds what was given later.
    pub fn add(&mut self, later: Delivery) {
        self.created += later.created;
        self.removed += later.removed;
        self.changed += later.changed;
        self.commits += later.commits;
        self.told += later.told;
    }
}

/// What the subscriber of a peer is given: a function that is called with what each commit changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told(Option<Delivery>);

impl Told {
    /// Begins anew, or ends.
    pub fn listen(&mut self, listens: bool) {
        self.0 = listens.then(Delivery::default);
    }

    /// Whether anybody listens.
    pub fn is_heard(&self) -> bool {
        self.0.is_some()
    }

    /// What was told since the last call.
    pub fn take(&mut self) -> Option<Delivery> {
        self.0.as_mut().map(std::mem::take)
    }

    /// Tells of a commit, if it changed anything, which is the answer.
    pub fn tell(&mut self, edited: Delivery) -> Effect {
        if let Some(given) = self.0.as_mut().filter(|_| !edited.is_empty()) {
            given.add(edited);
        }
        (!edited.is_empty()).into()
    }
}
