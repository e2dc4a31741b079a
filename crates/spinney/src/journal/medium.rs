//! The few file operations that a journal needs, as traits, so that a test can record every write
//! and sync and replay what a power failure may leave of them.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::file_system::{remove_if_present, sync_dir};

/// Where a journal's files lie.
pub trait Folder: Send + Sync {
    /// Opens a file; `None` when it does not exist and `create` is not set.
    fn open(&self, name: &str, create: bool) -> io::Result<Option<Box<dyn Medium>>>;

    /// Gives a file another name, and takes it from the file that had it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file; absent is no error.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names durable.
    fn sync(&self) -> io::Result<()>;

    /// The path of a file, for messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// One open file.
pub trait Medium: Send + Sync {
    /// Fills `bytes` from `offset` on as far as the file goes; returns how many there were.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Writes all of `bytes`.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Makes what was written durable, and as much of the metadata as it takes to read it.
    fn sync_data(&self) -> io::Result<()>;

    /// Bytes of the file.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Makes the file longer, with zeros that are written and synced with all metadata, so that no
    /// later sync of this range has to write any.
    fn allocate(&self, len: u64) -> io::Result<()>;
}

/// A folder of the file system.
pub struct Directory {
    path: PathBuf,
    read_only: bool,
}

impl Directory {
    /// The folder at `path`; with `read_only` its files are opened to read.
    pub fn new(path: &Path, read_only: bool) -> Directory {
        Directory { path: path.to_owned(), read_only }
    }
}

impl Folder for Directory {
    fn open(&self, name: &str, create: bool) -> io::Result<Option<Box<dyn Medium>>> {
        let writes = !self.read_only;
        let mut options = OpenOptions::new();
        options.read(true).write(writes).create(create && writes);
        match options.open(self.path.join(name)) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        remove_if_present(&self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        sync_dir(&self.path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

/// Bytes of zeros that are written at once.
const ZEROS_LEN: u64 = 64 << 10;

impl Medium for File {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut len = 0;
        while len < bytes.len() {
            match FileExt::read_at(self, &mut bytes[len..], offset + len as u64) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let zeros = [0; ZEROS_LEN as usize];
        let mut at = Medium::len(self)?;
        while at < len {
            let step = (len - at).min(ZEROS_LEN);
            self.write_all_at(&zeros[..step as usize], at)?;
            at += step;
        }
        self.sync_all()
    }
}
