//! `hakmem options`: here, in a mode, in a running process; and who set what.

mod support;

use serde_json::Value;
use std::process::Command;
use support::waiting::Waiting;
use support::{Workshop, answer, library};

const SETS: &str = r#"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    bool (*set)(const char *, uint64_t) = (bool (*)(const char *, uint64_t))dlsym(RTLD_DEFAULT, "hak_option_set");
    puts(set("decay_ms", 77) ? "ready" : "refused");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

fn option<'a>(all: &'a Value, name: &str) -> &'a Value {
    let all = all.as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap()
}

#[test]
fn a_process_is_asked_who_set_what() {
    let workshop = Workshop::open();
    let program = workshop.compile("sets", SETS, &[]);
    let mut command = Command::new(&program);
    command
        .env("LD_PRELOAD", library())
        .env("HAKMEM_MODE", "memory")
        .env("HAKMEM_OPTIONS", "parcel_bytes=4K,stats=off");
    let process = Waiting::start(&mut command);
    let said = workshop.hakmem(&["options", "--json", &process.pid()]);
    let all: Value = serde_json::from_str(&said.ended_with(0).output).unwrap();
    for (name, value, source) in [
        ("mode", 3, "environment"),
        ("dirty_bytes", 2 << 20, "mode"),
        ("parcel_bytes", 4096, "HAKMEM_OPTIONS"),
        ("stats", 0, "HAKMEM_OPTIONS"),
        ("decay_ms", 77, "program"),
        ("check", 0, "default"),
    ] {
        assert_eq!(option(&all, name)["value"], value, "{name}");
        assert_eq!(option(&all, name)["source"], source, "{name}");
    }
    assert_eq!(option(&all, "decay_ms")["kind"], "number");
    assert_eq!(option(&all, "decay_ms")["unit"], "ms");
    assert_eq!(option(&all, "decay_ms")["initial"], 500);
    assert_eq!(option(&all, "check")["at_run_time"], false);
}

#[test]
fn without_a_process_this_environment_counts() {
    let workshop = Workshop::open();
    let mut command = workshop.command(&["options", "--explain"]);
    command.env("HAKMEM_DECAY_MS", "2K").env("COLUMNS", "100");
    let said = answer(command);
    let text = &said.ended_with(0).output;
    let line = text.lines().find(|line| line.starts_with("decay_ms"));
    let words: Vec<&str> = line.unwrap().split_whitespace().take(4).collect();
    assert_eq!(words, ["decay_ms", "2K", "environment", "500"]);
    assert!(text.contains("\ndecay_ms\n  How long free memory waits"));

    let said = workshop.hakmem(&["options", "--mode", "throughput"]);
    let text = &said.ended_with(0).output;
    let line = text.lines().find(|line| line.starts_with("decay_ms"));
    let words: Vec<&str> = line.unwrap().split_whitespace().take(4).collect();
    assert_eq!(words, ["decay_ms", "10000", "mode", "500"]);
    workshop.hakmem(&["options", "--mode", "fast"]).is_one_line(
        2,
        "there is no mode 'fast', only balanced, minimal, throughput, memory, secure, learning, research",
    );
}

#[test]
fn a_wrong_name_is_said_with_the_nearest_right_one() {
    let workshop = Workshop::open();
    let mut command = workshop.command(&["options"]);
    command.env("HAKMEM_OPTIONS", "decay_m=1");
    answer(command)
        .ended_with(0)
        .says("HAKMEM_OPTIONS: decay_m is not an option, the nearest one is decay_ms;");
}

#[test]
fn another_process_has_none() {
    let workshop = Workshop::open();
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "echo ready; read end"])
        .env_remove("LD_PRELOAD");
    let process = Waiting::start(&mut command);
    workshop
        .hakmem(&["options", &process.pid()])
        .ended_with(1)
        .says("does not use hakmem, but");
}
