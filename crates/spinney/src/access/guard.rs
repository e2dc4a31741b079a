//! Refuses commits that leave rules which do not read.

use spinney_core::diff::{Op, Step};
use spinney_core::index::Derived;
use spinney_core::transaction::{Proposed, Review};
use spinney_core::{Error, Key, Map, Result, Value};

use super::rules::AccessRules;
use super::{NAME, TREE};
use crate::tree_cache::value_at;

/// Looks at one commit.
pub(crate) struct Guard;

impl Review for Guard {
    fn review(&mut self, proposed: &Proposed<'_>, _derived: &mut Vec<Derived>) -> Result<()> {
        if !proposed.diff.ops.iter().any(is_about_rules) {
            return Ok(());
        }
        match value_at(&proposed.after, TREE)? {
            None => Ok(()),
            Some(Value::Map(members)) => judge(&members),
            Some(_) => Err(malformed()),
        }
        .map_err(|error| error.at(TREE))
    }
}

fn judge(members: &Map) -> Result<()> {
    match members.get("rules") {
        Some(rules) if members.len() == 1 => AccessRules::of_value(rules).map(drop),
        None if members.is_empty() => Ok(()),
        _ => Err(malformed()),
    }
}

fn is_about_rules(op: &Op) -> bool {
    match op.path.iter().next() {
        Some(Step::Key(key)) => Key::decode(key).is_some_and(|key| key.text() == NAME),
        _ => true,
    }
}

fn malformed() -> Error {
    Error::invalid_input("it holds nothing but the access rules, under `rules`; use `access set`")
}
