//! Pages: runs of sibling entries, searched in place.
//!
//! One codec serves inline containers and the pages of large ones. A body is
//! `flags u8 | count | prefix? | first id? | next id? | offsets | entries`; see `docs/format.md`.
//! This module knows entries as bytes, not what their values mean. `None` means damaged bytes.

mod copying;
mod measure;

use crate::varint;
use crate::visit::Container;

pub use copying::{extend, splice};
pub use measure::Measure;

const WIDTH_MASK: u8 = 0x03;
const HAS_PREFIX: u8 = 0x04;
const IDS_EXPLICIT: u8 = 0x08;
const HAS_FIRST_ID: u8 = 0x10;
const HAS_NEXT_ID: u8 = 0x20;
const FLAGS_MASK: u8 = 0x3f;

/// One entry: a map's encoded key or a list's element id, and the encoded node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The whole encoded key in a map; empty in a list.
    pub key: &'a [u8],
    /// The element id in a list; 0 in a map.
    pub id: u64,
    /// The encoded node.
    pub value: &'a [u8],
}

/// Where things lie in a page body: what parsing found, without the bytes.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// What it is a page of.
    pub container: Container,
    /// Number of entries.
    pub count: usize,
    first_id: u64,
    // Bodies are at most 4 GiB, as their offsets are.
    prefix_at: u32,
    prefix_len: u32,
    offsets_at: u32,
    entries_at: u32,
    /// Where the next id is stored; 0 where it is not.
    next_id_at: u32,
    width: u8,
    explicit_ids: bool,
}

/// A page body, ready to be searched.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Where things lie.
    pub layout: Layout,
    body: &'a [u8],
}

impl<'a> Page<'a> {
    /// Reads the header of a body. The empty body is an empty container.
    #[inline]
    pub fn parse(container: Container, body: &'a [u8]) -> Option<Page<'a>> {
        let mut layout = Layout {
            container,
            count: 0,
            prefix_at: 0,
            prefix_len: 0,
            next_id_at: 0,
            explicit_ids: false,
            first_id: 0,
            width: 1,
            offsets_at: 0,
            entries_at: 0,
        };
        let Some(&flags) = body.first() else {
            return Some(Page { layout, body });
        };
        u32::try_from(body.len()).ok()?;
        if flags & !FLAGS_MASK != 0 || flags & WIDTH_MASK == WIDTH_MASK {
            return None;
        }
        layout.width = 1 << (flags & WIDTH_MASK);
        let mut at = 1;
        layout.count = usize::try_from(varint::read(body, &mut at)?).ok()?;
        if flags & HAS_PREFIX != 0 {
            layout.prefix_len = varint::read_bytes(body, &mut at)?.len() as u32;
            layout.prefix_at = at as u32 - layout.prefix_len;
        }
        layout.explicit_ids = flags & IDS_EXPLICIT != 0;
        if flags & HAS_FIRST_ID != 0 {
            layout.first_id = varint::read(body, &mut at)?;
        }
        if flags & HAS_NEXT_ID != 0 {
            layout.next_id_at = at as u32;
            varint::read(body, &mut at)?;
        }
        let offsets_len = layout.count.saturating_sub(1).checked_mul(usize::from(layout.width))?;
        let entries_at = at.checked_add(offsets_len).filter(|&at| at <= body.len())?;
        (layout.offsets_at, layout.entries_at) = (at as u32, entries_at as u32);
        Some(Page { layout, body })
    }

    /// The page that was parsed to this layout, over the same bytes.
    #[inline]
    pub fn with_layout(layout: Layout, body: &'a [u8]) -> Page<'a> {
        Page { layout, body }
    }

    /// Number of entries.
    #[inline]
    pub fn count(&self) -> usize {
        self.layout.count
    }

    /// Bytes that all keys start with.
    #[inline]
    pub fn prefix(&self) -> &'a [u8] {
        let start = self.layout.prefix_at as usize;
        &self.body[start..start + self.layout.prefix_len as usize]
    }

    #[inline]
    fn offset(&self, index: usize) -> Option<usize> {
        let entries_at = self.layout.entries_at as usize;
        if index == 0 {
            return Some(entries_at);
        }
        if index == self.layout.count {
            return Some(self.body.len());
        }
        let at = self.layout.offsets_at as usize + (index - 1) * usize::from(self.layout.width);
        let offset = match self.layout.width {
            1 => usize::from(*self.body.get(at)?),
            2 => usize::from(u16::from_le_bytes(*self.body.get(at..)?.first_chunk()?)),
            _ => u32::from_le_bytes(*self.body.get(at..)?.first_chunk()?) as usize,
        };
        Some(entries_at + offset)
    }

    #[inline]
    fn raw(&self, index: usize) -> Option<&'a [u8]> {
        if index >= self.layout.count {
            return None;
        }
        self.body.get(self.offset(index)?..self.offset(index + 1)?)
    }

