//! Times, lengths, rates and ratios as people read them: three digits and a unit.

/// An amount of a record's unit.
pub fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        "us" => in_time(value),
        "B" => in_bytes(value),
        "op/s" => in_rate(value),
        unit => format!("{} {unit}", three_digits(value)),
    }
}

/// A time in the unit that leaves one to three digits before the point.
pub fn in_time(us: f64) -> String {
    let (value, unit) = match us {
        us if us < 1.0 => (us * 1e3, "ns"),
        us if us < 1e3 => (us, "µs"),
        us if us < 1e6 => (us / 1e3, "ms"),
        us => (us / 1e6, "s "),
    };
    format!("{} {unit}", three_digits(value))
}

/// A length in the unit that leaves one to three digits before the point.
pub fn in_bytes(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e3 => format!("{bytes} B"),
        bytes if bytes < 1e6 => format!("{} kB", three_digits(bytes / 1e3)),
        bytes if bytes < 1e9 => format!("{} MB", three_digits(bytes / 1e6)),
        bytes => format!("{} GB", three_digits(bytes / 1e9)),
    }
}

/// `2.00 x`.
pub fn factor(value: f64) -> String {
    format!("{} x", plain_factor(value))
}

/// A ratio, to three digits.
pub fn plain_factor(value: f64) -> String {
    if value >= 1e5 { format!("{value:.1e}") } else { three_digits(value) }
}

fn three_digits(value: f64) -> String {
    match value {
        value if value < 9.995 => format!("{value:.2}"),
        value if value < 99.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// A count with its thousands apart.
pub fn grouped(size: usize) -> String {
    let digits = size.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A rate with three digits.
pub fn in_rate(rate: f64) -> String {
    match rate {
        rate if rate < 1e3 => format!("{} /s", three_digits(rate)),
        rate if rate < 1e6 => format!("{} k/s", three_digits(rate / 1e3)),
        rate => format!("{} M/s", three_digits(rate / 1e6)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_and_a_fitting_unit() {
        let shown: Vec<String> =
            [0.00123, 0.6512, 4.0, 99.96, 216.4, 1_234.0, 2.5e6].map(in_time).to_vec();
        assert_eq!(
            shown,
            ["1.23 ns", "651 ns", "4.00 µs", "100 µs", "216 µs", "1.23 ms", "2.50 s "]
        );
        assert_eq!(grouped(1_000_000), "1 000 000");
        assert_eq!(grouped(10), "10");
        assert_eq!(in_unit(1_500.0, "B"), "1.50 kB");
    }

    #[test]
    fn rates_have_three_digits_and_a_fitting_unit() {
        assert_eq!([7.25, 16_040.0, 1.5e6].map(in_rate), ["7.25 /s", "16.0 k/s", "1.50 M/s"]);
    }
}
