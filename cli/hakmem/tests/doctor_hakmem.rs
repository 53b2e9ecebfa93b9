//! The doctor for a process with hakmem: its heap is known in the running process, in a core dump and in a snapshot.

mod support;

use serde_json::Value;
use std::process::Command;
use support::dump::dump;
use support::waiting::{WAITS, Waiting};
use support::{Workshop, library, text};

/// Allocates 40 MiB; on `g`, 8 MiB more.
const HOLDS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void hold(int blocks)
{
    for (int i = 0; i < blocks; i++) {
        memset(malloc(1024), 1, 1024);
    }
}
int main(void)
{
    hold(40 << 10);
    puts("ready");
    fflush(stdout);
    for (char what; read(0, &what, 1) == 1;) {
        hold(8 << 10);
        puts("grown");
        fflush(stdout);
    }
    return 0;
}
"#;

const UNKNOWN: &str = "no allocator's known here";

fn start(workshop: &Workshop) -> Waiting {
    start_of(workshop, HOLDS, &[])
}

fn start_of(workshop: &Workshop, source: &str, flags: &[&str]) -> Waiting {
    let mut command = Command::new(workshop.compile("holds", source, flags));
    Waiting::start(command.env("LD_PRELOAD", library()))
}

fn number(value: &Value, path: &str) -> u64 {
    let found = value.pointer(path).and_then(Value::as_u64);
    found.unwrap_or_else(|| panic!("{path} is not in {value:#}"))
}

fn examine(workshop: &Workshop, arguments: &[&str]) -> Value {
    let answer = workshop.hakmem(&[&["doctor", "--json"], arguments].concat());
    serde_json::from_str(&answer.ended_with(0).output).unwrap()
}

#[test]
fn its_heap_is_not_taken_for_memory_of_others() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let pid = process.pid();
    let answer = workshop.hakmem(&["doctor", &pid]);
    answer.ended_with(0).says("in hakmem's heap");
    assert!(!answer.output.contains(UNKNOWN), "{}", answer.output);
    let found = examine(&workshop, &[&pid]);
    assert!(number(&found, "/hakmem/resident/live") >= 40 << 20);
    assert!(number(&found, "/ledger/hakmem_bytes") >= 40 << 20);
    assert!(number(&found, "/ledger/others/mapped") < 4 << 20);
    assert_eq!(found["judgement"]["main"], "live", "{found:#}");
    // The same for a snapshot; the output tells how other commands read it.
    let snapshot = workshop.path("one.hks");
    workshop
        .hakmem(&["snapshot", &pid, "-o", text(&snapshot)])
        .ended_with(0);
    let answer = workshop.hakmem(&["doctor", text(&snapshot)]);
    answer
        .ended_with(0)
        .says("in hakmem's heap")
        .says(&format!("'hakmem why --core {}'", text(&snapshot)));
    assert!(!answer.output.contains(UNKNOWN), "{}", answer.output);
}

/// As after an update. Samples remember the path that the library had when they were taken.
#[test]
fn a_library_that_was_removed_is_named_once() {
    let workshop = Workshop::open();
    let copy = workshop.path("libcopy.so");
    std::fs::copy(library(), &copy).unwrap();
    let mut command = Command::new(workshop.compile("holds", HOLDS, &[]));
    command
        .env("LD_PRELOAD", &copy)
        .env("HAKMEM_SAMPLE_BYTES", "1024");
    let process = Waiting::start(&mut command);
    std::fs::remove_file(&copy).unwrap();
    let answer = workshop.hakmem(&["doctor", &process.pid()]);
    answer.ended_with(0).says("malloc is hakmem (");
    let is_twice = answer.output.contains("for a part of the program");
    assert!(!is_twice, "{}", answer.output);
}

#[test]
fn what_grows_in_its_heap_is_not_outside_of_malloc() {
    let workshop = Workshop::open();
    let mut process = start(&workshop);
    let pid = process.pid();
    let looking = std::thread::spawn({
        let mut command = workshop.command(&["doctor", &pid, "--seconds", "2", "--json"]);
        move || command.output().unwrap()
    });
    std::thread::sleep(std::time::Duration::from_secs(1));
    process.answers("g", "grown");
    let output = looking.join().unwrap();
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let findings = found["judgement"]["findings"].as_array().unwrap();
    let grew = |cause: &str| {
        let found = findings.iter().find(|one| one["cause"] == cause);
        found.unwrap_or_else(|| panic!("no {cause} in {findings:?}"))
    };
    let live = grew("live_grew");
    assert!(live["bytes"].as_i64().unwrap() >= 7 << 20, "{live}");
    assert!(live["blocks"].as_i64().unwrap() >= 8 << 10, "{live}");
    let outside = grew("else_grew");
    assert!(outside["bytes"].as_i64().unwrap() < 2 << 20, "{outside}");
}

