//! A profile with names: who allocated, how much of it is live, and for how long.

pub mod at_peak;
pub mod changes;
pub mod flame;
pub mod group;
pub mod look;
pub mod of_trace;
pub mod pprof;
pub mod threads;

use crate::frames;
use hakmem_heap::profile::{Profile, Sample, Sums};
use hakmem_lab::error::Result;
use hakmem_lab::failed;
use hakmem_lab::render::number::counted;
use hakmem_trace::symbols::{Names, Place};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::rc::Rc;
use threads::{Allocating, OfThread};

/// The library's limits (HAK_SAMPLES_MAX and HAK_SAMPLE_STACKS_MAX in src/profile/sample.h).
const SAMPLES_MAX: &str = "262,144";
const STACKS_MAX: &str = "65,536";

/// Identifies a saved profile; comes first in the file.
const KIND: &str = "hakmem profile";

/// The allocations of all call stacks with the same names.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Site {
    /// The innermost first.
    pub frames: Vec<String>,
    pub allocated: Sums,
    pub live: Sums,
    pub peak: Sums,
    /// Two standard deviations of the estimated live bytes.
    pub live_off: f64,
    /// The ages in seconds of the oldest and the newest live block.
    pub oldest_s: f64,
    pub newest_s: f64,
    /// Memory that a language or the C library keeps until the end; no leak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known: Option<String>,
    /// The threads that allocated the live blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<OfThread>,
    /// The stacks that the site is the sum of.
    #[serde(skip)]
    pub stacks: Vec<Stack>,
}

impl Site {
    /// Adds a site that counts as this one.
    fn add(&mut self, other: &Site) {
        self.allocated.add(&other.allocated);
        self.peak.add(&other.peak);
        self.live_off = self.live_off.hypot(other.live_off);
        if self.live.samples == 0 {
            (self.oldest_s, self.newest_s) = (other.oldest_s, other.newest_s);
        } else if other.live.samples > 0 {
            self.oldest_s = self.oldest_s.max(other.oldest_s);
            self.newest_s = self.newest_s.min(other.newest_s);
        }
        self.live.add(&other.live);
        self.threads.extend(other.threads.iter().cloned());
    }

    /// Adds one of its live blocks.
    fn note(&mut self, sample: &Sample, age: f64) {
        self.oldest_s = self.oldest_s.max(age);
        self.newest_s = self.newest_s.min(age);
        // The variance of sampling with the chance 1 / blocks.
        let worth = sample.bytes as f64;
        self.live_off += worth * worth * sample.blocks * (sample.blocks - 1.0);
    }
}

/// The allocations of one call stack.
#[derive(Clone, Debug)]
pub struct Stack {
    /// The innermost first.
    pub places: Vec<Rc<Place>>,
    pub allocated: Sums,
    pub live: Sums,
    /// As they were recorded.
    addresses: Vec<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Snapshot {
    pub kind: String,
    pub title: String,
    /// The mean distance of samples in bytes.
    pub every: u64,
    /// How long sampling was on for this; 0: unknown.
    pub seconds: f64,
    pub samples_taken: u64,
    pub samples_dropped: u64,
    /// Samples without a call stack, as there was no room for theirs.
    #[serde(default)]
    pub samples_stackless: u64,
    pub spent_ms: f64,
    pub sites: Vec<Site>,
    /// The allocations of each thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<Allocating>,
    /// Why it is less than requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<String>,
    /// Why some frames have no names: one sentence per file.
    #[serde(default)]
    pub notes: Vec<String>,
    /// The processes, if this is the sum of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<Part>,
}

/// One of several processes, in the order of their starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    /// Numbered from 1.
    pub process: usize,
    pub pid: i32,
    pub program: String,
    /// None: its memory was not read at its end, or belongs to another allocator.
    pub live: Option<Sums>,
}

/// Selects one of a site's sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    Live,
    Allocated,
    Peak,
}

impl View {
    pub fn of(self, site: &Site) -> &Sums {
        match self {
            View::Live => &site.live,
            View::Allocated => &site.allocated,
            View::Peak => &site.peak,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            View::Live => "live",
            View::Allocated => "allocated",
            View::Peak => "live at the peak",
        }
    }
}

