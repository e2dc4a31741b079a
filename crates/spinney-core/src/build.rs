//! Building a value: visitor calls in, an encoded node out, with pages for what is large.
//!
//! Open containers lie behind each other in one buffer; a container that closes becomes an inline
//! body or pages. One that outgrows the buffer while it is open goes to scratch as a sorted run and
//! is merged when it closes, so memory stays bounded however large and unsorted it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::backend::TreeId;
use crate::error::{Error, Result};
use crate::fill::Filler;
use crate::key::{self, Key, StoredKey, StoredKeyForm};
use crate::layout::{RecordKind, prefix};
use crate::limits::{DEPTH_MAX, KEY_LEN_MAX, META_LEN_MAX, VALUE_LEN_MAX};
use crate::node::{self, Long, LongForm};
use crate::page::{self, Entry};
use crate::pending::Pending;
use crate::record::{SEAL_LEN, seal};
use crate::scratch::{MemoryScratch, Merge, RunWriter, Scratch};
use crate::value::duplicate_key;
use crate::varint;
use crate::view::StoredMap;
use crate::visit::{Container, Scalar, Visitor};

/// Bytes that one open container buffers before it goes to scratch or, a list, to pages.
const BUFFER_LEN_MAX: usize = 16 << 20;

/// Bytes and members that fit before a buffer has to grow.
const FEW_BYTES: usize = 1_000;
const FEW_MEMBERS: usize = 120;

/// Makes the place where large unsorted containers wait to be merged.
pub type NewScratch<'a> = dyn Fn() -> Result<Box<dyn Scratch>> + 'a;

/// A member of an open container: an entry as a page holds it, without the common prefix. Places
/// are counted from the start of the container's bytes.
#[derive(Clone, Copy)]
struct Member {
    /// In a map the key's first eight bytes, so that most comparisons stay here; in a list the id.
    head: u64,
    start: u32,
    key_at: u32,
    value_at: u32,
    /// 0 until the value is complete.
    end: u32,
}

struct Frame {
    container: Container,
    /// A map's keys ascend so far; a list's ids count up from 0.
    sorted: bool,
    first_member: usize,
    bytes_at: usize,
    /// The id of the next element, in a list.
    next_id: u64,
    meta: Box<[u8]>,
    /// Sorted runs of a map in scratch, or the pages of a list so far.
    overflow: Option<Box<Overflow>>,
}

enum Overflow {
    Runs(Box<dyn Scratch>, Vec<u64>),
    Pages(u64, Box<Filler>),
}

/// The buffers of a [`Build`], to be used again.
#[derive(Default)]
pub struct Builder {
    arena: Vec<u8>,
    members: Vec<Member>,
    frames: Vec<Frame>,
    meta: BTreeMap<String, String>,
    body: Vec<u8>,
    buffer_len_max: Option<usize>,
}

impl Builder {
    /// Buffers with another limit, for tests of what happens beyond it.
    pub fn with_buffer_len_max(buffer_len_max: usize) -> Builder {
        Builder { buffer_len_max: Some(buffer_len_max), ..Builder::default() }
    }

    /// Builds one value in a tree; `depth` containers are above it.
    pub fn build<'a, 'b>(
        &'a mut self,
        pending: &'a mut Pending<'b>,
        tree: TreeId,
        depth: usize,
        scratch: Option<&'a NewScratch<'a>>,
    ) -> Build<'a, 'b> {
        self.arena.clear();
        self.members.clear();
        self.frames.clear();
        self.arena.reserve(FEW_BYTES);
        if !self.meta.is_empty() {
            self.meta.clear();
        }
        self.resume(pending, tree, depth, scratch)
    }

    /// Goes on with the value that [`Builder::build`] began.
    pub fn resume<'a, 'b>(
        &'a mut self,
        pending: &'a mut Pending<'b>,
        tree: TreeId,
        depth: usize,
        scratch: Option<&'a NewScratch<'a>>,
    ) -> Build<'a, 'b> {
        let buffer_len_max = self.buffer_len_max.unwrap_or(BUFFER_LEN_MAX);
        Build { b: self, pending, tree, depth, scratch, buffer_len_max, copies_pages: false }
    }
}

