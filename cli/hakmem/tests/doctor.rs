//! A process without hakmem is read from outside; the result agrees with the process's own figures.

mod support;

use serde_json::Value;
use std::process::Command;
use support::dump::dump;
use support::waiting::{WAITS, Waiting};
use support::{Workshop, library, text};

/// Has as many threads as requested; live and free blocks of many sizes, and large ones. Prints the result of mallinfo2; on
/// `t`, prints how many KiB malloc_trim has given back. On `g` it allocates 8 MiB more, on `d` it damages its heap.
const PROGRAM: &str = r#"
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_barrier_t all_have, end;
static char line[4096];
static void fill(int count, size_t most, unsigned seed, int last)
{
    void **blocks = malloc(count * sizeof(void *));
    for (int i = 0; i < count; i++) {
        seed = seed * 1103515245 + 12345;
        size_t bytes = 16 + (seed >> 16) % most;
        blocks[i] = malloc(bytes);
        memset(blocks[i], 1, bytes);
    }
    for (int i = 0; i < count; i++) {
        if (i % 5 != 0 || i > count / 2 && i < last) {
            free(blocks[i]);
        }
    }
}
static void *work(void *seed)
{
    fill(10000, 1000, (unsigned)(size_t)seed, 10000);
    pthread_barrier_wait(&all_have);
    pthread_barrier_wait(&end);
    return NULL;
}
static long resident_kib(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    fscanf(file, "%*ld %ld", &pages);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
int main(int count, char **arguments)
{
    int threads = atoi(arguments[1]);
    setvbuf(stdout, line, _IOLBF, sizeof line);
    setvbuf(stdin, NULL, _IONBF, 0);
    resident_kib();
    pthread_barrier_init(&all_have, NULL, threads + 1);
    pthread_barrier_init(&end, NULL, threads + 1);
    for (int i = 0; i < threads; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, work, (void *)(size_t)(i + 1));
    }
    fill(50000, 300, 7, 49000); /* what is free ends before the heap does */
    for (int i = 0; i < 5; i++) {
        memset(malloc((i + 1) * 1000000), 1, 500000);
    }
    pthread_barrier_wait(&all_have);
    struct mallinfo2 info = mallinfo2();
    printf("ready\n");
    printf("[%zu, %zu, %zu, %zu, %zu]\n", info.arena, info.uordblks, info.fordblks, info.hblks, info.hblkhd);
    for (char what; read(0, &what, 1) == 1;) {
        if (what == 't') {
            long before = resident_kib();
            malloc_trim(0);
            printf("%ld\n", before - resident_kib());
        } else if (what == 'g') {
            for (int i = 0; i < 80000; i++) {
                memset(malloc(90), 1, 90);
            }
            printf("grown\n");
        } else {
            char *block = malloc(1000);
            for (int i = 0; i < 100; i++) {
                malloc(1000);
            }
            ((size_t *)block)[-1] = 0x4141414141414141;
            printf("damaged\n");
        }
    }
    return 0;
}
"#;

struct Told {
    process: Waiting,
    arena: u64,
    used: u64,
    free: u64,
    large_blocks: u64,
    large_bytes: u64,
}

fn start(mut command: Command) -> Told {
    let mut process = Waiting::start(&mut command);
    let told: Vec<u64> = serde_json::from_str(&process.next_line()).unwrap();
    Told {
        process,
        arena: told[0],
        used: told[1],
        free: told[2],
        large_blocks: told[3],
        large_bytes: told[4],
    }
}

fn program(workshop: &Workshop, threads: u32, arguments: &[&str]) -> Command {
    let arguments = [arguments, &["-pthread"]].concat();
    let mut command = Command::new(workshop.compile("mallinfo", PROGRAM, &arguments));
    command.arg(threads.to_string());
    command
}

fn examine(workshop: &Workshop, subject: &str) -> Value {
    let answer = workshop.hakmem(&["doctor", "--json", subject]);
    serde_json::from_str(&answer.ended_with(0).output).unwrap()
}

fn number(value: &Value, path: &str) -> u64 {
    let found = value.pointer(path).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("{path} is not in {value:#}"))
}

/// Equal within 1 %.
fn is_near(found: u64, told: u64, what: &str) {
    let off = found.abs_diff(told) as f64 / told.max(1) as f64;
    assert!(off < 0.01, "{what}: {found}, and the process says {told}");
}

