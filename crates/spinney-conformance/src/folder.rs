//! Where tests keep their stores.

use std::path::Path;

use tempfile::TempDir;

/// A temporary folder that goes away with the answer: in memory where the system has `/dev/shm`, so
/// that a suite of thousands of syncs measures the code and not the disk.
///
/// # Panics
/// When no folder can be made.
pub fn temporary() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    made.expect("a temporary folder can be made")
}
