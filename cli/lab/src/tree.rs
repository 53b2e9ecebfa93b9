//! The processes of a measured command: what they are, how long they lived, and what they used.

use crate::process::Blind;
use crate::proof::Proof;
use hakmem_heap::code::Code;
use hakmem_heap::code_files::Held;
use hakmem_heap::figures::Figures;
use hakmem_heap::heap::Heap;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::perf_map::MapPlace;
use hakmem_heap::profile::Profile;
use nix::time::{ClockId, clock_getcpuclockid};
use nix::unistd::Pid;
use procfs::FromRead;
use procfs::process::{Stat, Status};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What was read at a process's exit stop, when its memory was still there.
#[derive(Debug, Default)]
pub struct ExitReport {
    pub program: PathBuf,
    pub peak_kib: u64,
    pub resident_kib: u64,
    /// It has waited for children that were not seen to start: a thread that is not traced started them.
    pub hidden_children: bool,
    pub proof: Option<Result<Proof, Blind>>,
    /// For a process with hakmem, if requested.
    pub heap: Option<Figures>,
    /// Its profile and the files of its code, if requested.
    pub profile: Option<Profile>,
    pub code: Vec<Code>,
    pub held: Arc<Held>,
    /// Where the names of its generated code are, if it has written any.
    pub map: Option<Arc<MapPlace>>,
}

#[derive(Debug, Default)]
pub struct Tracee {
    pub pid: i32,
    /// It was started by vfork and has not executed a program yet.
    pub borrows_memory: bool,
    has_own_program: bool,
    program: PathBuf,
    /// Programs that it ran before an exec; a child before its first exec does not count as one.
    pub earlier: Vec<PathBuf>,
    is_announced: bool,
    pub is_thread: bool,
    has_ended: bool,
    children: usize,
    /// Seconds since the command began.
    pub start_s: f64,
    pub end_s: f64,
    pub exit: Option<ExitReport>,
    /// Why nothing was read at its exit.
    unexamined: Option<String>,
}

/// In the order in which the processes appeared.
#[derive(Debug, Default)]
pub struct Tree {
    tracees: Vec<Tracee>,
}

impl Tree {
    /// The running process `pid`; it is added if it is new.
    pub fn get(&mut self, pid: i32, now_s: f64) -> &mut Tracee {
        let known = self
            .tracees
            .iter()
            .rposition(|tracee| tracee.pid == pid && !tracee.has_ended);
        let index = known.unwrap_or_else(|| {
            self.tracees.push(Tracee {
                pid,
                start_s: now_s,
                ..Tracee::default()
            });
            self.tracees.len() - 1
        });
        &mut self.tracees[index]
    }

    /// The process that a parent's stop reports. It may be known already, and may even have ended: the stops of two processes
    /// arrive in any order.
    fn announce(&mut self, pid: i32, now_s: f64) -> &mut Tracee {
        let known = self
            .tracees
            .iter()
            .rposition(|tracee| tracee.pid == pid && !tracee.is_announced);
        let tracee = match known {
            Some(index) => &mut self.tracees[index],
            None => self.get(pid, now_s),
        };
        tracee.is_announced = true;
        tracee
    }

    /// A process has started another process or a thread.
    pub fn started(&mut self, parent: i32, child: i32, how: Start, now_s: f64) {
        let tracee = self.announce(child, now_s);
        // The child may have executed a program before its parent's stop is seen.
        tracee.borrows_memory = how == Start::Vfork && !tracee.has_own_program;
        if how == Start::Clone {
            tracee.is_thread = thread_group(child).is_some_and(|group| group != child);
        } else {
            self.get(parent, now_s).children += 1;
        }
    }

    pub fn became_program(&mut self, pid: i32, now_s: f64) {
        let tracee = self.get(pid, now_s);
        let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let before = std::mem::replace(&mut tracee.program, program);
        if tracee.has_own_program {
            tracee.earlier.push(before);
        }
        tracee.has_own_program = true;
        tracee.borrows_memory = false;
    }

    pub fn ended(&mut self, pid: i32, now_s: f64) {
        self.get(pid, now_s).has_ended = true;
    }

    /// Reads everything at a process's exit stop. `sees_threads`: no child can have been missed.
    pub fn examine(&mut self, pid: i32, now_s: f64, sees_threads: bool) {
        let tracee = self.get(pid, now_s);
        tracee.end_s = now_s;
        let report = read_status(pid, &mut tracee.is_thread);
        if tracee.is_thread || tracee.borrows_memory {
            return;
        }
        let mut report = match report {
            Ok(report) => report,
            Err(reason) => {
                tracee.unexamined = Some(reason);
                return;
            }
        };
        report.program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        report.hidden_children = !sees_threads && tracee.children == 0 && had_children(pid);
        report.proof = Some(Proof::collect(pid));
        tracee.exit = Some(report);
    }

    /// At the same stop: reads what its heap consists of, and what hakmem did for it.
    pub fn read_heap(&mut self, pid: i32) {
        let is_it = |tracee: &&mut Tracee| tracee.pid == pid && !tracee.has_ended;
        let tracee = self.tracees.iter_mut().rev().find(is_it);
        if let Some(report) = tracee.and_then(|tracee| tracee.exit.as_mut()) {
            if let Ok(process) = LiveProcess::open(pid) {
                report.heap = Heap::read(&process).ok().map(|heap| Figures::of(&heap));
                report.profile = Profile::read(&process).ok();
                report.code = process.code();
                report.held = Arc::new(Held::of(&report.code, pid));
                report.map = MapPlace::of(pid).filter(MapPlace::has_map).map(Arc::new);
            }
        }
    }

