//! spinney

pub mod backends;

pub use spinney_core::*;
