//! Sorted runs of entries outside the working memory, and their merge.
//!
//! The place itself comes from outside, since this crate does no input or output.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::error::{Error, Result};
use crate::page::Entry;
use crate::varint;

/// Bytes that can be appended and read back; gone when dropped.
pub trait Scratch {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// How many bytes have been appended.
    fn len(&self) -> u64;

    /// Whether nothing has been appended.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads exactly `buffer.len()` bytes at an offset.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()>;
}

/// A scratch in memory, for small values and for stores that are in memory anyway.
#[derive(Default)]
pub struct MemoryScratch(Vec<u8>);

impl Scratch for MemoryScratch {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let start = offset as usize;
        let part = self.0.get(start..start + buffer.len());
        buffer.copy_from_slice(part.ok_or_else(|| Error::io("scratch ends too early"))?);
        Ok(())
    }
}

const BUFFER_LEN: usize = 128 << 10;

/// Writes one sorted run.
pub struct RunWriter<'a> {
    scratch: &'a mut dyn Scratch,
    buffer: Vec<u8>,
}

impl<'a> RunWriter<'a> {
    /// Starts a run at the end of the scratch.
    pub fn new(scratch: &'a mut dyn Scratch) -> Self {
        RunWriter { scratch, buffer: Vec::with_capacity(BUFFER_LEN + 4096) }
    }

    /// Adds an entry; keys must ascend.
    pub fn push(&mut self, entry: Entry<'_>) -> Result<()> {
        varint::write_bytes(entry.key, &mut self.buffer);
        varint::write_bytes(entry.value, &mut self.buffer);
        if self.buffer.len() >= BUFFER_LEN {
            self.scratch.append(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }

    /// Ends the run and returns the offset of its end.
    pub fn finish(self) -> Result<u64> {
        self.scratch.append(&self.buffer)?;
        Ok(self.scratch.len())
    }
}

/// One run as it is read: a window of it.
struct Reader {
    offset: u64,
    end: u64,
    window: Vec<u8>,
    at: usize,
    key: (usize, usize),
    value: (usize, usize),
}

impl Reader {
    /// Moves to the next entry; false at the end.
    fn advance(&mut self, scratch: &mut dyn Scratch) -> Result<bool> {
        loop {
            let mut at = self.at;
            let mut part = || {
                varint::read_bytes(&self.window, &mut at).map(<[u8]>::len).map(|len| (at - len, at))
            };
            if let Some(key) = part()
                && let Some(value) = part()
            {
                (self.key, self.value, self.at) = (key, value, at);
                return Ok(true);
            }
            if self.offset == self.end {
                return match self.at == self.window.len() {
                    true => Ok(false),
                    false => Err(Error::corrupted("scratch holds half an entry")),
                };
            }
            self.window.drain(..self.at);
            self.at = 0;
            let old = self.window.len();
            let more = (self.end - self.offset).min(BUFFER_LEN.max(old) as u64) as usize;
            self.window.resize(old + more, 0);
            scratch.read_at(self.offset, &mut self.window[old..])?;
            self.offset += more as u64;
        }
    }

    fn key(&self) -> &[u8] {
        &self.window[self.key.0..self.key.1]
    }
}

/// The entries of several sorted runs in one order.
pub struct Merge<'a> {
    scratch: &'a mut dyn Scratch,
    readers: Vec<Reader>,
    heap: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    current: Option<usize>,
}

impl<'a> Merge<'a> {
    /// Merges the runs that end at the given offsets, the first of which starts at 0.
    pub fn new(scratch: &'a mut dyn Scratch, ends: &[u64]) -> Result<Merge<'a>> {
        let mut start = 0;
        let mut merge =
            Merge { scratch, readers: Vec::new(), heap: BinaryHeap::new(), current: None };
        for (index, &end) in ends.iter().enumerate() {
            let reader = Reader {
                offset: start,
                end,
                window: Vec::new(),
                at: 0,
                key: (0, 0),
                value: (0, 0),
            };
            merge.readers.push(reader);
            start = end;
            merge.refill(index, Vec::new())?;
        }
        Ok(merge)
    }

    fn refill(&mut self, index: usize, mut buffer: Vec<u8>) -> Result<()> {
        if self.readers[index].advance(self.scratch)? {
            buffer.clear();
            buffer.extend_from_slice(self.readers[index].key());
            self.heap.push(Reverse((buffer, index)));
        }
        Ok(())
    }

    /// The next entry; of equal keys, that of the earlier run first.
    #[expect(clippy::should_implement_trait, reason = "an entry borrows from the merge")]
    pub fn next(&mut self) -> Result<Option<Entry<'_>>> {
        if let Some(index) = self.current.take() {
            self.refill(index, Vec::new())?;
        }
        let Some(Reverse((_, index))) = self.heap.pop() else { return Ok(None) };
        self.current = Some(index);
        let reader = &self.readers[index];
        let value = &reader.window[reader.value.0..reader.value.1];
        Ok(Some(Entry { key: reader.key(), id: 0, value }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_come_out_merged() {
        let mut scratch = MemoryScratch::default();
        let mut ends = Vec::new();
        for run in 0..5u32 {
            let mut writer = RunWriter::new(&mut scratch);
            for i in 0..20_000u32 {
                let key = (i * 5 + run).to_be_bytes();
                writer.push(Entry { key: &key, id: 0, value: &key }).unwrap();
            }
            ends.push(writer.finish().unwrap());
        }
        let mut merge = Merge::new(&mut scratch, &ends).unwrap();
        for i in 0..100_000u32 {
            let entry = merge.next().unwrap().expect("there are more");
            assert_eq!((entry.key, entry.value), (&i.to_be_bytes()[..], &i.to_be_bytes()[..]));
        }
        assert_eq!(merge.next().unwrap(), None);
    }
}
