//! Opens a trace, complete or cut off, and reads its records one at a time.

use crate::codec::{self, ChunkHead, get};
use crate::format::{self, Beginning, Ending, FILE_HEAD_BYTES, Process, Tag};
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::{failed, input, usage};
use serde::de::DeserializeOwned;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

mod cut;
mod stacks;

const INDEX_BYTES_MAX: usize = 1 << 30;
/// The length of a record's name, and how many bytes a search reads at a time.
const NAME_BYTES: usize = 4;
const WINDOW_BYTES: usize = 1 << 16;

/// A chunk in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    pub offset: u64,
    pub head: ChunkHead,
}

#[derive(Debug)]
pub struct Reader {
    path: PathBuf,
    file: File,
    pub bytes: u64,
    pub beginning: Beginning,
    pub processes: Vec<Process>,
    /// In the order of the file; for each thread, this is the order of its events.
    pub chunks: Vec<Chunk>,
    /// None: the recording was cut off.
    pub ending: Option<Ending>,
    /// One line for the user, if something is missing.
    pub warning: Option<String>,
    version: u32,
    stacks: Vec<u64>,
    modules: Vec<u64>,
    names: Vec<u64>,
}

/// What a scan could not read.
struct Damage {
    places: u64,
    bytes: u64,
    /// The number of bytes behind the end.
    behind: u64,
}

/// What a scan without an index has found.
enum Found {
    Record {
        tag: Option<Tag>,
        contents: Vec<u8>,
        next: u64,
    },
    /// The file ends in the middle of a record, or before it.
    End,
}

impl Reader {
    pub fn open(path: &Path) -> Result<Reader> {
        let file = input::open(path)
            .map_err(|error| usage!("cannot open the trace {}: {error}", path.shown()))?;
        let bytes = file
            .metadata()
            .map_err(|error| usage!("cannot read {}: {error}", path.shown()))?
            .len();
        let mut reader = Reader {
            path: path.to_path_buf(),
            file,
            bytes,
            beginning: Beginning::default(),
            processes: Vec::new(),
            chunks: Vec::new(),
            ending: None,
            warning: None,
            version: 0,
            stacks: Vec::new(),
            modules: Vec::new(),
            names: Vec::new(),
        };
        let is_head_whole = reader.check_head()?;
        // In a file made of two concatenated traces, the index points into the first one.
        let is_last = |offset| {
            let index = reader.find(offset);
            matches!(index, Ok(Found::Record { next, .. }) if next + format::TRAILER_BYTES == bytes)
        };
        let index = reader.index_offset().filter(|offset| is_last(*offset));
        let mut doubts = Vec::new();
        let is_whole = match index {
            Some(offset) if is_head_whole => reader.read_index(offset).is_ok(),
            _ => false,
        };
        if !is_whole {
            reader.forget();
            doubts = reader.scan(is_head_whole)?;
        }
        reader.cut()?;
        doubts.extend(reader.ended_early());
        if !doubts.is_empty() {
            let path = reader.path.shown();
            reader.warning = Some(format!("{path} {}", doubts.join("; it ")));
        }
        Ok(reader)
    }

