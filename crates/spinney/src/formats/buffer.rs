//! Printed text on its way to an output.
//!
//! All bytes of the buffer are there before they are printed, so that short texts are copied in
//! pieces of fixed length, which need no call and may reach beyond their end.

use spinney_core::stretch::Stretch;

use super::scan::{pad, specials};

/// Bytes that are always there behind the text: more than all that is printed at once.
const SPARE: usize = 128;

/// The bytes behind the text.
pub(super) type Spare = [u8; SPARE];

/// The longest text that [`put`] takes.
pub(super) const SHORT: usize = 32;

pub(super) struct Buffer {
    bytes: Vec<u8>,
    /// Where the spare bytes behind the text end; `bytes` may have to grow to that.
    end: usize,
    scratch: Vec<u8>,
}

impl Buffer {
    pub(super) fn with_capacity(len: usize) -> Buffer {
        Buffer { bytes: vec![0; len + SPARE], end: SPARE, scratch: Vec::new() }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.end - SPARE
    }

    pub(super) fn clear(&mut self) {
        self.end = SPARE;
    }

    /// The bytes behind the text; [`Buffer::advance`] takes in what was printed there.
    #[inline(always)]
    pub(super) fn spare(&mut self) -> &mut Spare {
        if self.end > self.bytes.len() {
            self.grow(0);
        }
        self.bytes[..self.end].last_chunk_mut().expect("spare bytes are there")
    }

    #[inline(always)]
    pub(super) fn advance(&mut self, len: usize) {
        self.end += len;
    }

    #[inline(always)]
    pub(super) fn push(&mut self, byte: u8) {
        self.spare()[0] = byte;
        self.advance(1);
    }

    /// Appends the first `len` of eight bytes.
    #[inline(always)]
    pub(super) fn word(&mut self, word: &[u8; 8], len: usize) {
        store(self.spare(), 0, word);
        self.advance(len);
    }

    #[inline(always)]
    pub(super) fn extend(&mut self, text: &[u8]) {
        if self.end + text.len() > self.bytes.len() {
            self.grow(text.len());
        }
        let start = self.len();
        self.bytes[start..][..text.len()].copy_from_slice(text);
        self.end += text.len();
    }

    pub(super) fn fill(&mut self, len: usize, byte: u8) {
        self.grow(len);
        let start = self.len();
        self.bytes[start..][..len].fill(byte);
        self.end += len;
    }

    /// Takes in what others append who only know vectors.
    pub(super) fn append(&mut self, print: impl FnOnce(&mut Vec<u8>)) {
        let mut scratch = std::mem::take(&mut self.scratch);
        print(&mut scratch);
        self.extend(&scratch);
        scratch.clear();
        self.scratch = scratch;
    }

    /// Makes place for so many bytes and the spare ones.
    #[cold]
    fn grow(&mut self, len: usize) {
        let len = self.end + len;
        if self.bytes.len() < len {
            self.bytes.resize(len.max(self.bytes.capacity()), 0);
        }
    }
}

/// Copies eight bytes to `at`, which is below 64.
#[inline(always)]
pub(super) fn store(spare: &mut Spare, at: usize, bytes: &[u8; 8]) {
    // Without the mask the compiler would check the bounds each time.
    *spare[at & 63..].first_chunk_mut().expect("128 bytes") = *bytes;
}

/// Copies a text of at most [`SHORT`] bytes to `at`, and returns whether JSON must escape it. Bytes
/// behind it may change, fewer than [`SHORT`].
#[inline(always)]
pub(super) fn put(text: Stretch<'_>, spare: &mut Spare, at: usize) -> bool {
    if let Some(window) = text.window::<SHORT>() {
        *spare[at & 63..].first_chunk_mut().expect("128 bytes") = *window;
        let (mut hits, mut rest) = (0, text.bytes().len());
        for word in window.as_chunks().0 {
            let special = specials(u64::from_le_bytes(*word));
            if rest <= 8 {
                hits |= special.unbounded_shl(64 - 8 * rest as u32);
                break;
            }
            hits |= special;
            rest -= 8;
        }
        return hits != 0;
    }
    put_bytes(text.bytes(), spare, at)
}

/// As [`put`], where nothing is known of what lies behind the text.
pub(super) fn put_bytes(text: &[u8], spare: &mut Spare, at: usize) -> bool {
    let len = text.len();
    let special = |bytes: &[u8; 8]| specials(u64::from_le_bytes(*bytes));
    let hits = match (text.first_chunk::<8>(), text.last_chunk::<8>()) {
        (Some(first), Some(last)) if len <= 16 => {
            store(spare, at, first);
            store(spare, at + len - 8, last);
            special(first) | special(last)
        }
        (Some(_), Some(last)) => {
            let (words, _) = text.as_chunks::<8>();
            let mut hits = special(last);
            for (index, word) in words.iter().enumerate() {
                store(spare, at + 8 * index, word);
                hits |= special(word);
            }
            store(spare, at + len - 8, last);
            hits
        }
        _ => {
            let word = up_to_seven(text);
            store(spare, at, &word.to_le_bytes());
            specials(pad(word, len))
        }
    };
    hits != 0
}

/// Fewer than eight bytes, the first lowest.
#[inline(always)]
fn up_to_seven(text: &[u8]) -> u64 {
    let len = text.len();
    if let (Some(first), Some(last)) = (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        return u64::from(first) | u64::from(last) << (8 * (len - 4));
    }
    match text {
        [first, .., last] => {
            let middle = text[len / 2];
            u64::from(*first)
                | u64::from(middle) << (8 * (len / 2))
                | u64::from(*last) << (8 * (len - 1))
        }
        [only] => u64::from(*only),
        [] => 0,
    }
}
