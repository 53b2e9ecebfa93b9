//! A stretch of memory full of chunks, with what of each of its pages is in use.

use super::chunks::{self, Chunk, Kind, LEAST, LINKS};
use super::part::Found;
use crate::sizes::Sizes;
use crate::space::Space;
use crate::window::Window;
use hakmem_heap::resident::Page;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::Arc;

/// The first chunk is sought so far: a static program keeps its thread's data before it.
const FIRST_MOST: u64 = 1 << 20;

/// No chunk begins in the page.
pub const NONE: u16 = u16::MAX;

/// What of a page is what.
#[derive(Clone, Copy, Debug)]
pub struct Note {
    /// Where in it the first chunk begins, in units of 16 bytes.
    pub first: u16,
    /// Has the links of a free chunk, and would stay therefore.
    pub has_links: bool,
    pub live: u32,
    /// In caches of threads.
    pub cached: u32,
    /// The allocator's own, the last chunk, or unclear.
    pub other: u32,
}

impl Default for Note {
    fn default() -> Note {
        Note {
            first: NONE,
            has_links: false,
            live: 0,
            cached: 0,
            other: 0,
        }
    }
}

pub struct Region {
    /// Begins and ends with a page.
    pub range: Range<u64>,
    pub arena: usize,
    /// Where the first chunk begins; at its end if none was found.
    pub first: u64,
    pub page_bytes: u64,
    pub pages: Arc<[Page]>,
    pub notes: Vec<Note>,
    pub live: Sizes,
    pub free: Sizes,
    pub top: Option<Range<u64>>,
    /// The allocator's own.
    own: Vec<Range<u64>>,
    unclear: Vec<Range<u64>>,
    /// User addresses of what may be a thread's cache.
    pub caches: Vec<u64>,
}

impl Region {
    pub fn new(space: &Space, range: Range<u64>, arena: usize) -> Region {
        let pages: Arc<[Page]> = space.pages(&range).into();
        Region {
            notes: vec![Note::default(); pages.len()],
            first: range.end,
            range,
            arena,
            page_bytes: space.page_bytes,
            pages,
            live: Sizes::default(),
            free: Sizes::default(),
            top: None,
            own: Vec::new(),
            unclear: Vec::new(),
            caches: Vec::new(),
        }
    }

    pub fn window<'a>(&self, space: &'a Space<'a>) -> Window<'a> {
        Window::with_pages(space, self.range.clone(), self.pages.clone())
    }

    pub fn page_of(&self, address: u64) -> usize {
        usize::try_from((address - self.range.start) / self.page_bytes).unwrap_or(usize::MAX)
    }

    /// Each page of a part of it, with how many bytes of the part lie there.
    pub(crate) fn each_page(
        &self,
        part: &Range<u64>,
    ) -> impl Iterator<Item = (usize, u32)> + use<> {
        each_page(self.range.start, self.page_bytes, part)
    }

    fn note_other(&mut self, part: &Range<u64>) {
        for (page, bytes) in self.each_page(part) {
            if let Some(note) = self.notes.get_mut(page) {
                note.other += bytes;
            }
        }
    }

    /// A chunk that was taken for live is something else.
    pub fn take_back(&mut self, address: u64, bytes: u64, is_cached: bool) {
        let part = address..address + bytes;
        for (page, bytes) in self.each_page(&part) {
            if let Some(note) = self.notes.get_mut(page) {
                let taken = bytes.min(note.live); // less, where a chain leads to nonsense
                note.live -= taken;
                if is_cached {
                    note.cached += taken;
                }
            }
        }
        self.live.take(bytes);
    }

    /// What a walk has found of a part of it.
    pub fn take(&mut self, found: Found) {
        self.live.merge(&found.live);
        self.free.merge(&found.free);
        self.caches.extend(found.caches);
        for chunk in &found.beyond {
            note_chunk(&mut self.notes, self.range.start, self.page_bytes, chunk);
        }
        found.own.into_iter().for_each(|part| self.own(part));
        found
            .unclear
            .into_iter()
            .for_each(|part| self.unclear(part));
        if let Some(top) = found.top {
            self.note_other(&top);
            self.top = Some(top);
        }
    }

    /// Before the first chunk, it is the allocator's.
    pub fn begin(&mut self, first: u64) {
        self.first = first;
        self.own(self.range.start..first);
    }

