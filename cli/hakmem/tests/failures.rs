//! `hakmem failures`: refused allocations and their causes, for a process and for what is left of one.

mod support;

use serde_json::Value;
use std::process::Command;
use support::waiting::{WAITS, Waiting};
use support::{Answer, Workshop, dump, library, text};

/// Requests too much memory in several ways, and waits for the end of its input.
const GREEDY: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>
__attribute__((noinline)) void *much_too_much(size_t bytes)
{
    void *volatile block = malloc(bytes);
    return block;
}
int main(int count, char **arguments)
{
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = 1 << 30;
    setrlimit(RLIMIT_AS, &limit);
    much_too_much(SIZE_MAX);
    for (int i = 0; i < atoi(arguments[1]); i++) {
        much_too_much(((size_t)2 << 30) + i);
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    char end;
    return read(0, &end, 1) != 0;
}
"#;

fn greedy(workshop: &Workshop, times: &str) -> Waiting {
    // As distributions build programs: with names, and without inlining.
    let program = workshop.compile("greedy", GREEDY, &["-O1"]);
    let mut command = Command::new(&program);
    command.arg(times).env("LD_PRELOAD", library());
    command.env("HAKMEM_TRACE_FAILURES", "1"); // so that the limit is named
    Waiting::start(&mut command)
}

fn explains(answer: &Answer) {
    answer
        .ended_with(0)
        .says("at least 8 EiB")
        .says("Threshold: no size class takes it")
        .says("MapFail ENOMEM: RLIMIT_AS is 1.00 GiB, ")
        .says("much_too_much (greedy)");
}

#[test]
fn each_has_its_cause_and_its_call() {
    let workshop = Workshop::open();
    let process = greedy(&workshop, "2");
    explains(&workshop.hakmem(&["failures", &process.pid()]));
    let answer = workshop.hakmem(&["failures", "--json", &process.pid()]);
    let seen: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    assert_eq!(seen["count"], 3);
    assert_eq!(seen["latest"][1]["kind"], "map_fail");
    assert_eq!(seen["latest"][1]["limit"], "as");
    assert_eq!(seen["latest"][1]["limit_value"], 1 << 30);
    assert_eq!(seen["latest"][2]["bytes"], (2_u64 << 30) + 1);
    let stats = workshop.hakmem(&["stats", &process.pid()]);
    stats.ended_with(0).says("allocations refused: 3");
}

#[test]
fn a_core_dump_still_has_them() {
    let workshop = Workshop::open();
    let process = greedy(&workshop, "2");
    let core = workshop.path("core");
    dump::dump(&process.pid(), &core, |_, _| {});
    drop(process);
    explains(&workshop.hakmem(&["failures", "--core", text(&core)]));
    explains(&workshop.hakmem(&["core", text(&core)]));
}

#[test]
fn of_a_storm_the_latest_are_kept() {
    let workshop = Workshop::open();
    let process = greedy(&workshop, "999");
    let answer = workshop.hakmem(&["failures", "--json", &process.pid()]);
    let seen: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    assert_eq!(seen["count"], 1000);
    let latest = seen["latest"].as_array().unwrap();
    let numbers: Vec<u64> = latest
        .iter()
        .map(|failure| failure["number"].as_u64().unwrap())
        .collect();
    assert_eq!(numbers, (937..=1000).collect::<Vec<u64>>());
    let answer = workshop.hakmem(&["failures", &process.pid()]);
    answer.says("and 936 before these");
}

#[test]
fn a_process_that_was_refused_nothing_says_so() {
    let workshop = Workshop::open();
    let mut command = Command::new(workshop.compile("modest", WAITS, &[]));
    let process = Waiting::start(command.env("LD_PRELOAD", library()));
    let answer = workshop.hakmem(&["failures", &process.pid()]);
    answer.ended_with(0).says("no allocation was refused");
}
