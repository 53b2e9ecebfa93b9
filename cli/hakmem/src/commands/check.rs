//! `hakmem check`: does a program, or a recorded one, keep to its memory budget?

use crate::frames::fits_one;
use crate::output::{self, print_json, show, terminal};
use crate::profile::of_trace::has_no_stacks;
use crate::say;
use crate::start::{Input, environment, prove, request};
use crate::traces::open;
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::Allocator;
use hakmem_lab::budget::{self, Limit, Measured, Measurements, Verdict, junit};
use hakmem_lab::error::Result;
use hakmem_lab::executable::Executable;
use hakmem_lab::launch::{End, Running};
use hakmem_lab::places::Places;
use hakmem_lab::render::{Cell, Form, Table, Tone};
use hakmem_lab::{failed, input, usage};
use hakmem_trace::analysis::{analyse, processes_with_events};
use hakmem_trace::format::{Ending, Reason};
use hakmem_trace::reader::Reader;
use hakmem_trace::record::{self, Options};
use hakmem_trace::symbols::Symbols;
use nix::unistd::{dup, dup2_stdout};
use serde_json::json;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem check --budget budget.toml -- ./program argument
  hakmem check --budget budget.toml --trace trace.hkt --baseline baseline.json
  hakmem check --budget budget.toml --save baseline.json -- ./program
  hakmem check --budget budget.toml --markdown -- ./program >> \"$GITHUB_STEP_SUMMARY\"
  hakmem check --budget budget.toml --junit memory.xml -- ./program

A budget looks like this:

  [total]
  peak_live = '<= 256MiB'
  allocations = '< +2 %'           # against --baseline
  [site.'parse_*']
  allocated = '<= 10MiB'

docs/budgets.md says what is measured, and which values repeat exactly. The exit code is 1 if a
limit is not kept.";

/// The measure that needs no recorder in the program.
const RESIDENT: &str = "peak_resident";
/// How many frames of call stacks to record, if a budget has call sites.
const FRAMES: u32 = 32;

/// Check a program or a trace against a memory budget, for continuous integration
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem check [OPTIONS] --budget FILE [--] PROGRAM [ARGUMENT]...\n       hakmem check [OPTIONS] --budget FILE --trace FILE")]
pub struct Arguments {
    /// The file with the limits
    #[arg(long, value_name = "FILE")]
    budget: PathBuf,
    /// Check a trace instead of a program
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    trace: Option<PathBuf>,
    /// The values that limits with + or - refer to
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write the measured values, as a baseline
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Runs that measure resident memory, besides the one that records allocations
    #[arg(long, value_name = "NUMBER", default_value = "3",
        value_parser = clap::value_parser!(u32).range(1..=100))]
    runs: u32,
    /// Print the table as Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Write the result as JUnit XML, with a test case for each limit
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        required_unless_present = "trace",
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let inputs = [&arguments.trace, &arguments.baseline]
        .into_iter()
        .flatten();
    let inputs: Vec<PathBuf> = inputs.chain([&arguments.budget]).cloned().collect();
    output::keep_apart(
        &[arguments.save.as_ref(), arguments.junit.as_ref()],
        &inputs,
    )?;
    let limits = budget::parse(&arguments.budget, &read(&arguments.budget)?)?;
    let baseline = arguments.baseline.as_deref();
    let baseline = baseline
        .map(|path| Measurements::parse(path, &read(path)?))
        .transpose()?;
    if let (Some(limit), None) = (limits.iter().find(|one| one.needs_baseline()), &baseline)
        && arguments.save.is_none()
    {
        return Err(usage!(
            "{} {}: this limit needs a baseline: give --baseline FILE, which --save writes",
            limit.name(),
            limit.text
        ));
    }
    let [to_save, to_junit] = [
        output::planned(arguments.save.as_ref())?,
        output::planned(arguments.junit.as_ref())?,
    ];
    let now = measure(arguments, &limits)?;
    warn_of_sites(&limits, &now);
    // Figures that are only saved have nothing to be compared with yet.
    let compared = |limit: &&Limit| baseline.is_some() || !limit.needs_baseline();
    let verdicts = limits.iter().filter(compared);
    let verdicts: Vec<Verdict> = verdicts
        .map(|limit| Verdict::of(limit, &now, baseline.as_ref()))
        .collect();
    say::keep();
    let as_json = serde_json::to_string_pretty(&now).map_err(|error| failed!("{error}"))?;
    let files = [
        to_save.map(|file| file.write(as_json + "\n")),
        to_junit.map(|file| file.write(junit(&now.program, &verdicts))),
    ];
    if arguments.json {
        print_json(&json!({ "measured": now, "limits": verdicts }))?;
    } else {
        let form = if arguments.markdown {
            Form::Markdown
        } else {
            terminal()
        };
        show(&text(&now, &verdicts, form));
    }
    output::all_written(files.into_iter().flatten())?;
    let is_kept = verdicts.iter().all(|verdict| verdict.is_kept);
    Ok(ExitCode::from(u8::from(!is_kept)))
}

