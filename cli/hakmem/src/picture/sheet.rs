//! The layout of a picture of a heap: rows of superslabs, with a square for each unit.

use super::{Shade, View};
use hakmem_heap::heap::{Heap, Super};

pub const UNIT: usize = 10;
pub const GAP: usize = 1;
pub const LABEL: usize = 64;
pub const MARGIN: usize = 16;
pub const LEGEND_TOP: usize = 50;
const ROW: usize = UNIT + 3;
const SHARE: usize = 44;
const HEAD: usize = 74;
/// Further rows go into another column.
const ROWS_MAX: usize = 250;

/// The legend: the meaning of each colour.
pub fn legend(view: &View) -> Vec<(Shade, String)> {
    let others = view.other_legend().into_iter();
    let mut entries = view.slab_legend();
    entries.extend(others.map(|(cell, text)| (view.shade(cell), text.to_string())));
    entries
}

/// The width of a legend's entry, including its square.
pub fn legend_width(text: &str) -> usize {
    32 + text.len() * 6
}

/// Rows of 64 squares; many rows are split into several columns.
pub struct Grid {
    pub width: usize,
    pub height: usize,
    column_width: usize,
}

pub struct Sheet<'a> {
    pub grid: Grid,
    pub superslabs: Vec<&'a Super>,
}

impl Sheet<'_> {
    pub fn of(heap: &Heap) -> Sheet<'_> {
        let superslabs: Vec<_> = heap.supers.iter().filter(|one| !one.is_mapping).collect();
        Sheet {
            grid: Grid::of(superslabs.len()),
            superslabs,
        }
    }
}

impl Grid {
    pub fn of(count: usize) -> Grid {
        let rows = count.clamp(1, ROWS_MAX);
        let columns = count.div_ceil(ROWS_MAX).max(1);
        let column_width = LABEL + 64 * (UNIT + GAP) + SHARE + MARGIN;
        Grid {
            width: MARGIN + columns * column_width,
            height: HEAD + rows * ROW + MARGIN,
            column_width,
        }
    }

    /// The position of a row.
    pub fn place(&self, index: usize) -> (usize, usize) {
        (
            MARGIN + index / ROWS_MAX * self.column_width,
            HEAD + index % ROWS_MAX * ROW,
        )
    }
}
