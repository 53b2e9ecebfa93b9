//! Ctrl-C asks for an end, and finished work is kept. A second Ctrl-C ends the command at once.

use nix::libc;
use std::sync::atomic::{AtomicBool, Ordering};

static REQUESTED: AtomicBool = AtomicBool::new(false);

pub fn requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}

extern "C" fn on_signal(_signal: libc::c_int) {
    REQUESTED.store(true, Ordering::Relaxed);
}

/// From now on, each of these signals is only noted once. A SIGHUP that `nohup` ignores stays ignored.
pub fn install() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler only stores to an atomic, and sigaction copies its argument.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let mut before: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_RESETHAND;
            libc::sigaction(signal, &action, &raw mut before);
            if signal == libc::SIGHUP && before.sa_sigaction == libc::SIG_IGN {
                libc::sigaction(signal, &before, std::ptr::null_mut());
            }
        }
    }
}
