//! A range of memory full of chunks, and what is in use on each of its pages.

use super::chunks::{self, HEAD, LEAST};
use super::notes::{Layout, Note};
use super::part::Found;
use crate::sizes::Sizes;
use crate::space::Space;
use crate::window::Window;
use hakmem_heap::resident::Page;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// How far to search for the first chunk: a static program keeps its thread's data before it.
const FIRST_MOST: u64 = 1 << 20;

pub struct Region {
    /// Begins and ends at page boundaries.
    pub range: Range<u64>,
    pub arena: usize,
    /// Where the first chunk begins; the end of `range` if none was found.
    pub first: u64,
    pub page_bytes: u64,
    pub layout: Arc<Layout>,
    /// One for each present page.
    pub notes: Vec<Note>,
    pub live: Sizes,
    pub free: Sizes,
    pub top: Option<Range<u64>>,
    /// The allocator's own structures.
    own: Vec<Range<u64>>,
    unclear: Vec<Range<u64>>,
    /// Whole pages between its parts, which others got by moving the break. Sorted by address.
    foreign: Vec<Range<u64>>,
    /// User addresses of chunks that may be a thread's cache.
    pub caches: Vec<u64>,
}

impl Region {
    pub fn new(space: &Space, range: Range<u64>, arena: usize) -> Region {
        let layout = Layout::of(space, &range);
        Region {
            notes: vec![Note::default(); layout.present.count],
            first: range.end,
            range,
            arena,
            page_bytes: space.page_bytes,
            layout: Arc::new(layout),
            live: Sizes::default(),
            free: Sizes::default(),
            top: None,
            own: Vec::new(),
            unclear: Vec::new(),
            foreign: Vec::new(),
            caches: Vec::new(),
        }
    }

    pub fn window<'a>(&self, space: &'a Space<'a>) -> Window<'a> {
        Window::with_layout(space, self.range.clone(), self.layout.clone())
    }

    /// The note of a page; `None` if the page is absent.
    pub fn note(&self, page: usize) -> Option<&Note> {
        self.notes.get(self.layout.present.place(page)?)
    }

    /// Every present page that is not foreign, with its note.
    fn there(&self) -> impl Iterator<Item = (usize, &Note)> {
        let all = self.layout.present.there(0..usize::MAX).zip(&self.notes);
        all.filter(|(page, _)| !self.is_foreign(self.layout.address_of(*page)))
    }

    fn is_foreign(&self, address: u64) -> bool {
        let after = self.foreign.partition_point(|part| part.start <= address);
        let before = after.checked_sub(1).map(|index| &self.foreign[index]);
        before.is_some_and(|part| part.contains(&address))
    }

    /// Its addresses, without foreign pages.
    pub fn parts(&self) -> Vec<Range<u64>> {
        let starts = self.foreign.iter().map(|part| part.end);
        let ends = self.foreign.iter().map(|part| part.start);
        let starts = [self.range.start].into_iter().chain(starts);
        let parts = starts.zip(ends.chain([self.range.end]));
        let parts = parts.map(|(start, end)| start..end);
        parts.filter(|part| !part.is_empty()).collect()
    }

    pub fn bytes(&self) -> u64 {
        sum(&self.parts())
    }

    /// The resident pages.
    pub fn resident_pages(&self) -> impl Iterator<Item = (usize, &Note)> {
        let is_resident = |page| self.layout.present.state(page) == Page::Resident;
        self.there().filter(move |(page, _)| is_resident(*page))
    }

    fn note_other(&mut self, part: &Range<u64>) {
        let notes = &mut self.notes;
        self.layout
            .each(part, |_, place, bytes| notes[place].add_other(bytes));
    }

    /// Corrects a chunk that was counted as live.
    pub fn take_back(&mut self, address: u64, bytes: u64, is_cached: bool) {
        let notes = &mut self.notes;
        self.layout
            .each(&(address..address + bytes), |_, place, bytes| {
                notes[place].take_back(bytes, is_cached);
            });
        self.live.take(bytes);
    }

    /// Adds the result of a walk over one part.
    pub fn take(&mut self, found: Found) {
        self.live.merge(&found.live);
        self.free.merge(&found.free);
        self.caches.extend(found.caches);
        for chunk in &found.beyond {
            self.layout.note(&mut self.notes, 0, chunk);
        }
        found.fenced.into_iter().for_each(|part| self.fenced(part));
        found
            .unclear
            .into_iter()
            .for_each(|part| self.unclear(part));
        if let Some(top) = found.top {
            self.note_other(&top);
            self.top = Some(top);
        }
    }

    /// Sets the first chunk; what precedes it is the allocator's own.
    pub fn begin(&mut self, first: u64) {
        self.first = first;
        self.own(self.range.start..first);
    }

    /// Finds the first chunk, at or behind `before`.
    pub fn find_first(&self, space: &Space, before: u64) -> Option<u64> {
        let mut window = self.window(space);
        let expected = before.next_multiple_of(HEAD);
        if chunks::begins_heap(&mut window, expected, self.range.end) {
            return Some(expected);
        }
        let end = self.range.end.min(before + FIRST_MOST);
        chunks::find_chain(&mut window, before, end, self.range.end, self.page_bytes)
    }

    /// Does it look like a heap? Used if nothing points to it.
    pub fn begins_with_chunks(space: &Space, range: &Range<u64>) -> bool {
        let mut window = Window::new(space, range.clone());
        let until = range.start + HEAD;
        chunks::find_chain(&mut window, range.start, until, range.end, space.page_bytes).is_some()
    }

