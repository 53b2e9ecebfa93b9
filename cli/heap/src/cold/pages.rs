//! Resident pages, and the samples on them.

use super::choice::Chosen;
use crate::live::LiveProcess;
use crate::memory::{Memory, Wanted};
use crate::profile::{Profile, Sample};
use crate::resident::Pages;
use std::ops::Range;

/// How many pages to read at a time.
const BATCH: usize = 256;
/// How many pages to ask the kernel about at a time.
const WINDOW: u64 = 1 << 14;
/// A damaged heap may contain a longer block.
const BLOCK_MOST: u64 = 1 << 42;

/// Reads these pages in order, and calls `visit` for each that could be read.
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

/// Which pages are resident, for ascending ranges, without a system call for each of them.
pub struct Windows<'a> {
    pages: &'a Pages,
    start: u64,
    resident: Vec<bool>,
    has_any: bool,
}

impl Windows<'_> {
    pub fn of(pages: &Pages) -> Windows<'_> {
        Windows {
            pages,
            start: 0,
            resident: Vec::new(),
            has_any: false,
        }
    }

    /// Visits the resident pages of a range.
    pub fn each(&mut self, range: &Range<u64>, mut visit: impl FnMut(u64)) {
        let page_bytes = self.pages.page_bytes;
        let mut page = range.start - range.start % page_bytes;
        let end = range.end.min(page.saturating_add(BLOCK_MOST));
        while page < end {
            let start = page - page % (WINDOW * page_bytes);
            if self.resident.is_empty() || self.start != start {
                self.start = start;
                self.resident = self.pages.resident(start, WINDOW * page_bytes);
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

pub fn range_of(sample: &Sample) -> Range<u64> {
    sample.address..sample.address.saturating_add(sample.bytes)
}

/// Offers the resident pages that contain a part of a sampled block.
pub fn offer_samples(profile: &Profile, pages: &Pages, chosen: &mut Chosen) {
    let mut windows = Windows::of(pages);
    for index in by_address(profile) {
        let range = range_of(&profile.samples[index]);
        windows.each(&range, |page| chosen.offer(page));
    }
}

/// The indexes of all samples, sorted by address.
pub fn by_address(profile: &Profile) -> Vec<usize> {
    let mut order: Vec<usize> = (0..profile.samples.len()).collect();
    order.sort_by_key(|index| profile.samples[*index].address);
    order
}

pub fn offset(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}
