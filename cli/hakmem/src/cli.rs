//! The only table of commands and flags: the parser, `--help`, man pages and completions are made from it.

use crate::below;
use crate::commands::{
    bench, check, cold, compare, core, diff, doctor, explain, export, failures, generate, leaks,
    ledger, map, options, peers, profile, record, replay, report, run, snapshot, stats, top, trace,
    tune, verify, why,
};
use crate::documents;
use crate::output;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use hakmem_heap::shown::{ShownPath, shown};
use hakmem_lab::render::Form;
use std::ffi::OsString;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem run -- python3 app.py            run a program, with proof that it uses hakmem
  hakmem compare -- ./server --bench      which allocator is the best, and how certainly?
  hakmem verify 4711                      which allocator does a process really use?
  hakmem record -- ./server               record every allocation into trace.hkt
  hakmem replay trace.hkt --all           replay that trace under every allocator

Documents such as docs/options.md are in share/doc/hakmem beside the installed bin, or in the
sources.

Exit codes: 0 done; 1 failed, or the answer is no; 2 wrong usage. `run` and `record` return the
exit code of their program.";

const EXAMPLES_OF_HELP: &str = "\
Examples:
  hakmem help run                 as 'hakmem run --help'
  hakmem help trace top-sites
  man hakmem-run                  the same as a man page, if installed";

#[derive(Parser)]
#[command(name = "hakmem", version, about, after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

/// One variant for each command; its arguments are in the module of the same name.
#[derive(Subcommand)]
pub enum Command {
    Run(run::Arguments),
    Verify(verify::Arguments),
    Compare(compare::Arguments),
    Doctor(doctor::Arguments),
    Top(top::Arguments),
    Stats(stats::Arguments),
    Profile(profile::Arguments),
    Leaks(leaks::Arguments),
    Why(why::Arguments),
    Cold(cold::Arguments),
    Diff(diff::Arguments),
    Ledger(ledger::Arguments),
    Map(map::Arguments),
    Core(core::Arguments),
    Snapshot(snapshot::Arguments),
    Options(options::Arguments),
    Explain(explain::Arguments),
    Failures(failures::Arguments),
    Export(export::Arguments),
    Check(check::Arguments),
    Bench(bench::Arguments),
    Record(record::Arguments),
    Replay(replay::Arguments),
    Trace(trace::Arguments),
    Tune(tune::Arguments),
    #[command(hide = true)]
    ReplayInside(replay::InsideArguments),
    Report(report::Arguments),
    Peers(peers::Arguments),
    Generate(generate::Arguments),
}

/// On a narrower screen, an option's explanation is below the option.
const NARROW: usize = 60;

/// Parses the command line. If it asks for help or is invalid, prints the answer and returns the exit code.
pub fn parse() -> Result<Cli, ExitCode> {
    let width = output::terminal().width().unwrap_or(below::WRITTEN_FOR);
    let width = width.min(below::WRITTEN_FOR);
    let fitted = |help: &str| below::fitted(&documents::located(help), width);
    let mut command = documents::with_help(Cli::command(), &fitted);
    if width < NARROW {
        command = command.next_line_help(true);
    }
    let words = without_help_for_help(&command, std::env::args_os().collect());
    // clap itself adds the command `help`; it exists only after this.
    command.build();
    command = command.mut_subcommand("help", |help| help.after_help(fitted(EXAMPLES_OF_HELP)));
    let matches = command.clone().try_get_matches_from(words);
    let parsed = matches.and_then(|matches| {
        Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    });
    parsed.map_err(|error| told(&error))
}

/// Prints help or an error of clap, fitted to its output. It may repeat arguments, which may contain anything.
fn told(error: &clap::Error) -> ExitCode {
    let form = if error.use_stderr() {
        output::terminal_of_errors()
    } else {
        output::terminal()
    };
    let styled = error.render();
    let is_safe = std::env::args_os().all(|word| word.to_str() == Some(&word.shown()));
    let text = match form {
        Form::Text { colour: true, .. } if is_safe => styled.ansi().to_string(),
        _ => styled
            .to_string()
            .split_inclusive('\n')
            .map(|line| match line.strip_suffix('\n') {
                Some(line) => shown(line.as_bytes()) + "\n",
                None => shown(line.as_bytes()),
            })
            .collect(),
    };
    let text = form.shown(&text);
    if error.use_stderr() {
        eprint!("{text}");
    } else {
        print!("{text}");
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(1))
}

/// `help --help` means `help help`, and `help run --help` means `help run`. After `help`, clap expects names of commands, and
/// would look for one called `--help`.
fn without_help_for_help(command: &clap::Command, mut words: Vec<OsString>) -> Vec<OsString> {
    let mut at = command;
    let mut help = 1;
    while let Some(below) = words.get(help).and_then(|word| at.find_subcommand(word)) {
        at = below;
        help += 1;
    }
    if at.has_subcommands() && words.get(help).is_some_and(|word| word == "help") {
        let asks = |word: &OsString| word == "--help" || word == "-h";
        let mut named = words.split_off(help + 1);
        named.retain(|word| !asks(word));
        if named.is_empty() {
            named.push("help".into());
        }
        words.extend(named);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At most as wide as clap makes help: it would break a longer line again, in the middle of a paragraph.
    #[test]
    fn no_line_below_the_options_is_broken_again() {
        fn look(command: &clap::Command) {
            let text = command.get_after_help().map(ToString::to_string);
            for line in text.iter().flat_map(|text| text.lines()) {
                let name = command.get_name();
                assert!(line.chars().count() <= 100, "{name}: {line}");
            }
            command.get_subcommands().for_each(look);
        }
        look(&Cli::command());
    }

    #[test]
    fn help_has_help() {
        let helped = |line: &str| {
            let words = line.split(' ').map(OsString::from).collect();
            let words = without_help_for_help(&Cli::command(), words);
            words.join(std::ffi::OsStr::new(" ")).into_string().unwrap()
        };
        assert_eq!(helped("hakmem help --help"), "hakmem help help");
        assert_eq!(helped("hakmem help run -h"), "hakmem help run");
        assert_eq!(helped("hakmem trace help --help"), "hakmem trace help help");
        assert_eq!(helped("hakmem trace help sizes"), "hakmem trace help sizes");
        for same in [
            "hakmem",
            "hakmem run help --help",
            "hakmem run --help",
            "hakmem --help",
        ] {
            assert_eq!(helped(same), same);
        }
    }

    #[test]
    fn every_command_has_examples() {
        let mut left = vec![Cli::command()];
        while let Some(command) = left.pop() {
            let help = command.get_after_help().map(ToString::to_string);
            assert!(
                help.is_some_and(|text| text.contains("Example")),
                "{} has no example",
                command.get_name()
            );
            let below = command.get_subcommands();
            left.extend(below.filter(|one| !one.is_hide_set()).cloned());
        }
    }
}
