//! The layout of a drawing of another allocator's heap: its parts one below the other, with a square for each cell, filled from
//! below by its resident bytes.

use crate::picture::sheet::Grid;
use hakmem_foreign::map::{Cell, Map, Strip};
use hakmem_lab::render::number::bytes;

const COLUMNS: usize = 64;

/// The parts of a cell from below, in the colours of the page.
pub const PARTS: [(&str, &str); 4] = [
    ("#3b5bdb", "in use"),
    ("#1098ad", "in caches of threads"),
    ("#868e96", "the allocator's own"),
    ("#f08c00", "free, and resident"),
];
pub const EMPTY: (&str, &str) = ("#e9ecef", "not resident");

pub enum Row<'a> {
    /// The heading of a part of the heap: its name and address.
    Head(String),
    Cells {
        /// The offset in its part.
        offset: u64,
        cells: &'a [Cell],
    },
}

pub struct Sheet<'a> {
    pub grid: Grid,
    pub rows: Vec<Row<'a>>,
}

impl Sheet<'_> {
    pub fn of(map: &Map) -> Sheet<'_> {
        let rows: Vec<Row> = map
            .strips
            .iter()
            .flat_map(|strip| rows_of(strip, map.cell_bytes))
            .collect();
        Sheet {
            grid: Grid::of(rows.len()),
            rows,
        }
    }
}

fn rows_of(strip: &Strip, cell_bytes: u64) -> impl Iterator<Item = Row<'_>> {
    let head = Row::Head(format!(
        "{}: {} from {:#x}",
        strip.name,
        bytes(strip.bytes),
        strip.start
    ));
    let rows = strip.cells.chunks(COLUMNS).enumerate();
    let rows = rows.map(move |(index, cells)| Row::Cells {
        offset: (index * COLUMNS) as u64 * cell_bytes,
        cells,
    });
    std::iter::once(head).chain(rows)
}

/// The share of a cell that each part has; the rest is not resident.
pub fn shares(cell: &Cell, cell_bytes: u64) -> [f64; 4] {
    let known = cell.live + cell.cached + cell.own;
    let free = cell.resident.saturating_sub(known);
    [cell.live, cell.cached, cell.own, free].map(|part| part as f64 / cell_bytes.max(1) as f64)
}

/// The share of resident bytes that is in use: "12 %".
pub fn in_use(cells: &[Cell]) -> String {
    let resident: u64 = cells.iter().map(|cell| cell.resident).sum();
    let live: u64 = cells.iter().map(|cell| cell.live).sum();
    match resident {
        0 => String::new(),
        _ => format!("{:.0} %", live as f64 * 100.0 / resident as f64),
    }
}

/// The meanings of the colours.
pub fn legend() -> impl Iterator<Item = (&'static str, String)> {
    let parts = PARTS.into_iter().chain([EMPTY]);
    parts.map(|(colour, text)| (colour, text.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_heap_has_a_head_and_rows() {
        let cell = Cell {
            resident: 48,
            live: 16,
            cached: 8,
            own: 8,
        };
        let strip = |count| Strip {
            name: "one".into(),
            start: 0x1000,
            bytes: 64 * count as u64,
            cells: vec![cell; count],
        };
        let map = Map {
            cell_bytes: 64,
            strips: vec![strip(65), strip(1)],
        };
        let sheet = Sheet::of(&map);
        let lengths = sheet.rows.iter().map(|row| match row {
            Row::Head(_) => 0,
            Row::Cells { cells, .. } => cells.len(),
        });
        assert_eq!(lengths.collect::<Vec<_>>(), [0, 64, 1, 0, 1]);
        assert!(matches!(sheet.rows[2], Row::Cells { offset: 4096, .. }));
        assert_eq!(shares(&cell, 64), [0.25, 0.125, 0.125, 0.25]);
        assert_eq!(in_use(&[cell, Cell::default()]), "33 %");
    }
}
