//! Lossless numbers: a JSON number keeps its text exactly.
//!
//! Two relations are never mixed up: *identical* (same text, `==`) and *equal in value*
//! ([`Num::compare`]). This module knows nothing of how numbers are stored.

use std::cmp::Ordering;
use std::fmt;

use crate::error::{Error, Result};
use crate::limits::{NUMBER_EXPONENT_DIGITS_MAX, NUMBER_LEN_MAX};

/// A number whose text is borrowed. Each text has exactly one form, so `==` means *identical*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Num<'a> {
    /// An integer within i64; never `-0`.
    Int(i64),
    /// An integer above `i64::MAX`, within u64.
    Uint(u64),
    /// A plain decimal such as `-65.613616999999977` or `1.10`.
    Decimal(Decimal),
    /// Any other number, as its text: `-0`, `1e400`, integers beyond u64.
    Text(&'a str),
}

/// `(-1)^negative * mantissa * 10^-scale`, written with exactly `scale` digits after the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// Whether the text starts with `-` (true for `-0.0`).
    pub negative: bool,
    /// All digits of the text as one integer.
    pub mantissa: u64,
    /// Digits after the point, 1 to 255.
    pub scale: u8,
}

/// Why a text is not a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumError {
    /// The byte at this offset does not continue a number; the text says what was expected.
    Syntax(usize, &'static str),
    /// The text or its exponent is longer than the limits allow.
    Limit,
}

impl<'a> Num<'a> {
    /// Reads the number at the start of `bytes` (RFC 8259 section 6) and tells its length.
    ///
    /// # Errors
    /// [`NumError::Syntax`] with the offset of the first byte that does not fit, which may be the
    /// end of `bytes`; [`NumError::Limit`] above 64 KiB of text or 18 digits of exponent.
    #[inline]
    pub fn scan(bytes: &'a [u8]) -> Result<(Num<'a>, usize), NumError> {
        let negative = bytes.first() == Some(&b'-');
        let mut at = usize::from(negative);
        let mut mantissa: u64 = 0;
        let mut exact = true;
        let mut digits = |at: &mut usize| {
            let start = *at;
            while let Some(digit) = bytes.get(*at).map(|byte| byte.wrapping_sub(b'0'))
                && digit <= 9
            {
                match mantissa.checked_mul(10).and_then(|m| m.checked_add(u64::from(digit))) {
                    Some(value) => mantissa = value,
                    None => exact = false,
                }
                *at += 1;
            }
            *at - start
        };
        let leading_zero = bytes.get(at) == Some(&b'0');
        let integer_digits = digits(&mut at);
        if integer_digits == 0 {
            return Err(NumError::Syntax(at, "a digit"));
        }
        if leading_zero && integer_digits > 1 {
            return Err(NumError::Syntax(at - integer_digits + 1, "no digit after a leading zero"));
        }
        let mut scale = 0;
        if bytes.get(at) == Some(&b'.') {
            at += 1;
            scale = digits(&mut at);
            if scale == 0 {
                return Err(NumError::Syntax(at, "a digit after the decimal point"));
            }
        }
        let has_exponent = matches!(bytes.get(at), Some(b'e' | b'E'));
        if has_exponent {
            at += 1;
            at += usize::from(matches!(bytes.get(at), Some(b'+' | b'-')));
            let count = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            if count == 0 {
                return Err(NumError::Syntax(at, "a digit of the exponent"));
            }
            at += count;
            if count > NUMBER_EXPONENT_DIGITS_MAX {
                return Err(NumError::Limit);
            }
        }
        if at > NUMBER_LEN_MAX {
            return Err(NumError::Limit);
        }
        let num = match scale {
            _ if has_exponent || !exact || scale > 255 => None,
            0 if !negative && mantissa <= i64::MAX as u64 => Some(Num::Int(mantissa as i64)),
            0 if !negative => Some(Num::Uint(mantissa)),
            0 if mantissa == 0 => None,
            0 => 0i64.checked_sub_unsigned(mantissa).map(Num::Int),
            scale => Some(Num::Decimal(Decimal { negative, mantissa, scale: scale as u8 })),
        };
        match num {
            Some(num) => Ok((num, at)),
            None => {
                let text = std::str::from_utf8(&bytes[..at]).expect("only ASCII was accepted");
                Ok((Num::Text(text), at))
            }
        }
    }

