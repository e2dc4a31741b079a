//! What the driver's errors are here. Owns which of them leave open whether a request was done.

use std::fmt::Display;

use mongodb::error::{Error as DriverError, ErrorKind, WriteFailure};
use spinney_core::Error;
use spinney_core::ErrorKind as Kind;

use crate::network::server::Failure;

/// Codes of a server that goes down, comes up or is not the primary any more.
const PASSING: [i32; 13] =
    [6, 7, 64, 89, 91, 189, 9_001, 10_058, 10_107, 11_600, 11_602, 13_435, 13_436];

/// Codes of an operation that took longer than it may.
const TOO_LONG: [i32; 2] = [50, 262];

const AUTHENTICATION_FAILED: i32 = 18;
const UNAUTHORIZED: i32 = 13;
const TOO_LARGE: i32 = 10_334;
const DUPLICATE_KEY: i32 = 11_000;
const NAMESPACE_NOT_FOUND: i32 = 26;

/// What an error of the driver means for a request at the place `shown`.
pub fn failure(shown: &str, error: &DriverError) -> Failure {
    let lost = |text: &dyn Display| Failure::Lost(Error::io(format!("{shown}: {text}")));
    match &*error.kind {
        ErrorKind::Authentication { .. } => denied_entry(shown),
        ErrorKind::Command(command) => match command.code {
            AUTHENTICATION_FAILED => denied_entry(shown),
            UNAUTHORIZED => Failure::Refused(Error::new(
                Kind::Denied,
                format!("{shown}: the user may not do this: {}", command.message),
            )),
            TOO_LARGE => Failure::Refused(Error::limit_exceeded(format!(
                "{shown}: a document is too large for the server: {}",
                command.message
            ))),
            code if PASSING.contains(&code) || TOO_LONG.contains(&code) => lost(&command.message),
            _ => Failure::Refused(Error::io(format!("{shown}: {}", command.message))),
        },
        ErrorKind::Write(WriteFailure::WriteConcernError(error)) => lost(&error.message),
        ErrorKind::InsertMany(error) => match (&error.write_concern_error, &error.write_errors) {
            (Some(error), _) => lost(&error.message),
            (None, errors) => {
                let first = errors.iter().flatten().find(|error| error.code != DUPLICATE_KEY);
                let text = first.map_or("a write failed", |error| &error.message);
                Failure::Refused(Error::io(format!("{shown}: {text}")))
            }
        },
        ErrorKind::ServerSelection { message, .. } if message.contains("certificate") => {
            Failure::Refused(Error::io(format!("{shown}: the server's certificate is not trusted")))
        }
        ErrorKind::ServerSelection { message, .. } => {
            let text = "no server answers; is it running, and does the URL say its name, TLS and replica set right?";
            match cause(message) {
                Some(cause) => lost(&format_args!("{text}: {cause}")).unsent(),
                None => lost(&text).unsent(),
            }
        }
        ErrorKind::Io(_)
        | ErrorKind::ConnectionPoolCleared { .. }
        | ErrorKind::DnsResolve { .. }
        | ErrorKind::InvalidResponse { .. } => lost(&error.kind),
        other => Failure::Refused(Error::io(format!("{shown}: {other}"))),
    }
}

/// What kept the driver from a server, in what it says of all of them.
fn cause(message: &str) -> Option<&str> {
    let (_, error) = message.split_once("Error: Kind: ")?;
    error.split([',', '\n']).next()
}

fn denied_entry(shown: &str) -> Failure {
    Failure::Refused(Error::new(
        Kind::Denied,
        format!("{shown}: the server does not accept the user and password of the URL"),
    ))
}

/// Whether there is no such collection yet.
pub fn is_missing(error: &DriverError) -> bool {
    matches!(&*error.kind, ErrorKind::Command(command) if command.code == NAMESPACE_NOT_FOUND)
}

/// Whether a document with the same `_id` was there already.
pub fn is_duplicate(error: &DriverError) -> bool {
    match &*error.kind {
        ErrorKind::Write(WriteFailure::WriteError(error)) => error.code == DUPLICATE_KEY,
        _ => false,
    }
}

/// Whether all that failed of many insertions is that some documents were there already.
pub fn are_duplicates(error: &DriverError) -> bool {
    match &*error.kind {
        ErrorKind::InsertMany(error) => {
            error.write_concern_error.is_none()
                && error.write_errors.iter().flatten().all(|error| error.code == DUPLICATE_KEY)
        }
        _ => false,
    }
}
