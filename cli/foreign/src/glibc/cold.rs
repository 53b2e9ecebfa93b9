//! What lies on each page of a glibc heap, to find by two looks what is cold.
//!
//! Only the usable part of a block counts: its header changes when a neighbour is freed. A block is the same at both looks if a
//! block of its size is in use at its address, as glibc does not number blocks.

use super::Heap;
use super::chunks::{self, End, HEAD, Kind};
use super::region::Region;
use crate::sizes::{COUNT, Sizes, index_of};
use crate::space::Space;
use crate::window::Window;
use hakmem_heap::cold::{Blocks, Bytes, Chosen, OfSize, Part, Windows, offset};
use hakmem_heap::resident::Pages;
use std::collections::HashMap;
use std::ops::Range;

/// The unusable bytes of a chunk; its last usable word lies in the next chunk.
const OWN: u64 = 8;

/// A process's heap, and the pages that were looked at.
pub struct Looked<'a> {
    space: Space<'a>,
    heap: Heap,
    /// By page; `None` if its chunks contradict each other.
    parts: HashMap<u64, Option<Vec<Part>>>,
}

impl Looked<'_> {
    pub fn new(space: Space<'_>, heap: Heap) -> Looked<'_> {
        Looked {
            space,
            heap,
            parts: HashMap::new(),
        }
    }

    /// Begins at the last chunk that starts on an earlier page. If that has changed, begins at the first chain on this page.
    fn read(&self, region: &Region, window: &mut Window, page: u64) -> Option<Vec<Part>> {
        let index = region.layout.page_of(page);
        let first =
            |page: usize| Some(region.layout.address_of(page) + region.note(page)?.first()?);
        let mut before = region.layout.present.there(0..index).rev();
        let from = before.find_map(first).or_else(|| first(index))?;
        self.read_from(region, window, page, from).or_else(|| {
            window.forget();
            let (until, end) = (page + region.page_bytes, region.range.end);
            let from = chunks::find_chain(window, page, until, end, region.page_bytes)?;
            self.read_from(region, window, page, from)
        })
    }

    /// `None` if chunks contradict each other.
    fn read_from(
        &self,
        region: &Region,
        window: &mut Window,
        page: u64,
        from: u64,
    ) -> Option<Vec<Part>> {
        let end = page + region.page_bytes;
        let mut parts = Vec::new();
        let ended = chunks::walk(window, from, end, region.range.end, &mut |chunk| {
            let user = chunk.address + HEAD..chunk.address + chunk.bytes + OWN;
            let is_live = chunk.kind == Kind::Used
                && user.end > page
                && user.start < end
                && self.heap.kept.binary_search(&chunk.address).is_err();
            if is_live {
                parts.push(part(index_of(chunk.bytes), chunk.address, &user, page, end));
            }
        });
        (!matches!(ended, End::Broken(_))).then_some(parts)
    }
}

fn part(size: usize, block: u64, user: &Range<u64>, page: u64, end: u64) -> Part {
    Part {
        size,
        block,
        range: offset(user.start.max(page) - page)..offset(user.end.min(end) - page),
    }
}

impl Blocks for Looked<'_> {
    fn sizes(&self) -> Vec<OfSize> {
        let mut live = Sizes::default();
        for region in &self.heap.regions {
            live.merge(&region.live);
        }
        let mapped = &self.heap.mapped.sizes;
        let mapped = (0, mapped.blocks, mapped.bytes, HEAD);
        let small = live.all().map(|one| {
            let most = one.up_to_bytes.saturating_sub(OWN);
            (most, one.blocks, one.bytes, OWN)
        });
        small
            .chain([mapped])
            .map(|(block_bytes, blocks, bytes, own)| OfSize {
                block_bytes,
                blocks,
                bytes: Bytes::live(bytes.saturating_sub(blocks * own)),
            })
            .collect()
    }

    fn offer(&self, pages: &Pages, chosen: &mut Chosen) {
        let mut windows = Windows::of(pages);
        for region in &self.heap.regions {
            windows.each(&region.range, |page| {
                let note = region.note(region.layout.page_of(page));
                if note.is_some_and(|note| note.live() > 0) {
                    chosen.offer(page);
                }
            });
        }
        for block in &self.heap.mapped.blocks {
            let range = block.start..block.start + block.bytes;
            windows.each(&range, |page| chosen.offer(page));
        }
    }

    fn look_at(&mut self, pages: &[u64]) {
        let within = |range: &Range<u64>| {
            let first = pages.partition_point(|page| *page < range.start);
            let end = pages.partition_point(|page| *page < range.end);
            &pages[first..end]
        };
        let mut found = HashMap::with_capacity(pages.len());
        for region in &self.heap.regions {
            let mut window = region.window(&self.space);
            for page in within(&region.range) {
                found.insert(*page, self.read(region, &mut window, *page));
            }
        }
        for block in &self.heap.mapped.blocks {
            let end = block.start + block.bytes;
            for page in within(&(block.start..end)) {
                let user = block.start + HEAD..end;
                let end = page + self.heap.page_bytes;
                let part = part(COUNT, block.start, &user, *page, end);
                found.insert(*page, Some(vec![part]));
            }
        }
        self.parts = found;
    }

    fn parts(&self, page: u64, _page_bytes: u64) -> Option<Vec<Part>> {
        self.parts.get(&page)?.clone()
    }

    fn has(&self, page: u64, part: &Part) -> bool {
        let parts = self.parts.get(&page).and_then(Option::as_ref);
        parts.is_some_and(|parts| parts.contains(part))
    }

    fn is_in(&self, range: &Range<u64>) -> bool {
        let regions = self
            .heap
            .regions
            .iter()
            .map(|region| (region.range.start, region.range.end));
        let mapped = self.heap.mapped.blocks.iter();
        let mut all = regions.chain(mapped.map(|block| (block.start, block.start + block.bytes)));
        all.any(|(start, end)| start < range.end && end > range.start)
    }
}