fn agrees(found: &Value, told: &Told) {
    let total = |name: &str| number(found, &format!("/glibc/total/{name}"));
    is_near(total("bytes"), told.arena, "arena");
    let used = total("live_bytes") + total("cached_bytes") + total("own_bytes");
    is_near(used, told.used, "used");
    let free = total("free_bytes") + total("fast_bytes") + total("top_bytes");
    is_near(free, told.free, "free");
    assert_eq!(total("unclear_bytes"), 0);
    assert_eq!(number(found, "/glibc/mapped/blocks"), told.large_blocks);
    assert_eq!(number(found, "/glibc/mapped/bytes"), told.large_bytes);
}

/// The lines of the ledger add up to the kernel's figure.
fn adds_up(found: &Value) {
    let others = found
        .pointer("/ledger/others")
        .unwrap()
        .as_object()
        .unwrap();
    let others: u64 = others.values().map(|bytes| bytes.as_u64().unwrap()).sum();
    let heap = number(found, "/ledger/heap_bytes") + number(found, "/ledger/mapped_block_bytes");
    let remainder = found
        .pointer("/ledger/remainder_bytes")
        .unwrap()
        .as_i64()
        .unwrap();
    let kernel = number(found, "/ledger/kernel_bytes");
    assert_eq!(
        i64::try_from(others + heap).unwrap() + remainder,
        i64::try_from(kernel).unwrap()
    );
    assert!(remainder.unsigned_abs() < kernel / 100, "{found:#}");
}

#[test]
fn what_is_read_is_what_the_process_says() {
    let workshop = Workshop::open();
    for threads in [0, 1, 5] {
        let told = start(program(&workshop, threads, &[]));
        let found = examine(&workshop, &told.process.pid());
        agrees(&found, &told);
        adds_up(&found);
        let arenas = found.pointer("/glibc/arenas").unwrap().as_array().unwrap();
        assert_eq!(arenas.len() as u32, threads + 1);
        assert_eq!(arenas[0]["is_main"], true);
        assert!(
            arenas.iter().all(|arena| arena["threads"] == 1),
            "{arenas:#?}"
        );
        assert!(number(&found, "/glibc/total/cached_blocks") > 0);
    }
}

#[test]
fn static_and_stripped_programs_are_read_as_well() {
    let workshop = Workshop::open();
    for arguments in [&["-static"][..], &["-s"], &["-static", "-s"]] {
        let told = start(program(&workshop, 2, arguments));
        let found = examine(&workshop, &told.process.pid());
        agrees(&found, &told);
        adds_up(&found);
    }
}

#[test]
fn what_a_trim_gives_back_is_known_before() {
    let workshop = Workshop::open();
    let mut told = start(program(&workshop, 3, &[]));
    let found = examine(&workshop, &told.process.pid());
    let expected = number(&found, "/glibc/total/trim_bytes");
    told.process.tell("t");
    let gone: u64 = told.process.next_line().trim().parse().unwrap();
    assert!(gone > 100, "{gone}");
    assert!(
        (gone * 1024).abs_diff(expected) <= 64 << 10,
        "{gone} KiB, not {expected} bytes"
    );
}

#[test]
fn a_core_dump_says_the_same() {
    let workshop = Workshop::open();
    let told = start(program(&workshop, 3, &[]));
    let core = workshop.path("core");
    dump(&told.process.pid(), &core, |_, _| {});
    let found = examine(&workshop, text(&core));
    agrees(&found, &told);
    adds_up(&found);
    workshop
        .hakmem(&["doctor", text(&core)])
        .ended_with(0)
        .says("Which pages were resident: a core dump only has what was mapped.");
    workshop
        .hakmem(&["doctor", text(&core), "--seconds", "1"])
        .is_one_line(2, "a file does not grow: --seconds is for a process");
}

/// The end of the dump has the C library's data, which lead to the main arena. The thread arenas are before that, each a
/// twelfth of the dump.
#[test]
fn a_core_dump_that_was_cut_is_read_as_far_as_it_goes() {
    let workshop = Workshop::open();
    let told = start(program(&workshop, 3, &[]));
    let core = workshop.path("core");
    dump(&told.process.pid(), &core, |_, _| {});
    let file = std::fs::File::options().write(true).open(&core).unwrap();
    let whole = file.metadata().unwrap().len();
    for percent in (28..=72).rev().step_by(4) {
        let bytes = whole * percent / 100;
        file.set_len(bytes).unwrap();
        let found = examine(&workshop, text(&core));
        adds_up(&found);
        assert!(number(&found, "/ledger/kernel_bytes") <= bytes);
        assert!(found["cut"].is_string(), "{found:#}");
        let main = &found["glibc"]["arenas"][0];
        assert_eq!(main["is_main"], true, "cut to {percent} %");
        assert!(number(main, "/live_blocks") > 1000, "{main:#}");
    }
    workshop
        .hakmem(&["doctor", text(&core)])
        .ended_with(0)
        .says("What is missing from the dump: it has")
        .says("All figures are of the rest.");
}

