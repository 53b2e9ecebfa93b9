//! `hakmem leaks`: memory that is still allocated, by call site and age.

use crate::frames::{By, Folded};
use crate::numbers::{self, seconds};
use crate::output::{self, print_json, show, terminal};
use crate::profile::group::grouped;
use crate::profile::look::snapshot;
use crate::profile::{Part, ROWS, Site, Snapshot, View, notes, sorted};
use crate::say;
use crate::signals;
use crate::start::{environment, left_running, preloadable, prove, request};
use crate::target::{Target, what_reads};
use clap::Args;
use hakmem_heap::profile::Sums;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::Allocator;
use hakmem_lab::error::{Error, Result};
use hakmem_lab::launch::{Run, Running};
use hakmem_lab::places::Places;
use hakmem_lab::render::number::{age, bytes, counted};
use hakmem_lab::render::{Cell, Form, Table, Tone};
use hakmem_lab::tree::Tree;
use hakmem_lab::trust;
use hakmem_lab::whole_file::Planned;
use hakmem_lab::{failed, usage};
use hakmem_trace::symbols::{Names, Sources};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem leaks --exit -- ./program argument       every block that is left at its end
  HAKMEM_SAMPLE_BYTES=524288 hakmem run -- ./server & sleep 60; hakmem leaks $!
  hakmem leaks 4711 --save one.json; sleep 600; hakmem leaks 4711 --save two.json
  hakmem diff one.json two.json
  hakmem leaks --core core.4711

Not every live block is a leak: look for old blocks whose number grows. With --exit, every
allocation is sampled, which is slow, unless --every says otherwise. In a running process, only
sampled blocks are known: docs/profiling.md.";

/// How many processes to list; a build starts thousands.
const PROCESSES_MAX: usize = 20;
/// How many programs that executed others to name.
const REPLACED_MAX: usize = 5;

/// Show blocks that are still allocated, by call stack and age: in a process, in a core dump, or at a program's end
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem leaks [OPTIONS] PID\n       hakmem leaks [OPTIONS] --core FILE\n       hakmem leaks [OPTIONS] --exit [--] PROGRAM [ARGUMENT]...")]
pub struct Arguments {
    /// The process ID; with --exit a program and its arguments
    #[arg(
        required_unless_present = "core",
        conflicts_with = "core",
        value_name = "PID|PROGRAM"
    )]
    subject: Vec<OsString>,
    /// A core dump or a snapshot instead of a process
    #[arg(long, value_name = "FILE", conflicts_with = "exit")]
    core: Option<PathBuf>,
    /// Run a program, and show what is allocated when it ends
    #[arg(long)]
    exit: bool,
    /// With --exit: show only this process, by its number in the list; by default, the sum of all
    #[arg(long, value_name = "NUMBER", requires = "exit")]
    process: Option<usize>,
    /// With --exit: take one sample per this many bytes
    #[arg(long, value_name = "BYTES", default_value_t = 1, value_parser = clap::value_parser!(u64).range(numbers::EVERY))]
    every: u64,
    /// Leave out blocks that are younger than this many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0, value_parser = seconds, allow_negative_numbers = true)]
    older: f64,
    /// What to group by: the table has a row for each group
    #[arg(long, value_enum, default_value = "stack")]
    by: By,
    #[command(flatten)]
    folded: Folded,
    /// Also show what languages and the C library keep until a process ends
    #[arg(long)]
    all: bool,
    /// Save the result for 'hakmem diff'
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// The process to look at, without --exit.
    fn target(&self) -> Result<Target> {
        let pid = match self.subject.as_slice() {
            [word] => word.to_str().and_then(|word| word.parse().ok()),
            _ => None,
        };
        if pid.is_none() && !self.subject.is_empty() {
            let words: Vec<String> = self.subject.iter().map(|word| word.shown()).collect();
            let words = words.join(" ");
            return Err(
                match self.subject.first().map(Path::new).and_then(what_reads) {
                    Some(reads) => usage!("{words} {reads}"),
                    None => usage!(
                        "{words} is not a process ID; 'hakmem leaks --exit -- {words}' runs that program"
                    ),
                },
            );
        }
        Ok(Target {
            pid,
            core: self.core.clone(),
        })
    }
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let to_save = output::planned(arguments.save.as_ref())?;
    if !arguments.exit {
        report(arguments, &snapshot(&arguments.target()?.open()?)?, to_save)?;
        return Ok(ExitCode::SUCCESS);
    }
    let run = run(arguments)?;
    let mut snapshot = at_end(arguments, &run.tree)?;
    snapshot.notes.extend(left_running(&run));
    eprint!("{}", if arguments.json { "" } else { "\n" });
    say::keep();
    report(arguments, &snapshot, to_save)?;
    Ok(signals::end_as(run.end))
}

