//! `hakmem report`: the tables of an earlier result, made again.

use crate::output::Output;
use clap::Args;
use hakmem_lab::document::Document;
use hakmem_lab::error::Result;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem report result.json
  hakmem report bench/results/MACHINE/FILE.json --markdown
  hakmem report result.json --csv > samples.csv";

/// Make the tables of a result file again
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A file from 'hakmem bench' or 'hakmem compare --export'
    file: PathBuf,
    #[command(flatten)]
    output: Output,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    arguments.output.print(&Document::load(&arguments.file)?);
    Ok(ExitCode::SUCCESS)
}
