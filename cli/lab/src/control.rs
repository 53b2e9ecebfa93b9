//! What hakmem itself knows of an address: its address map, read from outside.

use crate::process::Process;
use hakmem_heap::control::{Control, Field};
use hakmem_heap::error::{Error, Result};
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use std::collections::HashSet;

/// More pointers than this add no proof.
const POINTERS_MAX: usize = 1 << 16;
/// How much of a writable area to search at most: the top of a stack, the data of an object.
const SEARCHED_BYTES_MAX: u64 = 1 << 20;

/// What the pointers in a process's data and stacks point to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Blocks {
    /// hakmem's release in this process.
    pub release: String,
    /// How many different addresses hakmem's map knows.
    pub known: usize,
    /// How many different addresses lie in the C library's own heap, where there should be none.
    pub in_break: usize,
}

/// The tables of the map, as found in a process.
pub struct AddressMap {
    process: LiveProcess,
    release: String,
    units: u64,
    unit_mask: u64,
    unit_log2: u32,
    supers: u64,
    super_mask: u64,
    super_log2: u32,
    super_base: Field,
    super_bytes: Field,
}

impl AddressMap {
    /// Fails for a process without hakmem, with another layout, or before its first block.
    pub fn find(pid: i32) -> Result<AddressMap> {
        let process = LiveProcess::open(pid)?;
        let control = Control::find(&process)?;
        let log2 = |name: &str| match control.constant(name)? {
            value @ 0..64 => Ok(value as u32),
            value => Err(Error::Damaged(format!("{name} is {value}"))),
        };
        let root = control.root("hak_map")?;
        let map = process.read_vec(root.address, control.struct_bytes("hak_map")?)?;
        let number = |name: &str| Ok(control.field("hak_map", name)?.number(&map));
        Ok(AddressMap {
            release: control.release.clone(),
            units: number("units")?,
            unit_mask: number("unit_mask")?,
            unit_log2: log2("unit_log2")?,
            supers: number("supers")?,
            super_mask: number("super_mask")?,
            super_log2: log2("super_log2")?,
            super_base: control.field("hak_super", "base")?,
            super_bytes: control.field("hak_super", "mapped_bytes")?,
            process,
        })
    }

    /// Does the address lie in memory that hakmem has handed out or cut into blocks?
    pub fn knows(&self, address: u64) -> bool {
        self.look_up(address).unwrap_or(false)
    }

    fn look_up(&self, address: u64) -> Option<bool> {
        let slot = (address >> self.super_log2) & self.super_mask;
        let descriptor = self.process.read_u64(self.supers + 8 * slot)?;
        if descriptor == 0 {
            return Some(false);
        }
        let number = |field: Field| self.process.read_u64(descriptor + field.offset as u64);
        let (base, bytes) = (number(self.super_base)?, number(self.super_bytes)?);
        if address
            .checked_sub(base)
            .is_none_or(|offset| offset >= bytes)
        {
            return Some(false);
        }
        let unit = (address >> self.unit_log2) & self.unit_mask;
        let mut entry = [0; 4];
        let is_read = self.process.read(self.units + 4 * unit, &mut entry);
        is_read.then_some(entry != [0; 4])
    }
}

/// Looks at every word where a program may keep a pointer. Fails in the same cases as `AddressMap::find`.
pub fn count_blocks(process: &Process) -> Result<Blocks> {
    let map = AddressMap::find(process.task)?;
    let heap = process.break_heap();
    let mut seen = HashSet::new();
    let mut blocks = Blocks {
        release: map.release.clone(),
        ..Blocks::default()
    };
    for (start, end) in process.places_of_pointers() {
        // A stack grows down, so its used part is at the end.
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
            if map.knows(address) {
                blocks.known += 1;
            } else if heap.is_some_and(|(low, high)| (low..high).contains(&address)) {
                blocks.in_break += 1;
            }
            if blocks.known >= POINTERS_MAX {
                return Ok(blocks);
            }
        }
    }
    Ok(blocks)
}
