//! `hakmem why`: who pins memory, why memory grew, and why an allocation failed.

use crate::frames;
use crate::moment::Moment;
use crate::numbers::{percent, seconds};
use crate::output::{self, print_json, show, terminal};
use crate::profile::look::snapshot;
use crate::profile::{ROWS, Snapshot, notes};
use crate::refusals;
use crate::say;
use crate::target::{Opened, Target};
use clap::Args;
use hakmem_heap::heap::{Content, Heap};
use hakmem_heap::profile::Profile;
use hakmem_heap::resident::Pages;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::{age, bytes, counted};
use hakmem_lab::render::{Cell, Form, Table, Tone};
use hakmem_lab::whole_file::Planned;
use serde::Serialize;
use serde_json::json;
use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  hakmem why 4711
  hakmem why --core core.4711
  hakmem why 4711 --sparse 50
  hakmem why 4711 --seconds 60                    why memory grew in a minute
  hakmem why 4711 --save before; sleep 600; hakmem why 4711 --since before

A slab is retired when its last block is freed. In each slab that is mostly free, the free part, as
far as it is resident, is charged to the live blocks that pin the slab; the table sums it up by call
stack. A core dump or a snapshot does not tell what is resident: there, all of it counts. Call
stacks come from samples: sampling has to be on while the program allocates
(HAKMEM_SAMPLE_BYTES=524288, or 'hakmem profile'). Between two moments, resident memory is compared
by kind, and the program's blocks by size and by call stack. Refused allocations are shown with the
limit that was exhausted.";

/// Show who pins memory, why it grew between two moments, and why allocations were refused
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem why [OPTIONS] PID\n       hakmem why [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Show slabs that are at most this many per cent in use
    #[arg(long, value_name = "PERCENT", default_value_t = 25.0, value_parser = percent, allow_negative_numbers = true)]
    sparse: f64,
    /// Look again after this many seconds, and show why memory grew
    #[arg(long, value_name = "SECONDS", conflicts_with = "core", value_parser = seconds, allow_negative_numbers = true)]
    seconds: Option<f64>,
    /// Show why memory grew since --save wrote this file
    #[arg(long, value_name = "FILE", conflicts_with = "seconds")]
    since: Option<PathBuf>,
    /// Save the present state in a file, for --since
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// How many refused allocations to show; 'hakmem failures' shows more.
const FAILURES: usize = 3;

/// What the blocks of a site pin.
#[derive(Clone, Debug, Default, Serialize)]
struct Pin {
    /// An estimate: the free bytes of sparse slabs, divided among the blocks in them.
    pinned_bytes: f64,
    /// Two standard deviations of it; 0: each of the blocks was sampled.
    pinned_off: f64,
    blocks: f64,
    samples: u64,
    oldest_s: f64,
    frames: Vec<String>,
}

/// The exact contents of sparse slabs.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Sparse {
    slabs: u64,
    free_bytes: u64,
    /// Are they resident? It is not known of a core dump or a snapshot.
    is_resident: bool,
    blocks: u64,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let opened = arguments.target.open()?;
    let to_save = output::planned(arguments.save.as_ref())?;
    let moments = match (&arguments.since, arguments.seconds) {
        (Some(path), _) => Some((Moment::load(path)?, Moment::now(&opened)?)),
        (None, Some(seconds)) => {
            let wait = Duration::from_secs_f64(seconds);
            Some(Moment::twice(&opened, wait)?)
        }
        (None, None) => None,
    };
    let done = match moments {
        Some((before, after)) => compare(&before, &after, to_save, arguments.json),
        None => report(arguments, &opened, to_save),
    };
    done.map(|()| ExitCode::SUCCESS)
}

fn compare(before: &Moment, after: &Moment, to_save: Option<Planned>, json: bool) -> Result<()> {
    say::keep();
    let saved = to_save.map_or(Ok(()), |file| file.write(after.to_json()?));
    if json {
        print_json(&json!({ "before": before, "after": after }))?;
    } else {
        show(&after.text(before, terminal()));
        show(&notes(&after.profile.notes));
    }
    saved
}

