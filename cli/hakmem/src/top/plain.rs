//! Output without a screen: one line per look.

use super::ours::Rates;
use super::{Seen, Watched, others, short};
use hakmem_heap::figures::Figures;
use hakmem_lab::render::number::bytes;

/// The name and width of each column.
type Columns = &'static [(&'static str, usize)];

const OURS: Columns = &[
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

const OTHERS: Columns = &[
    ("resident", 9),
    ("in use", 9),
    ("blocks", 10),
    ("free", 9),
    ("whole", 9),
    ("cached", 9),
    ("in use/s", 10),
    ("blocks/s", 9),
    ("elsewhere", 9),
];

fn columns(watched: &Watched) -> Columns {
    match watched.last.seen {
        Seen::Ours { .. } => OURS,
        Seen::Others(_) => OTHERS,
    }
}

pub fn head(watched: &Watched, room: usize) -> String {
    titles(columns(watched), room)
}

fn titles(columns: Columns, room: usize) -> String {
    let titles = columns.iter().map(|(title, _)| (*title).to_string());
    join(columns, titles.collect(), room)
}

pub fn line(watched: &Watched, room: usize) -> String {
    let cells = match &watched.last.seen {
        Seen::Ours { figures, .. } => of_ours(watched, figures),
        Seen::Others(moment) => others::line(watched, moment),
    };
    join(columns(watched), cells, room)
}

fn of_ours(watched: &Watched, figures: &Figures) -> Vec<String> {
    let totals = &figures.totals;
    let rates = Rates::of(watched);
    vec![
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
    ]
}

/// As many columns as fit; always the first one.
fn join(columns: Columns, cells: Vec<String>, room: usize) -> String {
    let mut line = String::new();
    for ((_, width), cell) in columns.iter().zip(cells) {
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
        assert_eq!(titles(OURS, 20), " resident      live");
        assert_eq!(titles(OURS, 5), " resident");
        assert!(titles(OURS, 200).ends_with("purged/s   calls/s"));
        assert!(titles(OTHERS, 80).ends_with("in use/s"));
    }
}
