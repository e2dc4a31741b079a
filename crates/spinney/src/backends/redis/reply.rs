//! What a script answers: a word, and what belongs to it.

use redis::Value;
use spinney_core::{Error, Result};

/// The answer of a script.
pub(super) struct Told {
    status: Vec<u8>,
    rest: std::vec::IntoIter<Value>,
}

impl Told {
    pub fn new(answer: Value) -> Told {
        let Value::Array(parts) = answer else {
            return Told { status: Vec::new(), rest: Vec::new().into_iter() };
        };
        let mut rest = parts.into_iter();
        let status = match rest.next() {
            Some(Value::BulkString(status)) => status,
            _ => Vec::new(),
        };
        Told { status, rest }
    }

    /// The word that says what kind of answer it is.
    pub fn status(&self) -> &[u8] {
        &self.status
    }

    /// The next part; `None` for one that is empty by intention.
    ///
    /// # Errors
    /// `Corrupted` when there is none or it is no string.
    pub fn bytes(&mut self) -> Result<Option<Vec<u8>>> {
        match self.rest.next() {
            Some(Value::BulkString(bytes)) => Ok(Some(bytes)),
            Some(Value::Nil) => Ok(None),
            _ => Err(self.unexpected()),
        }
    }

    /// The next part as a number.
    ///
    /// # Errors
    /// `Corrupted` when it is none.
    pub fn number(&mut self) -> Result<u64> {
        let bytes = self.bytes()?.unwrap_or_default();
        let number = std::str::from_utf8(&bytes).ok().and_then(|text| text.parse().ok());
        number.ok_or_else(|| self.unexpected())
    }

    /// How many parts are left.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// An answer that no script of this version gives.
    pub fn unexpected(&self) -> Error {
        let status = String::from_utf8_lossy(&self.status).into_owned();
        Error::corrupted(format!(
            "the server answered a script with `{status}` and something that does not belong to it"
        ))
    }
}
