//! `hakmem record`, `trace`, `replay` and `report`: refusals come in one line, before anything runs.

mod support;

use support::{Workshop, library, text};

#[test]
fn a_static_program_is_refused_and_not_run() {
    let workshop = Workshop::open();
    let program = workshop.compile("still", support::PROGRAM, &["-static"]);
    let line = format!(
        "{} is statically linked, so nothing can be preloaded: it cannot be recorded",
        text(&program)
    );
    workshop
        .hakmem(&["record", "--", text(&program)])
        .is_one_line(1, &line);
    assert!(!workshop.path("trace.hkt").exists());
}

#[test]
fn a_program_with_an_allocator_of_its_own_is_refused_and_not_run() {
    let workshop = Workshop::open();
    let own = format!("{}\n{}", support::ALLOCATOR, support::PROGRAM);
    let program = workshop.compile("own", &own, &[]);
    let said = workshop.hakmem(&["record", "--", text(&program)]);
    said.ended_with(1).says("instead of the recorder");
    assert_eq!(said.output, "");
    assert!(!workshop.path("trace.hkt").exists());
}

#[test]
fn a_program_that_asks_for_nothing_has_an_empty_trace() {
    let workshop = Workshop::open();
    let program = workshop.compile("nothing", "int main(void) { return 3; }", &[]);
    workshop
        .hakmem(&["record", "--", text(&program)])
        .ended_with(3)
        .says("hakmem: 0 events of 0 processes in trace.hkt")
        .says(" bytes\nhakmem: no process allocated memory");
    let info = workshop.hakmem(&["trace", "info", "trace.hkt"]);
    info.ended_with(0).says("0 events, ");
    assert!(!info.output.contains("an event"), "{}", info.output);
    workshop
        .hakmem(&["replay", "trace.hkt"])
        .is_one_line(2, "trace.hkt has no events");
}

#[test]
fn a_trace_that_is_there_is_not_written_over() {
    let workshop = Workshop::open();
    workshop.write("trace.hkt", "precious");
    workshop
        .hakmem(&["record", "--", "ls"])
        .is_one_line(2, "trace.hkt exists: remove it, or name another file");
    workshop
        .hakmem(&["record", "-o", "no/trace.hkt", "--", "ls"])
        .is_one_line(
            2,
            "cannot write no/trace.hkt: No such file or directory (os error 2)",
        );
    workshop
        .hakmem(&["record", "-o", "new.hkt", "--", "no-such-program"])
        .is_one_line(2, "there is no program 'no-such-program' in PATH");
}

#[test]
fn an_allocator_that_is_preloaded_is_recorded_too() {
    let workshop = Workshop::open();
    let mine = workshop.allocator("libmine.so", &[]);
    let program = workshop.program();
    let mut command = workshop.command(&["record", "--", text(&program), "hello"]);
    command.env("LD_PRELOAD", &mine);
    let said = support::answer(command);
    said.ended_with(0).says("events of 1 process");
    assert_eq!(said.output, "hello\n");
}

#[test]
fn what_is_no_trace_is_said_in_one_line_by_all_that_read_one() {
    let workshop = Workshop::open();
    workshop.write("text", "some text, longer than the head of a trace");
    let line = "text is not a trace: record one with 'hakmem record'";
    for question in ["info", "sizes", "lifetimes", "top-sites", "peak"] {
        workshop
            .hakmem(&["trace", question, "text"])
            .is_one_line(2, line);
    }
    workshop
        .hakmem(&["trace", "export", "--parquet", "table", "text"])
        .is_one_line(2, line);
    workshop.hakmem(&["replay", "text"]).is_one_line(2, line);
    let line = "cannot open the trace missing: No such file or directory (os error 2)";
    workshop.hakmem(&["replay", "missing"]).is_one_line(2, line);
}

#[test]
fn a_trace_that_was_cut_off_is_used_as_far_as_it_goes_and_that_is_said() {
    let workshop = Workshop::open();
    workshop.hakmem(&["record", "--", "ls"]).ended_with(0);
    let whole = std::fs::read(workshop.path("trace.hkt")).unwrap();
    std::fs::write(workshop.path("part.hkt"), &whole[..whole.len() - 100]).unwrap();
    for arguments in [
        &["trace", "info", "part.hkt"][..],
        &["replay", "part.hkt", "-n", "1", "-a", "glibc"],
    ] {
        workshop
            .hakmem(arguments)
            .ended_with(0)
            .says("part.hkt was cut off");
    }
    let mut newer = whole;
    newer[8] = 9;
    std::fs::write(workshop.path("newer.hkt"), &newer).unwrap();
    for arguments in [
        &["trace", "info", "newer.hkt"][..],
        &["replay", "newer.hkt"],
    ] {
        let answer = workshop.hakmem(arguments);
        answer
            .ended_with(2)
            .says("newer.hkt has trace format 9; this hakmem reads up to 3");
        assert_eq!(answer.errors.lines().count(), 1);
    }
}

