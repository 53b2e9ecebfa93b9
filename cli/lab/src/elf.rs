//! Reads one ELF file: which functions of the malloc family it defines and imports, and where the addresses of imported ones
//! are stored once it is loaded.

use crate::{c_library, family, fingerprint};
use object::elf;
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Rela, SectionHeader, SectionTable, Sym};
use object::{Endianness, ReadCache, ReadRef};
use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::SystemTime;

type Header = elf::FileHeader64<Endianness>;
type Sections<'a> = SectionTable<'a, Header, &'a ReadCache<File>>;

/// A file that is not a 64-bit ELF file, or is damaged; the text says which.
#[derive(Debug)]
pub struct Unreadable(pub String);

/// A place in a loaded object where the dynamic linker stores the address of a function.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    pub offset: u64,
    pub name: &'static str,
    /// A pointer in the object's data that is initialised with a function's address; the program may overwrite it.
    pub is_variable: bool,
}

#[derive(Debug, Default)]
pub struct ElfFile {
    pub machine: elf::Machine,
    /// The dynamic linker that the program names.
    pub interpreter: Option<String>,
    /// It is no program: it names no dynamic linker, and is not a statically linked program either.
    pub is_library: bool,
    pub build_id: Option<String>,
    /// Functions and data of interest that it exports, with their offsets.
    pub exports: HashMap<String, Vec<u64>>,
    /// Functions of the family that it defines but hides: calls to them stay inside.
    pub private: BTreeSet<&'static str>,
    /// The functions of the family that it imports.
    pub imports: BTreeSet<&'static str>,
    pub slots: Vec<Slot>,
    /// The allocators that were recognised in it.
    pub allocators: BTreeSet<&'static str>,
    /// The sanitizer whose run-time library it needs.
    pub sanitizer: Option<&'static str>,
    /// The C library that it needs, if that is not this command's.
    pub other_libc: Option<String>,
}

/// Names outside the family whose addresses are needed.
const OTHER_EXPORTS: [&str; 4] = [
    "hak_version",
    "_dl_debug_state",
    "_r_debug",
    "_dl_debug_addr", // musl's; it contains the address of what glibc calls _r_debug
];

impl ElfFile {
    pub fn read(path: &Path) -> Result<ElfFile, Unreadable> {
        let file = crate::input::open(path).map_err(|error| Unreadable(error.to_string()))?;
        let cache = ReadCache::new(file);
        read_file(&cache).map_err(|error| match error {
            ReadError::Kind(text) => Unreadable(text.to_string()),
            ReadError::Damaged(error) => Unreadable(format!("damaged ELF file: {error}")),
        })
    }

    /// The offsets at which `name` is defined, one for each of its versions.
    pub fn exported_at(&self, name: &str) -> &[u64] {
        self.exports.get(name).map_or(&[], Vec::as_slice)
    }

    pub fn exports(&self, name: &str) -> bool {
        self.exports.contains_key(name)
    }

    /// The sanitizer that it was built with, if it comes with an allocator: as a library, or linked in.
    pub fn sanitizer(&self) -> Option<&'static str> {
        let is_one = |name: &&str| fingerprint::is_sanitizer(name);
        self.sanitizer
            .or_else(|| self.allocators.iter().copied().find(is_one))
    }

    /// The allocators inside a program that its own calls reach without the dynamic linker.
    pub fn bundled(&self) -> Vec<&'static str> {
        self.allocators
            .iter()
            .copied()
            .filter(|name| !fingerprint::is_of_language(name))
            .collect()
    }
}

