//! Building a value: visitor calls in, an encoded node out, with pages for what is large.
//!
//! Open containers lie behind each other in one buffer; a container that closes becomes an inline
//! body or pages. One that outgrows the buffer while it is open goes to scratch as a sorted run and
//! is merged when it closes, so memory stays bounded however large and unsorted it is.

use std::collections::BTreeMap;

use crate::backend::TreeId;
use crate::error::{Error, Result};
use crate::fill::Filler;
use crate::key::Key;
use crate::layout::{RecordKind, prefix};
use crate::limits::{DEPTH_MAX, KEY_LEN_MAX, META_LEN_MAX, VALUE_LEN_MAX};
use crate::node::{self, Long, LongForm};
use crate::page::{self, Entry};
use crate::pending::Pending;
use crate::record::{SEAL_LEN, seal};
use crate::scratch::{MemoryScratch, Merge, RunWriter, Scratch};
use crate::value::duplicate_key;
use crate::visit::{Container, Scalar, Visitor};

/// Bytes that one open container buffers before it goes to scratch or, a list, to pages.
const BUFFER_LEN_MAX: usize = 16 << 20;

/// Makes the place where large unsorted containers wait to be merged.
pub type NewScratch<'a> = dyn Fn() -> Result<Box<dyn Scratch>> + 'a;

#[derive(Clone, Copy)]
struct Member {
    key_at: usize,
    key_len: usize,
    end: usize,
    /// In a map the key's first eight bytes, so that most comparisons stay here; in a list the id.
    head: u64,
}

struct Frame {
    container: Container,
    first_member: usize,
    bytes_at: usize,
    /// Where its own key lies in the buffer, for when it closes.
    key_at: usize,
    key_len: usize,
    sorted: bool,
    meta: Vec<u8>,
    /// Sorted runs of a map in scratch, or the pages of a list so far.
    overflow: Option<Overflow>,
    /// The id of the next element, in a list.
    next_id: u64,
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
    key: Option<(usize, usize)>,
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
        self.key = None;
        self.meta.clear();
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
        Build { b: self, pending, tree, depth, scratch }
    }
}

/// A value being built; drive it as a [`Visitor`], then [`Build::finish`].
pub struct Build<'a, 'b> {
    b: &'a mut Builder,
    pending: &'a mut Pending<'b>,
    tree: TreeId,
    depth: usize,
    scratch: Option<&'a NewScratch<'a>>,
}

impl Build<'_, '_> {
    /// The encoded node.
    ///
    /// # Errors
    /// `InvalidInput` when the visitor calls did not make exactly one value.
    pub fn finish(self) -> Result<Box<[u8]>> {
        if self.b.arena.is_empty() || !self.b.frames.is_empty() {
            return Err(Error::invalid_input("the value ended before it was complete"));
        }
        Ok(self.b.arena.as_slice().into())
    }