#[test]
fn the_answer_comes_first_and_says_what_to_do() {
    let workshop = Workshop::open();
    let told = start(program(&workshop, 5, &[]));
    let answer = workshop.hakmem(&["doctor", &told.process.pid()]);
    answer
        .ended_with(0)
        .says("are free memory that malloc keeps: fragmentation, not a leak")
        .says("in 5 arenas of threads")
        .says("MALLOC_ARENA_MAX=2")
        .says("the kernel's figure")
        .says("Whether it grows: --seconds 60 looks twice.")
        .says("it was not stopped");
}

#[test]
fn the_page_has_the_answer_and_a_map_and_needs_no_network() {
    let workshop = Workshop::open();
    let told = start(program(&workshop, 2, &[]));
    let page = workshop.path("doctor.html");
    let pid = told.process.pid();
    workshop
        .hakmem(&["doctor", &pid, "--html", text(&page)])
        .ended_with(0);
    let page = std::fs::read_to_string(page).unwrap();
    for part in [
        "fragmentation, not a leak",
        "glibc, main arena",
        "glibc, arena 2",
        "MALLOC_ARENA_MAX=2",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("http"), "nothing is fetched");
    workshop
        .hakmem(&["doctor", &pid, "--html", "doctor.svg"])
        .ended_with(2)
        .says("let it end with .html");
}

#[test]
fn stats_ledger_and_map_show_what_is_known_of_it() {
    let workshop = Workshop::open();
    let told = start(program(&workshop, 2, &[]));
    let pid = told.process.pid();
    let parts = ["ends of arenas", "glibc's heap", "main arena"];
    for (command, part) in ["stats", "ledger", "map"].into_iter().zip(parts) {
        workshop.hakmem(&[command, &pid]).ended_with(0).says(part);
    }
    let mut stats = workshop.command(&["stats", &pid, "--json"]);
    let output = stats.output().unwrap();
    agrees(&serde_json::from_slice(&output.stdout).unwrap(), &told);
    workshop
        .hakmem(&["map", &pid, "--by", "age"])
        .ended_with(2)
        .says("--by is for hakmem's heaps");
}

#[test]
fn growth_is_seen_between_two_looks() {
    let workshop = Workshop::open();
    let mut told = start(program(&workshop, 0, &[]));
    let pid = told.process.pid();
    let looking = std::thread::spawn({
        let mut command = workshop.command(&["doctor", &pid, "--seconds", "2", "--json"]);
        move || command.output().unwrap()
    });
    std::thread::sleep(std::time::Duration::from_secs(1));
    told.process.answers("g", "grown");
    let output = looking.join().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = found
        .pointer("/judgement/findings")
        .unwrap()
        .as_array()
        .unwrap();
    let grew = findings
        .iter()
        .find(|one| one["cause"] == "live_grew")
        .unwrap();
    assert!(grew["bytes"].as_i64().unwrap() > 6 << 20, "{grew}");
    assert!(grew["blocks"].as_i64().unwrap() >= 79_000, "{grew}");
}

#[test]
fn a_damaged_heap_is_read_around_the_damage() {
    let workshop = Workshop::open();
    let mut told = start(program(&workshop, 2, &[]));
    told.process.answers("d", "damaged");
    let pid = told.process.pid();
    let found = examine(&workshop, &pid);
    adds_up(&found);
    let unclear = number(&found, "/glibc/total/unclear_bytes");
    assert!((16..64 << 10).contains(&unclear), "{unclear}");
    let known = number(&found, "/glibc/total/bytes") - unclear;
    assert!(known > told.arena * 95 / 100);
    workshop
        .hakmem(&["doctor", &pid])
        .ended_with(0)
        .says("are inconsistent");
}

