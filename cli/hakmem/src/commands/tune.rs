//! `hakmem tune`: finds the options that suit a program best, by a tournament of repeated runs.

use crate::numbers::RUNS_RANGE;
use crate::output::{show, terminal};
use crate::say;
use crate::start::{environment, preloadable, prove, unread_input};
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::Allocator;
use hakmem_lab::error::Result;
use hakmem_lab::launch::{End, Request, Run, Running, signal_name};
use hakmem_lab::places::Places;
use hakmem_lab::tournament::{self, Race, Strategy};
use hakmem_lab::watch;
use hakmem_lab::whole_file::Planned;
use hakmem_lab::{failed, input, machine, usage};
use std::env;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem tune -- ./server --bench
  HAKMEM_PROFILE=hakmem.profile hakmem run -- ./server
  hakmem tune --explain hakmem.profile

The score of a run is its processor time plus an eighth of a processor for each resident gigabyte.
After each lap, the better half of the strategies stays. Then the best one and the baseline run in
pairs; the baseline wins unless the other is better beyond chance. The program's output is
discarded.";

/// Find the options that suit a program best, in a tournament over repeated runs
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem tune [OPTIONS] [--] PROGRAM [ARGUMENT]...\n       hakmem tune --explain FILE")]
pub struct Arguments {
    /// Highest number of laps and pairs; in a lap, each strategy that is still in the race has a run
    #[arg(short, long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(2..=*RUNS_RANGE.end()))]
    laps: u32,
    /// Where to write the profile
    #[arg(short, long, value_name = "FILE", default_value = "hakmem.profile")]
    output: PathBuf,
    /// Show a profile's evidence: runs, gains, how sure they are, and what was decided
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    explain: Option<PathBuf>,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        required_unless_present = "explain",
        value_name = "PROGRAM"
    )]
    command: Vec<OsString>,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(path) = &arguments.explain {
        let text = input::read_to_string(path)
            .map_err(|error| failed!("cannot read {}: {error}", path.shown()))?;
        let (evidence, is_whole) = tournament::evidence(&text)
            .ok_or_else(|| usage!("{} is not a profile of 'hakmem tune'", path.shown()))?;
        show(&tournament::fitted(&evidence, terminal()));
        if !is_whole {
            eprintln!(
                "hakmem: warning: {} was cut short, or is of an older version: its last line is not '# end'",
                path.shown()
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    let file = Planned::at(&arguments.output)?;
    let program = Program::new(&arguments.command)?;
    if let Some(unread) = unread_input() {
        eprintln!("hakmem: warning: {unread}: let the program open it");
    }
    let mut race = Race::new(tournament::strategies(), arguments.laps);
    while let Some(turn) = race.turn() {
        if let Some(heading) = race.heading() {
            eprintln!("{heading}");
        }
        let score = program.play(&race.runners[turn].strategy)?;
        race.note(turn, score);
    }
    let words: Vec<String> = arguments.command.iter().map(|word| word.shown()).collect();
    let described = machine::describe();
    let about = format!("{}, {}", machine::timestamp(), described.cpu);
    let profile = race.profile(&words.join(" "), &about);
    say::keep();
    let written = file.write(profile);
    show(&tournament::fitted(&race.table(), terminal()));
    let winner = &race.runners[race.winner()].strategy;
    show(&format!("\n{}: {}\n", winner.name, winner.help));
    written?;
    show(&format!("written: {}\n", arguments.output.shown()));
    Ok(ExitCode::SUCCESS)
}

struct Program {
    path: PathBuf,
    name: OsString,
    words: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    folder: PathBuf,
}

impl Program {
    fn new(command: &[OsString]) -> Result<Program> {
        let (name, words) = command.split_first().ok_or_else(|| usage!("no program"))?;
        let allocator = Allocator::ours(&Places::find()?)?;
        let executable = preloadable(name)?;
        let environment = environment(&allocator)?;
        prove(&executable, words, &environment, &allocator)?;
        Ok(Program {
            path: executable.path.clone(),
            name: name.clone(),
            words: words.to_vec(),
            environment,
            folder: env::current_dir().map_err(|error| failed!("the current folder: {error}"))?,
        })
    }

    /// The score of one run.
    fn play(&self, strategy: &Strategy) -> Result<f64> {
        let mut environment = self.environment.clone();
        for (option, value) in &strategy.settings {
            let name = format!("HAKMEM_{}", option.to_uppercase());
            environment.retain(|(known, _)| *known != *name);
            environment.push((name.into(), value.into()));
        }
        let nothing = |is_read: bool| {
            OpenOptions::new()
                .read(is_read)
                .write(!is_read)
                .open(Path::new("/dev/null"))
                .map_err(|error| failed!("/dev/null: {error}"))
        };
        let errors: File = nothing(false)?;
        let request = Request {
            program: self.path.clone(),
            name: self.name.clone(),
            arguments: self.words.clone(),
            environment,
            folder: self.folder.clone(),
            input: nothing(true)?,
            output: nothing(false)?,
            errors,
            timeout: None,
            trace_threads: false,
            has_own_group: false,
            reads_heaps: false,
            ends_what_remains: true,
            control_group: None,
        };
        let run = Running::start(request)?.wait()?;
        let end = match run.end {
            End::Exited(0) if run.left_running > 0 => {
                Some("before processes that it had started".into())
            }
            End::Exited(0) => None,
            End::Exited(code) => Some(format!("with exit code {code}")),
            End::Signaled(signal) => Some(format!("by {}", signal_name(signal))),
        };
        if let Some(end) = end {
            return Err(failed!(
                "with {} the program ended {end}; tuning needs a program that ends with exit code 0, after all of its processes",
                strategy.name
            ));
        }
        Ok(tournament::score(
            run.user_s + run.sys_s,
            run.wall_s,
            resident_kib(&run),
        ))
    }
}

/// The mean over the run; if the run is too short for that, the peak.
fn resident_kib(run: &Run) -> f64 {
    // Readings were taken while it was stopped, too.
    let end_s = run.wall_s + run.stopped_s;
    watch::mean_kib(&run.timeline, end_s).unwrap_or_else(|| run.tree.peak_kib() as f64)
}
