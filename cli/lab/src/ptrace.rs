//! Requests to the kernel about a traced process.

use nix::libc;

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
