//! The other way to write down names of generated code for perf (jitdump): jit-PID.dump, a file of records that also contain
//! the code. The process maps the file, so that tools find it among its mappings.

use super::{NAME_MAX, PerfMap, Range, insert};
use crate::live::{Area, read_areas};
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

/// "JiTD" in this machine's byte order.
const MAGIC: u32 = 0x4a69_5444;
/// The smallest header size that a file may state.
const HEAD_LEAST: u64 = 40;

/// The kinds of records that name code: a new piece, and a piece that was moved.
const LOAD: u32 = 0;
const MOVE: u32 = 1;
/// Each record begins with a number, a length and a time. Two numbers and four addresses and sizes precede a name.
const RECORD_HEAD: u64 = 16;
const LOAD_HEAD: u64 = 40;
const MOVE_HEAD: u64 = 48;

/// Limits for the bytes of all names, and for pieces of code.
const TEXT_MAX: usize = 128 << 20;
const RANGES_MAX: usize = 4 << 20;

/// Opens the file that a process has mapped. The path is looked up in the process's own root and may contain no links, as the
/// paths of mappings never do. Another user's file is not trusted.
pub fn find(task: i32, root: &OwnedFd, id: u32, user: u32) -> Option<File> {
    among(&read_areas(task).ok()?, root, id, user)
}

fn among(areas: &[Area], root: &OwnedFd, id: u32, user: u32) -> Option<File> {
    let name = format!("/jit-{id}.dump");
    let mut paths = areas.iter().map(|area| &area.name[..]);
    let path = paths.find(|path| path.starts_with(b"/") && path.ends_with(name.as_bytes()))?;
    let how = OpenHow::new()
        .flags(OFlag::O_RDONLY | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_IN_ROOT | ResolveFlag::RESOLVE_NO_SYMLINKS);
    let file = File::from(openat2(root, OsStr::from_bytes(path), how).ok()?);
    let data = file.metadata().ok()?;
    (data.is_file() && (data.uid() == user || data.uid() == 0)).then_some(file)
}

fn read<const BYTES: usize>(from: &mut impl Read) -> io::Result<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn number(from: &mut impl Read) -> io::Result<u32> {
    read(from).map(u32::from_ne_bytes)
}

fn long(from: &mut impl Read) -> io::Result<u64> {
    read(from).map(u64::from_ne_bytes)
}

/// Seeks forwards, within the buffer if possible.
fn skip_to(from: &mut impl Seek, place: u64) -> io::Result<()> {
    let rest = place.checked_sub(from.stream_position()?);
    let rest = rest.and_then(|rest| i64::try_from(rest).ok());
    from.seek_relative(rest.ok_or(io::ErrorKind::InvalidData)?)
}

impl PerfMap {
    /// Adds all complete records. An error where the file ends or is invalid.
    pub fn add_dump(&mut self, mut from: impl Read + Seek) -> io::Result<()> {
        from.rewind()?;
        let [magic, _version, head] = [(); 3].map(|()| number(&mut from));
        let mut next = u64::from(head?);
        if magic? != MAGIC || next < HEAD_LEAST {
            return Err(io::ErrorKind::InvalidData.into());
        }
        loop {
            skip_to(&mut from, next)?;
            let (kind, bytes) = (number(&mut from)?, u64::from(number(&mut from)?));
            let content = bytes.checked_sub(RECORD_HEAD);
            let content = content.ok_or(io::ErrorKind::InvalidData)?;
            long(&mut from)?; // the time
            match kind {
                LOAD if content > LOAD_HEAD => self.load(&mut from, content - LOAD_HEAD)?,
                MOVE if content >= MOVE_HEAD => self.move_code(&mut from)?,
                _ => {}
            }
            next += bytes;
        }
    }

    /// Reads a record of new code; the name and the code follow.
    fn load(&mut self, from: &mut impl Read, rest: u64) -> io::Result<()> {
        let [_ids, _virtual, start, bytes, _index] = [(); 5].map(|()| long(from));
        let (start, bytes) = (start?, bytes?);
        let mut name = Vec::new();
        from.take(rest.min(NAME_MAX as u64))
            .read_to_end(&mut name)?;
        let end = memchr::memchr(0, &name).unwrap_or(name.len());
        let name = name[..end].trim_ascii();
        let place = u32::try_from(self.text.len()).ok();
        let place = place.filter(|_| self.text.len() + name.len() <= TEXT_MAX);
        if let (Some(place), false) = (place, name.is_empty()) {
            self.put(start, bytes, place, name.len() as u32);
            self.text.extend(name);
        }
        Ok(())
    }

    fn move_code(&mut self, from: &mut impl Read) -> io::Result<()> {
        let [_ids, _virtual, old, new, bytes, _index] = [(); 6].map(|()| long(from));
        if let Some(Range {
            at, bytes: name, ..
        }) = self.ranges.get(&old?).copied()
        {
            self.put(new?, bytes?, at, name);
        }
        Ok(())
    }

    fn put(&mut self, start: u64, bytes: u64, at: u32, name: u32) {
        let end = start.checked_add(bytes).filter(|end| *end > start);
        if let Some(end) = end.filter(|_| self.ranges.len() < RANGES_MAX) {
            insert(
                &mut self.ranges,
                start,
                Range {
                    end,
                    at,
                    bytes: name,
                },
            );
        }
    }
}

#[cfg(test)]
mod tests;