/// A value being built; drive it as a [`Visitor`], then [`Build::finish`].
pub struct Build<'a, 'b> {
    b: &'a mut Builder,
    pending: &'a mut Pending<'b>,
    tree: TreeId,
    depth: usize,
    scratch: Option<&'a NewScratch<'a>>,
    buffer_len_max: usize,
    copies_pages: bool,
}

impl Build<'_, '_> {
    /// Takes maps in pages as they are. Only for what is read from the same store: others have pages of
    /// another size.
    #[must_use]
    pub fn copying_pages(mut self) -> Self {
        self.copies_pages = true;
        self
    }

    /// The encoded node.
    ///
    /// # Errors
    /// `InvalidInput` when the visitor calls did not make exactly one value.
    pub fn finish(self) -> Result<Arc<[u8]>> {
        if self.b.arena.is_empty() || !self.b.frames.is_empty() {
            return Err(Error::invalid_input("the value ended before it was complete"));
        }
        Ok(self.b.arena.as_slice().into())
    }

    /// Writes the metadata that came before this value.
    #[inline(always)]
    fn write_meta(&mut self) -> Result<()> {
        match self.b.meta.is_empty() {
            true => Ok(()),
            false => self.write_some_meta(),
        }
    }

    #[cold]
    fn write_some_meta(&mut self) -> Result<()> {
        let meta = self.take_meta()?;
        node::write_meta(&meta, &mut self.b.arena);
        Ok(())
    }

    fn take_meta(&mut self) -> Result<Vec<u8>> {
        let entries = std::mem::take(&mut self.b.meta);
        let meta = node::encode_meta(entries.iter().map(|(name, value)| (&**name, &**value)));
        check_meta(&meta)?;
        Ok(meta)
    }

    /// A value is complete: an element of a list, or what belongs to the last key of a map.
    #[inline(always)]
    fn end_value(&mut self) -> Result<()> {
        let b = &mut *self.b;
        let Some(frame) = b.frames.last_mut() else { return Ok(()) };
        let end = (b.arena.len() - frame.bytes_at) as u32;
        let last = b.members[frame.first_member..].last_mut();
        match frame.container {
            Container::Map => match last {
                Some(member) if member.end == 0 => member.end = end,
                _ => panic!("a key comes before each member"),
            },
            Container::List => {
                let at = last.map_or(0, |last| last.end);
                let head = frame.next_id;
                frame.next_id += 1;
                b.members.push(Member { head, start: at, key_at: at, value_at: at, end });
            }
        }
        let members = b.members.len() - frame.first_member;
        if end as usize + members * size_of::<Member>() > self.buffer_len_max {
            self.spill()?;
        }
        Ok(())
    }

    /// Moves the members of the innermost container out of the buffer.
    #[cold]
    fn spill(&mut self) -> Result<()> {
        self.sort_members()?;
        let b = &mut *self.b;
        let frame = b.frames.last_mut().expect("a container is open");
        match frame.container {
            Container::Map => {
                if frame.overflow.is_none() {
                    let fresh = match self.scratch {
                        Some(new_scratch) => new_scratch()?,
                        None => Box::new(MemoryScratch::default()),
                    };
                    frame.overflow = Some(Box::new(Overflow::Runs(fresh, Vec::new())));
                }
                let Some(Overflow::Runs(scratch, runs)) = frame.overflow.as_deref_mut() else {
                    unreachable!("a map spills to runs")
                };
                let mut writer = RunWriter::new(&mut **scratch);
                for member in &b.members[frame.first_member..] {
                    writer.push(member.entry(&b.arena[frame.bytes_at..]))?;
                }
                runs.push(writer.finish()?);
            }
            Container::List => {
                if frame.overflow.is_none() {
                    let id = self.pending.new_id(self.tree)?;
                    let filler = Box::new(Filler::new(Container::List, self.tree, id));
                    frame.overflow = Some(Box::new(Overflow::Pages(id, filler)));
                }
                let Some(Overflow::Pages(_, filler)) = frame.overflow.as_deref_mut() else {
                    unreachable!("a list spills to pages")
                };
                let (bytes, members) =
                    (&b.arena[frame.bytes_at..], &b.members[frame.first_member..]);
                members
                    .iter()
                    .try_for_each(|member| filler.push(self.pending, member.entry(bytes)))?;
            }
        }
        b.members.truncate(frame.first_member);
        b.arena.truncate(frame.bytes_at);
        frame.sorted |= frame.container == Container::Map;
        Ok(())
    }