enum ReadError {
    Kind(&'static str),
    Damaged(object::Error),
}

impl From<object::Error> for ReadError {
    fn from(error: object::Error) -> ReadError {
        ReadError::Damaged(error)
    }
}

fn read_file(data: &ReadCache<File>) -> Result<ElfFile, ReadError> {
    let ident = data
        .read_bytes_at(0, 16)
        .map_err(|()| ReadError::Kind("not an ELF file"))?;
    if ident[..4] != elf::ELFMAG {
        return Err(ReadError::Kind("not an ELF file"));
    }
    if ident[4] != elf::ELFCLASS64.0 {
        return Err(ReadError::Kind("an ELF file for 32 bits"));
    }
    let header = Header::parse(data)?;
    let endian = header.endian()?;
    let mut file = ElfFile {
        machine: header.e_machine(endian),
        ..ElfFile::default()
    };
    read_segments(&mut file, header, endian, data)?;
    let sections = header.sections(endian, data)?;
    read_dynamic(&mut file, &sections, endian, data)?;
    file.is_library &= header.e_type(endian) == elf::ET_DYN && file.interpreter.is_none();
    read_dynamic_symbols(&mut file, &sections, endian, data)?;
    read_static_symbols(&mut file, &sections, endian, data)?;
    read_slots(&mut file, &sections, endian, data)?;
    read_constants(&mut file, &sections, endian, data)?;
    fingerprint::leave_out_parts(&mut file.allocators);
    Ok(file)
}

fn read_segments(
    file: &mut ElfFile,
    header: &Header,
    endian: Endianness,
    data: &ReadCache<File>,
) -> Result<(), ReadError> {
    for segment in header.program_headers(endian, data)? {
        match segment.p_type(endian) {
            elf::PT_INTERP => {
                let name = segment.interpreter(endian, data)?.unwrap_or_default();
                file.interpreter = Some(String::from_utf8_lossy(name).into_owned());
            }
            elf::PT_NOTE => {
                let Some(mut notes) = segment.notes(endian, data)? else {
                    continue;
                };
                while let Ok(Some(note)) = notes.next() {
                    if note.n_type(endian) == elf::NT_GNU_BUILD_ID
                        && note.name() == elf::ELF_NOTE_GNU
                    {
                        file.build_id = Some(hexadecimal(note.desc()));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_dynamic(
    file: &mut ElfFile,
    sections: &Sections,
    endian: Endianness,
    data: &ReadCache<File>,
) -> Result<(), ReadError> {
    let Some((entries, _)) = sections.dynamic(endian, data)? else {
        return Ok(());
    };
    let has_flag = |entry: &elf::Dyn64<Endianness>| {
        entry.tag(endian) == elf::DT_FLAGS_1 && entry.val(endian) & elf::DF_1_PIE.0 != 0
    };
    file.is_library = !entries.iter().any(has_flag);
    let needed = needed_libraries(sections, endian, data)?;
    file.sanitizer = needed
        .iter()
        .copied()
        .find_map(fingerprint::sanitizer_of_library);
    file.other_libc = needed
        .into_iter()
        .find(|name| c_library::is_other(name))
        .map(|name| String::from_utf8_lossy(name).into_owned());
    Ok(())
}

/// The names of the libraries that it needs.
fn needed_libraries<'a>(
    sections: &Sections<'a>,
    endian: Endianness,
    data: &'a ReadCache<File>,
) -> Result<Vec<&'a [u8]>, ReadError> {
    let Some((entries, link)) = sections.dynamic(endian, data)? else {
        return Ok(Vec::new());
    };
    let strings = sections.strings(endian, data, link)?;
    Ok(entries
        .iter()
        .filter(|entry| entry.tag(endian) == elf::DT_NEEDED)
        .filter_map(|entry| strings.get(u32::try_from(entry.val(endian)).ok()?).ok())
        .collect())
}

fn is_function(symbol: &elf::Sym64<Endianness>) -> bool {
    matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_GNU_IFUNC)
}

fn read_dynamic_symbols(
    file: &mut ElfFile,
    sections: &Sections,
    endian: Endianness,
    data: &ReadCache<File>,
) -> Result<(), ReadError> {
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
    for symbol in symbols.iter() {
        let Ok(name) = symbols.symbol_name(endian, symbol) else {
            continue;
        };
        let wanted = family::find(name);
        if symbol.is_undefined(endian) {
            file.imports.extend(wanted);
            continue;
        }
        file.allocators.extend(fingerprint::of_symbol(name));
        let other = OTHER_EXPORTS
            .into_iter()
            .find(|other| other.as_bytes() == name);
        if let Some(name) = wanted.filter(|_| is_function(symbol)).or(other) {
            file.exports
                .entry(name.to_string())
                .or_default()
                .push(symbol.st_value(endian));
        }
    }
    Ok(())
}

fn read_static_symbols(
    file: &mut ElfFile,
    sections: &Sections,
    endian: Endianness,
    data: &ReadCache<File>,
) -> Result<(), ReadError> {
    let symbols = sections.symbols(endian, data, elf::SHT_SYMTAB)?;
    for symbol in symbols.iter() {
        let Ok(name) = symbols.symbol_name(endian, symbol) else {
            continue;
        };
        if symbol.is_undefined(endian) || !is_function(symbol) {
            continue;
        }
        file.allocators.extend(fingerprint::of_symbol(name));
        if let Some(name) = family::find(name).filter(|name| !file.exports.contains_key(*name)) {
            file.private.insert(name);
        }
    }
    Ok(())
}

/// Relocations of slots: the linker makes them for calls, and for addresses that code needs.
fn is_slot(machine: elf::Machine, kind: elf::RelocationType) -> bool {
    match machine {
        elf::EM_X86_64 => matches!(kind, elf::R_X86_64_JUMP_SLOT | elf::R_X86_64_GLOB_DAT),
        elf::EM_AARCH64 => matches!(kind, elf::R_AARCH64_JUMP_SLOT | elf::R_AARCH64_GLOB_DAT),
        _ => false,
    }
}

/// Relocations of pointers to functions in the object's data.
fn is_plain_pointer(machine: elf::Machine, kind: elf::RelocationType) -> bool {
    match machine {
        elf::EM_X86_64 => kind == elf::R_X86_64_64,
        elf::EM_AARCH64 => kind == elf::R_AARCH64_ABS64,
        _ => false,
    }
}

fn read_slots(
    file: &mut ElfFile,
    sections: &Sections,
    endian: Endianness,
    data: &ReadCache<File>,
) -> Result<(), ReadError> {
    let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
    for section in sections.iter() {
        let Some((relocations, link)) = section.rela(endian, data)? else {
            continue;
        };
        if link != symbols.section() {
            continue;
        }
        for relocation in relocations {
            let kind = relocation.r_type(endian, false);
            let Some(index) = relocation.symbol(endian, false) else {
                continue;
            };
            if !is_slot(file.machine, kind) && !is_plain_pointer(file.machine, kind) {
                continue;
            }
            let name = symbols
                .symbol(index)
                .and_then(|symbol| symbols.symbol_name(endian, symbol))
                .ok()
                .and_then(family::find);
            if let Some(name) = name {
                file.slots.push(Slot {
                    offset: relocation.r_offset(endian),
                    name,
                    is_variable: is_plain_pointer(file.machine, kind),
                });
            }
        }
    }
    Ok(())
}

fn read_constants(
    file: &mut ElfFile,
    sections: &Sections,
    endian: Endianness,
    data: &ReadCache<File>,
) -> Result<(), ReadError> {
    if let Some((_, section)) = sections.section_by_name(endian, b".rodata") {
        file.allocators
            .extend(fingerprint::of_constants(section.data(endian, data)?));
    }
    Ok(())
}

pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// By device and inode: processes may see the same file below different paths.
type Cache = HashMap<(u64, u64), (Stamp, Arc<ElfFile>)>;

/// Files that were read before: one campaign looks at the same files thousands of times.
static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);

/// Changes when the file is written to.
#[derive(PartialEq, Eq, Clone, Copy)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

/// Reads a file, or returns the cached result if the file has not changed.
pub fn read_cached(path: &Path) -> Result<Arc<ElfFile>, Unreadable> {
    let status = path
        .metadata()
        .map_err(|error| Unreadable(error.to_string()))?;
    let place = (status.dev(), status.ino());
    let stamp = Stamp {
        bytes: status.len(),
        modified: status.modified().ok(),
    };
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, file)) = cache.get(&place).filter(|(known, _)| *known == stamp) {
        return Ok(Arc::clone(file));
    }
    let file = Arc::new(ElfFile::read(path)?);
    cache.insert(place, (stamp, Arc::clone(&file)));
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::generator_for;
    use std::fs;

    #[test]
    fn the_c_library_is_read() {
        let path = c_library::path().unwrap();
        let file = ElfFile::read(&path).unwrap();
        assert!(file.exports("malloc") && file.exports("malloc_trim") && !file.exports("_Znwm"));
        assert!(file.slots.iter().any(|slot| slot.name == "malloc"));
        assert!(file.build_id.is_some() && file.bundled().is_empty());
    }

    #[test]
    fn a_damaged_file_is_an_error_or_less_to_read_but_never_more() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("damaged");
        let whole = fs::read("/bin/ls").unwrap();
        let mut generator = generator_for("damage");
        for _ in 0..400 {
            let mut bytes = whole.clone();
            for _ in 0..=generator.usize(..8) {
                // Mostly in the headers, which contain offsets and sizes.
                let end = if generator.bool() { 1024 } else { bytes.len() };
                bytes[generator.usize(..end)] = generator.u8(..);
            }
            if generator.u8(..4) == 0 {
                bytes.truncate(generator.usize(..bytes.len()));
            }
            fs::write(&path, &bytes).unwrap();
            let _ = ElfFile::read(&path);
        }
    }
}
