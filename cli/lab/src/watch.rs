//! The second thread of a traced command: it samples the memory of its processes, and kills the command if it takes too long,
//! leaves processes behind, or the user interrupts.

use crate::interrupt;
use nix::libc;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Resident KiB of all processes together, by seconds since the start.
pub type Timeline = Vec<(f64, u64)>;

/// Reading takes about 10 µs per process: below 0.1 % of one CPU.
const TICK: Duration = Duration::from_millis(10);
const SLOW_TICK: Duration = Duration::from_millis(50);
/// After this time, the slow tick is frequent enough.
const SLOW_AFTER: Duration = Duration::from_secs(5);

/// How long to wait for processes that outlive the command.
const GRACE: Duration = Duration::from_secs(3);

/// The state that the tracing thread and the watching thread share.
#[derive(Default)]
pub struct Watched {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    root: Option<i32>,
    living: Vec<i32>,
    /// When to stop waiting for processes that the command left behind.
    grace_until: Option<Instant>,
    left_running: Option<usize>,
    timed_out: bool,
    finished: bool,
}

impl Watched {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the root. Its memory does not count yet: until its exec, the process is a copy of this one.
    pub fn begin(&self, root: i32) {
        self.state().root = Some(root);
    }

    pub fn set_living(&self, living: Vec<i32>) {
        self.state().living = living;
    }

    pub fn root_has_ended(&self, now: Instant) {
        let mut state = self.state();
        state.root = None;
        state.grace_until = Some(now + GRACE);
    }

    /// The resident memory of all the command's processes now.
    fn resident_kib(&self) -> u64 {
        let living = self.state().living.clone();
        living.iter().map(|pid| resident_kib(*pid)).sum()
    }

    /// The seconds since the command's start, and the resident KiB now.
    pub fn moment(&self, started: Instant) -> (f64, u64) {
        (started.elapsed().as_secs_f64(), self.resident_kib())
    }

    /// Tells the watching thread that the tracer has finished.
    pub fn finish(&self) {
        self.state().finished = true;
        self.changed.notify_all();
    }

    pub fn timed_out(&self) -> bool {
        self.state().timed_out
    }

    /// How many processes were left when waiting for them ended; None if there was no need to wait.
    pub fn left_running(&self) -> Option<usize> {
        self.state().left_running
    }

    /// Sends a signal to the command's process group, if the command still runs.
    pub fn signal_root(&self, signal: i32) {
        if let Some(root) = self.state().root {
            send(-root, signal);
        }
    }
}

fn send(pid: i32, signal: i32) {
    // SAFETY: a signal to another process touches no memory of ours.
    unsafe { libc::kill(pid, signal) };
}

pub fn start(
    watched: Arc<Watched>,
    started: Instant,
    timeout: Option<Duration>,
) -> JoinHandle<Timeline> {
    std::thread::spawn(move || watch(&watched, started, timeout))
}

fn watch(watched: &Watched, started: Instant, timeout: Option<Duration>) -> Timeline {
    let mut timeline = Vec::new();
    let mut state = watched.state();
    while !state.finished {
        let elapsed = started.elapsed();
        drop(state);
        let resident = watched.resident_kib();
        // Before the command begins and when it is about to end, there is nothing to see.
        if resident > 0 {
            timeline.push((elapsed.as_secs_f64(), resident));
        }

        let is_late = timeout.is_some_and(|limit| elapsed > limit);
        state = watched.state();
        if let Some(root) = state.root.filter(|_| is_late || interrupt::requested()) {
            state.timed_out = is_late;
            send(-root, libc::SIGKILL);
        }
        if state
            .grace_until
            .is_some_and(|until| Instant::now() > until)
            && state.left_running.is_none()
        {
            state.left_running = Some(state.living.len());
        }
        if state.finished {
            break;
        }
        let tick = if elapsed < SLOW_AFTER {
            TICK
        } else {
            SLOW_TICK
        };
        state = watched
            .changed
            .wait_timeout(state, tick)
            .map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
    }
    timeline
}

fn resident_kib(pid: i32) -> u64 {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/statm")) else {
        return 0;
    };
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|field| field.parse().ok())
        .unwrap_or(0);
    pages * (procfs::page_size() / 1024)
}

/// Resident memory one second after the largest sample, if the command lived that long.
pub fn resident_after_peak(timeline: &[(f64, u64)]) -> Option<u64> {
    let mut peak = timeline.first()?;
    for point in timeline {
        if point.1 > peak.1 {
            peak = point;
        }
    }
    timeline
        .iter()
        .find(|point| point.0 >= peak.0 + 1.0)
        .map(|point| point.1)
}

/// The mean over the time from the first reading to the end. Each reading holds until the next one: they are further apart in
/// a long run than in its first seconds. Later ones do not count: they are of processes that were left behind. None if there
/// is no such time.
pub fn mean_kib(timeline: &[(f64, u64)], end_s: f64) -> Option<f64> {
    let time_s = end_s - timeline.first()?.0;
    let nexts = timeline[1..].iter().map(|next| next.0).chain([end_s]);
    let sum: f64 = timeline
        .iter()
        .zip(nexts)
        .map(|(&(at, kib), next)| kib as f64 * (next.min(end_s) - at.min(end_s)))
        .sum();
    (time_s > 0.0).then(|| sum / time_s)
}

/// At most `count` points; each is the largest of the points that it replaces.
pub fn thinned(timeline: &[(f64, u64)], count: usize) -> Timeline {
    let width = timeline.len().div_ceil(count.max(1)).max(1);
    timeline
        .chunks(width)
        .filter_map(|chunk| chunk.iter().copied().max_by_key(|point| point.1))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_one_second_after_the_peak() {
        let timeline = [
            (0.0, 1),
            (0.5, 90),
            (1.0, 80),
            (1.49, 70),
            (1.5, 60),
            (2.0, 50),
        ];
        assert_eq!(resident_after_peak(&timeline), Some(60));
    }

    #[test]
    fn a_program_that_ends_soon_after_its_peak_has_no_later_memory() {
        assert_eq!(resident_after_peak(&[(0.0, 1), (0.5, 90), (1.4, 3)]), None);
    }

    /// Five seconds with 1000 KiB, read every 10 ms, and fifteen with 200, read every 50 ms.
    #[test]
    fn the_mean_is_one_over_time_however_often_memory_is_read() {
        let fast = (0..500).map(|tick| (f64::from(tick) / 100.0, 1000));
        let slow = (0..300).map(|tick| (5.0 + f64::from(tick) / 20.0, 200));
        let timeline: Timeline = fast.chain(slow).collect();
        let mean = mean_kib(&timeline, 20.0).unwrap();
        assert!((mean - 400.0).abs() < 0.01, "{mean}");
        assert_eq!(mean_kib(&[(0.0, 3), (1.0, 5), (2.5, 900)], 2.0), Some(4.0));
        assert_eq!(mean_kib(&[(0.5, 7)], 0.5), None);
        assert_eq!(mean_kib(&[], 1.0), None);
    }

    #[test]
    fn a_thinned_timeline_keeps_its_peak() {
        let timeline: Timeline = (0u32..1000)
            .map(|at| (f64::from(at), u64::from(at % 700)))
            .collect();
        let thin = thinned(&timeline, 100);
        assert_eq!(thin.len(), 100);
        assert!(thin.contains(&(699.0, 699)));
    }
}
