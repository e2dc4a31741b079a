//! One open document: commits go to memory and to the journal; shared by all handles.
//!
//! Locks are taken in this order: `file`, `tail`.

use std::path::Path as FilePath;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use spinney_core::backend::{
    Backend, Batch, Capabilities, Outcome, Revision, Snapshot, WriteGuard,
};
use spinney_core::{Error, Memory, Path, Result};

use super::LOCK;
use super::document::Place;
use super::files::Files;
use super::keeper::Keeper;
use super::notes::{Content, Note};
use super::recover::{Opened, Take, recover};
use super::tail::Tail;
use crate::journal::medium::Stamp;
use crate::journal::{Group, Journal, Landing, Position, Segments};

/// Tries of a reader to find file and journal in one state while a writer works on them.
const READ_TRIES: u32 = 50;

/// Between two of them.
const READ_PAUSE: Duration = Duration::from_millis(10);

/// The state that is shared.
pub struct Store {
    pub files: Files,
    pub place: Place,
    pub memory: Memory,
    capabilities: Capabilities,
    pub tail: Mutex<Tail>,
    /// Held while the file is replaced.
    pub file: Mutex<Printed>,
    pub group: Group,
    landing: Landing,
    segments: Arc<Segments>,
    /// Notified when more is durable.
    durably: Condvar,
    pub keeper: Keeper,
    commits: AtomicU64,
    read_only: bool,
}

/// What is known of the file.
pub struct Printed {
    /// When it was last looked at.
    pub stamp: Option<Stamp>,
    /// The text there, which may be replaced.
    pub on_disk: Content,
    /// What is there is not of this store's newest states, and is printed anew.
    pub must_print: bool,
    /// What the last look found; `None` before the first.
    pub seen: Option<Option<Stamp>>,
    /// When it was last refused, so that it is said once.
    pub refused: Option<Stamp>,
    /// The state that it holds; `None` when no state of this store is what it holds.
    pub base: Option<Box<dyn Snapshot>>,
    /// The generation before the present one is in the file, so that the next may take its place.
    pub is_free: bool,
    pub since: Instant,
}

impl Store {
    /// Opens the document to write, and makes it if it is not there. The caller sees to it that nobody
    /// else writes it.
    pub fn open(files: Files, base_path: Path, take: Option<Take>) -> Result<Arc<Store>> {
        files.check_writable()?;
        files.clean();
        files.settle()?;
        let place = Place(base_path);
        let journal = files.journal();
        let stamp = files.stamp()?;
        let text = match files.read()? {
            Some(text) => text,
            None => create(&files, &journal)?,
        };
        let opened = recover(&files, &place, journal, &text, take)?;
        drop(text);
        // What a writer that died has written and not synced is built upon from here on.
        let segments = opened.journal.segments();
        if opened.is_set_aside {
            let revision = opened.memory.snapshot()?.revision()?;
            segments.set_aside(&format!(".set-aside-{revision}"))?;
        }
        [0, 1].into_iter().try_for_each(|generation| segments.sync(generation))?;
        files.put_side(&opened.content.side)?;
        Store::new(files, place, opened, stamp, false)
    }

    /// Opens the document to read, as it is now; a writer may be at work.
    pub fn open_read_only(files: Files, base_path: Path, take: Option<Take>) -> Result<Arc<Store>> {
        let place = Place(base_path);
        let mut tries = 0;
        loop {
            let stamp = files.stamp()?;
            let text = files.read()?.ok_or_else(|| absent(&files.file))?;
            let opened = recover(&files, &place, files.journal(), &text, take);
            tries += 1;
            let is_moved = files.stamp()? != stamp;
            match opened {
                Ok(opened) if !is_moved => {
                    return Store::new(files, place, opened, stamp, true);
                }
                Err(error) if tries == READ_TRIES => return Err(error),
                _ if tries == READ_TRIES => {
                    return Err(Error::busy(format!(
                        "`{}` changes all the time; try again",
                        files.file.display()
                    )));
                }
                // A writer may be between the file and its journal.
                Err(error) if !is_moved && !files.has(LOCK) => return Err(error),
                _ => std::thread::sleep(READ_PAUSE),
            }
        }
    }

    fn new(
        files: Files,
        place: Place,
        opened: Opened,
        stamp: Option<Stamp>,
        read_only: bool,
    ) -> Result<Arc<Store>> {
        let diffs = opened.diffs();
        let Opened { memory, journal, content, base, is_replaced, is_free, .. } = opened;
        let revision = memory.snapshot()?.revision()?;
        let has_diffs = !diffs.is_empty();
        let segments = Arc::clone(journal.segments());
        let on_disk = content.clone();
        let mut tail = Tail::new(journal, content, revision);
        tail.give_back(diffs);
        if is_replaced && !read_only {
            let replaced = Note::Replaced(tail.content.clone());
            tail.note(&replaced, Position::default())?;
        }
        let capabilities = Capabilities { persistent: true, ..memory.capabilities().clone() };
        let store = Arc::new(Store {
            files,
            place,
            memory,
            capabilities,
            tail: Mutex::new(tail),
            file: Mutex::new(Printed {
                stamp,
                on_disk,
                must_print: false,
                seen: None,
                refused: None,
                base: Some(base),
                is_free,
                since: Instant::now(),
            }),
            group: Group::default(),
            landing: Landing::default(),
            segments,
            durably: Condvar::new(),
            keeper: Keeper::default(),
            commits: AtomicU64::new(0),
            read_only,
        });
        if has_diffs {
            store.keeper.wake();
        }
        if is_replaced && !read_only {
            // An edit of what is there now must not look like one behind commits.
            store.sync_all()?;
        }
        Ok(store)
    }

    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    pub fn key_len_max(&self) -> usize {
        self.capabilities.key_len_max
    }

