//! `hakmem verify`: a process cannot pretend to use an allocator.

mod support;

use serde_json::Value;
use std::path::Path;
use std::process::Command;
use support::waiting::Waiting;
use support::{ALLOCATOR, PROGRAM, Workshop, library, text};

/// Prints a line, and waits for the end of its input.
const WAITS: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments)
{
    static void *kept[50];
    for (int i = 0; i < 50; i++) {
        kept[i] = malloc(1000);
    }
    if (count > 1) {
        void *object = dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
        ((void (*)(void))dlsym(object, "work"))();
    }
    puts("ready");
    fflush(stdout);
    getchar();
    return kept[49] == NULL;
}
"#;

fn findings(workshop: &Workshop, arguments: &[&str]) -> Value {
    let all = [&["verify", "--json"], arguments].concat();
    let answer = workshop.hakmem(&all);
    serde_json::from_str(&answer.output).unwrap_or_else(|_| panic!("{}", answer.errors))
}

fn owners(findings: &Value) -> Vec<&str> {
    let owners = findings["owners"].as_array().unwrap();
    owners
        .iter()
        .map(|owner| owner["path"].as_str().unwrap())
        .collect()
}

#[test]
fn a_plain_program_uses_the_c_library() {
    let workshop = Workshop::open();
    let program = workshop.program();
    let answer = workshop.hakmem(&["verify", text(&program)]);
    answer
        .ended_with(1)
        .says("does not use hakmem")
        .says("use 'hakmem run -- …'");
    workshop
        .hakmem(&["verify", "--expect", "glibc", text(&program)])
        .ended_with(0);
}

#[test]
fn a_preloaded_program_uses_hakmem_and_a_block_of_it_is_known() {
    let workshop = Workshop::open();
    let program = workshop.program();
    let found = findings(&workshop, &["--preload", text(&program)]);
    assert_eq!(owners(&found), [text(&library())]);
    assert_eq!(found["knows_its_block"], true);
    assert_eq!(found["refusal"], Value::Null);
    let build_id = found["owners"][0]["build_id"].as_str().unwrap();
    assert!(build_id.len() >= 16);
}

#[test]
fn nothing_of_the_program_runs() {
    let workshop = Workshop::open();
    let file = workshop.path("made");
    workshop.hakmem(&["verify", "touch", text(&file)]);
    assert!(!file.exists());
}

#[test]
fn a_running_process_is_looked_into() {
    let workshop = Workshop::open();
    let program = workshop.compile("waits", WAITS, &[]);
    let plain = Waiting::start(&mut Command::new(&program));
    let found = findings(&workshop, &[&plain.pid()]);
    assert!(owners(&found)[0].ends_with("libc.so.6"));
    assert_eq!(found["known_pointers"], Value::Null);

    let ours = Waiting::start(Command::new(&program).env("LD_PRELOAD", library()));
    let found = findings(&workshop, &[&ours.pid()]);
    assert_eq!(owners(&found), [text(&library())]);
    assert!(found["known_pointers"].as_u64().unwrap() >= 50, "{found}");
    assert_eq!(found["break_pointers"], 0);
    workshop
        .hakmem(&["verify", &ours.pid()])
        .ended_with(0)
        .says("uses hakmem");
}

#[test]
fn a_copy_of_the_library_is_the_library() {
    let workshop = Workshop::open();
    let program = workshop.compile("waits", WAITS, &[]);
    let copy = workshop.path("libcopy.so");
    std::fs::copy(library(), &copy).unwrap();
    let process = Waiting::start(Command::new(&program).env("LD_PRELOAD", &copy));
    let is_known = || {
        workshop
            .hakmem(&["verify", &process.pid()])
            .ended_with(0)
            .says("uses hakmem")
            .says("which is         hakmem ");
    };
    is_known();
    std::fs::remove_file(copy).unwrap();
    is_known();
}

#[test]
fn an_object_with_a_scope_of_its_own_is_named() {
    let workshop = Workshop::open();
    let source = "#include <stdlib.h>\nvoid *kept; void work(void) { kept = malloc(10); }\n";
    let object = workshop.compile("libdeep.so", source, &["-shared", "-fPIC", "-Wl,-z,now"]);
    let program = workshop.compile("waits", WAITS, &[]);
    // hakmem itself would redirect such objects to it.
    let mine = workshop.allocator("libmine.so", &[]);
    let process = Waiting::start(Command::new(&program).arg(&object).env("LD_PRELOAD", &mine));
    let found = findings(&workshop, &[&process.pid()]);
    let elsewhere = found["bound_elsewhere"][0].as_str().unwrap();
    assert!(elsewhere.contains("libdeep.so: malloc goes to") && elsewhere.contains("libc.so.6"));
    workshop.hakmem(&["verify", &process.pid()]).ended_with(1);
}

