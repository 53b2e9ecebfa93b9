//! `hakmem profile`: who allocates, in a running process or a core dump, from samples.

mod push;

use crate::frames::{By, Folded};
use crate::numbers::{self, seconds};
use crate::output::{self, all_written, print_json, show, terminal};
use crate::profile::group::grouped;
use crate::profile::look::{EVERY, look, snapshot};
use crate::profile::threads::allocating;
use crate::profile::{ROWS, Site, Snapshot, View, flame, notes, pprof, sorted};
use crate::say;
use crate::target::{Opened, Target};
use clap::Args;
use hakmem_heap::profile::Profile;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::{bytes, counted};
use hakmem_lab::render::{Cell, Form, Table, Tone};
use hakmem_lab::usage;
use push::Push;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem profile 4711                            switch sampling on for 10 seconds, and off again
  hakmem profile 4711 --seconds 60 --flamegraph heap.html --pprof heap.pb.gz
  HAKMEM_SAMPLE_BYTES=524288 hakmem run -- program     from the start; then profile shows what lives
  hakmem profile 4711 --push http://pyroscope:4040 --label service=orders
  hakmem profile 4711 --push otlp+https://collector/ --interval 60     until the process ends
  hakmem profile --core core.4711 --live

Figures are estimates from samples, one per 512 KiB unless --every says otherwise; ± is two standard
deviations. Sampling costs nothing while it is off. While it is on, it costs real programs some 2 %,
and loops that only allocate 5 to 10 %. docs/profiling.md has figures.";

const SECONDS: f64 = 10.0;

/// Show how much each call stack allocates
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem profile [OPTIONS] PID\n       hakmem profile [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// How long to sample [default: 10 if sampling is off; otherwise, existing samples are shown]
    #[arg(long, conflicts_with = "core", value_parser = seconds, allow_negative_numbers = true)]
    seconds: Option<f64>,
    /// Take one sample per this many bytes
    #[arg(long, value_name = "BYTES", default_value_t = EVERY, conflicts_with = "core", value_parser = clap::value_parser!(u64).range(numbers::EVERY))]
    every: u64,
    /// Show what is not freed yet [default if sampling was on already]
    #[arg(long, group = "view")]
    live: bool,
    /// Show what was allocated, freed or not [default if this command switches sampling on]
    #[arg(long, group = "view")]
    allocated: bool,
    /// Show what was live at the peak
    #[arg(long, group = "view")]
    peak: bool,
    /// What to group by: the table has a row for each group
    #[arg(long, value_enum, default_value = "stack")]
    by: By,
    #[command(flatten)]
    folded: Folded,
    /// Write the profile in pprof's format
    #[arg(long, value_name = "FILE")]
    pprof: Option<PathBuf>,
    /// Write a flame graph: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    flamegraph: Option<PathBuf>,
    /// Save the profile for 'hakmem diff'
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    push: Push,
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
    if arguments.by == By::Thread && arguments.peak {
        return Err(usage!(
            "the threads of the peak are not recorded: use --by thread with --allocated or --live"
        ));
    }
    let opened = arguments.target.open()?;
    let [to_pprof, to_graph, to_save] = [
        output::planned(arguments.pprof.as_ref())?,
        output::planned_page(arguments.flamegraph.as_ref())?,
        output::planned(arguments.save.as_ref())?,
    ];
    let before = opened.profile()?;
    if let (Opened::Live(process), true) = (&opened, arguments.push.is_regular()) {
        push::regularly(process, &opened.title(), arguments, before)?;
        return Ok(ExitCode::SUCCESS);
    }
    let snapshot = taken(&opened, arguments, &before)?;
    let view = match (arguments.live, arguments.allocated, arguments.peak) {
        (true, ..) => View::Live,
        (_, true, _) => View::Allocated,
        (.., true) => View::Peak,
        _ if snapshot.seconds > 0.0 => View::Allocated,
        _ => View::Live,
    };
    say::keep();
    let files = [
        to_pprof.map(|file| file.write(pprof::encode(&snapshot))),
        to_graph.map(|file| file.write(flame::draw(&snapshot, view))),
        to_save.map(|file| file.write(snapshot.to_json()?)),
        Some(arguments.push.once(&snapshot, arguments.target.pid)),
    ];
    if arguments.json {
        print_json(&snapshot)?;
    } else {
        show(&text(&snapshot, view, arguments, terminal()));
        show(&notes(&snapshot.notes));
    }
    all_written(files.into_iter().flatten())?;
    Ok(ExitCode::SUCCESS)
}

