//! Which pages of a range are present: two bits per page, so that notes are only needed for present ones.

use crate::space::Space;
use hakmem_heap::resident::Page;
use std::ops::Range;

const GROUP: usize = 64;

/// Adjacent pages, one bit each.
#[derive(Clone, Copy, Default)]
struct Group {
    resident: u64,
    swapped: u64,
    /// How many present pages precede it.
    before: usize,
}

/// Pages are numbered from the start of the range.
pub struct Present {
    groups: Vec<Group>,
    pages: usize,
    /// How many of them are present.
    pub count: usize,
}

impl Present {
    /// The range must begin and end at page boundaries.
    pub fn of(space: &Space, range: &Range<u64>) -> Present {
        let number = |address: u64| {
            let pages = (address - range.start) / space.page_bytes;
            usize::try_from(pages).unwrap_or(usize::MAX)
        };
        let runs = space.runs(range);
        let runs = runs.map(|(run, state)| (number(run.start)..number(run.end), state));
        Present::of_runs(number(range.end.max(range.start)), runs)
    }

    fn of_runs(pages: usize, runs: impl Iterator<Item = (Range<usize>, Page)>) -> Present {
        let mut groups = vec![Group::default(); pages.div_ceil(GROUP)];
        for (run, state) in runs {
            for page in run {
                let group = &mut groups[page / GROUP];
                let bit = 1 << (page % GROUP);
                match state {
                    Page::Resident => group.resident |= bit,
                    Page::Swapped => group.swapped |= bit,
                    Page::Absent => {}
                }
            }
        }
        let mut count = 0;
        for group in &mut groups {
            group.before = count;
            count += (group.resident | group.swapped).count_ones() as usize;
        }
        Present {
            groups,
            pages,
            count,
        }
    }

    pub fn state(&self, page: usize) -> Page {
        let Some(group) = self.groups.get(page / GROUP) else {
            return Page::Absent;
        };
        let bit = 1 << (page % GROUP);
        match (group.resident & bit != 0, group.swapped & bit != 0) {
            (true, _) => Page::Resident,
            (_, true) => Page::Swapped,
            _ => Page::Absent,
        }
    }

    /// How many present pages precede this one.
    pub fn before(&self, page: usize) -> usize {
        let Some(group) = self.groups.get(page / GROUP) else {
            return self.count;
        };
        let lower = (1_u64 << (page % GROUP)) - 1;
        group.before + ((group.resident | group.swapped) & lower).count_ones() as usize
    }

    /// The index of this page among the present ones.
    #[inline]
    pub fn place(&self, page: usize) -> Option<usize> {
        let group = self.groups.get(page / GROUP)?;
        let there = group.resident | group.swapped;
        let bit = 1_u64 << (page % GROUP);
        let before = (there & (bit - 1)).count_ones() as usize;
        (there & bit != 0).then_some(group.before + before)
    }

    /// The present pages among these, in order.
    pub fn there(&self, pages: Range<usize>) -> impl DoubleEndedIterator<Item = usize> {
        let groups = pages.start / GROUP..pages.end.min(self.pages).div_ceil(GROUP);
        let bits = groups.flat_map(|group| {
            let Group {
                resident, swapped, ..
            } = self.groups[group];
            let there = resident | swapped;
            // Most groups of a large range are either empty or full.
            let all = if there == 0 { 0 } else { GROUP };
            (0..all)
                .filter(move |bit| there >> bit & 1 != 0)
                .map(move |bit| group * GROUP + bit)
        });
        bits.filter(move |page| pages.contains(page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(resident: &[usize], swapped: &[usize], pages: usize) -> Present {
        let runs = |pages: &[usize], state| {
            let run = |page: &usize| (*page..*page + 1, state);
            pages.iter().map(run).collect::<Vec<_>>()
        };
        let (resident, swapped) = (runs(resident, Page::Resident), runs(swapped, Page::Swapped));
        Present::of_runs(pages, resident.into_iter().chain(swapped))
    }

    #[test]
    fn each_page_that_is_there_has_a_place() {
        let present = made(&[0, 63, 64, 200], &[65, 130], 201);
        let there: Vec<usize> = present.there(0..usize::MAX).collect();
        assert_eq!(there, [0, 63, 64, 65, 130, 200]);
        for (place, page) in there.iter().enumerate() {
            assert_eq!(present.place(*page), Some(place));
            assert_eq!(present.before(*page), place);
        }
        assert_eq!(present.count, 6);
        assert_eq!((present.before(201), present.before(1000)), (6, 6));
        assert_eq!(
            [0, 1, 65, 200, 1000].map(|page| present.state(page)),
            [
                Page::Resident,
                Page::Absent,
                Page::Swapped,
                Page::Resident,
                Page::Absent
            ]
        );
        assert_eq!(present.place(1), None);
    }

    #[test]
    fn a_part_of_them_is_found_from_both_ends() {
        let present = made(&[1, 2, 70, 128, 190], &[], 191);
        let there: Vec<usize> = present.there(2..190).collect();
        assert_eq!(there, [2, 70, 128]);
        assert_eq!(present.there(0..128).next_back(), Some(70));
        assert_eq!(present.there(3..70).next(), None);
    }
}