#[test]
fn a_core_dump_of_it_is_known_as_well() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let core = workshop.path("a core"); // the commands that are advised have to quote it
    let asked = format!("--core '{}'", text(&core));
    dump(&process.pid(), &core, |_, _| {});
    let answer = workshop.hakmem(&["doctor", text(&core)]);
    answer
        .ended_with(0)
        .says("malloc is hakmem")
        .says(&format!("are hakmem's heap: 'hakmem stats {asked}'"))
        .says(&format!("'hakmem why {asked}'"));
    assert!(!answer.output.contains("glibc"), "{}", answer.output);
    let found = examine(&workshop, &[text(&core)]);
    assert!(number(&found, "/ledger/hakmem_bytes") >= 40 << 20);
    assert!(number(&found, "/ledger/others/mapped") < 8 << 20);
    assert_eq!(found["judgement"]["main"], "hakmem", "{found:#}");
}

/// Writes to one of 32 MiB, and reads all others.
const READS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    const size_t bytes = 32 << 20;
    volatile char *block = malloc(bytes);
    madvise((char *)block + 4096 - (size_t)block % 4096, bytes - 4096, MADV_NOHUGEPAGE);
    size_t sum = 0;
    for (size_t at = 1 << 20; at < bytes; at += 4096) {
        sum += block[at];
    }
    for (size_t at = 0; at < 1 << 20; at += 4096) {
        block[at] = 1;
    }
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0 && sum == 0;
}
"#;

/// Does the kernel tell of its zero page? Since Linux 6.7.
fn tells_of_zeros() -> bool {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers = release
        .split('.')
        .map_while(|number| number.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(7))
}

fn leaves_little(found: &Value, path: &str) {
    let remainder = found.pointer(path).unwrap().as_i64().unwrap();
    assert!(remainder.unsigned_abs() < 256 << 10, "{found:#}");
}

#[test]
fn what_only_reads_as_zero_is_not_resident() {
    if !tells_of_zeros() {
        return;
    }
    let workshop = Workshop::open();
    let program = workshop.compile("reads", READS, &[]);
    let ours = Waiting::start(Command::new(&program).env("LD_PRELOAD", library()));
    let found = examine(&workshop, &[&ours.pid()]);
    let live = number(&found, "/hakmem/resident/live");
    assert!((1 << 20..4 << 20).contains(&live), "{found:#}");
    leaves_little(&found, "/hakmem/remainder_bytes");
    let theirs = Waiting::start(&mut Command::new(&program));
    let found = examine(&workshop, &[&theirs.pid()]);
    let large = number(&found, "/glibc/mapped/resident_bytes");
    assert!((1 << 20..4 << 20).contains(&large), "{found:#}");
    leaves_little(&found, "/ledger/remainder_bytes");
}

