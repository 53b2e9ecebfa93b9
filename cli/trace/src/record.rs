//! Runs a program with the recorder preloaded, and collects events until it and all its children have ended.

use crate::channel::{Channel, TIME_SHIFT, clock::Calibration};
use crate::collector::{Collector, now};
use crate::format::{Beginning, Ending, Reason, Tag, Unseen};
use crate::reader::Reader;
use crate::writer::Writer;
use hakmem_heap::shown::shown;
use hakmem_lab::error::Result;
use hakmem_lab::inherited::{self, WithInherited};
use hakmem_lab::process;
use hakmem_lab::usage;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, SystemTime};

pub struct Options {
    pub output: PathBuf,
    /// The output file exists and is empty; if false, it is created.
    pub is_there: bool,
    /// The most bytes that the trace may have.
    pub limit: Option<u64>,
    /// The number of frames in each call stack; 0: no stacks.
    pub stack_frames: u32,
    /// The program's environment; the recorder precedes all else that is preloaded.
    pub environment: Vec<(OsString, OsString)>,
    pub command: Vec<OsString>,
}

/// What was recorded, and what was missed.
pub struct Recorded {
    pub bytes: u64,
    pub events: u64,
    pub processes: u64,
    pub ending: Ending,
    /// The program's exit code, or 128 plus the signal that killed it.
    pub exit_code: u8,
}

/// Long enough for a first estimate of the clock's frequency.
const CALIBRATION: Duration = Duration::from_millis(5);
/// A process's only thread reads the time for one event in 32, as long as two such events are less than this apart.
const BURST: Duration = Duration::from_micros(2);

pub fn record(options: &Options) -> Result<Recorded> {
    // SAFETY: a file that may not grow causes an error of write() instead of a signal.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let calibration = Calibration::start();
    let start = now();
    std::thread::sleep(CALIBRATION);
    let burst_ticks = calibration.ticks_per_second() * BURST.as_secs_f64();
    let channel = Channel::create(options.stack_frames, burst_ticks as u64)?;
    // Comes before the file is created, so that a signal cannot leave a file without its end.
    let watch = Watch::begin();
    let units =
        |calibration: &Calibration| calibration.ticks_per_second() / f64::from(1 << TIME_SHIFT);
    let mut writer = if options.is_there {
        Writer::open(&options.output, options.limit)?
    } else {
        Writer::create(&options.output, options.limit)?
    };
    let seconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    writer.json(
        Tag::Begin,
        &Beginning {
            recorder: env!("CARGO_PKG_VERSION").into(),
            command: options
                .command
                .iter()
                .map(|part| shown(part.as_bytes()))
                .collect(),
            started: seconds.as_secs(),
            units_per_second: units(&calibration),
            start,
            stack_frames: options.stack_frames,
        },
    )?;
    let mut collector = Collector::new(&channel, writer);
    let child = launch(options, &channel).inspect_err(|_| {
        let _ = std::fs::remove_file(&options.output);
    })?;
    let status = collect(&mut collector, child, &watch)?;
    collector.write_chunk()?;
    collector.write_names()?;
    let processes = collector.processes;
    let (unseen, is_certain) = collector.witness.unseen();
    let mut quiet = collector.witness.quiet();
    let is_unseen = |one: &Unseen| {
        let mut all = unseen.iter();
        all.any(|known| (known.id, &known.program) == (one.id, &one.program))
    };
    quiet.retain(|one| !is_unseen(one));
    let head = channel.head();
    let ending = Ending {
        reason: collector.stopped.unwrap_or(Reason::Ended),
        events: 0,
        events_missed: head.events_missed.load(Ordering::Relaxed),
        processes_missed: head.processes_missed.load(Ordering::Relaxed).into(),
        unseen,
        quiet,
        may_lack_processes: !is_certain,
        units_per_second: units(&calibration),
        end: now(),
        cut_at: None,
        exit_code: status.map(|status| exit_code(status).into()),
    };
    finish(collector.into_writer(), ending, processes, options)
}

fn finish(writer: Writer, ending: Ending, processes: u64, options: &Options) -> Result<Recorded> {
    let ending = writer.finish(ending)?;
    let events = match ending.cut_at {
        Some(_) => Reader::open(&options.output)?.events(),
        None => ending.events,
    };
    let bytes = std::fs::metadata(&options.output).map_or(0, |data| data.len());
    let exit_code = ending.exit_code.map_or(1, |code| code as u8);
    Ok(Recorded {
        bytes,
        events,
        processes,
        ending,
        exit_code,
    })
}

