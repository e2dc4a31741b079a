//! JSON Schema for spinney: drafts 4, 6, 7, 2019-09 and 2020-12, judged in full or by what changed.
//!
//! A schema is compiled once ([`Schema::compile`]). [`Schema::validate`] reads a whole document;
//! [`Schema::validate_change`] only what a commit can have made wrong. This crate stores nothing,
//! fetches nothing and never recurses: documents and schemas may be as deep as the model allows.

#![forbid(unsafe_code)]

pub mod changes;
mod compile;
mod coverage;
mod decimal;
mod dialect;
mod equality;
mod evaluate;
mod explain;
mod format;
pub mod instance;
mod keywords;
mod pattern;
pub mod report;
mod resources;
mod schema;
mod vocabulary;

pub use changes::Changes;
pub use compile::Options;
pub use dialect::Draft;
pub use explain::{Cost, Explained};
pub use instance::{Document, Instance};
pub use report::{Report, Violation};
pub use resources::Documents;
pub use schema::Schema;
pub use vocabulary::{ChangeContent, Entries};
