//! The memory of a process or a core dump: what is mapped, and which pages of it are present.

use hakmem_heap::core::CoreFile;
use hakmem_heap::error::Result;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use hakmem_heap::resident::{Counted, Page, Pages, read_areas};
use hakmem_heap::runs::Runs;
use std::ops::Range;

/// The unit of reads where pages may be missing.
const PAGE_LEAST: u64 = 4096;
/// If the kernel cannot search for pages, a mapping above this size is skipped unless at least this part of it is resident.
const DESERT_LEAST: u64 = 64 << 30;
const DESERT_SHARE: u64 = 1000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    pub range: Range<u64>,
    pub name: Vec<u8>,
}

pub struct Space<'a> {
    memory: &'a (dyn Memory + Sync),
    /// By address, with the kernel's counts; for a core dump, with what the file contains.
    pub areas: Vec<Counted>,
    /// Private anonymous memory. Where a part of it was there before a fork, the kernel shows one range as several areas.
    pub stretches: Vec<Stretch>,
    /// Which pages are resident; None for a core dump.
    pages: Option<Pages>,
    pub page_bytes: u64,
}

impl<'a> Space<'a> {
    pub fn of_process(process: &'a LiveProcess) -> Result<Space<'a>> {
        let pages = Pages::open(process)?;
        let mut space = Space::of_memory(process, read_areas(process.task())?);
        space.page_bytes = pages.page_bytes;
        if !pages.can_search() {
            space.leave_out_deserts();
        }
        space.pages = Some(pages);
        Ok(space)
    }

    pub fn of_core(core: &'a CoreFile) -> Space<'a> {
        Space::of_memory(core, core.areas())
    }

    /// Without page tables, everything that can be read counts as resident.
    pub fn of_memory(memory: &'a (dyn Memory + Sync), areas: Vec<Counted>) -> Space<'a> {
        Space {
            memory,
            stretches: stretches(&areas),
            areas,
            pages: None,
            page_bytes: PAGE_LEAST,
        }
    }

    /// Skips large mappings with next to nothing in them: a search in them would take seconds.
    fn leave_out_deserts(&mut self) {
        let areas = &self.areas;
        self.stretches.retain(|stretch| {
            let bytes = stretch.range.end - stretch.range.start;
            let inside = areas.iter().filter(|area| {
                stretch.range.start <= area.range.start && area.range.end <= stretch.range.end
            });
            let resident: u64 = inside.map(|area| area.resident_bytes).sum();
            bytes <= DESERT_LEAST || resident >= bytes / DESERT_SHARE || stretch.name == b"[heap]"
        });
    }

    /// Does the kernel tell which pages are resident?
    pub fn knows_pages(&self) -> bool {
        self.pages.is_some()
    }

    pub fn memory(&self) -> &dyn Memory {
        self.memory
    }

    /// The present pages of a range of any size, which begins and ends at page boundaries.
    pub fn runs(&self, range: &Range<u64>) -> Runs<'_> {
        match &self.pages {
            Some(pages) => pages.runs(range),
            None => Runs::whole(range),
        }
    }

    /// The resident pages of a range.
    pub fn resident(&self, range: &Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let runs = self.runs(range);
        runs.filter_map(|(run, state)| (state == Page::Resident).then_some(run))
    }

    pub fn count_resident(&self, range: &Range<u64>) -> u64 {
        self.resident(range).map(|run| run.end - run.start).sum()
    }

    /// The addresses in a range that are multiples of `step` and begin a resident page.
    pub fn places(&self, range: &Range<u64>, step: u64) -> Places<'_> {
        Places {
            runs: self.runs(range),
            run: range.start..range.start,
            step,
        }
    }

    /// The state of the page at `start`, and how many pages in a row have that state, up to `most`.
    pub fn alike(&self, start: u64, most: usize) -> (Page, usize) {
        let Some(pages) = &self.pages else {
            return (Page::Resident, most);
        };
        let states = pages.states(start, most as u64 * self.page_bytes);
        let first = states.first().copied().unwrap_or(Page::Absent);
        let count = states.iter().take_while(|state| **state == first).count();
        (first, count)
    }

    pub fn read(&self, address: u64, target: &mut [u8]) -> bool {
        self.memory.read(address, target)
    }

    pub fn word(&self, address: u64) -> Option<u64> {
        self.memory.read_u64(address)
    }

    /// Is the whole range mapped?
    pub fn has(&self, range: &Range<u64>) -> bool {
        let first = self
            .areas
            .partition_point(|area| area.range.end <= range.start);
        let mut at = range.start;
        for area in self.areas[first..].iter().map(|area| &area.range) {
            if at >= range.end || area.start > at {
                break;
            }
            at = area.end;
        }
        at >= range.end
    }

    /// Is it private anonymous memory?
    pub fn is_plain(area: &Counted) -> bool {
        area.is_writable && !area.is_shared && !area.name.starts_with(b"/")
    }
}

pub struct Places<'a> {
    runs: Runs<'a>,
    /// The rest of the last run.
    run: Range<u64>,
    step: u64,
}