#[test]
fn a_heap_that_changes_all_the_time_is_read_all_the_same() {
    const BUSY: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static void *change(void *seed)
{
    static __thread void *blocks[5000];
    unsigned next = (unsigned)(size_t)seed;
    for (long i = 0;; i++) {
        next = next * 1103515245 + 12345;
        int which = (next >> 8) % 5000;
        free(blocks[which]);
        blocks[which] = malloc(16 + (next >> 16) % 3000);
        if (i == 50000) {
            write(1, "ready\n", seed == NULL ? 6 : 0);
        }
    }
}
static void *end_with_input(void *unused)
{
    char what;
    read(0, &what, 1);
    _exit(0);
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, change, (void *)1);
    pthread_create(&thread, NULL, end_with_input, NULL);
    change(NULL);
}
"#;
    let workshop = Workshop::open();
    let program = workshop.compile("busy", BUSY, &["-pthread"]);
    let process = Waiting::start(&mut Command::new(program));
    for _ in 0..5 {
        let found = examine(&workshop, &process.pid());
        let all = number(&found, "/glibc/total/bytes");
        let unclear = number(&found, "/glibc/total/unclear_bytes");
        assert!(unclear < all / 50, "{unclear} of {all} bytes are unclear");
        assert!(number(&found, "/glibc/total/live_bytes") > all / 2);
    }
}

#[test]
fn of_a_process_that_ends_between_two_looks_the_first_is_shown() {
    let workshop = Workshop::open();
    for form in [&[][..], &["--json"]] {
        let mut told = start(program(&workshop, 0, &[]));
        let pid = told.process.pid();
        let looking = std::thread::spawn({
            let mut command = workshop.command(&["doctor", &pid, "--seconds", "600"]);
            command.args(form);
            move || support::Answer::from(command.output().unwrap())
        });
        std::thread::sleep(std::time::Duration::from_secs(1));
        told.process.end();
        let answer = looking.join().unwrap();
        answer.ended_with(0);
        let line = format!("process {pid} has ended: the result is partial: it lacks the last ");
        if form.is_empty() {
            answer.says(&line).says("malloc is glibc");
            continue;
        }
        let found: Value = serde_json::from_str(&answer.output).unwrap();
        let part = found["part"].as_str().unwrap();
        assert!(part.starts_with(&line), "{part}");
        agrees(&found, &told);
        adds_up(&found);
    }
}

/// The kernel shows the child's additions to the heap as a separate area.
#[test]
fn the_heap_of_a_child_that_was_forked_is_whole() {
    let workshop = Workshop::open();
    let forks = PROGRAM.replace(
        "    fill(50000, 300, 7, 49000);",
        "    fill(5000, 300, 7, 0);\n    if (fork() != 0) { wait(NULL); return 0; }\n    fill(50000, 300, 7, 49000);",
    );
    let forks = format!("#include <sys/wait.h>\n{forks}");
    let mut command = Command::new(workshop.compile("forks", &forks, &["-pthread"]));
    command.arg("0");
    let told = start(command);
    let children = format!("/proc/{0}/task/{0}/children", told.process.pid());
    let child = std::fs::read_to_string(children).unwrap();
    let found = examine(&workshop, child.trim());
    agrees(&found, &told);
    adds_up(&found);
}

#[test]
fn a_process_under_hakmem_is_shown_in_its_own_words() {
    let workshop = Workshop::open();
    let mut command = Command::new(workshop.compile("waits", WAITS, &[]));
    let process = Waiting::start(command.env("LD_PRELOAD", library()));
    workshop
        .hakmem(&["doctor", &process.pid()])
        .ended_with(0)
        .says("malloc is hakmem")
        .says("live blocks")
        .says("'hakmem why");
}

#[test]
fn another_allocator_is_named_and_not_taken_for_glibcs() {
    let workshop = Workshop::open();
    let library = workshop.allocator("libother.so", &["-DMARK=mallctl"]);
    let mut command = Command::new(workshop.compile("waits", WAITS, &[]));
    let process = Waiting::start(command.env("LD_PRELOAD", library));
    let answer = workshop.hakmem(&["doctor", &process.pid()]);
    answer
        .ended_with(0)
        .says("malloc is jemalloc")
        .says("is free inside jemalloc: its heap is not read");
    let found = examine(&workshop, &process.pid());
    assert!(found["glibc"].is_null(), "{found:#}");
    adds_up(&found);
    workshop
        .hakmem(&["ledger", &process.pid()])
        .ended_with(1)
        .says("or ask 'hakmem doctor'");
}
