//! What a principal may do where, and trees, values and diffs as such a one sees them.
//!
//! It must not know who principals are, nor where rules are kept.

mod permissions;
mod rules;
mod sieve;
mod veil;
mod way;

pub use permissions::{Permissions, Standing};
pub use rules::{Effect, Right, Rule};
pub use sieve::Between;
pub use veil::Veil;
pub use way::Way;