impl Places<'_> {
    /// Leaves out all pages before an address.
    pub fn skip_to(&mut self, address: u64) {
        self.run.start = self.run.start.max(address);
        if self.run.start >= self.run.end {
            self.runs.skip_to(address);
        }
    }
}

impl Iterator for Places<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            let place = self.run.start.checked_next_multiple_of(self.step);
            if let Some(place) = place.filter(|place| *place < self.run.end) {
                self.run.start = place + 1;
                return Some(place);
            }
            self.run = loop {
                if let (run, Page::Resident) = self.runs.next()? {
                    break run;
                }
            };
        }
    }
}

/// The word at an offset; zero beyond the end.
pub fn word_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

fn stretches(areas: &[Counted]) -> Vec<Stretch> {
    let mut found: Vec<Stretch> = Vec::new();
    for area in areas.iter().filter(|area| Space::is_plain(area)) {
        match found.last_mut() {
            Some(last) if last.range.end == area.range.start && last.name == area.name => {
                last.range.end = area.range.end;
            }
            _ => found.push(Stretch {
                range: area.range.clone(),
                name: area.name.clone(),
            }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nothing::Nothing;

    #[test]
    fn what_is_large_and_empty_is_left_out() {
        const GIB: u64 = 1 << 30;
        let area = |start: u64, end: u64, resident_bytes, name: &[u8]| Counted {
            range: start * GIB..end * GIB,
            is_writable: true,
            resident_bytes,
            name: name.to_vec(),
            ..Counted::default()
        };
        let areas = [
            area(0, 100, 0, b"[heap]"),
            area(200, 264, 0, b""),
            area(300, 400, GIB, b""),
            area(500, 600, GIB / 20, b""),
            area(600, 650, GIB / 50, b""),
            area(700, 1700, 0, b"[anon:sparse]"),
        ];
        let mut space = Space::of_memory(&Nothing, areas.to_vec());
        space.leave_out_deserts();
        let left = space.stretches.iter();
        let left: Vec<u64> = left.map(|one| one.range.start / GIB).collect();
        assert_eq!(left, [0, 200, 300]);
    }

    #[test]
    fn what_a_fork_has_split_is_one_stretch() {
        let area = |range: Range<u64>, is_writable, name: &[u8]| Counted {
            range,
            is_writable,
            name: name.to_vec(),
            ..Counted::default()
        };
        let found = stretches(&[
            area(1..2, true, b"[heap]"),
            area(2..3, true, b"[heap]"),
            area(3..4, true, b""),
            area(4..5, false, b""),
            area(5..6, true, b""),
            area(7..8, true, b""),
        ]);
        let ranges: Vec<Range<u64>> = found.into_iter().map(|one| one.range).collect();
        assert_eq!(ranges, [1..3, 3..4, 5..6, 7..8]);
    }
}
