//! All heaps in one memory whose allocator we know.

use crate::space::Space;
use crate::{figures, glibc, jemalloc, mimalloc, pieces};
use std::ops::Range;

pub struct Heaps {
    pub glibc: Option<glibc::Heap>,
    pub others: Vec<pieces::Heap>,
}

/// The figures of these heaps.
pub struct Numbers {
    pub glibc: Option<figures::Figures>,
    pub others: Vec<pieces::Figures>,
}

impl Heaps {
    pub fn read(space: &Space) -> Heaps {
        let readers = [jemalloc::read, mimalloc::read];
        let found = readers.into_iter().filter_map(|read| read(space));
        let others: Vec<pieces::Heap> = found.collect();
        let mut taken: Vec<Range<u64>> = others.iter().flat_map(pieces::Heap::ranges).collect();
        taken.sort_unstable_by_key(|range| range.start);
        Heaps {
            glibc: glibc::Heap::read(space, &taken),
            others,
        }
    }

    pub fn numbers(&self, space: &Space) -> Numbers {
        let glibc = self.glibc.as_ref();
        Numbers {
            glibc: glibc.map(|heap| figures::Figures::of(heap, space)),
            others: self.others.iter().map(|heap| heap.figures(space)).collect(),
        }
    }

    /// The addresses of all known heaps, sorted.
    pub fn ranges(&self) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> =
            self.others.iter().flat_map(pieces::Heap::ranges).collect();
        if let Some(heap) = &self.glibc {
            ranges.extend(heap.ranges());
            let blocks = heap.mapped.blocks.iter();
            ranges.extend(blocks.map(|block| block.start..block.start + block.bytes));
        }
        ranges.sort_unstable_by_key(|range| range.start);
        ranges
    }
}
