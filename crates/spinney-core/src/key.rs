//! Map keys as bytes that sort in the collation of the model, and back.
//!
//! Canonical integers (`0` or `-?[1-9][0-9]*` within i64) sort first, in numeric order; all other
//! keys follow bytewise in UTF-8. This module knows nothing of pages or engines.
//!
//! | first byte | key |
//! |---|---|
//! | `0x02..=0x09` | negative integer: `0x0a - n`, then the n low bytes of its two's complement, big-endian |
//! | `0x0a` | the integer 0 |
//! | `0x0b..=0x12` | positive integer: `0x0a + n`, then its n bytes, big-endian |
//! | `0x13` | a text that is empty or starts below `0x14`; the text follows |
//! | `0x14..=0xf4` | a text, as it is |

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use crate::error::{Error, Result};
use crate::few_bytes;
use crate::stretch::Stretch;
use crate::varint;

const ZERO: u8 = 0x0a;
const ESCAPE: u8 = 0x13;

/// The bytes of a key.
pub use crate::short_bytes::ShortBytes as EncodedKey;

/// The first eight bytes as a number that sorts as they do, with zeros behind shorter ones.
#[inline]
pub fn head(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(head) => u64::from_be_bytes(*head),
        None => few_bytes::word(bytes).swap_bytes(),
    }
}

/// A map key: a canonical integer or any other text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Key<'a> {
    /// A key whose text is a canonical integer.
    Int(i64),
    /// Any other key.
    Text(&'a str),
}

impl<'a> Key<'a> {
    /// Classifies the text of a key.
    #[inline]
    pub fn new(text: &'a str) -> Key<'a> {
        match canonical_integer(text.as_bytes()) {
            Some(value) => Key::Int(value),
            None => Key::Text(text),
        }
    }

    /// The text of the key.
    pub fn text(&self) -> Cow<'a, str> {
        match *self {
            Key::Int(value) => Cow::Owned(value.to_string()),
            Key::Text(text) => Cow::Borrowed(text),
        }
    }

    /// How many bytes [`Key::encode`] appends.
    #[inline]
    pub fn encoded_len(&self) -> usize {
        match *self {
            Key::Text(text) => {
                text.len() + usize::from(text.bytes().next().is_none_or(|first| first <= ESCAPE))
            }
            Key::Int(0) => 1,
            Key::Int(value) => 1 + integer_len(value),
        }
    }

    /// Appends the bytes that sort in the order of the model.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        self.encode_with(|part| out.extend_from_slice(part));
    }

    /// Appends how many bytes [`Key::encode`] appends, and those; returns how many those are, and their
    /// [head](head()).
    #[inline]
    pub fn encode_with_len(&self, out: &mut Vec<u8>) -> (usize, u64) {
        match self {
            Key::Text(text)
                if text.len() <= few_bytes::PUSHED_LEN_MAX
                    && text.as_bytes().first().is_some_and(|&first| first > ESCAPE) =>
            {
                few_bytes::push_with(text.len() as u8, text.as_bytes(), out);
                // What was just appended in pieces is slow to read as a whole.
                (text.len(), head(text.as_bytes()))
            }
            _ => {
                let len = self.encoded_len();
                varint::write(len as u64, out);
                self.encode(out);
                (len, head(&out[out.len() - len..]))
            }
        }
    }

    /// The bytes that sort in the order of the model.
    #[inline]
    pub fn encoded(&self) -> EncodedKey {
        let mut bytes = EncodedKey::default();
        self.encode_with(|part| bytes.extend_from_slice(part));
        bytes
    }

    #[inline]
    fn encode_with(&self, mut put: impl FnMut(&[u8])) {
        match *self {
            Key::Text(text) => {
                let bytes = text.as_bytes();
                if bytes.first().is_none_or(|&first| first <= ESCAPE) {
                    put(&[ESCAPE]);
                }
                put(bytes);
            }
            Key::Int(0) => put(&[ZERO]),
            Key::Int(value) if value > 0 => {
                let used = integer_len(value);
                put(&[ZERO + used as u8]);
                put(&value.to_be_bytes()[8 - used..]);
            }
            Key::Int(value) => {
                let used = integer_len(value);
                put(&[ZERO - used as u8]);
                put(&value.to_be_bytes()[8 - used..]);
            }
        }
    }

    /// The key that [`Key::encode`] wrote, or `None` for bytes that it never writes.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Option<Key<'a>> {
        let (&first, rest) = bytes.split_first()?;
        let text = match first {
            0x02..ESCAPE => return integer(first, rest).map(Key::Int),
            ESCAPE if rest.first().is_none_or(|&byte| byte <= ESCAPE) => rest,
            b'-' | b'0'..=b'9' if canonical_integer(bytes).is_some() => return None,
            0x14.. => bytes,
            _ => return None,
        };
        Some(Key::Text(std::str::from_utf8(text).ok()?))
    }
}

