//! Fractional ranks: keys between any two keys, for the pages of lists and for cut separators.
//!
//! A rank is a 128-bit fraction; stored, it is big-endian without its trailing zero bytes, so that
//! byte order is rank order and appended ranks are at most five bytes long.

use crate::few_bytes;

/// A rank; 0 is before all.
pub type Rank = u128;

/// Bytes of the longest rank.
pub const RANK_LEN_MAX: usize = 16;

/// The distance between appended ranks, so that 2^40 fit.
const STEP: Rank = 1 << 88;

/// The rank of the first page.
pub const FIRST: Rank = STEP;

/// A rank after `last`; `None` when there is no room behind it.
pub fn after(last: Rank) -> Option<Rank> {
    match (last & !(STEP - 1)).checked_add(STEP) {
        Some(rank) => Some(rank),
        None => between(last, Rank::MAX),
    }
}

/// A short rank strictly between two; `None` when the gap is exhausted.
pub fn between(low: Rank, high: Rank) -> Option<Rank> {
    if high.saturating_sub(low) < 2 {
        return None;
    }
    let middle = low + (high - low) / 2;
    // Clears as many low bytes as keep it between, so that it is stored short.
    let shortest = (0..RANK_LEN_MAX).rev().map(|bytes| middle & !((1u128 << (8 * bytes)) - 1));
    shortest.into_iter().find(|&rank| rank > low && rank < high)
}

/// Bytes of the stored form.
#[inline]
pub fn len(rank: Rank) -> usize {
    RANK_LEN_MAX - rank.trailing_zeros() as usize / 8
}

/// Appends the stored form.
#[inline]
pub fn write(rank: Rank, out: &mut Vec<u8>) {
    let end = out.len() + len(rank);
    // A copy of fixed length needs no call.
    out.extend_from_slice(&rank.to_be_bytes());
    out.truncate(end);
}

/// Reads the stored form; `None` when it is not one.
#[inline]
pub fn read(bytes: &[u8]) -> Option<Rank> {
    if bytes.is_empty() || bytes.len() > RANK_LEN_MAX || bytes.last() == Some(&0) {
        return None;
    }
    let (high, low) = bytes.split_at(bytes.len().min(8));
    let word = |bytes| Rank::from(few_bytes::word(bytes).swap_bytes());
    Some(word(high) << 64 | word(low))
}

/// `count` ranks spread evenly between two; `None` when they do not fit.
pub fn spread(low: Rank, high: Rank, count: usize) -> Option<Vec<Rank>> {
    let step = (high - low) / (count as Rank + 1);
    if step == 0 {
        return None;
    }
    let mut ranks: Vec<Rank> = Vec::with_capacity(count);
    for index in 0..count as Rank {
        let (from, to) = (low + step * index, low + step * (index + 2));
        let floor = ranks.last().copied().unwrap_or(low).max(from);
        ranks.push(between(floor, to.min(high)).unwrap_or(low + step * (index + 1)));
    }
    Some(ranks)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_order_is_rank_order() {
        let mut ranks: Vec<Rank> = vec![1, 255, 256, FIRST, FIRST + 1, Rank::MAX, 1 << 127];
        for low in [0, FIRST, 1 << 100] {
            ranks.extend(spread(low, low + (1 << 90), 50).expect("fits"));
        }
        ranks.sort_unstable();
        ranks.dedup();
        let stored: Vec<Vec<u8>> = ranks
            .iter()
            .map(|&rank| {
                let mut out = Vec::new();
                write(rank, &mut out);
                assert_eq!(read(&out), Some(rank));
                out
            })
            .collect();
        assert!(stored.is_sorted());
    }

    #[test]
    fn a_gap_takes_many_halvings_and_then_says_so() {
        let (low, mut high, mut halvings) = (FIRST, after(FIRST).unwrap(), 0);
        while let Some(rank) = between(low, high) {
            assert!(low < rank && rank < high);
            high = rank;
            halvings += 1;
        }
        assert!(halvings >= 80, "{halvings}");
    }

    #[test]
    fn spread_is_ascending_within_its_bounds() {
        for (low, high, count) in [(0, Rank::MAX, 1000), (FIRST, FIRST + 2000, 999), (5, 7, 1)] {
            let ranks = spread(low, high, count).expect("fits");
            assert_eq!(ranks.len(), count);
            assert!(ranks.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(ranks[0] > low && ranks[count - 1] < high);
        }
        assert_eq!(spread(5, 7, 2), None);
    }
}
