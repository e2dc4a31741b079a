//! The right to write a store: one process has it.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long opening waits for a store that this process is just closing.
const CLOSING_MAX: Duration = Duration::from_secs(10);

/// The right to write a store, until it is dropped or the process ends.
pub struct WriterLock {
    path: PathBuf,
    /// Holds the system's lock.
    _file: File,
}

/// Why the right cannot be had.
pub enum Refused {
    /// Another process has it.
    Held {
        /// It, as far as it is known.
        holder: String,
    },
    /// The lock file cannot be made or locked.
    Failed(io::Error),
}

impl WriterLock {
    /// Takes the right that the file at `path` stands for; waits while this process gives it back.
    pub fn acquire(path: PathBuf) -> Result<WriterLock, Refused> {
        let deadline = Instant::now() + CLOSING_MAX;
        loop {
            let holder = match take_lock(&path).map_err(Refused::Failed)? {
                Taken::Lock(file) => return Ok(WriterLock { path, _file: file }),
                Taken::Again => continue,
                Taken::Held(holder) => holder,
            };
            if holder == std::process::id().to_string() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(2));
                continue;
            }
            let holder = match &*holder {
                "" => "another process".into(),
                holder => format!("process {holder}"),
            };
            return Err(Refused::Held { holder });
        }
    }
}

enum Taken {
    Lock(File),
    /// The process that has it, as it has written it.
    Held(String),
    /// The file was removed meanwhile.
    Again,
}

fn take_lock(path: &Path) -> io::Result<Taken> {
    let mut file =
        fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            file.read_to_string(&mut holder)?;
            return Ok(Taken::Held(holder.trim().to_owned()));
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    match fs::metadata(path) {
        Ok(found) if found.ino() == file.metadata()?.ino() => {}
        _ => return Ok(Taken::Again),
    }
    file.set_len(0)?;
    writeln!(file, "{}", std::process::id())?;
    Ok(Taken::Lock(file))
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        // Who waits for it sees that the file is another one.
        let _ = fs::remove_file(&self.path);
    }
}
