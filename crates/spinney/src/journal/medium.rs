//! The few file operations that a journal needs, and a document beside it, as traits, so that a test
//! can record every write and sync and replay what a power failure may leave of them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;

use crate::file_system::{if_present, remove_if_present, sync_dir};

/// Bytes of a block; what is written past the cache, and the memory that it is in, begins at multiples of it.
/// No disk in use has longer ones.
pub const BLOCK_LEN: usize = 4_096;

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

    /// Writes whole blocks, past the system's cache where it can be, and makes them durable. Of what was
    /// written before nothing becomes durable by that.
    fn write_through(&self, blocks: &[u8], offset: u64) -> io::Result<()>;

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
        let (path, writes) = (self.path.join(name), !self.read_only);
        let mut options = OpenOptions::new();
        options.read(true).write(writes).create(create && writes);
        let Some(file) = if_present(options.open(&path))? else { return Ok(None) };
        // Some file systems cannot write past the cache.
        let through = match writes {
            true => OpenOptions::new().write(true).custom_flags(WRITE_THROUGH).open(&path).ok(),
            false => None,
        };
        Ok(Some(Box::new(OpenFile { file, through })))
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

/// A write does not go through the cache, and returns when its bytes are durable, whatever becomes of the
/// file's times (`rustix` has only `O_SYNC`, which waits for them, too).
const WRITE_THROUGH: i32 = OFlag::O_DIRECT.union(OFlag::O_DSYNC).bits();

/// A file of the file system.
struct OpenFile {
    file: File,
    /// The same one, to write past the cache.
    through: Option<File>,
}

impl Medium for OpenFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut len = 0;
        while len < bytes.len() {
            match self.file.read_at(&mut bytes[len..], offset + len as u64) {
                Ok(0) => break,
                Ok(read) => len += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    fn write_through(&self, blocks: &[u8], offset: u64) -> io::Result<()> {
        if let Some(through) = &self.through {
            match through.write_all_at(blocks, offset) {
                // Blocks of another length than this disk's, or none of its own.
                Err(error) if error.kind() == io::ErrorKind::InvalidInput => {}
                written => return written,
            }
        }
        self.write_at(blocks, offset)?;
        self.sync_data()
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let zeros = [0; ZEROS_LEN as usize];
        let mut at = self.len()?;
        while at < len {
            let step = (len - at).min(ZEROS_LEN);
            self.file.write_all_at(&zeros[..step as usize], at)?;
            at += step;
        }
        self.file.sync_all()
    }
}
