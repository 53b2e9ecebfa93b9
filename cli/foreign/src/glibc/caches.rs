//! Thread caches and fast bins: their chunks are free, but still marked as used.
//!
//! A thread's cache (tcache) is itself a chunk of the heap. It is recognised by its size and content: counts, and for each
//! count that is not zero the address of a chunk of the right size, which links to the next one.

use super::arena::HEAP_MOST;
use super::chunks::{HEAD, LEAST};
use crate::space::Space;

/// The longest list that is trusted.
const CHAIN_MOST: usize = 1 << 18;
const COUNT_BYTES: u64 = 2;
/// The first bins have one size each, in steps of 16 bytes from 32 on. Since glibc 2.42, bins for size ranges follow.
const EXACT_BINS: u64 = 64;
/// The largest chunk of a fast bin that mallopt allows.
const FAST_MOST: u64 = 0xb0;

/// A chunk in a cache or a fast bin.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub chunk: u64,
    pub bytes: u64,
}

/// What the counts are: chunks that are there (until glibc 2.41), or chunks for which there is room.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counts {
    Kept,
    Room,
}

/// The chunks in a thread's cache, if the chunk at user address `address` is one.
pub fn read(space: &Space, address: u64, chunk_bytes: u64) -> Option<Vec<Kept>> {
    let (bins, counts) = match chunk_bytes {
        0x290 => (EXACT_BINS, Counts::Kept),
        _ => (76, Counts::Room),
    };
    let mut content = vec![0; usize::try_from(bins * (COUNT_BYTES + 8)).ok()?];
    if !space.read(address, &mut content) {
        return None;
    }
    let (first, second) = content.split_at(usize::try_from(bins * COUNT_BYTES).ok()?);
    let count = |two: &[u8]| u64::from(u16::from_le_bytes([two[0], two[1]]));
    let numbers: Vec<u64> = first.chunks_exact(2).map(count).collect();
    let word = |word: &[u8]| u64::from_le_bytes(word.try_into().unwrap_or_default());
    let heads: Vec<u64> = second.chunks_exact(8).map(word).collect();
    if !agree(&numbers, &heads, counts) {
        return None;
    }
    let mut found = Vec::new();
    for (bin, head) in heads.iter().enumerate().filter(|(_, head)| **head != 0) {
        let bin = bin as u64;
        let expected = (bin < EXACT_BINS).then_some(LEAST + bin * 16);
        let chain = chain(space, *head, HEAD, expected);
        if chain.is_empty() {
            return None; // the first entry is not a chunk
        }
        found.extend(chain);
    }
    (!found.is_empty()).then_some(found)
}

fn agree(numbers: &[u64], heads: &[u64], counts: Counts) -> bool {
    let are_aligned = heads.iter().all(|head| head % 16 == 0);
    let pairs = numbers.iter().zip(heads);
    are_aligned
        && match counts {
            Counts::Kept => pairs
                .into_iter()
                .all(|(count, head)| (*count == 0) == (*head == 0)),
            Counts::Room => {
                let all = numbers.iter().copied().max().unwrap_or(0);
                pairs
                    .into_iter()
                    .all(|(room, head)| *head != 0 || *room == all || *room == 0)
            }
        }
}

/// Follows a list of chunks. Since glibc 2.32, a link is combined with its own address by xor. Links point `ahead` bytes behind
/// a chunk's start.
fn chain(space: &Space, first: u64, ahead: u64, expected: Option<u64>) -> Vec<Kept> {
    let mut found = Vec::new();
    let mut next = chunk_at(space, first, ahead, expected);
    while let Some((kept, link)) = next {
        found.push(kept);
        if found.len() == CHAIN_MOST {
            break;
        }
        let plain = link ^ ((kept.chunk + HEAD) >> 12);
        next = match (plain, link) {
            (0, _) | (_, 0) => None,
            _ => chunk_at(space, plain, ahead, expected)
                .or_else(|| chunk_at(space, link, ahead, expected)),
        };
    }
    found
}

/// A chunk and its link to the next one.
fn chunk_at(space: &Space, at: u64, ahead: u64, expected: Option<u64>) -> Option<(Kept, u64)> {
    let chunk = at.checked_sub(ahead)?;
    let mut content = [0; 16];
    if at % 16 != 0 || !space.read(chunk.checked_add(8)?, &mut content) {
        return None;
    }
    let (size, link) = content.split_at(8);
    let word = |word: &[u8]| u64::from_le_bytes(word.try_into().unwrap_or_default());
    let bytes = word(size) & !7;
    let fits = match expected {
        Some(expected) => bytes == expected,
        None => bytes >= LEAST && bytes % 16 == 0 && bytes < HEAP_MOST,
    };
    fits.then_some((Kept { chunk, bytes }, word(link)))
}

/// The chunks of a fast bin.
pub fn read_fast(space: &Space, first: u64) -> Vec<Kept> {
    let bytes = chunk_at(space, first, 0, None).map(|(kept, _)| kept.bytes);
    match bytes {
        Some(bytes) if bytes <= FAST_MOST => chain(space, first, 0, Some(bytes)),
        _ => Vec::new(),
    }
}
