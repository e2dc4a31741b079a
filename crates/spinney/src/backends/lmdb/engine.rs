//! LMDB itself: one environment, its transactions, and its errors in spinney's words.
//!
//! The only file with `unsafe`. It must not know of staging, of locks between processes or of the
//! other files of the store's directory.
#![allow(unsafe_code)]

use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::ops::Bound;
use std::os::fd::{BorrowedFd, RawFd};
use std::path::{Path, PathBuf};

use heed::types::Bytes;
use heed::{
    CommitOrAbort, CompactionOption, Database, Env, EnvFlags, EnvOpenOptions, MdbError, PutFlags,
    RoTxn, RwTxn, WithoutTls,
};
use spinney_core::backend::{Bounds, Change, Direction, Record, Records, Snapshot};
use spinney_core::overlay::Overlay;
use spinney_core::{Error, Result};

use super::length::Pages;
use super::readers::{self, Pinned};
use crate::backends::staged::checkpoint::{self, CHECKPOINT_KEY};
use crate::journal::Checkpointed;
use crate::os_error::{io_error, os_error};

/// The engine's file in the store's directory.
pub const DATA_FILE: &str = "data.mdb";

/// The engine's table of readers in the store's directory.
pub const LOCK_FILE: &str = "lock.mdb";

/// Address space that is reserved, and with it the largest file; the disk holds only what is used.
const MAP_LEN_MAX: u64 = 1 << 40;

/// Below this reservation the store does not open.
const MAP_LEN_MIN: u64 = 1 << 30;

/// Bytes of the longest key that LMDB keeps.
pub const KEY_LEN_MAX: usize = 511;

/// How the environment is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads and writes; makes the file if there is none.
    ReadWrite,
    /// Reads beside writers, for which it needs write permission on the table of readers; without
    /// one, as on a read-only medium, reads alone.
    ReadOnly,
}

/// An open environment.
pub struct Engine {
    env: Env<WithoutTls>,
    records: Database<'static, Bytes, Bytes>,
    file: PathBuf,
    page_len: u64,
    /// LMDB's own descriptor of the table of readers, for as long as the environment is open.
    table: Option<RawFd>,
}

/// Facts about an open environment.
pub struct EngineStats {
    /// Bytes of the file.
    pub file_len: u64,
    /// Bytes of the largest file that this process can map.
    pub map_len: u64,
    /// Bytes of a page.
    pub page_len: u64,
    /// Pages up to the last one in use.
    pub pages: u64,
    /// Pages that hold records.
    pub pages_used: u64,
    /// Records.
    pub records: u64,
    /// Slots of the table of readers that have been used.
    pub readers: u32,
}

/// A write that failed, and whether the engine had begun to commit it.
pub struct WriteError {
    pub error: Error,
    pub in_commit: bool,
}

impl Engine {
    /// Opens the environment in `dir`, for so many snapshots at once in all processes together.
    pub fn open(dir: &Path, access: Access, readers_max: u32) -> Result<Engine> {
        let file = dir.join(DATA_FILE);
        let failed = |error| engine_error(&format!("cannot open `{}`", file.display()), error);
        let env = open_env(dir, access, readers_max).map_err(failed)?;
        let txn = env.read_txn().map_err(failed)?;
        let records = env
            .open_databases_and_commit(txn, |opener, txn| {
                opener.open_database(txn, None).map(CommitOrAbort::<_, ()>::Commit)
            })
            .map_err(failed)?
            .unwrap_commit()
            .ok_or_else(|| Error::corrupted(format!("`{}` has no database", file.display())))?;
        let page_len = u64::from(env.unnamed_database_stat().page_size);
        let table = descriptor_of(&dir.join(LOCK_FILE));
        let engine = Engine { env, records, file, page_len, table };
        if access == Access::ReadWrite {
            engine.clear_dead_readers()?;
        }
        Ok(engine)
    }

    /// Refuses a file that has lost its end.
    pub fn check_length(&self) -> Result<()> {
        let txn = self.env.read_txn().map_err(|error| self.error("cannot read", error))?;
        let file = self.env.try_clone_inner_file();
        let file = file.map_err(|error| self.error("cannot measure", error))?;
        let pages = Pages { file: &file, page_len: self.page_len };
        let missing = pages.missing_len(txn.id() as u64);
        match missing.map_err(|error| io_error("cannot read", &self.file, error))? {
            None => Ok(()),
            Some(expected) => Err(Error::corrupted(format!(
                "`{}` is truncated: {} bytes, {expected} expected; restore a backup",
                self.file.display(),
                self.file_len()?
            ))),
        }
    }

    fn file_len(&self) -> Result<u64> {
        self.env.real_disk_size().map_err(|error| self.error("cannot measure", error))
    }

