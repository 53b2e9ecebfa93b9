//! Arenas: their own descriptions (`struct malloc_state`), found by what they look like.
//!
//! An arena has 127 bins, each the head of a ring of free chunks. A bin that is empty leads to itself, and one that
//! is not leads to chunks that lead back: nothing else in memory looks so. What stands before and behind them differs
//! between releases by its distance only, which is seen.

use crate::space::Space;

const BINS: u64 = 127;
const BINS_BYTES: u64 = BINS * 16;
/// The bins begin at most so far behind the start.
const BEFORE_BINS: u64 = 0x90;
/// The whole is no larger.
const STATE_BYTES: usize = 0x900;
/// Bins that may change while they are looked at.
const CHANGING: usize = 8;
/// Behind the bins: which of them have something.
const BINMAP: u64 = 16;
/// Fast bins, where there are any, begin so far behind the start: glibc 2.43 has none.
const FAST_BINS: u64 = 0x10;
const FAST_BINS_COUNT: u64 = 10;
/// Data of programs that are searched.
const DATA_MOST: u64 = 64 << 20;
const ARENAS_MOST: usize = 1 << 14;

pub const HEAP_MOST: u64 = 64 << 20;

#[derive(Clone, Debug, Default)]
pub struct State {
    pub address: u64,
    pub bytes: u64,
    pub top: u64,
    /// Chains of chunks that are free, and look as if they were in use.
    pub fast: Vec<u64>,
    pub next: u64,
    /// Threads that use it at the moment.
    pub threads: u64,
    /// What it has got from the system.
    pub system_bytes: u64,
}

fn words(bytes: &[u8]) -> Vec<u64> {
    let word = |word: &[u8]| u64::from_le_bytes(word.try_into().unwrap_or_default());
    bytes.chunks_exact(8).map(word).collect()
}

impl State {
    pub fn read(space: &Space, address: u64) -> Option<State> {
        let mut bytes = [0; STATE_BYTES];
        if address % 8 != 0 || !space.read(address, &mut bytes) {
            return None;
        }
        let words = words(&bytes);
        let at = |offset: u64| words.get(usize::try_from(offset / 8).ok()?).copied();
        let starts = (8..=BEFORE_BINS).step_by(8);
        // A start that is off by a few bins has a few that are wrong.
        let bins = starts
            .filter_map(|start| Some((wrong_bins(space, &words, address, start)?, start)))
            .min()?
            .1;
        let behind = bins + BINS_BYTES + BINMAP;
        let has_fast = bins >= FAST_BINS + FAST_BINS_COUNT * 8 + 16;
        let fast = (0..FAST_BINS_COUNT).filter(|_| has_fast);
        Some(State {
            address,
            top: at(bins - 16)?,
            fast: fast
                .filter_map(|index| at(FAST_BINS + index * 8))
                .filter(|chunk| *chunk != 0)
                .collect(),
            next: at(behind)?,
            threads: at(behind + 16)?,
            system_bytes: at(behind + 24)?,
            bytes: behind + 40,
        })
    }
}

/// How many of the bins that would begin at `start` look like none; `None` when they are too many. `words` is what
/// lies at `address`.
fn wrong_bins(space: &Space, words: &[u64], address: u64, start: u64) -> Option<usize> {
    let mut wrong = 0;
    for bin in 0..BINS {
        let offset = start + bin * 16;
        // As if the bin were a chunk, whose links lie behind its head.
        let chunk = (address + offset).wrapping_sub(16);
        let index = usize::try_from(offset / 8).ok()?;
        let (first, last) = (*words.get(index)?, *words.get(index + 1)?);
        let is_empty = first == chunk && last == chunk;
        let leads_back = || {
            first % 16 == 0
                && last % 16 == 0
                && space.word(first.wrapping_add(24)) == Some(chunk)
                && space.word(last.wrapping_add(16)) == Some(chunk)
        };
        if !is_empty && !leads_back() {
            wrong += 1;
            if wrong > CHANGING {
                return None;
            }
        }
    }
    Some(wrong)
}

