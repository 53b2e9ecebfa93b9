//! Decodes the words of a ring: the layout of events in `record/channel.h`.

use crate::channel::RING_WORDS;
use crate::event::{Event, Kind};
use hakmem_heap::code::{Code, Identity, exact_path};

const TIME_BITS: u32 = 40;
pub const SIZE_BITS: u32 = 24;
const SIZE_MAX: u64 = (1 << SIZE_BITS) - 1;
const SHORT_SIZE_BITS: u32 = 16;
const SHORT_UNIT_LOG2: u32 = 3;
const SHORT_KIND_AT: u32 = 61;

const EXTRA_SIZE: u8 = 16;
const EXTRA_STACK: u8 = 17;
pub const EXTRA_THREAD: u8 = 18;
const EXTRA_NEW_STACK: u8 = 19;
const CODE: u8 = 20;
/// The kinds of identity, as `stacks/code.h` numbers them.
const BY_BUILD_ID: u64 = 1;
const BY_HASH: u64 = 2;

/// A call stack's number, and the places that its calls return to.
pub type NewStack = (u32, Vec<u64>);

/// What a process reports besides its events.
#[derive(Default)]
pub struct News {
    pub stacks: Vec<NewStack>,
    /// The files of the stacks.
    pub codes: Vec<Code>,
}

/// An event, or an extra before it, of two words.
#[derive(Clone, Copy)]
pub struct Long {
    first: u64,
    second: u64,
}

impl Long {
    /// The number of the event's kind or of the extra.
    fn number(self) -> u8 {
        (self.first >> 56) as u8
    }

    #[inline]
    pub fn kind(self) -> Option<Kind> {
        Kind::from_number(self.number())
    }

    /// Completes the time from its low bits; it differs by less than an hour from `near`.
    #[inline]
    pub fn time(self, near: u64) -> u64 {
        let low = self.second >> SIZE_BITS;
        let shift = u64::BITS - TIME_BITS;
        let ahead = (low.wrapping_sub(near) << shift) as i64 >> shift;
        near.wrapping_add_signed(ahead)
    }

    fn alignment_log2(self) -> u8 {
        (self.first >> 48) as u8
    }

    fn address(self) -> u64 {
        self.first & 0xffff_ffff_ffff
    }
}

/// A ring's words, numbered from its beginning.
#[derive(Clone, Copy)]
pub struct Words(*const u64);

impl Words {
    /// # Safety
    /// `first` is a ring's first word and stays mapped; all words that are read were published.
    pub unsafe fn new(first: *const u64) -> Words {
        Words(first)
    }

    #[inline]
    pub fn at(self, index: u64) -> u64 {
        // SAFETY: in the ring, and published, as the maker of this has promised.
        unsafe { *self.0.add(index as usize % RING_WORDS) }
    }

    #[inline]
    pub fn long(self, index: u64) -> Long {
        Long {
            first: self.at(index),
            second: self.at(index + 1),
        }
    }

    /// The file that the words at `index` describe, and the index behind them; None if they describe no file.
    #[cold]
    pub fn code(self, index: u64, end: u64) -> Option<(Code, u64)> {
        let head = self.long(index);
        if head.number() != CODE {
            return None;
        }
        let next = index + 2 + head.second;
        if next > end || head.second < 4 {
            return Some((Code::default(), end)); // damaged
        }
        let content: Vec<u64> = (index + 2..next).map(|at| self.at(at)).collect();
        Some((code(head.address() as u16, &content), next))
    }

    /// Reads the extras before the long event at `index`; returns the event's index.
    #[cold]
    pub fn extra(
        self,
        mut index: u64,
        end: u64,
        mut extra: Extra,
        news: &mut News,
    ) -> (u64, Extra) {
        while index < end {
            let long = self.long(index);
            match long.number() {
                EXTRA_SIZE => extra.size = long.second,
                EXTRA_STACK => extra.stack = long.address() as u32,
                EXTRA_THREAD => extra.thread = long.address() as u32,
                EXTRA_NEW_STACK => {
                    let count = u64::from(long.alignment_log2());
                    let frames = (0..count).map(|frame| self.at(index + 2 + frame)).collect();
                    news.stacks.push((long.address() as u32, frames));
                    index += count.next_multiple_of(2);
                }
                _ => break,
            }
            index += 2;
        }
        (index, extra)
    }
}

fn code(number: u16, content: &[u64]) -> Code {
    let (start, end, head_hash, lengths) = (content[0], content[1], content[2], content[3]);
    let bytes: Vec<u8> = content[4..]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let (id, path) = (lengths >> 16 & 0xffff, lengths >> 32);
    let part = |from: u64, length: u64| {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let end = from.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
        bytes.get(from..end).unwrap_or_default().to_vec()
    };
    let identity = match lengths & 0xffff {
        BY_BUILD_ID => Identity::BuildId(part(0, id)),
        BY_HASH => Identity::Head(head_hash),
        _ => Identity::Unknown,
    };
    Code {
        number,
        range: start..end,
        base: Some(start),
        offset: None,
        path: exact_path(&part(id.next_multiple_of(8), path), &identity, false),
        identity,
    }
}

/// What the extras before an event tell about it.
#[derive(Clone, Copy)]
pub struct Extra {
    pub thread: u32,
    size: u64,
    stack: u32,
}

impl Extra {
    #[inline]
    pub fn of(thread: u32) -> Extra {
        Extra {
            thread,
            size: 0,
            stack: 0,
        }
    }

    #[inline]
    pub fn event(&self, long: Long, time: u64) -> Option<Event> {
        let size = long.second & SIZE_MAX;
        Some(Event {
            time,
            address: long.address(),
            size: if size == SIZE_MAX { self.size } else { size },
            stack: self.stack,
            kind: long.kind()?,
            alignment_log2: long.alignment_log2(),
        })
    }
}

/// An event of one word; None if it has two.
#[inline]
pub fn short_event(word: u64, time: u64) -> Option<Event> {
    let units = word >> SHORT_SIZE_BITS & ((1 << (SHORT_KIND_AT - SHORT_SIZE_BITS)) - 1);
    Some(Event {
        time,
        address: units << SHORT_UNIT_LOG2,
        size: word & ((1 << SHORT_SIZE_BITS) - 1),
        stack: 0,
        kind: Kind::from_number((word >> SHORT_KIND_AT) as u8)?,
        alignment_log2: 0,
    })
}
