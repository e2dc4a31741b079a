//! The suite `documents`: n copies of a document set and read back, whole, by nested iteration and by a
//! cursor over leaves.
//!
//! Read in this order: [`set`] (the documents), [`rows`] (what is done with them), [`collection`] (what a
//! system must do), then how a row is done and what runs when.

mod bench;
pub mod collection;
pub mod rows;
pub mod set;
mod suite;

pub use collection::{Calls, Collection};
pub use set::Set;
pub(crate) use suite::Suite;
