//! The least of some runs, and how certain it is: for programs whose time others can only lengthen.
//!
//! Resampling does not work for a least (Bickel and Freedman, 1981): no resampled value is below the measured ones. But it is
//! known how the lowest of some values lie above the end point of their distribution. If the density is even there, take the
//! way from the end to the k-th lowest value: the part of it below the first value is distributed as Beta(1, k - 1) (Robson and
//! Whitlock, Biometrika 51, 1964, for k = 2; Cooke, Biometrika 66, 1979). So the end is drawn from that, for both sides of a
//! ratio, as a generalized pivotal quantity (Weerahandi, 1993). If the density falls off from its end, as noise does, the
//! interval is too wide; if it rises, too narrow.

use crate::statistics::{self, Ratio, TAIL};

/// How many end points are drawn for one interval.
const DRAWS: usize = 2000;
/// A time is not negative: no end point is drawn below this part of the least.
const END_MIN: f64 = 0.01;
/// The error that a least may have: allocators that differ by this much can be told apart.
const KNOWN: f64 = 0.05;

/// The least value, and the highest of the lower half. Their distance tells how far away the end point may be.
struct Lowest {
    least: f64,
    upper: f64,
    count: usize,
}

impl Lowest {
    /// None without samples, or if some are 0.
    fn of(samples: &[f64]) -> Option<Lowest> {
        let sorted = statistics::sorted(samples);
        let least = *sorted.first().filter(|least| **least > 0.0)?;
        let count = sorted.len().div_ceil(2).max(2).min(sorted.len());
        Some(Lowest {
            least,
            upper: sorted[count - 1],
            count,
        })
    }

    /// The end point is below the returned value only with this chance.
    fn end(&self, chance: f64) -> f64 {
        if self.count < 2 {
            return self.least;
        }
        let part = 1.0 - chance.powf(1.0 / (self.count - 1) as f64);
        let below = (self.upper - self.least) * part / (1.0 - part);
        (self.least - below).max(self.least * END_MIN)
    }
}

/// NaN without samples.
pub fn least(samples: &[f64]) -> f64 {
    samples.iter().copied().fold(f64::NAN, f64::min)
}

/// Would more runs hardly find a lower value?
pub fn is_known(samples: &[f64]) -> bool {
    Lowest::of(samples).is_none_or(|lowest| lowest.least <= lowest.end(TAIL) * (1.0 + KNOWN))
}

/// The geometric mean, over pairs of sample sets, of the ratios of their leasts.
pub fn mean_ratio(pairs: &[(&[f64], &[f64])], seed: &str) -> Option<Ratio> {
    let pairs: Vec<(Lowest, Lowest)> = pairs
        .iter()
        .map(|(ours, theirs)| Some((Lowest::of(ours)?, Lowest::of(theirs)?)))
        .collect::<Option<_>>()
        .filter(|pairs: &Vec<_>| !pairs.is_empty())?;
    let ratios = pairs.iter().map(|(ours, theirs)| ours.least / theirs.least);
    let value = statistics::geometric_mean(ratios);
    let mut generator = statistics::generator_for(seed);
    let mut drawn: Vec<f64> = (0..DRAWS)
        .map(|_| {
            statistics::geometric_mean(pairs.iter().map(|(ours, theirs)| {
                ours.end(1.0 - generator.f64()) / theirs.end(1.0 - generator.f64())
            }))
        })
        .collect();
    drawn.sort_by(f64::total_cmp);
    // The least itself is one of the possible end points.
    Some(Ratio {
        value,
        low: statistics::quantile_of_sorted(&drawn, TAIL).min(value),
        high: statistics::quantile_of_sorted(&drawn, 1.0 - TAIL).max(value),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_two_lies_nineteen_gaps_below_the_least() {
        // Robson and Whitlock: (1 - a) / a gaps, at 95 %.
        let lowest = Lowest::of(&[101.0, 100.0]).unwrap();
        assert!((lowest.end(0.05) - 81.0).abs() < 1e-9);
    }

    #[test]
    fn the_least_is_what_is_compared() {
        let (ours, theirs) = ([2.0, 2.5, 9.0], [4.0, 4.1, 4.2]);
        let found = mean_ratio(&[(&ours, &theirs)], "seed").unwrap();
        assert_eq!(found.value, 0.5);
        assert!(found.low < 0.5 && found.high > 0.5);
        assert_eq!(mean_ratio(&[(&ours, &theirs)], "seed"), Some(found));
        assert_eq!(mean_ratio(&[(&[0.0], &theirs)], "seed"), None);
        assert_eq!(mean_ratio(&[], "seed"), None);
    }

    #[test]
    fn few_runs_that_lie_apart_do_not_tell() {
        assert!(!is_known(&[1.0, 1.1, 1.2]));
        assert!(is_known(&[1.0, 1.001, 1.002, 1.003, 1.3, 1.5]));
    }

    /// Runs of 1 s that others lengthen, rarely by much.
    fn runs(count: usize, factor: f64, generator: &mut fastrand::Rng) -> Vec<f64> {
        let noise = |generator: &mut fastrand::Rng| -0.05 * (1.0 - generator.f64()).ln();
        (0..count)
            .map(|_| factor * (1.0 + noise(generator)))
            .collect()
    }

    #[test]
    fn an_interval_holds_what_is_so_in_nineteen_of_twenty_cases() {
        let mut generator = statistics::generator_for("least");
        let mut held = 0;
        let mut found = 0;
        for _ in 0..200 {
            let base = runs(20, 1.0, &mut generator);
            let same = runs(20, 1.0, &mut generator);
            let slower = runs(20, 1.05, &mut generator);
            let same = mean_ratio(&[(&same, &base)], "same").unwrap();
            held += usize::from(same.low <= 1.0 && same.high >= 1.0);
            let slower = mean_ratio(&[(&slower, &base)], "slower").unwrap();
            found += usize::from(slower.low > 1.0);
        }
        assert!(held >= 188, "{held} of 200");
        assert!(found >= 190, "{found} of 200");
    }
}
