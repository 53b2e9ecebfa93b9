//! What is given to be read and is no file: a pipe that nobody writes holds nothing up, one that somebody
//! writes is read.

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::Workshop;

fn workshop_with_pipe() -> Workshop {
    let workshop = Workshop::open();
    let made = Command::new("mkfifo").arg(workshop.path("pipe")).status();
    assert!(made.unwrap().success());
    workshop
}

#[test]
fn a_pipe_that_nobody_writes_holds_nothing_up() {
    let workshop = workshop_with_pipe();
    let nobody = "cannot read pipe: it is a pipe that nobody writes";
    let no_file = "it is a pipe, and no regular file";
    let begin = Instant::now();
    workshop.hakmem(&["report", "pipe"]).is_one_line(2, nobody);
    workshop
        .hakmem(&["diff", "pipe", "pipe"])
        .is_one_line(2, nobody);
    for arguments in [&["replay", "pipe"][..], &["trace", "info", "pipe"]] {
        workshop
            .hakmem(arguments)
            .is_one_line(2, &format!("cannot open the trace pipe: {no_file}"));
    }
    for arguments in [&["core", "pipe"][..], &["stats", "--core", "pipe"]] {
        workshop
            .hakmem(arguments)
            .is_one_line(2, &format!("pipe is no core dump: {no_file}"));
    }
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_result_is_read_from_a_pipe_that_somebody_writes() {
    let workshop = workshop_with_pipe();
    let program = workshop.program();
    workshop
        .hakmem(&[
            "compare",
            "-n",
            "1",
            "-a",
            "hakmem,glibc",
            "--export",
            "result.json",
            "--",
            support::text(&program),
        ])
        .says("hakmem");
    let mut writer = Command::new("sh")
        .args(["-c", "sleep 0.2; cat result.json >pipe"])
        .current_dir(workshop.folder())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let said = workshop.hakmem(&["report", "pipe", "--csv"]);
    let _ = writer.wait();
    let wanted = workshop.hakmem(&["report", "result.json", "--csv"]);
    assert_eq!(said.ended_with(0).output, wanted.output);
    assert!(wanted.output.lines().count() > 2);
}
