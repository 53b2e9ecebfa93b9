//! The figures of a glibc heap.

use crate::glibc::{Heap, Pins, Resident};
use crate::sizes::{OfSize, Sizes};
use crate::space::Space;
use serde::{Deserialize, Serialize};

/// How many of the largest blocks are listed.
const LARGEST: usize = 5;

/// The figures of one arena, or of all. Sizes of chunks include their headers, as in mallinfo2.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Arena {
    pub is_main: bool,
    /// The address of its `malloc_state`, if that was found.
    pub address: Option<u64>,
    /// How many threads use it; None if its `malloc_state` was not found.
    pub threads: Option<u64>,
    /// The number of its contiguous heaps: of at most 64 MiB each, or the main heap.
    pub pieces: u64,
    /// The size of its address ranges.
    pub bytes: u64,
    pub live_bytes: u64,
    pub live_blocks: u64,
    /// In thread caches.
    pub cached_bytes: u64,
    pub cached_blocks: u64,
    pub fast_bytes: u64,
    pub fast_blocks: u64,
    /// In bins.
    pub free_bytes: u64,
    pub free_blocks: u64,
    /// In top chunks.
    pub top_bytes: u64,
    /// In the allocator's own structures.
    pub own_bytes: u64,
    pub unclear_bytes: u64,
    pub resident: Resident,
    /// What malloc_trim(0) would give back.
    pub trim_bytes: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct MappedBlocks {
    pub blocks: u64,
    pub bytes: u64,
    pub resident_bytes: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    pub total: Arena,
    pub arenas: Vec<Arena>,
    /// Blocks with mappings of their own (mmapped chunks).
    pub mapped: MappedBlocks,
    pub largest_mapped_bytes: Vec<u64>,
    /// How many thread caches were found.
    pub caches: u64,
    /// The sizes of live blocks, including mmapped ones.
    pub live_sizes: Vec<OfSize>,
    pub free_sizes: Vec<OfSize>,
    pub pins: Pins,
}

impl Arena {
    /// What malloc_info and mallinfo2 count as free: not what caches keep.
    pub fn free_for_malloc_info(&self) -> u64 {
        self.fast_bytes + self.free_bytes + self.top_bytes
    }

    pub fn all_free_bytes(&self) -> u64 {
        self.free_for_malloc_info() + self.cached_bytes
    }

    fn add(&mut self, other: &Arena) {
        self.pieces += other.pieces;
        self.bytes += other.bytes;
        self.live_bytes += other.live_bytes;
        self.live_blocks += other.live_blocks;
        self.cached_bytes += other.cached_bytes;
        self.cached_blocks += other.cached_blocks;
        self.fast_bytes += other.fast_bytes;
        self.fast_blocks += other.fast_blocks;
        self.free_bytes += other.free_bytes;
        self.free_blocks += other.free_blocks;
        self.top_bytes += other.top_bytes;
        self.own_bytes += other.own_bytes;
        self.unclear_bytes += other.unclear_bytes;
        self.trim_bytes += other.trim_bytes;
        self.resident.add(&other.resident);
    }
}

impl Figures {
    pub fn of(heap: &Heap, space: &Space) -> Figures {
        let mut arenas: Vec<Arena> = heap.arenas.iter().map(arena_head).collect();
        let mut live = Sizes::default();
        let mut free = Sizes::default();
        for region in heap.regions() {
            let arena = &mut arenas[region.arena];
            let resident = region.resident(arena.is_main);
            arena.bytes += region.bytes();
            arena.live_bytes += region.live.bytes;
            arena.live_blocks += region.live.blocks;
            arena.free_bytes += region.free.bytes;
            arena.free_blocks += region.free.blocks;
            let top = region.top.as_ref();
            arena.top_bytes += top.map_or(0, |top| top.end - top.start);
            arena.own_bytes += region.own_bytes();
            arena.unclear_bytes += region.unclear_bytes();
            arena.trim_bytes += resident.trim_bytes();
            arena.resident.add(&resident);
            live.merge(&region.live);
            free.merge(&region.free);
        }
        live.merge(&heap.mapped.sizes);
        let mut total = Arena::default();
        for arena in &arenas {
            total.add(arena);
        }
        let mut largest: Vec<u64> = heap.mapped.blocks.iter().map(|one| one.bytes).collect();
        largest.sort_unstable_by(|a, b| b.cmp(a));
        largest.truncate(LARGEST);
        Figures {
            total,
            arenas,
            mapped: MappedBlocks {
                blocks: heap.mapped.sizes.blocks,
                bytes: heap.mapped.sizes.bytes,
                resident_bytes: heap.mapped.resident_bytes,
            },
            largest_mapped_bytes: largest,
            caches: heap.caches as u64,
            live_sizes: live.table(),
            free_sizes: free.table(),
            pins: heap.pins(space),
        }
    }
}

fn arena_head(arena: &crate::glibc::Arena) -> Arena {
    let state = arena.state.as_ref();
    Arena {
        is_main: arena.is_main,
        address: state.map(|state| state.address),
        threads: state.map(|state| state.threads),
        pieces: arena.pieces as u64,
        cached_bytes: arena.cached_bytes,
        cached_blocks: arena.cached_blocks,
        fast_bytes: arena.fast_bytes,
        fast_blocks: arena.fast_blocks,
        ..Arena::default()
    }
}
