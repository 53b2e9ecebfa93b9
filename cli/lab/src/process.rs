//! Another process, read from outside: its mappings, its memory, and the objects that its dynamic linker has loaded. Nothing is
//! written, and the process need not be stopped, though what was read of a running process may be out of date.

use crate::elf::{self, ElfFile};
use hakmem_heap::code::{self, Code};
use hakmem_heap::code_files::{Sources, find_mapped};
use hakmem_heap::error::Error;
use hakmem_heap::live::{Area, LiveProcess};
use hakmem_heap::shown::shown;
use std::ffi::OsStr;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Limits for a process whose memory may be damaged.
const OBJECTS_MAX: usize = 4096;
const PROGRAM_HEADERS_MAX: u64 = 128;
const DYNAMIC_ENTRIES_MAX: u64 = 512;

const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;
const AT_BASE: u64 = 7;
const PT_DYNAMIC: u32 = 2;
const PT_INTERP: u32 = 3;
const PT_PHDR: u32 = 6;
const DT_NULL: u64 = 0;
const DT_DEBUG: u64 = 21;

/// Why a process tells nothing about its allocator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Blind {
    /// It has ended, or never existed.
    Gone,
    /// The kernel does not let us read it.
    Forbidden,
    /// It has no dynamic linker.
    Static,
    /// Anything else, as a part of a sentence.
    Other(String),
}

impl std::fmt::Display for Blind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.write_str(match self {
            Blind::Gone => "it has ended",
            Blind::Forbidden => "this user may not read its memory",
            Blind::Static => "it is statically linked: nothing can be preloaded",
            Blind::Other(text) => text,
        })
    }
}

/// An object in the dynamic linker's list.
pub struct Object {
    /// Is added to the file's addresses.
    pub base: u64,
    pub path: PathBuf,
    pub file: Arc<ElfFile>,
}

pub struct Process {
    /// A thread whose /proc entries describe the process: the first thread may have ended before the others.
    pub task: i32,
    memory: File,
    mappings: Vec<Area>,
    files: Vec<Code>,
    /// In lookup order; the program is first.
    pub objects: Vec<Object>,
}

impl Process {
    /// Its memory without the list of objects: a statically linked program has none.
    pub fn open_memory(pid: i32) -> Result<Process, Blind> {
        let live = open_live(pid)?;
        let task = live.task();
        let memory = File::open(format!("/proc/{task}/mem")).map_err(|error| blind(&error))?;
        Ok(Process {
            task,
            memory,
            files: code::mapped_now(&code::of_files(&live.areas), &live),
            mappings: live.areas,
            objects: Vec::new(),
        })
    }

    pub fn open(pid: i32) -> Result<Process, Blind> {
        let mut process = Process::open_memory(pid)?;
        let found = process.find_objects();
        process.check()?;
        found.map(|()| process)
    }

    fn find_objects(&mut self) -> Result<(), Blind> {
        let dynamic = self.dynamic_section()?;
        let first = self.first_link(dynamic)?;
        self.load_objects(first)
    }

    /// Does the process still exist, and still run the same program? If not, only a part of it was read.
    pub fn check(&self) -> Result<(), Blind> {
        let first = self.mappings.first().map_or(0, |area| area.range.start);
        match self.memory.read_at(&mut [0], first) {
            Ok(0) => {
                open_live(self.task)?;
                Err(Blind::Other("it has become another program (exec)".into()))
            }
            _ => Ok(()),
        }
    }

    /// Fills `target` from `address`; false if not all of it can be read.
    pub fn read(&self, address: u64, target: &mut [u8]) -> bool {
        self.memory.read_exact_at(target, address).is_ok()
    }

    pub fn read_u64(&self, address: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        self.read(address, &mut bytes)
            .then(|| u64::from_ne_bytes(bytes))
    }

    pub fn read_u32(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        self.read(address, &mut bytes)
            .then(|| u32::from_ne_bytes(bytes))
    }

