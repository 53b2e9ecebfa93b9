//! What a process's resident memory consists of: every resident page, summed up by what it contains, beside the kernel's own
//! figure.

use crate::error::Result;
use crate::figures::Figures;
use crate::heap::{Content, Heap, Run, Slab, Super, Waiting};
use crate::live::LiveProcess;
use crate::profile::Sample;
use crate::resident::{AreaSums, Counted, Pages, read_areas};
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Resident bytes by kind. Their sum is `known_bytes`.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Ledger {
    /// In live blocks; each counts with the size of its class.
    pub live: u64,
    /// In magazines, and in mode secure's stocks and quarantines.
    pub cached: u64,
    /// In parcels, on their way to the blocks' owners.
    pub in_transit: u64,
    /// In BigCache.
    pub kept: u64,
    /// In blocks that are free in their slabs.
    pub slab_free: u64,
    /// In blocks that were never handed out, on pages that other blocks made resident.
    pub never_used: u64,
    /// Behind the last block of a slab, and around the usable bytes of large blocks.
    pub rests: u64,
    /// In free units that wait to be purged.
    pub waiting: u64,
    /// In free units that are not dirty, but resident as a part of a huge page.
    pub huge_excess: u64,
    /// In descriptors, and in the tables of the address map.
    pub metadata: u64,
    /// Not this heap's: the heaps of other copies of hakmem, with their metadata.
    #[serde(default)]
    pub copies: u64,
    /// Not hakmem's: code and data of files.
    pub files: u64,
    /// Not hakmem's: shared with other processes, without a file on disk.
    #[serde(default)]
    pub shared: u64,
    /// Not hakmem's: stacks.
    pub stacks: u64,
    /// Not hakmem's: other memory that the program or a library has mapped.
    pub other: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Account {
    pub resident: Ledger,
    /// The kernel's count of resident bytes.
    pub kernel_bytes: u64,
    pub known_bytes: u64,
    /// `kernel_bytes` less `known_bytes`.
    pub remainder_bytes: i64,
    /// The part of the resident bytes that was freed with MADV_FREE and not yet taken by the kernel.
    pub lazily_freed_bytes: u64,
    /// In huge pages.
    pub huge_bytes: u64,
    pub swapped_bytes: u64,
    /// The number of live blocks.
    #[serde(default)]
    pub live_blocks: u64,
    /// How many blocks moved while the heap was read.
    pub moved_blocks: u64,
}

/// Internal fragmentation: by how much live blocks are larger than requested. The heap does not store requested sizes; samples
/// do.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Slack {
    /// An estimate.
    pub bytes: f64,
    /// Two standard deviations of the estimate.
    pub bytes_off: f64,
    /// The number of live samples that it is made from.
    pub samples: usize,
}

impl Slack {
    /// `live` are the bytes of live blocks; `None` without samples.
    pub fn of(samples: &[Sample], live: u64) -> Option<Slack> {
        let share = |sample: &Sample| {
            sample.block_bytes.saturating_sub(sample.bytes) as f64 / sample.block_bytes as f64
        };
        // How many bytes of blocks a sample stands for.
        let weight = |sample: &Sample| sample.blocks * sample.block_bytes as f64;
        let all: f64 = samples.iter().map(weight).sum();
        let mean = samples.iter().map(|s| weight(s) * share(s)).sum::<f64>() / all;
        let squares: f64 = samples
            .iter()
            .filter(|sample| sample.blocks > 1.0) // blocks that are always sampled add no error
            .map(|sample| (weight(sample) * (share(sample) - mean)).powi(2))
            .sum();
        (!samples.is_empty()).then(|| Slack {
            bytes: live as f64 * mean,
            bytes_off: live as f64 * 2.0 * squares.abs().sqrt() / all, // an empty sum is -0.0
            samples: samples.len(),
        })
    }
}

impl Ledger {
    pub fn sum(&self) -> u64 {
        self.ours() + self.copies + self.files + self.shared + self.stacks + self.other
    }

