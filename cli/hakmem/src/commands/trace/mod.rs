//! `hakmem trace`: what a trace tells, without running anything.

mod peak;
mod top_sites;

use crate::output::{self, line, print_json};
use crate::traces::{MAY_LACK, Source, Which, choose, open};
use clap::{Args, Subcommand};
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::{bytes_and_tenths, counted, grouped};
use hakmem_lab::render::{Cell, Table};
use hakmem_lab::{interrupt, whole_file};
use hakmem_trace::analysis::{self, Analysis, Calls, SizeClass, analyse};
use hakmem_trace::export::to_parquet;
use hakmem_trace::format::{Reason, Unseen};
use hakmem_trace::reader::Reader;
use peak::{Peak, peak};
use serde_json::json;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use top_sites::{TopSites, top_sites};

const EXAMPLES: &str = "\
Examples:
  hakmem trace info trace.hkt
  hakmem trace sizes trace.hkt
  hakmem trace lifetimes trace.hkt --process 2
  hakmem trace peak trace.hkt                     # what was live at the peak
  hakmem trace top-sites trace.hkt --by live      # of a trace recorded with --stacks
  hakmem trace export --parquet events.parquet trace.hkt";

/// How many processes `info` lists; a build starts thousands.
const PROCESSES_MAX: usize = 20;

/// Analyse a trace: its contents, sizes, lifetimes, peak and call sites; export it
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    question: Question,
}

#[derive(Subcommand)]
enum Question {
    /// What was recorded: processes, calls, live memory, and what is missing
    #[command(
        after_help = "Examples:\n  hakmem trace info trace.hkt\n  hakmem trace info trace.hkt --json"
    )]
    Info(Source),
    /// How many blocks of each size were requested
    #[command(after_help = "Example:\n  hakmem trace sizes trace.hkt")]
    Sizes(Source),
    /// How long blocks lived, and who freed them
    #[command(after_help = "Example:\n  hakmem trace lifetimes trace.hkt --process 2")]
    Lifetimes(Source),
    /// What was live at the peak, who allocated it, and which blocks were temporary
    #[command(
        after_help = "Examples:\n  hakmem record --stacks -- ./program\n  hakmem trace peak trace.hkt\n  \
                      hakmem trace peak trace.hkt --flamegraph peak.html\n  \
                      hakmem trace peak trace.hkt --within 0   # heaptrack's definition of temporary; 1 is memray's"
    )]
    Peak(Peak),
    /// Which call sites allocate most
    #[command(
        after_help = "Examples:\n  hakmem record --stacks -- ./program\n  hakmem trace top-sites trace.hkt --by live"
    )]
    TopSites(TopSites),
    /// Write all events to a file for other tools
    #[command(after_help = "Example:\n  hakmem trace export --parquet events.parquet trace.hkt")]
    Export(Export),
}

#[derive(Args)]
struct Export {
    /// The trace
    trace: PathBuf,

    /// Write a Parquet file, for DuckDB, Polars, Spark and others
    #[arg(long, value_name = "FILE", required = true)]
    parquet: PathBuf,
}

