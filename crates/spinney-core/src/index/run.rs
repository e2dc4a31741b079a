//! One run of an index: gone through once, and written anew where entries change.
//!
//! A run holds `shared varint | rest len varint | rest | content len varint | content` for each entry:
//! its key begins with as many bytes of the one before as are shared.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::{Bound, Range};

use crate::backend::{Direction, RecordKey, Snapshot};
use crate::error::{Error, Result};
use crate::layout::PREFIX_LEN;
use crate::page::common_prefix_len;
use crate::record::{SEAL_LEN, damaged, seal, unseal};
use crate::varint;

use super::Derived;

/// Bytes of entries above which a run is cut into equal ones.
const RUN_LEN_MAX: usize = 256;

/// A run that is being changed.
pub(super) struct Run<'s> {
    /// The engine key.
    key: RecordKey,
    stored: Cow<'s, [u8]>,
    is_stored: bool,
    cursor: Cursor,
    /// The first key of the next run, once it is known; `None` when there is none.
    end: Option<Option<RecordKey>>,
    /// What is written of the new run; stored entries from `copied` on are still to be copied.
    written: Vec<u8>,
    copied: usize,
    /// The last key that was written, unless it is the one that the cursor has passed last.
    last: Vec<u8>,
    is_other_last: bool,
    is_changed: bool,
    /// Whether the next entry is that of the key that was sought.
    is_there: bool,
    content: Vec<u8>,
}

/// A place between two entries of a run.
#[derive(Default)]
struct Cursor {
    /// The key that was passed last.
    key: Vec<u8>,
    next: Option<Place>,
}

/// Where an entry lies.
#[derive(Clone)]
struct Place {
    from: usize,
    shared: usize,
    rest: Range<usize>,
    content: Range<usize>,
}

impl Place {
    /// The entry that begins at a byte; `None` when it does not read.
    fn read(bytes: &[u8], from: usize) -> Option<Place> {
        let mut at = from;
        let shared = usize::try_from(varint::read(bytes, &mut at)?).ok()?;
        let rest_len = varint::read_bytes(bytes, &mut at)?.len();
        let rest = at - rest_len..at;
        let content_len = varint::read_bytes(bytes, &mut at)?.len();
        Some(Place { from, shared, rest, content: at - content_len..at })
    }
}

impl Cursor {
    /// A cursor before the entry that begins at a byte, behind `key`.
    fn at(bytes: &[u8], at: usize, key: Vec<u8>) -> Option<Cursor> {
        let mut cursor = Cursor { key, next: None };
        cursor.read(bytes, at)?;
        Some(cursor)
    }

    fn read(&mut self, bytes: &[u8], at: usize) -> Option<()> {
        self.next = match at == bytes.len() {
            true => None,
            false => Some(Place::read(bytes, at).filter(|next| next.shared <= self.key.len())?),
        };
        Some(())
    }

    /// Goes behind the next entry and returns its content.
    fn pass(&mut self, bytes: &[u8]) -> Option<Range<usize>> {
        let Place { shared, rest, content, .. } = self.next.take()?;
        self.key.truncate(shared);
        self.key.extend_from_slice(&bytes[rest]);
        self.read(bytes, content.end)?;
        Some(content)
    }

    /// How the key of the next entry compares with one that is not below the key that was passed last,
    /// and has `common` bytes with that one; these become the bytes that it has with the next.
    #[inline]
    fn compare(&self, bytes: &[u8], key: &[u8], common: &mut usize) -> Option<Ordering> {
        let next = self.next.as_ref()?;
        Some(match next.shared.cmp(common) {
            // The next key differs from the one before only behind the byte that decides.
            Ordering::Greater => Ordering::Less,
            Ordering::Less => {
                *common = next.shared;
                Ordering::Greater
            }
            Ordering::Equal => {
                let (next, key) = (&bytes[next.rest.clone()], &key[*common..]);
                let more = common_prefix_len(next, key);
                *common += more;
                next.get(more).cmp(&key.get(more))
            }
        })
    }
}

impl<'s> Run<'s> {
    /// One that is stored.
    ///
    /// # Errors
    /// `Corrupted` when it does not read.
    pub fn stored(key: RecordKey, stored: Cow<'s, [u8]>) -> Result<Run<'s>> {
        let start = unseal(&key, &stored)?;
        let mut run = Run { stored, is_stored: true, copied: start, ..Run::new(key) };
        run.cursor = Cursor::at(&run.stored, start, Vec::new()).ok_or_else(|| run.damaged())?;
        Ok(run)
    }

    /// An empty one.
    pub fn new(key: RecordKey) -> Run<'s> {
        Run {
            key,
            stored: Cow::Borrowed(&[]),
            is_stored: false,
            cursor: Cursor::default(),
            end: None,
            written: Vec::new(),
            copied: 0,
            last: Vec::new(),
            is_other_last: false,
            is_changed: false,
            is_there: false,
            content: Vec::new(),
        }
    }

    #[cold]
    fn damaged(&self) -> Error {
        damaged(&self.key, "its entries do not read")
    }

