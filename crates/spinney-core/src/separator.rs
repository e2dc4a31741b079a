//! Which page of a map a key belongs to.
//!
//! A page's engine key ends in its separator: every key of the page is at or above it, every key of
//! the page before is below. The first page's is empty. A separator that is longer than the engine's
//! keys allow is cut and a tie-break rank follows it; in full it is a beginning of the page's first key.

use std::ops::Bound;

use crate::backend::{Direction, TreeId};
use crate::error::{Error, Result};
use crate::layout::{PREFIX_LEN, RecordKind, prefix};
use crate::page::{Page, common_prefix_len};
use crate::rank::{RANK_LEN_MAX, Rank};
use crate::record::damaged;
use crate::view::{PageRecord, View};
use crate::visit::Container;

/// Bytes of the longest separator that an engine key holds in full.
pub fn len_max(key_len_max: usize) -> usize {
    key_len_max - PREFIX_LEN - RANK_LEN_MAX
}

/// The engine key of a page whose separator is not cut.
pub fn page_key(tree: TreeId, id: u64, separator: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(PREFIX_LEN + separator.len());
    key.extend_from_slice(&prefix(tree, RecordKind::Page, id));
    key.extend_from_slice(separator);
    key
}

/// The engine key of a page whose separator is cut.
pub fn cut_key(tree: TreeId, id: u64, separator: &[u8], tie: Rank, key_len_max: usize) -> Vec<u8> {
    let mut key = page_key(tree, id, &separator[..len_max(key_len_max)]);
    key.extend_from_slice(&tie.to_be_bytes());
    key
}

/// The tie-break of a page key, when its separator is cut.
pub fn tie_of(key: &[u8], key_len_max: usize) -> Option<Rank> {
    let cut_len = PREFIX_LEN + len_max(key_len_max);
    (key.len() == cut_len + RANK_LEN_MAX)
        .then(|| Rank::from_be_bytes(*key.last_chunk().expect("it is that long")))
}

/// The whole separator of a page, in two parts.
#[derive(Clone, Copy)]
pub struct Separator<'p> {
    start: &'p [u8],
    rest: &'p [u8],
}

impl<'p> Separator<'p> {
    /// The separator of a map's page.
    ///
    /// # Errors
    /// `Corrupted` when it does not read, or is not the one that the page's key holds a part of.
    pub fn of(page: &'p PageRecord<'_>) -> Result<Separator<'p>> {
        Separator::new(&page.key, &page.bytes[page.body.clone()], page.cut_len)
    }

    /// The separator of the page with an engine key and a body; `cut_len` bytes long, when it is cut.
    ///
    /// # Errors
    /// As [`Separator::of`].
    pub fn new(key: &'p [u8], body: &'p [u8], cut_len: Option<usize>) -> Result<Separator<'p>> {
        let bad = || damaged(key, "its separator does not read");
        let Some(len) = cut_len else {
            return Ok(Separator { start: &key[PREFIX_LEN..], rest: &[] });
        };
        let page = Page::parse(Container::Map, body).ok_or_else(bad)?;
        let (start, rest) = page.first_key_start(len).ok_or_else(bad)?;
        let whole = Separator { start, rest };
        let cut_end = key.len().checked_sub(RANK_LEN_MAX).ok_or_else(bad)?;
        let cut = key.get(PREFIX_LEN..cut_end).ok_or_else(bad)?;
        match whole.common_len(cut, 0) == cut.len() {
            true => Ok(whole),
            false => Err(bad()),
        }
    }

    /// The separator after the first key of its page has become `first`, which is not below it: the
    /// same, or the shortest beginning of `first` that is above it.
    pub fn raised<'k>(&self, first: &'k [u8]) -> &'k [u8] {
        let (common, len) = (self.common_len(first, 0), self.start.len() + self.rest.len());
        &first[..len.min(common + 1).min(first.len())]
    }

    /// Whether a key belongs to the page or to one behind it.
    pub fn is_at_or_below(&self, key: &[u8]) -> bool {
        self.is_at_or_below_from(key, self.common_len(key, 0))
    }

    /// As [`Separator::is_at_or_below`], when the first `common` bytes are the same and no more.
    fn is_at_or_below_from(&self, key: &[u8], common: usize) -> bool {
        match (self.byte(common), key.get(common)) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(own), Some(other)) => own < *other,
        }
    }

    /// How many bytes it has in common with a key, of which the first `known` are known to be.
    fn common_len(&self, key: &[u8], known: usize) -> usize {
        let mut len = known.min(self.start.len() + self.rest.len());
        if len < self.start.len() {
            len += common_prefix_len(&self.start[len..], &key[len..]);
        }
        match len.checked_sub(self.start.len()) {
            None => len,
            Some(at) => len + common_prefix_len(&self.rest[at..], &key[len..]),
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        match at.checked_sub(self.start.len()) {
            None => self.start.get(at).copied(),
            Some(at) => self.rest.get(at).copied(),
        }
    }
}

