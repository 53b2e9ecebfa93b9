//! A snapshot: a file with what was read of a heap. It contains a text, which its maker forms from all else that was known, and
//! ranges of memory: hakmem's own metadata, and none of the program's memory.
//!
//! The file's format: `MAGIC`, the version, a checksum of the compressed part, its length, and the compressed part: the text,
//! the control block's addresses, the ranges, and then their contents. All numbers are little-endian, so that any machine can
//! read it.

use crate::control::Control;
use crate::error::{Error, Result};
use crate::input;
use crate::memory::{Memory, Wanted};
use crate::shown::ShownPath;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

const MAGIC: [u8; 8] = *b"HAKSNAP\n";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 24;
/// More bytes than any heap's metadata has.
const BYTES_MAX: u64 = 1 << 31;
const LEVEL: i32 = 9;
/// More bytes than the library's largest variable has.
const VARIABLE_BYTES_MAX: u64 = 16 << 20;

/// Ranges of memory and their contents, sorted by address; none overlap.
#[derive(Clone, Debug, Default)]
struct Stretches(BTreeMap<u64, Vec<u8>>);

impl Stretches {
    /// The ranges that overlap this one.
    fn within(&self, range: &Range<u64>) -> Vec<Range<u64>> {
        let before = self.0.range(..range.start).next_back();
        let inside = self.0.range(range.clone());
        let ranges = before.into_iter().chain(inside);
        let ranges = ranges.map(|(start, bytes)| *start..start + bytes.len() as u64);
        ranges.filter(|one| one.end > range.start).collect()
    }

    /// Copies the known part of a range into `target`; true if all of it is known.
    fn copy(&self, address: u64, target: &mut [u8]) -> bool {
        let Some(end) = address.checked_add(target.len() as u64) else {
            return false;
        };
        let mut at = address;
        let mut is_whole = true;
        for known in self.within(&(address..end)) {
            let (from, to) = (known.start.max(address), known.end.min(end));
            is_whole &= from == at;
            at = to;
            let source = &self.0[&known.start][part(from..to, known.start)];
            target[part(from..to, address)].copy_from_slice(source);
        }
        is_whole && at == end
    }

    /// Adds the unknown part of `bytes`. The known part keeps its old content, which is also copied into `bytes`.
    fn add(&mut self, address: u64, bytes: &mut [u8]) {
        self.copy(address, bytes);
        let Some(end) = address.checked_add(bytes.len() as u64) else {
            return;
        };
        let mut at = address;
        for known in self.within(&(address..end)) {
            if at < known.start {
                let gap = bytes[part(at..known.start, address)].to_vec();
                self.0.insert(at, gap);
            }
            at = known.end;
        }
        if at < end {
            self.0.insert(at, bytes[part(at..end, address)].to_vec());
        }
    }

    /// Keeps what lies in one of these ranges, and joins neighbours.
    fn only_in(self, ranges: &[Range<u64>]) -> Stretches {
        let mut found: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        for (start, bytes) in self.0 {
            let end = start + bytes.len() as u64;
            let is_inside = |range: &Range<u64>| range.start <= start && end <= range.end;
            if !ranges.iter().any(is_inside) {
                continue;
            }
            let last = found.last_key_value();
            let goes_on = last.is_some_and(|(before, last)| before + last.len() as u64 == start);
            if let (Some(mut last), true) = (found.last_entry(), goes_on) {
                last.get_mut().extend(bytes);
            } else {
                found.insert(start, bytes);
            }
        }
        Stretches(found)
    }
}

/// Converts addresses to offsets from `start`.
fn part(range: Range<u64>, start: u64) -> Range<usize> {
    let index = |address: u64| usize::try_from(address - start).unwrap_or(usize::MAX);
    index(range.start)..index(range.end)
}

/// Reads a memory and keeps what it has read. Later reads of the same range return the same content, so a reader of the
/// snapshot sees exactly what was seen here.
pub struct Recorder<'a> {
    memory: &'a dyn Memory,
    control: Range<u64>,
    variables: Range<u64>,
    seen: RefCell<Stretches>,
}

