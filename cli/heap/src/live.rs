//! A running process.

use crate::code::{self, Code};
use crate::error::{Error, Result};
use crate::memory::{Memory, Wanted};
use crate::resident::Pages;
use crate::shown::shown;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicI32, Ordering};

/// How many places one system call can read.
const PLACES_MAX: usize = 1024;

/// A kernel may lack the calls that read and write another process's memory, and a sandbox may refuse them. Then not even our own
/// can be read by them; /proc/PID/mem leads to the same memory, with a call for each place.
static HAS_CALLS: LazyLock<bool> = LazyLock::new(|| {
    let (from, mut to) = ([1], [0]);
    let remote = [place(from.as_ptr() as u64, 1)];
    process_vm_readv(Pid::this(), &mut [IoSliceMut::new(&mut to)], &remote).is_ok()
});

/// One line of /proc/PID/maps.
#[derive(Clone, Debug)]
pub struct Area {
    pub range: Range<u64>,
    pub is_readable: bool,
    pub is_writable: bool,
    pub is_executable: bool,
    /// Shared with other processes, or written through to a file.
    pub is_shared: bool,
    /// The file offset at which it begins.
    pub offset: u64,
    /// A file's path, or a name in brackets; empty for anonymous memory.
    pub name: Vec<u8>,
}

pub struct LiveProcess {
    pub pid: i32,
    pub areas: Vec<Area>,
    /// The thread through whose number the memory is found: the first thread, or another one if the first has ended.
    task: AtomicI32,
    /// The memory of the program that ran when this was opened; not of one that it executes later.
    memory: Option<File>,
    command_line: String,
}

/// Fails if /proc belongs to another PID namespace: there, our numbers mean other processes.
pub fn check_proc() -> Result<()> {
    let own = std::fs::read_link("/proc/self").ok();
    let is_own = own.is_some_and(|own| own.as_os_str() == std::process::id().to_string().as_str());
    is_own.then_some(()).ok_or(Error::ForeignProc)
}

impl LiveProcess {
    pub fn open(pid: i32) -> Result<LiveProcess> {
        check_proc()?;
        let (task, areas) = match read_areas(pid)? {
            areas if areas.is_empty() && is_of_kernel(pid) => return Err(Error::OfKernel),
            areas if areas.is_empty() => other_task(pid).ok_or(Error::Gone(pid))?,
            areas => (pid, areas),
        };
        let process = LiveProcess {
            pid,
            areas,
            task: AtomicI32::new(task),
            memory: File::open(format!("/proc/{task}/mem")).ok(),
            command_line: started_as(task),
        };
        match process.areas.first() {
            // For some processes, the kernel shows the areas but does not let us read the memory.
            Some(first) => match process.try_read(first.range.start) {
                Err(Errno::EPERM) => Err(Error::Forbidden(pid)),
                Err(Errno::ESRCH) => Err(Error::Gone(pid)),
                _ => Ok(process),
            },
            None => Err(Error::Gone(pid)), // a zombie
        }
    }

    fn try_read(&self, address: u64) -> nix::Result<usize> {
        let mut byte = [0];
        self.call(&mut [IoSliceMut::new(&mut byte)], &[place(address, 1)])
    }

    /// The number of a thread whose /proc entries describe the process.
    pub fn task(&self) -> i32 {
        self.task.load(Ordering::Relaxed)
    }

    /// The thread has ended. Looks for another thread and uses that one.
    fn has_other_task(&self) -> bool {
        let other = other_task(self.pid).map(|(task, _)| task);
        if let Some(other) = other {
            self.task.store(other, Ordering::Relaxed);
        }
        other.is_some()
    }

    fn call(&self, local: &mut [IoSliceMut], remote: &[RemoteIoVec]) -> nix::Result<usize> {
        if !*HAS_CALLS {
            return self.read_file(local, remote);
        }
        match process_vm_readv(Pid::from_raw(self.task()), local, remote) {
            Err(Errno::ESRCH) if self.has_other_task() => {
                process_vm_readv(Pid::from_raw(self.task()), local, remote)
            }
            result => result,
        }
    }