impl Snapshot {
    /// `now_ns`: the time by CLOCK_MONOTONIC. None if there is no current time, as in a core dump: then the latest sample's
    /// time counts.
    pub fn of(
        profile: &Profile,
        names: &mut Names,
        title: String,
        now_ns: Option<u64>,
    ) -> Snapshot {
        let latest = profile.samples.iter().map(|sample| sample.time_ns).max();
        let now = now_ns.or(latest).unwrap_or(0);
        let mut sites: Vec<Site> = Vec::new();
        let mut by_name: HashMap<Vec<String>, usize> = HashMap::new();
        let mut site_of_stack = Vec::new();
        for stack in &profile.stacks {
            let places = frames::places(stack, &profile.python, names);
            let frames = places.iter().flat_map(|place| place.frames.clone());
            let frames: Vec<String> = frames.collect();
            let index = *by_name.entry(frames.clone()).or_insert_with(|| {
                sites.push(Site {
                    frames,
                    newest_s: f64::MAX,
                    ..Site::default()
                });
                sites.len() - 1
            });
            sites[index].stacks.push(Stack {
                places,
                allocated: stack.allocated,
                live: stack.live,
                addresses: stack.frames.clone(),
            });
            sites[index].allocated.add(&stack.allocated);
            sites[index].live.add(&stack.live);
            sites[index].peak.add(&stack.peak);
            site_of_stack.push(index);
        }
        let mut of_thread: HashMap<(usize, u64), usize> = HashMap::new();
        for sample in &profile.samples {
            let age = now.saturating_sub(sample.time_ns) as f64 / 1e9;
            let index = site_of_stack[sample.stack];
            let site = &mut sites[index];
            site.note(sample, age);
            let at = *of_thread.entry((index, sample.thread)).or_insert_with(|| {
                site.threads.push(OfThread::new(sample.thread));
                site.threads.len() - 1
            });
            site.threads[at].note(sample, age);
        }
        for site in &mut sites {
            site.live_off = 2.0 * site.live_off.sqrt();
            site.newest_s = site.newest_s.min(site.oldest_s);
            site.known = frames::known(&site.frames, site.live.blocks).map(String::from);
        }
        sites.retain(|site| site.allocated.samples > 0 || site.live.samples > 0);
        Snapshot {
            kind: KIND.into(),
            title,
            every: profile.every,
            seconds: 0.0,
            samples_taken: profile.taken,
            samples_dropped: profile.dropped,
            samples_stackless: profile.stackless,
            spent_ms: profile.spent_ns as f64 / 1e6,
            sites,
            threads: Allocating::all(&profile.threads),
            part: None,
            notes: names.notes().to_vec(),
            processes: Vec::new(),
        }
    }

    pub fn name_threads(mut self, names: &HashMap<u64, String>) -> Snapshot {
        let name = |thread: u64| names.get(&thread).cloned().unwrap_or_default();
        for part in self.sites.iter_mut().flat_map(|site| &mut site.threads) {
            part.name = name(part.thread);
        }
        for one in &mut self.threads {
            one.name = name(one.thread);
        }
        self
    }

    /// Keeps only what was allocated after `before` was read.
    pub fn since(mut self, before: &Profile) -> Snapshot {
        let mut known: HashMap<&[u64], Sums> = HashMap::new();
        for stack in &before.stacks {
            known
                .entry(&stack.frames)
                .or_default()
                .add(&stack.allocated);
        }
        for site in &mut self.sites {
            site.allocated = Sums::default();
            for stack in &mut site.stacks {
                if let Some(sums) = known.get(stack.addresses.as_slice()) {
                    stack.allocated = stack.allocated.since(sums);
                }
                site.allocated.add(&stack.allocated);
            }
        }
        threads::keep_since(&mut self.threads, &before.threads);
        self.samples_taken = self.samples_taken.saturating_sub(before.taken);
        self.samples_dropped = self.samples_dropped.saturating_sub(before.dropped);
        self.samples_stackless = self.samples_stackless.saturating_sub(before.stackless);
        self.spent_ms -= before.spent_ns as f64 / 1e6;
        self
    }

