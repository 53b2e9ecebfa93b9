//! Release 3 before 3.4: an arena begins with its own structure. Descriptors of pages lie at the pages' starts (3.1), or in the
//! arena's own part (3.3). Each contains its arena and its page's place there.

use super::arenas::gaps;
use super::{Blocks, SLICE_BYTES, heap, piece};
use crate::pieces::{Heap, Holds, Piece};
use crate::space::{Space, Stretch, word_at};
use crate::window::Window;
use hakmem_heap::memory::Wanted;
use std::ops::Range;

const ARENA_LEAST: u64 = 32 << 20;
const ARENA_HEAD_BYTES: usize = 64;
/// Where an arena's memory comes from: the program, or the system.
const OF_OTHERS: std::ops::RangeInclusive<u64> = 1..=6;
const OF_ARENA: u64 = 7;
const DESCRIPTION_BYTES: usize = 120;
/// The offset of the arena's address in a descriptor.
const ARENA_AT: u64 = 96;
/// How many slices' starts to read at a time.
const BATCH: usize = 512;

struct Arena {
    start: u64,
    slices: u64,
    /// How many of the slices are its own.
    own: u64,
}

impl Arena {
    fn at(slice: u64, start: u64) -> u64 {
        start + slice * SLICE_BYTES
    }

    fn range(&self) -> Range<u64> {
        self.start..Arena::at(self.slices, self.start)
    }

    fn own(&self) -> Range<u64> {
        self.start..Arena::at(self.own, self.start)
    }
}

pub fn read(space: &Space) -> Option<Heap> {
    let mut pieces = Vec::new();
    let (mut arenas, mut unclear) = (0, 0);
    for stretch in &space.stretches {
        for arena in find(space, stretch) {
            arenas += 1;
            let mut of_arena = vec![piece(arena.own(), Holds::Own)];
            for description in descriptions(space, &arena) {
                match page(&description, &arena) {
                    Some(Ok(page)) => of_arena.push(page),
                    Some(Err(Unclear)) => unclear += 1,
                    None => {}
                }
            }
            of_arena.sort_by_key(|piece| piece.range.start);
            let free = gaps(&arena.range(), &of_arena);
            pieces.extend(free.into_iter().map(|gap| piece(gap, Holds::Free)));
            pieces.extend(of_arena);
        }
    }
    (arenas > 0).then(|| heap(space, "3.1 to 3.3", pieces, arenas, unclear))
}

/// The slices of a range whose first page is present, with the bytes at their starts.
fn starts<const BYTES: usize>(space: &Space, range: &Range<u64>) -> Vec<(u64, [u8; BYTES])> {
    let first = range.start.next_multiple_of(SLICE_BYTES);
    if first >= range.end {
        return Vec::new();
    }
    let places = space.places(&(first..range.end), SLICE_BYTES);
    let mut found: Vec<(u64, [u8; BYTES])> = places.map(|start| (start, [0; BYTES])).collect();
    for batch in found.chunks_mut(BATCH) {
        let mut wanted: Vec<Wanted> = batch
            .iter_mut()
            .map(|(start, content)| Wanted::new(*start, content))
            .collect();
        space.memory().read_many(&mut wanted);
    }
    found
}

fn find(space: &Space, stretch: &Stretch) -> Vec<Arena> {
    let mut found: Vec<Arena> = Vec::new();
    let bytes = stretch.range.end - stretch.range.start;
    if bytes < ARENA_LEAST || stretch.name == b"[heap]" {
        return found;
    }
    for (start, head) in starts::<ARENA_HEAD_BYTES>(space, &stretch.range) {
        let is_behind = found.last().is_none_or(|last| last.range().end <= start);
        if is_behind {
            found.extend(arena(start, &head, stretch.range.end));
        }
    }
    found
}

/// Parses an arena, if there is one. 3.3 has one more word before these fields.
fn arena(start: u64, head: &[u8], end: u64) -> Option<Arena> {
    let word = |index: usize| word_at(head, index * 8);
    let memory = word(0)..word(0).saturating_add(word(1));
    if !OF_OTHERS.contains(&(word(2) & 0xff)) {
        return None;
    }
    [4, 5].into_iter().find_map(|index| {
        let (slices, own) = (word(index), word(index + 1));
        let bytes = slices.checked_mul(SLICE_BYTES)?;
        let is_one = own > 0
            && own < slices
            && bytes >= ARENA_LEAST
            && start.checked_add(bytes)? <= end.min(memory.end)
            && memory.start <= start;
        is_one.then_some(Arena { start, slices, own })
    })
}

/// All candidates for descriptors of its pages.
fn descriptions(space: &Space, arena: &Arena) -> Vec<Vec<u8>> {
    let rest = arena.own().end..arena.range().end;
    let mut found: Vec<Vec<u8>> = starts::<DESCRIPTION_BYTES>(space, &rest)
        .into_iter()
        .map(|(_, content)| content.to_vec())
        .collect();
    let mut window = Window::new(space, arena.own());
    let mut at = arena.start + ARENA_AT;
    while at < arena.own().end {
        match window.word(at) {
            None => at = (at + 1).next_multiple_of(space.page_bytes),
            Some(word) => {
                let mut content = vec![0; DESCRIPTION_BYTES];
                if word == arena.start && space.read(at - ARENA_AT, &mut content) {
                    found.push(content);
                }
                at += 8;
            }
        }
    }
    found
}

/// The descriptor contradicts itself.
struct Unclear;

/// `None` if it is no descriptor, or describes a free page.
fn page(content: &[u8], arena: &Arena) -> Option<Result<Piece, Unclear>> {
    let [whose, place, kind] = [96, 104, 112].map(|at| word_at(content, at));
    let (index, count) = (place & 0xffff_ffff, place >> 32);
    let is_one = whose == arena.start
        && kind & 0xff == OF_ARENA
        && count > 0
        && index >= arena.own
        && index + count <= arena.slices;
    let bytes = word_at(content, 40);
    if !is_one || bytes == 0 {
        return None;
    }
    let range = Arena::at(index, arena.start)..Arena::at(index + count, arena.start);
    let half = |at: usize| word_at(content, at) & 0xffff;
    let blocks = Blocks {
        bytes,
        used: half(16),
        capacity: half(18),
        room: half(20),
    };
    let agrees = range.contains(&word_at(content, 48)) && blocks.agree(range.end - range.start);
    Some(match agrees {
        true => Ok(piece(range, blocks.holds())),
        false => Err(Unclear),
    })
}
