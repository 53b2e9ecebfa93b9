//! Runs of pages that are present: fast for large ranges that are mostly absent.

use crate::resident::{Page, Pages};
use crate::scan::{IS_PRESENT, IS_SWAPPED, IS_ZERO_PAGE, scan};
use std::collections::VecDeque;
use std::ops::Range;

/// Pages to ask about at a time, if the kernel cannot search.
const STEP: u64 = 1 << 16;

/// By address. Absent pages are left out, and so are zero pages if the kernel can search. Neighbouring runs may have the same
/// state.
pub struct Runs<'a> {
    pages: Option<&'a Pages>,
    found: VecDeque<(Range<u64>, Page)>,
    /// The part that was not looked at yet.
    rest: Range<u64>,
    can_search: bool,
}

impl Pages {
    /// Can the kernel search for pages (PAGEMAP_SCAN)?
    pub fn can_search(&self) -> bool {
        scan(&self.file, &(0..self.page_bytes), IS_PRESENT).is_some()
    }

    /// The runs of a range, which begins and ends at page boundaries.
    pub fn runs(&self, range: &Range<u64>) -> Runs<'_> {
        Runs {
            pages: Some(self),
            found: VecDeque::new(),
            rest: range.clone(),
            can_search: true,
        }
    }
}

impl Runs<'_> {
    /// One run: the whole range counts as resident.
    pub fn whole(range: &Range<u64>) -> Runs<'static> {
        Runs {
            pages: None,
            found: VecDeque::from([(range.clone(), Page::Resident)]),
            rest: range.end..range.end,
            can_search: false,
        }
    }

    /// Leaves out all pages before an address.
    pub fn skip_to(&mut self, address: u64) {
        while let Some((range, _)) = self.found.front_mut() {
            if range.end > address {
                range.start = range.start.max(address);
                return;
            }
            self.found.pop_front();
        }
        self.rest.start = self.rest.start.max(address.min(self.rest.end));
    }

    fn fill(&mut self, pages: &Pages) {
        if self.can_search {
            match scan(
                &pages.file,
                &self.rest,
                IS_PRESENT | IS_SWAPPED | IS_ZERO_PAGE,
            ) {
                Some((ranges, end)) if end > self.rest.start => {
                    // The kernel's zero page takes no memory.
                    let own = ranges.filter(|(_, kinds)| kinds & IS_ZERO_PAGE == 0);
                    let state = |kinds: u64| match kinds & IS_SWAPPED != 0 {
                        true => Page::Swapped,
                        false => Page::Resident,
                    };
                    let runs = own.map(|(range, kinds)| (range, state(kinds)));
                    self.found.extend(runs);
                    self.rest.start = end;
                }
                _ => self.can_search = false,
            }
        } else {
            let most = STEP * pages.page_bytes;
            let bytes = most.min(self.rest.end - self.rest.start);
            for state in pages.states(self.rest.start, bytes) {
                let start = self.rest.start;
                self.rest.start = start.saturating_add(pages.page_bytes).min(self.rest.end);
                self.add(start..self.rest.start, state);
            }
        }
    }

    fn add(&mut self, page: Range<u64>, state: Page) {
        match self.found.back_mut() {
            _ if state == Page::Absent => {}
            Some((last, of_last)) if last.end == page.start && *of_last == state => {
                last.end = page.end;
            }
            _ => self.found.push_back((page, state)),
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = (Range<u64>, Page);

    fn next(&mut self) -> Option<(Range<u64>, Page)> {
        loop {
            if let Some(run) = self.found.pop_front() {
                return Some(run);
            }
            let pages = self.pages.filter(|_| self.rest.start < self.rest.end)?;
            self.fill(pages);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::LiveProcess;

    const PAGE: usize = 1 << 16; // a multiple of every page size
    const COUNT: usize = 64;

    fn pages_of_runs(runs: Runs, base: u64, page_bytes: u64) -> Vec<(u64, Page)> {
        let each = |(range, state): (Range<u64>, Page)| {
            let step = usize::try_from(page_bytes).unwrap();
            range
                .step_by(step)
                .map(move |page| ((page - base) / page_bytes, state))
        };
        runs.flat_map(each).collect()
    }

    #[test]
    fn runs_are_what_the_table_of_pages_says() {
        let mut memory = vec![0_u8; (COUNT + 1) * PAGE];
        let base = (memory.as_ptr() as usize).next_multiple_of(PAGE);
        let first = base - memory.as_ptr() as usize;
        for page in [1, 2, 5, 40, 63] {
            std::hint::black_box(&mut memory)[first + page * PAGE] = 1;
        }
        let process = LiveProcess::open(i32::try_from(std::process::id()).unwrap()).unwrap();
        let pages = Pages::open(&process).unwrap();
        let base = base as u64;
        let range = base..base + (COUNT * PAGE) as u64;
        let states = pages.states(range.start, range.end - range.start);
        let there = states.into_iter().enumerate();
        let there = there.filter(|(_, state)| *state != Page::Absent);
        let told: Vec<(u64, Page)> = there.map(|(page, state)| (page as u64, state)).collect();
        assert!(told.len() >= 5);
        for can_search in [true, false] {
            let mut runs = pages.runs(&range);
            runs.can_search = can_search;
            assert_eq!(pages_of_runs(runs, base, pages.page_bytes), told);
            for from in [3 * PAGE, 40 * PAGE, COUNT * PAGE] {
                let from = base + from as u64;
                let mut runs = pages.runs(&range);
                runs.can_search = can_search;
                let before = runs.next();
                runs.skip_to(from);
                let number = (from - base) / pages.page_bytes;
                let behind = told.iter().filter(|(page, _)| *page >= number);
                let behind: Vec<(u64, Page)> = behind.copied().collect();
                assert!(before.is_some());
                assert_eq!(pages_of_runs(runs, base, pages.page_bytes), behind);
            }
        }
    }

    #[test]
    fn without_a_table_all_of_it_is_there() {
        let mut runs = Runs::whole(&(4096..40960));
        runs.skip_to(8192);
        let found: Vec<(Range<u64>, Page)> = runs.collect();
        assert_eq!(found, [(8192..40960, Page::Resident)]);
    }
}
