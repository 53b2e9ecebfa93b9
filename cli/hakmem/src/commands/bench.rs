//! `hakmem bench`: the project's own workloads with all allocators.

use crate::numbers::RUNS_RANGE;
use crate::output::{Output, all_written, keep_apart, show};
use crate::progress::Progress;
use crate::say;
use crate::start::Sample;
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::{Allocator, Catalogue, OURS, is_ours};
use hakmem_lab::campaign::{self, Campaign, Outcome};
use hakmem_lab::declared::{self, Selection, Set};
use hakmem_lab::document::{Document, FORMAT, Settings};
use hakmem_lab::error::Result;
use hakmem_lab::meter::LinuxMeter;
use hakmem_lab::places::Places;
use hakmem_lab::render::MINIMAL;
use hakmem_lab::whole_file::Planned;
use hakmem_lab::workload::Workload;
use hakmem_lab::{failed, history, interrupt, machine, usage};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

const RUNS: u32 = 10;
const QUICK_RUNS: u32 = 2;
/// Resident memory differs little from run to run, and a run takes 20 seconds or a minute.
const LONG_RUNS: u32 = 3;
/// None of our workloads comes near this.
const TIMEOUT_S: u64 = 180;

const EXAMPLES: &str = "\
Examples:
  hakmem bench                                  everything; about an hour on two cores
  hakmem bench -w 'larson*' -n 20               some workloads: by name, program or group
  hakmem bench -a hakmem,mimalloc3,glibc        some allocators
  hakmem bench -a hakmem,hakmem+HAKMEM_DECAY_MS=0,other=/path/lib.so
  hakmem bench --real                           real programs instead of our own
  hakmem bench --after-peak                     what stays resident after a peak
  hakmem bench --day                            a service's day: resident divided by live memory
  hakmem bench --features                       what each feature costs and gains
  hakmem bench --quick                          does it all work? small inputs, no figures
  hakmem bench --resume FILE                    after Ctrl-C: nothing finished is lost
  hakmem bench --check                          has anything become worse since the last result?
  hakmem bench --after-peak --check=release     and since the last result with that label?

docs/measuring.md has the checklist. Exit code: 0 done, even if another allocator was refused on a
workload, as the table shows; 1 hakmem was refused, nothing was measured, the command was stopped,
or a result is worse; 2 wrong usage.";

/// Run the project's workloads under all allocators, and keep the result
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Allocators: names from 'hakmem peers list', or NAME=LIBRARY, each with +SETTING=VALUE
    #[arg(
        short,
        long,
        value_name = "NAME,...",
        value_delimiter = ',',
        conflicts_with = "resume"
    )]
    allocators: Vec<String>,
    /// Name, program or group of workloads, with * and ?; may be given several times
    #[arg(short, long, value_name = "PATTERN", conflicts_with = "resume")]
    workloads: Vec<String>,
    /// Runs of each workload (default: 10, with --after-peak and --day 3, with --quick 2)
    #[arg(short = 'n', long, value_parser = clap::value_parser!(u32).range(RUNS_RANGE), conflicts_with = "resume")]
    runs: Option<u32>,
    /// Real programs (bench/real) instead of our own
    #[arg(long, conflicts_with = "resume")]
    real: bool,
    /// Compare the lowest processor time of the runs, not the median time; implied by --real
    #[arg(long, conflicts_with = "resume")]
    least: bool,
    /// Services that free most of their memory (bench/after_peak): what stays resident, over time
    #[arg(long, conflicts_with_all = ["real", "features", "resume"])]
    after_peak: bool,
    /// A service's day in minutes (bench/day): resident memory divided by live memory
    #[arg(long, conflicts_with_all = ["real", "after_peak", "features", "resume"])]
    day: bool,
    /// hakmem alone: each feature switched on in mode minimal, and toggled in the default mode
    #[arg(long, conflicts_with_all = ["allocators", "resume"])]
    features: bool,
    /// Small inputs and few runs, in under three minutes
    #[arg(long, conflicts_with = "resume")]
    quick: bool,
    /// Compare hakmem with the last result of this machine, or the last one with this label
    #[arg(long, value_name = "LABEL", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    check: Option<String>,
    /// Continue a measurement that was stopped
    #[arg(long, value_name = "FILE")]
    resume: Option<PathBuf>,
    /// A word to add to the result file's name
    #[arg(
        long,
        value_name = "WORD",
        default_value = "",
        conflicts_with = "resume"
    )]
    label: String,
    /// The result file (default: bench/results/MACHINE/DATE-COMMIT.json; with --quick in build/)
    #[arg(long, value_name = "FILE", conflicts_with = "resume")]
    export: Option<PathBuf>,
    /// Print what would be run
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    output: Output,
}

