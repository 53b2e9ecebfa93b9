//! `hakmem report`: makes the tables of a result again, or shows results and traces as one page.

use crate::output::{Output, keep_apart};
use crate::page::Page;
use crate::profile::at_peak::AtPeak;
use crate::traces::{Which, choose};
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::document::{Document, refuse_cut};
use hakmem_lab::error::Result;
use hakmem_lab::places::Places;
use hakmem_lab::{input, usage};
use hakmem_trace::analysis::{analyse, processes_with_events};
use hakmem_trace::format;
use hakmem_trace::reader::Reader;
use hakmem_trace::replay::{KIND, ReplayDocument};
use serde_json::Value;
use std::cmp::Reverse;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem report result.json                      # of hakmem bench, hakmem compare --export
  hakmem report result.json --csv > samples.csv
  hakmem report result.json --html result.html
  hakmem report bench/results/ replay.json trace.hkt   # writes report.html";

/// Show saved results: a single one as tables; several, replays and traces as a page with plots
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Results, replays, traces, or folders of them
    #[arg(required = true, value_name = "FILE|FOLDER")]
    sources: Vec<PathBuf>,
    #[command(flatten)]
    output: Output,
}

pub fn execute(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { sources, output } = arguments;
    keep_apart(&[output.html.as_ref()], &sources)?;
    let mut contents = Vec::new();
    for source in &sources {
        contents.push(Content::read(source)?);
    }
    if let ([source], [Content::Other(text)], None) = (&sources[..], &contents[..], &output.html)
        && !is_replay(text)
    {
        output.print(&Document::parse(source, text)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if output.has_form() {
        return Err(usage!(
            "--markdown, --csv and --json are for a single result; several results, replays and \
             traces make a page (--html)"
        ));
    }
    let file = output.html.unwrap_or_else(|| "report.html".into());
    let mut page = Page::open(&Places::find()?, &file)?;
    for (source, content) in sources.iter().zip(&contents) {
        if let Content::Folder = content {
            for file in files_below(source)? {
                let added =
                    Content::read(&file).and_then(|content| add(&mut page, &file, &content));
                if let Err(error) = added {
                    eprintln!("hakmem: left out: {error}");
                }
            }
        } else if !add(&mut page, source, content)? {
            return Err(usage!("{} is neither a result nor a trace", source.shown()));
        }
    }
    if page.is_empty() {
        return Err(usage!("no results and no traces were found"));
    }
    page.write()?;
    Ok(ExitCode::SUCCESS)
}

/// The content of a source. It may be a pipe, so it is read only once.
enum Content {
    Folder,
    /// A trace; it is opened later, as it may be large.
    Trace,
    Other(Vec<u8>),
}

impl Content {
    fn read(path: &Path) -> Result<Content> {
        if path.is_dir() {
            return Ok(Content::Folder);
        }
        let cannot = |error| usage!("cannot read {}: {error}", path.shown());
        let mut stream = input::open_stream(path).map_err(cannot)?;
        let mut start = Vec::new();
        let length = format::MAGIC.len() as u64;
        stream
            .by_ref()
            .take(length)
            .read_to_end(&mut start)
            .map_err(cannot)?;
        if start == format::MAGIC {
            return Ok(Content::Trace);
        }
        start.extend(input::read_rest(stream).map_err(cannot)?);
        Ok(Content::Other(start))
    }
}

/// Is it a replay? Replays have no tables here.
fn is_replay(text: &[u8]) -> bool {
    serde_json::from_slice::<Value>(text).is_ok_and(|value| value["kind"] == KIND)
}

/// The results and traces in a folder and its subfolders, sorted by name.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = |error| usage!("cannot read {}: {error}", folder.shown());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let path = entry.path();
        let end = path.extension().unwrap_or_default();
        // A link to a folder may lead back, so links are not followed.
        if entry.file_type().map_err(cannot)?.is_dir() {
            files.extend(files_below(&path)?);
        } else if path.is_file() && (end == "json" || end == "hkt") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Adds a file's content to the page. False: it is of another kind.
fn add(page: &mut Page, path: &Path, content: &Content) -> Result<bool> {
    let name = path.file_name().unwrap_or_default().shown();
    let Content::Other(text) = content else {
        let reader = Reader::open(path)?;
        if let Some(warning) = &reader.warning {
            eprintln!("hakmem: warning: {warning}");
        }
        add_trace(page, &name, &reader)?;
        return Ok(true);
    };
    refuse_cut(path, text)?;
    let Ok(value) = serde_json::from_slice::<Value>(text) else {
        return Ok(false);
    };
    if value["kind"] == KIND {
        page.add_replay(&name, &ReplayDocument::from_json(path, value)?);
    } else if value["samples"].is_array() {
        page.add_comparison(&name, &Document::parse(path, text)?);
    } else {
        return Ok(false);
    }
    Ok(true)
}

/// How many processes a page shows by themselves; a build starts thousands.
const PROCESSES_MAX: usize = 10;

/// The only process; or the sum of all, and then the processes with the most events.
fn add_trace(page: &mut Page, name: &str, reader: &Reader) -> Result<()> {
    let (processes, whose) = choose(reader, Some(Which::All))?;
    let command = &reader.beginning.command;
    let mut sum = analyse(reader, processes[0])?;
    if processes.len() == 1 {
        let at_peak = AtPeak::of(reader, &sum)?.for_page();
        page.add_trace(name, command, &whose, &sum, at_peak);
        return Ok(());
    }
    for process in &processes[1..] {
        sum.add(analyse(reader, *process)?);
    }
    let left_out = processes.len().saturating_sub(PROCESSES_MAX);
    let whose = match left_out {
        0 => format!("all {} processes together", processes.len()),
        _ => format!(
            "all {} processes together; {left_out} of them have no section of their own; 'hakmem \
             trace info' lists them",
            processes.len()
        ),
    };
    page.add_trace(name, command, &whose, &sum, Value::Null);
    let mut each = processes_with_events(reader);
    each.sort_by_key(|(process, events)| (Reverse(*events), *process));
    for (process, _) in each.into_iter().take(PROCESSES_MAX) {
        let (_, whose) = choose(reader, Some(Which::One(process)))?;
        let analysis = analyse(reader, process)?;
        page.add_trace(
            &format!("{name}, process {process}"),
            command,
            &whose,
            &analysis,
            AtPeak::of(reader, &analysis)?.for_page(),
        );
    }
    Ok(())
}
