//! `hakmem`: run, verify and compare memory allocators on any program.

#[macro_use]
mod say;

mod below;
mod cli;
mod commands;
mod doctor;
mod documents;
mod frames;
mod holds;
mod manual;
mod moment;
mod numbers;
mod output;
mod page;
mod picture;
mod profile;
mod progress;
mod protobuf;
mod push;
mod refusals;
mod signals;
mod snapshot;
mod start;
mod target;
mod top;
mod traces;

use hakmem_heap::shown::shown;
use hakmem_lab::error::Error;
use nix::libc;
use std::process::ExitCode;

fn main() -> ExitCode {
    // If a reader closes our pipe, SIGPIPE ends us quietly, as it does other programs.
    // SAFETY: the default action touches no memory of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    // With a handler, a file that may not grow (ulimit -f) causes a write error. Programs that we start do not inherit
    // handlers.
    extern "C" fn go_on(_signal: libc::c_int) {}
    // SAFETY: the handler does nothing.
    unsafe { libc::signal(libc::SIGXFSZ, go_on as *const () as usize) };
    std::panic::set_hook(Box::new(|panic| {
        let place = panic
            .location()
            .map_or(String::new(), |place| format!(" ({place})"));
        let payload = panic.payload();
        let what = payload
            .downcast_ref::<&str>()
            .copied()
            .or(payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("unknown");
        eprintln!("hakmem: a bug in hakmem{place}: {what}; please report it");
    }));
    let done = std::panic::catch_unwind(|| match cli::parse() {
        Ok(asked) => commands::execute(asked.command),
        Err(told) => Ok(told),
    });
    let code = match done {
        Ok(Ok(code)) => code,
        Ok(Err(error)) => fail(&error),
        Err(_) => ExitCode::FAILURE,
    };
    match say::finish() {
        Ok(()) => code,
        Err(error) => fail(&error),
    }
}

fn fail(error: &Error) -> ExitCode {
    // Names in the message may contain anything.
    eprintln!("hakmem: {}", shown(error.to_string().as_bytes()));
    ExitCode::from(error.exit_code())
}
