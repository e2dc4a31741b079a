//! The hash of a value: SHA-256 of its one text in the tagged form of JSON.
//!
//! That is what `spinney get PATH --tagged` prints, without the line feed: compact, members in the
//! order of the model, numbers by their text, metadata and bytes included. So nodes have the same
//! hash exactly when they are identical, in whatever store they are, and other tools can compute it.

use std::fmt;
use std::io::{self, Write};
use std::str::FromStr;

use sha2::{Digest, Sha256};
use spinney_core::transaction::Transaction;
use spinney_core::{Error, Result, Value, Visitor};

use crate::formats::{Fidelity, JsonWriter, Layout};
use crate::snapshot::Snapshot;

/// The SHA-256 of a value; it is written as 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ValueHash([u8; 32]);

impl ValueHash {
    /// The hash of a value in memory.
    pub fn of(value: &Value) -> ValueHash {
        hashed(|visitor| value.visit(visitor).map(|()| true))
            .ok()
            .flatten()
            .expect("a value prints in the tagged form")
    }

    pub(crate) fn from_bytes(bytes: [u8; 32]) -> ValueHash {
        ValueHash(bytes)
    }

    /// Its 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ValueHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for ValueHash {
    type Err = Error;

    fn from_str(text: &str) -> Result<ValueHash> {
        let digits = text.as_bytes();
        let digit = |digit: u8| char::from(digit).to_digit(16).map(|digit| digit as u8);
        let mut bytes = [0; 32];
        let mut read = || {
            for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
                *byte = digit(pair[0])? << 4 | digit(pair[1])?;
            }
            Some(())
        };
        match digits.len() == 64 && read().is_some() {
            true => Ok(ValueHash(bytes)),
            false => Err(Error::invalid_input(
                "a hash has 64 hexadecimal digits, as `spinney hash` prints it",
            )),
        }
    }
}

impl Snapshot {
    /// The hash of the node at a path; `None` when there is none.
    ///
    /// # Errors
    /// As [`Snapshot::get`].
    ///
    /// # Complexity
    /// O(size); memory for a buffer, however large the node is.
    pub fn hash(&self, path: &str) -> Result<Option<ValueHash>> {
        hashed(|visitor| self.visit(path, visitor))
    }
}

/// The hash of the node at a path, with the edits so far; `None` when there is none.
///
/// # Errors
/// As [`Transaction::get`].
pub fn hash_in(transaction: &Transaction<'_>, path: &str) -> Result<Option<ValueHash>> {
    hashed(|visitor| transaction.visit(path, visitor))
}

fn hashed(visit: impl FnOnce(&mut dyn Visitor) -> Result<bool>) -> Result<Option<ValueHash>> {
    let mut writer = JsonWriter::new(Hasher::default(), Layout::Compact, Fidelity::Tagged);
    if !visit(&mut writer)? {
        return Ok(None);
    }
    Ok(Some(ValueHash(writer.finish()?.0.finalize().into())))
}

/// Takes a text and keeps its hash.
#[derive(Default)]
struct Hasher(Sha256);

impl Write for Hasher {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::parse;

    fn hash(text: &str) -> String {
        ValueHash::of(&parse(text).expect(text)).to_string()
    }

    #[test]
    fn it_is_the_hash_of_the_compact_text() {
        // printf '{"a":[1.10]}' | sha256sum
        assert_eq!(
            hash(" { \"a\" : [1.10] } "),
            "6b23bace54017d9493693238b46bd85771b0b711e20f5b9faf48934352702d70"
        );
        assert_eq!(hash(r#"{"b":1,"a":2}"#), hash(r#"{"a":2,"b":1}"#));
        assert_ne!(hash("1.0"), hash("1"));
    }

    #[test]
    fn it_reads_back() {
        let hash = ValueHash::of(&Value::Null);
        assert_eq!(hash.to_string().parse::<ValueHash>().expect("it reads"), hash);
        assert_eq!(hash.to_string().to_uppercase().parse::<ValueHash>().expect("it reads"), hash);
        for bad in ["", "00", "g".repeat(64).as_str(), "é".repeat(32).as_str()] {
            assert!(bad.parse::<ValueHash>().is_err());
        }
    }

    #[test]
    fn a_store_has_the_hash_of_its_values() {
        let store = crate::open("memory:").expect("a store");
        let value: Value = (0..5_000).map(Value::from).collect::<Vec<_>>().into();
        store
            .write(|tx| {
                tx.set("/list", &value)?;
                assert_eq!(hash_in(tx, "/list")?, Some(ValueHash::of(&value)));
                tx.set("/bytes", &Value::Bytes(vec![0, 255]))
            })
            .expect("writes");
        let snapshot = store.read().expect("a snapshot");
        assert_eq!(snapshot.hash("/list").expect("reads"), Some(ValueHash::of(&value)));
        assert_eq!(snapshot.hash("/none").expect("reads"), None);
        let bare = snapshot.hash("/bytes").expect("reads");
        store.write(|tx| tx.set_meta("/bytes", "by", Some("me"))).expect("annotates");
        assert_ne!(store.read().unwrap().hash("/bytes").expect("reads"), bare);
    }
}
