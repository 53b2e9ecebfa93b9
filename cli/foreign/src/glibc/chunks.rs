//! Walks adjacent chunks: each has its size, and the next one tells whether it is in use.

use crate::window::Window;

/// The header before the user's bytes; the size is in its second half.
pub const HEAD: u64 = 16;
/// The size of the smallest chunk.
pub const LEAST: u64 = 32;
/// How many bytes at its start a free chunk uses: the header, and links to other chunks.
pub const LINKS: u64 = 48;
const ALIGNMENT: u64 = 16;

/// The low bits of a size: the previous chunk is in use; the chunk is mmapped; it belongs to a non-main arena.
const BEFORE_IN_USE: u64 = 1;
const OWN_MAPPING: u64 = 2;
const FLAGS: u64 = 7;

/// This many chunks that agree are not there by chance.
const CHAIN: usize = 16;
/// Before a fencepost, this many are enough.
const FENCED: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Marked as used; chunks in a cache or a fast bin are also marked as used.
    Used,
    Free,
    /// The top chunk, at the heap's end, from which others are split.
    Top,
}

#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    pub address: u64,
    pub bytes: u64,
    pub kind: Kind,
}

/// Why a walk ended, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The top chunk ends at the end of the memory.
    Whole,
    /// The walk has reached its limit, at this chunk.
    There(u64),
    /// This chunk is a fencepost: the heap does not go on behind it.
    Fence(u64),
    /// The chunk here contradicts its neighbours.
    Broken(u64),
}

enum Step {
    Chunk(Kind, u64, u64),
    Last(u64),
    Fence,
    Broken,
}

fn step(window: &mut Window, at: u64, size: u64, end: u64) -> Step {
    let bytes = size & !FLAGS;
    if bytes == HEAD || bytes == 0 && size & BEFORE_IN_USE != 0 {
        return Step::Fence;
    }
    let is_size = bytes % ALIGNMENT == 0 && bytes >= LEAST && bytes <= end - at;
    if !is_size || size & OWN_MAPPING != 0 {
        return Step::Broken;
    }
    let next = at + bytes;
    if next == end {
        return Step::Last(bytes);
    }
    let Some(next_size) = window.word(next + 8) else {
        return Step::Broken;
    };
    if next_size & BEFORE_IN_USE != 0 {
        Step::Chunk(Kind::Used, bytes, next_size)
    } else if window.word(next) == Some(bytes) {
        Step::Chunk(Kind::Free, bytes, next_size)
    } else {
        Step::Broken
    }
}

/// Visits every chunk from `from` on that begins before `until`; a chunk must begin at `from`. `end` is the end of the memory.
pub fn walk(
    window: &mut Window,
    from: u64,
    until: u64,
    end: u64,
    visit: &mut dyn FnMut(Chunk),
) -> End {
    let mut at = from;
    if at >= until {
        return End::There(at);
    }
    let Some(mut size) = window.word(at + 8) else {
        return End::Broken(at);
    };
    while at < until {
        match step(window, at, size, end) {
            Step::Chunk(kind, bytes, next_size) => {
                visit(Chunk {
                    address: at,
                    bytes,
                    kind,
                });
                at += bytes;
                size = next_size;
            }
            Step::Last(bytes) => {
                visit(Chunk {
                    address: at,
                    bytes,
                    kind: Kind::Top,
                });
                return End::Whole;
            }
            Step::Fence => return End::Fence(at),
            Step::Broken => return End::Broken(at),
        }
    }
    End::There(at)
}

/// Does a heap begin here? As one is expected here, one chunk that agrees with a fencepost or with the end of the memory is
/// enough.
pub fn begins_heap(window: &mut Window, from: u64, end: u64) -> bool {
    agree(window, from, end, 1)
}

/// Do many chunks in a row agree from here on, or at least `fenced` of them before a fencepost?
fn agree(window: &mut Window, from: u64, end: u64, fenced: usize) -> bool {
    let mut at = from;
    let Some(mut size) = window.word(at + 8) else {
        return false;
    };
    if size & BEFORE_IN_USE == 0 {
        return false; // whether the previous chunk is free cannot be checked
    }
    for steps in 0..CHAIN {
        match step(window, at, size, end) {
            Step::Chunk(_, bytes, next_size) => {
                at += bytes;
                size = next_size;
            }
            Step::Last(_) => return true,
            Step::Fence => return steps >= fenced,
            Step::Broken => return false,
        }
    }
    true
}

/// The start of the first chain of chunks that agree, before `until`.
pub fn find_chain(
    window: &mut Window,
    from: u64,
    until: u64,
    end: u64,
    page_bytes: u64,
) -> Option<u64> {
    let mut at = from.next_multiple_of(ALIGNMENT);
    while at < until && at.checked_add(LEAST).is_some_and(|next| next <= end) {
        if window.word(at + 8).is_none() {
            at = (at + 8 + 1).next_multiple_of(page_bytes); // skips an absent page
            continue;
        }
        if agree(window, at, end, FENCED) {
            return Some(at);
        }
        at += ALIGNMENT;
    }
    None
}
