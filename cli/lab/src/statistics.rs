//! Computes statistics: no clock, no file, no state.
//!
//! A ratio has an interval. It comes from Wilcoxon's signed ranks over the pairs of runs of one round, and is exact for any
//! noise. With too few pairs, or for several workloads together, it comes from resampling both sides (bootstrap). The generator
//! is seeded from the data's name, so the same file always gives the same table.

use crate::least;
use std::hash::Hasher;

/// Resamples for one interval: enough for three digits of a 95 % bound.
const RESAMPLES: usize = 2000;
/// The share of resampled values outside the interval, at each end.
pub const TAIL: f64 = 0.025;

/// The same for signed ranks. If runs are added until the interval is narrow, 2.5 % would give an interval that is right in
/// only 94.5 % of the cases; with 2 % it is right in 95.7 %.
const RANK_TAIL: f64 = 0.02;
/// With fewer pairs there is no such interval.
const PAIRS_MIN: usize = 6;

/// If the spread is larger, a difference of a few percent means nothing.
pub const NOISY_SPREAD: f64 = 0.05;

/// A ratio of two medians or leasts, and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    pub value: f64,
    pub low: f64,
    pub high: f64,
}

/// What a ratio shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    Less,
    More,
    /// The interval contains 1: no difference is shown.
    NotShown,
}

impl Ratio {
    pub fn difference(&self) -> Difference {
        if self.high < 1.0 {
            Difference::Less
        } else if self.low > 1.0 {
            Difference::More
        } else {
            Difference::NotShown
        }
    }
}

/// The value that represents several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimate {
    #[default]
    Median,
    /// For times that others can only lengthen (least.rs).
    Least,
}

impl Estimate {
    pub fn of(self, samples: &[f64]) -> f64 {
        match self {
            Estimate::Median => median(samples),
            Estimate::Least => least::least(samples),
        }
    }

    /// The ratio of `ours` to `theirs`. None if either has no samples, or if some are 0.
    pub fn ratio(self, ours: &[f64], theirs: &[f64], seed: &str) -> Option<Ratio> {
        match self {
            Estimate::Median => ratio(ours, theirs, seed),
            Estimate::Least => least::mean_ratio(&[(ours, theirs)], seed),
        }
    }

    /// The geometric mean of the ratios of pairs of sample sets.
    pub fn mean_ratio(self, pairs: &[(&[f64], &[f64])], seed: &str) -> Option<Ratio> {
        match self {
            Estimate::Median => geometric_mean_ratio(pairs, seed),
            Estimate::Least => least::mean_ratio(pairs, seed),
        }
    }

    /// Do the samples vary so much that a few percent mean nothing?
    pub fn is_noisy(self, samples: &[f64]) -> bool {
        match self {
            Estimate::Median => spread(samples) > NOISY_SPREAD,
            Estimate::Least => !least::is_known(samples),
        }
    }
}

/// The value below which the part `share` of the samples lies, interpolated between neighbours. NaN without samples.
pub fn quantile(samples: &[f64], share: f64) -> f64 {
    quantile_of_sorted(&sorted(samples), share)
}

pub fn median(samples: &[f64]) -> f64 {
    quantile(samples, 0.5)
}

/// The median distance from the median.
pub fn median_deviation(samples: &[f64]) -> f64 {
    let middle = median(samples);
    let distances: Vec<f64> = samples
        .iter()
        .map(|sample| (sample - middle).abs())
        .collect();
    median(&distances)
}

/// The distance between the quartiles, divided by the median; 0 for fewer than three samples.
pub fn spread(samples: &[f64]) -> f64 {
    let middle = median(samples);
    if samples.len() < 3 || middle == 0.0 {
        return 0.0;
    }
    (quantile(samples, 0.75) - quantile(samples, 0.25)) / middle
}

/// NaN without numbers.
pub fn geometric_mean(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = numbers
        .into_iter()
        .fold((0.0, 0usize), |(sum, count), number| {
            (sum + number.ln(), count + 1)
        });
    if count == 0 {
        f64::NAN
    } else {
        (sum / count as f64).exp()
    }
}

