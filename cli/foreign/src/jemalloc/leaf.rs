//! jemalloc's page table (rtree): for each page, the address of its extent's descriptor and a size class.
//!
//! They share one word if addresses have 48 bits; they are two words if jemalloc was built for addresses with 57.

use super::PAGE_BYTES;
use crate::space::{Space, word_at};
use crate::window::Window;
use hakmem_heap::memory::Wanted;
use std::collections::HashMap;
use std::ops::Range;

/// The shape of a leaf, the lowest level of the table.
#[derive(Clone, Copy)]
struct Shape {
    entries: u64,
    entry_bytes: u64,
}

const SHAPES: [Shape; 2] = [
    Shape {
        entries: 1 << 18,
        entry_bytes: 8,
    },
    Shape {
        entries: 1 << 15,
        entry_bytes: 16,
    },
];

/// Descriptors are aligned to a cache line; the bits below are flags.
const ALIGNMENT: u64 = 64;
const CLASS_AT: u32 = 48;
/// In the second word, if there is one; the bits below are flags.
const CLASS_AT_OF_TWO: u32 = 5;
/// The largest size class.
const CLASS_MOST: u64 = 240;
/// A descriptor's first three words: bits, address and size.
const DESCRIPTION_BYTES: usize = 24;
/// How many words of a page are tried to find a leaf.
const SAMPLES: usize = 8;
const ADDRESS_MOST: u64 = 1 << 47;

#[derive(Clone, Debug)]
pub struct Extent {
    pub range: Range<u64>,
    pub bits: u64,
    /// The size class according to the table.
    pub class: u64,
}

/// Every extent of the table, by address.
pub fn read(space: &Space, blocks: &[Range<u64>]) -> Vec<Extent> {
    for shape in SHAPES {
        let table = Table {
            space,
            blocks,
            shape,
        };
        let mut leaves = table.find();
        leaves.sort_unstable_by_key(|(_, covers)| *covers);
        let mut extents = Vec::new();
        for (leaf, covers) in leaves {
            table.read_leaf(leaf, covers, &mut extents);
        }
        if !extents.is_empty() {
            return extents;
        }
    }
    Vec::new()
}

impl Shape {
    fn bytes(self) -> u64 {
        self.entries * self.entry_bytes
    }

    fn covers(self) -> u64 {
        self.entries * PAGE_BYTES
    }

    /// The offset of an address's entry in a leaf.
    fn offset(self, address: u64) -> u64 {
        address % self.covers() / PAGE_BYTES * self.entry_bytes
    }
}

struct Table<'a> {
    space: &'a Space<'a>,
    blocks: &'a [Range<u64>],
    shape: Shape,
}

fn block_of(blocks: &[Range<u64>], address: u64) -> Option<&Range<u64>> {
    let index = blocks.partition_point(|block| block.start <= address);
    let block = &blocks[index.checked_sub(1)?];
    block.contains(&address).then_some(block)
}

/// Parses a descriptor: its bits, and the extent's addresses.
fn describe(content: &[u8]) -> Option<(u64, Range<u64>)> {
    let [bits, address, size] = [0, 8, 16].map(|at| word_at(content, at));
    let bytes = size & !(PAGE_BYTES - 1);
    // A large block may begin anywhere in its first page.
    let start = address & !(PAGE_BYTES - 1);
    let is_one = start > 0 && bytes > 0;
    let end = start
        .checked_add(bytes)
        .filter(|end| *end <= ADDRESS_MOST)?;
    is_one.then_some((bits, start..end))
}