impl<'a> Recorder<'a> {
    /// The memory must have a control block.
    pub fn new(memory: &'a dyn Memory, control: &Control) -> Recorder<'a> {
        let variables = control.variables();
        Recorder {
            memory,
            control: control.place.clone(),
            variables: variables.start..variables.end.saturating_add(VARIABLE_BYTES_MAX),
            seen: RefCell::default(),
        }
    }

    /// Keeps what was read of the library's variables, and of its metadata: ranges given as start and length. Other reads are
    /// left out: a damaged heap may have led them to the program's memory.
    pub fn finish(self, metadata: &[(u64, u64)], text: String) -> Image {
        let ranges = metadata.iter();
        let mut ranges: Vec<Range<u64>> = ranges
            .map(|(start, bytes)| *start..start.saturating_add(*bytes))
            .collect();
        ranges.extend([self.control.clone(), self.variables]);
        Image {
            path: PathBuf::new(),
            text,
            control: self.control,
            stretches: self.seen.into_inner().only_in(&ranges),
        }
    }
}

impl Memory for Recorder<'_> {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let mut wanted = [Wanted::new(address, target)];
        self.read_many(&mut wanted);
        wanted[0].is_read
    }

    fn read_many(&self, wanted: &mut [Wanted]) {
        let mut seen = self.seen.borrow_mut();
        for one in wanted.iter_mut() {
            one.is_read = seen.copy(one.address, one.target);
        }
        let mut unknown: Vec<&mut Wanted> = wanted.iter_mut().filter(|one| !one.is_read).collect();
        let again = unknown.iter_mut();
        let mut again: Vec<Wanted> = again
            .map(|one| Wanted::new(one.address, one.target))
            .collect();
        self.memory.read_many(&mut again);
        let is_read: Vec<bool> = again.iter().map(|one| one.is_read).collect();
        for (one, is_read) in unknown.into_iter().zip(is_read) {
            one.is_read = is_read;
            if is_read {
                seen.add(one.address, one.target);
            }
        }
    }

    fn data_areas(&self) -> Vec<Range<u64>> {
        vec![self.control.clone()]
    }

    fn explain(&self, address: u64) -> Error {
        self.memory.explain(address)
    }

    fn lost(&self) -> Option<Error> {
        self.memory.lost()
    }
}

/// The content of a snapshot.
#[derive(Debug)]
pub struct Image {
    pub path: PathBuf,
    pub text: String,
    /// The control block's addresses; empty if there is none.
    control: Range<u64>,
    stretches: Stretches,
}

impl Image {
    /// For a process without hakmem.
    pub fn without_memory(text: String) -> Image {
        Image {
            path: PathBuf::new(),
            text,
            control: 0..0,
            stretches: Stretches::default(),
        }
    }

    /// Does the file begin as a snapshot does? False if it cannot be read.
    pub fn is_one(path: &Path) -> bool {
        input::first_bytes(path).is_some_and(|begin| begin == MAGIC)
    }

    pub fn open(path: &Path) -> Result<Image> {
        let damaged = |why: String| Error::NoSnapshot {
            path: path.to_path_buf(),
            why,
        };
        let file = input::read(path).map_err(|error| damaged(error.to_string()))?;
        let image = Image::decode(&file).map_err(damaged)?;
        Ok(Image {
            path: path.to_path_buf(),
            ..image
        })
    }

    /// How many bytes of memory it contains.
    pub fn memory_bytes(&self) -> u64 {
        let stretches = self.stretches.0.values();
        stretches.map(|bytes| bytes.len() as u64).sum()
    }

