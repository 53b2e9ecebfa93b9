//! Which pages of a process are resident, according to the kernel.

use crate::error::{Error, Result};
use crate::live::LiveProcess;
use crate::zero_page;
use std::fs::File;
use std::io::ErrorKind;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;
/// The page frame's number; 0 without the right to know it.
const FRAME: u64 = (1 << 55) - 1;
/// Entries to read at a time.
const STEP: usize = 1 << 16;

/// An area with the kernel's counts for it (proc(5), smaps).
#[derive(Clone, Debug, Default)]
pub struct Counted {
    pub range: Range<u64>,
    pub is_writable: bool,
    pub is_accessible: bool,
    /// Shared with other processes, or written through to a file.
    pub is_shared: bool,
    pub name: Vec<u8>,
    pub resident_bytes: u64,
    /// Resident bytes that belong to no file; they include what was written to a private mapping of a file.
    pub anonymous_bytes: u64,
    pub swapped_bytes: u64,
    pub lazily_freed_bytes: u64,
    pub huge_bytes: u64,
    /// Accessed since the kernel cleared the referenced bits (`referenced`).
    pub referenced_bytes: u64,
}

/// A thread's stack has no longer guard.
const GUARD_MAX: u64 = 64 << 10;

impl Counted {
    /// Is it a thread's stack, with an inaccessible guard before it? A guard behind memory in `ours` (sorted) is longer than a
    /// page.
    pub fn is_guarded_stack(
        &self,
        before: Option<&Counted>,
        ours: &[Range<u64>],
        page_bytes: u64,
    ) -> bool {
        let Some(guard) = before else {
            return false;
        };
        let Range { start, end } = guard.range;
        let index = ours.partition_point(|range| range.start <= start);
        let last = index.checked_sub(1).map(|last| ours[last].end);
        let of_ours = last.filter(|last| *last >= start);
        let start = of_ours.map_or(start, |last| start.max(last + page_bytes));
        let is_guard = !guard.is_accessible && guard.name.is_empty() && end == self.range.start;
        is_guard && self.name.is_empty() && start < end && end - start <= GUARD_MAX
    }

    /// Shared between processes, without a file on disk. Such memory has names, too, but of files that only it has.
    pub fn is_shared_memory(&self) -> bool {
        let starts = [
            &b"/dev/shm/"[..],
            b"/dev/zero",
            b"/memfd:",
            b"/SYSV",
            b"/anon_hugepage",
        ];
        starts.iter().any(|start| self.name.starts_with(start))
            || self.is_shared && !self.name.starts_with(b"/")
    }
}

/// The sums of the kernel's counts over all areas.
#[derive(Clone, Copy, Debug)]
pub struct AreaSums {
    pub resident_bytes: u64,
    pub swapped_bytes: u64,
    pub lazily_freed_bytes: u64,
    pub huge_bytes: u64,
}

impl AreaSums {
    pub fn of(areas: &[Counted]) -> AreaSums {
        let sum = |figure: fn(&Counted) -> u64| areas.iter().map(figure).sum();
        AreaSums {
            resident_bytes: sum(|area| area.resident_bytes),
            swapped_bytes: sum(|area| area.swapped_bytes),
            lazily_freed_bytes: sum(|area| area.lazily_freed_bytes),
            huge_bytes: sum(|area| area.huge_bytes),
        }
    }
}

/// Every area of a process, with its counts.
pub fn read_areas(pid: i32) -> Result<Vec<Counted>> {
    let text = std::fs::read(format!("/proc/{pid}/smaps")).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => Error::Forbidden(pid),
        _ => Error::Gone(pid),
    })?;
    Ok(parse_areas(&text))
}

fn parse_areas(text: &[u8]) -> Vec<Counted> {
    let mut areas: Vec<Counted> = Vec::new();
    for line in text.split(|byte| *byte == b'\n') {
        if let Some(area) = crate::live::parse_area(line) {
            areas.push(Counted {
                range: area.range,
                is_writable: area.is_writable,
                is_shared: area.is_shared,
                is_accessible: area.is_readable || area.is_writable || area.is_executable,
                name: area.name,
                ..Counted::default()
            });
        } else if let (Some(area), Some((name, rest))) = (areas.last_mut(), figure(line)) {
            let kib = rest.trim().trim_end_matches(" kB").parse().unwrap_or(0_u64);
            let target = match name {
                "Rss" => &mut area.resident_bytes,
                "Anonymous" => &mut area.anonymous_bytes,
                "Swap" => &mut area.swapped_bytes,
                "LazyFree" => &mut area.lazily_freed_bytes,
                "AnonHugePages" => &mut area.huge_bytes,
                "Referenced" => &mut area.referenced_bytes,
                _ => continue,
            };
            *target = kib.saturating_mul(1024);
        }
    }
    areas
}

/// "Rss:   12 kB"
fn figure(line: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(line).ok()?.split_once(':')
}

/// Where a page of a process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Page {
    /// Not in memory: never touched, or given back.
    Absent,
    Resident,
    Swapped,
}

/// A process's page table entries (pagemap).
pub struct Pages {
    pub(crate) file: File,
    pub page_bytes: u64,
}

