//! Artificial heaps of other allocators than glibc's, made word by word: what the reader finds in them, and that it ends if
//! bytes are wrong.

mod made;

use fastrand::Rng;
use hakmem_foreign::heaps::{Heaps, Numbers};
use hakmem_foreign::ledger::Ledger;
use hakmem_foreign::map::{Cell, Map};
use hakmem_foreign::pieces::Figures;
use hakmem_foreign::space::Space;
use made::Image;

fn read(image: &Image) -> Numbers {
    let space = Space::of_memory(image, image.areas());
    let heaps = Heaps::read(&space);
    let numbers = heaps.numbers(&space);
    let ledger = Ledger::of(&space, &heaps, &numbers, &[]);
    let cells = Map::of(&heaps, &space)
        .strips
        .into_iter()
        .flat_map(|strip| strip.cells);
    let cells: Vec<Cell> = cells.collect();
    let resident = numbers.others.iter().map(|heap| heap.resident.sum());
    assert_eq!(
        cells.iter().map(|cell| cell.resident).sum::<u64>(),
        resident.sum::<u64>()
    );
    assert!(
        cells
            .iter()
            .all(|cell| cell.live + cell.own <= cell.resident)
    );
    for heap in &numbers.others {
        assert_eq!(heap.resident.sum(), heap.bytes, "{heap:#?}");
        let parts = heap.live_bytes + heap.free_beside_bytes + heap.free_bytes + heap.own_bytes;
        assert_eq!(parts, heap.bytes, "{heap:#?}");
    }
    assert_eq!(ledger.remainder_bytes, 0, "{ledger:#?}");
    numbers
}

fn only(image: &Image) -> Figures {
    let mut numbers = read(image);
    assert_eq!(numbers.others.len(), 1);
    numbers.others.remove(0)
}

fn flip(whole: &Image, times: usize) {
    let seed = fastrand::u64(..);
    let mut random = Rng::with_seed(seed);
    println!("seed {seed}");
    for _ in 0..times {
        let mut damaged = whole.clone();
        for _ in 0..random.usize(1..50) {
            let touched = &damaged.touched;
            let at = touched[random.usize(0..touched.len())] + random.u64(0..8);
            damaged.set_byte(at, if random.bool() { random.u8(..) } else { 0xff });
        }
        read(&damaged);
    }
}

/// Two slabs with blocks of 48 bytes, 170 of them in use; a large block that begins in the middle of its first page; a free
/// extent.
#[test]
fn a_heap_of_jemallocs_is_read_by_its_table_of_pages() {
    for (shape, layout) in [(8, 20), (16, 20), (8, 18), (8, 19)] {
        let image = made::jemalloc(shape, layout);
        let found = only(&image);
        assert_eq!(found.allocator, "jemalloc");
        assert_eq!((found.arenas, found.unclear), (2, 0), "{shape} {layout}");
        assert_eq!(found.live_blocks, 256 + 170 + 1);
        assert_eq!(found.live_bytes, (256 + 170) * 48 + (32 << 10));
        assert_eq!(found.free_bytes, 64 << 10);
        assert_eq!(found.own_bytes, made::BASE_BYTES);
    }
}

#[test]
fn a_heap_of_jemallocs_with_wrong_bytes_is_read_to_its_end() {
    flip(&made::jemalloc(8, 20), 20);
    flip(&made::jemalloc(16, 20), 20);
}

/// A page with blocks of 640 bytes, 30 of them in use; a large page with one block; a page without blocks in use; the rest is
/// free.
#[test]
fn a_heap_of_mimallocs_is_read_by_its_segments_or_arenas() {
    for (image, releases, own) in [
        (made::segment(80), "2.0 and 2.1", 64 << 10),
        (made::segment(96), "2.1 and newer", 64 << 10),
        (made::older_arena(false), "3.1 to 3.3", 3 * (64 << 10)),
        (made::older_arena(true), "3.1 to 3.3", 3 * (64 << 10)),
        (made::arena(), "3.4 and newer", 10 * (64 << 10)),
    ] {
        let found = only(&image);
        assert_eq!(found.allocator, "mimalloc");
        assert_eq!(found.releases, releases);
        assert_eq!(found.unclear, 0);
        assert_eq!(found.live_blocks, 31);
        assert_eq!(found.live_bytes, 30 * 640 + 0x30000);
        assert_eq!(found.own_bytes, own);
        let pages = 4 * (64 << 10);
        assert_eq!(found.free_beside_bytes, pages - found.live_bytes);
        assert_eq!(found.bytes, 32 << 20);
    }
}

#[test]
fn a_heap_of_mimallocs_with_wrong_bytes_is_read_to_its_end() {
    flip(&made::segment(80), 20);
    flip(&made::segment(96), 20);
    flip(&made::older_arena(false), 20);
    flip(&made::older_arena(true), 20);
    flip(&made::arena(), 20);
}
