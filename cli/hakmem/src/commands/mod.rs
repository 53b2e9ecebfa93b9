//! The commands: one module each, with its arguments and a function `execute`.

pub mod run;

use crate::cli::Command;
use hakmem_lab::error::Result;
use std::process::ExitCode;

pub fn execute(command: Command) -> Result<ExitCode> {
    match command {
        Command::Run(arguments) => run::execute(arguments),
    }
}
