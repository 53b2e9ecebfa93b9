//! The heap as one HTML file that needs no network: the data, and a script that draws and explains it.

use super::{block_states, use_of};
use hakmem_heap::heap::{Content, Heap};
use serde_json::{Value, json};

const PAGE: &str = include_str!("map.html");
/// With more slabs than this their blocks are left out: the file would be too large to open.
const SLABS_WITH_BLOCKS_MAX: usize = 20_000;

pub fn draw(heap: &Heap, title: &str, summary: &str, owners: &[String]) -> String {
    let has_blocks = heap.slabs().count() <= SLABS_WITH_BLOCKS_MAX;
    let supers: Vec<Value> = heap
        .supers
        .iter()
        .map(|superslab| {
            let runs: Vec<Value> = superslab
                .runs
                .iter()
                .map(|run| describe(heap, run, has_blocks))
                .collect();
            json!({
                "base": format!("{:#x}", superslab.base),
                "bytes": superslab.bytes,
                "lone": superslab.is_lone,
                "huge": superslab.is_huge,
                "free": bits(superslab.free_units),
                "dirty": bits(superslab.dirty_units | superslab.purging_units),
                "first": superslab.runs.iter()
                    .map(|run| (run.base - superslab.base) / heap.unit_bytes).collect::<Vec<_>>(),
                "runs": runs,
            })
        })
        .collect();
    let data = json!({
        "title": title,
        "summary": summary,
        "classes": heap.classes,
        "owners": owners,
        "unit": heap.unit_bytes,
        "supers": supers,
    });
    // A program may have any name: it must not end the script.
    let text = data.to_string().replace('<', "\\u003c");
    PAGE.replacen("/*DATA*/", &text, 1)
}

/// As text, the lowest first: a script's numbers have no 64 bits.
fn bits(bits: u64) -> String {
    (0..64)
        .map(|bit| if bits >> bit & 1 != 0 { '1' } else { '0' })
        .collect()
}

fn describe(heap: &Heap, run: &hakmem_heap::heap::Run, has_blocks: bool) -> Value {
    let units = run.bytes / heap.unit_bytes;
    match &run.content {
        Content::Large {
            block_bytes,
            is_kept,
        } => {
            json!({"units": units, "large": block_bytes, "kept": is_kept})
        }
        Content::Small(slab) => {
            let used = use_of(heap, run, slab);
            let blocks = if has_blocks {
                block_states(heap, run, slab)
            } else {
                String::new()
            };
            json!({
                "units": units,
                "class": slab.class,
                "owner": slab.owner,
                "live": used.live,
                "waiting": used.waiting,
                "free": used.free,
                "fresh": used.fresh,
                "blocks": blocks,
            })
        }
    }
}
