//! Where tests keep their stores.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spinney::Limits;
use spinney::backends::fjall::{self, Fjall};
use spinney::backends::json::{self, Json};
use spinney::backends::lmdb::{self, Lmdb};
use tempfile::TempDir;

/// A temporary folder that goes away with the answer: in memory where the system has `/dev/shm`, so
/// that a suite of thousands of syncs measures the code and not the disk.
///
/// # Panics
/// When no folder can be made.
pub fn temporary() -> TempDir {
    let memory = Path::new("/dev/shm");
    let made = if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() };
    made.expect("a temporary folder can be made")
}

/// Makes stores in temporary folders that go away with it.
#[derive(Default)]
pub struct Stores(RefCell<Vec<TempDir>>);

impl Stores {
    /// A new LMDB store.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn lmdb(&self) -> Arc<Lmdb> {
        Lmdb::open(&self.path("store"), lmdb::Options::CREATE).expect("a new store")
    }

    /// A new fjall store.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn fjall(&self) -> Arc<Fjall> {
        Fjall::open(&self.path("store"), fjall::Options::CREATE).expect("a new store")
    }

    /// A new fjall store that folds all but the smallest commits at once, so that what is read comes
    /// from tables that are merged meanwhile.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn folding_fjall(&self) -> Arc<Fjall> {
        let limits = Limits {
            journaled_len_max_bytes: 600,
            generation_len_bytes: 64 << 10,
            ..Limits::DEFAULT
        };
        let options = fjall::Options { limits, ..fjall::Options::CREATE };
        Fjall::open(&self.path("store"), options).expect("a new store")
    }

    /// A new JSON file whose members are the trees.
    ///
    /// # Panics
    /// When it cannot be made.
    pub fn json(&self) -> Arc<Json> {
        let options = json::Options { create: true, ..json::Options::default() };
        Json::open(&self.path("store.json"), options).expect("a new store")
    }

    fn path(&self, name: &str) -> PathBuf {
        let folder = temporary();
        let path = folder.path().join(name);
        self.0.borrow_mut().push(folder);
        path
    }
}
