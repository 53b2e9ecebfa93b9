//! Hard cases for the doctor: memory that is only reserved, processes that cannot be read, invalid files.

mod support;

use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::process::Command;
use support::waiting::{WAITS, Waiting};
use support::{Workshop, make_program, text};

/// Touches some pages of a mapping of 1 TiB, and the headers of blocks that occupy 16 GiB of addresses.
const RESERVES: &str = r#"
#define _GNU_SOURCE
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    const size_t all = (size_t)1 << 40, each = (size_t)1 << 30;
    char *reserved = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) {
        return 1;
    }
    for (size_t at = 0; at < all; at += each) {
        reserved[at] = 1;
    }
    mallopt(M_MMAP_THRESHOLD, 1 << 30);
    for (int i = 0; i < 16384; i++) {
        if (malloc(1 << 20) == NULL) {
            return 1;
        }
    }
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

#[test]
fn what_is_only_reserved_takes_no_memory_of_the_doctors() {
    let workshop = Workshop::open();
    let process = Waiting::start(&mut Command::new(workshop.compile(
        "reserves",
        RESERVES,
        &[],
    )));
    let hakmem = env!("CARGO_BIN_EXE_hakmem");
    let limited = format!(
        "ulimit -v 200000; exec {hakmem} doctor --json {}",
        process.pid()
    );
    let mut command = Command::new("sh");
    command.args(["-c", &limited]);
    let answer = support::answer(command);
    let found: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    let blocks = number(&found, "/glibc/total/live_blocks");
    assert!((16384..16400).contains(&blocks), "{blocks}");
    assert!(number(&found, "/glibc/total/live_bytes") >= 16 << 30);
    let resident = number(&found, "/ledger/kernel_bytes");
    assert!(resident > 64 << 20 && resident < 1 << 30, "{resident}");
}

