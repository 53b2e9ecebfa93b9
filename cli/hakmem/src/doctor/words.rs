//! A visit in words: first the answer, then what resident memory consists of, then what to do.

use super::which::Used;
use super::{Visit, sentences};
use crate::holds::{Row, others, ours};
use hakmem_foreign::figures::{Arena, Figures};
use hakmem_foreign::pieces;
use hakmem_foreign::sizes::OfSize;
use hakmem_lab::render::number::{bytes, duration, grouped};
use hakmem_lab::render::{Cell, Form, Table, Tone};

/// How many arenas, and how many sizes, to show.
const ARENAS: usize = 6;
const SIZES: usize = 6;

pub fn text(visit: &Visit, form: Form) -> String {
    let mut lines = vec![form.strong(&visit.title), uses(visit)];
    lines.push(String::new());
    let answer = sentences::answer(visit);
    lines.push(form.strong(&answer.verdict));
    lines.extend(answer.evidence.iter().map(|line| format!("- {line}")));
    lines.push(String::new());
    lines.push(resident(visit, form));
    lines.extend(besides(visit));
    for (_, table) in tables(visit) {
        lines.push(String::new());
        lines.push(table.render(form));
    }
    lines.push(String::new());
    lines.push(form.strong("What to do"));
    lines.extend(numbered(&answer.advice));
    lines.push(String::new());
    lines.push(form.strong("What is not known"));
    lines.extend(answer.unknown.iter().map(|line| format!("- {line}")));
    lines.push(String::new());
    lines.push(form.toned(&how_it_was_read(visit), Tone::Faint));
    lines.join("\n") + "\n"
}

/// The heaps' totals according to their allocators, resident or not.
pub fn totals(visit: &Visit) -> Table {
    let mut table = Table::default();
    table.text_column("memory", 0);
    table.number_column("bytes", 0);
    table.number_column("blocks", 0);
    let mut row = |name: &str, count: u64, blocks: Option<u64>| {
        table.row(vec![
            Cell::new(name),
            Cell::new(bytes(count)),
            Cell::new(blocks.map_or("-".into(), grouped)),
        ]);
    };
    if let Some(figures) = &visit.now.glibc {
        let total = &figures.total;
        row("in use", total.live_bytes, Some(total.live_blocks));
        let mapped = &figures.mapped;
        row("in use, large", mapped.bytes, Some(mapped.blocks));
        row("free, in bins", total.free_bytes, Some(total.free_blocks));
        row(
            "free, in fast bins",
            total.fast_bytes,
            Some(total.fast_blocks),
        );
        row(
            "free, in caches",
            total.cached_bytes,
            Some(total.cached_blocks),
        );
        row("free, ends of arenas", total.top_bytes, None);
        row("glibc's own", total.own_bytes, None);
        row("unclear", total.unclear_bytes, None);
        row("all of glibc's", total.bytes + mapped.bytes, None);
    }
    for figures in &visit.now.others {
        row("in use", figures.live_bytes, Some(figures.live_blocks));
        row("free, beside blocks", figures.free_beside_bytes, None);
        row("free, whole pieces", figures.free_bytes, None);
        row(
            &format!("{}'s own", figures.allocator),
            figures.own_bytes,
            None,
        );
        row(
            &format!("all of {}'s", figures.allocator),
            figures.bytes,
            None,
        );
    }
    table
}

/// Tables of arenas and sizes, each with a title.
pub fn tables(visit: &Visit) -> Vec<(String, Table)> {
    let mut found = Vec::new();
    if let Some(figures) = &visit.now.glibc {
        found.extend(arenas(figures).map(|table| ("Arenas".to_string(), table)));
        let table = sizes("blocks in use, with headers", &figures.live_sizes);
        found.push(("Sizes of blocks in glibc's heap".to_string(), table));
    }
    for figures in &visit.now.others {
        let title = format!("Sizes of blocks in {}'s heap", figures.allocator);
        let heading = match visit.now.ledger.hakmem_bytes {
            0 => "blocks in use".to_string(),
            _ => format!("blocks in {}'s heap", figures.allocator),
        };
        found.push((title, sizes(&heading, &figures.live_sizes)));
    }
    found
}

fn numbered(lines: &[String]) -> impl Iterator<Item = String> {
    let lines = lines.iter().enumerate();
    lines.map(|(index, line)| format!("{}. {line}", index + 1))
}

/// "malloc is glibc 2.36 (/lib/…/libc.so.6)"
pub fn uses(visit: &Visit) -> String {
    let name = |used: &Used| format!("{} ({})", used.name(), used.path);
    let lines = visit.allocators.iter().map(|used| match used.is_malloc {
        true => format!("malloc is {}", name(used)),
        false => format!("inside, for a part of the program: {}", name(used)),
    });
    let mut lines: Vec<String> = lines.collect();
    if lines.is_empty() && visit.now.glibc.is_some() {
        lines.push("malloc is glibc's, judging by its heap".into());
    }
    let heaps = visit.now.others.iter().map(|heap| {
        let (allocator, releases) = (&heap.allocator, &heap.releases);
        format!("there is a heap of {allocator}, judging by its layout of release {releases}")
    });
    lines.extend(heaps);
    if lines.is_empty() {
        lines.push("no allocator was recognised".into());
    }
    lines.extend(visit.part.clone());
    lines.join("\n")
}

