//! Programs with several processes: every view says which one it shows, and can show all of them.

mod support;

use serde_json::Value;
use std::process::Command;
use support::{Workshop, answer, text};

/// Four children leave 100 to 400 blocks of 1 KiB, and end in four ways.
const FAMILY: &str = r#"
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 4; i++) {
        if (fork() == 0) {
            for (int k = 0; k < 100 * (i + 1); k++) {
                *(volatile char *)malloc(1024) = 1;
            }
            if (i == 0) _exit(0);
            if (i == 1) exit(0);
            if (i == 2) abort();
            kill(getpid(), SIGKILL);
        }
    }
    while (wait(0) > 0) {
    }
    return 0;
}
"#;

#[test]
fn leaks_at_the_end_are_those_of_all_processes() {
    let workshop = Workshop::open();
    let program = workshop.compile("family", FAMILY, &[]);
    let leaks = |more: &[&str]| {
        let last = ["--exit", "--", text(&program)];
        workshop.hakmem(&[&["leaks"], more, &last].concat())
    };
    let said: Value = serde_json::from_str(&leaks(&["--json"]).ended_with(0).output).unwrap();
    let processes = said["processes"].as_array().unwrap();
    let mut blocks: Vec<f64> = processes
        .iter()
        .map(|one| one["live"]["blocks"].as_f64().unwrap())
        .collect();
    blocks.sort_by(f64::total_cmp);
    assert_eq!(blocks, [0.0, 100.0, 200.0, 300.0, 400.0]);
    assert_eq!(said["sites"][0]["live"]["blocks"], 1000.0);
    leaks(&[])
        .ended_with(0)
        .says("family at its end, and its children at theirs")
        .says("1000 KiB in 1000 blocks are still allocated");
    leaks(&["--older", "600"])
        .ended_with(0)
        .says("no block that is still allocated is older than 10 min");
    leaks(&["--process", "1"])
        .ended_with(0)
        .says("no allocation was sampled");
    leaks(&["--process", "6"]).says("there was no process 6: 5 ran");
}

#[test]
fn every_view_of_a_trace_says_which_process_and_has_the_sum() {
    let workshop = Workshop::open();
    let program = workshop.compile("family", FAMILY, &["-g"]);
    workshop
        .hakmem(&["record", "--stacks=4", "--", text(&program)])
        .ended_with(0);
    let trace = |question: &str, more: &[&str]| {
        let arguments = [&["trace", question, "trace.hkt"], more].concat();
        workshop.hakmem(&arguments)
    };
    trace("info", &[]).ended_with(0).says("all 4 ");
    for question in ["sizes", "lifetimes", "top-sites"] {
        let one = trace(question, &[]);
        one.ended_with(0)
            .says("the process with the most events, of 4; --process all shows their sum")
            .says("/family");
        trace(question, &["--process", "all"])
            .ended_with(0)
            .says("all 4 processes together")
            .says("1,000");
    }
    let sites = trace("top-sites", &["--process", "all", "--json"]);
    let sites: Value = serde_json::from_str(&sites.output).unwrap();
    assert_eq!(sites[0]["site"]["count"], 1000);
    assert_eq!(sites[0]["processes"].as_array().unwrap().len(), 4);
    let sizes = trace("sizes", &["--process", "all", "--json"]);
    let sizes: Value = serde_json::from_str(&sizes.output).unwrap();
    assert_eq!(sizes["process"], "all");
    assert_eq!(sizes["top_sizes"][0], serde_json::json!([1024, 1000]));
    trace("sizes", &["--process", "some"]).ended_with(2);
}

#[test]
fn a_process_whose_heap_was_not_seen_is_named() {
    let workshop = Workshop::open();
    let said = workshop.hakmem(&["leaks", "--exit", "--", "sh", "-c", "env -i ls; true"]);
    said.ended_with(0).says("not seen");
    let line = said.output.lines().find(|line| line.contains("not seen"));
    assert!(line.unwrap().ends_with("ls"), "{}", said.output);
}

/// 700 threads at a time, and a block with 50 callers.
const CROWD: &str = r#"
#include <pthread.h>
#include <stdlib.h>
enum { THREADS = 700 };
static pthread_barrier_t barrier;
static void *deep(int more)
{
    volatile char here[16];
    here[0] = more;
    void *block = more ? deep(more - 1) : malloc(77);
    here[1] = 1;
    return block;
}
static void *work(void *unused)
{
    void *blocks[4];
    for (int i = 0; i < 4; i++) blocks[i] = malloc(100);
    pthread_barrier_wait(&barrier);
    for (int i = 0; i < 4; i++) free(blocks[i]);
    pthread_barrier_wait(&barrier);
    return unused;
}
int main(void)
{
    static pthread_t threads[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&barrier, 0, THREADS);
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], &small, work, 0)) abort();
    }
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], 0);
    free(deep(50));
    return 0;
}
"#;