/// The samples that are there, or those of some time.
fn taken(opened: &Opened, arguments: &Arguments, before: &Profile) -> Result<Snapshot> {
    let is_on = before.every != 0 && !before.is_lent;
    let title = opened.title();
    let seconds = match (arguments.seconds, is_on, opened) {
        (_, _, Opened::Core(_) | Opened::Snapshot(_)) | (None, true, _) => None,
        (seconds, ..) => Some(seconds.unwrap_or(SECONDS)),
    };
    match (opened, seconds) {
        (Opened::Live(process), Some(seconds)) => {
            let every = if is_on { before.every } else { arguments.every };
            let looked = look(process, seconds, every, is_on)?;
            Ok(looked.snapshot(process, title, before))
        }
        _ => snapshot(opened),
    }
}

fn text(snapshot: &Snapshot, view: View, arguments: &Arguments, form: Form) -> String {
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
    lines.push(form.toned(&about, Tone::Faint));
    lines.extend(snapshot.part.clone());
    lines.extend(snapshot.limits());
    lines.push(String::new());
    if total.samples == 0 {
        lines.push(match (snapshot.samples_taken, snapshot.every) {
            (0, 0) => "no sample was taken: sampling was never on".into(),
            (0, _) => "no sample was taken: too little was allocated, if anything".into(),
            _ => format!("nothing is {}", view.name()),
        });
        return lines.join("\n") + "\n";
    }
    let sites = match (arguments.by, view) {
        (By::Thread, View::Allocated) => allocating(&snapshot.threads),
        (by, _) => grouped(&snapshot.sorted(view), by, &arguments.folded),
    };
    let sites = sorted(&sites, view);
    lines.push(table(snapshot, &sites, view, &arguments.folded).render(form));
    if sites.len() > ROWS {
        let more = sites.len() - ROWS;
        lines.push(format!("and {}", counted(more as u64, "more place")));
    }
    lines.push(format!(
        "\n{} {} in all, in about {:.0} blocks",
        bytes(total.bytes as u64),
        view.name(),
        total.blocks
    ));
    lines.join("\n") + "\n"
}

fn table(snapshot: &Snapshot, sites: &[&Site], view: View, folded: &Folded) -> Table {
    let total = snapshot.total(view);
    let mut table = Table::default();
    table.number_column(view.name(), 0);
    table.number_column("", 2);
    table.number_column("share", 1);
    table.number_column("blocks", 3);
    table.text_column("allocated by", 0);
    let shown = &sites[..sites.len().min(ROWS)];
    let stacks: Vec<&[String]> = shown.iter().map(|site| site.frames.as_slice()).collect();
    for (site, place) in shown.iter().zip(folded.places(&stacks)) {
        let sums = view.of(site);
        let off_by = if view == View::Live {
            site.live_off
        } else {
            sums.bytes_off()
        };
        table.row(vec![
            Cell::new(bytes(sums.bytes as u64)),
            Cell::toned(snapshot.off(sums.bytes, off_by), Tone::Faint),
            Cell::new(format!("{:.1} %", 100.0 * sums.bytes / total.bytes)),
            Cell::new(format!("{:.0}", sums.blocks)),
            Cell::fitting(place),
        ]);
    }
    table
}
