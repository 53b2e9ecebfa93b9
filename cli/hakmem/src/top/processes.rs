//! The processes that may be read, with any allocator.

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

/// How long to look for allocators' names at each look; on a screen, other processes wait for the next look.
const SCREEN_TIME: Duration = Duration::from_millis(100);

pub struct Found {
    pub pid: i32,
    pub command_line: String,
    /// "glibc 2.36"; None: not looked at yet.
    pub allocator: Option<String>,
    pub resident_bytes: u64,
    /// For hakmem's heap only: another heap would have to be read as a whole.
    pub totals: Option<Totals>,
}

/// The identity of a program: a number may later be another process's, and a process may execute another program.
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
    /// The processes that may be read, the largest first.
    pub fn run(&mut self) -> Vec<Found> {
        self.look(None)
    }

    /// The same in a short time; some then lack their allocator's name.
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

/// How many there are. One look may be too short for all of them.
pub fn summary(found: &[Found]) -> String {
    let ours = found.iter().filter(|one| one.totals.is_some()).count();
    let unknown = found.iter().filter(|one| one.allocator.is_none()).count();
    let text = match found.len() {
        0 => return "there is no process that may be read".to_string(),
        1 => format!("1 process may be read, {ours} under hakmem"),
        count => format!("{count} processes may be read, {ours} under hakmem"),
    };
    match unknown {
        0 => text,
        _ => format!("{text}, {unknown} not looked at"),
    }
}

/// Why no process was found.
pub fn why_none() -> &'static str {
    match pids().next() {
        None => "there is no other process",
        Some(_) => {
            "no process may be read: all are other users', or /proc/sys/kernel/yama/ptrace_scope forbids it; try as root"
        }
    }
}

/// All processes except our own.
fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    pids.filter(|pid| u32::try_from(*pid) != Ok(std::process::id()))
}

fn program(pid: i32) -> Program {
    let text =
        String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default())
            .into_owned();
    // Behind the name, which may contain blanks.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    let begin = rest.split(' ').nth(20).unwrap_or_default().to_string();
    let file = std::fs::read_link(format!("/proc/{pid}/exe"));
    (pid, begin, file.ok())
}

/// `is_late`: there is no time to find out its allocator.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn found(allocator: Option<&str>, totals: Option<Totals>) -> Found {
        Found {
            pid: 1,
            command_line: String::new(),
            allocator: allocator.map(str::to_string),
            resident_bytes: 0,
            totals,
        }
    }

    /// A process that nobody has looked at may be under hakmem.
    #[test]
    fn what_was_not_looked_at_is_told() {
        let mut all = vec![
            found(Some("hakmem 1.0.0"), Some(Totals::default())),
            found(Some("glibc 2.36"), None),
        ];
        assert_eq!(summary(&all), "2 processes may be read, 1 under hakmem");
        all.push(found(None, None));
        let text = "3 processes may be read, 1 under hakmem, 1 not looked at";
        assert_eq!(summary(&all), text);
    }
}
