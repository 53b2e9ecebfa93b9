//! The trace that a command reads, and the chosen processes in it.

use clap::Args;
use hakmem_lab::error::Result;
use hakmem_trace::analysis;
use hakmem_trace::reader::Reader;
use std::path::{Path, PathBuf};

/// A warning for recordings.
pub const MAY_LACK: &str = "a process that ran for some milliseconds without the recorder may be \
                            missing: this user may not watch processes (perf_event_open)";

#[derive(Args)]
pub struct Source {
    /// The trace
    pub trace: PathBuf,

    /// Show this process, or the sum of all [default: the process with the most events]
    #[arg(long, value_name = "NUMBER|all", value_parser = parse_process)]
    pub process: Option<Which>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Opens a trace; a truncated one is read as far as it goes, with a warning.
pub fn open(path: &Path) -> Result<Reader> {
    let reader = Reader::open(path)?;
    if let Some(warning) = &reader.warning {
        eprintln!("hakmem: warning: {warning}");
    }
    Ok(reader)
}

/// The process to show.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    One(u32),
}

pub fn parse_process(text: &str) -> std::result::Result<Which, String> {
    if text == "all" {
        return Ok(Which::All);
    }
    text.parse()
        .map(Which::One)
        .map_err(|_| "a process's number, or 'all'; 'hakmem trace info' lists them".into())
}

/// The chosen processes, and a line that names them.
pub fn choose(reader: &Reader, wanted: Option<Which>) -> Result<(Vec<u32>, String)> {
    let with_events = analysis::processes_with_events(reader);
    let all = with_events.len();
    let one = match wanted {
        Some(Which::All) if all > 1 => {
            let numbers = with_events.into_iter().map(|(number, _)| number).collect();
            let command = reader.beginning.command.join(" ");
            return Ok((numbers, format!("all {all} processes together: {command}")));
        }
        Some(Which::One(number)) => Some(number),
        _ => None,
    };
    let number = analysis::choose_process(reader, one)?;
    let known = reader
        .processes
        .iter()
        .find(|known| known.process == number);
    let mut line = format!("process {number}");
    if let Some(known) = known {
        line += &format!(" ({}): {}", known.id, known.program);
    }
    if wanted.is_none() && all > 1 {
        line +=
            &format!("\nthe process with the most events, of {all}; --process all shows their sum");
    }
    Ok((vec![number], line))
}
