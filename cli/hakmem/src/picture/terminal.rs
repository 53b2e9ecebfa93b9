//! Draws the heap with characters: a line for each superslab, a character for each unit.

use super::{Cell, Shade, View, cells, live_share};
use hakmem_lab::render::number::age;
use hakmem_lab::render::text::{UNLIMITED, in_lines};
use hakmem_lab::render::{Form, memory};

/// The share of a slab that is live, from almost none to all.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn character(cell: Cell) -> char {
    match cell {
        Cell::Free => '·',
        Cell::Dirty => '░',
        Cell::Large { .. } => '▓',
        Cell::Kept => '▒',
        Cell::Metadata => '•',
        Cell::Slab { live, .. } => LEVELS[((live * 8.0) as usize).min(7)],
    }
}

/// Sets the colour only where it changes: otherwise, half of the characters would be escapes.
fn painted(cells: &[Cell], view: &View, form: Form) -> String {
    let has_colour = matches!(form, Form::Text { colour: true, .. });
    let mut text = String::new();
    let mut last = "";
    for cell in cells {
        let code = view.shade(*cell).code;
        if has_colour && code != last {
            text.push_str(&format!("\x1b[0;{code}m"));
            last = code;
        }
        text.push(character(*cell));
    }
    if has_colour {
        text.push_str("\x1b[0m");
    }
    text
}

fn legend(view: &View, form: Form) -> String {
    let painted = |text: &str, shade: &Shade| match form {
        Form::Text { colour: true, .. } => format!("\x1b[{}m{text}\x1b[0m", shade.code),
        _ => text.to_string(),
    };
    // Without colours, ages and owners cannot be shown here; --html and --svg tell them for each slab.
    let slabs: Vec<String> = view
        .slab_legend()
        .iter()
        .map(|(shade, text)| format!("{} {text}", painted("▁▄█", shade)))
        .collect();
    let others: Vec<String> = view
        .other_legend()
        .into_iter()
        .map(|(cell, text)| {
            let mark = character(cell).to_string();
            format!("{} {text}", painted(&mark, &view.shade(cell)))
        })
        .collect();
    let width = form.width().unwrap_or(UNLIMITED);
    format!(
        "a line: a superslab of 4 MiB; a character: 64 KiB, which shows how much of the slab is live\n{}\n{}",
        in_lines(&slabs, width),
        in_lines(&others, width),
    )
}

/// The width beside a line's characters, for the superslab's address and its live share.
const MARGIN: usize = 7;
const FIGURES: usize = 16;

/// How many units to show per line: all of a superslab's, or as many as fit.
fn columns(form: Form, cells: usize) -> usize {
    let Some(width) = form.width() else {
        return cells;
    };
    let mut columns = cells;
    while columns > 8 && MARGIN + columns + FIGURES > width {
        columns = columns.div_ceil(2);
    }
    columns
}

/// Do figures fit beside so many characters?
fn has_figures(form: Form, columns: usize) -> bool {
    form.width()
        .is_none_or(|width| MARGIN + columns + FIGURES <= width)
}

/// Draws at most `lines` superslabs, and as many mappings of large blocks.
pub fn draw(view: &View, form: Form, lines: usize) -> String {
    let text = legend(view, form) + "\n\n";
    if view.heap.supers.is_empty() {
        return text + "nothing was allocated so far\n";
    }
    text + &superslabs(view, form, lines) + &mappings(view, lines)
}

/// Fuller ones are not more interesting, so shows the first ones by address.
fn superslabs(view: &View, form: Form, lines: usize) -> String {
    let heap = view.heap;
    let mut text = String::new();
    let Some(first) = heap.supers.iter().find(|one| !one.is_mapping) else {
        return text;
    };
    let columns = columns(form, cells(heap, first).len());
    let has_figures = has_figures(form, columns);
    let from = format!("  from {:#x}", first.base);
    match (MARGIN + columns + 6).checked_sub(from.len() + "live".len()) {
        Some(gap) if has_figures => text.push_str(&format!("{from}{}live  age\n", " ".repeat(gap))),
        _ => text.push_str(&(from + "\n")),
    }
    let mut previous = first.base;
    for superslab in heap.supers.iter().filter(|one| !one.is_mapping).take(lines) {
        if superslab.base - previous > superslab.bytes {
            text.push_str(&form.toned("        ┄\n", hakmem_lab::render::Tone::Faint));
        }
        previous = superslab.base;
        let cells = cells(heap, superslab);
        let mut rows = cells.chunks(columns);
        let first_row = rows.next().unwrap_or_default();
        let figures = format!(
            "{:>4.0} % {:>7}{}",
            live_share(&cells) * 100.0,
            age(view.age(superslab.mapped_at)),
            match superslab.huge_pages() {
                0 => "",
                1 => " h",
                _ => " H",
            },
        );
        text.push_str(&format!(
            "{:>6} {}{}\n",
            format!("+{}M", (superslab.base - first.base) >> 20),
            painted(first_row, view, form),
            if has_figures { &figures } else { "" },
        ));
        for row in rows {
            let margin = " ".repeat(MARGIN);
            text.push_str(&format!("{margin}{}\n", painted(row, view, form)));
        }
    }
    let count = heap.supers.iter().filter(|one| !one.is_mapping).count();
    if count > lines {
        text.push_str(&format!(
            "        … {} more: --all, --svg or --html\n",
            count - lines
        ));
    }
    if heap.supers.iter().any(|one| one.huge_pages() != 0) {
        text.push_str("     H: huge pages were requested; h: for one half\n");
    }
    text
}

fn mappings(view: &View, lines: usize) -> String {
    let mut text = String::new();
    let mappings = || view.heap.supers.iter().filter(|one| one.is_mapping);
    for mapping in mappings().take(lines) {
        let bytes = memory(mapping.bytes as f64 / 1024.0);
        text.push_str(&format!(
            "  {bytes} at {:#x}: one block in a mapping of its own, {} old\n",
            mapping.base,
            age(view.age(mapping.mapped_at))
        ));
    }
    let count = mappings().count();
    if count > lines {
        text.push_str(&format!("  … {} more: --all or --html\n", count - lines));
    }
    text
}