/// Moves the break by 5 MiB ten times, while its heap grows by the break, too.
const MOVES_THE_BREAK: &str = r#"
#define _DEFAULT_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void grow(int blocks)
{
    for (int i = 0; i < blocks; i++) {
        memset(malloc(1000 + i % 100), 1, 1000);
    }
}
int main(void)
{
    grow(3000);
    for (int i = 0; i < 10; i++) {
        memset(sbrk(5 << 20), 7, 5 << 20);
        grow(300);
    }
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

/// An allocator's heap that grows by the break, with two words that look like a chunk and the end of a heap.
const GROWS_BY_THE_BREAK: &str = r#"
#define _DEFAULT_SOURCE
#include <string.h>
#include <unistd.h>
int main(void)
{
    const size_t bytes = 16 << 20;
    char *heap = sbrk(bytes);
    memset(heap, 7, bytes);
    const size_t size = 0x10001, fence = 1;
    memcpy(heap + 0xb8, &size, sizeof size);
    memcpy(heap + 0xb8 + 0x10000, &fence, sizeof fence);
    write(1, "ready\n", 6);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

fn examine(workshop: &Workshop, name: &str, source: &str) -> (Waiting, Value) {
    let mut command = Command::new(workshop.compile(name, source, &[]));
    let process = Waiting::start(&mut command);
    let answer = workshop.hakmem(&["doctor", "--json", &process.pid()]);
    let found = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    (process, found)
}

fn number(found: &Value, path: &str) -> u64 {
    let number = found.pointer(path).and_then(Value::as_u64);
    number.unwrap_or_else(|| panic!("{path} is not in {found:#}"))
}

#[test]
fn what_others_grow_by_the_break_is_not_glibcs() {
    let workshop = Workshop::open();
    let (process, found) = examine(&workshop, "moves", MOVES_THE_BREAK);
    let by_break = number(&found, "/ledger/others/by_break");
    assert!(by_break.abs_diff(50 << 20) < 256 << 10, "{by_break}");
    let live = number(&found, "/glibc/total/live_blocks");
    assert!((6000..6010).contains(&live), "{live}");
    let bytes = number(&found, "/glibc/total/bytes");
    assert!(bytes < 8 << 20, "{bytes}");
    assert!(number(&found, "/glibc/total/resident/own") < 256 << 10);
    let answer = workshop.hakmem(&["doctor", &process.pid()]);
    answer
        .ended_with(0)
        .says("grown by others")
        .says("50.0 MiB of it by the break (sbrk)");
    let answer = workshop.hakmem(&["map", &process.pid()]);
    answer.ended_with(0).says("glibc, main arena: 3.");
}

#[test]
fn one_word_that_looks_like_a_chunk_makes_no_heap() {
    let workshop = Workshop::open();
    let (_process, found) = examine(&workshop, "grows", GROWS_BY_THE_BREAK);
    assert!(found["glibc"].is_null(), "{found:#}");
    assert!(number(&found, "/ledger/others/by_break") >= 16 << 20);
}

#[test]
fn a_thread_of_the_kernel_is_called_so() {
    let name = std::fs::read_to_string("/proc/2/comm").unwrap_or_default();
    if name.trim() != "kthreadd" {
        println!("skipped: the kernel's threads are not seen from here");
        return;
    }
    let workshop = Workshop::open();
    workshop.hakmem(&["doctor", "2"]).is_one_line(
        1,
        "process 2: it is a thread of the kernel, which has no memory of its own",
    );
}

/// Before WAITS: only root may read it.
const HIDES: &str = r#"
#include <sys/prctl.h>
__attribute__((constructor)) static void hide(void)
{
    prctl(PR_SET_DUMPABLE, 0);
}
"#;

#[test]
fn what_cannot_be_read_is_one_line() {
    const NOBODY: u32 = 65534;
    let workshop = Workshop::open();
    let mut command = Command::new(workshop.compile("hides", &format!("{HIDES}{WAITS}"), &[]));
    let mut process = Waiting::start(&mut command);
    let copy = workshop.path("hakmem");
    make_program(&copy, &std::fs::read(env!("CARGO_BIN_EXE_hakmem")).unwrap());
    let everybodys = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(workshop.folder(), everybodys).unwrap();
    let mut hakmem = Command::new(&copy);
    hakmem.arg("doctor").arg(process.pid());
    let is_root =
        std::os::unix::fs::MetadataExt::uid(&std::fs::metadata("/proc/self").unwrap()) == 0;
    if is_root {
        hakmem.uid(NOBODY).gid(NOBODY);
    }
    let pid = process.pid();
    support::answer(hakmem).is_one_line(
        1,
        &format!(
            "process {pid} may not be read: it is another user's, or /proc/sys/kernel/yama/ptrace_scope \
             forbids it; try as root"
        ),
    );
    if is_root {
        // With a /proc that hides the process, the error is not that it does not exist.
        let hidden = format!(
            "mount -t proc -o hidepid=2 proc /proc && exec setpriv --reuid {NOBODY} --clear-groups {} doctor {pid}",
            text(&copy)
        );
        let mut unshare = Command::new("unshare");
        unshare.args(["--mount", "sh", "-c", &hidden]);
        let answer = support::answer(unshare);
        if answer.errors.contains("hakmem:") {
            answer
                .ended_with(1)
                .says("may not be read: it is another user's");
        } else {
            println!("left out: no namespaces here");
        }
    }
    process.end();
    workshop.hakmem(&["doctor", &pid]).is_one_line(
        2,
        &format!("there is no process {pid}, or it has just ended"),
    );
    let no_core = workshop.write("text", "no core dump");
    workshop
        .hakmem(&["doctor", text(&no_core)])
        .ended_with(2)
        .says("is not a core dump: not an ELF file for 64 bits");
    // A header of 64 bytes, of s390x.
    let head = [
        b"\x7fELF\x02\x02\x01".as_slice(),
        &[0; 10],
        &[4, 0, 22],
        &[0; 44],
    ]
    .concat();
    let other = workshop.path("core.s390x");
    std::fs::write(&other, head).unwrap();
    workshop
        .hakmem(&["doctor", text(&other)])
        .ended_with(2)
        .says("is not a core dump: of a big-endian machine");
}
