//! The threads that allocated a site's live blocks, according to their samples; and how much each thread has allocated in
//! total.

use super::Site;
use hakmem_heap::profile::{Sample, Sums, Thread};
use hakmem_heap::shown::shown;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// The live blocks of a site that one thread has allocated.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct OfThread {
    /// The thread's number in the process's own PID namespace.
    pub thread: u64,
    /// Empty if the thread ended before its name was read.
    pub name: String,
    pub live: Sums,
    /// Two standard deviations of their estimated bytes.
    pub live_off: f64,
    /// The ages in seconds of the oldest and the newest of them.
    pub oldest_s: f64,
    pub newest_s: f64,
}

impl OfThread {
    pub fn new(thread: u64) -> OfThread {
        OfThread {
            thread,
            newest_s: f64::MAX,
            ..OfThread::default()
        }
    }

    pub fn note(&mut self, sample: &Sample, age: f64) {
        let bytes = sample.bytes as f64;
        self.live.add(&Sums {
            samples: 1,
            bytes: bytes * sample.blocks,
            blocks: sample.blocks,
        });
        self.oldest_s = self.oldest_s.max(age);
        self.newest_s = self.newest_s.min(age);
        let draws = bytes * bytes * sample.blocks * (sample.blocks - 1.0);
        self.live_off = self.live_off.hypot(2.0 * draws.max(0.0).sqrt());
    }
}

fn label(thread: u64, name: &str) -> String {
    match (thread, name) {
        (0, _) => "(threads beyond those that have a row)".into(),
        (_, "") => format!("thread {thread}"),
        _ => format!("thread {thread} ({name})"),
    }
}

/// The allocations of one thread, at all sites.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Allocating {
    pub thread: u64,
    /// Empty if the thread ended before its name was read.
    pub name: String,
    pub allocated: Sums,
}

impl Allocating {
    pub fn all(threads: &[Thread]) -> Vec<Allocating> {
        let threads = threads.iter().map(|one| Allocating {
            thread: one.id,
            name: String::new(),
            allocated: one.allocated,
        });
        threads.collect()
    }
}

/// Subtracts what was allocated before.
pub fn keep_since(threads: &mut Vec<Allocating>, before: &[Thread]) {
    for one in threads.iter_mut() {
        if let Some(then) = before.iter().find(|then| then.id == one.thread) {
            one.allocated = one.allocated.since(&then.allocated);
        }
    }
    threads.retain(|one| one.allocated.samples > 0);
}

/// One site for each thread that has allocated.
pub fn allocating(threads: &[Allocating]) -> Vec<Site> {
    let sites = threads.iter().map(|one| Site {
        frames: vec![label(one.thread, &one.name)],
        allocated: one.allocated,
        ..Site::default()
    });
    sites.collect()
}

/// One site for each thread that has live blocks.
pub fn by_thread(sites: &[&Site]) -> Vec<Site> {
    let mut groups: Vec<Site> = Vec::new();
    let mut known: HashMap<String, usize> = HashMap::new();
    for part in sites.iter().flat_map(|site| &site.threads) {
        let label = label(part.thread, &part.name);
        let site = Site {
            frames: vec![label.clone()],
            live: part.live,
            live_off: part.live_off,
            oldest_s: part.oldest_s,
            newest_s: part.newest_s,
            ..Site::default()
        };
        match known.get(&label) {
            Some(index) => groups[*index].add(&site),
            None => {
                known.insert(label, groups.len());
                groups.push(site);
            }
        }
    }
    groups
}

/// The names of a process's threads, by their numbers in its own PID namespace.
pub fn names(pid: i32) -> HashMap<u64, String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"));
    let tasks = tasks.into_iter().flatten().flatten();
    tasks.filter_map(|task| name_of(&task.path())).collect()
}

fn name_of(task: &Path) -> Option<(u64, String)> {
    let status = fs::read(task.join("status")).ok()?;
    let status = String::from_utf8_lossy(&status).into_owned();
    let field = |name: &str| {
        let mut lines = status.lines();
        lines.find_map(|line| line.strip_prefix(name))
    };
    let number = field("NSpid:")
        .or(field("Pid:"))?
        .split_whitespace()
        .last()?;
    let comm = fs::read(task.join("comm")).ok()?;
    let comm = comm.strip_suffix(b"\n").unwrap_or(&comm);
    Some((number.parse().ok()?, shown(comm)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_known_by_its_name() {
        let inside = std::thread::Builder::new().name("a worker".into());
        let inside = inside.spawn(|| names(std::process::id() as i32)).unwrap();
        let names = inside.join().unwrap();
        assert!(names.values().any(|name| name == "a worker"), "{names:?}");
    }

    #[test]
    fn what_a_thread_has_at_several_sites_is_one_row() {
        let sample = |bytes, blocks| Sample {
            address: 0,
            bytes,
            block_bytes: bytes,
            blocks,
            time_ns: 0,
            thread: 0,
            stack: 0,
        };
        let part = |thread, name: &str, samples: &[(u64, f64, f64)]| {
            let mut part = OfThread {
                name: name.into(),
                ..OfThread::new(thread)
            };
            for (bytes, blocks, age) in samples {
                part.note(&sample(*bytes, *blocks), *age);
            }
            part
        };
        let site = |threads| Site {
            threads,
            ..Site::default()
        };
        let one = site(vec![part(7, "io", &[(10, 2.0, 3.0), (10, 1.0, 1.0)])]);
        let two = site(vec![
            part(7, "io", &[(5, 1.0, 9.0)]),
            part(8, "", &[(1, 1.0, 0.5)]),
        ]);
        let groups = by_thread(&[&one, &two]);
        let labels: Vec<&str> = groups.iter().map(|site| site.frames[0].as_str()).collect();
        assert_eq!(labels, ["thread 7 (io)", "thread 8"]);
        let io = &groups[0];
        assert_eq!((io.live.samples, io.live.bytes), (3, 35.0));
        assert_eq!((io.oldest_s, io.newest_s), (9.0, 1.0));
        assert!(io.live_off > 0.0 && groups[1].live_off == 0.0);
    }
}
