//! Writes a trace: records one after the other, and the index at the end.

use crate::codec::{Encoder, put};
use crate::format::{self, Ending, FILE_HEAD_BYTES, Tag};
use hakmem_heap::code;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::{failed, whole_file};
use serde::Serialize;
use std::fs::{File, Metadata};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// How much space to keep for the index and the end, per chunk.
const TAIL_BYTES_A_CHUNK: u64 = 40;
const LEVEL: i32 = 1; // 3 makes traces 1 % smaller and takes twice the time: decisions/0014

/// A chunk's entry in the index.
struct Place {
    offset: u64,
    head: crate::codec::ChunkHead,
}

pub struct Writer {
    path: PathBuf,
    file: File,
    /// The length of what was written completely.
    length: u64,
    limit: u64,
    room: u64,
    chunks: Vec<Place>,
    /// The offsets of all other records in the index.
    others: Vec<(Tag, u64)>,
    compressor: zstd::bulk::Compressor<'static>,
    buffer: Vec<u8>,
    contents: Vec<u8>,
    events: u64,
    /// What did not fit has left a hole, so no events may follow.
    hole: Option<Written>,
    /// When the first event was that is missing.
    cut_at: Option<u64>,
}

/// Whether a record fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    Yes,
    /// The trace would have exceeded its limit.
    AtLimit,
    DiskFull,
}

impl Writer {
    /// Begins a trace in a new file.
    pub fn create(path: &Path, limit: Option<u64>) -> Result<Writer> {
        Writer::new(whole_file::create_new(path)?, path, limit)
    }

    /// Begins a trace in a file that exists and is empty.
    pub fn open(path: &Path, limit: Option<u64>) -> Result<Writer> {
        let file = File::options().read(true).write(true).open(path);
        let file = file.map_err(|error| whole_file::unwritten(path, &error))?;
        Writer::new(file, path, limit)
    }

    fn new(mut file: File, path: &Path, limit: Option<u64>) -> Result<Writer> {
        let cannot = |error: io::Error| failed!("cannot write {}: {error}", path.shown());
        let mut head = format::MAGIC.to_vec();
        head.extend(format::VERSION.to_le_bytes());
        head.extend([0; 4]);
        file.write_all(&head).map_err(|error| {
            let _ = std::fs::remove_file(path); // the file has no content yet
            cannot(error)
        })?;
        let limit = limit.unwrap_or(u64::MAX);
        Ok(Writer {
            path: path.to_path_buf(),
            length: FILE_HEAD_BYTES,
            limit,
            room: limit.min(free_space(&file)),
            file,
            chunks: Vec::new(),
            others: Vec::new(),
            compressor: zstd::bulk::Compressor::new(LEVEL).map_err(cannot)?,
            buffer: Vec::new(),
            contents: Vec::new(),
            events: 0,
            hole: None,
            cut_at: None,
        })
    }

    pub fn length(&self) -> u64 {
        self.length
    }

    /// The most that the length could become when the trace was begun.
    pub fn room(&self) -> u64 {
        self.room
    }

    /// Events from this time on may be missing.
    pub fn cut(&mut self, time: u64) {
        self.cut_at = Some(self.cut_at.map_or(time, |known| known.min(time)));
    }

    pub fn chunk(&mut self, encoder: &mut Encoder) -> Result<Written> {
        let written = match self.hole {
            Some(why) => Ok(why),
            None => self.fitting_chunk(encoder),
        };
        if !matches!(written, Ok(Written::Yes)) {
            self.cut(encoder.head().first);
        }
        written
    }

    fn fitting_chunk(&mut self, encoder: &mut Encoder) -> Result<Written> {
        let mut contents = std::mem::take(&mut self.contents);
        contents.clear();
        encoder
            .pack(&mut self.compressor, &mut contents)
            .map_err(|error| failed!("cannot compress: {error}"))?;
        let offset = self.length;
        let written = self.record(Tag::Events, &contents);
        self.contents = contents;
        if let Ok(Written::Yes) = written {
            self.events += u64::from(encoder.head().count);
            self.chunks.push(Place {
                offset,
                head: encoder.head(),
            });
        }
        written
    }

    pub fn json(&mut self, tag: Tag, value: &impl Serialize) -> Result<Written> {
        let text = serde_json::to_vec(value).map_err(|error| failed!("cannot write: {error}"))?;
        self.other(tag, &text)
    }

