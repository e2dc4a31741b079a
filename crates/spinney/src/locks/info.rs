//! What is told of a lock.

use std::fmt;
use std::time::Duration;

use spinney_core::{Path, path};

use super::table::Entry;
use crate::owners::OwnerId;
use crate::store::now_ms;

/// A lock, and who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// What is locked.
    pub path: Path,
    /// What it is for; empty when nobody said so.
    pub name: String,
    /// The name that the holder's store was opened with; empty when it was none.
    pub user: String,
    /// The holder's process.
    pub process: u32,
    /// The machine of that.
    pub host: String,
    /// The holder.
    pub owner: OwnerId,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// When it is void at the latest, likewise.
    pub expires_ms: Option<u64>,
}

impl LockInfo {
    pub(super) fn new(entry: &Entry, base: &str) -> LockInfo {
        let Entry { place, name, since_ms, expires_ms, owner, .. } = entry;
        let below = place.strip_prefix(base).and_then(|below| Path::parse(below).ok());
        LockInfo {
            path: below.unwrap_or_else(|| place.clone()),
            name: name.clone(),
            user: owner.user.clone(),
            process: owner.process,
            host: owner.host.clone(),
            owner: owner.id,
            since_ms: *since_ms,
            expires_ms: *expires_ms,
        }
    }

    /// For how long the path has been locked, in whole seconds.
    pub fn age(&self) -> Duration {
        Duration::from_secs(now_ms().saturating_sub(self.since_ms) / 1_000)
    }

    /// The path as a word of a shell.
    pub(super) fn path_in_a_command(&self) -> String {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/-_.~".contains(&byte);
        match !self.path.is_empty() && self.path.bytes().all(is_plain) {
            true => (*self.path).to_owned(),
            false => format!("'{}'", self.path.escape_debug().to_string().replace('\'', r"'\''")),
        }
    }
}

/// Who has what locked, for how long and what for.
impl fmt::Display for LockInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LockInfo { path, name, user, process, host, .. } = self;
        write!(f, "{} is locked by ", path::Display(path))?;
        if !user.is_empty() {
            write!(f, "{}, ", user.escape_debug())?;
        }
        write!(f, "process {process} on {}, for {} s", host.escape_debug(), self.age().as_secs())?;
        match name.is_empty() {
            true => Ok(()),
            false => write!(f, " (`{}`)", name.escape_debug()),
        }
    }
}
