//! Chunks one behind the other: each says how long it is, and the next one whether it is in use.

use crate::window::Window;

/// In front of what the program gets; the size is in its second half.
pub const HEAD: u64 = 16;
/// No chunk is smaller.
pub const LEAST: u64 = 32;
/// What a free chunk keeps of itself at its start: its head, and its links to others.
pub const LINKS: u64 = 48;
const ALIGNMENT: u64 = 16;

/// In the low bits of a size: the one before is in use; it has a mapping of its own; it is of no main arena.
const BEFORE_IN_USE: u64 = 1;
const OWN_MAPPING: u64 = 2;
const FLAGS: u64 = 7;

/// So many chunks that agree are no accident.
const CHAIN: usize = 16;
/// Nor are so many before a mark at which memory ends.
const FENCED: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// In use, as far as its neighbour knows: what a cache or a fast bin keeps is in use as well.
    Used,
    Free,
    /// The last one, from which all others are cut.
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
    /// With the last chunk, at the end of the memory.
    Whole,
    /// At a chunk that is not before the place up to which was to be walked.
    There(u64),
    /// At the mark behind which memory does not go on.
    Fence(u64),
    /// What is there does not agree with its neighbours.
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

/// Every chunk from `from`, where one begins, that begins before `until`. `end` is that of the memory.
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

/// Does a heap begin here? That one chunk and the end of its memory agree is enough where one is expected.
pub fn begins_heap(window: &mut Window, from: u64, end: u64) -> bool {
    agree(window, from, end, 1)
}

/// Do chunks begin here, of which so many agree with each other, or at least so many before the end of the memory?
fn agree(window: &mut Window, from: u64, end: u64, fenced: usize) -> bool {
    let mut at = from;
    let Some(mut size) = window.word(at + 8) else {
        return false;
    };
    if size & BEFORE_IN_USE == 0 {
        return false; // the one before would have to be known
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

/// Where the first such chain begins, before `until`.
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
            at = (at + 8 + 1).next_multiple_of(page_bytes); // behind a page that is not there
            continue;
        }
        if agree(window, at, end, FENCED) {
            return Some(at);
        }
        at += ALIGNMENT;
    }
    None
}
