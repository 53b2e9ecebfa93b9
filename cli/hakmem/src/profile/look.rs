//! Reads a process's samples repeatedly while they are taken: if the process ends or executes another program too early,
//! nothing can be read any more.

use super::{Snapshot, threads};
use crate::signals::EndsHeld;
use crate::target::{self, Opened, told};
use hakmem_heap::code::Code;
use hakmem_heap::code_files::{Held, Sources};
use hakmem_heap::error::{Error, Result as HeapResult};
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use hakmem_heap::perf_map::MapPlace;
use hakmem_heap::profile::{Profile, Refused, Sampling};
use hakmem_lab::error::Result;
use hakmem_lab::{failed, usage};
use hakmem_trace::symbols::Names;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The default distance of samples.
pub const EVERY: u64 = 512 << 10;

/// The samples up to a moment, with all that is needed to name them.
struct Kept {
    profile: Profile,
    code: Vec<Code>,
    held: Arc<Held>,
    map: Option<Arc<MapPlace>>,
    threads: HashMap<u64, String>,
    now_ns: Option<u64>,
    at: Instant,
}

impl Kept {
    fn read(process: &LiveProcess, before: Option<&Kept>) -> HeapResult<Kept> {
        let profile = Profile::read(process)?;
        let code = process.code();
        let held = match before.filter(|before| before.code == code) {
            Some(before) => Arc::clone(&before.held),
            None => Arc::new(Held::of(&code, process.task())),
        };
        // Looked up each time: the process may have mapped a file of names since.
        let map = MapPlace::of(process.task()).map(Arc::new);
        let map = map.or_else(|| before.and_then(|before| before.map.clone()));
        let mut threads = threads::names(process.pid);
        // Threads that have ended keep their names.
        for (thread, name) in before.iter().flat_map(|before| &before.threads) {
            threads.entry(*thread).or_insert_with(|| name.clone());
        }
        // What was read of another program is discarded.
        match process.lost() {
            Some(error) => Err(error),
            None => Ok(Kept {
                profile,
                code,
                held,
                map,
                threads,
                now_ns: process.now_ns(),
                at: Instant::now(),
            }),
        }
    }
}

/// What was seen during a look.
pub struct Looked {
    kept: Kept,
    pub seconds: f64,
    /// The mean distance of samples in bytes.
    pub every: u64,
    /// Why it is less than requested.
    pub part: Option<String>,
    /// A signal has ended the look.
    pub is_stopped: bool,
}

impl Looked {
    /// Everything that was seen.
    pub fn profile(self) -> Profile {
        self.kept.profile
    }

    /// With names, and only allocations since `before` was read.
    pub fn snapshot(&self, process: &LiveProcess, title: String, before: &Profile) -> Snapshot {
        let kept = &self.kept;
        let sources = Sources {
            process: Some(process.task()),
            held: Arc::clone(&kept.held),
            map: kept.map.clone(),
            ..Sources::default()
        };
        let mut names = Names::new(kept.code.clone(), sources);
        let snapshot = Snapshot::of(&kept.profile, &mut names, title, kept.now_ns);
        Snapshot {
            seconds: self.seconds,
            every: self.every,
            part: self.part.clone(),
            ..snapshot.name_threads(&kept.threads).since(before)
        }
    }
}

/// The current profile, with names.
pub fn snapshot(opened: &Opened) -> Result<Snapshot> {
    let profile = opened.profile()?;
    let mut names = opened.names();
    let threads = of_threads(opened);
    let snapshot = Snapshot::of(&profile, &mut names, opened.title(), now_ns(opened));
    opened.whole(snapshot.name_threads(&threads))
}

/// The names of its threads, as far as they are known.
pub fn of_threads(opened: &Opened) -> HashMap<u64, String> {
    match opened {
        Opened::Live(process) => threads::names(process.pid),
        Opened::Core(_) => HashMap::new(),
        Opened::Snapshot(snapshot) => snapshot.threads().clone(),
    }
}

/// The time by the clock of samples and slabs; None in a core dump.
pub fn now_ns(opened: &Opened) -> Option<u64> {
    match opened {
        Opened::Live(process) => process.now_ns(),
        Opened::Core(_) => None,
        Opened::Snapshot(snapshot) => snapshot.now_ns(),
    }
}

/// Well before the process's sampling lease ends.
const RENEW_AFTER: Duration = Duration::from_secs(1);

/// When to look at a process: once a second, more often at first, as short programs end soon; and never for more than a tenth
/// of the time.
pub struct Pace {
    begin: Instant,
    /// None: later than a clock can tell.
    end: Option<Instant>,
    next: Instant,
}

impl Pace {
    const FIRST: Duration = Duration::from_millis(100);
    const LATER: Duration = Duration::from_secs(1);
    const SHARE: u32 = 10;

    pub fn begin(time: Duration) -> Pace {
        let begin = Instant::now();
        Pace {
            begin,
            end: begin.checked_add(time),
            next: begin + Pace::FIRST,
        }
    }

