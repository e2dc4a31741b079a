//! What the datastores remember beside their trees.

use spinney_core::backend::Revision;
use spinney_core::{Error, Map, Result, Value};

use crate::Transaction;
use crate::owners::number_at;
use crate::snapshot::Snapshot;

/// The tree that holds it: `candidate` with its `base`, `confirm` with `before` and `deadline`.
pub const TREE: &str = "/.datastores";

const CANDIDATE: &str = "/.datastores/candidate";
const CONFIRM: &str = "/.datastores/confirm";

/// Reads nodes, of a state or of a transaction.
pub(super) trait Reads {
    fn value(&self, path: &str) -> Result<Option<Value>>;
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

/// The revision of `running` that the candidate rests on; `None` while it shows `running`.
pub(super) fn base(reads: &impl Reads) -> Result<Option<Revision>> {
    let Some(note) = reads.value(CANDIDATE)? else { return Ok(None) };
    number(&note, "/base").map(Some)
}

pub(super) fn set_base(transaction: &mut Transaction<'_>, base: Option<Revision>) -> Result<()> {
    match base {
        None => transaction.remove(CANDIDATE).map(drop),
        Some(base) => {
            let mut note = Map::new();
            note.insert("base", base);
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
