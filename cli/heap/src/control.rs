//! The control block: the library's description of its own structs (`include/hakmem/control.h`).

use crate::error::{Error, Result};
use crate::memory::Memory;
use crate::options::Described;
use memchr::memmem;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

const MAGIC: [u8; 8] = *b"hakmem\0\0";
const VERSION: u32 = 2;
/// The control block is aligned to this.
const ALIGNMENT: usize = 16;
/// The block has some 10 KiB; a longer one is not valid.
const BYTES_MAX: usize = 1 << 20;
/// How many bytes to search at a time, and in one area at most.
const STEP_BYTES: u64 = 1 << 20;
const AREA_BYTES_MAX: u64 = 1 << 30;

/// Offsets in `struct hak_control`.
mod at {
    pub const VERSION: usize = 8;
    pub const BYTES: usize = 12;
    pub const SELF: usize = 16;
    pub const STRUCTS: usize = 24;
    pub const FIELDS: usize = 36;
    pub const CONSTANTS: usize = 48;
    pub const ROOTS: usize = 60;
    pub const TEXTS: usize = 72;
    pub const RELEASE: usize = 84;
    pub const END: usize = 88;
}

/// Where a field lies in a struct, and how it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub offset: usize,
    /// The size of one element.
    pub bytes: usize,
    /// The number of elements; 0: a flexible array.
    pub count: usize,
}

impl Field {
    /// The field's value in a record; 0 beyond the record's end.
    pub fn number(self, record: &[u8]) -> u64 {
        self.number_at(record, 0)
    }

    pub fn number_at(self, record: &[u8], index: usize) -> u64 {
        let start = self.offset + index * self.bytes;
        let mut value = [0; 8];
        let width = self.bytes.min(8);
        match record.get(start..start + width) {
            Some(bytes) => value[..width].copy_from_slice(bytes),
            None => return 0,
        }
        u64::from_le_bytes(value)
    }

    /// The embedded struct number `index`; empty beyond the record's end.
    pub fn part(self, record: &[u8], index: usize) -> &[u8] {
        let start = self.offset + index * self.bytes;
        record.get(start..start + self.bytes).unwrap_or_default()
    }
}

/// A variable of the library from which a walk starts.
#[derive(Clone, Copy, Debug)]
pub struct Root {
    pub address: u64,
    pub count: usize,
}

/// What the block contains; every part was checked to lie within it.
#[derive(Debug)]
pub struct Control {
    /// The block's addresses.
    pub place: Range<u64>,
    pub release: String,
    structs: HashMap<String, usize>,
    fields: HashMap<(String, String), Field>,
    /// A description of each field.
    helps: HashMap<(String, String), String>,
    /// In the order of the library's table, each with its description.
    options: Vec<Described>,
    constants: HashMap<String, u64>,
    roots: HashMap<String, Root>,
}

impl Control {
    /// Searches the process's data for a control block. A program may have several copies of hakmem: preloaded by two paths, or
    /// one inside a plugin. This returns the one with the largest heap; a copy that is never called has none.
    pub fn find(memory: &dyn Memory) -> Result<Control> {
        let (found, other) = Control::search(memory);
        match found.into_iter().next() {
            Some((_, control)) => Ok(control),
            // A process that ended during the search has no areas, and so no hakmem.
            None => Err(memory.lost().or(other).unwrap_or(Error::NotHakmem)),
        }
    }

    /// How many bytes each copy in use has mapped, the largest first.
    pub fn copies_in_use(memory: &dyn Memory) -> Vec<u64> {
        let (found, _) = Control::search(memory);
        let bytes = found.into_iter().map(|(bytes, _)| bytes);
        bytes.filter(|bytes| *bytes > 0).collect()
    }

    /// The control blocks of the other copies in use: all but the one that `find` returns.
    pub fn others_in_use(memory: &dyn Memory) -> Vec<Control> {
        let (found, _) = Control::search(memory);
        let others = found.into_iter().skip(1);
        others
            .filter(|(bytes, _)| *bytes > 0)
            .map(|(_, control)| control)
            .collect()
    }

