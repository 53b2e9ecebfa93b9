//! `hakmem diff`: the growth between two moments.

use crate::moment::Moment;
use crate::output::{self, show, terminal};
use crate::profile::changes::changes;
use crate::profile::{Snapshot, View, flame, notes};
use crate::say;
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_heap::snapshot::Image;
use hakmem_lab::document::refuse_cut;
use hakmem_lab::error::Result;
use hakmem_lab::render::{Cell, Form, Table};
use hakmem_lab::{input, usage};
use hakmem_trace::format::MAGIC;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem leaks 4711 --save one.json; sleep 600; hakmem leaks 4711 --save two.json
  hakmem diff one.json two.json
  hakmem stats 4711 --json > one.json; sleep 600; hakmem stats 4711 --json > two.json
  hakmem diff one.json two.json
  hakmem diff one.json two.json --flamegraph change.html   # orange: more, blue: less
  hakmem snapshot 4711 -o one.hks; sleep 600; hakmem snapshot 4711 -o two.hks
  hakmem diff one.hks two.hks

Profiles (profile --save, leaks --save) and traces (record --stacks) are compared by call stack;
snapshots by kind of memory, by size and by call stack; outputs of 'stats --json' figure by figure.
Without samples, the flame graph of two snapshots shows kinds of memory and sizes.";

/// Show what has grown between two saved profiles, traces, snapshots, or outputs of stats
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The earlier file
    before: PathBuf,
    /// The later file
    after: PathBuf,
    /// Write a flame graph of two profiles or snapshots in two colours: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    flamegraph: Option<PathBuf>,
    /// Compare what two profiles say was allocated, freed or not, instead of what is live
    #[arg(long, group = "view")]
    allocated: bool,
    /// Compare what was live at the peak of two profiles, instead of what is live
    #[arg(long, group = "view")]
    peak: bool,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let inputs = [arguments.before.clone(), arguments.after.clone()];
    output::keep_apart(&[arguments.flamegraph.as_ref()], &inputs)?;
    let to_graph = output::planned_page(arguments.flamegraph.as_ref())?;
    let (before, after) = (read(&arguments.before)?, read(&arguments.after)?);
    let mut written = Ok(());
    let view = match (arguments.allocated, arguments.peak) {
        (true, _) => View::Allocated,
        (_, true) => View::Peak,
        _ => View::Live,
    };
    let text = match (before, after) {
        (Saved::Profile(before), Saved::Profile(after)) => {
            if let Some(file) = to_graph {
                say::keep();
                written = file.write(flame::draw_changes(&before, &after, view));
            }
            changes(&before, &after, view, terminal())
        }
        (Saved::Moment(before), Saved::Moment(after)) => {
            if let Some(file) = to_graph {
                say::keep();
                written = file.write(after.flame_graph(&before, view));
            }
            let text = after.text(&before, terminal());
            text + &notes(&after.profile.notes)
        }
        (Saved::Figures(..), Saved::Figures(..)) if arguments.flamegraph.is_some() => {
            return Err(usage!(
                "a flame graph needs two profiles (profile --save, leaks --save), traces or snapshots"
            ));
        }
        (Saved::Figures(before), Saved::Figures(after)) => figures(&before, &after, terminal()),
        _ => {
            return Err(usage!(
                "the two files are of different kinds: both have to be profiles, traces, \
                 snapshots or outputs of 'stats --json'"
            ));
        }
    };
    show(&text);
    written.map(|()| ExitCode::SUCCESS)
}

/// The content of a file.
enum Saved {
    Profile(Box<Snapshot>),
    Moment(Box<Moment>),
    Figures(Value),
}

fn read(path: &Path) -> Result<Saved> {
    if is_trace(path) {
        return Snapshot::of_trace(path).map(|trace| Saved::Profile(Box::new(trace)));
    }
    if Image::is_one(path) {
        return Moment::of_snapshot(path).map(|moment| Saved::Moment(Box::new(moment)));
    }
    let text = input::read_to_string(path)
        .map_err(|error| usage!("cannot read {}: {error}", path.shown()))?;
    refuse_cut(path, text.as_bytes())?;
    match Snapshot::parse(&text) {
        Some(profile) => Ok(Saved::Profile(Box::new(profile))),
        None => json(&text, path).map(Saved::Figures),
    }
}

fn is_trace(path: &Path) -> bool {
    let mut begin = [0; MAGIC.len()];
    let file = path.is_file().then(|| File::open(path));
    file.is_some_and(|file| file.is_ok_and(|mut file| file.read_exact(&mut begin).is_ok()))
        && begin == MAGIC
}

fn json(text: &str, path: &Path) -> Result<Value> {
    let value: Option<Value> = serde_json::from_str(text).ok();
    // For another allocator's heap, `stats` has no figures except a ledger.
    let is_stats = |value: &Value| {
        ["mapped_bytes", "ledger"]
            .iter()
            .any(|key| value.get(key).is_some())
    };
    value.filter(is_stats).ok_or_else(|| {
        usage!(
            "{} is neither a profile (profile --save), nor a trace, a snapshot or an output of 'stats --json'",
            path.shown()
        )
    })
}

/// Every number in it, by its path.
fn flatten(prefix: &str, value: &Value, found: &mut Vec<(String, f64)>) {
    let below = |name: &str| {
        if prefix.is_empty() {
            name.to_string()
        } else {
            format!("{prefix}.{name}")
        }
    };
    match value {
        // This number is a part of the name.
        Value::Number(_) if prefix.ends_with(".number") => {}
        Value::Number(number) => found.push((prefix.into(), number.as_f64().unwrap_or(0.0))),
        Value::Object(fields) => {
            for (name, value) in fields {
                flatten(&below(name), value, found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let known = |key: &str| value.get(key).and_then(Value::as_u64);
                let name = match (known("bytes"), known("number")) {
                    (Some(bytes), _) => format!("{bytes} B"),
                    (None, Some(number)) => number.to_string(),
                    (None, None) => index.to_string(),
                };
                flatten(&below(&name), value, found);
            }
        }
        _ => {}
    }
}

fn figures(before: &Value, after: &Value, form: Form) -> String {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    flatten("", before, &mut old);
    flatten("", after, &mut new);
    let is_new: HashSet<&String> = new.iter().map(|(name, _)| name).collect();
    let gone = old.iter().filter(|(name, _)| !is_new.contains(name));
    let gone: Vec<(String, f64)> = gone.map(|(name, _)| (name.clone(), 0.0)).collect();
    let old: HashMap<String, f64> = old.into_iter().collect();
    new.extend(gone);
    let mut table = Table::default();
    table.text_column("figure", 0);
    table.number_column("before", 1);
    table.number_column("after", 1);
    table.number_column("difference", 0);
    let mut rows = 0;
    for (name, value) in new {
        let was = old.get(&name).copied().unwrap_or(0.0);
        if was != value {
            rows += 1;
            table.row(vec![
                Cell::new(name),
                Cell::new(format!("{was}")),
                Cell::new(format!("{value}")),
                Cell::new(format!("{:+}", value - was)),
            ]);
        }
    }
    if rows == 0 {
        return "nothing has changed\n".into();
    }
    table.render(form) + "\n"
}