#[test]
fn a_program_with_an_allocator_inside_is_found_out() {
    let workshop = Workshop::open();
    let both = format!("{ALLOCATOR}\n{PROGRAM}");
    let visible = workshop.compile("visible", &both, &["-DMARK=mi_malloc"]);
    let found = findings(&workshop, &["--preload", text(&visible)]);
    assert!(owners(&found).contains(&text(&visible)));
    assert!(
        found["refusal"]
            .as_str()
            .unwrap()
            .contains("that is mimalloc"),
        "{found}"
    );

    let hidden = workshop.compile("hidden", &both, &["-fvisibility=hidden"]);
    let answer = workshop.hakmem(&["verify", "--preload", text(&hidden)]);
    answer.ended_with(1).says("has its own malloc");

    // With other names, as in Rust programs: malloc itself is hakmem's, which proves nothing.
    let renamed = format!("void *_rjem_malloc(unsigned long bytes) {{ return 0; }}\n{PROGRAM}");
    let renamed = workshop.compile("renamed", &renamed, &[]);
    let answer = workshop.hakmem(&["verify", "--preload", text(&renamed)]);
    answer.ended_with(1).says("has jemalloc inside");

    // Also stripped of all names.
    let texts = "const char *const texts[] = {\"<jemalloc>: x\", \"background_thread\", \"dirty_decay_ms\"};\n\
                 #include <stdio.h>\nint main(int count, char **a) { puts(texts[count]); return 0; }\n";
    let stripped = workshop.compile("stripped", texts, &["-s"]);
    let answer = workshop.hakmem(&["verify", "--preload", text(&stripped)]);
    answer.ended_with(1).says("has jemalloc inside");
}

#[test]
fn a_program_that_is_linked_with_an_allocator_is_named_as_such() {
    let workshop = Workshop::open();
    let library = workshop.allocator("libother.so", &["-DMARK=mi_malloc"]);
    let here = format!("-Wl,--no-as-needed,-rpath,{}", text(workshop.folder()));
    let program = workshop.compile("linked", PROGRAM, &[&here, text(&library)]);
    let found = findings(&workshop, &[text(&program)]);
    assert_eq!(owners(&found), [text(&library)]);
    assert_eq!(found["owners"][0]["is"][0], "mimalloc");
    // A preloaded hakmem replaces it.
    workshop
        .hakmem(&["verify", "--preload", text(&program)])
        .ended_with(0);
}

#[test]
fn functions_that_fall_through_are_named() {
    let workshop = Workshop::open();
    workshop.allocator("libmine.so", &[]);
    let source = "#include <malloc.h>\n#include <stdlib.h>\n\
                  int main(void) { void *p = malloc(1); malloc_trim(0); return p == 0; }\n";
    let program = workshop.compile("trims", source, &[]);
    let arguments = ["--expect", "mine=libmine.so", "--preload", text(&program)];
    let found = findings(&workshop, &arguments);
    assert_eq!(found["refusal"], Value::Null);
    let path = found["fallen_through"]["malloc_trim"].as_str().unwrap();
    assert!(Path::new(path).ends_with("libc.so.6"));
    workshop
        .hakmem(&["verify", "--preload", text(&program)])
        .ended_with(0);
    let found = findings(&workshop, &["--preload", text(&program)]);
    assert_eq!(found["fallen_through"], serde_json::json!({}));
}

#[test]
fn a_library_under_another_allocators_name_is_refused() {
    let workshop = Workshop::open();
    let library = workshop.allocator("libfake.so", &["-DMARK=mi_malloc"]);
    let line = format!("{} is called jemalloc, but it is mimalloc", "libfake.so");
    workshop
        .hakmem(&["run", "-a", "jemalloc=libfake.so", "--", "true"])
        .is_one_line(2, &line);
    let line = "libfake.so is called hakmem, but it is mimalloc";
    workshop
        .hakmem(&["run", "-a", "hakmem=libfake.so", "--", "true"])
        .is_one_line(2, line);
    assert!(library.exists());
}

#[test]
fn what_is_no_allocator_is_refused() {
    let workshop = Workshop::open();
    workshop.write("libtext.so", "not a library");
    let line = "libtext.so is not a shared library: not an ELF file";
    workshop
        .hakmem(&["run", "-a", "x=libtext.so", "--", "true"])
        .is_one_line(2, line);
    workshop.compile("libempty.so", "int nothing;\n", &["-shared", "-fPIC"]);
    let said = workshop.hakmem(&["run", "-a", "x=libempty.so", "--", "true"]);
    said.ended_with(2)
        .says("libempty.so cannot replace malloc: it does not define malloc, free");
    let line = "gone.so: No such file or directory (os error 2)";
    workshop
        .hakmem(&["run", "-a", "x=gone.so", "--", "true"])
        .is_one_line(2, line);
}

#[test]
fn a_process_that_is_not_there_is_said_in_one_line() {
    let workshop = Workshop::open();
    let line = "there is no process 2147483647, or it has just ended";
    workshop
        .hakmem(&["verify", "2147483647"])
        .is_one_line(2, line);
}

