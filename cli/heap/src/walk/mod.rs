//! Reads a heap: follows every list and table from the roots, with bounds, and reads what may have changed a second time.

mod caches;
mod supers;

use crate::control::{Control, Field};
use crate::error::{Error, Result};
use crate::failures::Failures;
use crate::fields::Fields;
use crate::heap::{
    Arena, Cache, Class, ClassCounts, Content, Guard, Heap, OsCounts, Super, Waiting,
};
use crate::memory::Memory;
use crate::options;
use crate::timings;
use std::collections::HashMap;
use std::ops::Range;
use std::time::Duration;

/// Limits: more than any heap has.
const CLASSES_MAX: usize = 255;
const METADATA_BYTES_MAX: usize = 1 << 20;
const DOUBTS_MAX: usize = 20;
const SHARDS_MAX: usize = 256;
/// How often to start again on a list that changes during the walk.
const TRIES: usize = 5;

impl Heap {
    pub fn read(memory: &dyn Memory) -> Result<Heap> {
        let control = Control::find(memory)?;
        Heap::read_by(memory, &control)
    }

    pub fn read_by(memory: &dyn Memory, control: &Control) -> Result<Heap> {
        let fields = Fields::find(control)?;
        let walk = Walk {
            memory,
            control,
            fields: &fields,
        };
        walk.heap()
    }

    /// Where the heaps of other copies of hakmem lie, by address, in whole pages. What cannot be read of one is left out.
    pub fn ranges_of_other_copies(memory: &dyn Memory, page_bytes: u64) -> Vec<Range<u64>> {
        let others = Control::others_in_use(memory);
        let heaps = others.iter().map(|control| Heap::read_by(memory, control));
        let ranges = heaps.flatten().flat_map(|heap| heap.ranges(page_bytes));
        let mut ranges: Vec<Range<u64>> = ranges.collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges
    }
}

struct Walk<'a> {
    memory: &'a dyn Memory,
    control: &'a Control,
    fields: &'a Fields,
}

/// What a walk has found so far.
#[derive(Default)]
struct Found {
    doubts: Vec<String>,
    caches_by_owner: HashMap<u64, usize>,
}

impl Found {
    fn doubt(&mut self, text: String) {
        if self.doubts.len() < DOUBTS_MAX {
            self.doubts.push(text);
        }
    }
}

