//! A function's name is right, or is left out with a reason: for files that were replaced, removed or unloaded, or that differ
//! in another mount namespace.

mod support;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use support::waiting::Waiting;
use support::{Answer, Workshop, dump, library, text};

/// Keeps one block of 66,666 bytes, allocated by function NAME, and waits.
const KEEPER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef SHIFT
int shift(int x) { return x * 3 + 1; }
int shift_more(int x) { return shift(x) + shift(x + 1); }
#endif
__attribute__((noinline)) void NAME(void)
{
    void *volatile block = malloc(66666);
    memset(block, 1, 66666);
    block = malloc((size_t)1 << 50); // is refused
}
int main(void)
{
    NAME();
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

/// Two builds of one program, with code at different addresses.
fn two_builds(workshop: &Workshop) {
    workshop.compile("old", KEEPER, &["-g", "-DNAME=old_function"]);
    workshop.compile("new", KEEPER, &["-g", "-DNAME=new_function", "-DSHIFT"]);
}

fn sampled(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library());
    command.env("HAKMEM_SAMPLE_BYTES", "1");
    command
}

#[test]
fn a_replaced_or_removed_program_has_its_own_names() {
    let workshop = Workshop::open();
    two_builds(&workshop);
    let program = workshop.path("program");
    std::fs::rename(workshop.path("old"), &program).unwrap();
    let process = Waiting::start(&mut sampled(&program));
    std::fs::rename(workshop.path("new"), &program).unwrap();
    for _ in 0..2 {
        for command in ["profile", "leaks", "why", "failures"] {
            let answer = workshop.hakmem(&[command, &process.pid()]);
            answer.ended_with(0).says("old_function (old.c");
            assert!(!answer.output.contains("new_function"));
        }
        let _ = std::fs::remove_file(&program); // then once more without a file
    }
}

#[test]
fn a_replaced_file_gives_no_names_to_a_core_dump() {
    let workshop = Workshop::open();
    two_builds(&workshop);
    let program = workshop.path("program");
    std::fs::rename(workshop.path("old"), &program).unwrap();
    let process = Waiting::start(&mut sampled(&program));
    let core = workshop.path("core");
    dump::dump(&process.pid(), &core, |_, _| {});
    drop(process);
    let leaks = ["leaks", "--core", text(&core)];
    workshop.hakmem(&leaks).ended_with(0).says("old_function");
    std::fs::rename(workshop.path("new"), &program).unwrap();
    for command in [
        &leaks[..],
        &["failures", "--core", text(&core)],
        &["core", text(&core)],
    ] {
        let answer = workshop.hakmem(command);
        answer.ended_with(0).says("program+0x").says("is there now");
        assert!(!answer.output.contains("_function"), "{}", answer.output);
    }
}

/// Users other than root need user namespaces for it, which not every machine allows.
#[test]
fn a_file_of_another_mount_namespace_is_not_mixed_up() {
    let workshop = Workshop::open();
    two_builds(&workshop);
    let [inside, outside] = ["inside", "app"].map(|name| {
        let folder = workshop.path(name);
        std::fs::create_dir(&folder).unwrap();
        folder.join("program")
    });
    std::fs::rename(workshop.path("old"), inside).unwrap();
    std::fs::rename(workshop.path("new"), &outside).unwrap();
    let unshare = |command: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["-rm", "sh", "-c", command]);
        unshare.current_dir(workshop.folder());
        unshare
    };
    let bind = "mount --bind inside app";
    let is_possible = unshare(bind).stderr(Stdio::null()).status();
    if !is_possible.is_ok_and(|status| status.success()) {
        eprintln!("left out: no mount namespaces here");
        return;
    }
    let library = library();
    let run = format!(
        "{bind} && exec env LD_PRELOAD={} HAKMEM_SAMPLE_BYTES=1 {}",
        text(&library),
        text(&outside)
    );
    let process = Waiting::start(&mut unshare(&run));
    for command in ["profile", "leaks", "why", "failures"] {
        let answer = workshop.hakmem(&[command, &process.pid()]);
        answer.ended_with(0).says("old_function");
        assert!(!answer.output.contains("new_function"));
    }
    // Its end, which is visible from here, and its trace, which needs this user's namespace.
    let line = format!("{bind} && exec {} </dev/null", text(&outside));
    let ended = workshop.hakmem(&["leaks", "--exit", "--", "unshare", "-rm", "sh", "-c", &line]);
    ended.ended_with(0).says("old_function (old.c:");
    assert!(!ended.output.contains("new_function"), "{}", ended.output);
    let mut record = workshop.command(&["record", "--stacks", "-o", "trace.hkt", "--"]);
    record.args(["unshare", "-m", "sh", "-c", &line]);
    if support::answer(record).code == Some(0) {
        let sites = workshop.hakmem(&["trace", "top-sites", "--process", "all", "trace.hkt"]);
        sites.ended_with(0).says("old_function (old.c:");
        assert!(!sites.output.contains("new_function"), "{}", sites.output);
    }
}

