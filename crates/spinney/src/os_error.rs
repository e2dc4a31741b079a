//! Errors of the operating system in spinney's words: which file, and what kind.

use std::io;
use std::path::Path;

use spinney_core::Error;

/// The system's number for an input or output error, the same on all Unixes.
const EIO: i32 = 5;

/// An error of the operating system at a file.
#[cold]
pub fn io_error(action: &str, path: &Path, error: io::Error) -> Error {
    os_error(&format!("{action} `{}`", path.display()), error)
}

/// An error of the operating system.
#[cold]
pub fn os_error(action: &str, error: io::Error) -> Error {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let described = match error.kind() {
        ReadOnlyFilesystem => Error::read_only(format!("{action}: the file system is read-only")),
        StorageFull => Error::io(format!("{action}: the disk is full")),
        QuotaExceeded => Error::io(format!("{action}: the disk quota is used up")),
        FileTooLarge => Error::io(format!("{action}: the file would exceed the size limit")),
        // LMDB answers this, too, when the system wrote less than it was given.
        _ if error.raw_os_error() == Some(EIO) => {
            Error::io(format!("{action}: the disk failed or is full"))
        }
        _ => Error::io(format!("{action}: {error}")),
    };
    described.with_source(error)
}