    /// Like the system call, stops at the first place that cannot be read.
    fn read_file(&self, local: &mut [IoSliceMut], remote: &[RemoteIoVec]) -> nix::Result<usize> {
        let memory = self.memory.as_ref().ok_or(Errno::EPERM)?;
        let places = local.iter_mut().zip(remote);
        let read = places.map_while(|(target, place)| {
            let is_read = memory.read_exact_at(target, place.base as u64).is_ok();
            is_read.then_some(target.len())
        });
        match read.sum() {
            0 => Err(Errno::EFAULT),
            bytes => Ok(bytes),
        }
    }

    /// The file ignores protection, which the system call respects.
    fn write_file(&self, address: u64, bytes: &[u8]) -> nix::Result<usize> {
        let mut areas = self.areas.iter();
        if !areas.any(|area| area.is_writable && area.range.contains(&address)) {
            return Err(Errno::EFAULT);
        }
        let memory = OpenOptions::new()
            .write(true)
            .open(format!("/proc/{}/mem", self.task()));
        let written = memory.and_then(|memory| memory.write_at(bytes, address));
        written.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(0)))
    }

    /// Has the process executed another program since this was opened? Then the old memory no longer exists.
    fn has_become_another(&self) -> bool {
        let first = self.areas.first().map_or(0, |area| area.range.start);
        let memory = self.memory.as_ref();
        memory.is_some_and(|memory| matches!(memory.read_at(&mut [0], first), Ok(0)))
    }

    /// Writes into the process's memory.
    pub fn write(&self, address: u64, bytes: &[u8]) -> Result<()> {
        if self.has_become_another() {
            return Err(self.lost().unwrap_or(Error::Became(self.pid)));
        }
        let written = if *HAS_CALLS {
            let local = [IoSlice::new(bytes)];
            let remote = [place(address, bytes.len())];
            process_vm_writev(Pid::from_raw(self.task()), &local, &remote)
        } else {
            self.write_file(address, bytes)
        };
        match written {
            Ok(written) if written == bytes.len() => Ok(()),
            Err(Errno::EPERM | Errno::EACCES) => Err(Error::Forbidden(self.pid)),
            Err(Errno::ESRCH) => Err(Error::Gone(self.pid)),
            _ => Err(self.explain(address)),
        }
    }

    /// The name of the program's file, if the program was linked for fixed addresses (ET_EXEC), or that cannot be read.
    fn program_at_fixed_addresses(&self) -> Option<Vec<u8>> {
        const TYPE_AT: u64 = 16;
        const EXEC: [u8; 2] = [2, 0];
        let path = format!("/proc/{}/exe", self.task());
        let mut kind = EXEC;
        let is_read = File::open(&path).is_ok_and(|file| {
            let read = file.read_exact_at(&mut kind, TYPE_AT);
            read.is_ok()
        });
        let name = std::fs::read_link(&path).ok()?.into_os_string().into_vec();
        (!is_read || kind == EXEC).then_some(name)
    }

    /// A thread's name; None if there is no such thread.
    pub fn thread_name(&self, thread: u64) -> Option<String> {
        let path = format!("/proc/{}/task/{thread}/comm", self.pid);
        let name = std::fs::read(path).ok()?;
        Some(shown(name.strip_suffix(b"\n").unwrap_or(&name)))
    }

    /// The files that the process has mapped, and those that it has numbered if it uses hakmem.
    pub fn code(&self) -> Vec<Code> {
        code::all(&code::of_files(&self.areas), self)
    }

    /// The command line when this was opened, shortened; a later exec does not change it.
    pub fn command_line(&self) -> &str {
        &self.command_line
    }
}

fn started_as(task: i32) -> String {
    command_line(&std::fs::read(format!("/proc/{task}/cmdline")).unwrap_or_default())
}

