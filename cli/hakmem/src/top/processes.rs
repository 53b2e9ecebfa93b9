//! The processes that run under hakmem.

use hakmem_heap::control::Control;
use hakmem_heap::figures::Figures;
use hakmem_heap::heap::Heap;
use hakmem_heap::live::LiveProcess;
use std::collections::HashMap;

pub struct Found {
    pub pid: i32,
    pub command_line: String,
    pub release: String,
    pub live_bytes: u64,
    pub mapped_bytes: u64,
    pub live_blocks: u64,
}

/// Which processes were looked into already: a number with the time at which it was started.
#[derive(Default)]
pub struct Search {
    has_hakmem: HashMap<(i32, String), bool>,
}

impl Search {
    /// Those of them that may be read.
    pub fn run(&mut self) -> Vec<Found> {
        let mut found = Vec::new();
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return found;
        };
        let pids =
            entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
        for pid in pids {
            if pid == i32::try_from(std::process::id()).unwrap_or(0) {
                continue;
            }
            let key = (pid, start_time(pid));
            if self.has_hakmem.get(&key) == Some(&false) {
                continue;
            }
            let one = examine(pid);
            self.has_hakmem.insert(key, one.is_some());
            found.extend(one);
        }
        found.sort_by_key(|one| std::cmp::Reverse(one.live_bytes));
        found
    }
}

fn start_time(pid: i32) -> String {
    let text =
        String::from_utf8_lossy(&std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default())
            .into_owned();
    // Behind the name, which may have blanks in it.
    let rest = text.rsplit_once(')').map_or("", |(_, rest)| rest);
    rest.split(' ').nth(20).unwrap_or_default().to_string()
}

fn examine(pid: i32) -> Option<Found> {
    let process = LiveProcess::open(pid).ok()?;
    let control = Control::find(&process).ok()?;
    let heap = Heap::read_by(&process, &control).ok()?;
    let totals = Figures::of(&heap).totals;
    Some(Found {
        pid,
        command_line: process.command_line().into(),
        release: control.release,
        live_bytes: totals.live_bytes,
        mapped_bytes: totals.mapped_bytes,
        live_blocks: totals.live_blocks,
    })
}
