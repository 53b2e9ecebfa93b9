//! Requests to the kernel about a traced process.

use crate::error::Result;
use crate::failed;
use nix::libc;
use std::time::{Duration, Instant};

/// How long a process may take to stop, before it is let go.
const STOPPING: Duration = Duration::from_secs(1);

/// The type's sign differs between C libraries.
#[cfg(not(target_env = "musl"))]
pub type TraceRequest = libc::c_uint;
#[cfg(target_env = "musl")]
pub type TraceRequest = libc::c_int;

pub fn ptrace(request: TraceRequest, pid: i32, address: usize, data: usize) -> std::io::Result<()> {
    // SAFETY: none of the requests that are made here lets the kernel write to our memory.
    match unsafe { libc::ptrace(request, pid, address, data) } {
        -1 => Err(std::io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Lets this thread's tracees go on without it: each has to be stopped for that. One that cannot be stopped in time stays traced.
pub fn let_go(pids: &[i32]) {
    for pid in pids {
        let _ = ptrace(libc::PTRACE_INTERRUPT, *pid, 0, 0);
    }
    let until = Instant::now() + STOPPING;
    while Instant::now() < until {
        let mut status = 0;
        let options = libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG;
        // SAFETY: the kernel writes a status to where it is told.
        match unsafe { libc::waitpid(-1, &mut status, options) } {
            -1 => return, // none is left
            0 => std::thread::sleep(Duration::from_millis(1)),
            pid if libc::WIFSTOPPED(status) => {
                // A stop without an event came before a signal, which the process has yet to get.
                let signal = match status >> 16 {
                    0 => libc::WSTOPSIG(status),
                    _ => 0,
                };
                let _ = ptrace(libc::PTRACE_DETACH, pid, 0, signal as usize);
            }
            _ => {}
        }
    }
}

/// Traces a process from the command's first instruction; kills it if that is not permitted.
pub fn seize(root: i32, options: i32) -> Result<()> {
    ptrace(libc::PTRACE_SEIZE, root, 0, options as usize).map_err(|error| {
        // SAFETY: the process is our child and not waited for yet.
        unsafe { libc::kill(root, libc::SIGKILL) };
        failed!("tracing (ptrace) is not permitted here, so nothing can be proved: {error}")
    })
}
