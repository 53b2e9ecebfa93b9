//! Which file a code address lies in: the files that a process has mapped, and how a file is recognised later.

use crate::control::Control;
use crate::error::Result;
use crate::fields::{Code as Table, CodeObject as Object};
use crate::live::{Area, with_newlines};
use crate::memory::{MappedFile, Memory, read_addresses, read_all};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;

/// How many bytes at a file's beginning identify it.
pub const HEAD_BYTES: usize = 4096;
/// A longer build id is ignored.
const BUILD_ID_MAX: usize = 64;

/// Distinguishes one build of a file from another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Identity {
    BuildId(Vec<u8>),
    /// A hash of the file's first bytes, if they contain no build id.
    Head(u64),
    /// The file cannot be read.
    #[default]
    Unknown,
}

impl Identity {
    /// From a file's first bytes, read from the file or from its mapping.
    pub fn of_head(head: &[u8; HEAD_BYTES]) -> Identity {
        match build_id(head) {
            Some(id) => Identity::BuildId(id.to_vec()),
            None => Identity::Head(hash(head)),
        }
    }

    pub fn of_file(file: &File) -> Identity {
        let mut head = [0; HEAD_BYTES];
        let mut length = 0;
        while length < HEAD_BYTES {
            match file.read_at(&mut head[length..], length as u64) {
                Ok(0) => break, // a mapping, too, has zeros behind the end of its file
                Ok(count) => length += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return Identity::Unknown,
            }
        }
        match length {
            0 => Identity::Unknown,
            _ => Identity::of_head(&head),
        }
    }

    /// Of the file whose beginning is mapped at `start`.
    pub fn in_memory(memory: &dyn Memory, start: u64) -> Identity {
        let mut head = [0; HEAD_BYTES];
        if memory.read(start, &mut head) {
            Identity::of_head(&head)
        } else {
            Identity::Unknown
        }
    }

    pub fn build_id(&self) -> Option<&[u8]> {
        match self {
            Identity::BuildId(id) => Some(id),
            _ => None,
        }
    }
}

fn mix(hash: u64, word: u64) -> u64 {
    let mixed = (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ mixed >> 32
}

/// The same hash as in `stacks/code.c`.
fn hash(head: &[u8; HEAD_BYTES]) -> u64 {
    let mut lanes = [0; 4];
    for (index, word) in head.chunks_exact(8).enumerate() {
        let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
        lanes[index % 4] = mix(lanes[index % 4], word);
    }
    let [first, rest @ ..] = lanes;
    rest.into_iter().fold(first, mix)
}

fn word(head: &[u8], at: usize, bytes: usize) -> Option<usize> {
    let mut value = [0; 8];
    value[..bytes].copy_from_slice(head.get(at..at.checked_add(bytes)?)?);
    usize::try_from(u64::from_le_bytes(value)).ok()
}

/// The build id is in a note (PT_NOTE, "GNU", NT_GNU_BUILD_ID) within the first bytes of a 64-bit ELF file. The C side looks in
/// the same way, so both find the same id in every file.
fn build_id(head: &[u8]) -> Option<&[u8]> {
    const PT_NOTE: usize = 4;
    const NT_GNU_BUILD_ID: usize = 3;
    if !head.starts_with(b"\x7fELF\x02\x01") || word(head, 54, 2)? != 56 {
        return None;
    }
    let (table, count) = (word(head, 32, 8)?, word(head, 56, 2)?);
    for index in 0..count {
        let at = table.checked_add(index * 56)?;
        if word(head, at, 4)? != PT_NOTE {
            continue;
        }
        let mut note = word(head, at.checked_add(8)?, 8)?;
        let end = note.checked_add(word(head, at.checked_add(32)?, 8)?)?;
        while note.checked_add(16)? <= end.min(HEAD_BYTES) {
            let (name, bytes) = (word(head, note, 4)?, word(head, note + 4, 4)?);
            let contents = note + 12 + name.next_multiple_of(4);
            let is_it = word(head, note + 8, 4)? == NT_GNU_BUILD_ID
                && head.get(note + 12..note + 12 + name) == Some(b"GNU\0");
            if is_it && (1..=BUILD_ID_MAX).contains(&bytes) {
                return head.get(contents..contents + bytes).filter(|id| is_id(id));
            }
            note = contents.checked_add(bytes.next_multiple_of(4))?;
        }
    }
    None
}

/// Some linkers write zeros when they are told to write no id. Then all of their files have the same one.
pub fn is_id(bytes: &[u8]) -> bool {
    bytes.iter().any(|byte| *byte != 0)
}

/// Code that is or was mapped from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Code {
    /// The process's number for this mapping; 0: it is mapped now.
    pub number: u16,
    pub range: Range<u64>,
    /// The address at which the file's beginning is mapped.
    pub base: Option<u64>,
    /// The file offset at which the range begins; None: the range is all that was mapped of the file.
    pub offset: Option<u64>,
    pub path: Vec<u8>,
    pub identity: Identity,
}

/// A place is a code address; the bits from this one on are the number of the mapping at that address.
pub const PLACE_LOG2: u32 = 48;

/// What a place tells about the mapping of its address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// Nothing: look at what is mapped now.
    Untold,
    /// It has this number.
    Of(u16),
    /// The address was in no file.
    Nobody,
    /// The process has seen too many files and did not number this one.
    Forgotten,
}

pub fn address_of(place: u64) -> u64 {
    place & ((1 << PLACE_LOG2) - 1)
}

pub fn whose(place: u64) -> Whose {
    match (place >> PLACE_LOG2) as u16 {
        0 => Whose::Untold,
        0xFFFE => Whose::Nobody,
        0xFFFF => Whose::Forgotten,
        number => Whose::Of(number),
    }
}

