//! Usual numbers, eight digits at a time; all others are left to [`Num::scan`].
//!
//! Eight digits in a register become a number with three multiplications (Lemire, "Number parsing
//! at a gigabyte per second", 2021).

use spinney_core::Num;
use spinney_core::number::Decimal;

const ZEROS: u64 = 0x3030_3030_3030_3030;
const HIGH: u64 = 0x8080_8080_8080_8080;
/// Added to a byte, it reaches bit 7 from 10 on.
const BEYOND_NINE: u64 = 0x7676_7676_7676_7676;

/// So many digits always fit in 64 bits.
const DIGITS_MAX: usize = 19;

const POWERS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// The number at `at` and where it ends, when it is an integer or a plain decimal of at most 19
/// digits, fits its variant, and ends before a byte that cannot belong to any number.
///
/// Agrees with [`Num::scan`] on all that it accepts.
#[inline(always)]
pub(super) fn scan(bytes: &[u8], at: usize) -> Option<(Num<'static>, usize)> {
    let negative = bytes[at] == b'-';
    let start = at + usize::from(negative);
    let (mantissa, mut end) = run(bytes, start, 0)?;
    let mut digits_len = end - start;
    if digits_len == 0 || (bytes[start] == b'0' && digits_len > 1) {
        return None;
    }
    let mut scale = 0;
    let mut all = mantissa;
    if bytes[end] == b'.' {
        let (mantissa, after) = run(bytes, end + 1, mantissa)?;
        scale = after - end - 1;
        if scale == 0 {
            return None;
        }
        digits_len += scale;
        (all, end) = (mantissa, after);
    }
    // Only what can follow a value; a letter may go on with the number, the padding with more text.
    if digits_len > DIGITS_MAX || !matches!(bytes[end], b',' | b'}' | b']' | b'\n' | b'\r' | b' ') {
        return None;
    }
    let num = match (scale, negative) {
        (0, false) => i64::try_from(all).map_or(Num::Uint(all), Num::Int),
        (0, true) if all == 0 => return None,
        (0, true) => Num::Int(0i64.checked_sub_unsigned(all)?),
        (scale, negative) => Num::Decimal(Decimal { negative, mantissa: all, scale: scale as u8 }),
    };
    Some((num, end))
}

/// Appends the digits at `at` to `mantissa`, modulo 2^64; `None` near the end of `bytes`.
#[inline(always)]
fn run(bytes: &[u8], mut at: usize, mut mantissa: u64) -> Option<(u64, usize)> {
    loop {
        let values = u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?) ^ ZEROS;
        let others = (values.wrapping_add(BEYOND_NINE) | values) & HIGH;
        let len = (others.trailing_zeros() / 8) as usize;
        if len == 0 {
            return Some((mantissa, at));
        }
        let value = eight(values << (64 - 8 * len));
        mantissa = mantissa.wrapping_mul(POWERS[len]).wrapping_add(value);
        at += len;
        if len < 8 {
            return Some((mantissa, at));
        }
    }
}

/// The number of eight digit values, the first in the lowest byte.
#[inline(always)]
fn eight(values: u64) -> u64 {
    const PAIRS: u64 = 0x0000_00ff_0000_00ff;
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8);
    let odd = (pairs & PAIRS).wrapping_mul(100 + (1_000_000 << 32));
    let even = (pairs >> 16 & PAIRS).wrapping_mul(1 + (10_000 << 32));
    odd.wrapping_add(even) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with the scanner of the model; returns whether the number was usual.
    fn agrees(text: &str, follower: &str) -> bool {
        let padded = format!("{text}{follower}\0\0\0\0\0\0\0\0");
        let Some((num, end)) = scan(padded.as_bytes(), 0) else { return false };
        assert_eq!(Num::scan(padded.as_bytes()), Ok((num, end)), "{text}{follower}");
        true
    }

    #[test]
    fn agrees_with_the_model() {
        let mut rng = fastrand::Rng::with_seed(1);
        let mut usual = 0;
        for _ in 0..200_000 {
            let digits = |rng: &mut fastrand::Rng, len| {
                (0..len).map(|_| char::from(b'0' + rng.u8(..10))).collect::<String>()
            };
            let integer_len = rng.usize(..12);
            let fraction_len = rng.usize(..12);
            let mut text = ["", "-"][rng.usize(..2)].to_owned() + &digits(&mut rng, integer_len);
            if rng.bool() {
                text = text + "." + &digits(&mut rng, fraction_len);
            }
            let followers = [",", "}", "]", " ", "\n", "e5", ".", "x", "", "-", "é", "\u{7f}"];
            usual += usize::from(agrees(&text, followers[rng.usize(..followers.len())]));
        }
        assert!(usual > 50_000, "{usual}");
    }

    #[test]
    fn the_ends_of_the_ranges() {
        for (text, is_usual) in [
            ("0", true),
            ("-0", false),
            ("00", false),
            ("-1", true),
            ("9223372036854775807", true),
            ("-9223372036854775808", true),
            ("-9223372036854775809", false),
            ("9223372036854775808", true),
            ("9999999999999999999", true),
            ("10000000000000000000", false),
            ("18446744073709551616", false),
            ("0.0", true),
            ("-0.00", true),
            ("99999999999.99999999", true),
            ("1.10", true),
            ("1.", false),
            (".1", false),
            ("", false),
            ("-", false),
        ] {
            assert_eq!(agrees(text, ","), is_usual, "{text}");
        }
    }
}