/// Shared memory counted as pages of files in hakmem's lines; and these were read later than the others, when the search for
/// hakmem's tables had made more pages of files resident.
#[test]
fn all_lines_tell_the_same_of_shared_memory_and_files() {
    const SHARES: &str = r#"
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
int main(void)
{
    size_t bytes = 24 << 20;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memset(memory, 1, bytes);
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
"#;
    let workshop = Workshop::open();
    let process = start_of(&workshop, SHARES, &[]);
    let pid = process.pid();
    let found = examine(&workshop, &[&pid]);
    let of = |path: &str| number(&found, path);
    assert!(of("/hakmem/resident/shared") >= 24 << 20, "{found:#}");
    assert_eq!(of("/hakmem/resident/shared"), of("/ledger/others/shared"));
    let pages = of("/ledger/others/file_pages") + of("/ledger/others/file_copies");
    assert_eq!(of("/hakmem/resident/files"), pages);
    assert_eq!(of("/hakmem/kernel_bytes"), of("/ledger/kernel_bytes"));
    let answer = workshop.hakmem(&["ledger", &pid]);
    answer.ended_with(0).says("shared memory");
}

/// The search for hakmem's tables read all data of programs and libraries.
#[test]
fn a_look_makes_no_data_resident() {
    const DATA: &str = r#"
#include <stdio.h>
char data[16 << 20] = {1};
int main(void)
{
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
"#;
    let workshop = Workshop::open();
    let process = start_of(&workshop, DATA, &["-fPIE", "-pie"]);
    let pages = || -> u64 {
        let figures = std::fs::read_to_string(format!("/proc/{}/statm", process.pid())).unwrap();
        figures.split(' ').nth(1).unwrap().parse().unwrap()
    };
    let before = pages();
    workshop.hakmem(&["stats", &process.pid()]).ended_with(0);
    let more = pages() - before;
    assert!(more * 4096 < 4 << 20, "{more} pages more");
}

/// What was never touched counted as pinned memory, and blocks that fill their pages as blocks that pin some.
#[test]
fn what_blocks_pin_is_resident() {
    const SPARSE: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void fill(size_t bytes)
{
    memset(malloc(bytes), 1, bytes);
}
int main(void)
{
    for (size_t bytes = 1024; bytes < 4096; bytes += 256) {
        *(char *)malloc(bytes) = 1;
    }
    for (size_t bytes = 8192; bytes <= 16384; bytes += 4096) {
        fill(bytes);
    }
    puts("ready");
    fflush(stdout);
    getchar();
    return 0;
}
"#;
    let workshop = Workshop::open();
    let process = start_of(&workshop, SPARSE, &["-fno-builtin"]);
    let told = |command: &str| -> Value {
        let answer = workshop.hakmem(&[command, "--json", &process.pid()]);
        serde_json::from_str(&answer.ended_with(0).output).unwrap()
    };
    let (pinned, ledger) = (told("why"), told("ledger"));
    assert!(number(&pinned, "/sparse/slabs") > 10, "{pinned:#}");
    let mut command = Command::new(workshop.compile("sparse", SPARSE, &["-O1", "-fno-builtin"]));
    command
        .env("LD_PRELOAD", library())
        .env("HAKMEM_SAMPLE_BYTES", "1");
    let sampled = Waiting::start(&mut command);
    let answer = workshop.hakmem(&["why", &sampled.pid()]);
    answer.ended_with(0).says("main (sparse)");
    assert!(
        !answer.output.contains("fill (sparse)"),
        "{}",
        answer.output
    );
    let kinds = ["live", "cached", "slab_free", "never_used", "rests"];
    let of = |kind: &str| number(&ledger, &format!("/resident/{kind}"));
    let most: u64 = kinds.into_iter().map(of).sum();
    assert!(number(&pinned, "/sparse/free_bytes") <= most, "{pinned:#}");
}

/// hakmem of another release: its heap once counted as mapped by others, without a reason.
#[test]
fn a_heap_that_cannot_be_read_is_named() {
    const MAGIC: &[u8] = b"hakmem\0\0";
    let workshop = Workshop::open();
    let mut library = std::fs::read(library()).unwrap();
    let blocks = (0..library.len() - 16).step_by(16);
    let is_block = |at: &usize| library[*at..].starts_with(MAGIC) && library[at + 8] == 2;
    let block = blocks.filter(is_block).collect::<Vec<_>>()[0];
    library[block + 8] = 99;
    let other = workshop.path("libother.so");
    std::fs::write(&other, library).unwrap();
    let mut command = Command::new(workshop.compile("waits", WAITS, &[]));
    let process = Waiting::start(command.env("LD_PRELOAD", &other));
    let pid = process.pid();
    let why = format!("process {pid}: its hakmem has a control block of version 99");
    let found = examine(&workshop, &[&pid]);
    let unread = found["hakmem_unread"].as_str().unwrap();
    assert!(unread.starts_with(&why), "{unread}");
    let answer = workshop.hakmem(&["doctor", &pid]);
    answer
        .ended_with(0)
        .says("hakmem's heap, which counts as mapped by others");
}

/// Nothing more can be asked of it.
#[test]
fn the_advice_for_one_that_has_ended_is_for_the_next() {
    let workshop = Workshop::open();
    let mut holds = start(&workshop);
    let pid = holds.pid();
    let command = workshop.command(&["doctor", &pid, "--seconds", "600"]);
    let looking = std::thread::spawn(move || support::answer(command));
    std::thread::sleep(std::time::Duration::from_secs(1));
    holds.end();
    let answer = looking.join().unwrap();
    answer
        .ended_with(0)
        .says("It used hakmem. While it runs: 'hakmem why PID' says who pins memory");
    let for_the_ended = format!("hakmem why {pid}");
    assert!(!answer.output.contains(&for_the_ended));
}
