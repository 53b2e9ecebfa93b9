//! Release 3.4 and newer: descriptors of pages are separate from their blocks. Each chunk of 256 MiB of an arena begins with an
//! entry for each slice of 64 KiB; an entry's first word points to the descriptor of the slice's page.

use super::{Blocks, SLICE_BYTES, heap, piece};
use crate::pieces::{Heap, Holds, Piece};
use crate::space::{Space, word_at};
use crate::window::Window;
use hakmem_heap::memory::Wanted;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;

const ENTRIES: u64 = 4096;
const ENTRY_BYTES: u64 = 128;
const DESCRIPTION_BYTES: usize = 128;
const CHUNK_BYTES: u64 = ENTRIES * SLICE_BYTES;
/// The memory kind of pages in an arena.
const OF_ARENA: u64 = 6;
const ARENA_HEAD_BYTES: usize = 64;

#[derive(Default)]
struct Found {
    pieces: Vec<Piece>,
    /// By the address of the arena's structure: its range, and how many bytes of it are its own.
    arenas: BTreeMap<u64, (Range<u64>, u64)>,
    unclear: u64,
}

pub fn read(space: &Space) -> Option<Heap> {
    let mut found = Found::default();
    for stretch in &space.stretches {
        let mut chunk = stretch.range.start.next_multiple_of(CHUNK_BYTES);
        while chunk < stretch.range.end {
            read_chunk(space, chunk, &stretch.range, &mut found);
            chunk += CHUNK_BYTES;
        }
    }
    if found.arenas.is_empty() {
        return None;
    }
    let arenas = found.arenas.len() as u64;
    let own = found.arenas.values();
    let own = own.map(|(whole, own)| piece(whole.start..whole.start + own, Holds::Own));
    let mut pieces: Vec<Piece> = own.chain(found.pieces).collect();
    pieces.sort_by_key(|piece| piece.range.start);
    let free: Vec<Piece> = found
        .arenas
        .values()
        .flat_map(|(whole, _)| gaps(whole, &pieces))
        .map(|gap| piece(gap, Holds::Free))
        .collect();
    pieces.extend(free);
    Some(heap(space, "3.4 and newer", pieces, arenas, found.unclear))
}

/// The parts of an arena without a page. `pieces` is sorted.
pub(super) fn gaps(whole: &Range<u64>, pieces: &[Piece]) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut at = whole.start;
    let first = pieces.partition_point(|piece| piece.range.end <= whole.start);
    let inside = pieces[first..].iter();
    for piece in inside.take_while(|piece| piece.range.start < whole.end) {
        found.push(at..piece.range.start);
        at = at.max(piece.range.end);
    }
    found.push(at..whole.end);
    found.retain(|gap| gap.start < gap.end);
    found
}

/// Adds the pages that begin in a chunk, from its entries.
fn read_chunk(space: &Space, chunk: u64, stretch: &Range<u64>, found: &mut Found) {
    let entries = chunk..(chunk + ENTRIES * ENTRY_BYTES).min(stretch.end);
    let mut window = Window::new(space, entries.clone());
    let mut wanted: Vec<(u64, u64)> = Vec::new();
    for entry in space.places(&entries, ENTRY_BYTES) {
        let slice = (entry - chunk) / ENTRY_BYTES;
        let description = window.word(entry).unwrap_or(0);
        let is_new = wanted.last().is_none_or(|(_, last)| *last != description);
        if is_new && description % 64 == 0 && stretch.contains(&description) {
            wanted.push((slice, description));
        }
    }
    let mut contents = vec![[0; DESCRIPTION_BYTES]; wanted.len()];
    let mut reads: Vec<Wanted> = wanted
        .iter()
        .zip(&mut contents)
        .map(|((_, description), content)| Wanted::new(*description, content))
        .collect();
    space.memory().read_many(&mut reads);
    for ((slice, _), content) in wanted.iter().zip(&contents) {
        let start = chunk + slice * SLICE_BYTES;
        add_page(space, start, *slice, content, stretch, found);
    }
}

fn add_page(
    space: &Space,
    start: u64,
    slice: u64,
    content: &[u8],
    stretch: &Range<u64>,
    found: &mut Found,
) {
    let [arena, place, kind] = [104, 112, 120].map(|at| word_at(content, at));
    let (index, count) = (place & 0xffff_ffff, place >> 32);
    let end = start.saturating_add(count * SLICE_BYTES);
    if kind & 0xff != OF_ARENA || index % ENTRIES != slice || count == 0 || end > stretch.end {
        return;
    }
    if let Entry::Vacant(new) = found.arenas.entry(arena) {
        let Some(read) = read_arena(space, arena, stretch) else {
            return;
        };
        new.insert(read);
    }
    let half = |at: usize| word_at(content, at) & 0xffff;
    let blocks = Blocks {
        bytes: word_at(content, 32),
        used: half(40),
        capacity: half(56),
        room: half(58),
    };
    if blocks.bytes > 0 && blocks.agree(end - start) {
        found.pieces.push(piece(start..end, blocks.holds()));
    } else {
        found.unclear += 1;
    }
}

/// The arena's range and the size of its own part, if there is an arena here.
fn read_arena(space: &Space, arena: u64, stretch: &Range<u64>) -> Option<(Range<u64>, u64)> {
    let mut content = [0; ARENA_HEAD_BYTES];
    if !space.read(arena, &mut content) {
        return None;
    }
    let [start, slices, own] = [40, 48, 56].map(|at| word_at(&content, at));
    let bytes = slices.checked_mul(SLICE_BYTES)?;
    let end = start.checked_add(bytes)?;
    let is_one = start % CHUNK_BYTES == 0
        && (start..end).contains(&arena)
        && own > 0
        && own < slices
        && stretch.start <= start
        && end <= stretch.end;
    is_one.then(|| (start..end, own * SLICE_BYTES))
}
