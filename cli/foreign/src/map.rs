//! What lies where in a heap's addresses: cells of one size, with the resident and the used bytes of each.

use crate::glibc::{self, Region};
use crate::heaps::Heaps;
use crate::pieces::{Holds, Piece};
use crate::space::Space;
use serde::{Deserialize, Serialize};
use std::ops::Range;

const CELL_LEAST: u64 = 64 << 10;
const CELLS_MOST: u64 = 16 << 10;

/// A cell's resident bytes, by kind; the rest of them is free.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Cell {
    pub resident: u64,
    pub live: u64,
    /// In thread caches.
    pub cached: u64,
    /// The allocator's own structures, or unclear.
    pub own: u64,
}

/// A part of a heap without gaps.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Strip {
    /// The name of the arena or allocator.
    pub name: String,
    pub start: u64,
    pub bytes: u64,
    pub cells: Vec<Cell>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Map {
    pub cell_bytes: u64,
    /// Sorted by address.
    pub strips: Vec<Strip>,
}

impl Map {
    pub fn of(heaps: &Heaps, space: &Space) -> Map {
        let mut names: Vec<(Range<u64>, String)> = Vec::new();
        if let Some(heap) = &heaps.glibc {
            for region in heap.regions() {
                let parts = region.parts().into_iter();
                names.extend(parts.map(|part| (part, arena_name(heap, region))));
            }
        }
        for heap in &heaps.others {
            let ranges = heap.ranges().into_iter();
            names.extend(ranges.map(|range| (range, heap.allocator.to_string())));
        }
        names.sort_by_key(|(range, _)| range.start);
        let all = names.iter().map(|(range, _)| range.end - range.start);
        let cell_bytes = (all.sum::<u64>() / CELLS_MOST)
            .next_power_of_two()
            .max(CELL_LEAST);
        let strips = names.into_iter().map(|(range, name)| Strip {
            name,
            start: range.start,
            bytes: range.end - range.start,
            cells: vec![Cell::default(); count((range.end - range.start).div_ceil(cell_bytes))],
        });
        let mut map = Map {
            cell_bytes,
            strips: strips.collect(),
        };
        for region in heaps.glibc.iter().flat_map(glibc::Heap::regions) {
            map.add_region(region);
        }
        for piece in heaps.others.iter().flat_map(|heap| &heap.pieces) {
            map.add_piece(piece, space);
        }
        // A range that is only reserved has nothing to show.
        let is_there = |strip: &Strip| strip.cells.iter().any(|cell| cell.resident > 0);
        map.strips.retain(is_there);
        map
    }

    fn strip_at(&mut self, address: u64) -> Option<&mut Strip> {
        let after = self.strips.partition_point(|strip| strip.start <= address);
        self.strips.get_mut(after.checked_sub(1)?)
    }

    fn cell_at(&mut self, address: u64) -> Option<&mut Cell> {
        let cell_bytes = self.cell_bytes;
        let strip = self.strip_at(address)?;
        let at = (address - strip.start) / cell_bytes;
        strip.cells.get_mut(count(at))
    }

    fn add_region(&mut self, region: &Region) {
        for (page, note) in region.resident_pages() {
            if let Some(cell) = self.cell_at(region.layout.address_of(page)) {
                cell.resident += region.page_bytes;
                cell.live += note.live();
                cell.cached += note.cached();
                cell.own += note.other();
            }
        }
        // The top chunk was recorded as the allocator's own; it is free.
        if let Some(top) = &region.top {
            region.each_resident(top, |page, bytes| {
                if let Some(cell) = self.cell_at(region.layout.address_of(page)) {
                    cell.own = cell.own.saturating_sub(u64::from(bytes));
                }
            });
        }
    }

    /// The used bytes may lie anywhere in the piece, so each of its pages gets the same share.
    fn add_piece(&mut self, piece: &Piece, space: &Space) {
        let (page_bytes, cell_bytes) = (space.page_bytes, self.cell_bytes);
        let resident = space.count_resident(&piece.range);
        let live = match piece.holds {
            Holds::Blocks { bytes, used, .. } => bytes.saturating_mul(used).min(resident),
            _ => 0,
        };
        let of_page = live / (resident / page_bytes).max(1);
        let Some(strip) = self.strip_at(piece.range.start) else {
            return;
        };
        for page in space.places(&piece.range, page_bytes) {
            let at = (page - strip.start) / cell_bytes;
            if let Some(cell) = strip.cells.get_mut(count(at)) {
                cell.resident += page_bytes;
                cell.live += of_page;
                if piece.holds == Holds::Own {
                    cell.own += page_bytes;
                }
            }
        }
    }
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn arena_name(heap: &glibc::Heap, region: &Region) -> String {
    match heap.arenas.get(region.arena) {
        Some(arena) if arena.is_main => "glibc, main arena".into(),
        _ => format!("glibc, arena {}", region.arena),
    }
}
