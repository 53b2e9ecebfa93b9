//! Examines a process, or its core dump or snapshot, whatever its allocator is.

pub mod kept;
pub mod page;
mod picture;
pub mod png;
pub mod seen;
pub mod sentences;
mod sheet;
pub mod svg;
pub mod which;
pub mod words;

use crate::profile::look::part;
use crate::target::{Opened, ended, open_file, open_process, told, warn_of_cut};
use hakmem_foreign::figures::Figures;
use hakmem_foreign::heaps::Heaps;
use hakmem_foreign::judge::{Judgement, Look, judge};
use hakmem_foreign::ledger::Ledger;
use hakmem_foreign::map::Map;
use hakmem_foreign::pieces;
use hakmem_foreign::space::Space;
use hakmem_heap::error::Error;
use hakmem_heap::heap::Heap;
use hakmem_heap::ledger::Account;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::failed;
use hakmem_lab::meter::quoted;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};
use which::Used;

/// hakmem's metadata end at multiples of this; a larger page of the kernel contains them, too.
const PAGE_BYTES: u64 = 4096;

pub struct Patient {
    opened: Opened,
    subject: String,
    /// The map of the heaps takes an extra pass.
    wants_map: bool,
}

/// What was found at one moment.
#[derive(Clone, Serialize, Deserialize)]
pub struct Moment {
    pub ledger: Ledger,
    pub glibc: Option<Figures>,
    /// Known heaps of other allocators.
    pub others: Vec<pieces::Figures>,
    /// hakmem's own figures, if it is loaded; None for a core dump, which does not tell what was resident.
    #[serde(default)]
    pub hakmem: Option<Account>,
    /// What lies where in the heaps.
    #[serde(skip)]
    pub map: Map,
}

/// Everything that was found about a patient.
#[derive(Serialize)]
pub struct Visit {
    pub title: String,
    /// The arguments with which other commands read hakmem's heap: "4711", "--core FILE".
    #[serde(skip)]
    pub asked: String,
    pub pid: Option<i32>,
    pub is_core: bool,
    /// For a truncated core dump: which part of it is there.
    pub cut: Option<String>,
    #[serde(skip)]
    pub is_snapshot: bool,
    pub allocators: Vec<Used>,
    /// Other runtimes in it that have memory of their own.
    pub runtimes: Vec<String>,
    pub threads: Option<u64>,
    #[serde(flatten)]
    pub now: Moment,
    pub before: Option<Moment>,
    pub seconds: Option<f64>,
    /// Why there was no second look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    pub judgement: Judgement,
    /// Why hakmem's heap could not be read, and so counts as mapped by the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hakmem_unread: Option<String>,
    /// How long the read took; the process was not stopped.
    pub read_ms: f64,
}

impl Patient {
    pub fn process(pid: i32) -> Result<Patient> {
        Ok(Patient::of(Opened::Live(open_process(pid)?)))
    }

    /// A core dump or a snapshot.
    pub fn file(path: &Path) -> Result<Patient> {
        let opened = open_file(path)?;
        warn_of_cut(&opened);
        Ok(Patient::of(opened))
    }

    pub fn of(opened: Opened) -> Patient {
        let subject = match &opened {
            Opened::Live(process) => format!("process {}", process.pid),
            Opened::Core(core) => core.path.shown(),
            Opened::Snapshot(snapshot) => snapshot.path().shown(),
        };
        Patient {
            opened,
            subject,
            wants_map: false,
        }
    }

    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    pub fn with_map(self) -> Patient {
        Patient {
            wants_map: true,
            ..self
        }
    }

    /// The error for a patient that could be opened, but not read.
    fn lost(&self, error: &Error) -> hakmem_lab::error::Error {
        match &self.opened {
            Opened::Live(_) if matches!(error, Error::Gone(_)) => failed!("{}", ended(error)),
            Opened::Live(process) => told(error, &self.subject, Some(process.pid)),
            Opened::Core(_) | Opened::Snapshot(_) => failed!("{}: {error}", self.subject),
        }
    }

    pub fn look(&self) -> Result<Moment> {
        // First, as the search for hakmem's tables makes pages of files resident, which both ledgers then count.
        let own = self.own();
        let space = match &self.opened {
            Opened::Live(process) => {
                Space::of_process(process).map_err(|error| self.lost(&error))?
            }
            Opened::Core(core) => Space::of_core(core),
            Opened::Snapshot(snapshot) => return Ok(snapshot.visit().moment()),
        };
        let heaps = Heaps::read(&space);
        let numbers = heaps.numbers(&space);
        let ledger = Ledger::of(&space, &heaps, &numbers, &own.ranges);
        self.opened.whole(Moment {
            ledger,
            glibc: numbers.glibc,
            others: numbers.others,
            hakmem: own.account,
            map: match self.wants_map {
                true => Map::of(&heaps, &space),
                false => Map::default(),
            },
        })
    }

