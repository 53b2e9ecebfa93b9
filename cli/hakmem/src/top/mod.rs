//! What `hakmem top` shows: looks at a process in turn, and what changed between them.

pub mod plain;
pub mod processes;
mod room;
pub mod screen;
pub mod table;

use crate::target::{ended, read_process};
use hakmem_heap::figures::Figures;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use hakmem_lab::error::Result;
use std::collections::VecDeque;
use std::time::Instant;

/// Looks that are kept for the sparklines: more than a wide terminal shows.
const HISTORY: usize = 300;

/// One look.
pub struct Look {
    pub at: Instant,
    pub figures: Figures,
    pub resident_bytes: u64,
    pub threads: u64,
    /// A name for each cache of the figures.
    pub owners: Vec<String>,
}

/// What happened in a second, between two looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    pub slow_events: f64,
    pub moved_blocks: f64,
    pub sent_blocks: f64,
    pub purged_bytes: f64,
    pub calls: f64,
}

pub struct Watched {
    process: LiveProcess,
    pub title: String,
    pub last: Look,
    before: Option<Look>,
    pub rates: Rates,
    pub live: VecDeque<u64>,
    pub resident: VecDeque<u64>,
    pub moves: VecDeque<u64>,
}

impl Watched {
    pub fn begin(pid: i32) -> Result<Watched> {
        let process = crate::target::open_process(pid)?;
        let last = look(&process)?;
        let mut watched = Watched {
            title: format!("{pid} {}", process.command_line()),
            process,
            last,
            before: None,
            rates: Rates::default(),
            live: VecDeque::new(),
            resident: VecDeque::new(),
            moves: VecDeque::new(),
        };
        watched.remember();
        Ok(watched)
    }

    /// Look again.
    pub fn advance(&mut self) -> Result<()> {
        let look = look(&self.process)?;
        self.rates = rates(&self.last, &look);
        self.before = Some(std::mem::replace(&mut self.last, look));
        self.remember();
        Ok(())
    }

    /// Why it cannot be looked at any more.
    pub fn lost(&self) -> Option<String> {
        self.process.lost().map(|error| ended(&error))
    }

    fn remember(&mut self) {
        let push = |history: &mut VecDeque<u64>, value: u64| {
            history.push_back(value);
            if history.len() > HISTORY {
                history.pop_front();
            }
        };
        push(&mut self.live, self.last.figures.totals.live_bytes);
        push(&mut self.resident, self.last.resident_bytes);
        push(&mut self.moves, self.rates.moved_blocks as u64);
    }

    pub fn seconds(&self) -> f64 {
        let before = self
            .before
            .as_ref()
            .map_or(self.last.at, |before| before.at);
        (self.last.at - before).as_secs_f64()
    }

    /// How much more of it there is than at the look before, for a second.
    pub fn rate(&self, figure: impl Fn(&Figures) -> u64) -> f64 {
        let Some(before) = &self.before else {
            return 0.0;
        };
        let more = figure(&self.last.figures).saturating_sub(figure(&before.figures));
        more as f64 / self.seconds().max(1e-3)
    }
}

fn look(process: &LiveProcess) -> Result<Look> {
    let heap = read_process(process)?;
    let owners = crate::picture::owner_names(&heap, &|thread| process.thread_name(thread));
    let statm =
        std::fs::read_to_string(format!("/proc/{}/statm", process.task())).unwrap_or_default();
    let pages: u64 = statm
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    let page = page
        .ok()
        .flatten()
        .and_then(|page| u64::try_from(page).ok())
        .unwrap_or(4096);
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid));
    Ok(Look {
        at: Instant::now(),
        figures: Figures::of(&heap),
        resident_bytes: pages * page,
        threads: tasks.map_or(0, |tasks| tasks.count() as u64),
        owners,
    })
}

fn moved_blocks(figures: &Figures) -> u64 {
    let classes = figures.classes.iter();
    classes
        .map(|class| class.refilled_blocks.wrapping_add(class.spilled_blocks))
        .fold(0, u64::wrapping_add)
}

fn rates(before: &Look, after: &Look) -> Rates {
    let seconds = (after.at - before.at).as_secs_f64().max(1e-3);
    let rate = |figure: &dyn Fn(&Figures) -> u64| {
        figure(&after.figures).saturating_sub(figure(&before.figures)) as f64 / seconds
    };
    Rates {
        slow_events: rate(&|figures| figures.counters.slow_events),
        moved_blocks: rate(&moved_blocks),
        sent_blocks: rate(&|figures| figures.counters.caches.sent_blocks),
        purged_bytes: rate(&|figures| figures.counters.os.purged_bytes),
        calls: rate(&|figures| {
            let os = &figures.counters.os;
            os.maps + os.unmaps + os.remaps + os.purges + os.huge_advices
        }),
    }
}

/// "12.3 k"
pub fn short(number: f64) -> String {
    match number {
        n if n < 0.05 => "0".into(),
        n if n < 10.0 => format!("{n:.1}"),
        n if n < 1e4 => format!("{n:.0}"),
        n if n < 1e6 => format!("{:.1} k", n / 1e3),
        n if n < 1e9 => format!("{:.1} M", n / 1e6),
        n => format!("{:.1} G", n / 1e9),
    }
}
