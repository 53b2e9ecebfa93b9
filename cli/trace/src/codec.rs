//! Encodes a chunk's events as columns of small numbers, which compress well: `docs/trace-format.md`.

use crate::event::{Event, Kind};
use std::{io, slice};

/// The most events that a chunk may have.
pub const CHUNK_EVENTS: usize = 1 << 16;
pub const COLUMNS: usize = 7;

const KINDS: usize = 0;
const TIMES: usize = 1;
const SIZES: usize = 2;
const GIVEN: usize = 3; // addresses of blocks that calls returned
const TAKEN: usize = 4; // addresses of blocks that were passed to calls
const ALIGNMENTS: usize = 5;
const STACKS: usize = 6;

const NUMBER_BYTES: usize = 10; // the length of the longest number
const UNIT_LOG2: u32 = 4; // nearly all blocks lie at multiples of 16
const CLASSES: usize = 256;

/// A flag in the kind: the event has the same time as the one before.
const SAME_TIME: u8 = 0x80;

/// Appends a number: seven bits per byte, the lowest first.
pub fn put(column: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        column.push(value as u8 | 0x80);
        value >>= 7;
    }
    column.push(value as u8);
}

/// Takes a number off the front; None if there is none, or if it does not end.
pub fn get(column: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = column.split_first()?;
        *column = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Maps small differences of either sign to small numbers.
fn fold(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

fn unfold(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// The difference of two addresses, in units, or in bytes if it is no multiple of a unit. Addresses have 48 bits, so nothing is
/// lost.
fn way(from: u64, to: u64) -> u64 {
    let difference = to.wrapping_sub(from) as i64;
    if difference & ((1 << UNIT_LOG2) - 1) == 0 {
        fold(difference >> UNIT_LOG2) << 1
    } else {
        fold(difference) << 1 | 1
    }
}

fn follow(from: u64, way: u64) -> u64 {
    let steps = unfold(way >> 1);
    let difference = if way & 1 == 0 {
        steps << UNIT_LOG2
    } else {
        steps
    };
    from.wrapping_add(difference as u64)
}

/// Groups sizes that an allocator probably keeps together: their blocks have addresses near each other.
fn class_of(size: u64) -> usize {
    if size <= 1024 {
        return size.div_ceil(16) as usize;
    }
    let log2 = 63 - size.leading_zeros() as usize;
    let quarter = (size >> (log2 - 2) & 3) as usize;
    (64 + (log2 - 10) * 4 + quarter).min(CLASSES - 1)
}

/// The state that writer and reader derive from the chunk's events so far.
struct Before {
    time: u64,
    given: [u64; CLASSES], // by class; 0: none yet
    last_given: u64,
    taken: u64,
}

impl Before {
    fn new(time: u64) -> Before {
        Before {
            time,
            given: [0; CLASSES],
            last_given: 0,
            taken: 0,
        }
    }

    /// The address from which the next one of this class is counted.
    fn near(&self, class: usize) -> u64 {
        if self.given[class] != 0 {
            self.given[class]
        } else {
            self.last_given
        }
    }

    fn note_given(&mut self, class: usize, address: u64) {
        self.given[class] = address;
        self.last_given = address;
    }
}

/// The process and thread of a chunk's events, their number, and their first and last time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkHead {
    pub process: u32,
    pub thread: u32,
    pub count: u32,
    pub first: u64,
    pub last: u64,
}

const HEAD_BYTES: usize = 12 + 16 + COLUMNS * 8;

/// Collects one thread's events and encodes them as chunks.
pub struct Encoder {
    head: ChunkHead,
    before: Before,
    /// Each has capacity for a whole chunk; untouched memory costs nothing.
    columns: [Vec<u8>; COLUMNS],
    packed: Vec<u8>,
}

impl Encoder {
    pub fn new(process: u32, thread: u32) -> Encoder {
        Encoder {
            head: ChunkHead {
                process,
                thread,
                ..ChunkHead::default()
            },
            before: Before::new(0),
            columns: std::array::from_fn(|_| Vec::with_capacity(CHUNK_EVENTS * NUMBER_BYTES)),
            packed: Vec::new(),
        }
    }

    /// Begins another chunk and reuses the memory.
    pub fn begin(&mut self, process: u32, thread: u32) {
        self.head = ChunkHead {
            process,
            thread,
            ..ChunkHead::default()
        };
        self.before = Before::new(0);
        self.columns.iter_mut().for_each(Vec::clear);
    }

    pub fn head(&self) -> ChunkHead {
        self.head
    }

    /// Can this many more events of this thread go into the chunk?
    pub fn has_room_for(&self, process: u32, thread: u32, events: u64) -> bool {
        (self.head.process, self.head.thread) == (process, thread)
            && u64::from(self.head.count) + events <= CHUNK_EVENTS as u64
    }

    pub fn push(&mut self, event: Event) {
        self.pen().push(event);
    }

    /// Returns a writer for several events.
    pub fn pen(&mut self) -> Pen<'_> {
        Pen {
            ends: std::array::from_fn(|number| {
                let column = &mut self.columns[number];
                column.as_mut_ptr().wrapping_add(column.len())
            }),
            first_kind: self.columns[KINDS].as_mut_ptr(),
            time: self.before.time,
            last_given: self.before.last_given,
            taken: self.before.taken,
            has_stacks: !self.columns[STACKS].is_empty(),
            encoder: self,
        }
    }

    /// How many of the kinds up to `end` return a block.
    ///
    /// # Safety
    /// These kinds must have been written.
    #[cold]
    unsafe fn given_in(&self, end: *const u8) -> usize {
        let kinds = self.columns[KINDS].as_ptr();
        // SAFETY: the caller's promise.
        let kinds = unsafe { slice::from_raw_parts(kinds, end.offset_from(kinds) as usize) };
        let gives = |&number: &u8| Kind::from_number(number & !SAME_TIME).is_some_and(Kind::gives);
        kinds.iter().filter(|&number| gives(number)).count()
    }

    /// Appends the chunk as a record's contents.
    pub fn pack(
        &mut self,
        compressor: &mut zstd::bulk::Compressor,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let start = out.len();
        let head = self.head;
        for word in [head.process, head.thread, head.count] {
            out.extend(word.to_le_bytes());
        }
        out.extend(head.first.to_le_bytes());
        out.extend(head.last.to_le_bytes());
        out.resize(start + HEAD_BYTES, 0);
        for (number, column) in self.columns.iter().enumerate() {
            self.packed.clear();
            if !column.is_empty() {
                let most = zstd::zstd_safe::compress_bound(column.len());
                self.packed.reserve(most);
                compressor.compress_to_buffer(column, &mut self.packed)?;
            }
            let at = start + 28 + number * 8;
            out[at..at + 4].copy_from_slice(&(column.len() as u32).to_le_bytes());
            out[at + 4..at + 8].copy_from_slice(&(self.packed.len() as u32).to_le_bytes());
            out.extend(&self.packed);
        }
        Ok(())
    }
}

/// Writes one thread's events into a chunk. It has its own copy of all the state that an event needs, so that a loop can keep
/// the state in registers: recorded programs wait for it.
pub struct Pen<'a> {
    encoder: &'a mut Encoder,
    /// The write position in each column.
    ends: [*mut u8; COLUMNS],
    first_kind: *mut u8,
    time: u64,
    last_given: u64,
    taken: u64,
    has_stacks: bool,
}

