//! The backends, one module and one feature each.

#[cfg(feature = "lmdb")]
pub mod lmdb;
