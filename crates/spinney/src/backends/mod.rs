//! The backends, one module and one feature each.

#[cfg(feature = "fjall")]
pub mod fjall;
#[cfg(feature = "json")]
pub mod json;
#[cfg(feature = "lmdb")]
pub mod lmdb;
#[cfg(feature = "mongodb")]
pub mod mongodb;
#[cfg(feature = "redis")]
pub mod redis;
#[cfg(any(feature = "fjall", feature = "lmdb"))]
mod staged;
#[cfg(any(feature = "fjall", feature = "json"))]
mod writer_lock;
