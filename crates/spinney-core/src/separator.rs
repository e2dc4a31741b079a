//! Which page of a map a key belongs to.
//!
//! A page's engine key ends in its separator: every key of the page is at or above it, every key of
//! the page before is below. The first page's is empty. A separator that is longer than the engine's
//! keys allow is cut; a tie-break rank follows it and the page holds it in full.

use std::ops::Bound;

use crate::backend::{Direction, TreeId};
use crate::error::Result;
use crate::layout::{PREFIX_LEN, RecordKind, prefix};
use crate::rank::{RANK_LEN_MAX, Rank};
use crate::record::damaged;
use crate::view::{PageRecord, View};

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

/// The page of a map that a key belongs to.
///
/// # Errors
/// `Corrupted` when the page is missing or damaged.
///
/// # Complexity
/// One engine lookup; log n of them among n pages whose separators are cut at the same bytes.
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

/// Among the pages whose separators are cut to the beginning of `key`, the last at or below it:
/// bisects their tie-breaks, which are in the order of the whole separators.
fn cut_page_of<'s>(
    view: &View<'s>,
    tree: TreeId,
    id: u64,
    key: &[u8],
) -> Result<Option<PageRecord<'s>>> {
    let at = |tie| cut_key(tree, id, key, tie, view.key_len_max);
    let last = match floor(view, tree, id, &at(Rank::MAX))? {
        Some(last) if last.key[..] >= at(0)[..] => last,
        _ => return Ok(None),
    };
    if whole_separator(&last)? <= key {
        return Ok(Some(last));
    }
    let tie = |page: &PageRecord<'_>| {
        tie_of(&page.key, view.key_len_max).ok_or_else(|| damaged(&page.key, "it has no tie-break"))
    };
    // Of the pages at `low` and below none is known to be above the key, from `high` on all are.
    let mut low = first_tie(view, &at(0), &last.key)?;
    let mut high = tie(&last)?;
    let mut best = None;
    while low < high {
        let probe = low + (high - low) / 2;
        match floor(view, tree, id, &at(probe))?.filter(|page| page.key[..] >= at(0)[..]) {
            Some(page) if whole_separator(&page)? > key => high = tie(&page)?,
            below => {
                best = below;
                low = probe + 1;
            }
        }
    }
    Ok(best)
}

/// The lowest tie-break of the pages that share a cut.
fn first_tie(view: &View<'_>, lowest: &[u8], last: &[u8]) -> Result<Rank> {
    let bounds = (Bound::Included(lowest), Bound::Included(last));
    let first = view.snapshot.range(bounds, Direction::Forward)?.next().transpose()?;
    Ok(first.and_then(|(key, _)| tie_of(&key, view.key_len_max)).unwrap_or(0))
}

fn whole_separator<'p>(page: &'p PageRecord<'_>) -> Result<&'p [u8]> {
    match &page.separator {
        Some(range) => Ok(&page.bytes[range.clone()]),
        None => Err(damaged(&page.key, "it has no separator")),
    }
}
