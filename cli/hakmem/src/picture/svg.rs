//! The heap as an SVG file: rows of superslabs, a square for each unit, filled as far as it is live.

use super::sheet::{
    DIRTY, FREE, GAP, KEPT, LABEL, LARGE, LEGEND, LEGEND_TOP, MARGIN, Sheet, UNIT, colour_of,
    legend_width,
};
use super::{Cell, cells, live_share};
use hakmem_heap::heap::Heap;
use std::fmt::Write;

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

pub fn draw(heap: &Heap, title: &str, summary: &str) -> String {
    let sheet = Sheet::of(heap);
    let (width, height) = (sheet.width, sheet.height);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"system-ui, sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"22\" font-size=\"15\" font-weight=\"600\">{}</text>\n\
         <text x=\"{MARGIN}\" y=\"40\" fill=\"#495057\">{}</text>\n",
        escaped(title),
        escaped(summary)
    );
    legend(&mut svg);
    let base = sheet.superslabs.first().map_or(0, |one| one.base);
    for (index, superslab) in sheet.superslabs.iter().enumerate() {
        let (x, y) = sheet.place(index);
        let cells = cells(heap, superslab);
        let _ = writeln!(
            svg,
            "<g transform=\"translate({x} {y})\"><title>superslab at {:#x}{}</title>\
             <text x=\"{}\" y=\"9\" text-anchor=\"end\" fill=\"#868e96\">+{} MiB</text>",
            superslab.base,
            if superslab.is_huge {
                ", huge pages"
            } else {
                ""
            },
            LABEL - 8,
            (superslab.base - base) >> 20
        );
        for (unit, cell) in cells.iter().enumerate() {
            square(&mut svg, heap, LABEL + unit * (UNIT + GAP), *cell);
        }
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"9\" fill=\"#495057\">{:.0} %</text></g>",
            LABEL + 64 * (UNIT + GAP) + 6,
            live_share(&cells) * 100.0
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn square(svg: &mut String, heap: &Heap, x: usize, cell: Cell) {
    let whole = |svg: &mut String, colour: &str| {
        let _ = write!(
            svg,
            "<rect x=\"{x}\" width=\"{UNIT}\" height=\"{UNIT}\" fill=\"{colour}\"/>"
        );
    };
    match cell {
        Cell::Free => whole(svg, FREE),
        Cell::Dirty => whole(svg, DIRTY),
        Cell::Large => whole(svg, LARGE),
        Cell::Kept => whole(svg, KEPT),
        Cell::Slab {
            class,
            live,
            waiting,
        } => {
            let colour = colour_of(heap, class);
            let _ = write!(
                svg,
                "<g><title>{} B blocks: {:.0} % live, {:.0} % waiting</title>\
                 <rect x=\"{x}\" width=\"{UNIT}\" height=\"{UNIT}\" fill=\"{colour}\" opacity=\".18\"/>",
                heap.classes[class].bytes,
                live * 100.0,
                waiting * 100.0
            );
            let mut top = UNIT as f64;
            for (share, opacity) in [(live, "1"), (waiting, ".5")] {
                let height = share * UNIT as f64;
                top -= height;
                if height > 0.05 {
                    let _ = write!(
                        svg,
                        "<rect x=\"{x}\" y=\"{top:.1}\" width=\"{UNIT}\" height=\"{height:.1}\" \
                         fill=\"{colour}\" opacity=\"{opacity}\"/>"
                    );
                }
            }
            svg.push_str("</g>");
        }
    }
}

fn legend(svg: &mut String) {
    let mut x = MARGIN;
    for (colour, text) in LEGEND {
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{LEGEND_TOP}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\">{text}</text>",
            x + 15,
            LEGEND_TOP + 9
        );
        x += legend_width(text);
    }
}
