//! `hakmem profile`, `leaks`, `why` and `diff`: who allocates what, in a running process and at its end.

mod support;

use serde_json::Value;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::waiting::Waiting;
use support::{Workshop, dump, library};

/// Keeps blocks of two kinds, prints "ready", and reads lines: after "t" it allocates and frees until the next line, after "k"
/// it keeps more blocks.
const KEEPER: &str = r#"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) void keep_large(void)
{
    void *volatile block = malloc(5000);
    memset(block, 1, 5000);
}
__attribute__((noinline)) void keep_small(void)
{
    void *volatile block = malloc(40);
    memset(block, 1, 40);
}
__attribute__((noinline)) void pass(void)
{
    void *volatile block = malloc(200);
    free(block);
}
int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < atoi(arguments[1]); i++) {
        keep_large();
        for (int k = 0; k < 20; k++) {
            keep_small();
        }
    }
    puts("ready");
    struct pollfd input = {0, POLLIN, 0};
    while (poll(&input, 1, 0) == 0) {
        for (int i = 0; i < 1000; i++) {
            pass();
        }
    }
    return 0;
}
"#;

fn keeper(workshop: &Workshop, environment: &[(&str, &str)]) -> Waiting {
    let program = workshop.compile("keeper", KEEPER, &["-O1"]);
    let mut command = Command::new(&program);
    command.arg("200").env("LD_PRELOAD", library());
    command.envs(environment.iter().copied());
    Waiting::start(&mut command)
}

fn is_sampled(workshop: &Workshop, pid: &str) -> bool {
    let answer = workshop.hakmem(&["options", pid]);
    let mut lines = answer.output.lines();
    let line = lines.find(|line| line.starts_with("sample_bytes"));
    line.unwrap().split_whitespace().nth(1) != Some("0")
}

fn site<'a>(snapshot: &'a Value, name: &str) -> &'a Value {
    let sites = snapshot["sites"].as_array().unwrap();
    let is_it = |site: &&Value| {
        let frames = site["frames"].as_array().unwrap();
        frames
            .iter()
            .any(|frame| frame.as_str().unwrap().starts_with(name))
    };
    sites.iter().find(is_it).unwrap_or(&Value::Null)
}

#[test]
fn what_lives_is_told_by_who_allocated_it() {
    let workshop = Workshop::open();
    let process = keeper(&workshop, &[("HAKMEM_SAMPLE_BYTES", "1")]);
    let answer = workshop.hakmem(&["profile", &process.pid(), "--json", "--live"]);
    answer.ended_with(0);
    let snapshot: Value = serde_json::from_str(&answer.output).unwrap();
    // If every block is a sample, nothing is estimated.
    assert_eq!(site(&snapshot, "keep_large")["live"]["bytes"], 1e6);
    assert_eq!(site(&snapshot, "keep_small")["live"]["blocks"], 4000.0);
    assert_eq!(site(&snapshot, "keep_small")["live_off"], 0.0);
    for options in [&["leaks"][..], &["profile"], &["why", "--sparse", "100"]] {
        let answer = workshop.hakmem(&[options, &[&process.pid()]].concat());
        answer.ended_with(0).says("keep_small (keeper)");
        assert!(!answer.output.contains('±'), "{}", answer.output);
    }
}

#[test]
fn the_ledger_knows_class_slack_by_samples() {
    let workshop = Workshop::open();
    let process = keeper(&workshop, &[("HAKMEM_SAMPLE_BYTES", "1")]);
    let answer = workshop.hakmem(&["ledger", &process.pid(), "--json"]);
    let said: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    // 4,000 blocks of 40 bytes in the class of 48, 200 of 5,000 in the class of 5,120, and a few others.
    let bytes = said["slack"]["bytes"].as_f64().unwrap();
    // The sampled share is applied to the resident bytes.
    assert!((55_000.0..60_000.0).contains(&bytes), "{said}");
    assert_eq!(said["slack"]["bytes_off"], 0.0);
    assert!(said["slack"]["samples"].as_u64().unwrap() >= 4200, "{said}");
    let plain = keeper(&workshop, &[]);
    workshop
        .hakmem(&["ledger", &plain.pid()])
        .ended_with(0)
        .says("is not known without samples");
}

