//! A logarithmic axis: where a value lies, and which values are marked.

/// From a smallest to a largest value, along pixels.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// An axis from pixel `from` to pixel `to` that holds all positive `values`; at least a factor of two,
    /// so that a single value has a place.
    pub fn around(values: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Axis {
        let fits = |value: &f64| value.is_finite() && *value > 0.0;
        let ends = values.into_iter().filter(fits).fold(None, |ends, value| match ends {
            None => Some((value, value)),
            Some((low, high)) => Some((value.min(low), value.max(high))),
        });
        let (low, high) = ends.unwrap_or((1.0, 1.0));
        let slack = (2.0 / (high / low)).max(1.0).sqrt();
        Axis { low: low / slack, high: high * slack, from, to }
    }

    /// The pixel of a value; those outside are at the ends.
    pub fn place(&self, value: f64) -> f64 {
        let share = (value / self.low).ln() / (self.high / self.low).ln();
        let share = if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) };
        self.from + share * (self.to - self.from)
    }

    /// Marked values: at most `most`, whole powers of ten where there are two, otherwise 1, 2 and 5 of them.
    pub fn ticks(&self, most: usize) -> Vec<f64> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let inside = |value: &f64| (self.low..=self.high).contains(value);
        let decades: Vec<f64> = (first..=last).map(power).filter(inside).collect();
        let ticks = match decades.len() {
            0 | 1 => {
                let steps =
                    (first..=last).flat_map(|at| [1.0, 2.0, 5.0].map(|step| step * power(at)));
                let steps: Vec<f64> = steps.filter(inside).collect();
                if steps.is_empty() { vec![self.low, self.high] } else { steps }
            }
            _ => decades,
        };
        let step = ticks.len().div_ceil(most).max(1);
        ticks.into_iter().step_by(step).collect()
    }
}

/// Exactly what the text of the number says, as `powi` is not for negative powers.
fn power(at: i32) -> f64 {
    format!("1e{at}").parse().expect("a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_factors_are_equal_distances() {
        let axis = Axis::around([1.0, 100.0, 10_000.0], 0.0, 400.0);
        assert_eq!([1.0, 100.0, 10_000.0].map(|value| axis.place(value)), [0.0, 200.0, 400.0]);
        assert_eq!([0.1, 1e9].map(|value| axis.place(value)), [0.0, 400.0]);
        assert_eq!(axis.ticks(9), [1.0, 10.0, 100.0, 1e3, 1e4]);
        assert_eq!(axis.ticks(3), [1.0, 100.0, 1e4]);
    }

    #[test]
    fn one_value_or_none_has_an_axis() {
        let axis = Axis::around([3.0], 0.0, 100.0);
        assert!((axis.place(3.0) - 50.0).abs() < 1e-9);
        assert!(!axis.ticks(5).is_empty());
        for values in [vec![], vec![0.0, -1.0, f64::NAN]] {
            let axis = Axis::around(values, 0.0, 100.0);
            assert!((axis.place(1.0) - 50.0).abs() < 1e-9);
            assert!((0.0..=100.0).contains(&axis.place(f64::NAN)));
        }
    }

    #[test]
    fn a_narrow_axis_is_marked_within_a_decade() {
        assert_eq!(Axis::around([1.5, 6.0], 0.0, 1.0).ticks(9), [2.0, 5.0]);
        assert_eq!(Axis::around([0.002, 0.3], 0.0, 1.0).ticks(9), [0.01, 0.1]);
    }
}
