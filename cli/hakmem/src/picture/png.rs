//! The same picture as the SVG file, as pixels, for programs that cannot show SVG.

use super::canvas::{Canvas, INK, LETTER, PALE, STEP};
use super::sheet::{GAP, LABEL, LEGEND_TOP, MARGIN, Sheet, UNIT, legend, legend_width};
use super::{Cell, View, cells, live_share};
use png::EncodingError;

pub fn draw(view: &View, title: &str, summary: &str) -> Result<Vec<u8>, EncodingError> {
    let sheet = Sheet::of(view.heap);
    let mut canvas = Canvas::new(sheet.grid.width, sheet.grid.height);
    canvas.text(MARGIN, 14, LETTER, title, INK);
    canvas.text(MARGIN, 32, LETTER, summary, INK);
    let mut x = MARGIN;
    for (shade, text) in legend(view) {
        canvas.fill((x, LEGEND_TOP), (UNIT, UNIT), shade.colour, 1.0);
        canvas.text(x + 15, LEGEND_TOP + 1, STEP, &text, INK);
        x += legend_width(&text);
    }
    let base = sheet.superslabs.first().map_or(0, |one| one.base);
    for (index, superslab) in sheet.superslabs.iter().enumerate() {
        let (x, y) = sheet.grid.place(index);
        let cells = cells(view.heap, superslab);
        let offset = format!("+{} MiB", (superslab.base - base) >> 20);
        let left = (LABEL - 8).saturating_sub(offset.len() * STEP);
        canvas.text(x + left, y + 1, STEP, &offset, PALE);
        for (unit, cell) in cells.iter().enumerate() {
            square(
                &mut canvas,
                view,
                (x + LABEL + unit * (UNIT + GAP), y),
                *cell,
            );
        }
        let share = format!("{:.0} %", live_share(&cells) * 100.0);
        canvas.text(x + LABEL + 64 * (UNIT + GAP) + 6, y + 1, STEP, &share, INK);
    }
    canvas.encode()
}

fn square(canvas: &mut Canvas, view: &View, place: (usize, usize), cell: Cell) {
    let whole = (UNIT, UNIT);
    let colour = view.shade(cell).colour;
    match cell {
        Cell::Free | Cell::Dirty | Cell::Kept | Cell::Metadata | Cell::Large { .. } => {
            canvas.fill(place, whole, colour, 1.0);
        }
        Cell::Slab { live, waiting, .. } => {
            canvas.fill(place, whole, colour, 0.18);
            let live_dots = (live * UNIT as f64).round() as usize;
            let both_dots = ((live + waiting) * UNIT as f64).round() as usize;
            let both_dots = both_dots.clamp(live_dots, UNIT);
            let (x, y) = place;
            canvas.fill(
                (x, y + UNIT - both_dots),
                (UNIT, both_dots - live_dots),
                colour,
                0.5,
            );
            canvas.fill((x, y + UNIT - live_dots), (UNIT, live_dots), colour, 1.0);
        }
    }
}