    /// The number that `text` is, as a whole.
    ///
    /// # Errors
    /// `InvalidInput` when it is not a JSON number; `LimitExceeded` when it is too long.
    pub fn parse(text: &'a str) -> Result<Num<'a>> {
        match Num::scan(text.as_bytes()) {
            Ok((num, len)) if len == text.len() => Ok(num),
            Ok((_, at)) => Err(NumError::Syntax(at, "the end of the number")),
            Err(error) => Err(error),
        }
        .map_err(|error| error.into_error(text.as_bytes()))
    }

    /// The nearest 64-bit float; beyond its range an infinity.
    pub fn as_f64(&self) -> f64 {
        match *self {
            Num::Int(value) => value as f64,
            Num::Uint(value) => value as f64,
            other => other.to_string().parse().unwrap_or(f64::NAN),
        }
    }

    /// Compares the mathematical values, exactly.
    pub fn compare(&self, other: &Num<'_>) -> Ordering {
        if let (Num::Int(a), Num::Int(b)) = (self, other) {
            return a.cmp(b);
        }
        let (a, b) = (Magnitude::of(self), Magnitude::of(other));
        match (a.sign, b.sign) {
            (0, 0) => Ordering::Equal,
            (x, y) if x != y => x.cmp(&y),
            (1, _) => a.cmp_magnitude(&b),
            _ => b.cmp_magnitude(&a),
        }
    }

    /// The number with its text owned.
    pub fn to_owned(&self) -> Number {
        Number(match *self {
            Num::Int(value) => Repr::Int(value),
            Num::Uint(value) => Repr::Uint(value),
            Num::Decimal(value) => Repr::Decimal(value),
            Num::Text(text) => Repr::Text(text.into()),
        })
    }

    /// Appends the text.
    #[inline]
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut buffer = itoa::Buffer::new();
        match *self {
            Num::Int(value) => out.extend_from_slice(buffer.format(value).as_bytes()),
            Num::Uint(value) => out.extend_from_slice(buffer.format(value).as_bytes()),
            Num::Text(text) => out.extend_from_slice(text.as_bytes()),
            Num::Decimal(Decimal { negative, mantissa, scale }) => {
                if negative {
                    out.push(b'-');
                }
                let digits = buffer.format(mantissa).as_bytes();
                let scale = usize::from(scale);
                if digits.len() > scale {
                    // At most 20 digits and the point, put together before they are appended.
                    let mut text = [0; 21];
                    let point = digits.len() - scale;
                    text[1..=digits.len()].copy_from_slice(digits);
                    text.copy_within(1..=point, 0);
                    text[point] = b'.';
                    out.extend_from_slice(&text[..=digits.len()]);
                } else {
                    out.extend_from_slice(b"0.");
                    out.resize(out.len() + scale - digits.len(), b'0');
                    out.extend_from_slice(digits);
                }
            }
        }
    }
}

impl fmt::Display for Num<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = Vec::new();
        self.write(&mut out);
        f.write_str(std::str::from_utf8(&out).expect("numbers are ASCII"))
    }
}

impl NumError {
    /// The error for people; `bytes` is what was scanned.
    #[cold]
    pub fn into_error(self, bytes: &[u8]) -> Error {
        match self {
            NumError::Limit => Error::limit_exceeded(format!(
                "a number is longer than {NUMBER_LEN_MAX} bytes or its exponent longer than {NUMBER_EXPONENT_DIGITS_MAX} digits; store it as a string"
            )),
            NumError::Syntax(at, expected) => {
                let text = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
                Error::invalid_input(format!(
                    "`{text}` is not a number: expected {expected} at byte {at}"
                ))
            }
        }
    }
}

/// A number that owns its text. `==` means *identical*; see [`Num::compare`] for values.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Number(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Int(i64),
    Uint(u64),
    Decimal(Decimal),
    Text(Box<str>),
}

impl Number {
    /// Parses a JSON number.
    ///
    /// # Errors
    /// As [`Num::parse`].
    pub fn parse(text: &str) -> Result<Number> {
        Ok(Num::parse(text)?.to_owned())
    }

    /// The shortest text that reads back as `value`; `None` for NaN and infinities.
    pub fn from_f64(value: f64) -> Option<Number> {
        if !value.is_finite() {
            return None;
        }
        let magnitude = value.abs();
        let text = match magnitude == 0.0 || (1e-5..1e17).contains(&magnitude) {
            true => format!("{value:?}"),
            false => format!("{value:e}"),
        };
        Some(Number::parse(&text).expect("a finite float prints as a JSON number"))
    }