pub fn execute(arguments: Arguments) -> Result<ExitCode> {
    let files = [arguments.export.as_ref(), arguments.output.html.as_ref()];
    keep_apart(&files, arguments.resume.as_slice())?;
    let places = Places::find()?;
    let root = places.need_root()?.to_path_buf();
    let resumed = arguments
        .resume
        .as_deref()
        .map(Document::load)
        .transpose()?;
    let settings = match &resumed {
        Some(document) => document.settings.clone(),
        None => settings(&arguments)?,
    };
    let selection = Selection {
        set: set_of(&settings),
        quick: settings.quick,
    };
    let timeout = Duration::from_secs(settings.timeout_s);
    let mut workloads = declared::load(&root, selection, &settings.workloads, timeout)?;
    let mut notes = make_ready(&root, selection.set, &mut workloads)?;
    let catalogue = Catalogue::load(&places)?;
    let allocators = catalogue.choose(&settings.allocators)?;
    if arguments.list {
        print_plan(&workloads, &allocators);
        return Ok(ExitCode::SUCCESS);
    }
    let (document, path, allocators) = match resumed {
        Some(document) => {
            let path = arguments.resume.clone().unwrap_or_default();
            let allocators = same_as_before(&document, &workloads, allocators, &places)?;
            (document, path, allocators)
        }
        None => {
            let path = match &arguments.export {
                Some(path) => path.clone(),
                None => default_path(&places, &root, &arguments.label, settings.quick)?,
            };
            let allocators = with_copy_of_ours(allocators, &places)?;
            let mut document = new_document(&arguments.label, settings, &root);
            notes.extend(catalogue.left_out);
            document.notes = notes;
            campaign::describe(&mut document, &workloads, &allocators, &|text| {
                places.relative(text)
            })?;
            (document, path, allocators)
        }
    };
    let before = arguments
        .check
        .as_deref()
        .map(|label| history::last(&document, &path, label))
        .transpose()?;
    measure(
        &arguments, document, workloads, allocators, &path, &places, before,
    )
}

fn settings(arguments: &Arguments) -> Result<Settings> {
    let allocators = if arguments.features {
        feature_allocators()?
    } else {
        arguments.allocators.clone()
    };
    Ok(Settings {
        runs: arguments.runs.unwrap_or(match arguments {
            Arguments { quick: true, .. } => QUICK_RUNS,
            Arguments {
                after_peak: true, ..
            }
            | Arguments { day: true, .. } => LONG_RUNS,
            _ => RUNS,
        }),
        runs_max: 0,
        quick: arguments.quick,
        real: arguments.real,
        after_peak: arguments.after_peak,
        day: arguments.day,
        least: arguments.real || arguments.least,
        timeout_s: TIMEOUT_S,
        allocators,
        workloads: arguments.workloads.clone(),
        baseline: String::new(),
    })
}

/// hakmem, hakmem without features, and both with one feature more or less.
fn feature_allocators() -> Result<Vec<String>> {
    let sample = Sample::start(None)?;
    let opened = sample.open()?;
    let settings = opened.settings()?;
    let mut names = vec![OURS.to_string(), MINIMAL.to_string()];
    for feature in opened.features()? {
        let Some(setting) = settings.iter().find(|one| one.name == feature.name) else {
            continue;
        };
        let variable = format!("HAKMEM_{}", feature.name.to_uppercase());
        let set = |value| format!("{variable}={}", setting.text(value));
        let is_on = setting.value == feature.on;
        names.push(format!("{MINIMAL}+{}", set(feature.on)));
        let other = if is_on { feature.off } else { feature.on };
        names.push(format!("{OURS}+{}", set(other)));
    }
    Ok(names)
}

