//! Why a heap cannot be read. Each error is one line that says what, where, and what to do.

use crate::shown::ShownPath;
use std::fmt;
use std::path::PathBuf;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// There is no such process, or it has ended.
    Gone(i32),
    /// The process has executed another program since we opened it.
    Became(i32),
    /// The kernel does not let us read it.
    Forbidden(i32),
    /// It is a kernel thread.
    OfKernel,
    /// /proc belongs to another PID namespace than ours.
    ForeignProc,
    /// No control block: the process uses another allocator, or none.
    NotHakmem,
    /// The control block has a format version that we do not know.
    OtherVersion { found: u32, known: u32 },
    /// The library's control block has no such name.
    Missing { release: String, name: String },
    /// A file that cannot be opened.
    Unreadable { path: PathBuf, why: String },
    /// The file is not a core dump.
    NoCore { path: PathBuf, why: String },
    /// The file is not a snapshot, or not a complete one.
    NoSnapshot { path: PathBuf, why: String },
    /// The core dump lacks a part of the memory that contains the metadata.
    NotInCore { path: PathBuf, address: u64 },
    /// The memory contains something impossible.
    Damaged(String),
}

pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Gone(pid) => {
                write!(formatter, "there is no process {pid}, or it has just ended")
            }
            Error::Became(pid) => {
                write!(formatter, "process {pid} has become another program (exec)")
            }
            Error::Forbidden(pid) => {
                write!(formatter, "process {pid} may not be read: {}", why_not())
            }
            Error::OfKernel => {
                formatter.write_str("it is a thread of the kernel, which has no memory of its own")
            }
            Error::ForeignProc => formatter.write_str(
                "/proc is missing, or of another PID namespace: mount it here (mount -t proc proc /proc; \
                 unshare has --mount-proc for it)",
            ),
            Error::NotHakmem => formatter.write_str("hakmem is not in it"),
            Error::OtherVersion { found, known } => write!(
                formatter,
                "its hakmem has a control block of version {found}, and this command reads \
                 version {known}: use the command of the same release"
            ),
            Error::Missing { release, name } if release == env!("CARGO_PKG_VERSION") => write!(
                formatter,
                "its hakmem is another build of {release}, without {name}: use the command that was built with it"
            ),
            Error::Missing { release, name } => write!(
                formatter,
                "its hakmem {release} has no {name}: use the command of the same release"
            ),
            Error::Unreadable { path, why } => {
                write!(formatter, "cannot read {}: {why}", path.shown())
            }
            Error::NoCore { path, why } => {
                write!(formatter, "{} is not a core dump: {why}", path.shown())
            }
            Error::NoSnapshot { path, why } => {
                write!(
                    formatter,
                    "{} is not a readable snapshot: {why}",
                    path.shown()
                )
            }
            Error::NotInCore { path, address } => write!(
                formatter,
                "{} lacks the memory at {address:#x}, where hakmem's tables are: it was cut short, or \
                 /proc/PID/coredump_filter was without bit 0 (anonymous memory)",
                path.shown()
            ),
            Error::Damaged(what) => write!(formatter, "its metadata is damaged: {what}"),
        }
    }
}

/// Why the kernel does not let us read such a process, and who may.
pub fn why_not() -> &'static str {
    if nix::unistd::geteuid().is_root() {
        "root here lacks a capability for it: CAP_SYS_PTRACE, or one that the process has"
    } else {
        "it is another user's, or /proc/sys/kernel/yama/ptrace_scope forbids it; try as root"
    }
}

impl std::error::Error for Error {}
