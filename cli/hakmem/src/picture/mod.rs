//! Draws the heap: superslabs in rows, each with its 64 units.

pub mod canvas;
pub mod html;
pub mod png;
mod shade;
pub mod sheet;
pub mod svg;
pub mod terminal;

use hakmem_heap::heap::{Content, Heap, Owner, Run, Slab, Super, Waiting};
pub use shade::{By, Shade};
use std::fmt::Write;

/// A heap, and how to show it.
pub struct View<'a> {
    pub heap: &'a Heap,
    pub by: By,
    /// The time now, as in `Arena::clock`.
    pub now: u64,
    /// A core dump has no clock: `now` is when the last slab was made.
    pub is_core: bool,
    /// A name for each cache.
    pub owners: Vec<String>,
}

impl View<'_> {
    /// The age in seconds of something that was made at that time.
    pub fn age(&self, made_at: u64) -> f64 {
        self.now.saturating_sub(made_at) as f64 / 10.0
    }
}

/// One unit of a superslab, or a large block with its own mapping.
#[derive(Clone, Copy, Debug)]
pub enum Cell {
    Free,
    /// Free, and maybe resident.
    Dirty,
    Slab {
        class: usize,
        owner: Option<usize>,
        made_at: u64,
        /// The share of the slab's bytes in live blocks.
        live: f64,
        /// The share in blocks that wait in a magazine or a parcel.
        waiting: f64,
    },
    Large {
        made_at: u64,
    },
    Kept,
    /// A unit with hakmem's own descriptors.
    Metadata,
}

/// How many blocks of a slab are in which state.
#[derive(Clone, Copy, Debug, Default)]
pub struct Use {
    pub live: u64,
    pub waiting: u64,
    pub free: u64,
    pub fresh: u64,
}

pub fn use_of(heap: &Heap, run: &Run, slab: &Slab) -> Use {
    let out = slab.blocks_out();
    let waiting = (heap.waiting_in(run.base, run.bytes).len() as u64).min(out);
    Use {
        live: out - waiting,
        waiting,
        free: slab.blocks_in(),
        fresh: heap.classes[slab.class].blocks.saturating_sub(slab.fresh),
    }
}

/// The content of each unit of a superslab. A large block's own mapping has one cell.
pub fn cells(heap: &Heap, superslab: &Super) -> Vec<Cell> {
    let count = if superslab.is_mapping {
        1
    } else {
        superslab.bytes / heap.unit_bytes
    };
    (0..count)
        .map(|unit| {
            let bit = |bits: u64| !superslab.is_mapping && bits >> unit & 1 != 0;
            if bit(superslab.dirty_units) || bit(superslab.purging_units) {
                return Cell::Dirty;
            }
            if bit(superslab.free_units) {
                return Cell::Free;
            }
            let start = superslab.base + unit * heap.unit_bytes;
            match heap.find(start).and_then(|place| place.run) {
                Some(run) => cell(heap, run),
                None if heap.is_metadata(start) => Cell::Metadata,
                None => Cell::Free,
            }
        })
        .collect()
}

fn cell(heap: &Heap, run: &Run) -> Cell {
    match &run.content {
        Content::Large { is_kept: true, .. } => Cell::Kept,
        Content::Large { .. } => Cell::Large {
            made_at: run.made_at,
        },
        Content::Small(slab) => {
            let used = use_of(heap, run, slab);
            let share =
                |blocks: u64| (blocks * heap.classes[slab.class].bytes) as f64 / run.bytes as f64;
            Cell::Slab {
                class: slab.class,
                owner: slab.owner,
                made_at: run.made_at,
                live: share(used.live),
                waiting: share(used.waiting),
            }
        }
    }
}

/// The share of a superslab that is live.
pub fn live_share(cells: &[Cell]) -> f64 {
    let live = cells.iter().map(|cell| match cell {
        Cell::Slab { live, .. } => *live,
        Cell::Large { .. } => 1.0,
        _ => 0.0,
    });
    live.sum::<f64>() / cells.len().max(1) as f64
}

/// A name for each cache, in the heap's order.
pub fn owner_names(heap: &Heap, thread_name: &dyn Fn(u64) -> Option<String>) -> Vec<String> {
    let name = |cache: &hakmem_heap::heap::Cache| match cache.kind {
        Owner::Thread if cache.is_dead => format!("ended thread {}", cache.thread_id),
        Owner::Thread => match thread_name(cache.thread_id) {
            Some(name) => format!("{} {name}", cache.thread_id),
            None => format!("thread {}", cache.thread_id),
        },
        Owner::Heap => format!("heap {}", cache.number),
        Owner::Shared => "shared".into(),
    };
    heap.caches.iter().map(name).collect()
}

/// The state of each block of a slab as letters with counts: l live, m in a magazine, p in a parcel, f free in the slab, n
/// never handed out. "l12f3m1n200"
pub fn block_states(heap: &Heap, run: &Run, slab: &Slab) -> String {
    let class = heap.classes[slab.class];
    let waiting = heap.waiting_in(run.base, run.bytes);
    let mut next = 0;
    let mut text = String::new();
    let mut last = (' ', 0);
    for index in 0..class.blocks {
        let start = run.base + index * class.bytes;
        while next < waiting.len() && waiting[next].0 < start {
            next += 1;
        }
        let place = waiting.get(next).filter(|(block, _)| *block == start);
        let state = if index >= slab.fresh {
            'n'
        } else if slab.is_in(index) {
            'f'
        } else {
            match place {
                None => 'l',
                Some((_, Waiting::Magazine(_) | Waiting::Stock)) => 'm',
                Some(_) => 'p',
            }
        };
        if state == last.0 {
            last.1 += 1;
        } else {
            push_states(&mut text, last);
            last = (state, 1);
        }
    }
    push_states(&mut text, last);
    text
}

fn push_states(text: &mut String, (state, count): (char, u64)) {
    if count > 0 {
        let _ = write!(text, "{state}{count}");
    }
}