/// As 'pidof' gives them where there are several.
#[test]
fn more_than_the_number_of_a_process_is_said_in_one_line() {
    let workshop = Workshop::open();
    for more in ["--json", "1"] {
        workshop.hakmem(&["verify", "1", more]).is_one_line(
            2,
            "verify takes one process ID, and options before it: 'pidof -s NAME' prints one ID",
        );
    }
}

#[test]
fn a_static_program_says_what_it_has_inside() {
    let workshop = Workshop::open();
    let says = |program: &Path, code: i32, line: &str| {
        let answer = workshop.hakmem(&["verify", text(program)]);
        answer.ended_with(code).says(line);
    };
    let advice = "link libhakmem.a into it instead, or in Rust use the crate hakmem-allocator";
    let plain = workshop.compile("plain", PROGRAM, &["-static", "-s"]);
    says(
        &plain,
        1,
        "it is statically linked, with the C library (glibc) inside",
    );
    says(&plain, 1, advice);
    workshop
        .hakmem(&["verify", "--expect", "glibc", text(&plain)])
        .ended_with(0)
        .says("uses glibc, which is linked into it");

    let marked =
        format!("void *je_malloc(unsigned long bytes) {{ return 0; }}\n{ALLOCATOR}\n{PROGRAM}");
    let other = workshop.compile("other", &marked, &["-static"]);
    says(&other, 1, "it is statically linked, with jemalloc inside");
    says(&other, 1, "which is         jemalloc");

    let own = workshop.compile(
        "own",
        &format!("{ALLOCATOR}\n{PROGRAM}"),
        &["-static", "-s"],
    );
    says(&own, 1, "with an unknown allocator inside");
}

#[test]
fn hakmem_is_known_where_it_is_linked_in() {
    let workshop = Workshop::open();
    let archive = library().parent().unwrap().join("libhakmem.a");
    for how in [
        &[][..],
        &["-static"],
        &["-static", "-s"],
        &["-static-pie", "-fPIE"],
    ] {
        let program = workshop.compile("ours", PROGRAM, &[how, &[text(&archive)]].concat());
        workshop
            .hakmem(&["verify", text(&program)])
            .ended_with(0)
            .says("uses hakmem, which is linked into it")
            .says("which is         hakmem 1.0.0\n");
    }
    let line = "is statically linked with hakmem inside, so nothing can be preloaded; start it without this";
    let program = workshop.path("ours");
    workshop
        .hakmem(&["run", "--", text(&program)])
        .is_one_line(1, &format!("{} {line}", text(&program)));
}

#[test]
fn a_static_process_is_looked_into() {
    let workshop = Workshop::open();
    let source = "#include <stdio.h>\n#include <stdlib.h>\nvoid *kept[50];\n\
                  int main(void) { for (int i = 0; i < 50; i++) kept[i] = malloc(99);\n\
                  puts(\"ready\"); fflush(stdout); getchar(); return 0; }\n";
    let plain = workshop.compile("plain", source, &["-static"]);
    let process = Waiting::start(&mut Command::new(&plain));
    workshop
        .hakmem(&["verify", &process.pid()])
        .ended_with(1)
        .says("it is statically linked, with the C library (glibc) inside");

    let archive = library().parent().unwrap().join("libhakmem.a");
    let ours = workshop.compile("ours", source, &["-static", "-s", text(&archive)]);
    let process = Waiting::start(&mut Command::new(&ours));
    let found = findings(&workshop, &[&process.pid()]);
    assert_eq!(found["refusal"], Value::Null);
    assert!(found["known_pointers"].as_u64().unwrap() >= 50, "{found}");
}

#[test]
fn a_library_is_no_program() {
    let workshop = Workshop::open();
    let line = format!("{} is a shared library, not a program", text(&library()));
    workshop
        .hakmem(&["verify", text(&library())])
        .is_one_line(2, &line);
}

#[test]
fn this_program_knows_marks_and_is_none_of_them() {
    let workshop = Workshop::open();
    workshop
        .hakmem(&["verify", "--preload", env!("CARGO_BIN_EXE_hakmem")])
        .ended_with(0);
}

/// A variable that is initialised with malloc, and a function that stores another one in it.
const TAKEN: &str = r#"
#include <stdlib.h>
static void *(*volatile taken)(size_t) = malloc;
void take(void *(*other)(size_t))
{
    free(taken(100));
    taken = other;
}
"#;

const TAKES: &str = r#"
#include <stdio.h>
#include <unistd.h>
void take(void *(*other)(size_t));
int main(void)
{
    take((void *(*)(size_t))puts);
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

#[test]
fn a_variable_may_point_at_another_function_than_malloc() {
    let workshop = Workshop::open();
    let taken = workshop.compile("libtaken.so", TAKEN, &["-shared", "-fPIC"]);
    let folder = format!("-Wl,-rpath,{}", text(workshop.folder()));
    let program = workshop.compile("takes", TAKES, &[text(&taken), &folder]);
    let mut process = Waiting::start(Command::new(program).env("LD_PRELOAD", library()));
    workshop.hakmem(&["verify", &process.pid()]).ended_with(0);
    process.end();
}
