//! The key of a record, as batches and overlays hold it.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::ops::Deref;

use equivalent::{Comparable, Equivalent};
use smallvec::SmallVec;

/// The bytes of an engine key, in place when they are few; most comparisons need only the first
/// sixteen, which hold tree, kind and id.
#[derive(Debug, PartialEq, Eq)]
pub struct RecordKey {
    head: u128,
    bytes: SmallVec<[u8; 24]>,
}

/// A key that is looked for among [`RecordKey`]s.
pub(crate) struct Probe<'a> {
    head: u128,
    bytes: &'a [u8],
}

impl<'a> Probe<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Probe<'a> {
        Probe { head: head(bytes), bytes }
    }
}

/// The first sixteen bytes as a number that sorts as they do, with zeros behind shorter ones.
#[inline]
fn head(bytes: &[u8]) -> u128 {
    match bytes.first_chunk::<16>() {
        Some(head) => u128::from_be_bytes(*head),
        None => {
            let mut head = [0; 16];
            head[..bytes.len()].copy_from_slice(bytes);
            u128::from_be_bytes(head)
        }
    }
}

impl Comparable<RecordKey> for Probe<'_> {
    #[inline]
    fn compare(&self, key: &RecordKey) -> Ordering {
        self.head.cmp(&key.head).then_with(|| self.bytes.cmp(&key.bytes[..]))
    }
}

impl Equivalent<RecordKey> for Probe<'_> {
    #[inline]
    fn equivalent(&self, key: &RecordKey) -> bool {
        self.head == key.head && *self.bytes == key.bytes[..]
    }
}

impl Clone for RecordKey {
    #[inline]
    fn clone(&self) -> RecordKey {
        RecordKey { head: self.head, bytes: SmallVec::from_slice(&self.bytes) }
    }
}

impl Ord for RecordKey {
    #[inline]
    fn cmp(&self, other: &RecordKey) -> Ordering {
        self.head.cmp(&other.head).then_with(|| self.bytes[..].cmp(&other.bytes[..]))
    }
}

impl PartialOrd for RecordKey {
    #[inline]
    fn partial_cmp(&self, other: &RecordKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Deref for RecordKey {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Borrow<[u8]> for RecordKey {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl From<&[u8]> for RecordKey {
    #[inline]
    fn from(bytes: &[u8]) -> RecordKey {
        RecordKey { head: head(bytes), bytes: SmallVec::from_slice(bytes) }
    }
}

impl<const N: usize> From<[u8; N]> for RecordKey {
    #[inline]
    fn from(bytes: [u8; N]) -> RecordKey {
        bytes[..].into()
    }
}

impl From<Vec<u8>> for RecordKey {
    fn from(bytes: Vec<u8>) -> RecordKey {
        bytes[..].into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_bytes_do() {
        let mut random = fastrand::Rng::with_seed(11);
        let mut key = || {
            let len = random.usize(..40);
            // Few values, zero among them, so that many keys begin alike or with each other.
            std::iter::repeat_with(|| random.u8(..2)).take(len).collect::<Vec<u8>>()
        };
        for _ in 0..20_000 {
            let (a, b) = (key(), key());
            let (one, other) = (RecordKey::from(&a[..]), RecordKey::from(&b[..]));
            assert_eq!(one.cmp(&other), a.cmp(&b), "{a:?} {b:?}");
            assert_eq!(Probe::new(&a).compare(&other), a.cmp(&b), "{a:?} {b:?}");
            assert_eq!(Probe::new(&a).equivalent(&other), a == b, "{a:?} {b:?}");
            assert_eq!(one.clone(), one);
            assert_eq!(*one, *a);
        }
    }
}
