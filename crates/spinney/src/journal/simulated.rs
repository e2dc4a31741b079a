//! Files in memory that record every write, sync and name, and show what a power failure at any
//! moment may leave of them.
//!
//! What was synced is there. Of each later write any of its sectors may be there or not, whatever
//! was written before or after it; a file may lack what made it longer. Of the changes of names since
//! the last sync of the folder some first ones are there, or any, each as a whole.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fastrand::Rng;
use twox_hash::XxHash3_64;

use super::medium::{BLOCK_LEN, Folder, Medium, Stamp};

type Inode = usize;
type Names = BTreeMap<String, Inode>;

/// Which file a name has now; `None` for no file.
type Renamed = Vec<(String, Option<Inode>)>;

/// What happened to a disk.
#[derive(Clone, Debug)]
pub enum Action<M> {
    /// Bytes of a file were written.
    Write(Write),
    /// A file was synced.
    Sync(Inode),
    /// The last write became durable, and nothing else.
    Through,
    /// Names of the folder changed at once.
    Names(Renamed),
    /// The folder was synced.
    SyncNames,
    /// What the test has to remember of this moment.
    Mark(M),
}

/// A write, or the zeros of an allocation.
#[derive(Clone, Debug)]
pub struct Write {
    inode: Inode,
    offset: u64,
    bytes: Vec<u8>,
}

impl Write {
    /// The parts before and behind another write.
    fn outside(self, other: &Write) -> Vec<Write> {
        if self.inode != other.inode {
            return vec![self];
        }
        let part = |from: usize, to: usize| Write {
            inode: self.inode,
            offset: self.offset + from as u64,
            bytes: self.bytes[from..to.max(from)].to_vec(),
        };
        let place =
            |offset: u64| (offset.saturating_sub(self.offset) as usize).min(self.bytes.len());
        let (from, to) = (place(other.offset), place(other.offset + other.bytes.len() as u64));
        [part(0, from), part(to, self.bytes.len())]
            .into_iter()
            .filter(|part| !part.bytes.is_empty())
            .collect()
    }
}

/// A folder on a disk of its own. Clones are the same disk.
pub struct Disk<M>(Arc<Mutex<State<M>>>);

struct State<M> {
    files: Vec<Vec<u8>>,
    names: Names,
    actions: Vec<Action<M>>,
    /// Bytes that still find room.
    room: u64,
    fails_syncs: bool,
}

impl<M> Clone for Disk<M> {
    fn clone(&self) -> Self {
        Disk(Arc::clone(&self.0))
    }
}

