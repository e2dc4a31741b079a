//! The two files of a journal: generations take turns in them.
//!
//! Shared by whoever appends, follows and syncs. It must not know records.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use spinney_core::{Error, Result};

use super::Position;
use super::medium::{BLOCK_LEN, Folder, Medium};
use super::record::CAPACITY_UNIT;

/// Blocks fill a file.
const _: () = assert!(CAPACITY_UNIT.is_multiple_of(BLOCK_LEN as u64));

use crate::os_error::io_error;

/// Sizes of a segment's file.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    /// Bytes of a new file.
    pub first: u64,
    /// From this size on a file grows by it, below it doubles.
    pub step_max: u64,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { first: 512 << 10, step_max: 16 << 20 }
    }
}

/// The files.
pub struct Segments {
    folder: Arc<dyn Folder>,
    sizes: Sizes,
    slots: [Slot; 2],
}

struct Slot {
    name: String,
    medium: Mutex<Option<Arc<dyn Medium>>>,
    /// Bytes that are known to be allocated and synced.
    capacity: AtomicU64,
}

impl Segments {
    /// The files `NAME.0` and `NAME.1`, made when they are first written.
    pub fn new(folder: Arc<dyn Folder>, name: &str, sizes: Sizes) -> Segments {
        assert!(sizes.first.is_multiple_of(CAPACITY_UNIT) && sizes.first > 0);
        let slot = |number: usize| Slot {
            name: format!("{name}.{number}"),
            medium: Mutex::default(),
            capacity: AtomicU64::new(0),
        };
        Segments { folder, sizes, slots: [slot(0), slot(1)] }
    }

    /// Bytes of a file when it is made.
    pub fn first_len(&self) -> u64 {
        self.sizes.first
    }

    /// The path of a generation's file.
    pub fn path(&self, generation: u64) -> PathBuf {
        self.folder.path(&self.slot(generation).name)
    }

    /// Bytes of both files.
    pub fn disk_len(&self) -> Result<u64> {
        Ok(self.file_len(0)? + self.file_len(1)?)
    }

    /// Bytes of a generation's file; 0 when there is none.
    pub fn file_len(&self, generation: u64) -> Result<u64> {
        match self.medium(generation)? {
            None => Ok(0),
            Some(medium) => medium.len().map_err(|error| self.failed("measure", generation, error)),
        }
    }

