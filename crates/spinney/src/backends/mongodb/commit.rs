//! The documents of commits. Owns their layout; `docs/format.md` draws it.
//!
//! A commit is one document whose `_id` is the state that it makes, so that inserting it succeeds for
//! one client only. It carries the whole batch, and what else has to be of one state: the head, the
//! lock of writers, and from which state on older ones can still be read.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

use mongodb::bson::raw::{CStr, RawArrayBuf, RawBinaryRef, RawDocument, RawDocumentBuf, cstr};
use mongodb::bson::spec::BinarySubtype;
use mongodb::bson::{DateTime, RawBsonRef};
use spinney_core::backend::RecordKey;
use spinney_core::layout::head_key;
use spinney_core::{Error, Result};

use super::key;
use crate::network::server::State;

/// Bytes of the largest document of a server.
const DOCUMENT_LEN_MAX: usize = 16 << 20;

/// What tells the first document of a store from anybody else's.
pub const KIND: &str = "spinney store";

/// The number of the layout; a higher one is refused.
pub const FORMAT: i64 = 1;

/// Who keeps other writers away, and until when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// The client.
    pub owner: u128,
    /// Milliseconds since 1970 on the server's clock.
    pub until: i64,
}

/// What made a state.
#[derive(Clone, Debug, Default)]
pub struct Commit {
    /// The state.
    pub state: State,
    /// Names the commit.
    pub id: u128,
    /// When it was made: milliseconds since 1970 on the server's clock.
    pub at: i64,
    /// The oldest state that can still be read.
    pub low: State,
    /// The records it put, and those it deleted as `None`.
    pub changes: BTreeMap<RecordKey, Option<Arc<[u8]>>>,
    /// The value of the head of tree 0, where the changes do not have it.
    pub head: Option<Arc<[u8]>>,
    /// The lock of writers.
    pub lock: Option<Lock>,
}

impl Commit {
    /// The value of the head of tree 0 in this state.
    pub fn head(&self) -> Option<Arc<[u8]>> {
        match self.changes.get(&head_key(0)[..]) {
            Some(changed) => changed.clone(),
            None => self.head.clone(),
        }
    }

    /// The keys that it put or deleted.
    pub fn keys(&self) -> Arc<[RecordKey]> {
        self.changes.keys().cloned().collect()
    }

    /// The document.
    ///
    /// # Errors
    /// `LimitExceeded` when no server takes it.
    pub fn encode(&self) -> Result<RawDocumentBuf> {
        let (mut put, mut values, mut deleted) =
            (RawArrayBuf::new(), RawArrayBuf::new(), RawArrayBuf::new());
        for (key, value) in &self.changes {
            match value {
                Some(value) => {
                    put.push(key::encode(key).as_str());
                    values.push(binary(value));
                }
                None => deleted.push(key::encode(key).as_str()),
            }
        }
        let mut document = RawDocumentBuf::new();
        document.append(cstr!("_id"), self.state as i64);
        document.append(cstr!("commit"), binary(&self.id.to_be_bytes()));
        document.append(cstr!("at"), DateTime::from_millis(self.at));
        document.append(cstr!("low"), self.low as i64);
        if let Some(head) = &self.head {
            document.append(cstr!("head"), binary(head));
        }
        if let Some(lock) = &self.lock {
            document.append(cstr!("owner"), binary(&lock.owner.to_be_bytes()));
            document.append(cstr!("until"), DateTime::from_millis(lock.until));
        }
        document.append(cstr!("put"), &put);
        document.append(cstr!("values"), &values);
        document.append(cstr!("deleted"), &deleted);
        let len = document.as_bytes().len();
        if len > DOCUMENT_LEN_MAX {
            return Err(Error::limit_exceeded(format!(
                "commit: a document of {len} bytes would carry it, and MongoDB takes {DOCUMENT_LEN_MAX}; change less at once"
            )));
        }
        Ok(document)
    }

    /// Reads a document; without the field `values` there are only keys.
    ///
    /// # Errors
    /// `Corrupted` for a document that is none of a commit.
    pub fn decode(document: &RawDocument) -> Result<Commit> {
        let fields = Fields(document);
        let lock = match document.get("owner") {
            Ok(Some(_)) => Some(Lock { owner: fields.id("owner")?, until: fields.time("until")? }),
            _ => None,
        };
        let mut changes = BTreeMap::new();
        for key in fields.keys("deleted")? {
            changes.insert(key?, None);
        }
        let mut values = fields.values()?;
        for key in fields.keys("put")? {
            let value = match &mut values {
                Some(values) => Some(values.next().ok_or_else(|| fields.damaged("values"))??),
                None => None,
            };
            changes.insert(key?, value);
        }
        let head = match document.get_binary("head") {
            Ok(head) => Some(Arc::from(head.bytes)),
            Err(_) => None,
        };
        Ok(Commit {
            state: fields.number("_id")?,
            id: fields.id("commit")?,
            at: fields.time("at")?,
            low: fields.number("low")?,
            changes,
            head,
            lock,
        })
    }
}

/// Bytes as BSON has them.
pub fn binary(bytes: &[u8]) -> RawBinaryRef<'_> {
    RawBinaryRef { subtype: BinarySubtype::Generic, bytes }
}

/// The fields of a document of this backend.
pub struct Fields<'d>(pub &'d RawDocument);

