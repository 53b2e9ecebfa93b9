//! `hakmem generate`: man pages and shell completions, from the table that also makes the parser and `--help`. The build calls
//! it; it is hidden from users.

use crate::cli::Cli;
use crate::{documents, manual};
use clap::{Args, Command, CommandFactory};
use clap_complete::{Generator, Shell};
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::failed;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Write man pages and shell completions into a folder
#[derive(Args)]
#[command(hide = true)]
pub struct Arguments {
    folder: PathBuf,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let explain = |error| failed!("{}: {error}", arguments.folder.shown());
    fs::create_dir_all(&arguments.folder).map_err(explain)?;
    let mut command = without_hidden(&Cli::command());
    command.build();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        let mut completions = Vec::new();
        clap_complete::generate(shell, &mut command, "hakmem", &mut completions);
        let file = arguments.folder.join(shell.file_name("hakmem"));
        fs::write(file, completions).map_err(explain)?;
    }
    let placed = |help: &str| documents::placed(help, manual::DOCUMENTS);
    let mut command = without_help(documents::with_help(Cli::command(), &placed));
    command.build();
    pages(&command, &arguments.folder).map_err(explain)?;
    Ok(ExitCode::SUCCESS)
}

/// The commands that users may call: completions would offer hidden ones as well, and clap cannot take a command away.
fn without_hidden(all: &Command) -> Command {
    let shown = manual::visible(all).cloned();
    Command::new("hakmem")
        .version(env!("CARGO_PKG_VERSION"))
        .subcommands(shown)
}

/// The same commands without `help`, whose pages would repeat those of all others.
fn without_help(command: Command) -> Command {
    let command = command.disable_help_subcommand(true);
    command.mut_subcommands(without_help)
}

/// Writes a page for a command and for each command below it.
fn pages(command: &Command, folder: &Path) -> std::io::Result<()> {
    for below in manual::visible(command) {
        pages(below, folder)?;
    }
    let mut page = Vec::new();
    manual::page(command, &mut page)?;
    fs::write(folder.join(format!("{}.1", manual::name_of(command))), page)
}
