//! What is noted of each page of a region that is there.

use super::chunks::{Chunk, Kind, LINKS};
use crate::present::Present;
use crate::space::Space;
use std::ops::Range;

/// What chunks are multiples of.
const UNIT: u64 = 16;
/// No chunk begins in the page.
const NONE: u16 = u16::MAX;
/// In `other`: the page has the links of a free chunk, and would stay therefore.
const HAS_LINKS: u16 = 1 << 15;
/// A part of so many pages is looked at one by one, absent ones too.
const FEW: usize = 8;

/// What of a page is what, in units. There are as many as resident pages: it has to be small.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// Where in it the first chunk begins.
    first: u16,
    live: u16,
    /// In caches of threads.
    cached: u16,
    /// The allocator's own, the last chunk, or unclear.
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
    /// Where in the page the first chunk begins.
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

    /// All that is not free.
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

    /// What was taken for live is something else.
    pub fn take_back(&mut self, bytes: u32, is_cached: bool) {
        let taken = units(bytes).min(self.live); // less, where a chain leads to nonsense
        self.live -= taken;
        if is_cached {
            self.cached = self.cached.saturating_add(taken);
        }
    }
}

/// Where a region's pages are, and which of them are there.
pub struct Layout {
    start: u64,
    page_bytes: u64,
    /// The same as a power of two: there is a division for each chunk.
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

    /// Each page of a part that is there: its number, its place among all that are, and how many bytes of the part lie on it.
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

    /// Note a chunk; `notes` begin with that of the page whose place is `first`. The last chunk is not in use.
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
                add(note, u32::try_from(bytes).unwrap_or(u32::MAX)); // as most chunks are
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