    /// The number, borrowed.
    #[inline]
    pub fn as_num(&self) -> Num<'_> {
        match &self.0 {
            Repr::Int(value) => Num::Int(*value),
            Repr::Uint(value) => Num::Uint(*value),
            Repr::Decimal(value) => Num::Decimal(*value),
            Repr::Text(text) => Num::Text(text),
        }
    }

    /// The value, when the text is an integer within i64.
    pub fn as_i64(&self) -> Option<i64> {
        match self.0 {
            Repr::Int(value) => Some(value),
            _ => None,
        }
    }

    /// The value, when the text is an integer within u64.
    pub fn as_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Int(value) => u64::try_from(value).ok(),
            Repr::Uint(value) => Some(value),
            _ => None,
        }
    }

    /// The nearest 64-bit float; beyond its range an infinity.
    pub fn as_f64(&self) -> f64 {
        self.as_num().as_f64()
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number(Repr::Int(value))
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Number {
        Number(i64::try_from(value).map_or(Repr::Uint(value), Repr::Int))
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_num().fmt(f)
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_num().fmt(f)
    }
}

/// A value as `sign * 0.d1d2d3... * 10^exponent` with d1 and the last digit not zero.
struct Magnitude {
    sign: i8,
    digits: Vec<u8>,
    exponent: i128,
}

impl Magnitude {
    fn of(num: &Num<'_>) -> Magnitude {
        let text = num.to_string();
        let (negative, unsigned) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, &*text),
        };
        let (plain, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((plain, exponent)) => (plain, exponent.parse().expect("at most 18 digits")),
            None => (unsigned, 0i128),
        };
        let (integer, fraction) = plain.split_once('.').unwrap_or((plain, ""));
        let mut digits: Vec<u8> = integer.bytes().chain(fraction.bytes()).collect();
        let leading = digits.iter().take_while(|&&digit| digit == b'0').count();
        digits.drain(..leading);
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        let sign = match (digits.is_empty(), negative) {
            (true, _) => 0,
            (false, true) => -1,
            (false, false) => 1,
        };
        Magnitude { sign, digits, exponent: exponent + integer.len() as i128 - leading as i128 }
    }

    fn cmp_magnitude(&self, other: &Magnitude) -> Ordering {
        self.exponent.cmp(&other.exponent).then_with(|| self.digits.cmp(&other.digits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_exactly() {
        for text in [
            "0",
            "-0",
            "1",
            "-1",
            "9223372036854775807",
            "-9223372036854775808",
            "9223372036854775808",
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775809",
            "0.0",
            "-0.0",
            "1.10",
            "0.1",
            "-0.05",
            "-65.613616999999977",
            "1e400",
            "1E+5",
            "1.5e-7",
            "0e0",
            "123456789012345678901.5",
            "0.00000000000000000000000000001",
            "12345678901234567.890",
        ] {
            let num = Num::parse(text).expect(text);
            assert_eq!(num.to_string(), text);
            assert_eq!(num.to_owned().as_num(), num);
        }
    }

    #[test]
    fn malformed_numbers_are_refused_where_they_break() {
        for (text, at) in [
            ("", 0),
            ("-", 1),
            ("01", 1),
            ("1.", 2),
            (".5", 0),
            ("1e", 2),
            ("1e+", 3),
            ("+1", 0),
            ("1x", 1),
        ] {
            let error = match Num::scan(text.as_bytes()) {
                Ok((_, len)) => NumError::Syntax(len, "the end of the number"),
                Err(error) => error,
            };
            assert!(
                matches!(error, NumError::Syntax(offset, _) if offset == at),
                "{text}: {error:?}"
            );
            assert!(Num::parse(text).is_err());
        }
        assert_eq!(Num::scan(b"1e1234567890123456789"), Err(NumError::Limit));
    }

    #[test]
    fn values_compare_exactly() {
        let ascending = [
            "-1e400",
            "-9007199254740993",
            "-9007199254740992.5",
            "-1",
            "-0.1",
            "0",
            "1e-400",
            "0.1",
            "0.10000000000000000001",
            "1",
            "1.5",
            "9007199254740992",
            "9007199254740993",
            "18446744073709551615",
            "1e20",
            "1e400",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                let (a, b) = (Num::parse(a).unwrap(), Num::parse(b).unwrap());
                assert_eq!(a.compare(&b), i.cmp(&j), "{a} {b}");
            }
        }
        for (a, b) in [("1", "1.0"), ("1", "10e-1"), ("0", "-0"), ("-0.0", "0e5"), ("1e2", "100")] {
            assert_eq!(Num::parse(a).unwrap().compare(&Num::parse(b).unwrap()), Ordering::Equal);
            assert_ne!(Num::parse(a).unwrap(), Num::parse(b).unwrap());
        }
    }

    #[test]
    fn floats_print_shortest() {
        for (value, text) in
            [(0.1, "0.1"), (1e21, "1e21"), (-0.0, "-0.0"), (1.0, "1.0"), (5e-324, "5e-324")]
        {
            assert_eq!(Number::from_f64(value).expect("finite").to_string(), text);
        }
        assert_eq!(Number::from_f64(f64::NAN), None);
    }
}
