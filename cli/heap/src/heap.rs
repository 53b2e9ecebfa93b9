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
    /// One bit per unit: is it part of a page that was advised to be huge?
    pub huge_units: u64,
    /// The value of `Arena::clock` when it was mapped.
    pub mapped_at: u64,
    /// One bit per unit: the free units, those of them that are dirty, and those that are being purged.
    pub free_units: u64,
    pub dirty_units: u64,
    pub purging_units: u64,
    /// Sorted by address. The last one may extend beyond this superslab.
    pub runs: Vec<Run>,
}

impl Super {
    /// How many of its two huge pages were advised.
    pub fn huge_pages(&self) -> u32 {
        self.huge_units.count_ones() / 32
    }
}

#[derive(Clone, Debug)]
pub struct Run {
    pub base: u64,
    /// The bytes of its units, or of its mapping.
    pub bytes: u64,
    /// The value of `Arena::clock` when it was made. A large run may be younger.
    pub made_at: u64,
    pub content: Content,
}

#[derive(Clone, Debug)]
pub enum Content {
    Small(Slab),
    Large {
        /// The block's start. A block between guards does not start where its mapping does.
        block: u64,
        /// The block's usable size.
        block_bytes: u64,
        /// The block is free, and kept in BigCache.
        is_kept: bool,
    },
}

#[derive(Clone, Debug)]
pub struct Slab {
    pub class: usize,
    /// The owner's index in `Heap::caches`.
    pub owner: Option<usize>,
    /// Blocks from this one on were never handed out.
    pub fresh: u64,
    /// The slab's own counter; the bitmap may be slightly older.
    pub free_blocks: u64,
    /// One bit per block: it is free in the slab.
    pub bitmap: Vec<u64>,
    /// One bit per block of a hardened slab: it is free, in the slab or elsewhere. Empty for other slabs.
    pub free: Vec<u64>,
}

impl Slab {
    pub fn is_in(&self, index: u64) -> bool {
        has_bit(&self.bitmap, index)
    }

    /// Is it free but out of the slab: in a thread's stock or quarantine?
    pub fn is_stocked(&self, index: u64) -> bool {
        has_bit(&self.free, index) && !self.is_in(index) && index < self.fresh
    }

    /// How many blocks are free in the slab, by its bitmap.
    pub fn blocks_in(&self) -> u64 {
        self.bitmap
            .iter()
            .map(|word| u64::from(word.count_ones()))
            .sum()
    }

    /// How many blocks are out of the slab: live, or waiting somewhere.
    pub fn blocks_out(&self) -> u64 {
        self.fresh.saturating_sub(self.blocks_in())
    }
}

fn has_bit(words: &[u64], index: u64) -> bool {
    let word = usize::try_from(index / 64).ok();
    let word = word.and_then(|word| words.get(word));
    word.is_some_and(|word| word >> (index % 64) & 1 != 0)
}

/// The cache of a thread, or of a heap that the program made.
#[derive(Clone, Debug)]
pub struct Cache {
    pub address: u64,
    pub number: u64,
    pub kind: Owner,
    pub thread_id: u64,
    pub is_dead: bool,
    pub events: u64,
    /// The number of blocks in its magazines, by class.
    pub held: Vec<u64>,
    pub counts: CacheCounts,
    pub class_counts: Vec<ClassCounts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    Thread,
    /// A heap that the program made, or the sweeper.
    Heap,
    /// The shared cache: it owns orphans, and serves threads that are ending.
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

/// Where a free block waits that is out of its slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// In a magazine of the cache with this index.
    Magazine(usize),
    /// In a thread's stock or quarantine; the block is hardened.
    Stock,
    /// In a parcel in this cache's outbox.
    Outbox(usize),
    /// In a parcel in this cache's inbox.
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
    /// In tenths of a second of CLOCK_MONOTONIC, when the process last read that clock.
    pub clock: u64,
}

/// The area where option guard_sample puts blocks, each between inaccessible pages.
#[derive(Clone, Debug, Default)]
pub struct Guard {
    pub base: u64,
    /// 0: there is no area yet.
    pub bytes: u64,
    /// The live blocks in it: start and requested size. Sorted by address.
    pub blocks: Vec<(u64, u64)>,
}

#[derive(Clone, Debug)]
pub struct Heap {
    pub release: String,
    pub unit_bytes: u64,
    pub classes: Vec<Class>,
    /// Sorted by address.
    pub supers: Vec<Super>,
    /// The oldest first; the shared cache is last.
    pub caches: Vec<Cache>,
    /// Sorted by address.
    pub waiting: Vec<(u64, Waiting)>,
    /// Waiting blocks that were found in two places.
    pub waiting_twice: Vec<u64>,
    pub guard: Guard,
    pub arena: Arena,
    pub os: OsCounts,
    pub options: Vec<Setting>,
    pub failures: Failures,
    pub timings: Vec<Timing>,
    /// Where descriptors and tables lie: start and length.
    pub metadata: Vec<(u64, u64)>,
    /// How many blocks moved during the read; any figure may be off by this.
    pub moved_blocks: u64,
    /// What the walk could not follow, in words. A running process may have changed it at that moment.
    pub doubts: Vec<String>,
}

/// Where an address lies.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    pub superslab: &'a Super,
    /// None: its unit belongs to no run.
    pub run: Option<&'a Run>,
}

impl Heap {
    /// All of hakmem's memory, in whole pages, by address.
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
        // Descriptors may lie in a unit of a superslab, whose range already contains them.
        ranges.dedup_by(|next, before| {
            let is_part = next.start < before.end;
            if is_part {
                before.end = before.end.max(next.end);
            }
            is_part
        });
        ranges
    }

    /// Does metadata lie at this address? A superslab's unit may contain some, too.
    pub fn is_metadata(&self, address: u64) -> bool {
        let mut parts = self.metadata.iter();
        parts.any(|(start, bytes)| address.wrapping_sub(*start) < *bytes)
    }

    /// How many bytes of superslabs contain metadata instead of blocks.
    pub fn metadata_unit_bytes(&self) -> u64 {
        let parts = self.metadata.iter();
        parts
            .filter(|(start, _)| self.find(*start).is_some())
            .map(|(_, bytes)| bytes)
            .sum()
    }

    /// The superslab and the run that contain an address.
    pub fn find(&self, address: u64) -> Option<Place<'_>> {
        let index = self.supers.partition_point(|one| one.base <= address);
        let superslab = &self.supers[index.checked_sub(1)?];
        if address - superslab.base >= superslab.bytes {
            return None;
        }
        let contains = |run: &&Run| address.wrapping_sub(run.base) < run.bytes;
        let here = superslab.runs.iter().rfind(contains);
        // A run that spans superslabs begins in an earlier one.
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

    /// Where the free block with this address waits, if it does.
    pub fn waits_at(&self, block: u64) -> Option<Waiting> {
        let index = self
            .waiting
            .partition_point(|(address, _)| *address < block);
        let (address, waiting) = self.waiting.get(index)?;
        (*address == block).then_some(*waiting)
    }

    /// The waiting blocks in a range of addresses.
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
