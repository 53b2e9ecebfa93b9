//! Ctrl-C in the middle: one line, an exit code, and what was finished is kept.

mod support;

use std::path::Path;
use std::process::{Child, Stdio};
use support::{Answer, Workshop, text};

fn start(workshop: &Workshop, arguments: &[&str]) -> Child {
    let mut command = workshop.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Send SIGINT when the file is there.
fn stop(child: Child, when: &Path) -> Answer {
    while !when.exists() {
        std::thread::yield_now();
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    Answer::from(child.wait_with_output().unwrap())
}

#[test]
fn a_recording_has_what_came_before() {
    let workshop = Workshop::open();
    let script = workshop.script(
        "waits",
        "#!/bin/sh\nls / > /dev/null\ntouch waiting\nwhile :; do :; done\n",
    );
    let child = start(&workshop, &["record", "--", text(&script)]);
    stop(child, &workshop.path("waiting"))
        .ended_with(130)
        .says("events of 3 processes");
    workshop
        .hakmem(&["trace", "info", "trace.hkt"])
        .ended_with(0)
        .says("exit code 130");
}

#[test]
fn a_replay_shows_the_runs_that_were_finished() {
    let workshop = Workshop::open();
    workshop.hakmem(&["record", "--", "ls"]).ended_with(0);
    // The second allocator's first run never gets to its end.
    let waits = "#include <fcntl.h>\n#include <unistd.h>\n__attribute__((constructor)) static void wait_here(void)\n\
                 { close(open(\"waiting\", O_CREAT | O_WRONLY, 0600)); sleep(60); }\n";
    let source = format!("{waits}\n{}", support::ALLOCATOR);
    workshop.compile("libwaits.so", &source, &["-shared", "-fPIC"]);
    let arguments = [
        "replay",
        "trace.hkt",
        "-n",
        "1",
        "-a",
        "glibc,waits=libwaits.so",
    ];
    let child = start(
        &workshop,
        &[&arguments[..], &["--export", "result.json"]].concat(),
    );
    stop(child, &workshop.path("waiting"))
        .ended_with(1)
        .says("hakmem: stopped; what was finished is above")
        .says("glibc");
    assert!(workshop.path("result.json").exists());
}

#[test]
fn a_bench_says_how_to_go_on() {
    let workshop = Workshop::open();
    let small = [
        "bench", "--quick", "-w", "tiny-16", "-a", "glibc", "-n", "100000",
    ];
    let child = start(&workshop, &[&small[..], &["--export", "one.json"]].concat());
    stop(child, &workshop.path("one.json"))
        .ended_with(1)
        .says("hakmem: stopped; go on with: hakmem bench --resume one.json");
    workshop
        .hakmem(&["report", "one.json"])
        .ended_with(0)
        .says("UNFINISHED");
}
