//! In a pipe: a line for each look.

use super::{Watched, short};
use crate::commands::stats::bytes;

pub const HEAD: &str = " resident      live    cached   waiting  free slab   slow/s  blocks/s    sent/s  purged/s   calls/s";

pub fn line(watched: &Watched) -> String {
    let totals = &watched.last.figures.totals;
    let rates = &watched.rates;
    format!(
        "{:>9} {:>9} {:>9} {:>9} {:>10} {:>8} {:>9} {:>9} {:>9} {:>9}",
        bytes(watched.last.resident_bytes),
        bytes(totals.live_bytes),
        bytes(totals.cached_bytes),
        bytes(totals.dirty_bytes + totals.kept_bytes),
        bytes(totals.slab_free_bytes),
        short(rates.slow_events),
        short(rates.moved_blocks),
        short(rates.sent_blocks),
        bytes(rates.purged_bytes as u64),
        short(rates.calls)
    )
}
