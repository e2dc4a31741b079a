//! Change feeds: every commit, in order, once, from a revision on.
//!
//! A feed reads the store's change log; nothing is queued for it, so a slow, stopped or dead
//! subscriber costs a commit nothing. It must not know what commits are made of.

use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::time::{Duration, Instant};

use spinney_core::backend::Revision;
use spinney_core::diff::Diff;
use spinney_core::history::{Logged, Note};
use spinney_core::{Error, ErrorKind, Path, Result};

use crate::layers::{Following, Stack};
use crate::store::Store;

/// Commits that a feed reads ahead at once.
const READ_MAX: usize = 256;

/// A place between two commits of a store, to go on from later.
///
/// As a text it is `STORE:REVISION`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bookmark {
    /// Names the store. One in memory or in a JSON file has another name each time it is opened.
    pub store: String,
    /// The last commit before the place.
    pub revision: Revision,
}

impl fmt::Display for Bookmark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.store, self.revision)
    }
}

impl FromStr for Bookmark {
    type Err = Error;

    fn from_str(text: &str) -> Result<Bookmark> {
        let parsed = text.rsplit_once(':').and_then(|(store, revision)| {
            let revision = revision.parse().ok()?;
            (!store.is_empty()).then(|| Bookmark { store: store.to_owned(), revision })
        });
        parsed.ok_or_else(|| {
            Error::invalid_input(format!("`{text}` is no bookmark; it looks like `STORE:REVISION`"))
        })
    }
}

/// What a feed is of.
pub(crate) enum Source {
    /// A store.
    Store(Store),
    /// The tree that layers of a store are read as.
    Stack(Following),
}

impl Source {
    pub fn of_stack(stack: &Stack) -> Result<Source> {
        stack.following().map(Source::Stack)
    }

    fn store(&self) -> &Store {
        match self {
            Source::Store(store) => store,
            Source::Stack(following) => following.store(),
        }
    }
}

/// What a feed tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A commit.
    Change(Change),
    /// Commits that the log does not have any more.
    Gap(Gap),
}

/// A commit, as far as it concerns a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The revision that it made; [`Store::at`] has the states before and after it.
    pub revision: Revision,
    /// By whom it was made, when and why.
    pub note: Note,
    /// What it changed at, below and above the feed's path. Large containers are references: read them
    /// at the revision.
    pub diff: Diff,
}

/// Commits were missed: start anew from the state at [`Gap::resume`], behind which the feed goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last commit before the gap.
    pub after: Revision,
    /// The state to start anew from.
    pub resume: Revision,
}

/// The commits of a store that concern a path, in order; made by [`Store::changes`], and for the tree that layers
/// are read as by [`Stack::changes`].
///
/// Ordered, unique, reliable and atomic: each commit comes whole, once, after the one before it, when
/// it is durable. A feed in another process sees the same.
pub struct Changes {
    source: Source,
    prefix: Path,
    /// The last commit that was handed over, or read past.
    passed: Revision,
    /// The last commit that was read.
    read: Revision,
    ready: VecDeque<Change>,
    gap: Option<Gap>,
}

impl Changes {
    pub(crate) fn new(source: Source, prefix: &str, since: Revision) -> Result<Changes> {
        let prefix = Path::parse(prefix)?;
        let newest = source.store().read()?.revision()?;
        let mut changes = Changes {
            source,
            prefix,
            passed: since,
            read: since,
            ready: VecDeque::new(),
            gap: None,
        };
        if since > newest {
            changes.miss(newest);
        }
        Ok(changes)
    }

    pub(crate) fn resume(source: Source, prefix: &str, bookmark: &Bookmark) -> Result<Changes> {
        let is_known = source.store().store_id() == bookmark.store;
        let since = if is_known { bookmark.revision } else { 0 };
        let mut changes = Changes::new(source, prefix, since)?;
        if !is_known {
            let newest = changes.source.store().read()?.revision()?;
            changes.miss(newest);
        }
        Ok(changes)
    }

    /// The next event; `None` when there is none before the time is up.
    ///
    /// # Errors
    /// Those of the backend; `Corrupted` when the log is damaged.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Event>> {
        let deadline = Instant::now().checked_add(timeout);
        loop {
            if let Some(change) = self.ready.pop_front() {
                self.passed = change.revision;
                return Ok(Some(Event::Change(change)));
            }
            self.passed = self.read;
            if let Some(gap) = self.gap.take() {
                (self.read, self.passed) = (gap.resume, gap.resume);
                return Ok(Some(Event::Gap(gap)));
            }
            let left = deadline.map_or(Duration::MAX, |deadline| {
                deadline.saturating_duration_since(Instant::now())
            });
            let durable = self.source.store().wait_durable(self.read, left)?;
            if durable <= self.read {
                return Ok(None);
            }
            self.read_on(durable)?;
        }
    }

    /// From where to go on: behind what [`Changes::next`] has returned.
    pub fn bookmark(&self) -> Bookmark {
        Bookmark { store: self.source.store().store_id(), revision: self.passed }
    }

    /// Reads commits up to a revision into the queue.
    fn read_on(&mut self, upto: Revision) -> Result<()> {
        let (snapshot, before) = (self.source.store().read()?, self.read);
        let mut found = Vec::new();
        for logged in snapshot.log_from(before + 1)?.take(READ_MAX) {
            let Logged { revision, entry } = logged?;
            if revision > upto || revision != before + 1 + found.len() as u64 {
                break;
            }
            found.push(Change { revision, note: entry.note, diff: entry.diff });
        }
        let Some(last) = found.last().map(|last| last.revision) else {
            // What follows is not kept, up to beyond where this looked.
            self.miss(upto);
            return Ok(());
        };
        if let Source::Stack(following) = &self.source {
            found = match following.commits(before, last) {
                Ok(commits) => commits.collect::<Result<_>>()?,
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    self.miss(upto);
                    return Ok(());
                }
                Err(error) => return Err(error),
            };
        }
        for mut change in found {
            change.diff.retain_concerning(&self.prefix);
            if !change.diff.is_empty() {
                self.ready.push_back(change);
            }
        }
        self.read = last;
        Ok(())
    }

    fn miss(&mut self, resume: Revision) {
        self.gap = Some(Gap { after: self.read, resume });
    }
}
