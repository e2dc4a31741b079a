//! The store's directory: its marker file, how it comes to be, and what it may not look like.
//!
//! `spinney` is the marker: format, backend, store id and state, four lines of text. A directory is
//! created in an order that a crash at any moment leaves either re-creatable or complete:
//!
//! 1. marker `state: creating`, synced and renamed into place;
//! 2. the engine's file, made anew and synced;
//! 3. marker `state: ready`, synced and renamed into place.
//!
//! So a missing or short engine file beside a `ready` marker is a loss, never a new store.

use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::hash::BuildHasher;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use spinney_core::{Error, Result};

use super::engine::{Access, DATA_FILE, Engine, LOCK_FILE};
use super::network;
use crate::file_system::{self, remove_if_present};
use crate::os_error::io_error;
use crate::store_limits::Limits;

/// The version of the directory's format that this build reads and writes.
pub const FORMAT: u32 = 1;

/// This backend's name in the marker.
const BACKEND: &str = "lmdb";

const MARKER: &str = "spinney";
const MARKER_NEW: &str = "spinney.new";

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

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Creating,
    Ready,
}

struct Marker {
    store_id: String,
    state: State,
}

impl Directory {
    /// Finds the store, or makes it where the options say so.
    pub fn open(dir: &Path, options: Options) -> Result<Directory> {
        let store_id = match read_marker(dir)? {
            Some(Marker { state: State::Ready, store_id }) => store_id,
            _ if options.create && !options.read_only => create(dir, &options.limits)?,
            _ => return Err(absent(dir)?),
        };
        let path = dir.canonicalize().map_err(|error| io_error("cannot open", dir, error))?;
        network::refuse(&path)?;
        check_data_file(&path.join(DATA_FILE))?;
        Ok(Directory { path, store_id })
    }

    /// Marks a directory that a complete engine file has been copied to as a store of its own.
    pub fn adopt(dir: &Path) -> Result<()> {
        write_marker(dir, &Marker { store_id: new_store_id(), state: State::Ready })
    }
}

/// Why there is no store.
fn absent(dir: &Path) -> Result<Error> {
    let shown = dir.display();
    match fs::metadata(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(io_error("cannot open", dir, error)),
        Ok(metadata) if !metadata.is_dir() => return Err(not_a_store(dir)),
        Ok(_) => refuse_foreign_files(dir)?,
    }
    Ok(Error::not_found(format!(
        "no store at `{shown}`; `spinney set` and `spinney import` make one"
    )))
}

fn not_a_store(dir: &Path) -> Error {
    let shown = dir.display();
    Error::invalid_input(format!(
        "`{shown}` is not a spinney store; name an empty or new directory"
    ))
}

/// Refuses a directory without a marker that holds anything but what a crashed creation leaves.
fn refuse_foreign_files(dir: &Path) -> Result<()> {
    let own = [MARKER, MARKER_NEW, QUEUE_LOCK, WRITER_LOCK];
    let has_marker = dir.join(MARKER).exists();
    for entry in fs::read_dir(dir).map_err(|error| io_error("cannot list", dir, error))? {
        let name = entry.map_err(|error| io_error("cannot list", dir, error))?.file_name();
        let engines = has_marker && (name == DATA_FILE || name == LOCK_FILE);
        if !engines && !own.iter().any(|own| name == *own) {
            return Err(not_a_store(dir));
        }
    }
    Ok(())
}

fn create(dir: &Path, limits: &Limits) -> Result<String> {
    match fs::create_dir(dir) {
        Ok(()) => sync_parent(dir)?,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !dir.is_dir() {
                return Err(not_a_store(dir));
            }
            refuse_foreign_files(dir)?;
        }
        Err(error) => return Err(io_error("cannot create the directory", dir, error)),
    }
    network::refuse(dir)?;
    let queue = open_lock(&dir.join(QUEUE_LOCK))?;
    queue.lock().map_err(|error| io_error("cannot lock", &dir.join(QUEUE_LOCK), error))?;
    if let Some(Marker { state: State::Ready, store_id }) = read_marker(dir)? {
        return Ok(store_id);
    }
    let mut marker = Marker { store_id: new_store_id(), state: State::Creating };
    write_marker(dir, &marker)?;
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
    write_marker(dir, &marker)?;
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

fn read_marker(dir: &Path) -> Result<Option<Marker>> {
    use io::ErrorKind::{NotADirectory, NotFound};
    let path = dir.join(MARKER);
    match fs::read_to_string(&path) {
        Ok(text) => parse_marker(dir, &text).map(Some),
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(not_a_store(dir)),
        Err(error) => Err(io_error("cannot read", &path, error)),
    }
}

fn parse_marker(dir: &Path, text: &str) -> Result<Marker> {
    let shown = dir.display();
    let field = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
    };
    let format: u32 =
        field("format").and_then(|format| format.parse().ok()).ok_or_else(|| not_a_store(dir))?;
    if format > FORMAT {
        return Err(Error::unsupported(format!(
            "`{shown}` has format {format}, this build reads up to {FORMAT}; use a newer spinney"
        )));
    }
    match field("backend") {
        Some(BACKEND) => {}
        Some(other) => {
            return Err(Error::invalid_input(format!(
                "`{shown}` is a store of backend `{other}`; open it as `{other}:{shown}`"
            )));
        }
        None => return Err(damaged_marker(dir)),
    }
    let state = match field("state") {
        Some("ready") => State::Ready,
        Some("creating") => State::Creating,
        _ => return Err(damaged_marker(dir)),
    };
    let store_id = field("store").ok_or_else(|| damaged_marker(dir))?.to_owned();
    Ok(Marker { store_id, state })
}

fn damaged_marker(dir: &Path) -> Error {
    Error::corrupted(format!("`{}` is damaged; restore a backup", dir.join(MARKER).display()))
}

fn write_marker(dir: &Path, marker: &Marker) -> Result<()> {
    let state = match marker.state {
        State::Creating => "creating",
        State::Ready => "ready",
    };
    let store_id = &marker.store_id;
    let text = format!("format: {FORMAT}\nbackend: {BACKEND}\nstore: {store_id}\nstate: {state}\n");
    let (new, path) = (dir.join(MARKER_NEW), dir.join(MARKER));
    File::create(&new)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&new, &path))
        .map_err(|error| io_error("cannot write", &path, error))?;
    sync_dir(dir)
}

fn new_store_id() -> String {
    // `RandomState` is seeded by the operating system; two of them make 128 bits.
    let mut id = String::with_capacity(32);
    for _ in 0..2 {
        let _ = write!(id, "{:016x}", RandomState::new().hash_one(std::process::id()));
    }
    id
}

/// Makes the names in a directory durable.
pub fn sync_dir(dir: &Path) -> Result<()> {
    file_system::sync_dir(dir).map_err(|error| io_error("cannot sync", dir, error))
}

/// Makes a directory's own name durable.
pub fn sync_parent(dir: &Path) -> Result<()> {
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => sync_dir(parent),
        _ => sync_dir(Path::new(".")),
    }
}
