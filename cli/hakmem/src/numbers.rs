//! Fractional numbers on the command line. Rust's own parser also accepts `nan` and `inf`, which later comparisons do not
//! notice.

use std::ops::RangeInclusive;

/// How many runs may be asked for: the results of all, and their order, must fit into memory.
pub const RUNS_RANGE: RangeInclusive<i64> = 1..=1_000_000;
/// One sample in this many bytes: the range of option sample_bytes.
pub const EVERY: RangeInclusive<u64> = 1..=1 << 40;
pub const NO_PORT: &str = "a port is a number from 1 to 65535";

/// The values that fit into a `Duration`, and that can be added to a time.
const SECONDS: RangeInclusive<f64> = 0.0..=1e19;

pub fn seconds(word: &str) -> Result<f64, String> {
    within(word, &SECONDS).ok_or_else(|| "a number of seconds from 0 to 1e19".into())
}

pub fn percent(word: &str) -> Result<f64, String> {
    within(word, &(0.0..=100.0)).ok_or_else(|| "a number from 0 to 100".into())
}

pub fn rows(word: &str) -> Result<usize, String> {
    let number = word.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| "a number from 1 on".into())
}

fn within(word: &str, range: &RangeInclusive<f64>) -> Option<f64> {
    word.parse().ok().filter(|number| range.contains(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_refused() {
        for word in ["nan", "NaN", "inf", "-inf", "-1", "", "10s", "1e300", "0,5"] {
            assert!(seconds(word).is_err(), "{word}");
            assert!(percent(word).is_err(), "{word}");
        }
        assert_eq!(seconds("0.5"), Ok(0.5));
        assert_eq!(seconds("1e19"), Ok(1e19));
        assert_eq!(percent("100"), Ok(100.0));
    }
}
