//! A process in a time namespace has another clock than the command. Here the command is the one that has such a clock.

mod support;

use std::process::Command;
use support::waiting::Waiting;
use support::{Answer, Workshop, answer, library};

const KEEPER: &str = r#"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
static void *kept[1000];
static void keep(int i) {
    free(kept[i]);
    kept[i] = malloc(200);
}
int main(int argc, char **argv) {
    struct pollfd input = {0, POLLIN, 0};
    for (int i = 0; i < 1000; i++) {
        keep(i);
    }
    puts("ready");
    fflush(stdout);
    (void)argv;
    while (poll(&input, 1, argc > 1 ? -1 : 0) == 0) {
        for (int i = 0; i < 1000; i++) {
            keep(i);
        }
    }
    return 0;
}
"#;

/// None where only root may have another clock.
fn answer_by_another_clock(
    workshop: &Workshop,
    seconds: &str,
    arguments: &[&str],
) -> Option<Answer> {
    let hakmem = workshop.command(arguments);
    let mut command = Command::new("unshare");
    command.args(["--time", "--monotonic", seconds, "--"]);
    command.arg(hakmem.get_program()).args(hakmem.get_args());
    let said = answer(command);
    (!said.errors.contains("unshare")).then_some(said)
}

#[test]
fn samples_have_their_ages_and_sampling_stays_on() {
    let workshop = Workshop::open();
    let program = workshop.compile("keeper", KEEPER, &["-O1"]);
    let mut command = Command::new(&program);
    command.env("LD_PRELOAD", library());
    let process = Waiting::start(&mut command);
    // Behind by more than sampling goes on without a command.
    let look = [
        "profile",
        &process.pid(),
        "--seconds",
        "1.5",
        "--every",
        "16384",
    ];
    let Some(said) = answer_by_another_clock(&workshop, "-30", &look) else {
        return;
    };
    said.ended_with(0).says("keep (keeper) < main (keeper)");
    assert_eq!(said.errors, "");

    // With an argument, it only waits: all its blocks are still there at each look.
    let sampled = Waiting::start(command.arg("wait").env("HAKMEM_SAMPLE_BYTES", "1K"));
    let leaks = ["leaks", &sampled.pid(), "--older", "3600"];
    answer_by_another_clock(&workshop, "100000", &leaks)
        .unwrap()
        .ended_with(0)
        .says("no block that is still allocated is older than");
}