/// A command line to show, from words that each end with a zero. A changed title may end with zeros or spaces.
pub fn command_line(words: &[u8]) -> String {
    let words = words.strip_suffix(b"\0").unwrap_or(words);
    let words: Vec<String> = words.split(|byte| *byte == 0).map(shown).collect();
    let line: String = words.join(" ").chars().take(200).collect();
    line.trim_end().to_string()
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

    /// One system call reads up to a thousand places. It stops at the first that cannot be read; the next call begins behind
    /// that one.
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

    /// The writable areas of files, each after the read-only area before it (RELRO). Shared areas are left out: they hold no
    /// library's data. So are pages that are not there, as reading them would make them resident: what was relocated is there. A
    /// program at fixed addresses is not relocated.
    fn data_areas(&self) -> Vec<Range<u64>> {
        let mut found = Vec::new();
        let pages = Pages::open(self).ok();
        let program = self.program_at_fixed_addresses();
        let mut add = |area: &Area| match &pages {
            Some(pages) if program.as_ref() != Some(&area.name) => {
                found.extend(pages.there(&area.range));
            }
            _ => found.push(area.range.clone()),
        };
        for (index, area) in self.areas.iter().enumerate() {
            if !area.is_writable || area.is_shared || !area.name.starts_with(b"/") {
                continue;
            }
            let before = index.checked_sub(1).map(|before| &self.areas[before]);
            let is_of_same = |before: &&Area| {
                before.range.end == area.range.start
                    && before.name == area.name
                    && !before.is_executable
            };
            before.filter(is_of_same).into_iter().for_each(&mut add);
            add(area);
        }
        found
    }

    fn lost(&self) -> Option<Error> {
        let first = self.areas.first()?;
        let read = self.try_read(first.range.start);
        if read.is_ok() && !self.has_become_another() {
            return None;
        }
        match read_areas(self.task()) {
            // The process has other rights now, or has executed a program that has.
            Err(error @ Error::Forbidden(_)) => Some(error),
            // An ending process loses its memory before its number.
            Ok(areas) if read != Err(Errno::ESRCH) && !areas.is_empty() => match read {
                _ if self.has_become_another() => Some(Error::Became(self.pid)),
                Err(Errno::EPERM) => Some(Error::Forbidden(self.pid)),
                _ => None,
            },
            _ => Some(Error::Gone(self.pid)),
        }
    }

    fn explain(&self, address: u64) -> Error {
        match read_areas(self.task()) {
            Err(error @ Error::Forbidden(_)) => error,
            _ => self
                .lost()
                .unwrap_or_else(|| Error::Damaged(format!("there is nothing at {address:#x}"))),
        }
    }
}

/// The flags are the seventh word after the name. The name is in parentheses and may contain any bytes.
fn is_of_kernel(pid: i32) -> bool {
    const KERNEL_THREAD: u32 = 0x0020_0000; // PF_KTHREAD
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let flags = text.rsplit(')').next().and_then(|rest| {
        let word = rest.split_ascii_whitespace().nth(6)?;
        word.parse::<u32>().ok()
    });
    flags.is_some_and(|flags| flags & KERNEL_THREAD != 0)
}

/// A thread that still has the process's memory, and the areas of that memory.
fn other_task(pid: i32) -> Option<(i32, Vec<Area>)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    tasks
        .filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|task| Some((task, read_areas(task).ok()?)))
        .find(|(_, areas)| !areas.is_empty())
}

/// Does the process exist, though a /proc with hidepid hides it?
fn is_hidden(pid: i32) -> bool {
    kill(Pid::from_raw(pid), None) == Err(Errno::EPERM)
}

pub(crate) fn read_areas(pid: i32) -> Result<Vec<Area>> {
    let text = std::fs::read(format!("/proc/{pid}/maps")).map_err(|error| match error.kind() {
        ErrorKind::PermissionDenied => Error::Forbidden(pid),
        _ if is_hidden(pid) => Error::Forbidden(pid),
        _ => Error::Gone(pid),
    })?;
    let mut areas = parse_areas(&text);
    for area in &mut areas {
        if memchr::memmem::find(&area.name, NEWLINE).is_some() {
            area.name = exact_name(pid, area);
        }
    }
    Ok(areas)
}

/// How the kernel escapes a newline, the only character that it escapes. A file's real name may contain this, too.
const NEWLINE: &[u8] = br"\012";