#[test]
fn sampling_is_switched_on_from_outside_and_off_again() {
    let workshop = Workshop::open();
    let process = keeper(&workshop, &[]);
    let pid = process.pid();
    let look = ["profile", &pid, "--seconds", "0.5", "--every", "16384"];
    // A thread that only takes fast paths is seen, too.
    workshop
        .hakmem(&look)
        .ended_with(0)
        .says("pass (keeper) < main (keeper)");
    assert!(!is_sampled(&workshop, &pid));
    let rare = ["profile", &pid, "--seconds=0", "--every=1099511627776"];
    workshop
        .hakmem(&rare)
        .ended_with(0)
        .says("no sample was taken: too little was allocated, if anything");
}

/// A freed block of this size is reused by the next call, so no call takes a slow path.
#[test]
fn a_program_that_has_only_large_blocks_is_seen() {
    let workshop = Workshop::open();
    let source = KEEPER.replace("malloc(200)", "malloc(200000)");
    let program = workshop.compile("large", &source, &["-O1"]);
    let mut command = Command::new(&program);
    command.arg("0").env("LD_PRELOAD", library());
    let process = Waiting::start(&mut command);
    let look = ["profile", &process.pid(), "--seconds", "0.5"];
    workshop
        .hakmem(&look)
        .ended_with(0)
        .says("pass (large) < main (large)");
}

#[test]
fn a_signal_ends_the_look_and_not_the_switching_off() {
    let workshop = Workshop::open();
    let process = keeper(&workshop, &[]);
    let pid = process.pid();
    let look = ["profile", &pid, "--seconds", "600", "--every", "65536"];
    let mut command = workshop.command(&look);
    let child = command.stdout(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while !is_sampled(&workshop, &pid) && begin.elapsed() < Duration::from_secs(60) {}
    std::thread::sleep(Duration::from_millis(500)); // on a busy machine, too, it has allocated by then
    Command::new("kill")
        .args(["-TERM", &child.id().to_string()])
        .status()
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("pass (keeper)"));
    assert!(!is_sampled(&workshop, &pid));
}

#[test]
fn a_process_may_forbid_it() {
    let workshop = Workshop::open();
    let process = keeper(&workshop, &[("HAKMEM_REMOTE", "0")]);
    let pid = process.pid();
    workshop
        .hakmem(&["profile", &pid, "--seconds", "1"])
        .is_one_line(
            1,
            &format!(
                "process {pid} allows no tool to switch sampling on (HAKMEM_REMOTE=0): \
                 start it with HAKMEM_SAMPLE_BYTES=524288"
            ),
        );
}

#[test]
fn what_a_program_leaves_is_told_at_its_end() {
    let workshop = Workshop::open();
    let program = workshop.compile("keeper", KEEPER, &["-O1"]);
    for guarded in ["0", "2"] {
        let mut command = workshop.command(&["leaks", "--exit", "--"]);
        command.env("HAKMEM_GUARD_SAMPLE", guarded); // one in so many blocks lies between guards
        command.arg(&program).arg("10").stdin(Stdio::null());
        support::answer(command)
            .ended_with(0)
            .says("48.8 KiB  exact      10")
            .says("7.81 KiB  exact     200")
            .says("keep_small (keeper) < main (keeper)");
    }
}

#[test]
fn a_core_dump_has_its_profile() {
    let workshop = Workshop::open();
    let process = keeper(&workshop, &[("HAKMEM_SAMPLE_BYTES", "4096")]);
    let core = workshop.path("core");
    dump::dump(&process.pid(), &core, |_, _| {});
    workshop
        .hakmem(&["profile", "--core", support::text(&core)])
        .ended_with(0)
        .says("keep_large (keeper)");
}

#[test]
fn what_has_grown_is_told_by_who_did() {
    let workshop = Workshop::open();
    let (one, two) = (workshop.path("one.json"), workshop.path("two.json"));
    for (path, rounds) in [(&one, "10"), (&two, "30")] {
        let program = workshop.compile("keeper", KEEPER, &["-O1"]);
        let mut command =
            workshop.command(&["leaks", "--save", support::text(path), "--exit", "--"]);
        command.arg(&program).arg(rounds).stdin(Stdio::null());
        support::answer(command).ended_with(0);
    }
    workshop
        .hakmem(&["diff", support::text(&one), support::text(&two)])
        .ended_with(0)
        .says("+97.7 KiB  exact     +20")
        .says("keep_large (keeper)");
}

