//! Ctrl-C during a command: one line, an exit code, and finished results are kept.

mod support;

use nix::libc;
use nix::sys::signal::Signal;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::waiting::{WAITS, Waiting};
use support::{Answer, Workshop, library, text};

fn start(workshop: &Workshop, arguments: &[&str]) -> Child {
    let mut command = workshop.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Sends SIGINT when the file exists.
fn stop(child: Child, when: &Path) -> Answer {
    stop_by(Signal::SIGINT, child, when)
}

fn stop_by(signal: Signal, child: Child, when: &Path) -> Answer {
    while !when.exists() {
        std::thread::yield_now();
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, signal).unwrap();
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

/// A signal that was sent to the recorder alone is passed to the program, and the trace ends with the program.
#[test]
fn a_recording_ends_with_the_program_that_it_passes_a_signal_to() {
    let workshop = Workshop::open();
    let script = "#!/bin/sh\nulimit -c 0\ntouch waiting\nwhile :; do :; done\n";
    let script = workshop.script("waits", script);
    // The test's parent may ignore this signal.
    let mut command = Command::new("env");
    command
        .args(["--default-signal", env!("CARGO_BIN_EXE_hakmem"), "record"])
        .args(["--", text(&script)])
        .current_dir(workshop.folder());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().unwrap();
    stop_by(Signal::SIGQUIT, child, &workshop.path("waiting")).ended_with(131);
    workshop
        .hakmem(&["trace", "info", "trace.hkt"])
        .ended_with(0)
        .says("exit code 131");
}

/// A script's background jobs and their programs ignore SIGINT. One that is sent to the recorder ends the recording
/// nevertheless.
#[test]
fn a_recording_in_the_background_of_a_script_can_be_stopped() {
    let workshop = Workshop::open();
    let waits = workshop.script("waits", "#!/bin/sh\ntouch waiting\nexec sleep 100\n");
    let hakmem = env!("CARGO_BIN_EXE_hakmem");
    let line = format!(
        "{hakmem} record -- {} & until [ -e waiting ]; do :; done; kill -INT $!; wait $!",
        text(&waits)
    );
    let mut script = Command::new("/bin/sh");
    script.args(["-c", &line]).current_dir(workshop.folder());
    Answer::from(script.output().unwrap()).ended_with(143);
    workshop
        .hakmem(&["trace", "info", "trace.hkt"])
        .ended_with(0)
        .says("exit code 143");
}

#[test]
fn a_replay_shows_the_runs_that_were_finished() {
    let workshop = Workshop::open();
    workshop.hakmem(&["record", "--", "ls"]).ended_with(0);
    // The second allocator's first run never ends.
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
        .says("hakmem: stopped; the results so far are above")
        .says("glibc");
    assert!(workshop.path("result.json").exists());
}

#[test]
fn a_comparison_that_has_no_run_says_so() {
    let workshop = Workshop::open();
    let waits = workshop.script("waits", "#!/bin/sh\ntouch waiting\nexec sleep 60\n");
    let child = start(&workshop, &["compare", "-a", "glibc", "--", text(&waits)]);
    stop(child, &workshop.path("waiting"))
        .ended_with(1)
        .says("hakmem: stopped before the first run");
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

/// Waits until the command does nothing but wait for the time or a signal, between two looks.
fn wait_until_it_waits(child: &Child) {
    let waits = [
        libc::SYS_rt_sigtimedwait,
        libc::SYS_clock_nanosleep,
        libc::SYS_nanosleep,
    ];
    let begin = Instant::now();
    let is_waiting = || {
        let call = std::fs::read_to_string(format!("/proc/{}/syscall", child.id())).unwrap();
        let number = call.split(' ').next().unwrap().parse().unwrap_or(-1);
        waits.contains(&number)
    };
    while !is_waiting() {
        assert!(begin.elapsed() < Duration::from_secs(30), "it never waits");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The first signal ends the look, and what was seen until then is shown.
#[test]
fn a_look_that_takes_its_time_shows_what_it_has_seen() {
    let workshop = Workshop::open();
    let mut command = Command::new(workshop.compile("waits", WAITS, &[]));
    let process = Waiting::start(command.env("LD_PRELOAD", library()));
    let pid = process.pid();
    for (look, says) in [
        (["why", &pid, "--seconds", "1e19"], "stopped after "),
        (["doctor", &pid, "--seconds", "1e19"], "malloc is hakmem"),
        (["cold", &pid, "--seconds", "600"], "cold: not "),
        (["profile", &pid, "--seconds", "600"], "0 samples"),
    ] {
        let child = start(&workshop, &look);
        wait_until_it_waits(&child);
        std::thread::sleep(Duration::from_millis(300));
        let number = nix::unistd::Pid::from_raw(child.id() as i32);
        nix::sys::signal::kill(number, Signal::SIGTERM).unwrap();
        let answer = Answer::from(child.wait_with_output().unwrap());
        answer.ended_with(0).says(says);
        assert_eq!(answer.errors, "", "{look:?}");
    }
}

/// An ignored signal ends nothing, not even a wait.
#[test]
fn under_nohup_a_hangup_is_none() {
    let workshop = Workshop::open();
    let mut command = Command::new(workshop.compile("waits", WAITS, &[]));
    let process = Waiting::start(command.env("LD_PRELOAD", library()));
    let line = format!(
        "trap '' HUP; {} profile {} --seconds 3 & sleep 1; kill -HUP $!; wait $!",
        env!("CARGO_BIN_EXE_hakmem"),
        process.pid()
    );
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", &line]);
    let answer = Answer::from(shell.output().unwrap());
    answer.ended_with(0).says("for 3.");
}

/// The processes that the client has started end with it.
#[test]
fn a_client_that_takes_long_is_not_waited_for() {
    let workshop = Workshop::open();
    let server =
        "/usr/bin/python3 -c \"import time; open('ready', 'w'); time.sleep(60); print('asked')\"";
    let mut line = vec!["compare", "-a", "glibc", "--server", server, "--ready"];
    line.extend([
        "ready",
        "--client",
        "echo $$ >pid; rm ready; sleep 60; true",
    ]);
    let child = start(&workshop, &line);
    let begin = Instant::now();
    let of_client = loop {
        let text = std::fs::read_to_string(workshop.path("pid")).unwrap_or_default();
        if text.ends_with('\n') {
            break text.trim().to_string();
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "no client runs");
        std::thread::sleep(Duration::from_millis(10));
    };
    let asked = Instant::now();
    let number = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(number, Signal::SIGTERM).unwrap();
    let answer = Answer::from(child.wait_with_output().unwrap());
    answer.is_one_line(1, "stopped before the first run");
    assert!(asked.elapsed() < Duration::from_secs(20), "{asked:?}");
    assert!(!Path::new(&format!("/proc/{of_client}")).exists());
}

/// As soon as there is a file.
#[test]
fn a_recording_that_is_ended_at_once_is_a_trace() {
    let workshop = Workshop::open();
    for number in 0..40 {
        let trace = format!("{number}.hkt");
        let mut child = start(&workshop, &["record", "-o", &trace, "--", "sleep", "60"]);
        let path = workshop.path(&trace);
        while !path.exists() && child.try_wait().unwrap().is_none() {}
        let number = nix::unistd::Pid::from_raw(child.id() as i32);
        nix::sys::signal::kill(number, Signal::SIGTERM).unwrap();
        let said = Answer::from(child.wait_with_output().unwrap());
        let info = workshop.hakmem(&["trace", "info", &trace]);
        assert_eq!(info.errors, "", "{}", said.errors);
        info.ended_with(0).says("exit code 143");
    }
}
