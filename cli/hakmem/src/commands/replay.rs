//! `hakmem replay`: replays a trace with several allocators.

mod limit;

use crate::numbers::RUNS_RANGE;
use crate::output::{self, Output, Shown};
use crate::page::Page;
use crate::progress;
use crate::say;
use crate::traces::{self, Which, choose, parse_process};
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::{BASELINE, Catalogue, OURS};
use hakmem_lab::error::Result;
use hakmem_lab::places::Places;
use hakmem_lab::render::number::counted;
use hakmem_lab::render::{Cell, Form, Table, Tone, duration, field, memory};
use hakmem_lab::statistics::{Difference, median, ratio};
use hakmem_lab::summary::RUNS_MIN;
use hakmem_lab::{failed, interrupt, usage};
use hakmem_trace::reader::Reader;
use hakmem_trace::replay::{Options, ReplayDocument, Run, replay};
use hakmem_trace::replayer::{self, Touch};
use indicatif::ProgressBar;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem replay trace.hkt                         # under hakmem and glibc
  hakmem replay trace.hkt --all --markdown        # the table for a document
  hakmem replay trace.hkt -a hakmem,jemalloc -n 10 --export replay.json
  hakmem replay trace.hkt --all --html page.html  # with curves of memory and of latencies
  hakmem replay trace.hkt --all --limit 384MiB    # under which allocator would it have fitted?";

const CSV_COLUMNS: &str =
    "allocator,round,seconds,failed,resident_peak_bytes,resident_end_bytes,overhead";

/// Replay a trace under several allocators: time, latency, memory, fragmentation
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The trace
    trace: PathBuf,
    /// Use every allocator that 'hakmem peers list' names
    #[arg(long, conflicts_with = "allocators")]
    all: bool,
    /// Allocators: names, or NAME=LIBRARY, each with +SETTING=VALUE
    #[arg(
        short,
        long,
        visible_alias = "allocator",
        value_name = "NAME,...",
        value_delimiter = ','
    )]
    allocators: Vec<String>,
    /// The allocator that ratios refer to
    #[arg(short, long, value_name = "NAME", default_value = BASELINE)]
    baseline: String,
    /// Replay this process, or all, one after the other [default: the one with the most events]
    #[arg(long, value_name = "NUMBER|all", value_parser = parse_process)]
    process: Option<Which>,
    /// Runs of each allocator, besides the one that measures latencies
    #[arg(short = 'n', long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(RUNS_RANGE))]
    runs: u32,
    /// What to write to the blocks: the first byte of each page, all, or none
    #[arg(long, value_name = "WHAT", default_value = "pages", value_parser = parse_touch)]
    touch: Touch,
    /// Show under which allocators the blocks would fit into this much memory, and otherwise the call that exceeds it; with --all,
    /// also try settings that keep less
    #[arg(long, value_name = "SIZE", value_parser = limit::parse)]
    limit: Option<u64>,
    /// Write the whole result, with every sample, into a file
    #[arg(long, value_name = "FILE")]
    export: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

/// What the measured process runs; not for users
#[derive(Args)]
pub struct InsideArguments {
    operations: PathBuf,
    task: PathBuf,
}

fn parse_touch(text: &str) -> std::result::Result<Touch, String> {
    match text {
        "pages" => Ok(Touch::Pages),
        "all" => Ok(Touch::All),
        "none" => Ok(Touch::None),
        _ => Err("pages, all or none".into()),
    }
}