impl Table<'_> {
    /// Parses an entry: a descriptor's address, and a size class.
    fn entry(&self, first: u64, second: u64) -> Option<(u64, u64)> {
        let (address, class) = match self.shape.entry_bytes {
            8 => (first & ((1 << CLASS_AT) - 1), first >> CLASS_AT),
            _ => (first, second >> CLASS_AT_OF_TWO),
        };
        let address = address & !(ALIGNMENT - 1);
        let is_one = class <= CLASS_MOST && block_of(self.blocks, address).is_some();
        is_one.then_some((address, class))
    }

    fn entry_in(&self, content: &[u8], at: u64) -> Option<(u64, u64)> {
        let at = usize::try_from(at).ok()?;
        self.entry(word_at(content, at), word_at(content, at + 8))
    }

    /// All leaves, each with the first address that it covers. The extent that an entry points to tells where in the leaf that
    /// entry must be.
    fn find(&self) -> Vec<(u64, u64)> {
        let mut votes: HashMap<u64, HashMap<u64, u64>> = HashMap::new();
        for block in self.blocks {
            let mut window = Window::new(self.space, block.clone());
            for page in self.space.places(block, PAGE_BYTES) {
                for (at, description) in self.samples(&mut window, page) {
                    if let Some((leaf, covers)) = self.leaf_of(at, description) {
                        *votes.entry(leaf).or_default().entry(covers).or_default() += 1;
                    }
                }
            }
        }
        let most = |(leaf, covers): (u64, HashMap<u64, u64>)| {
            let best = covers
                .into_iter()
                .max_by_key(|(covers, votes)| (*votes, *covers))?;
            Some((leaf, best.0))
        };
        votes.into_iter().filter_map(most).collect()
    }

    /// Words of a page that look like entries: a program's address never has a size class. For each descriptor, the first one.
    fn samples(&self, window: &mut Window, page: u64) -> Vec<(u64, u64)> {
        let mut found: Vec<(u64, u64)> = Vec::new();
        let step = usize::try_from(self.shape.entry_bytes).unwrap_or(8);
        for at in (page..page + PAGE_BYTES).step_by(step) {
            let Some(first) = window.word(at).filter(|word| *word != 0) else {
                continue;
            };
            let second = window.word(at + 8).unwrap_or(0);
            let Some((description, class)) = self.entry(first, second) else {
                continue;
            };
            let is_new = found.last().is_none_or(|(_, last)| *last != description);
            if class > 0 && is_new {
                found.push((at, description));
                if found.len() == SAMPLES {
                    break;
                }
            }
        }
        found
    }

    /// The leaf that contains the entry at `at`, if the leaf has entries for the extent's first page and, where it must, for
    /// its last.
    fn leaf_of(&self, at: u64, description: u64) -> Option<(u64, u64)> {
        let mut content = [0; DESCRIPTION_BYTES];
        if !self.space.read(description, &mut content) {
            return None;
        }
        let (_, range) = describe(&content)?;
        let leaf = at.checked_sub(self.shape.offset(range.start))?;
        let covers = range.start - range.start % self.shape.covers();
        let is_inside =
            block_of(self.blocks, leaf).is_some_and(|block| leaf + self.shape.bytes() <= block.end);
        if !is_inside || leaf % ALIGNMENT != 0 {
            return None;
        }
        let is_longer = range.end > covers + self.shape.covers();
        let mut last = [0; 16];
        let ends_there = self
            .space
            .read(leaf + self.shape.offset(range.end - PAGE_BYTES), &mut last)
            && self
                .entry_in(&last, 0)
                .is_some_and(|(found, _)| found == description);
        (is_longer || ends_there).then_some((leaf, covers))
    }

    /// Adds the extents that begin in the range that a leaf covers.
    fn read_leaf(&self, leaf: u64, covers: u64, extents: &mut Vec<Extent>) {
        let start = leaf - leaf % PAGE_BYTES;
        let end = leaf + self.shape.bytes();
        let whole = start..end.next_multiple_of(PAGE_BYTES);
        let mut content = vec![0; usize::try_from(PAGE_BYTES).unwrap_or(0)];
        let step = usize::try_from(self.shape.entry_bytes).unwrap_or(8);
        let mut last = 0;
        for from in self.space.places(&whole, PAGE_BYTES) {
            if !self.space.read(from, &mut content) {
                continue;
            }
            let mut wanted = Vec::new();
            for offset in (0..PAGE_BYTES).step_by(step) {
                let at = from + offset;
                let found = self.entry_in(&content, offset);
                if let Some((address, class)) = found.filter(|(address, _)| *address != last)
                    && (leaf..end).contains(&at)
                {
                    last = address;
                    let page = covers + (at - leaf) / self.shape.entry_bytes * PAGE_BYTES;
                    wanted.push((page, address, class));
                }
            }
            add(self.space, &wanted, extents);
        }
    }
}

/// Reads the wanted extents, each given with the page of its entry, and adds those that begin at that page.
fn add(space: &Space, wanted: &[(u64, u64, u64)], extents: &mut Vec<Extent>) {
    let mut contents = vec![[0; DESCRIPTION_BYTES]; wanted.len()];
    let mut reads: Vec<Wanted> = wanted
        .iter()
        .zip(&mut contents)
        .map(|((_, address, _), content)| Wanted::new(*address, content))
        .collect();
    space.memory().read_many(&mut reads);
    let described = wanted.iter().zip(&contents);
    extents.extend(described.filter_map(|((page, _, class), content)| {
        let (bits, range) = describe(content)?;
        (range.start == *page).then_some(Extent {
            range,
            bits,
            class: *class,
        })
    }));
}
