//! What goes on around the calls of a replay: nothing, a clock, or a look at what is resident.

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

    /// The block of the operation with this number has been written to.
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

/// A limit whose first excess is looked for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Wanted {
    pub bytes: u64,
    /// From this window on, after every call.
    pub from: u32,
}

/// The first call after which more was resident.
pub struct Excess {
    resident: Resident,
    most: u64,
    /// The worker and the operation's number in its share, from 1; 0: none yet.
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
    /// The group's number in `SIZE_LIMITS`; the last is of those above.
    pub size_group: usize,
    /// By bucket, without empty ones: number and count.
    pub counts: Vec<(usize, u64)>,
}

impl Replayed {
    /// The workers' histograms, as one.
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

/// What two readings of the clock are apart when nothing is between them.
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