    pub fn nothing_is_clear(&mut self) {
        self.unclear(self.range.clone());
    }

    fn own(&mut self, part: Range<u64>) {
        self.note_other(&part);
        self.own.push(part);
    }

    /// Adds what lies between a fencepost and the heap's next part.
    fn fenced(&mut self, part: Range<u64>) {
        let start = (part.start + 2 * HEAD).next_multiple_of(self.page_bytes);
        let end = part.end - part.end % self.page_bytes;
        if start >= end {
            return self.own(part);
        }
        self.own(part.start..start);
        self.own(end..part.end);
        self.note_other(&(start..end));
        self.foreign.push(start..end);
    }

    fn unclear(&mut self, part: Range<u64>) {
        self.note_other(&part);
        self.unclear.push(part);
    }

    pub fn own_bytes(&self) -> u64 {
        sum(&self.own)
    }

    pub fn unclear_bytes(&self) -> u64 {
        sum(&self.unclear)
    }

    /// Visits each resident page of a part, with how many bytes of the part lie on it.
    pub fn each_resident(&self, part: &Range<u64>, mut visit: impl FnMut(usize, u32)) {
        self.layout.each(part, |page, _, bytes| {
            if self.layout.present.state(page) == Page::Resident {
                visit(page, bytes);
            }
        });
    }

    fn resident_of(&self, part: &Range<u64>) -> u64 {
        let mut resident = 0;
        self.each_resident(part, |_, bytes| resident += u64::from(bytes));
        resident
    }

    /// The first page of the end of the region where only free chunks precede the top chunk. They merge with it as soon as fast
    /// bins are emptied, and a trim gives these pages back first.
    fn tail(&self) -> usize {
        let Some(top) = &self.top else {
            return usize::MAX;
        };
        let mut tail = self.layout.page_of(top.start);
        let is_in_use = |note: &Note| note.live() > 0 || note.cached() > 0;
        if self.note(tail).is_some_and(is_in_use) {
            return tail;
        }
        // An absent page does not count, whatever lies on it.
        for page in self.layout.present.there(0..tail).rev() {
            let note = self.note(page);
            if note.is_some_and(|note| is_in_use(note) || note.other() > 0) {
                break;
            }
            tail = page;
        }
        tail
    }

    /// What its resident pages contain. The sum is the size of all of them.
    pub fn resident(&self, is_main: bool) -> Resident {
        let mut found = Resident::default();
        let tail = if is_main { usize::MAX } else { self.tail() };
        let mut before = None;
        for (page, note) in self.there() {
            let known = note.known();
            let free = self.page_bytes.saturating_sub(known);
            let is_before_free = match before {
                Some((number, known)) if number + 1 == page => known == 0,
                // The page before is absent, so it lies within one chunk. That chunk is free, unless another one begins exactly
                // here: two free chunks are never adjacent.
                _ => page > 0 && note.first() != Some(0),
            };
            before = Some((page, known));
            // The links behind a free page belong to a chunk that merges with the one before it when fast bins are emptied.
            let goes = known == 0 && (!note.has_links() || is_before_free);
            if self.layout.present.state(page) == Page::Swapped {
                found.swapped += self.page_bytes;
                continue;
            }
            found.live += note.live();
            found.cached += note.cached();
            if known == 0 && page >= tail {
                found.top += free;
            } else if goes {
                found.free_pages += free;
            } else {
                found.free_beside += free;
            }
        }
        found.own = self.own.iter().map(|part| self.resident_of(part)).sum();
        found.unclear = self.unclear.iter().map(|part| self.resident_of(part)).sum();
        if let Some(top) = &self.top {
            found.top += self.resident_of(top);
            if is_main {
                let first = (top.start + LEAST + 1).next_multiple_of(self.page_bytes);
                found.top_to_trim = self.resident_of(&(first.min(top.end)..top.end));
            }
        }
        found
    }
}

fn sum(parts: &[Range<u64>]) -> u64 {
    parts.iter().map(|part| part.end - part.start).sum()
}

/// Resident bytes by kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Resident {
    pub live: u64,
    /// In thread caches.
    pub cached: u64,
    /// In whole free pages: malloc_trim gives them back.
    pub free_pages: u64,
    /// Free, on pages that are also used.
    pub free_beside: u64,
    /// In top chunks, from which others are split.
    pub top: u64,
    /// The part of `top` that malloc_trim gives back; only of the main arena.
    pub top_to_trim: u64,
    /// In the allocator's own structures.
    pub own: u64,
    pub unclear: u64,
    /// Swapped out, so not resident.
    pub swapped: u64,
}

impl Resident {
    pub fn sum(&self) -> u64 {
        self.live
            + self.cached
            + self.free_pages
            + self.free_beside
            + self.top
            + self.own
            + self.unclear
    }

    pub fn trim_bytes(&self) -> u64 {
        self.free_pages + self.top_to_trim
    }

    pub fn free(&self) -> u64 {
        self.cached + self.free_pages + self.free_beside + self.top
    }

    pub fn add(&mut self, other: &Resident) {
        self.live += other.live;
        self.cached += other.cached;
        self.free_pages += other.free_pages;
        self.free_beside += other.free_beside;
        self.top += other.top;
        self.top_to_trim += other.top_to_trim;
        self.own += other.own;
        self.unclear += other.unclear;
        self.swapped += other.swapped;
    }
}
