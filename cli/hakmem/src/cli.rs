//! Every command and flag, once: the parser, `--help`, man pages and completions come from here.

use crate::commands::{
    bench, compare, core, failures, generate, ledger, map, options, peers, record, replay, report,
    run, stats, top, trace, verify,
};
use clap::{Parser, Subcommand};

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 failed, or the answer is no; 2 wrong usage. `run` and `record` end as their program does.";

#[derive(Parser)]
#[command(name = "hakmem", version, about, after_help = EXIT_CODES, arg_required_else_help = true)]
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
    Ledger(ledger::Arguments),
    Map(map::Arguments),
    Core(core::Arguments),
    Options(options::Arguments),
    Failures(failures::Arguments),
    Bench(bench::Arguments),
    Record(record::Arguments),
    Replay(replay::Arguments),
    Trace(trace::Arguments),
    #[command(hide = true)]
    ReplayInside(replay::InsideArguments),
    Report(report::Arguments),
    Peers(peers::Arguments),
    Generate(generate::Arguments),
}