/// What the requested process has left, or all of them together.
fn at_end(arguments: &Arguments, tree: &Tree) -> Result<Snapshot> {
    let mut parts = Vec::new();
    let mut sum: Option<Snapshot> = None;
    for (index, process) in tree.processes().enumerate() {
        let number = index + 1;
        let report = process.exit.as_ref();
        let program = report.map_or("(unknown)".into(), |report| report.program.shown());
        let is_wanted = arguments.process.is_none_or(|wanted| wanted == number);
        let seen = report.and_then(|report| Some((report, report.profile.as_ref()?)));
        let snapshot = seen.map(|(report, profile)| {
            let sources = Sources {
                held: report.held.clone(),
                map: report.map.clone(),
                ..Sources::default()
            };
            let mut names = Names::new(report.code.clone(), sources);
            let title = format!("{program} at its end");
            // Ages count from the last sampled allocation.
            let last = profile.samples.iter().map(|sample| sample.time_ns).max();
            Snapshot::of(profile, &mut names, title, last)
        });
        parts.push(Part {
            process: number,
            pid: process.pid,
            program,
            live: snapshot.as_ref().map(|one| one.total(View::Live)),
        });
        match (&mut sum, snapshot.filter(|_| is_wanted)) {
            (Some(sum), Some(one)) => sum.add(one),
            (None, one) => sum = one,
            (Some(_), None) => {}
        }
    }
    let mut sum = sum.ok_or_else(|| unseen(arguments.process, parts.len()))?;
    sum.every = arguments.every;
    sum.part = replaced(tree, arguments.process);
    match arguments.process.and_then(|number| parts.get(number - 1)) {
        Some(part) => sum.title = format!("process {}, {}", part.pid, sum.title),
        None if parts.len() > 1 => {
            sum.title = format!("{}, and its children at theirs", sum.title);
            sum.processes = parts;
        }
        None => {}
    }
    Ok(sum)
}

/// Programs that executed others: their memory was gone before it could be read.
fn replaced(tree: &Tree, process: Option<usize>) -> Option<String> {
    let chosen = tree.processes().enumerate().filter(|(index, _)| {
        let number = index + 1;
        process.is_none_or(|wanted| wanted == number)
    });
    let names: Vec<String> = chosen
        .flat_map(|(_, one)| one.earlier.iter().map(|program| (one.pid, program)))
        .map(|(pid, program)| format!("{} (process {pid})", program.shown()))
        .collect();
    let more = names.len().saturating_sub(REPLACED_MAX);
    let rest = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let shown = names[..names.len() - more].join(", ");
    let line =
        format!("became other programs by exec, and their blocks are not shown: {shown}{rest}");
    (!names.is_empty()).then_some(line)
}

fn unseen(process: Option<usize>, count: usize) -> Error {
    match process {
        Some(number) if !(1..=count).contains(&number) => {
            usage!("there was no process {number}: {count} ran; without --process they are listed")
        }
        Some(number) => failed!(
            "the end of process {number} was not seen: it was killed, still runs, or uses another allocator"
        ),
        None => failed!("the program's end was not seen: it was killed, or uses another allocator"),
    }
}