#[test]
fn ratios_are_against_any_of_those_replayed() {
    let workshop = Workshop::open();
    workshop.hakmem(&["record", "--", "ls"]).ended_with(0);
    let copy = format!("copy={}", text(&library()));
    let replay = |baseline: &str| {
        let arguments = ["-n", "1", "-a", &copy, "-b", baseline];
        workshop.hakmem(&[&["replay", "trace.hkt"], &arguments[..]].concat())
    };
    replay("copy").ended_with(0).says("ratio: against copy");
    replay("glibc").ended_with(0).says("ratio: against glibc");
    let unknown = replay("gone");
    unknown.ended_with(2).says("there is no allocator 'gone'");
}

#[test]
fn a_replay_is_printed_in_the_form_that_is_asked_for() {
    let workshop = Workshop::open();
    workshop.hakmem(&["record", "--", "ls"]).ended_with(0);
    let replay = |form: &str| {
        let arguments = ["-n", "1", "-a", "glibc", "--export", "result.json", form];
        let said = workshop.hakmem(&[&["replay", "trace.hkt"], &arguments[..]].concat());
        said.ended_with(0);
        said.output
    };
    let tables = replay("--markdown");
    assert!(tables.contains("\n\n| allocator | time | ratio |") && tables.contains("\n| glibc | "));
    let lines = replay("--csv");
    assert!(lines.starts_with("allocator,round,seconds,") && lines.contains("\nglibc,0,"));
    assert_eq!(lines.lines().count(), 2);
    let stored = replay("--json");
    assert_eq!(
        stored,
        std::fs::read_to_string(workshop.path("result.json")).unwrap()
    );
}

#[test]
fn an_export_takes_nothings_place() {
    let workshop = Workshop::open();
    workshop.hakmem(&["record", "--", "ls"]).ended_with(0);
    let export = |file: &str| workshop.hakmem(&["trace", "export", "--parquet", file, "trace.hkt"]);
    export("trace.hkt").is_one_line(2, "trace.hkt exists: remove it, or name another file");
    export("new/table.parquet")
        .ended_with(0)
        .says("rows in new/table.parquet");
    assert!(workshop.path("new/table.parquet").exists());
    assert!(!workshop.path("new/table.parquet.new").exists());
}

