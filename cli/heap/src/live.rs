//! A process that runs.

use crate::error::{Error, Result};
use crate::memory::{MappedFile, Memory, Wanted};
use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::ops::Range;

/// What one system call takes.
const PLACES_MAX: usize = 1024;

/// One line of /proc/PID/maps.
#[derive(Clone, Debug)]
pub struct Area {
    pub range: Range<u64>,
    pub is_readable: bool,
    pub is_writable: bool,
    pub is_executable: bool,
    /// Where in the file it begins.
    pub offset: u64,
    /// A file's path, or a name in brackets; empty for plain memory.
    pub name: String,
}

pub struct LiveProcess {
    pub pid: i32,
    pub areas: Vec<Area>,
}

impl LiveProcess {
    pub fn open(pid: i32) -> Result<LiveProcess> {
        let process = LiveProcess {
            pid,
            areas: read_areas(pid)?,
        };
        match process.areas.first() {
            // The kernel shows the areas of some processes whose memory it does not let us read.
            Some(first) => match process.try_read(first.range.start) {
                Err(Errno::EPERM) => Err(Error::Forbidden(pid)),
                Err(Errno::ESRCH) => Err(Error::Gone(pid)),
                _ => Ok(process),
            },
            None => Err(Error::Gone(pid)), // a zombie, or a thread of the kernel
        }
    }

    fn try_read(&self, address: u64) -> nix::Result<usize> {
        let mut byte = [0];
        self.call(&mut [IoSliceMut::new(&mut byte)], &[place(address, 1)])
    }

    fn call(&self, local: &mut [IoSliceMut], remote: &[RemoteIoVec]) -> nix::Result<usize> {
        process_vm_readv(Pid::from_raw(self.pid), local, remote)
    }

    /// Write into it.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        let local = [IoSlice::new(bytes)];
        let remote = [place(address, bytes.len())];
        match process_vm_writev(Pid::from_raw(self.pid), &local, &remote) {
            Ok(written) if written == bytes.len() => Ok(()),
            Err(Errno::EPERM) => Err(Error::Forbidden(self.pid)),
            Err(Errno::ESRCH) => Err(Error::Gone(self.pid)),
            _ => Err(self.explain(address)),
        }
    }

    /// What its thread is called; None when there is none of that number.
    pub fn thread_name(&self, thread: u64) -> Option<String> {
        let path = format!("/proc/{}/task/{thread}/comm", self.pid);
        let name = std::fs::read_to_string(path).ok()?;
        Some(name.trim_end().to_string())
    }

    pub fn mapped_files(&self) -> Vec<MappedFile> {
        let files = self.areas.iter().filter(|area| area.name.starts_with('/'));
        files
            .map(|area| MappedFile {
                range: area.range.clone(),
                offset: area.offset,
                path: area.name.clone(),
            })
            .collect()
    }

    /// What it was started as, cut to a line.
    pub fn command_line(&self) -> String {
        let bytes = std::fs::read(format!("/proc/{}/cmdline", self.pid)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
        let line: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
        line.trim_end().to_string()
    }
}

fn place(address: u64, bytes: usize) -> RemoteIoVec {
    RemoteIoVec {
        base: usize::try_from(address).unwrap_or(usize::MAX),
        len: bytes,
    }
}

