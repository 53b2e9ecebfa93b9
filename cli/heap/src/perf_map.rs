//! Names of generated code, as the process writes them down for perf: in /tmp/perf-PID.map, one line "START BYTES NAME" for
//! each piece of code, or in a file that it has mapped (`dump`).
//!
//! Anybody may write to /tmp. So the map must be a regular file, owned by the process's user or by root. A file that is older
//! than the process belongs to an earlier process with the same number.

use crate::shown::shown;
use nix::fcntl::{OFlag, open, openat};
use nix::sys::stat::Mode;
use nix::unistd::{SysconfVar, sysconf};
use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

mod dump;
mod name;

/// How many bytes at a file's end are read; later lines win.
const BYTES_MAX: u64 = 128 << 20;
/// Longer names are cut.
const NAME_MAX: usize = 1024;
/// How far the start time of a process and the time of a file may be off.
const CLOCKS_OFF: Duration = Duration::from_secs(2);

/// Where a process writes its map. This also works after the process has ended, or if it has another /tmp than we do.
#[derive(Debug)]
pub struct MapPlace {
    folder: OwnedFd,
    name: String,
    user: u32,
    since: Option<SystemTime>,
    /// The jitdump file that it had mapped when this was made.
    dump: Option<File>,
}

/// Why there are no names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The process has written no map.
    Never,
    /// The file is not trusted, for this reason.
    Refused { name: String, why: &'static str },
}

impl fmt::Display for Absent {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Absent::Never => formatter.write_str("no perf map was written"),
            Absent::Refused { name, why } => {
                write!(formatter, "no names from /tmp/{name}: {why}")
            }
        }
    }
}

impl MapPlace {
    /// For a running process, given by the number of one of its threads.
    pub fn of(task: i32) -> Option<MapPlace> {
        let status = fs::read(format!("/proc/{task}/status")).ok()?;
        let status = String::from_utf8_lossy(&status);
        let word = |field: &str, number: fn(&str) -> Option<&str>| {
            let mut lines = status.lines();
            number(lines.find_map(|line| line.strip_prefix(field))?)
        };
        // The process uses its number in the innermost namespace.
        let id = word("NStgid:", |ids| ids.split_whitespace().last())
            .or_else(|| word("Tgid:", |id| Some(id.trim())))?;
        let user = word("Uid:", |ids| ids.split_whitespace().nth(1))?;
        // Only the first link, the kernel's, is followed: others in a container could lead to our own files.
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let root = open(format!("/proc/{task}/root").as_str(), flags, Mode::empty()).ok()?;
        let folder = openat(&root, "tmp", flags | OFlag::O_NOFOLLOW, Mode::empty()).ok()?;
        let (id, user) = (id.parse::<u32>().ok()?, user.parse().ok()?);
        Some(MapPlace {
            folder,
            name: format!("perf-{id}.map"),
            user,
            since: began(task),
            dump: dump::find(task, &root, id, user),
        })
    }

    /// Has the process written names by now?
    pub fn has_map(&self) -> bool {
        self.dump.is_some() || self.open().is_ok()
    }

    fn open(&self) -> Result<File, Absent> {
        let refused = |why| Absent::Refused {
            name: self.name.clone(),
            why,
        };
        let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
        let file = openat(&self.folder, self.name.as_str(), flags, Mode::empty());
        let file = File::from(file.map_err(|error| match error {
            nix::errno::Errno::ENOENT => Absent::Never,
            nix::errno::Errno::ELOOP => refused("it is a symbolic link"),
            _ => refused("it cannot be read"),
        })?);
        let data = file.metadata().map_err(|_| refused("it cannot be read"))?;
        if !data.is_file() {
            return Err(refused("it is not a file"));
        }
        if data.uid() != self.user && data.uid() != 0 {
            return Err(refused("neither the process's user nor root owns it"));
        }
        let is_older = |since| data.modified().is_ok_and(|time| time + CLOCKS_OFF < since);
        if self.since.is_some_and(is_older) {
            return Err(refused("it is older than the process"));
        }
        Ok(file)
    }

    /// The names that are written by now.
    pub fn read(&self) -> Result<PerfMap, Absent> {
        let Some(dump) = &self.dump else {
            return self.read_lines();
        };
        let mut map = self.read_lines().unwrap_or_default();
        map.add_dump(BufReader::new(dump)).ok(); // on an error, the records before it still count
        Ok(map)
    }

