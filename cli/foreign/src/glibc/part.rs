//! Splits regions into parts, which several threads read: each from its first chain of chunks to the first chain of the next
//! part. Where two parts meet, they must agree; if not, the later part is read again from where the earlier one has ended.

use super::chunks::{self, Chunk, End, Kind};
use super::notes::{Layout, Note};
use super::region::Region;
use crate::sizes::Sizes;
use crate::space::Space;
use crate::window::Window;
use std::ops::Range;
use std::slice::IterMut;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

const PART_BYTES: u64 = 64 << 20;
/// How far to search for the first chain of a part. If there is none, the previous part continues.
const CUT_MOST: u64 = 1 << 20;
const READERS_MOST: usize = 4;
/// The sizes of the chunk that contains a thread's cache, in the various releases.
const CACHE_BYTES: [u64; 2] = [0x290, 0x300];
const CACHES_MOST: usize = 1 << 18;

/// The result of one walk.
#[derive(Default)]
pub struct Found {
    pub live: Sizes,
    pub free: Sizes,
    pub top: Option<Range<u64>>,
    /// What lies behind a fencepost.
    pub fenced: Vec<Range<u64>>,
    pub unclear: Vec<Range<u64>>,
    /// User addresses of chunks that may be a thread's cache.
    pub caches: Vec<u64>,
    /// Chunks that begin in the part and end behind its pages; they are recorded later.
    pub beyond: Vec<Chunk>,
}

struct Part<'a> {
    range: Range<u64>,
    layout: Arc<Layout>,
    page_bytes: u64,
    /// The end of its last page.
    limit: u64,
    notes: &'a mut [Note],
    /// How many present pages precede its first one.
    before: usize,
    from: u64,
    until: u64,
    ended: u64,
    found: Found,
}

impl Part<'_> {
    fn read(&mut self, space: &Space) {
        let mut window = Window::with_layout(space, self.range.clone(), self.layout.clone());
        let (until, end) = (self.until, self.range.end);
        let mut at = self.from;
        while at < until {
            let ended = chunks::walk(&mut window, at, until, end, &mut |chunk| self.add(chunk));
            let (stopped, is_fence) = match ended {
                End::Whole => {
                    at = end;
                    break;
                }
                End::There(there) => {
                    at = there;
                    break;
                }
                End::Fence(stopped) => (stopped, true),
                End::Broken(stopped) => (stopped, false),
            };
            window.forget();
            let found = chunks::find_chain(&mut window, stopped + 16, until, end, self.page_bytes);
            at = found.unwrap_or(until);
            let skipped = match is_fence {
                true => &mut self.found.fenced,
                false => &mut self.found.unclear,
            };
            skipped.push(stopped..at);
        }
        self.ended = at;
    }

    fn add(&mut self, chunk: Chunk) {
        let end = chunk.address + chunk.bytes;
        match chunk.kind {
            Kind::Used => {
                self.found.live.add(chunk.bytes);
                let caches = &mut self.found.caches;
                if CACHE_BYTES.contains(&chunk.bytes) && caches.len() < CACHES_MOST {
                    caches.push(chunk.address + chunks::HEAD);
                }
            }
            Kind::Free => self.found.free.add(chunk.bytes),
            Kind::Top => self.found.top = Some(chunk.address..end),
        }
        if end > self.limit {
            self.found.beyond.push(chunk);
        } else {
            self.layout.note(self.notes, self.before, &chunk);
        }
    }

    /// Reads the part again, from another start.
    fn read_again(&mut self, space: &Space, from: u64) {
        self.notes.fill(Note::default());
        self.found = Found::default();
        self.from = from;
        self.read(space);
    }
}

/// Reads all chunks of regions whose first chunk is known.
pub fn read(space: &Space, regions: &mut [Region]) {
    let mut sheets: Vec<Vec<Note>> = Vec::new();
    for region in regions.iter_mut() {
        sheets.push(std::mem::take(&mut region.notes));
    }
    let mut of_regions: Vec<Vec<Part>> = Vec::new();
    for (region, notes) in regions.iter().zip(&mut sheets) {
        of_regions.push(parts(region, &cuts(space, region), notes));
    }
    read_all(space, of_regions.iter_mut().flatten().collect());
    for parts in &mut of_regions {
        let mut at = parts[0].from;
        for part in parts {
            if part.from != at {
                part.read_again(space, at);
            }
            at = part.ended;
        }
    }
    let found: Vec<Vec<Found>> = of_regions
        .into_iter()
        .map(|parts| parts.into_iter().map(|part| part.found).collect())
        .collect();
    for ((region, notes), found) in regions.iter_mut().zip(sheets).zip(found) {
        region.notes = notes;
        found.into_iter().for_each(|found| region.take(found));
    }
}

/// Where the second part and later ones begin; each begins within its own pages.
fn cuts(space: &Space, region: &Region) -> Vec<u64> {
    let mut found = Vec::new();
    let mut window = region.window(space);
    let end = region.range.end;
    let mut at = (region.first + 1).next_multiple_of(PART_BYTES);
    while at < end {
        let until = at + CUT_MOST.min(end - at);
        found.extend(chunks::find_chain(
            &mut window,
            at,
            until,
            end,
            region.page_bytes,
        ));
        at += PART_BYTES;
    }
    found
}