    /// Where the first chunk begins: not before `before`.
    pub fn find_first(&self, space: &Space, before: u64) -> Option<u64> {
        let mut window = self.window(space);
        let end = self.range.end.min(before + FIRST_MOST);
        chunks::find_chain(&mut window, before, end, self.range.end, self.page_bytes)
    }

    pub fn nothing_is_clear(&mut self) {
        self.unclear(self.range.clone());
    }

    fn own(&mut self, part: Range<u64>) {
        self.note_other(&part);
        self.own.push(part);
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

    /// The resident part of some bytes.
    fn resident_of(&self, part: &Range<u64>) -> u64 {
        let is_resident = |page: usize| self.pages.get(page) == Some(&Page::Resident);
        let pages = self.each_page(part).filter(|(page, _)| is_resident(*page));
        pages.map(|(_, bytes)| u64::from(bytes)).sum()
    }

    /// From which page on nothing is in use before the last chunk: free chunks there become a part of it as soon as fast bins
    /// are emptied, and what a trim empties first are these.
    fn tail(&self) -> usize {
        let Some(top) = &self.top else {
            return self.notes.len();
        };
        let mut page = self.page_of(top.start);
        let is_free = |page: usize| self.notes[page].live == 0 && self.notes[page].cached == 0;
        while page > 0 && is_free(page) && (is_free(page - 1) && self.notes[page - 1].other == 0) {
            page -= 1;
        }
        page
    }

    /// What its resident pages hold. The sum is all of them.
    pub fn resident(&self, is_main: bool) -> Resident {
        let mut found = Resident::default();
        let tail = if is_main {
            self.notes.len()
        } else {
            self.tail()
        };
        let mut is_before_free = false;
        for (index, (page, note)) in self.pages.iter().zip(&self.notes).enumerate() {
            let known = u64::from(note.live) + u64::from(note.cached) + u64::from(note.other);
            let free = self.page_bytes.saturating_sub(known);
            // Behind a free page the links are of a chunk that becomes one with that before it when fast bins are emptied.
            let goes = known == 0 && (!note.has_links || is_before_free);
            is_before_free = known == 0;
            match page {
                Page::Absent => continue,
                Page::Swapped => {
                    found.swapped += self.page_bytes;
                    continue;
                }
                Page::Resident => {}
            }
            found.live += u64::from(note.live);
            found.cached += u64::from(note.cached);
            if known == 0 && index >= tail {
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

fn each_page(
    base: u64,
    page_bytes: u64,
    part: &Range<u64>,
) -> impl Iterator<Item = (usize, u32)> + use<> {
    let (mut at, end) = (part.start, part.end);
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let page = (at - base) / page_bytes;
        let next = (base + (page + 1) * page_bytes).min(end);
        let bytes = next - at;
        at = next;
        Some((usize::try_from(page).ok()?, u32::try_from(bytes).ok()?))
    })
}

/// On the pages of `notes`, the first of which begins at `base`. The last chunk is not in use.
pub fn note_chunk(notes: &mut [Note], base: u64, page_bytes: u64, chunk: &Chunk) {
    let start = chunk.address - base;
    let page = usize::try_from(start / page_bytes).unwrap_or(usize::MAX);
    if let Some(note) = notes.get_mut(page) {
        let offset = start % page_bytes / 16;
        note.first = note.first.min(u16::try_from(offset).unwrap_or(NONE));
    }
    let bytes = match chunk.kind {
        Kind::Used => chunk.bytes,
        Kind::Free => LINKS.min(chunk.bytes),
        Kind::Top => return,
    };
    let part = chunk.address..chunk.address + bytes;
    for (page, bytes) in each_page(base, page_bytes, &part) {
        let Some(note) = notes.get_mut(page) else {
            return;
        };
        match chunk.kind {
            Kind::Used => note.live += bytes,
            _ => note.has_links = true,
        }
    }
}

fn sum(parts: &[Range<u64>]) -> u64 {
    parts.iter().map(|part| part.end - part.start).sum()
}

/// Resident bytes, by what they are.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct Resident {
    pub live: u64,
    /// In caches of threads.
    pub cached: u64,
    /// Free, in whole pages: malloc_trim gives them back.
    pub free_pages: u64,
    /// Free, on pages with something else.
    pub free_beside: u64,
    /// In last chunks, from which all others are cut.
    pub top: u64,
    /// Of these: what malloc_trim gives back, of the main arena's only.
    pub top_to_trim: u64,
    /// The allocator's own descriptions.
    pub own: u64,
    pub unclear: u64,
    /// Not resident: swapped out.
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