/// An encoded key as a page holds it: what all keys of the page start with, and the rest.
///
/// Nobody has looked yet whether it is one that [`Key::encode`] writes.
#[derive(Clone, Copy, Debug)]
pub struct StoredKey<'a> {
    /// The beginning.
    pub prefix: &'a [u8],
    /// The rest.
    pub suffix: Stretch<'a>,
}

/// What a stored key is.
pub enum StoredKeyForm<'a> {
    /// A canonical integer.
    Int(i64),
    /// The text, in two pieces.
    Text(&'a [u8], Stretch<'a>),
}

impl<'a> StoredKey<'a> {
    /// The bytes in one piece.
    #[inline]
    pub(crate) fn bytes(&self) -> Cow<'a, [u8]> {
        match (self.prefix, self.suffix.bytes()) {
            ([], suffix) => Cow::Borrowed(suffix),
            (prefix, suffix) => Cow::Owned([prefix, suffix].concat()),
        }
    }

    /// The bytes in one piece, known to be what [`Key::encode`] writes.
    ///
    /// # Errors
    /// `Corrupted` when they are not.
    #[inline]
    pub fn check(&self) -> Result<Cow<'a, [u8]>> {
        let bytes = self.bytes();
        match Key::decode(&bytes) {
            Some(_) => Ok(bytes),
            None => Err(not_a_key()),
        }
    }

    /// The text, when it lies in one piece and as it is; that it is UTF-8 is not checked.
    #[inline(always)]
    pub fn plain_text(&self) -> Option<Stretch<'a>> {
        match (self.prefix, self.suffix.bytes()) {
            ([], [0x14..=0xff, ..]) => Some(self.suffix),
            _ => None,
        }
    }

    /// The integer or the text, for those that only copy it; that it is UTF-8 is not checked.
    ///
    /// # Errors
    /// `Corrupted` when it is neither.
    #[inline]
    pub fn form(&self) -> Result<StoredKeyForm<'a>> {
        let StoredKey { prefix, suffix } = *self;
        match prefix.first().or(suffix.bytes().first()) {
            Some(0x14..) => Ok(StoredKeyForm::Text(prefix, suffix)),
            Some(&ESCAPE) => Ok(match prefix {
                [] => StoredKeyForm::Text(prefix, suffix.after_first()),
                _ => StoredKeyForm::Text(&prefix[1..], suffix),
            }),
            _ => match Key::decode(&self.bytes()) {
                Some(Key::Int(value)) => Ok(StoredKeyForm::Int(value)),
                _ => Err(not_a_key()),
            },
        }
    }
}

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Int(value) => write!(f, "{value}"),
            Key::Text(text) => f.write_str(text),
        }
    }
}

/// Compares two keys in the collation of the model.
pub fn compare(a: &str, b: &str) -> Ordering {
    match (canonical_integer(a.as_bytes()), canonical_integer(b.as_bytes())) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => a.as_bytes().cmp(b.as_bytes()),
    }
}

