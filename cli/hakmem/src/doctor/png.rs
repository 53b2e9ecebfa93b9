//! The same picture as the SVG file, as pixels.

use super::sheet::{EMPTY, PARTS, Row, Sheet, in_use, legend, shares};
use crate::picture::canvas::{Canvas, INK, LETTER, PALE, STEP};
use crate::picture::sheet::{GAP, LABEL, LEGEND_TOP, MARGIN, UNIT, legend_width};
use hakmem_foreign::map::{Cell, Map};
use png::EncodingError;

pub fn draw(map: &Map, title: &str, summary: &str) -> Result<Vec<u8>, EncodingError> {
    let sheet = Sheet::of(map);
    let mut canvas = Canvas::new(sheet.grid.width, sheet.grid.height);
    canvas.text(MARGIN, 14, LETTER, title, INK);
    canvas.text(MARGIN, 32, LETTER, summary, INK);
    let mut x = MARGIN;
    for (colour, text) in legend() {
        canvas.fill((x, LEGEND_TOP), (UNIT, UNIT), colour, 1.0);
        canvas.text(x + 15, LEGEND_TOP + 1, STEP, &text, INK);
        x += legend_width(&text);
    }
    for (index, row) in sheet.rows.iter().enumerate() {
        let place = sheet.grid.place(index);
        match row {
            Row::Head(text) => canvas.text(place.0, place.1 + 1, STEP, text, INK),
            Row::Cells { offset, cells } => {
                draw_row(&mut canvas, place, *offset, cells, map.cell_bytes);
            }
        }
    }
    canvas.encode()
}

fn draw_row(
    canvas: &mut Canvas,
    (x, y): (usize, usize),
    offset: u64,
    cells: &[Cell],
    cell_bytes: u64,
) {
    let label = format!("+{} MiB", offset >> 20);
    let left = (LABEL - 8).saturating_sub(label.len() * STEP);
    canvas.text(x + left, y + 1, STEP, &label, PALE);
    for (column, cell) in cells.iter().enumerate() {
        let left = x + LABEL + column * (UNIT + GAP);
        canvas.fill((left, y), (UNIT, UNIT), EMPTY.0, 1.0);
        let (mut sum, mut from) = (0.0, 0);
        for (share, (colour, _)) in shares(cell, cell_bytes).into_iter().zip(PARTS) {
            // Computed from the ends, so that rounding errors do not add up.
            sum += share;
            let to = ((sum * UNIT as f64).round() as usize).clamp(from, UNIT);
            canvas.fill((left, y + UNIT - to), (UNIT, to - from), colour, 1.0);
            from = to;
        }
    }
    let right = x + LABEL + 64 * (UNIT + GAP) + 6;
    canvas.text(right, y + 1, STEP, &in_use(cells), INK);
}
