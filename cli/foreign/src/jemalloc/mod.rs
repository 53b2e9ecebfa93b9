//! jemalloc, 5.1 and newer, with pages of 4 KiB: reads the extents that are in its own page table.
//!
//! No symbol is needed. Its metadata lie in blocks that begin with their size and with a descriptor of their own unused part
//! (`base`). These blocks contain the leaves of the page table, which have an entry for each page: the address of its extent's
//! descriptor, and its size class (`leaf`).

mod base;
mod leaf;

use crate::pieces::{Heap, Holds, Piece};
use crate::space::Space;
use leaf::Extent;
use std::collections::BTreeSet;

/// The bit positions in a descriptor's first word. They differ between releases; the size class, which is also in the table,
/// tells which are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    class_at: u32,
    state_bits: u32,
    releases: &'static str,
}

const LAYOUTS: [Layout; 3] = [
    Layout {
        class_at: 20,
        state_bits: 3,
        releases: "5.3",
    },
    Layout {
        class_at: 18,
        state_bits: 2,
        releases: "5.1 or 5.2",
    },
    Layout {
        class_at: 19,
        state_bits: 2,
        releases: "5.2 as redis changes it",
    },
];

const PAGE_BYTES: u64 = 4096;
const ARENA: u64 = 0xfff;
const SLAB: u64 = 1 << 12;
const ACTIVE: u64 = 0;
/// A slab's blocks are smaller than four pages.
const SLAB_BLOCK_MOST: u64 = 4 * PAGE_BYTES;

/// The block size of a class: 8, then four sizes for each power of two.
fn class_bytes(class: u64) -> u64 {
    let Some(index) = class.checked_sub(1) else {
        return 8;
    };
    let (group, step) = (index / 4, index % 4 + 1);
    match group {
        0 => 16 * step,
        1..=56 => (16 << (group + 1)) + (16 << (group - 1)) * step,
        _ => u64::MAX,
    }
}

impl Layout {
    fn class(self, bits: u64) -> u64 {
        bits >> self.class_at & 0xff
    }

    fn state(self, bits: u64) -> u64 {
        bits >> (self.class_at - self.state_bits) & ((1 << self.state_bits) - 1)
    }

    /// The number of free blocks.
    fn free(self, bits: u64) -> u64 {
        bits >> (self.class_at + 8) & 0x3ff
    }

    /// How many extents fit this layout.
    fn fits(self, extents: &[Extent]) -> usize {
        let agree = |extent: &&Extent| self.class(extent.bits) == extent.class;
        extents.iter().filter(agree).count()
    }
}

/// `None` if there is no jemalloc heap.
pub fn read(space: &Space) -> Option<Heap> {
    if space.page_bytes != PAGE_BYTES {
        return None;
    }
    let blocks = base::find(space);
    let extents = leaf::read(space, &blocks);
    if extents.is_empty() {
        return None;
    }
    let best = LAYOUTS
        .into_iter()
        .max_by_key(|layout| layout.fits(&extents))?;
    let mut unclear = 0;
    let own = blocks.iter().map(|block| Piece {
        range: block.clone(),
        holds: Holds::Own,
    });
    let mut pieces: Vec<Piece> = own.collect();
    let mut arenas = BTreeSet::new();
    for extent in &extents {
        arenas.insert(extent.bits & ARENA);
        pieces.push(Piece {
            range: extent.range.clone(),
            holds: holds(extent, best, &mut unclear),
        });
    }
    let heap = Heap {
        allocator: "jemalloc",
        releases: best.releases,
        pieces,
        arenas: arenas.len() as u64,
        unclear,
    };
    Some(heap.settle(space))
}

fn holds(extent: &Extent, layout: Layout, unclear: &mut u64) -> Holds {
    if layout.state(extent.bits) != ACTIVE {
        return Holds::Free; // the table may still have its old class
    }
    *unclear += u64::from(layout.class(extent.bits) != extent.class);
    let all = extent.range.end - extent.range.start;
    let bytes = class_bytes(extent.class).min(all);
    if extent.bits & SLAB == 0 || bytes >= SLAB_BLOCK_MOST {
        return Holds::Blocks {
            bytes,
            used: 1,
            room: 1,
        };
    }
    let room = all / bytes;
    let free = layout.free(extent.bits);
    *unclear += u64::from(free > room);
    Holds::Blocks {
        bytes,
        used: room.saturating_sub(free),
        room,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_the_sizes_that_the_manual_lists() {
        let sizes: Vec<u64> = (0..14).map(class_bytes).collect();
        assert_eq!(
            sizes,
            [8, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320]
        );
        assert_eq!(class_bytes(36), 16384);
        assert_eq!(class_bytes(255), u64::MAX);
    }
}
