//! Finds arenas (`struct malloc_state`) by their structure.
//!
//! An arena has 127 bins, each the head of a ring of free chunks. An empty bin points to itself; another bin points to chunks
//! that point back to it. Nothing else in memory looks like that. Between releases, only the offsets of the fields before and
//! behind the bins differ; they are found out.

use crate::space::Space;

const BINS: u64 = 127;
const BINS_BYTES: u64 = BINS * 16;
/// The largest offset of the bins.
const BEFORE_BINS: u64 = 0x90;
/// The largest size of a `malloc_state`.
const STATE_BYTES: usize = 0x900;
/// How many bins may change during the read.
const CHANGING: usize = 8;
/// The bin map, which follows the bins.
const BINMAP: u64 = 16;
/// The offset of the fast bins, if there are any: glibc 2.43 has none.
const FAST_BINS: u64 = 0x10;
const FAST_BINS_COUNT: u64 = 10;
/// How many bytes of programs' data to search at most.
const DATA_MOST: u64 = 64 << 20;
const ARENAS_MOST: usize = 1 << 14;

pub const HEAP_MOST: u64 = 64 << 20;

#[derive(Clone, Debug, Default)]
pub struct State {
    pub address: u64,
    pub bytes: u64,
    pub top: u64,
    /// Lists of free chunks that are still marked as used.
    pub fast: Vec<u64>,
    pub next: u64,
    /// How many threads are attached to it.
    pub threads: u64,
    /// How many bytes it has got from the system.
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
        // At a wrong offset that is near, only a few bins look wrong, so the best one counts.
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

/// How many bins look wrong if the bins begin at `start`; `None` if too many do. `words` is the memory from `address` on.
fn wrong_bins(space: &Space, words: &[u64], address: u64, start: u64) -> Option<usize> {
    let mut wrong = 0;
    for bin in 0..BINS {
        let offset = start + bin * 16;
        // A bin is treated as a chunk whose links are behind its header.
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

/// A heap of a non-main arena (`heap_info`).
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    pub start: u64,
    pub bytes: u64,
    pub arena: u64,
    pub is_first: bool,
}

/// Every such heap, by address.
pub fn find_pieces(space: &Space) -> Vec<Piece> {
    let mut found = Vec::new();
    for area in &space.stretches {
        let starts = space.places(&area.range, HEAP_MOST);
        let pieces = starts.filter_map(|start| piece_at(space, start, area.range.end));
        found.extend(pieces.take(ARENAS_MOST - found.len()));
    }
    found
}

/// A non-main arena lies at the start of its first heap.
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

/// The main arena, which lies in the C library's data. Another arena links to it; if none does, its data are searched.
pub fn find_main(space: &Space, others: &[State]) -> Option<State> {
    // A non-main arena that was not found was cut off the core dump.
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

/// Without other arenas, the main arena links to itself.
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

/// The total of mmapped blocks in `malloc_par`: two words before the address at which the main heap began.
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
