//! The colours of a picture's squares, and their meanings.

use super::{Cell, View};
use clap::ValueEnum;

/// What the colour of a slab says: the size of its blocks, whose it is, or when it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Class,
    Owner,
    Age,
}

/// A colour for files and for terminals; visible on light and on dark screens.
#[derive(Clone, Copy, Debug)]
pub struct Shade {
    pub colour: &'static str,
    pub code: &'static str,
}

const fn shade(colour: &'static str, code: &'static str) -> Shade {
    Shade { colour, code }
}

const LARGE: Shade = shade("#9c36b5", "35");
const KEPT: Shade = shade("#f08c00", "33");
const DIRTY: Shade = shade("#ffc9c9", "31");
const METADATA: Shade = shade("#868e96", "38;5;244");
const FREE: Shade = shade("#f1f3f5", "2");

/// Blocks of at most this many bytes.
const SIZES: [(u64, Shade, &str); 3] = [
    (128, shade("#2f9e44", "32"), "blocks to 128 B"),
    (1024, shade("#1098ad", "36"), "to 1 KiB"),
    (u64::MAX, shade("#3b5bdb", "34"), "to 32 KiB"),
];

/// Made within this many seconds. In files the colours go from light to dark, so that they can be told apart without hues.
const AGES: [(f64, Shade, &str); 6] = [
    (1.0, shade("#f6d13b", "38;5;136"), "made within 1 s"),
    (10.0, shade("#7ac943", "38;5;64"), "10 s"),
    (60.0, shade("#22a884", "38;5;29"), "1 min"),
    (600.0, shade("#2a788e", "38;5;31"), "10 min"),
    (3600.0, shade("#414487", "38;5;62"), "1 h"),
    (f64::INFINITY, shade("#440154", "38;5;133"), "before"),
];

/// Used for owners in turn.
const OWNERS: [Shade; 8] = [
    shade("#2f9e44", "32"),
    shade("#3b5bdb", "34"),
    shade("#e8590c", "38;5;166"),
    shade("#1098ad", "36"),
    shade("#c2255c", "38;5;161"),
    shade("#5c940d", "38;5;64"),
    shade("#495057", "38;5;243"),
    shade("#0b7285", "38;5;67"),
];

impl View<'_> {
    fn of_age(&self, made_at: u64) -> Shade {
        let age = self.age(made_at);
        let found = AGES.iter().find(|(most, ..)| age <= *most);
        found.map_or(FREE, |(_, shade, _)| *shade)
    }

    pub fn shade(&self, cell: Cell) -> Shade {
        match (cell, self.by) {
            (Cell::Free, _) => FREE,
            (Cell::Dirty, _) => DIRTY,
            (Cell::Kept, _) => KEPT,
            (Cell::Metadata, _) => METADATA,
            (Cell::Slab { made_at, .. } | Cell::Large { made_at }, By::Age) => self.of_age(made_at),
            (Cell::Large { .. }, _) => LARGE,
            (Cell::Slab { owner, .. }, By::Owner) => {
                owner.map_or(KEPT, |owner| OWNERS[owner % OWNERS.len()])
            }
            (Cell::Slab { class, .. }, By::Class) => {
                let bytes = self.heap.classes[class].bytes;
                let found = SIZES.iter().find(|(most, ..)| bytes <= *most);
                found.map_or(FREE, |(_, shade, _)| *shade)
            }
        }
    }

    /// The meanings of the slabs' colours.
    pub fn slab_legend(&self) -> Vec<(Shade, String)> {
        match self.by {
            By::Class => SIZES
                .iter()
                .map(|(_, shade, text)| (*shade, (*text).into()))
                .collect(),
            By::Age => {
                let mut ages: Vec<(Shade, String)> = AGES
                    .iter()
                    .map(|(_, shade, text)| (*shade, (*text).into()))
                    .collect();
                if self.is_core {
                    ages[0].1 += " of the last";
                }
                ages
            }
            By::Owner => {
                let mut owning: Vec<usize> = self
                    .heap
                    .slabs()
                    .filter_map(|(_, slab)| slab.owner)
                    .collect();
                owning.sort_unstable();
                owning.dedup();
                let name =
                    |owner: &usize| (OWNERS[owner % OWNERS.len()], self.owners[*owner].clone());
                owning.iter().take(OWNERS.len()).map(name).collect()
            }
        }
    }

    /// The meanings of the other cells.
    pub fn other_legend(&self) -> Vec<(Cell, &'static str)> {
        let large = (Cell::Large { made_at: 0 }, "large block");
        let metadata = (Cell::Metadata, "descriptors");
        let first = (self.by != By::Age).then_some(large);
        // Few heaps have such units.
        let last = (self.heap.metadata_unit_bytes() > 0).then_some(metadata);
        let others = [
            (Cell::Kept, "large, free, kept for reuse"),
            (Cell::Dirty, "free, to be purged"),
            (Cell::Free, "free"),
        ];
        first.into_iter().chain(others).chain(last).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The luminance of one of the 256 terminal colours; the user may have changed the first sixteen.
    fn luminance(number: u32) -> f64 {
        let parts = if number >= 232 {
            [8 + 10 * (number - 232); 3]
        } else {
            let number = number - 16;
            [number / 36, number / 6 % 6, number % 6]
                .map(|part| [0, 95, 135, 175, 215, 255][part as usize])
        };
        let [red, green, blue] = parts.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.03928 {
                part / 12.92
            } else {
                ((part + 0.055) / 1.055).powf(2.4)
            }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }

    #[test]
    fn colours_can_be_seen_on_black_and_on_white() {
        let shades = AGES.iter().map(|(_, shade, _)| shade).chain(&OWNERS);
        let mut count = 0;
        for shade in shades {
            let Some(number) = shade.code.strip_prefix("38;5;") else {
                continue;
            };
            let seen = luminance(number.parse().unwrap()) + 0.05;
            assert!(seen / 0.05 >= 3.0 && 1.05 / seen >= 3.0, "{number}");
            count += 1;
        }
        assert!(count > 5);
    }
}
