//! A core dump, written by the kernel or by gdb's gcore.

use crate::code::{self, Code};
use crate::error::{Error, Result};
use crate::input;
use crate::memory::{MappedFile, Memory};
use crate::resident::Counted;
use crate::shown::shown;
use object::elf;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, ReadCache, ReadRef};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

type Header = elf::FileHeader64<Endianness>;

/// The smallest page size. In a truncated file, a last partial page is ignored.
const PAGE_BYTES: u64 = 4096;
/// Limits for a file that may be damaged.
const SEGMENTS_MAX: usize = 1 << 20;
const FILES_MAX: usize = 1 << 16;
const NT_PRPSINFO: u32 = 3;
const NT_SIGINFO: u32 = 0x5349_4749;
const NT_FILE: u32 = 0x4649_4c45;
const NT_PRSTATUS: u32 = 1;

/// A range of the process's memory; the file contains all of it, or a part.
#[derive(Clone, Debug)]
struct Segment {
    start: u64,
    file_bytes: u64,
    memory_bytes: u64,
    offset: u64,
    is_writable: bool,
    is_executable: bool,
}

/// aarch64 has 34, x86-64 has 27.
const REGISTERS_MAX: usize = 34;

/// A thread when the process ended: its general registers, in the kernel's order.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    pub id: u64,
    pub registers: Vec<u64>,
}

