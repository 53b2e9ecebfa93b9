//! hakmem's own word on an address: its address map, read from outside through the symbol
//! `hak_control` (`include/hakmem/control.h` has the layout).

use crate::process::Process;
use std::collections::HashSet;

const MAGIC: [u8; 8] = *b"hakmem\0\0";
const VERSION: u32 = 1;
/// More pointers than this prove nothing more.
const POINTERS_MAX: usize = 1 << 16;
/// How much of one writable area is searched: the top of a stack, the data of an object.
const SEARCHED_BYTES_MAX: u64 = 1 << 20;

/// Offsets in `struct hak_control`.
mod at {
    pub const VERSION: u64 = 8;
    pub const RELEASE: u64 = 16;
    pub const UNITS: u64 = 24;
    pub const UNIT_MASK: u64 = 32;
    pub const SUPERS: u64 = 40;
    pub const SUPER_MASK: u64 = 48;
    pub const UNIT_LOG2: u64 = 56;
    pub const SUPER_LOG2: u64 = 60;
    pub const SUPER_BASE: u64 = 64;
    pub const SUPER_BYTES: u64 = 68;
}

/// What the pointers in a process's data and stacks lead to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// hakmem's release in this process.
    pub release: String,
    /// Different addresses that hakmem's map knows.
    pub known: usize,
    /// Different addresses in the heap that the C library would use, where nothing should be.
    pub in_break: usize,
}

/// The tables, as they were found in a process.
pub struct AddressMap {
    release: String,
    units: u64,
    unit_mask: u64,
    supers: u64,
    super_mask: u64,
    unit_log2: u32,
    super_log2: u32,
    super_base: u64,
    super_bytes: u64,
}

impl AddressMap {
    /// None in a process without hakmem, with one of another layout, or before its first block.
    pub fn find(process: &Process) -> Option<AddressMap> {
        let control = process.objects.iter().find_map(|object| {
            let offset = object.file.exported_at("hak_control").first()?;
            Some(object.base.wrapping_add(*offset))
        })?;
        let mut magic = [0; 8];
        if !process.read(control, &mut magic)
            || magic != MAGIC
            || process.read_u32(control + at::VERSION)? != VERSION
        {
            return None;
        }
        let follow = |offset| process.read_u64(process.read_u64(control + offset)?);
        let number = |offset| process.read_u32(control + offset);
        let map = AddressMap {
            release: read_text(process, process.read_u64(control + at::RELEASE)?),
            units: follow(at::UNITS)?,
            unit_mask: follow(at::UNIT_MASK)?,
            supers: follow(at::SUPERS)?,
            super_mask: follow(at::SUPER_MASK)?,
            unit_log2: number(at::UNIT_LOG2)?,
            super_log2: number(at::SUPER_LOG2)?,
            super_base: u64::from(number(at::SUPER_BASE)?),
            super_bytes: u64::from(number(at::SUPER_BYTES)?),
        };
        (map.unit_log2 < 64 && map.super_log2 < 64).then_some(map)
    }

    /// Does the address lie in memory that hakmem has given out or cut into blocks?
    pub fn knows(&self, process: &Process, address: u64) -> bool {
        self.look_up(process, address).unwrap_or(false)
    }

    fn look_up(&self, process: &Process, address: u64) -> Option<bool> {
        let slot = (address >> self.super_log2) & self.super_mask;
        let descriptor = process.read_u64(self.supers + 8 * slot)?;
        if descriptor == 0 {
            return Some(false);
        }
        let base = process.read_u64(descriptor + self.super_base)?;
        let bytes = process.read_u64(descriptor + self.super_bytes)?;
        if address
            .checked_sub(base)
            .is_none_or(|offset| offset >= bytes)
        {
            return Some(false);
        }
        let unit = (address >> self.unit_log2) & self.unit_mask;
        Some(process.read_u32(self.units + 4 * unit)? != 0)
    }
}

/// Look at every word in which a program may keep a pointer. None without hakmem.
pub fn count_blocks(process: &Process) -> Option<Blocks> {
    let map = AddressMap::find(process)?;
    let heap = process.break_heap();
    let mut seen = HashSet::new();
    let mut blocks = Blocks {
        release: map.release.clone(),
        ..Blocks::default()
    };
    for (start, end) in process.places_of_pointers() {
        // A stack grows down: what is in use of it lies at the end.
        let from = start.max(end.saturating_sub(SEARCHED_BYTES_MAX));
        let mut bytes = vec![0; usize::try_from(end - from).unwrap_or(0)];
        if !process.read(from, &mut bytes) {
            continue;
        }
        for word in bytes.chunks_exact(8) {
            let address = u64::from_ne_bytes(word.try_into().unwrap_or_default());
            if address % 16 != 0 || address == 0 || !seen.insert(address) {
                continue;
            }
            if map.knows(process, address) {
                blocks.known += 1;
            } else if heap.is_some_and(|(low, high)| (low..high).contains(&address)) {
                blocks.in_break += 1;
            }
            if blocks.known >= POINTERS_MAX {
                return Some(blocks);
            }
        }
    }
    Some(blocks)
}

fn read_text(process: &Process, address: u64) -> String {
    let mut bytes = [0; 32];
    if !process.read(address, &mut bytes) {
        return String::new();
    }
    let end = bytes
        .iter()
        .position(|byte| *byte == 0)
        .unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