    fn read_lines(&self) -> Result<PerfMap, Absent> {
        let mut file = self.open()?;
        let bytes = read_end(&mut file, BYTES_MAX);
        bytes.map(PerfMap::parse).map_err(|_| Absent::Refused {
            name: self.name.clone(),
            why: "it cannot be read",
        })
    }
}

/// Reads from the first line that begins in the last `most` bytes.
fn read_end(file: &mut File, most: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    let skipped = length.saturating_sub(most);
    file.seek(SeekFrom::Start(skipped.saturating_sub(1)))?;
    file.take(most + 1).read_to_end(&mut bytes)?;
    if skipped > 0 {
        let end = memchr::memchr(b'\n', &bytes).map_or(bytes.len(), |end| end + 1);
        bytes.drain(..end);
    }
    Ok(bytes)
}

/// When the process began, by the clock of file times.
fn began(task: i32) -> Option<SystemTime> {
    const START_TIME: usize = 22 - 3; // counted behind the name
    let stat = fs::read(format!("/proc/{task}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    let (_, words) = stat.rsplit_once(')')?;
    let ticks: u64 = words.split_whitespace().nth(START_TIME)?.parse().ok()?;
    let a_second = u64::try_from(sysconf(SysconfVar::CLK_TCK).ok()??).ok()?;
    let system = fs::read_to_string("/proc/stat").ok()?;
    let boot = system.lines().find_map(|line| line.strip_prefix("btime "));
    let boot: u64 = boot?.trim().parse().ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(boot + ticks.checked_div(a_second)?))
}

/// Names by code address. For the same address, the later line counts.
#[derive(Debug, Default)]
pub struct PerfMap {
    text: Vec<u8>,
    /// By start address; no two overlap.
    ranges: BTreeMap<u64, Range>,
}

#[derive(Clone, Copy, Debug)]
struct Range {
    end: u64,
    /// Where the name begins in the text.
    at: u32,
    bytes: u32,
}

impl PerfMap {
    /// Skips invalid lines, and a last line that is not complete yet.
    pub fn parse(text: Vec<u8>) -> PerfMap {
        let mut ranges = BTreeMap::new();
        let mut begin = 0;
        for end in memchr::memchr_iter(b'\n', &text) {
            if let Some((start, range)) = line(&text[begin..end], begin) {
                insert(&mut ranges, start, range);
            }
            begin = end + 1;
        }
        PerfMap { text, ranges }
    }

    /// The name at an address, in the form of all frames: "export (views.py:112)", "Interpreter (jit)".
    pub fn name(&self, address: u64) -> Option<String> {
        let (_, range) = self.ranges.range(..=address).next_back()?;
        let at = range.at as usize;
        let name = self.text.get(at..at + range.bytes as usize)?;
        (address < range.end).then(|| name::frame(&shown(name)))
    }
}

/// Parses "7f757bd22c00 1b8 JS:~tick /srv/app.js:4:14", which begins at `begin` in the text.
fn line(line: &[u8], begin: usize) -> Option<(u64, Range)> {
    let mut blanks = memchr::memchr_iter(b' ', line);
    let (first, second) = (blanks.next()?, blanks.next()?);
    let number = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).ok()?;
        u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
    };
    let (start, bytes) = (number(&line[..first])?, number(&line[first + 1..second])?);
    let name = line[second + 1..].trim_ascii_end();
    let range = Range {
        end: start.checked_add(bytes).filter(|end| *end > start)?,
        at: u32::try_from(begin + second + 1).ok()?,
        bytes: name.len().min(NAME_MAX) as u32,
    };
    (!name.is_empty()).then_some((start, range))
}

/// Inserts a range; it replaces what it overlaps.
fn insert(ranges: &mut BTreeMap<u64, Range>, start: u64, new: Range) {
    let before = ranges.range(..start).next_back();
    if let Some((&from, &old)) = before.filter(|(_, old)| old.end > start) {
        ranges.insert(from, Range { end: start, ..old });
        if old.end > new.end {
            ranges.insert(new.end, old);
        }
    }
    while let Some((&from, &old)) = ranges.range(start..new.end).next() {
        ranges.remove(&from);
        if old.end > new.end {
            ranges.insert(new.end, old);
        }
    }
    ranges.insert(start, new);
}

#[cfg(test)]
mod tests;