    /// What the program has freed and the heap keeps.
    pub fn free(&self) -> u64 {
        self.cached + self.in_transit + self.kept + self.slab_free + self.waiting + self.huge_excess
    }

    pub fn ours(&self) -> u64 {
        self.live
            + self.cached
            + self.in_transit
            + self.kept
            + self.slab_free
            + self.never_used
            + self.rests
            + self.waiting
            + self.huge_excess
            + self.metadata
    }
}

impl Account {
    pub fn of(process: &LiveProcess, heap: &Heap) -> Result<Account> {
        let pages = Pages::open(process)?;
        let mut ledger = Ledger::default();
        for superslab in &heap.supers {
            let resident = pages.resident(superslab.base, superslab.bytes);
            let stretch = Stretch {
                start: superslab.base,
                page_bytes: pages.page_bytes,
                resident: &resident,
            };
            add_super(&mut ledger, heap, superslab, &stretch);
        }
        for (start, bytes) in &heap.metadata {
            let start = start - start % pages.page_bytes;
            ledger.metadata += pages.resident_bytes(start, *bytes);
        }
        if heap.guard.bytes > 0 {
            let (start, bytes) = (heap.guard.base, heap.guard.bytes);
            let count = pages.resident_bytes(start, bytes);
            let live: u64 = heap.guard.blocks.iter().map(|block| block.1).sum();
            ledger.live += live.min(count);
            ledger.rests += count - live.min(count);
        }
        let ours = heap.ranges(pages.page_bytes);
        let copies = Heap::ranges_of_other_copies(process, pages.page_bytes);
        let areas = read_areas(process.task())?;
        add_others(&mut ledger, &areas, [&ours, &copies], &pages);
        let sums = AreaSums::of(&areas);
        let kernel_bytes = sums.resident_bytes;
        let known_bytes = ledger.sum();
        Ok(Account {
            resident: ledger,
            kernel_bytes,
            known_bytes,
            remainder_bytes: signed(kernel_bytes) - signed(known_bytes),
            lazily_freed_bytes: sums.lazily_freed_bytes,
            huge_bytes: sums.huge_bytes,
            swapped_bytes: sums.swapped_bytes,
            live_blocks: Figures::of(heap).totals.live_blocks,
            moved_blocks: heap.moved_blocks,
        })
    }
}

pub fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A range of addresses, and which of its pages are resident.
struct Stretch<'a> {
    start: u64,
    page_bytes: u64,
    resident: &'a [bool],
}

impl Stretch<'_> {
    /// How many of the `bytes` from `start` on are resident.
    fn count(&self, start: u64, bytes: u64) -> u64 {
        let end = start + bytes;
        let mut at = start;
        let mut sum = 0;
        while at < end {
            let page = (at - self.start) / self.page_bytes;
            let next = (self.start + (page + 1) * self.page_bytes).min(end);
            let page = usize::try_from(page).unwrap_or(usize::MAX);
            if self.resident.get(page).copied().unwrap_or(false) {
                sum += next - at;
            }
            at = next;
        }
        sum
    }
}

fn add_super(ledger: &mut Ledger, heap: &Heap, superslab: &Super, stretch: &Stretch) {
    let end = superslab.base + superslab.bytes;
    for run in &superslab.runs {
        // The part in the next superslab is counted there.
        let inside = run.bytes.min(end - run.base);
        add_run(ledger, heap, run, run.base, inside, stretch);
    }
    if superslab.is_mapping {
        return;
    }
    for unit in 0..superslab.bytes / heap.unit_bytes {
        let start = superslab.base + unit * heap.unit_bytes;
        if superslab.free_units >> unit & 1 != 0 {
            let count = stretch.count(start, heap.unit_bytes);
            if superslab.dirty_units >> unit & 1 != 0 {
                ledger.waiting += count;
            } else {
                ledger.huge_excess += count;
            }
        } else if superslab.purging_units >> unit & 1 != 0 {
            ledger.waiting += stretch.count(start, heap.unit_bytes);
        } else if !superslab
            .runs
            .iter()
            .any(|run| start.wrapping_sub(run.base) < run.bytes)
        {
            // The unit belongs to a run that began in an earlier superslab.
            match heap.find(start).and_then(|place| place.run) {
                Some(run) => add_run(ledger, heap, run, start, heap.unit_bytes, stretch),
                None if heap.is_metadata(start) => {} // counted as metadata
                None => ledger.rests += stretch.count(start, heap.unit_bytes),
            }
        }
    }
}

