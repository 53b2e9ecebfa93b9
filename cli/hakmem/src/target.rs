//! The process, core dump or snapshot that a command examines.

use crate::signals::EndsHeld;
use crate::snapshot::Snapshot;
use clap::Args;
use hakmem_heap::control::Control;
use hakmem_heap::core::CoreFile;
use hakmem_heap::error::Error;
use hakmem_heap::failures::Failures;
use hakmem_heap::heap::Heap;
use hakmem_heap::ledger::Account;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use hakmem_heap::options::{self, Feature, Setting};
use hakmem_heap::resident::Pages;
use hakmem_heap::shown::ShownPath;
use hakmem_heap::snapshot::Image;
use hakmem_lab::error::Result;
use hakmem_lab::meter::quoted;
use hakmem_lab::proof::Proof;
use hakmem_lab::render::number::bytes;
use hakmem_lab::{elf, failed, usage};
use hakmem_trace::reader::Reader;
use hakmem_trace::symbols::{Names, Sources};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A process that changes during a read may look damaged.
const TRIES: usize = 3;

#[derive(Args)]
pub struct Target {
    /// The process ID
    #[arg(conflicts_with = "core", value_parser = process_number)]
    pub pid: Option<i32>,
    /// A core dump or a snapshot instead of a process
    #[arg(long, value_name = "FILE")]
    pub core: Option<PathBuf>,
}

/// Parses the process's number on a command line.
pub fn process_number(word: &str) -> std::result::Result<i32, String> {
    let number = word.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| what_reads(Path::new(word)).unwrap_or_else(|| NO_NUMBER.into()))
}

/// Which commands read a file, by its first bytes: "is a trace: 'hakmem trace info app.hkt' and …".
pub fn what_reads(path: &Path) -> Option<String> {
    let shown = path.shown();
    let shown = quoted(&shown);
    if Reader::is_one(path) {
        return Some(format!(
            "is a trace: 'hakmem trace info {shown}' and 'hakmem replay {shown}' read it"
        ));
    }
    let name = match Image::is_one(path) {
        true => "snapshot",
        false if CoreFile::is_one(path) => "core dump",
        false => return None,
    };
    Some(format!(
        "is a {name}: 'hakmem doctor {shown}' reads it, and commands with --core"
    ))
}

pub const NO_NUMBER: &str =
    "it is not a process ID: 'pidof -s NAME' prints one, 'hakmem top' lists all";

pub enum Opened {
    Live(LiveProcess),
    Core(Box<CoreFile>),
    Snapshot(Box<Snapshot>),
}

impl Target {
    pub fn open(&self) -> Result<Opened> {
        let opened = self.open_if_named()?;
        opened.ok_or_else(no_process)
    }

    pub fn open_if_named(&self) -> Result<Option<Opened>> {
        let opened = self.open_any_if_named()?;
        if let Some(Opened::Core(core)) = &opened {
            if core.cut().is_some() {
                Control::find(core.as_ref()).map_err(|error| told_of_core(&error, core))?;
            }
        }
        opened.iter().for_each(warn_of_cut);
        Ok(opened)
    }

    /// For a heap of any allocator.
    pub fn open_any(&self) -> Result<Opened> {
        let opened = self.open_any_if_named()?.ok_or_else(no_process)?;
        warn_of_cut(&opened);
        Ok(opened)
    }

    fn open_any_if_named(&self) -> Result<Option<Opened>> {
        Ok(match (&self.core, self.pid) {
            (Some(path), _) => Some(open_file(path)?),
            (None, Some(pid)) => Some(Opened::Live(open_process(pid)?)),
            (None, None) => None,
        })
    }
}

fn no_process() -> hakmem_lab::error::Error {
    usage!("which process? Give its ID, or --core FILE")
}

/// Warns if a core dump is truncated: it is read as far as it goes.
pub fn warn_of_cut(opened: &Opened) {
    if let Opened::Core(core) = opened {
        if let Some(cut) = core.cut() {
            eprintln!("hakmem: warning: {}: {cut}", core.path.shown());
        }
    }
}

fn told_of_core(error: &Error, core: &CoreFile) -> hakmem_lab::error::Error {
    let path = core.path.shown();
    match (error, core.cut()) {
        (Error::NotHakmem | Error::NotInCore { .. }, Some(cut)) => failed!(
            "{path}: {cut}, and hakmem's tables are in the missing part; 'hakmem core {}' shows the rest",
            quoted(&path)
        ),
        _ => told(error, &path, None),
    }
}

/// A core dump or a snapshot.
pub fn open_file(path: &Path) -> Result<Opened> {
    if !Image::is_one(path) {
        return Ok(Opened::Core(Box::new(open_core(path)?)));
    }
    let snapshot = Snapshot::open(path).map_err(|error| told(&error, &path.shown(), None))?;
    Ok(Opened::Snapshot(Box::new(snapshot)))
}

pub fn open_process(pid: i32) -> Result<LiveProcess> {
    let process = LiveProcess::open(pid);
    let process = process.map_err(|error| told(&error, &format!("process {pid}"), Some(pid)))?;
    warn_of_copies(&process, &format!("process {pid}"));
    Ok(process)
}

