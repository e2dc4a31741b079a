//! The store's directory: how it comes to be, and who may have it open.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use spinney_core::{Error, Result};

use super::engine::{Engine, FOLDER};
use crate::backends::staged::marker::{Layout, Marker, State};
use crate::backends::writer_lock::{Refused, WriterLock};
use crate::os_error::io_error;

/// Held by the process that has the store open.
const LOCK: &str = "lock";

const LAYOUT: Layout = Layout { backend: "fjall", locks: &[LOCK], engine: &[FOLDER] };

/// A directory that holds a complete store, and the right to it.
pub struct Directory {
    /// The canonical path.
    pub path: PathBuf,
    /// The random id that the store was made with.
    pub store_id: String,
    _lock: WriterLock,
}

impl Directory {
    /// Finds the store, or makes it if that is wanted.
    pub fn open(dir: &Path, create: bool) -> Result<Directory> {
        let is_ready = |marker: Option<Marker>| marker.filter(|it| it.state == State::Ready);
        if is_ready(LAYOUT.read(dir)?).is_none() {
            match create {
                true => LAYOUT.make_dir(dir)?,
                false => return Err(LAYOUT.absent(dir)?),
            }
        }
        let path = dir.canonicalize().map_err(|error| io_error("cannot open", dir, error))?;
        let lock = acquire(&path)?;
        let marker = match is_ready(LAYOUT.read(&path)?) {
            Some(marker) => marker,
            None => make(&path)?,
        };
        Ok(Directory { path, store_id: marker.store_id, _lock: lock })
    }

    /// Makes a directory for a copy, and marks it when `fill` has filled its engine's folder.
    pub fn copy(target: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        use crate::backends::staged::marker::{sync_dir, sync_parent};
        fs::create_dir(target).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::already_exists(format!(
                "backup: `{}` exists; name a new directory",
                target.display()
            )),
            _ => io_error("backup: cannot create", target, error),
        })?;
        // The marker comes last: an unfinished copy is not taken for a store.
        let copied = fill(&target.join(FOLDER))
            .and_then(|()| sync_dir(target))
            .and_then(|()| LAYOUT.write(target, &Marker::new(State::Ready)))
            .and_then(|()| sync_parent(target));
        if copied.is_err() {
            let _ = fs::remove_dir_all(target);
        }
        copied
    }
}

fn make(path: &Path) -> Result<Marker> {
    let mut marker = Marker::new(State::Creating);
    LAYOUT.write(path, &marker)?;
    let folder = path.join(FOLDER);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(io_error("cannot remove", &folder, error));
        }
        _ => {}
    }
    Engine::create(&folder)?;
    marker.state = State::Ready;
    LAYOUT.write(path, &marker)?;
    Ok(marker)
}

fn acquire(path: &Path) -> Result<WriterLock> {
    let file = path.join(LOCK);
    WriterLock::acquire(file.clone()).map_err(|refused| match refused {
        Refused::Failed(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            Error::read_only(format!(
                "`{}` may not be written, which a store in fjall needs even to be read",
                path.display()
            ))
            .with_source(error)
        }
        Refused::Failed(error) => io_error("cannot lock", &file, error),
        Refused::Held { holder } => Error::busy(format!(
            "`{}` is open in {holder}, and one process at a time has a store in fjall; close it there",
            path.display()
        )),
    })
}