    /// Pins the newest committed state; `owner` lives as long as it is pinned.
    #[inline]
    pub fn snapshot<O: Owner>(&self, owner: O) -> Result<EngineSnapshot<O>> {
        loop {
            let txn = match self.env.clone().static_read_txn() {
                Err(heed::Error::Mdb(MdbError::ReadersFull)) => {
                    self.clear_dead_readers()?;
                    self.env.clone().static_read_txn()
                }
                begun => begun,
            };
            let txn = txn.map_err(|error| self.error("cannot read", error))?;
            // LMDB takes the newest state's number, then its roots from one of two places in turns: who
            // is interrupted between the two may have got those of the next state but one.
            if self.transactions() <= txn.id() as u64 + 1 {
                return Ok(EngineSnapshot { txn, records: self.records, owner });
            }
        }
    }

    /// Frees the reader slots of processes that died.
    pub fn clear_dead_readers(&self) -> Result<usize> {
        self.env.clear_stale_readers().map_err(|error| self.error("cannot clear readers of", error))
    }

    /// Whether the file has a newer state than a snapshot that was just taken: a process is about to
    /// tell the others of a transaction that it has committed, or has died before it could.
    pub fn is_ahead_of<O: Owner>(&self, snapshot: &EngineSnapshot<O>) -> bool {
        self.transactions() > snapshot.transaction() as u64
    }

    /// Gives snapshots what a process has committed that has died before it could tell the others;
    /// waits for a process that lives.
    pub fn settle(&self) -> Result<()> {
        // LMDB takes over from the dead for the next writer, and for nobody else.
        let txn = self.env.write_txn().map_err(|error| self.error("cannot write", error))?;
        txn.abort();
        Ok(())
    }

    /// Writes staged changes, then a batch's changes in their order, and with them up to where this
    /// checkpoint goes; commits all of it durably. Does nothing when the file is beyond it already.
    pub fn checkpoint(
        &self,
        staged: &Overlay,
        changes: &[Change],
        upto: Checkpointed,
    ) -> Result<(), WriteError> {
        let before =
            |error| WriteError { error: self.error("cannot write", error), in_commit: false };
        let txn = self.env.write_txn().map_err(before)?;
        let stored = stored_checkpoint(self.records, &txn);
        let stored = stored.map_err(|error| WriteError { error, in_commit: false })?;
        if stored.generation >= upto.generation {
            return Ok(());
        }
        let last_key = self.records.last(&txn).map_err(before)?.map(|(key, _)| key.to_vec());
        let mut writer =
            Writer { txn, records: self.records, last_key: last_key.unwrap_or_default() };
        writer.apply(staged, changes).map_err(before)?;
        writer.put(CHECKPOINT_KEY, &checkpoint::encode(upto)).map_err(before)?;
        writer.txn.commit().map_err(|error| WriteError {
            error: self.error("cannot commit to", error),
            in_commit: true,
        })
    }

    /// Writes a compact copy of the newest committed state to a file that does not exist.
    pub fn copy_to(&self, target: &Path) -> Result<()> {
        let mut file =
            File::create_new(target).map_err(|error| io_error("cannot create", target, error))?;
        self.env.copy_to_file(&mut file, CompactionOption::Enabled).map_err(|error| {
            engine_error(&format!("cannot copy to `{}`", target.display()), error)
        })?;
        file.sync_all().map_err(|error| io_error("cannot sync", target, error))
    }

    /// The snapshots of all processes, and what they keep.
    pub fn pinned(&self) -> Result<Pinned> {
        let newest = self.snapshot(())?;
        let transaction = newest.transaction() as u64;
        let Some(table) = self.table else { return Ok(Pinned::default()) };
        // SAFETY: LMDB closes it with the environment, which `self` keeps open.
        let table = unsafe { BorrowedFd::borrow_raw(table) };
        let readers = readers::read(table).map_err(|error| {
            io_error("cannot read", &self.file.with_file_name(LOCK_FILE), error)
        })?;
        if readers.iter().all(|reader| reader.transaction >= transaction) {
            return Ok(Pinned::new(readers, Vec::new()));
        }
        let file = self.env.try_clone_inner_file();
        let file = file.map_err(|error| self.error("cannot read", error))?;
        let pages = Pages { file: &file, page_len: self.page_len };
        let freed = pages.freed(transaction);
        let freed = freed.map_err(|error| io_error("cannot read", &self.file, error))?;
        Ok(Pinned::new(readers, freed.unwrap_or_default()))
    }

    /// Facts for `stats`.
    pub fn stats(&self) -> Result<EngineStats> {
        let info = self.env.info();
        let records = self.env.unnamed_database_stat();
        let has_checkpoint = self.snapshot(())?.checkpoint()?.generation > 0;
        let pages_used = records.branch_pages + records.leaf_pages + records.overflow_pages;
        Ok(EngineStats {
            file_len: self.file_len()?,
            map_len: info.map_size as u64,
            page_len: self.page_len,
            pages: info.last_page_number as u64 + 1,
            pages_used: pages_used as u64,
            records: records.entries as u64 - u64::from(has_checkpoint),
            readers: info.number_of_readers,
        })
    }

