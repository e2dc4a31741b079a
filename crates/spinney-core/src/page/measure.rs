//! How long a page's body may become.

use super::{Entry, Page, common_prefix_len};
use crate::varint;

/// Estimates the body of a growing run of entries from above, so that pages can be filled.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measure {
    count: usize,
    bytes: usize,
    prefix_len: usize,
    first_id: u64,
    /// Bytes of the ids, when they do not count up from the first.
    ids_len: usize,
    explicit_ids: bool,
}

/// Bytes that a page needs beside its entries: flags, count, prefix length, ids.
const HEADER_LEN_MAX: usize = 1 + 3 + 3 + 10 + 10;

impl Measure {
    /// The measure with one entry more; `first` is the first key of the run.
    #[inline]
    pub fn with(&self, first: &[u8], entry: &Entry<'_>) -> Measure {
        let mut measure = Measure { count: self.count + 1, ..*self };
        measure.bytes += entry.value.len();
        if entry.key.is_empty() {
            if self.count == 0 {
                measure.first_id = entry.id;
            }
            measure.explicit_ids |= entry.id != measure.first_id.wrapping_add(self.count as u64);
            measure.ids_len += varint::len(entry.id);
        } else {
            measure.bytes += varint::len(entry.key.len() as u64) + entry.key.len();
            measure.prefix_len = match self.count {
                0 => first.len(),
                _ => common_prefix_len(&first[..self.prefix_len], entry.key),
            };
        }
        measure
    }

    /// The measure of elements of a list whose ids count up.
    #[inline]
    pub fn of_elements(count: usize, bytes: usize) -> Measure {
        Measure { count, bytes, ..Measure::default() }
    }

    /// The measure of a whole run of map entries in ascending keys.
    pub fn of_sorted(entries: &[Entry<'_>]) -> Measure {
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Measure::default();
        };
        let entry_len = |entry: &Entry<'_>| {
            varint::len(entry.key.len() as u64) + entry.key.len() + entry.value.len()
        };
        Measure {
            count: entries.len(),
            bytes: entries.iter().map(entry_len).sum(),
            prefix_len: common_prefix_len(first.key, last.key),
            ..Measure::default()
        }
    }

    /// The measure of the first elements of a list's page; `None` when it does not read.
    pub fn of_first(page: &Page<'_>, count: usize) -> Option<Measure> {
        let bytes = page.offset(count)?.checked_sub(page.layout.entries_at as usize)?;
        let (first_id, _) = page.element(0)?;
        let explicit_ids = page.layout.explicit_ids;
        // Stored ids are among the bytes.
        let ids_len = match explicit_ids {
            true => 0,
            false => count * varint::len(first_id.saturating_add(count as u64)),
        };
        Some(Measure { count, bytes, first_id, ids_len, explicit_ids, ..Measure::default() })
    }

    /// Entries so far.
    pub fn count(&self) -> usize {
        self.count
    }

    /// At most this many bytes of body.
    #[inline]
    pub fn body_len_max(&self) -> usize {
        let width = match self.bytes {
            0..0x1_0000 => 2,
            _ => 4,
        };
        let ids_len = if self.explicit_ids { self.ids_len } else { 0 };
        let saved = self.prefix_len * self.count.saturating_sub(1);
        HEADER_LEN_MAX + self.count.saturating_sub(1) * width + self.bytes + ids_len - saved
    }
}
