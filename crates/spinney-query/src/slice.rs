//! Which positions of a list an index or a slice names (RFC 9535, sections 2.3.3 and 2.3.4).

/// The largest integer that a query may hold, and with a minus sign the smallest: those that every
/// reader of JSON keeps exact (RFC 7493, section 2.2).
pub const INTEGER_MAX: i64 = (1 << 53) - 1;

/// The position that an index means in a list of `len`; `None` when it is before the first.
pub fn position(index: i64, len: impl FnOnce() -> u64) -> Option<u64> {
    match u64::try_from(index) {
        Ok(position) => Some(position),
        Err(_) => len().checked_sub(index.unsigned_abs()),
    }
}

/// `start:end:step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Where it begins.
    pub start: Option<i64>,
    /// Before which position it ends.
    pub end: Option<i64>,
    /// From one position to the next; 0 for none at all.
    pub step: i64,
}

/// Positions of one list: the first, the way to the next, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Positions {
    /// The first.
    pub first: u64,
    /// From one to the next.
    pub step: i64,
    /// How many.
    pub count: u64,
}

impl Slice {
    /// What it selects of a list of `len`.
    pub fn positions(&self, len: u64) -> Positions {
        let len = i64::try_from(len).unwrap_or(i64::MAX);
        let from_end = |index: i64| if index < 0 { len.saturating_add(index) } else { index };
        let step = self.step;
        let (first, distance) = match step {
            0 => (0, 0),
            1.. => {
                let lower = from_end(self.start.unwrap_or(0)).clamp(0, len);
                let upper = from_end(self.end.unwrap_or(len)).clamp(0, len);
                (lower, upper - lower)
            }
            ..0 => {
                let upper = self.start.map_or(len - 1, from_end).clamp(-1, len - 1);
                let lower = self.end.map_or(-1, from_end).clamp(-1, len - 1);
                (upper, upper - lower)
            }
        };
        let count = match distance {
            1.. => (distance.unsigned_abs() - 1) / step.unsigned_abs() + 1,
            _ => 0,
        };
        Positions { first: first.max(0).unsigned_abs(), step, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every small slice against the definition, position by position.
    #[test]
    fn positions_are_those_of_the_definition() {
        let bounds = || (-4..=4).map(Some).chain([None]);
        for len in 0..4_i64 {
            for (start, end) in bounds().flat_map(|start| bounds().map(move |end| (start, end))) {
                for step in -5..=5 {
                    let positions = Slice { start, end, step }.positions(len as u64);
                    let found: Vec<i64> = (0..positions.count as i64)
                        .map(|at| positions.first as i64 + at * step)
                        .collect();
                    let normal = |index: i64| if index >= 0 { index } else { len + index };
                    let mut expected = Vec::new();
                    if step > 0 {
                        let mut at = start.map_or(0, normal).clamp(0, len);
                        while at < end.map_or(len, normal).clamp(0, len) {
                            expected.push(at);
                            at += step;
                        }
                    } else if step < 0 {
                        let mut at = normal(start.unwrap_or(len - 1)).clamp(-1, len - 1);
                        while at > normal(end.unwrap_or(-len - 1)).clamp(-1, len - 1) {
                            expected.push(at);
                            at += step;
                        }
                    }
                    assert_eq!(found, expected, "{start:?}:{end:?}:{step} of {len}");
                }
            }
        }
    }

    #[test]
    fn the_largest_integers_do_not_overflow() {
        for (start, end, step) in [
            (Some(-INTEGER_MAX), Some(INTEGER_MAX), INTEGER_MAX),
            (Some(INTEGER_MAX), Some(-INTEGER_MAX), -INTEGER_MAX),
        ] {
            assert_eq!(Slice { start, end, step }.positions(1 << 40).count, 1);
        }
    }
}
