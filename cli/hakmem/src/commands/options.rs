//! `hakmem options`: what may be set, what is in force, and who set it.

use super::run::environment;
use crate::documents::located;
use crate::output::{print_json, show, terminal};
use crate::target::{Opened, Target, open_process};
use clap::Args;
use hakmem_heap::options::Setting;
use hakmem_lab::allocator::Allocator;
use hakmem_lab::error::Result;
use hakmem_lab::failed;
use hakmem_lab::places::Places;
use hakmem_lab::render::{Cell, Form, Table, Tone};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};

const EXAMPLES: &str = "\
Examples:
  hakmem options
  hakmem options --mode memory --explain
  HAKMEM_OPTIONS=decay_ms=2000 hakmem options
  hakmem options $(pidof redis-server)

Without a process: what a program that is started here, in this environment, would run with; a
small one is started under hakmem and asked. docs/options.md has the same table.";

/// Show the options: their values, who set them, and what they do
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem options [OPTIONS] [PID]\n       hakmem options [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// As with this mode instead of the environment's
    #[arg(long, conflicts_with_all = ["pid", "core"])]
    mode: Option<String>,
    /// Say what each option does
    #[arg(short, long)]
    explain: bool,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let settings = match arguments.target.open_if_named()? {
        Some(opened) => opened.settings()?,
        None => Sample::start(arguments.mode.as_deref())?
            .open()?
            .settings()?,
    };
    if arguments.json {
        print_json(&settings)?;
    } else {
        show(&text(&settings, arguments.explain, terminal()));
    }
    Ok(ExitCode::SUCCESS)
}

/// A small program under hakmem that waits to be looked into, and ends with this value.
pub struct Sample(Child);

impl Sample {
    /// In this environment, or in another mode.
    pub fn start(mode: Option<&str>) -> Result<Sample> {
        let ours = Allocator::ours(&Places::find()?)?;
        let mut command = Command::new("/bin/sh");
        // It has come up when it writes its line.
        command
            .args(["-c", "echo ready; read end"])
            .env_clear()
            .envs(environment(&ours)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if let Some(mode) = mode {
            command.env("HAKMEM_MODE", mode);
        }
        let child = command
            .spawn()
            .map_err(|error| failed!("cannot start /bin/sh: {error}"))?;
        let mut sample = Sample(child);
        let mut line = String::new();
        let output = sample.0.stdout.take();
        let read = output.map(|output| BufReader::new(output).read_line(&mut line));
        if matches!(read, Some(Ok(1..))) {
            Ok(sample)
        } else {
            Err(failed!("/bin/sh under hakmem ended at once"))
        }
    }

    pub fn open(&self) -> Result<Opened> {
        let pid = i32::try_from(self.0.id()).unwrap_or(0);
        Ok(Opened::Live(open_process(pid)?))
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

fn text(settings: &[Setting], explain: bool, form: Form) -> String {
    let mut table = Table::default();
    table.text_column("option", 0);
    table.number_column("value", 0);
    table.text_column("set by", 0);
    table.number_column("default", 1);
    table.text_column("values", 2);
    table.text_column("at run time", 3);
    for setting in settings {
        let is_set = setting.source != "default";
        let tone = if is_set { Tone::Strong } else { Tone::Plain };
        table.row(vec![
            Cell::toned(&setting.name, tone),
            Cell::toned(setting.text(setting.value), tone),
            Cell::toned(setting.source, if is_set { tone } else { Tone::Faint }),
            Cell::new(setting.text(setting.initial)),
            Cell::toned(setting.values(), Tone::Faint),
            Cell::toned(if setting.at_run_time { "yes" } else { "no" }, Tone::Faint),
        ]);
    }
    let mut text = table.render(form) + "\n";
    if explain {
        for setting in settings {
            let name = form.strong(&setting.name);
            text += &format!("\n{name}\n  {}\n", located(&setting.help));
        }
    }
    text
}
