//! Scratch in an unnamed temporary file, for imports that do not fit in memory.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use spinney_core::scratch::Scratch;
use spinney_core::{Error, Result};

/// A temporary file that has no name and is gone when it is closed.
pub struct FileScratch {
    file: File,
    len: u64,
}

impl FileScratch {
    /// Makes one in a directory, best the store's own.
    ///
    /// # Errors
    /// `Io` when the directory cannot be written.
    pub fn new(dir: &Path) -> Result<FileScratch> {
        let file = tempfile::tempfile_in(dir).map_err(|error| {
            Error::io(format!("cannot make a temporary file in `{}`", dir.display()))
                .with_source(error)
        })?;
        Ok(FileScratch { file, len: 0 })
    }
}

impl Scratch for FileScratch {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, self.len).map_err(|error| {
            Error::io("cannot write the temporary file of an import; is the disk full?")
                .with_source(error)
        })?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|error| {
            Error::io("cannot read the temporary file of an import").with_source(error)
        })
    }
}