impl Pen<'_> {
    #[inline(always)] // so the loop that takes events from a ring keeps them in registers
    pub fn push(&mut self, event: Event) {
        let end = self.first_kind.wrapping_add(CHUNK_EVENTS);
        assert!(
            self.ends[KINDS] < end,
            "a chunk has {CHUNK_EVENTS} events at most"
        );
        // SAFETY: each column has room for a number of each of the chunk's events, and gets one at most.
        unsafe { self.put(event) };
    }

    #[inline(always)]
    unsafe fn put(&mut self, event: Event) {
        // SAFETY: the caller's promise.
        unsafe {
            let mut kind = event.kind as u8;
            if event.time <= self.time {
                kind |= SAME_TIME;
            } else {
                if self.ends[KINDS] == self.first_kind {
                    self.encoder.head.first = event.time;
                    kind |= SAME_TIME;
                } else {
                    self.put_number(TIMES, event.time - self.time);
                }
                self.time = event.time;
            }
            self.put_byte(KINDS, kind);
            if !event.kind.gives() {
                self.put_number(TAKEN, way(self.taken, event.address));
                self.taken = event.address;
                return;
            }
            self.put_number(SIZES, event.size);
            let near = &mut self.encoder.before.given[class_of(event.size)];
            let from = if *near == 0 { self.last_given } else { *near };
            *near = event.address;
            self.last_given = event.address;
            self.put_number(GIVEN, way(from, event.address));
            if event.kind == Kind::Aligned {
                self.put_byte(ALIGNMENTS, event.alignment_log2);
            }
            if event.stack != 0 && !self.has_stacks {
                self.has_stacks = true;
                let before = self.encoder.given_in(self.ends[KINDS]) - 1; // the earlier events had no stacks
                self.ends[STACKS].write_bytes(0, before);
                self.ends[STACKS] = self.ends[STACKS].add(before);
            }
            if self.has_stacks {
                self.put_number(STACKS, event.stack.into());
            }
        }
    }

    /// # Safety
    /// The column must have space for it.
    #[inline(always)]
    unsafe fn put_byte(&mut self, column: usize, byte: u8) {
        // SAFETY: the caller's promise.
        unsafe {
            self.ends[column].write(byte);
            self.ends[column] = self.ends[column].add(1);
        }
    }

    /// # Safety
    /// The column must have space for `NUMBER_BYTES`.
    #[inline(always)]
    unsafe fn put_number(&mut self, column: usize, mut value: u64) {
        // SAFETY: the caller's promise.
        unsafe {
            while value >= 0x80 {
                self.put_byte(column, value as u8 | 0x80);
                value >>= 7;
            }
            self.put_byte(column, value as u8);
        }
    }
}