    pub fn running(&self) -> usize {
        self.tracees
            .iter()
            .filter(|tracee| !tracee.has_ended && !tracee.is_thread)
            .count()
    }

    /// The processes and threads that have not ended.
    pub fn unended(&self) -> Vec<i32> {
        let unended = self.tracees.iter().filter(|tracee| !tracee.has_ended);
        unended.map(|tracee| tracee.pid).collect()
    }

    /// The processes that have not ended and have their own memory.
    pub fn living(&self) -> Vec<i32> {
        self.tracees
            .iter()
            .filter(|tracee| !tracee.has_ended && !tracee.is_thread && !tracee.borrows_memory)
            .map(|tracee| tracee.pid)
            .collect()
    }

    /// Of all threads of the processes that have not ended.
    pub fn processor_time(&self) -> Duration {
        let running = self.tracees.iter().filter(|tracee| !tracee.has_ended);
        running
            .filter(|tracee| !tracee.is_thread)
            .map(|tracee| processor_time(tracee.pid))
            .sum()
    }

    /// The processes that were examined at their end, with their lifetimes.
    pub fn reports(&self) -> impl Iterator<Item = (&Tracee, &ExitReport)> {
        self.tracees
            .iter()
            .filter_map(|tracee| Some((tracee, tracee.exit.as_ref()?)))
    }

    /// All processes, also those whose end was not seen.
    pub fn processes(&self) -> impl Iterator<Item = &Tracee> {
        self.tracees
            .iter()
            .filter(|tracee| !tracee.is_thread && !tracee.borrows_memory)
    }

    /// Why the end of a process was not examined; None if it was.
    pub fn unexamined(&self, pid: i32) -> Option<String> {
        if self.reports().any(|(tracee, _)| tracee.pid == pid) {
            return None;
        }
        let mut tracees = self.tracees.iter().filter(|tracee| tracee.pid == pid);
        let reason = tracees.find_map(|tracee| tracee.unexamined.clone());
        Some(reason.unwrap_or_else(|| "it did not stop there".into()))
    }

    /// The largest peak of one process.
    pub fn peak_kib(&self) -> u64 {
        self.reports()
            .map(|(_, report)| report.peak_kib)
            .max()
            .unwrap_or(0)
    }

    /// The largest sum of the peaks of processes that lived at the same time. Exact for one process; an upper bound for
    /// several, as shared pages count for each.
    pub fn tree_peak_kib(&self) -> u64 {
        let sum_at = |now_s: f64| -> u64 {
            self.reports()
                .filter(|(tracee, _)| tracee.start_s <= now_s && now_s <= tracee.end_s)
                .map(|(_, report)| report.peak_kib)
                .sum()
        };
        // The sum can only be largest when some process has just started.
        self.reports()
            .map(|(tracee, _)| sum_at(tracee.start_s))
            .max()
            .unwrap_or(0)
    }
}

/// How a process came to be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Start {
    Fork,
    Vfork,
    Clone,
}

/// Reads a process's /proc file; the process's name need not be valid text, and is not used.
fn told<T: FromRead>(pid: i32, file: &str) -> Result<T, String> {
    let path = format!("/proc/{pid}/{file}");
    let bytes = std::fs::read(&path).map_err(|error| format!("{path}: {error}"))?;
    T::from_read(String::from_utf8_lossy(&bytes).as_bytes())
        .map_err(|error| format!("{path}: {error}"))
}

/// Does its first thread work, or wait for a processor?
pub fn is_running(pid: i32) -> bool {
    told::<Stat>(pid, "stat").is_ok_and(|stat| stat.state == 'R')
}

/// Read from the process's clock, as /proc would count only its first thread to the nanosecond. Zero if it is gone.
fn processor_time(pid: i32) -> Duration {
    let clock = clock_getcpuclockid(Pid::from_raw(pid));
    clock
        .and_then(ClockId::now)
        .map_or(Duration::ZERO, Duration::from)
}

fn thread_group(pid: i32) -> Option<i32> {
    Some(told::<Status>(pid, "status").ok()?.tgid)
}

/// For a process that has already lost its memory, returns an error that is a part of a sentence.
fn read_status(pid: i32, is_thread: &mut bool) -> Result<ExitReport, String> {
    let status = told::<Status>(pid, "status")?;
    *is_thread = status.tgid != pid;
    let Some(peak_kib) = status.vmhwm else {
        return Err(format!(
            "its memory was gone already (state {}, signals that wait: {:#x})",
            status.state,
            status.sigpnd | status.shdpnd
        ));
    };
    Ok(ExitReport {
        peak_kib,
        resident_kib: status.vmrss.unwrap_or(0),
        ..ExitReport::default()
    })
}

/// Has it waited for children? Their page faults tell.
fn had_children(pid: i32) -> bool {
    told::<Stat>(pid, "stat").is_ok_and(|stat| stat.cminflt > 0)
}
