//! Replays a trace with several allocators in turn; each run is a process of its own.

use crate::histogram::{quantile, value_of};
use crate::limit::{Limit, Verdict};
use crate::plan::{self, Place, Plan};
use crate::reader::Reader;
use crate::replayer::{Replayed, SIZE_LIMITS, Task, Touch, Wanted};
use hakmem_heap::live::check_proc;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::Allocator;
use hakmem_lab::c_library;
use hakmem_lab::document::AllocatorRecord;
use hakmem_lab::error::Result;
use hakmem_lab::launch::signal_name;
use hakmem_lab::machine::{self, Machine};
use hakmem_lab::{failed, interrupt, usage};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

pub const FORMAT: u32 = 1;
pub const KIND: &str = "replay";
/// How often to check whether a run has ended.
const POLL: Duration = Duration::from_millis(10);

pub struct Options {
    pub trace: PathBuf,
    pub allocators: Vec<Allocator>,
    pub runs: u32,
    pub touch: Touch,
    /// The memory limit to check, in bytes.
    pub limit: Option<u64>,
    /// The path of this command, which starts itself as `replay-inside`.
    pub own_path: PathBuf,
}

/// A replay's result, including every sample.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReplayDocument {
    pub format: u32,
    pub kind: String,
    pub started: String,
    pub machine: Machine,
    pub trace: String,
    pub command: Vec<String>,
    /// The process's number; 0: the sum of all, and `parts` contains each.
    pub process: u32,
    /// The PID that it had.
    #[serde(default)]
    pub pid: i32,
    pub program: String,
    pub threads: usize,
    pub operations: u64,
    pub skipped: u64,
    pub touch: Touch,
    pub runs_wanted: u32,
    pub allocators: IndexMap<String, AllocatorRecord>,
    /// The program's live bytes at the moments of `Run::resident`.
    pub live: Vec<Live>,
    pub live_bytes_peak: u64,
    pub runs: Vec<Run>,
    /// How long reading the clock takes; every latency includes it.
    pub clock_ns: f64,
    pub latencies: Vec<LatencyCurve>,
    pub refused: Vec<Refused>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ReplayDocument>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Live {
    /// The time in the recording.
    pub seconds: f64,
    pub bytes: u64,
    pub blocks: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    pub allocator: String,
    pub round: u32,
    pub seconds: f64,
    pub resident: Vec<u64>,
    /// The highest value between the previous moment and each of these.
    #[serde(default)]
    pub peaks: Vec<u64>,
    pub resident_peak: u64,
    pub failed: u64,
    pub owner: String,
}

/// Latencies of one call and one group of sizes with one allocator.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LatencyCurve {
    pub allocator: String,
    pub call: String,
    /// None: all sizes.
    pub size_up_to: Option<u64>,
    pub size_above: Option<u64>,
    pub count: u64,
    /// Pairs: nanoseconds, and the number of calls.
    pub counts: Vec<(f64, u64)>,
    pub p50: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub p99_999: f64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Refused {
    pub allocator: String,
    pub reason: String,
}

impl Run {
    pub fn resident_end(&self) -> u64 {
        self.resident.last().copied().unwrap_or(0)
    }
}

impl ReplayDocument {
    /// Parses what `hakmem replay --export` has written to `path`.
    pub fn from_json(path: &Path, value: serde_json::Value) -> Result<ReplayDocument> {
        let path = path.shown();
        match value["format"].as_u64() {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(other) => {
                return Err(usage!(
                    "{path} is a replay of format {other}, and this hakmem reads {FORMAT}"
                ));
            }
            None => return Err(usage!("{path} is not a replay")),
        }
        serde_json::from_value(value).map_err(|error| usage!("{path} is damaged: {error}"))
    }

    pub fn runs_of<'a>(&'a self, allocator: &'a str) -> impl Iterator<Item = &'a Run> {
        self.runs
            .iter()
            .filter(move |run| run.allocator == allocator)
    }

    /// Resident bytes divided by live bytes, averaged over the moments: the cost of fragmentation and caches.
    pub fn overhead(&self, run: &Run) -> f64 {
        let resident: u64 = run.resident.iter().sum();
        let live: u64 = self.live.iter().map(|live| live.bytes).sum();
        resident as f64 / live.max(1) as f64
    }
}

/// A file without a name, which disappears when this process ends in any way; and a path by which a child can open it.
fn nameless_file() -> Result<(File, PathBuf)> {
    let file = temporary()?;
    let name = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    Ok((file, name.into()))
}