#[cold]
pub(crate) fn not_a_key() -> Error {
    Error::corrupted("a stored key does not read; run `check` to find what is damaged")
}

#[cold]
/// The error of a member of a map that comes without a key.
pub fn no_key() -> Error {
    Error::corrupted("a member of a map has no key")
}

/// The integer whose encoding starts with `first`; `None` unless it has the fewest bytes.
#[inline]
fn integer(first: u8, rest: &[u8]) -> Option<i64> {
    if rest.len() != usize::from(first.abs_diff(ZERO)) {
        return None;
    }
    let sign = if first < ZERO { 0xff } else { 0 };
    let mut wide = [sign; 8];
    wide[8 - rest.len()..].copy_from_slice(rest);
    let value = i64::from_be_bytes(wide);
    let fewest = match rest {
        [] => true,
        // -1 has no shorter form.
        [_] if first < ZERO => true,
        rest => rest[0] != sign,
    };
    (fewest && (value < 0) == (first < ZERO)).then_some(value)
}

/// The bytes that an integer needs, 1 to 8; of a negative one those of `-1 - value`.
#[inline]
fn integer_len(value: i64) -> usize {
    let magnitude = (value ^ (value >> 63)) as u64;
    8 - (magnitude | 1).leading_zeros() as usize / 8
}

/// The value of a text that is `0` or `-?[1-9][0-9]*` within i64.
#[inline]
fn canonical_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut magnitude: u64 = 0;
    for &digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        magnitude = magnitude * 10 + u64::from(digit - b'0');
    }
    match negative {
        true => 0i64.checked_sub_unsigned(magnitude),
        false => i64::try_from(magnitude).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        Key::new(text).encode(&mut out);
        assert_eq!(Key::new(text).encoded_len(), out.len());
        out
    }

    #[test]
    fn order_and_round_trip() {
        let mut sorted: Vec<String> = [
            i64::MIN,
            i64::MIN + 1,
            -65_537,
            -65_536,
            -257,
            -256,
            -255,
            -2,
            -1,
            0,
            1,
            9,
            10,
            255,
            256,
            65_535,
            65_536,
            i64::MAX,
        ]
        .iter()
        .map(i64::to_string)
        .collect();
        sorted.extend(
            [
                "",
                "\0",
                "\u{13}",
                "\u{14}",
                " ",
                "+1",
                "-",
                "-0",
                "00",
                "01",
                "0x",
                "1.0",
                "9223372036854775808",
                "a",
                "a\0",
                "ab",
                "b",
                "é",
                "\u{10ffff}",
            ]
            .map(String::from),
        );
        for pair in sorted.windows(2) {
            assert!(encoded(&pair[0]) < encoded(&pair[1]), "{pair:?}");
            assert_eq!(compare(&pair[0], &pair[1]), Ordering::Less, "{pair:?}");
        }
        for text in &sorted {
            assert_eq!(Key::decode(&encoded(text)).expect("decodes").text(), text.as_str());
        }
    }

    #[test]
    fn a_head_is_the_beginning_with_zeros_behind_it() {
        let bytes = b"\x00\x01\xff\x80abcdef";
        for len in 0..=bytes.len() {
            let padded = [&bytes[..len], &[0; 8]].concat();
            let expected = u64::from_be_bytes(*padded.first_chunk().expect("eight bytes"));
            assert_eq!(head(&bytes[..len]), expected, "{len}");
        }
    }

    #[test]
    fn bytes_that_encode_never_writes_are_refused() {
        for bad in [
            &b""[..],
            &[0x0b],
            &[0x0b, 0],
            &[0x0c, 0, 1],
            &[0x13, b'a'],
            &[1],
            &[0x0a, 0],
            &[0xff],
            &[0x08, 0xff, 0xff],
        ] {
            assert_eq!(Key::decode(bad), None, "{bad:?}");
        }
    }
}
