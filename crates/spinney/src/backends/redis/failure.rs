//! What the errors of the client library and the server mean.

use std::fmt::Display;

use redis::{ErrorKind as Kind, RedisError, ServerErrorKind};
use spinney_core::{Error, ErrorKind};

use crate::network::server::Failure;

/// What became of a request to a server that failed with `error`.
pub(super) fn failure(address: &impl Display, error: &RedisError) -> Failure {
    let refused = |kind, text: &str| {
        let text = format!("{address}: {text}");
        Failure::Refused(Error::new(kind, text).with_source(Said::of(error)))
    };
    let lost = |kind, text: &str| {
        let text = format!("{address}: {text}");
        Failure::Lost(Error::new(kind, text).with_source(Said::of(error)))
    };
    let undone = |kind, text: &str| lost(kind, text).unsent();
    if error.is_timeout() {
        return lost(ErrorKind::Io, "the server did not answer in time");
    }
    match error.kind() {
        Kind::Io if error.to_string().contains("certificate") => {
            return refused(ErrorKind::Io, "the server's certificate is not trusted");
        }
        Kind::Io | Kind::Parse => return lost(ErrorKind::Io, "the connection was lost"),
        Kind::AuthenticationFailed => {
            return refused(ErrorKind::Denied, "the server does not accept the user and password");
        }
        _ if is_denied(error) => {
            let text = "the user may not do this; spinney needs the commands of scripts, hashes, sorted sets, \
                        lists and `INFO`, on the keys of the store";
            return refused(ErrorKind::Denied, text);
        }
        _ => {}
    }
    match error.code() {
        Some("WRONGPASS") => {
            refused(ErrorKind::Denied, "the server does not accept the user and password")
        }
        Some("NOAUTH") => refused(
            ErrorKind::Denied,
            "the server wants a password; put it into the URL, as in `redis://:password@host`",
        ),
        Some("LOADING") => undone(ErrorKind::Busy, "the server is still loading its data"),
        Some("BUSY") => undone(ErrorKind::Busy, "the server is busy with a script"),
        Some("CLUSTERDOWN" | "MASTERDOWN") => {
            undone(ErrorKind::Busy, "a part of the cluster is down")
        }
        // Some of the tree's keys are on one master and some on another; scripts wait for the end of it.
        Some("TRYAGAIN" | "ASK") => {
            undone(ErrorKind::Busy, "the slot is just being moved to another master")
        }
        Some("NOREPLICAS") => refused(
            ErrorKind::Busy,
            "the server takes no writes because too few replicas are connected (`min-replicas-to-write`)",
        ),
        Some("READONLY") => {
            refused(ErrorKind::ReadOnly, "the server is a read-only replica; connect to its master")
        }
        Some("MISCONF") => refused(
            ErrorKind::ReadOnly,
            "the server takes no writes because it cannot save its data; look into its log and at its disk",
        ),
        Some("OOM") => refused(
            ErrorKind::LimitExceeded,
            "the server holds as much as its `maxmemory` allows; nothing was changed; raise it, or make room: forget \
             older revisions, compact the store, remove what else is there",
        ),
        Some("WRONGTYPE") => refused(
            ErrorKind::Corrupted,
            "a key of the store holds something that spinney did not put there",
        ),
        Some("MOVED") => refused(
            ErrorKind::Unsupported,
            "the server is part of a cluster; write `redis+cluster:` in place of `redis:`",
        ),
        _ if says(error, "unknown command") => refused(
            ErrorKind::Unsupported,
            "the server lacks a command that spinney needs, or it is switched off",
        ),
        _ if says(error, "cluster support disabled") => refused(
            ErrorKind::InvalidInput,
            "the server is no part of a cluster; write `redis:` in place of `redis+cluster:`",
        ),
        _ if says(error, "DB index is out of range") => {
            refused(ErrorKind::InvalidInput, "the server has no database of that number")
        }
        _ => refused(ErrorKind::Io, "the server or the client library refused the request"),
    }
}

/// The same of a request that was not sent, since the server was not reached.
pub(super) fn unreached(address: &impl Display, error: &RedisError) -> Failure {
    let is_strange = (error.is_connection_dropped() && !error.is_connection_refusal())
        || error.kind() == Kind::Parse
        || error.is_timeout();
    let text = match error.kind() {
        Kind::Io | Kind::Parse if error.to_string().contains("certificate") => {
            return failure(address, error);
        }
        _ if is_strange => {
            "nobody answers there as a server should; is it a Redis or Valkey server, and does it want TLS (`rediss:`) \
             or not (`redis:`)?"
        }
        Kind::Io => "the server cannot be reached; is it running, and is its name right?",
        _ => return failure(address, error).unsent(),
    };
    Failure::Undone(Error::io(format!("{address}: {text}")).with_source(Said::of(error)))
}

/// Whether the user may not do it, or what a script did for it.
pub(super) fn is_denied(error: &RedisError) -> bool {
    let is_in_script =
        says(error, "user executing the script can't") || says(error, "ACL failure in script");
    error.kind() == Kind::Server(ServerErrorKind::NoPerm) || is_in_script
}

fn says(error: &RedisError, text: &str) -> bool {
    error.detail().is_some_and(|detail| detail.contains(text))
}

/// What was said, as a source; in one line, and never longer than a line should be.
#[derive(Debug)]
struct Said(String);

impl Said {
    fn of(error: &RedisError) -> Said {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        Said(line.chars().take(200).collect())
    }
}

impl std::fmt::Display for Said {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Said {}