fn exact_name(pid: i32, area: &Area) -> Vec<u8> {
    let Range { start, end } = area.range;
    match std::fs::read_link(format!("/proc/{pid}/map_files/{start:x}-{end:x}")) {
        Ok(name) => name.into_os_string().into_vec(),
        Err(_) => with_newlines(&area.name),
    }
}

/// A name as the kernel writes it, with newlines unescaped.
pub fn with_newlines(name: &[u8]) -> Vec<u8> {
    let mut exact = Vec::new();
    let mut rest = name;
    while let Some(at) = memchr::memmem::find(rest, NEWLINE) {
        exact.extend(&rest[..at]);
        exact.push(b'\n');
        rest = &rest[at + NEWLINE.len()..];
    }
    exact.extend(rest);
    exact
}

/// The content of /proc/PID/maps; names stay as the kernel writes them.
pub fn parse_areas(text: &[u8]) -> Vec<Area> {
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter_map(parse_area).collect()
}

/// "7f00-7f01 r-xp 00000000 08:01 1234   /path with blanks"
pub fn parse_area(line: &[u8]) -> Option<Area> {
    let mut words = line.splitn(6, |byte| *byte == b' ');
    let mut word = || std::str::from_utf8(words.next()?).ok();
    let (start, end) = word()?.split_once('-')?;
    let permissions = word()?.as_bytes();
    // /proc/PID/smaps also has lines such as "Rss:   12 kB".
    if !matches!(permissions.first(), Some(b'r' | b'-')) {
        return None;
    }
    let offset = u64::from_str_radix(word()?, 16).ok()?;
    let name = words.nth(2).unwrap_or_default().trim_ascii_start();
    Some(Area {
        range: u64::from_str_radix(start, 16).ok()?..u64::from_str_radix(end, 16).ok()?,
        is_readable: permissions.first() == Some(&b'r'),
        is_writable: permissions.get(1) == Some(&b'w'),
        is_executable: permissions.get(2) == Some(&b'x'),
        is_shared: permissions.get(3) == Some(&b's'),
        offset,
        name: name.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Control;

    #[test]
    fn a_title_that_was_written_over_the_words_ends_where_it_ends() {
        assert_eq!(command_line(b"sleep\x00100\x00"), "sleep 100");
        assert_eq!(command_line(b"server *:7911\0\0\0\0\0"), "server *:7911");
        assert_eq!(command_line(b"server: worker      \0"), "server: worker");
    }

    #[test]
    fn a_line_of_the_kernels_is_read() {
        let area = parse_area(b"1000-3000 r-xp 00005000 08:01 1234    /a b/\xff").unwrap();
        assert_eq!(area.range, 0x1000..0x3000);
        assert!(area.is_executable && !area.is_writable && !area.is_shared);
        assert_eq!(area.name, b"/a b/\xff");
        assert_eq!(area.offset, 0x5000);
        assert_eq!(
            parse_area(b"1000-3000 rw-p 00000000 00:00 0").unwrap().name,
            b""
        );
        assert!(parse_area(b"1000-3000 rw-s 0 0:1 0").unwrap().is_shared);
        assert!(parse_area(b"nonsense").is_none());
        assert_eq!(with_newlines(br"/a\012b\012"), b"/a\nb\n");
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
    fn a_process_that_ends_meanwhile_is_gone() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let process = LiveProcess::open(pid).unwrap();
        assert_eq!(process.lost(), None);
        child.kill().unwrap();
        // Until its parent has waited for it, only its number remains.
        let find = || Control::find(&process).map(|control| control.release);
        while find() == Err(Error::NotHakmem) {
            std::thread::yield_now();
        }
        assert_eq!(find(), Err(Error::Gone(pid)));
        child.wait().unwrap();
        assert_eq!(find(), Err(Error::Gone(pid)));
    }

    #[test]
    fn a_process_that_is_not_there_is_gone() {
        assert_eq!(
            LiveProcess::open(i32::MAX).err(),
            Some(Error::Gone(i32::MAX))
        );
    }
}
