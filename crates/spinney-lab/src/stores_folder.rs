//! The folder in which a run keeps its stores: it has room, it goes with the run, and it takes along what
//! killed runs have left.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use spinney_core::{Error, Result};
use tempfile::TempDir;

use crate::amount::in_bytes;
use crate::suite::{folder_in, unwritable};

/// Begin of the names of folders of runs; what is named so is removed when no run is left.
const PREFIX: &str = "spinney-bench-";

/// A run's folder. It is removed when this is dropped.
pub struct StoresFolder {
    folder: TempDir,
    /// Locked for as long as the run lasts: nobody removes folders meanwhile.
    _lock: Option<File>,
}

impl StoresFolder {
    /// A new folder in `parent`, which has `needed` bytes left.
    ///
    /// # Errors
    /// `Io` when the folder cannot be written or has no room.
    pub fn new(parent: &Path, needed: u64) -> Result<StoresFolder> {
        fs::create_dir_all(parent).map_err(|error| unwritable(error, parent))?;
        let lock = lock(parent);
        check_room(parent, needed)?;
        Ok(StoresFolder { folder: folder_in(parent, PREFIX)?, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Shares a lock of `parent` with other runs; whoever comes when there is none removes what killed ones
/// have left. Where a file system has no such locks, nothing is removed.
fn lock(parent: &Path) -> Option<File> {
    let folder = File::open(parent).ok()?;
    if folder.try_lock().is_ok() {
        // What cannot be removed is somebody else's or will be tried again.
        leftovers(parent).into_iter().for_each(|left| drop(fs::remove_dir_all(left)));
        folder.unlock().ok()?;
    }
    folder.lock_shared().ok()?;
    Some(folder)
}

fn leftovers(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let is_left = |entry: &fs::DirEntry| {
        entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && entry.file_type().is_ok_and(|kind| kind.is_dir())
    };
    entries.filter(is_left).map(|entry| entry.path()).collect()
}

fn check_room(parent: &Path, needed: u64) -> Result<()> {
    // What the system does not tell will show when a store is written.
    let Ok(room) = rustix::fs::statvfs(parent) else { return Ok(()) };
    let left = room.f_bavail.saturating_mul(room.f_frsize);
    if left >= needed {
        return Ok(());
    }
    let (left, needed) = (in_bytes(left as f64), in_bytes(needed as f64));
    let parent = parent.display();
    Err(Error::io(format!(
        "`{parent}` has {left} left and this run may need {needed}; choose another folder with `--dir`, \
         or smaller `--sizes`"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_dead_runs_go_and_those_of_living_ones_stay() {
        let parent = tempfile::tempdir().expect("a folder");
        let dead = parent.path().join(format!("{PREFIX}dead"));
        let other = parent.path().join("other");
        for folder in [&dead, &other] {
            fs::create_dir(folder).expect("a folder");
            fs::write(folder.join("store"), "bytes").expect("a file");
        }
        let first = StoresFolder::new(parent.path(), 0).expect("a folder");
        assert!(!dead.exists() && other.exists());
        let second = StoresFolder::new(parent.path(), 0).expect("a folder");
        assert!(first.path().exists() && second.path().exists());
        let path = first.path().to_owned();
        drop((first, second));
        assert!(!path.exists() && other.exists());
    }

    #[test]
    fn a_folder_without_room_is_refused() {
        let parent = tempfile::tempdir().expect("a folder");
        let error = StoresFolder::new(parent.path(), u64::MAX).err().expect("no disk is so large");
        assert!(error.to_string().contains("and this run may need"), "{error}");
        assert_eq!(fs::read_dir(parent.path()).expect("a folder").count(), 0);
    }
}
