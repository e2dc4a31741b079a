//! Measures spinney beside what people would use instead: the same work, the same answers, one
//! machine, one run.
//!
//! Read in this order: [`datastore`] (data and rows), [`system`] (what a system must do), [`documents`],
//! [`throughput`],
//! [`systems`] (the peers), [`engine`] and [`engines`] (stores of ordered keys, each a peer),
//! `suite.rs` (what a suite is to the runner), [`run()`] (interleaved tries), [`record`],
//! [`report`], [`claims`], [`compare`] and [`Sheet`] (reports as documents); then
//! [`journal`], a suite of its own (`cargo run --release -p spinney-lab --example journal`).
//! Nothing here knows the command line.

mod amount;
pub mod answer;
pub mod canonical;
pub mod child;
pub mod claims;
mod clock;
mod cold;
pub mod compare;
pub mod datastore;
pub mod documents;
pub mod engine;
pub mod engines;
mod files;
mod huge;
pub mod journal;
mod json_file;
mod lane;
pub mod limits;
mod machine;
mod memory;
mod options;
mod process;
mod readers;
pub mod record;
mod recorder;
pub mod report;
mod row;
mod run;
pub mod server;
mod sheet;
pub mod splice;
pub mod statistics;
mod stores_folder;
mod suite;
mod syncs;
pub mod system;
pub mod systems;
mod table;
pub mod throughput;

pub use options::{Mode, Options, Rules};
pub use report::Report;
pub use run::run;
pub use sheet::{Sheet, SheetFile};
pub use suite::Name;
pub use table::render_claims;

/// The version of serde_json, the library of the limit rows and of the peer `file`.
pub const SERDE_JSON_VERSION: &str = env!("LAB_SERDE_JSON");