/// Adds `bytes` of a run, from `start` on.
fn add_run(ledger: &mut Ledger, heap: &Heap, run: &Run, start: u64, bytes: u64, stretch: &Stretch) {
    match &run.content {
        Content::Large {
            block,
            block_bytes,
            is_kept,
        } => {
            let end = start + bytes;
            let from = (*block).clamp(start, end);
            let used = (block + block_bytes).clamp(from, end) - from;
            let count = stretch.count(from, used);
            if *is_kept {
                ledger.kept += count;
            } else {
                ledger.live += count;
            }
            ledger.rests += stretch.count(start, bytes) - count;
        }
        Content::Small(slab) => add_slab(ledger, heap, run, slab, stretch),
    }
}

fn add_slab(ledger: &mut Ledger, heap: &Heap, run: &Run, slab: &Slab, stretch: &Stretch) {
    let class = heap.classes[slab.class];
    let waiting = heap.waiting_in(run.base, run.bytes);
    let mut next = 0;
    let mut known = 0;
    for index in 0..class.blocks {
        let start = run.base + index * class.bytes;
        if start + class.bytes > run.base + run.bytes {
            break;
        }
        while next < waiting.len() && waiting[next].0 < start {
            next += 1;
        }
        let place = waiting.get(next).filter(|(block, _)| *block == start);
        let target = if index >= slab.fresh {
            &mut ledger.never_used
        } else if slab.is_in(index) {
            &mut ledger.slab_free
        } else {
            match place {
                None => &mut ledger.live,
                Some((_, Waiting::Magazine(_) | Waiting::Stock)) => &mut ledger.cached,
                Some((_, Waiting::Outbox(_) | Waiting::Inbox(_))) => &mut ledger.in_transit,
            }
        };
        let count = stretch.count(start, class.bytes);
        *target += count;
        known += count;
    }
    ledger.rests += stretch.count(run.base, run.bytes) - known;
}

/// The resident part of `known` addresses in an area.
fn within(known: &[Range<u64>], area: &Counted, pages: &Pages) -> u64 {
    let first = known.partition_point(|range| range.end <= area.range.start);
    known[first..]
        .iter()
        .take_while(|range| range.start < area.range.end)
        .map(|range| area.range.start.max(range.start)..area.range.end.min(range.end))
        .filter(|part| !part.is_empty())
        .map(|part| pages.resident_bytes(part.start, part.end - part.start))
        .sum()
}

/// Adds what is resident outside of this heap: other copies' heaps, and the rest.
fn add_others(
    ledger: &mut Ledger,
    areas: &[Counted],
    [ours, copies]: [&[Range<u64>]; 2],
    pages: &Pages,
) {
    let mut all = [ours, copies].concat();
    all.sort_unstable_by_key(|range| range.start);
    for (index, area) in areas.iter().enumerate() {
        let in_ours = within(ours, area, pages);
        let rest = area.resident_bytes.saturating_sub(in_ours);
        let in_copies = within(copies, area, pages).min(rest);
        let rest = rest - in_copies;
        ledger.copies += in_copies;
        let before = index.checked_sub(1).map(|before| &areas[before]);
        let is_stack = area.name.starts_with(b"[stack")
            || area.is_guarded_stack(before, &all, pages.page_bytes);
        if area.is_shared_memory() {
            ledger.shared += rest;
        } else if area.name.starts_with(b"/") || area.name.starts_with(b"[v") {
            ledger.files += rest;
        } else if is_stack && in_ours + in_copies == 0 {
            ledger.stacks += rest;
        } else {
            ledger.other += rest;
        }
    }
}