    /// All control blocks, that of the largest heap first, and why another one could not be read.
    fn search(memory: &dyn Memory) -> (Vec<(u64, Control)>, Option<Error>) {
        let mut found: Vec<(u64, Control)> = Vec::new();
        let mut other = None;
        for area in memory.data_areas() {
            for address in places_of_magic(memory, area) {
                match Control::read(memory, address) {
                    Ok(Some(control)) => found.push((control.mapped_bytes(memory), control)),
                    Ok(None) => {}
                    Err(error) => other = Some(error),
                }
            }
        }
        found.sort_by_key(|(bytes, _)| Reverse(*bytes));
        (found, other)
    }

    /// The bytes that its arena has mapped for blocks; 0 if that cannot be read.
    fn mapped_bytes(&self, memory: &dyn Memory) -> u64 {
        let arena = self.root("hak_arena").map_or(0, |root| root.address);
        let of = |name| {
            let field = self.field("hak_arena", name).ok()?;
            memory.read_u64(arena.checked_add(field.offset as u64)?)
        };
        let (superslabs, mappings) = (of("super_bytes"), of("mapping_bytes"));
        superslabs
            .unwrap_or(0)
            .saturating_add(mappings.unwrap_or(0))
    }

    /// The release of the hakmem that is linked into a program, read from the program's file.
    pub fn release_in(file: &[u8]) -> Option<String> {
        let places = memmem::find_iter(file, &MAGIC).filter(|place| place % ALIGNMENT == 0);
        let mut blocks = places.filter_map(|place| {
            let block = &file[place..];
            let bytes = number(block, at::BYTES)? as usize;
            let is_one = number(block, at::VERSION) == Some(VERSION);
            Control::parse(block.get(..bytes).filter(|_| is_one)?)
        });
        blocks.next().map(|control| control.release)
    }

    /// None if these bytes are a copy of a control block, or look like one by chance.
    fn read(memory: &dyn Memory, address: u64) -> Result<Option<Control>> {
        let mut head = [0; at::END];
        if !memory.read(address, &mut head) || word(&head, at::SELF) != Some(address) {
            return Ok(None);
        }
        let found = number(&head, at::VERSION).unwrap_or(0);
        if found != VERSION {
            return Err(Error::OtherVersion {
                found,
                known: VERSION,
            });
        }
        let bytes = number(&head, at::BYTES).unwrap_or(0) as usize;
        if !(at::END..=BYTES_MAX).contains(&bytes) {
            return Err(Error::Damaged(format!("a control block of {bytes} bytes")));
        }
        let block = memory.read_vec(address, bytes)?;
        let control = Control::parse(&block)
            .ok_or_else(|| Error::Damaged("the control block is inconsistent".into()))?;
        Ok(Some(Control {
            place: address..address.saturating_add(bytes as u64),
            ..control
        }))
    }

    fn parse(block: &[u8]) -> Option<Control> {
        let texts = Table::parse(block, at::TEXTS)?;
        let text = |offset: Option<u32>| {
            let start = texts.offset + offset? as usize;
            let end = texts.offset + texts.count;
            let bytes = block.get(start..end)?;
            let bytes = &bytes[..memchr::memchr(0, bytes)?];
            String::from_utf8(bytes.to_vec()).ok()
        };
        let mut control = Control {
            place: 0..0,
            release: text(number(block, at::RELEASE))?,
            structs: HashMap::new(),
            fields: HashMap::new(),
            helps: HashMap::new(),
            options: Vec::new(),
            constants: HashMap::new(),
            roots: HashMap::new(),
        };
        for record in Table::parse(block, at::STRUCTS)?.records(block) {
            let bytes = number(record, 4)? as usize;
            control.structs.insert(text(number(record, 0))?, bytes);
        }
        for record in Table::parse(block, at::FIELDS)?.records(block) {
            let (of, name) = (text(number(record, 0))?, text(number(record, 4))?);
            let field = Field {
                offset: number(record, 16)? as usize,
                bytes: number(record, 20)? as usize,
                count: number(record, 24)? as usize,
            };
            let end = field.bytes.checked_mul(field.count)? + field.offset;
            if end > *control.structs.get(&of)? {
                return None;
            }
            if of == "hak_options" {
                control.options.push(Described {
                    name: name.clone(),
                    unit: text(number(record, 8))?,
                    help: text(number(record, 12))?,
                    field,
                });
            }
            let help = text(number(record, 12))?;
            control.helps.insert((of.clone(), name.clone()), help);
            control.fields.insert((of, name), field);
        }
        for record in Table::parse(block, at::CONSTANTS)?.records(block) {
            control
                .constants
                .insert(text(number(record, 8))?, word(record, 0)?);
        }
        for record in Table::parse(block, at::ROOTS)?.records(block) {
            let root = Root {
                address: word(record, 0)?,
                count: number(record, 16)? as usize,
            };
            control.roots.insert(text(number(record, 8))?, root);
        }
        Some(control)
    }

