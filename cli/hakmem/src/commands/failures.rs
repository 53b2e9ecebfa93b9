//! `hakmem failures`: why allocations of a process or in a core dump were refused.

use crate::output::{print_json, show, terminal};
use crate::profile::notes;
use crate::refusals::{as_json, text};
use crate::target::Target;
use clap::Args;
use hakmem_lab::error::Result;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem failures 4711
  hakmem failures --core core.4711
  HAKMEM_TRACE_FAILURES=1 hakmem run -- program     a line for each, with the limit

docs/failures.md says what to do about each limit.";

/// Show refused allocations: their sizes, who asked for them, and the limit that was exhausted
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem failures [OPTIONS] PID\n       hakmem failures [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let opened = arguments.target.open()?;
    let failures = opened.failures()?;
    let mut names = opened.whole(opened.names())?;
    if arguments.json {
        print_json(&as_json(&failures, &mut names))?;
    } else {
        let form = terminal();
        let table = text(&failures, usize::MAX, &mut names, form);
        show(&format!("{}\n\n{table}", form.strong(&opened.title())));
        show(&notes(names.notes()));
    }
    Ok(ExitCode::SUCCESS)
}