    /// The mapping that contains an address.
    pub fn mapping_at(&self, address: u64) -> Option<&Area> {
        let mut mappings = self.mappings.iter();
        mappings.find(|mapping| mapping.range.contains(&address))
    }

    /// The file that is mapped at an address.
    pub fn file_at(&self, address: u64) -> Option<&Path> {
        path_of(self.mapping_at(address)?)
    }

    /// The object that was loaded from the file at `path`.
    pub fn object_at(&self, path: &Path) -> Option<&Object> {
        self.objects.iter().find(|object| object.path == path)
    }

    /// The areas where programs keep pointers to blocks: writable data of objects, and stacks. Shared areas are left out:
    /// reading them would make their pages resident.
    pub fn places_of_pointers(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let mut behind_object = false;
        self.mappings.iter().filter_map(move |mapping| {
            let writable = mapping.is_readable && mapping.is_writable && !mapping.is_shared;
            let is_of_file = path_of(mapping).is_some();
            // An anonymous area behind an object's data is its zero-initialised part (.bss).
            let wanted = is_of_file
                || mapping.name.starts_with(b"[stack")
                || mapping.name.is_empty() && behind_object;
            behind_object = is_of_file && writable;
            (writable && wanted).then_some((mapping.range.start, mapping.range.end))
        })
    }

    /// The heap that grows by moving the break: the C library's, if it has allocated anything.
    pub fn break_heap(&self) -> Option<(u64, u64)> {
        let is_heap = |mapping: &&Area| mapping.name == b"[heap]";
        let heap = self.mappings.iter().find(is_heap)?;
        Some((heap.range.start, heap.range.end))
    }

    /// The load address of the dynamic linker; None if the process has none.
    pub fn linker_base(pid: i32) -> Option<u64> {
        auxiliary(pid)
            .ok()?
            .get(&AT_BASE)
            .copied()
            .filter(|base| *base != 0)
    }

    /// The path of the dynamic linker, which is mapped at `base`.
    pub fn linker_path(pid: i32, base: u64) -> Result<PathBuf, Blind> {
        let areas = open_live(pid)?.areas;
        let linker = areas.iter().find(|area| area.range.start == base);
        let path = linker.and_then(path_of).map(Path::to_path_buf);
        path.ok_or_else(|| Blind::Other("its dynamic linker cannot be found".into()))
    }

    fn dynamic_section(&self) -> Result<u64, Blind> {
        let values = auxiliary(self.task)?;
        let (Some(&table), Some(&count)) = (values.get(&AT_PHDR), values.get(&AT_PHNUM)) else {
            return Err(Blind::Other(
                "the kernel does not say where its headers are".into(),
            ));
        };
        let unreadable = || Blind::Other("its program headers cannot be read".into());
        let mut bias = 0;
        let mut dynamic = None;
        let mut has_linker = false;
        for index in 0..count.min(PROGRAM_HEADERS_MAX) {
            let header = table + index * 56; // the size of a program header for 64 bits
            let kind = self.read_u32(header).ok_or_else(unreadable)?;
            let address = self.read_u64(header + 16).ok_or_else(unreadable)?;
            match kind {
                PT_PHDR => bias = table.wrapping_sub(address),
                PT_DYNAMIC => dynamic = Some(address),
                PT_INTERP => has_linker = true,
                _ => {}
            }
        }
        dynamic
            .filter(|_| has_linker)
            .map(|address| bias.wrapping_add(address))
            .ok_or(Blind::Static)
    }