impl Thread {
    /// The number of registers tells the processor. On aarch64, 31 numbered registers precede the stack pointer.
    fn stack_pointer(&self) -> Option<u64> {
        let index = if self.registers.len() >= REGISTERS_MAX {
            31
        } else {
            19
        };
        self.registers.get(index).copied()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Story {
    /// The program's name and its command line, each as far as the kernel keeps it.
    pub program: String,
    pub command_line: String,
    pub signal: Option<u32>,
    /// The address that the program accessed, if that caused the signal that ended it.
    pub fault_address: Option<u64>,
    /// The first one is the thread that got the signal.
    pub threads: Vec<Thread>,
}

pub struct CoreFile {
    pub path: PathBuf,
    file: File,
    /// Sorted by address.
    segments: Vec<Segment>,
    mapped_files: Vec<MappedFile>,
    pub story: Story,
    /// The file's size, and the size that it would have if it were complete.
    pub bytes: u64,
    pub whole_bytes: u64,
}

impl CoreFile {
    /// Decides by the file's first bytes; the rest may be unreadable.
    pub fn is_one(path: &Path) -> bool {
        const ET_CORE: [u8; 2] = [4, 0];
        let head = input::first_bytes::<18>(path);
        head.is_some_and(|head| head.starts_with(b"\x7fELF") && head.ends_with(&ET_CORE))
    }

    pub fn open(path: &Path) -> Result<CoreFile> {
        let no_core = |why: String| Error::NoCore {
            path: path.to_path_buf(),
            why,
        };
        let file = input::open(path).map_err(|error| Error::Unreadable {
            path: path.to_path_buf(),
            why: error.to_string(),
        })?;
        let bytes = file
            .metadata()
            .map_err(|error| no_core(error.to_string()))?
            .len();
        let copy = file
            .try_clone()
            .map_err(|error| no_core(error.to_string()))?;
        let cache = ReadCache::new(copy);
        let mut core = CoreFile {
            path: path.to_path_buf(),
            file,
            segments: Vec::new(),
            mapped_files: Vec::new(),
            story: Story::default(),
            bytes,
            whole_bytes: bytes,
        };
        core.parse(&cache).map_err(no_core)?;
        Ok(core)
    }

    /// "it has 20,480 of 103,424 bytes: it was cut short, by ulimit -c or a full disk"
    pub fn cut(&self) -> Option<String> {
        let Self {
            bytes, whole_bytes, ..
        } = self;
        (bytes < whole_bytes).then(|| {
            format!(
                "it has {bytes} of {whole_bytes} bytes: it was cut short, by ulimit -c or a full disk"
            )
        })
    }

    fn parse(&mut self, data: &ReadCache<File>) -> std::result::Result<(), String> {
        let bytes = self.bytes;
        let too_short = || format!("its {bytes} bytes are less than a header: it was cut short");
        if bytes == 0 {
            return Err("it is empty: it was cut short, by a full disk or a limit".into());
        }
        let damaged = |error: object::Error| error.to_string();
        let header = Header::parse(data).map_err(|_| match data.read_bytes_at(0, 4) {
            Ok(b"\x7fELF") if bytes < size_of::<Header>() as u64 => too_short(),
            _ => "not an ELF file for 64 bits".to_string(),
        })?;
        let endian = header.endian().map_err(damaged)?;
        if endian == Endianness::Big {
            return Err("of a big-endian machine".into());
        }
        if header.e_type(endian) != elf::ET_CORE {
            return Err("an ELF file of another kind".into());
        }
        let table_bytes = u64::from(header.e_phentsize(endian)) * u64::from(header.e_phnum(endian));
        if header.e_phoff(endian).saturating_add(table_bytes) > bytes {
            return Err(too_short());
        }
        let headers = header.program_headers(endian, data).map_err(damaged)?;
        for one in headers.iter().take(SEGMENTS_MAX) {
            let end = one.p_offset(endian).saturating_add(one.p_filesz(endian));
            self.whole_bytes = self.whole_bytes.max(end);
            match one.p_type(endian) {
                elf::PT_LOAD => {
                    let flags = one.p_flags(endian);
                    self.segments.push(Segment {
                        start: one.p_vaddr(endian),
                        file_bytes: one.p_filesz(endian),
                        memory_bytes: one.p_memsz(endian),
                        offset: one.p_offset(endian),
                        is_writable: (flags & elf::PF_W) == elf::PF_W,
                        is_executable: (flags & elf::PF_X) == elf::PF_X,
                    });
                }
                elf::PT_NOTE => self.read_notes(one, endian, data),
                _ => {}
            }
        }
        self.segments.sort_by_key(|segment| segment.start);
        Ok(())
    }

    fn read_notes(
        &mut self,
        header: &elf::ProgramHeader64<Endianness>,
        endian: Endianness,
        data: &ReadCache<File>,
    ) {
        let Ok(Some(mut notes)) = header.notes(endian, data) else {
            return;
        };
        while let Ok(Some(note)) = notes.next() {
            let kind = note.n_type(endian);
            self.read_note(kind.0, note.desc());
        }
    }

    fn read_note(&mut self, kind: u32, content: &[u8]) {
        match kind {
            NT_PRPSINFO => {
                // struct elf_prpsinfo: at 40 the name, 16 characters; then 80 of the command line.
                self.story.program = text(content, 40..56);
                self.story.command_line = text(content, 56..136);
            }
            NT_SIGINFO => {
                let signal = u32_at(content, 0);
                self.story.signal = signal;
                // Only signals that the processor causes come with an address.
                let is_fault = matches!(signal, Some(4 | 5 | 7 | 8 | 11));
                // si_code is positive if no process sent the signal; SI_KERNEL (128) comes without an address.
                let has_address = matches!(u32_at(content, 8), Some(1..=127));
                if is_fault && has_address {
                    self.story.fault_address = u64_at(content, 16);
                }
            }
            NT_PRSTATUS => {
                // struct elf_prstatus: at 32 the thread, at 112 its registers.
                let words = content.get(112..).unwrap_or_default();
                let registers = words.chunks_exact(8).filter_map(|word| u64_at(word, 0));
                self.story.threads.push(Thread {
                    id: u32_at(content, 32).map_or(0, u64::from),
                    registers: registers.take(REGISTERS_MAX).collect(),
                });
            }
            NT_FILE => {
                self.mapped_files = parse_files(content).unwrap_or_default();
            }
            _ => {}
        }
    }

    fn segment_at(&self, address: u64) -> Option<&Segment> {
        let index = self
            .segments
            .partition_point(|segment| segment.start <= address);
        let segment = &self.segments[index.checked_sub(1)?];
        (address - segment.start < segment.memory_bytes).then_some(segment)
    }

    /// The files that the process had mapped, and those that it has numbered if it used hakmem.
    pub fn code(&self) -> Vec<Code> {
        code::all(&self.mapped_files, self)
    }

    /// What was mapped, by address. All that the file contains counts as resident: what really was is not known any more.
    pub fn areas(&self) -> Vec<Counted> {
        let threads = self.story.threads.iter();
        let mut stacks: Vec<u64> = threads.filter_map(Thread::stack_pointer).collect();
        stacks.sort_unstable();
        let area = |segment: &Segment| {
            let start = segment.start;
            let file_bytes = self.there(segment);
            // A part that was cut off counts as never mapped.
            let memory_bytes = match file_bytes == segment.file_bytes {
                true => segment.memory_bytes,
                false => file_bytes,
            };
            let range = start..start.saturating_add(memory_bytes);
            let mut files = self.mapped_files.iter();
            let file = files.find(|file| file.range.contains(&start));
            let name = file.map(|file| file.path.clone()).unwrap_or_default();
            let first = stacks.partition_point(|stack| *stack < range.start);
            let has_stack = stacks.get(first).is_some_and(|stack| range.contains(stack));
            Counted {
                range,
                is_writable: segment.is_writable,
                is_accessible: true,
                // The kernel calls only the first thread's stack so.
                name: match name.is_empty() && has_stack {
                    true => b"[stack]".to_vec(),
                    false => name,
                },
                resident_bytes: file_bytes,
                ..Counted::default()
            }
        };
        let areas = self.segments.iter().map(area);
        areas.filter(|area| !area.range.is_empty()).collect()
    }

    /// How many bytes of a segment the file contains, in whole pages.
    fn there(&self, segment: &Segment) -> u64 {
        let bytes = self.bytes.saturating_sub(segment.offset);
        match bytes < segment.file_bytes {
            true => bytes - bytes % PAGE_BYTES,
            false => segment.file_bytes,
        }
    }

    /// Was the address mapped, be it in the file or not?
    pub fn had(&self, address: u64) -> bool {
        self.segment_at(address).is_some()
    }
}

fn text(content: &[u8], range: Range<usize>) -> String {
    let bytes = content.get(range).unwrap_or_default();
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    shown(bytes[..end].trim_ascii_end())
}

fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset + 4)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

/// The kernel's NT_FILE note: how many files there are, and the unit of their offsets; for each file its start, end and offset;
/// then the paths.
fn parse_files(note: &[u8]) -> Option<Vec<MappedFile>> {
    let count = usize::try_from(u64_at(note, 0)?).ok()?.min(FILES_MAX);
    let unit = u64_at(note, 8)?;
    let mut paths = note.get(16 + count * 24..)?.split(|byte| *byte == 0);
    let mut files = Vec::new();
    for index in 0..count {
        let at = 16 + index * 24;
        let (start, end) = (u64_at(note, at)?, u64_at(note, at + 8)?);
        files.push(MappedFile {
            range: start..end.max(start),
            offset: u64_at(note, at + 16)?.saturating_mul(unit),
            path: paths.next().unwrap_or_default().to_vec(),
        });
    }
    Some(files)
}

fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..offset + 8)?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}

