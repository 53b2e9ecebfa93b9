//! Judges figures: what most of the memory is, and what else is worth reporting. Only numbers; the words are elsewhere.

use crate::figures::{Arena, Figures};
use crate::ledger::Ledger;
use crate::pieces;
use hakmem_heap::ledger::{Account, signed};
use serde::Serialize;

/// The smallest share of resident memory that gets a sentence of its own.
const SHARE_LEAST: f64 = 0.05;
const BYTES_LEAST: u64 = 4 << 20;
/// The least number of thread arenas with free memory that gets a sentence.
const ARENAS_LEAST: usize = 2;
/// A smaller process is not worth an analysis.
const SMALL: u64 = 32 << 20;

/// The parts of resident memory; they do not overlap.
#[derive(Clone, Copy, Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Live blocks.
    Live,
    /// Memory that was freed and that the allocator keeps.
    Free,
    /// hakmem's heap, if it is not known how much of it is in use.
    Hakmem,
    Files,
    Shared,
    Stacks,
    /// Memory that the program or a library has mapped.
    Mapped,
}

#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case", tag = "cause")]
pub enum Finding {
    /// Free pages that malloc_trim(0) gives back.
    Trim {
        bytes: u64,
    },
    /// Free memory that no trim gives back, as it lies beside blocks in use.
    Pinned {
        bytes: u64,
    },
    /// Free memory in thread arenas, some of which have no thread any more.
    ThreadArenas {
        bytes: u64,
        arenas: u64,
        idle_arenas: u64,
        idle_bytes: u64,
    },
    /// Free blocks in thread caches.
    Caches {
        bytes: u64,
        caches: u64,
    },
    /// Free spans of an allocator that will give them back later by itself.
    Kept {
        allocator: String,
        bytes: u64,
    },
    /// Free memory beside blocks in use, of an allocator other than glibc's.
    Beside {
        allocator: String,
        bytes: u64,
    },
    /// Huge pages of a heap that is largely free.
    Huge {
        bytes: u64,
        free_bytes: u64,
    },
    Files {
        bytes: u64,
    },
    Shared {
        bytes: u64,
    },
    Stacks {
        bytes: u64,
    },
    Mapped {
        bytes: u64,
        stretches: u64,
    },
    Swapped {
        bytes: u64,
    },
    /// It contradicts itself: it is damaged, or changed during the read.
    Unclear {
        bytes: u64,
    },
    /// Growth between two looks.
    LiveGrew {
        bytes: i64,
        blocks: i64,
    },
    FreeGrew {
        bytes: i64,
    },
    ElseGrew {
        bytes: i64,
    },
}

#[derive(Clone, Debug, Serialize)]
pub struct Judgement {
    /// The largest part, and its size.
    pub main: Part,
    pub main_bytes: u64,
    pub resident_bytes: u64,
    pub is_small: bool,
    /// The most important first.
    pub findings: Vec<Finding>,
}

/// The figures of one look.
#[derive(Clone, Copy)]
pub struct Look<'a> {
    pub ledger: &'a Ledger,
    pub figures: Option<&'a Figures>,
    pub others: &'a [pieces::Figures],
    /// hakmem's heap.
    pub hakmem: Option<&'a Account>,
}

impl Look<'_> {
    /// Resident bytes of live blocks.
    pub fn live(&self) -> u64 {
        let live = |figures: &Figures| figures.total.resident.live + figures.mapped.resident_bytes;
        let others = self.others.iter().map(|one| one.resident.live);
        let hakmem = self.hakmem.map_or(0, |account| account.resident.live);
        self.figures.map_or(0, live) + others.sum::<u64>() + hakmem
    }

    /// Resident bytes that are free.
    pub fn free(&self) -> u64 {
        let others = self.others.iter().map(|one| one.resident.free());
        let free = |figures: &Figures| figures.total.resident.free();
        let hakmem = self.hakmem.map_or(0, |account| account.resident.free());
        self.figures.map_or(0, free) + others.sum::<u64>() + hakmem
    }

    /// The number of live blocks.
    pub fn blocks(&self) -> u64 {
        let blocks = |figures: &Figures| figures.total.live_blocks + figures.mapped.blocks;
        let others = self.others.iter().map(|one| one.live_blocks);
        let hakmem = self.hakmem.map_or(0, |account| account.live_blocks);
        self.figures.map_or(0, blocks) + others.sum::<u64>() + hakmem
    }

    fn parts(&self) -> [(Part, u64); 7] {
        let others = &self.ledger.others;
        let unknown = match self.hakmem {
            None => self.ledger.hakmem_bytes,
            Some(account) => account.resident.copies,
        };
        [
            (Part::Live, self.live()),
            (Part::Free, self.free()),
            (Part::Hakmem, unknown),
            (Part::Files, others.file_pages + others.file_copies),
            (Part::Shared, others.shared),
            (Part::Stacks, others.stacks),
            (Part::Mapped, others.mapped + others.by_break),
        ]
    }
}

