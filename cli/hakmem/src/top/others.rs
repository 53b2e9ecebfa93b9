//! The words for a heap that is not hakmem's.

use super::table::{Cell, Rows, View, count, size};
use super::words::{Words, text, threads};
use super::{Look, Seen, Watched, signed};
use crate::doctor::{Moment, Visit, seen, words};
use hakmem_foreign::figures::Arena;
use hakmem_foreign::sizes::OfSize;
use hakmem_lab::render::Tone;
use hakmem_lab::render::number::{age, bytes, signed_bytes};
use ratatui::style::Color;

/// Longer looks are mentioned.
const LONG_S: f64 = 0.2;

/// Bytes in use, resident or not, including those in unknown caches.
pub fn live(moment: &Moment) -> u64 {
    let glibc = moment.glibc.iter();
    let glibc = glibc.map(|heap| heap.total.live_bytes + heap.mapped.bytes);
    let others = moment.others.iter().map(|heap| heap.live_bytes);
    glibc.chain(others).sum()
}

/// A figure of another allocator's heap.
fn of_moment(figure: impl Fn(&Moment) -> u64) -> impl Fn(&Look) -> u64 {
    move |look| match &look.seen {
        Seen::Others(moment) => figure(moment),
        Seen::Ours { .. } => 0,
    }
}

/// Changes per second.
pub struct Changes {
    pub live: f64,
    pub blocks: f64,
    pub free: f64,
    pub elsewhere: f64,
}

impl Changes {
    pub fn of(watched: &Watched) -> Changes {
        Changes {
            live: watched.change(of_moment(live)),
            blocks: watched.change(of_moment(|moment| moment.look().blocks())),
            free: watched.change(of_moment(|moment| moment.look().free())),
            elsewhere: watched.change(of_moment(elsewhere)),
        }
    }
}

/// Resident bytes outside of known heaps.
pub fn elsewhere(moment: &Moment) -> u64 {
    let ledger = &moment.ledger;
    ledger.kernel_bytes.saturating_sub(ledger.all_heap_bytes())
}

pub fn words(watched: &Watched, moment: &Moment) -> Words {
    let look = moment.look();
    let changes = Changes::of(watched);
    let took = watched.last.took.as_secs_f64();
    let unclear = moment.glibc.iter().map(|heap| heap.total.unclear_bytes);
    let unclear: u64 = unclear.sum();
    let mut off = Vec::new();
    if unclear > 0 {
        off.push(format!("±{}", bytes(unclear)));
    }
    if took > LONG_S {
        off.push(format!("reading takes {}", age(took)));
    }
    Words {
        allocator: watched.visit.as_ref().map_or_else(String::new, seen::name),
        off: (!off.is_empty()).then(|| off.join("  ")),
        figures: vec![
            format!("resident {}", bytes(watched.last.resident_bytes)),
            format!("in use {} in {} blocks", bytes(live(moment)), look.blocks()),
            format!("free {}", bytes(look.free())),
            threads(watched.last.threads),
        ],
        parts: parts(moment),
        live: format!("in use {}", bytes(live(moment))),
        third: ("free", bytes(look.free())),
        rates: vec![
            format!("per second: {} in use", signed_bytes(changes.live)),
            format!("{} blocks", signed(changes.blocks)),
            format!("{} free", signed_bytes(changes.free)),
            format!("{} elsewhere", signed_bytes(changes.elsewhere)),
        ],
        help: &[
            "       free  resident, and freed by the program",
            "      whole  free in whole pages or pieces: a trim gives it back",
            "     beside  on pages, or in pieces, with blocks in use",
            "  elsewhere  resident outside of the heap: files, stacks, mappings",
            "          ±  bytes that changed while the heap was read, or are damaged",
        ],
    }
}

/// Free bytes in whole pages or pieces.
fn whole(moment: &Moment) -> u64 {
    let glibc = moment.glibc.iter().map(|heap| heap.total.trim_bytes);
    let others = moment.others.iter().map(|heap| heap.resident.free_pieces);
    glibc.chain(others).sum()
}

fn cached(moment: &Moment) -> u64 {
    let glibc = moment.glibc.iter();
    glibc.map(|heap| heap.total.resident.cached).sum()
}

