//! Analyses a process's events, in one pass over them, in order.

use crate::order::{Ordered, Step, What};
use crate::peak::{Ages, Held, Peak};
use crate::reader::Reader;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::usage;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// How many points the curve of live bytes has.
const MOMENTS: usize = 400;
const TOP_SIZES: usize = 20;
/// Classes of lifetimes, one per decade from 100 ns to 1,000 s.
pub const LIFETIMES: usize = 12;
const SHORTEST: f64 = 1e-7;
const SIZE_CLASSES: usize = 49;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Calls {
    pub malloc: u64,
    pub calloc: u64,
    pub aligned: u64,
    pub realloc: u64,
    pub free: u64,
    pub failed: u64,
    /// Frees of blocks that were allocated before the recording, or by a parent process.
    pub foreign_free: u64,
    /// Frees that are missing in the trace: the address was handed out again.
    pub implied_free: u64,
}

impl Calls {
    pub fn all(&self) -> u64 {
        self.malloc
            + self.calloc
            + self.aligned
            + self.realloc
            + self.free
            + self.failed
            + self.foreign_free
    }
}

/// Requests of `from` to `to` bytes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SizeClass {
    pub from: u64,
    pub to: u64,
    pub count: u64,
    pub bytes: u64,
    #[serde(flatten)]
    pub held: Held,
}

