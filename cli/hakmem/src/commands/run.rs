//! `hakmem run`: runs a program with hakmem.

use crate::output::terminal_of_errors;
use crate::signals;
use crate::start::{environment, left_running, preloadable, prove, prove_if_possible, request};
use clap::{Args, ValueEnum};
use hakmem_heap::figures::Figures;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::{Allocator, Catalogue, OURS};
use hakmem_lab::error::Result;
use hakmem_lab::inherited::WithInherited;
use hakmem_lab::launch::{Run, Running};
use hakmem_lab::places::Places;
use hakmem_lab::render::number::bytes;
use hakmem_lab::render::{duration, memory};
use hakmem_lab::tree::ExitReport;
use hakmem_lab::trust;
use hakmem_lab::usage;
use std::cmp::Reverse;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

const EXAMPLES: &str = "\
Examples:
  hakmem run -- python3 app.py
  hakmem run --stats -- gcc -O2 -c large.c
  hakmem run -a jemalloc -- ./server --port 8080

Before the program starts, it is loaded once without running, to prove that its memory will come
from hakmem; a program that would not use hakmem is refused. Exit code: the program's own, or that
of a shell when a signal ends the program; 1 refused, 2 wrong usage.";

/// Run a program, and all that it starts, under hakmem
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem run [OPTIONS] [--] PROGRAM [ARGUMENT]...")]
pub struct Arguments {
    /// Another allocator from 'hakmem peers list', or NAME=LIBRARY
    #[arg(short, long, value_name = "NAME", default_value = OURS)]
    allocator: String,
    /// At the end, print what the program used to standard error, and prove its allocator again; lists the ten largest
    /// processes, or every process with =all
    #[arg(long, value_enum, value_name = "all", hide_possible_values = true, num_args = 0..=1, default_missing_value = "most",
        require_equals = true)]
    stats: Option<Stats>,
    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

/// Of several processes, those that have a line.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Stats {
    Most,
    All,
}

pub fn execute(arguments: Arguments) -> Result<ExitCode> {
    let catalogue = Catalogue::load(&Places::find()?)?;
    let allocator = catalogue
        .choose(std::slice::from_ref(&arguments.allocator))?
        .remove(0);
    let (name, words) = arguments
        .command
        .split_first()
        .ok_or_else(|| usage!("no program"))?;
    let executable = preloadable(name)?;
    let shown = executable.path.shown();
    let environment = environment(&allocator)?;
    if let Some(stats) = arguments.stats {
        prove(&executable, words, &environment, &allocator)?;
        let is_whole = stats == Stats::All;
        return run_with_stats(
            &executable.path,
            &arguments.command,
            environment,
            &allocator,
            is_whole,
        );
    }
    prove_if_possible(&executable, words, &environment, &allocator)?;
    let error = Command::new(&executable.path)
        .arg0(name)
        .args(words)
        .env_clear()
        .envs(environment)
        .with_inherited_signals()
        .with_inherited_streams()
        .exec();
    Err(usage!("cannot run {shown}: {error}"))
}

fn run_with_stats(
    program: &Path,
    command: &[OsString],
    environment: Vec<(OsString, OsString)>,
    allocator: &Allocator,
    is_whole: bool,
) -> Result<ExitCode> {
    let request = request(program, command, environment, allocator.is_ours())?;
    signals::hold();
    let running = Running::start(request)?;
    signals::pass_on_to(running.pid);
    let run = running.wait()?;
    print_stats(program, &run, allocator, is_whole);
    Ok(signals::end_as(run.end))
}

fn print_stats(program: &Path, run: &Run, allocator: &Allocator, is_whole: bool) {
    let name = trust::file_name(program);
    let mut lines = Vec::new();
    lines.push(format!("hakmem: {name} took {}", duration(run.wall_s)));
    lines.push(format!(
        "  processor   {} in the program, {} in the kernel",
        duration(run.user_s),
        duration(run.sys_s)
    ));
    lines.push(format!(
        "  memory      peak {}, {} page faults, {} of them read from disk",
        memory(run.tree.tree_peak_kib() as f64),
        run.minor_faults + run.major_faults,
        run.major_faults
    ));
    add_heap(&mut lines, run, is_whole);
    if let Some(note) = left_running(run) {
        lines.push(format!("  not seen    {note}"));
    }
    let mut proved = 0;
    let mut pointers = 0;
    for (_, report) in run.tree.reports() {
        let reason = match &report.proof {
            Some(Ok(proof)) => {
                pointers += proof.blocks.as_ref().map_or(0, |blocks| blocks.known);
                trust::contradiction(proof, allocator, &str::to_string)
            }
            Some(Err(blind)) => Some(format!(": {blind}")),
            None => Some(": it could not be examined".into()),
        };
        match reason {
            Some(reason) => {
                lines.push(format!("  not proved  {} {reason}", report.program.shown()))
            }
            None => proved += 1,
        }
    }
    let processes = if proved == 1 {
        "1 process".into()
    } else {
        format!("{proved} processes")
    };
    let known = if allocator.is_ours() {
        format!("; its address map knows {pointers} pointers found at their end")
    } else {
        String::new()
    };
    lines.push(format!(
        "  allocator   {} {} in {processes}{known}",
        allocator.name, allocator.version
    ));
    eprintln!("{}", terminal_of_errors().shown(&lines.join("\n")));
}

/// How many processes have a line each.
const PROCESSES_MAX: usize = 10;

/// What hakmem did, for each process and in total.
fn add_heap(lines: &mut Vec<String>, run: &Run, is_whole: bool) {
    let heaps = run.tree.reports();
    let mut heaps: Vec<(i32, &ExitReport, &Figures)> = heaps
        .filter_map(|(tracee, report)| Some((tracee.pid, report, report.heap.as_ref()?)))
        .collect();
    if heaps.is_empty() {
        return;
    }
    let sum = |of: fn(&Figures) -> u64| heaps.iter().map(|(.., heap)| of(heap)).sum::<u64>();
    let whose = match heaps.len() {
        1 => String::new(),
        count => format!(", as sums over {count} processes"),
    };
    lines.push(format!(
        "  heap        {} live at the end in {} blocks; at most {} mapped{whose}",
        bytes(sum(|heap| heap.totals.live_bytes)),
        sum(|heap| heap.totals.live_blocks),
        bytes(sum(|heap| heap.counters.peak_mapped_bytes))
    ));
    lines.push(format!(
        "  hakmem      {} slow calls, {} blocks sent to other threads; {} system calls, {} purged",
        sum(|heap| heap.counters.slow_events),
        sum(|heap| heap.counters.caches.sent_blocks),
        sum(|heap| {
            let os = &heap.counters.os;
            os.maps + os.unmaps + os.remaps + os.purges + os.huge_advices
        }),
        bytes(sum(|heap| heap.counters.os.purged_bytes))
    ));
    if heaps.len() == 1 {
        return;
    }
    heaps.sort_by_key(|(.., heap)| Reverse(heap.counters.peak_mapped_bytes));
    let shown = if is_whole { heaps.len() } else { PROCESSES_MAX };
    for (pid, report, heap) in heaps.iter().take(shown) {
        lines.push(format!(
            "  {pid:<10}  {} live at the end in {} blocks; at most {} mapped: {}",
            bytes(heap.totals.live_bytes),
            heap.totals.live_blocks,
            bytes(heap.counters.peak_mapped_bytes),
            trust::file_name(&report.program)
        ));
    }
    if heaps.len() > shown {
        lines.push(format!(
            "              and {} smaller processes; --stats=all shows them",
            heaps.len() - shown
        ));
    }
}