/// The ratio of `ours` to `theirs`, by pairs of one round. None if either has no samples, or if some are 0.
pub fn ratio(ours: &[f64], theirs: &[f64], seed: &str) -> Option<Ratio> {
    let pairs: Vec<f64> = ours
        .iter()
        .zip(theirs)
        .map(|(ours, theirs)| (ours / theirs).ln())
        .collect();
    if pairs.len() < PAIRS_MIN || !pairs.iter().all(|pair| pair.is_finite()) {
        return geometric_mean_ratio(&[(ours, theirs)], seed);
    }
    let means = pairwise_means(&pairs);
    let out = ranks_left_out(pairs.len());
    Some(Ratio {
        value: quantile_of_sorted(&means, 0.5).exp(),
        low: means[out].exp(),
        high: means[means.len() - 1 - out].exp(),
    })
}

/// The means of all pairs of numbers, including each with itself, sorted. Their median is the estimate of Hodges and Lehmann.
fn pairwise_means(numbers: &[f64]) -> Vec<f64> {
    let mut means: Vec<f64> = numbers
        .iter()
        .enumerate()
        .flat_map(|(at, one)| numbers[at..].iter().map(move |other| (one + other) / 2.0))
        .collect();
    means.sort_by(f64::total_cmp);
    means
}

/// How many of the pairwise means lie outside the interval, at each end. If each sign is equally likely, the sum of the ranks
/// of the positive ones of `count` differences is rarely below this number.
fn ranks_left_out(count: usize) -> usize {
    let sums = count * (count + 1) / 2;
    let mut chances = vec![0.0; sums + 1];
    chances[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..=sums).rev() {
            let with_rank = if sum >= rank {
                chances[sum - rank]
            } else {
                0.0
            };
            chances[sum] = (chances[sum] + with_rank) / 2.0;
        }
    }
    let mut below = 0.0;
    let rare = chances.iter().take_while(|chance| {
        below += *chance;
        below <= RANK_TAIL
    });
    rare.count().saturating_sub(1)
}

/// The geometric mean, over pairs of sample sets, of the ratios of their medians.
pub fn geometric_mean_ratio(pairs: &[(&[f64], &[f64])], seed: &str) -> Option<Ratio> {
    let usable = |samples: &[f64]| !samples.is_empty() && median(samples) > 0.0;
    if pairs.is_empty()
        || !pairs
            .iter()
            .all(|(ours, theirs)| usable(ours) && usable(theirs))
    {
        return None;
    }
    let value = geometric_mean(
        pairs
            .iter()
            .map(|(ours, theirs)| median(ours) / median(theirs)),
    );
    let mut generator = generator_for(seed);
    let mut drawn: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            geometric_mean(pairs.iter().map(|(ours, theirs)| {
                resampled_median(ours, &mut generator) / resampled_median(theirs, &mut generator)
            }))
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    let low = quantile_of_sorted(&drawn, TAIL);
    let high = quantile_of_sorted(&drawn, 1.0 - TAIL);
    Some(Ratio { value, low, high })
}

/// A generator that depends only on a name, the same on every machine.
pub fn generator_for(seed: &str) -> fastrand::Rng {
    // FNV-1a: the standard hasher may change between versions.
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    hash.write(seed.as_bytes());
    fastrand::Rng::with_seed(hash.finish())
}

struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

pub fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut samples = samples.to_vec();
    samples.sort_by(f64::total_cmp);
    samples
}

pub fn quantile_of_sorted(samples: &[f64], share: f64) -> f64 {
    let Some(last) = samples.len().checked_sub(1) else {
        return f64::NAN;
    };
    let place = share * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    samples[below] + (samples[above] - samples[below]) * (place - below as f64)
}

