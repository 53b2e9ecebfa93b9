//! `hakmem profile`: who allocates, in a running process or in a core dump, from samples.

use super::stats::bytes;
use crate::frames;
use crate::output::{self, all_written, print_json, show, terminal};
use crate::profile::{Snapshot, View, flame, notes, pprof};
use crate::say;
use crate::target::{Opened, Target};
use clap::Args;
use hakmem_heap::profile::{Profile, Refused, Sampling};
use hakmem_lab::error::Result;
use hakmem_lab::render::{Cell, Form, Table, Tone};
use hakmem_lab::{failed, usage};
use nix::sys::signal::{SigSet, Signal};
use nix::time::{ClockId, clock_gettime};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  hakmem profile 4711                            switch sampling on for 10 seconds, and off again
  hakmem profile 4711 --seconds 60 --flamegraph heap.html --pprof heap.pb.gz
  HAKMEM_SAMPLE_BYTES=524288 hakmem run -- program     from the start; then profile shows what lives
  hakmem profile --core core.4711 --live

Figures are estimates from samples, one in 512 KiB unless --every says otherwise; ± is two
deviations. Sampling costs nothing while it is off. While it is on it costs real programs some 2 %,
and loops that do nothing but allocate 8 to 27 %. docs/profiling.md has figures, and how to send
profiles to Parca or Pyroscope.";

/// Sampled unless somebody says otherwise.
pub const EVERY: u64 = 512 << 10;
const SECONDS: f64 = 10.0;
/// Well before the process ends sampling by itself.
const RENEW_AFTER: Duration = Duration::from_secs(1);

/// Show which calls allocate how much, by call stack
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem profile [OPTIONS] PID\n       hakmem profile [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Look for so long [default: 10, where sampling is off before; else at what there is]
    #[arg(long, conflicts_with = "core")]
    seconds: Option<f64>,
    /// One sample in so many bytes
    #[arg(long, value_name = "BYTES", default_value_t = EVERY, conflicts_with = "core")]
    every: u64,
    /// What is not freed yet [default, unless sampling is switched on for this]
    #[arg(long, group = "view")]
    live: bool,
    /// What was allocated, freed or not [default, if it is]
    #[arg(long, group = "view")]
    allocated: bool,
    /// What was live when that was most
    #[arg(long, group = "view")]
    peak: bool,
    /// Write it for pprof and what understands its format
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// Write a flame graph: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    flamegraph: Option<PathBuf>,
    /// Write it for 'hakmem diff'
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    output::keep_apart(
        &[
            arguments.pprof.as_ref(),
            arguments.flamegraph.as_ref(),
            arguments.save.as_ref(),
        ],
        &[],
    )?;
    let opened = arguments.target.open()?;
    let [to_pprof, to_graph, to_save] = [
        output::planned(arguments.pprof.as_ref())?,
        output::planned(arguments.flamegraph.as_ref())?,
        output::planned(arguments.save.as_ref())?,
    ];
    let before = opened.profile()?;
    let is_on = before.every != 0;
    let seconds = match (arguments.seconds, is_on, &opened) {
        (_, _, Opened::Core(_)) | (None, true, _) => None,
        (seconds, ..) => Some(seconds.unwrap_or(SECONDS)),
    };
    let snapshot = match (&opened, seconds) {
        (Opened::Live(process), Some(seconds)) => {
            let lasted = look(process, seconds, arguments.every, is_on)?;
            let mut snapshot = snapshot(&opened)?.since(&before);
            snapshot.seconds = lasted;
            snapshot.every = if is_on { before.every } else { arguments.every };
            snapshot
        }
        _ => snapshot(&opened)?,
    };
    let view = match (arguments.live, arguments.allocated, arguments.peak) {
        (true, ..) => View::Live,
        (_, true, _) => View::Allocated,
        (.., true) => View::Peak,
        _ if seconds.is_some() => View::Allocated,
        _ => View::Live,
    };
    say::keep();
    let files = [
        to_pprof.map(|file| file.write(pprof::encode(&snapshot))),
        to_graph.map(|file| file.write(flame::draw(&snapshot, view))),
        to_save.map(|file| file.write(snapshot.to_json()?)),
    ];
    if arguments.json {
        print_json(&snapshot)?;
    } else {
        show(&text(&snapshot, view, terminal()));
        show(&notes(&snapshot.notes));
    }
    all_written(files.into_iter().flatten())?;
    Ok(ExitCode::SUCCESS)
}

/// The profile as it is now, with names.
pub fn snapshot(opened: &Opened) -> Result<Snapshot> {
    let now = match opened {
        Opened::Live(_) => now_ns(),
        Opened::Core(_) => None,
    };
    let profile = opened.profile()?;
    let mut names = opened.names();
    Ok(Snapshot::of(&profile, &mut names, opened.title(), now))
}

pub fn now_ns() -> Option<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).ok()?;
    Some(u64::try_from(Duration::from(now).as_nanos()).unwrap_or(0))
}

