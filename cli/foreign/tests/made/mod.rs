//! Artificial heaps.

use hakmem_heap::error::Error;
use hakmem_heap::memory::Memory;
use hakmem_heap::resident::Counted;
use std::ops::Range;

/// The allocator's own part: its start and its length.
pub const BASE: u64 = 0x7f00_0040_0000;
pub const BASE_BYTES: u64 = 4 << 20;
const HEAP: u64 = 0x7f00_4000_0000;

#[derive(Clone)]
pub struct Image {
    parts: Vec<(u64, Vec<u8>)>,
    /// The addresses of the words that were set.
    pub touched: Vec<u64>,
}

impl Image {
    pub fn new(ranges: &[(u64, u64)]) -> Image {
        let part =
            |(start, bytes): &(u64, u64)| (*start, vec![0; usize::try_from(*bytes).unwrap()]);
        Image {
            parts: ranges.iter().map(part).collect(),
            touched: Vec::new(),
        }
    }

    pub fn areas(&self) -> Vec<Counted> {
        let area = |(start, content): &(u64, Vec<u8>)| Counted {
            range: *start..*start + content.len() as u64,
            is_writable: true,
            is_accessible: true,
            resident_bytes: content.len() as u64,
            ..Counted::default()
        };
        self.parts.iter().map(area).collect()
    }

    fn part(&self, address: u64) -> Option<(usize, usize)> {
        let index = self.parts.partition_point(|(start, _)| *start <= address);
        let index = index.checked_sub(1)?;
        Some((
            index,
            usize::try_from(address - self.parts[index].0).unwrap(),
        ))
    }

    pub fn set_byte(&mut self, address: u64, byte: u8) {
        let (part, at) = self.part(address).unwrap();
        self.parts[part].1[at] = byte;
    }

    pub fn set(&mut self, address: u64, word: u64) {
        for (index, byte) in word.to_le_bytes().into_iter().enumerate() {
            self.set_byte(address + index as u64, byte);
        }
        self.touched.push(address);
    }
}

impl Memory for Image {
    fn read(&self, address: u64, target: &mut [u8]) -> bool {
        let content = self.part(address).and_then(|(part, at)| {
            let end = at.checked_add(target.len())?;
            self.parts[part].1.get(at..end)
        });
        content.is_some_and(|content| {
            target.copy_from_slice(content);
            true
        })
    }

    fn data_areas(&self) -> Vec<Range<u64>> {
        Vec::new()
    }

    fn explain(&self, address: u64) -> Error {
        Error::Damaged(format!("there is nothing at {address:#x}"))
    }
}

/// One extent for `jemalloc`.
struct Extent {
    at: u64,
    pages: u64,
    /// The offset of a large block in its first page.
    offset: u64,
    arena: u64,
    class: u64,
    is_slab: bool,
    state: u64,
    free: u64,
}

/// With table entries of `entry_bytes` bytes, and the size class at bit `class_at` of a descriptor.
pub fn jemalloc(entry_bytes: u64, class_at: u32) -> Image {
    const CLASS_OF_48: u64 = 3;
    const CLASS_OF_32_KIB: u64 = 40;
    const NO_CLASS: u64 = 232;
    let mut image = Image::new(&[(BASE, BASE_BYTES), (HEAP, 1 << 20)]);
    let used = 3 << 20;
    image.set(BASE, BASE_BYTES);
    image.set(BASE + 16, 0xe80_afff);
    image.set(BASE + 24, BASE + used);
    image.set(BASE + 32, BASE_BYTES - used);
    let extent = |at, pages| Extent {
        at: HEAP + at,
        pages,
        offset: 0,
        arena: 0,
        class: NO_CLASS,
        is_slab: false,
        state: 0,
        free: 0,
    };
    let slab = |at, free| Extent {
        class: CLASS_OF_48,
        is_slab: true,
        free,
        ..extent(at, 3)
    };
    let extents = [
        slab(0, 0),
        slab(0x3000, 86),
        Extent {
            class: CLASS_OF_32_KIB,
            offset: 0x340,
            arena: 1,
            ..extent(0x10000, 9)
        },
        Extent {
            state: 1,
            ..extent(0x20000, 16)
        },
    ];
    let state_bits = if class_at == 20 { 3 } else { 2 };
    let leaf = BASE + 0xc0;
    let entries = if entry_bytes == 8 { 1 << 18 } else { 1 << 15 };
    for (index, extent) in extents.iter().enumerate() {
        let description = BASE + (5 << 19) + index as u64 * 128;
        let bits = extent.arena
            | u64::from(extent.is_slab) << 12
            | extent.state << (class_at - state_bits)
            | extent.class << class_at
            | extent.free << (class_at + 8);
        image.set(description, bits);
        image.set(description + 8, extent.at + extent.offset);
        image.set(description + 16, extent.pages << 12 | 5);
        for page in 0..extent.pages {
            if extent.is_slab || page == 0 || page == extent.pages - 1 {
                let entry = (extent.at / 4096 + page) % entries * entry_bytes + leaf;
                if entry_bytes == 8 {
                    image.set(
                        entry,
                        description | extent.class << 48 | u64::from(extent.is_slab),
                    );
                } else {
                    image.set(entry, description);
                    image.set(entry + 8, extent.class << 5 | u64::from(extent.is_slab));
                }
            }
        }
    }
    image
}