#[test]
fn more_threads_than_there_are_rings_are_all_recorded_and_stacks_that_go_on_say_so() {
    let workshop = Workshop::open();
    let program = workshop.compile("crowd", CROWD, &["-O0", "-g", "-pthread"]);
    workshop
        .hakmem(&["record", "--stacks=8", "--", text(&program)])
        .ended_with(0);
    workshop
        .hakmem(&["trace", "info", "trace.hkt"])
        .ended_with(0)
        .says(" s, complete; exit code 0")
        .says("701");
    let sites = workshop.hakmem(&["trace", "top-sites", "trace.hkt", "-n", "100", "--json"]);
    let sites: Value = serde_json::from_str(&sites.output).unwrap();
    let frames_of = |bytes: u64| {
        let sites = sites.as_array().unwrap().iter();
        let mut found = sites.filter(|site| site["site"]["bytes"] == bytes);
        found.next().unwrap()["frames"].as_array().unwrap().clone()
    };
    let of_threads = frames_of(700 * 400);
    assert!(of_threads[0].as_str().unwrap().starts_with("work "));
    assert!(
        !of_threads
            .last()
            .unwrap()
            .as_str()
            .unwrap()
            .starts_with('…')
    );
    let deep = frames_of(77);
    assert_eq!(deep.len(), 9);
    assert_eq!(deep[8], "… (more callers: 8 frames were recorded)");
}

/// Lives long enough to be seen.
const SLOW: &str = r#"
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    free(malloc(10));
    usleep(300000);
    return 0;
}
"#;

#[test]
fn processes_that_the_recorder_is_not_in_are_named() {
    let workshop = Workshop::open();
    workshop.compile("slow", SLOW, &[]);
    workshop.compile("still", SLOW, &["-static"]);
    let namespace = "unshare -pf --mount-proc ./slow";
    for (line, name, why) in [
        ("./still; true", "/still, ", "is statically linked"),
        (
            "env -i ./slow; true",
            "/slow, ",
            "without the recorder's environment",
        ),
        (
            namespace,
            "/slow, ",
            "has a root, or a PID or user namespace, of its own",
        ),
        (
            "unshare -r ./slow",
            "/slow, ",
            "has a root, or a PID or user namespace, of its own",
        ),
        (
            "ulimit -v 200000; ./slow; true",
            "/slow, ",
            "may not map the channel's addresses (set 'ulimit -v' before record)",
        ),
        (
            "chmod 755 . && setpriv --reuid 65534 --clear-groups ./slow",
            "/slow, ",
            "runs as another user, who may not open the channel",
        ),
    ] {
        let _ = std::fs::remove_file(workshop.path("trace.hkt"));
        let said = workshop.hakmem(&["record", "--", "sh", "-c", line]);
        if ["unshare failed", "setpriv: "]
            .iter()
            .any(|cannot| said.errors.contains(cannot))
        {
            continue; // only root may
        }
        let info = workshop.hakmem(&["trace", "info", "trace.hkt"]);
        info.says("incomplete: see what is missing");
        said.says("not recorded: process ");
        for text in [&said.errors, &info.output] {
            let lines: Vec<&str> = text.lines().filter(|line| line.contains(why)).collect();
            assert!(lines.len() == 1 && lines[0].contains(name), "{text}");
        }
    }
    // A process of a few milliseconds: if the kernel reports it, it is named, though without the reason.
    workshop.compile("fast", &SLOW.replace("usleep(300000);", ""), &[]);
    for namespace in ["unshare -pf --mount-proc ./fast", "unshare -r ./fast"] {
        let _ = std::fs::remove_file(workshop.path("trace.hkt"));
        let said = workshop.hakmem(&["record", "--", "sh", "-c", namespace]);
        let cannot = ["unshare failed", "may not watch processes"];
        if !cannot.iter().any(|why| said.errors.contains(why)) {
            let info = workshop.hakmem(&["trace", "info", "trace.hkt"]);
            info.says("/fast, ");
        }
    }
    let _ = std::fs::remove_file(workshop.path("trace.hkt"));
    workshop
        .hakmem(&["record", "--", "sh", "-c", "./slow; true"])
        .ended_with(0);
    workshop
        .hakmem(&["trace", "info", "trace.hkt"])
        .says(", complete; exit code 0");
}