fn run(arguments: &Arguments) -> Result<Run> {
    let allocator = Allocator::ours(&Places::find()?)?;
    let (name, words) = arguments
        .subject
        .split_first()
        .ok_or_else(|| usage!("no program"))?;
    let executable = preloadable(name)?;
    let mut environment = environment(&allocator)?;
    environment.retain(|(name, _)| name != "HAKMEM_SAMPLE_BYTES");
    prove(&executable, words, &environment, &allocator)?;
    let every = arguments.every.to_string();
    environment.push(("HAKMEM_SAMPLE_BYTES".into(), every.into()));
    let request = request(&executable.path, &arguments.subject, environment, true)?;
    signals::hold();
    let running = Running::start(request)?;
    signals::pass_on_to(running.pid);
    running.wait()
}

fn report(arguments: &Arguments, snapshot: &Snapshot, to_save: Option<Planned>) -> Result<()> {
    let saved = to_save.map_or(Ok(()), |file| file.write(snapshot.to_json()?));
    if arguments.json {
        print_json(snapshot)?;
    } else {
        show(&text(snapshot, arguments, terminal()));
        show(&notes(&snapshot.notes));
    }
    saved
}

fn text(snapshot: &Snapshot, arguments: &Arguments, form: Form) -> String {
    let mut lines = vec![form.strong(&snapshot.title), String::new()];
    let missing: Vec<String> = snapshot
        .part
        .iter()
        .cloned()
        .chain(snapshot.limits())
        .collect();
    if !missing.is_empty() {
        lines.extend(missing);
        lines.push(String::new());
    }
    if !snapshot.processes.is_empty() {
        lines.push(processes(&snapshot.processes, form));
    }
    let mut sites = snapshot.sorted(View::Live);
    let is_any_live = !sites.is_empty();
    sites.retain(|site| site.oldest_s >= arguments.older);
    let hidden: Vec<&Site> = if arguments.all {
        Vec::new()
    } else {
        let (hidden, shown) = sites.into_iter().partition(|site| site.known.is_some());
        sites = shown;
        hidden
    };
    if sites.is_empty() {
        lines.push(if snapshot.samples_taken == 0 && snapshot.every != 0 {
            "no allocation was sampled".into()
        } else if snapshot.samples_taken == 0 {
            "no allocation was sampled: start it with HAKMEM_SAMPLE_BYTES=524288, or see 'hakmem profile'"
                .into()
        } else if hidden.is_empty() && is_any_live {
            format!("no block that is still allocated is older than {}", age(arguments.older))
        } else if hidden.is_empty() {
            format!("none of {} samples is still allocated", snapshot.samples_taken)
        } else {
            "nothing of the program's own is still allocated".into()
        });
        lines.extend(not_shown(&hidden, form));
        return lines.join("\n") + "\n";
    }
    let sites = grouped(&sites, arguments.by, &arguments.folded);
    let sites = sorted(&sites, View::Live);
    lines.push(table(snapshot, &sites, &arguments.folded).render(form));
    if sites.len() > ROWS {
        let more = sites.len() - ROWS;
        lines.push(format!("and {}", counted(more as u64, "more place")));
    }
    let total = snapshot.total(View::Live);
    let about = match (snapshot.every, snapshot.samples_dropped) {
        (1, 0) => "",
        (1, _) => "at least ",
        _ => "about ",
    };
    lines.push(format!(
        "\n{} in {about}{:.0} blocks are still allocated",
        bytes(total.bytes as u64),
        total.blocks
    ));
    lines.extend(not_shown(&hidden, form));
    lines.join("\n") + "\n"
}

