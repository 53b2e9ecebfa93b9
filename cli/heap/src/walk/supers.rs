//! Superslabs, the runs in them, and the bitmaps of slabs.

use super::{Found, TRIES, Walk, le_u64};
use crate::error::Result;
use crate::heap::{Class, Content, Run, Slab, Super};
use crate::memory::Wanted;
use std::collections::{HashMap, HashSet};

/// Limits: more than any heap has.
const SUPERS_MAX: usize = 1 << 20;
const UNITS_MAX: usize = 64;

/// A slab whose bitmap is to be read later.
struct Unread {
    superslab: usize,
    run: usize,
    bitmap: u64,
    /// Behind the bitmap, one byte per block has its state.
    has_states: bool,
}

impl Walk<'_> {
    /// Every superslab, sorted by address, with the bitmaps of its slabs.
    pub(super) fn supers(&self, classes: &[Class], found: &mut Found) -> Result<Vec<Super>> {
        let mut records = HashMap::new();
        for left in (0..TRIES).rev() {
            match self.super_records(&mut records)? {
                None => break,
                Some(doubt) if left == 0 => found.doubt(doubt),
                Some(_) => {}
            }
        }
        // Reads only this field: the same struct contains the process's secret.
        let sees_all = self.fields.harden.sees_all;
        let harden = self.control.root("hak_harden")?.address + sees_all.offset as u64;
        let harden = self.memory.read_vec(harden, sees_all.bytes)?;
        let sees_all = harden.iter().any(|byte| *byte != 0);
        let mut supers = Vec::new();
        let mut unread = Vec::new();
        let mut larges = Vec::new();
        let mut addresses: Vec<(u64, Vec<u8>)> = records.into_iter().collect();
        addresses.sort_unstable_by_key(|(_, record)| self.fields.superslab.base.number(record));
        for (address, record) in addresses {
            if let Some(one) = self.superslab(&record, address, found) {
                supers.push(one);
                let index = supers.len() - 1;
                self.runs(
                    &record,
                    &mut supers[index],
                    classes,
                    found,
                    |run, slab| match slab {
                        None => larges.push((index, run)),
                        Some((bitmap, is_hardened)) => unread.push(Unread {
                            superslab: index,
                            run,
                            bitmap,
                            has_states: sees_all && is_hardened,
                        }),
                    },
                );
            }
        }
        self.bitmaps(&mut supers, classes, &unread);
        self.large_states(&mut supers, &larges)?;
        Ok(supers)
    }

    /// Follows the list of superslabs from its head and adds new ones. Returns a doubt if the list ends too early.
    fn super_records(&self, records: &mut HashMap<u64, Vec<u8>>) -> Result<Option<String>> {
        let (arena, superslab) = (&self.fields.arena, &self.fields.superslab);
        let head = self.control.root("hak_arena")?.address;
        let head = head.wrapping_add(arena.all.offset as u64);
        let record = self.root("hak_arena", arena.size)?;
        let bytes = superslab.slabs.offset + UNITS_MAX * superslab.slabs.bytes;
        let mut next = self.fields.list.next.number(arena.all.part(&record, 0));
        let mut seen = HashSet::new();
        // 0: nothing was allocated so far.
        while next != head && next != 0 {
            if !seen.insert(next) || seen.len() > SUPERS_MAX {
                return Ok(Some(format!(
                    "the list of superslabs leads back to {next:#x}"
                )));
            }
            let address = next.wrapping_sub(superslab.all_link.offset as u64);
            let Some(record) = self.super_record(address, bytes) else {
                if seen.len() == 1 {
                    return Err(self.memory.explain(address));
                }
                let text =
                    format!("the list of superslabs leads to {next:#x}, where nothing is mapped");
                return Ok(Some(text));
            };
            next = self
                .fields
                .list
                .next
                .number(superslab.all_link.part(&record, 0));
            records.insert(address, record);
        }
        Ok(None)
    }

    /// The record of a block with its own mapping is shorter, and may lie at the end of mapped memory.
    fn super_record(&self, address: u64, bytes: usize) -> Option<Vec<u8>> {
        let short = bytes - (UNITS_MAX - 1) * self.fields.superslab.slabs.bytes;
        let mut record = self.memory.read_vec(address, short).ok()?;
        if self.fields.superslab.is_mapping.number(&record) == 0 {
            record = self.memory.read_vec(address, bytes).ok()?;
        }
        Some(record)
    }

    fn superslab(&self, record: &[u8], address: u64, found: &mut Found) -> Option<Super> {
        let superslab = &self.fields.superslab;
        let one = Super {
            base: superslab.base.number(record),
            bytes: superslab.mapped_bytes.number(record),
            is_mapping: superslab.is_mapping.number(record) != 0,
            huge_units: superslab.huge_units.number(record),
            mapped_at: superslab.mapped_at.number(record),
            free_units: superslab.free_units.number(record),
            dirty_units: superslab.dirty_units.number(record),
            purging_units: superslab.purging_units.number(record),
            runs: Vec::new(),
        };
        let units = (UNITS_MAX as u64) << self.fields.unit_log2;
        let end = one.base.checked_add(one.bytes);
        let is_sane = one.base != 0
            && end.is_some_and(|end| end < 1 << 57)
            && (one.is_mapping || one.bytes == units);
        if !is_sane {
            found.doubt(format!(
                "the descriptor at {address:#x} describes {} bytes at {:#x}",
                one.bytes, one.base
            ));
        }
        is_sane.then_some(one)
    }

    /// The runs that begin in a superslab. Calls `note` for each whose state is to be read later; for a slab, with its bitmap's
    /// address and whether it is hardened.
    fn runs(
        &self,
        record: &[u8],
        superslab: &mut Super,
        classes: &[Class],
        found: &mut Found,
        mut note: impl FnMut(usize, Option<(u64, bool)>),
    ) {
        let slab = &self.fields.slab;
        let count = if superslab.is_mapping { 1 } else { UNITS_MAX };
        for unit in 0..count {
            let first = self.fields.superslab.first.number_at(record, unit);
            let is_free = superslab.free_units >> unit & 1 != 0;
            if !superslab.is_mapping && (first != unit as u64 || is_free) {
                continue;
            }
            let part = self.fields.superslab.slabs.part(record, unit);
            let state = slab.state.number(part);
            if state != self.fields.slab_small && state != self.fields.slab_large {
                continue;
            }
            let base = if superslab.is_mapping {
                superslab.base
            } else {
                superslab.base + ((unit as u64) << self.fields.unit_log2)
            };
            let bytes = if superslab.is_mapping {
                superslab.bytes
            } else {
                slab.units.number(part) << self.fields.unit_log2
            };
            let content = if state == self.fields.slab_large {
                let known = slab.base.number(part);
                let is_inside = superslab.is_mapping && known.wrapping_sub(base) < bytes;
                let block = if is_inside { known } else { base };
                let block_bytes = slab.bytes.number(part).min(base + bytes - block);
                note(superslab.runs.len(), None);
                Content::Large {
                    block,
                    block_bytes,
                    is_kept: false,
                }
            } else {
                let class = usize::try_from(slab.size_class.number(part)).unwrap_or(usize::MAX);
                let Some(of_class) = classes.get(class) else {
                    found.doubt(format!("the slab at {base:#x} has a class {class}"));
                    continue;
                };
                let owner = slab.owner.number(part);
                let is_hardened = slab.is_hardened.number(part) != 0;
                let bitmap = slab.bitmap.number(part);
                note(superslab.runs.len(), Some((bitmap, is_hardened)));
                Content::Small(Slab {
                    class,
                    owner: found.caches_by_owner.get(&owner).copied(),
                    fresh: slab.fresh.number(part).min(of_class.blocks),
                    free_blocks: slab.free_blocks.number(part),
                    bitmap: Vec::new(),
                    free: Vec::new(),
                })
            };
            superslab.runs.push(Run {
                base,
                bytes,
                made_at: self.fields.superslab.made_at.number_at(record, unit),
                content,
            });
        }
    }

    fn bitmaps(&self, supers: &mut [Super], classes: &[Class], unread: &[Unread]) {
        let mut targets: Vec<Vec<u8>> = unread
            .iter()
            .map(|one| match &supers[one.superslab].runs[one.run].content {
                Content::Small(slab) => {
                    let blocks = classes[slab.class].blocks;
                    let states = if one.has_states { blocks } else { 0 };
                    vec![0; usize::try_from(blocks.div_ceil(64) * 8 + states).unwrap_or(0)]
                }
                Content::Large { .. } => Vec::new(),
            })
            .collect();
        let mut wanted: Vec<Wanted> = unread
            .iter()
            .zip(&mut targets)
            .map(|(one, target)| Wanted::new(one.bitmap, target))
            .collect();
        self.memory.read_many(&mut wanted);
        for (one, target) in unread.iter().zip(&targets) {
            if let Content::Small(slab) = &mut supers[one.superslab].runs[one.run].content {
                let words = classes[slab.class].blocks.div_ceil(64);
                let words = usize::try_from(words * 8).unwrap_or(0).min(target.len());
                let (bitmap, states) = target.split_at(words);
                slab.bitmap = bitmap.chunks_exact(8).map(le_u64).collect();
                slab.free = self.free_blocks(states);
            }
        }
    }

    /// One bit for each block whose state says that it is free.
    fn free_blocks(&self, states: &[u8]) -> Vec<u64> {
        let is_free = |state: u8| {
            u64::from(state).checked_rem(self.fields.block_kinds) == Some(self.fields.block_free)
        };
        states
            .chunks(64)
            .map(|some| {
                let bits = some.iter().enumerate();
                bits.fold(0, |word, (at, state)| {
                    word | u64::from(is_free(*state)) << at
                })
            })
            .collect()
    }

    /// The map tells whether a large block is in use.
    fn large_states(&self, supers: &mut [Super], larges: &[(usize, usize)]) -> Result<()> {
        let map = &self.fields.map;
        let record = self.root("hak_map", map.size)?;
        let (units, mask) = (map.units.number(&record), map.unit_mask.number(&record));
        for (superslab, run) in larges {
            let run = &mut supers[*superslab].runs[*run];
            let unit = (run.base >> self.fields.unit_log2) & mask;
            let mut entry = [0; 4];
            if !self.memory.read(units.saturating_add(4 * unit), &mut entry) {
                continue;
            }
            if let Content::Large { is_kept, .. } = &mut run.content {
                *is_kept = u64::from(u32::from_le_bytes(entry)) & self.fields.map_kept != 0;
            }
        }
        Ok(())
    }
}
