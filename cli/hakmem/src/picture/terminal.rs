//! The heap in characters: a line for each superslab, one character for each unit.

use super::{Cell, Kind, cells, kind_of, live_share};
use hakmem_heap::heap::Heap;
use hakmem_lab::render::{Form, memory};

/// How much of a slab is live, from nearly nothing to all.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn colour(cell: Cell, heap: &Heap) -> &'static str {
    match cell {
        Cell::Free => "2",
        Cell::Dirty => "31",
        Cell::Large => "35",
        Cell::Kept => "33",
        Cell::Slab { class, .. } => match kind_of(heap.classes[class].bytes) {
            Kind::Tiny => "32",
            Kind::Small => "36",
            Kind::Mid => "34",
        },
    }
}

fn character(cell: Cell) -> char {
    match cell {
        Cell::Free => '·',
        Cell::Dirty => '░',
        Cell::Large => '▓',
        Cell::Kept => '▒',
        Cell::Slab { live, .. } => LEVELS[((live * 8.0) as usize).min(7)],
    }
}

/// Colour only where it changes: half of the characters, otherwise, would be escapes.
fn painted(cells: &[Cell], heap: &Heap, form: Form) -> String {
    let has_colour = matches!(form, Form::Text { colour: true, .. });
    let mut text = String::new();
    let mut last = "";
    for cell in cells {
        let code = colour(*cell, heap);
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

fn legend(form: Form) -> String {
    let painted = |text: &str, code: &str| match form {
        Form::Text { colour: true, .. } => format!("\x1b[{code}m{text}\x1b[0m"),
        _ => text.to_string(),
    };
    format!(
        "a line: a superslab of 4 MiB; a character: 64 KiB of it\n\
         {} slabs of blocks to 128 B, {} to 1 KiB, {} to 32 KiB, by how much of them is live\n\
         {} large block   {} large, free and kept   {} free, waits to be given back   {} free",
        painted("▁▄█", "32"),
        painted("▁▄█", "36"),
        painted("▁▄█", "34"),
        painted("▓", "35"),
        painted("▒", "33"),
        painted("░", "31"),
        painted("·", "2"),
    )
}

/// At most `lines` superslabs; the fullest are no better than others, so the first by address.
pub fn draw(heap: &Heap, form: Form, lines: usize) -> String {
    let mut text = legend(form) + "\n\n";
    let Some(first) = heap.supers.iter().find(|one| !one.is_lone) else {
        return text + "nothing was allocated so far\n";
    };
    text.push_str(&format!("  from {:#x}\n", first.base));
    let mut previous = first.base;
    for superslab in heap.supers.iter().filter(|one| !one.is_lone).take(lines) {
        if superslab.base - previous > superslab.bytes {
            text.push_str(&form.toned("        ┄\n", hakmem_lab::render::Tone::Faint));
        }
        previous = superslab.base;
        let cells = cells(heap, superslab);
        text.push_str(&format!(
            "{:>6} {}{:>4.0} %{}\n",
            format!("+{}M", (superslab.base - first.base) >> 20),
            painted(&cells, heap, form),
            live_share(&cells) * 100.0,
            if superslab.is_huge { " H" } else { "" },
        ));
    }
    let superslabs = heap.supers.iter().filter(|one| !one.is_lone).count();
    if superslabs > lines {
        text.push_str(&format!(
            "        … {} more: --all, --svg or --html\n",
            superslabs - lines
        ));
    }
    if heap.supers.iter().any(|one| one.is_huge) {
        text.push_str("     H: asked for huge pages\n");
    }
    for lone in heap.supers.iter().filter(|one| one.is_lone).take(lines) {
        let bytes = memory(lone.bytes as f64 / 1024.0);
        text.push_str(&format!(
            "  {bytes} at {:#x}: one block in a mapping of its own\n",
            lone.base
        ));
    }
    text
}
