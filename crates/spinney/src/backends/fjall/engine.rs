//! The engine: one keyspace of fjall that is filled by ingestion alone, and its errors in spinney's
//! words.
//!
//! What is ingested goes into tables that are synced and then named by one synced file, so a fold is
//! in the engine as a whole or not at all; the engine's own journal stays empty. This module must not
//! know of staging or of the other files of the store's directory.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use ::fjall::compaction::Leveled;
use ::fjall::config::{BlockSizePolicy, CompressionPolicy};
use ::fjall::{
    CompressionType, Database, Guard, Keyspace, KeyspaceCreateOptions, LsmError, Readable,
};
use spinney_core::backend::{Bounds, Direction, Record, Records, Snapshot};
use spinney_core::{Error, Result};

use crate::backends::staged::checkpoint::{self, CHECKPOINT_KEY};
use crate::journal::Checkpointed;
use crate::os_error::os_error;

/// The engine's folder in the store's directory.
pub const FOLDER: &str = "engine";

const KEYSPACE: &str = "records";

/// Bytes of blocks, as they are read, that stay in memory.
const CACHE_LEN: u64 = 32 << 20;

/// Threads that merge tables; with more, one of them waits for work without rest.
const WORKERS: usize = 1;

/// Bytes of a block before it is compressed; a page larger than that is a block of its own.
const BLOCK_LEN: u32 = 4 << 10;

/// Bytes of a table that merging writes.
const TABLE_LEN: u64 = 16 << 20;

/// An open database.
pub struct Engine {
    database: Database,
    records: Keyspace,
    path: PathBuf,
    folds: AtomicU64,
}

/// A key and its value, or the absence of one.
pub type Folded<'c> = (Cow<'c, [u8]>, Option<Cow<'c, [u8]>>);

/// What a write that failed has left.
pub struct WriteError {
    pub error: Error,
    /// Whether it may be there, in this process or after the next opening.
    pub in_commit: bool,
}

impl Engine {
    /// Makes an empty database.
    pub fn create(dir: &Path) -> Result<()> {
        let engine = Engine::open_or_make(dir)?;
        let folded = engine.fold(std::iter::empty(), Checkpointed::default(), || ());
        folded.map_err(|failed| failed.error)
    }

    /// Opens the database that [`Engine::create`] has made.
    pub fn open(dir: &Path) -> Result<Engine> {
        let shown = dir.display();
        if !dir.is_dir() {
            return Err(Error::corrupted(format!("`{shown}` is missing; restore a backup")));
        }
        let engine = Engine::open_or_make(dir)?;
        engine.snapshot(()).checkpoint()?;
        Ok(engine)
    }

    fn open_or_make(dir: &Path) -> Result<Engine> {
        let failed = |error| engine_error(&format!("cannot open `{}`", dir.display()), error);
        let options = Database::builder(dir).worker_threads(WORKERS).cache_size(CACHE_LEN);
        let database = options.open().map_err(failed)?;
        let records = database.keyspace(KEYSPACE, keyspace_options).map_err(failed)?;
        Ok(Engine { database, records, path: dir.to_owned(), folds: AtomicU64::new(0) })
    }

    /// Pins the newest state, which keeps `owner` as long as it is held.
    pub fn snapshot<O>(&self, owner: O) -> EngineSnapshot<O> {
        // In this order: what a fold brings after it was counted may be seen, never the other way round.
        let folds = self.folds();
        let (snapshot, records) = (self.database.snapshot(), self.records.clone());
        EngineSnapshot { snapshot, records, folds, _owner: owner }
    }

    /// Folds by this process.
    pub fn folds(&self) -> u64 {
        self.folds.load(Ordering::Acquire)
    }

