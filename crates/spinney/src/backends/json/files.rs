//! The file and what lies beside it: names, the writer's lock, and replacing it at once.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use spinney_core::{Error, Result};

use crate::os_error::io_error;

/// How long opening waits for a store that this process is just closing.
const CLOSING_MAX: Duration = Duration::from_secs(10);

/// Where the document and its companions lie.
#[derive(Clone, Debug)]
pub struct Files {
    /// The file itself; never a symbolic link.
    pub file: PathBuf,
    pub folder: PathBuf,
    name: String,
}

/// What tells a changed file without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    len: u64,
    modified: (i64, i64),
    inode: (u64, u64),
}

impl Files {
    /// Follows links to the file, which need not exist.
    pub fn locate(path: &Path) -> Result<Files> {
        let file = match fs::canonicalize(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => missing_file(path)?,
            found => found.map_err(|error| io_error("cannot find", path, error))?,
        };
        if file.is_dir() {
            return Err(Error::invalid_input(format!(
                "`{}` is a directory; name a JSON file, or write `lmdb:DIR`",
                path.display()
            )));
        }
        let (folder, name) = (file.parent(), file.file_name().and_then(|name| name.to_str()));
        let (Some(folder), Some(name)) = (folder, name) else {
            return Err(Error::invalid_input(format!(
                "`{}` is no name of a file in UTF-8",
                path.display()
            )));
        };
        Ok(Files { folder: folder.to_owned(), name: name.to_owned(), file: file.clone() })
    }

    /// The name of the journal's files, without their numbers.
    pub fn journal_name(&self) -> String {
        format!("{}.journal", self.name)
    }

    /// A file beside the document.
    pub fn beside(&self, suffix: &str) -> PathBuf {
        self.folder.join(format!("{}.{suffix}", self.name))
    }

    /// The side file: what JSON cannot say.
    pub fn side(&self) -> PathBuf {
        self.beside("spinney")
    }

    /// The bytes of the document; `None` when there is none.
    pub fn read(&self) -> Result<Option<Vec<u8>>> {
        read(&self.file)
    }

    /// The bytes of the side file; empty when there is none.
    pub fn read_side(&self) -> Result<Vec<u8>> {
        Ok(read(&self.side())?.unwrap_or_default())
    }

    pub fn stamp(&self) -> Result<Option<Stamp>> {
        match fs::metadata(&self.file) {
            Ok(found) => Ok(Some(Stamp {
                len: found.len(),
                modified: (found.mtime(), found.mtime_nsec()),
                inode: (found.dev(), found.ino()),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error("cannot look at", &self.file, error)),
        }
    }

    /// Refuses a file that may not be written, though its folder may.
    pub fn check_writable(&self) -> Result<()> {
        match fs::OpenOptions::new().write(true).open(&self.file) {
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(Error::read_only(
                format!("`{}` may not be written; open it read-only", self.file.display()),
            )
            .with_source(error)),
            Err(error) => Err(io_error("cannot write", &self.file, error)),
        }
    }

    /// Writes a new content beside the document, durably, with the same permissions.
    pub fn prepare(&self, bytes: &[u8]) -> Result<()> {
        let path = self.beside("new");
        write_new(&path, bytes, fs::metadata(&self.file).ok().as_ref())
            .map_err(|error| io_error("cannot write", &path, error))
            .inspect_err(|_| drop(fs::remove_file(&path)))
    }

    /// Puts what was prepared in the place of the document, durably.
    pub fn replace(&self) -> Result<()> {
        fs::rename(self.beside("new"), &self.file)
            .map_err(|error| io_error("cannot replace", &self.file, error))?;
        self.sync_folder()
    }

    /// Makes the side file what belongs to the document; none for an empty text.
    pub fn put_side(&self, side: &[u8]) -> Result<()> {
        let path = self.side();
        if side.is_empty() {
            return match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(io_error("cannot remove", &path, error))
                }
                _ => Ok(()),
            };
        }
        if self.read_side()? == side {
            return Ok(());
        }
        let new = self.beside("spinney.new");
        write_new(&new, side, fs::metadata(&self.file).ok().as_ref())
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|error| io_error("cannot write", &path, error))?;
        self.sync_folder()
    }

    /// Keeps a text of the document under a name that is free; returns its path.
    pub fn keep_aside(&self, text: &[u8]) -> Result<PathBuf> {
        let mut number = 1;
        loop {
            let path = self.beside(&format!("edited-{number}"));
            match fs::OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(mut file) => {
                    file.write_all(text)
                        .and_then(|()| file.sync_all())
                        .map_err(|error| io_error("cannot write", &path, error))?;
                    self.sync_folder()?;
                    return Ok(path);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(io_error("cannot write", &path, error)),
            }
        }
    }

    /// Removes what a writer that died has left half-written.
    pub fn clean(&self) {
        for suffix in ["new", "spinney.new"] {
            let _ = fs::remove_file(self.beside(suffix));
        }
    }

    fn sync_folder(&self) -> Result<()> {
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(|error| io_error("cannot sync", &self.folder, error))
    }
}

