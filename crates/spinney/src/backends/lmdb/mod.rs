//! LMDB as a backend: ordered, memory-mapped, several processes at once.
//!
//! A commit is appended to a [`journal`] and staged in an
//! [`Overlay`](spinney_core::overlay::Overlay) over the engine; a sync of the journal makes it
//! durable. When the journal is long, or nobody commits for a second, it is folded into the engine in
//! one durable transaction. The engine's own no-sync flags are never used: they can damage the file
//! when the power fails. This module must not know what keys mean.
//!
//! Limits: the file grows to at most the address space that the process can reserve, 1 TiB where
//! the system allows it; [`Limits`](crate::Limits) has the others. The directory must be on a
//! local file system. A second process sees commits once they are written. The file never shrinks
//! while others may have it mapped, so `compact` gives nothing back: freed pages are used again,
//! and [`Backend::backup`] makes a compact copy.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use spinney_core::backend::{
    Backend, Batch, Capabilities, Outcome, Revision, Snapshot, WriteGuard,
};
use spinney_core::{Error, Result};

mod directory;
mod engine;
#[cfg(test)]
mod killed;
mod length;
mod network;
#[cfg(test)]
mod power;
mod readers;
mod shared;
mod staging;
mod tail;
mod turnstile;

use directory::Directory;
pub use directory::Options;
use engine::{Access, Engine};
use staging::Store;

use crate::backends::staged::checkpoint;
use crate::backends::staged::marker::{sync_dir, sync_parent};
use crate::journal::{self, Segments, Sizes};
use crate::os_error::io_error;

/// The journal's files in the store's directory.
const JOURNAL: &str = "journal";

/// Bytes of a page that fill one overflow page of the engine exactly.
pub const PAGE_SIZE: usize = 4_080;

/// Bytes of keys and values in one batch.
pub const COMMIT_LEN_MAX: usize = 1 << 30;

/// A handle of a store in a directory. All handles of one directory in a process share one engine.
///
/// # Durability
/// [`Backend::commit`] is visible in this process and lost if the process dies within 50 ms
/// ([`Limits::write_after`](crate::Limits::write_after)); after
/// [`Backend::flush`] it survives the end of the process, after [`Backend::sync`] a power failure.
/// Dropping the last handle syncs.
pub struct Lmdb {
    store: Arc<Store>,
    capabilities: Capabilities,
    read_only: bool,
}

/// The stores that are open in this process, by canonical path: the engine must not be opened
/// twice, because closing one would give up the other's locks.
static OPEN: LazyLock<Mutex<HashMap<PathBuf, Weak<Store>>>> = LazyLock::new(Mutex::default);

impl Lmdb {
    /// Opens the store in `dir`.
    ///
    /// # Errors
    /// `NotFound` when there is none and `create` is not set; `InvalidInput` when the directory is
    /// something else; `Unsupported` when a newer spinney made it, and on a network file system; `Corrupted` when a file is
    /// missing or truncated; `Busy` when this process has it open read-only and now wants to write;
    /// `ReadOnly` and `Io` from the file system.
    pub fn open(dir: &Path, options: Options) -> Result<Arc<Lmdb>> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, store| store.strong_count() > 0);
        let directory = Directory::open(dir, options)?;
        let path = directory.path.clone();
        let store = match open.get(&path).and_then(Weak::upgrade) {
            Some(store) => store,
            None => {
                // A store that is being dropped no longer upgrades but may still be closing.
                while let Some(closing) = heed::env_closing_event(&path) {
                    closing.wait();
                }
                let access = if options.read_only { Access::ReadOnly } else { Access::ReadWrite };
                let engine = Engine::open(&path, access, options.limits.snapshots_max)?;
                engine.check_length()?;
                let folder = journal::medium::Directory::new(&path, options.read_only);
                let segments = Segments::new(Arc::new(folder), JOURNAL, Sizes::default());
                let store = Store::new(directory, engine, segments, access, options.limits)?;
                open.insert(path, Arc::downgrade(&store));
                store
            }
        };
        if store.is_read_only() && !options.read_only {
            return Err(Error::busy(format!(
                "`{}` is open read-only in this process; close it before opening it to write",
                dir.display()
            )));
        }
        Ok(Lmdb::over(store, options.read_only))
    }

    fn over(store: Arc<Store>, read_only: bool) -> Arc<Lmdb> {
        let capabilities = Capabilities {
            persistent: true,
            multi_process: true,
            versions: true,
            multi_tree_commit: true,
            page_size: PAGE_SIZE,
            key_len_max: engine::KEY_LEN_MAX,
            commit_len_max: COMMIT_LEN_MAX,
            push_wait: true,
            keeps_diffs: false,
        };
        Arc::new(Lmdb { store, capabilities, read_only })
    }

    /// Durable engine transactions since the store was made: checkpoints and big commits.
    pub fn engine_transactions(&self) -> u64 {
        self.store.engine.transactions()
    }

    /// Syncs of the journal by this process; concurrent commits share them.
    pub fn syncs(&self) -> u64 {
        self.store.syncs()
    }

    /// Changes whenever a process has registered something in the store's directory, or taken it out.
    pub fn registrations(&self) -> u64 {
        self.store.shared.registrations()
    }

    /// Tells all processes to look for registrations again.
    pub fn count_registration(&self) {
        self.store.shared.count_registration();
    }

    fn refuse_if_read_only(&self) -> Result<()> {
        if !self.read_only {
            return Ok(());
        }
        let shown = self.store.directory.path.display();
        Err(Error::read_only(format!("`{shown}` was opened read-only; open it to write")))
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        // Nobody is left to be told; what a failed flush loses was never promised.
        let _ = self.store.flush();
    }
}