    /// Sorts the members of the innermost map and refuses a key that stands twice.
    #[inline(always)]
    fn sort_members(&mut self) -> Result<()> {
        let frame = self.b.frames.last().expect("a container is open");
        match frame.sorted || frame.container == Container::List {
            true => Ok(()),
            false => self.sort_unsorted_members(),
        }
    }

    #[inline(never)]
    fn sort_unsorted_members(&mut self) -> Result<()> {
        let b = &mut *self.b;
        let frame = b.frames.last().expect("a container is open");
        let bytes = &b.arena[frame.bytes_at..];
        let key = |member: &Member| member.entry(bytes).key;
        let members = &mut b.members[frame.first_member..];
        // A stable sort merges the runs that are there: numbered keys as texts come in a few.
        members.sort_by(|x, y| x.head.cmp(&y.head).then_with(|| key(x).cmp(key(y))));
        for pair in members.windows(2) {
            if pair[0].head == pair[1].head && key(&pair[0]) == key(&pair[1]) {
                return Err(repeated(key(&pair[0])));
            }
        }
        Ok(())
    }

    /// Writes the pages of the innermost container and returns its id.
    fn write_pages(&mut self) -> Result<u64> {
        let frame = self.b.frames.last().expect("a container is open");
        if frame.overflow.is_some() {
            self.spill()?;
        }
        let frame = self.b.frames.last_mut().expect("a container is open");
        match frame.overflow.take().map(|overflow| *overflow) {
            Some(Overflow::Pages(id, filler)) => {
                filler.finish(self.pending)?;
                Ok(id)
            }
            Some(Overflow::Runs(mut scratch, runs)) => {
                let id = self.pending.new_id(self.tree)?;
                let mut filler = Filler::new(Container::Map, self.tree, id);
                let mut merge = Merge::new(&mut *scratch, &runs)?;
                let mut last: Option<Vec<u8>> = None;
                while let Some(entry) = merge.next()? {
                    if last.as_deref() == Some(entry.key) {
                        return Err(repeated(entry.key));
                    }
                    filler.push(self.pending, entry)?;
                    let last = last.get_or_insert_default();
                    last.clear();
                    last.extend_from_slice(entry.key);
                }
                filler.finish(self.pending)?;
                Ok(id)
            }
            None => {
                let id = self.pending.new_id(self.tree)?;
                let filler = Filler::new(frame.container, self.tree, id);
                let bytes = &self.b.arena[frame.bytes_at..];
                let members = &self.b.members[frame.first_member..];
                match frame.container == Container::List && frame.sorted {
                    true => {
                        let end = |element: usize| members[element].end as usize;
                        filler.finish_with_elements(self.pending, members.len(), end, bytes)?;
                    }
                    false => {
                        let entry = |index: usize| members[index].entry(bytes);
                        filler.finish_with(self.pending, members.len(), entry)?;
                    }
                }
                Ok(id)
            }
        }
    }

    /// Makes the sorted members of the innermost container an inline node at the end of the buffer;
    /// false when they have to go to pages.
    #[inline]
    fn enclose(&mut self) -> bool {
        let b = &mut *self.b;
        let frame = b.frames.last().expect("a container is open");
        let (container, at) = (frame.container, frame.bytes_at);
        let members = &b.members[frame.first_member..];
        let (len, limit) = (b.arena.len() - at, self.pending.sizes.inline_len_max);
        // Longer bodies are not even encoded: pages are packed from the members themselves.
        if frame.overflow.is_some() || len > 2 * limit {
            return false;
        }
        let as_buffered = match (container, members) {
            (Container::List, _) => frame.sorted,
            (Container::Map, [first, .., last]) => (first.head ^ last.head) >> 56 != 0,
            (Container::Map, _) => true,
        };
        let body = &mut b.body;
        body.clear();
        if !as_buffered {
            let bytes = &b.arena[at..];
            let entry = |index: usize| members[index].entry(bytes);
            page::encode(container, members.len(), entry, None, body);
            if body.len() > limit {
                return false;
            }
            b.arena.truncate(at);
            node::write_meta(&frame.meta, &mut b.arena);
            node::write_inline(container, body, &mut b.arena);
            return true;
        }
        let body_len = page::body_len_of_parts(members.len(), len);
        if body_len > limit {
            return false;
        }
        if !frame.sorted {
            for member in members {
                body.extend_from_slice(&b.arena[at..][member.start as usize..member.end as usize]);
            }
            b.arena[at..].copy_from_slice(body);
            body.clear();
        }
        node::write_meta(&frame.meta, body);
        node::write_inline_tag(container, body_len, body);
        let mut end = 0;
        let part_ends = members.iter().map(|member| {
            end += (member.end - member.start) as usize;
            end
        });
        page::write_header_of_parts(part_ends, len, 0, body);
        body.extend_from_slice(&b.arena[at..]);
        b.arena.truncate(at);
        b.arena.extend_from_slice(body);
        true
    }