fn set_of(settings: &Settings) -> Set {
    match settings {
        Settings {
            after_peak: true, ..
        } => Set::AfterPeak,
        Settings { day: true, .. } => Set::Day,
        Settings { real: true, .. } => Set::Real,
        _ => Set::Own,
    }
}

fn new_document(label: &str, settings: Settings, root: &Path) -> Document {
    Document {
        format: FORMAT,
        label: label.into(),
        commit: machine::commit(root).unwrap_or("nocommit".into()),
        started: machine::timestamp(),
        settings,
        machine: machine::describe(),
        ..Document::default()
    }
}

fn measure(
    arguments: &Arguments,
    document: Document,
    workloads: Vec<Workload>,
    allocators: Vec<Allocator>,
    path: &Path,
    places: &Places,
    before: Option<history::Past>,
) -> Result<ExitCode> {
    let page = arguments.output.page(places)?;
    Planned::in_new_folders(path)?;
    interrupt::install();
    let mut progress = Progress::new(Some(path.to_path_buf()), workloads.len());
    let relative = places.clone();
    let mut meter = LinuxMeter::new(move |text| relative.relative(text));
    let mut campaign = Campaign::new(document, workloads, allocators, &mut meter, &mut progress);
    let outcome = campaign.run();
    let document = campaign.document;
    progress.finish();
    // Results so far are on disk when it is stopped.
    say::keep();
    let stored = document.store(path);
    let shown = places.relative(&path.shown());
    let paged = arguments.output.write_page(page, &shown, &document);
    arguments.output.print(&document)?;
    all_written([stored, paged])?;
    eprintln!("result: {shown}");
    if outcome? == Outcome::Interrupted {
        return Err(failed!(
            "stopped; go on with: hakmem bench --resume {shown}"
        ));
    }
    let mut is_good = has_what_counts(&document);
    if let Some(before) = before {
        let changes = history::compare(&before.document, &document);
        let gaps = history::gaps(&before.document, &document);
        let text = history::text(&changes, &gaps, &places.relative(&before.path.shown()));
        show(&format!("\n{text}"));
        is_good &= !changes.iter().any(history::Change::is_worse);
    }
    Ok(if is_good {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Was hakmem refused nowhere, and does every workload have a figure? Another allocator that crashes or returns NULL is a
/// result; the next campaign need not wait for its repair.
fn has_what_counts(document: &Document) -> bool {
    !document.refused.iter().any(|one| is_ours(&one.allocator))
        && document
            .variants
            .keys()
            .all(|variant| document.samples.iter().any(|one| one.variant == *variant))
}

fn print_plan(workloads: &[Workload], allocators: &[Allocator]) {
    let names: Vec<&str> = allocators.iter().map(|one| one.name.as_str()).collect();
    show(&format!("allocators: {}\n", names.join(", ")));
    for one in workloads {
        show(&format!(
            "{:<28} {:<14} {}\n",
            one.name, one.group, one.about
        ));
    }
}

/// Our own programs must have been built. Real programs that are not installed are left out with a note; the inputs of the
/// others are made.
fn make_ready(root: &Path, set: Set, workloads: &mut Vec<Workload>) -> Result<Vec<String>> {
    let missing: BTreeSet<String> = workloads
        .iter()
        .filter_map(Workload::missing)
        .map(|path| path.shown())
        .collect();
    if set == Set::Own {
        return match missing.first() {
            None => Ok(Vec::new()),
            Some(program) => Err(usage!("{program} is missing: run make")),
        };
    }
    workloads.retain(|one| one.missing().is_none());
    if workloads.is_empty() {
        return Err(usage!(
            "none of the programs is installed: tools/setup bench installs them"
        ));
    }
    if set == Set::Real {
        make_inputs(root)?;
    }
    Ok(missing
        .into_iter()
        .map(|program| {
            format!("{program} is not installed and left out (tools/setup bench installs it)")
        })
        .collect())
}

fn make_inputs(root: &Path) -> Result<()> {
    let script = root.join("bench/real/make_inputs.py");
    let done = Command::new(&script)
        .output()
        .map_err(|error| failed!("{}: {error}", script.shown()))?;
    if !done.status.success() {
        let text = String::from_utf8_lossy(&done.stderr);
        let last = text.trim().lines().next_back().unwrap_or("no message");
        return Err(failed!("the inputs cannot be made: {last}"));
    }
    Ok(())
}

/// Quick runs are no results, so they stay out of the committed folder.
fn default_path(places: &Places, root: &Path, label: &str, quick: bool) -> Result<PathBuf> {
    let folder = if quick {
        root.join("build/bench/quick")
    } else {
        places.results()?
    };
    let commit = machine::commit(root).unwrap_or("nocommit".into());
    let label = if label.is_empty() {
        String::new()
    } else {
        format!("-{label}")
    };
    let name = format!("{}-{commit}{label}", machine::date());
    let mut path = folder.join(format!("{name}.json"));
    let mut number = 2;
    while path.exists() && !quick {
        path = folder.join(format!("{name}.{number}.json"));
        number += 1;
    }
    Ok(path)
}

/// The path for a copy of our library with this content.
fn copy_path(places: &Places, sha256: &str) -> Result<PathBuf> {
    let folder = places.need_root()?.join("build/bench/snapshot");
    Ok(folder.join(format!(
        "libhakmem-{}.so",
        sha256.get(..16).unwrap_or(sha256)
    )))
}

/// Copies our library as it is now: a build during the run must not change it.
fn with_copy_of_ours(allocators: Vec<Allocator>, places: &Places) -> Result<Vec<Allocator>> {
    allocators
        .into_iter()
        .map(|one| {
            let Some(library) = one.library.clone().filter(|_| one.is_ours()) else {
                return Ok(one);
            };
            let copy = copy_path(places, &one.sha256)?;
            let explain = |error: std::io::Error| failed!("cannot write {}: {error}", copy.shown());
            if !hakmem_lab::allocator::file_sha256(&copy).is_ok_and(|found| found == one.sha256) {
                std::fs::create_dir_all(copy.parent().unwrap_or(Path::new("/")))
                    .map_err(explain)?;
                std::fs::copy(&library, &copy).map_err(explain)?;
            }
            Ok(Allocator {
                library: Some(copy),
                shown_library: Some(built(places, library)),
                ..one
            })
        })
        .collect()
}

/// The library's path without its version, so that readers can repeat a run.
fn built(places: &Places, library: PathBuf) -> PathBuf {
    let plain = places.root().map(|root| root.join("build/libhakmem.so"));
    plain.filter(|path| path.exists()).unwrap_or(library)
}

/// To continue: the same workloads and allocators, and our library as it was.
fn same_as_before(
    document: &Document,
    workloads: &[Workload],
    allocators: Vec<Allocator>,
    places: &Places,
) -> Result<Vec<Allocator>> {
    let is_same = workloads
        .iter()
        .map(|one| &one.name)
        .eq(document.variants.keys())
        && allocators
            .iter()
            .map(|one| &one.name)
            .eq(document.allocators.keys());
    if !is_same {
        return Err(usage!(
            "the workloads or allocators are not those that the file was measured with"
        ));
    }
    let mut same = Vec::new();
    for one in allocators {
        let recorded = &document.allocators[&one.name].sha256;
        if !one.is_ours() && one.sha256 != *recorded {
            return Err(usage!(
                "{} is not the library that the file was measured with",
                one.name
            ));
        }
        if one.is_ours() {
            let copy = copy_path(places, recorded)?;
            if !copy.is_file() {
                return Err(usage!(
                    "{} is missing: the file was measured with this library",
                    copy.shown()
                ));
            }
            same.push(Allocator {
                library: Some(copy),
                sha256: recorded.clone(),
                ..one
            });
        } else {
            same.push(one);
        }
    }
    Ok(same)
}