/// The parts of resident memory.
fn parts(moment: &Moment) -> [(&'static str, u64, Color); 5] {
    let look = moment.look();
    let (whole, cached) = (whole(moment), cached(moment));
    [
        ("in use", look.live(), Color::Green),
        ("cached", cached, Color::Yellow),
        (
            "beside",
            look.free().saturating_sub(whole + cached),
            Color::Blue,
        ),
        ("whole", whole, Color::Red),
        ("elsewhere", elsewhere(moment), Color::DarkGray),
    ]
}

/// One line: resident, in use, blocks, free, whole, cached, changes per second, elsewhere.
pub fn line(watched: &Watched, moment: &Moment) -> Vec<String> {
    let look = moment.look();
    let changes = Changes::of(watched);
    vec![
        bytes(watched.last.resident_bytes),
        bytes(live(moment)),
        look.blocks().to_string(),
        bytes(look.free()),
        bytes(whole(moment)),
        bytes(cached(moment)),
        signed_bytes(changes.live),
        signed(changes.blocks),
        bytes(elsewhere(moment)),
    ]
}

pub fn rows(view: View, watched: &Watched, moment: &Moment) -> Rows {
    match view {
        View::Classes => sizes(watched, moment),
        View::Caches => arenas(watched, moment),
        View::Policies => memory(watched),
    }
}

fn all_sizes(moment: &Moment) -> impl Iterator<Item = &OfSize> {
    let glibc = moment.glibc.iter().flat_map(|heap| &heap.live_sizes);
    let others = moment.others.iter().flat_map(|heap| &heap.live_sizes);
    glibc.chain(others)
}

fn more_bytes(value: f64) -> Cell {
    match value.abs() < 1.0 {
        true => change(value, "0".into()),
        false => change(value, signed_bytes(value)),
    }
}

fn change(value: f64, shown: String) -> Cell {
    Cell {
        text: shown,
        key: value,
    }
}

fn sizes(watched: &Watched, moment: &Moment) -> Rows {
    let all: u64 = all_sizes(moment).map(|size| size.bytes).sum();
    let rows = all_sizes(moment).map(|one| {
        let of = |figure: fn(&OfSize) -> u64| {
            let up_to = one.up_to_bytes;
            watched.change(of_moment(move |moment| {
                let same = all_sizes(moment).filter(|size| size.up_to_bytes == up_to);
                same.map(figure).sum()
            }))
        };
        let (blocks, more) = (of(|size| size.blocks), of(|size| size.bytes));
        let share = one.bytes as f64 * 100.0 / all.max(1) as f64;
        vec![
            size(one.up_to_bytes),
            count(one.blocks),
            size(one.bytes),
            change(share, format!("{share:.1} %")),
            change(blocks, signed(blocks)),
            more_bytes(more),
        ]
    });
    Rows {
        columns: vec![
            ("up to", "bytes of a block, with its header"),
            ("blocks", "that the program holds"),
            ("bytes", "in them"),
            ("share", "of all that it holds"),
            ("blocks/s", "change of their number per second"),
            ("bytes/s", "in these"),
        ],
        is_first_text: false,
        rows: rows.collect(),
    }
}

fn name(arena: &Arena) -> String {
    match (arena.is_main, arena.address) {
        (true, _) => "main".into(),
        (false, Some(address)) => format!("{address:#x}"),
        (false, None) => "unknown".into(),
    }
}

fn arenas(watched: &Watched, moment: &Moment) -> Rows {
    let glibc = moment.glibc.iter().flat_map(|heap| &heap.arenas);
    let glibc = glibc.map(|arena| {
        let (is_main, address) = (arena.is_main, arena.address);
        let of = of_moment(move |moment| {
            let arenas = moment.glibc.iter().flat_map(|heap| &heap.arenas);
            let mut same = arenas.filter(|one| (one.is_main, one.address) == (is_main, address));
            same.next().map_or(0, |one| one.live_bytes)
        });
        let more = watched.change(of);
        vec![
            text(name(arena)),
            size(arena.resident.sum()),
            size(arena.live_bytes),
            size(arena.resident.free()),
            size(arena.trim_bytes),
            arena.threads.map_or_else(|| text("-"), count),
            more_bytes(more),
        ]
    });
    let others = moment.others.iter().map(|heap| {
        let allocator = heap.allocator.clone();
        let of = of_moment(move |moment| {
            let mut same = moment.others.iter();
            let same = same.find(|one| one.allocator == allocator);
            same.map_or(0, |one| one.live_bytes)
        });
        let more = watched.change(of);
        vec![
            text(format!("{}, {} arenas", heap.allocator, heap.arenas)),
            size(heap.resident.sum()),
            size(heap.live_bytes),
            size(heap.resident.free()),
            size(heap.resident.free_pieces),
            text("-"),
            more_bytes(more),
        ]
    });
    Rows {
        columns: vec![
            ("arena", "its address, or a whole allocator"),
            ("resident", "of it"),
            ("in use", "by the program, resident or not"),
            ("free", "and resident"),
            ("whole", "free in whole pages or pieces"),
            ("threads", "that use it"),
            ("in use/s", "change per second"),
        ],
        is_first_text: true,
        rows: glibc.chain(others).collect(),
    }
}

fn memory(watched: &Watched) -> Rows {
    let lines = watched.visit.as_ref().map(words::explained);
    let all = watched.visit.as_ref().map_or(1, kernel_bytes);
    let rows = lines.unwrap_or_default().into_iter();
    let rows = rows.filter(|(_, tone)| *tone != Tone::Strong);
    let rows = rows.map(|((name, bytes, note), _)| {
        let share = bytes as f64 * 100.0 / all.max(1) as f64;
        vec![
            text(name),
            size(bytes),
            change(share, format!("{share:.1} %")),
            text(note),
        ]
    });
    Rows {
        columns: vec![
            ("resident memory", "what it is"),
            ("bytes", "of it"),
            ("share", "of all that is resident"),
            ("", ""),
        ],
        is_first_text: true,
        rows: rows.collect(),
    }
}

fn kernel_bytes(visit: &Visit) -> u64 {
    visit.now.ledger.kernel_bytes
}
