//! Runs one command under ptrace, and stops it only where that is necessary.
//!
//! The command's processes stop when they start a process, execute a program, get a signal, or exit; never for a system call, a
//! page fault or (unless requested) a thread. At the exit stop the memory is still there, so its peak and its allocator are
//! read from the process itself.
//!
//! One thread starts the command, traces it and waits for it: the kernel allows no other thread to do that. A second thread
//! samples the memory of the processes, and kills the command if it takes too long. The caller is free meanwhile, for example
//! to run a server's clients.

use crate::control_group::Group;
use crate::error::Result;
use crate::ptrace::{let_go, ptrace, seize};
use crate::tree::{self, Start, Tree};
use crate::watch::{self, Timeline, Watched};
use crate::{failed, inherited, usage};
use hakmem_heap::live::check_proc;
use hakmem_heap::shown::ShownPath;
use nix::fcntl::OFlag;
use nix::libc;
use nix::sys::signal::Signal;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often to look for the end of such processes as outlive the command.
const REMAINING_EVERY: Duration = Duration::from_millis(2);

pub struct Request {
    pub program: PathBuf,
    /// The name by which it is called: its `argv[0]`, on which its messages and some programs' work depend.
    pub name: OsString,
    pub arguments: Vec<OsString>,
    /// The whole environment.
    pub environment: Vec<(OsString, OsString)>,
    pub folder: PathBuf,
    pub input: File,
    pub output: File,
    pub errors: File,
    pub timeout: Option<Duration>,
    /// Also trace threads, to see the processes that they start.
    pub trace_threads: bool,
    /// Ctrl-C does not reach it, so we must pass it on.
    pub has_own_group: bool,
    /// Read the heaps of its processes when they exit.
    pub reads_heaps: bool,
    /// Kill the processes that outlive the command, so that they disturb no later run; else they go on.
    pub ends_what_remains: bool,
    /// The group for it and all that it starts.
    pub control_group: Option<Arc<Group>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Exited(i32),
    Signaled(i32),
}

/// For example "SIGSEGV"; a number if the signal has no name.
pub fn signal_name(signal: i32) -> String {
    Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |name| name.to_string())
}

/// The result of one run of a command.
#[derive(Debug)]
pub struct Run {
    pub end: End,
    pub timed_out: bool,
    /// Why the command's own process was not examined at its exit.
    pub unexamined: Option<String>,
    /// How many processes outlived the command.
    pub left_running: usize,
    /// From its start to its end, without the time in which it did nothing because we kept a process of it stopped.
    pub wall_s: f64,
    /// How long that was.
    pub stopped_s: f64,
    /// Of the command and the children that it has waited for.
    pub user_s: f64,
    pub sys_s: f64,
    pub minor_faults: u64,
    pub major_faults: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    pub tree: Tree,
    /// The peak memory of its control group, if it had one.
    pub group_peak_kib: Option<u64>,
    /// Resident KiB of all processes together, by seconds since the start.
    pub timeline: Timeline,
}

/// A running command.
pub struct Running {
    pub pid: i32,
    started: Instant,
    watched: Arc<Watched>,
    tracer: JoinHandle<Result<Run>>,
}

impl Running {
    pub fn start(request: Request) -> Result<Running> {
        let watched = Arc::new(Watched::default());
        let for_tracer = Arc::clone(&watched);
        let (sender, receiver) = mpsc::channel();
        let tracer = std::thread::spawn(move || trace(&request, &for_tracer, &sender));
        match receiver.recv() {
            Ok(pid) => Ok(Running {
                pid,
                started: Instant::now(),
                watched,
                tracer,
            }),
            Err(mpsc::RecvError) => Err(join(tracer).err().unwrap_or_else(lost)),
        }
    }

    /// See `Watched::moment`; the seconds are exact to a few milliseconds.
    pub fn moment(&self) -> (f64, u64) {
        self.watched.moment(self.started)
    }

    pub fn is_running(&self) -> bool {
        !self.tracer.is_finished()
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        self.watched.signal_root(libc::SIGTERM);
    }

    /// Kills it and everything that it started.
    pub fn kill(&self) {
        self.watched.signal_root(libc::SIGKILL);
    }

