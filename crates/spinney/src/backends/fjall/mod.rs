//! fjall as a backend: a log-structured merge tree, compressed, for one process.
//!
//! A commit is appended to a [`journal`] and staged in an
//! [`Overlay`](spinney_core::overlay::Overlay) over the engine; a sync of the journal makes it
//! durable. When the journal is long it is folded into the engine as a table of its own, in the
//! background; the engine merges its tables later. So the overlay is the tree's table in memory and the
//! journal its log, and a page that many commits changed is written once. The engine's own journal is
//! not used: a power failure within a commit may leave it unreadable
//! (`docs/decisions/0021-fjall.md`).
//!
//! Limits: one process at a time has the store open, to read it, too. A snapshot keeps tables that were
//! merged since; [`Limits`] has the others.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use spinney_core::backend::{
    Backend, Batch, Capabilities, Outcome, Revision, Snapshot, WriteGuard,
};
use spinney_core::{Error, Result};

mod directory;
mod engine;
mod store;
#[cfg(test)]
mod tests;

use directory::Directory;
use store::Store;

use crate::backends::staged::checkpoint;
use crate::journal::{self, Segments, Sizes};
use crate::store_limits::Limits;

/// The journal's files in the store's directory.
const JOURNAL: &str = "journal";

/// Bytes of a page; measured in `docs/decisions/0021-fjall.md`.
pub const PAGE_SIZE: usize = 4_080;

/// Bytes of the longest key.
pub const KEY_LEN_MAX: usize = 511;

/// Bytes of keys and values in one batch.
pub const COMMIT_LEN_MAX: usize = 1 << 30;

/// How to open a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Makes the store if there is none.
    pub create: bool,
    /// Refuses writes by this handle; the engine's files must be writable all the same.
    pub read_only: bool,
    /// Bytes of a page, for measurements; it may be another one each time ([`PAGE_SIZE`]).
    pub page_size: usize,
    /// How much waits in the journal, and how long; [`Limits::check`] must have passed.
    pub limits: Limits,
}

impl Options {
    /// A store that exists, to read and write.
    pub const EXISTING: Options =
        Options { create: false, read_only: false, page_size: PAGE_SIZE, limits: Limits::DEFAULT };

    /// As [`Options::EXISTING`], made if there is none.
    pub const CREATE: Options = Options { create: true, ..Options::EXISTING };
}

/// A handle of a store in a directory. All handles of one directory in a process share one engine.
///
/// # Durability
/// [`Backend::commit`] is visible in this process and lost if the process dies within 50 ms
/// ([`Limits::write_after`]); after [`Backend::flush`] it survives the end of the process, after
/// [`Backend::sync`] a power failure. Dropping the last handle syncs.
pub struct Fjall {
    store: Arc<Store>,
    capabilities: Capabilities,
    read_only: bool,
}

/// The stores that are open in this process, by canonical path.
static OPEN: LazyLock<Mutex<HashMap<PathBuf, Weak<Store>>>> = LazyLock::new(Mutex::default);

impl Fjall {
    /// Opens the store in `dir`.
    ///
    /// # Errors
    /// `Busy`, naming the process, when another one has it open; `NotFound` when there is none and
    /// `create` is not set; `InvalidInput` when the directory is something else; `Unsupported` when a
    /// newer spinney or fjall made it; `Corrupted` when files are missing or damaged; `ReadOnly` and
    /// `Io` from the file system.
    pub fn open(dir: &Path, options: Options) -> Result<Arc<Fjall>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, store| store.strong_count() > 0);
        let known = dir.canonicalize().ok();
        let shared = known.and_then(|path| open.get(&path)).and_then(Weak::upgrade);
        let store = match shared {
            Some(store) => store,
            None => {
                let directory = Directory::open(dir, options.create && !options.read_only)?;
                let path = directory.path.clone();
                let folder = journal::medium::Directory::new(&path, false);
                let segments = Segments::new(Arc::new(folder), JOURNAL, Sizes::default());
                let store = Store::open(directory, segments, options.limits)?;
                open.insert(path, Arc::downgrade(&store));
                store
            }
        };
        Ok(Fjall::over(store, options))
    }

    fn over(store: Arc<Store>, options: Options) -> Arc<Fjall> {
        let capabilities = Capabilities {
            persistent: true,
            multi_process: false,
            versions: true,
            multi_tree_commit: true,
            page_size: options.page_size,
            key_len_max: KEY_LEN_MAX,
            commit_len_max: COMMIT_LEN_MAX,
            push_wait: true,
            keeps_diffs: false,
        };
        Arc::new(Fjall { store, capabilities, read_only: options.read_only })
    }

    /// Syncs of the journal; concurrent commits share them.
    pub fn syncs(&self) -> u64 {
        self.store.syncs()
    }

    fn refuse_if_read_only(&self) -> Result<()> {
        if !self.read_only {
            return Ok(());
        }
        let shown = self.store.directory.path.display();
        Err(Error::read_only(format!("`{shown}` was opened read-only; open it to write")))
    }
}

impl Backend for Fjall {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(self.store.snapshot()))
    }

    fn write_guard(&self, _conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        self.refuse_if_read_only()?;
        Ok(Box::new(self.store.write_guard()?))
    }

    fn commit(&self, batch: Batch) -> Result<Outcome> {
        self.refuse_if_read_only()?;
        batch.check_limits(&self.capabilities)?;
        checkpoint::refuse(&batch)?;
        self.store.commit(batch)
    }

    fn flush(&self, revision: Revision) -> Result<()> {
        self.store.write_until(revision)
    }

    fn sync(&self, revision: Revision) -> Result<()> {
        self.store.sync(revision)
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        Ok(self.store.wait(after, timeout))
    }

    fn wait_durable(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        Ok(self.store.wait_durable(after, timeout))
    }

    /// The random id that the store was made with.
    fn store_id(&self) -> Option<String> {
        Some(self.store.directory.store_id.clone())
    }

    fn len_bytes(&self) -> Result<Option<u64>> {
        self.store.disk_len().map(Some)
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        let pairs = self.store.stats()?;
        Ok(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn checkpoint(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        self.store.checkpoint()
    }

    /// Merges all tables, which also drops what was deleted from them.
    fn compact(&self) -> Result<u64> {
        self.refuse_if_read_only()?;
        self.store.compact()
    }

    /// Writes a merged copy, with a store id of its own: it may go another way than this store.
    fn backup(&self, target: &Path) -> Result<()> {
        Directory::copy(target, |folder| self.store.copy_to(folder))
    }
}
