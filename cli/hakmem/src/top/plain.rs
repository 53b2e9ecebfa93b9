//! Where there is no screen: a line for each look.

use super::{Watched, short};
use hakmem_lab::render::number::bytes;

/// What each is called, and how wide.
const COLUMNS: [(&str, usize); 10] = [
    ("resident", 9),
    ("live", 9),
    ("cached", 9),
    ("waiting", 9),
    ("free slab", 10),
    ("slow/s", 8),
    ("blocks/s", 9),
    ("sent/s", 9),
    ("purged/s", 9),
    ("calls/s", 9),
];

pub fn head(room: usize) -> String {
    join(COLUMNS.map(|(title, _)| title.to_string()), room)
}

pub fn line(watched: &Watched, room: usize) -> String {
    let totals = &watched.last.figures.totals;
    let rates = &watched.rates;
    let cells = [
        bytes(watched.last.resident_bytes),
        bytes(totals.live_bytes),
        bytes(totals.cached_bytes),
        bytes(totals.dirty_bytes + totals.kept_bytes),
        bytes(totals.slab_free_bytes),
        short(rates.slow_events),
        short(rates.moved_blocks),
        short(rates.sent_blocks),
        bytes(rates.purged_bytes as u64),
        short(rates.calls),
    ];
    join(cells, room)
}

/// As many of the columns as there is room for, the first in any case.
fn join(cells: [String; COLUMNS.len()], room: usize) -> String {
    let mut line = String::new();
    for ((_, width), cell) in COLUMNS.into_iter().zip(cells) {
        let gap = if line.is_empty() { "" } else { " " };
        if !line.is_empty() && line.chars().count() + 1 + width > room {
            break;
        }
        line += &format!("{gap}{cell:>width$}");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_loses_the_last_columns() {
        assert_eq!(head(20), " resident      live");
        assert_eq!(head(5), " resident");
        assert!(head(200).ends_with("purged/s   calls/s"));
    }
}
