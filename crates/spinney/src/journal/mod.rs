//! A journal: commits appended to preallocated files, so that one sync makes them durable.
//!
//! It stands in front of a store that is slow to write (the checkpoint) and holds what that one
//! lacks. Bodies are opaque; it must not know trees, engines or locks between processes. The bytes
//! are specified in `docs/format.md`.
//!
//! Records belong to a **generation**, a run of records that one checkpoint takes over as a whole.
//! Generations take turns in two files, so a generation may begin when the one before the last is
//! in the checkpoint: at most two are live. With a checkpoint the owner stores, atomically, which
//! generation it is of ([`Checkpointed`]), and gives that to [`Journal::recover`].
//!
//! - [`Journal::append`] adds a record to a buffer, [`Journal::write`] hands it to the system: then
//!   it survives the end of the process. [`Group::sync`] makes it durable, for all who wait at once.
//!   [`Landing::write_through`] does both in one step.
//! - [`Journal::start`] begins the next generation; the owner checkpoints the one before.
//! - [`Journal::follow`] reads what another process has written, up to a position that it has
//!   published.

mod ends;
mod failure;
mod follow;
pub mod group;
pub mod medium;
mod record;
mod recover;
pub mod segments;
#[cfg(test)]
pub mod simulated;
#[cfg(test)]
mod tests;
mod through;

use std::sync::Arc;

use spinney_core::{Error, Result};

pub use ends::Ends;
pub use failure::Failure;
pub use follow::Followed;
pub use group::Group;
pub use record::Entry;
use record::{Place, START, encode, record_len};
pub use recover::{Found, Recovered};
pub use segments::{Segments, Sizes};
use through::Blocks;
pub use through::{Holder, Landing};

/// A place between two records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Numbers the runs of records, from 1.
    pub generation: u64,
    /// Bytes of the generation before it.
    pub offset: u64,
}

/// Bits of a packed position for the offset, in units of eight bytes.
const OFFSET_BITS: u32 = 28;

/// A generation never grows to this length, 2 GiB.
pub const GENERATION_LEN_MAX: u64 = 8 << OFFSET_BITS;

impl Position {
    /// The position as one number, in the same order.
    pub fn pack(self) -> u64 {
        self.generation << OFFSET_BITS | self.offset >> 3
    }

    /// The position that a number stands for.
    pub fn unpack(packed: u64) -> Position {
        let offset = (packed & ((1 << OFFSET_BITS) - 1)) << 3;
        Position { generation: packed >> OFFSET_BITS, offset }
    }
}

/// Up to where the checkpoint goes: to the end of a generation.
///
/// The checksum tells that end from another one of the same generation, which a power failure or
/// the end of a process took back and which may have had a successor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpointed {
    /// The generation; 0 before the first.
    pub generation: u64,
    /// Of its last record; 0 when it has none.
    pub checksum: u64,
}

impl Checkpointed {
    /// A checkpoint of everything in and before a generation, be it written or not, and of what never
    /// was in the journal: it takes the place of the next generation.
    pub fn beyond(generation: u64) -> Checkpointed {
        Checkpointed { generation: generation + 1, checksum: 0 }
    }
}

/// What is read from a journal, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'b> {
    /// A generation begins.
    Start {
        /// Its number.
        generation: u64,
        /// Up to where a checkpoint goes that has everything before it.
        before: Checkpointed,
        /// What its owner gave to [`Journal::start`].
        note: &'b [u8],
    },
    /// A record.
    Entry(Entry<'b>),
}

/// What a journal calls with each event; its error ends the reading.
pub type Each<'e> = dyn FnMut(Event<'_>) -> Result<()> + 'e;

/// The end of a journal, where records are appended, and what was appended and is not yet written.
pub struct Journal {
    segments: Arc<Segments>,
    /// Behind the last record that was appended or read.
    end: Position,
    /// The checksum of that record.
    checksum: u64,
    /// The records before `end` that are not written.
    buffer: Vec<u8>,
    /// How many bytes of them are being written past the cache.
    lent_len: usize,
    /// What was last written so.
    landed: Blocks,
}

impl Journal {
    /// A journal that has read nothing; [`Journal::recover`] or [`Journal::restart`] comes next.
    pub fn new(segments: Segments) -> Journal {
        Journal {
            segments: Arc::new(segments),
            end: Position::default(),
            checksum: 0,
            buffer: Vec::new(),
            lent_len: 0,
            landed: Blocks::default(),
        }
    }

