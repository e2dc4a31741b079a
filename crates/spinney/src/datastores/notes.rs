//! What the datastores remember beside their trees.

use spinney_core::backend::Revision;
use spinney_core::view::View;
use spinney_core::{Error, Map, Result, Value};

use crate::Transaction;
use crate::owners::number_at;
use crate::snapshot::Snapshot;
use crate::tree_cache::value_at;

/// The tree that holds it: `candidate` with its `base` and perhaps its `lock`, `confirm` with `before` and `deadline`.
pub const TREE: &str = "/.datastores";

/// The name of [`TREE`].
pub(crate) const NAME: &str = ".datastores";

const CANDIDATE: &str = "/.datastores/candidate";
const CONFIRM: &str = "/.datastores/confirm";

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
    Ok(Some(Changes { base: number(&note, "/base")?, lock: number_at(&note, "/lock") }))
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
    let Some(note) = reads.value(CONFIRM)? else { return Ok(None) };
    let name = note.pointer("/name").and_then(Value::as_str).ok_or_else(|| damaged("name"))?;
    Ok(Some(Confirm {
        before: number(&note, "/before")?,
        deadline_ms: number(&note, "/deadline")?,
        name: name.to_owned(),
    }))
}

pub(super) fn set_confirm(
    transaction: &mut Transaction<'_>,
    confirm: Option<&Confirm>,
) -> Result<()> {
    match confirm {
        None => transaction.remove(CONFIRM).map(drop),
        Some(confirm) => {
            let mut note = Map::new();
            note.insert("before", confirm.before);
            note.insert("deadline", confirm.deadline_ms);
            note.insert("name", &*confirm.name);
            transaction.set(CONFIRM, &Value::Map(note))
        }
    }
}

fn number(note: &Value, name: &str) -> Result<u64> {
    number_at(note, name).ok_or_else(|| damaged(&name[1..]))
}

fn damaged(name: &str) -> Error {
    Error::corrupted(format!(
        "`{TREE}` has no `{name}` where it needs one; remove it to start afresh"
    ))
}