impl Walk<'_> {
    fn heap(&self) -> Result<Heap> {
        let mut found = Found::default();
        let classes = self.classes()?;
        let (caches, records) = self.caches(&classes, &mut found)?;
        let mut waiting = self.waiting(&caches, &records, &mut found);
        let supers = self.supers(&classes, &mut found)?;
        // Reads the caches again: a difference in tops or counters means that blocks moved during the read.
        let again = self.caches(&classes, &mut Found::default())?.0;
        let moved_blocks = moved(&caches, &again);
        let caches = self.with_settled_counts(caches, again, &classes)?;
        waiting.sort_unstable_by_key(|(address, _)| *address);
        let twice = waiting.windows(2).filter(|pair| pair[0].0 == pair[1].0);
        let waiting_twice = twice.map(|pair| pair[0].0).collect();
        waiting.dedup_by_key(|(address, _)| *address);
        add_stocked(&mut waiting, &supers, &classes);
        Ok(Heap {
            release: self.control.release.clone(),
            unit_bytes: 1 << self.fields.unit_log2,
            classes,
            supers,
            caches,
            waiting,
            waiting_twice,
            guard: self.guard()?,
            arena: self.arena()?,
            os: self.os_counts()?,
            options: options::read(self.control, self.memory)?,
            failures: Failures::read_by(self.memory, self.control)?,
            timings: timings::read(self.control, self.memory)?,
            metadata: self.metadata()?,
            moved_blocks,
            doubts: found.doubts,
        })
    }

    /// When a dead cache's descriptor is purged, its counts are added to the shared cache. Reads before and after that would
    /// count them twice. So the counts are taken from one look, and a second look shows that no cache lost counts in between.
    fn with_settled_counts(
        &self,
        mut caches: Vec<Cache>,
        mut next: Vec<Cache>,
        classes: &[Class],
    ) -> Result<Vec<Cache>> {
        if !has_rested(&caches, &next) {
            return Ok(caches);
        }
        for attempt in 0..TRIES {
            let last = next;
            std::thread::sleep(Duration::from_millis(1 << attempt));
            next = self.caches(classes, &mut Found::default())?.0;
            if !has_rested(&last, &next) {
                next = last;
                break;
            }
        }
        let counts = next
            .into_iter()
            .map(|cache| (cache.address, cache.class_counts));
        let mut counts: HashMap<u64, _> = counts.collect();
        for cache in &mut caches {
            if let Some(settled) = counts.remove(&cache.address) {
                cache.class_counts = settled;
            }
        }
        Ok(caches)
    }

    /// The bytes of a root variable.
    fn root(&self, name: &str, bytes: usize) -> Result<Vec<u8>> {
        let root = self.control.root(name)?;
        let all = bytes.saturating_mul(root.count.min(CLASSES_MAX));
        self.memory.read_vec(root.address, all)
    }

    fn classes(&self) -> Result<Vec<Class>> {
        let class = &self.fields.class;
        let table = self.root("hak_classes", class.size)?;
        let classes: Vec<Class> = table
            .chunks_exact(class.size.max(1))
            .map(|record| Class {
                bytes: class.bytes.number(record),
                blocks: class.blocks.number(record),
                units: class.units.number(record),
            })
            .collect();
        let is_sane = |class: &Class| {
            (1..1 << 20).contains(&class.bytes)
                && class.blocks > 0
                && class.blocks <= 1 << 16
                && class.units <= 64
        };
        if classes.is_empty() || !classes.iter().all(is_sane) {
            return Err(Error::Damaged("the table of size classes".into()));
        }
        Ok(classes)
    }

    fn arena(&self) -> Result<Arena> {
        let arena = &self.fields.arena;
        let record = self.root("hak_arena", arena.size)?;
        let pool = self.root("hak_pool", self.fields.pool.size)?;
        let untold = &self.fields.untold;
        // The sum in the arena, plus what the shards have not added to it yet.
        let with_untold = |sum: Field, part: Field| {
            (0..arena.shards.count.min(SHARDS_MAX)).fold(sum.number(&record), |total, index| {
                let shard = arena.shards.part(&record, index);
                total.wrapping_add(part.number(self.fields.shard.untold.part(shard, 0)))
            })
        };
        Ok(Arena {
            super_bytes: arena.super_bytes.number(&record),
            mapping_bytes: arena.mapping_bytes.number(&record),
            dirty_bytes: with_untold(arena.dirty_bytes, untold.dirty_bytes),
            free_bytes: with_untold(arena.free_bytes, untold.free_bytes),
            retaken_bytes: with_untold(arena.retaken_bytes, untold.retaken_bytes),
            peak_bytes: arena.peak_bytes.number(&record),
            pool_bytes: self.fields.pool.mapped_bytes.number(&pool),
            clock: arena.clock.number(&record),
        })
    }

    fn guard(&self) -> Result<Guard> {
        let (guard, slot) = (&self.fields.guard, &self.fields.guard_slot);
        let record = self.root("hak_guard", guard.size.min(METADATA_BYTES_MAX))?;
        let (base, table) = (guard.base.number(&record), guard.table.number(&record));
        if base == 0 || table == 0 {
            return Ok(Guard::default());
        }
        let slots = self.fields.guard_table.slots;
        let bytes = self.fields.guard_table.size.min(METADATA_BYTES_MAX);
        let record = self.memory.read_vec(table, bytes)?;
        let mut blocks: Vec<(u64, u64)> = (0..slots.count.min(METADATA_BYTES_MAX))
            .map(|index| slots.part(&record, index))
            .filter(|part| slot.state.number(part) == self.fields.guard_live)
            .map(|part| (slot.block.number(part), slot.bytes.number(part)))
            .collect();
        blocks.sort_unstable();
        Ok(Guard {
            base,
            bytes: 1 << self.fields.super_log2,
            blocks,
        })
    }

    fn os_counts(&self) -> Result<OsCounts> {
        let counts = &self.fields.os_counts;
        let record = self.root("hak_os_counts", counts.size)?;
        Ok(OsCounts {
            maps: counts.maps.number(&record),
            unmaps: counts.unmaps.number(&record),
            remaps: counts.remaps.number(&record),
            purges: counts.purges.number(&record),
            purged_bytes: counts.purged_bytes.number(&record),
            huge_advices: counts.huge_advices.number(&record),
            refused: counts.refused.number(&record),
        })
    }

    /// The mappings of descriptors, and the two tables of the address map.
    fn metadata(&self) -> Result<Vec<(u64, u64)>> {
        let (pool, chunk, map) = (&self.fields.pool, &self.fields.chunk, &self.fields.map);
        let record = self.root("hak_pool", pool.size.min(METADATA_BYTES_MAX))?;
        let count = usize::try_from(pool.chunk_count.number(&record)).unwrap_or(0);
        let mut found: Vec<(u64, u64)> = (0..count.min(pool.chunks.count))
            .map(|index| pool.chunks.part(&record, index))
            .map(|part| (chunk.start.number(part), chunk.bytes.number(part)))
            .collect();
        let record = self.root("hak_map", map.size)?;
        let entries = |mask: u64, bytes: u64| mask.saturating_add(1).saturating_mul(bytes);
        found.push((
            map.units.number(&record),
            entries(map.unit_mask.number(&record), 4),
        ));
        // Behind the entries, the table has one bit for each.
        let slots = map.super_mask.number(&record);
        let bytes = entries(slots, 8).saturating_add(entries(slots, 1).div_ceil(8));
        found.push((map.supers.number(&record), bytes));
        Ok(found)
    }
}