    /// Writes call stacks that are new.
    pub fn stacks(&mut self, process: u32, stacks: &[(u32, Vec<u64>)]) -> Result<Written> {
        let mut contents = Vec::new();
        put(&mut contents, process.into());
        put(&mut contents, stacks.len() as u64);
        for (number, frames) in stacks {
            put(&mut contents, (*number).into());
            put(&mut contents, frames.len() as u64);
            for place in frames {
                put(&mut contents, place >> code::PLACE_LOG2);
                put(&mut contents, code::address_of(*place));
            }
        }
        self.other(Tag::Stacks, &contents)
    }

    fn other(&mut self, tag: Tag, contents: &[u8]) -> Result<Written> {
        let offset = self.length;
        let written = self.record(tag, contents)?;
        if written == Written::Yes {
            self.others.push((tag, offset));
        }
        Ok(written)
    }

    fn tail_bytes(&self) -> u64 {
        4096 + TAIL_BYTES_A_CHUNK * (self.chunks.len() + self.others.len()) as u64
    }

    fn record(&mut self, tag: Tag, contents: &[u8]) -> Result<Written> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        format::put_record(&mut buffer, tag, contents);
        let room = self.limit.saturating_sub(self.length + self.tail_bytes());
        let written = if buffer.len() as u64 > room {
            Ok(Written::AtLimit)
        } else {
            self.append(&buffer)
        };
        self.buffer = buffer;
        let not_fitting = written.as_ref().ok().filter(|&&one| one != Written::Yes);
        self.hole = self.hole.or(not_fitting.copied());
        written
    }

    /// Writes all of it, or leaves the file as it was.
    fn append(&mut self, bytes: &[u8]) -> Result<Written> {
        match self.file.write_all(bytes) {
            Ok(()) => {
                self.length += bytes.len() as u64;
                Ok(Written::Yes)
            }
            Err(error) if is_full(&error) => {
                self.shorten(self.length)?;
                Ok(Written::DiskFull)
            }
            Err(error) => Err(failed!("cannot write {}: {error}", self.path.shown())),
        }
    }

    fn shorten(&mut self, length: u64) -> Result<()> {
        use std::io::Seek;
        self.file
            .set_len(length)
            .and_then(|()| self.file.seek(io::SeekFrom::Start(length)))
            .map_err(|error| failed!("cannot shorten {}: {error}", self.path.shown()))?;
        self.length = length;
        Ok(())
    }

    /// Writes the end and the index. On a full disk, the last chunks are removed to make space. Returns the end as it was written.
    pub fn finish(mut self, mut ending: Ending) -> Result<Ending> {
        loop {
            ending.events = self.events;
            ending.cut_at = self.cut_at;
            let tail = self.tail(&ending)?;
            if self.append(&tail)? == Written::Yes {
                let cannot =
                    |error| failed!("cannot write {} to the disk: {error}", self.path.shown());
                self.file.sync_all().map_err(cannot)?;
                return self.find_again().map(|()| ending);
            }
            let Some(last) = self.chunks.pop() else {
                return Err(failed!("{}: the disk is full", self.path.shown()));
            };
            self.cut(last.head.first);
            self.events -= u64::from(last.head.count);
            self.others.retain(|(_, offset)| *offset < last.offset);
            self.shorten(last.offset)?;
        }
    }

    /// If the file was removed or replaced during the recording, the trace must not be lost.
    fn find_again(&mut self) -> Result<()> {
        let identity = |data: Metadata| (data.dev(), data.ino());
        let there = std::fs::metadata(&self.path).map(identity).ok();
        if there.is_some() && there == self.file.metadata().map(identity).ok() {
            return Ok(());
        }
        let path = self.path.shown();
        Err(match whole_file::keep_from(&mut self.file) {
            Some(kept) => failed!(
                "{path} was removed or replaced meanwhile; the trace is kept in {}",
                kept.shown()
            ),
            None => failed!("{path} was removed or replaced meanwhile, and the trace is lost"),
        })
    }

    fn tail(&self, ending: &Ending) -> Result<Vec<u8>> {
        let mut tail = Vec::new();
        let text = serde_json::to_vec(ending).map_err(|error| failed!("cannot write: {error}"))?;
        format::put_record(&mut tail, Tag::End, &text);
        let index_at = self.length + tail.len() as u64;
        let mut others: Vec<_> = self.others.iter().map(|(_, offset)| *offset).collect();
        others.push(self.length);
        let index = self.index(&others);
        let packed = zstd::bulk::compress(&index, LEVEL)
            .map_err(|error| failed!("cannot compress: {error}"))?;
        let mut contents = (index.len() as u32).to_le_bytes().to_vec();
        contents.extend(packed);
        format::put_record(&mut tail, Tag::Index, &contents);
        tail.extend(index_at.to_le_bytes());
        tail.extend(format::TRAILER_MAGIC);
        Ok(tail)
    }

    fn index(&self, others: &[u64]) -> Vec<u8> {
        let mut index = Vec::new();
        put(&mut index, others.len() as u64);
        let mut at = 0;
        for &offset in others {
            put(&mut index, offset - at);
            at = offset;
        }
        put(&mut index, self.chunks.len() as u64);
        at = 0;
        for Place { offset, head } in &self.chunks {
            let words = [head.process, head.thread, head.count].map(u64::from);
            for number in [offset - at].into_iter().chain(words) {
                put(&mut index, number);
            }
            put(&mut index, head.first);
            put(&mut index, head.last - head.first);
            at = *offset;
        }
        index
    }
}

