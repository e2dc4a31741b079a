//! What users add to the tree: backends, formats and the opening of stores.

pub mod backends;

pub use spinney_core::*;
