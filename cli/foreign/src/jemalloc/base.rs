//! Finds the blocks that contain jemalloc's own metadata; each consists of whole huge pages.

use crate::space::{Space, word_at};
use hakmem_heap::memory::Wanted;
use std::ops::Range;

const HUGE_BYTES: u64 = 2 << 20;
const HEAD_BYTES: usize = 40;
/// The arena field of a descriptor that belongs to no arena: all bits are set.
const OF_NO_ARENA: u64 = 0xfff;
const AT_A_TIME: usize = 512;
const BLOCKS_MOST: usize = 1 << 16;

/// Sorted by address.
pub fn find(space: &Space) -> Vec<Range<u64>> {
    let mut found: Vec<Range<u64>> = Vec::new();
    for stretch in &space.stretches {
        let mut all = space.places(&stretch.range, HUGE_BYTES);
        while found.len() < BLOCKS_MOST {
            let places: Vec<u64> = all.by_ref().take(AT_A_TIME).collect();
            if places.is_empty() {
                break;
            }
            for block in blocks_at(space, &places, stretch.range.end) {
                if found.last().is_none_or(|last| last.end <= block.start) {
                    found.push(block);
                }
            }
        }
    }
    found
}

fn blocks_at(space: &Space, places: &[u64], end: u64) -> Vec<Range<u64>> {
    let mut heads = vec![[0; HEAD_BYTES]; places.len()];
    let mut wanted: Vec<Wanted> = places
        .iter()
        .zip(&mut heads)
        .map(|(place, head)| Wanted::new(*place, head))
        .collect();
    space.memory().read_many(&mut wanted);
    let blocks = places
        .iter()
        .zip(&heads)
        .filter_map(|(place, head)| block(*place, head, end));
    blocks.collect()
}

/// A block begins with its size, the next block, and a descriptor of its unused part, which ends where the block does.
fn block(place: u64, head: &[u8], end: u64) -> Option<Range<u64>> {
    let word = |index: usize| word_at(head, index * 8);
    let [bytes, next, bits, unused, unused_bytes] = [0, 1, 2, 3, 4].map(word);
    let is_block = bytes > 0
        && bytes % HUGE_BYTES == 0
        && bytes <= end - place
        && next % HUGE_BYTES == 0
        && bits & OF_NO_ARENA == OF_NO_ARENA
        && unused > place
        && unused.checked_add(unused_bytes) == Some(place + bytes);
    is_block.then(|| place..place + bytes)
}
