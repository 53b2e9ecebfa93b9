//! A traced run reports the truth: times, the memory of all processes, ends.

mod support;

use hakmem_lab::control_group::Groups;
use hakmem_lab::launch::{End, Request, Run, Running};
use hakmem_lab::watch;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use support::Workshop;

const MIB: u64 = 1024;

/// Touches 64 MiB, then waits before it frees them: for some time, or until there is a file "go".
const PEAK: &str = r#"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifndef PAUSE_US
#define PAUSE_US 0
#endif
#ifndef AFTER_US
#define AFTER_US 0
#endif
int main(int count, char **arguments)
{
    size_t bytes = (size_t)64 << 20;
    char *volatile block = malloc(bytes);
    memset(block, 1, bytes);
    usleep(PAUSE_US);
    if (count == 2) {
        close(open(arguments[1], O_CREAT | O_WRONLY, 0600));
        while (access("go", F_OK) != 0) {
            usleep(1000);
        }
    }
    free(block);
    usleep(AFTER_US);
    return 0;
}
"#;

/// Starts a hundred processes and works for 0.3 s, in which they end; or they end after it has.
const PARENT: &str = r#"
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double now(void) // does not go on while a signal's stop holds the process up
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
int main(int count, char **arguments)
{
    int gate[2];
    if (pipe(gate) != 0) {
        return 1;
    }
    for (int i = 0; i < 100; i++) {
        if (fork() == 0) {
            close(gate[1]);
            _exit((int)read(gate[0], gate, 1));
        }
    }
    double start = now();
    if (count == 1) {
        close(gate[1]);
    }
    while (now() - start < 0.3) {
    }
    (void)arguments;
    return 0;
}
"#;

fn request(command: &[&str]) -> Request {
    let null = || {
        File::options()
            .read(true)
            .write(true)
            .open("/dev/null")
            .unwrap()
    };
    Request {
        program: PathBuf::from(command[0]),
        name: command[0].into(),
        arguments: command[1..].iter().map(OsString::from).collect(),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        folder: PathBuf::from("/"),
        input: null(),
        output: null(),
        errors: null(),
        timeout: None,
        trace_threads: false,
        has_own_group: true,
        reads_heaps: false,
        ends_what_remains: true,
        control_group: None,
    }
}

fn run(command: &[&str]) -> Run {
    Running::start(request(command)).unwrap().wait().unwrap()
}

