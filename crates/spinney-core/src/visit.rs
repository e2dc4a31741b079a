//! A tree in document order, as calls: what formats, walks, copies and builders have in common.
//!
//! Whoever reads a tree drives a [`Visitor`]; whoever makes one implements it. Nothing here knows
//! where the tree comes from or goes to.

use crate::error::{Error, Result};
use crate::few_bytes;
use crate::key::{Key, StoredKey, not_a_key};
use crate::number::Num;
use crate::stretch::Stretch;
use crate::view::StoredMap;

/// The two kinds of container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Container {
    /// Unique keys, kept sorted.
    Map,
    /// Elements in the user's order.
    List,
}

/// A text and whether JSON can print it between quotes as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// The text.
    pub text: &'a str,
    /// True when it holds no `"`, no `\` and no character below U+0020.
    pub plain: bool,
}

impl<'a> Text<'a> {
    /// Looks whether the text is plain.
    pub fn new(text: &'a str) -> Text<'a> {
        let (eights, rest) = text.as_bytes().as_chunks::<8>();
        let last = few_bytes::word(rest) | SPACES << (8 * rest.len());
        // Without an early end the compiler looks at many bytes at once.
        let special = eights
            .iter()
            .fold(specials(last), |found, eight| found | specials(u64::from_le_bytes(*eight)));
        Text { text, plain: special == 0 }
    }
}

const ONES: u64 = u64::from_le_bytes([1; 8]);
const SPACES: u64 = u64::from_le_bytes([b' '; 8]);

/// Not 0 when one of eight bytes is none that a plain text has: each bit test is exact for the lowest byte
/// that it finds.
fn specials(eight: u64) -> u64 {
    let below = |bytes: u64, limit: u8| bytes.wrapping_sub(ONES * u64::from(limit)) & !bytes;
    let equal = |byte: u8| below(eight ^ (ONES * u64::from(byte)), 1);
    (below(eight, 0x20) | equal(b'"') | equal(b'\\')) & (ONES << 7)
}

/// The bytes of a stored text that nobody has looked at yet.
#[derive(Clone, Copy, Debug)]
pub struct StoredText<'a> {
    /// The bytes; UTF-8 unless they are damaged.
    pub bytes: Stretch<'a>,
    /// As in [`Text`]; the writer of the page has looked.
    pub plain: bool,
}

impl<'a> StoredText<'a> {
    /// The text.
    ///
    /// # Errors
    /// `Corrupted` when it is not UTF-8.
    #[inline]
    pub fn check(self) -> Result<Text<'a>> {
        match std::str::from_utf8(self.bytes.bytes()) {
            Ok(text) => Ok(Text { text, plain: self.plain }),
            Err(_) => Err(not_utf8()),
        }
    }
}

#[cold]
fn not_utf8() -> Error {
    Error::corrupted("a stored text is not UTF-8; run `check` to find what is damaged")
}

/// A value that is not a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scalar<'a> {
    /// JSON `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A lossless number.
    Number(Num<'a>),
    /// A UTF-8 text.
    String(Text<'a>),
    /// Bytes; JSON has no form for them.
    Bytes(&'a [u8]),
}

/// Receives one value in document order.
///
/// A container is `open`, then its members, then `close`; each member of a map has its `key` first.
/// Any value may have `meta` calls directly before its `open` or `scalar`. The keys of a map may
/// come in any order; a repeated key is the receiver's to refuse.
pub trait Visitor {
    /// A container begins.
    fn open(&mut self, container: Container) -> Result<()>;
    /// The key of the map member that follows.
    fn key(&mut self, key: Key<'_>) -> Result<()>;
    /// A scalar value.
    fn scalar(&mut self, scalar: Scalar<'_>) -> Result<()>;
    /// The innermost container ends.
    fn close(&mut self) -> Result<()>;
    /// One metadata entry of the value that follows.
    fn meta(&mut self, name: &str, value: &str) -> Result<()>;

    /// As [`Visitor::key`], straight from a page: a receiver that copies keys need not decode them.
    #[inline]
    fn stored_key(&mut self, key: StoredKey<'_>) -> Result<()> {
        self.key(Key::decode(&key.bytes()).ok_or_else(not_a_key)?)
    }
    /// As [`Visitor::scalar`], with a text straight from a page: a receiver that copies texts can
    /// check that they are UTF-8 all at once.
    #[inline]
    fn stored_text(&mut self, text: StoredText<'_>) -> Result<()> {
        self.scalar(Scalar::String(text.check()?))
    }

    /// A map in pages: a receiver that copies pages may take it as a whole and answer true; else its
    /// members follow, as of any map.
    #[inline]
    fn stored_map(&mut self, map: &StoredMap<'_>) -> Result<bool> {
        let _ = map;
        Ok(false)
    }

    /// Whether the receiver wants [`Visitor::element`] calls.
    #[inline]
    fn wants_element_ids(&self) -> bool {
        false
    }

    /// The id of the list element that follows, where the source has one.
    #[inline]
    fn element(&mut self, id: u64) {
        let _ = id;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_have_no_special_character_wherever_it_stands() {
        for len in 0..20 {
            for at in 0..len {
                for character in '\0'..'\u{100}' {
                    let text: String =
                        (0..len).map(|place| if place == at { character } else { 'a' }).collect();
                    let plain = character >= ' ' && !['"', '\\'].contains(&character);
                    assert_eq!(Text::new(&text).plain, plain, "{text:?}");
                }
            }
            assert!(Text::new(&"é".repeat(len)).plain);
        }
    }
}
