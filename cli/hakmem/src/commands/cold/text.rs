//! Cold memory as text.

use super::rows::{Site, Size};
use super::{Allocator, Figures, Report};
use crate::frames::Folded;
use crate::profile::ROWS;
use hakmem_heap::cold::How;
use hakmem_heap::idle::Without;
use hakmem_lab::render::number::{age, bytes, counted, duration, grouped};
use hakmem_lab::render::{Cell, Form, Table, Tone};

/// How many sizes a table shows; further ones are summed up in one line.
const SIZES: usize = 12;
/// On a narrower screen, names need the space more than live bytes.
const WIDE: usize = 100;

pub fn text(report: &Report, folded: &Folded, form: Form) -> String {
    let mut parts = vec![format!(
        "{}\n{}",
        form.strong(&report.title),
        meaning(&report.how)
    )];
    if report.total.live_bytes == 0 {
        parts.push("the program holds no blocks".into());
        return parts.join("\n\n") + "\n";
    }
    parts.push(totals(report, form));
    parts.extend(referenced(&report.how));
    parts.push(sites(report, folded, form));
    parts.push(sizes(report, form));
    parts.push(form.toned(&how(&report.how), Tone::Faint));
    parts.join("\n\n") + "\n"
}

/// The meaning of "cold" in this result.
fn meaning(how: &How) -> String {
    let time = age(how.seconds);
    let why = match how.without_idle_bits {
        None => {
            return format!(
                "cold: neither read nor written for {time}, by the kernel's idle page bits"
            );
        }
        Some(Without::NotInKernel) => {
            "this kernel has no idle page bits (CONFIG_IDLE_PAGE_TRACKING)"
        }
        Some(Without::NotAllowed) => "the kernel's idle page bits are for root",
    };
    format!("cold: not written for {time}; what was only read is cold as well, as {why}")
}

fn totals(report: &Report, form: Form) -> String {
    let total = &report.total;
    let mut table = Table::default();
    table.text_column("the program's blocks", 0);
    table.number_column("bytes", 0);
    table.number_column("", 2);
    table.number_column("of resident", 1);
    table.number_column("a month", 1);
    let resident = total.resident_bytes.max(1) as f64;
    let mut add = |name: &str, count: u64, off: String, price: Option<f64>| {
        table.row(vec![
            Cell::new(name),
            Cell::new(bytes(count)),
            Cell::toned(off, Tone::Faint),
            Cell::new(format!("{:.1} %", 100.0 * count as f64 / resident)),
            Cell::new(money(price)),
        ]);
    };
    let price = report.price_of_a_gib;
    let of_resident = price.map(|price| price * resident / f64::from(1 << 30));
    add("resident", total.resident_bytes, String::new(), of_resident);
    add("cold", total.cold_bytes, off(total), total.price);
    add("  of that beside", total.beside_bytes, String::new(), None);
    add("zero", total.zero_bytes, String::new(), None);
    let legend = format!(
        "of {} that are live. beside: cold, but on pages that something else uses; zero: nothing \
         but zeros, cold or not",
        bytes(total.live_bytes)
    );
    format!("{}\n\n{legend}", table.render(form))
}

fn money(price: Option<f64>) -> String {
    price.map_or(String::new(), |price| format!("{price:.2}"))
}

fn off(figures: &Figures) -> String {
    match (figures.cold_bytes, figures.cold_off_bytes) {
        (0, _) | (_, 0) => String::new(),
        (cold, off) => format!("± {:.0} %", (100.0 * off as f64 / cold as f64).min(999.0)),
    }
}

fn referenced(how: &How) -> Option<String> {
    let found = how.referenced?;
    let rest = found.resident_bytes.saturating_sub(found.referenced_bytes);
    Some(format!(
        "read or written, as the kernel says: {} of {} that are resident in the heap's mappings; {} were not",
        bytes(found.referenced_bytes),
        bytes(found.resident_bytes),
        bytes(rest)
    ))
}

/// The first columns of the tables of sites and sizes.
fn table_of_figures() -> Table {
    let mut table = Table::default();
    table.number_column("cold", 0);
    table.number_column("", 4);
    table.number_column("a month", 1);
    table.number_column("beside", 2);
    table.number_column("zero", 2);
    table
}

fn cells_of(figures: &Figures) -> Vec<Cell> {
    vec![
        Cell::new(bytes(figures.cold_bytes)),
        Cell::toned(off(figures), Tone::Faint),
        Cell::new(money(figures.price)),
        Cell::new(bytes(figures.beside_bytes)),
        Cell::new(bytes(figures.zero_bytes)),
    ]
}

