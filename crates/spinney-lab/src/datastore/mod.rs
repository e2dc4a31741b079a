//! The suite `datastore`: its data, its rows and what each row must do and leave behind.

pub mod document;
pub mod published;
pub mod rows;

pub use document::Documents;
pub use rows::{Operation, ROWS, Row};

/// Its name in records and on the command line.
pub const NAME: &str = "datastore";
