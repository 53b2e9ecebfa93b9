//! The processes that may be looked into, whichever allocator they have.

use super::resident_bytes;
use crate::doctor::which;
use crate::target::Opened;
use hakmem_heap::control::Control;
use hakmem_heap::figures::{Figures, Totals};
use hakmem_heap::heap::Heap;
use hakmem_heap::live::LiveProcess;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// For finding out which allocators there are, at each look: on a screen, others wait for the next one.
const SCREEN_TIME: Duration = Duration::from_millis(100);

pub struct Found {
    pub pid: i32,
    pub command_line: String,
    /// "glibc 2.36"; None: not looked at yet.
    pub allocator: Option<String>,
    pub resident_bytes: u64,
    /// Of a heap of hakmem's. Another one's would have to be read as a whole for it.
    pub totals: Option<Totals>,
}

/// What a process was looked at as: a number may be that of another process later, and a process may become another program.
type Program = (i32, String, Option<PathBuf>);

#[derive(Clone)]
enum Known {
    /// Its heap is read again each time.
    Ours,
    Others {
        allocator: String,
        command_line: String,
    },
}

#[derive(Default)]
pub struct Search {
    known: HashMap<Program, Known>,
}

impl Search {
    /// Those of them that may be read, the largest first.
    pub fn run(&mut self) -> Vec<Found> {
        self.look(None)
    }

    /// The same in a short time; some are without their allocator's name then.
    pub fn run_for_screen(&mut self) -> Vec<Found> {
        self.look(Some(Instant::now() + SCREEN_TIME))
    }

    fn look(&mut self, until: Option<Instant>) -> Vec<Found> {
        let pids = pids().map(|pid| (Reverse(resident_bytes(pid)), pid));
        let mut pids: Vec<_> = pids.collect();
        pids.sort_unstable();
        let mut before = std::mem::take(&mut self.known);
        let mut found = Vec::new();
        for (Reverse(resident_bytes), pid) in pids {
            let program = program(pid);
            let known = before.remove(&program);
            let is_late = known.is_none() && until.is_some_and(|until| Instant::now() >= until);
            let one = match known {
                Some(Known::Others {
                    allocator,
                    command_line,
                }) => Some(Found {
                    pid,
                    command_line,
                    allocator: Some(allocator),
                    resident_bytes,
                    totals: None,
                }),
                _ => LiveProcess::open(pid).ok().map(|process| Found {
                    resident_bytes,
                    ..examine(process, is_late)
                }),
            };
            if let Some(known) = one.as_ref().and_then(Found::known) {
                self.known.insert(program, known);
            }
            found.extend(one);
        }
        found
    }
}

impl Found {
    fn known(&self) -> Option<Known> {
        let allocator = self.allocator.clone()?;
        Some(match self.totals {
            Some(_) => Known::Ours,
            None => Known::Others {
                allocator,
                command_line: self.command_line.clone(),
            },
        })
    }
}

/// All but our own.
fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| u32::try_from(*pid) != Ok(std::process::id()))
}

fn program(pid: i32) -> Program {
    let text =
        String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default())
            .into_owned();
    // Behind the name, which may have blanks in it.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let begin = rest.split(' ').nth(20).unwrap_or_default().to_string();
    let file = std::fs::read_link(format!("/proc/{pid}/exe"));
    (pid, begin, file.ok())
}

/// `is_late`: there is no time to find out which allocator it has.
fn examine(process: LiveProcess, is_late: bool) -> Found {
    let mut one = Found {
        pid: process.pid,
        command_line: process.command_line().into(),
        allocator: None,
        resident_bytes: 0,
        totals: None,
    };
    if is_late {
        return one;
    }
    if let Ok(control) = Control::find(&process) {
        one.totals = Heap::read_by(&process, &control)
            .ok()
            .map(|heap| Figures::of(&heap).totals);
        one.allocator = one.totals.map(|_| format!("hakmem {}", control.release));
        return one;
    }
    let (allocators, _) = which::of(&Opened::Live(process));
    let malloc = allocators.iter().find(|used| used.is_malloc);
    one.allocator = Some(malloc.map_or_else(|| "-".into(), which::Used::name));
    one
}
