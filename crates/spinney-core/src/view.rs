//! Reading the tree at one state: paths, members in order, whole values.
//!
//! A [`View`] turns engine records into nodes. It knows nothing of pending edits, and never
//! recurses: cursors stack.

use std::borrow::Cow;
use std::ops::{Bound, Range};
use std::sync::Arc;

use crate::backend::{Direction, Records, Snapshot, TreeId};
use crate::counts::CountTree;
use crate::error::{Error, Result};
use crate::inline::{damaged_page, range_in};
use crate::key::Key;
use crate::layout::{RecordKind, prefix};
use crate::node::{self, Annotated, Long, LongForm, Node, damaged_node};
use crate::page::{Layout, Page};
use crate::path;
use crate::rank;
use crate::record::{ContainerHead, Head, SEAL_LEN, damaged, unseal};
use crate::separator;
use crate::varint;
use crate::visit::{Container, Scalar, Text, Visitor};

/// Few encoded keys are longer.
pub(crate) const KEY_LEN_USUAL: usize = 64;

mod stored_map;
mod walk;
mod waypoint;

pub use stored_map::StoredMap;
pub use waypoint::{Passed, Waypoint};

/// Bytes of a record, borrowed from the snapshot or shared; cheap to clone.
#[derive(Clone, Debug)]
pub enum Bytes<'s> {
    /// The engine's own memory.
    Borrowed(&'s [u8]),
    /// A copy.
    Shared(Arc<[u8]>),
}

impl std::ops::Deref for Bytes<'_> {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Borrowed(bytes) => bytes,
            Bytes::Shared(bytes) => bytes,
        }
    }
}

impl<'s> From<Cow<'s, [u8]>> for Bytes<'s> {
    #[inline]
    fn from(bytes: Cow<'s, [u8]>) -> Bytes<'s> {
        match bytes {
            Cow::Borrowed(bytes) => Bytes::Borrowed(bytes),
            Cow::Owned(bytes) => Bytes::Shared(bytes.into()),
        }
    }
}

/// An encoded node where it is stored.
#[derive(Clone, Debug)]
pub struct Slot<'s> {
    /// The tree that its ids belong to.
    pub tree: TreeId,
    bytes: Bytes<'s>,
    range: Range<usize>,
}

impl<'s> Slot<'s> {
    /// A node in memory of its own.
    pub fn owned(tree: TreeId, bytes: &[u8]) -> Slot<'static> {
        Slot { tree, bytes: Bytes::Shared(bytes.into()), range: 0..bytes.len() }
    }

    /// The encoded node, metadata included.
    #[inline]
    pub fn encoded(&self) -> &[u8] {
        &self.bytes[self.range.clone()]
    }

    /// Where the members of a container lie that was read here.
    #[inline]
    fn place(&self, container: Node<'_>) -> Place {
        match container {
            Node::Paged(_, id) => Place::Paged(id),
            Node::Inline(_, body) => Place::Inline(self.range.end - body.len()),
            _ => Place::Inline(self.range.end),
        }
    }

    /// Moves from the body of a map's page to the value of a key; where the key is not, tells whether
    /// it would be within the page.
    #[inline]
    fn enter_page(&mut self, key: &[u8]) -> Result<std::result::Result<(), Absent>> {
        let page = Page::parse(Container::Map, self.encoded()).ok_or_else(damaged_page)?;
        match page.search(key).ok_or_else(damaged_page)? {
            Ok(index) => {
                let value = page.value(index).ok_or_else(damaged_page)?;
                self.range = range_in(&self.bytes, value);
                Ok(Ok(()))
            }
            Err(index) if 0 < index && index < page.count() => Ok(Err(Absent::Within)),
            Err(_) => Ok(Err(Absent::Beside)),
        }
    }

    /// The node with its metadata.
    ///
    /// # Errors
    /// `Corrupted` when the bytes are not one node.
    #[inline]
    pub fn read(&self) -> Result<Annotated<'_>> {
        node::read(self.encoded()).ok_or_else(damaged_node)
    }
}

