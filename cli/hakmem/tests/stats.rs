//! `hakmem stats`: the same figures as the process's own, read from outside.

mod support;

use serde_json::Value;
use std::process::Command;
use support::waiting::{WAITS, Waiting};
use support::{Workshop, library, text};

/// Prints its own figures, and waits for the end of its input.
const TELLS: &str = r#"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *blocks[3000];
static void *free_some(void *unused)
{
    for (int i = 0; i < 1000; i++) {
        free(blocks[i]);
    }
    return unused;
}
int main(void)
{
    static char figures[32768];
    size_t (*json)(char *, size_t) = (size_t (*)(char *, size_t))dlsym(RTLD_DEFAULT, "hak_stats_json");
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 3000; i++) {
        blocks[i] = malloc(i % 2 ? 100 : 50000);
    }
    pthread_t thread;
    pthread_create(&thread, NULL, free_some, NULL);
    pthread_join(thread, NULL);
    puts("ready");
    json(figures, sizeof figures);
    fputs(figures, stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

fn the_process_itself_says_the_same_in_mode(mode: &str) {
    let workshop = Workshop::open();
    let program = workshop.compile("tells", TELLS, &["-pthread"]);
    let mut command = Command::new(&program);
    // Nothing is given back between the two looks.
    command
        .env("LD_PRELOAD", library())
        .env("HAKMEM_MODE", mode)
        .env("HAKMEM_PURGER", "0");
    let mut process = Waiting::start(&mut command);
    let own: Value = serde_json::from_str(&process.next_line()).unwrap();
    let answer = workshop.hakmem(&["stats", "--json", &process.pid()]);
    let seen: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    assert_eq!(seen["moved_blocks"], 0);
    for (name, value) in own.as_object().unwrap() {
        if !["walked", "process", "classes"].contains(&name.as_str()) {
            assert_eq!(seen[name], *value, "{name}");
        }
    }
    for class in own["classes"].as_array().unwrap() {
        let mut all = seen["classes"].as_array().unwrap().iter();
        let same = all.find(|one| one["bytes"] == class["bytes"]).unwrap();
        for (name, value) in class.as_object().unwrap() {
            assert_eq!(same[name], *value, "{name} of {class}");
        }
    }
    assert_eq!(seen["options"]["decay_ms"], 500);
    workshop
        .hakmem(&["stats", &process.pid()])
        .ended_with(0)
        .says("hakmem 1.0.0")
        .says("cache of")
        .says(" live ");
}

#[test]
fn the_process_itself_says_the_same() {
    the_process_itself_says_the_same_in_mode("balanced");
}

/// Blocks in a stock or in quarantine are not in use.
#[test]
fn the_process_itself_says_the_same_in_mode_secure() {
    the_process_itself_says_the_same_in_mode("secure");
}

/// Before WAITS: 12,345 blocks of a size that nothing else requests, one at a time.
const TAKES: &str = r#"
#include <stdlib.h>
__attribute__((constructor)) static void take(void)
{
    void *volatile block;
    for (int i = 0; i < 12345; i++) {
        block = malloc(20000);
        free(block);
    }
}
"#;

/// While a program is sampled, allocations that its magazines serve are counted, too.
#[test]
fn allocations_are_counted_while_sampling() {
    let workshop = Workshop::open();
    let program = workshop.compile("takes", &format!("{TAKES}{WAITS}"), &["-O0"]);
    let look = |sample_bytes: &str| {
        let mut command = Command::new(&program);
        command
            .env("LD_PRELOAD", library())
            .env("HAKMEM_SAMPLE_BYTES", sample_bytes);
        let process = Waiting::start(&mut command);
        let answer = workshop.hakmem(&["stats", "--json", &process.pid()]);
        let figures: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
        let mut classes = figures["classes"].as_array().unwrap().iter();
        let class = classes.find(|one| one["bytes"] == 20480).unwrap();
        let [allocations, misses] =
            ["counted_allocations", "counted_misses"].map(|name| class[name].as_u64().unwrap());
        let table = workshop.hakmem(&["stats", &process.pid()]);
        (allocations, misses, table.ended_with(0).output.clone())
    };
    let (allocations, misses, table) = look("524288");
    assert_eq!(allocations, 12345);
    assert!(misses > 0 && misses < allocations / 2, "{misses}");
    assert!(
        table.contains(" hits") && table.contains(" 12345 "),
        "{table}"
    );
    let (allocations, misses, table) = look("0");
    assert_eq!((allocations, misses), (0, 0));
    assert!(!table.contains(" hits"), "{table}");
}

/// Before WAITS: allocates and frees many blocks all the time.
const CHURNS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
static void *churn(void *unused)
{
    static void *blocks[20000];
    for (;;) {
        for (int i = 0; i < 20000; i++) {
            blocks[i] = malloc(64);
        }
        for (int i = 0; i < 20000; i++) {
            free(blocks[i]);
        }
    }
    return unused;
}
__attribute__((constructor)) static void start(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, churn, NULL);
}
"#;

