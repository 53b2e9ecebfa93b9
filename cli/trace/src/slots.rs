//! Slots without a block, and which of them a thread takes next.
//!
//! A thread that replays a call waits until the block's slot has come to its turn. So the choice of slots
//! decides how threads wait for each other: not at every call, and yet none runs far ahead of those that
//! free what it allocates.

use std::collections::VecDeque;

/// Slots that a thread has freed and takes again itself, newest first.
const OWN_SLOTS: usize = 256;
/// How many blocks, or how much memory, have to be freed after a slot before another thread takes it.
const APART_BLOCKS: u64 = 4096;
const APART_BYTES: u64 = 4 << 20;

/// A slot at the end of a turn. When it has another one, somebody has taken it.
#[derive(Clone, Copy)]
pub struct Slot {
    pub number: u32,
    pub turn: u32,
}

/// And what all threads had freed by then.
struct Freed {
    slot: Slot,
    blocks: u64,
    bytes: u64,
}

#[derive(Default)]
pub struct FreeSlots {
    /// Of all threads, oldest first; some have been taken.
    all: VecDeque<Freed>,
    /// By thread; likewise.
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

    /// A thread has freed the block in a slot. There are `slots` in all.
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
        // Those that their own threads took again are still in there.
        if self.all.len() > 2 * (slots + APART_BLOCKS as usize) {
            self.all.retain(|freed| is_free(freed.slot));
        }
    }

    /// A slot for a thread's new block; None: it has to be one more.
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

    /// A thread needs no more.
    pub fn forget(&mut self, thread: usize) {
        self.own[thread] = VecDeque::new();
    }
}
