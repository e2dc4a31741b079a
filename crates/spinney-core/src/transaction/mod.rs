//! A transaction: edits at paths, and reads with these edits, until the commit.
//!
//! What is read, edited, put and taken stands in a module each; the commit reads top to bottom as
//! data flows. A transaction knows nodes and edits; pages are the encoders' matter.

mod access;
mod apply;
mod change;
mod commit;
mod merge;
mod patch;
mod place;
mod reading;
mod receiver;
mod review;
mod root;
mod route;
mod since;

use std::borrow::Cow;
use std::sync::Arc;

use crate::access::Permissions;
use crate::backend::{Backend, Revision, Snapshot, TreeId};
use crate::build::{Builder, NewScratch};
use crate::edit::{Edit, Edits};
use crate::error::{Error, Result};
use crate::history::{NOTE_LEN_MAX, Note, Retention};
use crate::key::{EncodedKey, Key};
use crate::limits::KEY_LEN_MAX;
use crate::path::{self, Path};
use crate::pending::{LOG_TRIM_LEN, Pending};

use access::Deed;
pub use commit::{Commit, Preview};
pub use receiver::Receiver;
pub use review::{Proposed, Review};
use route::Bounds;
pub use route::Route;

/// Edits that become visible together or not at all.
///
/// It reads one state of the store with its own edits on top. Paths are JSON Pointers from the
/// store's root; the first segment names a tree.
pub struct Transaction<'b> {
    pending: Pending<'b>,
    edits: Edits,
    builder: Builder,
    scratch: Option<&'b NewScratch<'b>>,
    /// Encoded nodes that edits had made and that were dropped again.
    dropped: Vec<(TreeId, Vec<u8>)>,
    /// The parent path of the last `set` or `insert`, while the trail still leads there.
    last_parent: Option<String>,
    /// The first map that the current edit made on its way, and what was in its place.
    made: Option<(usize, EncodedKey, Option<Edit>)>,
    /// The node that paths begin at, as a checked path; empty for the store's root.
    base_path: Path,
    /// The opened containers from the root to the one that an edit is in, with the position in lists.
    trail: Vec<(usize, Option<u64>)>,
    note: Note,
    revisions_max: u64,
    /// Members of the store's root that stay when the root is replaced.
    kept: &'static [&'static str],
    /// Whether it was.
    replaces_root: bool,
    /// Why only a part of a patch was applied: that must not be committed.
    broken: Option<Error>,
    /// Which trees it may touch.
    bounds: Bounds<'b>,
    /// What its principal may do; everything, when there are none.
    permissions: Option<Arc<Permissions>>,
}

/// Whether an edit may, must or must not find a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Either way.
    Any,
    /// `NotFound` when there is none.
    Must,
    /// `AlreadyExists` when there is one.
    MustNot,
}