/// Blocks that lived for less than `seconds_below`, but not less than the limit of the class before.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Lifetime {
    /// None: the blocks were never freed.
    pub seconds_below: Option<f64>,
    pub count: u64,
    pub bytes: u64,
    pub freed_by_another_thread: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Moment {
    pub seconds: f64,
    pub live_bytes: u64,
    pub live_blocks: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Site {
    pub stack: u32,
    pub count: u64,
    pub bytes: u64,
    #[serde(flatten)]
    pub held: Held,
    pub temporary_blocks: u64,
    pub temporary_bytes: u64,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Analysis {
    pub process: u32,
    pub program: String,
    pub threads: usize,
    pub seconds: f64,
    pub calls: Calls,
    pub allocated_bytes: u64,
    pub live_bytes_peak: u64,
    pub live_bytes_peak_at: f64,
    pub live_blocks_peak: u64,
    pub peak: Peak,
    pub temporary_blocks: u64,
    pub live_bytes_end: u64,
    pub live_blocks_end: u64,
    pub sizes: Vec<SizeClass>,
    /// The most frequent sizes of requests, and how often each was requested.
    pub top_sizes: Vec<(u64, u64)>,
    pub lifetimes: Vec<Lifetime>,
    pub curve: Vec<Moment>,
    #[serde(skip)]
    pub sites: Vec<Site>,
    /// All sizes with their counts; `top_sizes` has the most frequent ones.
    #[serde(skip)]
    all_sizes: FxHashMap<u64, u64>,
}

impl Calls {
    fn add(&mut self, other: &Calls) {
        let Calls {
            malloc,
            calloc,
            aligned,
            realloc,
            free,
            failed,
            foreign_free,
            implied_free,
        } = other;
        self.malloc += malloc;
        self.calloc += calloc;
        self.aligned += aligned;
        self.realloc += realloc;
        self.free += free;
        self.failed += failed;
        self.foreign_free += foreign_free;
        self.implied_free += implied_free;
    }
}

impl Analysis {
    /// Adds another process's figures. Peaks are added too, so their sum is an upper bound. Call sites, the curve and the
    /// moment of the peak belong to one process, so the sum has none.
    pub fn add(&mut self, other: Analysis) {
        self.threads += other.threads;
        self.seconds = self.seconds.max(other.seconds);
        self.calls.add(&other.calls);
        self.allocated_bytes += other.allocated_bytes;
        self.live_bytes_peak += other.live_bytes_peak;
        self.live_blocks_peak += other.live_blocks_peak;
        self.temporary_blocks += other.temporary_blocks;
        self.live_bytes_end += other.live_bytes_end;
        self.live_blocks_end += other.live_blocks_end;
        for class in other.sizes {
            match self.sizes.iter_mut().find(|mine| mine.from == class.from) {
                Some(mine) => {
                    mine.count += class.count;
                    mine.bytes += class.bytes;
                    mine.held.add(&class.held);
                }
                None => self.sizes.push(class),
            }
        }
        self.sizes.sort_by_key(|class| class.from);
        for (mine, more) in self.lifetimes.iter_mut().zip(other.lifetimes) {
            mine.count += more.count;
            mine.bytes += more.bytes;
            mine.freed_by_another_thread += more.freed_by_another_thread;
        }
        for (size, count) in other.all_sizes {
            *self.all_sizes.entry(size).or_default() += count;
        }
        self.note_top_sizes();
        self.sites.clear();
        self.curve.clear();
        self.peak = Peak::default();
    }

    fn note_top_sizes(&mut self) {
        self.top_sizes = self
            .all_sizes
            .iter()
            .map(|(&size, &count)| (size, count))
            .collect();
        self.top_sizes
            .sort_by_key(|&(size, count)| (std::cmp::Reverse(count), size));
        self.top_sizes.truncate(TOP_SIZES);
    }
}

/// The processes that have events, and how many events each has.
pub fn processes_with_events(reader: &Reader) -> Vec<(u32, u64)> {
    let mut events: FxHashMap<u32, u64> = FxHashMap::default();
    for chunk in &reader.chunks {
        *events.entry(chunk.head.process).or_default() += u64::from(chunk.head.count);
    }
    let mut processes: Vec<(u32, u64)> = events.into_iter().collect();
    processes.sort_unstable();
    processes
}

/// The process to look at: the one that was asked for, or else the one with the most events.
pub fn choose_process(reader: &Reader, wanted: Option<u32>) -> Result<u32> {
    let events = processes_with_events(reader);
    let path = reader.path().shown();
    match wanted {
        Some(number) if events.iter().any(|(known, _)| *known == number) => Ok(number),
        Some(number) => Err(usage!(
            "{path} has no events of process {number}: hakmem trace info lists its processes"
        )),
        None => events
            .into_iter()
            .max_by_key(|&(number, count)| (count, std::cmp::Reverse(number)))
            .map(|(number, _)| number)
            .ok_or_else(|| usage!("{path} has no events")),
    }
}

/// The classes are 0, 1 to 8, 9 to 16, 17 to 32 and so on; each limit is twice the one before.
fn size_class(size: u64) -> usize {
    match size {
        0 => 0,
        1..=8 => 1,
        _ => ((64 - (size - 1).leading_zeros()) as usize - 2).min(SIZE_CLASSES - 1),
    }
}

fn size_classes() -> Vec<SizeClass> {
    let limits = |class: usize| match class {
        0 => (0, 0),
        1 => (1, 8),
        _ => ((1 << (class + 1)) + 1, 1 << (class + 2)),
    };
    (0..SIZE_CLASSES)
        .map(|class| {
            let (from, to) = limits(class);
            SizeClass {
                from,
                to,
                ..SizeClass::default()
            }
        })
        .collect()
}

fn lifetime_class(seconds: f64) -> usize {
    let decades = (seconds / SHORTEST).max(1e-9).log10().floor() + 1.0;
    decades.clamp(0.0, LIFETIMES as f64 - 2.0) as usize
}

fn lifetimes() -> Vec<Lifetime> {
    (0..LIFETIMES)
        .map(|class| Lifetime {
            seconds_below: (class < LIFETIMES - 1).then(|| SHORTEST * 10f64.powi(class as i32)),
            ..Lifetime::default()
        })
        .collect()
}

struct Pass<'a> {
    reader: &'a Reader,
    result: Analysis,
    exact: FxHashMap<u64, u64>,
    sites: FxHashMap<u32, Site>,
    ages: Ages,
    first: u64,
    last: u64,
}

/// How many other blocks a thread may request during the life of a temporary block, by default.
pub const TEMPORARY_WITHIN: u64 = 1;

/// Reads all events of a process.
pub fn analyse(reader: &Reader, process: u32) -> Result<Analysis> {
    analyse_within(reader, process, TEMPORARY_WITHIN)
}

/// The same, with another limit for temporary blocks.
pub fn analyse_within(reader: &Reader, process: u32, within: u64) -> Result<Analysis> {
    let mut ordered = Ordered::new(reader, process)?;
    let of_process = || {
        reader
            .chunks
            .iter()
            .filter(|chunk| chunk.head.process == process)
    };
    let first = of_process()
        .map(|chunk| chunk.head.first)
        .min()
        .unwrap_or(0);
    let last = of_process().map(|chunk| chunk.head.last).max().unwrap_or(0);
    let known = reader
        .processes
        .iter()
        .find(|known| known.process == process);
    let mut pass = Pass {
        reader,
        result: Analysis {
            process,
            program: known.map(|known| known.program.clone()).unwrap_or_default(),
            threads: ordered.threads.len(),
            seconds: (last - first) as f64 / reader.units_per_second(),
            sizes: size_classes(),
            lifetimes: lifetimes(),
            ..Analysis::default()
        },
        exact: FxHashMap::default(),
        sites: FxHashMap::default(),
        ages: Ages::new(ordered.threads.len(), within),
        first,
        last,
    };
    while let Some(step) = ordered.step()? {
        pass.note(&step, ordered.threads[step.thread]);
        pass.note_curve(&step, &ordered);
    }
    Ok(pass.finish(&ordered))
}

impl Pass<'_> {
    fn seconds(&self, units: u64) -> f64 {
        units as f64 / self.reader.units_per_second()
    }

    /// Adds the time up to this step to the curve; `ordered` already contains the step.
    fn note_curve(&mut self, step: &Step, ordered: &Ordered) {
        let passed = step.time.saturating_sub(self.first);
        let moment = (u128::from(passed) * MOMENTS as u128 / u128::from(self.last - self.first + 1))
            .min(MOMENTS as u128 - 1) as usize;
        let now = Moment {
            seconds: self.seconds(passed),
            live_bytes: ordered.live_bytes,
            live_blocks: ordered.live_blocks,
        };
        if now.live_bytes > self.result.live_bytes_peak {
            self.result.live_bytes_peak = now.live_bytes;
            self.result.live_bytes_peak_at = now.seconds;
            self.result.peak.rise(step, ordered, now.seconds);
        }
        self.result.live_blocks_peak = self.result.live_blocks_peak.max(now.live_blocks);
        let width = self.seconds(self.last - self.first) / MOMENTS as f64;
        let curve = &mut self.result.curve;
        // A point is the highest value in its interval, so that no peak is lost between two points.
        if curve.len() <= moment {
            let before = curve.last().cloned().unwrap_or_default();
            for missed in curve.len()..moment {
                let seconds = width * missed as f64;
                curve.push(Moment {
                    seconds,
                    ..before.clone()
                });
            }
            curve.push(now);
        } else if curve[moment].live_bytes < now.live_bytes {
            curve[moment] = now;
        }
    }

    fn note(&mut self, step: &Step, thread: u32) {
        let calls = &mut self.result.calls;
        match step.what {
            What::Malloc => calls.malloc += 1,
            What::Calloc => calls.calloc += 1,
            What::Aligned { .. } => calls.aligned += 1,
            What::Realloc => calls.realloc += 1,
            What::Free => calls.free += 1,
            What::Failed => calls.failed += 1,
            What::ForeignFree => calls.foreign_free += 1,
        }
        self.result.peak.count(step);
        match step.what {
            What::Malloc | What::Calloc | What::Aligned { .. } => self.begin(step),
            What::Realloc => {
                self.end(step, thread);
                self.begin(step);
            }
            What::Free => self.end(step, thread),
            What::Failed | What::ForeignFree => {}
        }
    }

    fn begin(&mut self, step: &Step) {
        self.ages.begin(step);
        let Pass { result, sites, .. } = self;
        result.allocated_bytes += step.size;
        let class = &mut result.sizes[size_class(step.size)];
        class.count += 1;
        class.bytes += step.size;
        class.held.give(&result.peak, step.size);
        *self.exact.entry(step.size).or_default() += 1;
        if step.stack != 0 {
            let site = sites.entry(step.stack).or_default();
            site.stack = step.stack;
            site.count += 1;
            site.bytes += step.size;
            site.held.give(&result.peak, step.size);
        }
    }

    /// Ends the life of the block that the step frees.
    fn end(&mut self, step: &Step, thread: u32) {
        let block = &step.before;
        let class = lifetime_class(self.seconds(step.time.saturating_sub(block.time)));
        let lifetime = &mut self.result.lifetimes[class];
        lifetime.count += 1;
        lifetime.bytes += block.size;
        lifetime.freed_by_another_thread += u64::from(thread != block.thread);
        let is_temporary = thread == block.thread && self.ages.is_temporary(step);
        let Pass { result, sites, .. } = self;
        result.temporary_blocks += u64::from(is_temporary);
        let class = &mut result.sizes[size_class(block.size)];
        class.held.take(&result.peak, block.size);
        if let Some(site) = sites.get_mut(&block.stack) {
            site.held.take(&result.peak, block.size);
            if is_temporary {
                site.temporary_blocks += 1;
                site.temporary_bytes += block.size;
            }
        }
    }

    fn finish(mut self, ordered: &Ordered) -> Analysis {
        let mut result = self.result;
        for block in ordered.survivors() {
            let never = &mut result.lifetimes[LIFETIMES - 1];
            never.count += 1;
            never.bytes += block.size;
        }
        for class in &mut result.sizes {
            class.held.keep(&result.peak);
        }
        for site in self.sites.values_mut() {
            site.held.keep(&result.peak);
        }
        result.calls.implied_free = ordered.implied;
        result.live_bytes_end = ordered.live_bytes;
        result.live_blocks_end = ordered.live_blocks;
        result.sizes.retain(|class| class.count > 0);
        result.all_sizes = self.exact;
        result.note_top_sizes();
        result.sites = self.sites.into_values().collect();
        result
            .sites
            .sort_by_key(|site| (std::cmp::Reverse(site.bytes), site.stack));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_is_in_the_class_that_names_it() {
        let classes = size_classes();
        for size in
            (0..5000).chain((13..47).flat_map(|log2| [(1 << log2) - 1, 1 << log2, (1 << log2) + 1]))
        {
            let class = &classes[size_class(size)];
            assert!(
                (class.from..=class.to).contains(&size),
                "{size} is not in {class:?}"
            );
        }
    }

    #[test]
    fn every_lifetime_is_in_the_class_that_names_it() {
        let classes = lifetimes();
        for seconds in [0.0, 5e-8, 1.5e-7, 9e-7, 2e-6, 0.5, 70.0, 500.0] {
            let class = lifetime_class(seconds);
            assert!(seconds < classes[class].seconds_below.unwrap(), "{seconds}");
            assert!(
                class == 0 || seconds >= classes[class - 1].seconds_below.unwrap(),
                "{seconds}"
            );
        }
        assert_eq!(lifetime_class(1e9), LIFETIMES - 2); // longer than any trace
    }
}
