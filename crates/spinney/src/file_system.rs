//! What is done to names in the file system in more than one place.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// `None` when it failed because there is no such file.
pub fn if_present<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Removes a file; absent is no error.
pub fn remove_if_present(path: &Path) -> io::Result<()> {
    if_present(fs::remove_file(path)).map(drop)
}

/// Makes the names in a folder durable.
pub fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
