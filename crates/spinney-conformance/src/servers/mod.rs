//! Servers for tests of what stands on [`spinney::network`], what all of them must do, and wrappers of
//! them.

use std::time::Duration;

use spinney::network::NetworkOptions;
use spinney::{ErrorKind, Result};

pub mod certificate;
pub mod contract;
pub mod figures;
pub mod flaky;
pub mod mongodb;
pub mod mongodb_proxy;
pub mod proxy;
pub mod redis;
pub mod redis_cluster;
pub mod reference;

/// How clients wait that are to be answered at last, on a machine that has much else to do: the largest commits
/// are one script, which may take long there.
pub const PATIENT: NetworkOptions = NetworkOptions {
    timeout: Duration::from_secs(60),
    patience: Duration::from_secs(180),
    ..NetworkOptions::DEFAULT
};

/// Asserts a kind, a text in one line, and that no password is in it.
///
/// # Panics
/// Otherwise, and where nothing was refused.
pub fn refused<T>(kind: ErrorKind, part: &str, tried: Result<T>) {
    let Err(error) = tried else { panic!("it was not refused: {part}") };
    assert_eq!(error.kind(), kind, "{error}");
    let said = format!("{error}; {error:?}");
    assert!(error.to_string().contains(part), "`{error}` does not say `{part}`");
    assert!(!said.contains("s3cret"), "a password is shown: {said}");
    assert!(!error.to_string().contains('\n') && error.to_string().len() < 400, "{error}");
}