    pub fn stretches(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let stretches = self.stretches.0.iter();
        stretches.map(|(start, bytes)| (*start, bytes.as_slice()))
    }

    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        let stretches = &self.stretches.0;
        put(&mut content, self.text.len() as u64);
        content.extend(self.text.as_bytes());
        put(&mut content, self.control.start);
        put(&mut content, self.control.end - self.control.start);
        put(&mut content, stretches.len() as u64);
        for (start, bytes) in stretches {
            put(&mut content, *start);
            put(&mut content, bytes.len() as u64);
        }
        stretches.values().for_each(|bytes| content.extend(bytes));
        if content.len() as u64 > BYTES_MAX {
            return Err(io::Error::other("it would have more than 2 GiB"));
        }
        let packed = zstd::bulk::compress(&content, LEVEL)?;
        let mut file = MAGIC.to_vec();
        file.extend(VERSION.to_le_bytes());
        file.extend(crc32fast::hash(&packed).to_le_bytes());
        put(&mut file, packed.len() as u64);
        file.extend(packed);
        Ok(file)
    }

    /// Parses a whole file; the error says why it is not valid.
    pub fn decode(file: &[u8]) -> std::result::Result<Image, String> {
        if !file.starts_with(&MAGIC) {
            return Err("it does not begin like a snapshot".into());
        }
        let cut = |bytes: u64| format!("it was cut short, at {} of {bytes} bytes", file.len());
        let head = file
            .get(..HEAD_BYTES)
            .ok_or_else(|| cut(HEAD_BYTES as u64))?;
        let (version, sum) = (half_at(head, 8), half_at(head, 12));
        if version != VERSION {
            return Err(format!(
                "it is of version {version}, and this command reads version {VERSION}: use the command of the same release"
            ));
        }
        let packed = &file[HEAD_BYTES..];
        let bytes = word_at(head, 16);
        if (packed.len() as u64) < bytes {
            return Err(cut(bytes.saturating_add(HEAD_BYTES as u64)));
        }
        if packed.len() as u64 > bytes || crc32fast::hash(packed) != sum {
            return Err("it is damaged: its checksum does not match".into());
        }
        let damaged = |_| "it is damaged: it cannot be unpacked".to_string();
        let unpacking = zstd::Decoder::with_buffer(packed).map_err(damaged)?;
        let mut content = Vec::new();
        let unpacked = unpacking.take(BYTES_MAX + 1).read_to_end(&mut content);
        unpacked.map_err(damaged)?;
        Image::parse(&content).ok_or_else(|| "it is damaged: its contents are inconsistent".into())
    }

    /// Parses the part that was compressed.
    pub fn parse(content: &[u8]) -> Option<Image> {
        let mut rest = Rest(content);
        let text = rest.sized_by_word()?.to_vec();
        let (start, bytes) = (rest.word()?, rest.word()?);
        let control = start..start.checked_add(bytes)?;
        let count = rest.word()?;
        let mut places = Vec::new();
        for _ in 0..count {
            places.push((rest.word()?, rest.word()?));
        }
        let mut stretches = BTreeMap::new();
        let mut end = 0;
        for (start, bytes) in places {
            if start < end || bytes == 0 {
                return None; // they must be sorted and must not overlap
            }
            end = start.checked_add(bytes)?;
            stretches.insert(start, rest.bytes(bytes)?.to_vec());
        }
        rest.0.is_empty().then_some(Image {
            path: PathBuf::new(),
            text: String::from_utf8(text).ok()?,
            control,
            stretches: Stretches(stretches),
        })
    }
}

impl Memory for Image {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        self.stretches.copy(address, target)
    }

    fn data_areas(&self) -> Vec<Range<u64>> {
        match self.control.is_empty() {
            true => Vec::new(),
            false => vec![self.control.clone()],
        }
    }

    fn explain(&self, address: u64) -> Error {
        Error::Damaged(format!(
            "it leads to {address:#x}, of which {} has nothing",
            self.path.shown()
        ))
    }
}

fn put(file: &mut Vec<u8>, word: u64) {
    file.extend(word.to_le_bytes());
}

fn half_at(bytes: &[u8], at: usize) -> u32 {
    let half = bytes.get(at..).and_then(|rest| rest.first_chunk());
    half.map_or(0, |half| u32::from_le_bytes(*half))
}

fn word_at(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// The part of a content that is still to be parsed.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn bytes(&mut self, count: u64) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(usize::try_from(count).ok()?)?;
        self.0 = rest;
        Some(first)
    }

    fn word(&mut self) -> Option<u64> {
        self.bytes(8).map(|bytes| word_at(bytes, 0))
    }

    fn sized_by_word(&mut self) -> Option<&'a [u8]> {
        let count = self.word()?;
        self.bytes(count)
    }
}

#[cfg(test)]
mod tests;
