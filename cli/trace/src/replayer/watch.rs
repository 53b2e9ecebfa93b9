//! What is measured around each call of a replay: nothing, the time, or the resident memory.

use super::{Replayed, SIZE_GROUPS, SIZE_LIMITS};
use crate::channel::clock;
use crate::histogram::{BUCKETS, bucket_of};
use crate::pages::Resident;
use crate::plan::Call;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};

pub const WORKER_BUCKETS: usize = Call::ALL.len() * SIZE_GROUPS * BUCKETS;

pub trait Watch {
    #[inline(always)]
    fn around<R>(&mut self, _: Call, _: usize, make: impl FnOnce() -> R) -> R {
        make()
    }

    /// Called after the block of this operation was written to.
    #[inline(always)]
    fn after(&mut self, _: usize) {}
}

pub struct Untimed;

impl Watch for Untimed {}

pub struct Timed<'a> {
    pub counts: &'a mut [u64],
}

impl Watch for Timed<'_> {
    #[inline(always)]
    fn around<R>(&mut self, call: Call, size: usize, make: impl FnOnce() -> R) -> R {
        let before = clock::ticks();
        let result = make();
        let ticks = clock::ticks().wrapping_sub(before);
        let group = SIZE_LIMITS.partition_point(|&limit| limit < size as u64);
        self.counts[(call as usize * SIZE_GROUPS + group) * BUCKETS + bucket_of(ticks)] += 1;
        result
    }
}

/// A limit; the first call that exceeds it is searched for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Wanted {
    pub bytes: u64,
    /// Checks after every call from this window on.
    pub from: u32,
}

/// The first call after which more than `most` was resident.
pub struct Excess {
    resident: Resident,
    most: u64,
    /// The worker, and the operation's number in its share, counted from 1; 0: not found yet.
    first: AtomicU64,
}

impl Excess {
    pub fn new(resident: Resident, most: u64) -> Excess {
        Excess {
            resident,
            most,
            first: AtomicU64::new(0),
        }
    }

    pub fn found(&self) -> Option<(u32, u32)> {
        let first = self.first.load(Ordering::Acquire); // pairs with: Searching::after
        let (worker, number) = ((first >> 32) as u32, first as u32);
        number.checked_sub(1).map(|operation| (worker, operation))
    }
}

pub struct Searching<'a> {
    pub excess: &'a Excess,
    pub worker: usize,
}

impl Watch for Searching<'_> {
    fn after(&mut self, operation: usize) {
        let excess = self.excess;
        if excess.first.load(Ordering::Relaxed) == 0 && excess.resident.bytes() > excess.most {
            let found = (self.worker as u64) << 32 | (operation as u64 + 1);
            let first = &excess.first;
            let _ = first.compare_exchange(0, found, Ordering::Release, Ordering::Relaxed); // pairs with: Excess::found
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Latency {
    pub call: String,
    /// An index into `SIZE_LIMITS`; the last group is above all limits.
    pub size_group: usize,
    /// Pairs of bucket and count, without empty buckets.
    pub counts: Vec<(usize, u64)>,
}

impl Replayed {
    /// Adds up the workers' histograms.
    pub fn gather(&mut self, all: &[u64], workers: usize) {
        for call in Call::ALL {
            for size_group in 0..SIZE_GROUPS {
                let row = (call as usize * SIZE_GROUPS + size_group) * BUCKETS;
                let count = |bucket: usize| -> u64 {
                    (0..workers)
                        .map(|worker| all[worker * WORKER_BUCKETS + row + bucket])
                        .sum()
                };
                let counts: Vec<(usize, u64)> = (0..BUCKETS)
                    .map(|bucket| (bucket, count(bucket)))
                    .filter(|&(_, count)| count > 0)
                    .collect();
                if !counts.is_empty() {
                    self.latencies.push(Latency {
                        call: call.name().into(),
                        size_group,
                        counts,
                    });
                }
            }
        }
    }
}

/// The time between two consecutive readings of the clock.
pub fn clock_cost() -> u64 {
    let mut costs: Vec<u64> = (0..1001)
        .map(|_| {
            let before = clock::ticks();
            clock::ticks().wrapping_sub(before)
        })
        .collect();
    costs.sort_unstable();
    costs[costs.len() / 2]
}
