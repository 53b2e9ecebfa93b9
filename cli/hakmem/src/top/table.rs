//! The tables of `hakmem top`: each cell has the value that it is sorted by.

use super::processes::Found;
use super::words::text;
use super::{Seen, Watched, others, short};
use hakmem_heap::figures::{CacheFigures, Figures, Totals};
use hakmem_lab::render::number::bytes;

pub struct Cell {
    pub text: String,
    pub key: f64,
}

pub struct Rows {
    /// Each column with its meaning.
    pub columns: Vec<(&'static str, &'static str)>,
    /// The first column is text, aligned left.
    pub is_first_text: bool,
    pub rows: Vec<Vec<Cell>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Classes,
    Caches,
    Policies,
}

impl View {
    pub const ALL: [View; 3] = [View::Classes, View::Caches, View::Policies];

    /// The view's title; other allocators' heaps have other tables.
    pub fn title(self, is_ours: bool) -> &'static str {
        match (self, is_ours) {
            (View::Classes, true) => "classes",
            (View::Classes, false) => "sizes",
            (View::Caches, true) => "caches",
            (View::Caches, false) => "arenas",
            (View::Policies, true) => "policies",
            (View::Policies, false) => "memory",
        }
    }
}

fn number(value: f64) -> Cell {
    Cell {
        text: short(value),
        key: value,
    }
}

pub fn count(value: u64) -> Cell {
    Cell {
        text: value.to_string(),
        key: value as f64,
    }
}

pub fn size(value: u64) -> Cell {
    Cell {
        text: bytes(value),
        key: value as f64,
    }
}

pub fn rows(view: View, watched: &Watched) -> Rows {
    match (&watched.last.seen, view) {
        (Seen::Ours { figures, .. }, View::Classes) => classes(watched, figures),
        (Seen::Ours { figures, owners }, View::Caches) => caches(watched, figures, owners),
        (Seen::Ours { figures, .. }, View::Policies) => policies(watched, figures),
        (Seen::Others(moment), _) => others::rows(view, watched, moment),
    }
}

fn classes(watched: &Watched, figures: &Figures) -> Rows {
    let used = figures.classes.iter().enumerate();
    let mut rows: Vec<Vec<Cell>> = used
        .filter(|(_, class)| class.slabs_made > 0)
        .map(|(index, class)| {
            let waste = class.slab_bytes.saturating_sub(class.live_bytes());
            let share = class.live_bytes() as f64 * 100.0 / class.slab_bytes.max(1) as f64;
            vec![
                count(class.bytes),
                count(class.live_blocks),
                size(class.live_bytes()),
                size(class.cached_blocks * class.bytes),
                count(class.slabs),
                Cell {
                    text: if class.slabs == 0 {
                        "-".into()
                    } else {
                        format!("{share:.0} %")
                    },
                    key: share,
                },
                size(waste),
                number(watched.rate(|figures| figures.classes[index].refilled_blocks)),
                number(watched.rate(|figures| figures.classes[index].spilled_blocks)),
            ]
        })
        .collect();
    rows.extend(larger(&figures.totals));
    Rows {
        columns: vec![
            ("block", "bytes of a block"),
            ("live", "blocks that the program holds"),
            ("bytes", "in them"),
            (
                "cached",
                "free, in magazines and on their way between threads",
            ),
            ("slabs", "of the class"),
            ("use", "live part of its slabs"),
            ("not live", "the rest of its slabs"),
            ("refill/s", "blocks moved into empty magazines"),
            ("spill/s", "blocks moved out of full magazines"),
        ],
        is_first_text: false,
        rows,
    }
}

/// The blocks that are in no slab.
fn larger(totals: &Totals) -> Option<Vec<Cell>> {
    let name = Cell {
        text: "larger".into(),
        key: f64::INFINITY,
    };
    let live = [
        count(totals.large_live_blocks),
        size(totals.large_live_bytes),
    ];
    let in_slabs = std::iter::repeat_with(unknown).take(6);
    (totals.large_live_blocks > 0).then(|| [name].into_iter().chain(live).chain(in_slabs).collect())
}

