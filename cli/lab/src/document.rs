//! A result file: it contains everything that is needed to make its tables again.
//!
//! `bench/results/README.md` explains the fields. Version 1 came from an earlier runner; it lacks some fields, but can still be
//! read.

use crate::error::Result;
use crate::machine::Machine;
use crate::{input, usage, whole_file};
use hakmem_heap::shown::ShownPath;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::path::Path;

pub const FORMAT: u32 = 2;
/// The group of workloads whose result is a latency instead of a time; means leave them out.
pub const LATENCY: &str = "latency";
/// The group of services whose result is their memory at given moments.
pub const AFTER_PEAK: &str = "after-peak";
/// The group of workloads that continually compare their resident memory with their live bytes.
pub const DAY: &str = "day";

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Document {
    pub format: u32,
    pub label: String,
    pub commit: String,
    pub started: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished: Option<String>,
    pub settings: Settings,
    pub machine: Machine,
    /// The caller's environment, for programs from the command line; without secrets.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub environment: IndexMap<String, String>,
    pub allocators: IndexMap<String, AllocatorRecord>,
    pub variants: IndexMap<String, VariantRecord>,
    /// What a reader must know before the figures: outputs that differ, runs that were not compared.
    #[serde(default)]
    pub notes: Vec<String>,
    pub samples: Vec<Sample>,
    pub refused: Vec<Refused>,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// What was requested.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    pub runs: u32,
    /// The maximum while intervals are wide; 0: no additional runs.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub runs_max: u32,
    pub quick: bool,
    pub real: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub after_peak: bool,
    #[serde(default, skip_serializing_if = "is_false")]
    pub day: bool,
    /// The least time of the runs counts instead of their median.
    #[serde(default, skip_serializing_if = "is_false")]
    pub least: bool,
    pub timeout_s: u64,
    pub allocators: Vec<String>,
    pub workloads: Vec<String>,
    /// The allocator that ratios compare with; empty: the best peer of each row.
    #[serde(default)]
    pub baseline: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct AllocatorRecord {
    pub library: Option<String>,
    pub version: String,
    pub compiler: String,
    pub sha256: String,
    #[serde(default)]
    pub build_id: Option<String>,
    pub environment: IndexMap<String, String>,
}

/// A program and the way in which it was run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct VariantRecord {
    pub about: String,
    pub group: String,
    pub threads: u32,
    pub program: String,
    pub args: Vec<String>,
    pub answer: Option<String>,
    pub environment: IndexMap<String, String>,
    /// For each allocator, the command line that repeats the run.
    pub commands: IndexMap<String, String>,
    /// The clients of a server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drive: Vec<Vec<String>>,
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    pub variant: String,
    pub allocator: String,
    pub round: u32,
    /// Of the command; for a server, of its clients.
    pub wall_s: f64,
    pub cpu_s: f64,
    #[serde(default)]
    pub user_s: f64,
    #[serde(default)]
    pub sys_s: f64,
    /// The CPU time of other programs during the run.
    pub other_cpu_s: f64,
    #[serde(default)]
    pub minor_faults: u64,
    #[serde(default)]
    pub major_faults: u64,
    #[serde(default)]
    pub voluntary_switches: u64,
    #[serde(default)]
    pub involuntary_switches: u64,
    /// VmHWM of the largest process.
    pub peak_kib: u64,
    /// The largest sum of VmHWM over processes that lived at the same time.
    #[serde(default)]
    pub tree_peak_kib: u64,
    /// The peak memory of all processes together, including files that they read, according to the kernel; only if a control
    /// group could be made for the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_peak_kib: Option<u64>,
    /// Resident memory one second after the largest sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_peak_kib: Option<u64>,
    /// At each moment that the workload names: the seconds since the start, and the resident KiB.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub moments: IndexMap<String, (f64, u64)>,
    #[serde(default)]
    pub process_count: usize,
    /// The files that defined malloc; they are the proof.
    #[serde(default)]
    pub owners: Vec<String>,
    /// How many pointers in the processes hakmem's address map knew at their end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_blocks: Option<usize>,
    pub answer: String,
    /// The numbers that the workload printed.
    pub reported: IndexMap<String, f64>,
    /// The fastest CPU's clock before and after the run, if the kernel tells it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_khz: Option<(u64, u64)>,
    /// Resident KiB by seconds; kept for one run of each allocator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timeline: Vec<(f64, u64)>,
}