    pub fn wait(self) -> Result<Run> {
        join(self.tracer)
    }
}

fn lost() -> crate::error::Error {
    failed!("the tracing thread ended without a result")
}

fn join(tracer: JoinHandle<Result<Run>>) -> Result<Run> {
    tracer.join().unwrap_or_else(|_| Err(lost()))
}

struct Tracer<'a> {
    request: &'a Request,
    watched: &'a Arc<Watched>,
    root: i32,
    started: Instant,
    root_ended: Option<(Instant, i32, libc::rusage)>,
    stopped: Duration,
    tree: Tree,
}

/// The command's process, which waits before its exec.
pub struct Started {
    pub root: i32,
    pub gate: Gate,
    /// Says why the exec has failed.
    pub report: OwnedFd,
}

/// Holds the command's process back until this is dropped.
pub struct Gate {
    writer: OwnedFd,
    /// Kept so that the pipe has a reader even if the process was killed.
    _reader: OwnedFd,
}

impl Drop for Gate {
    /// Writes a byte: closing the pipe would not be enough, as a process that another thread has forked meanwhile also has it
    /// open, until its own gate opens.
    fn drop(&mut self) {
        let _ = nix::unistd::write(&self.writer, &[1]);
    }
}

/// Why the exec has failed; waits until the process has ended or executed the command.
pub fn start_error(report: OwnedFd) -> Option<std::io::Error> {
    let mut number = [0; 4];
    File::from(report).read_exact(&mut number).ok()?;
    Some(std::io::Error::from_raw_os_error(i32::from_ne_bytes(
        number,
    )))
}

pub fn fork_command(request: &Request) -> Result<Started> {
    check_proc().map_err(|error| failed!("{error}"))?;
    let command = PreparedCommand::new(request)?;
    let pipe = || nix::unistd::pipe2(OFlag::O_CLOEXEC).map_err(|error| failed!("no pipe: {error}"));
    let (gate_out, gate_in) = pipe()?;
    let (report_out, report_in) = pipe()?;
    // SAFETY: the child only makes system calls, on memory that was prepared before.
    match unsafe { libc::fork() } {
        -1 => Err(failed!(
            "cannot start a process: {}",
            std::io::Error::last_os_error()
        )),
        // SAFETY: this is the child.
        0 => unsafe { command.become_it(&gate_out, &gate_in, &report_in) },
        child => Ok(Started {
            root: child,
            gate: Gate {
                writer: gate_in,
                _reader: gate_out,
            },
            report: report_out,
        }),
    }
}

/// Everything that the child needs after the fork. It must not allocate then: locks that other threads held stay locked in it
/// for ever.
struct PreparedCommand<'a> {
    request: &'a Request,
    program: CString,
    folder: CString,
    _texts: Vec<CString>,
    arguments: Vec<*const libc::c_char>,
    environment: Vec<*const libc::c_char>,
}

impl PreparedCommand<'_> {
    fn new(request: &Request) -> Result<PreparedCommand<'_>> {
        let program = text(request.program.as_os_str())?;
        let folder = text(request.folder.as_os_str())?;
        let words = std::iter::once(&request.name).chain(&request.arguments);
        let mut texts = words.map(|word| text(word)).collect::<Result<Vec<_>>>()?;
        let argument_count = texts.len();
        for (name, value) in &request.environment {
            let mut entry = name.clone();
            entry.push("=");
            entry.push(value);
            texts.push(text(&entry)?);
        }
        let pointers = |texts: &[CString]| -> Vec<*const libc::c_char> {
            texts
                .iter()
                .map(|text| text.as_ptr())
                .chain([std::ptr::null()])
                .collect()
        };
        let arguments = pointers(&texts[..argument_count]);
        let environment = pointers(&texts[argument_count..]);
        Ok(PreparedCommand {
            request,
            program,
            folder,
            _texts: texts,
            arguments,
            environment,
        })
    }

    /// In the child: waits until it is traced, then executes the command.
    ///
    /// # Safety
    /// Only in the child of a fork; does not return.
    unsafe fn become_it(&self, gate_out: &OwnedFd, gate_in: &OwnedFd, report: &OwnedFd) -> ! {
        // SAFETY: system calls on open files and on memory that stays where it is.
        unsafe {
            libc::close(gate_in.as_raw_fd()); // or the child would not notice that nobody can open the gate
            let mut byte = 0u8;
            let opened = loop {
                match libc::read(gate_out.as_raw_fd(), (&raw mut byte).cast(), 1) {
                    -1 => {}
                    count => break count > 0,
                }
            };
            if !opened {
                libc::_exit(127);
            }
            if self.request.has_own_group {
                libc::setpgid(0, 0);
            }
            inherited::restore();
            let files = [
                &self.request.input,
                &self.request.output,
                &self.request.errors,
            ];
            let is_ready = files
                .iter()
                .zip(0..)
                .all(|(file, number)| libc::dup2(file.as_raw_fd(), number) >= 0)
                && libc::chdir(self.folder.as_ptr()) == 0;
            if is_ready {
                libc::execve(
                    self.program.as_ptr(),
                    self.arguments.as_ptr(),
                    self.environment.as_ptr(),
                );
            }
            let error = *libc::__errno_location();
            libc::write(
                report.as_raw_fd(),
                (&raw const error).cast(),
                size_of::<i32>(),
            );
            libc::_exit(127)
        }
    }
}