impl<M: Clone + Send + 'static> Disk<M> {
    /// An empty folder.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Disk<M> {
        Disk::with(Vec::new(), Names::new())
    }

    fn with(files: Vec<Vec<u8>>, names: Names) -> Disk<M> {
        let (actions, room, fails_syncs) = (Vec::new(), u64::MAX, false);
        Disk(Arc::new(Mutex::new(State { files, names, actions, room, fails_syncs })))
    }

    /// Remembers something with this moment.
    pub fn mark(&self, mark: M) {
        self.state().actions.push(Action::Mark(mark));
    }

    /// How many bytes still find room.
    pub fn set_room(&self, room: u64) {
        self.state().room = room;
    }

    /// Whether syncs fail from now on.
    pub fn set_fails_syncs(&self, fails: bool) {
        self.state().fails_syncs = fails;
    }

    /// The bytes of a file, to look at or damage them.
    pub fn with_file<T>(&self, name: &str, act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let mut state = self.state();
        let inode = state.names[name];
        act(&mut state.files[inode])
    }

    /// The disk as it is, as after the end of a process; nothing of it is remembered.
    pub fn copy(&self) -> Disk<M> {
        let state = self.state();
        Disk::with(state.files.clone(), state.names.clone())
    }

    /// Begins to replay what has happened to the disk, which was like `since` at first.
    pub fn replay(&self, since: &Disk<M>) -> Replay<M> {
        let since = since.state();
        Replay {
            actions: self.state().actions.clone(),
            next: 0,
            files: since.files.clone(),
            writes: Vec::new(),
            names: since.names.clone(),
            renames: Vec::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State<M>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Steps through what happened to a disk.
pub struct Replay<M> {
    actions: Vec<Action<M>>,
    next: usize,
    /// What is durable.
    files: Vec<Vec<u8>>,
    names: Names,
    /// What is not.
    writes: Vec<Write>,
    renames: Vec<Renamed>,
}

/// What happens to the writes that were not synced.
#[derive(Clone, Copy)]
enum Fate {
    Kept,
    Dropped,
    /// Each as a whole.
    Picked,
    /// Each in sectors of this length.
    Torn(usize),
}

impl<M: Clone + Send + 'static> Replay<M> {
    /// Does the next action; `None` at the end.
    pub fn step(&mut self) -> Option<Action<M>> {
        let action = self.actions.get(self.next)?.clone();
        self.next += 1;
        match action.clone() {
            Action::Write(write) => self.writes.push(write),
            Action::Sync(synced) => {
                let (durable, still): (Vec<_>, Vec<_>) =
                    self.writes.drain(..).partition(|write| write.inode == synced);
                self.writes = still;
                for Write { inode, offset, bytes } in durable {
                    put(&mut self.files, inode, offset, &bytes);
                }
            }
            Action::Through => {
                let through = self.writes.pop().expect("a write");
                // What the cache had of these blocks is written before them.
                self.writes =
                    self.writes.drain(..).flat_map(|write| write.outside(&through)).collect();
                put(&mut self.files, through.inode, through.offset, &through.bytes);
            }
            Action::Names(names) => self.renames.push(names),
            Action::SyncNames => {
                self.renames.drain(..).for_each(|renamed| rename(&mut self.names, &renamed));
            }
            Action::Mark(_) => {}
        }
        Some(action)
    }

    /// One of the disks that a power failure at this moment may leave.
    pub fn after_power_failure(&self, random: &mut Rng) -> Disk<M> {
        let fate = match random.u8(..8) {
            0 => Fate::Kept,
            1 => Fate::Dropped,
            2 | 3 => Fate::Picked,
            4 | 5 => Fate::Torn(4_096),
            _ => Fate::Torn(512),
        };
        let mut files = self.files.clone();
        for Write { inode, offset, bytes } in &self.writes {
            match fate {
                Fate::Kept => put(&mut files, *inode, *offset, bytes),
                Fate::Dropped => {}
                Fate::Picked if random.bool() => put(&mut files, *inode, *offset, bytes),
                Fate::Picked => {}
                Fate::Torn(sector) => {
                    let mut at = 0;
                    while at < bytes.len() {
                        let next = sector - (*offset as usize + at) % sector;
                        let end = (at + next).min(bytes.len());
                        if random.bool() {
                            put(&mut files, *inode, *offset + at as u64, &bytes[at..end]);
                        }
                        at = end;
                    }
                }
            }
        }
        let in_order = random.bool().then(|| random.usize(..=self.renames.len()));
        let mut names = self.names.clone();
        for (at, renamed) in self.renames.iter().enumerate() {
            let is_kept = match (fate, in_order) {
                (Fate::Kept, _) => true,
                (Fate::Dropped, _) => false,
                (_, Some(first)) => at < first,
                (_, None) => random.bool(),
            };
            if is_kept {
                rename(&mut names, renamed);
            }
        }
        let inodes = names.values().max().map_or(0, |inode| inode + 1);
        files.resize(files.len().max(inodes), Vec::new());
        Disk::with(files, names)
    }
}

fn rename(names: &mut Names, renamed: &Renamed) {
    for (name, inode) in renamed {
        match inode {
            Some(inode) => names.insert(name.clone(), *inode),
            None => names.remove(name),
        };
    }
}

fn put(files: &mut Vec<Vec<u8>>, inode: Inode, offset: u64, bytes: &[u8]) {
    files.resize(files.len().max(inode + 1), Vec::new());
    let (file, offset) = (&mut files[inode], offset as usize);
    file.resize(file.len().max(offset + bytes.len()), 0);
    file[offset..offset + bytes.len()].copy_from_slice(bytes);
}

impl<M: Clone + Send + 'static> Folder for Disk<M> {
    fn open(&self, name: &str, create: bool) -> io::Result<Option<Box<dyn Medium>>> {
        let mut state = self.state();
        let inode = match state.names.get(name) {
            Some(&inode) => inode,
            None if create => {
                let inode = state.files.len();
                state.files.push(Vec::new());
                state.rename(vec![(name.to_owned(), Some(inode))]);
                inode
            }
            None => return Ok(None),
        };
        Ok(Some(Box::new(File { disk: self.clone(), inode })))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        let inode = *state.names.get(from).ok_or(io::ErrorKind::NotFound)?;
        state.rename(vec![(from.to_owned(), None), (to.to_owned(), Some(inode))]);
        Ok(())
    }

    fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        let state = self.state();
        Ok(state.names.get(name).map(|&inode| state.files[inode].clone()))
    }

    fn write_new(&self, name: &str, bytes: &[u8], _like: &str) -> io::Result<()> {
        if self.state().names.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let file = self.open(name, true)?.ok_or(io::ErrorKind::NotFound)?;
        file.write_at(bytes, 0)?;
        file.sync_data()
    }

    fn stamp(&self, name: &str) -> io::Result<Option<Stamp>> {
        let state = self.state();
        Ok(state.names.get(name).map(|&inode| {
            let bytes = &state.files[inode];
            let modified = (XxHash3_64::oneshot(bytes) as i64, 0);
            Stamp { len: bytes.len() as u64, modified, inode: (0, inode as u64) }
        }))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.state().rename(vec![(name.to_owned(), None)]);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.refuse_sync()?;
        state.actions.push(Action::SyncNames);
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        name.into()
    }
}