/// Warns of several copies: figures are only those of one.
fn warn_of_copies(memory: &dyn Memory, subject: &str) {
    if let [first, others @ ..] = Control::copies_in_use(memory).as_slice()
        && !others.is_empty()
    {
        let others: Vec<String> = others.iter().map(|one| bytes(*one)).collect();
        eprintln!(
            "hakmem: warning: {subject} uses {} copies of hakmem: only the one with {} mapped is shown (others: {})",
            others.len() + 1,
            bytes(*first),
            others.join(", ")
        );
    }
}

pub fn open_core(path: &Path) -> Result<CoreFile> {
    if let Some(reads) = what_reads(path).filter(|_| !CoreFile::is_one(path)) {
        return Err(usage!("{} {reads}", path.shown()));
    }
    let core = CoreFile::open(path).map_err(|error| told(&error, &path.shown(), None))?;
    warn_of_copies(&core, &path.shown());
    Ok(core)
}

/// What was read of a process that has meanwhile ended or executed another program is incomplete, so this discards it.
pub fn whole<T>(memory: &dyn Memory, read: T) -> Result<T> {
    match memory.lost() {
        Some(error) => Err(failed!("{}", ended(&error))),
        None => Ok(read),
    }
}

/// The heap of a process as it is now.
pub fn read_process(process: &LiveProcess) -> Result<Heap> {
    let mut tries = 1;
    loop {
        match Heap::read(process) {
            Ok(heap) => return whole(process, heap),
            Err(Error::Damaged(_)) if tries < TRIES => tries += 1,
            Err(error) => {
                let pid = process.pid;
                return Err(told(&error, &format!("process {pid}"), Some(pid)));
            }
        }
    }
}

pub fn read_core(core: &CoreFile) -> Result<Heap> {
    Heap::read(core).map_err(|error| told_of_core(&error, core))
}

impl Opened {
    pub fn memory(&self) -> &dyn Memory {
        match self {
            Opened::Live(process) => process,
            Opened::Core(core) => core.as_ref(),
            Opened::Snapshot(snapshot) => &snapshot.image,
        }
    }

    /// One line that says why something cannot be read.
    pub fn refused(&self, error: &Error) -> hakmem_lab::error::Error {
        match self {
            Opened::Live(process) => {
                let pid = process.pid;
                told(error, &format!("process {pid}"), Some(pid))
            }
            Opened::Core(core) => told_of_core(error, core),
            Opened::Snapshot(snapshot) => told(error, &snapshot.path().shown(), None),
        }
    }

    pub fn failures(&self) -> Result<Failures> {
        let failures = Failures::read(self.memory()).map_err(|error| self.refused(&error))?;
        self.whole(failures)
    }

    /// Returns what was read, if the process is still there.
    pub fn whole<T>(&self, read: T) -> Result<T> {
        whole(self.memory(), read)
    }

    /// Finds names for code addresses.
    pub fn names(&self) -> Names {
        match self {
            Opened::Live(process) => {
                let sources = Sources {
                    process: Some(process.task()),
                    ..Sources::default()
                };
                Names::new(process.code(), sources)
            }
            Opened::Core(core) => names_of_core(core),
            Opened::Snapshot(snapshot) => snapshot.names(),
        }
    }

    /// A thread's name, if it is known.
    pub fn thread_name(&self, thread: u64) -> Option<String> {
        match self {
            Opened::Live(process) => process.thread_name(thread),
            Opened::Core(_) => None,
            Opened::Snapshot(snapshot) => snapshot.threads().get(&thread).cloned(),
        }
    }

    /// Are hakmem's tables there, readable or not?
    pub fn uses_hakmem(&self) -> bool {
        !matches!(Control::find(self.memory()), Err(Error::NotHakmem))
    }

    pub fn heap(&self) -> Result<Heap> {
        match self {
            Opened::Live(process) => read_process(process),
            Opened::Core(core) => read_core(core),
            Opened::Snapshot(snapshot) => snapshot.heap().map_err(|error| self.refused(&error)),
        }
    }

    /// What hakmem's heap has resident; None for a core dump, which does not tell it.
    pub fn account(&self, heap: &Heap) -> Result<Option<Account>> {
        match self {
            Opened::Live(process) => {
                let account = Account::of(process, heap).map_err(|error| self.refused(&error))?;
                self.whole(Some(account))
            }
            Opened::Core(_) => Ok(None),
            Opened::Snapshot(snapshot) => Ok(snapshot.visit().account().cloned()),
        }
    }

    /// Which pages are resident; None unless it is a process.
    pub fn pages(&self) -> Result<Option<Pages>> {
        match self {
            Opened::Live(process) => {
                let pages = Pages::open(process).map_err(|error| self.refused(&error))?;
                Ok(Some(pages))
            }
            Opened::Core(_) | Opened::Snapshot(_) => Ok(None),
        }
    }

