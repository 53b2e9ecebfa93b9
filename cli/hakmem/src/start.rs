//! Starts programs with an allocator: prepares their environment, proves the allocator, and passes on our own streams.

use crate::target::{Opened, open_process};
use hakmem_heap::live::check_proc;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::Allocator;
use hakmem_lab::error::Result;
use hakmem_lab::executable::Executable;
use hakmem_lab::launch::{Request, Run};
use hakmem_lab::places::Places;
use hakmem_lab::process::Blind;
use hakmem_lab::{failed, probe, trust};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};
use nix::unistd::{Whence, lseek};
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The caller's environment, with the library before everything else that is preloaded.
pub fn environment(allocator: &Allocator) -> Result<Vec<(OsString, OsString)>> {
    let mut environment: Vec<(OsString, OsString)> = env::vars_os().collect();
    let added = allocator
        .environment
        .iter()
        .map(|(name, value)| (name.into(), value.into()));
    for (name, value) in added {
        environment.retain(|(known, _): &(OsString, OsString)| *known != name);
        environment.push((name, value));
    }
    if let Some(library) = allocator.preload()? {
        let mut preload = library.as_os_str().to_os_string();
        let others = environment.iter().find(|(name, _)| name == "LD_PRELOAD");
        if let Some((_, others)) = others.filter(|(_, value)| !value.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        environment.retain(|(name, _)| name != "LD_PRELOAD");
        environment.push(("LD_PRELOAD".into(), preload));
    }
    Ok(environment)
}

/// The program of this name; an error if nothing can be preloaded into it.
pub fn preloadable(name: &OsStr) -> Result<Executable> {
    let executable = Executable::find(name)?;
    match executable.obstacle() {
        Some(obstacle) => {
            let shown = executable.path.shown();
            Err(failed!("{shown} {}", obstacle.sentence()))
        }
        None => Ok(executable),
    }
}

/// Refuses a program whose memory would come from another allocator, for a command that reads its processes as it runs: if /proc does
/// not show them, that is an error.
pub fn prove(
    executable: &Executable,
    words: &[OsString],
    environment: &[(OsString, OsString)],
    allocator: &Allocator,
) -> Result<()> {
    check_proc().map_err(|error| failed!("{error}"))?;
    prove_if_possible(executable, words, environment, allocator)
}

/// The same for a command that only starts it: loads it once without running it.
pub fn prove_if_possible(
    executable: &Executable,
    words: &[OsString],
    environment: &[(OsString, OsString)],
    allocator: &Allocator,
) -> Result<()> {
    let shown = executable.path.shown();
    // For a script, the interpreter allocates.
    let probed = if executable.is_script() { &[] } else { words };
    match probe::load(&executable.binary, probed, environment.to_vec()) {
        Ok(Ok(loaded)) => match trust::contradiction(&loaded.proof, allocator, &str::to_string) {
            Some(reason) => Err(failed!(
                "{shown} {reason}; 'hakmem verify {shown}' shows more"
            )),
            None => Ok(()),
        },
        Ok(Err(Blind::Other(reason))) => Err(failed!("{shown}: {reason}")),
        Ok(Err(blind)) => Err(failed!("{shown}: {blind}")),
        // If tracing is forbidden, as in some containers, the program may run nevertheless.
        Err(error) if error.exit_code() == 1 => {
            eprintln!("hakmem: not proved: {error}");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// A program on our own streams, traced to its end. The first word is the name by which it is called.
pub fn request(
    program: &Path,
    command: &[OsString],
    environment: Vec<(OsString, OsString)>,
    reads_heaps: bool,
) -> Result<Request> {
    let own = |stream: BorrowedFd| -> Result<File> {
        let copy = stream.try_clone_to_owned();
        copy.map(File::from)
            .map_err(|error| failed!("a standard stream is closed: {error}"))
    };
    Ok(Request {
        program: program.to_path_buf(),
        name: command[0].clone(),
        arguments: command[1..].to_vec(),
        environment,
        folder: env::current_dir().map_err(|error| failed!("the current folder: {error}"))?,
        input: own(std::io::stdin().as_fd())?,
        output: own(std::io::stdout().as_fd())?,
        errors: own(std::io::stderr().as_fd())?,
        timeout: None,
        trace_threads: true,
        has_own_group: false,
        reads_heaps,
        ends_what_remains: false,
        control_group: None,
    })
}

/// What to say of processes that outlived the command: they go on, but are not looked at any more.
pub fn left_running(run: &Run) -> Option<String> {
    let which = match run.left_running {
        0 => return None,
        1 => "one process still runs, and is".into(),
        count => format!("{count} processes still run, and are"),
    };
    Some(format!(
        "{which} not counted; a service is counted if it stays in the foreground"
    ))
}

/// A note for the case that standard input is a file, but runs do not read it.
pub fn unread_input() -> Option<&'static str> {
    let data = fstat(std::io::stdin()).ok()?;
    let is_file = SFlag::from_bits_truncate(data.st_mode) & SFlag::S_IFMT == SFlag::S_IFREG;
    (is_file && data.st_size > 0).then_some("standard input is a file here, and no run reads it")
}

/// Our standard input; each of several runs of a program reads it from the same position.
pub struct Input {
    /// None: it cannot be read again.
    start: Option<i64>,
    was_at_end: bool,
}

impl Input {
    pub fn note() -> Input {
        Input {
            start: lseek(std::io::stdin(), 0, Whence::SeekCur).ok(),
            was_at_end: Input::is_at_end(),
        }
    }

    /// For a pipe: everything was read, and it has no writer.
    fn is_at_end() -> bool {
        let input = std::io::stdin();
        let mut looked_at = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
        let is_ready = poll(&mut looked_at, PollTimeout::ZERO).is_ok_and(|count| count > 0);
        let found = looked_at[0].revents().unwrap_or(PollFlags::empty());
        is_ready && found.contains(PollFlags::POLLHUP) && !found.contains(PollFlags::POLLIN)
    }

    /// False: a run has read it, so the next one could not.
    pub fn again(&self) -> bool {
        match self.start {
            Some(start) => lseek(std::io::stdin(), start, Whence::SeekSet).is_ok(),
            None => self.was_at_end || !Input::is_at_end(),
        }
    }
}

/// A small program with hakmem that waits to be examined. Dropping this value ends it.
pub struct Sample(Child);

impl Sample {
    /// Starts it in our environment, or in another mode.
    pub fn start(mode: Option<&str>) -> Result<Sample> {
        let ours = Allocator::ours(&Places::find()?)?;
        let mut command = Command::new("/bin/sh");
        // It writes a line when it has started.
        command
            .args(["-c", "echo ready; read end"])
            .env_clear()
            .envs(environment(&ours)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(mode) = mode {
            command.env("HAKMEM_MODE", mode);
        }
        let child = command
            .spawn()
            .map_err(|error| failed!("cannot start /bin/sh: {error}"))?;
        let mut sample = Sample(child);
        let mut line = String::new();
        let output = sample.0.stdout.take();
        let read = output.map(|output| BufReader::new(output).read_line(&mut line));
        if matches!(read, Some(Ok(1..))) {
            Ok(sample)
        } else {
            Err(failed!("/bin/sh under hakmem ended at once"))
        }
    }

    pub fn open(&self) -> Result<Opened> {
        let pid = i32::try_from(self.0.id()).unwrap_or(0);
        Ok(Opened::Live(open_process(pid)?))
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
