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

/// What there is to say where a store was looked for and is none.
#[cfg(any(feature = "fjall", feature = "lmdb", feature = "mongodb", feature = "redis"))]
fn no_store(place: impl std::fmt::Display) -> spinney_core::Error {
    spinney_core::Error::not_found(format!(
        "no store at {place}; `spinney set` and `spinney import` make one"
    ))
}
