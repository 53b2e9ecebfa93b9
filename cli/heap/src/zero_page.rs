//! Where a process has the kernel's one page of zeros: memory that was read and never written. It is in the page table, but
//! takes no memory, and the kernel does not count it as resident.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// PAGEMAP_SCAN of linux/fs.h, since Linux 6.7.
const SCAN: nix::libc::Ioctl = 0xc060_6610u32 as nix::libc::Ioctl;
const IS_ZERO_PAGE: u64 = 1 << 5;
/// Ranges that are asked for at a time.
const RANGES: usize = 64;

/// What is asked, and how far the answer goes (struct pm_scan_arg).
#[repr(C)]
#[derive(Default)]
struct Question {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    answer: u64,
    answer_length: u64,
    most_pages: u64,
    inverted: u64,
    mask: u64,
    any_of: u64,
    returned: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Answer {
    start: u64,
    end: u64,
    categories: u64,
}

/// Ranges of such pages between two addresses, by a process's pagemap; none from a kernel that does not tell.
pub fn ranges(pagemap: &File, within: &Range<u64>) -> Vec<Range<u64>> {
    let mut found = Vec::new();
    let mut start = within.start;
    while start < within.end {
        let mut answers = [Answer::default(); RANGES];
        let mut question = Question {
            size: size_of::<Question>() as u64,
            start,
            end: within.end,
            answer: answers.as_mut_ptr() as u64,
            answer_length: RANGES as u64,
            mask: IS_ZERO_PAGE,
            returned: IS_ZERO_PAGE,
            ..Question::default()
        };
        // SAFETY: both are ours, live as long as the call, and are as long as the question says.
        let count = unsafe { nix::libc::ioctl(pagemap.as_raw_fd(), SCAN, &raw mut question) };
        let Ok(count) = usize::try_from(count) else {
            break;
        };
        found.extend(answers.iter().take(count).map(|one| one.start..one.end));
        if question.walk_end <= start {
            break;
        }
        start = question.walk_end;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_and_never_written_is_found() {
        const PAGE: usize = 1 << 16; // on all machines a number of pages
        let mut memory = vec![0_u8; 64 * PAGE]; // more than malloc would keep: pages that nobody has touched
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
        // A kernel before 6.7 does not tell; with huge pages, what was written to may be the same page.
        let tells = ranges(&pagemap, &(at(0)..at(60)));
        assert!(tells.is_empty() || is_zero_page(3), "{tells:?}");
    }
}
