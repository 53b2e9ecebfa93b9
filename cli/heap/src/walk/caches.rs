//! Caches, and the blocks that wait in them.

use super::{Found, TRIES, Walk, le_u64};
use crate::error::Result;
use crate::heap::{Cache, CacheCounts, Class, ClassCounts, Owner, Waiting};
use std::collections::HashSet;

/// Limits: more than any heap has.
const CACHES_MAX: usize = 1 << 20;
const PARCELS_MAX: usize = 1 << 20;
const MAGAZINE_LOG2_MAX: u64 = 24;

impl Walk<'_> {
    /// Every cache, and the bytes of its record. New caches are only added at the head of the list.
    pub(super) fn caches(
        &self,
        classes: &[Class],
        found: &mut Found,
    ) -> Result<(Vec<Cache>, Vec<Vec<u8>>)> {
        let registry = self.root("hak_registry", self.fields.registry.size)?;
        let mut addresses = Vec::new();
        let mut seen = HashSet::new();
        let mut next = self.fields.registry.all.number(&registry);
        let mut records = Vec::new();
        while next != 0 {
            if !seen.insert(next) || addresses.len() == CACHES_MAX {
                found.doubt(format!("the list of caches leads back to {next:#x}"));
                break;
            }
            let Ok(record) = self.memory.read_vec(next, self.fields.cache.size) else {
                if addresses.is_empty() {
                    return Err(self.memory.explain(next));
                }
                found.doubt(format!(
                    "the list of caches leads to {next:#x}, where nothing is mapped"
                ));
                break;
            };
            addresses.push((next, None));
            next = self.fields.cache.next.number(&record);
            records.push(record);
        }
        addresses.reverse();
        records.reverse();
        let shared = "hak_cache_shared";
        addresses.push((self.control.root(shared)?.address, Some(Owner::Shared)));
        records.push(self.root(shared, self.fields.cache.size)?);
        let caches: Vec<Cache> = addresses
            .iter()
            .zip(&records)
            .map(|((address, kind), record)| self.cache(*address, *kind, record, classes))
            .collect();
        for (index, cache) in caches.iter().enumerate() {
            let owner = cache.address + self.fields.cache.owner.offset as u64;
            found.caches_by_owner.insert(owner, index);
        }
        Ok((caches, records))
    }

    fn cache(&self, address: u64, kind: Option<Owner>, record: &[u8], classes: &[Class]) -> Cache {
        let cache = &self.fields.cache;
        let owner = cache.owner.part(record, 0);
        let counts = cache.counts.part(record, 0);
        let has_thread = self.fields.owner.has_thread.number(owner) != 0;
        let of_class = |index: usize| {
            let magazine = cache.magazines.part(record, index);
            let part = self.fields.magazine.counts.part(magazine, 0);
            let slabs = self.fields.owner.classes.part(owner, index);
            ClassCounts {
                refills: self.fields.class_counts.refills.number(part),
                refilled_blocks: self.fields.class_counts.refilled_blocks.number(part),
                spills: self.fields.class_counts.spills.number(part),
                spilled_blocks: self.fields.class_counts.spilled_blocks.number(part),
                made_slabs: self.fields.owner_class.made_slabs.number(slabs),
                ended_slabs: self.fields.owner_class.ended_slabs.number(slabs),
                counted_allocations: (self.fields.class_counts.drawn.number(part))
                    .saturating_sub(cache.gaps.number_at(record, index)),
                counted_misses: self.fields.class_counts.misses.number(part),
            }
        };
        Cache {
            address,
            number: self.fields.owner.tag.number(owner) >> self.fields.tag_log2,
            kind: kind.unwrap_or(if has_thread {
                Owner::Thread
            } else {
                Owner::Heap
            }),
            thread_id: cache.thread_id.number(record),
            is_dead: self.fields.owner.state.number(owner) == self.fields.owner_dead,
            events: self.fields.owner.events.number(owner),
            held: (0..classes.len())
                .map(|class| self.magazine(record, class).map_or(0, |(_, count)| count))
                .collect(),
            counts: CacheCounts {
                sent_parcels: self.fields.cache_counts.sent_parcels.number(counts),
                sent_blocks: self.fields.cache_counts.sent_blocks.number(counts),
                opened_parcels: self.fields.owner.opened_parcels.number(owner),
                adopted_slabs: self.fields.cache_counts.adopted_slabs.number(counts),
            },
            class_counts: (0..classes.len()).map(of_class).collect(),
        }
    }

    /// The address of a magazine's lowest place with a block, and how many blocks it has.
    fn magazine(&self, record: &[u8], class: usize) -> Option<(u64, u64)> {
        let magazine = &self.fields.magazine;
        let part = self.fields.cache.magazines.part(record, class);
        let base = magazine.base.number(part);
        let bottom = magazine.bottom.number(part);
        let places_log2 = magazine.places_log2.number(part);
        let apart = usize::try_from(self.fields.cache.apart.number(record)).ok()?;
        let number = apart.checked_add(class)?;
        let tops = &self.fields.cache.top;
        let top = (number < tops.count).then(|| tops.number_at(record, number))?;
        let places = top.checked_sub(base)? / 8;
        let is_sane = base != 0 && places_log2 <= MAGAZINE_LOG2_MAX && places < 1 << places_log2;
        let count = places.checked_sub(1)?.checked_sub(bottom)?;
        is_sane.then_some((base.wrapping_add(8 * (bottom + 1)), count))
    }

    /// Every block that waits outside its slab.
    pub(super) fn waiting(
        &self,
        caches: &[Cache],
        records: &[Vec<u8>],
        found: &mut Found,
    ) -> Vec<(u64, Waiting)> {
        let mut waiting = Vec::new();
        for (index, (cache, record)) in caches.iter().zip(records).enumerate() {
            for class in 0..self.fields.cache.magazines.count {
                self.magazine_blocks(record, class, index, &mut waiting);
            }
            self.parcels_of(cache, record, index, found, &mut waiting);
        }
        waiting
    }

    /// The program may take a list during the walk and reuse its parcels for another one. Then the cache is read again.
    fn parcels_of(
        &self,
        cache: &Cache,
        record: &[u8],
        index: usize,
        found: &mut Found,
        waiting: &mut Vec<(u64, Waiting)>,
    ) {
        let mut record = record.to_vec();
        let known = waiting.len();
        for left in (0..TRIES).rev() {
            let Err(doubt) = self.parcels_at_once(&record, index, waiting) else {
                return;
            };
            match self.memory.read_vec(cache.address, record.len()) {
                Ok(newer) if left > 0 => record = newer,
                _ => return found.doubt(doubt),
            }
            waiting.truncate(known);
        }
    }

    fn parcels_at_once(
        &self,
        record: &[u8],
        index: usize,
        waiting: &mut Vec<(u64, Waiting)>,
    ) -> std::result::Result<(), String> {
        let cache = &self.fields.cache;
        for place in 0..cache.outboxes.count {
            let part = cache.outboxes.part(record, place);
            let parcel = self.fields.outbox.parcel.number(part);
            self.parcels(parcel, Waiting::Outbox(index), true, waiting)?;
        }
        let owner = cache.owner.part(record, 0);
        let fields = &self.fields.owner;
        for first in [fields.pending.number(owner), fields.inbox.number(owner)] {
            self.parcels(first, Waiting::Inbox(index), false, waiting)?;
        }
        self.loose_blocks(fields.loose.number(owner), index, waiting)
    }

    fn magazine_blocks(
        &self,
        record: &[u8],
        class: usize,
        index: usize,
        waiting: &mut Vec<(u64, Waiting)>,
    ) {
        let Some((start, count)) = self.magazine(record, class) else {
            return;
        };
        let bytes = usize::try_from(count * 8).unwrap_or(0);
        let Ok(places) = self.memory.read_vec(start, bytes) else {
            return;
        };
        let blocks = places
            .chunks_exact(8)
            .map(le_u64)
            .filter(|block| *block > 1);
        waiting.extend(blocks.map(|block| (block, Waiting::Magazine(index))));
        // A block that a thief has replaced by a fence, unless the thread has passed the fence since.
        let part = self.fields.cache.magazines.part(record, class);
        let base = self.fields.magazine.base.number(part);
        let fence = base.wrapping_add(8 * self.fields.magazine.fence.number(part));
        let fenced_place = fence
            .checked_sub(start)
            .and_then(|offset| usize::try_from(offset).ok())
            .and_then(|offset| places.get(offset..offset + 8));
        if fenced_place.is_some_and(|place| le_u64(place) == 0) {
            let fenced = self.fields.magazine.fenced.number(part);
            waiting.push((fenced, Waiting::Magazine(index)));
        }
    }

    /// Adds the blocks of a list of parcels; returns a doubt if the list ends too early.
    fn parcels(
        &self,
        first: u64,
        place: Waiting,
        only_one: bool,
        waiting: &mut Vec<(u64, Waiting)>,
    ) -> std::result::Result<(), String> {
        let parcel = &self.fields.parcel;
        let mut seen = HashSet::new();
        let mut next = first;
        while next != 0 {
            if !seen.insert(next) || seen.len() > PARCELS_MAX {
                return Err(format!("a list of parcels leads back to {next:#x}"));
            }
            let Ok(record) = self.memory.read_vec(next, parcel.size) else {
                return Err(format!(
                    "a list of parcels leads to {next:#x}, where nothing is mapped"
                ));
            };
            let count = usize::try_from(parcel.count.number(&record)).unwrap_or(0);
            let blocks = (0..count.min(parcel.blocks.count))
                .map(|index| parcel.blocks.number_at(&record, index))
                .filter(|block| *block != 0);
            waiting.extend(blocks.map(|block| (block, place)));
            next = if only_one {
                0
            } else {
                parcel.next.number(&record)
            };
        }
        Ok(())
    }

    /// Blocks that were freed when there was no memory for a parcel: each contains the address of the next one.
    fn loose_blocks(
        &self,
        first: u64,
        index: usize,
        waiting: &mut Vec<(u64, Waiting)>,
    ) -> std::result::Result<(), String> {
        let mut seen = HashSet::new();
        let mut next = first;
        while next != 0 {
            if !seen.insert(next) || seen.len() > PARCELS_MAX {
                return Err(format!("a list of freed blocks leads back to {next:#x}"));
            }
            waiting.push((next, Waiting::Inbox(index)));
            next = self.memory.read_u64(next).unwrap_or(0);
        }
        Ok(())
    }
}