fn text(text: &OsStr) -> Result<CString> {
    CString::new(text.as_bytes())
        .map_err(|_| usage!("'{}' has a NUL byte in it", text.to_string_lossy()))
}

/// The tracing thread, from the command's start to its end.
fn trace(request: &Request, watched: &Arc<Watched>, sender: &mpsc::Sender<i32>) -> Result<Run> {
    let Started { root, gate, report } = fork_command(request)?;
    let mut options = libc::PTRACE_O_TRACEEXIT
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_EXITKILL;
    if request.trace_threads {
        options |= libc::PTRACE_O_TRACECLONE;
    }
    seize(root, options)?;
    let group = request.control_group.as_ref();
    let group = group.filter(|group| group.take_in(root));
    let mut tracer = Tracer {
        request,
        watched,
        root,
        started: Instant::now(),
        root_ended: None,
        stopped: Duration::ZERO,
        tree: Tree::default(),
    };
    watched.begin(root);
    let watcher = watch::start(Arc::clone(watched), tracer.started, request.timeout);
    tracer.started = Instant::now();
    drop(gate); // lets the command start
    tracer.follow(sender);
    let timeline = watcher.join().unwrap_or_default();
    if let Some(error) = start_error(report) {
        return Err(usage!("cannot run {}: {error}", request.program.shown()));
    }
    tracer.finish(timeline, group.and_then(|group| group.peak_kib()))
}

