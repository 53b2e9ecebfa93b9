//! A heap's figures, under the names of `docs/statistics.md`.

use crate::heap::{CacheCounts, Content, Heap, OsCounts, Owner};
use crate::timings::Timing;
use serde::Serialize;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Figures {
    pub release: String,
    /// How many blocks moved during the read; each figure may be off by this.
    pub moved_blocks: u64,
    #[serde(flatten)]
    pub totals: Totals,
    #[serde(flatten)]
    pub counters: Counters,
    pub classes: Vec<ClassFigures>,
    /// How long slow paths took, with option debug_timing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timings: Vec<Timing>,
    pub caches: Vec<CacheFigures>,
    pub options: serde_json::Map<String, serde_json::Value>,
    /// What the walk could not follow.
    pub doubts: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Totals {
    pub mapped_bytes: u64,
    pub live_bytes: u64,
    pub live_blocks: u64,
    pub cached_bytes: u64,
    pub kept_bytes: u64,
    pub slab_free_bytes: u64,
    pub unit_free_bytes: u64,
    pub dirty_bytes: u64,
    pub metadata_bytes: u64,
    /// The part of `mapped_bytes` in units that contain descriptors.
    pub metadata_unit_bytes: u64,
    pub cache_count: u64,
    pub superslab_count: u64,
    pub mapping_count: u64,
    pub large_live_bytes: u64,
    pub large_live_blocks: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Counters {
    pub slow_events: u64,
    #[serde(flatten)]
    pub caches: CacheCounts,
    #[serde(flatten)]
    pub os: OsCounts,
    pub retaken_bytes: u64,
    pub peak_mapped_bytes: u64,
    /// Refused allocations.
    pub failures: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ClassFigures {
    pub bytes: u64,
    pub slabs: u64,
    pub slab_bytes: u64,
    pub live_blocks: u64,
    pub cached_blocks: u64,
    pub slab_free_blocks: u64,
    pub refills: u64,
    pub refilled_blocks: u64,
    pub spills: u64,
    pub spilled_blocks: u64,
    pub slabs_made: u64,
    pub slabs_ended: u64,
    /// Allocations in caches that were sampling, and how many of them no magazine served.
    pub counted_allocations: u64,
    pub counted_misses: u64,
}

impl ClassFigures {
    /// The bytes of its slabs that are in live blocks.
    pub fn live_bytes(&self) -> u64 {
        self.live_blocks * self.bytes
    }
}

#[derive(Clone, Copy, Debug, Serialize)]
pub struct CacheFigures {
    pub number: u64,
    pub kind: Owner,
    pub thread_id: u64,
    pub is_dead: bool,
    pub slabs: u64,
    /// Bytes in blocks that are out of its slabs: live, or in a magazine.
    pub out_bytes: u64,
    /// Bytes in its own magazines.
    pub cached_bytes: u64,
    pub slab_free_bytes: u64,
    pub slow_events: u64,
    pub refills: u64,
    pub spills: u64,
    #[serde(flatten)]
    pub counts: CacheCounts,
}

impl Figures {
    pub fn of(heap: &Heap) -> Figures {
        let mut figures = Figures {
            release: heap.release.clone(),
            moved_blocks: heap.moved_blocks,
            totals: Totals {
                mapped_bytes: heap
                    .arena
                    .super_bytes
                    .saturating_add(heap.arena.mapping_bytes)
                    .saturating_add(heap.guard.bytes),
                unit_free_bytes: heap.arena.free_bytes,
                dirty_bytes: heap.arena.dirty_bytes,
                metadata_bytes: heap.arena.pool_bytes,
                metadata_unit_bytes: heap.metadata_unit_bytes(),
                cache_count: heap.caches.len() as u64 - 1, // all but the shared one
                ..Totals::default()
            },
            counters: Counters {
                os: heap.os,
                retaken_bytes: heap.arena.retaken_bytes,
                peak_mapped_bytes: heap.arena.peak_bytes.saturating_add(heap.guard.bytes),
                failures: heap.failures.count,
                ..Counters::default()
            },
            classes: classes(heap),
            timings: heap.timings.clone(),
            caches: caches(heap),
            options: heap
                .options
                .iter()
                .map(|setting| (setting.name.clone(), setting.value.into()))
                .collect(),
            doubts: heap.doubts.clone(),
        };
        figures.add_classes();
        figures.add_caches();
        figures.add_supers(heap);
        figures.add_guarded(heap);
        figures
    }

    fn add_classes(&mut self) {
        let totals = &mut self.totals;
        for class in &self.classes {
            totals.live_blocks += class.live_blocks;
            totals.live_bytes += class.live_bytes();
            totals.cached_bytes += class.cached_blocks * class.bytes;
            totals.slab_free_bytes += class.slab_free_blocks * class.bytes;
        }
    }

    fn add_caches(&mut self) {
        let counters = &mut self.counters;
        for cache in &self.caches {
            counters.slow_events = counters.slow_events.wrapping_add(cache.slow_events);
            let sum = &mut counters.caches;
            sum.sent_parcels = sum.sent_parcels.wrapping_add(cache.counts.sent_parcels);
            sum.sent_blocks = sum.sent_blocks.wrapping_add(cache.counts.sent_blocks);
            sum.opened_parcels = sum.opened_parcels.wrapping_add(cache.counts.opened_parcels);
            sum.adopted_slabs = sum.adopted_slabs.wrapping_add(cache.counts.adopted_slabs);
        }
    }

    fn add_supers(&mut self, heap: &Heap) {
        let totals = &mut self.totals;
        for superslab in &heap.supers {
            totals.superslab_count += u64::from(!superslab.is_mapping);
            totals.mapping_count += u64::from(superslab.is_mapping);
            for run in &superslab.runs {
                match run.content {
                    Content::Large {
                        block_bytes,
                        is_kept: true,
                        ..
                    } => totals.kept_bytes = totals.kept_bytes.saturating_add(block_bytes),
                    Content::Large {
                        block_bytes,
                        is_kept: false,
                        ..
                    } => {
                        totals.large_live_bytes =
                            totals.large_live_bytes.saturating_add(block_bytes);
                        totals.large_live_blocks += 1;
                        totals.live_bytes = totals.live_bytes.saturating_add(block_bytes);
                        totals.live_blocks += 1;
                    }
                    Content::Small(_) => {}
                }
            }
        }
    }

    fn add_guarded(&mut self, heap: &Heap) {
        for (_, bytes) in &heap.guard.blocks {
            self.totals.live_blocks += 1;
            self.totals.live_bytes = self.totals.live_bytes.saturating_add(*bytes);
        }
    }

    /// The classes that were used at least once.
    pub fn used_classes(&self) -> impl Iterator<Item = &ClassFigures> {
        self.classes.iter().filter(|class| class.slabs_made > 0)
    }
}

fn classes(heap: &Heap) -> Vec<ClassFigures> {
    let mut found: Vec<ClassFigures> = heap
        .classes
        .iter()
        .map(|class| ClassFigures {
            bytes: class.bytes,
            ..ClassFigures::default()
        })
        .collect();
    for (run, slab) in heap.slabs() {
        let class = &mut found[slab.class];
        class.slabs += 1;
        class.slab_bytes += run.bytes;
        class.slab_free_blocks += slab.blocks_in();
        let waiting = heap.waiting_in(run.base, run.bytes).len() as u64;
        let waiting = waiting.min(slab.blocks_out());
        class.cached_blocks += waiting;
        class.live_blocks += slab.blocks_out() - waiting;
    }
    for cache in &heap.caches {
        for (class, counts) in found.iter_mut().zip(&cache.class_counts) {
            class.refills = class.refills.wrapping_add(counts.refills);
            class.refilled_blocks = class.refilled_blocks.wrapping_add(counts.refilled_blocks);
            class.spills = class.spills.wrapping_add(counts.spills);
            class.spilled_blocks = class.spilled_blocks.wrapping_add(counts.spilled_blocks);
            class.slabs_made = class.slabs_made.wrapping_add(counts.made_slabs);
            class.slabs_ended = class.slabs_ended.wrapping_add(counts.ended_slabs);
            class.counted_allocations =
                (class.counted_allocations).wrapping_add(counts.counted_allocations);
            class.counted_misses = class.counted_misses.wrapping_add(counts.counted_misses);
        }
    }
    found
}

fn caches(heap: &Heap) -> Vec<CacheFigures> {
    let bytes_of = |held: &[u64]| {
        let bytes = held.iter().zip(&heap.classes);
        bytes
            .map(|(blocks, class)| blocks.saturating_mul(class.bytes))
            .fold(0, u64::saturating_add)
    };
    let mut found: Vec<CacheFigures> = heap
        .caches
        .iter()
        .map(|cache| CacheFigures {
            number: cache.number,
            kind: cache.kind,
            thread_id: cache.thread_id,
            is_dead: cache.is_dead,
            slabs: 0,
            out_bytes: 0,
            cached_bytes: bytes_of(&cache.held),
            slab_free_bytes: 0,
            slow_events: cache.events,
            refills: cache
                .class_counts
                .iter()
                .map(|counts| counts.refills)
                .fold(0, u64::wrapping_add),
            spills: cache
                .class_counts
                .iter()
                .map(|counts| counts.spills)
                .fold(0, u64::wrapping_add),
            counts: cache.counts,
        })
        .collect();
    for (_, slab) in heap.slabs() {
        if let Some(owner) = slab.owner {
            let bytes = heap.classes[slab.class].bytes;
            found[owner].slabs += 1;
            found[owner].out_bytes += slab.blocks_out() * bytes;
            found[owner].slab_free_bytes += slab.blocks_in() * bytes;
        }
    }
    found
}
