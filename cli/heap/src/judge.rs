//! What an address is, and which parts of a heap contradict each other.

use crate::heap::{Content, Heap, Run, Slab, Waiting};

/// What hakmem knows about an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub state: State,
    /// The block that contains the address, or the large block beside it: its start and its usable size.
    pub block: Option<(u64, u64)>,
    /// The slab that contains it: its start, and the number of its cache.
    pub slab: Option<(u64, Option<u64>)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Not hakmem's memory.
    Foreign,
    /// The block is live.
    Live,
    /// The block is free in its slab.
    InSlab,
    /// The block is free, in a magazine of the cache with this number.
    InMagazine(u64),
    /// The block is free, in a thread's stock or quarantine (mode secure).
    InStock,
    /// The block was freed by another thread and is on its way to the owner with this number.
    InParcel(u64),
    /// The block was never handed out.
    NeverUsed,
    /// The block is large, free, and kept in BigCache.
    Kept,
    /// The address is before a large block that ends at a guard.
    Before,
    /// The address is behind the last block of a slab, or behind the end of a large block.
    Rest,
    /// The unit is free.
    FreeUnit,
    /// The unit contains hakmem's own descriptors.
    Metadata,
}

pub fn describe(heap: &Heap, address: u64) -> Description {
    let mut description = Description {
        state: State::Foreign,
        block: None,
        slab: None,
    };
    let Some(place) = heap.find(address) else {
        describe_guarded(heap, address, &mut description);
        return description;
    };
    description.state = if place.run.is_none() && heap.is_metadata(address) {
        State::Metadata
    } else {
        State::FreeUnit
    };
    let Some(run) = place.run else {
        return description;
    };
    match &run.content {
        Content::Large {
            block,
            block_bytes,
            is_kept,
        } => {
            description.block = Some((*block, *block_bytes));
            description.state = match address.checked_sub(*block) {
                None => State::Before,
                Some(offset) if offset >= *block_bytes => State::Rest,
                Some(_) if *is_kept => State::Kept,
                Some(_) => State::Live,
            };
        }
        Content::Small(slab) => {
            let owner = slab.owner.map(|owner| heap.caches[owner].number);
            description.slab = Some((run.base, owner));
            let class = heap.classes[slab.class];
            let index = (address - run.base) / class.bytes;
            if index >= class.blocks {
                description.state = State::Rest;
                return description;
            }
            let block = run.base + index * class.bytes;
            description.block = Some((block, class.bytes));
            description.state = state_of(heap, slab, block, index);
        }
    }
    description
}

/// The address is in no superslab; it may be among the sampled blocks between guards.
fn describe_guarded(heap: &Heap, address: u64, description: &mut Description) {
    if address.wrapping_sub(heap.guard.base) >= heap.guard.bytes {
        return;
    }
    // A block of 0 bytes contains its own start.
    let holds = |block: &&(u64, u64)| address.wrapping_sub(block.0) < block.1.max(1);
    description.block = heap.guard.blocks.iter().find(holds).copied();
    description.state = match description.block {
        Some(_) => State::Live,
        None => State::FreeUnit,
    };
}

pub fn state_of(heap: &Heap, slab: &Slab, block: u64, index: u64) -> State {
    if index >= slab.fresh {
        return State::NeverUsed;
    }
    if slab.is_in(index) {
        return State::InSlab;
    }
    match heap.waits_at(block) {
        Some(Waiting::Magazine(cache)) => State::InMagazine(heap.caches[cache].number),
        Some(Waiting::Stock) => State::InStock,
        Some(Waiting::Outbox(cache) | Waiting::Inbox(cache)) => {
            State::InParcel(heap.caches[cache].number)
        }
        None => State::Live,
    }
}

/// Every contradiction in a heap that stands still, one line each. A step that a thread had half done when it was stopped is
/// also reported.
pub fn damage(heap: &Heap) -> Vec<String> {
    let mut found = heap.doubts.clone();
    for (run, slab) in heap.slabs() {
        slab_damage(heap, run, slab, &mut found);
    }
    for (block, _) in &heap.waiting {
        found.extend(waiting_damage(heap, *block));
    }
    for block in &heap.waiting_twice {
        found.push(format!(
            "block {block:#x} waits in two places: it was freed twice"
        ));
    }
    found
}

fn slab_damage(heap: &Heap, run: &Run, slab: &Slab, found: &mut Vec<String>) {
    let class = heap.classes[slab.class];
    let bytes = class.bytes;
    if slab.blocks_in() != slab.free_blocks {
        found.push(format!(
            "slab {:#x} of {bytes} B blocks counts {} free, and its bitmap {}",
            run.base,
            slab.free_blocks,
            slab.blocks_in()
        ));
    }
    let words = slab.bitmap.iter().rev().enumerate();
    let highest = words
        .filter(|(_, word)| **word != 0)
        .map(|(from_end, word)| {
            let word_index = (slab.bitmap.len() - 1 - from_end) as u64;
            word_index * 64 + 63 - u64::from(word.leading_zeros())
        })
        .next();
    if highest.is_some_and(|highest| highest >= slab.fresh) {
        found.push(format!(
            "slab {:#x} of {bytes} B blocks has a free block that was never handed out",
            run.base
        ));
    }
    if slab.owner.is_none() {
        found.push(format!(
            "slab {:#x} of {bytes} B blocks has an unknown owner",
            run.base
        ));
    }
}

fn waiting_damage(heap: &Heap, block: u64) -> Option<String> {
    let run = heap.find(block).and_then(|place| place.run);
    let Some((run, Content::Small(slab))) = run.map(|run| (run, &run.content)) else {
        return Some(format!(
            "block {block:#x} waits for reuse, and lies in no slab"
        ));
    };
    let bytes = heap.classes[slab.class].bytes;
    let (index, offset) = ((block - run.base) / bytes, (block - run.base) % bytes);
    if offset != 0 {
        return Some(format!(
            "block {block:#x} waits for reuse, and lies {offset} bytes into a block of {bytes}"
        ));
    }
    slab.is_in(index).then(|| {
        format!(
            "block {block:#x} of {bytes} bytes waits, and is free in its slab: it was freed twice"
        )
    })
}
