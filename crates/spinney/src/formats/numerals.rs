//! Prints usual numbers, eight digits at a time; all others are left to [`Num::write`].
//!
//! The digits of eight are split off in one register, by halves: multiplications in place of
//! divisions, for all halves at once.

use spinney_core::Num;
use spinney_core::number::Decimal;

use super::buffer::{self, Spare};

const ZEROS: u64 = 0x3030_3030_3030_3030;
const TEN_TO_8: u64 = 100_000_000;

/// Prints a number at `at` and returns where it ends; `None` when it may be too long for that.
#[inline(always)]
pub(super) fn put(num: Num<'_>, spare: &mut Spare, at: usize) -> Option<usize> {
    match num {
        Num::Int(value) => Some(put_int(value, spare, at)),
        Num::Uint(value) => Some(put_digits(value, spare, at)),
        Num::Decimal(decimal) => put_decimal(decimal, spare, at),
        Num::Text(_) => None,
    }
}

/// Prints an integer at `at` and returns where it ends.
#[inline(always)]
pub(super) fn put_int(value: i64, spare: &mut Spare, at: usize) -> usize {
    spare[at] = b'-';
    put_digits(value.unsigned_abs(), spare, at + usize::from(value < 0))
}

#[inline]
fn put_decimal(decimal: Decimal, spare: &mut Spare, at: usize) -> Option<usize> {
    let Decimal { negative, mantissa, scale } = decimal;
    let scale = usize::from(scale);
    spare[at] = b'-';
    let at = at + usize::from(negative);
    let end = put_digits(mantissa, spare, at);
    match (end - at).checked_sub(scale) {
        Some(integer_len @ 1..) => {
            let point = at + integer_len;
            shift(spare, point, point + 1);
            spare[point] = b'.';
            Some(end + 1)
        }
        _ if scale <= 24 => {
            let fraction = at + 2 + scale - (end - at);
            shift(spare, at, fraction);
            spare[at..fraction].fill(b'0');
            spare[at + 1] = b'.';
            Some(at + 2 + scale)
        }
        _ => None,
    }
}

/// Copies the at most 20 digits at `from` to `to`, and what follows them.
#[inline(always)]
fn shift(spare: &mut Spare, from: usize, to: usize) {
    let word = |spare: &Spare, at: usize| *spare[at & 63..].first_chunk::<8>().expect("128 bytes");
    let (first, second, third) = (word(spare, from), word(spare, from + 8), word(spare, from + 16));
    buffer::store(spare, to, &first);
    buffer::store(spare, to + 8, &second);
    buffer::store(spare, to + 16, &third);
}

#[inline(always)]
fn put_digits(value: u64, spare: &mut Spare, at: usize) -> usize {
    if value < TEN_TO_8 {
        return put_first(value, spare, at);
    }
    let (high, low) = (value / TEN_TO_8, value % TEN_TO_8);
    let at = match high < TEN_TO_8 {
        true => put_first(high, spare, at),
        false => {
            let at = put_first(high / TEN_TO_8, spare, at);
            put_word(eight(high % TEN_TO_8), spare, at);
            at + 8
        }
    };
    put_word(eight(low), spare, at);
    at + 8
}

/// Prints a number below 10^8 without leading zeros.
#[inline(always)]
fn put_first(value: u64, spare: &mut Spare, at: usize) -> usize {
    let digits = eight(value);
    // The last digit stays, also of 0.
    let zeros = (digits | 1 << 56).trailing_zeros() as usize / 8;
    put_word(digits >> (8 * zeros), spare, at);
    at + 8 - zeros
}

#[inline(always)]
fn put_word(digits: u64, spare: &mut Spare, at: usize) {
    buffer::store(spare, at, &(digits | ZEROS).to_le_bytes());
}

/// The eight digits of a number below 10^8, the first in the lowest byte.
#[inline(always)]
fn eight(value: u64) -> u64 {
    let fours = (value / 10_000) | ((value % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | ((fours - 100 * hundreds) << 16);
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | ((twos - 10 * tens) << 8)
}

#[cfg(test)]
mod tests {
    use super::super::buffer::Buffer;
    use super::*;

    fn agrees(num: Num<'_>) -> bool {
        let mut expected = Vec::new();
        num.write(&mut expected);
        let mut buffer = Buffer::with_capacity(0);
        match put(num, buffer.spare(), 0) {
            Some(len) => {
                buffer.advance(len);
                assert_eq!(buffer.as_slice(), expected, "{num}");
                true
            }
            None => false,
        }
    }

    #[test]
    fn agrees_with_the_model() {
        let mut rng = fastrand::Rng::with_seed(1);
        for power in 0..20 {
            let power = 10_u64.pow(power);
            for value in [power - 1, power, power + 1, power | rng.u64(..power)] {
                assert!(agrees(Num::Uint(value)));
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                assert!(agrees(Num::Int(value)) && agrees(Num::Int(-value)));
            }
        }
        assert!(agrees(Num::Int(i64::MIN)) && agrees(Num::Uint(u64::MAX)));
        for _ in 0..100_000 {
            let mantissa = rng.u64(..) >> rng.u32(..64);
            assert!(agrees(Num::Uint(mantissa)));
            let scale = rng.u8(1..=24);
            assert!(agrees(Num::Decimal(Decimal { negative: rng.bool(), mantissa, scale })));
        }
        for (mantissa, scale) in [(0, 1), (0, 24), (u64::MAX, 19), (u64::MAX, 20), (u64::MAX, 24)] {
            assert!(agrees(Num::Decimal(Decimal { negative: true, mantissa, scale })));
        }
        assert!(!agrees(Num::Decimal(Decimal { negative: true, mantissa: 1, scale: 255 })));
        assert!(!agrees(Num::Text("1e5")));
    }
}