/// Where a key would be that a page does not hold.
enum Absent {
    /// Between the first and the last of the page, so in no other one.
    Within,
    /// Before or behind them.
    Beside,
}

/// Where the members of a container lie: from a byte of the record on, or in pages of an id.
#[derive(Clone, Copy)]
enum Place {
    Inline(usize),
    Paged(u64),
}

/// The state of a store as nodes.
#[derive(Clone, Copy)]
pub struct View<'s> {
    /// The state of the engine.
    pub snapshot: &'s dyn Snapshot,
    /// The engine's longest key, which decides where separators are cut.
    pub key_len_max: usize,
}

impl<'s> View<'s> {
    /// The store's root: the catalogue's root node, an empty map in a new store.
    pub fn root(&self) -> Result<Slot<'s>> {
        Ok(self.tree_root(0)?.unwrap_or_else(|| {
            let mut empty = Vec::new();
            node::write_inline(Container::Map, &[], &mut empty);
            Slot::owned(0, &empty)
        }))
    }

    /// The root node of a tree; `None` where there is none.
    #[inline]
    pub fn tree_root(&self, tree: TreeId) -> Result<Option<Slot<'s>>> {
        Ok(Head::root(self.snapshot, tree)?.filter(|(record, at)| *at < record.len()).map(
            |(record, at)| {
                let range = at..record.len();
                Slot { tree, bytes: record.into(), range }
            },
        ))
    }

    /// The node at a path; `None` when there is none.
    ///
    /// # Errors
    /// `InvalidInput` for a malformed path, `Corrupted` for damage on the way.
    ///
    /// # Complexity
    /// O(d log n) for depth d: one engine lookup for each container in pages on the way.
    pub fn resolve(&self, path: &str) -> Result<Option<Slot<'s>>> {
        path::check(path)?;
        self.root()
            .and_then(|root| self.descend(root, path, 0, &mut None))
            .map_err(|error| error.at(crate::path::Display(path)))
    }

    /// The node at a checked path, from the node at its first `from` bytes on; `None` when there is
    /// none. The last container in pages that it leads through is noted in `passed`.
    ///
    /// # Errors
    /// As [`View::resolve`].
    #[inline]
    pub fn descend(
        &self,
        slot: Slot<'s>,
        path: &str,
        from: usize,
        passed: &mut Option<Passed<'s>>,
    ) -> Result<Option<Slot<'s>>> {
        self.descend_with(slot, path, from, passed, &mut Vec::with_capacity(KEY_LEN_USUAL))
    }

    /// As [`View::descend`], with a buffer for keys.
    #[inline]
    fn descend_with(
        &self,
        mut slot: Slot<'s>,
        path: &str,
        mut from: usize,
        passed: &mut Option<Passed<'s>>,
        key: &mut Vec<u8>,
    ) -> Result<Option<Slot<'s>>> {
        for part in path::parts(&path[from..]) {
            let mut nothing = None;
            let page = match node::is_paged(slot.encoded()) {
                true => &mut passed.insert(Passed::through(from, slot.clone())).page,
                false => &mut nothing,
            };
            if !self.enter_noting(&mut slot, &path::unescape(part), key, page)? {
                return Ok(None);
            }
            from += 1 + part.len();
        }
        Ok(Some(slot))
    }

    /// Moves `slot` to the member that a path segment names, followed into the tree it may refer
    /// to; false when there is none. `key` is a buffer.
    #[inline]
    pub fn enter(&self, slot: &mut Slot<'s>, segment: &str, key: &mut Vec<u8>) -> Result<bool> {
        self.enter_noting(slot, segment, key, &mut None)
    }

    /// As [`View::enter`]; the page of a map in pages that a member is in, or would be, is noted.
    #[inline]
    fn enter_noting(
        &self,
        slot: &mut Slot<'s>,
        segment: &str,
        key: &mut Vec<u8>,
        page: &mut Option<Slot<'s>>,
    ) -> Result<bool> {
        let node = slot.read()?.node;
        let found = match node.container() {
            Some(Container::Map) => {
                key.clear();
                Key::new(segment).encode(key);
                let place = slot.place(node);
                self.enter_place(slot, place, key, page)?
            }
            Some(Container::List) => match path::position(segment) {
                Some(position) => self.enter_element(slot, position)?,
                None => false,
            },
            None => false,
        };
        if found {
            self.follow(slot)?;
        }
        Ok(found)
    }

    /// Moves `slot` to the root of the tree that it refers to, when it is a catalogue entry.
    #[inline]
    pub fn follow(&self, slot: &mut Slot<'s>) -> Result<()> {
        if node::may_be_tree(slot.encoded())
            && let Node::Tree(tree) = slot.read()?.node
        {
            *slot = self.existing_root(tree)?;
        }
        Ok(())
    }

    fn existing_root(&self, tree: TreeId) -> Result<Slot<'s>> {
        self.tree_root(tree)?
            .ok_or_else(|| Error::corrupted(format!("the root of tree {tree} is missing")))
    }

    /// Moves `slot` to the value of an encoded key in a map; false in any other node.
    #[inline]
    pub fn enter_key(&self, slot: &mut Slot<'s>, key: &[u8]) -> Result<bool> {
        let node = slot.read()?.node;
        match node.container() {
            Some(Container::Map) => self.enter_place(slot, slot.place(node), key, &mut None),
            _ => Ok(false),
        }
    }

    #[inline]
    fn enter_place(
        &self,
        slot: &mut Slot<'s>,
        place: Place,
        key: &[u8],
        page: &mut Option<Slot<'s>>,
    ) -> Result<bool> {
        match place {
            Place::Inline(start) => slot.range.start = start,
            Place::Paged(id) => {
                let found = separator::page_of(self, slot.tree, id, key)?;
                (slot.bytes, slot.range) = (found.bytes, found.body);
                *page = Some(slot.clone());
            }
        }
        Ok(slot.enter_page(key)?.is_ok())
    }

    /// Moves `slot` to the element of a list at a position; false in any other node.
    pub fn enter_element(&self, slot: &mut Slot<'s>, position: u64) -> Result<bool> {
        let mut index = position;
        match slot.read()?.node {
            Node::Inline(Container::List, body) => slot.range.start = slot.range.end - body.len(),
            Node::Paged(Container::List, id) => {
                let head = ContainerHead::load(self.snapshot, slot.tree, id)?;
                if position >= head.count {
                    return Ok(false);
                }
                let mut counts = open_counts(slot.tree, id, &head)?;
                let Some((rank, within)) = counts.find(self.snapshot, position)? else {
                    return Ok(false);
                };
                let page = self.list_page(slot.tree, id, rank)?;
                (slot.bytes, slot.range, index) = (page.bytes, page.body, within);
            }
            _ => return Ok(false),
        }
        let page = Page::parse(Container::List, slot.encoded()).ok_or_else(damaged_page)?;
        match usize::try_from(index).ok().filter(|&index| index < page.count()) {
            None => Ok(false),
            Some(index) => {
                let value = page.value(index).ok_or_else(damaged_page)?;
                slot.range = range_in(&slot.bytes, value);
                Ok(true)
            }
        }
    }

    /// The page of a list that has a rank.
    pub fn list_page(&self, tree: TreeId, id: u64, rank: rank::Rank) -> Result<PageRecord<'s>> {
        let mut key = prefix(tree, RecordKind::Page, id).to_vec();
        rank::write(rank, &mut key);
        let record = self.snapshot.get(&key)?.ok_or_else(|| damaged(&key, "it is missing"))?;
        PageRecord::open(key, record)
    }

    /// How many members a container has; `None` for a node that is none.
    ///
    /// # Complexity
    /// O(1).
    pub fn count(&self, slot: &Slot<'s>) -> Result<Option<u64>> {
        Ok(match slot.read()?.node {
            Node::Inline(container, body) => {
                Some(Page::parse(container, body).ok_or_else(damaged_page)?.count() as u64)
            }
            Node::Paged(_, id) => Some(ContainerHead::load(self.snapshot, slot.tree, id)?.count),
            _ => None,
        })
    }

    /// A long value, read from its chunks.
    pub fn long(&self, tree: TreeId, long: Long) -> Result<Vec<u8>> {
        let start = prefix(tree, RecordKind::Chunk, long.id);
        let end = prefix(tree, RecordKind::Chunk, long.id + 1);
        let bounds = (Bound::Included(&start[..]), Bound::Excluded(&end[..]));
        let mut out = Vec::with_capacity(usize::try_from(long.len).unwrap_or(0).min(1 << 20));
        for (index, record) in self.snapshot.range(bounds, Direction::Forward)?.enumerate() {
            let (key, value) = record?;
            if key[start.len()..] != (index as u32).to_be_bytes() {
                return Err(damaged(&key, "a chunk before it is missing"));
            }
            out.extend_from_slice(&value[unseal(&key, &value)?..]);
        }
        match out.len() as u64 == long.len {
            true => Ok(out),
            false => Err(damaged(&start, "its chunks are not as long as the value")),
        }
    }

    /// Calls `scalar` with a long value.
    fn visit_long(
        &self,
        tree: TreeId,
        long: Long,
        visitor: &mut (impl Visitor + ?Sized),
    ) -> Result<()> {
        let bytes = self.long(tree, long)?;
        let text = || {
            std::str::from_utf8(&bytes)
                .map_err(|_| Error::corrupted(format!("the long text {} is not UTF-8", long.id)))
        };
        visitor.scalar(match long.form {
            LongForm::Bytes => Scalar::Bytes(&bytes),
            LongForm::PlainText => Scalar::String(Text { text: text()?, plain: true }),
            LongForm::EscapedText => Scalar::String(Text { text: text()?, plain: false }),
        })
    }

    /// A cursor before the first member of a container; `None` for a node that is none.
    pub fn cursor(&self, slot: &Slot<'s>) -> Result<Option<Cursor<'s>>> {
        let mut slot = slot.clone();
        self.follow(&mut slot)?;
        let slot = &slot;
        Ok(match slot.read()?.node {
            Node::Inline(container, body) => {
                let start = slot.range.end - body.len();
                Some(Cursor::inline(
                    slot.tree,
                    container,
                    slot.bytes.clone(),
                    start..slot.range.end,
                )?)
            }
            Node::Paged(container, id) => {
                let start = prefix(slot.tree, RecordKind::Page, id);
                Some(self.paged_cursor(slot.tree, container, id, Bound::Included(&start))?)
            }
            _ => None,
        })
    }

    fn pages(&self, tree: TreeId, id: u64, from: Bound<&[u8]>) -> Result<Records<'s>> {
        let end = prefix(tree, RecordKind::Page, id + 1);
        self.snapshot.range((from, Bound::Excluded(&end)), Direction::Forward)
    }

    fn paged_cursor(
        &self,
        tree: TreeId,
        container: Container,
        id: u64,
        from: Bound<&[u8]>,
    ) -> Result<Cursor<'s>> {
        let pages = self.pages(tree, id, from)?;
        let empty = Page::parse(container, &[]).expect("the empty body parses").layout;
        Ok(Cursor {
            tree,
            container,
            bytes: Bytes::Borrowed(&[]),
            body: 0..0,
            layout: empty,
            index: 0,
            pages: Some(pages),
        })
    }

    /// A cursor before the first member of a map whose key is not before `key`.
    pub fn cursor_from_key(&self, slot: &Slot<'s>, key: &[u8]) -> Result<Option<Cursor<'s>>> {
        let mut slot = slot.clone();
        self.follow(&mut slot)?;
        let slot = &slot;
        let mut cursor = match slot.read()?.node {
            Node::Paged(Container::Map, id) => {
                let page = separator::page_of(self, slot.tree, id, key)?;
                let mut cursor =
                    self.paged_cursor(slot.tree, Container::Map, id, Bound::Excluded(&page.key))?;
                cursor.enter(page.bytes, page.body)?;
                cursor
            }
            Node::Inline(Container::Map, _) => match self.cursor(slot)? {
                Some(cursor) => cursor,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        let page = Page::with_layout(cursor.layout, &cursor.bytes[cursor.body.clone()]);
        cursor.index = match page.search(key).ok_or_else(damaged_page)? {
            Ok(index) | Err(index) => index,
        };
        Ok(Some(cursor))
    }

    /// A cursor before the element of a list at a position.
    pub fn cursor_from_position(
        &self,
        slot: &Slot<'s>,
        position: u64,
    ) -> Result<Option<Cursor<'s>>> {
        let mut slot = slot.clone();
        self.follow(&mut slot)?;
        let slot = &slot;
        match slot.read()?.node {
            Node::Inline(Container::List, _) => {
                let mut cursor = self.cursor(slot)?.expect("a list has a cursor");
                cursor.index =
                    usize::try_from(position).unwrap_or(usize::MAX).min(cursor.layout.count);
                Ok(Some(cursor))
            }
            Node::Paged(Container::List, id) => {
                let head = ContainerHead::load(self.snapshot, slot.tree, id)?;
                let mut counts = open_counts(slot.tree, id, &head)?;
                let Some((rank, index)) = counts.find(self.snapshot, position.min(head.count))?
                else {
                    return self.cursor(slot);
                };
                let page = self.list_page(slot.tree, id, rank)?;
                let from = Bound::Excluded(&page.key[..]);
                let mut cursor = self.paged_cursor(slot.tree, Container::List, id, from)?;
                cursor.enter(page.bytes, page.body)?;
                cursor.index = (index as usize).min(cursor.layout.count);
                Ok(Some(cursor))
            }
            _ => Ok(None),
        }
    }
}

/// The count tree of a list in pages.
pub fn open_counts(tree: TreeId, id: u64, head: &ContainerHead) -> Result<CountTree> {
    CountTree::open(tree, id, head.height, &head.counts)
        .ok_or_else(|| damaged(&ContainerHead::key(tree, id), "its counts do not read"))
}

/// A page record, checked and taken apart.
#[derive(Clone, Debug)]
pub struct PageRecord<'s> {
    /// The engine key.
    pub key: Cow<'s, [u8]>,
    /// The record.
    pub bytes: Bytes<'s>,
    /// Where the page body lies in it.
    pub body: Range<usize>,
    /// Bytes of the separator, when the key holds only its beginning.
    pub cut_len: Option<usize>,
}