/// 20,000 call stacks, each a different sequence of calls, and 265,000 blocks: more than the library keeps of either.
#[test]
fn what_found_no_place_is_said_in_every_view() {
    const MANY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void turn(unsigned ways, int left);
__attribute__((noinline)) void one(unsigned ways, int left) { turn(ways, left); __asm__ volatile(""); }
__attribute__((noinline)) void two(unsigned ways, int left) { turn(ways, left); __asm__ volatile(""); }
static void turn(unsigned ways, int left)
{
    if (left == 0) {
        void *volatile block = malloc(16);
        return;
    }
    (ways & 1 ? one : two)(ways >> 1, left - 1);
}
int main(int count, char **arguments)
{
    for (unsigned i = 0; i < 265000; i++) {
        turn(i % 100000, 17);
    }
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;
    let workshop = Workshop::open();
    let program = workshop.compile("many", MANY, &[]);
    let mut command = workshop.command(&["leaks", "--save", "saved", "--exit", "--"]);
    command.arg(&program).stdin(Stdio::null());
    let dropped = "samples are missing";
    let stackless = "samples are (unknown): a process keeps 65,536 call stacks";
    support::answer(command)
        .ended_with(0)
        .says(dropped)
        .says(stackless)
        .says("at least");
    workshop
        .hakmem(&["diff", "saved", "saved"])
        .ended_with(0)
        .says(dropped)
        .says("nothing has changed in what is known");
    let mut command = Command::new(&program);
    command.env("LD_PRELOAD", library());
    let process = Waiting::start(command.env("HAKMEM_SAMPLE_BYTES", "1"));
    let answer = workshop.hakmem(&["why", &process.pid()]);
    answer.ended_with(0).says(dropped).says(stackless);
}

/// Go's own tool reads the file; without Go, the test only checks that it is gzip.
#[test]
fn pprof_reads_what_is_written_for_it() {
    let workshop = Workshop::open();
    let process = keeper(&workshop, &[("HAKMEM_SAMPLE_BYTES", "4096")]);
    let (profile, graph) = (workshop.path("heap.pb.gz"), workshop.path("heap.html"));
    workshop
        .hakmem(&[
            "profile",
            &process.pid(),
            "--pprof",
            support::text(&profile),
            "--flamegraph",
            support::text(&graph),
        ])
        .ended_with(0);
    assert_eq!(std::fs::read(&profile).unwrap()[..2], [0x1F, 0x8B]);
    let page = std::fs::read_to_string(&graph).unwrap();
    assert!(page.contains("keep_large (keeper)") && !page.contains("http"));
    let go = Command::new("go")
        .args(["tool", "pprof", "-top"])
        .arg(&profile)
        .output();
    match go {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            for part in ["Type: inuse_space", "keep_large", "File: keeper"] {
                assert!(text.contains(part), "{text}");
            }
        }
        Err(_) => eprintln!("skipped: go is not installed"),
    }
}

/// Two calls on one line are one site with two stacks.
#[test]
fn what_was_allocated_before_the_look_is_not_in_it() {
    let workshop = Workshop::open();
    let source = KEEPER.replace(
        "malloc(5000);",
        "malloc(5000); void *volatile other = malloc(6000);",
    );
    let program = workshop.compile("keeper", &source, &["-g"]);
    let mut command = Command::new(program);
    command.arg("50").env("LD_PRELOAD", library());
    let process = Waiting::start(command.env("HAKMEM_SAMPLE_BYTES", "1"));
    let profile = ["profile", &process.pid(), "--json", "--seconds"];
    let answer = workshop.hakmem(&[&profile[..], &["0"]].concat());
    let said: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    assert_eq!(site(&said, "keep_large")["allocated"]["samples"], 0);
    assert_eq!(site(&said, "keep_large")["live"]["blocks"], 100.0);
}

