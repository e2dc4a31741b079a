//! The suite `throughput`: one array that grows by an item at a time, its length read after each.
//!
//! Read in this order: [`item`] (what is pushed), [`mod@array`] (what a system must do), [`rows`], then how a row
//! is done and what runs when.

pub mod array;
mod bench;
pub mod item;
pub mod rows;
mod suite;

pub use array::{Array, Export};
pub use item::Item;
pub(crate) use suite::Suite;
