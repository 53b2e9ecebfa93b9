//! Counts chunks by size.

use serde::{Deserialize, Serialize};

/// Up to this size, each size has its own count.
const EXACT: u64 = 1024;
const STEP: u64 = 16;
const EXACT_COUNT: usize = (EXACT / STEP) as usize + 1;
/// Above it, each power of two has this many counts.
const PARTS: u64 = 4;
/// The number of counts, up to a size of 2^64.
pub const COUNT: usize = EXACT_COUNT + 54 * PARTS as usize;

#[derive(Clone, Debug)]
pub struct Sizes {
    pub blocks: u64,
    pub bytes: u64,
    counts: Vec<(u64, u64)>,
}

/// Blocks of one size, or of similar sizes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct OfSize {
    /// The largest size that is counted here, with the header.
    pub up_to_bytes: u64,
    pub blocks: u64,
    pub bytes: u64,
}

impl OfSize {
    /// The smallest size that is counted here; sizes are multiples of the alignment.
    pub fn from_bytes(&self) -> u64 {
        let before = index_of(self.up_to_bytes).checked_sub(1);
        before.map_or(0, up_to) + STEP
    }
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes {
            blocks: 0,
            bytes: 0,
            counts: vec![(0, 0); COUNT],
        }
    }
}

pub fn index_of(bytes: u64) -> usize {
    if bytes <= EXACT {
        return usize::try_from(bytes.div_ceil(STEP)).unwrap_or(0);
    }
    let power = u64::from((bytes - 1).ilog2());
    let part = ((bytes - 1) >> (power - 2)) & (PARTS - 1);
    EXACT_COUNT + usize::try_from((power - 10) * PARTS + part).unwrap_or(0)
}

fn up_to(index: usize) -> u64 {
    if index < EXACT_COUNT {
        return index as u64 * STEP;
    }
    let above = (index - EXACT_COUNT) as u64;
    let power = above / PARTS + 10;
    (1_u64 << power).saturating_add((above % PARTS + 1) << (power - 2))
}

impl Sizes {
    pub fn add(&mut self, bytes: u64) {
        self.add_many(bytes, 1);
    }

    pub fn add_many(&mut self, bytes: u64, blocks: u64) {
        let all = bytes.saturating_mul(blocks);
        self.blocks += blocks;
        self.bytes = self.bytes.saturating_add(all);
        let count = &mut self.counts[index_of(bytes)];
        count.0 += blocks;
        count.1 = count.1.saturating_add(all);
    }

    pub fn take(&mut self, bytes: u64) {
        self.blocks = self.blocks.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        let count = &mut self.counts[index_of(bytes)];
        count.0 = count.0.saturating_sub(1);
        count.1 = count.1.saturating_sub(bytes);
    }

    pub fn merge(&mut self, other: &Sizes) {
        self.blocks += other.blocks;
        self.bytes += other.bytes;
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            count.0 += more.0;
            count.1 += more.1;
        }
    }

    /// The counts that are not zero, by size.
    pub fn table(&self) -> Vec<OfSize> {
        self.all().filter(|of_size| of_size.blocks > 0).collect()
    }

    /// All counts, in the order of `index_of`.
    pub fn all(&self) -> impl Iterator<Item = OfSize> {
        let counts = self.counts.iter().enumerate();
        counts.map(|(index, count)| OfSize {
            up_to_bytes: up_to(index),
            blocks: count.0,
            bytes: count.1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_is_counted_where_it_belongs() {
        for bytes in (16..100_000).step_by(16).chain([1 << 40, (1 << 40) + 16]) {
            let index = index_of(bytes);
            assert!(bytes <= up_to(index) && bytes > up_to(index - 1), "{bytes}");
            let mut sizes = Sizes::default();
            sizes.add(bytes);
            let [one] = sizes.table()[..] else {
                panic!("{bytes}");
            };
            assert!((one.from_bytes()..=one.up_to_bytes).contains(&bytes));
            assert_eq!(one.from_bytes() == one.up_to_bytes, bytes <= EXACT);
        }
        assert_eq!(
            (index_of(u64::MAX), up_to(COUNT - 1)),
            (COUNT - 1, u64::MAX)
        );
    }
}
