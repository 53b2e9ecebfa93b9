//! Counts latencies in buckets of 6 % width. Its size is fixed, for use where nothing may allocate.

/// Buckets per power of two.
const STEPS_LOG2: u32 = 4;
const STEPS: usize = 1 << STEPS_LOG2;
/// Buckets up to 2^36 ticks, some ten seconds; longer latencies count in the last one.
pub const BUCKETS: usize = (36 - STEPS_LOG2 as usize + 1) * STEPS;

#[inline]
pub fn bucket_of(ticks: u64) -> usize {
    if ticks < STEPS as u64 {
        return ticks as usize;
    }
    let log2 = 63 - ticks.leading_zeros();
    let step = (ticks >> (log2 - STEPS_LOG2)) as usize & (STEPS - 1);
    (((log2 - STEPS_LOG2 + 1) as usize) * STEPS + step).min(BUCKETS - 1)
}

/// The middle of a bucket.
pub fn value_of(bucket: usize) -> f64 {
    if bucket < STEPS {
        return bucket as f64;
    }
    let shift = (bucket / STEPS - 1) as i32;
    let low = (STEPS + bucket % STEPS) as f64;
    (low + 0.5) * 2f64.powi(shift)
}

/// The latency that this part of all calls (0.999, say) does not exceed; None without calls.
pub fn quantile(counts: &[u64], part: f64) -> Option<f64> {
    let all: u64 = counts.iter().sum();
    let wanted = ((all as f64 * part).ceil() as u64).clamp(1, all.max(1));
    let mut seen = 0;
    counts.iter().enumerate().find_map(|(bucket, count)| {
        seen += count;
        (seen >= wanted).then(|| value_of(bucket))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut last = 0;
        for ticks in (0..5000u64).chain((13..36).map(|log2| 1 << log2)) {
            let bucket = bucket_of(ticks);
            assert!(bucket >= last, "{ticks}");
            last = bucket;
            let value = value_of(bucket);
            assert!(
                (value - ticks as f64).abs() <= 1.0 + ticks as f64 * 0.04,
                "{ticks}: {value}"
            );
        }
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_those_of_the_values() {
        let mut counts = vec![0; BUCKETS];
        for ticks in 0..10 {
            counts[bucket_of(ticks)] += 1;
        }
        assert_eq!(quantile(&counts, 0.5), Some(4.0));
        assert_eq!(quantile(&counts, 1.0), Some(9.0));
        assert_eq!(quantile(&[0; 4], 0.5), None);
    }
}