/// Where a file would be made: in a folder that exists.
fn missing_file(path: &Path) -> Result<PathBuf> {
    if path.is_symlink() {
        return Err(Error::not_found(format!(
            "`{}` is a link to a file that does not exist",
            path.display()
        )));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let name = path.file_name().ok_or_else(|| {
        Error::invalid_input(format!("`{}` is no name of a file", path.display()))
    })?;
    match fs::canonicalize(folder) {
        Ok(folder) => Ok(folder.join(name)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::not_found(format!("the folder `{}` does not exist", folder.display())))
        }
        Err(error) => Err(io_error("cannot find", folder, error)),
    }
}

fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(io_error("cannot read", path, error)),
    }
}

fn write_new(path: &Path, bytes: &[u8], like: Option<&fs::Metadata>) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).open(path)?;
    if let Some(like) = like {
        file.set_permissions(like.permissions())?;
        // Only root may give files away.
        let _ = std::os::unix::fs::fchown(&file, Some(like.uid()), Some(like.gid()));
    }
    file.write_all(bytes)?;
    file.sync_all()
}

/// The right to write the document, until it is dropped or the process ends.
pub struct WriterLock {
    path: PathBuf,
    /// Holds the system's lock.
    _file: File,
}

impl WriterLock {
    /// # Errors
    /// `Busy`, naming the process that has it.
    pub fn acquire(files: &Files) -> Result<WriterLock> {
        let path = files.beside("lock");
        let deadline = Instant::now() + CLOSING_MAX;
        loop {
            let taken = take_lock(&path).map_err(|error| io_error("cannot lock", &path, error))?;
            let holder = match taken {
                Taken::Lock(file) => return Ok(WriterLock { path, _file: file }),
                Taken::Again => continue,
                Taken::Held(holder) => holder,
            };
            if holder == std::process::id().to_string() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(2));
                continue;
            }
            let holder = if holder.is_empty() {
                "another process".into()
            } else {
                format!("process {holder}")
            };
            return Err(Error::busy(format!(
                "`{}` is open for writing in {holder}; close it there, or open it read-only",
                files.file.display()
            )));
        }
    }
}

enum Taken {
    Lock(File),
    /// The process that has it, as it has written it.
    Held(String),
    /// The file was removed meanwhile.
    Again,
}

fn take_lock(path: &Path) -> io::Result<Taken> {
    let mut file =
        fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder)?;
            return Ok(Taken::Held(holder.trim().to_owned()));
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    match fs::metadata(path) {
        Ok(found) if found.ino() == file.metadata()?.ino() => {}
        _ => return Ok(Taken::Again),
    }
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Taken::Lock(file))
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        // Who waits for it sees that the file is another one.
        let _ = fs::remove_file(&self.path);
    }
}
