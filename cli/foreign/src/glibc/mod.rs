//! glibc's malloc, 2.31 and newer: its arenas, what is in use of them, and large blocks with mappings of their own.

pub mod arena;
mod caches;
mod chunks;
pub mod cold;
mod mapped;
mod notes;
mod part;
mod pins;
mod region;

use crate::space::Space;
use arena::State;
pub use mapped::{Block, Mapped};
pub(crate) use notes::Layout;
pub use pins::Pins;
pub(crate) use region::Region;
pub use region::Resident;
use std::collections::HashMap;
use std::ops::Range;

/// How often to read a heap that changes; the clearest result counts.
const TRIES: usize = 3;
/// The share of a heap that may be unclear because it changed.
const UNCLEAR_SHARE: f64 = 0.001;

/// What is known of an arena apart from its chunks.
#[derive(Clone, Debug, Default)]
pub struct Arena {
    pub is_main: bool,
    /// Its `malloc_state`, if that was found.
    pub state: Option<State>,
    pub pieces: usize,
    /// In fast bins.
    pub fast_bytes: u64,
    pub fast_blocks: u64,
    /// In thread caches.
    pub cached_bytes: u64,
    pub cached_blocks: u64,
}

pub struct Heap {
    /// The main arena comes first, if there is one.
    pub arenas: Vec<Arena>,
    regions: Vec<Region>,
    pub mapped: Mapped,
    /// How many thread caches were found.
    pub caches: usize,
    /// Chunks in caches and fast bins, sorted.
    kept: Vec<u64>,
    pub page_bytes: u64,
}

impl Heap {
    /// `None` if there is no glibc heap. `taken`, which is sorted, belongs to other allocators.
    pub fn read(space: &Space, taken: &[Range<u64>]) -> Option<Heap> {
        let mut best: Option<Heap> = None;
        for _ in 0..TRIES {
            let heap = Heap::read_once(space, taken)?;
            let unclear = heap.unclear_bytes();
            let is_clear = unclear as f64 <= heap.bytes() as f64 * UNCLEAR_SHARE;
            if best
                .as_ref()
                .is_none_or(|best| unclear < best.unclear_bytes())
            {
                best = Some(heap);
            }
            if is_clear || !space.knows_pages() {
                break; // a core dump does not change
            }
        }
        best
    }

    fn read_once(space: &Space, taken: &[Range<u64>]) -> Option<Heap> {
        let mut pieces = arena::find_pieces(space);
        let is_taken = |start: u64| taken.iter().any(|taken| taken.contains(&start));
        pieces.retain(|piece| !is_taken(piece.start));
        let mut states: Vec<State> = Vec::new();
        for piece in pieces.iter().filter(|piece| piece.is_first) {
            states.extend(State::read(space, piece.arena));
        }
        let main = arena::find_main(space, &states);
        let mut heap = Heap {
            arenas: Vec::new(),
            regions: Vec::new(),
            mapped: Mapped::default(),
            caches: 0,
            kept: Vec::new(),
            page_bytes: space.page_bytes,
        };
        heap.read_main(space, main);
        let mut known: HashMap<u64, usize> = HashMap::new();
        for piece in &pieces {
            let arena = *known.entry(piece.arena).or_insert_with(|| {
                let state = states.iter().find(|state| state.address == piece.arena);
                heap.arenas.push(Arena {
                    state: state.cloned(),
                    ..Arena::default()
                });
                heap.arenas.len() - 1
            });
            heap.read_piece(space, piece, arena);
        }
        if heap.regions.is_empty() {
            return None;
        }
        part::read(space, &mut heap.regions);
        heap.regions.sort_by_key(|region| region.range.start);
        heap.take_back_fast(space);
        heap.take_back_cached(space);
        heap.kept.sort_unstable();
        let mut known = heap.ranges();
        known.extend_from_slice(taken);
        known.sort_unstable_by_key(|range| range.start);
        heap.mapped = mapped::find(space, &known);
        let main = heap
            .regions
            .iter()
            .find(|region| heap.arenas[region.arena].is_main);
        let told = main.and_then(|main| arena::told_mapped_bytes(space, main.first));
        if let Some(told) = told {
            heap.mapped.settle(told);
        }
        Some(heap)
    }

