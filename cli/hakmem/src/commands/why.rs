//! `hakmem why`: who pins memory.

use super::leaks::age;
use super::profile::{ROWS, place, snapshot};
use super::stats::bytes;
use crate::output::{print_json, terminal};
use crate::target::Target;
use clap::Args;
use hakmem_heap::heap::{Content, Heap};
use hakmem_heap::profile::Profile;
use hakmem_lab::error::Result;
use hakmem_lab::render::{Cell, Form, Table, Tone};
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem why 4711
  hakmem why --core core.4711
  hakmem why 4711 --sparse 50

A slab is given back when its last block is freed. Of each slab that is mostly free, the free part is
counted against the blocks that still lie there, and these are summed up by who allocated them, from the
samples that there are: sampling has to be on while the program allocates (HAKMEM_SAMPLE_BYTES=524288, or
'hakmem profile'). Why memory grew between two moments, 'hakmem diff' says; why an allocation was
refused, 'hakmem failures'.";

/// Show who pins memory: the calls whose few blocks hold slabs that are free otherwise
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem why [OPTIONS] PID\n       hakmem why [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Look at slabs of which at most so many per cent are in use
    #[arg(long, value_name = "PERCENT", default_value_t = 25.0)]
    sparse: f64,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// What a site's blocks hold.
#[derive(Clone, Debug, Default, Serialize)]
struct Pin {
    /// Estimated: free bytes of sparse slabs, divided among the blocks that lie there.
    pinned_bytes: f64,
    blocks: f64,
    samples: u64,
    oldest_s: f64,
    frames: Vec<String>,
}

/// What there is in sparse slabs, exactly.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Sparse {
    slabs: u64,
    free_bytes: u64,
    blocks: u64,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let opened = arguments.target.open()?;
    let profile = opened.profile()?;
    let heap = opened.heap()?;
    let named = snapshot(&opened)?;
    let (pinning, sparse) = sparse_slabs(&heap, arguments.sparse / 100.0);
    let mut names = opened.names();
    let mut pins: Vec<Pin> = pins(&profile, &heap, &pinning)
        .into_iter()
        .map(|(stack, mut pin)| {
            let frames = &profile.stacks[stack].frames;
            pin.frames = frames.iter().flat_map(|at| names.of(*at)).collect();
            let site = named.sites.iter().find(|site| site.frames == pin.frames);
            pin.oldest_s = site.map_or(0.0, |site| site.oldest_s);
            pin
        })
        .collect();
    pins.sort_by(|a, b| b.pinned_bytes.total_cmp(&a.pinned_bytes));
    if arguments.json {
        let value = json!({ "title": opened.title(), "sparse": sparse, "pins": pins });
        print_json(&value)?;
    } else {
        print!(
            "{}",
            text(&opened.title(), sparse, &pins, arguments.sparse, terminal())
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// Of each sparse slab, by its first block's address: the free bytes for one of its live blocks.
fn sparse_slabs(heap: &Heap, share: f64) -> (HashMap<u64, f64>, Sparse) {
    let mut pinning = HashMap::new();
    let mut sparse = Sparse::default();
    for (run, slab) in heap.slabs() {
        let block_bytes = heap.classes[slab.class].bytes;
        let waiting = heap.waiting_in(run.base, run.bytes).len() as u64;
        let live = slab.blocks_out().saturating_sub(waiting);
        let free = run.bytes.saturating_sub(live * block_bytes);
        if live > 0 && (live * block_bytes) as f64 <= share * run.bytes as f64 {
            pinning.insert(run.base, free as f64 / live as f64);
            sparse.slabs += 1;
            sparse.free_bytes += free;
            sparse.blocks += live;
        }
    }
    (pinning, sparse)
}

/// By the number of the stack.
fn pins(profile: &Profile, heap: &Heap, pinning: &HashMap<u64, f64>) -> HashMap<usize, Pin> {
    let mut found: HashMap<usize, Pin> = HashMap::new();
    for sample in &profile.samples {
        let run = heap.find(sample.address).and_then(|place| place.run);
        let slab = run.filter(|run| matches!(run.content, Content::Small(_)));
        if let Some(each) = slab.and_then(|run| pinning.get(&run.base)) {
            let pin = found.entry(sample.stack).or_default();
            pin.pinned_bytes += each * sample.blocks;
            pin.blocks += sample.blocks;
            pin.samples += 1;
        }
    }
    found
}

fn text(title: &str, sparse: Sparse, pins: &[Pin], percent: f64, form: Form) -> String {
    let mut lines = vec![form.strong(title), String::new()];
    lines.push(format!(
        "{} are free in {} slabs that are at most {percent:.0} % in use; {} blocks lie there",
        bytes(sparse.free_bytes),
        sparse.slabs,
        sparse.blocks
    ));
    if pins.is_empty() {
        if sparse.slabs > 0 {
            lines.push(
                "none of these blocks was sampled: sampling has to be on while they are allocated"
                    .into(),
            );
        }
        return lines.join("\n") + "\n";
    }
    let mut table = Table::default();
    table.number_column("pinned", 0);
    table.number_column("", 2);
    table.number_column("by blocks", 1);
    table.number_column("oldest", 1);
    table.text_column("allocated by", 0);
    for pin in pins.iter().take(ROWS) {
        let off = 200.0 / (pin.samples as f64).sqrt();
        table.row(vec![
            Cell::new(bytes(pin.pinned_bytes as u64)),
            Cell::toned(format!("± {off:.0} %"), Tone::Faint),
            Cell::new(format!("{:.0}", pin.blocks)),
            Cell::new(age(pin.oldest_s)),
            Cell::new(place(&pin.frames, 3)),
        ]);
    }
    lines.push(String::new());
    lines.push(table.render(form));
    if pins.len() > ROWS {
        lines.push(format!("and {} places more", pins.len() - ROWS));
    }
    lines.push("\nThat much would be free if these blocks lay elsewhere, together.".into());
    lines.join("\n") + "\n"
}