/// Replays a process; calls `progress` before each run. `None` if there is nothing to replay, for example in a child that only
/// frees its parent's blocks.
pub fn replay(
    options: &Options,
    reader: &Reader,
    process: u32,
    mut progress: impl FnMut(&str),
) -> Result<Option<ReplayDocument>> {
    check_proc().map_err(|error| failed!("{error}"))?;
    let (file, operations) = nameless_file()?;
    progress("putting the events in order");
    let plan = plan::make(reader, process, &file)?;
    if plan.operations == 0 {
        return Ok(None);
    }
    let mut document = begin(options, reader, &plan);
    for (round, allocator, latencies) in turns(options) {
        let is_refused = document
            .refused
            .iter()
            .any(|one| one.allocator == allocator.name);
        if is_refused || interrupt::requested() {
            continue;
        }
        let what = if latencies {
            "latencies".into()
        } else {
            format!("run {}", round + 1)
        };
        progress(&format!("{}: {what}", allocator.name));
        let task = Task {
            touch: options.touch,
            latencies,
            wanted: None,
            plan: plan.clone(),
        };
        match run_once(options, allocator, &task, &operations) {
            Ok(replayed) => note(&mut document, allocator, round, replayed),
            Err(_) if interrupt::requested() => {}
            Err(error) => {
                document.runs.retain(|run| run.allocator != allocator.name);
                document.refused.push(Refused {
                    allocator: allocator.name.clone(),
                    reason: error.to_string(),
                });
            }
        }
    }
    if let Some(bytes) = options.limit {
        let mut verdicts = Vec::new();
        let has_runs = |one: &&Allocator| document.runs_of(&one.name).next().is_some();
        for allocator in options.allocators.iter().filter(has_runs) {
            let (mut verdict, window) = Verdict::of(&document, &allocator.name, bytes);
            if let Some(window) = window.filter(|_| !interrupt::requested()) {
                progress(&format!("{}: where it does not fit", allocator.name));
                let task = Task {
                    touch: options.touch,
                    latencies: false,
                    // One window earlier, as no two runs are quite the same.
                    wanted: Some(Wanted {
                        bytes,
                        from: window.saturating_sub(1) as u32,
                    }),
                    plan: plan.clone(),
                };
                verdict.place = first_excess(options, reader, allocator, &task, &operations)?;
            }
            verdicts.push(verdict);
        }
        document.limit = Some(Limit { bytes, verdicts });
    }
    Ok(Some(document))
}

fn first_excess(
    options: &Options,
    reader: &Reader,
    allocator: &Allocator,
    task: &Task,
    operations: &Path,
) -> Result<Option<Place>> {
    let replayed = match run_once(options, allocator, task, operations) {
        Err(_) if interrupt::requested() => return Ok(None),
        replayed => replayed?,
    };
    match replayed.excess {
        Some(at) => plan::find(reader, task.plan.process, at),
        None => Ok(None),
    }
}

/// Rounds with all allocators, each begun by another one; then the runs that measure latencies.
fn turns(options: &Options) -> Vec<(u32, &Allocator, bool)> {
    let count = options.allocators.len();
    let mut turns = Vec::new();
    for round in 0..options.runs {
        for place in 0..count {
            let allocator = &options.allocators[(place + round as usize) % count];
            turns.push((round, allocator, false));
        }
    }
    turns.extend(
        options
            .allocators
            .iter()
            .map(|allocator| (0, allocator, true)),
    );
    turns
}

fn begin(options: &Options, reader: &Reader, plan: &Plan) -> ReplayDocument {
    let record = |allocator: &Allocator| AllocatorRecord {
        library: allocator
            .shown_library
            .as_ref()
            .or(allocator.library.as_ref())
            .map(|path| path.shown()),
        version: allocator.version.clone(),
        compiler: allocator.compiler.clone(),
        sha256: allocator.sha256.clone(),
        build_id: allocator.build_id.clone(),
        environment: allocator.environment.clone(),
    };
    let mut all = reader.processes.iter();
    let known = all.find(|known| known.process == plan.process);
    ReplayDocument {
        format: FORMAT,
        kind: KIND.into(),
        started: machine::timestamp(),
        machine: machine::describe(),
        trace: options.trace.shown(),
        command: reader.beginning.command.clone(),
        process: plan.process,
        pid: known.map_or(0, |known| known.id),
        program: plan.program.clone(),
        threads: plan.threads,
        operations: plan.operations,
        skipped: plan.skipped,
        touch: options.touch,
        runs_wanted: options.runs,
        allocators: options
            .allocators
            .iter()
            .map(|one| (one.name.clone(), record(one)))
            .collect(),
        live: plan
            .windows
            .iter()
            .map(|window| Live {
                seconds: window.seconds,
                bytes: window.live_bytes,
                blocks: window.live_blocks,
            })
            .collect(),
        live_bytes_peak: plan.live_bytes_peak,
        ..ReplayDocument::default()
    }
}

