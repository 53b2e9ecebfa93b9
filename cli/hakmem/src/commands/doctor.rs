//! `hakmem doctor`: what a process's memory is, with any allocator.

use crate::doctor::{Patient, Visit, page, words};
use crate::numbers::seconds;
use crate::output::{planned_page, print_json, show, terminal};
use crate::target::NO_NUMBER;
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::meter::quoted;
use hakmem_lab::usage;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  hakmem doctor 4711
  hakmem doctor $(pidof redis-server) --seconds 60      what grows in a minute?
  hakmem doctor core.4711
  hakmem snapshot 4711 -o web.hks; hakmem doctor web.hks    doctor runs on any machine
  hakmem doctor 4711 --json
  hakmem doctor 4711 --html doctor.html                 the same as a page, with a map of the heap

The process needs no preparation and is not stopped: its heap is read from outside. Pages that are
not resident are not touched. Heaps of glibc, jemalloc and mimalloc are read without symbols; for
other allocators, mappings are shown. docs/doctor.md explains the lines.";

/// Show what the memory of any process consists of, and what to do about it
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A process ID, a core dump or a snapshot
    #[arg(value_name = "PID|FILE")]
    subject: OsString,
    /// Look again after this many seconds, and show what grew
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    seconds: Option<f64>,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Write an HTML page with a map of the heap instead; it needs no network
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let wait = arguments.seconds.map(Duration::from_secs_f64);
    let patient = match arguments.subject.shown().parse::<i32>() {
        Ok(pid) => Patient::process(pid)?,
        Err(_) if wait.is_some() => {
            return Err(usage!("a file does not grow: --seconds is for a process"));
        }
        Err(_) if !Path::new(&arguments.subject).exists() => {
            let subject = arguments.subject.shown();
            let subject = quoted(&subject);
            return Err(usage!("there is no file {subject}, and {NO_NUMBER}"));
        }
        Err(_) => Patient::file(Path::new(&arguments.subject))?,
    };
    let file = planned_page(arguments.html.as_ref())?;
    let patient = match file {
        Some(_) => patient.with_map(),
        None => patient,
    };
    let visit = Visit::pay(&patient, wait)?;
    if let Some(file) = file {
        file.write(page::draw(&visit))?;
    } else if arguments.json {
        print_json(&visit)?;
    } else {
        show(&words::text(&visit, terminal()));
    }
    Ok(ExitCode::SUCCESS)
}
