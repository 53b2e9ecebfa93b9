//! Draws with pixels, for programs that cannot show SVG: rectangles and text, and the image file.

use font8x8::legacy::BASIC_LEGACY;
use png::{BitDepth, ColorType, Encoder, EncodingError, Filter};

/// The width and height of the font's letters.
pub const LETTER: usize = 8;
/// Letters of the legend are closer than they are wide.
pub const STEP: usize = 6;
pub const INK: &str = "#212529";
pub const PALE: &str = "#868e96";

pub struct Canvas {
    width: usize,
    height: usize,
    /// The red, green and blue of each pixel.
    dots: Vec<u8>,
}

impl Canvas {
    pub fn new(width: usize, height: usize) -> Canvas {
        Canvas {
            width,
            height,
            dots: vec![255; width * height * 3],
        }
    }

    /// Draws a rectangle; the part outside is cut off.
    pub fn fill(
        &mut self,
        (x, y): (usize, usize),
        size: (usize, usize),
        colour: &str,
        opacity: f64,
    ) {
        let right = (x + size.0).min(self.width);
        if x >= right {
            return;
        }
        // All pixels below it had one colour.
        for row in y..(y + size.1).min(self.height) {
            let first = (row * self.width + x) * 3;
            let dot = self.mixed(first, colour, opacity);
            let line = &mut self.dots[first..(row * self.width + right) * 3];
            line.chunks_exact_mut(3)
                .for_each(|one| one.copy_from_slice(&dot));
        }
    }

    /// The pixel there, covered by a colour.
    fn mixed(&self, at: usize, colour: &str, opacity: f64) -> [u8; 3] {
        [0, 1, 2].map(|part| {
            let digits = &colour[1 + 2 * part..3 + 2 * part];
            let ink = f64::from(u8::from_str_radix(digits, 16).unwrap_or(0));
            let paper = f64::from(self.dots[at + part]);
            (ink * opacity + paper * (1.0 - opacity)).round() as u8
        })
    }

    /// Writes a line of text with this upper left corner; a letter that the font lacks becomes a question mark.
    pub fn text(&mut self, x: usize, y: usize, step: usize, text: &str, colour: &str) {
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

    pub fn encode(self) -> Result<Vec<u8>, EncodingError> {
        let mut file = Vec::new();
        let size = |dots: usize| u32::try_from(dots).unwrap_or(u32::MAX);
        let mut encoder = Encoder::new(&mut file, size(self.width), size(self.height));
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_filter(Filter::Up); // most rows are like the one above
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.dots)?;
        writer.finish()?;
        Ok(file)
    }
}
