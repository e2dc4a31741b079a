//! Exact arithmetic on numbers of any length: what floats would get wrong.

use spinney_core::Num;

/// A number as `sign * digits * 10^exponent`, its digits without zeros at either end: one form for
/// each mathematical value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// Whether it is below zero.
    pub negative: bool,
    /// ASCII digits; empty for zero.
    pub digits: Vec<u8>,
    /// The power of ten; 0 for zero.
    pub exponent: i128,
}

impl Decimal {
    /// Takes a number apart.
    pub fn new(num: &Num<'_>) -> Decimal {
        let text = num.to_string();
        let unsigned = text.trim_start_matches('-');
        let (plain, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((plain, exponent)) => (plain, exponent.parse().expect("at most 18 digits")),
            None => (unsigned, 0i128),
        };
        let (whole, fraction) = plain.split_once('.').unwrap_or((plain, ""));
        let mut exponent = exponent - fraction.len() as i128;
        let mut digits: Vec<u8> =
            whole.bytes().chain(fraction.bytes()).skip_while(|&digit| digit == b'0').collect();
        while digits.last() == Some(&b'0') {
            digits.pop();
            exponent += 1;
        }
        match digits.is_empty() {
            true => Decimal { negative: false, digits, exponent: 0 },
            false => Decimal { negative: text.starts_with('-'), digits, exponent },
        }
    }

    /// Whether it has no fraction.
    pub fn is_integer(&self) -> bool {
        self.exponent >= 0
    }

    /// Appends bytes that are the same for equal numbers only.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.negative));
        out.extend_from_slice(&self.exponent.to_be_bytes());
        out.extend_from_slice(&(self.digits.len() as u64).to_be_bytes());
        out.extend_from_slice(&self.digits);
    }
}

/// Whether a number has no fraction, whatever its text.
pub fn is_integer(num: &Num<'_>) -> bool {
    match num {
        Num::Int(_) | Num::Uint(_) => true,
        Num::Decimal(_) | Num::Text(_) => Decimal::new(num).is_integer(),
    }
}

/// What `multipleOf` divides by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divisor {
    digits: u64,
    exponent: i128,
}

impl Divisor {
    /// A divisor; `None` when it is not above zero or has more than 19 significant digits.
    pub fn new(num: &Num<'_>) -> Option<Divisor> {
        let Decimal { negative, digits, exponent } = Decimal::new(num);
        let digits: u64 = std::str::from_utf8(&digits).ok()?.parse().ok()?;
        (!negative).then_some(Divisor { digits, exponent })
    }

    /// Whether a number divided by it is an integer.
    ///
    /// # Complexity
    /// O(digits of the number); an exponent counts by its logarithm.
    pub fn divides(&self, num: &Num<'_>) -> bool {
        let Decimal { digits, exponent, .. } = Decimal::new(num);
        if digits.is_empty() {
            return true;
        }
        // The digits do not end in a zero, so no power of ten can be taken out of them.
        let Ok(mut power) = u128::try_from(exponent - self.exponent) else { return false };
        let modulus = u128::from(self.digits);
        let times = |a: u128, b: u128| a * b % modulus;
        let mut rest =
            digits.iter().fold(0, |rest, digit| (rest * 10 + u128::from(digit - b'0')) % modulus);
        let mut ten = 10 % modulus;
        while power > 0 {
            if power & 1 == 1 {
                rest = times(rest, ten);
            }
            ten = times(ten, ten);
            power >>= 1;
        }
        rest == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn num(text: &str) -> Num<'_> {
        Num::parse(text).expect(text)
    }

    #[test]
    fn integers_are_told_by_their_value() {
        for text in ["0", "-0.0", "1.0", "1e400", "12.50e1", "18446744073709551616"] {
            assert!(is_integer(&num(text)), "{text}");
        }
        for text in ["0.1", "1e-1", "12.55e1", "1e-400", "1.00000000000000000000001"] {
            assert!(!is_integer(&num(text)), "{text}");
        }
    }

    #[test]
    fn multiples_are_exact() {
        for (value, divisor, expected) in [
            ("0", "7", true),
            ("-21", "7", true),
            ("22", "7", false),
            ("0.0075", "0.0001", true),
            ("0.00751", "0.0001", false),
            ("4.35", "0.01", true),
            ("1e308", "0.123456789", false),
            ("1e400", "1e399", true),
            ("1e400", "3", false),
            ("1e999999999999999999", "5", true),
            ("1e-400", "1e-401", true),
            ("1e-401", "1e-400", false),
            ("123456789012345678901234567890", "10", true),
            ("123456789012345678901234567891", "10", false),
            ("18446744073709551615", "18446744073709551615", true),
        ] {
            let divisor = Divisor::new(&num(divisor)).expect(divisor);
            assert_eq!(divisor.divides(&num(value)), expected, "{value} {divisor:?}");
        }
        for refused in ["0", "-1", "12345678901234567890123"] {
            assert_eq!(Divisor::new(&num(refused)), None);
        }
    }

    #[test]
    fn equal_numbers_have_one_form() {
        for (a, b) in [("1", "1.0"), ("100", "1e2"), ("0", "-0.0"), ("-0.5", "-5e-1")] {
            assert_eq!(Decimal::new(&num(a)), Decimal::new(&num(b)));
        }
        assert_ne!(Decimal::new(&num("1")), Decimal::new(&num("-1")));
    }
}