/// Forks after it has changed its root to a folder without /proc, as servers do. Exit code 9 where only root may.
const CHANGES_ROOT: &str = r#"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    free(malloc(10));
    if (chroot(".") != 0) {
        return 9;
    }
    if (fork() == 0) {
        for (int i = 0; i < 50; i++) {
            free(malloc(100));
            usleep(2000);
        }
        _exit(0);
    }
    wait(NULL);
    return 0;
}
"#;

#[test]
fn a_child_in_a_changed_root_has_its_parents_name() {
    let workshop = Workshop::open();
    workshop.compile("changes_root", CHANGES_ROOT, &["-O0"]);
    let said = workshop.hakmem(&["record", "--", "./changes_root"]);
    if said.code == Some(9) {
        eprintln!("left out: only root may change the root");
        return;
    }
    let info = workshop.hakmem(&["trace", "info", "trace.hkt"]);
    info.says("\n2 changes_root ");
    assert!(
        !info.output.contains("allocated nothing"),
        "{}",
        info.output
    );
}

/// Without the right to make a PID namespace, there is nothing to test.
#[test]
fn numbers_of_another_pid_namespace_are_not_believed() {
    let workshop = Workshop::open();
    let inside = |mount: &[&str], command: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["-rpf"]).args(mount);
        unshare.arg(env!("CARGO_BIN_EXE_hakmem")).args(command);
        answer(unshare)
    };
    let may_be = Command::new("unshare").args(["-rpf", "true"]).status();
    if !may_be.is_ok_and(|status| status.success()) {
        eprintln!("left out: no PID namespaces here");
        return;
    }
    let run = ["run", "--", "echo", "said"];
    let foreign = "/proc is missing, or of another PID namespace: mount it here";
    let said = inside(&[], &run);
    said.ended_with(0).says("not proved: ").says(foreign);
    assert_eq!(said.output, "said\n");
    let said = inside(&["--mount-proc"], &run);
    assert_eq!((said.output.as_str(), said.errors.as_str()), ("said\n", ""));
    let said = inside(&["--mount-proc"], &["top", "-n", "1"]);
    said.ended_with(1).says("there is no other process");
    let trace = workshop.path("trace.hkt");
    for command in [
        &["record", "-o", text(&trace), "--", "echo", "said"][..],
        &["leaks", "--exit", "--", "echo", "said"],
        &["tune", "--", "echo", "said"],
        &["run", "--stats", "--", "echo", "said"],
        &["stats", "1"],
        &["profile", "1"],
        &["top", "-n", "1"],
    ] {
        let said = inside(&[], command);
        said.ended_with(1).says(foreign);
        assert_eq!(said.output, "", "{command:?}");
        assert_eq!(said.errors.matches(foreign).count(), 1, "{command:?}");
    }
    assert!(!trace.exists());
}

#[test]
fn a_trace_is_replayed_and_reported_for_each_process_and_as_a_sum() {
    let workshop = Workshop::open();
    let program = workshop.compile("family", FAMILY, &[]);
    workshop
        .hakmem(&["record", "--", text(&program)])
        .ended_with(0);
    let replay = |more: &[&str]| {
        let first = ["replay", "trace.hkt", "-n", "1", "-a", "glibc"];
        workshop.hakmem(&[&first[..], more].concat())
    };
    replay(&[])
        .ended_with(0)
        .says("/family\nthe process with the most events, of 4; --process all shows their sum");
    replay(&["--process", "all"])
        .ended_with(0)
        .says("family: 1000 operations of 4 threads")
        .says("all 4 processes together");
    let sum = replay(&["--process", "all", "--json"]);
    let sum: Value = serde_json::from_str(&sum.ended_with(0).output).unwrap();
    let parts = sum["parts"].as_array().unwrap();
    let operations = |of: &Value| of["operations"].as_u64().unwrap();
    assert_eq!(parts.len(), 4);
    assert_eq!(operations(&sum), parts.iter().map(operations).sum::<u64>());
    workshop
        .hakmem(&["report", "trace.hkt", "--html", "page.html"])
        .ended_with(0);
    let page = std::fs::read_to_string(workshop.path("page.html")).unwrap();
    assert!(page.contains("all 4 processes together"));
    for number in 1..=4 {
        assert!(page.contains(&format!("\"trace.hkt, process {number}\"")));
        assert!(page.contains(&format!("\"process {number} (")));
    }
}

