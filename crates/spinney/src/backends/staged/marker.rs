//! The marker file of a store's directory, and what may lie beside it.
//!
//! `spinney` is the marker: format, backend, store id and state, four lines of text. A directory is
//! created in an order that a crash at any moment leaves either re-creatable or complete:
//!
//! 1. marker `state: creating`, synced and renamed into place;
//! 2. the engine's files, made anew and synced;
//! 3. marker `state: ready`, synced and renamed into place.
//!
//! So missing engine files beside a `ready` marker are a loss, never a new store.

use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hash::BuildHasher;
use std::io::{self, Write as _};
use std::path::Path;

use spinney_core::{Error, Result};

use crate::backends::no_store;
use crate::file_system;
use crate::os_error::io_error;

/// The version of the directory's format that this build reads and writes.
pub const FORMAT: u32 = 1;

const MARKER: &str = "spinney";
const MARKER_NEW: &str = "spinney.new";

/// How far a store has come to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    Creating,
    Ready,
}

/// What the marker says.
pub struct Marker {
    /// The random id that the store was made with.
    pub store_id: String,
    pub state: State,
}

impl Marker {
    /// That of a new store.
    pub fn new(state: State) -> Marker {
        // `RandomState` is seeded by the operating system; two of them make 128 bits.
        let mut store_id = String::with_capacity(32);
        for _ in 0..2 {
            let _ = write!(store_id, "{:016x}", RandomState::new().hash_one(std::process::id()));
        }
        Marker { store_id, state }
    }
}

/// What a backend's directory looks like.
pub struct Layout {
    /// The backend's name in the marker.
    pub backend: &'static str,
    /// What may be there before the marker is.
    pub locks: &'static [&'static str],
    /// What an unfinished creation may have left.
    pub engine: &'static [&'static str],
}

impl Layout {
    /// The marker of a directory; `None` when there is none.
    ///
    /// # Errors
    /// `InvalidInput` when it is something else's or another backend's, `Unsupported` when a newer
    /// spinney made it, `Corrupted`, `Io`.
    pub fn read(&self, dir: &Path) -> Result<Option<Marker>> {
        use io::ErrorKind::{NotADirectory, NotFound};
        let path = dir.join(MARKER);
        match fs::read_to_string(&path) {
            Ok(text) => self.parse(dir, &text).map(Some),
            Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Err(not_a_store(dir)),
            Err(error) => Err(io_error("cannot read", &path, error)),
        }
    }

    fn parse(&self, dir: &Path, text: &str) -> Result<Marker> {
        let shown = dir.display();
        let field = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':').map(str::trim))
        };
        let format: u32 = field("format")
            .and_then(|format| format.parse().ok())
            .ok_or_else(|| not_a_store(dir))?;
        if format > FORMAT {
            return Err(Error::unsupported(format!(
                "`{shown}` has format {format}, this build reads up to {FORMAT}; use a newer spinney"
            )));
        }
        match field("backend") {
            Some(backend) if backend == self.backend => {}
            Some(other) => {
                return Err(Error::invalid_input(format!(
                    "`{shown}` is a store of backend `{other}`; open it as `{other}:{shown}`"
                )));
            }
            None => return Err(damaged(dir)),
        }
        let state = match field("state") {
            Some("ready") => State::Ready,
            Some("creating") => State::Creating,
            _ => return Err(damaged(dir)),
        };
        let store_id = field("store").ok_or_else(|| damaged(dir))?.to_owned();
        Ok(Marker { store_id, state })
    }

    /// Puts a marker into its place, durably.
    pub fn write(&self, dir: &Path, marker: &Marker) -> Result<()> {
        let state = match marker.state {
            State::Creating => "creating",
            State::Ready => "ready",
        };
        let (backend, store_id) = (self.backend, &marker.store_id);
        let text =
            format!("format: {FORMAT}\nbackend: {backend}\nstore: {store_id}\nstate: {state}\n");
        let (new, path) = (dir.join(MARKER_NEW), dir.join(MARKER));
        File::create(&new)
            .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&new, &path))
            .map_err(|error| io_error("cannot write", &path, error))?;
        sync_dir(dir)
    }

    /// Makes the directory, or sees to it that nothing but an unfinished creation is there.
    pub fn make_dir(&self, dir: &Path) -> Result<()> {
        match fs::create_dir(dir) {
            Ok(()) => sync_parent(dir),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match dir.is_dir() {
                true => self.refuse_foreign_files(dir),
                false => Err(not_a_store(dir)),
            },
            Err(error) => Err(io_error("cannot create the directory", dir, error)),
        }
    }

    /// Why there is no store.
    pub fn absent(&self, dir: &Path) -> Result<Error> {
        match fs::metadata(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(io_error("cannot open", dir, error)),
            Ok(metadata) if !metadata.is_dir() => return Err(not_a_store(dir)),
            Ok(_) => self.refuse_foreign_files(dir)?,
        }
        Ok(no_store(format_args!("`{}`", dir.display())))
    }

    /// Refuses a directory without a marker that holds anything but what a crashed creation leaves.
    fn refuse_foreign_files(&self, dir: &Path) -> Result<()> {
        let has_marker = dir.join(MARKER).exists();
        for entry in fs::read_dir(dir).map_err(|error| io_error("cannot list", dir, error))? {
            let name = entry.map_err(|error| io_error("cannot list", dir, error))?.file_name();
            let is_in = |names: &[&str]| names.iter().any(|own| name == *own);
            let is_engines = has_marker && is_in(self.engine);
            if !is_engines && !is_in(&[MARKER, MARKER_NEW]) && !is_in(self.locks) {
                return Err(not_a_store(dir));
            }
        }
        Ok(())
    }
}

fn not_a_store(dir: &Path) -> Error {
    let shown = dir.display();
    Error::invalid_input(format!(
        "`{shown}` is not a spinney store; name an empty or new directory"
    ))
}

fn damaged(dir: &Path) -> Error {
    Error::corrupted(format!("`{}` is damaged; restore a backup", dir.join(MARKER).display()))
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
