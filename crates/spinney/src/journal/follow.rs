//! Reading on, behind a process that appends.

use spinney_core::Result;

use super::record::{Record, decode, u64_at};
use super::{Checkpointed, Each, Event, Journal, Position};

/// What became of reading on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Followed {
    /// Everything up to the position has been read.
    Reached,
    /// The records on the way are not there any more: their generation has been checkpointed and its
    /// file used again, or they are damaged. What was read before stands.
    Gone,
}

impl Journal {
    /// Reads the records between the end and a position that their writer has published, and moves
    /// the end there. Nothing may be buffered.
    ///
    /// # Errors
    /// `Io`, and those of `each`.
    pub fn follow(&mut self, published: Position, each: &mut Each<'_>) -> Result<Followed> {
        debug_assert!(self.buffer.is_empty());
        if published.generation == self.end.generation {
            let bytes =
                self.segments.read(published.generation, self.end.offset, published.offset)?;
            return self.read_on(&bytes, published, each);
        }
        if published.generation != self.end.generation + 1 {
            return Ok(Followed::Gone);
        }
        let next = self.segments.read(published.generation, 0, published.offset)?;
        let Some(start) = decode(&next, published.generation, 0).and_then(Start::of) else {
            return Ok(Followed::Gone);
        };
        if start.previous_end < self.end.offset {
            return Ok(Followed::Gone);
        }
        let before = Position { offset: start.previous_end, ..self.end };
        let bytes = self.segments.read(before.generation, self.end.offset, before.offset)?;
        if self.read_on(&bytes, before, each)? == Followed::Gone || self.checksum != start.previous
        {
            return Ok(Followed::Gone);
        }
        self.restart(self.checkpoint());
        self.read_on(&next, published, each)
    }

    /// Takes the records of `bytes`, which lie at the end and must reach to `target`.
    pub(super) fn read_on(
        &mut self,
        bytes: &[u8],
        target: Position,
        each: &mut Each<'_>,
    ) -> Result<Followed> {
        let mut at = 0;
        while self.end < target {
            let Some(record) = decode(&bytes[at..], self.end.generation, self.end.offset)
                .filter(|record| self.continues(record))
            else {
                return Ok(Followed::Gone);
            };
            each(event(&record))?;
            at += record.len;
            self.end.offset += record.len as u64;
            self.checksum = record.checksum;
        }
        Ok(Followed::Reached)
    }

    fn continues(&self, record: &Record<'_>) -> bool {
        continues(record, self.end.offset, self.checksum)
    }
}

/// Whether a record belongs behind the one with this checksum.
pub fn continues(record: &Record<'_>, offset: u64, checksum: u64) -> bool {
    record.is_start == (offset == 0) && record.place.previous == checksum
}

fn event<'b>(record: &Record<'b>) -> Event<'b> {
    match Start::of(*record) {
        Some(start) => {
            let generation = record.place.generation;
            let before = Checkpointed { generation: generation - 1, checksum: start.previous };
            Event::Start { generation, before, note: start.note }
        }
        None => Event::Entry(record.entry),
    }
}

/// What the first record of a generation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start<'b> {
    /// The checksum of the last record of the generation before.
    pub previous: u64,
    /// Where that generation ended; 0 when it is in the checkpoint.
    pub previous_end: u64,
    pub note: &'b [u8],
}

impl<'b> Start<'b> {
    pub fn of(record: Record<'b>) -> Option<Start<'b>> {
        if !record.is_start || record.entry.body.len() < 8 {
            return None;
        }
        let (previous_end, note) = record.entry.body.split_at(8);
        let previous_end = u64_at(previous_end, 0);
        Some(Start { previous: record.place.previous, previous_end, note })
    }
}
