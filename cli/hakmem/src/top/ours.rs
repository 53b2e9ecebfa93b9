//! The words for hakmem's heap.

use super::words::{Words, threads};
use super::{Watched, short};
use hakmem_heap::figures::Figures;
use hakmem_lab::render::number::bytes;
use ratatui::style::Color;

pub fn words(watched: &Watched, figures: &Figures) -> Words {
    let totals = &figures.totals;
    let rates = Rates::of(watched);
    Words {
        allocator: format!("hakmem {}", figures.release),
        off: match figures.moved_blocks {
            0 => None,
            blocks => Some(format!("±{blocks} blocks")),
        },
        figures: vec![
            format!("resident {}", bytes(watched.last.resident_bytes)),
            format!(
                "live {} in {} blocks",
                bytes(totals.live_bytes),
                totals.live_blocks
            ),
            format!("mapped {}", bytes(totals.mapped_bytes)),
            threads(watched.last.threads),
        ],
        parts: parts(figures),
        live: format!("live {}", bytes(totals.live_bytes)),
        third: ("blocks moved/s", short(rates.moved_blocks)),
        rates: vec![
            format!("per second: {} slow calls", short(rates.slow_events)),
            format!("{} blocks sent", short(rates.sent_blocks)),
            format!("{} purged", bytes(rates.purged_bytes as u64)),
            format!("{} system calls", short(rates.calls)),
        ],
        help: &[
            "     cached  in magazines, or on their way between threads",
            "    waiting  in BigCache, or to be purged",
            "     unused  mapped, never used or purged",
            "          ±  blocks that moved while the heap was read",
        ],
    }
}

/// The parts of mapped memory.
fn parts(figures: &Figures) -> [(&'static str, u64, Color); 5] {
    let totals = &figures.totals;
    let waiting = totals.kept_bytes + totals.dirty_bytes;
    let clean = totals.unit_free_bytes.saturating_sub(totals.dirty_bytes);
    let known = totals.live_bytes + totals.cached_bytes + totals.slab_free_bytes + waiting + clean;
    let rest = totals.mapped_bytes.saturating_sub(known);
    [
        ("live", totals.live_bytes, Color::Green),
        ("cached", totals.cached_bytes, Color::Yellow),
        ("in slabs", totals.slab_free_bytes, Color::Blue),
        ("waiting", waiting, Color::Red),
        ("unused", clean + rest, Color::DarkGray),
    ]
}

/// What happened per second between two looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    pub slow_events: f64,
    pub moved_blocks: f64,
    pub sent_blocks: f64,
    pub purged_bytes: f64,
    pub calls: f64,
}

pub fn moved_blocks(figures: &Figures) -> u64 {
    let classes = figures.classes.iter();
    classes
        .map(|class| class.refilled_blocks.wrapping_add(class.spilled_blocks))
        .fold(0, u64::wrapping_add)
}

impl Rates {
    pub fn of(watched: &Watched) -> Rates {
        Rates {
            slow_events: watched.rate(|figures| figures.counters.slow_events),
            moved_blocks: watched.rate(moved_blocks),
            sent_blocks: watched.rate(|figures| figures.counters.caches.sent_blocks),
            purged_bytes: watched.rate(|figures| figures.counters.os.purged_bytes),
            calls: watched.rate(|figures| {
                let os = &figures.counters.os;
                os.maps + os.unmaps + os.remaps + os.purges + os.huge_advices
            }),
        }
    }
}