    /// Leaves everything as a process does that dies in a commit: the file has its state, and the
    /// others know of the transaction `known` alone.
    #[cfg(test)]
    pub fn stop_within_commit(&self, known: usize) -> Result<()> {
        let table = self.table.expect("a table of readers");
        // SAFETY: as in `pinned`.
        let table = unsafe { BorrowedFd::borrow_raw(table) };
        readers::write_last(table, known as u64).expect("the table is written");
        std::mem::forget(self.env.write_txn().map_err(|error| self.error("cannot write", error))?);
        Ok(())
    }

    /// Durable engine transactions since the store was made.
    pub fn transactions(&self) -> u64 {
        self.env.info().last_txn_id as u64
    }

    fn error(&self, action: &str, error: heed::Error) -> Error {
        engine_error(&format!("{action} `{}`", self.file.display()), error)
    }
}

/// Reserves as much address space as the system gives, so that the file grows without anybody's
/// doing while other processes have it open.
/// The descriptor that this process already has of a file. Opening it anew and closing it would give
/// up the locks by which LMDB knows that this process lives (`fcntl(2)`: closing any descriptor of a
/// file releases all of the process's locks on it).
fn descriptor_of(path: &Path) -> Option<RawFd> {
    let path = path.canonicalize().ok()?;
    let mut descriptors = std::fs::read_dir("/proc/self/fd").ok()?.filter_map(io::Result::ok);
    let found = descriptors
        .find(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == path))?;
    found.file_name().to_str()?.parse().ok()
}

fn open_env(dir: &Path, access: Access, readers_max: u32) -> heed::Result<Env<WithoutTls>> {
    let mut flags = EnvFlags::empty();
    if access == Access::ReadOnly {
        flags |= EnvFlags::READ_ONLY;
    }
    let mut map_len = MAP_LEN_MAX;
    loop {
        let mut options = EnvOpenOptions::new().read_txn_without_tls();
        options.max_readers(readers_max);
        if let Ok(map_len) = usize::try_from(map_len) {
            options.map_size(map_len);
        }
        // SAFETY: READ_ONLY is sound, and NO_LOCK is only added below, where nobody writes.
        unsafe { options.flags(flags) };
        // SAFETY: nothing but LMDB writes to the file while it is open: the store's directory is
        // its own, checked by its marker, and one process opens it once, by the registry above.
        match unsafe { options.open(dir) } {
            Err(heed::Error::Io(error))
                if may_be_address_space(&error) && map_len > MAP_LEN_MIN =>
            {
                map_len /= 2;
            }
            // No table of readers, and none can be made: nobody has the store open to write.
            Err(heed::Error::Io(error))
                if error.kind() == io::ErrorKind::PermissionDenied
                    && access == Access::ReadOnly
                    && !flags.contains(EnvFlags::NO_LOCK)
                    && !dir.join(LOCK_FILE).exists() =>
            {
                flags |= EnvFlags::NO_LOCK;
            }
            opened => return opened,
        }
    }
}

fn may_be_address_space(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::InvalidInput)
}

/// A write transaction that appends where it can: without a search and without half-full pages.
struct Writer<'e> {
    txn: RwTxn<'e>,
    records: Database<'static, Bytes, Bytes>,
    /// No key of the database is greater.
    last_key: Vec<u8>,
}