/// Sample for a while. Whatever ends us meanwhile, sampling is off again after it: at once, and after SIGKILL in 10 s.
fn look(
    process: &hakmem_heap::live::LiveProcess,
    seconds: f64,
    every: u64,
    is_on: bool,
) -> Result<f64> {
    if !(0.0..=1e6).contains(&seconds) || every == 0 {
        return Err(usage!(
            "--seconds is from 0 to a million, and --every at least 1"
        ));
    }
    let ends: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP]
        .into_iter()
        .collect();
    let _ = ends.thread_block();
    let refused = |refused: Refused| match refused {
        Refused::ByOption => failed!(
            "process {} allows no tool to switch sampling on (HAKMEM_REMOTE=0): \
             start it with HAKMEM_SAMPLE_BYTES={EVERY}",
            process.pid
        ),
        Refused::For(error) => failed!("process {}: {error}", process.pid),
    };
    let now = || now_ns().unwrap_or(0);
    let begin = Instant::now();
    let end = begin + Duration::from_secs_f64(seconds);
    if is_on {
        wait(&ends, end.saturating_duration_since(Instant::now()));
        return Ok(begin.elapsed().as_secs_f64());
    }
    let sampling = Sampling::begin(process, every, now()).map_err(refused)?;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if wait(&ends, left.min(RENEW_AFTER)) || left.is_zero() {
            break;
        }
        if let Err(error) = sampling.renew(now()) {
            return Err(refused(error.into()));
        }
    }
    if !sampling.end().map_err(|error| refused(error.into()))? {
        eprintln!(
            "hakmem: warning: process {} had ended sampling before, as nobody asked it to go on for 10 s: \
             this command was stopped meanwhile",
            process.pid
        );
    }
    Ok(begin.elapsed().as_secs_f64())
}

/// Until one of the signals comes, which is true then, or the time is over.
fn wait(signals: &SigSet, time: Duration) -> bool {
    let limit = nix::libc::timespec {
        tv_sec: time.as_secs() as i64,
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    // SAFETY: the set and the time are ours and live as long as the call; what came is not asked for.
    unsafe { nix::libc::sigtimedwait(signals.as_ref(), std::ptr::null_mut(), &raw const limit) > 0 }
}

/// "12.3 MiB ± 8 %"
pub fn off(bytes: f64, off: f64) -> String {
    if bytes <= 0.0 || off <= 0.0 {
        return "exact".into();
    }
    format!("± {:.0} %", (100.0 * off / bytes).min(999.0))
}

/// Sites in a table; what comes behind is one line.
pub const ROWS: usize = 30;

fn text(snapshot: &Snapshot, view: View, form: Form) -> String {
    let total = snapshot.total(view);
    let mut lines = vec![form.strong(&snapshot.title)];
    let mut about = format!("one sample in {}", bytes(snapshot.every));
    if snapshot.seconds > 0.0 {
        about += &format!(", for {:.1} s", snapshot.seconds);
    }
    about += &format!(
        "; {} samples, which took the process {:.1} ms",
        snapshot.samples_taken, snapshot.spent_ms
    );
    if snapshot.samples_dropped > 0 {
        about += &format!("; {} found no place", snapshot.samples_dropped);
    }
    lines.push(form.toned(&about, Tone::Faint));
    lines.push(String::new());
    if total.samples == 0 {
        lines.push(if snapshot.samples_taken == 0 {
            "no sample was taken: nothing was allocated, or sampling was never on".into()
        } else {
            format!("nothing is {}", view.name())
        });
        return lines.join("\n") + "\n";
    }
    let mut table = Table::default();
    table.number_column(view.name(), 0);
    table.number_column("", 2);
    table.number_column("share", 1);
    table.number_column("blocks", 3);
    table.text_column("allocated by", 0);
    let sites = snapshot.sorted(view);
    for site in sites.iter().take(ROWS) {
        let sums = view.of(site);
        let off_by = if view == View::Live {
            site.live_off
        } else {
            sums.bytes_off()
        };
        table.row(vec![
            Cell::new(bytes(sums.bytes as u64)),
            Cell::toned(off(sums.bytes, off_by), Tone::Faint),
            Cell::new(format!("{:.1} %", 100.0 * sums.bytes / total.bytes)),
            Cell::new(format!("{:.0}", sums.blocks)),
            Cell::fitting(frames::place(&site.frames)),
        ]);
    }
    lines.push(table.render(form));
    if sites.len() > ROWS {
        lines.push(format!("and {} places more", sites.len() - ROWS));
    }
    lines.push(format!(
        "\n{} {} in all, in about {:.0} blocks",
        bytes(total.bytes as u64),
        view.name(),
        total.blocks
    ));
    lines.join("\n") + "\n"
}

impl Opened {
    pub fn profile(&self) -> Result<Profile> {
        self.ask(Profile::read_by)
    }
}
