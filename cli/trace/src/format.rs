//! The file around the chunks: `docs/trace-format.md`.

use hakmem_heap::code::Code;
use serde::{Deserialize, Serialize};

pub const MAGIC: [u8; 8] = *b"HAKTRACE";
/// Version 1 gave every event a time of its own, and is read as well.
pub const VERSION: u32 = 2;
pub const FILE_HEAD_BYTES: u64 = 16;
pub const RECORD_HEAD_BYTES: usize = 12;
pub const TRAILER_BYTES: u64 = 16;
pub const TRAILER_MAGIC: [u8; 8] = *b"HAKTREND";
/// Longer than any record that is written; a length above it is damage.
pub const RECORD_BYTES_MAX: usize = 1 << 28;

/// What a record holds. Records of other tags are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Tag {
    /// JSON, `Beginning`: the first record.
    Begin,
    /// JSON, `Process`.
    Process,
    /// A chunk of one thread's events.
    Events,
    /// Call stacks of one process.
    Stacks,
    /// JSON, `Modules`: what a process had mapped.
    Modules,
    /// JSON, `Ending`: missing when the recording was cut off.
    End,
    /// Where the chunks are.
    Index,
}

impl Tag {
    const NAMES: [(Tag, [u8; 4]); 7] = [
        (Tag::Begin, *b"BEGN"),
        (Tag::Process, *b"PROC"),
        (Tag::Events, *b"EVTS"),
        (Tag::Stacks, *b"STAK"),
        (Tag::Modules, *b"MODS"),
        (Tag::End, *b"ENDS"),
        (Tag::Index, *b"INDX"),
    ];

    pub fn name(self) -> [u8; 4] {
        Tag::NAMES[self as usize].1
    }

    pub fn from_name(name: [u8; 4]) -> Option<Tag> {
        Tag::NAMES
            .iter()
            .find(|(_, other)| *other == name)
            .map(|(tag, _)| *tag)
    }
}

/// A record as it lies in the file: its name, its length, a checksum over both and the contents.
pub fn put_record(out: &mut Vec<u8>, tag: Tag, contents: &[u8]) {
    let length = (contents.len() as u32).to_le_bytes();
    out.extend(tag.name());
    out.extend(length);
    out.extend(checksum(tag.name(), length, contents).to_le_bytes());
    out.extend(contents);
}

pub fn checksum(name: [u8; 4], length: [u8; 4], contents: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&name);
    hasher.update(&length);
    hasher.update(contents);
    hasher.finalize()
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Beginning {
    pub recorder: String,
    pub command: Vec<String>,
    /// Seconds since 1970.
    pub started: u64,
    /// Of the clock that `time` is in; `Ending` has a better value.
    pub units_per_second: f64,
    /// The time at which the recording began.
    pub start: u64,
    pub stack_frames: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    pub process: u32,
    /// The process that forked it; 0 for the first, and after an exec.
    pub parent: u32,
    pub id: i32,
    pub program: String,
    pub command: Vec<String>,
    pub start: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Module {
    pub start: u64,
    pub end: u64,
    /// Where in the file `start` lies.
    pub offset: u64,
    pub path: String,
}

impl Module {
    pub fn code(self) -> Code {
        Code {
            range: self.start..self.end,
            offset: Some(self.offset),
            path: self.path.into_bytes(),
            ..Code::default()
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Modules {
    pub process: u32,
    pub modules: Vec<Module>,
}

/// Why a recording ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The program did.
    #[default]
    Ended,
    /// `--limit` was reached.
    Limit,
    /// The disk was full.
    DiskFull,
    /// By a signal to `hakmem record`.
    Stopped,
    #[serde(other)]
    Unknown,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ending {
    pub reason: Reason,
    pub events: u64,
    /// Events known to be missing.
    pub events_missed: u64,
    pub processes_missed: u64,
    pub units_per_second: f64,
    pub end: u64,
    /// Of the program: what it returned, or 128 and the signal that killed it.
    pub exit_code: Option<i32>,
}

/// Make every record's checksum right again, so that tests and the fuzzer reach what is behind it.
pub fn mend_checksums(file: &mut [u8]) {
    let mut at = FILE_HEAD_BYTES as usize;
    while let Some(head) = file.get(at..at + RECORD_HEAD_BYTES) {
        let name = [head[0], head[1], head[2], head[3]];
        let length = [head[4], head[5], head[6], head[7]];
        let contents_at = at + RECORD_HEAD_BYTES;
        let end = contents_at + u32::from_le_bytes(length) as usize;
        let Some(contents) = file.get(contents_at..end) else {
            return;
        };
        let sum = checksum(name, length, contents).to_le_bytes();
        file[at + 8..contents_at].copy_from_slice(&sum);
        at = end;
    }
}
