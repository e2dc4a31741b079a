//! What the datastores remember beside their trees.

use spinney_core::backend::Revision;
use spinney_core::view::View;
use spinney_core::{Error, Map, Result, Value};

use crate::Transaction;
use crate::owners::number_at;
use crate::snapshot::Snapshot;
use crate::tree_cache::value_at;

/// The tree that holds what is known of the candidate: `candidate` with its `base` and perhaps its `lock`.
pub const TREE: &str = "/.datastores";

/// The name of [`TREE`].
pub(crate) const NAME: &str = ".datastores";

/// The tree that is there while a commit waits for its confirmation: its `before`, `deadline` and `name`. It does not
/// come and go with older states: nobody would expect a commit to wait again.
pub const UNCONFIRMED_TREE: &str = "/.unconfirmed";

/// The name of [`UNCONFIRMED_TREE`].
pub(crate) const UNCONFIRMED_NAME: &str = ".unconfirmed";

const CANDIDATE: &str = "/.datastores/candidate";

/// Reads nodes, of a state or of a transaction.
pub(crate) trait Reads {
    fn value(&self, path: &str) -> Result<Option<Value>>;
}

impl Reads for View<'_> {
    fn value(&self, path: &str) -> Result<Option<Value>> {
        value_at(self, path)
    }
}

impl Reads for Snapshot {
    fn value(&self, path: &str) -> Result<Option<Value>> {
        self.get(path)
    }
}

impl Reads for Transaction<'_> {
    fn value(&self, path: &str) -> Result<Option<Value>> {
        self.get(path)
    }
}

/// A commit that is rolled back unless it is confirmed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Confirm {
    /// The revision to go back to.
    pub before: Revision,
    /// When, in milliseconds since 1970.
    pub deadline_ms: u64,
    /// Who may go on with it.
    pub name: String,
}

/// A candidate that has changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changes {
    /// The revision of `running` that they rest on.
    pub base: Revision,
    /// The lock that they were begun under, and go with.
    pub lock: Option<u64>,
}

/// What is noted of the candidate; `None` while it shows `running`.
pub(super) fn candidate(reads: &impl Reads) -> Result<Option<Changes>> {
    let Some(note) = reads.value(CANDIDATE)? else { return Ok(None) };
    Ok(Some(Changes { base: number(TREE, &note, "/base")?, lock: number_at(&note, "/lock") }))
}

pub(super) fn set_candidate(
    transaction: &mut Transaction<'_>,
    changes: Option<Changes>,
) -> Result<()> {
    match changes {
        None => transaction.remove(CANDIDATE).map(drop),
        Some(Changes { base, lock }) => {
            let mut note = Map::new();
            note.insert("base", base);
            if let Some(lock) = lock {
                note.insert("lock", lock);
            }
            transaction.set(CANDIDATE, &Value::Map(note))
        }
    }
}

pub(super) fn confirm(reads: &impl Reads) -> Result<Option<Confirm>> {
    let Some(note) = reads.value(UNCONFIRMED_TREE)? else { return Ok(None) };
    let name = note
        .pointer("/name")
        .and_then(Value::as_str)
        .ok_or_else(|| damaged(UNCONFIRMED_TREE, "/name"))?;
    Ok(Some(Confirm {
        before: number(UNCONFIRMED_TREE, &note, "/before")?,
        deadline_ms: number(UNCONFIRMED_TREE, &note, "/deadline")?,
        name: name.to_owned(),
    }))
}

pub(super) fn set_confirm(
    transaction: &mut Transaction<'_>,
    confirm: Option<&Confirm>,
) -> Result<()> {
    match confirm {
        None => transaction.remove(UNCONFIRMED_TREE).map(drop),
        Some(confirm) => {
            let mut note = Map::new();
            note.insert("before", confirm.before);
            note.insert("deadline", confirm.deadline_ms);
            note.insert("name", &*confirm.name);
            transaction.set(UNCONFIRMED_TREE, &Value::Map(note))
        }
    }
}

fn number(tree: &str, note: &Value, name: &str) -> Result<u64> {
    number_at(note, name).ok_or_else(|| damaged(tree, name))
}

fn damaged(tree: &str, name: &str) -> Error {
    let name = &name[1..];
    Error::corrupted(format!(
        "`{tree}` has no `{name}` where it needs one; remove it to start afresh"
    ))
}
