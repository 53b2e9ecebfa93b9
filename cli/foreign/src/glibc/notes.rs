//! What is recorded about each present page of a region.

use super::chunks::{Chunk, Kind, LINKS};
use crate::present::Present;
use crate::space::Space;
use std::ops::Range;

/// The alignment of chunks.
const UNIT: u64 = 16;
/// No chunk begins in the page.
const NONE: u16 = u16::MAX;
/// In `other`: the page contains the links of a free chunk, so a trim would leave it resident.
const HAS_LINKS: u16 = 1 << 15;
/// For a part with at most this many pages, each page is looked at, absent ones too.
const FEW: usize = 8;

/// How many units of a page are of which kind. There is one per present page, so it is small.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// Where on the page the first chunk begins.
    first: u16,
    live: u16,
    /// In thread caches.
    cached: u16,
    /// The allocator's own, the top chunk, or unclear.
    other: u16,
}

impl Default for Note {
    fn default() -> Note {
        Note {
            first: NONE,
            live: 0,
            cached: 0,
            other: 0,
        }
    }
}

fn units(bytes: u32) -> u16 {
    u16::try_from(u64::from(bytes) / UNIT).unwrap_or(HAS_LINKS - 1)
}

impl Note {
    /// Where on the page the first chunk begins.
    pub fn first(&self) -> Option<u64> {
        (self.first != NONE).then(|| u64::from(self.first) * UNIT)
    }

    pub fn live(&self) -> u64 {
        u64::from(self.live) * UNIT
    }

    pub fn cached(&self) -> u64 {
        u64::from(self.cached) * UNIT
    }

    pub fn other(&self) -> u64 {
        u64::from(self.other & !HAS_LINKS) * UNIT
    }

    pub fn has_links(&self) -> bool {
        self.other & HAS_LINKS != 0
    }

    /// Everything that is not free.
    pub fn known(&self) -> u64 {
        self.live() + self.cached() + self.other()
    }

    fn begins_at(&mut self, offset: u64) {
        let at = u16::try_from(offset / UNIT).unwrap_or(NONE);
        self.first = self.first.min(at);
    }

    fn add_live(&mut self, bytes: u32) {
        self.live = self.live.saturating_add(units(bytes));
    }

    pub fn add_other(&mut self, bytes: u32) {
        let sum = (self.other & !HAS_LINKS).saturating_add(units(bytes));
        self.other = sum.min(HAS_LINKS - 1) | self.other & HAS_LINKS;
    }

    /// Corrects bytes that were counted as live.
    pub fn take_back(&mut self, bytes: u32, is_cached: bool) {
        let taken = units(bytes).min(self.live); // fewer, if a list leads to invalid chunks
        self.live -= taken;
        if is_cached {
            self.cached = self.cached.saturating_add(taken);
        }
    }
}

/// The pages of a region, and which of them are present.
pub struct Layout {
    start: u64,
    page_bytes: u64,
    /// The page size as a power of two, for a fast division per chunk.
    shift: u32,
    pub present: Present,
}

impl Layout {
    pub fn of(space: &Space, range: &Range<u64>) -> Layout {
        Layout {
            start: range.start,
            page_bytes: space.page_bytes,
            shift: space.page_bytes.trailing_zeros(),
            present: Present::of(space, range),
        }
    }

    pub fn page_of(&self, address: u64) -> usize {
        usize::try_from((address - self.start) >> self.shift).unwrap_or(usize::MAX)
    }

    pub fn address_of(&self, page: usize) -> u64 {
        self.start + page as u64 * self.page_bytes
    }

    /// Visits each present page of a part: its number, its index among present pages, and how many bytes of the part lie on it.
    #[inline]
    pub fn each(&self, part: &Range<u64>, mut visit: impl FnMut(usize, usize, u32)) {
        if part.start >= part.end {
            return;
        }
        let mut add = |page: usize| {
            if let Some(place) = self.present.place(page) {
                let start = self.address_of(page);
                let end = (start + self.page_bytes).min(part.end);
                let bytes = end - start.max(part.start);
                visit(page, place, u32::try_from(bytes).unwrap_or(u32::MAX));
            }
        };
        let pages = self.page_of(part.start)..self.page_of(part.end - 1) + 1;
        if pages.len() <= FEW {
            pages.for_each(add);
        } else {
            self.present.there(pages).for_each(&mut add);
        }
    }

    /// Records a chunk; `notes` begin at the page with index `first`. The top chunk does not count as used.
    pub fn note(&self, notes: &mut [Note], first: usize, chunk: &Chunk) {
        let page = self.page_of(chunk.address);
        let at = chunk.address - self.address_of(page);
        let bytes = match chunk.kind {
            Kind::Used => chunk.bytes,
            Kind::Free => LINKS.min(chunk.bytes),
            Kind::Top => 0,
        };
        let add = |note: &mut Note, bytes: u32| match chunk.kind {
            Kind::Used => note.add_live(bytes),
            Kind::Free => note.other |= HAS_LINKS,
            Kind::Top => {}
        };
        let is_inside = at + bytes <= self.page_bytes;
        let place = self.present.place(page);
        if let Some(note) = place.and_then(|place| note_at(notes, first, place)) {
            note.begins_at(at);
            if is_inside {
                add(note, u32::try_from(bytes).unwrap_or(u32::MAX)); // the case of most chunks
            }
        }
        if !is_inside {
            self.each(
                &(chunk.address..chunk.address + bytes),
                |_, place, bytes| {
                    if let Some(note) = note_at(notes, first, place) {
                        add(note, bytes);
                    }
                },
            );
        }
    }
}

fn note_at(notes: &mut [Note], first: usize, place: usize) -> Option<&mut Note> {
    notes.get_mut(place.checked_sub(first)?)
}