fn sites(report: &Report, folded: &Folded, form: Form) -> String {
    if report.sites.is_empty() {
        return match report.allocator {
            Allocator::Hakmem => {
                "by call site: nothing is known, as none of these blocks was sampled. Sampling has to be on while they \
                 are allocated: HAKMEM_SAMPLE_BYTES=524288, or 'hakmem profile'"
            }
            Allocator::Glibc => {
                "by call site: nothing is known, as glibc does not record who allocates a block. \
                 For call sites, start the program with 'HAKMEM_SAMPLE_BYTES=524288 hakmem run'"
            }
        }
        .into();
    }
    let live: u64 = report
        .sites
        .iter()
        .map(|site| site.figures.live_bytes)
        .sum();
    let stand_for = bytes(live);
    let mut table = table_of_figures();
    table.number_column("live", 3);
    table.number_column("blocks of", 5);
    table.text_column("allocated by", 0);
    let is_wide = form.width().is_none_or(|width| width >= WIDE);
    let live_of = |figures: &Figures| match is_wide {
        true => bytes(figures.live_bytes),
        false => String::new(),
    };
    let shown = &report.sites[..report.sites.len().min(ROWS)];
    let stacks: Vec<&[String]> = shown.iter().map(|site| site.frames.as_slice()).collect();
    for (site, place) in shown.iter().zip(folded.places(&stacks)) {
        let figures = &site.figures;
        let mut cells = cells_of(figures);
        cells.extend([
            Cell::new(live_of(figures)),
            Cell::new(blocks_of(site)),
            Cell::fitting(place),
        ]);
        table.row(cells);
    }
    let more = match report.sites.len().saturating_sub(ROWS) {
        0 => String::new(),
        more => format!("\nand {}", counted(more as u64, "more place")),
    };
    format!(
        "by call site, from samples that stand for {stand_for}:\n\n{}{more}",
        table.render(form)
    )
}

/// "48 B", "48 B to 5.00 KiB"
fn blocks_of(site: &Site) -> String {
    let sizes = site.sizes.iter().map(|size| size.block_bytes);
    match (sizes.clone().min(), sizes.max()) {
        (Some(least), Some(most)) if least < most => {
            format!("{} to {}", bytes(least), bytes(most))
        }
        (_, most) => bytes(most.unwrap_or(0)),
    }
}

fn sizes(report: &Report, form: Form) -> String {
    let mut table = table_of_figures();
    table.number_column("resident", 3);
    table.number_column("live", 3);
    table.text_column("in blocks of", 0);
    for size in report.sizes.iter().take(SIZES) {
        let figures = &size.figures;
        let mut cells = cells_of(figures);
        cells.extend([
            Cell::new(bytes(figures.resident_bytes)),
            Cell::new(bytes(figures.live_bytes)),
            Cell::new(name(size, report.allocator)),
        ]);
        table.row(cells);
    }
    let more = match report.sizes.len().saturating_sub(SIZES) {
        0 => String::new(),
        more => format!("\nand {more} more sizes"),
    };
    format!("by size, of all blocks:\n\n{}{more}", table.render(form))
}

fn name(size: &Size, allocator: Allocator) -> String {
    match (size.block_bytes, allocator) {
        (0, Allocator::Hakmem) => "above 32 KiB".into(),
        (0, Allocator::Glibc) => "mappings of their own".into(),
        (block_bytes, Allocator::Glibc) if block_bytes > 1024 => {
            format!("up to {}", bytes(block_bytes.next_multiple_of(16)))
        }
        (block_bytes, _) => bytes(block_bytes),
    }
}

/// How the looks were made, and what that costs the process.
fn how(how: &How) -> String {
    let pages = |looked_at: u64, all: u64| match looked_at < all {
        true => format!("{} of {}", grouped(looked_at), grouped(all)),
        false => format!("all {}", grouped(all)),
    };
    let mut text = format!(
        "{} resident pages with live blocks were read twice",
        pages(how.pages_looked_at, how.pages)
    );
    if how.sampled_pages > 0 {
        let sampled = pages(how.sampled_pages_looked_at, how.sampled_pages);
        text += &format!(", and {sampled} with sampled ones");
    }
    if how.pages_unclear > 0 {
        text += &format!(
            " ({} changed too much to tell what they hold, and are not counted)",
            grouped(how.pages_unclear)
        );
    }
    text += &format!(
        ", in {}; the process was not stopped",
        duration(how.read_ms / 1e3)
    );
    if how.without_idle_bits.is_none() {
        text +=
            ". They were marked as idle: the next use of each sets a bit in its page table again";
    }
    match how.referenced {
        Some(found) => {
            text += &format!(
                ". The accessed bits of all its pages were cleared, in {}, for which its page faults and mmap may have \
                 waited; the next use of each page sets its bit again",
                duration(found.clear_ms / 1e3)
            );
        }
        None if how.without_idle_bits.is_some() => {
            text += " and nothing in it changed; --referenced asks the kernel how much was read or written";
        }
        None => {}
    }
    text
}