/// One piece of an arena of threads (`heap_info`).
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub start: u64,
    pub bytes: u64,
    pub arena: u64,
    pub is_first: bool,
}

/// Every piece, by address.
pub fn find_pieces(space: &Space) -> Vec<Piece> {
    let mut found = Vec::new();
    for area in &space.stretches {
        let starts = space.places(&area.range, HEAP_MOST);
        let pieces = starts.filter_map(|start| piece_at(space, start, area.range.end));
        found.extend(pieces.take(ARENAS_MOST - found.len()));
    }
    found
}

/// Its description lies at the start of its first piece.
fn is_of_threads(arena: u64) -> bool {
    arena % 8 == 0 && (1..0x100).contains(&(arena % HEAP_MOST))
}

fn piece_at(space: &Space, start: u64, area_end: u64) -> Option<Piece> {
    let mut bytes = [0; 32];
    if !space.read(start, &mut bytes) {
        return None;
    }
    let words = words(&bytes);
    let [arena, before, bytes, writable] = words[..] else {
        return None;
    };
    let is_size = |bytes: u64| bytes > 0 && bytes % 4096 == 0 && bytes <= HEAP_MOST;
    let is_first = before == 0;
    let is_own = arena - arena % HEAP_MOST == start;
    let holds = is_of_threads(arena)
        && before % HEAP_MOST == 0
        && is_first == is_own
        && is_size(bytes)
        && is_size(writable)
        && bytes <= writable
        && start + bytes <= area_end;
    holds.then_some(Piece {
        start,
        bytes,
        arena,
        is_first,
    })
}

/// The arena that lies in the C library's own data: linked to the others, or else found there.
pub fn find_main(space: &Space, others: &[State]) -> Option<State> {
    // One of threads that is no other was cut from the core dump.
    let is_other = |address: u64| others.iter().any(|other| other.address == address);
    let mut linked = others
        .iter()
        .filter(|state| !is_other(state.next) && !is_of_threads(state.next));
    if let Some(state) = linked.find_map(|state| State::read(space, state.next)) {
        return Some(state);
    }
    let mut searched = 0;
    for range in space.memory().data_areas() {
        searched += range.end - range.start;
        if searched > DATA_MOST {
            return None;
        }
        let found = search(space, range.start, range.end);
        if found.is_some() {
            return found;
        }
    }
    None
}

/// Alone, it is its own successor.
fn search(space: &Space, start: u64, end: u64) -> Option<State> {
    let mut content = vec![0; usize::try_from(end - start).ok()?];
    if !space.read(start, &mut content) {
        return None;
    }
    for (index, word) in words(&content).into_iter().enumerate() {
        let at = start + index as u64 * 8;
        let distance = at.wrapping_sub(word);
        if (BINS_BYTES..STATE_BYTES as u64).contains(&distance) && word % 8 == 0 {
            let state = State::read(space, word).filter(|state| state.next == word);
            if state.is_some() {
                return state;
            }
        }
    }
    None
}

/// The sum of blocks with mappings of their own, as the allocator keeps it (`malloc_par`): two words before the address at
/// which the main heap began.
pub fn told_mapped_bytes(space: &Space, first: u64) -> Option<u64> {
    let mut searched = 0;
    for range in space.memory().data_areas() {
        searched += range.end - range.start;
        if searched > DATA_MOST {
            return None;
        }
        let mut content = vec![0; usize::try_from(range.end - range.start).ok()?];
        if !space.read(range.start, &mut content) {
            continue;
        }
        let words = words(&content);
        let is_sum = |three: &&[u64]| {
            let are_whole = three[..2].iter().all(|bytes| bytes % space.page_bytes == 0);
            three[2] == first && are_whole && three[0] <= three[1]
        };
        let found = words.windows(3).find(is_sum).map(|three| three[0]);
        if found.is_some() {
            return found;
        }
    }
    None
}