    /// Adds another process's profile: call stacks with the same names become one site.
    pub fn add(&mut self, other: Snapshot) {
        let known: HashMap<Vec<String>, usize> = self
            .sites
            .iter()
            .enumerate()
            .map(|(index, site)| (site.frames.clone(), index))
            .collect();
        for site in other.sites {
            let Some(index) = known.get(&site.frames) else {
                self.sites.push(site);
                continue;
            };
            let stacks = site.stacks.clone();
            self.sites[*index].add(&site);
            self.sites[*index].stacks.extend(stacks);
        }
        self.threads.extend(other.threads);
        self.samples_taken += other.samples_taken;
        self.samples_dropped += other.samples_dropped;
        self.samples_stackless += other.samples_stackless;
        self.spent_ms += other.spent_ms;
        let is_new = |note: &String| !self.notes.contains(note);
        let more: Vec<String> = other.notes.into_iter().filter(is_new).collect();
        self.notes.extend(more);
    }

    /// What did not fit into the process's tables, and so is missing or has no call stack: one sentence each.
    pub fn limits(&self) -> Vec<String> {
        limits(
            self.samples_taken,
            self.samples_dropped,
            self.samples_stackless,
        )
    }

    /// How far a figure may be off: "± 8 %".
    pub fn off(&self, bytes: f64, off: f64) -> String {
        match () {
            () if bytes > 0.0 && off > 0.0 => {
                format!("± {:.0} %", (100.0 * off / bytes).min(999.0))
            }
            () if self.samples_dropped > 0 => "at least".into(),
            () => "exact".into(),
        }
    }

    /// The sum of all sites.
    pub fn total(&self, view: View) -> Sums {
        let mut total = Sums::default();
        for site in &self.sites {
            total.add(view.of(site));
        }
        total
    }

    /// The sites that are not zero, the largest first.
    pub fn sorted(&self, view: View) -> Vec<&Site> {
        sorted(&self.sites, view)
    }

    /// In the format that 'hakmem diff' reads.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| failed!("{error}"))
    }

    /// None: the JSON is no profile.
    pub fn parse(text: &str) -> Option<Snapshot> {
        let snapshot: Snapshot = serde_json::from_str(text).ok()?;
        (snapshot.kind == KIND).then_some(snapshot)
    }
}

/// One sentence each about dropped samples and samples without a call stack.
pub fn limits(taken: u64, dropped: u64, stackless: u64) -> Vec<String> {
    let mut lines = Vec::new();
    if dropped > 0 {
        lines.push(format!(
            "{dropped} of {taken} samples are missing: a process keeps {SAMPLES_MAX} live \
             samples; more bytes per sample make fewer of them"
        ));
    }
    if stackless > 0 {
        lines.push(format!(
            "{stackless} of {taken} samples are (unknown): a process keeps {STACKS_MAX} call \
             stacks, and these have further ones"
        ));
    }
    lines
}

/// The sites that are not zero, the largest first.
pub fn sorted(sites: &[Site], view: View) -> Vec<&Site> {
    let mut sites: Vec<&Site> = sites.iter().collect();
    sites.retain(|site| view.of(site).samples > 0);
    sites.sort_by(|a, b| view.of(b).bytes.total_cmp(&view.of(a).bytes));
    sites
}

/// How many sites a table shows; further ones are summed up in one line.
pub const ROWS: usize = 30;

/// How many reasons for missing names are printed.
const NOTES: usize = 5;

/// Why some frames have no names; empty if all have.
pub fn notes(notes: &[String]) -> String {
    let mut text = String::new();
    for note in notes.iter().take(NOTES) {
        text += &format!("\n{note}");
    }
    if notes.len() > NOTES {
        text += &format!(
            "\nand none from {}",
            counted((notes.len() - NOTES) as u64, "more file")
        );
    }
    if text.is_empty() { text } else { text + "\n" }
}