fn run_once(
    options: &Options,
    allocator: &Allocator,
    task: &Task,
    operations: &Path,
) -> Result<Replayed> {
    let mut command = Command::new(&options.own_path);
    command.arg("replay-inside").arg(operations);
    command
        .env_remove("LD_PRELOAD")
        .envs(&allocator.environment);
    if let Some(library) = allocator.preload()? {
        command.env("LD_PRELOAD", library);
    }
    let cannot = |error: io::Error| failed!("cannot start the replay: {error}");
    // The plan goes through a file: if the process crashed at its start, a pipe would break.
    let (mut file, name) = nameless_file()?;
    let text =
        serde_json::to_vec(task).map_err(|error| failed!("cannot write the plan: {error}"))?;
    file.write_all(&text).map_err(plan::unwritten)?;
    // Pipes would have to be read during the run.
    let (mut answer, mut errors) = (temporary()?, temporary()?);
    let child = command
        .arg(&name)
        .stdin(Stdio::null())
        .stdout(answer.try_clone().map_err(cannot)?)
        .stderr(errors.try_clone().map_err(cannot)?)
        .spawn()
        .map_err(cannot)?;
    let status = wait(child).map_err(cannot)?;
    if !status.success() {
        let text = text_of(&mut errors);
        let line = text
            .lines()
            .last()
            .unwrap_or_default()
            .trim_start_matches("hakmem: ");
        return Err(match status.signal() {
            Some(signal) if line.is_empty() => failed!("ended by {}", signal_name(signal)),
            Some(signal) => failed!("ended by {}: {line}", signal_name(signal)),
            None => failed!("{line}"),
        });
    }
    let replayed: Replayed = serde_json::from_str(&text_of(&mut answer))
        .map_err(|error| failed!("the replay's result cannot be read: {error}"))?;
    check_owner(allocator, &replayed)?;
    Ok(replayed)
}

fn temporary() -> Result<File> {
    tempfile::tempfile().map_err(plan::unwritten)
}

fn text_of(file: &mut File) -> String {
    let mut bytes = Vec::new();
    let _ = file.rewind().and_then(|()| file.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits for a child, and ends it if the user interrupts.
fn wait(mut child: Child) -> io::Result<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if interrupt::requested() {
            child.kill()?;
        }
        std::thread::sleep(POLL);
    }
}

/// Checks that the process has used this allocator; otherwise the figures would be another one's.
fn check_owner(allocator: &Allocator, replayed: &Replayed) -> Result<()> {
    let expected = match &allocator.library {
        Some(library) => library.clone(),
        None => c_library::path()?,
    };
    let real = |path: &Path| path.canonicalize().unwrap_or(path.to_path_buf());
    if real(Path::new(&replayed.owner)) != real(&expected) {
        return Err(failed!(
            "malloc was {}'s, not {}'s",
            replayed.owner,
            expected.shown()
        ));
    }
    if allocator.is_ours() && replayed.owned_by_hakmem != Some(true) {
        return Err(failed!("a block from malloc was not known to hakmem"));
    }
    Ok(())
}

fn note(document: &mut ReplayDocument, allocator: &Allocator, round: u32, replayed: Replayed) {
    if replayed.latencies.is_empty() {
        document.runs.push(Run {
            allocator: allocator.name.clone(),
            round,
            seconds: replayed.seconds,
            resident: replayed.resident,
            peaks: replayed.peaks,
            resident_peak: replayed.resident_peak,
            failed: replayed.failed,
            owner: replayed.owner,
        });
        return;
    }
    let nanoseconds = |ticks: f64| ticks / replayed.ticks_per_second * 1e9;
    document.clock_ns = nanoseconds(replayed.clock_ticks as f64);
    let mut by_call: BTreeMap<(&str, Option<usize>), Vec<u64>> = BTreeMap::new();
    for latency in &replayed.latencies {
        for group in [None, Some(latency.size_group)] {
            let counts = by_call
                .entry((&latency.call, group))
                .or_insert_with(|| vec![0; crate::histogram::BUCKETS]);
            latency
                .counts
                .iter()
                .for_each(|&(bucket, count)| counts[bucket] += count);
        }
    }
    for ((call, group), counts) in by_call {
        let part = |share: f64| nanoseconds(quantile(&counts, share).unwrap_or(0.0));
        document.latencies.push(LatencyCurve {
            allocator: allocator.name.clone(),
            call: call.to_string(),
            size_up_to: group.and_then(|group| SIZE_LIMITS.get(group).copied()),
            size_above: group.map(|group| {
                if group == 0 {
                    0
                } else {
                    SIZE_LIMITS[group - 1]
                }
            }),
            count: counts.iter().sum(),
            p50: part(0.5),
            p99: part(0.99),
            p99_9: part(0.999),
            p99_999: part(0.99999),
            counts: counts
                .iter()
                .enumerate()
                .filter(|(_, count)| **count > 0)
                .map(|(bucket, &count)| (nanoseconds(value_of(bucket)), count))
                .collect(),
        });
    }
}