/// The system decides whether blocks move just then: one of several looks will see it.
#[test]
fn what_moves_meanwhile_is_said() {
    let workshop = Workshop::open();
    let program = workshop.compile("churns", &format!("{CHURNS}{WAITS}"), &["-pthread"]);
    let process = Waiting::start(Command::new(&program).env("LD_PRELOAD", library()));
    for command in ["stats", "ledger"] {
        let mut looks = (0..200).map(|_| {
            workshop
                .hakmem(&[command, &process.pid()])
                .ended_with(0)
                .output
                .clone()
        });
        let said = looks.find(|look| look.contains("± ")).expect(command);
        let line = said.lines().find(|line| line.starts_with("± ")).unwrap();
        let count = line
            .strip_prefix("± ")
            .unwrap()
            .strip_suffix(" blocks moved while this was read");
        assert!(count.unwrap().parse::<u64>().unwrap() > 0, "{line}");
    }
}

#[test]
fn who_cannot_be_looked_into_is_said_in_one_line() {
    let workshop = Workshop::open();
    let line = "there is no process 2147483647, or it has just ended";
    workshop
        .hakmem(&["stats", "2147483647"])
        .is_one_line(2, line);
    let folder = text(workshop.folder()).to_string();
    workshop.write("text", "no core");
    let line = "text is not a core dump: not an ELF file for 64 bits";
    workshop
        .hakmem(&["stats", "--core", "text"])
        .is_one_line(2, line);
    let line = format!("cannot read {folder}/gone: No such file or directory (os error 2)");
    workshop
        .hakmem(&["stats", "--core", &format!("{folder}/gone")])
        .is_one_line(2, &line);
}