/// Of the file's disk; some file systems do not say it.
fn free_space(file: &File) -> u64 {
    // SAFETY: zeros are a value, and the kernel writes only there.
    let (result, disk) = unsafe {
        let mut disk: libc::statvfs = std::mem::zeroed();
        (libc::fstatvfs(file.as_raw_fd(), &raw mut disk), disk)
    };
    let bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
    if result == 0 && bytes > 0 {
        bytes
    } else {
        u64::MAX
    }
}

/// Is there no space on the disk, within the quota, or below the limit of a file's size?
fn is_full(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::ENOSPC | libc::EDQUOT | libc::EFBIG)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Event, Kind};
    use crate::reader::Reader;

    /// Events that hardly become smaller.
    fn chunk(thread: u32, count: u64) -> Encoder {
        chunk_from(0, thread, count)
    }

    fn chunk_from(time: u64, thread: u32, count: u64) -> Encoder {
        let mut encoder = Encoder::new(1, thread);
        let mut random = 1_u64;
        for number in 0..count {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            encoder.push(Event {
                time: time + number,
                address: random >> 16,
                size: 1,
                stack: 0,
                kind: Kind::Malloc,
                alignment_log2: 0,
            });
        }
        encoder
    }

    /// A hole would look like frees that never happened, and like blocks that live on.
    #[test]
    fn behind_events_that_did_not_fit_there_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut writer = Writer::create(&path, Some(64 << 10)).unwrap();
        assert_eq!(writer.chunk(&mut chunk(1, 1000)).unwrap(), Written::Yes);
        for (thread, count) in [(1, 60_000), (1, 10), (2, 10)] {
            let late = &mut chunk_from(1000, thread, count);
            assert_eq!(writer.chunk(late).unwrap(), Written::AtLimit);
        }
        // Names of what was recorded before may still fit.
        assert_eq!(writer.json(Tag::Names, &()).unwrap(), Written::Yes);
        writer.finish(Ending::default()).unwrap();
        assert_eq!(counts(&path), [(1, 1000)]);
    }

    fn counts(path: &Path) -> Vec<(u32, u32)> {
        let reader = Reader::open(path).unwrap();
        let heads = reader.chunks.iter().map(|chunk| chunk.head);
        heads.map(|head| (head.thread, head.count)).collect()
    }

    /// What other threads did later would look like frees that never happened.
    #[test]
    fn all_threads_end_at_the_first_event_that_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut writer = Writer::create(&path, Some(64 << 10)).unwrap();
        let mut written = |time, thread, count| {
            let mut chunk = chunk_from(time, thread, count);
            writer.chunk(&mut chunk).unwrap()
        };
        assert_eq!(written(0, 1, 1000), Written::Yes);
        assert_eq!(written(1000, 1, 500), Written::Yes);
        assert_eq!(written(300, 2, 100), Written::Yes);
        assert_eq!(written(700, 2, 60_000), Written::AtLimit);
        assert_eq!(written(600, 3, 10), Written::AtLimit);
        writer.finish(Ending::default()).unwrap();
        assert_eq!(counts(&path), [(1, 600), (2, 100)]);
    }

    #[test]
    fn behind_stacks_that_did_not_fit_there_are_no_events() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace");
        let mut writer = Writer::create(&path, Some(64 << 10)).unwrap();
        let stacks: Vec<(u32, Vec<u64>)> = (1..5000)
            .map(|number| (number, vec![0x1234_5678; 12]))
            .collect();
        assert_eq!(writer.stacks(1, &stacks).unwrap(), Written::AtLimit);
        assert_eq!(writer.chunk(&mut chunk(1, 10)).unwrap(), Written::AtLimit);
    }
}
