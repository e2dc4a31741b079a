//! The suite `datastore`: its data, its rows and what each row must do and leave behind.

mod bench;
pub mod document;
mod operate;
pub mod published;
pub mod rows;
mod suite;

pub(crate) use bench::Bench;
pub use document::Documents;
pub use rows::{Operation, ROWS, Row};
pub(crate) use suite::Suite;