fn shell(script: &str) -> Run {
    run(&["/bin/sh", "-c", script])
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn the_peak_is_that_of_the_program() {
    let workshop = Workshop::open();
    let peak = workshop.compile("peak", PEAK, &[]);
    let found = run(&[text(&peak)]).tree.tree_peak_kib();
    assert!((64 * MIB..72 * MIB).contains(&found), "{found} KiB");
}

#[test]
fn a_childs_peak_and_the_commands_exit_code_count() {
    let workshop = Workshop::open();
    let peak = workshop.compile("peak", PEAK, &[]);
    let run = shell(&format!("{}; exit 3", text(&peak)));
    assert_eq!(run.end, End::Exited(3));
    assert_eq!(run.tree.reports().count(), 2);
    assert!((64 * MIB..72 * MIB).contains(&run.tree.peak_kib()));
}

#[test]
fn the_trees_peak_adds_what_lives_at_one_time_and_nothing_else() {
    let workshop = Workshop::open();
    let peak = workshop.compile("peak", PEAK, &[]);
    let peak = text(&peak);
    let folder = text(workshop.folder());
    let both = format!(
        "cd {folder}; {peak} one & {peak} two & until test -e one -a -e two; do :; done; touch go; wait"
    );
    assert!(shell(&both).tree.tree_peak_kib() >= 128 * MIB);
    assert!(
        shell(&format!("{peak}; {peak}; exit 0"))
            .tree
            .tree_peak_kib()
            < 80 * MIB
    );
}

#[test]
fn memory_after_the_peak_is_seen_in_a_program_that_lives_on() {
    let workshop = Workshop::open();
    let peak = workshop.compile("peak", PEAK, &["-DPAUSE_US=300000", "-DAFTER_US=3000000"]);
    let run = run(&[text(&peak)]);
    let largest = run.timeline.iter().map(|point| point.1).max().unwrap();
    assert!(largest >= 64 * MIB, "{largest} KiB at most");
    assert!(
        run.timeline.iter().all(|point| point.1 > 0),
        "{:?}",
        run.timeline
    );
    let after = watch::resident_after_peak(&run.timeline).unwrap();
    assert!(after < 16 * MIB, "{after} KiB a second later");
}

#[test]
fn memory_over_time_is_the_commands_and_not_ours() {
    let held = vec![1u8; 64 << 20]; // in a forked copy of this process until its exec
    for _ in 0..20 {
        let run = run(&["/bin/sleep", "0.02"]);
        let largest = run.timeline.iter().map(|point| point.1).max();
        assert!(largest.unwrap_or(0) < 32 * MIB, "{:?}", run.timeline);
    }
    assert_eq!(held[held.len() / 2], 1);
}

#[test]
fn where_groups_can_be_made_the_kernel_counts_the_memory_of_all_processes() {
    let Some(groups) = Groups::find() else {
        return; // this user may not make groups
    };
    let workshop = Workshop::open();
    let program = workshop.compile("peak", PEAK, &[]);
    let script = format!("{} & {}; wait", program.display(), program.display());
    let request = Request {
        control_group: groups.make().map(Arc::new),
        ..request(&["/bin/sh", "-c", &script])
    };
    let folder = request
        .control_group
        .as_ref()
        .unwrap()
        .folder()
        .to_path_buf();
    let run = Running::start(request).unwrap().wait().unwrap();
    let peak = run.group_peak_kib.unwrap();
    assert!((64 * MIB..200 * MIB).contains(&peak), "{peak} KiB");
    assert!(!folder.exists());
}

#[test]
fn a_signal_that_ends_the_command_is_reported() {
    assert_eq!(shell("kill -9 $$").end, End::Signaled(9));
}

#[test]
fn a_command_that_takes_too_long_is_ended() {
    let request = Request {
        timeout: Some(Duration::from_millis(300)),
        ..request(&["/bin/sleep", "60"])
    };
    let run = Running::start(request).unwrap().wait().unwrap();
    assert!(run.timed_out && run.wall_s < 30.0);
}

#[test]
fn processes_that_are_left_behind_are_counted_and_ended() {
    let run = shell("sleep 60 & exit 0");
    assert_eq!(run.left_running, 1);
}

#[test]
fn commands_that_threads_start_at_one_time_do_not_hold_each_other() {
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                (0..20).for_each(|_| assert_eq!(run(&["/bin/true"]).end, End::Exited(0)))
            });
        }
    });
}

#[test]
fn processes_that_are_examined_beside_the_command_or_after_it_take_none_of_its_time() {
    let workshop = Workshop::open();
    let parent = workshop.compile("parent", PARENT, &[]);
    for arguments in [&[][..], &["later"]] {
        let run = run(&[&[text(&parent)], arguments].concat());
        assert_eq!(run.tree.reports().count(), 101);
        assert!(run.wall_s >= 0.29, "{} s", run.wall_s);
    }
}

#[test]
fn a_command_that_does_not_exist_is_an_error() {
    let error = Running::start(request(&["/no/such/program"]))
        .unwrap()
        .wait()
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot run /no/such/program: No such file or directory (os error 2)"
    );
}

#[test]
fn a_child_that_a_thread_started_is_noticed_and_with_traced_threads_seen() {
    let script = "import subprocess, threading\n\
                  t = threading.Thread(target=lambda: subprocess.run(['/bin/ls'])); t.start(); t.join()";
    let command = ["/usr/bin/python3", "-c", script];
    let unseen = run(&command);
    assert!(
        unseen
            .tree
            .reports()
            .any(|(_, report)| report.hidden_children)
    );
    let request = Request {
        trace_threads: true,
        ..request(&command)
    };
    let seen = Running::start(request).unwrap().wait().unwrap();
    assert_eq!(seen.tree.reports().count(), 2);
    assert!(
        !seen
            .tree
            .reports()
            .any(|(_, report)| report.hidden_children)
    );
}
