//! Resident pages with live blocks, and which blocks lie on a page.

use super::choice::Chosen;
use crate::heap::{Content, Heap, Run};
use crate::judge::{self, State};
use crate::live::LiveProcess;
use crate::memory::{Memory, Wanted};
use crate::profile::{Profile, Sample};
use crate::resident::Pages;
use std::ops::Range;

/// Pages that are read at a time.
const BATCH: usize = 256;
/// Pages that are asked for at a time.
const WINDOW: u64 = 1 << 14;
/// A damaged heap may speak of more.
const BLOCK_MOST: u64 = 1 << 42;

/// The page of each of these addresses, in order. What is given is what could be read.
pub fn read_pages(
    process: &LiveProcess,
    chosen: &[u64],
    page_bytes: u64,
    mut visit: impl FnMut(u64, &[u8]),
) {
    let bytes = usize::try_from(page_bytes).unwrap_or(0);
    let mut contents = vec![0; BATCH * bytes];
    for batch in chosen.chunks(BATCH) {
        let targets = contents.chunks_exact_mut(bytes);
        let mut wanted: Vec<Wanted> = (batch.iter().zip(targets))
            .map(|(page, target)| Wanted::new(*page, target))
            .collect();
        process.read_many(&mut wanted);
        for one in wanted.iter().filter(|one| one.is_read) {
            visit(one.address, one.target);
        }
    }
}

/// What is resident, asked for in ranges by address without a system call for each.
struct Windows<'a> {
    pages: &'a Pages,
    start: u64,
    resident: Vec<bool>,
    has_any: bool,
}

impl Windows<'_> {
    fn of(pages: &Pages) -> Windows<'_> {
        Windows {
            pages,
            start: 0,
            resident: Vec::new(),
            has_any: false,
        }
    }

    /// The resident pages of a range.
    fn each(&mut self, range: &Range<u64>, mut visit: impl FnMut(u64)) {
        let page_bytes = self.pages.page_bytes;
        let mut page = range.start - range.start % page_bytes;
        let end = range.end.min(page.saturating_add(BLOCK_MOST));
        while page < end {
            let start = page - page % (WINDOW * page_bytes);
            if self.resident.is_empty() || self.start != start {
                self.start = start;
                self.resident = self.pages.resident_own(start, WINDOW * page_bytes);
                self.has_any = self.resident.contains(&true);
            }
            if !self.has_any {
                page = start.saturating_add(WINDOW * page_bytes);
                continue;
            }
            if self.resident[offset((page - start) / page_bytes)] {
                visit(page);
            }
            page = page.saturating_add(page_bytes);
        }
    }
}

/// Those on which a block lies that the program holds.
pub fn offer_blocks(heap: &Heap, pages: &Pages, chosen: &mut Chosen) {
    let mut windows = Windows::of(pages);
    for run in heap.supers.iter().flat_map(|one| &one.runs) {
        let range = run.base..run.base.saturating_add(run.bytes);
        windows.each(&range, |page| {
            if parts(heap, run, page, pages.page_bytes).next().is_some() {
                chosen.offer(page);
            }
        });
    }
}

pub fn range_of(sample: &Sample) -> Range<u64> {
    sample.address..sample.address.saturating_add(sample.bytes)
}

/// Those on which a sampled block lies.
pub fn offer_samples(profile: &Profile, pages: &Pages, chosen: &mut Chosen) {
    let mut windows = Windows::of(pages);
    for index in by_address(profile) {
        let range = range_of(&profile.samples[index]);
        windows.each(&range, |page| chosen.offer(page));
    }
}

/// The numbers of all samples, in order of where they lie.
pub fn by_address(profile: &Profile) -> Vec<usize> {
    let mut order: Vec<usize> = (0..profile.samples.len()).collect();
    order.sort_by_key(|index| profile.samples[*index].address);
    order
}

/// A live block's part on a page.
pub struct Part {
    /// The class; behind all of them, large blocks.
    pub size: usize,
    pub block: u64,
    /// In the page.
    pub range: Range<usize>,
}

pub fn parts<'a>(
    heap: &'a Heap,
    run: &'a Run,
    page: u64,
    page_bytes: u64,
) -> Box<dyn Iterator<Item = Part> + 'a> {
    let end = page + page_bytes;
    let part = move |size, block: u64, bytes: u64| Part {
        size,
        block,
        range: offset(block.max(page) - page)..offset(block.saturating_add(bytes).min(end) - page),
    };
    match &run.content {
        Content::Large {
            block_bytes,
            is_kept,
        } => {
            let is_in = !is_kept && page < run.base.saturating_add(*block_bytes);
            let large = is_in.then(|| part(heap.classes.len(), run.base, *block_bytes));
            Box::new(large.into_iter())
        }
        Content::Small(slab) => {
            let class = heap.classes[slab.class];
            let first = (page - run.base) / class.bytes;
            let last = (end - run.base).div_ceil(class.bytes).min(class.blocks);
            let live = (first..last).filter(move |index| {
                let block = run.base + index * class.bytes;
                judge::state_of(heap, slab, block, *index) == State::Live
            });
            Box::new(
                live.map(move |index| {
                    part(slab.class, run.base + index * class.bytes, class.bytes)
                }),
            )
        }
    }
}

pub fn offset(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