#[test]
fn slow_paths_are_timed_when_that_is_wanted() {
    let workshop = Workshop::open();
    let program = workshop.compile("tells", TELLS, &["-pthread"]);
    let mut command = Command::new(&program);
    command
        .env("LD_PRELOAD", library())
        .env("HAKMEM_PURGER", "0")
        .env("HAKMEM_DEBUG_TIMING", "1");
    let mut process = Waiting::start(&mut command);
    let own: Value = serde_json::from_str(&process.next_line()).unwrap();
    let answer = workshop.hakmem(&["stats", "--json", &process.pid()]);
    let seen: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    assert_eq!(seen["timings"], own["timings"]);
    let names: Vec<&str> = seen["timings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|timing| timing["name"].as_str().unwrap())
        .collect();
    assert!(names.contains(&"refill") && names.contains(&"large_alloc"));
    let of = |name: &str| names.iter().position(|one| *one == name).unwrap();
    let times = |name: &str| -> u64 {
        let times = &seen["timings"][of(name)]["times"];
        times
            .as_array()
            .unwrap()
            .iter()
            .map(|n| n.as_u64().unwrap())
            .sum()
    };
    // Each slab and each mapping that the counters know was timed, except the first ones, which were made before the options
    // were read.
    let made: u64 = seen["classes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|class| class["slabs_made"].as_u64().unwrap())
        .sum();
    assert!(times("slab_make") <= made && times("slab_make") + 40 > made);
    assert!(times("large_alloc") >= 1500);
    let answer = workshop.hakmem(&["stats", &process.pid()]);
    answer.ended_with(0).says("slow path").says("99 % below");
}

/// A class that is missing at one of the two moments must not shift the others.
#[test]
fn what_has_changed_is_told_by_the_size_of_blocks() {
    let workshop = Workshop::open();
    let class = |bytes, live| format!(r#"{{"bytes": {bytes}, "live_blocks": {live}}}"#);
    let moment = |classes: &[String]| {
        format!(
            r#"{{"mapped_bytes": 8, "classes": [{}]}}"#,
            classes.join(", ")
        )
    };
    workshop.write("before", &moment(&[class(64, 1000)]));
    workshop.write("after", &moment(&[class(16, 7), class(64, 1500)]));
    let answer = workshop.hakmem(&["diff", "before", "after"]);
    let lines: Vec<Vec<&str>> = answer
        .ended_with(0)
        .output
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    let of_64 = ["classes.64", "B.live_blocks", "1000", "1500", "+500"];
    assert!(lines.iter().any(|line| line == &of_64), "{lines:?}");
}

/// A cache that is missing at one of the two moments must not shift the others. Its end is a change, too.
#[test]
fn what_has_changed_is_told_by_the_number_of_a_cache() {
    let workshop = Workshop::open();
    let cache = |number, slabs| format!(r#"{{"number": {number}, "slabs": {slabs}}}"#);
    let moment = |caches: &[String]| {
        format!(
            r#"{{"mapped_bytes": 8, "caches": [{}]}}"#,
            caches.join(", ")
        )
    };
    let changed = |before: &[String], after: &[String]| {
        workshop.write("before", &moment(before));
        workshop.write("after", &moment(after));
        let answer = workshop.hakmem(&["diff", "before", "after"]);
        let lines = answer.ended_with(0).output.lines().skip(2);
        lines
            .map(|line| line.split_whitespace().collect::<Vec<&str>>().join(" "))
            .collect::<Vec<String>>()
    };
    let (first, second) = (cache(7, 10), cache(9, 3));
    assert_eq!(
        changed(&[first.clone()], &[second.clone(), first.clone()]),
        ["caches.9.slabs 0 3 +3"]
    );
    assert_eq!(
        changed(&[second, first.clone()], &[first]),
        ["caches.9.slabs 3 0 -3"]
    );
}

/// Before WAITS: as many threads as a server has, with one block each.
const THREADS: &str = r#"
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
static pthread_barrier_t all;
static void *keep(void *argument)
{
    void *volatile block = malloc((size_t)argument * 100 + 5000);
    pthread_barrier_wait(&all);
    pause();
    return block;
}
__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&all, NULL, 101);
    for (size_t i = 0; i < 100; i++)
        pthread_create(&thread, &small, keep, (void *)i);
    pthread_barrier_wait(&all);
}
"#;

#[test]
fn many_threads_are_a_few_lines_and_a_sum() {
    let workshop = Workshop::open();
    let source = format!("{THREADS}{WAITS}");
    let program = workshop.compile("threads", &source, &["-pthread"]);
    let process = Waiting::start(Command::new(&program).env("LD_PRELOAD", library()));
    let short = workshop.hakmem(&["stats", &process.pid()]);
    let lines = |text: &str| {
        let mut table = text
            .lines()
            .skip_while(|line| !line.starts_with("cache of"));
        table.by_ref().take_while(|line| !line.is_empty()).count()
    };
    let text = &short.ended_with(0).output;
    // The title, a rule, twenty caches, the others, and a line about --all.
    assert_eq!(lines(text), 24, "{text}");
    let others = text.lines().find(|line| line.contains(" others ")).unwrap();
    let sum: u64 = others.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!(sum > 60, "{others}");
    short.says("of threads that run; --all has a line for each");
    let whole = workshop.hakmem(&["stats", "--all", &process.pid()]);
    assert!(lines(&whole.ended_with(0).output) > 100, "{}", whole.output);
}

/// Has memory that it would share with children, and has not touched any of it.
const SHARES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    free(malloc(100));
    if (mmap(0, 64 << 20, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) abort();
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    char end;
    return read(0, &end, 1) != 0;
}
"#;

#[test]
fn who_looks_makes_no_shared_memory_resident() {
    let workshop = Workshop::open();
    let program = workshop.compile("shares", SHARES, &[]);
    let mut process = Waiting::start(Command::new(&program).env("LD_PRELOAD", library()));
    let shared = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("RssShmem"));
        line.unwrap().to_owned()
    };
    let before = shared();
    for command in ["verify", "stats", "map", "ledger"] {
        workshop.hakmem(&[command, &process.pid()]).ended_with(0);
        assert_eq!(shared(), before, "{command}");
    }
    process.end();
}

