//! The backends, one module and one feature each.

#[cfg(feature = "json")]
pub mod json;
#[cfg(feature = "lmdb")]
pub mod lmdb;
