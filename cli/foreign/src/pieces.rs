//! A heap that consists of pieces: each has blocks of one size, or is free, or is the allocator's own. jemalloc, mimalloc and
//! similar allocators have such heaps.

use crate::sizes::{OfSize, Sizes};
use crate::space::Space;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How many bytes of addresses to ask about at a time.
const AT_A_TIME: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Blocks of `bytes` each, with room for `room` of them; `used` of them are in use.
    Blocks {
        bytes: u64,
        used: u64,
        room: u64,
    },
    /// Free, and kept by the allocator.
    Free,
    Own,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Begins and ends at page boundaries.
    pub range: Range<u64>,
    pub holds: Holds,
}

/// What was found of one allocator.
#[derive(Clone, Debug)]
pub struct Heap {
    /// Its name, such as "jemalloc".
    pub allocator: &'static str,
    /// The releases whose structures look like this.
    pub releases: &'static str,
    /// Sorted by address; they do not overlap.
    pub pieces: Vec<Piece>,
    pub arenas: u64,
    /// How many descriptors contradict themselves: damaged, or changed during the read.
    pub unclear: u64,
}

/// Resident bytes by kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Resident {
    /// An upper bound: pages of a block that was never written to are not resident.
    pub live: u64,
    /// Free, in pieces with live blocks.
    pub free_beside: u64,
    /// In free pieces, which the allocator can give back.
    pub free_pieces: u64,
    pub own: u64,
}

/// The figures of such a heap.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Figures {
    pub allocator: String,
    pub releases: String,
    pub arenas: u64,
    pub pieces: u64,
    /// The size of its address ranges.
    pub bytes: u64,
    /// Including what thread caches keep.
    pub live_bytes: u64,
    pub live_blocks: u64,
    /// Free, in pieces with live blocks.
    pub free_beside_bytes: u64,
    /// In free pieces, resident or not.
    pub free_bytes: u64,
    pub own_bytes: u64,
    pub unclear: u64,
    pub resident: Resident,
    pub live_sizes: Vec<OfSize>,
}

impl Resident {
    pub fn sum(&self) -> u64 {
        self.live + self.free_beside + self.free_pieces + self.own
    }

    pub fn free(&self) -> u64 {
        self.free_beside + self.free_pieces
    }
}

impl Piece {
    pub fn bytes(&self) -> u64 {
        self.range.end - self.range.start
    }
}

impl Heap {
    /// Sorts the pieces, and drops those that are not mapped or that overlap an earlier one.
    pub fn settle(mut self, space: &Space) -> Heap {
        self.pieces.sort_by_key(|piece| piece.range.start);
        let mut end = 0;
        let before = self.pieces.len();
        self.pieces.retain(|piece| {
            let is_apart = piece.range.start >= end
                && piece.range.start < piece.range.end
                && space.has(&piece.range);
            if is_apart {
                end = piece.range.end;
            }
            is_apart
        });
        self.unclear += (before - self.pieces.len()) as u64;
        self
    }

    /// The ranges of all pieces; adjacent ones are joined.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let mut found: Vec<Range<u64>> = Vec::new();
        for piece in &self.pieces {
            match found.last_mut() {
                Some(last) if last.end == piece.range.start => last.end = piece.range.end,
                _ => found.push(piece.range.clone()),
            }
        }
        found
    }

    pub fn figures(&self, space: &Space) -> Figures {
        let mut found = Figures {
            allocator: self.allocator.into(),
            releases: self.releases.into(),
            arenas: self.arenas,
            pieces: self.pieces.len() as u64,
            bytes: 0,
            live_bytes: 0,
            live_blocks: 0,
            free_beside_bytes: 0,
            free_bytes: 0,
            own_bytes: 0,
            unclear: self.unclear,
            resident: Resident::default(),
            live_sizes: Vec::new(),
        };
        let mut sizes = Sizes::default();
        let mut pages = Counter::new(space);
        for piece in &self.pieces {
            let all = piece.bytes();
            let resident = pages.resident(&piece.range);
            found.bytes += all;
            match piece.holds {
                Holds::Blocks { bytes, used, .. } => {
                    let live = bytes.saturating_mul(used).min(all);
                    sizes.add_many(bytes, used);
                    found.live_bytes += live;
                    found.live_blocks += used;
                    found.free_beside_bytes += all - live;
                    found.resident.live += live.min(resident);
                    found.resident.free_beside += resident - live.min(resident);
                }
                Holds::Free => {
                    found.free_bytes += all;
                    found.resident.free_pieces += resident;
                }
                Holds::Own => {
                    found.own_bytes += all;
                    found.resident.own += resident;
                }
            }
        }
        found.live_sizes = sizes.table();
        found
    }
}

/// Counts the resident pages of ascending ranges without a system call for each of them.
struct Counter<'a> {
    space: &'a Space<'a>,
    /// The range whose pages are known.
    range: Range<u64>,
    resident: Vec<Range<u64>>,
}

impl<'a> Counter<'a> {
    fn new(space: &'a Space<'a>) -> Counter<'a> {
        Counter {
            space,
            range: 0..0,
            resident: Vec::new(),
        }
    }

    fn resident(&mut self, range: &Range<u64>) -> u64 {
        if range.end - range.start > AT_A_TIME {
            return self.space.count_resident(range);
        }
        if range.start < self.range.start || range.end > self.range.end {
            self.range = range.start..range.start.saturating_add(AT_A_TIME);
            self.resident = self.space.resident(&self.range).collect();
        }
        let runs = &self.resident;
        let first = runs.partition_point(|run| run.end <= range.start);
        let inside = runs[first..].iter();
        let inside = inside.take_while(|run| run.start < range.end);
        inside
            .map(|run| run.end.min(range.end) - run.start.max(range.start))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nothing::Nothing;
    use hakmem_heap::resident::Counted;

    #[test]
    fn pieces_are_ordered_and_apart() {
        let area = |range| Counted {
            range,
            ..Counted::default()
        };
        let space = Space::of_memory(&Nothing, vec![area(0..5), area(5..11), area(12..20)]);
        let piece = |range| Piece {
            range,
            holds: Holds::Free,
        };
        let pieces = [8..9, 0..4, 4..6, 5..7, 7..7, 10..12, 19..21, 14..20];
        let heap = Heap {
            allocator: "none",
            releases: "",
            pieces: pieces.map(piece).to_vec(),
            arenas: 1,
            unclear: 0,
        };
        let heap = heap.settle(&space);
        assert_eq!(heap.ranges(), [0..6, 8..9, 14..20]);
        assert_eq!(heap.unclear, 4);
    }
}
