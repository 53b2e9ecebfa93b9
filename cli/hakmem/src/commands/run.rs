//! `hakmem run`: a program under hakmem.

use clap::Args;
use hakmem_lab::error::Result;
use hakmem_lab::places::Places;
use hakmem_lab::usage;
use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

const EXAMPLES: &str = "\
Examples:
  hakmem run -- python3 app.py
  hakmem run -- redis-server --port 6380";

/// Run a program, and all that it starts, under hakmem
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM [ARGUMENT]...")]
    command: Vec<OsString>,
}

pub fn execute(arguments: Arguments) -> Result<ExitCode> {
    let mut preload = Places::find()?.library()?.into_os_string();
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|text| !text.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    let program = &arguments.command[0];
    let error = Command::new(program)
        .args(&arguments.command[1..])
        .env("LD_PRELOAD", preload)
        .exec();
    Err(usage!("cannot run {}: {error}", program.display()))
}
