//! The item of the suite: an array of k texts of six letters.

use spinney_core::{Container, Result, Scalar, Text, Visitor};

use crate::canonical;

/// Characters of one text.
const TEXT_LEN: usize = 6;
/// What random texts are made of.
const LETTERS: &[u8; 62] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
/// Begin of the generator of random texts.
const SEED: u64 = 42;
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// What the texts of an item are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    /// All are `string`.
    Const,
    /// Each has its own six letters.
    Random,
}

/// An array of k texts, as programs hold it.
pub struct Item {
    len: usize,
    fill: Fill,
    /// The letters of all random texts.
    letters: String,
}

impl Item {
    /// An item of `len` texts.
    pub fn new(len: usize, fill: Fill) -> Item {
        let count = if fill == Fill::Random { len * TEXT_LEN } else { 0 };
        let letter = |at: usize| {
            let z = mix(SEED.wrapping_add((at as u64 + 1).wrapping_mul(GAMMA)));
            LETTERS[(z % LETTERS.len() as u64) as usize] as char
        };
        Item { len, fill, letters: (0..count).map(letter).collect() }
    }

    /// k, the count of texts.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// A text by its position.
    pub fn text(&self, position: usize) -> &str {
        match self.fill {
            Fill::Const => "string",
            Fill::Random => &self.letters[position * TEXT_LEN..(position + 1) * TEXT_LEN],
        }
    }

    /// All texts.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        (0..self.len).map(|position| self.text(position))
    }

    /// Appends the item as JSON text.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        out.reserve(self.json_len());
        out.push(b'[');
        for (position, text) in self.texts().enumerate() {
            // No text needs an escape.
            out.extend_from_slice(if position == 0 { b"\"" } else { b",\"" });
            out.extend_from_slice(text.as_bytes());
            out.push(b'"');
        }
        out.push(b']');
    }

    /// The length of its JSON text: 9k + 1.
    pub fn json_len(&self) -> usize {
        (self.len * (TEXT_LEN + 3) + 1).max(2)
    }

    /// Drives a visitor over the item.
    ///
    /// # Errors
    /// Those of the visitor.
    pub fn visit(&self, visitor: &mut (impl Visitor + ?Sized)) -> Result<()> {
        visitor.open(Container::List)?;
        for text in self.texts() {
            visitor.scalar(Scalar::String(Text::new(text)))?;
        }
        visitor.close()
    }

    /// The store after `pushes` items, as canonical JSON text.
    pub fn store(&self, pushes: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(pushes * (self.json_len() + 1) + 12);
        out.extend_from_slice(b"{\"array\":[");
        for push in 0..pushes {
            if push > 0 {
                out.push(b',');
            }
            self.write_json(&mut out);
        }
        out.extend_from_slice(b"]}");
        out
    }

    /// The hash of that text.
    pub fn hash(&self, pushes: usize) -> String {
        canonical::hash(&self.store(pushes))
    }
}

/// The position of read `i` among `len` texts.
pub fn position(i: usize, len: usize) -> usize {
    (mix((i as u64).wrapping_add(GAMMA)) % len as u64) as usize
}

fn mix(mut z: u64) -> u64 {
    z ^= z >> 30;
    z = z.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z ^= z >> 27;
    z = z.wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_stores_have_their_lengths_and_hashes() {
        for (k, pushes, len, hash) in [
            (1, 4_000, 44_011, "fceb641683c56107"),
            (100, 4_000, 3_608_011, "2ff5cf74b4bffcae"),
            (100_000, 40, 36_000_091, "b5e693c434b09103"),
        ] {
            let item = Item::new(k, Fill::Const);
            assert_eq!((item.store(pushes).len(), &*item.hash(pushes)), (len, hash));
        }
    }

    #[test]
    fn the_generators_are_those_of_the_page() {
        assert_eq!(mix(GAMMA), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(GAMMA.wrapping_add(1)), 0x910a_2dec_8902_5cc1);
        // The first letters of the page's keys, which have another length but the same letters.
        assert_eq!(Item::new(2, Fill::Random).letters, "z72SYu7MDwnY");
    }
}
