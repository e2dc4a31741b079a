//! A plain JSON file as a backend: a store in memory, and a journal of diffs beside the file.
//!
//! A commit goes to memory and to a [`journal`](crate::journal); a sync of the journal makes it
//! durable at the price of the change. When nobody commits for a second, or 4 MiB are behind, and
//! when it is closed, the file is printed anew and replaced at once: it is always whole, of some
//! committed revision. Opening reads the file and makes the journal's commits again.
//!
//! The commits are opaque here: [`Capabilities::keeps_diffs`] makes the tree layer hand over diffs
//! that hold all they add. Only `document` and `rewrite` know trees, as any user does.
//!
//! Limits: one process writes; others may read, each the state of its opening. The whole document is
//! in memory.

use std::collections::HashMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use spinney_core::backend::{
    Backend, Batch, Capabilities, Outcome, Revision, Snapshot, WriteGuard,
};
use spinney_core::{Error, Path, Result};

mod backup;
mod document;
mod files;
mod ids;
mod keeper;
mod merge;
mod notes;
mod print;
mod recover;
mod rewrite;
mod side;
mod store;
mod tail;
#[cfg(test)]
mod tests;

use files::Files;
pub use recover::Take;
use store::{Store, absent};

use super::writer_lock::{Refused, WriterLock};

/// The path of the document in the store that a `json:` URL opens: paths of users begin there.
pub const DOCUMENT: &str = "/document";

/// The lock of the process that writes, behind the name of the document.
const LOCK: &str = "lock";

/// How to open a file.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Whether a file that does not exist is made, as an empty object.
    pub create: bool,
    /// Whether writes are refused.
    pub read_only: bool,
    /// What to do when the file was edited and the journal has commits that it lacks.
    pub take: Option<Take>,
    /// Where the document lies in the store: [`DOCUMENT`], or the root; then it must be an object,
    /// whose members are trees.
    pub base_path: Path,
}

/// A handle of a file. All handles of one file in a process share one state in memory.
///
/// # Durability
/// [`Backend::commit`] is visible in this process and lost if the process dies within 50 ms; after
/// [`Backend::flush`] it survives the end of the process, after [`Backend::sync`] a power failure.
/// Dropping the last handle prints the file.
pub struct Json {
    shared: Arc<Shared>,
    read_only: bool,
}

/// Closes the store when the last handle goes, and then gives back the right to write it.
struct Shared {
    store: Arc<Store>,
    _lock: Option<WriterLock>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.store.keeper.stop();
        if let Err(error) = self.store.close() {
            let file = self.store.files.file.display();
            log::warn!("`{file}`: {error}; the journal keeps all commits");
        }
    }
}

/// The right to write a document.
fn acquire(files: &Files) -> Result<WriterLock> {
    let path = files.path(LOCK);
    WriterLock::acquire(path.clone()).map_err(|refused| match refused {
        Refused::Failed(error) => files.may_not(error, "cannot lock", &path),
        Refused::Held { holder } => Error::busy(format!(
            "`{}` is open for writing in {holder}; close it there, or open it read-only",
            files.file.display()
        )),
    })
}

/// The files that this process has open to write, by canonical path.
static OPEN: LazyLock<Mutex<HashMap<PathBuf, Weak<Shared>>>> = LazyLock::new(Mutex::default);

impl Json {
    /// Opens a file.
    ///
    /// # Errors
    /// `NotFound` when there is none and `create` is not set; `InvalidInput` when it is not JSON or a
    /// directory; `Busy`, naming the process, when another one has it open to write; `Conflict` when
    /// it was edited behind commits of its journal; `Corrupted` when the journal is damaged;
    /// `ReadOnly` and `Io` from the file system.
    pub fn open(path: &FilePath, options: Options) -> Result<Arc<Json>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, shared| shared.strong_count() > 0);
        let files = Files::locate(path, options.read_only)?;
        if files.stamp()?.is_none() && (!options.create || options.read_only) {
            return Err(absent(path));
        }
        let read_only = options.read_only;
        if let Some(shared) = open.get(&files.file).and_then(Weak::upgrade) {
            return Ok(Arc::new(Json { shared, read_only }));
        }
        if read_only {
            let store = Store::open_read_only(files, options.base_path, options.take)?;
            let shared = Arc::new(Shared { store, _lock: None });
            return Ok(Arc::new(Json { shared, read_only }));
        }
        let lock = acquire(&files)?;
        let key = files.file.clone();
        let store = Store::open(files, options.base_path, options.take)?;
        store.keeper.start(&store);
        let shared = Arc::new(Shared { store, _lock: Some(lock) });
        open.insert(key, Arc::downgrade(&shared));
        Ok(Arc::new(Json { shared, read_only }))
    }

    fn store(&self) -> &Store {
        &self.shared.store
    }

    fn refuse_if_read_only(&self) -> Result<()> {
        match self.read_only {
            false => Ok(()),
            true => Err(Error::read_only(format!(
                "`{}` was opened read-only; open it to write",
                self.store().files.file.display()
            ))),
        }
    }
}

impl Backend for Json {
    fn capabilities(&self) -> &Capabilities {
        self.store().capabilities()
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        self.store().snapshot()
    }

    fn write_guard(&self, conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        self.refuse_if_read_only()?;
        self.store().write_guard(conflicts)
    }

    fn commit(&self, batch: Batch) -> Result<Outcome> {
        self.refuse_if_read_only()?;
        self.store().commit(batch)
    }

    fn flush(&self, revision: Revision) -> Result<()> {
        self.store().flush(revision)
    }

    fn sync(&self, revision: Revision) -> Result<()> {
        self.store().sync(revision)
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.store().wait(after, timeout)
    }

    fn wait_durable(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.store().wait_durable(after, timeout)
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        self.store().stats()
    }

    fn checkpoint(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        self.store().checkpoint()
    }

    /// Writes the newest state as a document of its own, laid out like the file, with its side file.
    fn backup(&self, target: &FilePath) -> Result<()> {
        self.store().backup(target)
    }
}