fn launch(options: &Options, channel: &Channel) -> Result<Child> {
    adopt_orphans();
    let program = &options.command[0];
    Command::new(program)
        .args(&options.command[1..])
        .env_clear()
        .envs(
            options
                .environment
                .iter()
                .map(|(name, value)| (name, value)),
        )
        .env("HAKMEM_RECORD", channel.path())
        .with_inherited_signals()
        .with_inherited_streams()
        .spawn()
        .map_err(|error| usage!("cannot run {}: {error}", program.to_string_lossy()))
}

/// Makes this process the parent of orphaned descendants, so that it knows when the last one has ended.
fn adopt_orphans() {
    // SAFETY: sets a flag of this process.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Collects events until all programs have ended. Returns the status of the first program. The first signal is passed to that
/// program; a second one, or one after that program's end, stops the recording of its descendants.
fn collect(collector: &mut Collector, child: Child, watch: &Watch) -> Result<Option<ExitStatus>> {
    let id = child.id() as i32;
    let mut own_status = None;
    let mut signals = 0;
    loop {
        collector.round()?;
        let had_ended = own_status.is_some();
        let mut raw = 0;
        // SAFETY: the kernel writes a status to where it is told.
        match unsafe { libc::waitpid(-1, &mut raw, libc::WNOHANG) } {
            0 => {}
            ended if ended == id => own_status = Some(ExitStatus::from_raw(raw)),
            -1 if io::Error::last_os_error().raw_os_error() == Some(libc::ECHILD) => {
                collector.last_round()?;
                return Ok(own_status);
            }
            _ => {}
        }
        if let Some(signal) = watch.take() {
            signals += 1;
            if signals > 1 || had_ended {
                collector.stop(Reason::Stopped);
                collector.last_round()?;
                return Ok(own_status);
            }
            pass_on(id, signal);
        }
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    status
        .code()
        .or(status.signal().map(|signal| 128 + signal))
        .unwrap_or(1) as u8
}

/// Passes on a signal that was sent to this process alone; the program has also got one from the terminal. If the program
/// ignores the signal, it gets SIGTERM: the sender wants the recording to end.
fn pass_on(child: i32, signal: Signal) {
    if signal.is_from_terminal {
        return;
    }
    let number = if process::ignores(child, signal.number) {
        libc::SIGTERM
    } else {
        signal.number
    };
    // SAFETY: the child has not been waited for, so its number is not another's.
    unsafe { libc::kill(child, number) };
}

#[derive(Clone, Copy)]
struct Signal {
    number: i32,
    is_from_terminal: bool,
}

static LAST_SIGNAL: AtomicI32 = AtomicI32::new(0);

extern "C" fn note_signal(number: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a filled structure to handlers with SA_SIGINFO.
    let is_from_terminal = unsafe { (*info).si_code } > 0;
    if is_from_terminal && inherited::is_ignored(number) {
        return;
    }
    LAST_SIGNAL.store(
        if is_from_terminal { -number } else { number },
        Ordering::Relaxed,
    );
}

/// Catches signals that would end this process and passes them to the program; the trace is completed after its end.
struct Watch;

impl Watch {
    fn begin() -> Watch {
        // A script's background jobs ignore these two, so that Ctrl-C does not reach them. A signal that is sent to this
        // process counts nevertheless.
        let always = [libc::SIGINT, libc::SIGQUIT].into_iter();
        // Other signals that are ignored, as under nohup, are ignored by the program, too, and so by its recording.
        let others = [libc::SIGTERM, libc::SIGHUP].into_iter();
        let others = others.filter(|number| !inherited::is_ignored(*number));
        for number in always.chain(others) {
            // SAFETY: the handler only stores to atomics.
            unsafe {
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = note_signal as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                libc::sigaction(number, &action, std::ptr::null_mut());
            }
        }
        Watch
    }

    fn take(&self) -> Option<Signal> {
        let number = LAST_SIGNAL.swap(0, Ordering::Relaxed);
        (number != 0).then_some(Signal {
            number: number.abs(),
            is_from_terminal: number < 0,
        })
    }
}
