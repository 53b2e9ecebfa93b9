//! Release 2: segments of 32 MiB with slices of 64 KiB. A segment begins with descriptors of all its slices. A page is one
//! slice or several.

use super::{Blocks, SLICE_BYTES, heap, piece};
use crate::pieces::{Heap, Holds, Piece};
use crate::space::Space;
use crate::window::Window;
use std::ops::Range;

const ALIGNMENT: u64 = 32 << 20;
const SLICES: u64 = ALIGNMENT / SLICE_BYTES;
/// The offsets at which the slices' descriptors may begin.
const HEAD: Range<u64> = 128..512;
/// The most slices that a segment uses itself.
const OWN_MOST: u64 = 64;
/// From here on, the block size is only a lower bound.
const HUGE_BLOCK: u64 = 1 << 31;
const SEGMENTS_MOST: usize = 1 << 18;

/// The layout of a slice's descriptor, which differs between releases.
#[derive(Clone, Copy)]
struct Layout {
    bytes: u64,
    used_at: u64,
    /// The width of the field in bits.
    used_bits: u32,
    block_at: u64,
    block_bits: u32,
    releases: &'static str,
}

const LAYOUTS: [Layout; 2] = [
    Layout {
        bytes: 80,
        used_at: 24,
        used_bits: 32,
        block_at: 28,
        block_bits: 32,
        releases: "2.0 and 2.1",
    },
    Layout {
        bytes: 96,
        used_at: 32,
        used_bits: 16,
        block_at: 40,
        block_bits: 64,
        releases: "2.1 and newer",
    },
];

struct Segment {
    start: u64,
    /// The offset of the slices' descriptors.
    slices_at: u64,
    slices: u64,
    own: u64,
}

pub fn read(space: &Space) -> Option<Heap> {
    let segments = find(space);
    let each = LAYOUTS.iter().map(|layout| {
        let mut pieces = Vec::new();
        let unclear = segments
            .iter()
            .map(|segment| u64::from(!read_segment(space, segment, *layout, &mut pieces)));
        (unclear.sum::<u64>(), layout, pieces)
    });
    let (unclear, layout, pieces) = each.min_by_key(|(unclear, ..)| *unclear)?;
    let is_one = !segments.is_empty() && unclear < segments.len() as u64;
    is_one.then(|| heap(space, layout.releases, pieces, 0, unclear))
}

fn find(space: &Space) -> Vec<Segment> {
    let mut found = Vec::new();
    for stretch in &space.stretches {
        let mut starts = space.places(&stretch.range, ALIGNMENT);
        while let Some(start) = starts.next().filter(|_| found.len() < SEGMENTS_MOST) {
            if let Some(segment) = segment_at(space, start, stretch.range.end) {
                starts.skip_to(start + segment.slices * SLICE_BYTES);
                found.push(segment);
            }
        }
    }
    found
}

/// Before the slices' descriptors: the number of slices, the number of its own slices, the kind, the number of descriptors, and
/// the thread. The first slice is the segment's own.
fn segment_at(space: &Space, start: u64, end: u64) -> Option<Segment> {
    let mut window = head_of(space, start, end)?;
    HEAD.step_by(8).find_map(|slices_at| {
        let mut word = |back: u64| window.word(start + slices_at - back);
        let (own, slices) = (word(32)?, word(40)?);
        let is_one = (1..=OWN_MOST).contains(&own)
            && slices > own
            && slices <= (end - start) / SLICE_BYTES
            && word(24)? & 0xffff_ffff <= 1
            && word(16)? == slices.min(SLICES)
            && word(0)? == own;
        is_one.then_some(Segment {
            start,
            slices_at,
            slices,
            own,
        })
    })
}

fn head_of<'a>(space: &'a Space, start: u64, end: u64) -> Option<Window<'a>> {
    let range = start..end.min(start + SLICE_BYTES);
    Some(Window::new(space, range)).filter(|_| end - start >= SLICE_BYTES)
}

/// False if the slices contradict each other; then the rest of the segment is unknown.
fn read_segment(space: &Space, segment: &Segment, layout: Layout, pieces: &mut Vec<Piece>) -> bool {
    let end = segment.start + segment.slices * SLICE_BYTES;
    let Some(mut window) = head_of(space, segment.start, end) else {
        return false;
    };
    let at = |slice: u64| segment.start + slice * SLICE_BYTES;
    pieces.push(piece(at(0)..at(segment.own), Holds::Own));
    let described = segment.slices.min(SLICES);
    let mut slice = segment.own;
    while slice < described {
        let Some((count, blocks)) = read_slice(&mut window, segment, slice, layout) else {
            return false;
        };
        // A huge page has more slices than descriptors.
        let is_huge = blocks.is_some_and(|blocks| blocks.room == 1);
        let most = if is_huge { segment.slices } else { described };
        if slice + count > most {
            return false;
        }
        let range = at(slice)..at(slice + count);
        let Some(holds) = holds(blocks, &range) else {
            return false;
        };
        pieces.push(piece(range, holds));
        slice += count;
    }
    true
}

fn holds(blocks: Option<Blocks>, range: &Range<u64>) -> Option<Holds> {
    let all = range.end - range.start;
    let Some(mut blocks) = blocks else {
        return Some(Holds::Free);
    };
    if blocks.room == 1 && blocks.bytes >= HUGE_BLOCK {
        blocks.bytes = blocks.bytes.min(all);
    }
    blocks.agree(all).then(|| blocks.holds())
}

/// The number of slices of the page that begins there, and its blocks, if it is not free.
fn read_slice(
    window: &mut Window,
    segment: &Segment,
    slice: u64,
    layout: Layout,
) -> Option<(u64, Option<Blocks>)> {
    let start = segment.start + segment.slices_at + slice * layout.bytes;
    let mut field = |at: u64, bits: u32| {
        let word = window.word(start + at - at % 8)? >> (at % 8 * 8);
        Some(if bits == 64 {
            word
        } else {
            word & ((1 << bits) - 1)
        })
    };
    let (count, offset) = (field(0, 32)?, field(4, 32)?);
    if count == 0 || offset != 0 {
        return None;
    }
    let blocks = Blocks {
        bytes: field(layout.block_at, layout.block_bits)?,
        used: field(layout.used_at, layout.used_bits)?,
        capacity: field(10, 16)?,
        room: field(12, 16)?,
    };
    Some((count, (blocks.bytes > 0).then_some(blocks)))
}
