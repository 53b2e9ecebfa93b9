//! Rows of a table can be told apart: grouped as the user wants, without excluded functions, and never with two that look
//! alike.

mod support;

use std::process::Command;
use support::waiting::Waiting;
use support::{Workshop, library, text};

/// Two places that allocate through the same wrappers; one has more callers than are shown.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
#define NEVER_INLINE __attribute__((noinline, noclone))
static void *kept[4];
NEVER_INLINE void *pool_take(size_t bytes)
{
    void *volatile block = malloc(bytes);
    return memset(block, 1, bytes);
}
NEVER_INLINE void *pool_copy(size_t bytes)
{
    void *volatile block = pool_take(bytes);
    return block;
}
NEVER_INLINE void *make(size_t bytes)
{
    void *volatile block = pool_copy(bytes);
    return block;
}
NEVER_INLINE void orders(void) { kept[0] = make(30000); }
NEVER_INLINE void invoices(void) { kept[1] = make(50000); }
int main(void)
{
    orders();
    invoices();
    return 0;
}
"#;

fn leaks(workshop: &Workshop, more: &[&str]) -> String {
    let program = workshop.path("program");
    if !program.exists() {
        workshop.compile("program", PROGRAM, &["-g", "-fno-optimize-sibling-calls"]);
    }
    let answer = workshop.hakmem(&[&["leaks", "--exit"], more, &["--", text(&program)]].concat());
    answer.ended_with(0);
    answer.output
}

#[test]
fn rows_that_would_look_alike_say_where_they_differ() {
    let workshop = Workshop::open();
    let output = leaks(&workshop, &[]);
    let common = "make (program.c:18) < … ";
    for function in ["orders (program.c:21)", "invoices (program.c:22)"] {
        assert!(output.contains(&format!("{common}{function}")), "{output}");
    }
}

#[test]
fn what_is_folded_is_not_the_place() {
    let workshop = Workshop::open();
    let output = leaks(&workshop, &["--fold", "pool_*,make"]);
    for function in [
        "orders (program.c:21) < main",
        "invoices (program.c:22) < main",
    ] {
        assert!(output.contains(function), "{output}");
    }
    let by_function = leaks(&workshop, &["--fold=pool_*,make", "--by=function"]);
    assert!(
        by_function.contains("  invoices (program.c)\n"),
        "{by_function}"
    );
}

#[test]
fn a_table_has_a_row_for_each_of_what_is_asked_for() {
    let workshop = Workshop::open();
    for (by, row) in [
        ("function", "pool_take (program.c)"),
        ("line", "pool_take (program.c:8)"),
        ("file", "program.c"),
        ("module", "program"),
    ] {
        let output = leaks(&workshop, &["--by", by]);
        let lines: Vec<&str> = output.lines().filter(|line| line.ends_with(row)).collect();
        // 80,000 bytes in two blocks.
        let is_sum = |line: &str| line.contains("78.1 KiB") && line.contains(" 2 ");
        assert!(lines.iter().any(|line| is_sum(line)), "{by}: {output}");
    }
}

#[test]
fn a_trace_is_shown_without_what_is_folded() {
    let workshop = Workshop::open();
    let program = workshop.compile("program", PROGRAM, &["-g", "-fno-optimize-sibling-calls"]);
    let recorded = workshop.hakmem(&["record", "--stacks", "--", text(&program)]);
    recorded.ended_with(0);
    let sites = ["trace", "top-sites", "trace.hkt"];
    workshop
        .hakmem(&sites)
        .ended_with(0)
        .says("    pool_take (");
    let folded = workshop.hakmem(&[&sites[..], &["--fold=pool_*"]].concat());
    folded.ended_with(0).says("    make (program.c:18)");
    assert!(!folded.output.contains("pool_take"), "{}", folded.output);
    let peak = workshop.hakmem(&[
        "trace",
        "peak",
        "trace.hkt",
        "--by=function",
        "--fold=pool_*,make",
    ]);
    peak.ended_with(0)
        .says("the peak was ")
        .says("  invoices (program.c)")
        .says("no temporary blocks");
}

/// Each keeps 4,000,000 bytes, and waits.
const WORKERS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_barrier_t both;
static void *work(void *name)
{
    pthread_setname_np(pthread_self(), name);
    void *volatile block = malloc(4000000);
    memset(block, 1, 4000000);
    void *volatile freed = malloc(2000000);
    free(freed);
    pthread_barrier_wait(&both);
    pause();
    return NULL;
}
int main(void)
{
    pthread_t threads[2];
    pthread_barrier_init(&both, NULL, 3);
    pthread_create(&threads[0], NULL, work, "reader 1");
    pthread_create(&threads[1], NULL, work, "writer");
    pthread_barrier_wait(&both);
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

#[test]
fn threads_have_rows_with_their_names() {
    let workshop = Workshop::open();
    let program = workshop.compile("workers", WORKERS, &["-D_GNU_SOURCE", "-pthread"]);
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library());
    command.env("HAKMEM_SAMPLE_BYTES", "1");
    let process = Waiting::start(&mut command);
    for (command, view, size) in [
        ("profile", "--live", "3.81 MiB"),
        ("profile", "--allocated", "5.72 MiB"),
        ("leaks", "--all", "3.81 MiB"),
    ] {
        let answer = workshop.hakmem(&[command, &process.pid(), "--by=thread", view]);
        for name in ["(reader 1)", "(writer)"] {
            let mut lines = answer.output.lines();
            let row = lines.find(|line| line.contains(name) && line.contains("  thread "));
            let row = row.unwrap_or_else(|| panic!("{}", answer.output));
            assert!(row.contains(size), "{row}");
        }
    }
    let peak = ["profile", &process.pid(), "--by=thread", "--peak"];
    workshop
        .hakmem(&peak)
        .ended_with(2)
        .says("use --by thread with --allocated or --live");
}