    /// The bytes from `from` to `to`, or to where the file ends.
    pub fn read(&self, generation: u64, from: u64, to: u64) -> Result<Vec<u8>> {
        let mut bytes = vec![0; to.saturating_sub(from) as usize];
        let read = match self.medium(generation)? {
            None => 0,
            Some(medium) => medium
                .read_at(&mut bytes, from)
                .map_err(|error| self.failed("read", generation, error))?,
        };
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Makes sure that the file reaches to `end`; returns its length.
    pub fn reserve(&self, generation: u64, end: u64) -> Result<u64> {
        let capacity = &self.slot(generation).capacity;
        let known = capacity.load(Ordering::Relaxed);
        if end <= known {
            return Ok(known);
        }
        let reserved = self
            .grow(generation, end)
            .map_err(|error| self.failed("make room in", generation, error))?;
        capacity.store(reserved, Ordering::Relaxed);
        Ok(reserved)
    }

    fn grow(&self, generation: u64, end: u64) -> std::io::Result<u64> {
        let slot = self.slot(generation);
        let mut medium = slot.medium();
        let is_new = medium.is_none();
        let file = match &*medium {
            Some(file) => Arc::clone(file),
            None => {
                let opened = self.folder.open(&slot.name, true)?.map(Arc::from);
                opened.ok_or(std::io::ErrorKind::NotFound)?
            }
        };
        let (now, mut len) = (file.len()?, self.sizes.first);
        while len < end.max(now) {
            len += len.min(self.sizes.step_max);
        }
        // A file that is long enough already may not be synced: who made it so may have died.
        file.allocate(len)?;
        if is_new {
            self.folder.sync()?;
            *medium = Some(file);
        }
        Ok(len)
    }

    /// Writes below what has been reserved.
    pub fn write(&self, generation: u64, bytes: &[u8], offset: u64) -> Result<()> {
        let medium = self.writable(generation, bytes.len(), offset)?;
        medium.write_at(bytes, offset).map_err(|error| self.failed("write", generation, error))
    }

    fn writable(&self, generation: u64, len: usize, offset: u64) -> Result<Arc<dyn Medium>> {
        let capacity = self.slot(generation).capacity.load(Ordering::Relaxed);
        debug_assert!(offset + len as u64 <= capacity);
        self.medium(generation)?.ok_or_else(|| {
            Error::corrupted(format!("`{}` is gone", self.path(generation).display()))
        })
    }

    /// Writes whole blocks below what has been reserved, and makes them durable.
    pub fn write_through(&self, generation: u64, blocks: &[u8], offset: u64) -> Result<()> {
        let medium = self.writable(generation, blocks.len(), offset)?;
        medium
            .write_through(blocks, offset)
            .map_err(|error| self.failed("write through", generation, error))
    }

    /// Makes durable what was written between two positions: the older generation first, because a record
    /// that knows something of its own generation to be synced says the same of all before it.
    pub fn sync_between(&self, before: Position, written: Position) -> Result<()> {
        if before.generation < written.generation {
            self.sync(written.generation - 1)?;
        }
        self.sync(written.generation)
    }

    /// Makes what was written to a generation's file durable.
    pub fn sync(&self, generation: u64) -> Result<()> {
        match self.medium(generation)? {
            None => Ok(()),
            Some(medium) => {
                medium.sync_data().map_err(|error| self.failed("sync", generation, error))
            }
        }
    }

    /// Removes both files; nobody may use them.
    pub fn remove(&self) -> Result<()> {
        [0, 1].into_iter().try_for_each(|generation| self.remove_one(generation))
    }

    /// Removes a generation's file, durably; nobody may use it.
    pub fn remove_durably(&self, generation: u64) -> Result<()> {
        self.remove_one(generation)?;
        self.folder.sync().map_err(|error| self.failed("remove", generation, error))
    }

    fn remove_one(&self, generation: u64) -> Result<()> {
        let slot = self.slot(generation);
        *slot.medium() = None;
        slot.capacity.store(0, Ordering::Relaxed);
        self.folder.remove(&slot.name).map_err(|error| self.failed("remove", generation, error))
    }

    /// Gives both files other names, by a suffix; nobody may use them.
    pub fn set_aside(&self, suffix: &str) -> Result<()> {
        for generation in [0, 1] {
            let slot = self.slot(generation);
            *slot.medium() = None;
            slot.capacity.store(0, Ordering::Relaxed);
            match self.folder.rename(&slot.name, &format!("{}{suffix}", slot.name)) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                renamed => renamed.map_err(|error| self.failed("rename", generation, error))?,
            }
        }
        self.folder.sync().map_err(|error| self.failed("rename", 0, error))
    }

    fn medium(&self, generation: u64) -> Result<Option<Arc<dyn Medium>>> {
        let slot = self.slot(generation);
        let mut medium = slot.medium();
        if medium.is_none() {
            let opened = self.folder.open(&slot.name, false);
            *medium =
                opened.map_err(|error| self.failed("open", generation, error))?.map(Arc::from);
        }
        Ok(medium.clone())
    }

    fn slot(&self, generation: u64) -> &Slot {
        &self.slots[(generation % 2) as usize]
    }

    #[cold]
    fn failed(&self, action: &str, generation: u64, error: std::io::Error) -> Error {
        io_error(&format!("cannot {action}"), &self.path(generation), error)
    }
}

impl Slot {
    fn medium(&self) -> MutexGuard<'_, Option<Arc<dyn Medium>>> {
        self.medium.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
