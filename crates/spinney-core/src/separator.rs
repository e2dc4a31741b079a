//! Which page of a map a key belongs to.
//!
//! A page's engine key ends in its separator: every key of the page is at or above it, every key of
//! the page before is below. The first page's is empty. A separator that is longer than the engine's
//! keys allow is cut; a tie-break rank follows it and the page holds it in full.

use crate::backend::TreeId;
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
    let same_cut_len = PREFIX_LEN + len_max(view.key_len_max);
    let (mut low, mut high): (Rank, Rank) = (0, Rank::MAX);
    let mut best = None;
    let mut probe = Rank::MAX;
    while low <= high {
        let wanted = at(probe);
        let page = floor(view, tree, id, &wanted)?.filter(|page| {
            page.key.len() == wanted.len() && page.key[..same_cut_len] == wanted[..same_cut_len]
        });
        match page {
            Some(page) => {
                let tie = tie_of(&page.key, view.key_len_max).expect("it has the length of one");
                let whole = page
                    .separator
                    .clone()
                    .ok_or_else(|| damaged(&page.key, "it has no separator"))?;
                if page.bytes[whole] <= *key {
                    best = Some(page);
                    low = match probe.checked_add(1) {
                        Some(low) => low,
                        None => break,
                    };
                } else if tie == 0 {
                    break;
                } else {
                    high = tie - 1;
                }
            }
            None => {
                low = match probe.checked_add(1) {
                    Some(low) => low,
                    None => break,
                }
            }
        }
        if low > high {
            break;
        }
        probe = low + (high - low) / 2;
    }
    Ok(best)
}