pub fn execute(arguments: Arguments) -> Result<ExitCode> {
    output::keep_apart(
        &[arguments.export.as_ref(), arguments.output.html.as_ref()],
        std::slice::from_ref(&arguments.trace),
    )?;
    let places = Places::find()?;
    let catalogue = Catalogue::load(&places)?;
    let mut names = arguments.allocators.clone();
    match (arguments.all, arguments.limit) {
        (true, Some(_)) => names = limit::all_with_settings(&catalogue),
        (false, _) if names.is_empty() => names.push(OURS.into()),
        _ => {}
    }
    let mut allocators = catalogue.choose(&names)?;
    let baseline = catalogue.choose_baseline(&arguments.baseline, &mut allocators)?;
    let options = Options {
        trace: arguments.trace,
        allocators,
        runs: arguments.runs,
        touch: arguments.touch,
        limit: arguments.limit,
        own_path: env::current_exe()
            .map_err(|error| failed!("cannot find this command's own path: {error}"))?,
    };
    let reader = traces::open(&options.trace)?;
    let (processes, which) = choose(&reader, arguments.process)?;
    if options.limit.is_some() && processes.len() > 1 {
        return Err(usage!(
            "a limit is for one process: --process NUMBER says which, and 'hakmem trace info' lists them"
        ));
    }
    let page = arguments.output.page(&places)?;
    let file = output::planned_export(arguments.export.as_ref())?;
    interrupt::install();
    let document = replay_all(&options, &reader, &processes)?;
    let shown = Replayed {
        document: &document,
        baseline: &baseline,
        which: &which,
    };
    say::keep();
    let exported = output::export(&shown, file);
    let paged = arguments.output.write_page(page, &document.trace, &shown);
    arguments.output.print(&shown)?;
    output::all_written([exported, paged])?;
    for refused in &document.refused {
        eprintln!("hakmem: {}: refused: {}", refused.allocator, refused.reason);
    }
    if interrupt::requested() {
        return Err(if document.runs.is_empty() {
            failed!("stopped before the first run")
        } else {
            failed!("stopped; the results so far are above")
        });
    }
    Ok(if document.refused.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn replay_all(options: &Options, reader: &Reader, processes: &[u32]) -> Result<ReplayDocument> {
    let bar = ProgressBar::with_draw_target(None, progress::target());
    let mut parts = Vec::new();
    for process in processes {
        let of = match processes.len() {
            1 => String::new(),
            _ => format!("process {process}: "),
        };
        parts.extend(replay(options, reader, *process, |line| {
            bar.set_message(format!("{of}{line}"));
            bar.tick();
        })?);
    }
    let document = match parts.len() {
        1 => parts.pop(),
        _ => ReplayDocument::sum(parts),
    };
    let mut document = document.ok_or_else(|| {
        let path = reader.path().shown();
        match processes {
            [process] => usage!("process {process} of {path} has nothing to replay"),
            _ => usage!("no process of {path} has anything to replay"),
        }
    })?;
    limit::name_calls(&mut document, reader)?;
    bar.finish_and_clear();
    Ok(document)
}

pub fn execute_inside(arguments: InsideArguments) -> Result<ExitCode> {
    let cannot = |error: &dyn std::fmt::Display| failed!("cannot read the plan: {error}");
    let text = fs::read(&arguments.task).map_err(|error| cannot(&error))?;
    let task = serde_json::from_slice(&text).map_err(|error| cannot(&error))?;
    let replayed = replayer::run(task, &arguments.operations)?;
    let answer = serde_json::to_string(&replayed)
        .map_err(|error| failed!("cannot write the answer: {error}"))?;
    println!("{answer}");
    Ok(ExitCode::SUCCESS)
}

/// A replay's result, and the baseline of its ratios.
struct Replayed<'a> {
    document: &'a ReplayDocument,
    baseline: &'a str,
    /// A line that names the processes.
    which: &'a str,
}

impl Shown for Replayed<'_> {
    fn tables(&self, form: Form) -> String {
        if self.document.runs.is_empty() {
            return String::new();
        }
        let limit = self.document.limit.as_ref();
        let limit = limit.map(|limit| limit::text(self.document, limit, form) + "\n");
        format!(
            "{}\n{}\n\n{}{}\n\n{}\n",
            heading(self.document),
            self.which,
            limit.unwrap_or_default(),
            table(self.document, self.baseline).render(form),
            legend(self.document, self.baseline)
        )
    }

    fn csv(&self) -> String {
        let mut text = String::from(CSV_COLUMNS);
        for run in &self.document.runs {
            text.push_str(&format!(
                "\n{},{},{},{},{},{},{}",
                field(&run.allocator),
                run.round,
                run.seconds,
                run.failed,
                run.resident_peak,
                run.resident_end(),
                self.document.overhead(run)
            ));
        }
        text + "\n"
    }

    fn json(&self) -> Result<String> {
        serde_json::to_string_pretty(self.document)
            .map(|text| text + "\n")
            .map_err(|error| failed!("cannot write JSON: {error}"))
    }

    fn put_on(&self, page: &mut Page, name: &str) {
        page.add_replay(name, self.document);
    }
}

fn heading(document: &ReplayDocument) -> String {
    format!(
        "{:.70}: {} operations of {} thread{}, at most {} live",
        document.command.join(" ").replace('\n', " "),
        document.operations,
        document.threads,
        if document.threads == 1 { "" } else { "s" },
        memory(document.live_bytes_peak as f64 / 1024.0)
    )
}

