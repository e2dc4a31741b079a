//! The ids of `huge` and its records, from a number alone.

use std::fmt::Write;

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// In which order ids come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// 32 hexadecimal digits at random.
    Random,
    /// Paths of four segments, rising.
    Path,
}

impl Order {
    /// The name in claims.
    pub fn name(self) -> &'static str {
        match self {
            Order::Random => "random ids",
            Order::Path => "path order",
        }
    }

    /// The id of record `i`: an absolute path.
    pub fn id(self, i: u64) -> String {
        match self {
            Order::Random => format!("/{:016x}{:016x}", step(2 * i + 1), step(2 * i + 2)),
            Order::Path => format!(
                "/r{:03}/s{:03}/t{:03}/leaf{i:012}",
                i / 1_000_000,
                i / 10_000 % 100,
                i / 100 % 100
            ),
        }
    }
}

/// The text of `y` in record `i`: 76 characters.
pub fn filling(i: u64) -> String {
    let mut text = String::with_capacity(76);
    for at in 0..4 {
        let _ = write!(text, "{:016x}", step(i * 4 + at));
    }
    text.push_str("............");
    text
}

/// A number at random, always the same one for `i`.
pub fn step(i: u64) -> u64 {
    let mut z = i.wrapping_add(GAMMA);
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ z >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_published_ones() {
        assert_eq!(step(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(Order::Random.id(0), "/910a2dec89025cc1975835de1c9756ce");
        assert_eq!(Order::Path.id(12_345_678), "/r012/s034/t056/leaf000012345678");
        assert_eq!(filling(7).len(), 76);
    }
}