    /// Drops what was read from an invalid index.
    fn forget(&mut self) {
        self.beginning = Beginning::default();
        self.processes.clear();
        self.chunks.clear();
        self.ending = None;
        self.stacks.clear();
        self.modules.clear();
        self.names.clear();
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Was the trace recorded with call stacks? A process without allocations has none even so.
    pub fn has_stacks(&self) -> bool {
        self.beginning.stack_frames != 0
    }

    pub fn events(&self) -> u64 {
        self.chunks
            .iter()
            .map(|chunk| u64::from(chunk.head.count))
            .sum()
    }

    pub fn units_per_second(&self) -> f64 {
        let measured = self
            .ending
            .as_ref()
            .map_or(0.0, |ending| ending.units_per_second);
        let estimated = self.beginning.units_per_second;
        [measured, estimated, 1e9]
            .into_iter()
            .find(|&value| value.is_normal() && value > 0.0)
            .unwrap_or(1e9)
    }

    /// Decides by the file's first bytes; the rest may be unreadable.
    pub fn is_one(path: &Path) -> bool {
        input::first_bytes(path).is_some_and(|begin| begin == format::MAGIC)
    }

    /// False if the header is damaged, but the first record is in its place.
    fn check_head(&mut self) -> Result<bool> {
        let path = self.path.shown();
        let mut head = [0; FILE_HEAD_BYTES as usize];
        let is_read = self.file.read_exact_at(&mut head, 0).is_ok();
        if self.bytes == 0 {
            return Err(usage!("{path} is empty: nothing was recorded into it"));
        }
        let is_whole = is_read && head[..8] == format::MAGIC;
        if !(is_whole || is_read && self.is_record(FILE_HEAD_BYTES, Tag::Begin)) {
            return Err(usage!(
                "{path} is not a trace: record one with 'hakmem record'"
            ));
        }
        let version = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        if !(1..=format::VERSION).contains(&version) {
            return Err(usage!(
                "{path} has trace format {version}; this hakmem reads up to {}: use the hakmem \
                 that recorded it, or a newer one",
                format::VERSION
            ));
        }
        self.version = version;
        Ok(is_whole)
    }

    fn is_record(&self, offset: u64, wanted: Tag) -> bool {
        matches!(self.find(offset), Ok(Found::Record { tag: Some(tag), .. }) if tag == wanted)
    }

    fn damaged(&self, offset: u64, how: &str) -> hakmem_lab::error::Error {
        failed!(
            "{} is damaged at byte {offset} ({how}): copy it again from where it was recorded",
            self.path.shown()
        )
    }

    fn index_offset(&self) -> Option<u64> {
        let mut trailer = [0; format::TRAILER_BYTES as usize];
        let at = self.bytes.checked_sub(format::TRAILER_BYTES)?;
        self.file.read_exact_at(&mut trailer, at).ok()?;
        let (offset, magic) = trailer.split_at(8);
        (magic == format::TRAILER_MAGIC)
            .then(|| u64::from_le_bytes(offset.try_into().unwrap_or_default()))
    }

    fn find(&self, offset: u64) -> Result<Found> {
        let mut head = [0; format::RECORD_HEAD_BYTES];
        if self.file.read_exact_at(&mut head, offset).is_err() {
            return Ok(Found::End);
        }
        let name = [head[0], head[1], head[2], head[3]];
        let length = [head[4], head[5], head[6], head[7]];
        let sum = u32::from_le_bytes([head[8], head[9], head[10], head[11]]);
        let count = u32::from_le_bytes(length) as usize;
        let contents_at = offset + head.len() as u64;
        let next = contents_at + count as u64;
        if next > self.bytes {
            return Ok(Found::End);
        }
        if count > format::RECORD_BYTES_MAX {
            return Err(self.damaged(offset, "an impossible length"));
        }
        let mut contents = vec![0; count];
        self.file
            .read_exact_at(&mut contents, contents_at)
            .map_err(|error| failed!("cannot read {}: {error}", self.path.shown()))?;
        if format::checksum(name, length, &contents) == sum {
            return Ok(Found::Record {
                tag: Tag::from_name(name),
                contents,
                next,
            });
        }
        if next == self.bytes {
            return Ok(Found::End); // the last record is incomplete on disk
        }
        Err(self.damaged(offset, "a wrong checksum"))
    }

    /// A record that must be there.
    fn record(&self, offset: u64, wanted: Tag) -> Result<Vec<u8>> {
        match self.find(offset)? {
            Found::Record { tag, contents, .. } if tag == Some(wanted) => Ok(contents),
            Found::Record { .. } => Err(self.damaged(offset, "the index names another record")),
            Found::End => Err(self.damaged(offset, "the record is cut off")),
        }
    }

    fn json<T: DeserializeOwned>(&self, offset: u64, contents: &[u8]) -> Result<T> {
        serde_json::from_slice(contents).map_err(|_| self.damaged(offset, "an unreadable record"))
    }

    /// Adds the content of a record that is not a chunk.
    fn note(&mut self, offset: u64, tag: Tag, contents: &[u8]) -> Result<()> {
        match tag {
            Tag::Begin => {
                let beginning: Beginning = self.json(offset, contents)?;
                self.beginning = beginning.for_people();
            }
            Tag::Process => {
                let process: Process = self.json(offset, contents)?;
                self.processes.push(process.for_people());
            }
            Tag::Stacks => self.stacks.push(offset),
            Tag::Modules => self.modules.push(offset),
            Tag::Names => self.names.push(offset),
            Tag::End => self.ending = Some(self.json(offset, contents)?),
            Tag::Events | Tag::Index => {}
        }
        Ok(())
    }

    fn read_index(&mut self, offset: u64) -> Result<()> {
        let contents = self.record(offset, Tag::Index)?;
        let others = self
            .parse_index(&contents)
            .ok_or_else(|| self.damaged(offset, "an unreadable index"))?;
        for at in others {
            match self.find(at)? {
                Found::Record {
                    tag: Some(tag),
                    contents,
                    ..
                } => self.note(at, tag, &contents)?,
                Found::Record { tag: None, .. } => {}
                Found::End => return Err(self.damaged(at, "the record is cut off")),
            }
        }
        // Reads all chunks now, so that nobody finds damage in them later.
        for chunk in &self.chunks {
            let contents = self.record(chunk.offset, Tag::Events)?;
            if codec::read_head(&contents) != Some(chunk.head) {
                return Err(self.damaged(chunk.offset, "the index names another chunk"));
            }
        }
        Ok(())
    }

    fn parse_index(&mut self, contents: &[u8]) -> Option<Vec<u64>> {
        let (length, packed) = contents.split_at_checked(4)?;
        let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
        if length > INDEX_BYTES_MAX {
            return None;
        }
        let index = zstd::bulk::decompress(packed, length).ok()?;
        let mut rest = &index[..];
        let mut others = Vec::new();
        let mut at = 0u64;
        for _ in 0..get(&mut rest)? {
            at = at.checked_add(get(&mut rest)?)?;
            others.push(at);
        }
        at = 0;
        for _ in 0..get(&mut rest)? {
            at = at.checked_add(get(&mut rest)?)?;
            let mut word = || get(&mut rest)?.try_into().ok();
            let (process, thread, count) = (word()?, word()?, word()?);
            let first = get(&mut rest)?;
            let last = first.checked_add(get(&mut rest)?)?;
            let head = ChunkHead {
                process,
                thread,
                count,
                first,
                last,
            };
            self.chunks.push(Chunk { offset: at, head });
        }
        Some(others)
    }

    /// Reads all records without the index, also those behind unreadable parts. Returns what is wrong.
    fn scan(&mut self, is_head_whole: bool) -> Result<Vec<String>> {
        let mut offset = FILE_HEAD_BYTES;
        let mut damage = Damage {
            places: u64::from(!is_head_whole),
            bytes: 0,
            behind: 0,
        };
        loop {
            let (tag, contents, next) = match self.find(offset) {
                Ok(Found::Record {
                    tag,
                    contents,
                    next,
                }) => (tag, contents, next),
                // A damaged length may point beyond the end.
                _ => match self.next_record(offset + 1) {
                    Some(found) => {
                        damage.places += 1;
                        damage.bytes += found - offset;
                        offset = found;
                        continue;
                    }
                    None => {
                        // Behind the end record, only the index may follow.
                        let is_damaged = self.ending.is_some() && offset < self.bytes;
                        damage.places += u64::from(is_damaged);
                        break;
                    }
                },
            };
            match tag {
                Some(Tag::Events) => {
                    let head = codec::read_head(&contents)
                        .ok_or_else(|| self.damaged(offset, "not a chunk"))?;
                    self.chunks.push(Chunk { offset, head });
                }
                Some(Tag::Index) => {
                    // The index must be the last record, and a trailer of known length must follow it.
                    let is_end = damage.places == 0 && next + format::TRAILER_BYTES == self.bytes;
                    damage.places += u64::from(is_end && self.index_offset() != Some(offset));
                    damage.behind = self.bytes.saturating_sub(next + format::TRAILER_BYTES);
                    offset = next;
                    break;
                }
                Some(tag) => self.note(offset, tag, &contents)?,
                None => {}
            }
            offset = next;
        }
        self.fill_in();
        Ok(self.doubts(offset, &damage))
    }

    /// The start of the next complete record.
    fn next_record(&self, from: u64) -> Option<u64> {
        let mut window = vec![0; WINDOW_BYTES];
        let mut at = from;
        while at < self.bytes {
            let count = self.file.read_at(&mut window, at).ok()?;
            if count < NAME_BYTES {
                return None;
            }
            let names = window[..count].windows(NAME_BYTES).enumerate();
            for (index, name) in names {
                let is_name = name
                    .try_into()
                    .is_ok_and(|name| Tag::from_name(name).is_some());
                let offset = at + index as u64;
                if is_name && matches!(self.find(offset), Ok(Found::Record { .. })) {
                    return Some(offset);
                }
            }
            // A name may begin in the last bytes.
            at += (count - NAME_BYTES + 1) as u64;
        }
        None
    }

    /// Fills in what lost records would have contained, as far as other records tell.
    fn fill_in(&mut self) {
        if self.beginning == Beginning::default() {
            let first = self.chunks.iter().map(|chunk| chunk.head.first).min();
            self.beginning.start = first.unwrap_or(0);
        }
        for chunk in &self.chunks {
            let number = chunk.head.process;
            if !self.processes.iter().any(|known| known.process == number) {
                self.processes.push(Process {
                    process: number,
                    program: "(unknown)".into(),
                    start: chunk.head.first,
                    ..Process::default()
                });
            }
        }
    }

    /// What is wrong with the file itself.
    fn doubts(&self, offset: u64, damage: &Damage) -> Vec<String> {
        let events = self.events();
        let mut parts = Vec::new();
        if damage.places > 0 {
            let places = if damage.places == 1 {
                "one place".into()
            } else {
                format!("{} places", damage.places)
            };
            let lost = self.ending.as_ref().map_or_else(
                || format!("{} bytes there are lost", damage.bytes),
                |ending| {
                    let lost = ending.events.saturating_sub(events);
                    format!("{lost} of {} events are lost", ending.events)
                },
            );
            parts.push(format!(
                "is damaged in {places}, and {lost}: copy it again from where it was recorded"
            ));
        }
        if damage.behind > 0 {
            parts.push(format!(
                "has {} bytes after its end, perhaps another trace, which are not read",
                damage.behind
            ));
        }
        if self.ending.is_none() {
            let last = self.chunks.iter().map(|chunk| chunk.head.last).max();
            let seconds = last.map_or(0.0, |last| self.seconds(last));
            parts.push(format!(
                "was cut off at byte {offset} of {}: it has the first {events} events, \
                 {seconds:.3} s; the rest is lost",
                self.bytes
            ));
        }
        parts
    }

    /// Why the trace lacks a part of the program's run, though the file is complete.
    fn ended_early(&self) -> Vec<String> {
        let Some(ending) = &self.ending else {
            return Vec::new();
        };
        let missed = match ending.events_missed {
            0 => None,
            missed => Some(format!(
                "lacks {missed} events of threads that found no room"
            )),
        };
        let early = ending.reason.early().map(String::from);
        early.into_iter().chain(missed).collect()
    }

    /// Since the beginning of the recording.
    pub fn seconds(&self, time: u64) -> f64 {
        time.saturating_sub(self.beginning.start) as f64 / self.units_per_second()
    }
}