/// The page of a map that a key belongs to.
///
/// # Errors
/// `Corrupted` when the page is missing or damaged.
///
/// # Complexity
/// One engine lookup; log n of them among n pages whose separators are cut at the same bytes, and
/// two pages whose content is read in full.
#[inline]
pub fn page_of<'s>(view: &View<'s>, tree: TreeId, id: u64, key: &[u8]) -> Result<PageRecord<'s>> {
    let fits = len_max(view.key_len_max);
    if key.len() > fits
        && let Some(page) = cut_page_of(view, tree, id, key)?
    {
        return Ok(page);
    }
    floor(view, tree, id, &page_key(tree, id, &key[..key.len().min(fits)]))?
        .ok_or_else(|| damaged(&prefix(tree, RecordKind::Page, id), "its first page is missing"))
}

fn floor<'s>(view: &View<'s>, tree: TreeId, id: u64, key: &[u8]) -> Result<Option<PageRecord<'s>>> {
    let lower = prefix(tree, RecordKind::Page, id);
    match view.snapshot.floor(&lower, key)? {
        None => Ok(None),
        Some((found, record)) => PageRecord::open(found, record).map(Some),
    }
}

/// Among the pages whose separators are cut to the beginning of `key`, the last at or below it.
///
/// Bisects their tie-breaks, which are in the order of the whole separators. What two separators have
/// in common with the key, each between them has too, so a probe reads only the bytes behind that and
/// no checksum. The page that is found and the one behind it are checked instead: no other page can
/// be the answer when the key lies between the two.
fn cut_page_of<'s>(
    view: &View<'s>,
    tree: TreeId,
    id: u64,
    key: &[u8],
) -> Result<Option<PageRecord<'s>>> {
    let at = |tie| cut_key(tree, id, key, tie, view.key_len_max);
    let Some(first) = first_between(view, &at(0), &at(Rank::MAX))? else { return Ok(None) };
    let mut below = Probe::of(first, key, len_max(view.key_len_max))?;
    if !below.is_at_or_below {
        return match below.checked(key)? {
            true => Err(misplaced(&below.page)),
            false => Ok(None),
        };
    }
    let mut above: Option<Probe<'_>> = None;
    // The pages between `low` and `high` have not been compared yet.
    let (mut low, mut high) = (tie_of_page(view, &below.page)?, Rank::MAX);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let page = match floor_unchecked(view, &at(low), &at(middle))? {
            Some(page) => page,
            None => match first_between(view, &at(middle), &at(high))? {
                Some(page) => page,
                None => break,
            },
        };
        let known = above.as_ref().map_or(len_max(view.key_len_max), |above| above.common);
        let probe = Probe::of(page, key, known.min(below.common))?;
        let tie = tie_of_page(view, &probe.page)?;
        match probe.is_at_or_below {
            true => (low, below) = (tie, probe),
            false => (high, above) = (tie, Some(probe)),
        }
    }
    if !below.checked(key)? {
        return Err(misplaced(&below.page));
    }
    match above {
        Some(above) if above.checked(key)? => Err(misplaced(&above.page)),
        _ => Ok(Some(below.page)),
    }
}

/// A page whose separator was compared with a key before its checksum.
struct Probe<'s> {
    page: PageRecord<'s>,
    is_at_or_below: bool,
    /// Bytes that the separator and the key have in common.
    common: usize,
}

