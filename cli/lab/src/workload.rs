//! What is run: one program in one way, and how its result is judged.

use indexmap::IndexMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How it is known that a run did what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judge {
    /// It prints `answer: …`, which has to be this.
    Answer(String),
    /// It puts out what a run without preload puts out, and ends in the same way.
    Reference,
    /// It ends as a run without preload; what it puts out is another each time, or of no interest.
    EndOnly,
}

/// When a server can be driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    Socket(PathBuf),
    Port(u16),
}

/// When resident memory is read of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub name: String,
    /// Clients; their time counts.
    pub commands: Vec<Vec<String>>,
    /// Then nothing is asked for so long.
    pub wait: Duration,
}

/// A command that is a server, and what is done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub ready: Ready,
    /// Its clients; their time counts.
    pub drive: Vec<Vec<String>>,
    /// After them, in this order.
    pub moments: Vec<Moment>,
    /// Not measured; the answers are compared.
    pub ask: Vec<Vec<String>>,
    /// What ends it; without any it gets SIGTERM.
    pub stop: Vec<Vec<String>>,
}

#[derive(Clone, Debug)]
pub struct Workload {
    pub name: String,
    pub about: String,
    pub group: String,
    pub threads: u32,
    pub program: PathBuf,
    /// Files besides the program that have to be installed.
    pub needs: Vec<PathBuf>,
    pub arguments: Vec<OsString>,
    /// The environment before what the allocator needs is added.
    pub environment: IndexMap<OsString, OsString>,
    /// What of it belongs to the workload and is worth recording.
    pub own_environment: IndexMap<String, String>,
    pub folder: PathBuf,
    pub stdin: Option<PathBuf>,
    pub judge: Judge,
    /// A shell command that what it prints goes through before it is compared.
    pub filter: Option<String>,
    /// Emptied before each run.
    pub scratch: Option<PathBuf>,
    /// Before each run, not measured.
    pub prepare: Vec<Vec<String>>,
    /// After each run, not measured; what these print is compared.
    pub verify: Vec<Vec<String>>,
    /// Files that are compared.
    pub outputs: Vec<PathBuf>,
    pub server: Option<Server>,
    /// Its threads start processes.
    pub trace_threads: bool,
    /// It is linked with an allocator: the C library has to be preloaded for the baseline.
    pub bundles_malloc: bool,
    pub timeout: Option<Duration>,
}

impl Workload {
    /// The first file that it needs and that is not there.
    pub fn missing(&self) -> Option<&Path> {
        let mut needed = std::iter::once(&self.program).chain(&self.needs);
        needed.find(|path| !path.is_file()).map(PathBuf::as_path)
    }
}
