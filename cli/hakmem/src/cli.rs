//! Every command and flag, once: the parser, `--help`, man pages and completions come from here.

use crate::commands::{
    bench, compare, core, diff, explain, export, failures, generate, leaks, ledger, map, options,
    peers, profile, record, replay, report, run, stats, top, trace, tune, verify, why,
};
use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Examples:
  hakmem run -- python3 app.py            a program under hakmem, and proof that it is
  hakmem compare -- ./server --bench      under every allocator: who wins, how certainly
  hakmem verify 4711                      which allocator a process really uses
  hakmem record -- ./server               every allocation, into trace.hkt
  hakmem replay trace.hkt --all           that trace through every allocator

Exit codes: 0 done; 1 failed, or the answer is no; 2 wrong usage. `run` and `record` end as their program does.";

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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

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
