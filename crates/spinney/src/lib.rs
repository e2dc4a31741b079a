//! spinney

pub mod formats;

pub use spinney_core::*;