    /// Goes to the first entry that is not below a key; false when there is none.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let mut common = common_prefix_len(&self.cursor.key, key);
        while let Some(order) = self.cursor.compare(&self.stored, key, &mut common) {
            self.is_there = order.is_eq();
            if order.is_ge() {
                return Ok(true);
            }
            self.pass()?;
        }
        self.is_there = false;
        Ok(false)
    }

    fn pass(&mut self) -> Result<()> {
        let content = self.cursor.pass(&self.stored).ok_or_else(|| self.damaged())?;
        if self.is_other_last {
            // What it shares with the entry before is to be told anew.
            write(&self.last, &self.cursor.key, &self.stored[content.clone()], &mut self.written);
            (self.is_other_last, self.copied) = (false, content.end);
        }
        Ok(())
    }

    /// Whether this is the run of an engine key.
    pub fn is(&self, key: &[u8]) -> bool {
        *self.key == *key
    }

    /// Finds out where the next run begins; those of an index are below `end`.
    pub fn find_end(&mut self, snapshot: &dyn Snapshot, end: &[u8]) -> Result<()> {
        let bounds = (Bound::Excluded(&self.key[..]), Bound::Excluded(end));
        let next = snapshot.range(bounds, Direction::Forward)?.next().transpose()?;
        self.end = Some(next.map(|(key, _)| key[..].into()));
        Ok(())
    }

    /// Whether a key is known to be below the next run.
    pub fn reaches(&self, key: &[u8]) -> bool {
        let is_below = |end: &RecordKey| *key < end[PREFIX_LEN..];
        self.end.as_ref().is_some_and(|end| end.as_ref().is_none_or(is_below))
    }

    /// Changes the content of the key that was sought.
    pub fn change(
        &mut self,
        key: &[u8],
        change: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let next = self.cursor.next.as_ref();
        let old = next.filter(|_| self.is_there).map_or(0..0, |next| next.content.clone());
        self.content.clear();
        change(&self.stored[old.clone()], &mut self.content)?;
        if self.content == self.stored[old.clone()] {
            return Ok(());
        }
        if !self.is_other_last {
            self.written.extend_from_slice(&self.stored[self.copied..self.passed_len()]);
            self.last.clone_from(&self.cursor.key);
        }
        if self.is_there {
            self.cursor.pass(&self.stored).ok_or_else(|| self.damaged())?;
        }
        if !self.content.is_empty() {
            write(&self.last, key, &self.content, &mut self.written);
            self.last.clear();
            self.last.extend_from_slice(key);
        }
        (self.is_other_last, self.is_changed, self.copied) = (true, true, self.passed_len());
        Ok(())
    }

    /// Bytes of the stored run up to where the cursor is.
    fn passed_len(&self) -> usize {
        self.cursor.next.as_ref().map_or(self.stored.len(), |next| next.from)
    }

    /// The records that change.
    pub fn finish(mut self, changed: &mut Vec<Derived>) -> Result<()> {
        if !self.is_changed {
            return Ok(());
        }
        if self.is_other_last && self.cursor.next.is_some() {
            self.pass()?;
        }
        self.written.extend_from_slice(&self.stored[self.copied..]);
        match self.written.len().div_ceil(RUN_LEN_MAX) {
            0 if self.is_stored => changed.push((self.key, None)),
            0 => {}
            1 => changed.push(sealed(self.key, &[], &self.written)),
            count => self.cut(count, changed).ok_or_else(|| self.damaged())?,
        }
        Ok(())
    }

    /// Cuts what is written into about as many runs.
    fn cut(&self, count: usize, changed: &mut Vec<Derived>) -> Option<()> {
        let (bytes, len) = (&self.written, self.written.len() / count);
        let mut cursor = Cursor::at(bytes, 0, Vec::new())?;
        // The first entry of a run shares nothing with the one before.
        let (mut key, mut first, mut rest) = (self.key.clone(), Vec::new(), 0);
        while let Some(Place { from, shared, .. }) = cursor.next {
            let content = cursor.pass(bytes)?;
            if from - rest + first.len() >= len {
                changed.push(sealed(key, &first, &bytes[rest..from]));
                key = [&self.key[..PREFIX_LEN], &cursor.key[..=shared]].concat().into();
                first.clear();
                write(&[], &cursor.key, &bytes[content.clone()], &mut first);
                rest = content.end;
            }
        }
        changed.push(sealed(key, &first, &bytes[rest..]));
        Some(())
    }
}

/// Adds an entry behind that of another key.
fn write(last: &[u8], key: &[u8], content: &[u8], out: &mut Vec<u8>) {
    let shared = common_prefix_len(last, key);
    varint::write(shared as u64, out);
    varint::write_bytes(&key[shared..], out);
    varint::write_bytes(content, out);
}

fn sealed(key: RecordKey, first: &[u8], rest: &[u8]) -> Derived {
    let mut record = Vec::with_capacity(SEAL_LEN + first.len() + rest.len());
    record.extend_from_slice(&[0; SEAL_LEN]);
    record.extend_from_slice(first);
    record.extend_from_slice(rest);
    seal(&key, &mut record);
    (key, Some(record.into()))
}
