//! What lies on which page of a heap of glibc's, for two looks at what of it is cold.
//!
//! Of a block counts what the program may use of it, not its head, which changes when a neighbour is freed. A block is the same
//! at both looks when one of its size is in use at its place: glibc does not number them.

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

/// Of a chunk, what the program cannot use: the last word of it stands in the next one.
const OWN: u64 = 8;

/// The heap of a process, and what was looked at of it.
pub struct Looked<'a> {
    space: Space<'a>,
    heap: Heap,
    /// By page; `None` where chunks did not agree.
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

    /// From the last chunk that begins in a page before this one; or if that has changed, from the first chain in the page.
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

    /// `None` where chunks do not agree.
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
