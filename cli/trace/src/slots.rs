//! Free slots, and which of them a thread takes next.
//!
//! A thread that replays a call waits until the block's slot has reached its turn. So the choice of slots decides how threads
//! wait for each other: they should not wait at every call, but no thread may run far ahead of those that free its blocks.

use std::collections::VecDeque;

/// How many of the slots that a thread has freed it can take again itself, the newest first.
const OWN_SLOTS: usize = 256;
/// How many blocks or bytes must be freed after a slot before another thread takes it.
const APART_BLOCKS: u64 = 4096;
const APART_BYTES: u64 = 4 << 20;

/// A slot at the end of a turn. If its turn has changed, the slot was taken.
#[derive(Clone, Copy)]
pub struct Slot {
    pub number: u32,
    pub turn: u32,
}

/// A freed slot, and the totals that all threads had freed by then.
struct Freed {
    slot: Slot,
    blocks: u64,
    bytes: u64,
}

#[derive(Default)]
pub struct FreeSlots {
    /// The slots of all threads, the oldest first; some were taken since.
    all: VecDeque<Freed>,
    /// The slots by thread; some were taken since.
    own: Vec<VecDeque<Slot>>,
    blocks: u64,
    bytes: u64,
}

impl FreeSlots {
    pub fn of_threads(count: usize) -> FreeSlots {
        FreeSlots {
            own: (0..count).map(|_| VecDeque::new()).collect(),
            ..FreeSlots::default()
        }
    }

    /// Adds the slot of a block that a thread has freed. There are `slots` slots in all.
    pub fn put(
        &mut self,
        thread: usize,
        slot: Slot,
        bytes: u64,
        slots: usize,
        is_free: impl Fn(Slot) -> bool,
    ) {
        self.blocks += 1;
        self.bytes += bytes;
        let own = &mut self.own[thread];
        if own.len() == OWN_SLOTS {
            own.pop_front();
        }
        own.push_back(slot);
        self.all.push_back(Freed {
            slot,
            blocks: self.blocks,
            bytes: self.bytes,
        });
        // Slots that their own threads took again are still in the list.
        if self.all.len() > 2 * (slots + APART_BLOCKS as usize) {
            self.all.retain(|freed| is_free(freed.slot));
        }
    }

    /// A slot for a thread's new block; None if a new slot is needed.
    pub fn take(&mut self, thread: usize, is_free: impl Fn(Slot) -> bool) -> Option<u32> {
        while let Some(slot) = self.own[thread].pop_back() {
            if is_free(slot) {
                return Some(slot.number);
            }
        }
        while let Some(oldest) = self.all.front() {
            let slot = oldest.slot;
            let is_apart = self.blocks - oldest.blocks >= APART_BLOCKS
                || self.bytes - oldest.bytes >= APART_BYTES;
            if is_free(slot) && !is_apart {
                return None;
            }
            self.all.pop_front();
            if is_free(slot) {
                return Some(slot.number);
            }
        }
        None
    }

    /// The thread needs no more slots.
    pub fn forget(&mut self, thread: usize) {
        self.own[thread] = VecDeque::new();
    }
}
