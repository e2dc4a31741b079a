//! Order statistics and bootstrap intervals over samples. Knows nothing of what was measured.

/// Resamples behind one interval: enough for two stable digits of a 95 % bound.
const RESAMPLES: usize = 2_000;

/// The value below which the share `q` of the samples lies, interpolated; `None` without samples.
pub fn quantile(samples: &[f64], q: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    quantile_sorted(&sorted, q)
}

/// The median; `None` without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// The 99th percentile where there are at least 100 samples.
pub fn p99(samples: &[f64]) -> Option<f64> {
    if samples.len() < 100 { None } else { quantile(samples, 0.99) }
}

/// The arithmetic mean; `None` without samples.
pub fn mean(samples: &[f64]) -> Option<f64> {
    if samples.is_empty() { None } else { Some(samples.iter().sum::<f64>() / samples.len() as f64) }
}

/// The smallest sample.
pub fn min(samples: &[f64]) -> Option<f64> {
    samples.iter().copied().min_by(f64::total_cmp)
}

/// The largest sample.
pub fn max(samples: &[f64]) -> Option<f64> {
    samples.iter().copied().max_by(f64::total_cmp)
}

/// The samples, or `most` of their order at equal distances, the smallest and the largest among them.
pub fn thinned(samples: &[f64], most: usize) -> Vec<f64> {
    if samples.len() <= most {
        return samples.to_vec();
    }
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    (0..most).map(|at| sorted[at * (sorted.len() - 1) / (most - 1).max(1)]).collect()
}

fn quantile_sorted(sorted: &[f64], q: f64) -> Option<f64> {
    let position = q * sorted.len().checked_sub(1)? as f64;
    let below = position.floor() as usize;
    let above = position.ceil() as usize;
    Some(sorted[below] + (sorted[above] - sorted[below]) * (position - below as f64))
}

/// A ratio of two medians with its 95 % bootstrap interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Median of the numerator by median of the denominator.
    pub value: f64,
    /// Lower bound of the interval.
    pub low: f64,
    /// Upper bound of the interval.
    pub high: f64,
}

impl Ratio {
    /// `numerator / denominator`, each resampled with replacement; `None` without samples.
    pub fn of(numerator: &[f64], denominator: &[f64], seed: u64) -> Option<Ratio> {
        let value = median(numerator)? / median(denominator)?;
        let mut random = fastrand::Rng::with_seed(seed);
        let mut buffer = Vec::new();
        let mut ratios: Vec<f64> = (0..RESAMPLES)
            .map(|_| {
                let top = resampled_median(numerator, &mut random, &mut buffer);
                top / resampled_median(denominator, &mut random, &mut buffer)
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let low = quantile_sorted(&ratios, 0.025)?;
        let high = quantile_sorted(&ratios, 0.975)?;
        Some(Ratio { value, low, high })
    }

    /// Whether the interval contains 1, so that neither side wins.
    pub fn is_tie(&self) -> bool {
        self.low <= 1.0 && self.high >= 1.0
    }
}

fn resampled_median(samples: &[f64], random: &mut fastrand::Rng, buffer: &mut Vec<f64>) -> f64 {
    buffer.clear();
    buffer.extend((0..samples.len()).map(|_| samples[random.usize(..samples.len())]));
    let middle = buffer.len() / 2;
    let (below, &mut upper, _) = buffer.select_nth_unstable_by(middle, f64::total_cmp);
    match samples.len() % 2 {
        1 => upper,
        _ => (max(below).unwrap_or(upper) + upper) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_statistics_of_known_samples() {
        let samples: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(median(&samples), Some(50.5));
        assert_eq!(min(&samples), Some(1.0));
        assert_eq!(max(&samples), Some(100.0));
        assert!((p99(&samples).expect("100 samples") - 99.01).abs() < 1e-9);
        assert_eq!(p99(&samples[..99]), None);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0]), Some(3.0));
    }

    #[test]
    fn thinned_samples_keep_their_ends_and_their_median() {
        let samples: Vec<f64> = (0..5_001).rev().map(f64::from).collect();
        let kept = thinned(&samples, 1_001);
        assert_eq!(kept.len(), 1_001);
        assert_eq!(
            (min(&kept), median(&kept), max(&kept)),
            (Some(0.0), Some(2_500.0), Some(5_000.0))
        );
        assert_eq!(thinned(&[3.0, 1.0], 1_000), [3.0, 1.0]);
    }

    #[test]
    fn intervals_contain_1_only_when_there_is_no_winner() {
        let slow: Vec<f64> = (0..40).map(|i| 200.0 + f64::from(i % 7)).collect();
        let fast: Vec<f64> = (0..40).map(|i| 100.0 + f64::from(i % 5)).collect();
        let ratio = Ratio::of(&slow, &fast, 1).expect("samples");
        assert!((1.9..2.1).contains(&ratio.value), "{ratio:?}");
        assert!(ratio.low > 1.8 && ratio.high < 2.2 && ratio.low <= ratio.value, "{ratio:?}");
        assert!(!ratio.is_tie());
        assert!(Ratio::of(&slow, &slow, 1).expect("samples").is_tie());
        assert_eq!(Ratio::of(&slow, &[], 1), None);
    }

    #[test]
    fn a_seed_gives_the_same_interval_again() {
        let (a, b) = ([3.0, 5.0, 4.0, 9.0], [1.0, 2.0, 2.5]);
        assert_eq!(Ratio::of(&a, &b, 7), Ratio::of(&a, &b, 7));
    }

    #[test]
    fn resampled_medians_of_even_counts_interpolate() {
        let mut random = fastrand::Rng::with_seed(1);
        let value = resampled_median(&[4.0, 4.0], &mut random, &mut Vec::new());
        assert_eq!(value, 4.0);
    }
}