fn read(path: &Path) -> Result<String> {
    input::read_to_string(path).map_err(|error| usage!("cannot read {}: {error}", path.shown()))
}

fn measure(arguments: &Arguments, limits: &[Limit]) -> Result<Measurements> {
    let wants_resident = limits.iter().any(|limit| limit.measure == RESIDENT);
    if let Some(path) = &arguments.trace {
        if wants_resident {
            return Err(usage!(
                "a trace does not have peak_resident: check the program itself"
            ));
        }
        let reader = open(path)?;
        if let Some(lacks) = reader.ending.as_ref().and_then(Ending::lacks) {
            eprintln!("hakmem: warning: {} lacks {lacks}", path.shown());
        }
        return of_trace(&reader, limits);
    }
    // Without a name: it disappears when we end, in any way.
    let file = tempfile::tempfile().map_err(|error| failed!("no temporary file: {error}"))?;
    let trace = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
    let executable = Executable::find(&arguments.command[0])?;
    let input = Input::note();
    // Standard output is for the table.
    let own = dup(std::io::stdout()).map_err(|error| failed!("standard output: {error}"))?;
    let swapped = dup2_stdout(std::io::stderr());
    let recorded = swapped
        .map_err(|error| failed!("standard output: {error}"))
        .and_then(|()| recorded(arguments, limits, &executable, &trace));
    dup2_stdout(own).map_err(|error| failed!("standard output: {error}"))?;
    recorded?;
    let mut now = of_trace(&open(&trace)?, limits)?;
    if wants_resident {
        let runs: Vec<u64> = (0..arguments.runs)
            .map(|_| resident(arguments, &executable, &input))
            .collect::<Result<_>>()?;
        let (least, most) = (runs.iter().min(), runs.iter().max());
        let (least, most) = (least.copied().unwrap_or(0), most.copied().unwrap_or(0));
        now.figures.insert(
            RESIDENT.into(),
            Measured {
                value: most as f64,
                spread: (most - least) as f64,
            },
        );
    }
    Ok(now)
}

/// The program's allocations, in a trace.
fn recorded(
    arguments: &Arguments,
    limits: &[Limit],
    executable: &Executable,
    trace: &Path,
) -> Result<()> {
    let recorder = Allocator {
        name: "the recorder".into(),
        library: Some(Places::find()?.recorder()?),
        ..Allocator::default()
    };
    let environment = environment(&recorder)?;
    prove(executable, &arguments.command[1..], &environment, &recorder)?;
    let has_sites = limits.iter().any(|limit| limit.site.is_some());
    let recorded = record::record(&Options {
        environment,
        output: trace.to_path_buf(),
        is_there: true,
        limit: None,
        stack_frames: if has_sites { FRAMES } else { 0 },
        command: arguments.command.clone(),
    })?;
    let ending = &recorded.ending;
    let missing = ending.events_missed + ending.processes_missed;
    if ending.reason != Reason::Ended || missing > 0 {
        return Err(failed!("the recording is incomplete: nothing is compared"));
    }
    let of_calls = limits.iter().any(|limit| limit.measure != RESIDENT);
    if let Some(lacks) = ending.lacks().filter(|_| of_calls) {
        return Err(failed!("not recorded: {lacks}: nothing is compared"));
    }
    match recorded.exit_code {
        0 => Ok(()),
        code => Err(failed!(
            "the program ended with {code}: nothing is compared"
        )),
    }
}

/// The most resident bytes of one of the program's processes.
fn resident(arguments: &Arguments, executable: &Executable, input: &Input) -> Result<u64> {
    if !input.again() {
        return Err(failed!(
            "the program has read standard input from a pipe, which a second run cannot read: give it a file"
        ));
    }
    let null = || {
        let file = File::options().read(true).write(true).open("/dev/null");
        file.map_err(|error| failed!("/dev/null: {error}"))
    };
    let environment = environment(&Allocator::default())?;
    let mut request = request(&executable.path, &arguments.command, environment, false)?;
    (request.output, request.errors) = (null()?, null()?);
    request.ends_what_remains = true;
    let run = Running::start(request)?.wait()?;
    if run.end != End::Exited(0) {
        return Err(failed!(
            "the program did not end as in its first run: nothing is compared"
        ));
    }
    if run.left_running > 0 {
        return Err(failed!(
            "the program leaves processes running, whose memory is not seen to its end: nothing is compared"
        ));
    }
    let exits = run
        .tree
        .processes()
        .filter_map(|process| process.exit.as_ref());
    let peak = exits.map(|exit| exit.peak_kib).max();
    peak.map(|kib| kib << 10)
        .ok_or_else(|| failed!("the program's end was not seen"))
}