fn parts<'a>(region: &Region, cuts: &[u64], mut notes: &'a mut [Note]) -> Vec<Part<'a>> {
    let mut found = Vec::new();
    let present = &region.layout.present;
    let mut before = 0;
    let mut from = region.first;
    for until in cuts.iter().copied().chain([region.range.end]) {
        let next = match until == region.range.end {
            true => until,
            false => until - until % PART_BYTES,
        };
        let behind = present.before(region.layout.page_of(next));
        let (mine, rest) = notes.split_at_mut(behind - before);
        notes = rest;
        found.push(Part {
            range: region.range.clone(),
            layout: region.layout.clone(),
            page_bytes: region.page_bytes,
            limit: next,
            notes: mine,
            before,
            from,
            until,
            ended: from,
            found: Found::default(),
        });
        (before, from) = (behind, until);
    }
    found
}

/// Uses as many threads as there are processors and parts, up to a limit.
fn read_all(space: &Space, mut parts: Vec<&mut Part>) {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let readers = processors.min(READERS_MOST).min(parts.len());
    let queue = Mutex::new(parts.iter_mut());
    thread::scope(|scope| {
        for _ in 1..readers {
            // If a thread cannot be started, the others do its work.
            let _ = thread::Builder::new().spawn_scoped(scope, || read_some(space, &queue));
        }
        read_some(space, &queue);
    });
}

fn read_some(space: &Space, queue: &Mutex<IterMut<&mut Part>>) {
    let take = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    while let Some(part) = take() {
        part.read(space);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakmem_heap::error::Error;
    use hakmem_heap::memory::Memory;

    const BASE: u64 = 1 << 40;
    const BYTES: u64 = 2 * PART_BYTES + (1 << 20);
    const CHUNK: u64 = 1024;

    struct Made(Vec<u8>);

    impl Made {
        fn set(&mut self, at: u64, word: u64) {
            let at = usize::try_from(at).unwrap();
            self.0[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
    }

    impl Memory for Made {
        fn read(&self, address: u64, target: &mut [u8]) -> bool {
            let at = usize::try_from(address.wrapping_sub(BASE)).unwrap();
            let from = self.0.get(at..at.saturating_add(target.len()));
            if let Some(from) = from {
                target.copy_from_slice(from);
            }
            from.is_some()
        }

        fn data_areas(&self) -> Vec<Range<u64>> {
            Vec::new()
        }

        fn explain(&self, _: u64) -> Error {
            Error::NotHakmem
        }
    }

    /// Blocks of one size, of which every third is free, and the top chunk.
    fn made() -> (Made, u64) {
        let mut memory = Made(vec![0; usize::try_from(BYTES).unwrap()]);
        let mut live = 0;
        let mut before_is_free = false;
        for number in 0..BYTES / CHUNK {
            let at = number * CHUNK;
            memory.set(at + 8, CHUNK | u64::from(!before_is_free));
            before_is_free = number % 3 == 2 && at + CHUNK < BYTES - CHUNK;
            live += u64::from(!before_is_free && at + CHUNK < BYTES);
            if before_is_free {
                memory.set(at + CHUNK, CHUNK);
            }
        }
        (memory, live)
    }

    #[track_caller]
    fn is_found(memory: &Made, live: u64, live_bytes: u64) {
        let space = Space::of_memory(memory, Vec::new());
        let mut region = Region::new(&space, BASE..BASE + BYTES, 0);
        region.begin(BASE);
        assert_eq!(cuts(&space, &region).len(), 2);
        let mut regions = [region];
        read(&space, &mut regions);
        let [region] = regions;
        assert_eq!((region.live.blocks, region.live.bytes), (live, live_bytes));
        assert_eq!(region.unclear_bytes(), 0);
        let noted: u64 = region.notes.iter().map(|note| note.live()).sum();
        assert_eq!(noted, live_bytes);
        assert_eq!(region.top, Some(BASE + BYTES - CHUNK..BASE + BYTES));
    }

    #[test]
    fn parts_together_are_the_whole() {
        let (memory, live) = made();
        is_found(&memory, live, live * CHUNK);
    }

    #[test]
    fn what_only_looks_like_the_start_of_a_part_is_none() {
        let (mut memory, live) = made();
        // One block replaces eight where parts meet; its words look like chunks.
        let (start, end) = (PART_BYTES - 4 * CHUNK, PART_BYTES + 4 * CHUNK);
        let eaten = (start..end).step_by(1024).map(|at| at / CHUNK % 3 != 2);
        let eaten = eaten.filter(|is_live| *is_live).count() as u64;
        for at in (start + 16..end).step_by(8) {
            memory.set(at, 0x21);
        }
        memory.set(end + 8, CHUNK | 1);
        let before_is_free = (start / CHUNK - 1) % 3 == 2;
        memory.set(start + 8, (8 * CHUNK) | u64::from(!before_is_free));
        let live_bytes = (live - eaten + 8) * CHUNK;
        is_found(&memory, live - eaten + 1, live_bytes);
    }
}