impl Memory for LiveProcess {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let bytes = target.len();
        let read = self.call(&mut [IoSliceMut::new(target)], &[place(address, bytes)]);
        read == Ok(bytes)
    }

    /// One system call for a thousand places. It ends at the first that cannot be read; the next call
    /// begins behind that.
    fn read_many(&self, wanted: &mut [Wanted]) {
        let mut next = 0;
        while next < wanted.len() {
            let end = wanted.len().min(next + PLACES_MAX);
            let batch = &mut wanted[next..end];
            let remote: Vec<RemoteIoVec> = batch
                .iter()
                .map(|one| place(one.address, one.target.len()))
                .collect();
            let mut local: Vec<IoSliceMut> = batch
                .iter_mut()
                .map(|one| IoSliceMut::new(one.target))
                .collect();
            let mut left = self.call(&mut local, &remote).unwrap_or(0);
            let mut done = 0;
            while done < batch.len() && left >= batch[done].target.len() {
                left -= batch[done].target.len();
                batch[done].is_read = true;
                done += 1;
            }
            next += if next + done == end { done } else { done + 1 };
        }
    }

    /// The writable areas of files, and in front of each what was made read-only after it was written.
    fn data_areas(&self) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        for (index, area) in self.areas.iter().enumerate() {
            if !area.is_writable || !area.name.starts_with('/') {
                continue;
            }
            let before = index.checked_sub(1).map(|before| &self.areas[before]);
            let is_of_same = |before: &&Area| {
                before.range.end == area.range.start
                    && before.name == area.name
                    && !before.is_executable
            };
            found.extend(before.filter(is_of_same).map(|before| before.range.clone()));
            found.push(area.range.clone());
        }
        found
    }

    fn explain(&self, address: u64) -> Error {
        match read_areas(self.pid) {
            Err(error) => error,
            Ok(areas) if areas.is_empty() => Error::Gone(self.pid),
            Ok(_) => Error::Damaged(format!("there is nothing at {address:#x}")),
        }
    }
}

fn read_areas(pid: i32) -> Result<Vec<Area>> {
    let text = std::fs::read(format!("/proc/{pid}/maps")).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => Error::Forbidden(pid),
        _ => Error::Gone(pid),
    })?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(parse_area).collect())
}

/// "7f00-7f01 r-xp 00000000 08:01 1234   /path with blanks"
pub fn parse_area(line: &str) -> Option<Area> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    // "Rss:   12 kB" and the like, of another file of the kernel's.
    let permissions = rest.as_bytes();
    if !matches!(permissions.first(), Some(b'r' | b'-')) {
        return None;
    }
    let name = rest.splitn(5, ' ').nth(4).unwrap_or_default().trim_start();
    Some(Area {
        range: u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?,
        is_readable: permissions.first() == Some(&b'r'),
        is_writable: permissions.get(1) == Some(&b'w'),
        is_executable: permissions.get(2) == Some(&b'x'),
        offset: u64::from_str_radix(rest.split(' ').nth(1)?, 16).ok()?,
        name: name.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_kernels_is_read() {
        let area = parse_area("1000-3000 r-xp 00005000 08:01 1234    /a b/c").unwrap();
        assert_eq!(area.range, 0x1000..0x3000);
        assert!(area.is_executable && !area.is_writable);
        assert_eq!(area.name, "/a b/c");
        assert_eq!(area.offset, 0x5000);
        assert_eq!(
            parse_area("1000-3000 rw-p 00000000 00:00 0").unwrap().name,
            ""
        );
        assert!(parse_area("nonsense").is_none());
    }

    #[test]
    fn what_cannot_be_read_spoils_nothing_else() {
        let process = LiveProcess::open(i32::try_from(std::process::id()).unwrap()).unwrap();
        let here = [7_u8; 16];
        let address = here.as_ptr() as u64;
        let mut targets = [[0_u8; 16]; 5];
        let addresses = [address, 8, address, 16, address];
        let mut wanted: Vec<Wanted> = targets
            .iter_mut()
            .zip(addresses)
            .map(|(target, address)| Wanted::new(address, target))
            .collect();
        process.read_many(&mut wanted);
        let read: Vec<bool> = wanted.iter().map(|one| one.is_read).collect();
        assert_eq!(read, [true, false, true, false, true]);
        assert_eq!(targets[4], here);
    }

    #[test]
    fn a_process_that_is_not_there_is_gone() {
        assert_eq!(
            LiveProcess::open(i32::MAX).err(),
            Some(Error::Gone(i32::MAX))
        );
    }
}