    fn own(&self) -> Own {
        if !self.opened.uses_hakmem() {
            return Own::default();
        }
        // A heap that cannot be read is shown as memory that the program has mapped (`Visit::hakmem_unread`).
        let Ok(heap) = self.opened.heap() else {
            return Own::default();
        };
        let mut ranges = heap.ranges(PAGE_BYTES);
        ranges.extend(Heap::ranges_of_other_copies(
            self.opened.memory(),
            PAGE_BYTES,
        ));
        ranges.sort_unstable_by_key(|range| range.start);
        Own {
            ranges,
            account: self.opened.account(&heap).ok().flatten(),
        }
    }

    fn hakmem_unread(&self, now: &Moment) -> Option<String> {
        let is_told = now.hakmem.is_some() || !self.opened.uses_hakmem();
        let why = (!is_told).then(|| self.opened.heap().err()).flatten()?;
        Some(why.to_string())
    }

    pub fn threads(&self) -> Option<u64> {
        match &self.opened {
            Opened::Live(process) => {
                let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid)).ok()?;
                Some(tasks.count() as u64)
            }
            Opened::Core(core) => Some(core.story.threads.len() as u64),
            Opened::Snapshot(snapshot) => snapshot.visit().threads,
        }
    }
}

/// What hakmem's own tables tell, if it is loaded.
#[derive(Default)]
struct Own {
    ranges: Vec<Range<u64>>,
    account: Option<Account>,
}

impl Visit {
    /// One look, or two with a wait between them. Of a process that ends meanwhile, or becomes another program, it is the
    /// first, and `part` says so.
    pub fn pay(patient: &Patient, wait: Option<Duration>) -> Result<Visit> {
        let first = Visit::once(patient)?;
        let Some(wait) = wait else {
            return Ok(first);
        };
        let since = Instant::now();
        let waited = patient.opened.wait(wait);
        let seconds = since.elapsed();
        let second = waited
            .map_err(|error| patient.lost(&error))
            .and_then(|()| Visit::once(patient));
        match (second, patient.opened.lost()) {
            (Ok(second), _) => {
                let judgement = judge(&second.now.look(), Some(&first.now.look()));
                Ok(Visit {
                    judgement,
                    before: Some(first.now),
                    seconds: Some(seconds.as_secs_f64()),
                    ..second
                })
            }
            (Err(_), Some(end @ (Error::Gone(_) | Error::Became(_)))) => Ok(Visit {
                part: Some(part(&end, since.elapsed())),
                ..first
            }),
            (Err(error), _) => Err(error),
        }
    }

    fn once(patient: &Patient) -> Result<Visit> {
        let start = Instant::now();
        let now = patient.look()?;
        let took_ms = start.elapsed().as_secs_f64() * 1e3;
        let (mut allocators, runtimes) = which::of(&patient.opened);
        which::settle(&mut allocators, &now);
        let judgement = judge(&now.look(), None);
        let (pid, is_core, read_ms) = match &patient.opened {
            Opened::Live(process) => (Some(process.pid), false, took_ms),
            Opened::Core(_) => (None, true, took_ms),
            Opened::Snapshot(snapshot) => {
                let kept = snapshot.visit();
                (kept.pid, kept.is_core, kept.read_ms)
            }
        };
        let cut = match &patient.opened {
            Opened::Live(_) => None,
            Opened::Core(core) => core.cut(),
            Opened::Snapshot(snapshot) => snapshot.visit().cut.clone(),
        };
        patient.opened.whole(Visit {
            title: patient.opened.title(),
            asked: match &patient.opened {
                Opened::Live(process) => process.pid.to_string(),
                Opened::Core(_) | Opened::Snapshot(_) => {
                    format!("--core {}", quoted(&patient.subject))
                }
            },
            pid,
            is_core,
            cut,
            is_snapshot: matches!(patient.opened, Opened::Snapshot(_)),
            judgement,
            hakmem_unread: patient.hakmem_unread(&now),
            allocators,
            runtimes,
            threads: patient.threads(),
            now,
            before: None,
            seconds: None,
            part: None,
            read_ms,
        })
    }

    /// Was a heap of a known allocator found?
    pub fn has_heap(&self) -> bool {
        self.now.glibc.is_some() || !self.now.others.is_empty()
    }

    /// The allocator of malloc, if its heap cannot be read here.
    pub fn foreign(&self) -> Option<&Used> {
        let mut used = self.allocators.iter();
        let is_read = |used: &Used| {
            let mut others = self.now.others.iter();
            others.any(|heap| used.names.contains(&heap.allocator))
        };
        used.find(|used| used.is_malloc && !used.is_glibc() && !used.is_hakmem() && !is_read(used))
    }

    /// The resident bytes that the rows do not explain.
    pub fn remainder(&self) -> i64 {
        match &self.now.hakmem {
            Some(account) => account.remainder_bytes,
            None => self.now.ledger.remainder_bytes,
        }
    }
}

impl Moment {
    pub fn look(&self) -> Look<'_> {
        Look {
            ledger: &self.ledger,
            figures: self.glibc.as_ref(),
            others: &self.others,
            hakmem: self.hakmem.as_ref(),
        }
    }
}