/// A line of the table: like `Row`, with words made for it.
pub type Line = (String, u64, String);

/// The table of resident memory.
pub fn resident(visit: &Visit, form: Form) -> String {
    let mut table = Table::default();
    let title = match visit.is_core {
        false => "resident memory",
        true => "in the dump",
    };
    table.text_column(title, 0);
    table.number_column("bytes", 0);
    table.number_column("share", 0);
    table.text_column("", 1);
    let all = visit.now.ledger.kernel_bytes.max(1) as f64;
    for ((name, count, note), tone) in rows(visit) {
        table.row(vec![
            Cell::toned(name, tone),
            Cell::toned(bytes(count), tone),
            Cell::toned(format!("{:.1} %", count as f64 * 100.0 / all), tone),
            Cell::toned(note, Tone::Faint),
        ]);
    }
    table.render(form)
}

fn fixed((name, count, note): Row) -> Line {
    (name.to_string(), count, note.to_string())
}

fn sum(name: &str, count: u64, note: &str) -> (Line, Tone) {
    ((name.into(), count, note.into()), Tone::Strong)
}

fn plain(lines: Vec<Line>) -> impl Iterator<Item = (Line, Tone)> {
    let lines = lines.into_iter().filter(|line| line.1 > 0);
    lines.map(|line| (line, Tone::Plain))
}

/// All rows that are not zero, with sums in between.
pub fn rows(visit: &Visit) -> Vec<(Line, Tone)> {
    let mut rows = explained(visit);
    let remainder = visit.remainder();
    let (name, note) = match remainder {
        0.. => ("unexplained", "became resident while this was read"),
        _ => (
            "less unexplained",
            "only reads as zero, or was purged meanwhile",
        ),
    };
    rows.extend(plain(vec![fixed((name, remainder.unsigned_abs(), note))]));
    let name = match visit.is_core {
        false => "the kernel's figure",
        true => "all that the dump has",
    };
    rows.push(sum(
        name,
        visit.now.ledger.kernel_bytes,
        "the sum of the above",
    ));
    rows
}

/// The same, without the kernel's figure and the difference to it.
pub fn explained(visit: &Visit) -> Vec<(Line, Tone)> {
    let ledger = &visit.now.ledger;
    let mut rows = Vec::new();
    if let Some(account) = &visit.now.hakmem {
        rows.extend(plain(ours(&account.resident).map(fixed).to_vec()));
        rows.push(sum("hakmem", account.resident.ours(), ""));
        rows.extend(plain(others(&account.resident).map(fixed).collect()));
    } else {
        if ledger.hakmem_bytes > 0 {
            rows.push(sum("hakmem's heap", ledger.hakmem_bytes, ""));
        }
        if let Some(figures) = &visit.now.glibc {
            rows.extend(plain(of_glibc(figures)));
            let all = ledger.heap_bytes + ledger.mapped_block_bytes;
            rows.push(sum("glibc's heap", all, ""));
        }
        for figures in &visit.now.others {
            rows.extend(plain(of_pieces(figures)));
            let name = format!("{}'s heap", figures.allocator);
            rows.push(sum(&name, figures.resident.sum(), ""));
        }
        rows.extend(plain(elsewhere(visit).map(fixed).to_vec()));
    }
    rows
}

fn of_glibc(figures: &Figures) -> Vec<Line> {
    let total = &figures.total;
    let resident = &total.resident;
    let row = |name: &str, count: u64, note: String| (name.to_string(), count, note);
    let blocks = grouped(total.live_blocks);
    let arenas = match figures.arenas.len() {
        1 => "1 arena".into(),
        count => format!("{count} arenas"),
    };
    let tops = resident.top - resident.top_to_trim;
    vec![
        row(
            "blocks in use",
            resident.live,
            format!("{blocks} in {arenas}"),
        ),
        row(
            "large blocks in use",
            figures.mapped.resident_bytes,
            format!(
                "{} with mappings of their own",
                grouped(figures.mapped.blocks)
            ),
        ),
        row(
            "free, whole pages",
            total.trim_bytes,
            "malloc_trim(0) gives them back".into(),
        ),
        row(
            "free, beside blocks",
            resident.free_beside,
            "on pages with blocks in use".into(),
        ),
        row(
            "free, ends of arenas",
            tops,
            "which no trim gives back".into(),
        ),
        row(
            "free, in caches",
            resident.cached,
            format!("{} of threads", grouped(figures.caches)),
        ),
        row("glibc's own", resident.own, String::new()),
        row(
            "unclear",
            resident.unclear,
            "inconsistent: changed, or damaged".into(),
        ),
    ]
}

