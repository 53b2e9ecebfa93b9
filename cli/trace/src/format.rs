//! The format of the file around the chunks: `docs/trace-format.md`.

use hakmem_heap::code::{Code, Identity};
use hakmem_heap::shown::{hexadecimal, shown};
use serde::{Deserialize, Serialize};
use std::fmt;

pub const MAGIC: [u8; 8] = *b"HAKTRACE";
/// In version 1, every event had its own time. In version 2, stacks had addresses instead of places. Both can be read.
pub const VERSION: u32 = 3;
pub const FILE_HEAD_BYTES: u64 = 16;
pub const RECORD_HEAD_BYTES: usize = 12;
pub const TRAILER_BYTES: u64 = 16;
pub const TRAILER_MAGIC: [u8; 8] = *b"HAKTREND";
/// No record that is written is as long; a greater length is damage.
pub const RECORD_BYTES_MAX: usize = 1 << 28;

/// The kind of a record's contents. Records with unknown tags are skipped.
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
    /// JSON, `Modules`: the files that a process had mapped.
    Modules,
    /// JSON, `Ending`: missing if the recording was cut off.
    End,
    /// The offsets of chunks and other records.
    Index,
    /// JSON, `Named`.
    Names,
}

impl Tag {
    const NAMES: [(Tag, [u8; 4]); 8] = [
        (Tag::Begin, *b"BEGN"),
        (Tag::Process, *b"PROC"),
        (Tag::Events, *b"EVTS"),
        (Tag::Stacks, *b"STAK"),
        (Tag::Modules, *b"MODS"),
        (Tag::End, *b"ENDS"),
        (Tag::Index, *b"INDX"),
        (Tag::Names, *b"NAMS"),
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

/// Writes a record: its name, its length, a checksum of both and of the contents, and the contents.
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
    /// The frequency of the clock that `time` is in; the value in `Ending` is better.
    pub units_per_second: f64,
    /// The time at which the recording began.
    pub start: u64,
    pub stack_frames: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Process {
    pub process: u32,
    /// The parent that forked it; 0 for the first process, and after an exec.
    pub parent: u32,
    pub id: i32,
    pub program: String,
    pub command: Vec<String>,
    pub start: u64,
}

impl Beginning {
    pub fn for_people(mut self) -> Beginning {
        self.command = shown_all(&self.command);
        self
    }
}

impl Process {
    pub fn for_people(mut self) -> Process {
        self.program = shown(self.program.as_bytes());
        self.command = shown_all(&self.command);
        self
    }
}

fn shown_all(words: &[String]) -> Vec<String> {
    words.iter().map(|word| shown(word.as_bytes())).collect()
}

/// An exact path: text, or bytes if it is not valid text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Name {
    Text(String),
    Bytes(Vec<u8>),
}

impl Default for Name {
    fn default() -> Name {
        Name::Text(String::new())
    }
}

impl From<Vec<u8>> for Name {
    fn from(bytes: Vec<u8>) -> Name {
        String::from_utf8(bytes).map_or_else(|error| Name::Bytes(error.into_bytes()), Name::Text)
    }
}

impl From<Name> for Vec<u8> {
    fn from(name: Name) -> Vec<u8> {
        match name {
            Name::Text(text) => text.into_bytes(),
            Name::Bytes(bytes) => bytes,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Module {
    /// The number in places; 0: mapped when this was written.
    pub number: u16,
    pub start: u64,
    pub end: u64,
    /// The address at which the file's beginning was mapped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<u64>,
    /// The file offset of `start`; if it is missing, `start` to `end` is all that was mapped of the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    pub path: Name,
    /// Hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub build_id: Option<String>,
    /// A hash of the file's first bytes, if they contain no build id; hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

impl From<Code> for Module {
    fn from(code: Code) -> Module {
        Module {
            number: code.number,
            start: code.range.start,
            end: code.range.end,
            base: code.base,
            offset: code.offset,
            path: code.path.into(),
            build_id: code.identity.build_id().map(hexadecimal),
            head: match code.identity {
                Identity::Head(hash) => Some(format!("{hash:016x}")),
                _ => None,
            },
        }
    }
}

impl From<Module> for Code {
    fn from(module: Module) -> Code {
        let build_id = module.build_id.as_deref().and_then(from_hexadecimal);
        let head = module
            .head
            .and_then(|hash| u64::from_str_radix(&hash, 16).ok());
        Code {
            number: module.number,
            range: module.start..module.end.max(module.start),
            base: module.base,
            offset: module.offset,
            path: module.path.into(),
            identity: match (build_id, head) {
                (Some(id), _) => Identity::BuildId(id),
                (None, Some(hash)) => Identity::Head(hash),
                (None, None) => Identity::Unknown,
            },
        }
    }
}

fn from_hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    (0..text.len()).step_by(2).map(digits).collect()
}

/// Names that cannot be found after the recording: for each place, the innermost function first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Named {
    pub process: u32,
    pub names: Vec<(u64, Vec<String>)>,
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
    /// The program ended.
    #[default]
    Ended,
    /// `--limit` was reached.
    Limit,
    /// The disk was full.
    DiskFull,
    /// A signal to `hakmem record` ended it.
    Stopped,
    #[serde(other)]
    Unknown,
}

impl Reason {
    /// Describes a trace that does not cover the whole run of the program; None for others.
    pub fn early(self) -> Option<&'static str> {
        match self {
            Reason::Limit => Some("ends at --limit, before the program ended"),
            Reason::DiskFull => Some("ends where the disk was full, before the program ended"),
            Reason::Stopped => Some("was stopped before the program had ended"),
            Reason::Ended | Reason::Unknown => None,
        }
    }
}

/// A process that ran and was not recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unseen {
    pub id: i32,
    pub program: String,
    /// "is statically linked …"
    pub why: String,
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (id, program, why) = (self.id, shown(self.program.as_bytes()), &self.why);
        write!(f, "process {id}, {program}, {why}")
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ending {
    pub reason: Reason,
    pub events: u64,
    /// Events known to be missing.
    pub events_missed: u64,
    pub processes_missed: u64,
    /// Processes that ran without the recorder.
    pub unseen: Vec<Unseen>,
    /// Processes that ran with the recorder and made no call.
    pub quiet: Vec<Unseen>,
    /// Further processes may have run for a few milliseconds, as the kernel did not report them.
    pub may_lack_processes: bool,
    pub units_per_second: f64,
    pub end: u64,
    /// Of some threads, events from here on are missing; so all that follow are left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_at: Option<u64>,
    /// The program's exit code, or 128 plus the signal that killed it.
    pub exit_code: Option<i32>,
}

impl Ending {
    /// Describes the processes without the recorder: their calls are missing in all sums.
    pub fn lacks(&self) -> Option<String> {
        let more = match self.unseen.len() {
            0 | 1 => String::new(),
            all => format!("; and {} more", all - 1),
        };
        self.unseen.first().map(|one| format!("{one}{more}"))
    }
}

/// Corrects every record's checksum, so that tests and the fuzzer reach the code behind the check.
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