/// The header bit of a page whose separator does not fit its key.
pub const PAGE_CUT: u8 = 1;

impl<'s> PageRecord<'s> {
    /// Checks the record under a key.
    ///
    /// # Errors
    /// `Corrupted` when the checksum or the header does not read.
    #[inline]
    pub fn open(key: impl Into<Cow<'s, [u8]>>, record: Cow<'s, [u8]>) -> Result<PageRecord<'s>> {
        let key = key.into();
        unseal(&key, &record)?;
        PageRecord::unchecked(key, record)
    }

    /// Takes the record under a key apart without its checksum, for a search whose result is checked.
    ///
    /// # Errors
    /// `Corrupted` when the header does not read.
    #[inline]
    pub fn unchecked(
        key: impl Into<Cow<'s, [u8]>>,
        record: Cow<'s, [u8]>,
    ) -> Result<PageRecord<'s>> {
        let key = key.into();
        let bad = || damaged(&key, "its header does not read");
        let mut at = SEAL_LEN + 1;
        let cut_len = match record.get(SEAL_LEN) {
            Some(0) => None,
            Some(&PAGE_CUT) => {
                let len = varint::read(&record, &mut at).ok_or_else(bad)?;
                Some(usize::try_from(len).map_err(|_| bad())?)
            }
            _ => return Err(bad()),
        };
        let body = at..record.len();
        Ok(PageRecord { key, bytes: record.into(), body, cut_len })
    }

    /// Checks the checksum, after [`PageRecord::unchecked`].
    ///
    /// # Errors
    /// `Corrupted` when it does not match.
    pub fn check(&self) -> Result<()> {
        unseal(&self.key, &self.bytes).map(drop)
    }

    /// The page.
    pub fn page(&self, container: Container) -> Result<Page<'_>> {
        Page::parse(container, &self.bytes[self.body.clone()])
            .ok_or_else(|| damaged(&self.key, "its page does not read"))
    }
}