    /// Writes a text or bytes that do not fit in a page.
    #[cold]
    fn write_long(&mut self, scalar: Scalar<'_>) -> Result<()> {
        let (bytes, form) = match scalar {
            Scalar::String(text) if text.plain => (text.text.as_bytes(), LongForm::PlainText),
            Scalar::String(text) => (text.text.as_bytes(), LongForm::EscapedText),
            Scalar::Bytes(bytes) => (bytes, LongForm::Bytes),
            Scalar::Null | Scalar::Bool(_) | Scalar::Number(_) => panic!("it is short"),
        };
        if bytes.len() > VALUE_LEN_MAX {
            return Err(Error::limit_exceeded(format!(
                "a value has {} bytes; at most {VALUE_LEN_MAX} are allowed",
                bytes.len()
            )));
        }
        let id = self.write_chunks(bytes)?;
        node::write_long(Long { id, len: bytes.len() as u64, form }, &mut self.b.arena);
        Ok(())
    }

    /// Writes the chunks of a long value and returns their id.
    fn write_chunks(&mut self, bytes: &[u8]) -> Result<u64> {
        let id = self.pending.new_id(self.tree)?;
        let start = prefix(self.tree, RecordKind::Chunk, id);
        for (index, part) in bytes.chunks(self.pending.sizes.chunk_len_max - SEAL_LEN).enumerate() {
            let mut key = start.to_vec();
            key.extend_from_slice(&(index as u32).to_be_bytes());
            let mut record = vec![0; SEAL_LEN];
            record.extend_from_slice(part);
            seal(&key, &mut record);
            self.pending.put(&key, &record);
            self.pending.write_ahead(self.tree)?;
        }
        Ok(id)
    }
}

impl Member {
    /// The entry; `bytes` are those of its container. A map has no use for the id.
    #[inline]
    fn entry<'a>(&self, bytes: &'a [u8]) -> Entry<'a> {
        let (key_at, value_at) = (self.key_at as usize, self.value_at as usize);
        Entry {
            key: &bytes[key_at..value_at],
            id: self.head,
            value: &bytes[value_at..self.end as usize],
        }
    }
}

#[cold]
fn repeated(key: &[u8]) -> Error {
    duplicate_key(Key::decode(key).unwrap_or(Key::Text("?")))
}

/// Refuses metadata that is too long.
pub fn check_meta(meta: &[u8]) -> Result<()> {
    match meta.len() > META_LEN_MAX {
        true => Err(Error::limit_exceeded(format!(
            "the metadata of a node has {} bytes; at most {META_LEN_MAX} are allowed",
            meta.len()
        ))),
        false => Ok(()),
    }
}

impl Build<'_, '_> {
    /// Begins a member: `encode` appends the length of its key and that, and returns the length and the head.
    #[inline(always)]
    fn add_key(
        &mut self,
        text_len: usize,
        encode: impl FnOnce(&mut Vec<u8>) -> (usize, u64),
    ) -> Result<()> {
        if text_len > KEY_LEN_MAX {
            return Err(Error::limit_exceeded(format!(
                "a key has {text_len} bytes; at most {KEY_LEN_MAX} are allowed"
            )));
        }
        let b = &mut *self.b;
        let frame = b.frames.last_mut().expect("a key stands in a map");
        let start = b.arena.len() - frame.bytes_at;
        let (len, head) = encode(&mut b.arena);
        let bytes = &b.arena[frame.bytes_at..];
        let value_at = bytes.len();
        let key_at = value_at - len;
        if let Some(last) = b.members[frame.first_member..].last() {
            assert!(last.end > 0 && frame.container == Container::Map, "a value follows each key");
            frame.sorted &=
                last.head < head || (last.head == head && last.entry(bytes).key < &bytes[key_at..]);
        }
        let (start, key_at, value_at) = (start as u32, key_at as u32, value_at as u32);
        b.members.push(Member { head, start, key_at, value_at, end: 0 });
        Ok(())
    }
}

