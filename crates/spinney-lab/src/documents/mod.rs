//! The suite `documents`: n copies of a document set and read back, whole, by nested iteration and by a
//! cursor over leaves.
//!
//! Read in this order: [`source`], [`shape`], [`set`] (the documents), [`rows`] (what is done with them), [`collection`] (what a
//! system must do), `leaves.rs` (a record a leaf), then how a row is done and what runs when.

mod bench;
pub mod collection;
pub(crate) mod leaves;
pub mod rows;
pub mod set;
pub mod shape;
pub mod source;
mod suite;

pub use collection::{Calls, Collection};
pub use set::Set;
pub(crate) use suite::Suite;