impl Backend for Lmdb {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        Ok(Box::new(self.store.snapshot()?))
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
        self.store.wait(after, timeout)
    }

    fn wait_durable(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.store.wait_durable(after, timeout)
    }

    /// The random id that the store was made with.
    fn store_id(&self) -> Option<String> {
        Some(self.store.directory.store_id.clone())
    }

    fn len_bytes(&self) -> Result<Option<u64>> {
        let engine = self.store.engine.stats()?;
        Ok(Some(engine.pages_used * engine.page_len))
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        let engine = self.store.engine.stats()?;
        let own = self.store.stats()?;
        let oldest = own.oldest.map_or("of the newest state".to_owned(), |(reader, age)| {
            format!("process {}, {} s", reader.process, age.as_secs())
        });
        let pages_free = engine.pages.saturating_sub(engine.pages_used);
        let pairs = [
            ("store id", self.store.directory.store_id.clone()),
            ("file bytes", engine.file_len.to_string()),
            ("map bytes", engine.map_len.to_string()),
            ("engine page bytes", engine.page_len.to_string()),
            ("engine pages", engine.pages.to_string()),
            ("engine pages free", pages_free.to_string()),
            ("engine records", engine.records.to_string()),
            ("reader slots used", engine.readers.to_string()),
            ("staged records", own.staged.to_string()),
            ("journal bytes", own.journal_len.to_string()),
            ("checkpoint age", format!("{} s", own.checkpoint_age.as_secs())),
            ("commits", own.commits.to_string()),
            ("syncs", own.syncs.to_string()),
            ("commits per sync", format!("{:.1}", own.commits as f64 / own.syncs.max(1) as f64)),
            ("snapshots open", own.snapshots.to_string()),
            ("snapshots of all processes", own.snapshots_all.to_string()),
            ("oldest snapshot", oldest),
            ("bytes kept by snapshots", own.pinned_len.to_string()),
        ];
        Ok(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn checkpoint(&self) -> Result<()> {
        self.refuse_if_read_only()?;
        self.store.checkpoint()
    }

    /// Writes a compact copy, with a store id of its own: it may go another way than this store, so
    /// no bookmark of this one may be taken for one of the copy.
    fn backup(&self, target: &Path) -> Result<()> {
        if !self.store.is_read_only() {
            // Else the copy has what the tail removes, as free pages.
            self.store.checkpoint()?;
        }
        fs::create_dir(target).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Error::already_exists(format!(
                "backup: `{}` exists; name a new directory",
                target.display()
            )),
            _ => io_error("backup: cannot create", target, error),
        })?;
        // The marker comes last: an unfinished copy is not taken for a store.
        let copied = self
            .store
            .copy_to(target)
            .and_then(|()| sync_dir(target))
            .and_then(|()| Directory::adopt(target))
            .and_then(|()| sync_parent(target));
        if copied.is_err() {
            let _ = fs::remove_dir_all(target);
        }
        copied
    }
}
