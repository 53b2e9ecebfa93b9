//! A heap as it was at one moment.

use crate::failures::Failures;
use crate::options::Setting;
use crate::timings::Timing;
use serde::Serialize;
use std::ops::Range;

#[derive(Clone, Copy, Debug, Serialize)]
pub struct Class {
    pub bytes: u64,
    pub blocks: u64,
    pub units: u64,
}

/// A superslab, or the mapping of one large block.
#[derive(Clone, Debug)]
pub struct Super {
    pub base: u64,
    pub bytes: u64,
    pub is_mapping: bool,
    /// A bit for each unit of the pages that asked to be huge.
    pub huge_units: u64,
    /// When it was mapped, by `Arena::clock`.
    pub mapped_at: u64,
    /// A bit for each unit that no run has, for those of them that may be resident, and for those
    /// that are being given back.
    pub free_units: u64,
    pub dirty_units: u64,
    pub purging_units: u64,
    /// By address. The last may go on beyond this superslab.
    pub runs: Vec<Run>,
}

impl Super {
    /// How many of its two pages asked to be huge.
    pub fn huge_pages(&self) -> u32 {
        self.huge_units.count_ones() / 32
    }
}

#[derive(Clone, Debug)]
pub struct Run {
    pub base: u64,
    /// Of the units that it has, or of its mapping.
    pub bytes: u64,
    /// When it was made, by `Arena::clock`. A large one may be younger.
    pub made_at: u64,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub enum Content {
    Small(Slab),
    Large {
        /// Where it begins: of one between guards not where its mapping does.
        block: u64,
        /// What the program may use of it.
        block_bytes: u64,
        /// Freed, and kept for the next request of its size.
        is_kept: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Slab {
    pub class: usize,
    /// The cache that it belongs to, by its place in `Heap::caches`.
    pub owner: Option<usize>,
    /// From this block on they were never handed out.
    pub fresh: u64,
    /// As the slab's own counter says; the bitmap may be a moment older.
    pub free_blocks: u64,
    /// A bit for each block that lies in the slab.
    pub bitmap: Vec<u64>,
    /// Of a hardened one, a bit for each block that is free, in it or elsewhere; else empty.
    pub free: Vec<u64>,
}

impl Slab {
    pub fn is_in(&self, index: u64) -> bool {
        has_bit(&self.bitmap, index)
    }

    /// Is it free, though out of the slab: in the stock or the quarantine of a thread?
    pub fn is_stocked(&self, index: u64) -> bool {
        has_bit(&self.free, index) && !self.is_in(index) && index < self.fresh
    }

    /// Blocks that lie in it, as the bitmap says.
    pub fn blocks_in(&self) -> u64 {
        self.bitmap
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// Blocks that are out of it: with the program, or waiting somewhere.
    pub fn blocks_out(&self) -> u64 {
        self.fresh.saturating_sub(self.blocks_in())
    }
}

fn has_bit(words: &[u64], index: u64) -> bool {
    let word = usize::try_from(index / 64).ok();
    let word = word.and_then(|word| words.get(word));
    word.is_some_and(|word| word >> (index % 64) & 1 != 0)
}

/// What a thread has, or a heap of the program's.
#[derive(Clone, Debug)]
pub struct Cache {
    pub address: u64,
    pub number: u64,
    pub kind: Owner,
    pub thread_id: u64,
    pub is_dead: bool,
    pub events: u64,
    /// Blocks in its magazines, by class.
    pub held: Vec<u64>,
    pub counts: CacheCounts,
    pub class_counts: Vec<ClassCounts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    Thread,
    /// A heap of the program's, or the sweeper.
    Heap,
    /// Of slabs whose thread has ended, and of threads in their last moments.
    Shared,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct CacheCounts {
    pub sent_parcels: u64,
    pub sent_blocks: u64,
    pub opened_parcels: u64,
    pub adopted_slabs: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ClassCounts {
    pub refills: u64,
    pub refilled_blocks: u64,
    pub spills: u64,
    pub spilled_blocks: u64,
    pub made_slabs: u64,
    pub ended_slabs: u64,
    pub counted_allocations: u64,
    pub counted_misses: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct OsCounts {
    pub maps: u64,
    pub unmaps: u64,
    pub remaps: u64,
    pub purges: u64,
    pub purged_bytes: u64,
    pub huge_advices: u64,
    pub refused: u64,
}

/// A free block that is out of its slab: where it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// In a magazine of this cache.
    Magazine(usize),
    /// In the stock or the quarantine of a thread: a hardened block.
    Stock,
    /// In a parcel that this cache is filling.
    Outbox(usize),
    /// In a parcel that has arrived at this cache.
    Inbox(usize),
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Arena {
    pub super_bytes: u64,
    pub mapping_bytes: u64,
    pub dirty_bytes: u64,
    pub free_bytes: u64,
    pub retaken_bytes: u64,
    pub peak_bytes: u64,
    pub pool_bytes: u64,
    /// Tenths of a second of CLOCK_MONOTONIC, when the process last read it.
    pub clock: u64,
}

/// Where option guard_sample puts blocks, each between pages that nobody can touch.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    pub base: u64,
    /// 0: nowhere so far.
    pub bytes: u64,
    /// Those that the program holds: start, and what was asked for. By address.
    pub blocks: Vec<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub struct Heap {
    pub release: String,
    pub unit_bytes: u64,
    pub classes: Vec<Class>,
    /// By address.
    pub supers: Vec<Super>,
    /// The oldest first; the shared one last.
    pub caches: Vec<Cache>,
    /// By address.
    pub waiting: Vec<(u64, Waiting)>,
    /// Those of them that wait in two places.
    pub waiting_twice: Vec<u64>,
    pub guard: Guard,
    pub arena: Arena,
    pub os: OsCounts,
    pub options: Vec<Setting>,
    pub failures: Failures,
    pub timings: Vec<Timing>,
    /// Where descriptors and tables lie: start and length.
    pub metadata: Vec<(u64, u64)>,
    /// Blocks that moved while this was read: by as many any figure may be off.
    pub moved_blocks: u64,
    /// What could not be followed, in words. A process that runs may have changed it at that moment.
    pub doubts: Vec<String>,
}

/// What an address is.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub superslab: &'a Super,
    /// None: in units that no run has.
    pub run: Option<&'a Run>,
}

impl Heap {
    /// All that is hakmem's, in whole pages, by address.
    pub fn ranges(&self, page_bytes: u64) -> Vec<Range<u64>> {
        let supers = self.supers.iter().map(|one| (one.base, one.bytes));
        let guard = (self.guard.base, self.guard.bytes);
        let parts = supers.chain(self.metadata.iter().copied()).chain([guard]);
        let mut ranges: Vec<Range<u64>> = parts
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(start, bytes)| (start - start % page_bytes, bytes))
            .map(|(start, bytes)| start..start + bytes)
            .collect();
        ranges.sort_unstable_by_key(|range| range.start);
        // Descriptors in a unit of a superslab are a part of it: nothing is named twice.
        ranges.dedup_by(|next, before| {
            let is_part = next.start < before.end;
            if is_part {
                before.end = before.end.max(next.end);
            }
            is_part
        });
        ranges
    }

    /// Does a description of hakmem's lie there? A unit of a superslab may have some, too.
    pub fn is_metadata(&self, address: u64) -> bool {
        let mut parts = self.metadata.iter();
        parts.any(|(start, bytes)| address.wrapping_sub(*start) < *bytes)
    }

    /// How many bytes of superslabs have descriptions of hakmem's, and no blocks.
    pub fn metadata_unit_bytes(&self) -> u64 {
        let parts = self.metadata.iter();
        parts
            .filter(|(start, _)| self.find(*start).is_some())
            .map(|(_, bytes)| bytes)
            .sum()
    }

    /// The superslab and the run that an address lies in.
    pub fn find(&self, address: u64) -> Option<Place<'_>> {
        let index = self.supers.partition_point(|one| one.base <= address);
        let superslab = &self.supers[index.checked_sub(1)?];
        if address - superslab.base >= superslab.bytes {
            return None;
        }
        let contains = |run: &&Run| address.wrapping_sub(run.base) < run.bytes;
        let here = superslab.runs.iter().rfind(contains);
        // A run that goes on beyond its superslab began in one before this.
        let before = || {
            let earlier = self.supers[..index - 1].iter().rev();
            earlier
                .filter_map(|one| one.runs.last())
                .take(1 << 8)
                .find(contains)
        };
        let is_free =
            superslab.free_units >> ((address - superslab.base) / self.unit_bytes).min(63) & 1;
        let run = here.or_else(|| if is_free == 0 { before() } else { None });
        Some(Place { superslab, run })
    }

    /// Where the free block that begins at an address waits, if it does.
    pub fn waits_at(&self, block: u64) -> Option<Waiting> {
        let index = self
            .waiting
            .partition_point(|(address, _)| *address < block);
        let (address, waiting) = self.waiting.get(index)?;
        (*address == block).then_some(*waiting)
    }

    /// The waiting blocks in a stretch of addresses.
    pub fn waiting_in(&self, start: u64, bytes: u64) -> &[(u64, Waiting)] {
        let from = self
            .waiting
            .partition_point(|(address, _)| *address < start);
        let rest = &self.waiting[from..];
        let count = rest.partition_point(|(address, _)| *address - start < bytes);
        &rest[..count]
    }

    pub fn slabs(&self) -> impl Iterator<Item = (&Run, &Slab)> {
        let runs = self.supers.iter().flat_map(|one| &one.runs);
        runs.filter_map(|run| match &run.content {
            Content::Small(slab) => Some((run, slab)),
            Content::Large { .. } => None,
        })
    }
}
