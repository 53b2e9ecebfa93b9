//! `hakmem`: run, verify and compare memory allocators on any program.

mod cli;
mod commands;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = cli::Cli::parse();
    match commands::execute(arguments.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("hakmem: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