impl<'b> Transaction<'b> {
    /// Starts from the newest state. The caller holds the backend's write guard.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn begin(backend: &'b dyn Backend) -> Result<Transaction<'b>> {
        Transaction::on(Pending::new(backend)?.recover()?)
    }

    /// Starts from a state that need not be the newest, to see what edits would make of it.
    /// [`Transaction::preview`] ends it; it cannot be committed.
    ///
    /// # Errors
    /// Those of the backend.
    pub fn detached(
        backend: &'b dyn Backend,
        snapshot: Box<dyn Snapshot>,
    ) -> Result<Transaction<'b>> {
        Transaction::on(Pending::detached(backend, snapshot)?)
    }

    fn on(pending: Pending<'b>) -> Result<Transaction<'b>> {
        let edits = Edits::new(&pending)?;
        Ok(Transaction {
            pending,
            edits,
            builder: Builder::default(),
            scratch: None,
            dropped: Vec::new(),
            last_parent: None,
            made: None,
            base_path: Path::root(),
            trail: Vec::with_capacity(8),
            note: Note::default(),
            revisions_max: Retention::DEFAULT.revisions_max,
            kept: &[],
            replaces_root: false,
            broken: None,
            bounds: Bounds::default(),
            permissions: None,
        })
    }

    /// Says where large unsorted containers wait to be merged; the default is memory.
    pub fn set_scratch(&mut self, scratch: &'b NewScratch<'b>) {
        self.scratch = Some(scratch);
    }

    /// Says which node paths begin at; the default is the store's root. Diffs that are applied begin
    /// there, too; the one that the commit returns begins at the store's root.
    pub fn set_base_path(&mut self, base_path: Path) {
        self.base_path = base_path;
    }

    /// Edits or reads with paths that begin at the store's root.
    pub fn at_root<T>(&mut self, edit: impl FnOnce(&mut Transaction<'b>) -> T) -> T {
        let (base_path, bounds) =
            (std::mem::take(&mut self.base_path), std::mem::take(&mut self.bounds));
        let value = edit(self);
        (self.base_path, self.bounds) = (base_path, bounds);
        value
    }

    /// A user's path as one from the store's root.
    fn below_base<'p>(&self, path: &'p str) -> Cow<'p, str> {
        match self.base_path.is_empty() {
            true => Cow::Borrowed(path),
            false => Cow::Owned([&self.base_path, path].concat()),
        }
    }

    /// As [`Transaction::below_base`], for a path that is not checked and at which something is to be done.
    fn checked<'p>(&mut self, path: &'p str, deed: Deed) -> Result<Cow<'p, str>> {
        path::check(path)?;
        self.enter(path)?;
        let whole = self.below_base(path);
        self.permit(&whole, deed)?;
        Ok(whole)
    }

    /// As [`Transaction::checked`], for a change; refuses that of the base itself with `refusal`.
    fn checked_member<'p>(&mut self, path: &'p str, refusal: &str) -> Result<Cow<'p, str>> {
        match path.is_empty() {
            true => Err(Error::invalid_input(refusal)),
            false => self.checked(path, Deed::Changes),
        }
    }

    /// Says when the commit is made, in milliseconds since 1970.
    pub fn set_time_ms(&mut self, time_ms: u64) {
        self.note.time_ms = time_ms;
    }

    /// Says who makes the commit; the change log keeps it.
    ///
    /// # Errors
    /// `LimitExceeded` above [`NOTE_LEN_MAX`] bytes.
    pub fn set_author(&mut self, author: &str) -> Result<()> {
        self.note.author = note_text("author", author)?;
        Ok(())
    }

    /// Says why the commit is made; the change log keeps it.
    ///
    /// # Errors
    /// `LimitExceeded` above [`NOTE_LEN_MAX`] bytes.
    pub fn set_message(&mut self, message: &str) -> Result<()> {
        self.note.message = note_text("message", message)?;
        Ok(())
    }

    /// Says how many revisions the change log keeps; the default is that of [`Retention`].
    pub fn set_revisions_max(&mut self, revisions_max: u64) {
        self.revisions_max = revisions_max;
    }

    /// Whether the commit drops the oldest revisions from the change log.
    pub fn trims_log(&self) -> bool {
        let made = self.base() + 1;
        self.revisions_max == 0 || (made > self.revisions_max && made.is_multiple_of(LOG_TRIM_LEN))
    }

    /// Keeps what is logged from a revision on, however much that is.
    pub fn keep_log_from(&mut self, first: Revision) {
        let needed = (self.base() + 2).saturating_sub(first);
        self.revisions_max = self.revisions_max.max(needed);
    }

    /// Says which trees neither go nor come when the store's root is replaced.
    pub fn keep_trees(&mut self, names: &'static [&'static str]) {
        self.kept = names;
    }

    /// Whether an edit has replaced the store's root.
    pub fn replaces_root(&self) -> bool {
        self.replaces_root
    }

    /// After an error of several edits that belong together, nothing can be committed any more.
    fn or_break(&mut self, edited: Result<()>) -> Result<()> {
        if let Err(error) = &edited {
            self.broken = Some(error.clone());
        }
        edited
    }

    /// Replaces the buffers of imports, for tests of what happens beyond their limit.
    pub fn set_builder(&mut self, builder: Builder) {
        self.builder = builder;
    }

    /// The revision that the transaction reads.
    pub fn base(&self) -> Revision {
        self.current().pending.base()
    }
}

fn note_text(what: &str, text: &str) -> Result<String> {
    match text.len() <= NOTE_LEN_MAX {
        true => Ok(text.to_owned()),
        false => Err(Error::limit_exceeded(format!(
            "the {what} of a commit has {} bytes; at most {NOTE_LEN_MAX} are kept",
            text.len()
        ))),
    }
}

fn encoded_key(text: &str) -> Result<EncodedKey> {
    if text.len() > KEY_LEN_MAX {
        return Err(Error::limit_exceeded(format!(
            "a key has {} bytes; at most {KEY_LEN_MAX} are allowed",
            text.len()
        )));
    }
    Ok(Key::new(text).encoded())
}

#[cold]
fn damaged() -> Error {
    Error::corrupted("a stored node does not read; run `check` to find what is damaged")
}
