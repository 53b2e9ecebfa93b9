//! What resident memory consists of, area by area, beside the kernel's figure.

use crate::heaps::{Heaps, Numbers};
use crate::space::Space;
use hakmem_heap::ledger::signed;
use hakmem_heap::resident::{AreaSums, Counted};
use hakmem_heap::shown::shown;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;

/// How many areas are listed.
const LARGEST: usize = 5;

/// Resident bytes outside of heaps, by kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Others {
    /// Unchanged pages of files: the system can drop them at any time.
    pub file_pages: u64,
    /// Private pages of files that were written to: data of programs and libraries.
    pub file_copies: u64,
    /// Shared with other processes, without a file on disk.
    pub shared: u64,
    pub stacks: u64,
    /// Mapped by the program or a library.
    pub mapped: u64,
    /// Allocated by moving the break.
    pub by_break: u64,
}

/// A range of memory that belongs to no known allocator.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
pub struct Stretch {
    pub start: u64,
    pub bytes: u64,
    pub resident_bytes: u64,
    pub name: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ledger {
    /// The kernel's count of resident bytes; for a core dump, the bytes in the file.
    pub kernel_bytes: u64,
    /// Does `kernel_bytes` count resident memory? Not for a core dump.
    pub is_of_process: bool,
    /// glibc's heap.
    pub heap_bytes: u64,
    pub mapped_block_bytes: u64,
    /// hakmem's heap, including its metadata.
    #[serde(default)]
    pub hakmem_bytes: u64,
    /// Heaps of other allocators.
    pub other_heap_bytes: u64,
    pub others: Others,
    /// `kernel_bytes` less all others: changes during the read, or zero pages.
    pub remainder_bytes: i64,
    pub huge_bytes: u64,
    pub swapped_bytes: u64,
    pub lazily_freed_bytes: u64,
    /// The largest areas that the program has mapped.
    pub largest: Vec<Stretch>,
    pub stretches: u64,
}

/// How many bytes of `known` are resident in an area.
fn within(space: &Space, known: &[Range<u64>], area: &Range<u64>) -> u64 {
    let first = known.partition_point(|range| range.end <= area.start);
    let inside = known[first..].iter();
    let inside = inside.take_while(|range| range.start < area.end);
    let parts = inside.map(|range| range.start.max(area.start)..range.end.min(area.end));
    parts.map(|part| space.count_resident(&part)).sum()
}

impl Ledger {
    /// `hakmem`: the addresses of its heap.
    pub fn of(space: &Space, heaps: &Heaps, numbers: &Numbers, hakmem: &[Range<u64>]) -> Ledger {
        let known = heaps.ranges();
        let mut hakmem_bytes = 0;
        let mut others = Others::default();
        let mut largest: BTreeMap<(u64, u64), Stretch> = BTreeMap::new();
        let mut stretches = 0;
        for (index, area) in space.areas.iter().enumerate() {
            let in_hakmem = within(space, hakmem, &area.range).min(area.resident_bytes);
            hakmem_bytes += in_hakmem;
            let rest = (area.resident_bytes - in_hakmem).saturating_sub(within(
                space,
                &known,
                &area.range,
            ));
            let before = index.checked_sub(1).map(|index| &space.areas[index]);
            let is_stack = area.is_guarded_stack(before, hakmem, space.page_bytes);
            if add(&mut others, area, is_stack, rest) && rest > 0 {
                stretches += 1;
                largest.insert(
                    (rest, area.range.start),
                    Stretch {
                        start: area.range.start,
                        bytes: area.range.end - area.range.start,
                        resident_bytes: rest,
                        name: shown(&area.name),
                    },
                );
                if largest.len() > LARGEST {
                    largest.pop_first();
                }
            }
        }
        let sums = AreaSums::of(&space.areas);
        let kernel_bytes = sums.resident_bytes;
        let figures = numbers.glibc.as_ref();
        let heap_bytes = figures.map_or(0, |figures| figures.total.resident.sum());
        let mapped_block_bytes = figures.map_or(0, |figures| figures.mapped.resident_bytes);
        let of_pieces = numbers.others.iter().map(|one| one.resident.sum());
        let other_heap_bytes = of_pieces.sum::<u64>();
        let all = heap_bytes + mapped_block_bytes + hakmem_bytes + other_heap_bytes + others.sum();
        Ledger {
            kernel_bytes,
            is_of_process: space.knows_pages(),
            heap_bytes,
            mapped_block_bytes,
            hakmem_bytes,
            other_heap_bytes,
            others,
            remainder_bytes: signed(kernel_bytes) - signed(all),
            huge_bytes: sums.huge_bytes,
            swapped_bytes: sums.swapped_bytes,
            lazily_freed_bytes: sums.lazily_freed_bytes,
            largest: largest.into_values().rev().collect(),
            stretches,
        }
    }
}

impl Ledger {
    /// In all known heaps.
    pub fn all_heap_bytes(&self) -> u64 {
        self.heap_bytes + self.mapped_block_bytes + self.hakmem_bytes + self.other_heap_bytes
    }
}

impl Others {
    pub fn sum(&self) -> u64 {
        self.file_pages + self.file_copies + self.shared + self.stacks + self.mapped + self.by_break
    }
}

/// Adds the unknown `rest` of an area to its kind. True if the program has mapped the area itself.
fn add(others: &mut Others, area: &Counted, is_stack: bool, rest: u64) -> bool {
    let name = &area.name[..];
    let target = if area.is_shared_memory() {
        &mut others.shared
    } else if name.starts_with(b"/") || name.starts_with(b"[v") {
        let copies = area.anonymous_bytes.min(rest);
        others.file_copies += copies;
        others.file_pages += rest - copies;
        return false;
    } else if name.starts_with(b"[stack") || is_stack {
        &mut others.stacks
    } else if name == b"[heap]" {
        &mut others.by_break
    } else {
        others.mapped += rest;
        return true;
    };
    *target += rest;
    false
}
