//! `hakmem report`: the tables of a result made again, or results and traces as one page.

use crate::output::Output;
use clap::Args;
use hakmem_lab::document::Document;
use hakmem_lab::error::Result;
use hakmem_lab::places::Places;
use hakmem_lab::{failed, usage};
use hakmem_trace::analysis::{analyse, choose_process};
use hakmem_trace::format;
use hakmem_trace::reader::Reader;
use hakmem_trace::replay::{KIND, ReplayDocument};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem report result.json                      # of hakmem bench, hakmem compare --export
  hakmem report result.json --csv > samples.csv
  hakmem report result.json --html result.html
  hakmem report bench/results/ replay.json trace.hkt";

/// Show results again: one as tables; several, replays and traces as a page with plots
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Results, replays, traces, or folders of them
    #[arg(required = true, value_name = "FILE|FOLDER")]
    sources: Vec<PathBuf>,
    /// Write one HTML page, which needs no network [default: report.html, but for one result]
    #[arg(long, value_name = "PAGE", conflicts_with = "form")]
    html: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

const PLACE: &str = "/*DATA*/";

pub fn execute(arguments: Arguments) -> Result<ExitCode> {
    if let ([source], None) = (&arguments.sources[..], &arguments.html) {
        if !source.is_dir() && !is_for_page(source) {
            arguments.output.print(&Document::load(source)?);
            return Ok(ExitCode::SUCCESS);
        }
    }
    let output = arguments.html.unwrap_or_else(|| "report.html".into());
    let template = Places::find()?.report_page()?;
    let page = fs::read_to_string(&template)
        .map_err(|error| failed!("cannot read {}: {error}", template.display()))?;
    let mut parts = Vec::new();
    for source in &arguments.sources {
        if source.is_dir() {
            for file in files_below(source)? {
                parts.extend(part(&file).unwrap_or_else(|error| {
                    eprintln!("hakmem: left out: {error}");
                    None
                }));
            }
        } else {
            let found = part(source)?
                .ok_or_else(|| usage!("{} is neither a result nor a trace", source.display()))?;
            parts.push(found);
        }
    }
    if parts.is_empty() {
        return Err(usage!(
            "there are no results and no traces in what was given"
        ));
    }
    // In a script element only `</` could end the data.
    let data = json!({ "parts": parts }).to_string().replace("</", "<\\/");
    let page = page.replacen(PLACE, &data, 1);
    fs::write(&output, page)
        .map_err(|error| failed!("cannot write {}: {error}", output.display()))?;
    eprintln!("hakmem: {} parts in {}", parts.len(), output.display());
    Ok(ExitCode::SUCCESS)
}

/// Traces and replays, which have no tables here.
fn is_for_page(path: &Path) -> bool {
    is_trace(path)
        || fs::read_to_string(path)
            .ok()
            .and_then(|text| serde_json::from_str::<Value>(&text).ok())
            .is_some_and(|value| value["kind"] == KIND)
}

fn is_trace(path: &Path) -> bool {
    let mut start = [0; format::MAGIC.len()];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok())
        && start == format::MAGIC
}

/// Results and traces in a folder and those in it, oldest name first.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = |error| usage!("cannot read {}: {error}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let path = entry.map_err(cannot)?.path();
        if path.is_dir() {
            files.extend(files_below(&path)?);
        } else if path
            .extension()
            .is_some_and(|end| end == "json" || end == "hkt")
        {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// What one file has to show; None when it is something else.
fn part(path: &Path) -> Result<Option<Value>> {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    if is_trace(path) {
        return trace(path, &name).map(Some);
    }
    let text = fs::read_to_string(path)
        .map_err(|error| usage!("cannot read {}: {error}", path.display()))?;
    let Ok(value) = serde_json::from_str::<Value>(&text) else {
        return Ok(None);
    };
    if value["kind"] == KIND {
        let document: ReplayDocument = serde_json::from_value(value).map_err(|error| {
            failed!(
                "{} is no replay that this hakmem understands: {error}",
                path.display()
            )
        })?;
        return Ok(Some(
            json!({ "kind": KIND, "name": name, "document": document }),
        ));
    }
    if value["samples"].is_array() {
        let document = Document::load(path)?;
        return Ok(Some(
            json!({ "kind": "comparison", "name": name, "document": document }),
        ));
    }
    Ok(None)
}

fn trace(path: &Path, name: &str) -> Result<Value> {
    let reader = Reader::open(path)?;
    if let Some(warning) = &reader.warning {
        eprintln!("hakmem: warning: {warning}");
    }
    let analysis = analyse(&reader, choose_process(&reader, None)?)?;
    Ok(json!({
        "kind": "trace", "name": name, "command": reader.beginning.command, "analysis": analysis,
    }))
}
