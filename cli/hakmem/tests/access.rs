//! Reads processes that are hard to read: one that hangs inside the allocator, and one that may not be read.

mod support;

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::waiting::{WAITS, Waiting};
use support::{Workshop, library, make_program};

/// Stops in the middle of a walk over the heap, and holds every lock of the allocator.
const HANGS: &str = r#"
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static bool hang(void *block, size_t bytes, void *argument)
{
    char end;
    write(1, "ready\n", 6);
    return read(0, &end, 1) > 0;
}
int main(void)
{
    bool (*visit)(void *, bool (*)(void *, size_t, void *), void *) =
        (bool (*)(void *, bool (*)(void *, size_t, void *), void *))dlsym(RTLD_DEFAULT, "hak_visit_blocks");
    void *volatile small = malloc(100);
    void *volatile large = malloc(1 << 20);
    visit(NULL, hang, NULL);
    return 0;
}
"#;

#[test]
fn a_process_that_hangs_inside_the_allocator_can_be_looked_into() {
    let workshop = Workshop::open();
    let mut command = Command::new(workshop.compile("hangs", HANGS, &[]));
    let process = Waiting::start(command.env("LD_PRELOAD", library()));
    let pid = process.pid();
    let stats = workshop.hakmem(&["stats", "--json", &pid]);
    let figures: serde_json::Value = serde_json::from_str(&stats.ended_with(0).output).unwrap();
    assert!(figures["live_bytes"].as_u64().unwrap() > 1 << 20);
    assert_eq!(figures["moved_blocks"], 0);
    for command in [
        &["ledger"][..],
        &["map"],
        &["failures"],
        &["options"],
        &["cold", "--seconds", "0.1"],
        &["top", "-n", "1"],
    ] {
        workshop.hakmem(&[command, &[&pid]].concat()).ended_with(0);
    }
    workshop
        .hakmem(&["export", &pid, "--prometheus"])
        .ended_with(0)
        .says("hakmem_live_blocks{");
}

/// Becomes another program, without the calls that read and write another process's memory.
const WITHOUT_CALLS: &str = r#"
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **words)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_writev, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | REFUSAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        return 9;
    }
    execv(words[1], words + 1);
    return 9;
}
"#;

/// Kernels may be built without these calls (ENOSYS), and sandboxes refuse them (EPERM).
#[test]
fn a_process_is_read_and_written_without_the_calls_for_it() {
    let workshop = Workshop::open();
    let program = workshop.compile("waits", WAITS, &[]);
    let process = Waiting::start(Command::new(program).env("LD_PRELOAD", library()));
    let pid = process.pid();
    for refusal in ["ENOSYS", "EPERM"] {
        let without = workshop.compile(refusal, WITHOUT_CALLS, &[&format!("-DREFUSAL={refusal}")]);
        let hakmem = |words: &[&str]| {
            let mut command = Command::new(&without);
            command.arg(env!("CARGO_BIN_EXE_hakmem")).args(words);
            let answer = support::answer(command);
            answer.ended_with(0);
            answer
        };
        hakmem(&["verify", &pid]).says("uses hakmem");
        hakmem(&["doctor", &pid]).says("live blocks");
        hakmem(&["stats", &pid]).says("mapped");
        // Sampling is switched on, which is a write.
        hakmem(&["profile", &pid, "--seconds", "0.1"]).says("one sample in 512 KiB");
    }
}

/// After "h", it may not be read any more.
const HIDES_LATER: &str = r#"
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
int main(void)
{
    puts("ready");
    fflush(stdout);
    char letter;
    if (read(0, &letter, 1) == 1) {
        prctl(PR_SET_DUMPABLE, 0);
    }
    return read(0, &letter, 1) != 0;
}
"#;

