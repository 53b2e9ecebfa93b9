//! Puts the events of a process's threads in one order, and matches them with blocks.
//!
//! Within a thread, the trace has the order. Between threads, times decide, together with two rules: an address is handed out
//! only while it is free, and freed only while it is live. A call that seems too early waits for the others. (Processors'
//! clocks must differ by less than the time that a block takes from one thread to another.) What does not come within
//! `WAIT_SECONDS` is missing.

use crate::codec::Decoder;
use crate::event::{Event, Kind};
use crate::reader::{Chunk, Reader};
use crate::slots::{FreeSlots, Slot};
use hakmem_lab::error::Result;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const WAIT_SECONDS: f64 = 0.001;
/// A free that is this much earlier than the allocation of its address belongs to an older block.
const SURELY_EARLIER_SECONDS: f64 = 0.5e-6;

/// The longest burst of events in which only the first has its own time.
const BURST_SECONDS: f64 = 20e-6;
/// A block that is live, or was live until the step that reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Block {
    pub address: u64,
    pub size: u64,
    /// When it was allocated, and by which thread and stack.
    pub time: u64,
    pub thread: u32,
    pub stack: u32,
    /// How many calls its slot had before.
    pub turn: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Malloc,
    Calloc,
    Aligned {
        log2: u8,
    },
    /// `before` is the freed block; also for a realloc to size 0 that freed it.
    Free,
    /// `before` is the old block, which had the same slot.
    Realloc,
    /// An allocation that failed.
    Failed,
    /// A free of a block whose allocation is not in the trace.
    ForeignFree,
}

#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// An index into `Ordered::threads`.
    pub thread: usize,
    pub time: u64,
    pub what: What,
    /// The block's slot; two blocks that are live at the same time never share one.
    pub slot: u32,
    pub turn: u32,
    /// The address that was allocated or, for a free, that was freed.
    pub address: u64,
    pub size: u64,
    pub stack: u32,
    pub before: Block,
}

struct Thread {
    chunks: VecDeque<Chunk>,
    events: Vec<Event>,
    next: usize,
    /// The slot of the realloc that the thread has begun.
    moving: Option<u32>,
}

pub struct Ordered<'a> {
    reader: &'a Reader,
    decoder: Decoder,
    wait: u64,
    surely_earlier: u64,
    burst: u64,
    /// The threads' numbers.
    pub threads: Vec<u32>,
    states: Vec<Thread>,
    /// Threads by the time of their next event, except those in `waiting`.
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// Threads whose next event is not possible yet, the oldest first.
    waiting: Vec<(u64, usize)>,
    live: FxHashMap<u64, u32>,
    blocks: Vec<Block>,
    free_slots: FreeSlots,
    pub live_bytes: u64,
    pub live_blocks: u64,
    /// How many calls take a block that the trace does not know, and how many frees are missing.
    pub foreign: u64,
    pub implied: u64,
    pending: Option<Step>,
}

fn is_free(blocks: &[Block], slot: Slot) -> bool {
    blocks[slot.number as usize].turn == slot.turn
}

/// Spreads events without their own times evenly between their neighbours with times, if these are near.
fn spread_times(events: &mut [Event], burst: u64) {
    let mut first = 0;
    for next in 1..events.len() {
        let (from, to) = (events[first].time, events[next].time);
        if to == from {
            continue;
        }
        let count = (next - first) as u64;
        if count > 1 && to - from <= burst {
            for (place, event) in events[first..next].iter_mut().enumerate() {
                event.time += (to - from) * place as u64 / count;
            }
        }
        first = next;
    }
}

