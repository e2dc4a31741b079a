//! JSONPath (RFC 9535) over any tree that implements [`Node`]: a store's pages, a value in memory.
//!
//! [`Query::parse`] checks a query in full, types included; [`Query::run`] finds nodes one after
//! another, each child read when it is asked for. This crate has no input or output and no clock, and
//! never recurses: neither on the depth of trees nor on that of queries.
//!
//! ```
//! use spinney_query::{Budget, Query};
//!
//! let people = spinney_core::Value::Map([("ada", 36), ("alan", 41)].into_iter().collect());
//! let query = Query::parse("$[?@ > 40]")?;
//! let mut matches = query.run(&people, Budget::default());
//! assert_eq!(matches.next()?, Some(&41.into()));
//! assert_eq!(matches.location()?.to_string(), "$['alan']");
//! assert_eq!(matches.next()?, None);
//! # Ok::<(), spinney_core::Error>(())
//! ```

#![forbid(unsafe_code)]

mod budget;
mod compare;
mod explain;
mod judge;
mod level;
mod location;
mod matches;
mod parse;
mod pattern;
mod program;
mod query;
mod slice;
mod sweep;

pub use budget::{Budget, Deadline};
pub use explain::{Access, Explained};
pub use location::{Location, Step};
pub use matches::Matches;
pub use query::Query;
pub use spinney_core::read::{Children, Leaf, Name, Node, Stored, StoredChildren, ValueChildren};
