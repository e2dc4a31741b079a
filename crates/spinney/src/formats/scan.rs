//! Scans over bytes, eight at a time in one register.
//!
//! Each byte of a word is compared at once: `(byte ^ x) - 1` borrows into bit 7 only when the byte
//! is `x` ("Hacker's Delight", 6-1). A borrow may spoil higher bytes, so only the lowest hit counts.

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGH: u64 = 0x8080_8080_8080_8080;
const SPACES: u64 = 0x2020_2020_2020_2020;

/// The set of JSON's white space, one bit a byte value.
pub(super) const SPACE: u64 = 1 << b' ' | 1 << b'\t' | 1 << b'\n' | 1 << b'\r';

/// High bits where JSON must escape a byte (see [`is_special`]); only the lowest one is exact.
#[inline(always)]
pub(super) fn specials(word: u64) -> u64 {
    // `"` changes places with the space, and is then next to the characters below 0x20.
    let quotes_and_controls = (word ^ (ONES * 2)).wrapping_sub(ONES * 0x21);
    let escapes = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    (quotes_and_controls | escapes) & !word & HIGH
}

/// High bits where a byte is `quote`, `\` or below 0x20; only the lowest one is exact.
#[inline(always)]
fn stops(word: u64, quote: u8) -> u64 {
    let quotes = (word ^ (ONES * quote as u64)).wrapping_sub(ONES);
    let escapes = (word ^ (ONES * b'\\' as u64)).wrapping_sub(ONES);
    let controls = word.wrapping_sub(SPACES);
    (quotes | escapes | controls) & !word & HIGH
}

/// A word of fewer than eight bytes, with spaces behind them.
#[inline(always)]
pub(super) fn pad(word: u64, len: usize) -> u64 {
    word | SPACES << (8 * len)
}

#[inline(always)]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// The first place from `at` on that holds `quote`, `\` or a byte below 0x20.
///
/// `bytes` must end with eight bytes below 0x20.
#[inline(always)]
pub(super) fn string_stop(bytes: &[u8], mut at: usize, quote: u8) -> usize {
    while let Some(word) = word(bytes, at) {
        let hits = stops(word, quote);
        if hits != 0 {
            return at + hits.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    unreachable!("the padding stops the scan")
}

/// The first place from `at` on that is not in `space`, a set of byte values up to 0x20.
///
/// `bytes` must end with a byte that is not in the set.
#[inline(always)]
pub(super) fn skip_space(bytes: &[u8], mut at: usize, space: u64) -> usize {
    while let Some(&byte) = bytes.get(at)
        && byte <= b' '
        && space >> byte & 1 == 1
    {
        at += 1;
        while let Some(word) = word(bytes, at) {
            let spaces = (word ^ SPACES).trailing_zeros() as usize / 8;
            at += spaces;
            if spaces < 8 {
                break;
            }
        }
    }
    at
}

/// Whether JSON prints the text between quotes as it is.
#[inline]
pub(super) fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut chunks = bytes.chunks_exact(8);
    let words = chunks.by_ref().map(|chunk| u64::from_le_bytes(chunk.try_into().expect("eight")));
    let hits = words.fold(0, |hits, word| hits | specials(word));
    hits == 0
        && match bytes.last_chunk() {
            Some(last) => specials(u64::from_le_bytes(*last)) == 0,
            None => !chunks.remainder().iter().any(|&byte| is_special(byte)),
        }
}

/// Whether JSON must escape the byte in a string.
#[inline(always)]
pub(super) fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

#[cfg(test)]
mod tests {
    use super::*;

    const PADDING: [u8; 8] = [0; 8];

    #[test]
    fn every_byte_at_every_place_stops_or_not() {
        for byte in 0..=255u8 {
            for place in 0..20 {
                for quote in [b'"', b'\''] {
                    let mut bytes = vec![b'a'; 20];
                    bytes[place] = byte;
                    bytes.extend(PADDING);
                    let stops = byte < 0x20 || byte == b'\\' || byte == quote;
                    let expected = if stops { place } else { 20 };
                    assert_eq!(string_stop(&bytes, 0, quote), expected, "{byte} at {place}");
                }
            }
        }
    }

    #[test]
    fn a_byte_after_the_first_hit_is_not_taken_for_it() {
        for first in 0..=255u8 {
            for second in 0..=255u8 {
                let bytes = [[first, second, b'a', b'a', b'a', b'a', b'a', b'a'], PADDING].concat();
                let expected = bytes.iter().position(|&byte| is_special(byte));
                assert_eq!(Some(string_stop(&bytes, 0, b'"')), expected, "{first} {second}");
            }
        }
    }

    #[test]
    fn space_runs_end_where_they_end() {
        for len in 0..30 {
            for space in [" ", "\n", "\t", "\n  ", "\r\n\t "] {
                let run = space.repeat(len);
                let bytes = [run.as_bytes(), b"x", &PADDING].concat();
                assert_eq!(skip_space(&bytes, 0, SPACE), run.len());
            }
        }
        assert_eq!(skip_space(b" \n\0\0\0\0\0\0\0\0", 0, SPACE & !(1 << b'\n')), 1);
    }

    #[test]
    fn plain_is_what_the_model_says() {
        for len in 0..20 {
            for place in 0..len {
                for char in ['"', '\\', '\0', '\u{1f}', ' ', '\u{7f}', 'é', '!', '#', '['] {
                    let text: String =
                        (0..len).map(|at| if at == place { char } else { 'a' }).collect();
                    assert_eq!(is_plain(&text), spinney_core::Text::new(&text).plain, "{text:?}");
                }
            }
        }
    }
}
