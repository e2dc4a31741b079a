//! Writing past the system's cache: what is buffered becomes durable in one step, a fifth faster than by a
//! write and a sync (decision 38).
//!
//! Whole blocks are written, so a write begins with what the first block has before the records, which
//! is durable already, and ends with zeros. Nobody else may write until it has landed.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use spinney_core::Result;

use super::medium::BLOCK_LEN;
use super::{Journal, Position, Segments};

/// Records as whole blocks, in memory that is aligned to blocks.
#[derive(Default)]
pub struct Blocks {
    bytes: Vec<u8>,
    /// Where the blocks begin in `bytes`, and how long they are.
    start: usize,
    len: usize,
    /// Where they begin in the journal.
    at: Position,
    /// Behind the last record in them.
    end: Position,
}

impl Blocks {
    /// Fills the blocks with records that begin at `from`, behind `head`, which goes from the beginning
    /// of a block to there.
    fn fill(&mut self, from: Position, head: &[u8], records: &[u8]) {
        let len = (head.len() + records.len()).next_multiple_of(BLOCK_LEN);
        self.bytes.clear();
        self.bytes.resize(len + BLOCK_LEN, 0);
        self.start = self.bytes.as_ptr().align_offset(BLOCK_LEN);
        self.len = len;
        self.at = Position { offset: from.offset - head.len() as u64, ..from };
        self.end = Position { offset: from.offset + records.len() as u64, ..from };
        let blocks = &mut self.bytes[self.start..];
        blocks[..head.len()].copy_from_slice(head);
        blocks[head.len()..head.len() + records.len()].copy_from_slice(records);
    }

    /// Forgets where they are; the memory is used again.
    pub(super) fn clear(&mut self) {
        self.end = Position::default();
    }

    fn blocks(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    /// What the block that `end` lies in has before it, when these blocks end there.
    fn head_of(&self, end: Position) -> Option<Vec<u8>> {
        if self.end != end {
            return None;
        }
        let upto = (end.offset - self.at.offset) as usize;
        Some(self.blocks()[upto - head_len(end)..upto].to_vec())
    }
}

fn head_len(position: Position) -> usize {
    position.offset as usize % BLOCK_LEN
}

impl Journal {
    /// Lends what is buffered, to be written while others append; `None` when nothing is. What is before
    /// it must be durable.
    ///
    /// # Errors
    /// `Io`; nothing has changed then.
    fn lend(&mut self) -> Result<Option<Blocks>> {
        assert!(!self.is_lent(), "a write past the cache is under way");
        if self.buffer.is_empty() {
            return Ok(None);
        }
        let from = self.written();
        let mut blocks = std::mem::take(&mut self.landed);
        let head = match blocks.head_of(from) {
            Some(head) => head,
            None => {
                let begin = from.offset - head_len(from) as u64;
                self.segments.read(from.generation, begin, from.offset)?
            }
        };
        blocks.fill(from, &head, &self.buffer);
        self.lent_len = self.buffer.len();
        Ok(Some(blocks))
    }

    /// Takes back what was lent. Whether it is in the journal now: not when the write has failed, nor when
    /// the journal was restarted meanwhile.
    fn land(&mut self, blocks: Blocks, is_written: bool) -> bool {
        let lent_len = std::mem::take(&mut self.lent_len);
        if is_written && lent_len > 0 {
            self.buffer.drain(..lent_len);
            self.landed = blocks;
        }
        is_written && lent_len > 0
    }

    /// Whether some of what is buffered is being written past the cache.
    pub(super) fn is_lent(&self) -> bool {
        self.lent_len > 0
    }
}

/// Where those who would write a journal wait until what is lent of it has landed.
#[derive(Default)]
pub struct Landing(Condvar);

/// What has the journal under a lock.
pub trait Holder {
    /// The journal.
    fn journal(&mut self) -> &mut Journal;
}

impl Landing {
    /// Locks the journal when nothing of it is lent, so that it may be written.
    pub fn lock<'h, H: Holder>(&self, holder: &'h Mutex<H>) -> MutexGuard<'h, H> {
        let held = holder.lock().unwrap_or_else(PoisonError::into_inner);
        let settled = self.0.wait_while(held, |held| held.journal().is_lent());
        settled.unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes durable what is behind a position before which everything is; returns up to where.
    ///
    /// # Errors
    /// `Io`. What is buffered may then be written in part.
    pub fn sync_behind<'h, H: Holder>(
        &self,
        segments: &Segments,
        holder: &'h Mutex<H>,
        mut held: MutexGuard<'h, H>,
        synced: Position,
    ) -> Result<Position> {
        let journal = held.journal();
        if journal.written() <= synced {
            let (mut held, _) = self.write_through(segments, holder, held)?;
            return Ok(held.journal().written());
        }
        journal.write()?;
        let written = journal.written();
        drop(held);
        segments.sync_between(synced, written)?;
        Ok(written)
    }

    /// Writes what is buffered and makes it durable, while others append. Everything before it must be
    /// durable. Returns with the journal locked again, and whether something was written that is still in
    /// it: not when it was restarted meanwhile.
    ///
    /// # Errors
    /// `Io`. What is buffered may then be written in part.
    pub fn write_through<'h, H: Holder>(
        &self,
        segments: &Segments,
        holder: &'h Mutex<H>,
        mut held: MutexGuard<'h, H>,
    ) -> Result<(MutexGuard<'h, H>, bool)> {
        let Some(blocks) = held.journal().lend()? else { return Ok((held, false)) };
        drop(held);
        let written =
            segments.write_through(blocks.at.generation, blocks.blocks(), blocks.at.offset);
        let mut held = holder.lock().unwrap_or_else(PoisonError::into_inner);
        let is_written = held.journal().land(blocks, written.is_ok());
        self.0.notify_all();
        written.map(|()| (held, is_written))
    }
}