fn resampled_median(samples: &[f64], generator: &mut fastrand::Rng) -> f64 {
    let drawn: Vec<f64> = samples
        .iter()
        .map(|_| samples[generator.usize(..samples.len())])
        .collect();
    median(&drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_or_between_the_two_middles() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn quantiles_lie_between_neighbours_in_proportion() {
        let samples = [10.0, 20.0, 30.0, 40.0, 50.0];
        assert_eq!(quantile(&samples, 0.0), 10.0);
        assert_eq!(quantile(&samples, 0.25), 20.0);
        assert_eq!(quantile(&samples, 0.9), 46.0);
        assert_eq!(quantile(&samples, 1.0), 50.0);
    }

    #[test]
    fn the_median_deviation_ignores_what_is_far_off() {
        assert_eq!(median_deviation(&[1.0, 1.0, 2.0, 2.0, 4.0, 6.0, 9.0]), 1.0);
        assert_eq!(median_deviation(&[5.0, 5.0, 1000.0]), 0.0);
    }

    #[test]
    fn spread_is_the_distance_of_the_quartiles() {
        assert!((spread(&[1.0, 2.0, 3.0, 4.0, 5.0]) - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(spread(&[3.0, 3.0, 3.0]), 0.0);
        assert_eq!(spread(&[1.0, 9.0]), 0.0);
    }

    #[test]
    fn the_geometric_mean_of_opposite_ratios_is_one() {
        assert!((geometric_mean([0.5, 2.0]) - 1.0).abs() < 1e-12);
        assert!((geometric_mean([1.0, 8.0]) - 8.0f64.sqrt()).abs() < 1e-12);
        assert!(geometric_mean([]).is_nan());
    }

    #[test]
    fn an_interval_holds_its_ratio_and_repeats() {
        let (ours, theirs) = ([1.0, 1.1, 1.2, 1.3], [2.0, 2.1, 2.2, 2.6]);
        let found = ratio(&ours, &theirs, "seed").unwrap();
        assert!((found.value - 1.15 / 2.15).abs() < 1e-12);
        assert!(found.low < found.value && found.value < found.high);
        assert_eq!(ratio(&ours, &theirs, "seed"), Some(found));
        assert_ne!(ratio(&ours, &theirs, "other"), Some(found));
    }

    #[test]
    fn the_ranks_left_out_are_those_of_the_tables() {
        // Two-sided critical values of the signed-rank test at 4 %: P(T <= 0 of 6) is 1.6 %, P(T <= 8 of 10) 2.4 %, P(T <= 7 of
        // 10) 1.9 %.
        assert_eq!(ranks_left_out(6), 0);
        assert_eq!(ranks_left_out(10), 7);
    }

    #[test]
    fn what_slows_down_a_whole_round_is_no_difference() {
        let theirs: Vec<f64> = (0..10).map(|round| 1.0 + f64::from(round)).collect();
        let ours: Vec<f64> = theirs.iter().map(|time| time * 1.05).collect();
        let found = ratio(&ours, &theirs, "").unwrap();
        assert!((found.value - 1.05).abs() < 1e-12);
        assert_eq!(found.difference(), Difference::More);
        assert_eq!(
            ratio(&theirs, &theirs, "").unwrap().difference(),
            Difference::NotShown
        );
    }

    #[test]
    fn samples_without_noise_have_an_interval_without_width() {
        let found = ratio(&[2.0; 5], &[4.0; 5], "").unwrap();
        assert_eq!((found.low, found.value, found.high), (0.5, 0.5, 0.5));
        assert_eq!(found.difference(), Difference::Less);
        assert_eq!(
            ratio(&[4.0; 5], &[4.0; 5], "").unwrap().difference(),
            Difference::NotShown
        );
    }

    #[test]
    fn there_is_no_ratio_to_nothing() {
        assert_eq!(ratio(&[1.0], &[], ""), None);
        assert_eq!(ratio(&[1.0], &[0.0], ""), None);
        assert_eq!(geometric_mean_ratio(&[], ""), None);
    }

    #[test]
    fn the_generator_depends_on_the_name_alone() {
        let draw = |name: &str| generator_for(name).u64(..);
        assert_eq!(draw("a"), draw("a"));
        assert_ne!(draw("a"), draw("b"));
        // If this changes, published intervals can no longer be reproduced.
        let mut generator = generator_for("hakmem glibc");
        let first: Vec<usize> = (0..8).map(|_| generator.usize(..10)).collect();
        assert_eq!(first, FIRST_OF_HAKMEM_GLIBC);
    }

    const FIRST_OF_HAKMEM_GLIBC: [usize; 8] = [1, 6, 3, 6, 5, 5, 5, 6];
}
