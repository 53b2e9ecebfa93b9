//! What is run: one program in one way, and how its result is judged.

use indexmap::IndexMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How to tell that a run did what it should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judge {
    /// It prints `answer: …` with this value.
    Answer(String),
    /// Its output and its end are the same as without preload.
    Reference,
    /// Its end is the same as without preload; its output varies, or does not matter.
    EndOnly,
}

/// How to tell that a server accepts requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ready {
    Socket(PathBuf),
    Port(u16),
}

/// A moment at which a server's resident memory is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    pub name: String,
    /// Clients that run before it; their time counts.
    pub commands: Vec<Vec<String>>,
    /// Then the server gets no requests for this time.
    pub wait: Duration,
}

/// A command that is a server, and what to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    pub ready: Ready,
    /// How long it may take to be ready.
    pub start: Duration,
    /// What a user can do if that is not enough, for the end of the message.
    pub start_advice: &'static str,
    /// Its clients; their time counts.
    pub drive: Vec<Vec<String>>,
    /// Come after `drive`, in this order.
    pub moments: Vec<Moment>,
    /// Not measured; the answers are compared.
    pub ask: Vec<Vec<String>>,
    /// Commands that end it; if there are none, it gets SIGTERM.
    pub stop: Vec<Vec<String>>,
}

#[derive(Clone, Debug)]
pub struct Workload {
    pub name: String,
    pub about: String,
    pub group: String,
    pub threads: u32,
    pub program: PathBuf,
    /// The name by which it is called.
    pub called: OsString,
    /// Files besides the program that must be installed.
    pub needs: Vec<PathBuf>,
    pub arguments: Vec<OsString>,
    /// The environment without the allocator's variables.
    pub environment: IndexMap<OsString, OsString>,
    /// The part of it that belongs to the workload and is worth recording.
    pub own_environment: IndexMap<String, String>,
    pub folder: PathBuf,
    pub stdin: Option<PathBuf>,
    pub judge: Judge,
    /// A shell command that filters the output before it is compared.
    pub filter: Option<String>,
    /// Emptied before each run.
    pub scratch: Option<PathBuf>,
    /// Run before each run, not measured.
    pub prepare: Vec<Vec<String>>,
    /// Run after each run, not measured; their output is compared.
    pub verify: Vec<Vec<String>>,
    /// Files to compare.
    pub outputs: Vec<PathBuf>,
    pub server: Option<Server>,
    /// Its threads start processes.
    pub trace_threads: bool,
    /// It is linked with an allocator: for the baseline, the C library must be preloaded.
    pub bundles_malloc: bool,
    pub timeout: Option<Duration>,
}

impl Workload {
    /// The first file that it needs and that is missing.
    pub fn missing(&self) -> Option<&Path> {
        let mut needed = std::iter::once(&self.program).chain(&self.needs);
        needed.find(|path| !path.is_file()).map(PathBuf::as_path)
    }
}