/// Commands once said that it had ended.
#[test]
fn a_process_that_may_not_be_read_any_more_has_not_ended() {
    const NOBODYS: u32 = 64_997;
    let workshop = Workshop::open();
    let is_root = nix::unistd::geteuid().is_root();
    let as_somebody = |mut command: Command| {
        if is_root {
            command.uid(NOBODYS).gid(NOBODYS);
        }
        command
    };
    let program = workshop.compile("hides", HIDES_LATER, &[]);
    let copy = workshop.path("hakmem");
    make_program(&copy, &std::fs::read(env!("CARGO_BIN_EXE_hakmem")).unwrap());
    let everybodys = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(workshop.folder(), everybodys).unwrap();
    let mut command = as_somebody(Command::new(program));
    let mut process = Waiting::start(command.env("LD_PRELOAD", library()));
    let pid = process.pid();
    let file = workshop.path("a.prom");
    let file = support::text(&file);
    let looks = [
        &["top", &pid, "-n", "10000", "-d", "0.1"][..],
        &[
            "export",
            &pid,
            "--prometheus",
            "--textfile",
            file,
            "--every",
            "1",
        ],
        &["export", &pid, "--prometheus", "--listen", "127.0.0.1:0"],
        &["cold", &pid, "--seconds", "600"],
        &["doctor", &pid, "--seconds", "600"],
    ];
    let children: Vec<_> = looks
        .iter()
        .map(|look| {
            let mut hakmem = as_somebody(Command::new(&copy));
            hakmem
                .args(*look)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            hakmem.spawn().unwrap()
        })
        .collect();
    let begin = Instant::now();
    while std::fs::metadata(file).is_err() {
        assert!(begin.elapsed() < Duration::from_secs(30), "no file came");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(1)); // by then, all have begun
    process.tell("h");
    for (child, look) in children.into_iter().zip(looks) {
        let answer = support::Answer::from(child.wait_with_output().unwrap());
        let line = format!("hakmem: process {pid} may not be read: ");
        assert!(
            answer.errors.starts_with(&line),
            "{look:?}: {}",
            answer.errors
        );
        answer.ended_with(1);
    }
    assert!(std::fs::metadata(file).is_err(), "the file is left");
}

/// Before WAITS: not even its own user may read it; root may.
const HIDES: &str = r#"
#include <sys/prctl.h>
__attribute__((constructor)) static void hide(void)
{
    prctl(PR_SET_DUMPABLE, 0);
}
"#;

#[test]
fn what_may_not_be_read_says_what_to_do() {
    const NOBODY: u32 = 65534;
    /// A user ID without any processes.
    const NOBODYS: u32 = 64_998;
    let workshop = Workshop::open();
    let mut command = Command::new(workshop.compile("hides", &format!("{HIDES}{WAITS}"), &[]));
    let process = Waiting::start(command.env("LD_PRELOAD", library()));
    let copy = workshop.path("hakmem");
    make_program(&copy, &std::fs::read(env!("CARGO_BIN_EXE_hakmem")).unwrap());
    let everybodys = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(workshop.folder(), everybodys).unwrap();
    let is_root = std::fs::metadata("/proc/self").unwrap();
    let is_root = std::os::unix::fs::MetadataExt::uid(&is_root) == 0;
    if is_root {
        let mut list = Command::new(&copy);
        list.arg("top").uid(NOBODYS).gid(NOBODYS);
        support::answer(list).is_one_line(
            1,
            "no process may be read: all are other users', or \
             /proc/sys/kernel/yama/ptrace_scope forbids it; try as root",
        );
    }
    if is_root {
        // A process with more capabilities than this root.
        for subcommand in ["stats", "verify", "doctor"] {
            let mut weak = Command::new("setpriv");
            weak.args(["--inh-caps=-sys_ptrace", "--bounding-set=-sys_ptrace"]);
            weak.arg(env!("CARGO_BIN_EXE_hakmem"))
                .arg(subcommand)
                .arg(process.pid());
            support::answer(weak).is_one_line(
                1,
                &format!(
                    "process {} may not be read: root here lacks a capability for it: CAP_SYS_PTRACE, or one \
                     that the process has",
                    process.pid()
                ),
            );
        }
    }
    for subcommand in [
        &["stats"][..],
        &["ledger"],
        &["top"],
        &["map"],
        &["failures"],
        &["options"],
        &["cold"],
    ] {
        let mut hakmem = Command::new(&copy);
        hakmem.args(subcommand).arg(process.pid());
        if is_root {
            hakmem.uid(NOBODY).gid(NOBODY);
        }
        support::answer(hakmem).is_one_line(
            1,
            &format!(
                "process {} may not be read: it is another user's, or \
                 /proc/sys/kernel/yama/ptrace_scope forbids it; try as root",
                process.pid()
            ),
        );
    }
}
