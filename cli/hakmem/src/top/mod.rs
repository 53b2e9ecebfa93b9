//! What `hakmem top` shows: repeated looks at a process, and the changes between them.

mod others;
mod ours;
pub mod plain;
pub mod processes;
mod room;
pub mod screen;
pub mod table;
mod words;

use crate::doctor::{self, Patient, Visit};
use crate::target::{Opened, open_process};
use hakmem_heap::error::Error;
use hakmem_heap::figures::Figures;
use hakmem_lab::error::Result;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How many looks to keep for the sparklines: more than a wide terminal shows.
const HISTORY: usize = 300;
/// Looks take at most one part in this many of the time: another allocator's heap is read as a whole.
const SHARE: u32 = 5;

/// One look.
pub struct Look {
    pub at: Instant,
    pub took: Duration,
    pub seen: Seen,
    pub resident_bytes: u64,
    pub threads: u64,
}

/// A look at the heap of any allocator.
pub enum Seen {
    Ours {
        figures: Figures,
        /// A name for each cache of the figures.
        owners: Vec<String>,
    },
    Others(doctor::Moment),
}

pub struct Watched {
    patient: Patient,
    /// For a heap that is not hakmem's: the first findings, with the figures of the latest look.
    pub visit: Option<Visit>,
    pub title: String,
    pub last: Look,
    before: Option<Look>,
    pub live: VecDeque<u64>,
    pub resident: VecDeque<u64>,
    /// Blocks that moved per second; for another allocator's heap, its free bytes.
    pub third: VecDeque<u64>,
}

impl Watched {
    pub fn begin(pid: i32) -> Result<Watched> {
        let process = open_process(pid)?;
        let title = format!("{pid} {}", process.command_line());
        let patient = Patient::of(Opened::Live(process));
        let visit = match patient.opened().uses_hakmem() {
            true => None,
            false => Some(with_heap(&patient)?),
        };
        let mut watched = Watched {
            title,
            last: look(&patient, visit.is_none())?,
            patient,
            visit,
            before: None,
            live: VecDeque::new(),
            resident: VecDeque::new(),
            third: VecDeque::new(),
        };
        watched.remember();
        Ok(watched)
    }

    /// Makes the next look.
    pub fn advance(&mut self) -> Result<()> {
        let look = look(&self.patient, self.visit.is_none())?;
        if let (Some(visit), Seen::Others(moment)) = (&mut self.visit, &look.seen) {
            visit.now = moment.clone();
        }
        self.before = Some(std::mem::replace(&mut self.last, look));
        self.remember();
        Ok(())
    }

    /// Why it cannot be read any more.
    pub fn lost(&self) -> Option<Error> {
        self.patient.opened().lost()
    }

    /// The time between two looks, if `asked` is requested.
    pub fn pause(&self, asked: Duration) -> Duration {
        asked.max(self.last.took * SHARE)
    }

    fn remember(&mut self) {
        let push = |history: &mut VecDeque<u64>, value: u64| {
            history.push_back(value);
            if history.len() > HISTORY {
                history.pop_front();
            }
        };
        let (live, third) = match &self.last.seen {
            Seen::Ours { figures, .. } => {
                let moved = self.rate(ours::moved_blocks);
                (figures.totals.live_bytes, moved as u64)
            }
            Seen::Others(moment) => (others::live(moment), moment.look().free()),
        };
        push(&mut self.live, live);
        push(&mut self.resident, self.last.resident_bytes);
        push(&mut self.third, third);
    }

    fn seconds(&self) -> f64 {
        let before = self.before.as_ref();
        let since = before.map(|before| self.last.at - before.at);
        since.map_or(1.0, |since| since.as_secs_f64().max(1e-3))
    }

    /// The growth per second since the look before.
    pub fn rate(&self, figure: impl Fn(&Figures) -> u64) -> f64 {
        let figures = |look: &'_ Look| match &look.seen {
            Seen::Ours { figures, .. } => Some(figure(figures)),
            Seen::Others(_) => None,
        };
        let before = self.before.as_ref().and_then(figures);
        let more = before.zip(figures(&self.last));
        more.map_or(0, |(before, now)| now.saturating_sub(before)) as f64 / self.seconds()
    }

    /// The change per second since the look before.
    pub fn change(&self, figure: impl Fn(&Look) -> u64) -> f64 {
        let before = self.before.as_ref().map(&figure);
        before.map_or(0.0, |before| {
            (figure(&self.last) as f64 - before as f64) / self.seconds()
        })
    }
}

/// If no known heap is found, returns the error for programs without hakmem.
fn with_heap(patient: &Patient) -> Result<Visit> {
    let visit = Visit::pay(patient, None)?;
    match patient.opened().heap() {
        Err(error) if !visit.has_heap() => Err(error),
        _ => Ok(visit),
    }
}

fn look(patient: &Patient, is_ours: bool) -> Result<Look> {
    let begin = Instant::now();
    let opened = patient.opened();
    let seen = match is_ours {
        true => {
            let heap = opened.heap()?;
            Seen::Ours {
                owners: crate::picture::owner_names(&heap, &|thread| opened.thread_name(thread)),
                figures: Figures::of(&heap),
            }
        }
        false => Seen::Others(patient.look()?),
    };
    Ok(Look {
        at: Instant::now(),
        took: begin.elapsed(),
        seen,
        resident_bytes: resident_bytes(opened.task().unwrap_or(0)),
        threads: patient.threads().unwrap_or(0),
    })
}

fn resident_bytes(task: i32) -> u64 {
    let statm = std::fs::read_to_string(format!("/proc/{task}/statm")).unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE);
    let page = page.ok().flatten();
    let page = page.and_then(|page| u64::try_from(page).ok());
    pages.unwrap_or(0) * page.unwrap_or(4096)
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

/// "+12.3 k"
fn signed(number: f64) -> String {
    match number {
        n if n <= -0.05 => format!("-{}", short(-n)),
        n if n < 0.05 => "0".into(),
        n => format!("+{}", short(n)),
    }
}
