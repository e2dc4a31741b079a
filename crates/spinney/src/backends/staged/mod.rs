//! What the backends have in common that keep a journal and an overlay in front of an engine: commits
//! are staged, and folded into the engine later.
//!
//! It must not know which engine that is.

mod changes;
pub mod checkpoint;
mod flusher;
pub mod marker;
mod tail;

pub use flusher::{Flusher, Keep};
pub use tail::Tail;

/// Batches of more point changes, after ranges are expanded, are written without being journaled.
pub const JOURNALED_BATCH_RECORDS_MAX: usize = 50_000;

/// With more bytes unwritten a commit writes them before it answers.
pub const UNWRITTEN_LEN_MAX: usize = 1 << 20;
