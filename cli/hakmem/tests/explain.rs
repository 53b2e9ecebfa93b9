//! `hakmem explain`: what is set in a process, what contradicts itself, and what was decided.

mod support;

use serde_json::Value;
use std::process::Command;
use support::waiting::Waiting;
use support::{Workshop, library};

const WAITS: &str = r#"
#include <stdio.h>
#include <unistd.h>
int main(void)
{
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

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