pub fn judge(look: &Look, before: Option<&Look>) -> Judgement {
    let resident_bytes = look.ledger.kernel_bytes;
    let (main, main_bytes) = look
        .parts()
        .into_iter()
        .max_by_key(|(_, bytes)| *bytes)
        .unwrap_or((Part::Mapped, 0));
    let counts =
        |bytes: u64| bytes >= BYTES_LEAST && bytes as f64 >= resident_bytes as f64 * SHARE_LEAST;
    let mut findings = Vec::new();
    if let Some(figures) = look.figures {
        of_heap(figures, look.ledger, &counts, &mut findings);
    }
    for heap in look.others {
        of_pieces(heap, &counts, &mut findings);
    }
    let others = &look.ledger.others;
    let files = others.file_pages + others.file_copies;
    let mapped = others.mapped + others.by_break;
    let stretches = look.ledger.stretches;
    let more = [
        (Finding::Files { bytes: files }, files),
        (
            Finding::Shared {
                bytes: others.shared,
            },
            others.shared,
        ),
        (
            Finding::Stacks {
                bytes: others.stacks,
            },
            others.stacks,
        ),
        (
            Finding::Mapped {
                bytes: mapped,
                stretches,
            },
            mapped,
        ),
    ];
    let worth = more.into_iter().filter(|(_, bytes)| counts(*bytes));
    findings.extend(worth.map(|(finding, _)| finding));
    let swapped = look.ledger.swapped_bytes;
    if swapped >= BYTES_LEAST {
        findings.push(Finding::Swapped { bytes: swapped });
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.weight()));
    if let Some(before) = before {
        let grew = grown(before, look);
        findings.splice(0..0, grew);
    }
    Judgement {
        main,
        main_bytes,
        resident_bytes,
        is_small: resident_bytes < SMALL,
        findings,
    }
}

fn of_heap(
    figures: &Figures,
    ledger: &Ledger,
    counts: &dyn Fn(u64) -> bool,
    findings: &mut Vec<Finding>,
) {
    let total = &figures.total;
    let resident = &total.resident;
    let mut add = |bytes: u64, finding: Finding| {
        if counts(bytes) {
            findings.push(finding);
        }
    };
    add(
        total.trim_bytes,
        Finding::Trim {
            bytes: total.trim_bytes,
        },
    );
    let bytes = resident.free_beside;
    add(bytes, Finding::Pinned { bytes });
    let bytes = resident.cached;
    add(
        bytes,
        Finding::Caches {
            bytes,
            caches: figures.caches,
        },
    );
    let of_threads: Vec<&Arena> = figures.arenas.iter().filter(|one| !one.is_main).collect();
    let free = |arenas: &[&Arena]| arenas.iter().map(|one| one.resident.free()).sum::<u64>();
    let idle: Vec<&Arena> = of_threads
        .iter()
        .copied()
        .filter(|one| one.threads == Some(0))
        .collect();
    if of_threads.len() >= ARENAS_LEAST {
        let bytes = free(&of_threads);
        add(
            bytes,
            Finding::ThreadArenas {
                bytes,
                arenas: of_threads.len() as u64,
                idle_arenas: idle.len() as u64,
                idle_bytes: free(&idle),
            },
        );
    }
    let free_bytes = resident.free();
    let bytes = ledger.huge_bytes;
    add(bytes.min(free_bytes), Finding::Huge { bytes, free_bytes });
    if total.unclear_bytes > 0 {
        findings.push(Finding::Unclear {
            bytes: total.unclear_bytes,
        });
    }
}

fn of_pieces(heap: &pieces::Figures, counts: &dyn Fn(u64) -> bool, findings: &mut Vec<Finding>) {
    let bytes = heap.resident.free_pieces;
    if counts(bytes) {
        let allocator = heap.allocator.clone();
        findings.push(Finding::Kept { allocator, bytes });
    }
    let bytes = heap.resident.free_beside;
    if counts(bytes) {
        let allocator = heap.allocator.clone();
        findings.push(Finding::Beside { allocator, bytes });
    }
}

impl Finding {
    fn weight(&self) -> u64 {
        match *self {
            Finding::Trim { bytes }
            | Finding::Pinned { bytes }
            | Finding::ThreadArenas { bytes, .. }
            | Finding::Caches { bytes, .. }
            | Finding::Kept { bytes, .. }
            | Finding::Beside { bytes, .. }
            | Finding::Huge { bytes, .. }
            | Finding::Files { bytes }
            | Finding::Shared { bytes }
            | Finding::Stacks { bytes }
            | Finding::Mapped { bytes, .. }
            | Finding::Swapped { bytes }
            | Finding::Unclear { bytes } => bytes,
            Finding::LiveGrew { .. } | Finding::FreeGrew { .. } | Finding::ElseGrew { .. } => 0,
        }
    }
}

fn difference(before: u64, after: u64) -> i64 {
    signed(after) - signed(before)
}

/// How much each part has grown, the largest change first.
fn grown(before: &Look, after: &Look) -> Vec<Finding> {
    let live = difference(before.live(), after.live());
    let free = difference(before.free(), after.free());
    let all = difference(before.ledger.kernel_bytes, after.ledger.kernel_bytes);
    let rest = all - live - free;
    let mut grown = vec![
        (
            live,
            Finding::LiveGrew {
                bytes: live,
                blocks: difference(before.blocks(), after.blocks()),
            },
        ),
        (free, Finding::FreeGrew { bytes: free }),
        (rest, Finding::ElseGrew { bytes: rest }),
    ];
    grown.sort_by_key(|(bytes, _)| std::cmp::Reverse(bytes.unsigned_abs()));
    grown.into_iter().map(|(_, finding)| finding).collect()
}
