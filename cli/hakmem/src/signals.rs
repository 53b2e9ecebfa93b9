//! Passes signals on to the program that we run, and ends as it does.

use hakmem_lab::inherited;
use hakmem_lab::launch::End;
use nix::libc;
use nix::sys::signal::{self, SigSet, SigmaskHow, Signal};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Signals that other processes may send us for the program; the first four end it.
const PASSED_ON: [Signal; 7] = [
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGHUP,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGALRM,
];

fn set() -> SigSet {
    PASSED_ON.into_iter().collect()
}

/// From now on, these signals wait for `pass_on_to`; threads that start later inherit this.
pub fn hold() {
    let _ = set().thread_block();
}

/// Passes on each of them, in a separate thread.
pub fn pass_on_to(pid: i32) {
    std::thread::spawn(move || {
        loop {
            // SAFETY: all zeros is a valid siginfo, and the kernel fills it in.
            let (signal, from) = unsafe {
                let mut information: libc::siginfo_t = std::mem::zeroed();
                let signal = libc::sigwaitinfo(set().as_ref(), &raw mut information);
                (signal, information.si_code)
            };
            // Ctrl-C on a terminal has already reached the program, which is in our group.
            let is_from_terminal = from == libc::SI_KERNEL;
            if signal > 0 && !is_from_terminal {
                // SAFETY: a signal to another process touches no memory of ours.
                unsafe { libc::kill(pid, signal) };
            }
        }
    });
}

/// Those that would end us. Ignored signals (`nohup`) do not, though a thread that waits for one would receive it.
fn that_end_us(of: &[Signal]) -> SigSet {
    let ends = of.iter().copied();
    ends.filter(|signal| !inherited::is_ignored(*signal as libc::c_int))
        .collect()
}

/// Calls `last` before a signal of another process ends us. Threads that start later inherit that these signals wait.
pub fn before_the_end(last: impl FnOnce() + Send + 'static) {
    let ends = that_end_us(&PASSED_ON[..4]);
    let _ = ends.thread_block();
    std::thread::spawn(move || {
        if let Ok(signal) = ends.wait() {
            last();
            let _ = ends.thread_unblock();
            let _ = signal::raise(signal);
        }
    });
}

/// While this exists, Ctrl-C and similar signals end a wait instead of us, so that results so far can be shown. Threads that
/// were started before must do nothing else for the command.
pub struct EndsHeld {
    ends: SigSet,
    before: Option<SigSet>,
}

impl EndsHeld {
    pub fn begin() -> EndsHeld {
        let ends = that_end_us(&[Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]);
        let before = ends.thread_swap_mask(SigmaskHow::SIG_BLOCK).ok();
        EndsHeld { ends, before }
    }

    /// True: one of the signals has come, now or before. False: the time is over.
    pub fn wait(&self, time: Duration) -> bool {
        let begin = Instant::now();
        loop {
            let rest = time.saturating_sub(begin.elapsed());
            if self.came_in(rest) {
                return true;
            }
            // A stop (Ctrl-Z) ends the call early.
            if begin.elapsed() >= time {
                return false;
            }
        }
    }

    fn came_in(&self, time: Duration) -> bool {
        let limit = libc::timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(time.subsec_nanos()),
        };
        // SAFETY: the set and the time are ours and outlive the call; no information about the signal is requested.
        unsafe {
            libc::sigtimedwait(self.ends.as_ref(), std::ptr::null_mut(), &raw const limit) > 0
        }
    }
}

impl Drop for EndsHeld {
    fn drop(&mut self) {
        // A signal that came after the last wait also ends only the wait. From now on, the next one ends us at once.
        self.wait(Duration::ZERO);
        if let Some(before) = &self.before {
            let _ = before.thread_set_mask();
        }
    }
}

static IS_STOP_ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note_stop(_: libc::c_int) {
    IS_STOP_ASKED.store(true, Ordering::Relaxed);
}

/// From now on, SIGTSTP does not stop us before `stop_ourselves` is called; `is_stop_asked` tells when to call it.
pub fn note_stops() {
    if !inherited::is_ignored(libc::SIGTSTP) {
        // SAFETY: the handler only stores to an atomic.
        unsafe { libc::signal(libc::SIGTSTP, note_stop as *const () as usize) };
    }
}

pub fn is_stop_asked() -> bool {
    IS_STOP_ASKED.swap(false, Ordering::Relaxed)
}

/// Stops us as Ctrl-Z does, until the shell continues us.
pub fn stop_ourselves() {
    // SAFETY: the default action touches no memory of ours.
    unsafe { libc::signal(libc::SIGTSTP, libc::SIG_DFL) };
    let _ = signal::raise(Signal::SIGTSTP);
    note_stops();
}

/// The program's exit code. If a signal has ended the program, the same signal ends us, and this does not return.
pub fn end_as(end: End) -> ExitCode {
    match end {
        End::Exited(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        End::Signaled(signal) => {
            let no_core = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: system calls on values of our own; the last one ends this process.
            unsafe {
                libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
                libc::signal(signal, libc::SIG_DFL);
                let mut only = SigSet::empty();
                if let Ok(signal) = Signal::try_from(signal) {
                    only.add(signal);
                }
                let _ = only.thread_unblock();
                libc::raise(signal);
            }
            // A signal that does not end processes by default cannot have ended the program.
            ExitCode::from(u8::try_from(128 + signal).unwrap_or(1))
        }
    }
}