/// The process as it is now.
fn report(arguments: &Arguments, opened: &Opened, to_save: Option<Planned>) -> Result<()> {
    // Finding names takes time, so figures that must add up are read together afterwards.
    let named = snapshot(opened)?;
    let profile = opened.profile()?;
    let heap = opened.heap()?;
    let mut saved = Ok(());
    if let Some(file) = to_save {
        let moment = Moment::of(opened, &heap, named.clone())?;
        say::keep();
        saved = file.write(moment.to_json()?);
    }
    let pages = opened.pages()?;
    let (pinning, sparse) = sparse_slabs(&heap, pages.as_ref(), arguments.sparse / 100.0);
    let mut names = opened.names();
    let pins = pins(&profile, &heap, &pinning).into_iter();
    let pins = pins
        .map(|(stack, mut pin)| {
            let places = frames::places(&profile.stacks[stack], &profile.python, &mut names);
            let frames = places.iter().flat_map(|place| place.frames.clone());
            pin.frames = frames.collect();
            let site = named.sites.iter().find(|site| site.frames == pin.frames);
            pin.oldest_s = site.map_or(0.0, |site| site.oldest_s);
            pin
        })
        .collect();
    let mut pins: Vec<Pin> = opened.whole(pins)?;
    fit(&mut pins, sparse);
    pins.sort_by(|a, b| b.pinned_bytes.total_cmp(&a.pinned_bytes));
    if arguments.json {
        let failures = refusals::as_json(&heap.failures, &mut names);
        let value = json!({ "title": opened.title(), "sparse": sparse, "pins": pins, "failures": failures,
            "limits": named.limits(), "notes": names.notes() });
        print_json(&value)?;
    } else {
        let title = opened.title();
        let text = text(
            (&title, &named),
            sparse,
            &pins,
            arguments.sparse,
            terminal(),
        );
        show(&text);
        show(&notes(&named.limits()));
        if heap.failures.count > 0 {
            let refused = refusals::text(&heap.failures, FAILURES, &mut names, terminal());
            show(&format!(
                "\nallocations that were refused, the latest:\n\n{refused}"
            ));
        }
        show(&notes(names.notes()));
    }
    saved
}

/// For each sparse slab in which anything is free, by its first block's address: its free bytes per live block. Without `pages`,
/// all of a slab counts as resident.
fn sparse_slabs(heap: &Heap, pages: Option<&Pages>, share: f64) -> (HashMap<u64, f64>, Sparse) {
    let mut pinning = HashMap::new();
    let mut sparse = Sparse {
        is_resident: pages.is_some(),
        ..Sparse::default()
    };
    for (run, slab) in heap.slabs() {
        let block_bytes = heap.classes[slab.class].bytes;
        let waiting = heap.waiting_in(run.base, run.bytes).len() as u64;
        let live = slab.blocks_out().saturating_sub(waiting);
        if live > 0 && (live * block_bytes) as f64 <= share * run.bytes as f64 {
            let resident =
                pages.map_or(run.bytes, |pages| pages.resident_bytes(run.base, run.bytes));
            let free = resident.saturating_sub(live * block_bytes);
            if free == 0 {
                continue; // blocks that fill their pages pin nothing
            }
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
            let draws = sample.blocks * (sample.blocks - 1.0).max(0.0);
            pin.pinned_off = pin.pinned_off.hypot(2.0 * each * draws.sqrt());
            pin.blocks += sample.blocks;
            pin.samples += 1;
        }
    }
    found
}

/// The totals are exact, and samples only estimate who has which part. So together the parts are no more than the total.
fn fit(pins: &mut [Pin], sparse: Sparse) {
    let most = |total: u64, sum: f64| (total as f64 / sum).min(1.0);
    let of_bytes = most(
        sparse.free_bytes,
        pins.iter().map(|pin| pin.pinned_bytes).sum(),
    );
    let of_blocks = most(sparse.blocks, pins.iter().map(|pin| pin.blocks).sum());
    for pin in pins {
        pin.pinned_bytes *= of_bytes;
        pin.pinned_off *= of_bytes;
        pin.blocks *= of_blocks;
    }
}

fn text(
    (title, named): (&str, &Snapshot),
    sparse: Sparse,
    pins: &[Pin],
    percent: f64,
    form: Form,
) -> String {
    let mut lines = vec![form.strong(title), String::new()];
    lines.push(format!(
        "{} are free{} in {} slabs that are at most {percent:.0} % in use; {} blocks pin them",
        bytes(sparse.free_bytes),
        if sparse.is_resident {
            " and resident"
        } else {
            ", resident or not,"
        },
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
        let off = named.off(pin.pinned_bytes, pin.pinned_off);
        table.row(vec![
            Cell::new(bytes(pin.pinned_bytes as u64)),
            Cell::toned(off, Tone::Faint),
            Cell::new(format!("{:.0}", pin.blocks)),
            Cell::new(age(pin.oldest_s)),
            Cell::fitting(frames::place(&pin.frames)),
        ]);
    }
    lines.push(String::new());
    lines.push(table.render(form));
    if pins.len() > ROWS {
        let more = pins.len() - ROWS;
        lines.push(format!("and {}", counted(more as u64, "more place")));
    }
    lines.push("\nThat much could be purged if these blocks lay together in other slabs.".into());
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(parts: [f64; 2]) -> Vec<f64> {
        let mut pins = parts.map(|part| Pin {
            pinned_bytes: part,
            blocks: part / 10.0,
            ..Pin::default()
        });
        let sparse = Sparse {
            free_bytes: 1000,
            blocks: 50,
            ..Sparse::default()
        };
        fit(&mut pins, sparse);
        pins.iter()
            .flat_map(|pin| [pin.pinned_bytes, pin.blocks])
            .collect()
    }

    #[test]
    fn parts_are_no_more_than_the_total() {
        assert_eq!(fitted([300.0, 100.0]), [300.0, 30.0, 100.0, 10.0]);
        assert_eq!(fitted([1500.0, 500.0]), [750.0, 37.5, 250.0, 12.5]);
    }
}