fn le_u64(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// Adds the free blocks that are out of their hardened slabs. Those on their way to their owners are known already. By address.
fn add_stocked(waiting: &mut Vec<(u64, Waiting)>, supers: &[Super], classes: &[Class]) {
    for run in supers.iter().flat_map(|one| &one.runs) {
        if let Content::Small(slab) = &run.content {
            let class = classes[slab.class];
            let indices = (0..class.blocks).filter(|index| slab.is_stocked(*index));
            waiting.extend(indices.map(|index| (run.base + index * class.bytes, Waiting::Stock)));
        }
    }
    waiting.sort_by_key(|(address, _)| *address); // stable: of two entries for a block, the known one stays first
    waiting.dedup_by_key(|(address, _)| *address);
}

/// The least number of blocks that entered or left magazines between two reads.
fn moved(before: &[Cache], after: &[Cache]) -> u64 {
    let pairs = before.iter().zip(after);
    let by_top = pairs.flat_map(|(old, new)| old.held.iter().zip(&new.held));
    let by_top = by_top
        .map(|(old, new)| old.abs_diff(*new))
        .fold(0, u64::saturating_add);
    // Summed over all caches: counts may have moved from one cache to another.
    let by_batch = batches(after).saturating_sub(batches(before));
    by_top.saturating_add(by_batch)
}

fn batches(caches: &[Cache]) -> u64 {
    let counts = caches.iter().flat_map(|cache| &cache.class_counts);
    counts
        .flat_map(|of_class| [of_class.refilled_blocks, of_class.spilled_blocks])
        .fold(0, u64::saturating_add)
}

/// Has a cache given its counts to the shared cache since?
fn has_rested(before: &[Cache], after: &[Cache]) -> bool {
    let of = |counts: &ClassCounts| {
        [
            counts.refills,
            counts.refilled_blocks,
            counts.spills,
            counts.spilled_blocks,
            counts.made_slabs,
            counts.ended_slabs,
        ]
    };
    let pairs = before.iter().zip(after);
    let mut pairs = pairs.flat_map(|(old, new)| old.class_counts.iter().zip(&new.class_counts));
    pairs.any(|(old, new)| of(new).iter().zip(of(old)).any(|(new, old)| *new < old))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap::{CacheCounts, Owner};

    fn cache(kind: Owner, held: u64, blocks: u64) -> Cache {
        Cache {
            address: 0,
            number: 0,
            kind,
            thread_id: 0,
            is_dead: false,
            events: 0,
            held: vec![held],
            counts: CacheCounts::default(),
            class_counts: vec![ClassCounts {
                refilled_blocks: blocks,
                ..ClassCounts::default()
            }],
        }
    }

    #[test]
    fn counts_that_become_anothers_are_no_movement() {
        let before = [cache(Owner::Thread, 3, 500), cache(Owner::Shared, 0, 7000)];
        let after = [cache(Owner::Thread, 0, 0), cache(Owner::Shared, 0, 7500)];
        assert_eq!(moved(&before, &after), 3);
        assert!(has_rested(&before, &after));
        assert!(!has_rested(&before, &before));
    }

    #[test]
    fn a_cache_that_is_new_moves_what_it_has_moved() {
        let before = [cache(Owner::Thread, 3, 500), cache(Owner::Shared, 0, 7000)];
        let new = cache(Owner::Thread, 4, 10);
        let after = [before[0].clone(), new, before[1].clone()];
        assert_eq!(moved(&before, &after), 14);
    }
}