impl<'s> Probe<'s> {
    /// Compares a key of which the first `known` bytes are the separator's.
    fn of(page: PageRecord<'s>, key: &[u8], known: usize) -> Result<Probe<'s>> {
        let separator = Separator::of(&page)?;
        let common = separator.common_len(key, known);
        let is_at_or_below = separator.is_at_or_below_from(key, common);
        Ok(Probe { page, is_at_or_below, common })
    }

    /// Checks the page, and compares its whole separator: whether it is at or below the key.
    fn checked(&self, key: &[u8]) -> Result<bool> {
        self.page.check()?;
        Ok(Separator::of(&self.page)?.is_at_or_below(key))
    }
}

/// The error for a page that a search came to by separators that are not in order.
#[cold]
fn misplaced(page: &PageRecord<'_>) -> Error {
    damaged(&page.key, "the separators of the pages around it are not in order")
}

fn tie_of_page(view: &View<'_>, page: &PageRecord<'_>) -> Result<Rank> {
    tie_of(&page.key, view.key_len_max).ok_or_else(|| damaged(&page.key, "it has no tie-break"))
}

/// The last page above one engine key and at or below another, its checksum unchecked.
fn floor_unchecked<'s>(
    view: &View<'s>,
    above: &[u8],
    key: &[u8],
) -> Result<Option<PageRecord<'s>>> {
    match view.snapshot.floor(above, key)? {
        Some((found, record)) if *found > *above => PageRecord::unchecked(found, record).map(Some),
        _ => Ok(None),
    }
}

/// The first page between two engine keys, its checksum unchecked.
fn first_between<'s>(
    view: &View<'s>,
    above: &[u8],
    below: &[u8],
) -> Result<Option<PageRecord<'s>>> {
    let bounds = (Bound::Excluded(above), Bound::Excluded(below));
    match view.snapshot.range(bounds, Direction::Forward)?.next().transpose()? {
        Some((found, record)) => PageRecord::unchecked(found, record).map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Entry, encode};

    const KEYS: [&[u8]; 3] = [b"cut and more", b"cut and moss", b"cut and most"];

    /// The engine key and the body of a page whose separator is cut after three bytes.
    fn page(keys: &[&[u8]]) -> (Vec<u8>, Vec<u8>) {
        let mut body = Vec::new();
        let entry = |index: usize| Entry { key: keys[index], id: 0, value: b"v" };
        encode(Container::Map, keys.len(), entry, None, &mut body);
        (cut_key(1, 2, b"cut and mo", 7, PREFIX_LEN + 3 + RANK_LEN_MAX), body)
    }

    #[test]
    fn a_cut_separator_is_a_beginning_of_the_first_key() {
        for count in 1..=3 {
            let (key, body) = page(&KEYS[..count]);
            for len in 3..=KEYS[0].len() {
                let separator = Separator::new(&key, &body, Some(len)).expect("it reads");
                let whole = &KEYS[0][..len];
                for other in [&b"cut"[..], b"cut and", b"cut and more", b"cut and mox", b"d", b""] {
                    let common = common_prefix_len(whole, other);
                    for known in 0..=common {
                        assert_eq!(separator.common_len(other, known), common);
                    }
                    assert_eq!(separator.is_at_or_below(other), whole <= other);
                }
                assert_eq!(separator.raised(KEYS[0]), whole);
            }
            for len in [0, 2, KEYS[0].len() + 1, usize::MAX] {
                assert!(Separator::new(&key, &body, Some(len)).is_err(), "{count} {len}");
            }
        }
        let (key, body) = page(&[]);
        assert!(Separator::new(&key, &body, Some(3)).is_err());
    }

    #[test]
    fn a_separator_rises_to_the_shortest_that_the_first_key_starts_with() {
        let (key, body) = page(&KEYS);
        let separator = Separator::new(&key, &body, Some(11)).expect("it reads");
        for (first, raised) in [("cut and most", "cut and mos"), ("cuu", "cuu"), ("d1", "d")] {
            assert_eq!(separator.raised(first.as_bytes()), raised.as_bytes());
        }
    }
}