impl Writer<'_> {
    fn apply(&mut self, staged: &Overlay, changes: &[Change]) -> heed::Result<()> {
        for (key, value) in staged.iter() {
            match value {
                Some(value) => self.put(key, value)?,
                None => self.delete(key)?,
            }
        }
        changes.iter().try_for_each(|change| match change {
            Change::Put(key, value) => self.put(key, value),
            Change::Delete(key) => self.delete(key),
            Change::DeleteRange(from, to) => self.delete_range(from, to),
        })
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> heed::Result<()> {
        if *key <= *self.last_key {
            return self.records.put(&mut self.txn, key, value);
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.records.put_with_flags(&mut self.txn, PutFlags::APPEND, key, value)
    }

    fn delete(&mut self, key: &[u8]) -> heed::Result<()> {
        self.records.delete(&mut self.txn, key).map(drop)
    }

    fn delete_range(&mut self, from: &[u8], to: &[u8]) -> heed::Result<()> {
        match checkpoint::beyond((Bound::Included(from), Bound::Excluded(to))) {
            Some(bounds) => self.records.delete_range(&mut self.txn, &bounds).map(drop),
            None => Ok(()),
        }
    }
}

/// A read transaction, and what must live as long.
pub struct EngineSnapshot<O> {
    txn: RoTxn<'static, WithoutTls>,
    records: Database<'static, Bytes, Bytes>,
    /// Declared last, so that the transaction ends first.
    owner: O,
}

/// What lives as long as a snapshot.
pub trait Owner: Send {
    /// The transaction before which states are not to be read any more.
    fn first_readable(&self) -> u64;
}

impl Owner for () {
    fn first_readable(&self) -> u64 {
        0
    }
}

impl<O: Owner> EngineSnapshot<O> {
    /// Its pages stay as they are until it is dropped; it is refused so that it will be.
    #[inline]
    fn refuse_when_too_old(&self) -> Result<()> {
        if self.txn.id() as u64 >= self.owner.first_readable() { Ok(()) } else { Err(too_old()) }
    }

    /// Numbers the engine's transactions.
    #[inline]
    pub fn transaction(&self) -> usize {
        self.txn.id()
    }

    /// Up to where the journal is in this state.
    pub fn checkpoint(&self) -> Result<Checkpointed> {
        stored_checkpoint(self.records, &self.txn)
    }
}

impl<O: Owner> Snapshot for EngineSnapshot<O> {
    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        if key <= CHECKPOINT_KEY {
            return Ok(None);
        }
        self.refuse_when_too_old()?;
        let value = self.records.get(&self.txn, key).map_err(read_error)?;
        Ok(value.map(Cow::Borrowed))
    }

    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>> {
        let Some(bounds) = checkpoint::beyond(bounds) else {
            return Ok(Box::new(std::iter::empty()));
        };
        self.refuse_when_too_old()?;
        Ok(match direction {
            Direction::Forward => {
                let range = self.records.range(&self.txn, &bounds).map_err(read_error)?;
                Box::new(range.map(to_record))
            }
            Direction::Backward => {
                let range = self.records.rev_range(&self.txn, &bounds).map_err(read_error)?;
                Box::new(range.map(to_record))
            }
        })
    }

    fn floor(&self, lower: &[u8], key: &[u8]) -> Result<Option<Record<'_>>> {
        if key.is_empty() {
            return Ok(None);
        }
        self.refuse_when_too_old()?;
        let found = self.records.get_lower_than_or_equal_to(&self.txn, key).map_err(read_error)?;
        Ok(found.filter(|(found, _)| *found >= lower && *found > CHECKPOINT_KEY).map(borrowed))
    }
}

fn to_record<'s>(record: heed::Result<(&'s [u8], &'s [u8])>) -> Result<Record<'s>> {
    record.map(borrowed).map_err(read_error)
}

fn borrowed<'s>((key, value): (&'s [u8], &'s [u8])) -> Record<'s> {
    (Cow::Borrowed(key), Cow::Borrowed(value))
}

fn stored_checkpoint(
    records: Database<'static, Bytes, Bytes>,
    txn: &RoTxn<'_>,
) -> Result<Checkpointed> {
    let record = records.get(txn, CHECKPOINT_KEY).map_err(read_error)?;
    record.map_or(Ok(Checkpointed::default()), checkpoint::decode)
}

#[cold]
fn too_old() -> Error {
    Error::limit_exceeded(
        "the snapshot is too old: it keeps more of the file from being used again than may be; take a \
         new one",
    )
}

#[cold]
fn read_error(error: heed::Error) -> Error {
    engine_error("cannot read the store", error)
}

#[cold]
fn engine_error(action: &str, error: heed::Error) -> Error {
    let error = match error {
        heed::Error::Io(error) => return os_error(action, error),
        heed::Error::Mdb(error) => error,
        other => return Error::busy(format!("{action}: {other}")),
    };
    let described = match error {
        MdbError::MapFull => Error::limit_exceeded(format!(
            "{action}: the store fills the address space that this process could reserve"
        )),
        MdbError::MapResized => Error::limit_exceeded(format!(
            "{action}: another process made the file larger than this one can map; reopen it here"
        )),
        MdbError::TxnFull | MdbError::DbsFull | MdbError::TlsFull | MdbError::CursorFull => {
            Error::limit_exceeded(format!("{action}: a limit of LMDB is reached"))
        }
        MdbError::ReadersFull => Error::busy(format!(
            "{action}: as many snapshots are open in all processes together as may be; close some"
        )),
        MdbError::VersionMismatch => {
            Error::unsupported(format!("{action}: the file was written by another version of LMDB"))
        }
        MdbError::BadValSize => Error::invalid_input(format!("{action}: a key has a bad length")),
        MdbError::Panic => {
            Error::closed(format!("{action}: a write failed before; reopen the store"))
        }
        _ => Error::corrupted(format!("{action}: it is damaged; restore a backup")),
    };
    described.with_source(error)
}