    /// Writes the metadata that came before this value.
    fn write_meta(&mut self) -> Result<()> {
        if self.b.meta.is_empty() {
            return Ok(());
        }
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

    /// The value behind the last key is complete: a member of the innermost container.
    #[inline]
    fn add_member(&mut self) -> Result<()> {
        let b = &mut *self.b;
        let Some(frame) = b.frames.last_mut() else { return Ok(()) };
        let end = b.arena.len();
        let member = match frame.container {
            Container::List => {
                let key_at =
                    b.members[frame.first_member..].last().map_or(frame.bytes_at, |last| last.end);
                let id = frame.next_id;
                frame.next_id += 1;
                Member { key_at, key_len: 0, end, head: id }
            }
            Container::Map => {
                let (key_at, key_len) = b.key.take().expect("a key comes before each member");
                let key = &b.arena[key_at..key_at + key_len];
                let head = key_head(key);
                if let Some(last) = b.members[frame.first_member..].last() {
                    let last_key = &b.arena[last.key_at..last.key_at + last.key_len];
                    frame.sorted &= (last.head, last_key) < (head, key);
                }
                Member { key_at, key_len, end, head }
            }
        };
        b.members.push(member);
        let buffered =
            end - frame.bytes_at + (b.members.len() - frame.first_member) * size_of::<Member>();
        if buffered > b.buffer_len_max.unwrap_or(BUFFER_LEN_MAX) {
            self.spill()?;
        }
        Ok(())
    }

    /// Moves the members of the innermost container out of the buffer.
    fn spill(&mut self) -> Result<()> {
        self.sort_members()?;
        let b = &mut *self.b;
        let frame = b.frames.last_mut().expect("a container is open");
        match frame.container {
            Container::Map => {
                let (scratch, runs) = match &mut frame.overflow {
                    Some(Overflow::Runs(scratch, runs)) => (scratch, runs),
                    overflow => {
                        let fresh = match self.scratch {
                            Some(new_scratch) => new_scratch()?,
                            None => Box::new(MemoryScratch::default()),
                        };
                        *overflow = Some(Overflow::Runs(fresh, Vec::new()));
                        let Some(Overflow::Runs(scratch, runs)) = overflow else { unreachable!() };
                        (scratch, runs)
                    }
                };
                let mut writer = RunWriter::new(&mut **scratch);
                for member in &b.members[frame.first_member..] {
                    writer.push(entry_of(&b.arena, member))?;
                }
                runs.push(writer.finish()?);
            }
            Container::List => {
                if frame.overflow.is_none() {
                    let id = self.pending.new_id(self.tree)?;
                    frame.overflow = Some(Overflow::Pages(
                        id,
                        Box::new(Filler::new(Container::List, self.tree, id)),
                    ));
                }
                let Some(Overflow::Pages(_, filler)) = &mut frame.overflow else { unreachable!() };
                for member in &b.members[frame.first_member..] {
                    filler.push(self.pending, element_of(&b.arena, member))?;
                }
            }
        }
        b.members.truncate(frame.first_member);
        b.arena.truncate(frame.bytes_at);
        frame.sorted = true;
        Ok(())
    }

    /// Sorts the members of the innermost map and refuses a key that stands twice.
    fn sort_members(&mut self) -> Result<()> {
        let b = &mut *self.b;
        let frame = b.frames.last_mut().expect("a container is open");
        if frame.sorted {
            return Ok(());
        }
        let arena = &b.arena;
        let key = |member: &Member| &arena[member.key_at..member.key_at + member.key_len];
        let members = &mut b.members[frame.first_member..];
        members.sort_unstable_by(|x, y| x.head.cmp(&y.head).then_with(|| key(x).cmp(key(y))));
        for pair in members.windows(2) {
            if pair[0].head == pair[1].head && key(&pair[0]) == key(&pair[1]) {
                return Err(repeated(key(&pair[0])));
            }
        }
        frame.sorted = true;
        Ok(())
    }

    /// Writes the pages of the innermost container and returns its id.
    fn write_pages(&mut self) -> Result<u64> {
        let frame = self.b.frames.last().expect("a container is open");
        if frame.overflow.is_some() {
            self.spill()?;
        }
        let frame = self.b.frames.last_mut().expect("a container is open");
        match frame.overflow.take() {
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
                let container = frame.container;
                let id = self.pending.new_id(self.tree)?;
                let mut filler = Filler::new(container, self.tree, id);
                for member in &self.b.members[frame.first_member..] {
                    let entry = match container {
                        Container::Map => entry_of(&self.b.arena, member),
                        Container::List => element_of(&self.b.arena, member),
                    };
                    filler.push(self.pending, entry)?;
                }
                filler.finish(self.pending)?;
                Ok(id)
            }
        }
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

#[inline]
fn key_head(key: &[u8]) -> u64 {
    match key.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => {
            let mut head = [0; 8];
            head[..key.len()].copy_from_slice(key);
            u64::from_be_bytes(head)
        }
    }
}

#[inline]
fn entry_of<'a>(arena: &'a [u8], member: &Member) -> Entry<'a> {
    let key_end = member.key_at + member.key_len;
    Entry { key: &arena[member.key_at..key_end], id: 0, value: &arena[key_end..member.end] }
}

