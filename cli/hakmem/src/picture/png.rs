//! The same picture as the SVG file, in dots, for what shows no SVG.

use super::sheet::{GAP, LABEL, LEGEND_TOP, MARGIN, Sheet, UNIT, legend, legend_width};
use super::{Cell, View, cells, live_share};
use font8x8::legacy::BASIC_LEGACY;
use png::{BitDepth, ColorType, Encoder, EncodingError, Filter};

/// The font's letters are as wide and as high.
const LETTER: usize = 8;
/// Letters of the legend stand closer than they are wide.
const STEP: usize = 6;
const INK: &str = "#212529";
const PALE: &str = "#868e96";

pub fn draw(view: &View, title: &str, summary: &str) -> Result<Vec<u8>, EncodingError> {
    let sheet = Sheet::of(view.heap);
    let mut canvas = Canvas::new(sheet.width, sheet.height);
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
        let (x, y) = sheet.place(index);
        let cells = cells(view.heap, superslab);
        let offset = format!("+{} MiB", (superslab.base - base) >> 20);
        let left = (LABEL - 8).saturating_sub(offset.len() * STEP);
        canvas.text(x + left, y + 1, STEP, &offset, PALE);
        for (unit, cell) in cells.iter().enumerate() {
            canvas.square(view, (x + LABEL + unit * (UNIT + GAP), y), *cell);
        }
        let share = format!("{:.0} %", live_share(&cells) * 100.0);
        canvas.text(x + LABEL + 64 * (UNIT + GAP) + 6, y + 1, STEP, &share, INK);
    }
    canvas.encode()
}

struct Canvas {
    width: usize,
    height: usize,
    /// Red, green and blue of each dot.
    dots: Vec<u8>,
}

impl Canvas {
    fn new(width: usize, height: usize) -> Canvas {
        Canvas {
            width,
            height,
            dots: vec![255; width * height * 3],
        }
    }

    fn square(&mut self, view: &View, place: (usize, usize), cell: Cell) {
        let whole = (UNIT, UNIT);
        let colour = view.shade(cell).colour;
        match cell {
            Cell::Free | Cell::Dirty | Cell::Kept | Cell::Large { .. } => {
                self.fill(place, whole, colour, 1.0);
            }
            Cell::Slab { live, waiting, .. } => {
                self.fill(place, whole, colour, 0.18);
                let live_dots = (live * UNIT as f64).round() as usize;
                let both_dots = ((live + waiting) * UNIT as f64).round() as usize;
                let both_dots = both_dots.clamp(live_dots, UNIT);
                let (x, y) = place;
                self.fill(
                    (x, y + UNIT - both_dots),
                    (UNIT, both_dots - live_dots),
                    colour,
                    0.5,
                );
                self.fill((x, y + UNIT - live_dots), (UNIT, live_dots), colour, 1.0);
            }
        }
    }

    /// A rectangle; what lies outside is cut off.
    fn fill(&mut self, (x, y): (usize, usize), size: (usize, usize), colour: &str, opacity: f64) {
        let right = (x + size.0).min(self.width);
        if x >= right {
            return;
        }
        // Whatever it covers was of one colour before.
        for row in y..(y + size.1).min(self.height) {
            let first = (row * self.width + x) * 3;
            let dot = self.mixed(first, colour, opacity);
            let line = &mut self.dots[first..(row * self.width + right) * 3];
            line.chunks_exact_mut(3)
                .for_each(|one| one.copy_from_slice(&dot));
        }
    }

    /// The dot there with a colour over it.
    fn mixed(&self, at: usize, colour: &str, opacity: f64) -> [u8; 3] {
        [0, 1, 2].map(|part| {
            let digits = &colour[1 + 2 * part..3 + 2 * part];
            let ink = f64::from(u8::from_str_radix(digits, 16).unwrap_or(0));
            let paper = f64::from(self.dots[at + part]);
            (ink * opacity + paper * (1.0 - opacity)).round() as u8
        })
    }

    /// A line of text with its upper left corner there; a letter that the font has not is a question mark.
    fn text(&mut self, x: usize, y: usize, step: usize, text: &str, colour: &str) {
        for (index, letter) in text.chars().enumerate() {
            let shape = BASIC_LEGACY
                .get(letter as usize)
                .unwrap_or(&BASIC_LEGACY[b'?' as usize]);
            for (row, bits) in shape.iter().enumerate() {
                for column in (0..LETTER).filter(|column| bits >> column & 1 != 0) {
                    let (x, y) = (x + index * step + column, y + row);
                    self.fill((x, y), (1, 1), colour, 1.0);
                }
            }
        }
    }

    fn encode(self) -> Result<Vec<u8>, EncodingError> {
        let mut file = Vec::new();
        let size = |dots: usize| u32::try_from(dots).unwrap_or(u32::MAX);
        let mut encoder = Encoder::new(&mut file, size(self.width), size(self.height));
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_filter(Filter::Up); // most rows are as the one above
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.dots)?;
        writer.finish()?;
        Ok(file)
    }
}
