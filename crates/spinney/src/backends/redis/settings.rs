//! What the settings of a server mean for the commits of a store.

use std::time::{Duration, Instant};

use redis::Value;
use spinney_core::{Error, Result};

use super::link::{Links, fact};
use crate::network::server::Reply;

/// How long settings are believed to be what they were; an administrator may change them at any time.
const FRESH: Duration = Duration::from_secs(60);

/// Settings, as they were read.
#[derive(Clone)]
pub(super) struct Settings {
    read: Instant,
    /// The run of the server that has them; the next one may have others.
    run: String,
    /// `appendonly`, `appendfsync` and `save`; `None` when the server does not tell.
    kept: Option<Kept>,
}

#[derive(Clone)]
struct Kept {
    appends: bool,
    syncs: String,
    snapshots: String,
}

impl Settings {
    /// Asks the server.
    pub fn read(links: &Links) -> Reply<Settings> {
        let words = ["CONFIG", "GET", "appendonly", "appendfsync", "save"];
        let kept = links.try_command(&words)?.ok().map(|answer| {
            let pairs = pairs(answer);
            let value = |name: &str| {
                let found = pairs.iter().find(|(known, _)| known == name);
                found.map(|(_, value)| value.clone()).unwrap_or_default()
            };
            Kept {
                appends: value("appendonly") == "yes",
                syncs: value("appendfsync"),
                snapshots: value("save"),
            }
        });
        Ok(Settings { read: Instant::now(), run: links.run(), kept })
    }

    pub fn is_fresh(&self, links: &Links) -> bool {
        self.read.elapsed() < FRESH && self.run == links.run()
    }

    /// Whether what the server has answered survives a power failure.
    ///
    /// # Errors
    /// `Unsupported`, naming the setting.
    pub fn durable(&self) -> Result<()> {
        let against = match &self.kept {
            None => "the server does not tell its settings (`CONFIG GET` is denied)".to_owned(),
            Some(Kept { appends: false, .. }) => "the server has `appendonly no`".to_owned(),
            Some(Kept { syncs, .. }) if syncs == "always" => return Ok(()),
            Some(Kept { syncs, .. }) => format!("the server has `appendfsync {syncs}`"),
        };
        Err(Error::unsupported(format!(
            "a commit cannot be durable: {against}; set `appendonly yes` and `appendfsync always` there, or be content \
             with less: `--durability process`"
        )))
    }

    /// What a commit that is answered survives, in words.
    pub fn survives(&self) -> String {
        match &self.kept {
            None => "unknown: `CONFIG GET` is denied".to_owned(),
            Some(Kept { appends: true, syncs, .. }) if syncs == "always" => {
                "power failures (`appendfsync always`)".to_owned()
            }
            Some(Kept { appends: true, syncs, .. }) if syncs == "everysec" => {
                "the end of the server; a power failure may take the last second (`appendfsync everysec`)".to_owned()
            }
            Some(Kept { appends: true, syncs, .. }) => format!(
                "the end of the server; a power failure takes what the system has not written (`appendfsync {syncs}`)"
            ),
            Some(Kept { snapshots, .. }) if snapshots.is_empty() => {
                "the end of this process; the end of the server takes everything (no `appendonly`, no `save`)".to_owned()
            }
            Some(Kept { snapshots, .. }) => format!(
                "the end of this process; a crash of the server takes all since its last snapshot (`save {snapshots}`)"
            ),
        }
    }
}

fn pairs(answer: Value) -> Vec<(String, String)> {
    redis::from_redis_value(answer).unwrap_or_default()
}

/// Refuses a server that throws away keys to make place for others.
///
/// # Errors
/// `Unsupported`, naming the setting.
pub(super) fn check_eviction(links: &Links, memory: &str) -> Result<()> {
    let policy = fact(memory, "maxmemory_policy").unwrap_or_default();
    let is_bounded = fact(memory, "maxmemory").is_some_and(|max| max != "0");
    if !is_bounded || !policy.starts_with("allkeys") {
        return Ok(());
    }
    Err(Error::unsupported(format!(
        "{}: the server throws away data when its memory is full (`maxmemory-policy {policy}`), a part of a store with \
         it; set `maxmemory-policy noeviction` or open the store for reading only",
        links.address
    )))
}
