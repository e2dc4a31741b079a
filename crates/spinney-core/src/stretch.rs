//! Bytes that a receiver copies, with what lies behind them in their record.
//!
//! Short texts are copied fastest in a fixed length; whoever knows the record can do that.

/// Some bytes of a record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stretch<'a> {
    record: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Stretch<'a> {
    /// The bytes, which are a slice of `record`.
    #[inline(always)]
    pub fn new(record: &'a [u8], bytes: &'a [u8]) -> Stretch<'a> {
        Stretch { record, bytes }
    }

    /// The record.
    #[inline(always)]
    pub fn record(&self) -> &'a [u8] {
        self.record
    }

    /// The bytes.
    #[inline(always)]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// `N` bytes of the record from where this starts, be it shorter or longer; `None` where the
    /// record ends before that.
    #[inline(always)]
    pub fn window<const N: usize>(&self) -> Option<&'a [u8; N]> {
        let start = (self.bytes.as_ptr() as usize).wrapping_sub(self.record.as_ptr() as usize);
        self.record.get(start..)?.first_chunk()
    }

    /// What follows the first byte.
    #[inline(always)]
    pub(crate) fn after_first(self) -> Stretch<'a> {
        Stretch { bytes: &self.bytes[1..], ..self }
    }
}

impl<'a> From<&'a [u8]> for Stretch<'a> {
    #[inline(always)]
    fn from(bytes: &'a [u8]) -> Stretch<'a> {
        Stretch { record: bytes, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_ends_with_the_record() {
        let record = b"0123456789";
        let stretch = Stretch::new(record, &record[4..6]);
        assert_eq!(stretch.window(), Some(b"456789"));
        assert_eq!(stretch.window::<7>(), None);
        assert_eq!(stretch.after_first().window(), Some(b"5678"));
        assert_eq!(Stretch::from(&record[4..6]).window::<3>(), None);
        assert_eq!(Stretch::new(record, &[]).window::<11>(), None);
    }
}