/// The figures of all processes together. Their peaks are added, as they may run at the same time.
fn of_trace(reader: &Reader, limits: &[Limit]) -> Result<Measurements> {
    if limits.iter().any(|one| one.site.is_some()) && !reader.has_stacks() {
        return Err(has_no_stacks(reader.path()));
    }
    let mut now = Measurements {
        kind: Measurements::KIND.into(),
        program: reader.beginning.command.join(" "),
        ..Measurements::default()
    };
    let mut add = |name: &str, value: u64| {
        let figure = now.figures.entry(name.into());
        figure
            .or_insert(Measured {
                value: 0.0,
                spread: 0.0,
            })
            .value += value as f64;
    };
    let sites: BTreeSet<&str> = limits
        .iter()
        .filter_map(|one| one.site.as_deref())
        .collect();
    // Also for a program that never allocates.
    for measure in ["allocations", "allocated", "peak_live", "live_at_end"] {
        add(measure, 0);
    }
    for limit in limits.iter().filter(|one| one.site.is_some()) {
        add(&limit.name(), 0);
    }
    for (process, _) in processes_with_events(reader) {
        let analysis = analyse(reader, process)?;
        let calls = &analysis.calls;
        let allocations = calls.malloc + calls.calloc + calls.aligned + calls.realloc;
        add("allocations", allocations);
        add("allocated", analysis.allocated_bytes);
        add("peak_live", analysis.live_bytes_peak);
        add("live_at_end", analysis.live_bytes_end);
        if sites.is_empty() {
            continue;
        }
        let mut symbols = Symbols::of(reader, process)?;
        for site in &analysis.sites {
            let frames = symbols.stack(site.stack);
            for pattern in &sites {
                let is_it = frames.iter().any(|frame| is_function(pattern, frame));
                let part = |value: u64| if is_it { value } else { 0 };
                add(&format!("allocations of {pattern}"), part(site.count));
                add(&format!("allocated of {pattern}"), part(site.bytes));
                add(
                    &format!("live_at_end of {pattern}"),
                    part(site.held.live_bytes),
                );
            }
        }
    }
    Ok(now)
}

/// Warns of call sites that are not found: their limits would be kept for ever.
fn warn_of_sites(limits: &[Limit], now: &Measurements) {
    let sites: BTreeSet<&str> = limits
        .iter()
        .filter_map(|one| one.site.as_deref())
        .collect();
    for site in sites {
        let blocks = now.figures.get(&format!("allocations of {site}"));
        if blocks.is_none_or(|blocks| blocks.value == 0.0) {
            eprintln!(
                "hakmem: warning: nothing was allocated in {site}: was it renamed, or does the \
                 program lack symbols?"
            );
        }
    }
}

/// "parse_*" matches "parse_line (parse.c:12)", and so do "parse.c" and "parse_line".
fn is_function(pattern: &str, frame: &str) -> bool {
    let (name, place) = match frame
        .strip_suffix(')')
        .and_then(|text| text.rsplit_once(" ("))
    {
        Some((name, place)) => (name, place),
        None => ("", frame),
    };
    let bare = name.split(['(', '<']).next().unwrap_or_default();
    let file = place.split([':', '+']).next().unwrap_or_default();
    [name, bare, file]
        .iter()
        .any(|text| fits_one(&[pattern], text))
}

fn text(now: &Measurements, verdicts: &[Verdict], form: Form) -> String {
    let has_baseline = verdicts.iter().any(|verdict| verdict.baseline.is_some());
    let mut table = Table::default();
    table.text_column("what", 0);
    table.number_column("measured", 0);
    table.text_column("limit", 0);
    if has_baseline {
        table.number_column("baseline", 1);
        table.number_column("change", 1);
    }
    table.text_column("", 0);
    for verdict in verdicts {
        let measured = verdict.measured.map_or("–".into(), |one| {
            let spread = if one.spread > 0.0 {
                format!(" (− {})", verdict.shown(one.spread))
            } else {
                String::new()
            };
            verdict.shown(one.value) + &spread
        });
        let (word, tone) = if verdict.is_kept {
            ("kept", Tone::Good)
        } else {
            ("OVER", Tone::Bad)
        };
        let mut row = vec![
            Cell::new(verdict.name.clone()),
            Cell::new(measured),
            Cell::new(verdict.limit.clone()),
        ];
        if has_baseline {
            row.push(Cell::new(
                verdict
                    .baseline
                    .map_or(String::new(), |was| verdict.shown(was)),
            ));
            row.push(Cell::new(verdict.change().unwrap_or_default()));
        }
        row.push(Cell::toned(word, tone));
        table.row(row);
    }
    let mut lines = vec![form.strong(&now.program), String::new()];
    if !verdicts.is_empty() {
        lines.push(table.render(form));
        lines.push(String::new());
    }
    let over = verdicts.iter().filter(|verdict| !verdict.is_kept).count();
    lines.push(match (verdicts.len(), over) {
        (0, _) => "nothing to compare with yet".into(),
        (all, 0) => format!("all {all} limits are kept"),
        (all, over) => format!("{over} of {all} limits are not kept"),
    });
    if verdicts.iter().any(|verdict| verdict.name == RESIDENT) {
        lines.push(
            "peak_resident is the highest of several runs; (−) is how far below it the lowest \
             was: it does not repeat exactly"
                .into(),
        );
    }
    lines.join("\n") + "\n"
}
