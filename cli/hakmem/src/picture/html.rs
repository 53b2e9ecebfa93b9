//! The heap as one HTML file that needs no network: the data, and a script that draws and explains it.

use super::{View, block_states, use_of};
use hakmem_heap::heap::Content;
use serde_json::{Value, json};

const PAGE: &str = include_str!("map.html");
/// With more slabs than this their blocks are left out: the file would be too large to open.
const SLABS_WITH_BLOCKS_MAX: usize = 20_000;

pub fn draw(view: &View, title: &str, summary: &str) -> String {
    let heap = view.heap;
    let has_blocks = heap.slabs().count() <= SLABS_WITH_BLOCKS_MAX;
    let supers: Vec<Value> = heap
        .supers
        .iter()
        .map(|superslab| {
            let runs: Vec<Value> = superslab
                .runs
                .iter()
                .map(|run| describe(view, run, has_blocks))
                .collect();
            json!({
                "base": format!("{:#x}", superslab.base),
                "bytes": superslab.bytes,
                "lone": superslab.is_lone,
                "huge": superslab.is_huge,
                "age": view.age(superslab.mapped_at),
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
        "owners": view.owners,
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

fn describe(view: &View, run: &hakmem_heap::heap::Run, has_blocks: bool) -> Value {
    let (heap, age) = (view.heap, view.age(run.made_at));
    let units = run.bytes / heap.unit_bytes;
    match &run.content {
        Content::Large {
            block_bytes,
            is_kept,
        } => {
            json!({"units": units, "age": age, "large": block_bytes, "kept": is_kept})
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
                "age": age,
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
