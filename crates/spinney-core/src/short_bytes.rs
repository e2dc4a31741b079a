//! Keys as they are held in memory: in place when they are short. Most comparisons need only the first
//! sixteen bytes, in an engine key tree, kind and id.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

use equivalent::{Comparable, Equivalent};

/// Longer keys lie elsewhere.
const IN_PLACE_LEN_MAX: usize = 30;

/// Bytes that are compared as one number.
const HEAD_LEN: usize = 16;

/// The bytes of a key.
#[derive(Clone)]
pub struct ShortBytes {
    /// The beginning as a number that sorts as it does, with zeros behind shorter keys.
    head: u128,
    form: Form,
}

#[derive(Clone)]
enum Form {
    /// With zeros behind them.
    InPlace {
        len: u8,
        bytes: [u8; IN_PLACE_LEN_MAX],
    },
    Elsewhere(Box<[u8]>),
}

/// A key that is looked for among [`ShortBytes`].
pub(crate) struct Probe<'a> {
    head: u128,
    bytes: &'a [u8],
}

#[inline]
fn in_place(bytes: &[u8]) -> Option<[u8; IN_PLACE_LEN_MAX]> {
    let mut array = [0; IN_PLACE_LEN_MAX];
    array.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(array)
}

impl ShortBytes {
    /// Adds bytes behind those that are there.
    #[inline]
    pub fn extend_from_slice(&mut self, more: &[u8]) {
        if let Form::InPlace { len, bytes } = &mut self.form {
            let at = usize::from(*len);
            if let Some(free) = bytes.get_mut(at..at + more.len()) {
                free.copy_from_slice(more);
                *len += more.len() as u8;
                self.head = head(bytes);
                return;
            }
        }
        *self = [&**self, more].concat().into();
    }
}

#[inline]
fn head(bytes: &[u8]) -> u128 {
    match bytes.first_chunk::<HEAD_LEN>() {
        Some(head) => u128::from_be_bytes(*head),
        None => {
            let mut head = [0; HEAD_LEN];
            head[..bytes.len()].copy_from_slice(bytes);
            u128::from_be_bytes(head)
        }
    }
}

/// Compares the beginnings of keys; most differ in the first half.
#[inline]
fn compare_heads(a: u128, b: u128) -> Ordering {
    let first = |head: u128| (head >> 64) as u64;
    first(a).cmp(&first(b)).then_with(|| (a as u64).cmp(&(b as u64)))
}

/// Compares keys that begin alike.
#[cold]
fn compare_whole(a: &[u8], b: &[u8]) -> Ordering {
    a.cmp(b)
}

impl Default for ShortBytes {
    #[inline]
    fn default() -> ShortBytes {
        ShortBytes { head: 0, form: Form::InPlace { len: 0, bytes: [0; IN_PLACE_LEN_MAX] } }
    }
}

impl From<&[u8]> for ShortBytes {
    #[inline]
    fn from(bytes: &[u8]) -> ShortBytes {
        match in_place(bytes) {
            Some(array) => {
                let form = Form::InPlace { len: bytes.len() as u8, bytes: array };
                ShortBytes { head: head(&array), form }
            }
            None => ShortBytes { head: head(bytes), form: Form::Elsewhere(bytes.into()) },
        }
    }
}

impl<const N: usize> From<[u8; N]> for ShortBytes {
    #[inline]
    fn from(bytes: [u8; N]) -> ShortBytes {
        bytes[..].into()
    }
}

impl From<Vec<u8>> for ShortBytes {
    fn from(bytes: Vec<u8>) -> ShortBytes {
        bytes[..].into()
    }
}

impl Deref for ShortBytes {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.form {
            Form::InPlace { len, bytes } => &bytes[..usize::from(*len)],
            Form::Elsewhere(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for ShortBytes {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for ShortBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for ShortBytes {
    #[inline]
    fn eq(&self, other: &ShortBytes) -> bool {
        **self == **other
    }
}

impl Eq for ShortBytes {}

impl Ord for ShortBytes {
    #[inline]
    fn cmp(&self, other: &ShortBytes) -> Ordering {
        compare_heads(self.head, other.head).then_with(|| compare_whole(self, other))
    }
}

impl PartialOrd for ShortBytes {
    #[inline]
    fn partial_cmp(&self, other: &ShortBytes) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<'a> Probe<'a> {
    #[inline]
    pub(crate) fn new(bytes: &'a [u8]) -> Probe<'a> {
        Probe { head: head(bytes), bytes }
    }
}

impl Comparable<ShortBytes> for Probe<'_> {
    #[inline]
    fn compare(&self, key: &ShortBytes) -> Ordering {
        compare_heads(self.head, key.head).then_with(|| compare_whole(self.bytes, key))
    }
}

impl Equivalent<ShortBytes> for Probe<'_> {
    #[inline]
    fn equivalent(&self, key: &ShortBytes) -> bool {
        *self.bytes == **key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_the_bytes_and_sort_as_these_do() {
        assert_eq!(size_of::<ShortBytes>(), 48);
        let mut random = fastrand::Rng::with_seed(11);
        let mut key = || {
            let len = random.usize(..40);
            // Few values, zero among them, so that many keys begin alike or with each other.
            let equal_len = random.usize(..=len);
            let first = std::iter::repeat_n(0, equal_len);
            first.chain(std::iter::repeat_with(|| random.u8(..2)).take(len - equal_len)).collect()
        };
        for _ in 0..20_000 {
            let (a, b): (Vec<u8>, Vec<u8>) = (key(), key());
            let (one, other) = (ShortBytes::from(&a[..]), ShortBytes::from(&b[..]));
            assert_eq!((&*one, &*other), (&a[..], &b[..]));
            assert_eq!(one.cmp(&other), a.cmp(&b), "{a:?} {b:?}");
            assert_eq!(one == other, a == b, "{a:?} {b:?}");
            assert_eq!(Probe::new(&a).compare(&other), a.cmp(&b), "{a:?} {b:?}");
            assert_eq!(Probe::new(&a).equivalent(&other), a == b, "{a:?} {b:?}");
            let mut both = one.clone();
            both.extend_from_slice(&b);
            assert_eq!(*both, [a, b].concat());
        }
    }
}
