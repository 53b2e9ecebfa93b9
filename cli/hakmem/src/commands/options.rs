//! `hakmem options`: which values are allowed, which are in force, and who set them.

use crate::documents::located;
use crate::output::{print_json, show, terminal};
use crate::start::Sample;
use crate::target::Target;
use clap::Args;
use hakmem_heap::options::Setting;
use hakmem_lab::error::Result;
use hakmem_lab::render::{Cell, Form, Table, Tone};
use hakmem_lab::usage;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem options
  hakmem options --mode memory --explain
  HAKMEM_OPTIONS=decay_ms=2000 hakmem options
  hakmem options $(pidof redis-server)

Without a process, the values are those of a program that is started in this environment: a small
one is started under hakmem and asked. docs/options.md has the same table.";

/// Show the options: their values, who set them, and what they do
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem options [OPTIONS] [PID]\n       hakmem options [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Show the values in this mode, instead of the environment's
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
        None => here(arguments.mode.as_deref())?,
    };
    if arguments.json {
        print_json(&settings)?;
    } else {
        show(&text(&settings, arguments.explain, terminal()));
    }
    Ok(ExitCode::SUCCESS)
}

/// The options of a program that is started here.
fn here(mode: Option<&str>) -> Result<Vec<Setting>> {
    let ask = |mode: Option<&str>| Sample::start(mode)?.open()?.settings();
    let Some(mode) = mode else {
        return ask(None);
    };
    let settings = ask(None)?;
    let known = settings.iter().find(|setting| setting.name == "mode");
    let known = known.map_or("", |setting| &setting.unit);
    if !known.split('|').any(|name| name == mode) {
        let known = known.replace('|', ", ");
        return Err(usage!("there is no mode '{mode}', only {known}"));
    }
    ask(Some(mode))
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