fn table(snapshot: &Snapshot, sites: &[&Site], folded: &Folded) -> Table {
    let mut table = Table::default();
    table.number_column("bytes", 0);
    table.number_column("", 2);
    table.number_column("blocks", 1);
    table.number_column("oldest", 0);
    table.number_column("newest", 3);
    table.text_column("allocated by", 0);
    let shown = &sites[..sites.len().min(ROWS)];
    let stacks: Vec<&[String]> = shown.iter().map(|site| site.frames.as_slice()).collect();
    for (site, place) in shown.iter().zip(folded.places(&stacks)) {
        table.row(vec![
            Cell::new(bytes(site.live.bytes as u64)),
            Cell::toned(snapshot.off(site.live.bytes, site.live_off), Tone::Faint),
            Cell::new(format!("{:.0}", site.live.blocks)),
            Cell::new(age(site.oldest_s)),
            Cell::new(age(site.newest_s)),
            Cell::fitting(place),
        ]);
    }
    table
}

/// "not shown: 71.0 KiB in 1 block: libstdc++'s memory for exceptions; --all shows it"
fn not_shown(hidden: &[&Site], form: Form) -> Option<String> {
    let mut names: Vec<&str> = hidden
        .iter()
        .filter_map(|site| site.known.as_deref())
        .collect();
    names.sort_unstable();
    names.dedup();
    let mut sums = Sums::default();
    hidden.iter().for_each(|site| sums.add(&site.live));
    let blocks = if sums.blocks < 1.5 { "block" } else { "blocks" };
    let line = format!(
        "of that not shown, as every such program keeps it until its end: {} in {:.0} {blocks} \
         ({}); --all shows it",
        bytes(sums.bytes as u64),
        sums.blocks,
        names.join(", ")
    );
    (!hidden.is_empty()).then(|| form.toned(&line, Tone::Faint))
}

/// The processes that left most, in the order of their starts.
fn processes(parts: &[Part], form: Form) -> String {
    let left = |part: &Part| part.live.map_or(-1.0, |live| live.bytes);
    let mut largest: Vec<&Part> = parts.iter().collect();
    largest.sort_by(|a, b| left(b).total_cmp(&left(a)));
    let others = largest.split_off(largest.len().min(PROCESSES_MAX));
    largest.sort_by_key(|part| part.process);
    let mut table = Table::default();
    table.number_column("process", 0);
    table.number_column("id", 0);
    table.number_column("bytes", 0);
    table.number_column("blocks", 0);
    table.text_column("program", 0);
    let mut sum = Sums::default();
    parts
        .iter()
        .filter_map(|part| part.live.as_ref())
        .for_each(|live| sum.add(live));
    for part in largest {
        let cells = match &part.live {
            Some(live) => [bytes(live.bytes as u64), format!("{:.0}", live.blocks)],
            None => ["not seen".into(), String::new()],
        };
        let [size, blocks] = cells.map(Cell::new);
        table.row(vec![
            Cell::new(part.process.to_string()),
            Cell::new(part.pid.to_string()),
            size,
            blocks,
            Cell::new(trust::file_name(Path::new(&part.program))),
        ]);
    }
    table.row(vec![
        Cell::new("all"),
        Cell::new(String::new()),
        Cell::new(bytes(sum.bytes as u64)),
        Cell::new(format!("{:.0}", sum.blocks)),
        Cell::new(String::new()),
    ]);
    let mut text = table.render(form);
    if !others.is_empty() {
        let bytes_of_others: f64 = others.iter().map(|part| left(part).max(0.0)).sum();
        text += &format!(
            "\nand {} with {}; --json lists all",
            counted(others.len() as u64, "more process"),
            bytes(bytes_of_others as u64)
        );
    }
    if parts.iter().any(|part| part.live.is_none()) {
        text += "\nnot seen: killed, still running, or uses another allocator";
    }
    text + "\n\nthe sum of all; --process NUMBER shows one alone. What a process had when it \
            forked counts in both.\n"
}
