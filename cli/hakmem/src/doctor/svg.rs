//! Draws another allocator's heap as an SVG file.

use super::sheet::{EMPTY, PARTS, Row, Sheet, in_use, legend, shares};
use crate::picture::sheet::{GAP, LABEL, UNIT};
use crate::picture::svg::{escaped, head, legend_of};
use hakmem_foreign::map::{Cell, Map};
use hakmem_lab::render::number::bytes;
use std::fmt::Write;

pub fn draw(map: &Map, title: &str, summary: &str) -> String {
    let sheet = Sheet::of(map);
    let mut svg = head(&sheet.grid, title, summary);
    legend_of(&mut svg, legend());
    for (index, row) in sheet.rows.iter().enumerate() {
        let (x, y) = sheet.grid.place(index);
        let _ = write!(svg, "<g transform=\"translate({x} {y})\">");
        match row {
            Row::Head(text) => {
                let _ = write!(
                    svg,
                    "<text y=\"9\" font-weight=\"600\">{}</text>",
                    escaped(text)
                );
            }
            Row::Cells { offset, cells } => draw_row(&mut svg, *offset, cells, map.cell_bytes),
        }
        svg.push_str("</g>\n");
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_row(svg: &mut String, offset: u64, cells: &[Cell], cell_bytes: u64) {
    let _ = write!(
        svg,
        "<text x=\"{}\" y=\"9\" text-anchor=\"end\" fill=\"#868e96\">+{} MiB</text>",
        LABEL - 8,
        offset >> 20
    );
    for (column, cell) in cells.iter().enumerate() {
        draw_cell(svg, LABEL + column * (UNIT + GAP), cell, cell_bytes);
    }
    let _ = write!(
        svg,
        "<text x=\"{}\" y=\"9\" fill=\"#495057\">{}</text>",
        LABEL + 64 * (UNIT + GAP) + 6,
        in_use(cells)
    );
}

fn draw_cell(svg: &mut String, x: usize, cell: &Cell, cell_bytes: u64) {
    let _ = write!(
        svg,
        "<rect x=\"{x}\" width=\"{UNIT}\" height=\"{UNIT}\" fill=\"{}\"/>",
        EMPTY.0
    );
    if cell.resident == 0 {
        return;
    }
    let _ = write!(
        svg,
        "<g><title>{} resident: {} in use, {} in caches, {} the allocator's</title>",
        bytes(cell.resident),
        bytes(cell.live),
        bytes(cell.cached),
        bytes(cell.own)
    );
    let mut top = UNIT as f64;
    for (share, (colour, _)) in shares(cell, cell_bytes).into_iter().zip(PARTS) {
        let height = (share * UNIT as f64).min(top);
        top -= height;
        if height > 0.05 {
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{top:.1}\" width=\"{UNIT}\" height=\"{height:.1}\" fill=\"{colour}\"/>"
            );
        }
    }
    svg.push_str("</g>");
}