/// Limits for a process whose memory may be damaged.
const OBJECTS_MAX: usize = 1 << 16;
const PATH_MAX: usize = 1 << 13;

/// The files that the process has numbered, including those it has unmapped. Paths are as the kernel writes them.
pub fn seen(control: &Control, memory: &dyn Memory) -> Result<Vec<Code>> {
    let (all, one) = (Table::find(control)?, Object::find(control)?);
    let root = control.root("hak_code")?;
    let begun = memory.read_vec(root.address, all.entries.offset)?;
    let count = usize::try_from(all.count.number(&begun)).unwrap_or(0);
    // Number 0 stands for no file.
    let count = count
        .saturating_add(1)
        .min(all.entries.count)
        .min(OBJECTS_MAX);
    let first = root.address + all.entries.offset as u64;
    let entries = read_addresses(memory, first, count)?;
    let heads = entries
        .iter()
        .map(|(_, address)| (*address, one.path.offset));
    let heads = read_all(memory, heads);
    let paths = entries.iter().zip(&heads).map(|((_, address), head)| {
        let bytes = head.as_ref().map_or(0, |head| one.path_bytes.number(head));
        let bytes = usize::try_from(bytes).unwrap_or(0).min(PATH_MAX);
        (address.wrapping_add(one.path.offset as u64), bytes)
    });
    let paths = read_all(memory, paths);
    let all = entries.iter().zip(heads.iter().zip(paths));
    let codes = all.filter_map(|((number, _), (head, path))| {
        let head = head.as_ref()?;
        let range = one.start.number(head)..one.end.number(head);
        Some(Code {
            number: *number as u16,
            base: Some(range.start),
            range,
            offset: None,
            path: path.unwrap_or_default(),
            identity: identity(control, &one, head),
        })
    });
    Ok(codes.collect())
}

fn identity(control: &Control, object: &Object, head: &[u8]) -> Identity {
    let id = (0..object.id.count.min(object.id_bytes.number(head) as usize))
        .map(|index| object.id.number_at(head, index) as u8);
    match control.word("code_", object.kind.number(head)) {
        Some("build_id") => Identity::BuildId(id.collect()),
        Some("hash") => Identity::Head(object.head_hash.number(head)),
        _ => Identity::Unknown,
    }
}

/// The files that are mapped now, and those that the process has numbered.
pub fn all(files: &[MappedFile], memory: &dyn Memory) -> Vec<Code> {
    let seen = Control::find(memory).and_then(|control| seen(&control, memory));
    let mut all = mapped_now(files, memory);
    let mut seen = seen.unwrap_or_default();
    for code in &mut seen {
        let is_exact = files.iter().any(|file| file.path == code.path);
        code.path = exact_path(&code.path, &code.identity, is_exact);
        place_in_file(code, &all, memory);
    }
    all.extend(seen);
    all
}

/// If the parts of a file are mapped far apart, the dynamic linker may list each as a file. Then the process has taken the
/// part's beginning for the file's. The file is identified by its mapping in `now` instead.
pub fn place_in_file(code: &mut Code, now: &[Code], memory: &dyn Memory) {
    let is_part = |part: &&Code| {
        let begins_later = part.base.is_some_and(|base| base < code.range.start);
        begins_later
            && part.path == code.path
            && part.range.start <= code.range.start
            && code.range.end <= part.range.end
    };
    let Some(part) = now.iter().find(is_part) else {
        return;
    };
    if Identity::in_memory(memory, code.range.start) == code.identity {
        let in_part = code.range.start - part.range.start;
        code.offset = part.offset.map(|offset| offset + in_part);
        code.base = part.base;
        code.identity = part.identity.clone();
    }
}

/// The path of a file, from the path that the kernel has written: there, `\012` means a newline, or these four characters. The
/// file with this identity decides; if there is none, `is_exact` does.
pub fn exact_path(written: &[u8], identity: &Identity, is_exact: bool) -> Vec<u8> {
    let with_newlines = with_newlines(written);
    if with_newlines == written {
        return with_newlines;
    }
    let is_it = |path: &[u8]| {
        let file = File::open(OsStr::from_bytes(path));
        file.is_ok_and(|file| Identity::of_file(&file) == *identity)
    };
    if !is_it(&with_newlines) && (is_exact || is_it(written)) {
        written.to_vec()
    } else {
        with_newlines
    }
}

/// The identity of each file is read where its beginning is mapped.
pub fn mapped_now(files: &[MappedFile], memory: &dyn Memory) -> Vec<Code> {
    let mut begins: HashMap<u64, Identity> = HashMap::new();
    let mut begin: Option<&MappedFile> = None;
    let mut found = Vec::new();
    for file in files {
        if file.offset == 0 {
            begin = Some(file);
        }
        let base = begin.filter(|begin| begin.path == file.path);
        let base = base.map(|begin| begin.range.start);
        let identity = base.map_or(Identity::Unknown, |base| {
            let identity = begins.entry(base);
            let identity = identity.or_insert_with(|| Identity::in_memory(memory, base));
            identity.clone()
        });
        found.push(Code {
            number: 0,
            range: file.range.clone(),
            base,
            offset: Some(file.offset),
            path: file.path.clone(),
            identity,
        });
    }
    found
}

/// The areas that may contain code from files. Shared writable areas contain none, and reading them would make pages resident.
pub fn of_files(areas: &[Area]) -> Vec<MappedFile> {
    let is_code =
        |area: &&Area| area.name.starts_with(b"/") && !(area.is_shared && area.is_writable);
    let files = areas.iter().filter(is_code);
    files
        .map(|area| MappedFile {
            range: area.range.clone(),
            offset: area.offset,
            path: area.name.clone(),
        })
        .collect()
}
