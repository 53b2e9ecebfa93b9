//! mimalloc: its pages have blocks of one size each. They are described at the start of a segment (release 2) or of an arena
//! (release 3). No symbol is needed.

mod arenas;
mod older;
mod segments;

use crate::pieces::{Heap, Holds, Piece};
use crate::space::Space;
use std::ops::Range;

pub(super) const SLICE_BYTES: u64 = 64 << 10;

/// What a descriptor tells about a page's blocks.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    bytes: u64,
    used: u64,
    /// How many of them were handed out at least once.
    capacity: u64,
    room: u64,
}

impl Blocks {
    fn agree(&self, all: u64) -> bool {
        self.used <= self.capacity
            && self.capacity <= self.room
            && self
                .bytes
                .checked_mul(self.room)
                .is_some_and(|sum| sum <= all)
    }

    fn holds(&self) -> Holds {
        match self.used {
            0 => Holds::Free,
            used => Holds::Blocks {
                bytes: self.bytes,
                used,
                room: self.room,
            },
        }
    }
}

/// `None` if there is no mimalloc heap.
pub fn read(space: &Space) -> Option<Heap> {
    segments::read(space)
        .or_else(|| arenas::read(space))
        .or_else(|| older::read(space))
}

fn heap(
    space: &Space,
    releases: &'static str,
    pieces: Vec<Piece>,
    arenas: u64,
    unclear: u64,
) -> Heap {
    let heap = Heap {
        allocator: "mimalloc",
        releases,
        pieces,
        arenas,
        unclear,
    };
    heap.settle(space)
}

fn piece(range: Range<u64>, holds: Holds) -> Piece {
    Piece { range, holds }
}
