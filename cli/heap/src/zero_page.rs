//! Where a process maps the kernel's zero page: memory that was read and never written. Such a page is in the page table, but
//! takes no memory, and the kernel does not count it as resident.

use crate::scan::{IS_ZERO_PAGE, scan};
use std::fs::File;
use std::ops::Range;

/// Ranges of such pages between two addresses, from a process's pagemap; none if the kernel does not tell.
pub fn ranges(pagemap: &File, within: &Range<u64>) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut rest = within.clone();
    while rest.start < rest.end {
        let Some((ranges, end)) = scan(pagemap, &rest, IS_ZERO_PAGE) else {
            break;
        };
        found.extend(ranges.map(|(range, _)| range));
        if end <= rest.start {
            break;
        }
        rest.start = end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_and_never_written_is_found() {
        const PAGE: usize = 1 << 16; // a multiple of every page size
        let mut memory = vec![0_u8; 64 * PAGE]; // malloc keeps no free block of this size, so its pages are untouched
        let base = (memory.as_ptr() as usize).next_multiple_of(PAGE);
        let first = base - memory.as_ptr() as usize;
        std::hint::black_box(&mut memory)[first + PAGE] = 1;
        let read: u8 = std::hint::black_box(&memory)[first + 3 * PAGE];
        assert_eq!(read, 0);
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        let at = |page: usize| (base + page * PAGE) as u64;
        let is_zero_page = |page: usize| {
            let found = ranges(&pagemap, &(at(page)..at(page + 1)));
            found.iter().any(|range| range.contains(&at(page)))
        };
        assert!(!is_zero_page(1) && !is_zero_page(2));
        // A kernel before 6.7 cannot tell; with huge pages, the written part may be on the same page.
        let tells = ranges(&pagemap, &(at(0)..at(60)));
        assert!(tells.is_empty() || is_zero_page(3), "{tells:?}");
    }
}