const SEGMENT: u64 = 0x7f10_0000_0000;
const SLICE_BYTES: u64 = 64 << 10;
const SLICES: u64 = 512;

/// For each page: slices, block size, blocks in use, blocks ever handed out, room.
const PAGES: [[u64; 5]; 3] = [
    [1, 640, 30, 101, 101],
    [3, 0x30000, 1, 1, 1],
    [1, 1024, 0, 63, 63],
];

/// A segment of mimalloc 2, with `slice_bytes` bytes per slice descriptor.
pub fn segment(slice_bytes: u64) -> Image {
    let mut image = Image::new(&[(SEGMENT, SLICES * SLICE_BYTES)]);
    let slices = if slice_bytes == 80 { 264 } else { 288 };
    let head = SEGMENT + slices;
    image.set(head - 40, SLICES);
    image.set(head - 32, 1);
    image.set(head - 16, SLICES);
    image.set(head, 1);
    let mut slice = 1;
    for [count, bytes, used, capacity, room] in PAGES {
        let at = head + slice * slice_bytes;
        image.set(at, count);
        image.set(at + 8, room << 32 | capacity << 16 | 3);
        if slice_bytes == 80 {
            image.set(at + 24, used | bytes << 32);
        } else {
            image.set(at + 32, used);
            image.set(at + 40, bytes);
        }
        slice += count;
    }
    image.set(head + slice * slice_bytes, SLICES - slice);
    image
}

/// An arena of mimalloc 3.1, whose pages are described at their starts, or 3.3, where the arena's start describes them.
pub fn older_arena(is_apart: bool) -> Image {
    let mut image = Image::new(&[(SEGMENT, SLICES * SLICE_BYTES)]);
    let own = 3;
    image.set(SEGMENT, SEGMENT);
    image.set(SEGMENT + 8, SLICES * SLICE_BYTES);
    image.set(SEGMENT + 16, 4 | 1 << 32);
    let count = SEGMENT + if is_apart { 40 } else { 32 };
    image.set(count, SLICES);
    image.set(count + 8, own);
    let mut slice = own;
    for [count, bytes, used, capacity, room] in PAGES {
        let start = SEGMENT + slice * SLICE_BYTES;
        let description = match is_apart {
            true => SEGMENT + 0x4000 + slice * 128,
            false => start,
        };
        image.set(description + 16, room << 32 | capacity << 16 | used);
        image.set(description + 40, bytes);
        image.set(description + 48, start + if is_apart { 0 } else { 128 });
        image.set(description + 96, SEGMENT);
        image.set(description + 104, count << 32 | slice);
        image.set(description + 112, 7);
        slice += count;
    }
    image
}

/// An arena of mimalloc 3.4 and newer.
pub fn arena() -> Image {
    let mut image = Image::new(&[(SEGMENT, SLICES * SLICE_BYTES)]);
    let arena = SEGMENT + 8 * SLICE_BYTES;
    let own = 10;
    image.set(arena + 40, SEGMENT);
    image.set(arena + 48, SLICES);
    image.set(arena + 56, own);
    let mut slice = own;
    for (index, [count, bytes, used, capacity, room]) in PAGES.into_iter().enumerate() {
        let entry = SEGMENT + slice * 128;
        // A page of small blocks is described at its start.
        let description = if index == 0 {
            SEGMENT + slice * SLICE_BYTES
        } else {
            entry
        };
        for each in 0..count {
            image.set(SEGMENT + (slice + each) * 128, description);
        }
        image.set(description + 32, bytes);
        image.set(description + 40, used | 0x77 << 16);
        image.set(description + 56, room << 16 | capacity);
        image.set(description + 104, arena);
        image.set(description + 112, count << 32 | slice);
        image.set(description + 120, 6);
        slice += count;
    }
    image
}