impl<M> State<M> {
    fn write(&mut self, inode: Inode, bytes: &[u8], offset: u64) -> io::Result<()> {
        let len = self.files[inode].len() as u64;
        let more = (offset + bytes.len() as u64).saturating_sub(len);
        if more > self.room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.room -= more;
        put(&mut self.files, inode, offset, bytes);
        self.actions.push(Action::Write(Write { inode, offset, bytes: bytes.to_vec() }));
        Ok(())
    }

    fn rename(&mut self, renamed: Renamed) {
        rename(&mut self.names, &renamed);
        self.actions.push(Action::Names(renamed));
    }

    fn refuse_sync(&self) -> io::Result<()> {
        match self.fails_syncs {
            true => Err(io::Error::other("a sync fails by plan")),
            false => Ok(()),
        }
    }
}

struct File<M> {
    disk: Disk<M>,
    inode: Inode,
}

impl<M: Clone + Send + 'static> Medium for File<M> {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let state = self.disk.state();
        let rest = state.files[self.inode].get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(bytes.len());
        bytes[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.disk.state().write(self.inode, bytes, offset)
    }

    fn write_through(&self, blocks: &[u8], offset: u64) -> io::Result<()> {
        let is_aligned = |number: usize| number.is_multiple_of(BLOCK_LEN);
        assert!(
            [blocks.as_ptr() as usize, blocks.len(), offset as usize].into_iter().all(is_aligned)
        );
        let mut state = self.disk.state();
        state.write(self.inode, blocks, offset)?;
        state.refuse_sync()?;
        state.actions.push(Action::Through);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.disk.state();
        state.refuse_sync()?;
        state.actions.push(Action::Sync(self.inode));
        Ok(())
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.state().files[self.inode].len() as u64)
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        let now = self.len()?;
        self.write_at(&vec![0; len.saturating_sub(now) as usize], now)?;
        self.sync_data()
    }
}
