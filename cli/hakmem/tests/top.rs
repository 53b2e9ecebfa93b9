//! `hakmem top`: lines in a pipe, a screen on a terminal.

mod support;

use std::io::{Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use support::waiting::Waiting;
use support::{Workshop, library};

const READY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *blocks[1000];
int main(void)
{
    char end;
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 1000; i++) {
        blocks[i] = malloc(2000);
    }
    puts("ready");
    return read(0, &end, 1) != 0;
}
"#;

fn start(workshop: &Workshop) -> Waiting {
    let program = workshop.compile("watched", READY, &[]);
    Waiting::start(Command::new(&program).env("LD_PRELOAD", library()))
}

#[test]
fn a_pipe_gets_a_line_for_each_look() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let answer = workshop.hakmem(&["top", &process.pid(), "-n", "3", "-d", "0.1"]);
    let lines: Vec<&str> = answer.ended_with(0).output.lines().collect();
    assert_eq!(lines.len(), 4);
    assert!(lines[0].contains("resident") && lines[0].contains("blocks/s"));
    assert!(lines[3].contains("1.95 MiB"), "{}", lines[3]);
}

#[test]
fn without_a_number_all_processes_are_listed_with_their_allocators() {
    let workshop = Workshop::open();
    let ours = start(&workshop);
    let others = Waiting::start(&mut Command::new(workshop.folder().join("watched")));
    let answer = workshop.hakmem(&["top"]);
    let output = &answer.ended_with(0).output;
    let line = |process: &Waiting| {
        let begin = format!("{} ", process.pid());
        let line = output.lines().find(|line| line.starts_with(&begin));
        line.unwrap_or_default().to_string()
    };
    for (process, words) in [
        (
            &ours,
            ["1.95 MiB live in ", " resident, ", " blocks, hakmem "],
        ),
        (&others, [" MiB resident, ", ", glibc 2.", "/watched"]),
    ] {
        let line = line(process);
        assert!(words.iter().all(|word| line.contains(word)), "{line}");
    }
    let line = format!("{} top -d 0.1", env!("CARGO_BIN_EXE_hakmem"));
    let (mut top, mut output, _) = on_terminal(&line, &["under hakmem", "allocator", "glibc 2."]);
    top.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    output.read_to_string(&mut String::new()).unwrap();
    assert!(top.wait().unwrap().success());
}

#[test]
fn another_allocators_heap_is_watched_as_well() {
    let workshop = Workshop::open();
    let program = workshop.compile("watched", READY, &[]);
    let process = Waiting::start(&mut Command::new(&program));
    let answer = workshop.hakmem(&["top", &process.pid(), "-n", "2", "-d", "0.1"]);
    let lines: Vec<&str> = answer.ended_with(0).output.lines().collect();
    assert_eq!(lines.len(), 3);
    assert!(lines[0].contains("in use/s") && lines[0].contains("elsewhere"));
    assert!(lines[2].contains("1.9"), "{}", lines[2]);
    let line = format!(
        "{} top {} -d 0.1",
        env!("CARGO_BIN_EXE_hakmem"),
        process.pid()
    );
    let (mut top, mut output, _) = on_terminal(&line, &["1 sizes", "glibc", "2.00"]);
    top.stdin.as_mut().unwrap().write_all(b"2").unwrap();
    top.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    output.read_to_string(&mut String::new()).unwrap();
    assert!(top.wait().unwrap().success());
}

#[test]
fn a_process_that_ends_ends_the_lines() {
    let workshop = Workshop::open();
    let mut process = start(&workshop);
    let mut command = workshop.command(&["top", &process.pid(), "-n", "1000000", "-d", "0.05"]);
    let mut top = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 150];
    let mut output = top.stdout.take().unwrap();
    output.read_exact(&mut first).unwrap();
    process.end();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(top.wait().unwrap().success());
}

/// Runs `line` on a new terminal, until it has shown all of `wanted`; returns its further output, and what it has shown.
fn on_terminal(line: &str, wanted: &[&str]) -> (Child, ChildStdout, String) {
    on_columns(80, line, wanted)
}

