//! Draws another allocator's heap with characters, one per cell.

use hakmem_foreign::map::{Cell, Map};
use hakmem_lab::render::Form;
use hakmem_lab::render::number::bytes;
use hakmem_lab::render::text::{UNLIMITED, in_lines};

/// The share of resident bytes that is in use, from almost none to all.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const LEGEND: [&str; 4] = [
    "▁▄█ in use",
    "▒ the allocator's own",
    "░ free, and resident",
    "· not resident",
];
const COLUMNS: usize = 64;
/// The width of the text before a line's characters.
const MARGIN: usize = 9;

fn character(cell: &Cell) -> char {
    match cell {
        Cell { resident: 0, .. } => '·',
        Cell { resident, own, .. } if own * 2 > *resident => '▒',
        Cell { live: 0, .. } => '░',
        Cell { resident, live, .. } => {
            let level = live * LEVELS.len() as u64 / resident.max(&1);
            LEVELS[usize::try_from(level).unwrap_or(0).min(LEVELS.len() - 1)]
        }
    }
}

/// Draws at most `most` lines.
pub fn draw(map: &Map, form: Form, most: usize) -> String {
    let room = form
        .width()
        .map_or(COLUMNS, |width| width.saturating_sub(MARGIN));
    let columns = room.clamp(8, COLUMNS);
    let mut lines = Vec::new();
    for strip in &map.strips {
        lines.push(format!(
            "{}: {} from {:#x}",
            strip.name,
            bytes(strip.bytes),
            strip.start
        ));
        for (index, row) in strip.cells.chunks(columns).enumerate() {
            let offset = ((index * columns) as u64 * map.cell_bytes) >> 20;
            let cells: String = row.iter().map(character).collect();
            lines.push(format!("{:>8} {cells}", format!("+{offset}M")));
        }
    }
    let left = lines.len().saturating_sub(most);
    lines.truncate(most);
    if left > 0 {
        lines.push(format!("         … {left} more lines: --all or --html"));
    }
    format!(
        "a character: {} of addresses, which shows how much of the resident part is in use\n\
         {}\n\n{}",
        bytes(map.cell_bytes),
        in_lines(&LEGEND, form.width().unwrap_or(UNLIMITED)),
        lines.join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_shown_by_what_is_in_use() {
        let cell = |resident, live, own| Cell {
            resident,
            live,
            own,
            ..Cell::default()
        };
        let cells = [
            cell(0, 0, 0),
            cell(64, 0, 0),
            cell(64, 1, 0),
            cell(64, 64, 0),
            cell(64, 10, 40),
        ];
        let text: String = cells.iter().map(character).collect();
        assert_eq!(text, "·░▁█▒");
    }
}