    /// Why there is no account.
    pub fn without_account(&self) -> hakmem_lab::error::Error {
        match self {
            Opened::Snapshot(snapshot) if !snapshot.visit().is_core => failed!(
                "{}: the resident part of hakmem's heap is not known, as another build of hakmem \
                 took this snapshot, in another format: 'hakmem stats' shows the heap",
                snapshot.path().shown()
            ),
            _ => failed!("a core dump does not say what was resident"),
        }
    }

    /// The number of a thread whose /proc entries describe the process.
    pub fn task(&self) -> Option<i32> {
        match self {
            Opened::Live(process) => Some(process.task()),
            Opened::Core(_) | Opened::Snapshot(_) => None,
        }
    }

    /// Why nothing more can be read.
    pub fn lost(&self) -> Option<Error> {
        self.memory().lost()
    }

    /// Waits until the time is over, Ctrl-C is pressed, or nothing can be read any more.
    pub fn wait(&self, time: Duration) -> std::result::Result<(), Error> {
        const STEP: Duration = Duration::from_millis(200);
        let ends = EndsHeld::begin();
        let begin = Instant::now();
        loop {
            if let Some(error) = self.lost() {
                return Err(error);
            }
            let rest = time.saturating_sub(begin.elapsed());
            if rest.is_zero() || ends.wait(rest.min(STEP)) {
                return Ok(());
            }
        }
    }

    /// The values of its options.
    pub fn settings(&self) -> Result<Vec<Setting>> {
        self.ask(options::read)
    }

    /// Its options that turn features on and off.
    pub fn features(&self) -> Result<Vec<Feature>> {
        self.ask(options::read_features)
    }

    pub fn ask<T>(
        &self,
        question: fn(&Control, &dyn Memory) -> hakmem_heap::error::Result<T>,
    ) -> Result<T> {
        let memory = self.memory();
        let answer = Control::find(memory).and_then(|control| question(&control, memory));
        self.whole(answer.map_err(|error| self.refused(&error))?)
    }

    /// "process 4711: redis-server *:6379"
    pub fn title(&self) -> String {
        match self {
            Opened::Live(process) => format!("process {}: {}", process.pid, process.command_line()),
            Opened::Core(core) => {
                let line = &core.story.command_line;
                let program = if line.is_empty() {
                    &core.story.program
                } else {
                    line
                };
                format!("{}: {program}", core.path.shown())
            }
            Opened::Snapshot(snapshot) => snapshot.title(),
        }
    }
}

/// Finds names for code addresses of a program that has left a core dump.
pub fn names_of_core(core: &CoreFile) -> Names {
    let written = std::fs::metadata(&core.path).and_then(|data| data.modified());
    let sources = Sources {
        as_of: written.ok(),
        ..Sources::default()
    };
    Names::new(core.code(), sources)
}

/// One line that says what went wrong with `subject`.
pub fn told(error: &Error, subject: &str, pid: Option<i32>) -> hakmem_lab::error::Error {
    match error {
        Error::Gone(_) => usage!("{error}"),
        Error::Forbidden(_) | Error::Became(_) | Error::NotInCore { .. } => failed!("{error}"),
        Error::Unreadable { .. } | Error::NoCore { .. } | Error::NoSnapshot { .. } => {
            usage!("{error}")
        }
        Error::NotHakmem => match pid.and_then(used_instead) {
            Some(used) if used.is_hakmem => {
                failed!("{subject}: hakmem is loaded there, but has not started yet: ask again")
            }
            Some(Used { name, .. }) => {
                failed!(
                    "{subject} does not use hakmem, but {name}: start it with 'hakmem run', or ask 'hakmem doctor'"
                )
            }
            None if pid.is_some() => failed!("{subject}: {error}: ask 'hakmem doctor'"),
            None => failed!("{subject}: {error}"),
        },
        _ => failed!("{subject}: {error}"),
    }
}

/// Why a process that was examined is no longer there.
pub fn ended(error: &Error) -> String {
    match error {
        Error::Gone(pid) => format!("process {pid} has ended"),
        _ => error.to_string(),
    }
}

/// Ends a command that watches a process as long as it exists. The process's end is no error; losing the right to read it is
/// one.
pub fn end_with(why: &Error) -> Result<()> {
    match why {
        Error::Gone(_) | Error::Became(_) => {
            eprintln!("hakmem: {}", ended(why));
            Ok(())
        }
        _ => Err(failed!("{why}")),
    }
}

struct Used {
    /// "/lib/libc.so.6 (the C library's)"
    name: String,
    /// hakmem is loaded, but a program that was just started or executed has not called it yet.
    is_hakmem: bool,
}

fn used_instead(pid: i32) -> Option<Used> {
    let proof = Proof::collect(pid).ok()?;
    let owner = *proof.owners().first()?;
    let file = elf::read_cached(owner).ok();
    let names: Vec<&str> = file
        .iter()
        .flat_map(|file| file.allocators.iter().copied())
        .collect();
    Some(Used {
        is_hakmem: names.contains(&"hakmem"),
        name: if names.is_empty() {
            owner.shown()
        } else {
            format!("{} ({})", owner.shown(), names.join(" and "))
        },
    })
}