    /// Writes changes, in ascending order of their keys, and with them up to where this checkpoint
    /// goes; all of it durably or nothing. Snapshots see it as soon as `before` has been called, whose
    /// answer is given back.
    pub fn fold<'c, T>(
        &self,
        changes: impl Iterator<Item = Result<Folded<'c>>>,
        upto: Checkpointed,
        before: impl FnOnce() -> T,
    ) -> Result<T, WriteError> {
        let failed = |in_commit| {
            move |error| WriteError { error: self.error("cannot write", error), in_commit }
        };
        let mut ingestion = self.records.start_ingestion().map_err(failed(false))?;
        ingestion.write(CHECKPOINT_KEY, checkpoint::encode(upto)).map_err(failed(false))?;
        for change in changes {
            let (key, value) = change.map_err(|error| WriteError { error, in_commit: false })?;
            match value {
                Some(value) => ingestion.write(&*key, &*value),
                None => ingestion.write_tombstone(&*key),
            }
            .map_err(failed(false))?;
        }
        let answer = before();
        ingestion.finish().map_err(failed(true))?;
        self.folds.fetch_add(1, Ordering::Release);
        Ok(answer)
    }

    /// Merges all tables into one level; returns the bytes that it gave back.
    pub fn compact(&self) -> Result<u64> {
        let before = self.disk_len();
        self.records.major_compact().map_err(|error| self.error("cannot compact", error))?;
        Ok(before.saturating_sub(self.disk_len()))
    }

    /// Bytes of the tables.
    pub fn disk_len(&self) -> u64 {
        self.records.disk_space()
    }

    /// How many tables there are.
    pub fn tables(&self) -> usize {
        self.records.table_count()
    }

    /// How many of them are not merged into the sorted levels.
    pub fn tables_unmerged(&self) -> usize {
        self.records.l0_table_count()
    }

    #[cold]
    fn error(&self, action: &str, error: ::fjall::Error) -> Error {
        engine_error(&format!("{action} `{}`", self.path.display()), error)
    }
}

fn keyspace_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .data_block_size_policy(BlockSizePolicy::all(BLOCK_LEN))
        .data_block_compression_policy(CompressionPolicy::all(CompressionType::Lz4))
        .compaction_strategy(std::sync::Arc::new(
            Leveled::default().with_table_target_size(TABLE_LEN),
        ))
}

/// A state of the engine.
pub struct EngineSnapshot<O> {
    snapshot: ::fjall::Snapshot,
    records: Keyspace,
    /// The folds by this process that it has at least.
    pub folds: u64,
    // Goes last.
    _owner: O,
}

impl<O> EngineSnapshot<O> {
    /// Up to where the journal is in this state.
    pub fn checkpoint(&self) -> Result<Checkpointed> {
        let record = self.snapshot.get(&self.records, CHECKPOINT_KEY).map_err(read_error)?;
        let lost =
            || Error::corrupted("the engine has lost the checkpoint's record; restore a backup");
        checkpoint::decode(&record.ok_or_else(lost)?)
    }
}

impl<O: Send + Sync> Snapshot for EngineSnapshot<O> {
    fn get(&self, key: &[u8]) -> Result<Option<Cow<'_, [u8]>>> {
        if key <= CHECKPOINT_KEY {
            return Ok(None);
        }
        let value = self.snapshot.get(&self.records, key).map_err(read_error)?;
        Ok(value.map(|value| Cow::Owned(value.to_vec())))
    }

    fn range<'s>(&'s self, bounds: Bounds<'_>, direction: Direction) -> Result<Records<'s>> {
        let Some(bounds) = checkpoint::beyond(bounds) else {
            return Ok(Box::new(std::iter::empty()));
        };
        let range = self.snapshot.range::<&[u8], _>(&self.records, bounds);
        Ok(match direction {
            Direction::Forward => Box::new(range.map(to_record)),
            Direction::Backward => Box::new(range.rev().map(to_record)),
        })
    }
}

fn to_record<'s>(guard: Guard) -> Result<Record<'s>> {
    let (key, value) = guard.into_inner().map_err(read_error)?;
    Ok((Cow::Owned(key.to_vec()), Cow::Owned(value.to_vec())))
}

#[cold]
fn read_error(error: ::fjall::Error) -> Error {
    engine_error("cannot read the store", error)
}

#[cold]
fn engine_error(action: &str, error: ::fjall::Error) -> Error {
    use ::fjall::Error as Engine;
    let described = match error {
        Engine::Io(error) | Engine::Storage(LsmError::Io(error)) => return os_error(action, error),
        Engine::Locked => Error::busy(format!("{action}: another process has it open")),
        Engine::Poisoned => {
            Error::closed(format!("{action}: a write failed before; reopen the store"))
        }
        Engine::InvalidVersion(Some(_)) => {
            Error::unsupported(format!("{action}: another version of fjall wrote it"))
        }
        _ => Error::corrupted(format!("{action}: it is damaged; restore a backup")),
    };
    described.with_source(error)
}
