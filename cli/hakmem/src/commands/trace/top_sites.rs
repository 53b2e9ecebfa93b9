//! `hakmem trace top-sites`: which call sites allocate most.

use crate::frames::{self, Folded};
use crate::numbers::rows;
use crate::output::{self, line, print_json};
use crate::profile::notes;
use crate::profile::of_trace::has_no_stacks;
use crate::traces::{Source, choose, open};
use clap::{Args, ValueEnum};
use hakmem_lab::error::Result;
use hakmem_lab::render::number::{bytes_and_tenths, grouped};
use hakmem_trace::analysis::{Site, analyse};
use hakmem_trace::reader::Reader;
use hakmem_trace::symbols::Symbols;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

#[derive(Args)]
pub struct TopSites {
    #[command(flatten)]
    source: Source,

    /// What to sort by
    #[arg(long, value_enum, default_value = "bytes")]
    by: By,

    /// Number of call sites
    #[arg(short = 'n', long, value_name = "NUMBER", default_value = "10", value_parser = rows)]
    count: usize,

    /// With --by live: also show what languages and the C library keep until a process ends
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    folded: Folded,

    /// Show whole stacks, with each name as the compiler wrote it
    #[arg(long)]
    full: bool,
}

/// Precedes each function of a stack.
const INDENT: &str = "    ";

#[derive(Clone, Copy, ValueEnum)]
enum By {
    /// Bytes allocated
    Bytes,
    /// Blocks allocated
    Count,
    /// Bytes live at the end
    Live,
    /// Most bytes live at one time
    Peak,
}

pub fn top_sites(question: &TopSites) -> Result<()> {
    let reader = open(&question.source.trace)?;
    let (processes, which) = choose(&reader, question.source.process)?;
    let mut sites = Vec::new();
    let mut unnamed = Vec::new();
    for process in processes {
        add_sites(&mut sites, &mut unnamed, &reader, process)?;
    }
    if sites.is_empty() && !reader.has_stacks() {
        return Err(has_no_stacks(&question.source.trace));
    }
    let key = |named: &Named| match question.by {
        By::Bytes => named.site.bytes,
        By::Count => named.site.count,
        By::Live => named.site.held.live_bytes,
        By::Peak => named.site.held.live_bytes_peak,
    };
    sites.sort_by_key(|named| Reverse(key(named)));
    if matches!(question.by, By::Live) && !question.all {
        sites.retain(|named| {
            frames::known(&named.frames, named.site.held.live_blocks as f64).is_none()
        });
    }
    sites.truncate(question.count);
    if question.source.json {
        return print_json(&sites);
    }
    line(&format!("{which}\n"));
    if sites.is_empty() {
        line("nothing was allocated");
    }
    let form = output::terminal();
    let room = form
        .width()
        .unwrap_or(usize::MAX)
        .saturating_sub(INDENT.len());
    for Named { site, frames, .. } in &sites {
        line(&format!(
            "{} in {} block{}; live at the end {} in {}; at most {}",
            bytes_and_tenths(site.bytes),
            grouped(site.count),
            if site.count == 1 { "" } else { "s" },
            bytes_and_tenths(site.held.live_bytes),
            grouped(site.held.live_blocks),
            bytes_and_tenths(site.held.live_bytes_peak)
        ));
        let frames = if question.full {
            frames.clone()
        } else {
            frames::stack(frames, &question.folded.fold, room)
        };
        let frames: Vec<String> = frames
            .iter()
            .map(|one| format!("{INDENT}{one}\n"))
            .collect();
        line(&frames.concat());
    }
    output::show(&notes(&unnamed));
    Ok(())
}

/// A call site with its names.
#[derive(Serialize)]
struct Named {
    site: Site,
    frames: Vec<String>,
    /// The processes in which it was seen.
    processes: Vec<u32>,
}

/// Adds a process's sites: stacks with the same names become one site. Returns why some frames have no names.
fn add_sites(
    all: &mut Vec<Named>,
    unnamed: &mut Vec<String>,
    reader: &Reader,
    process: u32,
) -> Result<()> {
    let mut symbols = Symbols::of(reader, process)?;
    let known: HashMap<Vec<String>, usize> = all
        .iter()
        .enumerate()
        .map(|(index, named)| (named.frames.clone(), index))
        .collect();
    for site in analyse(reader, process)?.sites {
        let mut frames = symbols.stack(site.stack);
        if frames.is_empty() {
            frames.push("(its call stack is not in the trace)".into());
        }
        match known.get(&frames) {
            Some(index) => {
                let named = &mut all[*index];
                named.site.count += site.count;
                named.site.bytes += site.bytes;
                named.site.held.add(&site.held);
                named.site.temporary_blocks += site.temporary_blocks;
                named.site.temporary_bytes += site.temporary_bytes;
                named.processes.push(process);
                named.processes.dedup();
            }
            None => all.push(Named {
                site,
                frames,
                processes: vec![process],
            }),
        }
    }
    for note in symbols.names.notes() {
        if !unnamed.contains(note) {
            unnamed.push(note.clone());
        }
    }
    Ok(())
}