    /// The head of the dynamic linker's list of objects.
    fn first_link(&self, dynamic: u64) -> Result<u64, Blind> {
        let not_yet = || Blind::Other("it has not reached its dynamic linker yet".into());
        for index in 0..DYNAMIC_ENTRIES_MAX {
            let entry = dynamic + index * 16;
            match self.read_u64(entry) {
                None | Some(DT_NULL) => break,
                Some(DT_DEBUG) => {
                    // struct r_debug: version, head of the list, …
                    let debug = self
                        .read_u64(entry + 8)
                        .filter(|at| *at != 0)
                        .ok_or_else(not_yet)?;
                    return self
                        .read_u64(debug + 8)
                        .filter(|at| *at != 0)
                        .ok_or_else(not_yet);
                }
                Some(_) => {}
            }
        }
        Err(not_yet())
    }

    fn load_objects(&mut self, mut link: u64) -> Result<(), Blind> {
        let unreadable = || Blind::Other("its list of loaded objects cannot be read".into());
        while link != 0 {
            // struct link_map: base, name, dynamic section, next
            let base = self.read_u64(link).ok_or_else(unreadable)?;
            let dynamic = self.read_u64(link + 16).ok_or_else(unreadable)?;
            link = self.read_u64(link + 24).ok_or_else(unreadable)?;
            if self.objects.len() == OBJECTS_MAX {
                return Err(unreadable());
            }
            // By address, as the name may be relative or a symbolic link.
            let mut files = self.files.iter();
            let Some(code) = files.find(|code| code.range.contains(&dynamic)) else {
                continue; // the kernel's own object has no file
            };
            let path = PathBuf::from(OsStr::from_bytes(&code.path));
            let file = self.read_object(code)?;
            self.objects.push(Object { base, path, file });
        }
        if self.objects.is_empty() {
            return Err(Blind::Other(
                "it has not reached its dynamic linker yet".into(),
            ));
        }
        Ok(())
    }

    fn read_object(&self, code: &Code) -> Result<Arc<ElfFile>, Blind> {
        let sources = Sources {
            process: Some(self.task),
            ..Sources::default()
        };
        let path = shown(&code.path);
        let found = find_mapped(code, &sources).map_err(|missing| match missing {
            // Without the process, nothing tells which build was mapped.
            _ if open_live(self.task).is_err() => Blind::Gone,
            missing => Blind::Other(format!("{path}: {}", missing.why())),
        })?;
        elf::read_cached(&found).map_err(|error| Blind::Other(format!("{path}: {}", error.0)))
    }
}

/// The path of the file that is mapped there, if it is one.
fn path_of(area: &Area) -> Option<&Path> {
    let is_file = area.name.starts_with(b"/");
    is_file.then(|| Path::new(OsStr::from_bytes(&area.name)))
}

/// Does a process of ours ignore the signal?
pub fn ignores(pid: i32, signal: i32) -> bool {
    procfs::process::Process::new(pid)
        .and_then(|process| process.status())
        .is_ok_and(|status| status.sigign >> (signal - 1) & 1 != 0)
}

fn open_live(pid: i32) -> Result<LiveProcess, Blind> {
    LiveProcess::open(pid).map_err(|error| match error {
        Error::Gone(_) => Blind::Gone, // also a zombie
        Error::Forbidden(_) => Blind::Forbidden,
        other => Blind::Other(format!("it cannot be read: {other}")),
    })
}

fn auxiliary(pid: i32) -> Result<std::collections::HashMap<u64, u64>, Blind> {
    procfs::process::Process::new(pid)
        .and_then(|process| process.auxv())
        .map_err(|error| blind_of_procfs(&error))
}

fn blind(error: &std::io::Error) -> Blind {
    match error.kind() {
        ErrorKind::NotFound => Blind::Gone,
        ErrorKind::PermissionDenied => Blind::Forbidden,
        _ => Blind::Other(format!("it cannot be read: {error}")),
    }
}

fn blind_of_procfs(error: &procfs::ProcError) -> Blind {
    match error {
        procfs::ProcError::NotFound(_) => Blind::Gone,
        procfs::ProcError::PermissionDenied(_) => Blind::Forbidden,
        other => Blind::Other(format!("it cannot be read: {other}")),
    }
}