    /// Reads the main heap, which grows by moving the break.
    fn read_main(&mut self, space: &Space, state: Option<State>) {
        let top = state.as_ref().map_or(0, |state| state.top);
        let mut areas = space.stretches.iter();
        let area = areas.find(|area| area.name == b"[heap]" || area.range.contains(&top));
        // A core dump does not name the main heap, and a truncated one may lack the main arena.
        let is_nameless = !space.knows_pages() && state.is_none();
        let area = area.or_else(|| {
            let mut areas = space.stretches.iter().filter(|_| is_nameless);
            areas.find(|area| Region::begins_with_chunks(space, &area.range))
        });
        let Some(area) = area.filter(|area| area.range.end > area.range.start) else {
            return;
        };
        let mut region = Region::new(space, area.range.clone(), 0);
        if let Some(first) = region.find_first(space, area.range.start) {
            region.begin(first);
            self.regions.push(region);
            self.arenas.push(Arena {
                is_main: true,
                state,
                pieces: 1,
                ..Arena::default()
            });
        }
    }

    fn read_piece(&mut self, space: &Space, piece: &arena::Piece, arena: usize) {
        let range = piece.start..piece.start + piece.bytes;
        let state = self.arenas[arena].state.as_ref();
        let before = match (piece.is_first, state) {
            (true, Some(state)) => state.address + state.bytes,
            _ => piece.start + 32,
        };
        let mut region = Region::new(space, range, arena);
        if let Some(first) = region.find_first(space, before) {
            region.begin(first);
        } else {
            region.nothing_is_clear();
        }
        self.arenas[arena].pieces += 1;
        self.regions.push(region);
    }

    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }

    pub fn ranges(&self) -> Vec<Range<u64>> {
        let regions = self.regions.iter();
        regions.flat_map(Region::parts).collect()
    }

    pub fn bytes(&self) -> u64 {
        let ranges = self.ranges();
        ranges.iter().map(|range| range.end - range.start).sum()
    }

    pub fn unclear_bytes(&self) -> u64 {
        let regions = self.regions.iter();
        regions.map(Region::unclear_bytes).sum()
    }

    fn region_at(&mut self, address: u64) -> Option<&mut Region> {
        let regions = &mut self.regions;
        let index = regions.partition_point(|region| region.range.start <= address);
        let region = &mut regions[index.checked_sub(1)?];
        region.range.contains(&address).then_some(region)
    }

    fn take_back_fast(&mut self, space: &Space) {
        for index in 0..self.arenas.len() {
            let state = self.arenas[index].state.as_ref();
            let fast = state.map(|state| state.fast.clone()).unwrap_or_default();
            for first in fast {
                for kept in caches::read_fast(space, first) {
                    let region = self.region_at(kept.chunk);
                    if let Some(region) = region.filter(|region| region.arena == index) {
                        region.take_back(kept.chunk, kept.bytes, false);
                        self.arenas[index].fast_blocks += 1;
                        self.arenas[index].fast_bytes += kept.bytes;
                        self.kept.push(kept.chunk);
                    }
                }
            }
        }
    }

    fn take_back_cached(&mut self, space: &Space) {
        let regions = self.regions.iter();
        let candidates: Vec<u64> = regions.flat_map(|region| region.caches.clone()).collect();
        for address in candidates {
            let size = space.word(address - 8).unwrap_or(0) & !7;
            let Some(kept) = caches::read(space, address, size) else {
                continue;
            };
            self.caches += 1;
            for kept in kept {
                if let Some(region) = self.region_at(kept.chunk) {
                    region.take_back(kept.chunk, kept.bytes, true);
                    let arena = region.arena;
                    self.arenas[arena].cached_blocks += 1;
                    self.arenas[arena].cached_bytes += kept.bytes;
                    self.kept.push(kept.chunk);
                }
            }
        }
    }
}
