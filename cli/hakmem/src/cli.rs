//! Every command and flag, once: the parser, `--help`, man pages and completions come from here.

use crate::commands::{
    bench, compare, core, diff, explain, export, failures, generate, leaks, ledger, map, options,
    peers, profile, record, replay, report, run, stats, top, trace, tune, verify, why,
};
use crate::documents;
use crate::output::has_screen;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use hakmem_lab::render::text::in_locale;
use std::ffi::OsString;

const EXAMPLES: &str = "\
Examples:
  hakmem run -- python3 app.py            a program under hakmem, and proof that it is
  hakmem compare -- ./server --bench      under every allocator: who wins, how certainly
  hakmem verify 4711                      which allocator a process really uses
  hakmem record -- ./server               every allocation, into trace.hkt
  hakmem replay trace.hkt --all           that trace through every allocator

Documents, as docs/options.md: in share/doc/hakmem beside the installed bin, or in the sources.
Exit codes: 0 done; 1 failed, or the answer is no; 2 wrong usage. `run` and `record` end as their program does.";

const EXAMPLES_OF_HELP: &str = "\
Examples:
  hakmem help run                 as 'hakmem run --help'
  hakmem help trace top-sites
  man hakmem-run                  the same as a page, where the man pages are installed";

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
    Top(top::Arguments),
    Stats(stats::Arguments),
    Profile(profile::Arguments),
    Leaks(leaks::Arguments),
    Why(why::Arguments),
    Diff(diff::Arguments),
    Ledger(ledger::Arguments),
    Map(map::Arguments),
    Core(core::Arguments),
    Options(options::Arguments),
    Explain(explain::Arguments),
    Failures(failures::Arguments),
    Export(export::Arguments),
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

/// What was asked for; the process ends here for `--help`, and for what cannot be understood.
pub fn parse() -> Cli {
    let shown = |help: &str| in_locale(&documents::located(help));
    let mut command = documents::with_help(Cli::command(), &shown);
    if !has_screen() {
        // Where the variable `CI` is set, clap would colour for any terminal.
        command = command.color(clap::ColorChoice::Never);
    }
    let words = without_help_for_help(&command, std::env::args_os().collect());
    // The command `help` is clap's own: it is there once all is built.
    command.build();
    command = command.mut_subcommand("help", |help| help.after_help(EXAMPLES_OF_HELP));
    let matches = command.clone().get_matches_from(words);
    Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.format(&mut command).exit())
}

/// `help --help` is `help help`, and `help run --help` is `help run`: what follows `help` are names of
/// commands, and clap would look for one that is called `--help`.
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