    /// An entry: in a map the key without the common prefix, in a list the element's id, and the value.
    #[inline]
    pub fn entry(&self, index: usize) -> Option<RawEntry<'a>> {
        match self.layout.container {
            Container::Map => {
                self.suffix_and_value(index).map(|(suffix, value)| (suffix, 0, value))
            }
            Container::List => self.element(index).map(|(id, value)| (&[][..], id, value)),
        }
    }

    /// The entries from an index on: in a map the key without the common prefix, in a list the
    /// element's id, and the value.
    #[inline]
    pub fn entries_from(&self, index: usize) -> Entries<'_, 'a> {
        let at = if index < self.layout.count { self.offset(index) } else { Some(self.body.len()) };
        Entries { page: self, index, at: at.unwrap_or(usize::MAX) }
    }

    /// The key of an entry without the common prefix, and its value.
    #[inline]
    pub fn suffix_and_value(&self, index: usize) -> Option<(&'a [u8], &'a [u8])> {
        let raw = self.raw(index)?;
        let mut at = 0;
        let suffix = varint::read_bytes(raw, &mut at)?;
        Some((suffix, &raw[at..]))
    }

    /// The id and the value of a list's element.
    #[inline]
    pub fn element(&self, index: usize) -> Option<(u64, &'a [u8])> {
        let raw = self.raw(index)?;
        if !self.layout.explicit_ids {
            return Some((self.layout.first_id.checked_add(index as u64)?, raw));
        }
        let mut at = 0;
        let id = varint::read(raw, &mut at)?;
        Some((id, &raw[at..]))
    }

    /// The value of an entry, map or list.
    #[inline]
    pub fn value(&self, index: usize) -> Option<&'a [u8]> {
        match self.layout.container {
            Container::Map => Some(self.suffix_and_value(index)?.1),
            Container::List => Some(self.element(index)?.1),
        }
    }

    /// The first `len` bytes of the first key, in two parts; `None` when it is shorter.
    #[inline]
    pub fn first_key_start(&self, len: usize) -> Option<(&'a [u8], &'a [u8])> {
        let prefix = self.prefix();
        match len.checked_sub(prefix.len()) {
            None => Some((&prefix[..len], &[])),
            Some(rest) => Some((prefix, self.suffix_and_value(0)?.0.get(..rest)?)),
        }
    }

    /// Appends the whole key of an entry.
    pub fn key_into(&self, index: usize, out: &mut Vec<u8>) -> Option<()> {
        let (suffix, _) = self.suffix_and_value(index)?;
        out.extend_from_slice(self.prefix());
        out.extend_from_slice(suffix);
        Some(())
    }

    /// Binary search for an encoded key: `Ok(index)` when it is there, `Err(index)` where it would be.
    #[inline]
    pub fn search(&self, key: &[u8]) -> Option<Result<usize, usize>> {
        let count = self.layout.count;
        if count == 0 {
            return Some(Err(0));
        }
        let prefix = self.prefix();
        let Some(wanted) = key.strip_prefix(prefix) else {
            return Some(Err(if key < prefix { 0 } else { count }));
        };
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = (low + high) / 2;
            let mut at = self.offset(middle)?;
            let suffix = varint::read_bytes(self.body, &mut at)?;
            match suffix.cmp(wanted) {
                std::cmp::Ordering::Equal => return Some(Ok(middle)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Some(Err(low))
    }

    /// Whether a key is between the first and the last of a map's page.
    pub fn covers(&self, key: &[u8]) -> bool {
        let suffix = |index| self.suffix_and_value(index).map(|(suffix, _)| suffix);
        match (key.strip_prefix(self.prefix()), self.layout.count.checked_sub(1)) {
            (Some(wanted), Some(last)) => {
                suffix(0).is_some_and(|first| first <= wanted)
                    && suffix(last).is_some_and(|last| wanted <= last)
            }
            _ => false,
        }
    }

    /// Whether a key of a map's page begins with `beginning`.
    pub fn has_key_like(&self, beginning: &[u8]) -> Option<bool> {
        let (Ok(index) | Err(index)) = self.search(beginning)?;
        if index == self.layout.count {
            return Some(false);
        }
        let (suffix, _) = self.suffix_and_value(index)?;
        let key = self.prefix().iter().chain(suffix);
        Some(key.take(beginning.len()).eq(beginning))
    }

    /// The id that a new element gets: stored, or one above the largest.
    pub fn next_id_or_derived(&self) -> Option<u64> {
        let Layout { count, first_id, .. } = self.layout;
        match self.layout.next_id_at {
            at @ 1.. => varint::read(self.body, &mut (at as usize)),
            0 if !self.layout.explicit_ids => first_id.checked_add(count as u64),
            0 => {
                let mut next = 0;
                for index in 0..count {
                    next = next.max(self.element(index)?.0.checked_add(1)?);
                }
                Some(next)
            }
        }
    }
}

/// Reads entries one after another; an item is `None` where they are damaged.
pub struct Entries<'p, 'a> {
    page: &'p Page<'a>,
    index: usize,
    at: usize,
}

/// The suffix of a map's key, the id of a list's element, and the value.
pub type RawEntry<'a> = (&'a [u8], u64, &'a [u8]);

impl<'a> Iterator for Entries<'_, 'a> {
    type Item = Option<RawEntry<'a>>;

    #[inline(always)]
    fn next(&mut self) -> Option<Option<RawEntry<'a>>> {
        if self.index < self.page.layout.count { Some(self.read()) } else { None }
    }
}

