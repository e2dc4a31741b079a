//! The store's directory: how it comes to be, and what it may not look like.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use spinney_core::{Error, Result};

use super::engine::{Access, DATA_FILE, Engine, LOCK_FILE};
use super::network;
use crate::backends::staged::marker::{Layout, Marker, State};
use crate::file_system::remove_if_present;
use crate::os_error::io_error;
use crate::store_limits::Limits;

const LAYOUT: Layout =
    Layout { backend: "lmdb", locks: &[QUEUE_LOCK, WRITER_LOCK], engine: &[DATA_FILE, LOCK_FILE] };

/// Whose turn it is to wait for the writer's lock; also held while the directory is created.
pub const QUEUE_LOCK: &str = "queue.lock";

/// Held by the process that has staged changes.
pub const WRITER_LOCK: &str = "writer.lock";

/// The shortest engine file: two pages of metadata.
const DATA_LEN_MIN: u64 = 2 * 4_096;

/// Whether a store may be made, or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Makes the store if there is none.
    pub create: bool,
    /// Never writes; works on a read-only medium.
    pub read_only: bool,
    /// How much waits in the journal, and how long; [`Limits::check`] must have passed.
    pub limits: Limits,
}

impl Options {
    /// A store that exists, to read and write.
    pub const EXISTING: Options =
        Options { create: false, read_only: false, limits: Limits::DEFAULT };

    /// As [`Options::EXISTING`], made if there is none.
    pub const CREATE: Options = Options { create: true, ..Options::EXISTING };

    /// A store that exists, to read.
    pub const READ_ONLY: Options = Options { read_only: true, ..Options::EXISTING };
}

/// A directory that holds a complete store.
pub struct Directory {
    /// The canonical path.
    pub path: PathBuf,
    /// The random id that the store was made with.
    pub store_id: String,
}

impl Directory {
    /// Finds the store, or makes it where the options say so.
    pub fn open(dir: &Path, options: Options) -> Result<Directory> {
        let store_id = match LAYOUT.read(dir)? {
            Some(Marker { state: State::Ready, store_id }) => store_id,
            _ if options.create && !options.read_only => create(dir, &options.limits)?,
            _ => return Err(LAYOUT.absent(dir)?),
        };
        let path = dir.canonicalize().map_err(|error| io_error("cannot open", dir, error))?;
        network::refuse(&path)?;
        check_data_file(&path.join(DATA_FILE))?;
        Ok(Directory { path, store_id })
    }

    /// Marks a directory that a complete engine file has been copied to as a store of its own.
    pub fn adopt(dir: &Path) -> Result<()> {
        LAYOUT.write(dir, &Marker::new(State::Ready))
    }
}

fn create(dir: &Path, limits: &Limits) -> Result<String> {
    LAYOUT.make_dir(dir)?;
    network::refuse(dir)?;
    let queue = open_lock(&dir.join(QUEUE_LOCK))?;
    queue.lock().map_err(|error| io_error("cannot lock", &dir.join(QUEUE_LOCK), error))?;
    if let Some(Marker { state: State::Ready, store_id }) = LAYOUT.read(dir)? {
        return Ok(store_id);
    }
    let mut marker = Marker::new(State::Creating);
    LAYOUT.write(dir, &marker)?;
    for name in [DATA_FILE, LOCK_FILE] {
        let path = dir.join(name);
        remove_if_present(&path).map_err(|error| io_error("cannot remove", &path, error))?;
    }
    drop(Engine::open(dir, Access::ReadWrite, limits.snapshots_max)?);
    let data_file = dir.join(DATA_FILE);
    File::open(&data_file)
        .and_then(|file| file.sync_all())
        .map_err(|error| io_error("cannot sync", &data_file, error))?;
    marker.state = State::Ready;
    LAYOUT.write(dir, &marker)?;
    Ok(marker.store_id)
}

fn check_data_file(file: &Path) -> Result<()> {
    let shown = file.display();
    match fs::metadata(file) {
        Ok(metadata) if metadata.len() >= DATA_LEN_MIN => Ok(()),
        Ok(metadata) => Err(Error::corrupted(format!(
            "`{shown}` is truncated: {} bytes, at least {DATA_LEN_MIN} expected; restore a backup",
            metadata.len()
        ))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::corrupted(format!("`{shown}` is missing; restore a backup")))
        }
        Err(error) => Err(io_error("cannot open", file, error)),
    }
}

/// Opens a lock file, made if it is missing.
pub fn open_lock(path: &Path) -> Result<File> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
        .map_err(|error| io_error("cannot open", path, error))
}
