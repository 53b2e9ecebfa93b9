//! `hakmem record`: records every allocation of a program in a trace.

use crate::start::{environment, prove};
use crate::traces::MAY_LACK;
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::allocator::Allocator;
use hakmem_lab::error::Result;
use hakmem_lab::executable::Executable;
use hakmem_lab::places::Places;
use hakmem_lab::render::number::counted;
use hakmem_lab::{failed, usage, whole_file};
use hakmem_trace::format::Reason;
use hakmem_trace::record::{self, Options, Recorded};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem record -- python3 app.py
  hakmem record -o build.hkt --limit 2G -- make
  hakmem record --stacks=16 -- ./server          # then: hakmem trace top-sites trace.hkt
  LD_PRELOAD=libjemalloc.so.2 hakmem record -- ./server

Child processes are recorded into the same trace. Ctrl-C ends the program, as it would without
hakmem; a second one ends only the recording. The exit code is the program's.";

/// Record every allocation of a program into a trace, whichever allocator it uses
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem record [OPTIONS] [--] PROGRAM [ARGUMENT]...")]
pub struct Arguments {
    /// The trace to write
    #[arg(short, long, value_name = "FILE", default_value = "trace.hkt")]
    output: PathBuf,

    /// End the recording, but not the program, when the trace reaches this size, such as 200M or 2G
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    limit: Option<u64>,

    /// Record the call stack of each allocation, at most this many frames
    #[arg(long, value_name = "FRAMES", num_args = 0..=1, default_missing_value = "12",
        require_equals = true, default_value = "0", hide_default_value = true,
        value_parser = clap::value_parser!(u32).range(0..=32))]
    stacks: u32,

    /// The program and its arguments
    #[arg(trailing_var_arg = true, required = true, value_name = "PROGRAM")]
    command: Vec<OsString>,
}

pub fn execute(arguments: Arguments) -> Result<ExitCode> {
    whole_file::refuse_existing(&arguments.output)?;
    let recorder = Allocator {
        name: "the recorder".into(),
        library: Some(Places::find()?.recorder()?),
        ..Allocator::default()
    };
    let environment = environment(&recorder)?;
    let (name, words) = arguments
        .command
        .split_first()
        .ok_or_else(|| usage!("no program"))?;
    let executable = Executable::find(name)?;
    if let Some(obstacle) = executable.obstacle() {
        return Err(failed!(
            "{} {}: it cannot be recorded",
            executable.path.shown(),
            obstacle.reason()
        ));
    }
    prove(&executable, words, &environment, &recorder)?;
    let options = Options {
        environment,
        output: arguments.output,
        is_there: false,
        limit: arguments.limit,
        stack_frames: arguments.stacks,
        command: arguments.command,
    };
    let recorded = record::record(&options)?;
    report(&recorded, &options);
    let is_whole = !matches!(recorded.ending.reason, Reason::DiskFull);
    Ok(ExitCode::from(if is_whole {
        recorded.exit_code
    } else {
        1
    }))
}

/// On stderr: stdout belongs to the program.
fn report(recorded: &Recorded, options: &Options) {
    let Recorded {
        bytes,
        events,
        processes,
        ending,
        ..
    } = recorded;
    let each = match events {
        0 => String::new(),
        _ => format!(", {:.2} an event", *bytes as f64 / *events as f64),
    };
    eprintln!(
        "hakmem: {} of {} in {}: {bytes} bytes{each}",
        counted(*events, "event"),
        counted(*processes, "process"),
        options.output.shown()
    );
    if *processes == 0 && ending.unseen.is_empty() {
        eprintln!("hakmem: no process allocated memory");
    }
    for one in ending.unseen.iter().take(UNSEEN_MAX) {
        eprintln!("hakmem: not recorded: {one}");
    }
    if ending.unseen.len() > UNSEEN_MAX {
        let more = ending.unseen.len() - UNSEEN_MAX;
        let more = counted(more as u64, "more process");
        eprintln!("hakmem: and {more}; 'hakmem trace info --json' lists them");
    }
    if ending.may_lack_processes {
        eprintln!("hakmem: {MAY_LACK}");
    }
    match ending.reason {
        Reason::Limit => {
            eprintln!("hakmem: the trace reached --limit; it lacks what the program did after that")
        }
        Reason::DiskFull => eprintln!(
            "hakmem: no space left for {}; the trace is complete up to there, and lacks the rest",
            options.output.shown()
        ),
        Reason::Stopped => eprintln!("hakmem: stopped before the program had ended"),
        Reason::Ended | Reason::Unknown => {}
    }
    if ending.events_missed > 0 || ending.processes_missed > 0 {
        eprintln!(
            "hakmem: incomplete: missing are {} of threads that found no room, and {} beyond 1,024 at a time",
            counted(ending.events_missed, "event"),
            counted(ending.processes_missed, "process")
        );
    }
}

/// How many processes without the recorder to name.
const UNSEEN_MAX: usize = 10;

fn parse_size(text: &str) -> std::result::Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err("a size is a number followed by K, M or G, such as 500M".into()),
    };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(1 << shift))
        .filter(|&bytes| bytes >= 1 << 20)
        .ok_or_else(|| "a size is at least 1M, such as 500M".into())
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_have_units() {
        assert_eq!(parse_size("200M"), Ok(200 << 20));
        assert_eq!(parse_size("2g"), Ok(2 << 30));
        assert_eq!(parse_size("1048576"), Ok(1 << 20));
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in ["", "M", "5X", "-1", "1.5G", "1K", "99999999999999999999G"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }
}