    pub fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }

    pub fn is_due(&self) -> bool {
        Instant::now() >= self.next
    }

    /// The time until the next look, or the end.
    pub fn rest(&self) -> Duration {
        let next = self.end.map_or(self.next, |end| self.next.min(end));
        next.saturating_duration_since(Instant::now())
    }

    pub fn elapsed(&self) -> Duration {
        self.begin.elapsed()
    }

    /// Ends a look that began at that time.
    pub fn looked(&mut self, since: Instant) {
        let pause = self.begin.elapsed().clamp(Pace::FIRST, Pace::LATER);
        self.next = Instant::now() + pause.max(since.elapsed() * Pace::SHARE);
    }
}

/// Says that a process has ended, and that samples up to `before` seconds before that are shown.
pub fn part(error: &Error, before: Duration) -> String {
    format!(
        "{}: the result is partial: it lacks the last {:.1} s",
        target::ended(error),
        before.as_secs_f64()
    )
}

/// Looks at samples for some time; first switches sampling on, unless it `is_on`. Whatever ends us, sampling is then switched
/// off: at once, or within 10 s after SIGKILL.
pub fn look(process: &LiveProcess, seconds: f64, every: u64, is_on: bool) -> Result<Looked> {
    if !(0.0..=1e6).contains(&seconds) {
        return Err(usage!("--seconds is from 0 to a million"));
    }
    let ends = EndsHeld::begin();
    let mut pace = Pace::begin(Duration::from_secs_f64(seconds));
    let sampling = if is_on {
        None
    } else {
        let sampling = Sampling::begin(process, every);
        Some(sampling.map_err(|why| refused(process, why))?)
    };
    let every = sampling.as_ref().map_or(every, |sampling| sampling.every);
    let mut kept = Kept::read(process, None).ok();
    let mut is_stopped;
    let mut lost = loop {
        is_stopped = ends.wait(pace.rest().min(RENEW_AFTER));
        if is_stopped || pace.is_over() {
            break None;
        }
        if let Some(sampling) = &sampling {
            if let Err(error) = sampling.renew() {
                break Some(error);
            }
        }
        if pace.is_due() {
            let since = Instant::now();
            match Kept::read(process, kept.as_ref()) {
                Ok(read) => kept = Some(read),
                Err(error) if is_end(&error) => break Some(error),
                Err(_) => {} // it changed too fast; the next read may succeed
            }
            pace.looked(since);
        }
    };
    if let Some(sampling) = sampling.filter(|_| lost.is_none()) {
        match sampling.end() {
            Ok(true) => {}
            Ok(false) => warn_of_pause(process),
            Err(error) => lost = Some(error),
        }
    }
    let seconds = pace.begin.elapsed().as_secs_f64();
    if lost.is_none() {
        match Kept::read(process, kept.as_ref()) {
            Ok(read) => kept = Some(read),
            Err(error) => lost = Some(error),
        }
    }
    let looked = finish(process, kept, lost, seconds, every)?;
    Ok(Looked {
        is_stopped: is_stopped || ends.wait(Duration::ZERO),
        ..looked
    })
}

/// Keeps sampling on between looks.
pub fn between_looks(process: &LiveProcess, every: u64) -> Result<Sampling<'_>> {
    let sampling = Sampling::begin(process, every);
    sampling.map_err(|why| refused(process, why))
}

fn finish(
    process: &LiveProcess,
    kept: Option<Kept>,
    lost: Option<Error>,
    seconds: f64,
    every: u64,
) -> Result<Looked> {
    let Some(error) = lost else {
        return match kept {
            Some(kept) => Ok(Looked {
                kept,
                seconds,
                every,
                part: None,
                is_stopped: false,
            }),
            None => Err(failed!("process {}: nothing was read of it", process.pid)),
        };
    };
    let Some(kept) = kept.filter(|_| is_end(&error)) else {
        let pid = process.pid;
        return Err(told(&error, &format!("process {pid}"), Some(pid)));
    };
    let before = kept.at.elapsed();
    Ok(Looked {
        seconds: (seconds - before.as_secs_f64()).max(0.0),
        part: Some(part(&error, before)),
        kept,
        every,
        is_stopped: false,
    })
}

/// Can nothing more be read from the process?
fn is_end(error: &Error) -> bool {
    matches!(
        error,
        Error::Gone(_) | Error::Became(_) | Error::Forbidden(_)
    )
}

fn refused(process: &LiveProcess, refused: Refused) -> hakmem_lab::error::Error {
    let pid = process.pid;
    match refused {
        Refused::ByOption => failed!(
            "process {pid} allows no tool to switch sampling on (HAKMEM_REMOTE=0): \
             start it with HAKMEM_SAMPLE_BYTES={EVERY}"
        ),
        Refused::For(error) => failed!("process {pid}: {error}"),
    }
}

fn warn_of_pause(process: &LiveProcess) {
    eprintln!(
        "hakmem: warning: process {} ended sampling early, as no command asked for it for 10 s: \
         this command was suspended meanwhile",
        process.pid
    );
}

impl Opened {
    pub fn profile(&self) -> Result<Profile> {
        self.ask(Profile::read_by)
    }
}