impl Pages {
    pub fn open(process: &LiveProcess) -> Result<Pages> {
        let pid = process.task();
        let file =
            File::open(format!("/proc/{pid}/pagemap")).map_err(|error| match error.kind() {
                ErrorKind::PermissionDenied => Error::Forbidden(pid),
                _ => Error::Gone(pid),
            })?;
        let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
        let page = page.ok().flatten().unwrap_or(4096);
        Ok(Pages {
            file,
            page_bytes: u64::try_from(page).unwrap_or(4096),
        })
    }

    /// For each page of a range that begins with a page: is it resident? Pages that cannot be read are not. Pages of zeros that
    /// take no memory are not either, if the kernel tells (`zero_page`).
    pub fn resident(&self, start: u64, bytes: u64) -> Vec<bool> {
        let states = self.states(start, bytes);
        let mut resident: Vec<bool> = states.iter().map(|page| *page == Page::Resident).collect();
        if !resident.contains(&true) {
            return resident;
        }
        let index =
            |address: u64| usize::try_from((address - start) / self.page_bytes).unwrap_or(0);
        let end = start.saturating_add(resident.len() as u64 * self.page_bytes);
        for range in zero_page::ranges(&self.file, &(start..end)) {
            let pages = index(range.start.max(start))..index(range.end.min(end));
            resident[pages].fill(false);
        }
        resident
    }

    /// How many bytes of a range that begins with a page are resident, in whole pages.
    pub fn resident_bytes(&self, start: u64, bytes: u64) -> u64 {
        let resident = self.resident(start, bytes);
        let count = resident.iter().filter(|is_resident| **is_resident).count();
        count as u64 * self.page_bytes
    }

    /// The parts of a range that are in memory or in swap space. The range begins and ends with a page.
    pub fn there(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        let states = self.states(range.start, range.end - range.start);
        for (start, state) in (range.start..)
            .step_by(self.page_bytes as usize)
            .zip(states)
        {
            match parts.last_mut() {
                _ if state == Page::Absent => {}
                Some(last) if last.end == start => last.end += self.page_bytes,
                _ => parts.push(start..start + self.page_bytes),
            }
        }
        parts
    }

    /// The page frame that holds a page; only root may know it.
    pub fn frame(&self, page: u64) -> Option<u64> {
        let mut entry = [0; 8];
        let at = page / self.page_bytes * 8;
        self.file.read_exact_at(&mut entry, at).ok()?;
        let entry = u64::from_le_bytes(entry);
        let is_resident = entry & PRESENT != 0 && entry & SWAPPED == 0;
        Some(entry & FRAME).filter(|frame| is_resident && *frame != 0)
    }

    /// For each page of such a range: its state. Pages that cannot be read are absent.
    pub fn states(&self, start: u64, bytes: u64) -> Vec<Page> {
        let count = usize::try_from(bytes.div_ceil(self.page_bytes)).unwrap_or(0);
        let mut found = Vec::with_capacity(count);
        let mut entries = vec![0; STEP.min(count) * 8];
        while found.len() < count {
            let wanted = STEP.min(count - found.len());
            let first = start / self.page_bytes + found.len() as u64;
            let part = &mut entries[..wanted * 8];
            if self.file.read_exact_at(part, first * 8).is_err() {
                found.resize(count, Page::Absent);
                break;
            }
            found.extend(part.chunks_exact(8).map(|entry| {
                let entry = u64::from_le_bytes(entry.try_into().unwrap_or_default());
                match (entry & SWAPPED != 0, entry & PRESENT != 0) {
                    (true, _) => Page::Swapped,
                    (_, true) => Page::Resident,
                    _ => Page::Absent,
                }
            }));
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_figures_are_read() {
        let text =
            b"1000-3000 rw-p 00000000 00:00 0    [stack]\nRss:     12 kB\nReferenced: 8 kB\nLazyFree:   4 kB\n\
                    VmFlags: rd wr\n3000-4000 ---p 00000000 00:00 0\nRss: 0 kB\n";
        let areas = parse_areas(text);
        assert_eq!(areas.len(), 2);
        assert_eq!(areas[0].resident_bytes, 12 << 10);
        assert_eq!(areas[0].referenced_bytes, 8 << 10);
        assert_eq!(areas[0].lazily_freed_bytes, 4 << 10);
        assert!(areas[0].is_accessible && !areas[1].is_accessible);
    }
    #[test]
    fn a_stack_lies_behind_a_guard_that_is_not_ours() {
        let area = |range, is_accessible| Counted {
            range,
            is_accessible,
            ..Counted::default()
        };
        let stack = area(0x9000..0xa000, true);
        let is_stack = |guard: Range<u64>, ours: &[Range<u64>]| {
            stack.is_guarded_stack(Some(&area(guard, false)), ours, 0x1000)
        };
        assert!(is_stack(0x8000..0x9000, &[]));
        assert!(is_stack(0x8000..0x9000, &[0x1000..0x2000, 0xa000..0xb000]));
        assert!(!is_stack(0x8000..0x9000, &[0x1000..0x2000, 0x4000..0x8000]));
        // A guard page of ours and a stack's guard, which the kernel shows as one area.
        assert!(is_stack(0x7000..0x9000, &[0x4000..0x7000]));
        // Only one page more than our memory.
        assert!(!is_stack(0x6000..0x9000, &[0x4000..0x8000]));
        assert!(!is_stack(0x7000..0x8000, &[]));
        assert!(!stack.is_guarded_stack(None, &[], 0x1000));
        let open = area(0x8000..0x9000, true);
        assert!(!stack.is_guarded_stack(Some(&open), &[], 0x1000));
    }
}