/// A service has hakmem in LD_PRELOAD, and `hakmem run` adds its own copy: only the one at the higher address is called.
#[test]
fn of_several_copies_the_one_in_use_is_shown() {
    const HOLDS: &str = r#"
#include <stdlib.h>
__attribute__((constructor)) static void hold(void)
{
    for (int i = 0; i < 5000; i++) {
        void *volatile block = malloc(100);
    }
}
"#;
    let workshop = Workshop::open();
    let copies = ["one.so", "two.so"].map(|name| {
        let path = workshop.path(name);
        std::fs::copy(library(), &path).unwrap();
        path
    });
    let [one, two] = copies.each_ref().map(|path| text(path));
    let mut command = Command::new(workshop.compile("holds", &format!("{HOLDS}{WAITS}"), &[]));
    let process = Waiting::start(command.env("LD_PRELOAD", format!("{one}:{two}")));
    let pid = process.pid();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    assert!(maps.contains(one) && maps.contains(two));
    let answer = workshop.hakmem(&["stats", &pid, "--json"]);
    let figures: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    let live = figures["live_blocks"].as_u64().unwrap();
    assert!((5000..5100).contains(&live), "{live} live blocks");
    assert_eq!(answer.errors, "");
}

/// A plugin has its own copy of hakmem, beside that of its program.
#[test]
fn several_copies_that_are_used_are_said() {
    let workshop = Workshop::open();
    std::fs::copy(library(), workshop.path("other.so")).unwrap();
    let holds = format!(
        "#include <dlfcn.h>\n#include <stdlib.h>\n#include <string.h>\n__attribute__((constructor)) static void hold(void)\n{{\n\
         void *other = dlopen(\"{}\", RTLD_NOW | RTLD_LOCAL);\n    void *(*give)(size_t) = dlsym(other, \"hak_malloc\");\n\
         for (int i = 0; i < 5000; i++) {{\n        void *volatile block = memset(malloc(100), 1, 100);\n        block = memset(give(4096), 1, 4096);\n    }}\n}}\n",
        text(&workshop.path("other.so"))
    );
    let program = workshop.compile("holds", &format!("{holds}{WAITS}"), &[]);
    let process = Waiting::start(Command::new(program).env("LD_PRELOAD", library()));
    for command in ["stats", "map", "ledger", "doctor"] {
        let answer = workshop.hakmem(&[command, &process.pid()]);
        let line = format!(
            "hakmem: warning: process {} uses 2 copies of hakmem: only the one with ",
            process.pid()
        );
        assert!(answer.ended_with(0).errors.starts_with(&line), "{command}");
    }
    // Whichever heap is the larger one, the other is no memory of the program's own.
    for command in ["ledger", "doctor"] {
        let answer = workshop.hakmem(&[command, &process.pid(), "--json"]);
        let found: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
        let account = found.get("hakmem").unwrap_or(&found);
        let held = &account["resident"];
        let of = |name: &str| held[name].as_u64().unwrap_or(0);
        let both = of("live") + of("copies");
        assert!(
            both > 20 << 20 && of("copies") > 500_000,
            "{command}: {held}"
        );
        assert!(of("other") < 1 << 20, "{command}: {held}");
        let answer = workshop.hakmem(&[command, &process.pid()]);
        answer.ended_with(0).says("other copies");
    }
}