fn table(document: &ReplayDocument, baseline: &str) -> Table {
    let mut table = Table::default();
    table.text_column("allocator", 0);
    let heads = [
        "time",
        "ratio",
        "M/s",
        "peak",
        "end",
        "overhead",
        "malloc 50 %",
        "99.9 %",
        "99.999 %",
        "free 50 %",
        "99.9 %",
        "99.999 %",
    ];
    for (place, head) in heads.iter().enumerate() {
        table.number_column(head, if place < 5 { 0 } else { place as u8 });
    }
    let seconds =
        |name: &str| -> Vec<f64> { document.runs_of(name).map(|run| run.seconds).collect() };
    let mut names: Vec<&String> = document.allocators.keys().collect();
    names.retain(|name| document.runs_of(name).next().is_some());
    names.sort_by(|a, b| median(&seconds(a)).total_cmp(&median(&seconds(b))));
    for name in names {
        table.row(row(document, name, baseline, &seconds));
    }
    table
}

fn legend(document: &ReplayDocument, baseline: &str) -> String {
    let runs = document
        .allocators
        .keys()
        .map(|name| document.runs_of(name).count())
        .filter(|&runs| runs > 0)
        .min();
    let runs = runs.unwrap_or(0);
    let certainty = if runs >= RUNS_MIN {
        "with its 95 % interval"
    } else {
        "without its interval, which takes 5 runs (-n)"
    };
    let runs = counted(runs as u64, "run");
    let clock = if document.latencies.is_empty() {
        String::new()
    } else {
        format!(" Latencies include the clock, {:.0} ns.", document.clock_ns)
    };
    let failed: u64 = document.runs.iter().map(|run| run.failed).sum();
    let failed = match failed {
        0 => String::new(),
        calls => format!("\n{} failed", counted(calls, "allocation")),
    };
    let sums = match document.parts.len() {
        0 => "",
        _ => ", as sums",
    };
    format!(
        "time: median of {runs}; ratio: against {baseline}, {certainty}. peak, end: resident \
         memory beyond\nwhat was there before{sums}. overhead: resident over live memory, on average.{clock}{failed}"
    )
}

fn row(
    document: &ReplayDocument,
    name: &str,
    baseline: &str,
    seconds: &dyn Fn(&str) -> Vec<f64>,
) -> Vec<Cell> {
    let times = seconds(name);
    let time = median(&times);
    let against = match ratio(&times, &seconds(baseline), name) {
        Some(ratio) if name != baseline && times.len() >= RUNS_MIN => Cell::toned(
            format!("{:.2} ({:.2}–{:.2})", ratio.value, ratio.low, ratio.high),
            match ratio.difference() {
                Difference::Less => Tone::Good,
                Difference::More => Tone::Bad,
                Difference::NotShown => Tone::Plain,
            },
        ),
        Some(ratio) if name != baseline => Cell::new(format!("{:.2}", ratio.value)),
        _ => Cell::new("1"),
    };
    let of = |figure: &dyn Fn(&Run) -> f64| {
        median(&document.runs_of(name).map(figure).collect::<Vec<f64>>())
    };
    let kib = |bytes: f64| Cell::new(memory(bytes / 1024.0));
    let mut row = vec![
        Cell::toned(
            name,
            if name == OURS {
                Tone::Strong
            } else {
                Tone::Plain
            },
        ),
        Cell::new(duration(time)),
        against,
        Cell::new(format!("{:.1}", document.operations as f64 / time / 1e6)),
        kib(of(&|run| run.resident_peak as f64)),
        kib(of(&|run| run.resident_end() as f64)),
        Cell::new(format!("{:.2}", of(&|run| document.overhead(run)))),
    ];
    for call in ["malloc", "free"] {
        let curve = document.latencies.iter().find(|curve| {
            curve.allocator == name && curve.call == call && curve.size_above.is_none()
        });
        let figures = curve.map(|curve| [curve.p50, curve.p99_9, curve.p99_999]);
        for place in 0..3 {
            row.push(Cell::new(
                figures.map_or("–".into(), |figures| nanoseconds(figures[place])),
            ));
        }
    }
    row
}

fn nanoseconds(value: f64) -> String {
    if value < 1000.0 {
        format!("{value:.0} ns")
    } else {
        duration(value * 1e-9)
    }
}