/// A run that proved nothing. Its allocator then has no figure for that variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    pub variant: String,
    pub allocator: String,
    pub round: u32,
    pub reason: String,
}

/// Refuses truncated JSON: that matters more than what it contains. (`IgnoredAny` would do, but it reports a number that is cut
/// after its point as invalid.)
pub fn refuse_cut(path: &Path, text: &[u8]) -> Result<()> {
    match serde_json::from_slice::<serde_json::Value>(text) {
        _ if text.is_empty() => Err(usage!("{} is empty", path.shown())),
        Err(error) if error.is_eof() => Err(usage!(
            "{} was cut short: it ends in the middle, in line {}",
            path.shown(),
            error.line()
        )),
        _ => Ok(()),
    }
}

impl Document {
    pub fn load(path: &Path) -> Result<Document> {
        let text = input::read(path).map_err(|error| usage!("{}: {error}", path.shown()))?;
        Document::parse(path, &text)
    }

    /// Parses the content of `path`.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Document> {
        refuse_cut(path, text)?;
        let is_none = || {
            usage!(
                "{} is not a result file; 'hakmem bench' and 'hakmem compare --export' write one",
                path.shown()
            )
        };
        if !text.trim_ascii_start().starts_with(b"{") {
            return Err(is_none());
        }
        let found: serde_json::Value = serde_json::from_slice(text)
            .map_err(|error| usage!("{} is damaged: {error}", path.shown()))?;
        match found.get("format").and_then(serde_json::Value::as_u64) {
            Some(1 | 2) => {}
            Some(other) => {
                return Err(usage!(
                    "{} is a result file of format {other}, and this hakmem reads up to {FORMAT}",
                    path.shown()
                ));
            }
            None => return Err(is_none()),
        }
        serde_json::from_value(found)
            .map_err(|error| usage!("{} is damaged: {error}", path.shown()))
    }

    /// Writes one sample per line: easy to commit, and to compare by eye.
    pub fn store(&self, path: &Path) -> Result<()> {
        whole_file::replace(path, &self.to_text())
    }

    pub fn to_text(&self) -> String {
        let head = Document {
            samples: Vec::new(),
            refused: Vec::new(),
            ..self.clone()
        };
        let mut text = serde_json::to_string_pretty(&head).unwrap_or_default();
        for (name, lines) in [
            ("samples", lines(&self.samples)),
            ("refused", lines(&self.refused)),
        ] {
            text = text.replacen(
                &format!("\"{name}\": []"),
                &format!("\"{name}\": {lines}"),
                1,
            );
        }
        text + "\n"
    }

    pub fn is_refused(&self, variant: &str, allocator: &str) -> bool {
        self.refused
            .iter()
            .any(|one| one.variant == variant && one.allocator == allocator)
    }

    /// From now on, this allocator has no figures for this variant.
    pub fn refuse(&mut self, refused: Refused) {
        self.samples.retain(|sample| {
            (&sample.variant, &sample.allocator) != (&refused.variant, &refused.allocator)
        });
        self.refused.push(refused);
    }

    pub fn samples_of<'a>(
        &'a self,
        variant: &'a str,
        allocator: &'a str,
    ) -> impl Iterator<Item = &'a Sample> {
        self.samples
            .iter()
            .filter(move |sample| sample.variant == variant && sample.allocator == allocator)
    }
}

fn lines<T: Serialize>(entries: &[T]) -> String {
    let lines: Vec<String> = entries
        .iter()
        .map(|entry| format!("    {}", serde_json::to_string(entry).unwrap_or_default()))
        .collect();
    if lines.is_empty() {
        "[]".into()
    } else {
        format!("[\n{}\n  ]", lines.join(",\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_cut_short_wherever_it_is_cut() {
        let text = br#"{"a": [-12.5e+3, 0.25, true, null], "b": {"c": "x\u00e9\"y", "d": 1E-7}}"#;
        refuse_cut(Path::new("whole.json"), text).unwrap();
        for end in 1..text.len() {
            let error = refuse_cut(Path::new("cut.json"), &text[..end]).unwrap_err();
            let said = error.to_string();
            assert!(said.contains("cut.json was cut short"), "{end}: {said}");
        }
        assert!(refuse_cut(Path::new("other.json"), b"{no").is_ok());
    }
}
