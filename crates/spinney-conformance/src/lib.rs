//! The suite that a backend of spinney must pass, and wrappers that check, break or double one.

#![forbid(unsafe_code)]

pub mod child;
pub mod contract;
pub mod fault;
pub mod folder;
pub mod mirror;
pub mod model;
pub mod mutant;
pub mod servers;
pub mod strict;
pub mod subject;
pub mod suite;
pub mod timed;

pub use suite::suite;
pub use timed::timed;