#[test]
fn who_pins_a_slab_is_found() {
    const PINNER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
enum { BLOCKS = 20000 };
static void *blocks[BLOCKS];
__attribute__((noinline)) void *passing(void) { void *volatile block = malloc(500); return block; }
__attribute__((noinline)) void *pinning(void) { void *volatile block = malloc(500); return block; }
int main(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = i % 60 == 0 ? pinning() : passing();
        memset(blocks[i], 1, 500);
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (i % 60 != 0) {
            free(blocks[i]);
        }
    }
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    char end;
    return read(0, &end, 1) != 0;
}
"#;
    let workshop = Workshop::open();
    let program = workshop.compile("pinner", PINNER, &["-O1"]);
    let mut command = Command::new(&program);
    command
        .env("LD_PRELOAD", library())
        .env("HAKMEM_SAMPLE_BYTES", "1");
    let process = Waiting::start(&mut command);
    let answer = workshop.hakmem(&["why", &process.pid(), "--json"]);
    answer.ended_with(0);
    let why: Value = serde_json::from_str(&answer.output).unwrap();
    let first = &why["pins"][0];
    assert!(
        first["frames"][0].as_str().unwrap().starts_with("pinning"),
        "{why}"
    );
    let free = why["sparse"]["free_bytes"].as_f64().unwrap();
    let pinned = first["pinned_bytes"].as_f64().unwrap();
    assert!(pinned > 1e6 && pinned <= free * 1.001, "{why}");
}

/// Keeps more with each letter that it reads; after the last one, an allocation is refused.
#[test]
fn why_memory_grew_and_what_was_refused() {
    const GROWER: &str = r#"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) void *growing(void) { return memset(malloc(3000), 1, 3000); }
int main(void)
{
    void *volatile refused;
    char letter;
    setvbuf(stdout, NULL, _IONBF, 0);
    free(growing());
    puts("ready");
    while (read(0, &letter, 1) == 1) {
        for (int i = 0; i < 1000; i++) {
            ((void **)growing())[0] = stdout;
        }
        refused = malloc(PTRDIFF_MAX / 2);
        puts("grown");
    }
    return refused != NULL;
}
"#;
    let workshop = Workshop::open();
    let program = workshop.compile("grower", GROWER, &["-O1"]);
    let mut command = Command::new(&program);
    command
        .env("LD_PRELOAD", library())
        .env("HAKMEM_SAMPLE_BYTES", "1");
    let mut process = Waiting::start(&mut command);
    let pid = process.pid();
    workshop
        .hakmem(&["why", &pid, "--save", "first"])
        .ended_with(0);
    process.answers("x", "grown");
    workshop
        .hakmem(&["why", &pid, "--since", "first"])
        .ended_with(0)
        .says("resident memory: ")
        .says("live blocks")
        .says("+1000")
        .says("growing (grower")
        .says("1 allocation refused meanwhile");
    workshop
        .hakmem(&["why", &pid])
        .ended_with(0)
        .says("allocations that were refused, the latest:")
        .says("the address space");
    workshop
        .hakmem(&["why", &pid, "--seconds", "0"])
        .ended_with(0)
        .says("the program holds as many blocks of each size as before");
    let other = Waiting::start(&mut command);
    workshop
        .hakmem(&["why", &other.pid(), "--since", "first"])
        .ended_with(0)
        .says(&format!("compared with another process, process {pid}: "));
    std::fs::write(workshop.path("other"), "{}").unwrap();
    workshop
        .hakmem(&["why", &pid, "--since", "other"])
        .is_one_line(2, "other was not written by 'hakmem why --save'");
}

/// Go calls C on another stack, and its own functions have no unwind tables.
#[test]
fn callers_in_go_are_seen() {
    let workshop = Workshop::open();
    let source = r#"
package main
/*
#include <stdlib.h>
static void *keep(int n) { char *block = malloc(n); block[0] = 1; return block; }
*/
import "C"
import ("fmt"; "os")
//go:noinline
func inner() { for i := 0; i < 5; i++ { C.keep(C.int(50000)) } }
//go:noinline
func outer() { inner() }
func main() {
    outer()
    done := make(chan bool)
    go func() { inner(); done <- true }()
    <-done
    fmt.Println("ready")
    os.Stdin.Read(make([]byte, 1))
}
"#;
    workshop.write("main.go", source);
    let mut build = Command::new("go");
    build.args(["build", "-o", "program", "main.go"]);
    let made = build.env("CGO_ENABLED", "1").current_dir(workshop.folder());
    if !made.status().is_ok_and(|status| status.success()) {
        eprintln!("left out: go is not installed");
        return;
    }
    let mut command = Command::new(workshop.path("program"));
    command.env("LD_PRELOAD", library());
    let process = Waiting::start(command.env("HAKMEM_SAMPLE_BYTES", "1"));
    workshop
        .hakmem(&["leaks", &process.pid()])
        .ended_with(0)
        .says("keep (main.go:5) < main.inner (main.go:10) < main.outer (main.go:12)")
        .says("keep (main.go:5) < main.inner (main.go:10) < main.main.func1 (main.go:16)");
}