/// A member with the id that it has in a list; a map has no use for it.
#[inline]
fn element_of<'a>(arena: &'a [u8], member: &Member) -> Entry<'a> {
    Entry { id: member.head, ..entry_of(arena, member) }
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

impl Visitor for Build<'_, '_> {
    #[inline]
    fn open(&mut self, container: Container) -> Result<()> {
        if self.depth + self.b.frames.len() >= DEPTH_MAX {
            return Err(Error::limit_exceeded(format!(
                "the value is deeper than {DEPTH_MAX} levels"
            )));
        }
        let meta = match self.b.meta.is_empty() {
            true => Vec::new(),
            false => self.take_meta()?,
        };
        let b = &mut *self.b;
        let bytes_at = b.arena.len();
        let (key_at, key_len) = b.key.take().unwrap_or((bytes_at, 0));
        b.frames.push(Frame {
            container,
            first_member: b.members.len(),
            bytes_at,
            key_at,
            key_len,
            sorted: true,
            meta,
            overflow: None,
            next_id: 0,
        });
        Ok(())
    }

    #[inline]
    fn key(&mut self, key: Key<'_>) -> Result<()> {
        let at = self.b.arena.len();
        key.encode(&mut self.b.arena);
        let len = self.b.arena.len() - at;
        if len > KEY_LEN_MAX && matches!(key, Key::Text(text) if text.len() > KEY_LEN_MAX) {
            return Err(Error::limit_exceeded(format!(
                "a key has {len} bytes; at most {KEY_LEN_MAX} are allowed"
            )));
        }
        self.b.key = Some((at, len));
        Ok(())
    }

    #[inline]
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()> {
        self.write_meta()?;
        let (bytes, form) = match scalar {
            Scalar::String(text) if text.plain => (text.text.as_bytes(), LongForm::PlainText),
            Scalar::String(text) => (text.text.as_bytes(), LongForm::EscapedText),
            Scalar::Bytes(bytes) => (bytes, LongForm::Bytes),
            _ => (&[][..], LongForm::Bytes),
        };
        if bytes.len() <= self.pending.sizes.value_len_max {
            node::write_scalar(scalar, &mut self.b.arena);
        } else if bytes.len() > VALUE_LEN_MAX {
            return Err(Error::limit_exceeded(format!(
                "a value has {} bytes; at most {VALUE_LEN_MAX} are allowed",
                bytes.len()
            )));
        } else {
            let id = self.write_chunks(bytes)?;
            let long = Long { id, len: bytes.len() as u64, form };
            node::write_long(long, &mut self.b.arena);
        }
        self.add_member()
    }

    #[inline]
    fn close(&mut self) -> Result<()> {
        self.sort_members()?;
        let b = &mut *self.b;
        let frame = b.frames.last().expect("close comes after open");
        let (container, first) = (frame.container, frame.first_member);
        let mut encoded_id = None;
        b.body.clear();
        if frame.overflow.is_none() {
            let members = &b.members[first..];
            // Longer bodies are not even encoded: pages are packed from the members themselves.
            if b.arena.len() - frame.bytes_at <= 2 * self.pending.sizes.inline_len_max {
                let arena = &b.arena;
                let entry = |index: usize| element_of(arena, &members[index]);
                page::encode(container, members.len(), entry, None, &mut b.body);
            }
        }
        let inline = frame.overflow.is_none()
            && (!b.body.is_empty() || b.members.len() == first)
            && b.body.len() <= self.pending.sizes.inline_len_max;
        if !inline {
            encoded_id = Some(self.write_pages()?);
        }
        let b = &mut *self.b;
        let frame = b.frames.pop().expect("close comes after open");
        b.members.truncate(first);
        b.arena.truncate(frame.bytes_at);
        b.key = Some((frame.key_at, frame.key_len));
        node::write_meta(&frame.meta, &mut b.arena);
        match encoded_id {
            Some(id) => node::write_paged(container, id, &mut b.arena),
            None => node::write_inline(container, &b.body, &mut b.arena),
        }
        self.add_member()
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
            frame.next_id = id;
        }
    }
}
