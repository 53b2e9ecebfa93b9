//! `hakmem snapshot`: everything that commands read from a process, in a file.

use crate::output::line;
use crate::snapshot::Snapshot;
use crate::target::Target;
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::bytes;
use hakmem_lab::whole_file::Planned;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem snapshot 4711 -o monday.hks
  hakmem doctor monday.hks                       on any machine
  hakmem why --core monday.hks                   also stats, ledger, map, profile, leaks, explain
  hakmem snapshot 4711 -o tuesday.hks; hakmem diff monday.hks tuesday.hks
  hakmem snapshot --core core.4711 -o small.hks  a core dump, small enough to send

A snapshot has the heap's metadata, the names of functions that allocate, and what the kernel says
of the process, but not the contents of the program's blocks. For other allocators, it has what
'hakmem doctor' finds.";

/// Save all that is known of a process's memory, but not its contents, in a small file
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem snapshot [OPTIONS] PID\n       hakmem snapshot [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// The file to write
    #[arg(short, long, value_name = "FILE", default_value = "snapshot.hks")]
    output: PathBuf,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let opened = arguments.target.open_any()?;
    let file = Planned::at(&arguments.output)?;
    let taken = Snapshot::take(opened)?;
    let size = bytes(taken.file.len() as u64);
    file.write(taken.file)?;
    let what = match taken.has_hakmem {
        true => format!(
            "{} of hakmem's metadata, {} names of functions",
            bytes(taken.memory_bytes),
            taken.places
        ),
        false => "what 'hakmem doctor' finds".into(),
    };
    line(&format!(
        "{}: {size}, {what}; no contents of the program's memory",
        arguments.output.shown()
    ));
    Ok(ExitCode::SUCCESS)
}
