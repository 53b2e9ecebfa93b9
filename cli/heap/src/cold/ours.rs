//! How hakmem's own heap is looked at, to find what is cold.

use super::pages::{Windows, offset};
use super::{Blocks, Bytes, Chosen, OfSize, Part};
use crate::figures::Figures;
use crate::heap::{Content, Heap, Run};
use crate::judge::{self, State};
use crate::resident::Pages;
use std::ops::Range;

impl Blocks for Heap {
    fn sizes(&self) -> Vec<OfSize> {
        let figures = Figures::of(self);
        let large = figures.totals.large_live_bytes;
        let small = figures
            .classes
            .iter()
            .map(|class| (class.bytes, class.live_blocks, class.live_bytes()));
        let sizes = small.chain([(0, figures.totals.large_live_blocks, large)]);
        sizes
            .map(|(block_bytes, blocks, live)| OfSize {
                block_bytes,
                blocks,
                bytes: Bytes::live(live),
            })
            .collect()
    }

    fn offer(&self, pages: &Pages, chosen: &mut Chosen) {
        let mut windows = Windows::of(pages);
        for run in self.supers.iter().flat_map(|one| &one.runs) {
            let range = run.base..run.base.saturating_add(run.bytes);
            windows.each(&range, |page| {
                if parts(self, run, page, pages.page_bytes).next().is_some() {
                    chosen.offer(page);
                }
            });
        }
    }

    /// The heap was read as a whole before.
    fn look_at(&mut self, _pages: &[u64]) {}

    fn parts(&self, page: u64, page_bytes: u64) -> Option<Vec<Part>> {
        let run = self.find(page)?.run?;
        Some(parts(self, run, page, page_bytes).collect())
    }

    fn has(&self, _page: u64, part: &Part) -> bool {
        let was = judge::describe(self, part.block);
        was.state == State::Live && was.block.is_some_and(|(start, _)| start == part.block)
    }

    fn is_in(&self, range: &Range<u64>) -> bool {
        let supers = &self.supers;
        let after = supers.partition_point(|one| one.base < range.end);
        let last = after.checked_sub(1).map(|last| &supers[last]);
        last.is_some_and(|last| last.base.saturating_add(last.bytes) > range.start)
    }
}

fn parts<'a>(
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
            block,
            block_bytes,
            is_kept,
        } => {
            let is_in = !is_kept && end > *block && page < block.saturating_add(*block_bytes);
            let large = is_in.then(|| part(heap.classes.len(), *block, *block_bytes));
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