#[test]
fn a_child_that_only_frees_is_said_to_have_allocated_nothing() {
    let workshop = Workshop::open();
    let source = r#"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    void *blocks[10];
    for (int i = 0; i < 10; i++) {
        blocks[i] = malloc(64);
    }
    if (fork() == 0) {
        for (int i = 0; i < 10; i++) {
            free(blocks[i]);
        }
        _exit(0);
    }
    wait(NULL);
    return 0;
}
"#;
    let program = workshop.compile("frees", source, &["-g", "-O0"]);
    workshop
        .hakmem(&["record", "--stacks", "--", text(&program)])
        .ended_with(0);
    for view in ["top-sites", "peak"] {
        workshop
            .hakmem(&["trace", view, "trace.hkt", "--process", "2"])
            .ended_with(0)
            .says("nothing was allocated");
    }
    let all = ["replay", "trace.hkt", "-n", "1", "--process"];
    workshop
        .hakmem(&[&all[..], &["all"]].concat())
        .ended_with(0)
        .says("10 operations of 1 thread");
    workshop
        .hakmem(&[&all[..], &["2"]].concat())
        .is_one_line(2, "process 2 of trace.hkt has nothing to replay");
}

#[test]
fn statistics_at_the_end_are_of_each_process_and_of_all() {
    let workshop = Workshop::open();
    let program = workshop.compile("family", FAMILY, &[]);
    let said = workshop.hakmem(&["run", "--stats", "--", text(&program)]);
    said.ended_with(0)
        .says("live at the end in 1000 blocks")
        .says("as sums over 5 processes");
    for blocks in [100, 200, 300, 400] {
        said.says(&format!("in {blocks} blocks; at most"));
    }
    let many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do /bin/echo; done";
    let stats = |option: &str| workshop.hakmem(&["run", option, "--", "sh", "-c", many]);
    stats("--stats")
        .says("as sums over 13 processes")
        .says("and 3 smaller processes; --stats=all shows them");
    let all = stats("--stats=all");
    let lines = all.errors.lines().filter(|line| line.ends_with(": echo"));
    assert_eq!(lines.count(), 12, "{}", all.errors);
}

#[test]
fn a_process_that_asked_for_no_memory_is_named_too() {
    let workshop = Workshop::open();
    let quiet = SLOW.replace("free(malloc(10));", "");
    workshop.compile("quiet", &quiet, &[]);
    workshop
        .hakmem(&["record", "--", "sh", "-c", "./quiet; true"])
        .ended_with(0);
    let info = workshop.hakmem(&["trace", "info", "trace.hkt"]);
    info.says(", complete; exit code 0");
    let mut lines = info.output.lines();
    let named = lines.find(|line| line.starts_with("no calls process "));
    let named = named.unwrap_or_else(|| panic!("{}", info.output));
    assert!(named.ends_with("/quiet, allocated nothing"), "{named}");
}

/// If the kernel does not report processes, the result says that some may be missing.
#[test]
fn the_shortest_lives_outside_of_a_recording_are_named() {
    let workshop = Workshop::open();
    let source = "#include <stdlib.h>\nint main(void) { return malloc(100) == NULL; }\n";
    workshop.compile("still", source, &["-static"]);
    let many = "for i in 1 2 3 4 5 6 7 8 9 10; do ./still; env -i ./still; done; /bin/echo";
    let said = workshop.hakmem(&["record", "--", "sh", "-c", many]);
    said.ended_with(0);
    let info = workshop.hakmem(&["trace", "info", "trace.hkt", "--json"]);
    let info: Value = serde_json::from_str(&info.ended_with(0).output).unwrap();
    if info["ending"]["may_lack_processes"] == true {
        said.says("a process that ran for some milliseconds without the recorder may be missing");
        return;
    }
    let unseen = info["ending"]["unseen"].as_array().unwrap();
    let is_it = |one: &&Value| one["program"] == text(&workshop.path("still"));
    assert_eq!(unseen.iter().filter(is_it).count(), 20, "{info}");
    said.says("/still, is statically linked, so nothing can be preloaded")
        .says("more processes; 'hakmem trace info --json' lists them");
}

/// A smaller channel fits.
#[test]
fn with_few_addresses_a_program_is_recorded() {
    let workshop = Workshop::open();
    let program = workshop.program();
    let hakmem = env!("CARGO_BIN_EXE_hakmem");
    let line = format!(
        "ulimit -v 200000; exec {hakmem} record -- {}",
        text(&program)
    );
    let mut command = Command::new("sh");
    command.args(["-c", &line]).current_dir(workshop.folder());
    answer(command)
        .ended_with(0)
        .says(" events of 1 process in trace.hkt");
}
