//! `hakmem explain`: the settings of a process, contradictions, and decisions.

mod support;

use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};
use support::waiting::{WAITS, Waiting};
use support::{Workshop, library};

#[test]
fn a_process_is_explained() {
    let workshop = Workshop::open();
    let program = workshop.compile("waits", WAITS, &[]);
    let mut command = Command::new(&program);
    command
        .env("LD_PRELOAD", library())
        .env("HAKMEM_LIMIT_SOFT", "2G")
        .env("HAKMEM_LIMIT_HARD", "1G")
        .env("HAKMEM_AB", "magazine_bytes=1M|16M");
    let process = Waiting::start(&mut command);
    let said = workshop.hakmem(&["explain", &process.pid()]);
    let text = &said.ended_with(0).output;
    assert!(
        text.contains("limit_soft has no effect: it is above limit_hard"),
        "{text}"
    );
    let said = workshop.hakmem(&["explain", "--json", &process.pid()]);
    let all: Value = serde_json::from_str(&said.ended_with(0).output).unwrap();
    // The trial has not begun, or is not decided.
    let decisions = &all["decisions"];
    assert_eq!(decisions["count"], 0);
    assert!(decisions["running"].is_null() || decisions["running"]["values"][1] == 16 << 20);
    assert_eq!(all["contradictions"].as_array().unwrap().len(), 1);
}

#[test]
fn a_process_with_the_defaults_has_no_more_to_say() {
    let workshop = Workshop::open();
    let program = workshop.compile("waits", WAITS, &[]);
    let mut command = Command::new(&program);
    command.env("LD_PRELOAD", library());
    let process = Waiting::start(&mut command);
    let said = workshop.hakmem(&["explain", &process.pid()]);
    let text = &said.ended_with(0).output;
    assert!(text.contains("every option has its default"), "{text}");
    assert!(text.contains("no contradictions"), "{text}");
    assert!(text.contains("nothing was tried"), "{text}");
}

/// Allocates and frees more blocks than small magazines hold, until its input ends.
const SWINGS: &str = r#"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    static char *blocks[5000];
    puts("ready");
    fflush(stdout);
    struct pollfd input = {.fd = 0, .events = POLLIN};
    while (poll(&input, 1, 0) == 0) {
        for (int i = 0; i < 5000; i++) {
            blocks[i] = malloc(64);
            blocks[i][0] = 1;
        }
        for (int i = 0; i < 5000; i++) {
            free(blocks[i]);
        }
    }
    return 0;
}
"#;

fn swings(workshop: &Workshop, options: &[(&str, &str)]) -> Waiting {
    let program = workshop.compile("swings", SWINGS, &["-O1", "-fno-builtin"]);
    let mut command = Command::new(&program);
    command
        .env("LD_PRELOAD", library())
        .envs(options.iter().copied());
    Waiting::start(&mut command)
}

/// The output, once it contains this text.
fn explained(workshop: &Workshop, process: &Waiting, text: &str) -> String {
    let end = Instant::now() + Duration::from_secs(100);
    loop {
        let said = workshop.hakmem(&["explain", &process.pid()]);
        if said.ended_with(0).output.contains(text) {
            return said.output.clone();
        }
        assert!(Instant::now() < end, "{}", said.output);
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_trial_is_shown_while_it_runs_and_when_it_is_decided() {
    let workshop = Workshop::open();
    let process = swings(&workshop, &[("HAKMEM_AB", "magazine_bytes=4K|16M")]);
    explained(&workshop, &process, "4K or 16M: not decided yet");
    let text = explained(&workshop, &process, "16M costs less than 4K");
    assert!(
        text.contains("recommended: HAKMEM_MAGAZINE_BYTES=16M, the present value"),
        "{text}"
    );
    assert!(text.contains("  magazine_bytes: magazines were empty "));
    assert!(!text.contains("to try:"), "{text}");
}

#[test]
fn counters_hint_at_a_trial() {
    let workshop = Workshop::open();
    let process = swings(&workshop, &[("HAKMEM_MAGAZINE_BYTES", "4K")]);
    let hint = "to try: HAKMEM_AB='magazine_bytes=4K|16K'; blocks move back and forth";
    let text = explained(&workshop, &process, hint);
    assert!(!text.contains("\nparcel_bytes "), "{text}");
    let all = workshop.hakmem(&["explain", "--all", &process.pid()]);
    let text = &all.ended_with(0).output;
    assert!(text.contains("\nparcel_bytes "), "{text}");
}

#[test]
fn bad_input_is_one_line() {
    let workshop = Workshop::open();
    workshop
        .hakmem(&["explain"])
        .is_one_line(2, "which process? Give its ID, or --core FILE");
    workshop
        .hakmem(&["explain", "2147483647"])
        .is_one_line(2, "there is no process 2147483647, or it has just ended");
}
