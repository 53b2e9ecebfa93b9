//! `hakmem cold` in a process whose untouched live blocks are known.

mod support;

use serde_json::Value;
use std::process::{Command, Stdio};
use support::waiting::Waiting;
use support::{Workshop, library};

/// Has blocks that it never touches again, some of them zero, and others that it writes to all the time: on separate pages,
/// beside untouched ones, and in one half of a large block.
const PROGRAM: &str = r#"
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
static uint64_t *hot[10000];
static int hot_count;
static void *filled(size_t bytes, int with)
{
    return memset(malloc(bytes), with, bytes);
}
__attribute__((noinline)) void keep_cold(void) { filled(1000, 1); __asm__ volatile(""); }
__attribute__((noinline)) void keep_zero(void) { filled(2000, 0); __asm__ volatile(""); }
__attribute__((noinline)) void keep_hot(void) { hot[hot_count++] = filled(3000, 1); }
__attribute__((noinline)) void keep_beside(void) { filled(100, 1); __asm__ volatile(""); }
__attribute__((noinline)) void keep_hot_beside(void) { hot[hot_count++] = filled(100, 1); }
__attribute__((noinline)) char *keep_large(void) { return filled(1 << 20, 1); }
int main(void)
{
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0); /* a huge page would be touched as a whole */
    for (int i = 0; i < 4000; i++) {
        keep_cold();
        keep_beside();
        keep_hot_beside();
    }
    for (int i = 0; i < 1000; i++) {
        keep_zero();
        keep_hot();
    }
    char *large = keep_large();
    puts("ready");
    fflush(stdout);
    struct pollfd input = {0, POLLIN, 0};
    for (uint64_t turn = 1; poll(&input, 1, 1) == 0; turn++) {
        for (int i = 0; i < hot_count; i++) {
            for (int word = 0; word < 12; word++) {
                hot[i][word] = turn;
            }
        }
        for (size_t at = 0; at < 1 << 19; at += 64) {
            memcpy(large + at, &turn, sizeof(turn));
        }
    }
    return 0;
}
"#;

/// Has no malloc.
const BARE: &str = r#"
void _start(void)
{
    for (;;) {
#if defined(__x86_64__)
        long number = 34; /* pause */
        __asm__ volatile("syscall" : "+a"(number) : : "rcx", "r11", "memory");
#elif defined(__aarch64__)
        register long number __asm__("x8") = 73; /* ppoll */
        register long none __asm__("x0") = 0, zero __asm__("x1") = 0, forever __asm__("x2") = 0;
        __asm__ volatile("svc 0" : "+r"(none) : "r"(number), "r"(zero), "r"(forever) : "memory");
#endif
    }
}
"#;

fn start(workshop: &Workshop, sample_bytes: &str) -> Waiting {
    let program = workshop.compile("program", PROGRAM, &[]);
    let mut command = Command::new(&program);
    command.env("LD_PRELOAD", library());
    Waiting::start(command.env("HAKMEM_SAMPLE_BYTES", sample_bytes))
}

/// Two seconds: even on a busy machine, the program makes a round in that time.
fn cold(workshop: &Workshop, process: &Waiting, more: &[&str]) -> Value {
    let pid = process.pid();
    let arguments = [&["cold", &pid, "--seconds", "2", "--json"], more].concat();
    let answer = workshop.hakmem(&arguments);
    serde_json::from_str(&answer.ended_with(0).output).unwrap()
}

fn site<'a>(report: &'a Value, name: &str) -> &'a Value {
    let has = |site: &&Value| {
        let mut frames = site["frames"].as_array().unwrap().iter();
        frames.any(|frame| frame.as_str().unwrap().starts_with(&format!("{name} (")))
    };
    let sites = report["sites"].as_array().unwrap();
    sites
        .iter()
        .find(has)
        .unwrap_or_else(|| panic!("{name} is not in {report}"))
}

fn of_size(report: &Value, bytes: u64) -> &Value {
    let mut sizes = report["sizes"].as_array().unwrap().iter();
    let found = sizes.find(|size| size["block_bytes"] == bytes);
    found.unwrap_or_else(|| panic!("no blocks of {bytes} in {report}"))
}

/// Pages that may lack idle bits: those on their way to the kernel's lists, and the last ones of the machine's memory.
fn unmarked_bytes(report: &Value) -> f64 {
    let bits = report["reads_are_known"] == true;
    if bits { 100.0 * 4096.0 } else { 0.0 }
}

/// The figure is this many bytes, give or take a few shared pages.
#[track_caller]
fn is_about(row: &Value, figure: &str, bytes: f64, fewer: f64) {
    let found = row[figure].as_f64().unwrap();
    let off = 20_000.0 + bytes / 20.0;
    assert!(
        (bytes - off - fewer..=bytes + off).contains(&found),
        "{figure} is {found}, not {bytes}: {row}"
    );
}

