//! The tree of spinney: values, paths, pages, diffs, the commit pipeline and the backend contract.
//!
//! The tree is written once, over ordered byte keys. This crate has no input or output, no engine,
//! no threads of its own, no environment and no clock.

#![forbid(unsafe_code)]

pub mod access;
pub mod attempts;
pub mod backend;
pub mod build;
pub mod byte_diff;
pub mod check;
pub mod compare;
pub mod counts;
pub mod diff;
pub mod difference;
pub mod edit;
pub mod error;
pub mod expand;
mod few_bytes;
pub mod fill;
pub mod history;
pub mod index;
pub mod inline;
pub mod key;
pub mod layout;
pub mod limits;
pub mod members;
pub mod memory;
pub mod node;
pub mod number;
pub mod overlay;
pub mod page;
pub mod part;
pub mod patch;
pub mod path;
pub mod pending;
pub mod rank;
pub mod read;
pub mod reclaim;
pub mod record;
pub mod scratch;
pub mod separator;
pub mod short_bytes;
pub mod stretch;
pub mod transaction;
#[cfg(feature = "serde")]
pub mod typed;
pub mod value;
pub mod varint;
pub mod view;
pub mod visit;
pub mod without;

pub use error::{Error, ErrorKind, Result};
pub use key::Key;
pub use memory::Memory;
pub use number::{Num, Number};
pub use path::Path;
pub use value::{List, Map, Value};
pub use visit::{Container, Scalar, Text, Visitor};