#[test]
fn what_is_no_result_is_said_in_one_line() {
    let workshop = Workshop::open();
    let report = |arguments: &[&str]| workshop.hakmem(&[&["report"], arguments].concat());
    workshop.write("text", "text");
    report(&["text", "--html", "page.html"]).is_one_line(2, "text is neither a result nor a trace");
    report(&["missing"]).is_one_line(
        2,
        "cannot read missing: No such file or directory (os error 2)",
    );
    report(&["."]).is_one_line(2, "no results and no traces were found");
    workshop.write("replay.json", r#"{"kind": "replay", "format": 2}"#);
    report(&["replay.json"]).is_one_line(
        2,
        "replay.json is a replay of format 2, and this hakmem reads 1",
    );
    workshop.write(
        "replay.json",
        r#"{"kind": "replay", "format": 1, "runs": 5}"#,
    );
    report(&["replay.json"])
        .ended_with(2)
        .says("replay.json is damaged: ");
    workshop.write("result.json", r#"{"format": 3, "samples": []}"#);
    let line = "result.json is a result file of format 3, and this hakmem reads up to 2";
    report(&["result.json"]).is_one_line(2, line);
    report(&["result.json", "--html", "page.html"]).is_one_line(2, line);
    report(&[".", "--csv"])
        .ended_with(2)
        .says("are for a single result");
    assert!(!workshop.path("page.html").exists());
}

#[test]
fn a_comparison_can_be_a_page_at_once() {
    let workshop = Workshop::open();
    let arguments = ["-n", "1", "-a", "hakmem", "--html", "page.html", "--", "ls"];
    let said = workshop.hakmem(&[&["compare"], &arguments[..]].concat());
    said.ended_with(0).says("hakmem: the page is page.html");
    let page = std::fs::read_to_string(workshop.path("page.html")).unwrap();
    assert!(page.contains(r#""kind":"comparison""#));
}

/// A realloc to 0 that returns a block, as mimalloc's does, and one that frees, as others' do.
#[test]
fn a_realloc_to_nothing_is_replayed_whatever_it_gives() {
    let workshop = Workshop::open();
    let mine = workshop.allocator("libmine.so", &[]);
    let source = "#include <stdlib.h>\nint main(void)\n{\n    for (int i = 0; i < 1000; i++) {\n\
        void *volatile block = realloc(malloc(100), 0);\n        if (block == NULL) {\n            return 1;\n\
        }\n        block = realloc(block, 50);\n        block = realloc(block, 0);\n        free(block);\n    }\n    return 0;\n}\n";
    let program = workshop.compile("shrinks", source, &[]);
    let mut command = workshop.command(&["record", "--", text(&program)]);
    command.env("LD_PRELOAD", &mine);
    support::answer(command).ended_with(0);
    let replay = ["replay", "trace.hkt", "-n", "1", "-a", "hakmem,glibc"];
    let said = workshop.hakmem(&replay);
    said.ended_with(0);
    assert_eq!(said.errors, "");
}

/// Names are bytes, but JSON has only text.
#[test]
fn a_trace_of_an_odd_name_is_shown_as_json() {
    use std::os::unix::ffi::OsStrExt;
    let workshop = Workshop::open();
    let name = std::ffi::OsStr::from_bytes(b"odd\xff\n'\".hkt");
    let mut command = workshop.command(&["record", "-o"]);
    command.arg(name).args(["--", "ls"]);
    support::answer(command).ended_with(0);
    for question in ["info", "sizes", "lifetimes", "peak"] {
        let mut command = workshop.command(&["trace", question, "--json"]);
        command.arg(name);
        let said = support::answer(command);
        said.ended_with(0);
        let value: serde_json::Value = serde_json::from_str(&said.output).unwrap();
        if question == "info" {
            assert_eq!(value["trace"], "odd\\xff\\n'\".hkt");
        }
    }
}

#[test]
fn of_processes_that_are_alike_the_first_are_listed() {
    let workshop = Workshop::open();
    let source = "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\nint main(void)\n{\n\
        for (int i = 0; i < 40; i++) {\n        if (fork() == 0) {\n            void *volatile block = malloc(100);\n\
        _exit(0);\n        }\n        wait(NULL);\n    }\n    return 0;\n}\n";
    let program = workshop.compile("parent", source, &[]);
    workshop
        .hakmem(&["record", "--", text(&program)])
        .ended_with(0);
    let said = workshop.hakmem(&["trace", "info", "trace.hkt"]);
    said.ended_with(0)
        .says("and 20 smaller processes with 20 calls");
    let rows = said.output.lines().filter(|line| line.contains(" parent "));
    assert_eq!(rows.count(), 20, "{}", said.output);
}

/// Its trace exceeds 1 MiB.
const MANY: &str = r#"
#include <stdlib.h>
int main(void)
{
    void *blocks[1000] = {0};
    unsigned number = 1;
    for (int i = 0; i < 400000; i++) {
        number = number * 1103515245 + 12345;
        void **block = &blocks[(number >> 16) % 1000];
        free(*block);
        *block = malloc(16 + (number >> 8) % 3000);
    }
    return 0;
}
"#;

#[test]
fn a_trace_that_ends_before_the_program_is_called_so_by_all_that_read_one() {
    let workshop = Workshop::open();
    let program = workshop.compile("many", MANY, &[]);
    let record = ["record", "--limit", "1M", "--", text(&program)];
    workshop.hakmem(&record).ended_with(0);
    workshop.write("budget.toml", "[total]\nallocations = '<= 400000'\n");
    for arguments in [
        &["trace", "info", "trace.hkt"][..],
        &["trace", "sizes", "trace.hkt"],
        &["trace", "lifetimes", "trace.hkt"],
        &["trace", "peak", "trace.hkt"],
        &["replay", "trace.hkt", "-n", "1", "-a", "glibc"],
        &["report", "trace.hkt", "--html", "page.html"],
        &["check", "--budget", "budget.toml", "--trace", "trace.hkt"],
    ] {
        let said = workshop.hakmem(arguments);
        said.ended_with(0);
        let line = "hakmem: warning: trace.hkt ends at --limit, before the program ended";
        assert!(said.errors.contains(line), "{arguments:?}: {}", said.errors);
    }
}

/// One thread allocates, and another frees; at most 256 blocks of 5,000 bytes live.
const HANDED: &str = r#"
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
enum { BLOCKS = 400000, SLOTS = 256 };
static void *volatile slots[SLOTS];
static void *freeing(void *none)
{
    for (int at = 0; at < BLOCKS; at++) {
        while (!__atomic_load_n(&slots[at % SLOTS], __ATOMIC_ACQUIRE)) {
            sched_yield();
        }
        free(slots[at % SLOTS]);
        __atomic_store_n(&slots[at % SLOTS], NULL, __ATOMIC_RELEASE);
    }
    return none;
}
int main(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, freeing, NULL);
    for (int at = 0; at < BLOCKS; at++) {
        while (__atomic_load_n(&slots[at % SLOTS], __ATOMIC_ACQUIRE)) {
            sched_yield();
        }
        __atomic_store_n(&slots[at % SLOTS], malloc(at * 7919u % 5000 + 1), __ATOMIC_RELEASE);
    }
    return pthread_join(thread, NULL);
}
"#;

#[test]
fn a_trace_that_ends_at_its_limit_ends_at_one_moment_for_all_threads() {
    let workshop = Workshop::open();
    let program = workshop.compile("handed", HANDED, &["-pthread"]);
    let record = ["record", "--limit", "1M", "--", text(&program)];
    workshop
        .hakmem(&record)
        .ended_with(0)
        .says("reached --limit");
    let info = workshop.hakmem(&["trace", "info", "--json", "trace.hkt"]);
    let info: serde_json::Value = serde_json::from_str(&info.ended_with(0).output).unwrap();
    let process = &info["processes"][0];
    assert_eq!(process["calls"]["foreign_free"], 0, "{info}");
    assert_eq!(process["calls"]["implied_free"], 0, "{info}");
    assert!(
        process["live_bytes_peak"].as_u64().unwrap() <= 257 * 5000,
        "{info}"
    );
}

/// The new throws, and an exception is a block, too.
#[test]
fn a_new_that_fails_is_one_call() {
    let workshop = Workshop::open();
    let source = "#include <cstdlib>\n#include <new>\nstatic void room() { std::set_new_handler(nullptr); }\nint main()\n{\n\
        volatile std::size_t most = std::size_t(1) << 62;\n    for (int i = 0; i < 9; i++) {\n        try {\n\
        ::operator delete(::operator new(most));\n        } catch (const std::bad_alloc &) {\n        }\n\
        try {\n            ::operator delete(::operator new(most, std::align_val_t(64)), std::align_val_t(64));\n\
        } catch (const std::bad_alloc &) {\n        }\n        ::operator delete(::operator new(most, std::nothrow));\n\
        std::set_new_handler(room);\n        ::operator delete(::operator new(most, std::nothrow));\n\
        ::operator delete(::operator new(1000 + i));\n    }\n}\n";
    let file = workshop.write("throws.cpp", source);
    let made = std::process::Command::new("c++")
        .args(["-std=c++17", "-O1", "-w", "-o"])
        .args([&workshop.path("throws"), &file])
        .status()
        .unwrap();
    assert!(made.success());
    let program = workshop.path("throws");
    workshop
        .hakmem(&["record", "--", text(&program)])
        .ended_with(0);
    let said = workshop.hakmem(&["trace", "info", "trace.hkt", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&said.output).unwrap();
    let process = &value["processes"][0];
    let calls = &process["calls"];
    assert_eq!(calls["foreign_free"], 0, "{calls}");
    assert_eq!(calls["implied_free"], 0, "{calls}");
    assert_eq!(calls["failed"], 9 * 5, "{calls}");
    // At its start, the C++ library also allocates a block that it keeps.
    assert_eq!(process["live_blocks_end"], 1, "{process}");
}

/// jemalloc's and tcmalloc's operator new do not call malloc.
#[test]
fn a_new_of_an_allocators_own_that_fails_is_one_call() {
    let workshop = Workshop::open();
    let library = "#include <cstddef>\n#include <new>\nextern \"C\" void *__libc_malloc(std::size_t);\n\
        extern \"C\" void __libc_free(void *);\nvoid *operator new(std::size_t bytes)\n{\n    if (bytes >> 40) {\n\
        throw std::bad_alloc();\n    }\n    return __libc_malloc(bytes);\n}\n\
        void operator delete(void *block) noexcept { __libc_free(block); }\n\
        void operator delete(void *block, std::size_t) noexcept { __libc_free(block); }\n";
    let source = "#include <new>\nint main()\n{\n    volatile std::size_t most = std::size_t(1) << 62;\n\
        for (int i = 0; i < 9; i++) {\n        try {\n            ::operator delete(::operator new(most));\n\
        } catch (const std::bad_alloc &) {\n        }\n        ::operator delete(::operator new(1000 + i));\n    }\n}\n";
    let files = [
        workshop.write("own.cpp", library),
        workshop.write("throws.cpp", source),
    ];
    let made = |name: &str, arguments: &[&str]| {
        let made = std::process::Command::new("c++")
            .args(["-O1", "-w", "-o", name])
            .args(arguments)
            .current_dir(workshop.folder())
            .status();
        assert!(made.unwrap().success());
    };
    made("libown.so", &["-shared", "-fPIC", text(&files[0])]);
    made("throws", &[text(&files[1]), "./libown.so"]);
    workshop.hakmem(&["record", "--", "./throws"]).ended_with(0);
    let said = workshop.hakmem(&["trace", "info", "trace.hkt", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&said.output).unwrap();
    let process = &value["processes"][0];
    let calls = &process["calls"];
    assert_eq!(calls["foreign_free"], 0, "{calls}");
    assert_eq!(calls["failed"], 9, "{calls}");
    assert_eq!(process["live_blocks_end"], 1, "{process}");
}

/// As snmalloc does for the end of a thread: what the C library takes for that is freed when no call of malloc's is at work.
#[test]
fn what_an_allocator_takes_for_itself_is_freed_as_it_was_taken() {
    let workshop = Workshop::open();
    let library = "#include <cstdlib>\n#include <new>\nextern \"C\" void *__libc_malloc(std::size_t);\n\
        extern \"C\" void __libc_free(void *);\nstruct Keeps {\n    void *block;\n\
        Keeps() : block(std::calloc(1, 500)) {}\n    ~Keeps() { std::free(block); }\n};\n\
        void *operator new(std::size_t bytes)\n{\n    static thread_local Keeps keeps;\n    if (bytes >> 40) {\n\
        throw std::bad_alloc();\n    }\n    return keeps.block == nullptr ? nullptr : __libc_malloc(bytes);\n}\n\
        void operator delete(void *block) noexcept { __libc_free(block); }\n\
        void operator delete(void *block, std::size_t) noexcept { __libc_free(block); }\n";
    let source = "#include <new>\n#include <thread>\nstatic void work()\n{\n    volatile std::size_t most = std::size_t(1) << 62;\n\
        for (int i = 0; i < 9; i++) {\n        try {\n            ::operator delete(::operator new(most));\n\
        } catch (const std::bad_alloc &) {\n        }\n        ::operator delete(::operator new(1000 + i));\n    }\n}\n\
        int main()\n{\n    for (int i = 0; i < 3; i++) {\n        std::thread(work).join();\n    }\n    work();\n}\n";
    let files = [
        workshop.write("own.cpp", library),
        workshop.write("throws.cpp", source),
    ];
    let made = |name: &str, arguments: &[&str]| {
        let made = std::process::Command::new("c++")
            .args(["-O1", "-w", "-pthread", "-o", name])
            .args(arguments)
            .current_dir(workshop.folder())
            .status();
        assert!(made.unwrap().success());
    };
    made("libown.so", &["-shared", "-fPIC", text(&files[0])]);
    made("throws", &[text(&files[1]), "./libown.so"]);
    workshop.hakmem(&["record", "--", "./throws"]).ended_with(0);
    let said = workshop.hakmem(&["trace", "info", "trace.hkt", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&said.output).unwrap();
    let process = &value["processes"][0];
    let calls = &process["calls"];
    assert_eq!(calls["foreign_free"], 0, "{calls}");
    assert_eq!(calls["implied_free"], 0, "{calls}");
    assert_eq!(calls["failed"], 4 * 9, "{calls}");
    let sizes = process["top_sizes"].as_array().unwrap();
    assert!(sizes.iter().all(|size| size[0] != 500), "{sizes:?}");
}

/// However many other sizes came before it.
#[test]
fn a_size_that_is_frequent_late_is_counted() {
    let workshop = Workshop::open();
    let source = "#include <stdlib.h>\nint main(void)\n{\n    for (int i = 0; i < (1 << 20) + 10; i++) {\n\
        free(malloc(1000 + i));\n    }\n    for (int i = 0; i < 5000; i++) {\n        free(malloc(77));\n    }\n}\n";
    let program = workshop.compile("sizes", source, &[]);
    workshop
        .hakmem(&["record", "--", text(&program)])
        .ended_with(0);
    let said = workshop.hakmem(&["trace", "sizes", "trace.hkt", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&said.output).unwrap();
    assert_eq!(value["top_sizes"][0], serde_json::json!([77, 5000]));
}