fn on_columns(columns: u32, line: &str, wanted: &[&str]) -> (Child, ChildStdout, String) {
    let line = format!("stty rows 24 cols {columns}; {line}");
    let mut top = Command::new("script")
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm-256color")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = top.stdout.take().unwrap();
    let mut text = String::new();
    let mut bytes = [0; 4096];
    while !wanted.iter().all(|part| text.contains(part)) {
        let count = output.read(&mut bytes).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    (top, output, text)
}

/// They are in no size class, so the rows added up to a small part of what is live.
#[test]
fn blocks_larger_than_all_classes_have_a_row() {
    let workshop = Workshop::open();
    let large = READY.replace("malloc(2000)", "malloc(100000)");
    let program = workshop.compile("large", &large, &[]);
    let process = Waiting::start(Command::new(&program).env("LD_PRELOAD", library()));
    let line = format!("{} top {}", env!("CARGO_BIN_EXE_hakmem"), process.pid());
    let (mut top, mut output, text) = on_terminal(&line, &["filter"]);
    assert!(text.contains("larger"), "{text}");
    top.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    output.read_to_string(&mut String::new()).unwrap();
    assert!(top.wait().unwrap().success());
}

#[test]
fn a_terminal_gets_a_screen() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let line = format!(
        "{} top {} -d 0.1",
        env!("CARGO_BIN_EXE_hakmem"),
        process.pid()
    );
    let (mut top, mut output, _) = on_terminal(&line, &["1 classes", "1000"]);
    top.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    output.read_to_string(&mut String::new()).unwrap();
    assert!(top.wait().unwrap().success());
}

#[test]
fn what_cannot_be_watched_is_said_in_one_line() {
    let workshop = Workshop::open();
    let line = "there is no process 2147483647, or it has just ended";
    workshop.hakmem(&["top", "2147483647"]).is_one_line(2, line);
    let line = "--delay is a number of seconds from 0.05 to 3600";
    workshop
        .hakmem(&["top", "1", "-d", "0"])
        .is_one_line(2, line);
}

#[test]
fn a_signal_that_ends_it_gives_the_screen_back() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    // The test's parent may ignore some of them.
    let line = format!(
        "echo pid $$; exec env --default-signal {} top {} -d 0.1",
        env!("CARGO_BIN_EXE_hakmem"),
        process.pid()
    );
    for signal in ["TERM", "HUP", "INT", "QUIT"] {
        let (mut top, mut output, text) = on_terminal(&line, &["resident"]);
        let pid = text.split_whitespace().nth(1).unwrap();
        let kill = Command::new("kill").args(["-s", signal, pid]).status();
        assert!(kill.unwrap().success());
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).unwrap();
        let rest = String::from_utf8_lossy(&rest);
        let left = rest.rfind("\x1b[?1049l");
        assert!(
            left.is_some() && rest.contains("\x1b[?25h"),
            "{signal}: {rest:?}"
        );
        top.wait().unwrap();
    }
}

/// As after Ctrl-Z, but by another process: the terminal must be as it was before.
#[test]
fn who_is_stopped_gives_the_screen_back_until_it_goes_on() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let line = format!(
        "echo pid $$; exec env --default-signal {} top {} -d 60",
        env!("CARGO_BIN_EXE_hakmem"),
        process.pid()
    );
    let (mut top, mut output, text) = on_terminal(&line, &["resident"]);
    let pid = text.split_whitespace().nth(1).unwrap();
    let kill = |signal: &str| Command::new("kill").args(["-s", signal, pid]).status();
    assert!(kill("TSTP").unwrap().success());
    let mut text = String::new();
    let mut bytes = [0; 4096];
    // Here nobody could continue it, so the kernel does not stop it, and it takes the screen again at once.
    let ways = ["\x1b[?1049l", "\x1b[?1049h"];
    while !ways.iter().all(|way| text.contains(way)) {
        let count = output.read(&mut bytes).unwrap();
        assert!(count > 0, "{text:?}");
        text.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(text.find(ways[0]) < text.rfind(ways[1]), "{text:?}");
    top.stdin.as_mut().unwrap().write_all(b"q").unwrap();
    output.read_to_end(&mut Vec::new()).unwrap();
    assert!(top.wait().unwrap().success());
}

/// Without escapes that move the cursor between words or colour them.
fn in_words(screen: &str) -> String {
    let parts = screen.split("\x1b[");
    let words = parts.map(
        |part| match part.find(|letter: char| letter.is_ascii_alphabetic()) {
            Some(end) if part[end..].starts_with('H') => format!(" {}", &part[end + 1..]),
            Some(end) => part[end + 1..].to_string(),
            None => part.to_string(),
        },
    );
    words.collect()
}

/// Every figure is whole: one that does not fit is left out.
#[test]
fn a_narrow_screen_has_no_half_figures() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let line = format!(
        "{} top {} -d 60",
        env!("CARGO_BIN_EXE_hakmem"),
        process.pid()
    );
    for (columns, there, gone) in [
        (80, "mapped 4.00 MiB", "none"),
        (60, "live 1.95 MiB in 1000 blocks", "mapped"),
        (40, "resident ", "in 1000"),
    ] {
        let (mut top, mut output, mut text) = on_columns(columns, &line, &["Tab"]);
        top.stdin.as_mut().unwrap().write_all(b"q").unwrap();
        let mut rest = Vec::new();
        output.read_to_end(&mut rest).unwrap();
        text += &String::from_utf8_lossy(&rest);
        let text = in_words(&text);
        assert!(
            text.contains(there) && !text.contains(gone),
            "{columns}: {text}"
        );
        top.wait().unwrap();
    }
}