    /// Writes what is buffered; returns where that ends.
    pub fn write(&self) -> Result<Position> {
        let mut tail = self.landed_tail();
        match tail.journal.write() {
            Ok(()) => Ok(tail.journal.written()),
            Err(error) => Err(tail.fail(error, self.group.synced())),
        }
    }

    /// Returns when everything before a position is durable.
    pub fn sync_until(&self, end: Position) -> Result<()> {
        // Who syncs takes along what others have committed meanwhile.
        let sync =
            |synced| self.landing.sync_behind(&self.segments, &self.tail, self.tail(), synced);
        self.group.sync(end, sync).map_err(|error| self.tail().fail(error, self.group.synced()))?;
        // Who waits has looked under the lock.
        drop(self.tail());
        self.durably.notify_all();
        Ok(())
    }

    /// Makes everything that is committed now durable.
    pub fn sync_all(&self) -> Result<()> {
        if self.tail().failure.is_some() {
            return Ok(());
        }
        let end = self.tail().journal.end();
        if end.offset == 0 { Ok(()) } else { self.sync_until(end) }
    }

    /// Refuses what a failed write or sync has made impossible.
    pub fn refuse_after_failure(&self, tail: &Tail) -> Result<()> {
        tail.failure.refuse_writes(&self.files.file)
    }

    pub fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tail, with a journal that may be written.
    pub fn landed_tail(&self) -> MutexGuard<'_, Tail> {
        self.landing.lock(&self.tail)
    }

    pub fn file(&self) -> MutexGuard<'_, Printed> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Prints the file, and removes the journal when the file has everything.
    pub fn close(&self) -> Result<()> {
        if self.is_read_only() || self.tail().failure.is_some() {
            return Ok(());
        }
        self.sync_all()?;
        self.rewrite()?;
        let tail = self.tail();
        if tail.revision != tail.content.revision {
            return Ok(());
        }
        self.files.put_side(&tail.content.side)?;
        let generation = tail.journal.end().generation;
        // In this order: a generation alone is understood only when none is behind it.
        self.segments.remove_durably(generation + 1)?;
        self.segments.remove_durably(generation)
    }
}

/// Makes an empty document where there is none.
fn create(files: &Files, journal: &Journal) -> Result<Vec<u8>> {
    if !journal.found()?.is_empty() {
        return Err(Error::corrupted(format!(
            "`{}` is gone, but its journal has commits; restore the file, or remove the journal",
            files.file.display()
        )));
    }
    let text = b"{}\n".to_vec();
    files.prepare(&text)?;
    files.replace()?;
    files.sync_folder()?;
    Ok(text)
}

/// The error for a document that is not there.
pub fn absent(file: &FilePath) -> Error {
    Error::not_found(format!("`{}` does not exist", file.display()))
}

impl Backend for Store {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn snapshot(&self) -> Result<Box<dyn Snapshot>> {
        self.memory.snapshot()
    }

    fn write_guard(&self, conflicts: u32) -> Result<Box<dyn WriteGuard + '_>> {
        self.refuse_after_failure(&self.tail())?;
        self.memory.write_guard(conflicts)
    }

    fn commit(&self, batch: Batch) -> Result<Outcome> {
        if batch.is_maintenance() {
            return self.memory.commit(batch);
        }
        let mut tail = self.tail();
        self.refuse_after_failure(&tail)?;
        tail.make_room(&batch)?;
        let synced = self.group.synced();
        let outcome = self.memory.commit_with(batch, |batch| tail.append(batch, synced))?;
        let is_full = tail.is_full();
        drop(tail);
        if outcome == Outcome::Conflict {
            return Ok(outcome);
        }
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.keeper.wake();
        if is_full {
            self.write()?;
        }
        Ok(outcome)
    }

    fn flush(&self, revision: Revision) -> Result<()> {
        self.tail().failure.refuse_lost(revision)?;
        self.write().map(drop)
    }

    fn sync(&self, revision: Revision) -> Result<()> {
        self.tail().failure.refuse_lost(revision)?;
        let end = self.tail().end_of(revision);
        end.map_or(Ok(()), |end| self.sync_until(end))
    }

    fn wait(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        self.memory.wait(after, timeout)
    }

    fn wait_durable(&self, after: Revision, timeout: Duration) -> Result<Revision> {
        let lacks = |tail: &mut Tail| tail.durable(self.group.synced()) <= after;
        let (tail, _) = self
            .durably
            .wait_timeout_while(self.tail(), timeout, lacks)
            .unwrap_or_else(PoisonError::into_inner);
        Ok(tail.durable(self.group.synced()))
    }

    fn stats(&self) -> Result<Vec<(String, String)>> {
        let (commits, syncs) = (self.commits.load(Ordering::Relaxed), self.group.syncs());
        let age = self.file().since.elapsed();
        let tail = self.tail();
        let pairs = [
            ("file bytes", tail.content.len.to_string()),
            ("file revision", tail.content.revision.to_string()),
            ("journal bytes", self.segments.disk_len()?.to_string()),
            ("journal bytes behind the file", tail.diffs_len.to_string()),
            ("checkpoint age seconds", age.as_secs().to_string()),
            ("commits", commits.to_string()),
            ("syncs", syncs.to_string()),
            ("commits per sync", format!("{:.1}", commits as f64 / syncs.max(1) as f64)),
        ];
        Ok(pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    fn checkpoint(&self) -> Result<()> {
        self.rewrite()
    }
}
