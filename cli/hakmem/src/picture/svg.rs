//! The heap as an SVG file: rows of superslabs, with a square for each unit, filled by its live share.

use super::sheet::{GAP, Grid, LABEL, LEGEND_TOP, MARGIN, Sheet, UNIT, legend, legend_width};
use super::{Cell, View, cells, live_share};
use hakmem_lab::render::number::age;
use std::fmt::Write;

pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The beginning of an SVG file.
pub fn head(grid: &Grid, title: &str, summary: &str) -> String {
    let (width, height) = (grid.width, grid.height);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"system-ui, sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"{MARGIN}\" y=\"22\" font-size=\"15\" font-weight=\"600\">{}</text>\n\
         <text x=\"{MARGIN}\" y=\"40\" fill=\"#495057\">{}</text>\n",
        escaped(title),
        escaped(summary)
    )
}

pub fn draw(view: &View, title: &str, summary: &str) -> String {
    let sheet = Sheet::of(view.heap);
    let mut svg = head(&sheet.grid, title, summary);
    draw_legend(&mut svg, view);
    let base = sheet.superslabs.first().map_or(0, |one| one.base);
    for (index, superslab) in sheet.superslabs.iter().enumerate() {
        let (x, y) = sheet.grid.place(index);
        let cells = cells(view.heap, superslab);
        let _ = writeln!(
            svg,
            "<g transform=\"translate({x} {y})\"><title>superslab at {:#x}, {} old{}</title>\
             <text x=\"{}\" y=\"9\" text-anchor=\"end\" fill=\"#868e96\">+{} MiB</text>",
            superslab.base,
            age(view.age(superslab.mapped_at)),
            match superslab.huge_pages() {
                0 => "",
                1 => ", one of two pages huge",
                _ => ", huge pages",
            },
            LABEL - 8,
            (superslab.base - base) >> 20
        );
        for (unit, cell) in cells.iter().enumerate() {
            square(&mut svg, view, LABEL + unit * (UNIT + GAP), *cell);
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

fn square(svg: &mut String, view: &View, x: usize, cell: Cell) {
    let colour = view.shade(cell).colour;
    let whole = |opacity: &str| {
        format!("<rect x=\"{x}\" width=\"{UNIT}\" height=\"{UNIT}\" fill=\"{colour}\"{opacity}/>")
    };
    match cell {
        Cell::Free | Cell::Dirty | Cell::Kept => svg.push_str(&whole("")),
        Cell::Metadata => {
            let _ = write!(svg, "<g><title>descriptors</title>{}</g>", whole(""));
        }
        Cell::Large { made_at } => {
            let old = age(view.age(made_at));
            let _ = write!(
                svg,
                "<g><title>a large block, at most {old} old</title>{}</g>",
                whole("")
            );
        }
        Cell::Slab {
            class,
            owner,
            made_at,
            live,
            waiting,
        } => {
            let _ = write!(
                svg,
                "<g><title>{} B blocks: {:.0} % live, {:.0} % waiting; of {}; {} old</title>{}",
                view.heap.classes[class].bytes,
                live * 100.0,
                waiting * 100.0,
                escaped(owner.map_or("nobody known", |owner| &view.owners[owner])),
                age(view.age(made_at)),
                whole(" opacity=\".18\"")
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

fn draw_legend(svg: &mut String, view: &View) {
    let entries = legend(view).into_iter();
    legend_of(svg, entries.map(|(shade, text)| (shade.colour, text)));
}

/// A square and a text for each entry.
pub fn legend_of(svg: &mut String, entries: impl Iterator<Item = (&'static str, String)>) {
    let mut x = MARGIN;
    for (colour, text) in entries {
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{LEGEND_TOP}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{}\" y=\"{}\">{}</text>",
            x + 15,
            LEGEND_TOP + 9,
            escaped(&text)
        );
        x += legend_width(&text);
    }
}
