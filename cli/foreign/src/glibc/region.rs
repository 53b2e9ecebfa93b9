//! A stretch of memory full of chunks, with what of each of its pages is in use.

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

/// The first chunk is sought so far: a static program keeps its thread's data before it.
const FIRST_MOST: u64 = 1 << 20;

pub struct Region {
    /// Begins and ends with a page.
    pub range: Range<u64>,
    pub arena: usize,
    /// Where the first chunk begins; at its end if none was found.
    pub first: u64,
    pub page_bytes: u64,
    pub layout: Arc<Layout>,
    /// Of each page that is there.
    pub notes: Vec<Note>,
    pub live: Sizes,
    pub free: Sizes,
    pub top: Option<Range<u64>>,
    /// The allocator's own.
    own: Vec<Range<u64>>,
    unclear: Vec<Range<u64>>,
    /// Whole pages between its parts: others have moved the break meanwhile. By address.
    foreign: Vec<Range<u64>>,
    /// User addresses of what may be a thread's cache.
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

    /// What is noted of a page; `None` where there is none.
    pub fn note(&self, page: usize) -> Option<&Note> {
        self.notes.get(self.layout.present.place(page)?)
    }

    /// Every page that is there and not another's, with its note.
    fn there(&self) -> impl Iterator<Item = (usize, &Note)> {
        let all = self.layout.present.there(0..usize::MAX).zip(&self.notes);
        all.filter(|(page, _)| !self.is_foreign(self.layout.address_of(*page)))
    }

    fn is_foreign(&self, address: u64) -> bool {
        let after = self.foreign.partition_point(|part| part.start <= address);
        let before = after.checked_sub(1).map(|index| &self.foreign[index]);
        before.is_some_and(|part| part.contains(&address))
    }

    /// Its addresses, without what others have between them.
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

    /// Those that are resident.
    pub fn resident_pages(&self) -> impl Iterator<Item = (usize, &Note)> {
        let is_resident = |page| self.layout.present.state(page) == Page::Resident;
        self.there().filter(move |(page, _)| is_resident(*page))
    }

    fn note_other(&mut self, part: &Range<u64>) {
        let notes = &mut self.notes;
        self.layout
            .each(part, |_, place, bytes| notes[place].add_other(bytes));
    }

    /// A chunk that was taken for live is something else.
    pub fn take_back(&mut self, address: u64, bytes: u64, is_cached: bool) {
        let notes = &mut self.notes;
        self.layout
            .each(&(address..address + bytes), |_, place, bytes| {
                notes[place].take_back(bytes, is_cached);
            });
        self.live.take(bytes);
    }

    /// What a walk has found of a part of it.
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

    /// Before the first chunk, it is the allocator's.
    pub fn begin(&mut self, first: u64) {
        self.first = first;
        self.own(self.range.start..first);
    }

    /// Where the first chunk begins: not before `before`.
    pub fn find_first(&self, space: &Space, before: u64) -> Option<u64> {
        let mut window = self.window(space);
        let expected = before.next_multiple_of(HEAD);
        if chunks::begins_heap(&mut window, expected, self.range.end) {
            return Some(expected);
        }
        let end = self.range.end.min(before + FIRST_MOST);
        chunks::find_chain(&mut window, before, end, self.range.end, self.page_bytes)
    }

    /// Is it a heap, as far as can be told without anything that leads there?
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

    /// Behind the mark at which its memory ends, up to where it goes on.
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

    /// Each resident page of a part of it, with how many bytes of the part lie there.
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

    /// From which page on nothing is in use before the last chunk: free chunks there become a part of it as soon as fast bins
    /// are emptied, and what a trim empties first are these.
    fn tail(&self) -> usize {
        let Some(top) = &self.top else {
            return usize::MAX;
        };
        let mut tail = self.layout.page_of(top.start);
        let is_in_use = |note: &Note| note.live() > 0 || note.cached() > 0;
        if self.note(tail).is_some_and(is_in_use) {
            return tail;
        }
        // What is not there does not count, whatever it is a part of.
        for page in self.layout.present.there(0..tail).rev() {
            let note = self.note(page);
            if note.is_some_and(|note| is_in_use(note) || note.other() > 0) {
                break;
            }
            tail = page;
        }
        tail
    }

    /// What its resident pages hold. The sum is all of them.
    pub fn resident(&self, is_main: bool) -> Resident {
        let mut found = Resident::default();
        let tail = if is_main { usize::MAX } else { self.tail() };
        let mut before = None;
        for (page, note) in self.there() {
            let known = note.known();
            let free = self.page_bytes.saturating_sub(known);
            let is_before_free = match before {
                Some((number, known)) if number + 1 == page => known == 0,
                // It is not there, and all of it is one chunk: a free one, unless another chunk begins right here, as two free
                // ones do not lie side by side.
                _ => page > 0 && note.first() != Some(0),
            };
            before = Some((page, known));
            // Behind a free page the links are of a chunk that becomes one with that before it when fast bins are emptied.
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