impl Memory for CoreFile {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let mut done = 0;
        while done < target.len() {
            let at = address.wrapping_add(done as u64);
            let Some(segment) = self.segment_at(at) else {
                return false;
            };
            let offset = at - segment.start;
            let in_file = segment.file_bytes.saturating_sub(offset);
            let count = usize::try_from(in_file).unwrap_or(usize::MAX);
            let count = count.min(target.len() - done);
            let part = &mut target[done..done + count];
            let from = segment.offset.saturating_add(offset);
            if count == 0 || self.file.read_exact_at(part, from).is_err() {
                return false;
            }
            done += count;
        }
        true
    }

    /// Mapped files except code; all segments but code if the file has no NT_FILE note.
    fn data_areas(&self) -> Vec<Range<u64>> {
        let is_of_file = |segment: &&Segment| {
            let range = segment.start..segment.start.saturating_add(segment.memory_bytes);
            self.mapped_files.is_empty()
                || self
                    .mapped_files
                    .iter()
                    .any(|file| file.range.start < range.end && range.start < file.range.end)
        };
        let mut found: Vec<&Segment> = self
            .segments
            .iter()
            .filter(|segment| !segment.is_executable && segment.file_bytes > 0)
            .filter(is_of_file)
            .collect();
        // Data that was made read-only after relocation first, then writable data.
        found.sort_by_key(|segment| segment.is_writable);
        let range = |segment: &&Segment| segment.start..segment.start + segment.file_bytes;
        found.iter().map(range).collect()
    }

    fn explain(&self, address: u64) -> Error {
        if self.cut().is_some() || self.had(address) {
            return Error::NotInCore {
                path: self.path.clone(),
                address,
            };
        }
        Error::Damaged(format!(
            "it leads to {address:#x}, where nothing was mapped"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_pointer_is_found_by_how_many_registers_there_are() {
        let thread = |count| Thread {
            id: 1,
            registers: (0..count).collect(),
        };
        assert_eq!(thread(28).stack_pointer(), Some(19));
        assert_eq!(thread(34).stack_pointer(), Some(31));
        assert_eq!(thread(3).stack_pointer(), None);
    }
}
