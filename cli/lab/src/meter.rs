//! One run of one workload with one allocator. Nothing about it is believed without proof.
//!
//! There is a sample only if the command ended well, its answer is right, and each of its processes provably used the requested
//! allocator.

use crate::allocator::Allocator;
use crate::answer;
use crate::c_library;
use crate::clients::{Driven, clear, drive, run_unmeasured};
use crate::control_group::Groups;
use crate::document::{AFTER_PEAK, DAY, Sample};
use crate::error::{Error, Result};
use crate::interrupt;
use crate::launch::{End, Request, Run, Running, signal_name};
use crate::machine;
use crate::process::Blind;
use crate::proof::Proof;
use crate::trust::{contradiction, file_name, is_libc};
use crate::usage;
use crate::watch;
use crate::whole_file::temporary;
use crate::workload::{Judge, Workload};
use hakmem_heap::shown::{ShownPath, shown};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

const TIMELINE_POINTS: usize = 60;
/// For workloads whose result is their memory over time.
const LONG_TIMELINE_POINTS: usize = 240;

/// Why there is no sample.
#[derive(Debug)]
pub enum Stop {
    /// The run proves nothing about this allocator; the text is the reason, for the table's notes.
    Refused(String),
    /// A thread started a process that was not seen: the run is repeated with threads traced.
    HiddenChildren(String),
    Interrupted,
    Error(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}

/// Takes samples. The real meter runs programs; tests use one that makes numbers up.
pub trait Meter {
    fn measure(
        &mut self,
        workload: &Workload,
        allocator: &Allocator,
    ) -> std::result::Result<Sample, Stop>;
}

/// The real meter.
pub struct LinuxMeter {
    /// Makes paths in results relative to the project.
    relative: Box<dyn Fn(&str) -> String>,
    /// By workload, with the allocator that needed the most memory so far.
    peaks_kib: HashMap<String, u64>,
    groups: Option<Groups>,
}

impl LinuxMeter {
    pub fn new(relative: impl Fn(&str) -> String + 'static) -> LinuxMeter {
        LinuxMeter {
            relative: Box::new(relative),
            peaks_kib: HashMap::new(),
            groups: Groups::find(),
        }
    }
}

/// The variables that the run adds to the workload's environment.
pub fn added_environment(
    workload: &Workload,
    allocator: &Allocator,
) -> Result<IndexMap<OsString, OsString>> {
    let mut added = as_bytes(&allocator.environment);
    let preload = match allocator.preload()? {
        Some(library) => Some(library.to_path_buf()),
        None if workload.bundles_malloc => Some(c_library::path()?),
        None => None,
    };
    if let Some(path) = preload {
        added.insert("LD_PRELOAD".into(), path.into_os_string());
    }
    Ok(added)
}

/// Converts text variables to the type of variables that may be any bytes.
pub fn as_bytes(environment: &IndexMap<String, String>) -> IndexMap<OsString, OsString> {
    let variables = environment.iter();
    variables
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// The run as a shell command, for users who want to repeat it.
pub fn shown_command(workload: &Workload, allocator: &Allocator) -> Result<String> {
    let mut added = as_bytes(&workload.own_environment);
    added.extend(added_environment(workload, allocator)?);
    let preload = added.get_mut(OsStr::new("LD_PRELOAD"));
    if let (Some(path), Some(preload)) = (&allocator.shown_library, preload) {
        *preload = path.clone().into_os_string();
    }
    let mut words: Vec<String> = added
        .iter()
        .map(|(name, value)| format!("{}={}", name.shown(), quoted_bytes(value)))
        .collect();
    words.push(quoted_bytes(workload.program.as_os_str()));
    words.extend(workload.arguments.iter().map(|word| quoted_bytes(word)));
    if let Some(stdin) = &workload.stdin {
        words.push(format!("< {}", quoted_bytes(stdin.as_os_str())));
    }
    Ok(words.join(" "))
}

/// Quotes a word that may not be valid text, as bash reads it.
fn quoted_bytes(word: &OsStr) -> String {
    let shown = shown(word.as_bytes());
    if word.to_str() == Some(&shown) {
        quoted(&shown)
    } else {
        format!("$'{}'", shown.replace('\'', "\\'"))
    }
}

/// Quotes a text as one word for a shell.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./=:,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_string()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

impl Meter for LinuxMeter {
    fn measure(
        &mut self,
        workload: &Workload,
        allocator: &Allocator,
    ) -> std::result::Result<Sample, Stop> {
        prepare(workload)?;
        let output = temporary()?;
        let errors = temporary()?;
        let mut request = request(workload, allocator, &output, &errors)?;
        let group = self.groups.as_ref().and_then(Groups::make);
        request.control_group = group.map(Arc::new);
        // The memory that the run will need, plus a quarter: the same for every allocator.
        let expected_kib = self
            .peaks_kib
            .get(&workload.name)
            .map_or(0, |kib| kib / 4 * 5);
        machine::warm_memory(expected_kib);
        let frequency_before = machine::frequency_khz();
        let (busy_before, own_before) = (machine::busy_s(), machine::own_s());
        let running = Running::start(request)?;
        let driven = match &workload.server {
            Some(server) => match drive(&running, server, workload) {
                Ok(driven) => Some(driven),
                Err(stop) => {
                    running.kill();
                    let ended = running.wait();
                    if interrupt::requested() {
                        return Err(Stop::Interrupted);
                    }
                    // A client fails if its server was ended.
                    return Err(match ended {
                        Ok(run) if run.timed_out => late(workload),
                        _ => stop,
                    });
                }
            },
            None => None,
        };
        let run = running.wait()?;
        if interrupt::requested() {
            return Err(Stop::Interrupted);
        }
        let other = (machine::busy_s() - busy_before) - (machine::own_s() - own_before);
        self.check_end(workload, &run, &errors)?;
        let (owners, known_blocks) = self.check_proofs(&run, allocator)?;
        let said = driven.as_ref().map(|driven| driven.answers.as_slice());
        let (answer, reported) = answer::judge(workload, &run, output, said)?;
        let frequency = frequency_before.zip(machine::frequency_khz());
        let points = if [AFTER_PEAK, DAY].contains(&workload.group.as_str()) {
            LONG_TIMELINE_POINTS
        } else {
            TIMELINE_POINTS
        };
        let mut sample = flatten(&run, driven.as_ref(), other.max(0.0), points);
        let peak = self.peaks_kib.entry(workload.name.clone()).or_default();
        *peak = sample.tree_peak_kib.max(*peak);
        sample.owners = owners;
        sample.known_blocks = known_blocks;
        sample.answer = answer;
        sample.reported = reported;
        sample.frequency_khz = frequency;
        Ok(sample)
    }
}

impl LinuxMeter {
    fn check_end(
        &self,
        workload: &Workload,
        run: &Run,
        errors: &File,
    ) -> std::result::Result<(), Stop> {
        let refuse = |text: String| Err(Stop::Refused(text));
        if run.timed_out {
            return Err(late(workload));
        }
        match run.end {
            // A server without a command that ends it gets SIGTERM from us.
            End::Signaled(nix::libc::SIGTERM) if workload.server.is_some() => {}
            End::Signaled(signal) => {
                let (name, line) = (signal_name(signal), self.last_line(errors));
                return refuse(format!("ended by {name}{line}"));
            }
            End::Exited(code) if code != 0 && matches!(workload.judge, Judge::Answer(_)) => {
                return refuse(format!("exit code {code}{}", self.last_line(errors)));
            }
            End::Exited(_) => {}
        }
        if let Some(reason) = &run.unexamined {
            return refuse(format!("its end could not be examined: {reason}"));
        }
        match run.left_running {
            0 => Ok(()),
            1 => refuse("left a process behind".into()),
            count => refuse(format!("left {count} processes behind")),
        }
    }

    fn last_line(&self, errors: &File) -> String {
        let mut text = Vec::new();
        let mut errors = errors;
        let is_read = errors
            .rewind()
            .and_then(|()| errors.read_to_end(&mut text))
            .is_ok();
        let text = String::from_utf8_lossy(&text);
        match text.trim().lines().next_back() {
            Some(line) if is_read => format!(": {}", (self.relative)(line)),
            _ => String::new(),
        }
    }

    /// Every process must have got its memory from this allocator only.
    fn check_proofs(
        &self,
        run: &Run,
        allocator: &Allocator,
    ) -> std::result::Result<(Vec<String>, Option<usize>), Stop> {
        let mut owners: Vec<String> = Vec::new();
        let mut known_blocks = None;
        let mut largest: Option<(u64, &Proof)> = None;
        for (_, report) in run.tree.reports() {
            let program = file_name(&report.program);
            if report.hidden_children {
                return Err(Stop::HiddenChildren(format!(
                    "{program}: a thread started a process that was not seen; \
                     the workload needs trace_threads"
                )));
            }
            let proof = match &report.proof {
                Some(Ok(proof)) => proof,
                Some(Err(blind)) => return Err(Stop::Refused(format!("{program}: {blind}"))),
                None => return Err(Stop::Refused(format!("{program}: {}", Blind::Gone))),
            };
            if let Some(reason) = contradiction(proof, allocator, &self.relative) {
                return Err(Stop::Refused(format!("{program} {reason}")));
            }
            for owner in proof.owners() {
                let shown = (self.relative)(&owner.shown());
                if !owners.contains(&shown) {
                    owners.push(shown);
                }
            }
            if let Some(blocks) = &proof.blocks {
                known_blocks = Some(known_blocks.unwrap_or(0) + blocks.known);
            }
            if largest.is_none_or(|(peak, _)| report.peak_kib > peak) {
                largest = Some((report.peak_kib, proof));
            }
        }
        let calls = largest.is_some_and(|(_, proof)| proof.callers().any(|path| !is_libc(path)));
        if !calls && allocator.library.is_some() {
            let program = largest
                .map(|(_, proof)| file_name(&proof.program))
                .unwrap_or_default();
            return Err(Stop::Refused(format!(
                "{program} does not call {}",
                allocator.name
            )));
        }
        Ok((owners, known_blocks))
    }
}

fn late(workload: &Workload) -> Stop {
    let limit = workload.timeout.unwrap_or_default().as_secs();
    Stop::Refused(format!("not finished after {limit} s"))
}

fn request(
    workload: &Workload,
    allocator: &Allocator,
    output: &File,
    errors: &File,
) -> Result<Request> {
    let mut environment = workload.environment.clone();
    environment.shift_remove(OsStr::new("LD_PRELOAD"));
    environment.extend(added_environment(workload, allocator)?);
    let input = workload.stdin.as_deref().unwrap_or(Path::new("/dev/null"));
    let copy = |file: &File| file.try_clone().map_err(|error| crate::failed!("{error}"));
    Ok(Request {
        program: workload.program.clone(),
        name: workload.called.clone(),
        arguments: workload.arguments.clone(),
        environment: environment.into_iter().collect(),
        folder: workload.folder.clone(),
        input: File::open(input).map_err(|error| usage!("{}: {error}", input.shown()))?,
        output: copy(output)?,
        errors: copy(errors)?,
        timeout: workload.timeout,
        trace_threads: workload.trace_threads,
        has_own_group: true,
        reads_heaps: false,
        ends_what_remains: true,
        control_group: None,
    })
}

fn prepare(workload: &Workload) -> std::result::Result<(), Stop> {
    if let Some(scratch) = &workload.scratch {
        let _ = fs::remove_dir_all(scratch);
        fs::create_dir_all(scratch)
            .map_err(|error| crate::failed!("{}: {error}", scratch.shown()))?;
    }
    if let Some(server) = &workload.server {
        clear(&server.ready);
    }
    run_unmeasured(workload, &workload.prepare, "preparation").map(|_| ())
}

fn flatten(run: &Run, driven: Option<&Driven>, other_cpu_s: f64, points: usize) -> Sample {
    let microseconds = |seconds: f64| (seconds * 1e6).round() / 1e6;
    let moments = driven.map_or(&[][..], |driven| &driven.moments);
    let timeline = watch::thinned(&run.timeline, points)
        .into_iter()
        .map(|(seconds, kib)| ((seconds * 1e3).round() / 1e3, kib))
        .collect();
    Sample {
        wall_s: microseconds(driven.map_or(run.wall_s, |driven| driven.clients_s)),
        cpu_s: microseconds(run.user_s + run.sys_s),
        user_s: run.user_s,
        sys_s: run.sys_s,
        other_cpu_s: (other_cpu_s * 100.0).round() / 100.0,
        minor_faults: run.minor_faults,
        major_faults: run.major_faults,
        voluntary_switches: run.voluntary_switches,
        involuntary_switches: run.involuntary_switches,
        peak_kib: run.tree.peak_kib(),
        tree_peak_kib: run.tree.tree_peak_kib(),
        group_peak_kib: run.group_peak_kib,
        after_peak_kib: watch::resident_after_peak(&run.timeline),
        moments: moments
            .iter()
            .map(|(name, (at, kib))| (name.clone(), ((at * 1e3).round() / 1e3, *kib)))
            .collect(),
        process_count: run.tree.reports().count(),
        timeline,
        ..Sample::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_given_to_a_shell() {
        assert_eq!(quoted("a=b/c"), "a=b/c");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