impl<'a> Ordered<'a> {
    pub fn new(reader: &'a Reader, process: u32) -> Result<Ordered<'a>> {
        let mut threads: Vec<u32> = Vec::new();
        let mut states: Vec<Thread> = Vec::new();
        let mut positions: FxHashMap<u32, usize> = FxHashMap::default();
        for chunk in reader
            .chunks
            .iter()
            .filter(|chunk| chunk.head.process == process)
        {
            let position = *positions.entry(chunk.head.thread).or_insert_with(|| {
                threads.push(chunk.head.thread);
                states.push(Thread {
                    chunks: VecDeque::new(),
                    events: Vec::new(),
                    next: 0,
                    moving: None,
                });
                threads.len() - 1
            });
            states[position].chunks.push_back(*chunk);
        }
        let free_slots = FreeSlots::of_threads(states.len());
        let queue = states
            .iter()
            .enumerate()
            .filter_map(|(position, state)| {
                Some(Reverse((state.chunks.front()?.head.first, position)))
            })
            .collect();
        Ok(Ordered {
            reader,
            decoder: Decoder::new()
                .map_err(|error| hakmem_lab::failed!("cannot decompress: {error}"))?,
            surely_earlier: (SURELY_EARLIER_SECONDS * reader.units_per_second()) as u64,
            burst: (BURST_SECONDS * reader.units_per_second()) as u64,
            wait: (WAIT_SECONDS * reader.units_per_second()) as u64 + 1,
            threads,
            states,
            queue,
            waiting: Vec::new(),
            live: FxHashMap::default(),
            blocks: Vec::new(),
            free_slots,
            live_bytes: 0,
            live_blocks: 0,
            foreign: 0,
            implied: 0,
            pending: None,
        })
    }

    /// How many slots were needed so far.
    pub fn slots(&self) -> usize {
        self.blocks.len()
    }

    /// Does the thread have no more events?
    pub fn has_ended(&self, thread: usize) -> bool {
        let state = &self.states[thread];
        state.next == state.events.len() && state.chunks.is_empty()
    }

    /// Blocks that were never freed.
    pub fn survivors(&self) -> impl Iterator<Item = &Block> {
        self.live.values().map(|&slot| &self.blocks[slot as usize])
    }

    fn peek(&mut self, thread: usize) -> Result<Option<Event>> {
        let state = &mut self.states[thread];
        while state.next == state.events.len() {
            state.events.clear();
            state.next = 0;
            let Some(chunk) = state.chunks.pop_front() else {
                state.events = Vec::new();
                self.free_slots.forget(thread);
                return Ok(None);
            };
            self.reader
                .read_chunk(&chunk, &mut self.decoder, &mut state.events)?;
            spread_times(&mut state.events, self.burst);
        }
        Ok(Some(state.events[state.next]))
    }

    fn is_ready(&self, event: &Event) -> bool {
        if event.address == 0 {
            return true;
        }
        self.live.contains_key(&event.address) != event.kind.gives()
    }

    /// The thread whose turn it is, with its event; false if the event is not possible and has to be forced.
    fn choose(&mut self) -> Result<Option<(usize, Event, bool)>> {
        for position in 0..self.waiting.len() {
            let (_, thread) = self.waiting[position];
            let event = self.states[thread].events[self.states[thread].next];
            if self.is_ready(&event) {
                self.waiting.remove(position);
                return Ok(Some((thread, event, true)));
            }
        }
        loop {
            let too_late = match (self.waiting.first(), self.queue.peek()) {
                (Some((oldest, _)), Some(Reverse((next, _)))) => *next > oldest + self.wait,
                (Some(_), None) => true,
                _ => false,
            };
            if too_late {
                return Ok(Some(self.force(0)));
            }
            let Some(Reverse((_, thread))) = self.queue.pop() else {
                return Ok(None);
            };
            let Some(event) = self.peek(thread)? else {
                continue;
            };
            if self.is_ready(&event) {
                if let Some(position) = self.older_free(&event) {
                    self.queue.push(Reverse((event.time, thread)));
                    return Ok(Some(self.force(position)));
                }
                return Ok(Some((thread, event, true)));
            }
            self.waiting.push((event.time, thread));
        }
    }

    /// The next event of a thread that has waited in vain.
    fn force(&mut self, position: usize) -> (usize, Event, bool) {
        let (_, thread) = self.waiting.remove(position);
        (
            thread,
            self.states[thread].events[self.states[thread].next],
            false,
        )
    }

    /// A waiting thread whose free of this address is much earlier than this allocation: it frees an unknown block.
    fn older_free(&self, given: &Event) -> Option<usize> {
        if !given.kind.gives() || given.address == 0 {
            return None;
        }
        self.waiting.iter().position(|&(time, thread)| {
            let event = &self.states[thread].events[self.states[thread].next];
            !event.kind.gives()
                && event.address == given.address
                && time + self.surely_earlier < given.time
        })
    }

    fn advance(&mut self, thread: usize) -> Result<()> {
        self.states[thread].next += 1;
        if let Some(event) = self.peek(thread)? {
            self.queue.push(Reverse((event.time, thread)));
        }
        Ok(())
    }

    /// The next step; None after the last one.
    pub fn step(&mut self) -> Result<Option<Step>> {
        if let Some(step) = self.pending.take() {
            return Ok(Some(step));
        }
        while let Some((thread, event, fits)) = self.choose()? {
            self.advance(thread)?;
            let step = match event.kind {
                Kind::Malloc | Kind::Calloc | Kind::Aligned => self.given(thread, &event, fits),
                Kind::Free => Some(self.taken(thread, &event, fits)),
                Kind::ReallocFrom => {
                    self.states[thread].moving = self.live.remove(&event.address);
                    None
                }
                Kind::ReallocTo => self.moved(thread, &event, fits),
            };
            if step.is_some() {
                return Ok(step);
            }
        }
        Ok(None)
    }

    fn plain(&self, thread: usize, event: &Event, what: What) -> Step {
        Step {
            thread,
            time: event.time,
            what,
            slot: 0,
            turn: 0,
            address: event.address,
            size: event.size,
            stack: event.stack,
            before: Block::default(),
        }
    }

    fn take_slot(&mut self, thread: usize) -> u32 {
        let blocks = &self.blocks;
        let taken = self.free_slots.take(thread, |slot| is_free(blocks, slot));
        taken.unwrap_or_else(|| {
            self.blocks.push(Block::default());
            self.blocks.len() as u32 - 1
        })
    }

    /// Removes a live block and frees its slot.
    fn end_block(&mut self, thread: usize, slot: u32) -> Block {
        let block = self.blocks[slot as usize];
        let turn = block.turn + 1;
        self.blocks[slot as usize].turn = turn;
        let free = Slot { number: slot, turn };
        let (slots, blocks) = (self.blocks.len(), &self.blocks);
        self.free_slots
            .put(thread, free, block.size, slots, |slot| {
                is_free(blocks, slot)
            });
        self.live_bytes -= block.size;
        self.live_blocks -= 1;
        block
    }

    fn free_step(&mut self, thread: usize, event: &Event, slot: u32) -> Step {
        let before = self.end_block(thread, slot);
        Step {
            slot,
            turn: before.turn,
            address: before.address,
            size: 0,
            before,
            ..self.plain(thread, event, What::Free)
        }
    }

    fn taken(&mut self, thread: usize, event: &Event, fits: bool) -> Step {
        match self.live.remove(&event.address) {
            Some(slot) if fits => self.free_step(thread, event, slot),
            _ => {
                self.foreign += 1;
                self.plain(thread, event, What::ForeignFree)
            }
        }
    }

    /// Adds a free that is missing in the trace: the address was handed out again.
    fn imply_free(&mut self, thread: usize, event: &Event) -> Option<Step> {
        let slot = self.live.remove(&event.address)?;
        self.implied += 1;
        Some(self.free_step(thread, event, slot))
    }

    fn given(&mut self, thread: usize, event: &Event, fits: bool) -> Option<Step> {
        let what = match event.kind {
            _ if event.address == 0 => return Some(self.plain(thread, event, What::Failed)),
            Kind::Calloc => What::Calloc,
            Kind::Aligned => What::Aligned {
                log2: event.alignment_log2,
            },
            _ => What::Malloc,
        };
        let implied = if fits {
            None
        } else {
            self.imply_free(thread, event)
        };
        let slot = self.take_slot(thread);
        let turn = self.blocks[slot as usize].turn;
        self.blocks[slot as usize] = Block {
            address: event.address,
            size: event.size,
            time: event.time,
            thread: self.threads[thread],
            stack: event.stack,
            turn: turn + 1,
        };
        self.live.insert(event.address, slot);
        self.live_bytes += event.size;
        self.live_blocks += 1;
        let step = Step {
            slot,
            turn,
            ..self.plain(thread, event, what)
        };
        match implied {
            Some(free) => {
                self.pending = Some(step);
                Some(free)
            }
            None => Some(step),
        }
    }

    fn moved(&mut self, thread: usize, event: &Event, fits: bool) -> Option<Step> {
        let Some(slot) = self.states[thread].moving.take() else {
            // A realloc of an unknown block: the block is known from now on.
            self.foreign += 1;
            return self.given(thread, event, fits);
        };
        let before = self.blocks[slot as usize];
        if event.address == 0 {
            return Some(if event.size == 0 {
                self.free_step(thread, event, slot)
            } else {
                self.live.insert(before.address, slot);
                self.plain(thread, event, What::Failed)
            });
        }
        let implied = if fits {
            None
        } else {
            self.imply_free(thread, event)
        };
        self.live.insert(event.address, slot);
        self.live_bytes = self.live_bytes - before.size + event.size;
        self.blocks[slot as usize] = Block {
            address: event.address,
            size: event.size,
            time: event.time,
            thread: self.threads[thread],
            stack: event.stack,
            turn: before.turn + 1,
        };
        let step = Step {
            slot,
            turn: before.turn,
            before,
            ..self.plain(thread, event, What::Realloc)
        };
        match implied {
            Some(free) => {
                self.pending = Some(step);
                Some(free)
            }
            None => Some(step),
        }
    }
}
