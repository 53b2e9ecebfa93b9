//! The heap as one HTML file that works offline: the data, and a script that draws and explains them.

use super::{By, Cell, View, block_states, cells, use_of};
use hakmem_heap::heap::{Class, Content, Heap, Run, Super};
use hakmem_lab::error::Result;
use hakmem_lab::failed;
use serde::Serialize;

const PAGE: &str = include_str!("map.html");
/// If there are more slabs, their blocks are left out: the file would be too large to open.
const SLABS_WITH_BLOCKS_MAX: usize = 20_000;

/// The script's data. Names are short, as there may be a hundred thousand runs.
#[derive(Serialize)]
struct Data<'a> {
    title: &'a str,
    summary: &'a str,
    /// The initial colouring; a value of the page's select element.
    by: &'static str,
    classes: &'a [Class],
    owners: &'a [String],
    unit: u64,
    supers: Vec<SuperData>,
}

#[derive(Serialize)]
struct SuperData {
    base: String,
    bytes: u64,
    is_mapping: bool,
    huge: u32,
    age: f64,
    free: String,
    dirty: String,
    /// Units with hakmem's own descriptors.
    metadata: String,
    /// For each run, the unit in which it begins.
    first: Vec<u64>,
    runs: Vec<RunData>,
}

#[derive(Serialize)]
struct RunData {
    units: u64,
    age: f64,
    #[serde(flatten)]
    content: ContentData,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ContentData {
    Large {
        large: u64,
        kept: bool,
    },
    Small {
        class: usize,
        owner: Option<usize>,
        live: u64,
        waiting: u64,
        free: u64,
        fresh: u64,
        blocks: String,
    },
}

pub fn draw(view: &View, title: &str, summary: &str) -> Result<String> {
    let heap = view.heap;
    let has_blocks = heap.slabs().count() <= SLABS_WITH_BLOCKS_MAX;
    let supers = heap.supers.iter();
    let data = Data {
        title,
        summary,
        by: match view.by {
            By::Class => "size",
            By::Owner => "owner",
            By::Age => "age",
        },
        classes: &heap.classes,
        owners: &view.owners,
        unit: heap.unit_bytes,
        supers: supers.map(|one| describe(view, one, has_blocks)).collect(),
    };
    let text = serde_json::to_string(&data).map_err(|error| failed!("{error}"))?;
    // A program may have any name, but it must not end the script.
    let text = text.replace('<', "\\u003c");
    Ok(PAGE.replacen("/*DATA*/", &text, 1))
}

fn describe(view: &View, superslab: &Super, has_blocks: bool) -> SuperData {
    let runs = superslab.runs.iter();
    let unit_of = |run: &Run| (run.base - superslab.base) / view.heap.unit_bytes;
    SuperData {
        base: format!("{:#x}", superslab.base),
        bytes: superslab.bytes,
        is_mapping: superslab.is_mapping,
        huge: superslab.huge_pages(),
        age: view.age(superslab.mapped_at),
        free: bits(superslab.free_units),
        dirty: bits(superslab.dirty_units | superslab.purging_units),
        metadata: bits(metadata_units(superslab, view.heap)),
        first: runs.clone().map(unit_of).collect(),
        runs: runs
            .map(|run| describe_run(view, run, has_blocks))
            .collect(),
    }
}

fn metadata_units(superslab: &Super, heap: &Heap) -> u64 {
    let cells = cells(heap, superslab).into_iter().enumerate();
    cells
        .filter(|(_, cell)| matches!(cell, Cell::Metadata))
        .fold(0, |units, (unit, _)| units | 1 << unit)
}

/// As text, the lowest bit first: a script's numbers lack 64 bits.
fn bits(bits: u64) -> String {
    (0..64)
        .map(|bit| if bits >> bit & 1 != 0 { '1' } else { '0' })
        .collect()
}

fn describe_run(view: &View, run: &Run, has_blocks: bool) -> RunData {
    let heap = view.heap;
    RunData {
        units: run.bytes / heap.unit_bytes,
        age: view.age(run.made_at),
        content: match &run.content {
            Content::Large {
                block_bytes,
                is_kept,
                ..
            } => ContentData::Large {
                large: *block_bytes,
                kept: *is_kept,
            },
            Content::Small(slab) => {
                let used = use_of(heap, run, slab);
                ContentData::Small {
                    class: slab.class,
                    owner: slab.owner,
                    live: used.live,
                    waiting: used.waiting,
                    free: used.free,
                    fresh: used.fresh,
                    blocks: if has_blocks {
                        block_states(heap, run, slab)
                    } else {
                        String::new()
                    },
                }
            }
        },
    }
}