/// The parts of another allocator's heap.
fn of_pieces(figures: &pieces::Figures) -> Vec<Line> {
    let resident = &figures.resident;
    let row = |name: &str, count: u64, note: String| (name.to_string(), count, note);
    let arenas = match figures.arenas {
        0 => String::new(),
        1 => " in 1 arena".into(),
        count => format!(" in {} arenas", grouped(count)),
    };
    vec![
        row(
            "blocks in use",
            resident.live,
            format!("{}{arenas}", grouped(figures.live_blocks)),
        ),
        row(
            "free, whole pieces",
            resident.free_pieces,
            "kept for a while, or purged lazily".into(),
        ),
        row(
            "free, beside blocks",
            resident.free_beside,
            "in pieces with blocks in use".into(),
        ),
        row(
            &format!("{}'s own", figures.allocator),
            resident.own,
            String::new(),
        ),
    ]
}

fn elsewhere(visit: &Visit) -> [Row; 6] {
    let others = &visit.now.ledger.others;
    let mapped_by = match visit.foreign() {
        None => "the program or a library itself",
        Some(_) => "the allocator, the program, libraries",
    };
    [
        ("mapped by others", others.mapped, mapped_by),
        (
            "grown by others",
            others.by_break,
            "by the break (sbrk), but by no known malloc",
        ),
        ("stacks", others.stacks, ""),
        (
            "data of files",
            others.file_copies,
            "written to since it was mapped",
        ),
        (
            "pages of files",
            others.file_pages,
            "code and data as on disk: page cache",
        ),
        (
            "shared memory",
            others.shared,
            "other processes may have it, too",
        ),
    ]
}

pub fn besides(visit: &Visit) -> Vec<String> {
    let ledger = &visit.now.ledger;
    let rows = [
        (ledger.huge_bytes, "of it in huge pages"),
        (
            ledger.lazily_freed_bytes,
            "of it freed lazily: the kernel takes it when it needs memory",
        ),
        (ledger.swapped_bytes, "swapped out, which is not resident"),
    ];
    let rows = rows.into_iter().filter(|(count, _)| *count > 0);
    rows.map(|(count, what)| format!("besides: {} {what}", bytes(count)))
        .collect()
}

/// The arenas with most free memory, if there are several.
fn arenas(figures: &Figures) -> Option<Table> {
    if figures.arenas.len() < 2 {
        return None;
    }
    let mut sorted: Vec<&Arena> = figures.arenas.iter().collect();
    sorted.sort_by_key(|arena| std::cmp::Reverse(arena.resident.sum()));
    let mut table = Table::default();
    table.text_column("arena", 0);
    for title in ["resident", "in use", "free", "to trim", "threads"] {
        table.number_column(title, u8::from(title == "threads"));
    }
    let row = |table: &mut Table, name: String, arena: &Arena, tone: Tone| {
        let cell = |count: u64| Cell::toned(bytes(count), tone);
        let threads = arena.threads.map_or("-".into(), grouped);
        table.row(vec![
            Cell::toned(name, tone),
            cell(arena.resident.sum()),
            cell(arena.resident.live),
            cell(arena.resident.free()),
            cell(arena.trim_bytes),
            Cell::toned(threads, tone),
        ]);
    };
    for arena in sorted.iter().take(ARENAS) {
        let name = match (arena.is_main, arena.address) {
            (true, _) => "main".into(),
            (false, Some(address)) => format!("{address:#x}"),
            (false, None) => "unknown".into(),
        };
        row(&mut table, name, arena, Tone::Plain);
    }
    let rest = sorted.len().saturating_sub(ARENAS);
    let name = match rest {
        0 => "all".to_string(),
        _ => format!("all {}", sorted.len()),
    };
    row(&mut table, name, &figures.total, Tone::Strong);
    Some(table)
}

/// The sizes with the most bytes, in use and on nearly free pages.
fn sizes(title: &str, of_size: &[OfSize]) -> Table {
    let mut sorted: Vec<&OfSize> = of_size.iter().collect();
    sorted.sort_by_key(|size| std::cmp::Reverse(size.bytes));
    let mut table = Table::default();
    table.text_column(title, 0);
    table.number_column("blocks", 0);
    table.number_column("bytes", 0);
    table.number_column("share", 0);
    let all: u64 = sorted.iter().map(|size| size.bytes).sum();
    for size in sorted.iter().take(SIZES) {
        let up_to = match size.up_to_bytes {
            exact @ ..=1024 => format!("{exact} B"),
            above => format!("up to {}", bytes(above)),
        };
        table.row(vec![
            Cell::new(up_to),
            Cell::new(grouped(size.blocks)),
            Cell::new(bytes(size.bytes)),
            Cell::new(format!(
                "{:.1} %",
                size.bytes as f64 * 100.0 / all.max(1) as f64
            )),
        ]);
    }
    table
}

pub fn how_it_was_read(visit: &Visit) -> String {
    let took = duration(visit.read_ms / 1e3);
    if visit.is_core {
        return format!("read in {took}; which pages were resident is not in a core dump");
    }
    let unclear = visit
        .now
        .glibc
        .as_ref()
        .map_or(0, |figures| figures.total.unclear_bytes);
    let off = match unclear {
        0 => String::new(),
        count => format!("; ± {}, which changed or is damaged", bytes(count)),
    };
    format!("read in {took} while it ran; it was not stopped{off}")
}
