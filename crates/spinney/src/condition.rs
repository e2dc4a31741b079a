//! Writes that depend on what is there: compare-and-set on any node.

use spinney_core::backend::Revision;
use spinney_core::compare::{Compared, Relation, Shown, unexpected};
use spinney_core::path::Display;
use spinney_core::transaction::Transaction;
use spinney_core::{Error, Result, Value};

use crate::hash::{self, ValueHash};

/// What a write expects at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// No node.
    Absent,
    /// A node with an equal value, as in a JSON Patch `test`: numbers by their value, metadata
    /// not looked at.
    Value(Value),
    /// A node with this hash: the identical value, with its metadata.
    Hash(ValueHash),
    /// What it was at this revision: no commit since concerns it.
    Unchanged(Revision),
}

/// Conditions on what a transaction sees.
///
/// A condition holds for the commit, too: when another writer comes first, the transaction runs
/// again and looks again.
///
/// ```
/// use spinney::{Expect, Expected};
///
/// let store = spinney::open("memory:")?;
/// store.write(|tx| tx.set("/stock", &5.into()))?;
/// let sold = store.write(|tx| {
///     tx.expect("/stock", &Expected::Value(5.into()))?;
///     tx.set("/stock", &4.into())
/// });
/// assert!(sold.is_ok());
/// # Ok::<(), spinney::Error>(())
/// ```
pub trait Expect {
    /// Goes on only if the node at a path is as expected.
    ///
    /// # Errors
    /// `Conflict` that names the path, what was expected and what is there; those of reading.
    fn expect(&self, path: &str, expected: &Expected) -> Result<()>;
}

impl Expect for Transaction<'_> {
    fn expect(&self, path: &str, expected: &Expected) -> Result<()> {
        match expected {
            Expected::Absent if self.exists(path)? => Err(unexpected(path, "there", "missing")),
            Expected::Absent => Ok(()),
            Expected::Value(value) => match self.compare(path, value, Relation::Equal)? {
                Compared::Same => Ok(()),
                Compared::Absent => Err(unexpected(path, "missing", Shown(value))),
                Compared::Different(mismatch) => Err(mismatch.into_error(path)),
            },
            Expected::Unchanged(since) => match self.changed_since(path, *since)? {
                None => Ok(()),
                Some(revision) => Err(Error::conflict(format!(
                    "{} was changed by revision {revision}, after {since}; read it again",
                    Display(path)
                ))),
            },
            Expected::Hash(expected) => match hash::hash_in(self, path)? {
                Some(hash) if hash == *expected => Ok(()),
                Some(hash) => Err(unexpected(path, format!("of hash {hash}"), expected)),
                None => Err(unexpected(path, "missing", format!("of hash {expected}"))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ErrorKind, ValueHash};

    #[test]
    fn a_conflict_names_the_path_and_both_sides() {
        let store = crate::open("memory:").expect("a store");
        store.write(|tx| tx.set("/a/b", &vec![1.into(), "x".into()].into())).expect("sets");
        let value = |text: &str| Expected::Value(crate::formats::parse(text).expect("JSON"));
        let hash = store.read().unwrap().hash("/a/b").unwrap().expect("it is there");
        let held = [
            ("/a/b", value(r#"[1.0, "x"]"#)),
            ("/a/b", Expected::Hash(hash)),
            ("/a/c", Expected::Absent),
            ("", value(r#"{"a": {"b": [1, "x"]}}"#)),
        ];
        let refused = [
            ("/a/b", value(r#"[1, "y"]"#), "`/a/b/1` is \"x\" and not, as expected, \"y\""),
            ("/a/c", value("5"), "`/a/c` is missing and not, as expected, 5"),
            ("/a/b", Expected::Absent, "`/a/b` is there and not, as expected, missing"),
            ("/a/c", Expected::Hash(hash), "`/a/c` is missing and not, as expected, of hash"),
            ("/a", Expected::Hash(ValueHash::of(&Value::Null)), "and not, as expected, 74234e98"),
        ];
        store
            .write(|tx| {
                for (path, expected) in &held {
                    tx.expect(path, expected).expect("it holds");
                }
                for (path, expected, said) in &refused {
                    let error = tx.expect(path, expected).expect_err(said);
                    assert_eq!(error.kind(), ErrorKind::Conflict);
                    assert!(error.to_string().contains(said), "{error}");
                }
                Ok(())
            })
            .expect("nothing is written");
    }
}