fn caches(watched: &Watched, figures: &Figures, owners: &[String]) -> Rows {
    let used = figures.caches.iter().zip(owners).enumerate();
    let rows = used
        .filter(|(_, (cache, _))| cache.slow_events > 0 || cache.slabs > 0)
        .map(|(index, (cache, owner))| {
            // Most caches keep their index; those behind a new one do not.
            let (kind, id) = (cache.kind, cache.number);
            let is_same = move |other: &&CacheFigures| other.kind == kind && other.number == id;
            let of = move |figures: &Figures| {
                let there = figures.caches.get(index).filter(is_same);
                there
                    .or_else(|| figures.caches.iter().find(is_same))
                    .copied()
            };
            let rate = |figure: fn(&CacheFigures) -> u64| {
                watched.rate(move |figures| of(figures).map_or(0, |cache| figure(&cache)))
            };
            vec![
                text(owner.clone()),
                count(cache.slabs),
                size(cache.out_bytes),
                size(cache.slab_free_bytes),
                size(cache.cached_bytes),
                number(rate(|cache| cache.slow_events)),
                number(rate(|cache| cache.counts.sent_blocks)),
                number(rate(|cache| cache.counts.opened_parcels)),
            ]
        })
        .collect();
    Rows {
        columns: vec![
            ("cache of", "the thread, by its number and name"),
            ("slabs", "that it owns"),
            (
                "out",
                "blocks of them that are with the program or in a magazine",
            ),
            ("free", "blocks of them that are in their slabs"),
            ("cached", "in its own magazines"),
            ("slow/s", "calls that needed a refill or a spill"),
            ("sent/s", "blocks freed here for other caches"),
            ("opened/s", "parcels that arrived"),
        ],
        is_first_text: true,
        rows,
    }
}

type Figure = fn(&Figures) -> u64;

fn policies(watched: &Watched, figures: &Figures) -> Rows {
    let os = figures.counters.os;
    let mut rows: Vec<Vec<Cell>> = figures
        .options
        .iter()
        .map(|(name, value)| {
            let value = value.as_u64().unwrap_or(0);
            let shown = if name.ends_with("bytes") {
                size(value)
            } else {
                count(value)
            };
            vec![text(name.clone()), shown, text("")]
        })
        .collect();
    let counters: [(&str, Figure, u64); 8] = [
        ("mmap", |figures| figures.counters.os.maps, os.maps),
        ("munmap", |figures| figures.counters.os.unmaps, os.unmaps),
        ("mremap", |figures| figures.counters.os.remaps, os.remaps),
        ("purges", |figures| figures.counters.os.purges, os.purges),
        (
            "purged bytes",
            |figures| figures.counters.os.purged_bytes,
            os.purged_bytes,
        ),
        (
            "huge page advices",
            |figures| figures.counters.os.huge_advices,
            os.huge_advices,
        ),
        (
            "refused by the kernel",
            |figures| figures.counters.os.refused,
            os.refused,
        ),
        (
            "slabs adopted",
            |figures| figures.counters.caches.adopted_slabs,
            figures.counters.caches.adopted_slabs,
        ),
    ];
    rows.extend(counters.map(|(name, figure, value)| {
        let shown = if name.ends_with("bytes") {
            size(value)
        } else {
            count(value)
        };
        vec![text(name), shown, number(watched.rate(figure))]
    }));
    Rows {
        columns: vec![
            (
                "option or counter",
                "the value in force, or the count since the start",
            ),
            ("value", ""),
            ("per second", ""),
        ],
        is_first_text: true,
        rows,
    }
}

/// Sorted behind all known values.
fn unknown() -> Cell {
    Cell {
        text: "-".into(),
        key: -1.0,
    }
}

pub fn processes(found: &[Found]) -> Rows {
    let rows = found
        .iter()
        .map(|one| {
            vec![
                text(one.command_line.clone()),
                count(u64::try_from(one.pid).unwrap_or(0)),
                size(one.resident_bytes),
                one.totals
                    .map_or_else(unknown, |totals| size(totals.live_bytes)),
                one.totals
                    .map_or_else(unknown, |totals| count(totals.live_blocks)),
                text(one.allocator.clone().unwrap_or_default()),
            ]
        })
        .collect();
    Rows {
        columns: vec![
            ("program", "as it was started"),
            ("pid", "its process ID"),
            ("resident", "its resident memory"),
            ("live", "bytes in its blocks, under hakmem"),
            ("blocks", "number of these blocks"),
            ("allocator", "that provides malloc"),
        ],
        is_first_text: true,
        rows,
    }
}

impl Rows {
    pub fn filter(&mut self, wanted: &str) {
        if !wanted.is_empty() {
            let wanted = wanted.to_lowercase();
            let has = |row: &Vec<Cell>| {
                row.iter()
                    .any(|cell| cell.text.to_lowercase().contains(&wanted))
            };
            self.rows.retain(has);
        }
    }

    /// Sorts by a column, the largest first unless `is_rising`.
    pub fn sort(&mut self, column: usize, is_rising: bool) {
        if column >= self.columns.len() {
            return;
        }
        let is_text = self.is_first_text && column == 0;
        self.rows.sort_by(|one, other| {
            let (one, other) = (&one[column], &other[column]);
            let order = if is_text {
                other.text.cmp(&one.text)
            } else {
                one.key.total_cmp(&other.key)
            };
            if is_rising { order } else { order.reverse() }
        });
    }
}
