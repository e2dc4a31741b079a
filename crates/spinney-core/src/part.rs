//! A part of bytes that others may share.

use std::ops::Deref;
use std::sync::Arc;

/// Some bytes of a shared buffer; parts of it are cheap to take.
#[derive(Clone, Debug)]
pub struct Part {
    bytes: Arc<[u8]>,
    start: usize,
    end: usize,
}

impl Part {
    /// A part of this part, which keeps the whole buffer alive.
    ///
    /// # Panics
    /// When `inner` is not a slice of it.
    #[inline]
    pub fn part(&self, inner: &[u8]) -> Part {
        let start = inner.as_ptr() as usize - self.bytes.as_ptr() as usize;
        let end = start + inner.len();
        assert!(start >= self.start && end <= self.end, "it is a slice of this part");
        Part { bytes: Arc::clone(&self.bytes), start, end }
    }
}

impl Deref for Part {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }
}

impl From<&[u8]> for Part {
    fn from(bytes: &[u8]) -> Part {
        Part { start: 0, end: bytes.len(), bytes: bytes.into() }
    }
}

impl Default for Part {
    fn default() -> Part {
        Part::from(&[][..])
    }
}