#[test]
fn cold_zero_and_neighbours_are_told_by_call_site() {
    let workshop = Workshop::open();
    let process = start(&workshop, "1");
    let report = cold(&workshop, &process, &["--price", "1024"]);
    for (name, live, cold, zero, beside) in [
        ("keep_cold", 4e6, 4e6, 0.0, 0.0),
        ("keep_zero", 2e6, 2e6, 2e6, 0.0),
        ("keep_beside", 4e5, 4e5, 0.0, 4e5),
        ("keep_hot_beside", 4e5, 0.0, 0.0, 0.0),
        ("keep_large", 1048576.0, 524288.0, 0.0, 0.0),
    ] {
        let row = site(&report, name);
        is_about(row, "live_bytes", live, 0.0);
        is_about(row, "resident_bytes", live, 0.0);
        is_about(row, "cold_bytes", cold, unmarked_bytes(&report));
        is_about(row, "zero_bytes", zero, 0.0);
        is_about(row, "beside_bytes", beside, unmarked_bytes(&report));
        assert_eq!(row["cold_off_bytes"], 0, "{row}");
        // The price of one MiB is 1.
        let price = row["price"].as_f64().unwrap();
        assert!(
            (price - row["cold_bytes"].as_f64().unwrap() / 1048576.0).abs() < 1e-4,
            "{row}"
        );
    }
    assert_eq!(site(&report, "keep_cold")["sizes"][0]["block_bytes"], 1024);
    let shown = workshop.hakmem(&["cold", &process.pid(), "--seconds", "2"]);
    shown
        .ended_with(0)
        .says("keep_cold (program) < main (program)")
        .says("by size, of all blocks:");
    assert!(!shown.output.contains("a month"), "{}", shown.output);
}

#[test]
fn without_samples_all_is_told_by_size() {
    let workshop = Workshop::open();
    let process = start(&workshop, "0");
    let report = cold(&workshop, &process, &["--referenced"]);
    assert_eq!(report["sites"].as_array().unwrap().len(), 0);
    let size = |bytes: u64| of_size(&report, bytes);
    for (bytes, live, cold, zero, beside) in [
        (1024, 4096e3, 4096e3, 0.0, 0.0),
        (2048, 2048e3, 2048e3, 2048e3, 0.0),
        (112, 896e3, 448e3, 0.0, 448e3),
        (0, 1048576.0, 524288.0, 0.0, 0.0),
    ] {
        is_about(size(bytes), "live_bytes", live, 0.0);
        is_about(size(bytes), "cold_bytes", cold, unmarked_bytes(&report));
        is_about(size(bytes), "zero_bytes", zero, 0.0);
        is_about(size(bytes), "beside_bytes", beside, unmarked_bytes(&report));
    }
    // Untouched pages are not referenced either, and each round touches some pages.
    let referenced = &report["how"]["referenced"];
    let (all, part) = (
        &referenced["resident_bytes"],
        &referenced["referenced_bytes"],
    );
    let (all, part) = (all.as_u64().unwrap(), part.as_u64().unwrap());
    assert!(part > 0 && part + (4 << 20) < all, "{referenced}");
    let shown = workshop.hakmem(&["cold", &process.pid(), "--seconds", "0.1"]);
    shown.ended_with(0).says("by call site: nothing is known");
}

#[test]
fn what_cannot_be_told_is_one_line() {
    let workshop = Workshop::open();
    let process = start(&workshop, "0");
    let pid = process.pid();
    let refused = |more: &[&str], text: &str| {
        let arguments = [&["cold", &pid], more].concat();
        workshop.hakmem(&arguments).is_one_line(2, text);
    };
    refused(&["--seconds=-1"], "--seconds is from 0 to a million");
    refused(
        &["--price=-1"],
        "--price is what a GiB costs a month, a number from 0 on",
    );
    refused(
        &["--by", "thread"],
        "cold memory cannot be grouped by thread: use another value of --by",
    );
    let mut command = workshop.command(&["cold", &pid, "--seconds", "600"]);
    let child = command
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(process);
    let answer = support::Answer::from(child.wait_with_output().unwrap());
    // The process may have ended before the first look.
    if answer.code == Some(1) {
        let text = "it ended too early to tell what it does not touch";
        answer.is_one_line(1, &format!("process {pid} has ended: {text}"));
    } else {
        answer.is_one_line(
            2,
            &format!("there is no process {pid}, or it has just ended"),
        );
    }
    let bare = workshop.compile("bare", BARE, &["-nostdlib", "-static"]);
    let mut other = Command::new(bare).spawn().unwrap();
    let answer = workshop.hakmem(&["cold", &other.id().to_string()]);
    other.kill().unwrap();
    other.wait().unwrap();
    let text = "cold reads hakmem's heap, and glibc's by size";
    answer.is_one_line(
        1,
        &format!(
            "process {}: hakmem is not in it: ask 'hakmem doctor'; {text}",
            other.id()
        ),
    );
}

#[test]
fn on_glibc_all_is_told_by_size() {
    let workshop = Workshop::open();
    let program = workshop.compile("program", PROGRAM, &[]);
    let process = Waiting::start(&mut Command::new(&program));
    let report = cold(&workshop, &process, &["--referenced"]);
    assert_eq!(report["allocator"], "glibc");
    assert_eq!(report["how"]["pages_unclear"], 0, "{report}");
    for (bytes, live, cold, zero, beside) in [
        (1000, 4e6, 4e6, 0.0, 4e6),
        (104, 832e3, 416e3, 0.0, 416e3),
        (0, 1048576.0, 524288.0, 0.0, 0.0),
    ] {
        let row = of_size(&report, bytes);
        is_about(row, "live_bytes", live, 0.0);
        is_about(row, "cold_bytes", cold, unmarked_bytes(&report));
        is_about(row, "zero_bytes", zero, 0.0);
        is_about(row, "beside_bytes", beside, unmarked_bytes(&report));
    }
    is_about(of_size(&report, 2040), "zero_bytes", 2008e3, 0.0);
    let shown = workshop.hakmem(&["cold", &process.pid(), "--seconds", "0.1"]);
    shown
        .ended_with(0)
        .says("as glibc does not record who allocates a block")
        .says("mappings of their own");
}
