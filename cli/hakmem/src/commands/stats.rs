//! `hakmem stats`: the figures of a process's heap, or of a core dump's.

use crate::doctor::seen::{self, Seen};
use crate::output::{print_json, show, terminal};
use crate::target::{Opened, Target};
use clap::Args;
use hakmem_heap::figures::{CacheFigures, ClassFigures, Figures};
use hakmem_heap::heap::Owner;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::{bytes, counted};
use hakmem_lab::render::{Cell, Form, Table, Tone};
use std::cmp::Reverse;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem stats 4711
  hakmem stats $(pidof redis-server) --json | jq .live_bytes
  hakmem stats --core core.4711                   a core dump or a snapshot
  hakmem stats 4711 --all                         a line for each of thousands of threads

The process is only read, neither stopped nor written to. docs/statistics.md explains every figure.
For other allocators, the command shows what 'hakmem doctor' finds.";

/// Show what the heap of a process or of a core dump is made of
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem stats [OPTIONS] PID\n       hakmem stats [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Show a line for every cache, however many threads there are
    #[arg(long)]
    all: bool,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

/// How many caches have their own lines without --all.
const CACHES: usize = 20;

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let (opened, heap) = match Seen::of(arguments.target.open()?, false)? {
        Seen::Ours { opened, heap } => (opened, heap),
        Seen::Others(visit) => {
            if arguments.json {
                print_json(&visit)?;
            } else {
                show(&seen::stats(&visit, terminal()));
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    let figures = Figures::of(&heap);
    if arguments.json {
        print_json(&figures)?;
    } else {
        let most = if arguments.all { usize::MAX } else { CACHES };
        show(&text(&opened, &figures, most, terminal()));
    }
    Ok(ExitCode::SUCCESS)
}

fn text(opened: &Opened, figures: &Figures, most_caches: usize, form: Form) -> String {
    let mut parts = vec![
        format!(
            "{}\nhakmem {}",
            form.strong(&opened.title()),
            figures.release
        ),
        totals(figures, form),
        classes(figures, form),
        caches(opened, figures, most_caches, form),
        timings(figures, form),
        counters(figures),
    ];
    if figures.moved_blocks > 0 {
        parts.push(form.toned(
            &format!(
                "± {} blocks moved while this was read",
                figures.moved_blocks
            ),
            Tone::Faint,
        ));
    }
    parts.extend(
        figures
            .doubts
            .iter()
            .map(|doubt| form.toned(doubt, Tone::Bad)),
    );
    parts.retain(|part| !part.is_empty());
    parts.join("\n\n") + "\n"
}

fn totals(figures: &Figures, form: Form) -> String {
    let totals = &figures.totals;
    let mapped = totals.mapped_bytes.max(1);
    let mut table = Table::default();
    table.text_column("memory", 0);
    table.number_column("bytes", 0);
    table.number_column("of all", 0);
    table.text_column("", 1);
    let mut row = |name: &str, count: u64, note: String| {
        table.row(vec![
            Cell::new(name),
            Cell::new(bytes(count)),
            Cell::new(format!("{:.1} %", count as f64 * 100.0 / mapped as f64)),
            Cell::toned(note, Tone::Faint),
        ]);
    };
    row(
        "live",
        totals.live_bytes,
        format!("{} blocks", totals.live_blocks),
    );
    row(
        "in magazines and parcels",
        totals.cached_bytes,
        "free, ready for reuse".into(),
    );
    row("in BigCache", totals.kept_bytes, "free, large".into());
    row("free in slabs", totals.slab_free_bytes, "used once".into());
    let waiting = format!("{} of it may be resident", bytes(totals.dirty_bytes));
    row("free units", totals.unit_free_bytes, waiting);
    let known = totals.live_bytes
        + totals.cached_bytes
        + totals.kept_bytes
        + totals.slab_free_bytes
        + totals.unit_free_bytes
        + totals.metadata_unit_bytes;
    if totals.metadata_unit_bytes > 0 {
        let note = "no other memory was left".into();
        row("units of descriptors", totals.metadata_unit_bytes, note);
    }
    let rest = totals.mapped_bytes.saturating_sub(known);
    row("never used", rest, "rests of slabs and runs".into());
    let superslabs = format!(
        "{}, {}",
        counted(totals.superslab_count, "superslab"),
        counted(totals.mapping_count, "mapping")
    );
    row("mapped", totals.mapped_bytes, superslabs);
    row(
        "descriptors",
        totals.metadata_bytes,
        "not included above; mapped, partly used".into(),
    );
    table.render(form)
}

/// The share of counted allocations that a magazine served.
fn hits(class: &ClassFigures) -> String {
    if class.counted_allocations == 0 {
        return "-".into();
    }
    let misses = class.counted_misses as f64 / class.counted_allocations as f64;
    format!("{:.1} %", (1.0 - misses) * 100.0)
}

fn classes(figures: &Figures, form: Form) -> String {
    let mut table = Table::default();
    table.number_column("block", 0);
    table.number_column("live", 0);
    table.number_column("bytes", 0);
    table.number_column("magazines", 1);
    table.number_column("in slabs", 1);
    table.number_column("slabs", 0);
    table.number_column("use", 0);
    table.number_column("refills", 2);
    table.number_column("spills", 2);
    table.number_column("slabs made", 3);
    let used: Vec<&ClassFigures> = figures.used_classes().collect();
    let is_counted = used.iter().any(|class| class.counted_allocations > 0);
    if is_counted {
        table.number_column("allocations", 1);
        table.number_column("hits", 1);
    }
    for class in &used {
        let share = class.live_bytes() as f64 * 100.0 / class.slab_bytes.max(1) as f64;
        let mut cells = vec![
            Cell::new(class.bytes.to_string()),
            Cell::new(class.live_blocks.to_string()),
            Cell::new(bytes(class.live_bytes())),
            Cell::new(class.cached_blocks.to_string()),
            Cell::new(class.slab_free_blocks.to_string()),
            Cell::new(class.slabs.to_string()),
            Cell::new(if class.slabs == 0 {
                "-".into()
            } else {
                format!("{share:.0} %")
            }),
            Cell::new(class.refills.to_string()),
            Cell::new(class.spills.to_string()),
            Cell::new(class.slabs_made.to_string()),
        ];
        if is_counted {
            cells.push(Cell::new(class.counted_allocations.to_string()));
            cells.push(Cell::new(hits(class)));
        }
        table.row(cells);
    }
    let totals = &figures.totals;
    if totals.large_live_blocks > 0 {
        let mut cells = vec![
            Cell::new("larger"),
            Cell::new(totals.large_live_blocks.to_string()),
            Cell::new(bytes(totals.large_live_bytes)),
        ];
        cells.resize(if is_counted { 12 } else { 10 }, Cell::default());
        table.row(cells);
    } else if used.is_empty() {
        return String::new();
    }
    table.render(form)
}

/// The owner of a cache, in a word or two.
pub fn owner_name(opened: &Opened, cache: &CacheFigures) -> String {
    let thread = opened.thread_name(cache.thread_id);
    match cache.kind {
        Owner::Thread if cache.is_dead => "ended thread".into(),
        Owner::Thread => match thread {
            Some(name) => format!("{} {name}", cache.thread_id),
            None => format!("thread {}", cache.thread_id),
        },
        Owner::Heap => "heap or sweeper".into(),
        Owner::Shared => "shared".into(),
    }
}

/// At most so many caches, those with the most bytes in blocks; and the sums of the others.
fn caches(opened: &Opened, figures: &Figures, most: usize, form: Form) -> String {
    let is_used = |cache: &&CacheFigures| cache.slow_events > 0 || cache.slabs > 0;
    let mut shown: Vec<&CacheFigures> = figures.caches.iter().filter(is_used).collect();
    if shown.is_empty() {
        return String::new();
    }
    let mut others = Vec::new();
    if shown.len() > most {
        shown.sort_by_key(|cache| Reverse(cache.out_bytes + cache.cached_bytes));
        others = shown.split_off(most);
    }
    let mut table = Table::default();
    table.text_column("cache of", 0);
    table.number_column("slabs", 0);
    table.number_column("blocks out", 0);
    table.number_column("magazines", 0);
    table.number_column("free in slabs", 1);
    table.number_column("refills", 2);
    table.number_column("spills", 2);
    table.number_column("parcels sent", 3);
    table.number_column("opened", 3);
    for cache in &shown {
        table.row(cache_row(owner_name(opened, cache), &[*cache]));
    }
    if !others.is_empty() {
        table.row(cache_row(format!("{} others", others.len()), &others));
    }
    let all = if others.is_empty() {
        String::new()
    } else {
        let threads = figures
            .caches
            .iter()
            .filter(|cache| matches!(cache.kind, Owner::Thread) && !cache.is_dead);
        let line = format!(
            "{} caches, {} of them of threads that run; --all has a line for each",
            shown.len() + others.len(),
            threads.count()
        );
        format!("\n{}", form.toned(&line, Tone::Faint))
    };
    table.render(form) + &all
}

/// The row of one cache, or of several together.
fn cache_row(name: String, caches: &[&CacheFigures]) -> Vec<Cell> {
    let sum =
        |figure: fn(&CacheFigures) -> u64| caches.iter().map(|cache| figure(cache)).sum::<u64>();
    vec![
        Cell::new(name),
        Cell::new(sum(|cache| cache.slabs).to_string()),
        Cell::new(bytes(sum(|cache| cache.out_bytes))),
        Cell::new(bytes(sum(|cache| cache.cached_bytes))),
        Cell::new(bytes(sum(|cache| cache.slab_free_bytes))),
        Cell::new(sum(|cache| cache.refills).to_string()),
        Cell::new(sum(|cache| cache.spills).to_string()),
        Cell::new(sum(|cache| cache.counts.sent_parcels).to_string()),
        Cell::new(sum(|cache| cache.counts.opened_parcels).to_string()),
    ]
}

/// A power of two as text: "4 Ki".
fn power(log2: u32) -> String {
    let units = ["", " Ki", " Mi", " Gi", " Ti"];
    let unit = usize::try_from(log2 / 10).unwrap_or(0).min(units.len() - 1);
    format!("{}{}", 1_u64 << (log2 % 10), units[unit])
}

/// How long slow paths took, with option debug_timing.
fn timings(figures: &Figures, form: Form) -> String {
    if figures.timings.is_empty() {
        return String::new();
    }
    let mut table = Table::default();
    table.text_column("slow path", 0);
    table.number_column("times", 0);
    table.number_column("cycles each", 0);
    table.number_column("half below", 0);
    table.number_column("99 % below", 0);
    table.number_column("all below", 1);
    for timing in &figures.timings {
        let average = timing.cycles as f64 / timing.count().max(1) as f64;
        table.row(vec![
            Cell::new(timing.name.replace('_', " ")),
            Cell::new(timing.count().to_string()),
            Cell::new(format!("{average:.0}")),
            Cell::new(power(timing.below(0.5))),
            Cell::new(power(timing.below(0.99))),
            Cell::new(power(timing.below(1.0))),
        ]);
    }
    table.render(form)
}

fn counters(figures: &Figures) -> String {
    let (counters, os) = (&figures.counters, &figures.counters.os);
    let mut lines = vec![
        format!(
            "since the start: {} slow calls, {} parcels with {} blocks sent, {} opened, {} slabs adopted",
            counters.slow_events,
            counters.caches.sent_parcels,
            counters.caches.sent_blocks,
            counters.caches.opened_parcels,
            counters.caches.adopted_slabs
        ),
        format!(
            "system calls: {} mmap, {} munmap, {} mremap, {} purges of {}, {} for huge pages, {} refused; \
             at most {} mapped",
            os.maps,
            os.unmaps,
            os.remaps,
            os.purges,
            bytes(os.purged_bytes),
            os.huge_advices,
            os.refused,
            bytes(counters.peak_mapped_bytes)
        ),
    ];
    if counters.failures > 0 {
        lines.push(format!(
            "allocations refused: {}; 'hakmem failures' says which, and why",
            counters.failures
        ));
    }
    lines.join("\n")
}
