//! The commands: one module each, with its arguments and a function `execute`.

pub mod bench;
pub mod check;
pub mod cold;
pub mod compare;
pub mod core;
pub mod diff;
pub mod doctor;
pub mod explain;
pub mod export;
pub mod failures;
pub mod generate;
pub mod leaks;
pub mod ledger;
pub mod map;
pub mod options;
pub mod peers;
pub mod profile;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod snapshot;
pub mod stats;
pub mod top;
pub mod trace;
pub mod tune;
pub mod verify;
pub mod why;

use crate::cli::Command;
use hakmem_lab::error::Result;
use std::process::ExitCode;

pub fn execute(command: Command) -> Result<ExitCode> {
    match command {
        Command::Verify(arguments) => verify::execute(arguments),
        Command::Compare(arguments) => compare::execute(arguments),
        Command::Bench(arguments) => bench::execute(arguments),
        Command::Check(arguments) => check::execute(&arguments),
        Command::Generate(arguments) => generate::execute(&arguments),
        Command::Peers(arguments) => peers::execute(arguments),
        Command::Ledger(arguments) => ledger::execute(&arguments),
        Command::Map(arguments) => map::execute(&arguments),
        Command::Options(arguments) => options::execute(&arguments),
        Command::Explain(arguments) => explain::execute(&arguments),
        Command::Export(arguments) => export::execute(&arguments),
        Command::Failures(arguments) => failures::execute(&arguments),
        Command::Core(arguments) => core::execute(&arguments),
        Command::Top(arguments) => top::execute(&arguments),
        Command::Stats(arguments) => stats::execute(&arguments),
        Command::Snapshot(arguments) => snapshot::execute(&arguments),
        Command::Profile(arguments) => profile::execute(&arguments),
        Command::Leaks(arguments) => leaks::execute(&arguments),
        Command::Why(arguments) => why::execute(&arguments),
        Command::Cold(arguments) => cold::execute(&arguments),
        Command::Doctor(arguments) => doctor::execute(&arguments),
        Command::Diff(arguments) => diff::execute(&arguments),
        Command::Record(arguments) => record::execute(arguments),
        Command::Run(arguments) => run::execute(arguments),
        Command::Trace(arguments) => trace::execute(arguments),
        Command::Tune(arguments) => tune::execute(&arguments),
        Command::Report(arguments) => report::execute(arguments),
        Command::Replay(arguments) => replay::execute(arguments),
        Command::ReplayInside(arguments) => replay::execute_inside(arguments),
    }
}