    fn missing(&self, name: String) -> Error {
        Error::Missing {
            release: self.release.clone(),
            name,
        }
    }

    pub fn struct_bytes(&self, of: &str) -> Result<usize> {
        let bytes = self.structs.get(of).copied();
        bytes.ok_or_else(|| self.missing(format!("struct {of}")))
    }

    pub fn field(&self, of: &str, name: &str) -> Result<Field> {
        let field = self.fields.get(&(of.to_string(), name.to_string()));
        field
            .copied()
            .ok_or_else(|| self.missing(format!("field {of}.{name}")))
    }

    /// The library's description of a field.
    pub fn help(&self, of: &str, name: &str) -> &str {
        let help = self.helps.get(&(of.to_string(), name.to_string()));
        help.map_or("", String::as_str)
    }

    pub fn constant(&self, name: &str) -> Result<u64> {
        let value = self.constants.get(name).copied();
        value.ok_or_else(|| self.missing(format!("constant {name}")))
    }

    /// The constant with this prefix and this value: its name without the prefix.
    pub fn word(&self, prefix: &str, value: u64) -> Option<&str> {
        let mut found = self.constants.iter();
        found.find_map(|(name, known)| {
            let rest = name.strip_prefix(prefix)?;
            (*known == value).then_some(rest)
        })
    }

    pub fn root(&self, name: &str) -> Result<Root> {
        let root = self.roots.get(name).copied();
        root.ok_or_else(|| self.missing(format!("variable {name}")))
    }

    /// From the first variable's address to the last one's.
    pub fn variables(&self) -> Range<u64> {
        let addresses = self.roots.values().map(|root| root.address);
        let first = addresses.clone().min().unwrap_or(0);
        first..addresses.max().unwrap_or(first)
    }

    /// In the order of the library's table.
    pub fn options(&self) -> &[Described] {
        &self.options
    }
}

struct Table {
    offset: usize,
    count: usize,
    record_bytes: usize,
}

impl Table {
    fn parse(block: &[u8], at: usize) -> Option<Table> {
        let table = Table {
            offset: number(block, at)? as usize,
            count: number(block, at + 4)? as usize,
            record_bytes: number(block, at + 8)? as usize,
        };
        let end = table.count.checked_mul(table.record_bytes)? + table.offset;
        (table.record_bytes > 0 && end <= block.len()).then_some(table)
    }

    fn records<'a>(&self, block: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let end = self.offset + self.count * self.record_bytes;
        block[self.offset..end].chunks_exact(self.record_bytes)
    }
}

fn number(bytes: &[u8], offset: usize) -> Option<u32> {
    let bytes = bytes.get(offset..offset + 4)?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes.get(offset..offset + 8)?;
    bytes.try_into().ok().map(u64::from_le_bytes)
}

/// The addresses in an area where the magic number stands, as far as the area can be read.
fn places_of_magic(memory: &dyn Memory, area: Range<u64>) -> Vec<u64> {
    let mut found = Vec::new();
    let mut start = area.start;
    let end = area.end.min(area.start.saturating_add(AREA_BYTES_MAX));
    let mut bytes = Vec::new();
    while start < end {
        let length = STEP_BYTES.min(end - start);
        bytes.resize(usize::try_from(length).unwrap_or(0), 0);
        if memory.read(start, &mut bytes) {
            let places = memmem::find_iter(&bytes, &MAGIC).filter(|at| at % ALIGNMENT == 0);
            found.extend(places.map(|at| start + at as u64));
        }
        start += length;
    }
    found
}