impl Visitor for Build<'_, '_> {
    #[inline]
    fn open(&mut self, container: Container) -> Result<()> {
        if self.depth + self.b.frames.len() >= DEPTH_MAX {
            return Err(Error::limit_exceeded(format!(
                "the value is deeper than {DEPTH_MAX} levels"
            )));
        }
        let meta = match self.b.meta.is_empty() {
            true => Box::default(),
            false => self.take_meta()?.into(),
        };
        let b = &mut *self.b;
        b.members.reserve(FEW_MEMBERS);
        b.frames.push(Frame {
            container,
            sorted: true,
            first_member: b.members.len(),
            bytes_at: b.arena.len(),
            next_id: 0,
            meta,
            overflow: None,
        });
        Ok(())
    }

    #[inline(always)]
    fn key(&mut self, key: Key<'_>) -> Result<()> {
        let text_len = if let Key::Text(text) = key { text.len() } else { 0 };
        self.add_key(text_len, |out| key.encode_with_len(out))
    }

    #[inline]
    fn stored_key(&mut self, key: StoredKey<'_>) -> Result<()> {
        let suffix = key.suffix.bytes();
        let text_len = match key.form()? {
            StoredKeyForm::Text(begin, end) => begin.len() + end.bytes().len(),
            StoredKeyForm::Int(_) => 0,
        };
        self.add_key(text_len, |out| {
            let len = key.prefix.len() + suffix.len();
            varint::write(len as u64, out);
            out.extend_from_slice(key.prefix);
            out.extend_from_slice(suffix);
            (len, key::head(&out[out.len() - len..]))
        })
    }

    #[inline(always)]
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.write_meta()?;
        let len = match scalar {
            Scalar::String(text) => text.text.len(),
            Scalar::Bytes(bytes) => bytes.len(),
            _ => 0,
        };
        match len <= self.pending.sizes.value_len_max {
            true => node::write_scalar(scalar, &mut self.b.arena),
            false => self.write_long(scalar)?,
        }
        self.end_value()
    }

    #[inline]
    fn close(&mut self) -> Result<()> {
        self.sort_members()?;
        let id = match self.enclose() {
            true => None,
            false => Some(self.write_pages()?),
        };
        let b = &mut *self.b;
        let frame = b.frames.pop().expect("close comes after open");
        b.members.truncate(frame.first_member);
        if let Some(id) = id {
            b.arena.truncate(frame.bytes_at);
            node::write_meta(&frame.meta, &mut b.arena);
            node::write_paged(frame.container, id, &mut b.arena);
        }
        self.end_value()
    }

    /// Pages that refer to nothing are copied as they are.
    fn stored_map(&mut self, map: &StoredMap<'_>) -> Result<bool> {
        let depth = self.depth + self.b.frames.len() + 1;
        if !self.copies_pages || map.levels()?.is_none_or(|levels| depth + levels > DEPTH_MAX) {
            return Ok(false);
        }
        self.write_meta()?;
        let (tree, id) = (self.tree, self.pending.new_id(self.tree)?);
        map.copy(tree, id, |key, record| {
            self.pending.put(key, record);
            self.pending.write_ahead(tree)
        })?;
        node::write_paged(Container::Map, id, &mut self.b.arena);
        self.end_value()?;
        Ok(true)
    }

    fn meta(&mut self, name: &str, value: &str) -> Result<()> {
        self.b.meta.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    fn wants_element_ids(&self) -> bool {
        true
    }

    fn element(&mut self, id: u64) {
        if let Some(frame) = self.b.frames.last_mut() {
            frame.sorted &= id == frame.next_id;
            frame.next_id = id;
        }
    }
}
