//! Large blocks with mappings of their own (mmapped chunks). The mapping begins with the block's header; adjacent mappings may
//! look like a single one.

use super::arena::HEAP_MOST;
use super::chunks::HEAD;
use crate::sizes::Sizes;
use crate::space::Space;
use hakmem_heap::memory::Wanted;
use serde::Serialize;
use std::ops::Range;

const OWN_MAPPING: u64 = 2;
const FLAGS: u64 = 7;
/// How many pages without a block to look at, in all mappings together.
const PAGES_MOST: usize = 1 << 19;
const BATCH: usize = 512;

#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
pub struct Block {
    pub start: u64,
    pub bytes: u64,
    pub resident_bytes: u64,
    /// Only its header shows that it is a block: no mapping and no other block begins or ends with it.
    pub is_alone: bool,
}

#[derive(Default)]
pub struct Mapped {
    pub sizes: Sizes,
    pub resident_bytes: u64,
    /// Sorted by address.
    pub blocks: Vec<Block>,
}

/// The mapping's size, from a block's header. Since glibc 2.43, the size does not include the header, and a flag precedes it.
fn mapping_bytes(before: u64, size: u64, page_bytes: u64) -> Option<u64> {
    let bytes = size & !FLAGS;
    let head = if bytes % page_bytes == 0 { 0 } else { HEAD };
    let bytes = bytes.checked_add(head)?;
    let is_one = before <= 1 && size & FLAGS == OWN_MAPPING && bytes > 0 && bytes % page_bytes == 0;
    is_one.then_some(bytes)
}

/// Finds all mmapped blocks outside of `taken`, which is sorted.
pub fn find(space: &Space, taken: &[Range<u64>]) -> Mapped {
    let mut found = Mapped::default();
    let mut left = PAGES_MOST;
    for stretch in &space.stretches {
        if stretch.name.is_empty() || stretch.name.starts_with(b"[anon") {
            for gap in gaps(&stretch.range, taken) {
                find_in(space, &gap, &mut found, &mut left);
            }
        }
    }
    found
}

impl Mapped {
    /// Drops blocks with `is_alone`, the largest first, as long as the total stays at or above the allocator's own.
    pub fn settle(&mut self, told_bytes: u64) {
        let mut alone: Vec<Block> = self
            .blocks
            .iter()
            .copied()
            .filter(|one| one.is_alone)
            .collect();
        alone.sort_unstable_by_key(|block| std::cmp::Reverse(block.bytes));
        for block in alone {
            if self.sizes.bytes >= told_bytes.saturating_add(block.bytes) {
                self.sizes.take(block.bytes);
                self.resident_bytes -= block.resident_bytes;
                self.blocks.retain(|one| *one != block);
            }
        }
    }
}

/// The parts of a range outside of `taken`.
fn gaps(range: &Range<u64>, taken: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut at = range.start;
    let first = taken.partition_point(|taken| taken.end <= range.start);
    for taken in &taken[first..] {
        if taken.start >= range.end {
            break;
        }
        found.push(at..taken.start);
        at = taken.end;
    }
    found.push(at..range.end);
    found.retain(|gap| gap.start < gap.end);
    found
}

fn find_in(space: &Space, range: &Range<u64>, found: &mut Mapped, left: &mut usize) {
    let mut pages = space.places(range, space.page_bytes);
    let mut batch: Vec<u64> = Vec::new();
    let mut is_expected = true; // at the end of a mapping or of a block, another one may begin
    while *left > 0 {
        let count = if is_expected { 1 } else { BATCH }.min(*left);
        let more = count.saturating_sub(batch.len());
        batch.extend(pages.by_ref().take(more));
        let looked_at = &batch[..count.min(batch.len())];
        if looked_at.is_empty() {
            return;
        }
        let hit = first_block(space, looked_at, range.end);
        let was_expected = is_expected;
        is_expected = hit.is_some();
        match hit {
            Some(block) => {
                let bytes = block.end - block.start;
                let agrees = was_expected
                    || block.end == range.end
                    || block_at(space, block.end, range.end).is_some();
                let resident_bytes = space.count_resident(&block);
                found.sizes.add(bytes);
                found.resident_bytes += resident_bytes;
                found.blocks.push(Block {
                    start: block.start,
                    bytes,
                    resident_bytes,
                    is_alone: !agrees,
                });
                batch.retain(|page| *page >= block.end);
                pages.skip_to(block.end);
            }
            None => {
                *left -= looked_at.len();
                batch.drain(..count.min(batch.len()));
            }
        }
    }
}

/// The size of the block that begins there, if it ends within the same mapping.
fn block_at(space: &Space, start: u64, end: u64) -> Option<u64> {
    let before = space.word(start)?;
    let bytes = mapping_bytes(before, space.word(start + 8)?, space.page_bytes)?;
    (bytes <= end - start).then_some(bytes)
}

/// The first block that begins at one of these pages and ends within the same mapping.
fn first_block(space: &Space, batch: &[u64], end: u64) -> Option<Range<u64>> {
    let mut heads = vec![[0; 16]; batch.len()];
    let mut wanted: Vec<Wanted> = batch
        .iter()
        .zip(&mut heads)
        .map(|(page, head)| Wanted::new(*page, head))
        .collect();
    space.memory().read_many(&mut wanted);
    let word = |word: &[u8]| u64::from_le_bytes(word.try_into().unwrap_or_default());
    batch.iter().zip(&heads).find_map(|(page, head)| {
        let bytes = mapping_bytes(word(&head[..8]), word(&head[8..]), space.page_bytes)?;
        let fits = bytes <= end - page && bytes < HEAP_MOST << 20;
        fits.then(|| *page..page + bytes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_left_out() {
        let taken = [0..3, 5..6, 8..9, 20..30];
        assert_eq!(gaps(&(2..10), &taken), [3..5, 6..8, 9..10]);
        assert_eq!(gaps(&(10..15), &taken).len(), 1);
        assert_eq!(gaps(&(20..30), &taken), []);
    }

    #[test]
    fn what_only_looks_like_a_block_goes_when_there_are_too_many() {
        let block = |start, bytes, is_alone| Block {
            start,
            bytes,
            resident_bytes: bytes,
            is_alone,
        };
        let mut mapped = Mapped::default();
        for one in [
            block(0, 50, false),
            block(100, 20, true),
            block(200, 30, true),
        ] {
            mapped.sizes.add(one.bytes);
            mapped.resident_bytes += one.bytes;
            mapped.blocks.push(one);
        }
        mapped.settle(75);
        assert_eq!((mapped.blocks.len(), mapped.sizes.bytes), (2, 80));
        mapped.settle(70);
        assert_eq!(mapped.resident_bytes, 80);
        mapped.settle(50);
        assert_eq!((mapped.blocks.len(), mapped.resident_bytes), (1, 50));
    }

    #[test]
    fn heads_of_all_releases_are_known() {
        assert_eq!(mapping_bytes(0, 0x21002, 4096), Some(0x21000));
        assert_eq!(mapping_bytes(1, 0x20ff2, 4096), Some(0x21000));
        assert_eq!(mapping_bytes(0, 0x21003, 4096), None);
        assert_eq!(mapping_bytes(0, 2, 4096), None);
        assert_eq!(mapping_bytes(0, 0x21012, 4096), None);
        assert_eq!(mapping_bytes(0, u64::MAX - 5, 4096), None);
    }
}
