//! The file and what lies beside it: names, and replacing it at once.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney_core::{Error, Result};

use crate::journal::medium::{Directory, Folder, Stamp};
use crate::journal::{Journal, Segments, Sizes};
use crate::os_error::io_error;

/// A content that is about to take the place of the document's.
const NEW: &str = "new";

/// What JSON cannot say.
const SIDE: &str = "spinney";

/// A content that is about to take the place of the side file's.
const SIDE_NEW: &str = "spinney.new";

/// The document and its companions: their names are its name, a dot and a suffix.
#[derive(Clone)]
pub struct Files {
    /// The path of the document, for messages; never a symbolic link.
    pub file: PathBuf,
    folder: Arc<dyn Folder>,
    name: String,
    journal_sizes: Sizes,
}

impl Files {
    /// Follows links to the file, which need not exist.
    pub fn locate(path: &Path, read_only: bool) -> Result<Files> {
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
        Ok(Files::new(Arc::new(Directory::new(folder, read_only)), name, Sizes::default()))
    }

    /// The document of a name in a folder.
    pub fn new(folder: Arc<dyn Folder>, name: &str, journal_sizes: Sizes) -> Files {
        Files { file: folder.path(name), folder, name: name.to_owned(), journal_sizes }
    }

    /// The journal beside the document; nothing of it is read yet.
    pub fn journal(&self) -> Journal {
        let folder = Arc::clone(&self.folder);
        Journal::new(Segments::new(folder, &self.beside("journal"), self.journal_sizes))
    }

    /// The path of a companion.
    pub fn path(&self, suffix: &str) -> PathBuf {
        self.folder.path(&self.beside(suffix))
    }

    /// The path of the side file.
    pub fn side(&self) -> PathBuf {
        self.path(SIDE)
    }

    fn beside(&self, suffix: &str) -> String {
        format!("{}.{suffix}", self.name)
    }

    /// The bytes of the document; `None` when there is none.
    pub fn read(&self) -> Result<Option<Vec<u8>>> {
        self.folder.read(&self.name).map_err(|error| io_error("cannot read", &self.file, error))
    }

    /// The bytes of the side file; empty when there is none.
    pub fn read_side(&self) -> Result<Vec<u8>> {
        let read = self.folder.read(&self.beside(SIDE));
        let bytes = read.map_err(|error| io_error("cannot read", &self.side(), error))?;
        Ok(bytes.unwrap_or_default())
    }

    /// What tells whether the document has changed; `None` when there is none.
    pub fn stamp(&self) -> Result<Option<Stamp>> {
        let found = self.folder.stamp(&self.name);
        found.map_err(|error| io_error("cannot look at", &self.file, error))
    }

    /// Whether there is a document of this name, or what belongs to one.
    pub fn is_taken(&self) -> Result<bool> {
        let companions = [SIDE, "journal.0", "journal.1"];
        Ok(self.stamp()?.is_some() || companions.iter().any(|suffix| self.has(suffix)))
    }

    /// Whether a companion is there.
    pub fn has(&self, suffix: &str) -> bool {
        self.folder.stamp(&self.beside(suffix)).is_ok_and(|found| found.is_some())
    }

    /// Refuses a file that may not be written, though its folder may.
    pub fn check_writable(&self) -> Result<()> {
        match self.folder.open(&self.name, false) {
            Ok(_) => Ok(()),
            Err(error) => Err(self.may_not(error, "cannot write", &self.file)),
        }
    }

    /// The error for a document that may not be written, and another one for any other cause.
    pub fn may_not(&self, error: io::Error, otherwise: &str, path: &Path) -> Error {
        use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
        match error.kind() {
            PermissionDenied | ReadOnlyFilesystem => Error::read_only(format!(
                "`{}` may not be written; open it read-only",
                self.file.display()
            ))
            .with_source(error),
            _ => io_error(otherwise, path, error),
        }
    }

    /// Makes the document durable, whoever has written it: what the journal says from here on rests on
    /// its being there.
    pub fn settle(&self) -> Result<()> {
        let opened = self.folder.open(&self.name, false);
        opened
            .and_then(|file| file.map_or(Ok(()), |file| file.sync_data()))
            .map_err(|error| io_error("cannot sync", &self.file, error))?;
        self.sync_folder()
    }

    /// Writes a new content beside the document, durably, with the same permissions.
    pub fn prepare(&self, bytes: &[u8]) -> Result<()> {
        self.write_beside(NEW, bytes)
    }

    /// Puts what was prepared in the place of the document; durable with the next sync of the folder.
    pub fn replace(&self) -> Result<()> {
        self.put_in_place(NEW, &self.name)
    }

    /// Makes the side file what belongs to the document; none for an empty text.
    pub fn put_side(&self, side: &[u8]) -> Result<()> {
        if self.read_side()? == side {
            return Ok(());
        }
        if side.is_empty() {
            let removed = self.folder.remove(&self.beside(SIDE));
            return removed.map_err(|error| io_error("cannot remove", &self.side(), error));
        }
        self.write_beside(SIDE_NEW, side)?;
        self.put_in_place(SIDE_NEW, &self.beside(SIDE))?;
        self.sync_folder()
    }

    /// Keeps a text of the document under a name that is free; returns its path.
    pub fn keep_aside(&self, text: &[u8]) -> Result<PathBuf> {
        let mut number = 1;
        loop {
            let suffix = format!("edited-{number}");
            match self.folder.write_new(&self.beside(&suffix), text, &self.name) {
                Ok(()) => {
                    self.sync_folder()?;
                    return Ok(self.path(&suffix));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(io_error("cannot write", &self.path(&suffix), error)),
            }
        }
    }

    /// Removes what a writer that died has left half-written.
    pub fn clean(&self) {
        for suffix in [NEW, SIDE_NEW] {
            let _ = self.folder.remove(&self.beside(suffix));
        }
    }

    /// Writes a companion anew, in the place of what a failed try may have left.
    fn write_beside(&self, suffix: &str, bytes: &[u8]) -> Result<()> {
        let name = self.beside(suffix);
        self.folder
            .remove(&name)
            .and_then(|()| self.folder.write_new(&name, bytes, &self.name))
            .map_err(|error| io_error("cannot write", &self.folder.path(&name), error))
            .inspect_err(|_| drop(self.folder.remove(&name)))
    }

    fn put_in_place(&self, suffix: &str, name: &str) -> Result<()> {
        self.folder
            .rename(&self.beside(suffix), name)
            .map_err(|error| io_error("cannot replace", &self.folder.path(name), error))
    }

    /// Makes the names durable.
    pub fn sync_folder(&self) -> Result<()> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        self.folder.sync().map_err(|error| io_error("cannot sync", folder, error))
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