impl<'d> Fields<'d> {
    /// The error for a field that is not what was written.
    pub fn damaged(&self, field: &str) -> Error {
        let id: &dyn Display = match self.0.get("_id") {
            Ok(Some(RawBsonRef::Int64(id))) => &id.to_string(),
            Ok(Some(RawBsonRef::String(id))) => &id.to_owned(),
            _ => &"?",
        };
        Error::corrupted(format!(
            "the document `{id}` of the store has no readable field `{field}`; restore it from a backup"
        ))
    }

    /// A state, or how many there are of something.
    pub fn number(&self, field: &str) -> Result<u64> {
        let number = self.0.get_i64(field).ok().and_then(|number| u64::try_from(number).ok());
        number.ok_or_else(|| self.damaged(field))
    }

    /// A state, 0 where there is none.
    pub fn number_or_0(&self, field: &str) -> Result<u64> {
        match self.0.get(field) {
            Ok(None) => Ok(0),
            _ => self.number(field),
        }
    }

    /// What names a commit or a client.
    pub fn id(&self, field: &str) -> Result<u128> {
        let binary = self.0.get_binary(field).ok();
        let bytes = binary.and_then(|binary| <[u8; 16]>::try_from(binary.bytes).ok());
        Ok(u128::from_be_bytes(bytes.ok_or_else(|| self.damaged(field))?))
    }

    /// A time.
    pub fn time(&self, field: &str) -> Result<i64> {
        match self.0.get_datetime(field) {
            Ok(time) => Ok(time.timestamp_millis()),
            Err(_) => Err(self.damaged(field)),
        }
    }

    /// The keys of an array; none where it is missing.
    pub fn keys(&self, field: &'static str) -> Result<impl Iterator<Item = Result<RecordKey>>> {
        let array = match self.0.get(field) {
            Ok(Some(RawBsonRef::Array(array))) => Some(array),
            Ok(None) => None,
            _ => return Err(self.damaged(field)),
        };
        let items = array.into_iter().flatten();
        Ok(items.map(move |item| {
            let text = item.ok().and_then(|item| item.as_str());
            text.and_then(key::decode).ok_or_else(|| self.damaged(field))
        }))
    }

    fn values(&self) -> Result<Option<impl Iterator<Item = Result<Arc<[u8]>>>>> {
        let array = match self.0.get("values") {
            Ok(Some(RawBsonRef::Array(array))) => array,
            Ok(None) => return Ok(None),
            _ => return Err(self.damaged("values")),
        };
        Ok(Some(array.into_iter().map(|item| {
            let binary = item.ok().and_then(|item| item.as_binary());
            binary.map(|binary| Arc::from(binary.bytes)).ok_or_else(|| self.damaged("values"))
        })))
    }
}

/// A version of a record: what [`Commit`] changed it to, under an `_id` that sorts by key and state.
pub fn encode_version(key: &[u8], state: State, value: Option<&[u8]>) -> RawDocumentBuf {
    let mut document = RawDocumentBuf::new();
    document.append(cstr!("_id"), key::version(key, state).as_str());
    document.append(cstr!("state"), state as i64);
    let value_name: &CStr = cstr!("value");
    if let Some(value) = value {
        document.append(value_name, binary(value));
    }
    document
}

/// The value of a version; `None` when the record was deleted.
pub fn decode_version(document: &RawDocument) -> Result<Option<Arc<[u8]>>> {
    match document.get("value") {
        Ok(None) => Ok(None),
        Ok(Some(RawBsonRef::Binary(binary))) => Ok(Some(Arc::from(binary.bytes))),
        _ => Err(Fields(document).damaged("value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_is_read_as_it_was_written() {
        let head: Arc<[u8]> = Arc::from(&b"head"[..]);
        let commit = Commit {
            state: 7,
            id: u128::MAX - 1,
            at: 1_700_000_000_000,
            low: 3,
            changes: BTreeMap::from([
                (RecordKey::from(&b"a"[..]), Some(Arc::from(&b"value"[..]))),
                (RecordKey::from(&b"b"[..]), None),
                (RecordKey::from(&b"c"[..]), Some(Arc::from(&b""[..]))),
            ]),
            head: Some(Arc::clone(&head)),
            lock: Some(Lock { owner: 5, until: 8 }),
        };
        let read = Commit::decode(&commit.encode().unwrap()).unwrap();
        assert_eq!((read.state, read.id, read.at, read.low), (7, u128::MAX - 1, commit.at, 3));
        assert_eq!((read.changes, read.lock), (commit.changes, commit.lock));
        assert_eq!(read.head, Some(head));
    }

    #[test]
    fn what_no_commit_is_names_the_field() {
        let commit = Commit { state: 7, ..Commit::default() }.encode().unwrap();
        let mut damaged = RawDocumentBuf::new();
        for item in commit.iter().flatten() {
            match item {
                (name, _) if name == cstr!("low") => damaged.append(name, "seven"),
                (name, value) => damaged.append(name, value),
            }
        }
        let error = Commit::decode(&damaged).unwrap_err();
        assert_eq!(error.kind(), spinney_core::ErrorKind::Corrupted);
        assert!(error.to_string().contains("document `7`"), "{error}");
        assert!(error.to_string().contains("`low`"), "{error}");
    }

    #[test]
    fn a_commit_that_no_server_takes_is_refused() {
        let value: Arc<[u8]> = vec![0; DOCUMENT_LEN_MAX].into();
        let changes = BTreeMap::from([(RecordKey::from(&b"a"[..]), Some(value))]);
        let error = Commit { changes, ..Commit::default() }.encode().unwrap_err();
        assert_eq!(error.kind(), spinney_core::ErrorKind::LimitExceeded);
    }
}