impl<'a> Entries<'_, 'a> {
    #[inline(always)]
    fn read(&mut self) -> Option<RawEntry<'a>> {
        let Page { layout, body } = self.page;
        let (index, start) = (self.index, self.at);
        (self.index, self.at) = (index + 1, usize::MAX);
        let end = self.page.offset(index + 1)?;
        self.at = end;
        let raw = body.get(start..end)?;
        let mut at = 0;
        match layout.container {
            Container::Map => {
                // Nearly all lengths take one byte.
                if let Some((&len @ ..0x80, rest)) = raw.split_first() {
                    let (suffix, value) = rest.split_at_checked(len.into())?;
                    return Some((suffix, 0, value));
                }
                let suffix = varint::read_bytes(raw, &mut at)?;
                Some((suffix, 0, &raw[at..]))
            }
            Container::List if layout.explicit_ids => {
                let id = varint::read(raw, &mut at)?;
                Some((&[][..], id, &raw[at..]))
            }
            Container::List => Some((&[][..], layout.first_id.checked_add(index as u64)?, raw)),
        }
    }
}

/// Length of the longest common prefix.
#[inline]
pub fn common_prefix_len(a: &[u8], b: &[u8]) -> usize {
    let mut len = equal_chunks_len::<256>(a, b);
    len += equal_chunks_len::<32>(&a[len..], &b[len..]);
    while let (Some(x), Some(y)) = (a[len..].first_chunk::<8>(), b[len..].first_chunk::<8>()) {
        let differing = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differing != 0 {
            return len + differing.trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    len + a[len..].iter().zip(&b[len..]).take_while(|(x, y)| x == y).count()
}

/// Bytes of the chunks that are equal at the beginning.
#[inline]
fn equal_chunks_len<const N: usize>(a: &[u8], b: &[u8]) -> usize {
    let chunks = a.as_chunks::<N>().0.iter().zip(b.as_chunks::<N>().0);
    N * chunks.take_while(|(x, y)| x == y).count()
}

/// Appends the body of a page of `count` entries; map entries must come in ascending keys.
///
/// `next_id` is stored only where it cannot be derived; pages of large lists pass `None`.
pub fn encode<'a>(
    container: Container,
    count: usize,
    entry: impl Fn(usize) -> Entry<'a>,
    next_id: Option<u64>,
    out: &mut Vec<u8>,
) {
    if count == 0 && next_id.unwrap_or(0) == 0 {
        return;
    }
    let mut flags = 0;
    let mut prefix: &[u8] = &[];
    let mut first_id = 0;
    let mut entries_len = 0;
    match container {
        Container::Map => {
            if count > 1 {
                let (first, last) = (entry(0).key, entry(count - 1).key);
                let len = common_prefix_len(first, last);
                if len * (count - 1) > 2 {
                    prefix = &first[..len];
                    flags |= HAS_PREFIX;
                }
            }
            for index in 0..count {
                let Entry { key, value, .. } = entry(index);
                let suffix_len = key.len() - prefix.len();
                entries_len += varint::len(suffix_len as u64) + suffix_len + value.len();
            }
        }
        Container::List => {
            first_id = if count > 0 { entry(0).id } else { 0 };
            if !(0..count).all(|index| entry(index).id == first_id.wrapping_add(index as u64)) {
                flags |= IDS_EXPLICIT;
            } else if first_id != 0 {
                flags |= HAS_FIRST_ID;
            }
            for index in 0..count {
                let Entry { id, value, .. } = entry(index);
                let id_len = if flags & IDS_EXPLICIT != 0 { varint::len(id) } else { 0 };
                entries_len += id_len + value.len();
            }
        }
    }
    let derived_next = if flags & IDS_EXPLICIT != 0 {
        (0..count).map(|index| entry(index).id + 1).max().unwrap_or(0)
    } else {
        first_id + count as u64
    };
    let next_id = next_id.filter(|&id| id != derived_next);
    if next_id.is_some() {
        flags |= HAS_NEXT_ID;
    }
    let width_bits = width_bits(entries_len);
    out.push(flags | width_bits);
    varint::write(count as u64, out);
    if flags & HAS_PREFIX != 0 {
        varint::write_bytes(prefix, out);
    }
    if flags & HAS_FIRST_ID != 0 {
        varint::write(first_id, out);
    }
    if let Some(id) = next_id {
        varint::write(id, out);
    }
    let offsets_at = out.len();
    out.resize(offsets_at + (count.saturating_sub(1) << width_bits), 0);
    let entries_at = out.len();
    out.reserve(entries_len);
    for index in 0..count {
        if index > 0 {
            let offset = (out.len() - entries_at) as u32;
            let at = offsets_at + ((index - 1) << width_bits);
            // Copies of fixed length need no call.
            match width_bits {
                0 => out[at] = offset as u8,
                1 => out[at..at + 2].copy_from_slice(&(offset as u16).to_le_bytes()),
                _ => out[at..at + 4].copy_from_slice(&offset.to_le_bytes()),
            }
        }
        let Entry { key, id, value } = entry(index);
        match container {
            Container::Map => varint::write_bytes(&key[prefix.len()..], out),
            Container::List if flags & IDS_EXPLICIT != 0 => varint::write(id, out),
            Container::List => {}
        }
        out.extend_from_slice(value);
    }
    debug_assert_eq!(out.len() - entries_at, entries_len);
}

/// Bytes of a body of `count` entries that are encoded as they lie in it: those of a map in
/// ascending keys without a common prefix, those of a list with ids that count up from 0.
/// `entries_len` is the length of all of them.
#[inline]
pub fn body_len_of_parts(count: usize, entries_len: usize) -> usize {
    match count {
        0 => 0,
        _ => {
            let width = 1 << width_bits(entries_len);
            1 + varint::len(count as u64) + (count - 1) * width + entries_len
        }
    }
}

/// Appends what stands before such entries, whose ends are given; the ids of a list's may count up from another
/// first one.
#[inline]
pub fn write_header_of_parts(
    part_ends: impl ExactSizeIterator<Item = usize>,
    entries_len: usize,
    first_id: u64,
    out: &mut Vec<u8>,
) {
    let count = part_ends.len();
    if count == 0 {
        return;
    }
    let width_bits = width_bits(entries_len);
    out.push(if first_id == 0 { width_bits } else { width_bits | HAS_FIRST_ID });
    varint::write(count as u64, out);
    if first_id != 0 {
        varint::write(first_id, out);
    }
    let at = out.len();
    out.resize(at + ((count - 1) << width_bits), 0);
    let offsets = &mut out[at..];
    // Without a look at the room for each, in copies of fixed length.
    match width_bits {
        0 => part_ends.zip(offsets).for_each(|(end, offset)| *offset = end as u8),
        1 => {
            let offsets = offsets.as_chunks_mut().0.iter_mut();
            part_ends.zip(offsets).for_each(|(end, offset)| *offset = (end as u16).to_le_bytes());
        }
        _ => {
            let offsets = offsets.as_chunks_mut().0.iter_mut();
            part_ends.zip(offsets).for_each(|(end, offset)| *offset = (end as u32).to_le_bytes());
        }
    }
}

/// The width of offsets as flags tell it.
#[inline]
fn width_bits(entries_len: usize) -> u8 {
    match entries_len {
        0..0x100 => 0,
        0x100..0x1_0000 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn map_body(keys: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        encode(
            Container::Map,
            keys.len(),
            |i| Entry { key: keys[i], id: 0, value: keys[i] },
            None,
            &mut out,
        );
        out
    }

    #[test]
    fn search_finds_every_key_and_every_gap() {
        let texts: Vec<String> = (0..300).map(|i| format!("common/{:04}", i * 2)).collect();
        let keys: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        for n in [0, 1, 2, 3, 300] {
            let body = map_body(&keys[..n]);
            let page = Page::parse(Container::Map, &body).expect("parses");
            assert_eq!(page.count(), n);
            for (i, key) in keys[..n].iter().enumerate() {
                assert_eq!(page.search(key), Some(Ok(i)));
                assert_eq!(page.value(i), Some(*key));
                assert_eq!(
                    page.search(format!("common/{:04}", i * 2 + 1).as_bytes()),
                    Some(Err(i + 1))
                );
            }
            assert_eq!(page.search(b"a"), Some(Err(0)));
            assert_eq!(page.search(b"common"), Some(Err(0)));
            assert_eq!(page.search(b"d"), Some(Err(n)));
        }
    }

    #[test]
    fn ids_are_implied_while_they_count_up() {
        for (ids, next) in [
            (vec![0, 1, 2], 3),
            (vec![5, 6], 7),
            (vec![3, 1, 9], 10),
            (vec![0, 1], 9),
            (vec![], 4),
            (vec![], 0),
        ] {
            let mut body = Vec::new();
            encode(
                Container::List,
                ids.len(),
                |i| Entry { key: &[], id: ids[i], value: b"v" },
                Some(next),
                &mut body,
            );
            let page = Page::parse(Container::List, &body).expect("parses");
            assert_eq!((0..ids.len()).map(|i| page.element(i).unwrap().0).collect::<Vec<_>>(), ids);
            assert_eq!(page.next_id_or_derived(), Some(next), "{ids:?}");
        }
    }

    #[test]
    fn the_measure_is_never_too_small() {
        let texts: Vec<String> = (0..200).map(|i| format!("k{}", i * 7919 % 1000 + 1000)).collect();
        let mut keys: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        keys.sort_unstable();
        keys.dedup();
        let mut measure = Measure::default();
        for n in 1..=keys.len() {
            measure = measure.with(keys[0], &Entry { key: keys[n - 1], id: 0, value: keys[n - 1] });
            assert!(map_body(&keys[..n]).len() <= measure.body_len_max());
        }
    }

    #[test]
    fn damaged_bodies_never_panic() {
        let body = map_body(&[b"a", b"ab", b"b"]);
        for at in 0..body.len() {
            for bit in 0..8 {
                let mut bad = body.clone();
                bad[at] ^= 1 << bit;
                for container in [Container::Map, Container::List] {
                    if let Some(page) = Page::parse(container, &bad) {
                        let _ = page.search(b"ab");
                        for index in 0..page.count().min(10) {
                            let _ = (
                                page.value(index),
                                page.element(index),
                                page.key_into(index, &mut Vec::new()),
                            );
                        }
                        let _ = page.next_id_or_derived();
                    }
                }
            }
        }
    }
}
