//! Searches for pages of a kind by the kernel's own scan, which spends no time on absent pages.

use std::fs::File;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// PAGEMAP_SCAN of linux/fs.h, since Linux 6.7.
const SCAN: nix::libc::Ioctl = 0xc060_6610u32 as nix::libc::Ioctl;
/// Ranges to ask for at a time.
const RANGES: usize = 64;

/// Kinds of pages.
pub const IS_PRESENT: u64 = 1 << 3;
pub const IS_SWAPPED: u64 = 1 << 4;
pub const IS_ZERO_PAGE: u64 = 1 << 5;

/// The request, and how far the answer reaches (struct pm_scan_arg).
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
    kinds: u64,
}

/// The first ranges of pages of any of these kinds, each with the kinds that it has, from a process's pagemap; and the address
/// where the search stopped. `None` if the kernel cannot search.
pub fn scan(
    pagemap: &File,
    within: &Range<u64>,
    kinds: u64,
) -> Option<(impl Iterator<Item = (Range<u64>, u64)> + use<>, u64)> {
    let mut answers = [Answer::default(); RANGES];
    let mut question = Question {
        size: size_of::<Question>() as u64,
        start: within.start,
        end: within.end,
        answer: answers.as_mut_ptr() as u64,
        answer_length: RANGES as u64,
        any_of: kinds,
        returned: kinds,
        ..Question::default()
    };
    // SAFETY: both are ours, outlive the call, and are as long as the request says.
    let count = unsafe { nix::libc::ioctl(pagemap.as_raw_fd(), SCAN, &raw mut question) };
    let count = usize::try_from(count).ok()?;
    let found = answers.into_iter().take(count);
    let found = found.map(|one| (one.start..one.end, one.kinds));
    Some((found, question.walk_end))
}