/// Loads each given library, makes it allocate five blocks, and unloads it: the next one gets the same address.
const HOST: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **arguments)
{
    void *place = NULL;
    for (int i = 1; i < count; i++) {
        void *library = dlopen(arguments[i], RTLD_NOW);
        void (*run)(void) = (void (*)(void))dlsym(library, "run");
        if (place != NULL && place != (void *)run) {
            puts("elsewhere");
        }
        place = (void *)run;
        run();
        dlclose(library);
    }
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

fn plugin(workshop: &Workshop, name: &str, function: &str, bytes: &str, more: &[&str]) {
    let source = r#"
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void FUNCTION(void)
{
    void *volatile block = malloc(BYTES);
    memset(block, 1, BYTES);
}
void run(void)
{
    for (volatile int i = 0; i < 5; i++) {
        FUNCTION();
    }
}
"#;
    let defined = [format!("-DFUNCTION={function}"), format!("-DBYTES={bytes}")];
    let defined: Vec<&str> = defined.iter().map(String::as_str).collect();
    let shared = ["-g", "-shared", "-fPIC"];
    workshop.compile(name, source, &[&shared[..], &defined, more].concat());
}

/// With and without a build id, with one path and with two.
#[test]
fn what_was_unloaded_keeps_its_names_and_its_blocks() {
    for id in ["-Wl,--build-id=sha1", "-Wl,--build-id=none"] {
        let workshop = Workshop::open();
        let host = workshop.compile("host", HOST, &["-ldl"]);
        plugin(&workshop, "alpha.so", "alpha_makes", "3000", &[id]);
        plugin(&workshop, "beta.so", "beta_makes", "5000", &[id]);
        let mut command = sampled(&host);
        command.current_dir(workshop.folder());
        command.args(["./alpha.so", "./beta.so", "./alpha.so"]);
        let process = Waiting::start(&mut command);
        let core = workshop.path("core");
        dump::dump(&process.pid(), &core, |_, _| {});
        for of in [
            &["leaks", &process.pid()][..],
            &["leaks", "--core", text(&core)],
        ] {
            let answer = workshop.hakmem(of);
            answer.ended_with(0);
            let line = |name: &str| {
                let mut lines = answer.output.lines();
                let found = lines.find(|line| line.contains(name));
                found
                    .unwrap_or_else(|| panic!("no {name} in {}", answer.output))
                    .to_string()
            };
            // Ten blocks of 3,000 bytes and five of 5,000.
            assert!(line("alpha_makes (alpha.so.c:").contains("29.3 KiB"));
            assert!(line("beta_makes (beta.so.c:").contains("24.4 KiB"));
        }
    }
}

#[test]
fn another_build_of_an_unloaded_library_gives_no_names() {
    let workshop = Workshop::open();
    let host = workshop.compile("host", HOST, &["-ldl"]);
    plugin(&workshop, "alpha.so", "alpha_makes", "3000", &[]);
    let mut command = sampled(&host);
    let process = Waiting::start(command.arg(workshop.path("alpha.so")));
    std::fs::remove_file(workshop.path("alpha.so")).unwrap();
    let leaks = ["leaks", &process.pid()];
    workshop
        .hakmem(&leaks)
        .says("alpha.so+0x")
        .says("alpha.so: it is gone");
    plugin(&workshop, "alpha.so", "others", "3000", &[]);
    let answer = workshop.hakmem(&leaks);
    answer.says("alpha.so+0x").says("is there now");
    assert!(!answer.output.contains("others"), "{}", answer.output);
}

fn top_sites(workshop: &Workshop) -> String {
    let answer = workshop.hakmem(&["trace", "top-sites", "trace.hkt"]);
    answer.ended_with(0);
    answer.output
}

/// The block's size, and the function that allocated it.
fn is_site(sites: &str, size: &str, function: &str) -> bool {
    let mut parts = sites.split("\n\n");
    parts.any(|part| part.starts_with(size) && part.contains(&format!("    {function} (")))
}

#[test]
fn a_trace_names_what_was_unloaded() {
    let workshop = Workshop::open();
    let host = workshop.compile("host", HOST, &["-ldl"]);
    plugin(&workshop, "alpha.so", "alpha_makes", "3000", &[]);
    plugin(
        &workshop,
        "beta.so",
        "beta_makes",
        "5000",
        &["-Wl,--build-id=none"],
    );
    let files = ["./alpha.so", "./beta.so", "./alpha.so"];
    let record = ["record", "--stacks", "-o", "trace.hkt", "--", text(&host)];
    workshop
        .hakmem(&[&record[..], &files].concat())
        .ended_with(0);
    let sites = top_sites(&workshop);
    assert!(
        is_site(&sites, "29.3 KiB in 10 blocks", "alpha_makes"),
        "{sites}"
    );
    assert!(
        is_site(&sites, "24.4 KiB in 5 blocks", "beta_makes"),
        "{sites}"
    );
    // A file that was changed afterwards gives no names.
    plugin(&workshop, "alpha.so", "others", "3000", &[]);
    let answer = workshop.hakmem(&["trace", "top-sites", "trace.hkt"]);
    answer
        .says("alpha.so+0x")
        .says("is there now")
        .says("beta_makes");
    assert!(!answer.output.contains("others"), "{}", answer.output);
}

/// Removes its own file.
#[test]
fn a_trace_keeps_names_of_what_is_gone_when_it_ends() {
    let workshop = Workshop::open();
    let source = KEEPER.replace(
        "int main(void)\n{",
        "int main(int count, char **names)\n{\n    unlink(names[0]);",
    );
    let program = workshop.compile("program", &source, &["-g", "-DNAME=old_function"]);
    let record = [
        "record",
        "--stacks",
        "-o",
        "trace.hkt",
        "--",
        text(&program),
    ];
    workshop.hakmem(&record).ended_with(0);
    assert!(!program.exists());
    let sites = top_sites(&workshop);
    assert!(is_site(&sites, "65.1 KiB", "old_function"), "{sites}");
    let program = workshop.compile("program", &source, &["-g", "-DNAME=old_function"]);
    let leaks = workshop.hakmem(&["leaks", "--exit", "--", text(&program)]);
    leaks.ended_with(0).says("old_function (program.c:");
    assert!(!program.exists());
}

/// Unusual names of files, with bytes that a screen must not get raw.
const ODD: [&[u8]; 7] = [
    b"two words",
    b"new\nline",
    b"esc\x1b[31mred",
    b"bad\xff\xfebyte",
    b"quote\"back\\slash",
    b"x (deleted)",
    b"not\\012new", // as the kernel writes a newline
];

fn is_clean(answer: &Answer) {
    let is_raw = |c: char| c.is_control() && c != '\n';
    assert!(!answer.output.contains(is_raw), "{:?}", answer.output);
    assert!(!answer.errors.contains(is_raw), "{:?}", answer.errors);
}

#[test]
fn odd_names_are_as_good_as_others() {
    let workshop = Workshop::open();
    let plain = workshop.compile("plain", KEEPER, &["-g", "-DNAME=odd_site"]);
    for (number, name) in ODD.iter().enumerate() {
        let folder = workshop.path(&number.to_string());
        std::fs::create_dir(&folder).unwrap();
        let trace = format!("{number}.hkt");
        let program = folder.join(OsStr::from_bytes(name));
        std::fs::copy(&plain, &program).unwrap();
        let run = |arguments: &[&str]| {
            let mut command = workshop.command(arguments);
            command.arg("--").arg(&program).stdin(Stdio::null());
            let answer = support::answer(command);
            answer.ended_with(0);
            is_clean(&answer);
            answer
        };
        run(&["record", "--stacks", "-o", &trace]);
        let sites = workshop.hakmem(&["trace", "top-sites", &trace]);
        is_clean(sites.ended_with(0).says("odd_site (plain.c:"));
        let info = workshop.hakmem(&["trace", "info", &trace]);
        is_clean(info.ended_with(0));
        assert!(!info.output.contains("no calls"), "{}", info.output);
        run(&["leaks", "--exit"]).says("odd_site (plain.c:");
        run(&["compare", "-a", "glibc,hakmem", "--runs", "1"]);
        let process = Waiting::start(&mut sampled(&program));
        let answer = workshop.hakmem(&["profile", &process.pid(), "--live"]);
        is_clean(answer.ended_with(0).says("odd_site (plain.c:"));
        is_clean(workshop.hakmem(&["verify", &process.pid()]).ended_with(0));
        let exported = workshop.hakmem(&["export", "--prometheus", &process.pid()]);
        is_clean(exported.ended_with(0));
        // The writer of dumps handles only text here.
        if std::str::from_utf8(name).is_ok() {
            let core = workshop.path(&format!("{number}.core"));
            dump::dump(&process.pid(), &core, |_, _| {});
            let dumped = workshop.hakmem(&["leaks", "--core", text(&core)]);
            is_clean(dumped.ended_with(0).says("odd_site (plain.c:"));
        }
        let json = workshop.hakmem(&["leaks", &process.pid(), "--json"]);
        let _: serde_json::Value = serde_json::from_str(&json.output).unwrap();
    }
}

/// The path is longer than the one that a program reports to the recorder.
#[test]
fn a_program_with_a_long_path_is_recorded_once() {
    let workshop = Workshop::open();
    let folder = workshop.path(&"long".repeat(60));
    std::fs::create_dir(&folder).unwrap();
    let program = folder.join("asks");
    std::fs::copy(workshop.program(), &program).unwrap();
    workshop
        .hakmem(&["record", "--", text(&program)])
        .ended_with(0);
    let info = workshop.hakmem(&["trace", "info", "trace.hkt"]);
    info.ended_with(0).says("events");
    assert!(!info.output.contains("no calls"), "{}", info.output);
}

/// As with a glibc before 2.35: the library finds no `_dl_find_object`.
#[test]
fn a_c_library_that_does_not_tell_objects_gives_names_of_what_is_mapped() {
    let workshop = Workshop::open();
    let old = workshop.path("libhakmem.so");
    let mut bytes = std::fs::read(library()).unwrap();
    let (name, none) = (b"_dl_find_object\0", b"_dl_find_nobject"[..15].to_vec());
    let places: Vec<usize> = (0..bytes.len() - name.len())
        .filter(|at| bytes[*at..].starts_with(name))
        .collect();
    assert!(!places.is_empty(), "the library does not ask for it");
    places
        .iter()
        .for_each(|at| bytes[*at..at + none.len()].copy_from_slice(&none));
    std::fs::write(&old, bytes).unwrap();
    let source = KEEPER.replace("puts(", "free(realloc(malloc(7), 70)); puts(");
    let program = workshop.compile("plain", &source, &["-g", "-DNAME=plain_site"]);
    let mut command = sampled(&program);
    let process = Waiting::start(command.env("LD_PRELOAD", &old));
    for command in ["leaks", "profile"] {
        workshop
            .hakmem(&[command, &process.pid()])
            .ended_with(0)
            .says("plain_site (plain.c:")
            .says("names are those of the libraries mapped last");
    }
    drop(process);
    let process = Waiting::start(&mut sampled(&program));
    let told = workshop.hakmem(&["leaks", &process.pid()]);
    assert!(!told.says("plain_site").output.contains("mapped last"));
}

/// Debugging information names file-local functions without their scopes.
#[test]
fn functions_of_one_file_have_their_whole_names() {
    let workshop = Workshop::open();
    let source = workshop.write(
        "whole.cc",
        r#"
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
namespace { struct Maker { __attribute__((noinline)) void operator()(int bytes) const { *(volatile char *)malloc(bytes) = 1; } }; }
__attribute__((noinline)) void operator""_kb(unsigned long long n) { *(volatile char *)malloc(n * 1000) = 1; }
int main() { Maker()(66666); 70_kb; puts("ready"); fflush(stdout); char end; return read(0, &end, 1) != 0; }
"#,
    );
    let program = workshop.path("whole");
    let made = Command::new("c++")
        .args(["-g", "-O1", "-fno-builtin", "-w", "-o"])
        .args([&program, &source])
        .status();
    assert!(made.unwrap().success());
    let process = Waiting::start(&mut sampled(&program));
    workshop
        .hakmem(&["leaks", &process.pid()])
        .ended_with(0)
        .says("(anonymous namespace)::Maker::operator()(int) const (whole.cc:5)")
        .says("operator\"\" _kb(unsigned long long) (whole.cc:6)");
}

#[test]
fn a_build_id_of_zeros_is_none() {
    let workshop = Workshop::open();
    let id = "-Wl,--build-id=0x0000000000000000";
    workshop.compile("old", KEEPER, &["-g", "-DNAME=old_function", id]);
    workshop.compile("new", KEEPER, &["-g", "-DNAME=new_function", "-DSHIFT", id]);
    let program = workshop.path("program");
    std::fs::rename(workshop.path("old"), &program).unwrap();
    let process = Waiting::start(&mut sampled(&program));
    std::fs::rename(workshop.path("new"), &program).unwrap();
    let answer = workshop.hakmem(&["leaks", &process.pid()]);
    answer.ended_with(0).says("old_function (old.c:");
    assert!(!answer.output.contains("new_function"));
}
