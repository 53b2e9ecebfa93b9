//! `hakmem diff`: what has grown between two moments.

use super::stats::bytes;
use crate::frames;
use crate::output::{show, terminal};
use crate::profile::{ROWS, Site, Snapshot};
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::document::refuse_cut;
use hakmem_lab::error::Result;
use hakmem_lab::render::{Cell, Form, Table};
use hakmem_lab::{input, usage};
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem leaks 4711 --save one.json; sleep 600; hakmem leaks 4711 --save two.json
  hakmem diff one.json two.json
  hakmem stats 4711 --json > one.json; sleep 600; hakmem stats 4711 --json > two.json
  hakmem diff one.json two.json

Two profiles (profile --save, leaks --save) are compared by call stack, two of 'stats --json'
figure by figure.";

/// Show what has grown between two saved profiles, or two outputs of stats
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The earlier one
    before: PathBuf,
    /// The later one
    after: PathBuf,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let (before, after) = (read(&arguments.before)?, read(&arguments.after)?);
    let text = match (Snapshot::parse(&before), Snapshot::parse(&after)) {
        (Some(before), Some(after)) => profiles(&before, &after, terminal()),
        (None, None) => figures(
            &json(&before, &arguments.before)?,
            &json(&after, &arguments.after)?,
            terminal(),
        ),
        _ => {
            return Err(usage!(
                "only one of the two is a profile: both have to be of the same kind"
            ));
        }
    };
    show(&text);
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<String> {
    let text = input::read_to_string(path)
        .map_err(|error| usage!("cannot read {}: {error}", path.shown()))?;
    refuse_cut(path, text.as_bytes())?;
    Ok(text)
}

fn json(text: &str, path: &Path) -> Result<Value> {
    let value: Option<Value> = serde_json::from_str(text).ok();
    value.filter(Value::is_object).ok_or_else(|| {
        usage!(
            "{} is neither a profile (profile --save) nor an output of 'stats --json'",
            path.shown()
        )
    })
}

pub fn signed(difference: f64) -> String {
    let sign = if difference < 0.0 { "-" } else { "+" };
    format!("{sign}{}", bytes(difference.abs() as u64))
}

pub fn profiles(before: &Snapshot, after: &Snapshot, form: Form) -> String {
    let limits = limits(before, after);
    let nothing = Site::default();
    let known: HashMap<&[String], &Site> = before
        .sites
        .iter()
        .map(|site| (site.frames.as_slice(), site))
        .collect();
    let mut rows: Vec<(f64, &Site, &Site)> = after
        .sites
        .iter()
        .map(|site| {
            (
                known
                    .get(site.frames.as_slice())
                    .copied()
                    .unwrap_or(&nothing),
                site,
            )
        })
        .map(|(old, new)| (new.live.bytes - old.live.bytes, old, new))
        .collect();
    let there: HashSet<&[String]> = after
        .sites
        .iter()
        .map(|new| new.frames.as_slice())
        .collect();
    let gone = before
        .sites
        .iter()
        .filter(|old| !there.contains(old.frames.as_slice()));
    rows.extend(gone.map(|old| (-old.live.bytes, old, old)));
    rows.retain(|(difference, ..)| *difference != 0.0);
    rows.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
    let total: f64 = rows.iter().map(|(difference, ..)| difference).sum();
    let mut table = Table::default();
    table.number_column("live bytes", 0);
    table.number_column("noise", 2);
    table.number_column("blocks", 1);
    table.text_column("allocated by", 0);
    for (difference, old, new) in rows.iter().take(ROWS) {
        let noise = (old.live_off.powi(2) + new.live_off.powi(2)).sqrt();
        let blocks = if *difference == -old.live.bytes {
            -old.live.blocks
        } else {
            new.live.blocks - old.live.blocks
        };
        table.row(vec![
            Cell::new(signed(*difference)),
            Cell::new(if noise > 0.0 {
                format!("± {}", bytes(noise as u64))
            } else if limits.is_empty() {
                "exact".into()
            } else {
                "not whole".into()
            }),
            Cell::new(format!("{blocks:+.0}")),
            Cell::fitting(frames::place(&new.frames)),
        ]);
    }
    if rows.is_empty() {
        let among = if limits.is_empty() {
            ""
        } else {
            " in what is known"
        };
        return format!("{limits}nothing has changed{among}\n");
    }
    let more = rows.len().saturating_sub(ROWS);
    let more = if more > 0 {
        format!("and {more} places more\n")
    } else {
        String::new()
    };
    format!(
        "{limits}{}\n{more}\n{} in all\n",
        table.render(form),
        signed(total)
    )
}

/// What one of the two does not know.
fn limits(before: &Snapshot, after: &Snapshot) -> String {
    let mut text = String::new();
    for (which, snapshot) in [("before", before), ("after", after)] {
        for line in snapshot.part.iter().chain(&snapshot.limits()) {
            text += &format!("{which}: {line}\n");
        }
    }
    if text.is_empty() { text } else { text + "\n" }
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
        Value::Number(number) => found.push((prefix.into(), number.as_f64().unwrap_or(0.0))),
        Value::Object(fields) => {
            for (name, value) in fields {
                flatten(&below(name), value, found);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                let class = value.get("bytes").and_then(Value::as_u64);
                let name = class.map_or(index.to_string(), |bytes| format!("{bytes} B"));
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
    let old: HashMap<String, f64> = old.into_iter().collect();
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