/// The key of an entry; `buffer` holds it where it is not in one piece.
#[inline(always)]
fn whole_key<'k>(page: &Page<'_>, suffix: &'k [u8], buffer: &'k mut Vec<u8>) -> Result<Key<'k>> {
    let encoded = match page.prefix() {
        [] => suffix,
        prefix => {
            buffer.clear();
            buffer.extend_from_slice(prefix);
            buffer.extend_from_slice(suffix);
            &buffer[..]
        }
    };
    Key::decode(encoded).ok_or_else(damaged_page)
}

/// A place between the members of a container; [`Cursor::advance`] moves to the next.
pub struct Cursor<'s> {
    tree: TreeId,
    container: Container,
    bytes: Bytes<'s>,
    body: Range<usize>,
    layout: Layout,
    /// One above the member it stands at.
    index: usize,
    pages: Option<Records<'s>>,
}

impl<'s> Cursor<'s> {
    fn inline(
        tree: TreeId,
        container: Container,
        bytes: Bytes<'s>,
        body: Range<usize>,
    ) -> Result<Cursor<'s>> {
        let layout = Page::parse(container, &bytes[body.clone()]).ok_or_else(damaged_page)?.layout;
        Ok(Cursor { tree, container, bytes, body, layout, index: 0, pages: None })
    }

    fn enter(&mut self, bytes: Bytes<'s>, body: Range<usize>) -> Result<()> {
        self.layout =
            Page::parse(self.container, &bytes[body.clone()]).ok_or_else(damaged_page)?.layout;
        (self.bytes, self.body, self.index) = (bytes, body, 0);
        Ok(())
    }

    /// Moves to the next member; false when there is none.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        let more = self.has_more()?;
        self.index += usize::from(more);
        Ok(more)
    }

    /// Whether there is a member behind the one it stands at; opens the next page to see.
    #[inline]
    fn has_more(&mut self) -> Result<bool> {
        while self.index >= self.layout.count {
            let Some(record) = self.pages.as_mut().and_then(Iterator::next) else {
                return Ok(false);
            };
            let (key, value) = record?;
            let page = PageRecord::open(key, value)?;
            self.enter(page.bytes, page.body)?;
        }
        Ok(true)
    }

    #[inline]
    fn page(&self) -> Page<'_> {
        Page::with_layout(self.layout, &self.bytes[self.body.clone()])
    }

    #[inline]
    fn value_range(&self) -> Result<Range<usize>> {
        let value = self.page().value(self.index - 1).ok_or_else(damaged_page)?;
        Ok(range_in(&self.bytes, value))
    }

    /// Moves to the next member and `slot` with it; false, with `slot` as it was, when there is none.
    #[inline]
    pub fn advance_with(&mut self, slot: &mut Slot<'s>) -> Result<bool> {
        if !self.advance()? {
            return Ok(false);
        }
        slot.range = self.value_range()?;
        slot.tree = self.tree;
        slot.bytes.clone_from(&self.bytes);
        Ok(true)
    }

    /// The node that it stands at.
    pub fn slot(&self) -> Result<Slot<'s>> {
        Ok(Slot { tree: self.tree, bytes: self.bytes.clone(), range: self.value_range()? })
    }

    /// The key that it stands at, in a map; `buffer` holds it where it is not in one piece.
    #[inline]
    pub fn key<'k>(&'k self, buffer: &'k mut Vec<u8>) -> Result<Key<'k>> {
        let page = self.page();
        let (suffix, _) = page.suffix_and_value(self.index - 1).ok_or_else(damaged_page)?;
        whole_key(&page, suffix, buffer)
    }

    /// The id that it stands at, in a list.
    pub fn id(&self) -> Result<u64> {
        Ok(self.page().element(self.index - 1).ok_or_else(damaged_page)?.0)
    }

    /// What it runs over.
    pub fn container(&self) -> Container {
        self.container
    }
}
