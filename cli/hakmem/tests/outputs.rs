//! Outputs are checked before the work for them begins. A result that cannot be written afterwards is saved elsewhere, and one
//! line says where.

mod support;

use std::fs::{File, read_to_string};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::{Workshop, answer, library, text};

/// Allocates all the time, with hakmem.
const BUSY: &str = r#"
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    for (;;) {
        for (int i = 0; i < 1000; i++) {
            free(malloc(1000));
        }
        usleep(1000);
    }
}
"#;

struct Busy(Child);

impl Busy {
    fn start(workshop: &Workshop) -> Busy {
        let program = workshop.compile("busy", BUSY, &[]);
        let child = Command::new(program)
            .env("LD_PRELOAD", library())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(200));
        Busy(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_file_that_cannot_be_written_is_said_before_anything_is_looked_at() {
    let workshop = Workshop::open();
    let busy = Busy::start(&workshop);
    let pid = busy.pid();
    let missing = "cannot write no/file: No such file or directory (os error 2)";
    let begin = Instant::now();
    for option in ["--pprof", "--flamegraph", "--save"] {
        workshop
            .hakmem(&["profile", &pid, "--seconds", "60", option, "no/file"])
            .is_one_line(2, missing);
    }
    workshop
        .hakmem(&["why", &pid, "--seconds", "60", "--save", "no/file"])
        .is_one_line(2, missing);
    for option in ["--svg", "--png", "--html"] {
        workshop
            .hakmem(&["map", &pid, option, "no/file"])
            .is_one_line(2, missing);
    }
    workshop
        .hakmem(&["tune", "-o", "no/file", "--", "true"])
        .is_one_line(2, missing);
    workshop
        .hakmem(&["profile", &pid, "--seconds", "60", "--save", "/dev/full"])
        .is_one_line(
            2,
            "cannot write /dev/full: No space left on device (os error 28)",
        );
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[test]
fn no_program_is_run_for_a_file_that_cannot_be_written() {
    let workshop = Workshop::open();
    let shell = ["--", "sh", "-c", "echo ran >ran"];
    for arguments in [
        &["leaks", "--exit", "--save", "no/file"][..],
        &["record", "-o", "no/file"],
        &["record", "-o", "."],
        &["record", "-o", "/dev/full"],
        &["compare", "-n", "1", "--export", "/dev/full"],
        &["compare", "-n", "1", "--html", "."],
    ] {
        let said = workshop.hakmem(&[arguments, &shell].concat());
        assert_eq!(said.code, Some(2), "{arguments:?}");
        assert_eq!(said.errors.lines().count(), 1, "{}", said.errors);
        assert!(!workshop.path("ran").exists(), "{arguments:?}");
    }
}

#[test]
fn what_was_measured_is_kept_when_nobody_takes_it() {
    let workshop = Workshop::open();
    let busy = Busy::start(&workshop);
    let mut command = workshop.command(&["profile", &busy.pid(), "--seconds", "1"]);
    command
        .env("TMPDIR", workshop.folder())
        .stdout(File::create("/dev/full").unwrap());
    let said = answer(command);
    said.ended_with(1)
        .says("cannot write to standard output: No space left on device (os error 28)");
    let kept = said.errors.trim().rsplit("kept in ").next().unwrap();
    assert!(read_to_string(kept).unwrap().contains("allocated by"));
}

/// A program finds the stream closed, as without hakmem.
#[test]
fn a_closed_output_is_an_error_like_any_other() {
    let workshop = Workshop::open();
    let closed = |words: &str| {
        let line = format!("exec {} {words} >&-", env!("CARGO_BIN_EXE_hakmem"));
        let mut command = Command::new("bash");
        command
            .args(["-c", &line])
            .current_dir(workshop.folder())
            .env("TMPDIR", workshop.folder());
        answer(command)
    };
    for command in ["options", "--help", "--version", "run --help"] {
        closed(command).is_one_line(
            1,
            "cannot write to standard output: Bad file descriptor (os error 9)",
        );
    }
    let kept = closed("compare -n 1 -a glibc -- true");
    let kept = kept.errors.trim().rsplit("kept in ").next().unwrap();
    assert!(read_to_string(kept).unwrap().contains("glibc"));
    for command in ["run", "record"] {
        let said = closed(&format!("{command} -- bash -c 'echo hi'"));
        said.ended_with(1).says("Bad file descriptor");
    }
}

#[test]
fn a_disk_that_fills_meanwhile_costs_no_result() {
    let workshop = Workshop::open();
    let busy = Busy::start(&workshop);
    // A file may not contain a byte here, as on a disk that has become full.
    let line = format!(
        "ulimit -f 0; exec {} profile {} --seconds 1 --save result.json",
        env!("CARGO_BIN_EXE_hakmem"),
        busy.pid()
    );
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("trap '' XFSZ; {line}")])
        .current_dir(workshop.folder())
        .env("TMPDIR", workshop.folder());
    let said = answer(command);
    said.ended_with(1)
        .says("allocated by")
        .says("cannot write result.json: File too large");
}

/// A folder on a full disk, if this user may mount one.
struct Small(PathBuf);

impl Small {
    fn mount(workshop: &Workshop) -> Option<Small> {
        let folder = workshop.path("small");
        std::fs::create_dir(&folder).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=4k", "none"])
            .arg(&folder)
            .stderr(Stdio::null())
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            return None;
        }
        std::fs::write(folder.join("all"), [0; 4096]).unwrap();
        Some(Small(folder))
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Each result is saved elsewhere, the line says where, and tables are printed nevertheless.
#[test]
fn rows_that_find_no_room_leave_no_file() {
    let workshop = Workshop::open();
    let Some(_small) = Small::mount(&workshop) else {
        return; // only root may
    };
    workshop
        .hakmem(&["record", "-o", "trace.hkt", "--", text(&workshop.program())])
        .ended_with(0);
    let rows = ["trace", "export", "--parquet", "small/rows", "trace.hkt"];
    workshop
        .hakmem(&rows)
        .is_one_line(1, "cannot write small/rows: the disk is full");
    assert!(!workshop.path("small/rows").exists());
}

#[test]
fn what_finds_no_room_is_kept() {
    let workshop = Workshop::open();
    let program = workshop.program();
    let busy = Busy::start(&workshop);
    let pid = busy.pid();
    let Some(_small) = Small::mount(&workshop) else {
        return; // only root may
    };
    let kept = |arguments: &[&str], table: &str| {
        let mut command = workshop.command(arguments);
        command.env("TMPDIR", workshop.folder());
        let said = answer(command);
        said.ended_with(1)
            .says("cannot write small/")
            .says("No space left on device")
            .says(table);
        let files: Vec<&str> = said.errors.trim().split("kept in ").skip(1).collect();
        assert!(!files.is_empty(), "{arguments:?}: {}", said.errors);
        for file in files {
            let file = file.split("; ").next().unwrap().trim();
            assert!(std::fs::metadata(file).unwrap().len() > 0, "{arguments:?}");
        }
        said.errors
    };
    let text = text(&program);
    let both = kept(
        &[
            "compare",
            "-n",
            "1",
            "-a",
            "glibc",
            "--html",
            "small/page.html",
            "--export",
            "small/result.json",
            "--",
            text,
        ],
        "glibc",
    );
    assert!(both.contains("small/page.html") && both.contains("small/result.json"));
    kept(&["why", &pid, "--save", "small/moment"], "slabs");
    kept(
        &["profile", &pid, "--live", "--flamegraph", "small/f.html"],
        "process",
    );
    for form in ["--svg", "--html"] {
        kept(&["map", &pid, form, "small/map"], "");
    }
    kept(
        &["export", "--prometheus", &pid, "--textfile", "small/x.prom"],
        "",
    );
    workshop
        .hakmem(&["record", "-o", "trace.hkt", "--", text])
        .ended_with(0);
    let replay = ["replay", "trace.hkt", "-n", "1", "-a", "glibc"];
    kept(&[&replay[..], &["--html", "small/page"]].concat(), "glibc");
    kept(&["report", "trace.hkt", "--html", "small/page"], "");
    // Generated files are no results: they are not saved elsewhere, and there is one line.
    let pages = workshop.hakmem(&["generate", "small"]);
    pages
        .ended_with(1)
        .says("hakmem: small: No space left on device");
    assert!(!pages.errors.contains("mistake"), "{}", pages.errors);
}

/// The lease is 10 seconds, and nobody renews it.
#[test]
fn sampling_ends_when_who_switched_it_on_is_killed() {
    let workshop = Workshop::open();
    let busy = Busy::start(&workshop);
    let pid = busy.pid();
    let sample_bytes = || {
        let said = workshop.hakmem(&["options", &pid]).output;
        let line = said.lines().find(|line| line.starts_with("sample_bytes"));
        let words = line.unwrap().split_whitespace();
        words.collect::<Vec<_>>()[1].to_string()
    };
    let mut command = workshop.command(&["profile", &pid, "--seconds", "60"]);
    let mut profile = command.stdout(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while sample_bytes() != "512K" {
        assert!(begin.elapsed() < Duration::from_secs(30), "never on");
    }
    profile.kill().unwrap();
    profile.wait().unwrap();
    let begin = Instant::now();
    while sample_bytes() != "0" {
        assert!(begin.elapsed() < Duration::from_secs(30), "still on");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn standard_error_that_takes_nothing_is_no_mistake() {
    let workshop = Workshop::open();
    let program = workshop.program();
    let full = || Stdio::from(File::create("/dev/full").unwrap());
    let mut command = workshop.command(&["compare", "-n", "1", "--", text(&program)]);
    command.stderr(full());
    answer(command).says("hakmem");
    let mut command = workshop.command(&["stats", "0"]);
    command.stderr(full()).stdout(full());
    assert_eq!(answer(command).code, Some(2));
}

#[test]
fn a_trace_that_is_removed_or_replaced_meanwhile_is_kept() {
    let workshop = Workshop::open();
    let program = workshop.program();
    for meanwhile in [
        "rm out/t.hkt",
        "rm -r out",
        "rm out/t.hkt; echo other > out/t.hkt",
    ] {
        std::fs::create_dir_all(workshop.path("out")).unwrap();
        let script = format!("{meanwhile}; {}", text(&program));
        let mut command = workshop.command(&["record", "-o", "out/t.hkt", "--"]);
        command.args(["sh", "-c", &script]);
        command.env("TMPDIR", workshop.folder());
        let said = answer(command);
        said.ended_with(1)
            .says("hakmem: out/t.hkt was removed or replaced meanwhile; the trace is kept in ");
        let kept = said.errors.rsplit(' ').next().unwrap().trim_end();
        workshop
            .hakmem(&["trace", "info", kept])
            .ended_with(0)
            .says("program");
        let _ = std::fs::remove_dir_all(workshop.path("out"));
    }
}

#[test]
fn no_result_is_written_over_another_one_or_its_input() {
    let workshop = Workshop::open();
    let program = workshop.program();
    let record = ["record", "-o", "t.hkt", "--", text(&program)];
    workshop.hakmem(&record).ended_with(0);
    let before = std::fs::read(workshop.path("t.hkt")).unwrap();
    for arguments in [
        &["replay", "t.hkt", "--export", "./t.hkt"][..],
        &["replay", "t.hkt", "--export", "r", "--html", "r"],
        &["report", "t.hkt", "--html", "t.hkt"],
        &["profile", "1", "--save", "p", "--pprof", "p"],
        &["map", "1", "--svg", "p", "--png", "p"],
        &["compare", "--export", "p", "--html", "p", "--", "true"],
        &[
            "compare", "--input", "t.hkt", "--export", "t.hkt", "--", "true",
        ],
    ] {
        workshop
            .hakmem(arguments)
            .ended_with(2)
            .says("would be overwritten: name another file");
    }
    assert_eq!(std::fs::read(workshop.path("t.hkt")).unwrap(), before);
}

#[test]
fn a_page_is_not_called_a_picture() {
    let workshop = Workshop::open();
    let busy = Busy::start(&workshop);
    workshop
        .hakmem(&["profile", &busy.pid(), "--flamegraph", "flame.SVG"])
        .ended_with(2)
        .says("would be an HTML page");
    assert!(!workshop.path("flame.SVG").exists());
}

/// In a script element, `</` is the end, and after `<!--<script` nothing is.
#[test]
fn words_of_a_program_do_not_end_the_page() {
    let workshop = Workshop::open();
    let program = workshop.program();
    let word = "<!--<script></script>";
    let record = ["record", "-o", "t.hkt", "--", text(&program), word];
    workshop.hakmem(&record).ended_with(0);
    let report = ["report", "t.hkt", "--html", "page.html"];
    workshop.hakmem(&report).ended_with(0);
    let page = read_to_string(workshop.path("page.html")).unwrap();
    assert!(!page.contains(word) && page.contains("\\u003c!--\\u003cscript"));
}
