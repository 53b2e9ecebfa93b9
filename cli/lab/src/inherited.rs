//! What this process inherited at its start, for the programs that it starts: which signals are ignored or blocked, and which
//! standard streams are closed.
//!
//! Rust's runtime ignores SIGPIPE and opens /dev/null for closed streams, and we handle some signals. A program under `nohup`,
//! or whose starter ignores SIGPIPE, must find what it would find without us. So the state is noted before the runtime begins.

use nix::libc;
use std::mem::MaybeUninit;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};

/// The signals that some part of this command changes.
const SIGNALS: [libc::c_int; 6] = [
    libc::SIGPIPE,
    libc::SIGXFSZ,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGHUP,
];

static IGNORED: AtomicU64 = AtomicU64::new(0);
static BLOCKED: AtomicU64 = AtomicU64::new(0);
static CLOSED: AtomicU64 = AtomicU64::new(0);

// SAFETY: the C library calls the functions in this section once, before main.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = note;

extern "C" fn note() {
    let mut ignored = 0;
    let mut blocked = 0;
    let mut closed = 0;
    // SAFETY: system calls that fill in values of our own.
    unsafe {
        let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigprocmask(libc::SIG_SETMASK, std::ptr::null(), mask.as_mut_ptr());
        for signal in 1..=64 {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            if libc::sigaction(signal, std::ptr::null(), action.as_mut_ptr()) == 0
                && action.assume_init_ref().sa_sigaction == libc::SIG_IGN
            {
                ignored |= 1 << (signal - 1);
            }
            if libc::sigismember(mask.as_ptr(), signal) == 1 {
                blocked |= 1 << (signal - 1);
            }
        }
        for stream in 0..3 {
            if libc::fcntl(stream, libc::F_GETFD) < 0 {
                closed |= 1 << stream;
            }
        }
    }
    CLOSED.store(closed, Ordering::Relaxed);
    IGNORED.store(ignored, Ordering::Relaxed);
    BLOCKED.store(blocked, Ordering::Relaxed);
}

/// Was the signal ignored when this process began?
pub fn is_ignored(signal: libc::c_int) -> bool {
    IGNORED.load(Ordering::Relaxed) >> (signal - 1) & 1 != 0
}

/// Was this standard stream closed when this process began? Now it is /dev/null.
pub fn is_closed(stream: libc::c_int) -> bool {
    CLOSED.load(Ordering::Relaxed) >> stream & 1 != 0
}

/// Commands that start a program with the signals that this process inherited.
pub trait WithInherited {
    fn with_inherited_signals(&mut self) -> &mut Self;
    /// For a program that gets our standard streams.
    fn with_inherited_streams(&mut self) -> &mut Self;
}

impl WithInherited for Command {
    fn with_inherited_signals(&mut self) -> &mut Self {
        // SAFETY: after the fork, it only makes system calls.
        unsafe {
            self.pre_exec(|| {
                restore();
                Ok(())
            })
        }
    }

    fn with_inherited_streams(&mut self) -> &mut Self {
        // SAFETY: after the fork, it only makes system calls.
        unsafe {
            self.pre_exec(|| {
                for stream in (0..3).filter(|stream| is_closed(*stream)) {
                    libc::close(stream);
                }
                Ok(())
            })
        }
    }
}

/// In a child before its exec. Makes only system calls, so it may be called after a fork.
pub fn restore() {
    // SAFETY: it touches only values of our own.
    unsafe {
        for signal in SIGNALS {
            let action = if is_ignored(signal) {
                libc::SIG_IGN
            } else {
                libc::SIG_DFL
            };
            libc::signal(signal, action);
        }
        let blocked = BLOCKED.load(Ordering::Relaxed);
        let mut mask = MaybeUninit::<libc::sigset_t>::zeroed();
        libc::sigemptyset(mask.as_mut_ptr());
        for signal in 1..=64 {
            if blocked >> (signal - 1) & 1 != 0 {
                libc::sigaddset(mask.as_mut_ptr(), signal);
            }
        }
        libc::sigprocmask(libc::SIG_SETMASK, mask.as_ptr(), std::ptr::null_mut());
    }
}