    /// The files, to sync them beside whoever appends.
    pub fn segments(&self) -> &Arc<Segments> {
        &self.segments
    }

    /// Behind the last record that was appended or read.
    pub fn end(&self) -> Position {
        self.end
    }

    /// Behind the last record that is written.
    pub fn written(&self) -> Position {
        Position { offset: self.end.offset - self.buffer.len() as u64, ..self.end }
    }

    /// Bytes that were appended and are not written.
    pub fn buffered_len(&self) -> usize {
        self.buffer.len()
    }

    /// Up to where a checkpoint goes that has all records before the end.
    pub fn checkpoint(&self) -> Checkpointed {
        Checkpointed { generation: self.end.generation, checksum: self.checksum }
    }

    /// Goes to the beginning of the generation behind a checkpoint, and forgets what is buffered.
    pub fn restart(&mut self, checkpointed: Checkpointed) {
        self.buffer.clear();
        self.lent_len = 0;
        self.landed.clear();
        self.end = Position { generation: checkpointed.generation + 1, offset: 0 };
        self.checksum = checkpointed.checksum;
    }

    /// Begins the next generation, with a note that comes back in [`Event::Start`]; at the beginning
    /// of a generation, begins that one. Without it the first record does so, with an empty note.
    ///
    /// # Errors
    /// `Io` when there is no room; nothing has changed then but that the buffer may be written.
    pub fn start(&mut self, note: &[u8]) -> Result<()> {
        self.write()?;
        let Position { generation, offset: previous_end } = self.end;
        let generation = if previous_end > 0 { generation + 1 } else { generation };
        let body = [&previous_end.to_le_bytes(), note].concat();
        let capacity = self.segments.reserve(generation, record_len(body.len()) as u64)?;
        self.end = Position { generation, offset: 0 };
        let place = Place { generation, offset: 0, previous: self.checksum, synced: 0, capacity };
        // What a crash has left of another generation of this number must not follow this one.
        let commit_id = fastrand::u128(..);
        self.push(&place, START, &Entry { revision: 0, commit_id, body: &body });
        Ok(())
    }

    /// Makes sure that there is room for a record with a body of so many bytes; returns the length
    /// of the file.
    ///
    /// # Errors
    /// As [`Journal::append`].
    pub fn reserve(&mut self, body_len: usize) -> Result<u64> {
        let len = record_len(body_len) as u64;
        if self.end.offset + len >= GENERATION_LEN_MAX {
            return Err(Error::limit_exceeded(format!(
                "a journal of more than {GENERATION_LEN_MAX} bytes; checkpoint it first"
            )));
        }
        if self.end.offset == 0 {
            self.start(&[])?;
        }
        self.segments.reserve(self.end.generation, self.end.offset + len)
    }

    /// Adds a record to the buffer; `synced` is a position known to be synced.
    ///
    /// # Errors
    /// `Io` when there is no room, `LimitExceeded` beyond 2 GiB; nothing has changed then.
    pub fn append(&mut self, entry: &Entry<'_>, synced: Position) -> Result<()> {
        let capacity = self.reserve(entry.body.len())?;
        let Position { generation, offset } = self.end;
        let synced = if synced.generation == generation { synced.offset } else { 0 };
        let place = Place { generation, offset, previous: self.checksum, synced, capacity };
        self.push(&place, 0, entry);
        Ok(())
    }

    fn push(&mut self, place: &Place, flags: u32, entry: &Entry<'_>) {
        let before = self.buffer.len();
        self.checksum = encode(place, flags, entry, &mut self.buffer);
        self.end.offset += (self.buffer.len() - before) as u64;
    }

    /// Hands what is buffered to the system, where it survives the end of this process.
    ///
    /// # Errors
    /// `Io`. What is buffered may then be written in part; [`Journal::restart`] and read again.
    pub fn write(&mut self) -> Result<()> {
        assert!(!self.is_lent(), "a write past the cache is under way");
        if !self.buffer.is_empty() {
            let Position { generation, offset } = self.written();
            self.segments.write(generation, &self.buffer, offset)?;
            self.buffer.clear();
        }
        Ok(())
    }
}
