//! mimalloc: pages with blocks of one size each, as they are described where its segments (release 2) or arenas (release 3)
//! begin. No symbol is needed.

mod arenas;
mod older;
mod segments;

use crate::pieces::{Heap, Holds, Piece};
use crate::space::Space;
use std::ops::Range;

pub(super) const SLICE_BYTES: u64 = 64 << 10;

/// What a description says of the blocks of a page.
#[derive(Clone, Copy, Debug)]
struct Blocks {
    bytes: u64,
    used: u64,
    /// So many of them were ever handed out.
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

/// `None` when it has nothing there.
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
