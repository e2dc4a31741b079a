//! Opening after a crash: what is whole is read, a torn tail is cut, and damage is told from it.
//!
//! A power failure may take any part of what was not synced. So where the records stop, every later
//! record is asked what was known to be synced when it was written: if that lies above the stop,
//! synced bytes are gone, which no power failure does.

use spinney_core::{Error, Result};

use super::follow::{Followed, Start, continues};
use super::record::{self, ALIGNMENT, HEADER_LEN, Record, decode, is_header};
use super::{Checkpointed, Each, Journal, Position};

/// What recovery has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Behind the last whole record, where appending goes on.
    pub end: Position,
    /// Where a torn tail began that was cut.
    pub cut: Option<Position>,
}

/// What a file of the journal holds, before anything is known of a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The newest generation with a whole record in the file.
    pub generation: u64,
    /// What its first record says that it follows; `None` when that record is not whole.
    pub before: Option<Checkpointed>,
}

/// A generation's file, read as far as its records are whole.
struct Scan {
    generation: u64,
    bytes: Vec<u8>,
    /// Behind the last whole record, and the checksum of that record.
    end: u64,
    checksum: u64,
    /// Whether a record of this generation begins at the end or behind it, whole or not.
    is_torn: bool,
    /// The highest offset that a record of this generation, wherever it lies, knew to be synced.
    synced: u64,
}

impl Journal {
    /// Reads everything behind the checkpoint and leaves the end behind it. Nobody else may append.
    ///
    /// # Errors
    /// `Corrupted`, naming file and offset, when records are gone that were synced; `Io`; those of
    /// `each`.
    pub fn recover(
        &mut self,
        checkpointed: Checkpointed,
        each: &mut Each<'_>,
    ) -> Result<Recovered> {
        let mut first = self.scan(checkpointed.generation + 1, Some(checkpointed.checksum))?;
        let second = self.scan(checkpointed.generation + 2, None)?;
        let start = second.record_at(0).and_then(Start::of);
        let mut is_second_whole = false;
        match start {
            // An unpublished record may lie behind the end that its successor knew.
            Some(start) if first.cut_to(start) => is_second_whole = true,
            Some(_) if second.synced > 0 => return Err(self.damaged(&first)),
            Some(_) => {}
            None if second.synced > 0 => return Err(self.damaged(&second)),
            None => {}
        }
        for scan in [&first, &second] {
            if scan.synced > scan.end {
                return Err(self.damaged(scan));
            }
        }

        let mut cut = (first.is_torn && !is_second_whole).then_some(first.end_position());
        self.restart(checkpointed);
        self.take(&first, each)?;
        if is_second_whole {
            self.restart(self.checkpoint());
            self.take(&second, each)?;
            cut = second.is_torn.then_some(second.end_position());
        } else if start.is_some() {
            cut = Some(first.end_position());
        }
        if let Some(cut) = cut {
            let path = self.segments.path(cut.generation);
            log::warn!(
                "`{}`: a torn tail, never synced, is cut at byte {}",
                path.display(),
                cut.offset
            );
        }
        Ok(Recovered { end: self.end, cut })
    }

