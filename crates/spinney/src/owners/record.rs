//! What others can read of an owner.

use std::fmt;
use std::str::FromStr;

use spinney_core::{Error, Map, Result, Value};

use super::{machine, number_at};

/// Names an owner; random, and never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(u64);

impl OwnerId {
    /// Bits of an id, so that each has a byte of its own in a file of owners.
    const BITS: u32 = 62;

    pub(super) fn random() -> OwnerId {
        OwnerId(fastrand::u64(..) >> (u64::BITS - OwnerId::BITS))
    }

    /// Its byte in a file of owners.
    pub(super) fn offset(self) -> i64 {
        self.0 as i64
    }
}

impl fmt::Display for OwnerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for OwnerId {
    type Err = Error;

    fn from_str(text: &str) -> Result<OwnerId> {
        let is_plain = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        match u64::from_str_radix(text, 16) {
            Ok(id) if is_plain && id >> OwnerId::BITS == 0 => Ok(OwnerId(id)),
            _ => Err(Error::invalid_input(format!(
                "`{text}` names no owner; expected 16 hexadecimal digits as `lock` gives them to its command"
            ))),
        }
    }
}

/// An owner as it is written beside what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub id: OwnerId,
    pub process: u32,
    pub host: String,
    /// Empty when it said no name.
    pub user: String,
    pub since_ms: u64,
    pub lease: Option<Leased>,
}

/// What else is known of an owner that has a lease, so that those on its machine need not wait for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Leased {
    /// The running system and its space of process numbers; empty where it does not tell.
    pub machine: String,
    /// When the process started, in the system's ticks.
    pub started: u64,
}

impl Record {
    pub fn of_this_process(id: OwnerId, user: &str, since_ms: u64, is_leased: bool) -> Record {
        let process = std::process::id();
        let lease = is_leased.then(|| Leased {
            machine: machine::this().to_owned(),
            started: machine::started(process).unwrap_or(0),
        });
        let (host, user) = (machine::host().to_owned(), user.to_owned());
        Record { id, process, host, user, since_ms, lease }
    }

    pub fn to_value(&self) -> Value {
        let mut members = Map::new();
        members.insert("id", self.id.to_string());
        members.insert("process", u64::from(self.process));
        members.insert("host", &*self.host);
        if !self.user.is_empty() {
            members.insert("user", &*self.user);
        }
        members.insert("since", self.since_ms);
        if let Some(Leased { machine, started }) = &self.lease {
            members.insert("machine", &**machine);
            members.insert("started", *started);
        }
        members.into()
    }

    /// `None` when it is none.
    pub fn of_value(value: &Value) -> Option<Record> {
        let text = |path| value.pointer(path).and_then(Value::as_str);
        let lease = text("/machine").map(|machine| Leased {
            machine: machine.to_owned(),
            started: number_at(value, "/started").unwrap_or(0),
        });
        Some(Record {
            id: text("/id")?.parse().ok()?,
            process: number_at(value, "/process")?.try_into().ok()?,
            host: text("/host")?.to_owned(),
            user: text("/user").unwrap_or_default().to_owned(),
            since_ms: number_at(value, "/since")?,
            lease,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_ids_round_trip() {
        for is_leased in [false, true] {
            let record = Record::of_this_process(OwnerId::random(), "ann", 7, is_leased);
            assert_eq!(Record::of_value(&record.to_value()), Some(record.clone()));
            assert_eq!(record.id.to_string().parse::<OwnerId>().expect("reads"), record.id);
        }
        assert_eq!(Record::of_value(&Value::map()), None);
        for text in ["", "1", "+00000000000000f", "ffffffffffffffff", "00000000000000001"] {
            text.parse::<OwnerId>().expect_err(text);
        }
    }
}