pub fn execute(arguments: Arguments) -> Result<ExitCode> {
    match arguments.question {
        Question::Info(source) => info(&source)?,
        Question::Sizes(source) => show(&source, sizes)?,
        Question::Lifetimes(source) => show(&source, lifetimes)?,
        Question::Peak(question) => peak(&question)?,
        Question::TopSites(question) => top_sites(&question)?,
        Question::Export(question) => {
            let reader = open(&question.trace)?;
            whole_file::refuse_existing(&question.parquet)?;
            interrupt::install();
            let rows = to_parquet(&reader, &question.parquet)?;
            eprintln!("hakmem: {rows} rows in {}", question.parquet.shown());
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(source: &Source, print: fn(&Analysis)) -> Result<()> {
    let reader = open(&source.trace)?;
    let (processes, which) = choose(&reader, source.process)?;
    let mut analysis = analyse(&reader, processes[0])?;
    for process in &processes[1..] {
        analysis.add(analyse(&reader, *process)?);
    }
    if source.json {
        let mut value = json!(analysis);
        if processes.len() > 1 {
            value["process"] = json!("all");
            value["program"] = json!(null);
        }
        return print_json(&value);
    }
    line(&format!("{which}\n"));
    print(&analysis);
    Ok(())
}

/// A table with these columns: a name, which is never cut, then numbers, each with how dispensable it is.
fn table(name: &str, numbers: &[(&str, u8)]) -> Table {
    let mut table = Table::default();
    table.text_column(name, 0);
    for (head, dispensable) in numbers {
        table.number_column(head, *dispensable);
    }
    table
}

fn add_row<const COLUMNS: usize>(table: &mut Table, row: [String; COLUMNS]) {
    table.row(row.into_iter().map(Cell::new).collect());
}

fn print_table(table: &Table) {
    line(&table.render(output::terminal()));
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", part as f64 * 100.0 / whole.max(1) as f64)
}

fn info(source: &Source) -> Result<()> {
    let reader = open(&source.trace)?;
    let processes = match source.process {
        Some(Which::One(number)) => vec![analysis::choose_process(&reader, Some(number))?],
        Some(Which::All) | None => reader
            .processes
            .iter()
            .map(|process| process.process)
            .collect(),
    };
    let analyses: Vec<Analysis> = processes
        .iter()
        .map(|&process| analyse(&reader, process))
        .collect::<Result<_>>()?;
    if source.json {
        return print_json(&json!({
            "trace": reader.path().shown(), "bytes": reader.bytes, "events": reader.events(),
            "warning": reader.warning, "beginning": reader.beginning, "ending": reader.ending,
            "processes": analyses,
        }));
    }
    print_head(&reader);
    if analyses.is_empty() {
        return Ok(());
    }
    line("");
    print_processes(&analyses);
    print_oddities(&analyses);
    Ok(())
}

/// The processes with most calls, in the order of their starts.
fn print_processes(analyses: &[Analysis]) {
    let mut shown: Vec<&Analysis> = analyses.iter().collect();
    shown.sort_by_key(|one| Reverse(one.calls.all()));
    let others = shown.split_off(shown.len().min(PROCESSES_MAX));
    shown.sort_by_key(|one| one.process);
    let mut processes = table(
        "process and program",
        &[
            ("threads", 4),
            ("seconds", 5),
            ("allocations", 2),
            ("frees", 3),
            ("reallocs", 6),
            ("peak live", 0),
            ("live at the end", 1),
        ],
    );
    for one in shown {
        let calls = &one.calls;
        let name = Path::new(&one.program).file_name().unwrap_or_default();
        add_row(
            &mut processes,
            [
                format!("{} {}", one.process, name.shown()),
                one.threads.to_string(),
                format!("{:.3}", one.seconds),
                grouped(calls.malloc + calls.calloc + calls.aligned),
                grouped(calls.free),
                grouped(calls.realloc),
                bytes_and_tenths(one.live_bytes_peak),
                bytes_and_tenths(one.live_bytes_end),
            ],
        );
    }
    if let [first, rest @ ..] = analyses
        && !rest.is_empty()
    {
        let mut sum = first.clone();
        rest.iter().for_each(|one| sum.add(one.clone()));
        let calls = &sum.calls;
        add_row(
            &mut processes,
            [
                format!("all {}", analyses.len()),
                sum.threads.to_string(),
                String::new(),
                grouped(calls.malloc + calls.calloc + calls.aligned),
                grouped(calls.free),
                grouped(calls.realloc),
                String::new(),
                bytes_and_tenths(sum.live_bytes_end),
            ],
        );
    }
    print_table(&processes);
    if !others.is_empty() {
        let calls = others.iter().map(|one| one.calls.all()).sum();
        line(&format!(
            "and {} with {}; --json lists all",
            counted(others.len() as u64, "smaller process"),
            counted(calls, "call")
        ));
    }
}

fn print_head(reader: &Reader) {
    let each = match reader.events() {
        0 => String::new(),
        events => format!(
            " ({:.2} bytes an event)",
            reader.bytes as f64 / events as f64
        ),
    };
    line(&format!("command  {}", reader.beginning.command.join(" ")));
    line(&format!(
        "trace    {}, {}{each}",
        counted(reader.events(), "event"),
        bytes_and_tenths(reader.bytes)
    ));
    let Some(ending) = &reader.ending else {
        return;
    };
    let unseen = ending.unseen.len() as u64;
    let missing = ending.events_missed + ending.processes_missed + unseen;
    let end = match ending.reason {
        Reason::Ended if missing > 0 => "incomplete: see what is missing".to_string(),
        Reason::Ended if ending.may_lack_processes => "complete, as far as was seen".to_string(),
        Reason::Ended => "complete".to_string(),
        other => other
            .early()
            .unwrap_or("ended for a reason that this version does not know")
            .to_string(),
    };
    let code = ending
        .exit_code
        .map_or(String::new(), |code| format!("; exit code {code}"));
    line(&format!(
        "recorded {:.3} s, {end}{code}",
        reader.seconds(ending.end)
    ));
    print_some("missing ", &ending.unseen);
    print_some("no calls", &ending.quiet);
    if ending.may_lack_processes {
        line(&format!("missing  perhaps: {MAY_LACK}"));
    }
    if missing > unseen {
        line(&format!(
            "missing  {} of threads that found no room, {} beyond 1,024 at a time",
            counted(ending.events_missed, "event"),
            counted(ending.processes_missed, "process")
        ));
    }
}

/// A line for each of the first processes, and one for the rest.
fn print_some(label: &str, processes: &[Unseen]) {
    for one in processes.iter().take(PROCESSES_MAX) {
        line(&format!("{label} {one}"));
    }
    if processes.len() > PROCESSES_MAX {
        let more = processes.len() - PROCESSES_MAX;
        let more = counted(more as u64, "more process");
        line(&format!("{label} {more}; --json lists all"));
    }
}

fn print_oddities(analyses: &[Analysis]) {
    let sum = |of: fn(&Calls) -> u64| analyses.iter().map(|one| of(&one.calls)).sum::<u64>();
    let lines = [
        (sum(|calls| calls.failed), "allocation", "failed"),
        (
            sum(|calls| calls.foreign_free),
            "free",
            "of blocks from a parent process, or from before the recording",
        ),
        (
            sum(|calls| calls.implied_free),
            "free",
            "missing, as addresses were allocated again",
        ),
    ];
    for (number, noun, what) in lines.iter().filter(|(number, ..)| *number > 0) {
        line(&format!("{} {what}", counted(*number, noun)));
    }
}

fn size_range(class: &SizeClass) -> String {
    if class.from == class.to {
        class.from.to_string()
    } else {
        format!("{} – {}", grouped(class.from), grouped(class.to))
    }
}

fn sizes(analysis: &Analysis) {
    let all: u64 = analysis.sizes.iter().map(|class| class.count).sum();
    let mut classes = table(
        "size",
        &[
            ("blocks", 0),
            ("of all", 2),
            ("bytes", 0),
            ("of all", 2),
            ("most at a time", 1),
        ],
    );
    for class in &analysis.sizes {
        add_row(
            &mut classes,
            [
                size_range(class),
                grouped(class.count),
                percent(class.count, all),
                bytes_and_tenths(class.bytes),
                percent(class.bytes, analysis.allocated_bytes),
                grouped(class.held.live_blocks_peak),
            ],
        );
    }
    print_table(&classes);
    line("\nmost frequent:");
    let mut top = table("size", &[("blocks", 0), ("of all", 1)]);
    for &(size, blocks) in &analysis.top_sizes {
        add_row(
            &mut top,
            [grouped(size), grouped(blocks), percent(blocks, all)],
        );
    }
    print_table(&top);
}

fn seconds(value: f64) -> String {
    let (scaled, unit) = match value {
        _ if value < 0.9e-6 => (value * 1e9, "ns"),
        _ if value < 0.9e-3 => (value * 1e6, "µs"),
        _ if value < 0.9 => (value * 1e3, "ms"),
        _ => (value, "s"),
    };
    format!("{scaled:.0} {unit}")
}

fn lifetimes(analysis: &Analysis) {
    let all: u64 = analysis.lifetimes.iter().map(|class| class.count).sum();
    let mut classes = table(
        "lived",
        &[
            ("blocks", 0),
            ("of all", 2),
            ("bytes", 0),
            ("freed by another thread", 1),
        ],
    );
    for class in analysis.lifetimes.iter().filter(|class| class.count > 0) {
        let name = class.seconds_below.map_or("never freed".into(), |below| {
            format!("under {}", seconds(below))
        });
        add_row(
            &mut classes,
            [
                name,
                grouped(class.count),
                percent(class.count, all),
                bytes_and_tenths(class.bytes),
                grouped(class.freed_by_another_thread),
            ],
        );
    }
    print_table(&classes);
}