    /// Looks into both files, for an owner that keeps with its checkpoint no generation but in the
    /// journal what its checkpoints are; the older generation first.
    ///
    /// # Errors
    /// `Io`.
    pub fn found(&self) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        for slot in [0, 1] {
            let bytes = self.segments.read(slot, 0, self.segments.file_len(slot)?)?;
            let whole_at = |at: usize| {
                let rest = &bytes[at..];
                decode(rest, record::generation(rest)?, at as u64)
            };
            let places = (0..bytes.len()).step_by(ALIGNMENT);
            let first = whole_at(0).filter(|record| record.is_start);
            let generation = match first {
                Some(record) => Some(record.place.generation),
                None => places.filter_map(whole_at).map(|record| record.place.generation).max(),
            };
            let before = first.map(|record| Checkpointed {
                generation: record.place.generation - 1,
                checksum: record.place.previous,
            });
            found.extend(generation.map(|generation| Found { generation, before }));
        }
        found.sort_by_key(|found| found.generation);
        Ok(found)
    }

    fn take(&mut self, scan: &Scan, each: &mut Each<'_>) -> Result<()> {
        match self.read_on(&scan.bytes, scan.end_position(), each)? {
            Followed::Reached => Ok(()),
            Followed::Gone => Err(self.damaged(scan)),
        }
    }

    /// Reads a generation behind a record of this checksum, or behind whatever it says itself.
    fn scan(&self, generation: u64, previous: Option<u64>) -> Result<Scan> {
        let len = self.segments.file_len(generation)?;
        let bytes = self.segments.read(generation, 0, len)?;
        let mut scan = Scan { generation, bytes, end: 0, checksum: 0, is_torn: false, synced: 0 };
        let said = scan.record_at(0).map(|record| record.place.previous);
        scan.checksum = previous.or(said).unwrap_or_default();
        let mut capacity = 0;
        while let Some(record) = scan.record_at(scan.end) {
            if !continues(&record, scan.end, scan.checksum) {
                break;
            }
            let (place, len, checksum) = (record.place, record.len as u64, record.checksum);
            capacity = capacity.max(place.capacity);
            scan.synced = scan.synced.max(place.synced);
            (scan.end, scan.checksum) = (scan.end + len, checksum);
        }
        scan.look_ahead();
        // A file is as long as its records say before the first of them is written.
        let is_cut_short =
            len < self.segments.first_len() && scan.bytes.iter().any(|&byte| byte != 0);
        if len < capacity || is_cut_short {
            return Err(Error::corrupted(format!(
                "`{}` is truncated at byte {len}; restore a backup",
                self.segments.path(generation).display()
            )));
        }
        if let Some(newer) = self.newer_than(&scan) {
            return Err(Error::corrupted(format!(
                "`{}` has generation {newer}, at most {} can follow the checkpoint: they are not of \
                 one time; restore a backup",
                self.segments.path(generation).display(),
                scan.generation
            )));
        }
        Ok(scan)
    }

    fn newer_than(&self, scan: &Scan) -> Option<u64> {
        let generation = record::generation(&scan.bytes)?;
        let is_newer = generation > scan.generation;
        (is_newer && decode(&scan.bytes, generation, 0).is_some()).then_some(generation)
    }

    fn damaged(&self, scan: &Scan) -> Error {
        Error::corrupted(format!(
            "`{}` is damaged at byte {}: what follows was synced; restore a backup",
            self.segments.path(scan.generation).display(),
            scan.end
        ))
    }
}

impl Scan {
    fn record_at(&self, offset: u64) -> Option<Record<'_>> {
        decode(self.bytes.get(offset as usize..)?, self.generation, offset)
    }

    fn end_position(&self) -> Position {
        Position { generation: self.generation, offset: self.end }
    }

    /// Looks behind the end for records of the generation.
    fn look_ahead(&mut self) {
        let mut at = self.end as usize;
        while at + HEADER_LEN <= self.bytes.len() {
            let rest = &self.bytes[at..];
            if is_header(rest, self.generation) {
                let record = decode(rest, self.generation, at as u64);
                self.is_torn |= record.is_some() || at as u64 == self.end;
                self.synced = self.synced.max(record.map_or(0, |record| record.place.synced));
            }
            at += ALIGNMENT;
        }
    }

    /// Ends the scan where the next generation says that this one ends, if it gets there.
    fn cut_to(&mut self, start: Start<'_>) -> bool {
        let (mut end, mut checksum) = (0, 0);
        while end < start.previous_end.min(self.end) {
            let Some(record) = self.record_at(end) else { return false };
            (end, checksum) = (end + record.len as u64, record.checksum);
        }
        let is_whole = end == start.previous_end && checksum == start.previous && end > 0;
        if is_whole {
            (self.end, self.checksum) = (end, checksum);
        }
        is_whole
    }
}