impl Tracer<'_> {
    fn now_s(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }

    /// Follows the command to its end, and its remaining processes for a short time.
    fn follow(&mut self, sender: &mpsc::Sender<i32>) {
        let mut is_announced = false;
        loop {
            let mut status = 0;
            // SAFETY: all zeros is a valid rusage.
            let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
            // Not the children of other threads: a server's clients belong to those.
            let mut options = libc::__WALL | libc::__WNOTHREAD;
            if self.root_ended.is_some() {
                options |= libc::WNOHANG; // to see when the time for the others is over
            }
            // SAFETY: both pointers are to live variables of the right type.
            let pid = unsafe { libc::wait4(-1, &mut status, options, &mut usage) };
            if pid < 0 {
                if std::io::Error::last_os_error().raw_os_error() == Some(libc::EINTR) {
                    continue;
                }
                break; // nothing left to wait for
            }
            if !is_announced {
                // The first stop: the process is past its exec, or has ended.
                is_announced = sender.send(self.root).is_ok();
            }
            if pid == 0 {
                std::thread::sleep(REMAINING_EVERY);
            } else if libc::WIFSTOPPED(status) {
                self.on_stop(pid, status);
            } else {
                self.on_end(pid, status, &usage);
            }
            self.watched.set_living(self.tree.living());
            let is_over = self.root_ended.is_some() && self.tree.running() == 0;
            if is_over || self.watched.left_running().is_some() {
                break;
            }
        }
        self.watched.finish();
        // The kernel kills what is still traced when this thread ends.
        if self.root_ended.is_some() && !self.request.ends_what_remains {
            let_go(&self.tree.unended());
        }
    }

    /// Handles a stop, and lets the process continue in the way that this stop requires.
    fn on_stop(&mut self, pid: i32, status: i32) {
        let arrived = Instant::now();
        let now_s = self.now_s();
        let event = status >> 16;
        let signal = libc::WSTOPSIG(status);
        self.tree.get(pid, now_s);
        let mut passed_on = 0;
        match event {
            libc::PTRACE_EVENT_FORK => self.note_child(pid, Start::Fork, now_s),
            libc::PTRACE_EVENT_VFORK => self.note_child(pid, Start::Vfork, now_s),
            libc::PTRACE_EVENT_CLONE => self.note_child(pid, Start::Clone, now_s),
            libc::PTRACE_EVENT_EXEC => self.tree.became_program(pid, now_s),
            libc::PTRACE_EVENT_EXIT => {
                let sees_threads = self.request.trace_threads;
                let before = self.processor_time_if_held();
                self.tree.examine(pid, now_s, sees_threads);
                if self.request.reads_heaps {
                    self.tree.read_heap(pid);
                }
                if let Some(before) = before {
                    let worked = self.tree.processor_time().saturating_sub(before);
                    self.stopped += arrived.elapsed().saturating_sub(worked);
                }
            }
            libc::PTRACE_EVENT_STOP if signal != libc::SIGTRAP => {
                // Job control has stopped it; it stays stopped.
                let _ = ptrace(libc::PTRACE_LISTEN, pid, 0, 0);
                return;
            }
            libc::PTRACE_EVENT_STOP => {}
            _ => passed_on = signal,
        }
        // If it was killed meanwhile, its end comes next.
        let _ = ptrace(libc::PTRACE_CONT, pid, 0, passed_on as usize);
    }

    /// What its processes have worked so far, if the stop of one of them may hold up the command: neither if it has ended, nor
    /// if it works itself, though it may just wait for a processor.
    fn processor_time_if_held(&self) -> Option<Duration> {
        let is_held = self.root_ended.is_none() && !tree::is_running(self.root);
        is_held.then(|| self.tree.processor_time())
    }

    fn note_child(&mut self, parent: i32, how: Start, now_s: f64) {
        let mut child: libc::c_ulong = 0;
        // SAFETY: the kernel writes one unsigned long to the address.
        let result =
            unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, parent, 0usize, &raw mut child) };
        if let (0, Ok(child)) = (result, i32::try_from(child)) {
            self.tree.started(parent, child, how, now_s);
        }
    }

    fn on_end(&mut self, pid: i32, status: i32, usage: &libc::rusage) {
        let now = Instant::now();
        self.tree.ended(pid, self.now_s());
        if pid == self.root {
            self.root_ended = Some((now, status, *usage));
            self.watched.root_has_ended(now);
        }
    }

    fn finish(self, timeline: Timeline, group_peak_kib: Option<u64>) -> Result<Run> {
        let Some((ended, status, usage)) = self.root_ended else {
            return Err(failed!(
                "{} could not be followed any more",
                self.request.program.shown()
            ));
        };
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        let count = |number: libc::c_long| u64::try_from(number).unwrap_or(0);
        let end = if libc::WIFSIGNALED(status) {
            End::Signaled(libc::WTERMSIG(status))
        } else {
            End::Exited(libc::WEXITSTATUS(status))
        };
        Ok(Run {
            end,
            timed_out: self.watched.timed_out(),
            unexamined: self.tree.unexamined(self.root),
            left_running: self.watched.left_running().unwrap_or(0),
            wall_s: (ended - self.started)
                .saturating_sub(self.stopped)
                .as_secs_f64(),
            stopped_s: self.stopped.as_secs_f64(),
            user_s: seconds(usage.ru_utime),
            sys_s: seconds(usage.ru_stime),
            minor_faults: count(usage.ru_minflt),
            major_faults: count(usage.ru_majflt),
            voluntary_switches: count(usage.ru_nvcsw),
            involuntary_switches: count(usage.ru_nivcsw),
            tree: self.tree,
            group_peak_kib,
            timeline,
        })
    }
}
