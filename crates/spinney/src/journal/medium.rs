//! The few file operations that a journal needs, and a document beside it, as traits, so that a test
//! can record every write and sync and replay what a power failure may leave of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, fchown};
use std::path::{Path, PathBuf};

use crate::file_system::{if_present, remove_if_present, sync_dir};

/// Where the files lie.
pub trait Folder: Send + Sync {
    /// Opens a file; `None` when it does not exist and `create` is not set.
    fn open(&self, name: &str, create: bool) -> io::Result<Option<Box<dyn Medium>>>;

    /// All bytes of a file; `None` when it does not exist.
    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>>;

    /// Makes a file that holds `bytes`, synced with all its metadata, with the permissions and, where
    /// the system allows it, the owner of another one, if that exists. The name is not synced.
    ///
    /// # Errors
    /// `AlreadyExists`; and those of the system, after which part of the file may be there.
    fn write_new(&self, name: &str, bytes: &[u8], like: &str) -> io::Result<()>;

    /// What tells a changed file without reading it; `None` when it does not exist.
    fn stamp(&self, name: &str) -> io::Result<Option<Stamp>>;

    /// Gives a file another name, and takes it from the file that had it.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file; absent is no error.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Makes the names durable.
    fn sync(&self) -> io::Result<()>;

    /// The path of a file, for messages.
    fn path(&self, name: &str) -> PathBuf;
}

/// What tells a changed file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Bytes.
    pub len: u64,
    /// When it was last written, in seconds and nanoseconds.
    pub modified: (i64, i64),
    /// Device and number.
    pub inode: (u64, u64),
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
        let file = if_present(options.open(self.path.join(name)))?;
        Ok(file.map(|file| Box::new(file) as Box<dyn Medium>))
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        if_present(fs::read(self.path.join(name)))
    }

    fn write_new(&self, name: &str, bytes: &[u8], like: &str) -> io::Result<()> {
        let mut file =
            OpenOptions::new().write(true).create_new(true).open(self.path.join(name))?;
        if let Some(like) = if_present(fs::metadata(self.path.join(like)))? {
            file.set_permissions(like.permissions())?;
            // Only root may give files away.
            let _ = fchown(&file, Some(like.uid()), Some(like.gid()));
        }
        file.write_all(bytes)?;
        file.sync_all()
    }

    fn stamp(&self, name: &str) -> io::Result<Option<Stamp>> {
        let found = if_present(fs::metadata(self.path.join(name)))?;
        Ok(found.map(|found| Stamp {
            len: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            inode: (found.dev(), found.ino()),
        }))
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