impl Drop for Pen<'_> {
    fn drop(&mut self) {
        let Encoder {
            head,
            before,
            columns,
            ..
        } = &mut *self.encoder;
        for (column, end) in columns.iter_mut().zip(self.ends) {
            // SAFETY: `end` is in the column's memory, and what is before it has been written.
            unsafe { column.set_len(end.offset_from(column.as_ptr()) as usize) };
        }
        head.count = columns[KINDS].len() as u32;
        head.last = self.time;
        before.time = self.time;
        before.last_given = self.last_given;
        before.taken = self.taken;
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn double_word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// Parses a chunk's header from its record's contents; None if it is invalid.
pub fn read_head(chunk: &[u8]) -> Option<ChunkHead> {
    let head = ChunkHead {
        process: word(chunk, 0)?,
        thread: word(chunk, 4)?,
        count: word(chunk, 8)?,
        first: double_word(chunk, 12)?,
        last: double_word(chunk, 20)?,
    };
    (chunk.len() >= HEAD_BYTES && head.count as usize <= CHUNK_EVENTS).then_some(head)
}

/// Decodes chunks and reuses its memory for the next one.
pub struct Decoder {
    decompressor: zstd::bulk::Decompressor<'static>,
    columns: [Vec<u8>; COLUMNS],
}

impl Decoder {
    pub fn new() -> io::Result<Decoder> {
        let decompressor = zstd::bulk::Decompressor::new()?;
        Ok(Decoder {
            decompressor,
            columns: Default::default(),
        })
    }

    /// Appends the chunk's events; None if the chunk is invalid.
    pub fn unpack(&mut self, chunk: &[u8], events: &mut Vec<Event>) -> Option<ChunkHead> {
        let head = read_head(chunk)?;
        let count = head.count as usize;
        let mut rest = &chunk[HEAD_BYTES..];
        for (number, column) in self.columns.iter_mut().enumerate() {
            let length = word(chunk, 28 + number * 8)? as usize;
            let packed = word(chunk, 32 + number * 8)? as usize;
            column.clear();
            if packed > rest.len() || length > count * NUMBER_BYTES {
                return None;
            }
            if length > 0 {
                column.reserve(length);
                self.decompressor
                    .decompress_to_buffer(&rest[..packed], column)
                    .ok()?;
            }
            if column.len() != length {
                return None;
            }
            rest = &rest[packed..];
        }
        self.read_columns(head, events)?;
        rest.is_empty().then_some(head)
    }

    fn read_columns(&self, head: ChunkHead, events: &mut Vec<Event>) -> Option<()> {
        let mut columns: [&[u8]; COLUMNS] = std::array::from_fn(|number| &self.columns[number][..]);
        let has_stacks = !columns[STACKS].is_empty();
        let mut before = Before::new(head.first);
        if columns[KINDS].len() != head.count as usize {
            return None;
        }
        events.reserve(columns[KINDS].len());
        for &number in columns[KINDS] {
            let kind = Kind::from_number(number & !SAME_TIME)?;
            if number & SAME_TIME == 0 {
                before.time = before.time.checked_add(get(&mut columns[TIMES])?)?;
            }
            let mut event = Event {
                time: before.time,
                address: 0,
                size: 0,
                stack: 0,
                kind,
                alignment_log2: 0,
            };
            if kind.gives() {
                event.size = get(&mut columns[SIZES])?;
                let class = class_of(event.size);
                event.address = follow(before.near(class), get(&mut columns[GIVEN])?);
                before.note_given(class, event.address);
                if has_stacks {
                    event.stack = get(&mut columns[STACKS])?.try_into().ok()?;
                }
            } else {
                event.address = follow(before.taken, get(&mut columns[TAKEN])?);
                before.taken = event.address;
            }
            if kind == Kind::Aligned {
                let (&alignment, rest) = columns[ALIGNMENTS].split_first()?;
                event.alignment_log2 = Some(alignment).filter(|&log2| log2 < 48)?;
                columns[ALIGNMENTS] = rest;
            }
            events.push(event);
        }
        (before.time == head.last).then_some(())
    }
}
