//! `hakmem generate`: man pages and shell completions, from the table that also makes the parser and
//! `--help`. The build calls it; users do not see it.

use crate::cli::Cli;
use clap::{Args, Command, CommandFactory};
use clap_complete::Shell;
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
    let explain = |error| failed!("{}: {error}", arguments.folder.display());
    fs::create_dir_all(&arguments.folder).map_err(explain)?;
    let mut command = Cli::command();
    command.build();
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "hakmem", &arguments.folder)
            .map_err(explain)?;
    }
    pages(command, &arguments.folder).map_err(explain)?;
    Ok(ExitCode::SUCCESS)
}

/// A page for a command and for each below it.
fn pages(command: Command, folder: &Path) -> std::io::Result<()> {
    if command.is_hide_set() || command.get_name() == "help" {
        return Ok(());
    }
    for below in command.get_subcommands() {
        pages(below.clone(), folder)?;
    }
    let name = command
        .get_display_name()
        .unwrap_or(command.get_name())
        .to_string();
    let mut page = Vec::new();
    clap_mangen::Man::new(command)
        .title(&name)
        .render(&mut page)?;
    fs::write(folder.join(format!("{name}.1")), page)
}
