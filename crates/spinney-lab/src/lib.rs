//! Measures spinney beside what people would use instead: the same work, the same answers, one
//! machine, one run.
//!
//! Read in this order: [`datastore`] (data and rows), [`system`] (what a system must do),
//! [`systems`] (the peers), [`run`] (interleaved tries), [`record`], [`report`] and [`claims`].
//! Nothing here knows the command line.

pub mod answer;
pub mod canonical;
pub mod clock;
pub mod datastore;
pub mod machine;
pub mod process;
pub mod statistics;
pub mod system;
pub mod systems;

/// The version of serde_json, the library of the limit rows and of the peer `file`.
pub const SERDE_JSON_VERSION: &str = "1";
