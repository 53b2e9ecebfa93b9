//! A program keeps to its memory budget, or the check fails and says by how much it does not.

mod support;

use std::fs;
use std::process::{Command, Stdio};
use support::{Answer, Workshop, text};

/// Allocates so many blocks of 1,000 bytes in one function and one large block in another, and prints something.
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void *parse_line(void) { return memset(malloc(1000), 1, 1000); }
__attribute__((noinline)) static void *load(void) { return memset(malloc(3000000), 1, 3000000); }
int main(int count, char **words)
{
    for (int i = atoi(words[1]); i > 0; i--) {
        free(parse_line());
    }
    void *volatile page = load();
    free(page);
    fprintf(stdout, "the program's own output\n");
    return count > 2;
}
"#;

fn shop(budget: &str) -> Workshop {
    let workshop = Workshop::open();
    workshop.compile("program", PROGRAM, &["-g"]);
    workshop.write("budget.toml", budget);
    workshop
}

fn check(workshop: &Workshop, more: &[&str], words: &[&str]) -> Answer {
    let program = workshop.path("program");
    let run = [
        &["check", "--budget", "budget.toml"],
        more,
        &["--", text(&program)],
        words,
    ];
    workshop.hakmem(&run.concat())
}

#[test]
fn a_program_that_keeps_to_it_passes() {
    let workshop = shop(
        "[total]\nallocations = '<= 200'\npeak_live = '<= 3MiB'\npeak_resident = '< 64MiB'\n\
         [site.'parse_*']\nallocations = '<= 100'\nallocated = '<= 100000'\n\
         [site.'load']\nlive_at_end = '<= 0'\n",
    );
    let answer = check(&workshop, &["--runs", "2"], &["100"]);
    answer
        .ended_with(0)
        .says("all 6 limits are kept")
        .says("allocated of parse_*");
    assert!(answer.errors.contains("the program's own output"));
    assert!(!answer.output.contains("own output"), "{}", answer.output);
}

#[test]
fn one_that_does_not_fails_with_a_table_and_a_report() {
    let workshop = shop("[total]\npeak_live = '<= 2MiB'\nallocated = '<= 1GiB'\n");
    let answer = check(&workshop, &["--markdown", "--junit", "memory.xml"], &["1"]);
    answer.ended_with(1).says("1 of 2 limits are not kept");
    let row = |name: &str| {
        let mut lines = answer.output.lines();
        lines
            .find(|line| line.starts_with(&format!("| {name} |")))
            .unwrap()
    };
    assert!(row("peak_live").contains("| OVER |"), "{}", answer.output);
    assert!(row("allocated").contains("| kept |"), "{}", answer.output);
    let xml = fs::read_to_string(workshop.path("memory.xml")).unwrap();
    assert!(xml.contains("tests=\"2\" failures=\"1\""), "{xml}");
    assert!(
        xml.contains("<failure message=\"peak_live: 2.9 MiB is not &lt;= 2MiB\"/>"),
        "{xml}"
    );
}

#[test]
fn a_baseline_is_what_the_same_program_took_before() {
    let workshop =
        shop("[total]\nallocations = '< +2 %'\n[site.parse_line]\nallocated = '<= +10KiB'\n");
    check(&workshop, &[], &["100"])
        .ended_with(2)
        .says("this limit needs a baseline");
    let saved = check(&workshop, &["--save", "baseline.json"], &["100"]);
    saved.ended_with(0).says("nothing to compare with yet");
    let against = ["--baseline", "baseline.json"];
    for same in [["100"], ["101"]] {
        check(&workshop, &against, &same)
            .ended_with(0)
            .says("all 2 limits are kept");
    }
    let more = check(&workshop, &against, &["120"]);
    more.ended_with(1)
        .says("+20.0 %")
        .says("2 of 2 limits are not kept");
    // A trace gives the same result as the program.
    let program = workshop.path("program");
    let record = ["record", "--stacks", "--", text(&program), "120"];
    workshop.hakmem(&record).ended_with(0);
    let trace = [
        &["check", "--budget", "budget.toml", "--trace", "trace.hkt"],
        &against[..],
    ];
    let again = workshop.hakmem(&trace.concat());
    again.ended_with(1).says("2 of 2 limits are not kept");
}

#[test]
fn what_cannot_be_compared_is_said_in_a_line() {
    let workshop = shop("[total]\npeak_resident = '<= 1GiB'\n");
    let failing = check(&workshop, &[], &["1", "and ends with 1"]);
    failing
        .ended_with(1)
        .says("the program ended with 1: nothing is compared");
    let program = workshop.path("program");
    workshop
        .hakmem(&["record", "--", text(&program), "1"])
        .ended_with(0);
    let trace = ["check", "--budget", "budget.toml", "--trace", "trace.hkt"];
    let text = "a trace does not have peak_resident: check the program itself";
    workshop.hakmem(&trace).is_one_line(2, text);
    workshop.write("budget.toml", "[site.f]\nallocated = '< 1'\n");
    workshop
        .hakmem(&trace)
        .ended_with(1)
        .says("has no call stacks");
    workshop.write("budget.toml", "[total]\npeak = '< 1'\n");
    workshop
        .hakmem(&trace)
        .ended_with(2)
        .says("budget.toml: there is no measure 'peak'");
    workshop.write("budget.toml", "[total]\nallocated = '< +1 %'\n");
    workshop.write("baseline.json", "{}");
    let against = [&trace[..], &["--baseline", "baseline.json"]].concat();
    workshop.hakmem(&against).is_one_line(
        2,
        "baseline.json is not a baseline of 'hakmem check --save'",
    );
}

#[test]
fn one_that_is_killed_leaves_nothing_behind() {
    let workshop = Workshop::open();
    workshop.write("budget.toml", "[total]\nallocations = '<= 200'\n");
    let script = "#!/bin/sh\nls / > /dev/null\necho $$ > pid\nmv pid waits\nwhile :; do :; done\n";
    let script = workshop.script("program", script);
    let folder = workshop.path("temporary");
    fs::create_dir(&folder).unwrap();
    let words = ["check", "--budget", "budget.toml", "--", text(&script)];
    let mut command = workshop.command(&words);
    command.env("TMPDIR", &folder);
    let mut check = command.spawn().unwrap();
    while !workshop.path("waits").exists() {
        std::thread::yield_now();
    }
    check.kill().unwrap();
    check.wait().unwrap();
    let left = fs::read_dir(&folder).unwrap().count();
    let pid = fs::read_to_string(workshop.path("waits")).unwrap();
    let mut end = Command::new("kill");
    assert!(end.args(["-KILL", pid.trim()]).status().unwrap().success());
    assert_eq!(left, 0);
}

/// A child that only frees its parent's blocks has no call stacks, and neither has a program without allocations.
#[test]
fn who_asks_for_no_memory_is_measured_too() {
    let workshop = shop(
        "[total]\nallocations = '<= 10'\npeak_live = '<= 640'\n\
         [site.main]\nallocated = '<= 640'\nlive_at_end = '<= 640'\n",
    );
    let source = r#"
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **words)
{
    void *blocks[10];
    for (int i = 0; i < 10 && count > 1; i++) {
        blocks[i] = malloc(64);
    }
    if (count > 1 && fork() == 0) {
        for (int i = 0; i < 10; i++) {
            free(blocks[i]);
        }
        _exit(0);
    }
    wait(NULL);
    return 0;
}
"#;
    workshop.compile("program", source, &["-g", "-O0"]);
    for words in [&["and forks"][..], &[]] {
        let answer = check(&workshop, &[], words);
        answer.ended_with(0).says("all 4 limits are kept");
    }
}

/// The allocations of a child into which nothing can be preloaded are unknown, so no limit counts as kept.
#[test]
fn a_program_with_a_child_that_cannot_be_recorded_is_not_compared() {
    let workshop = shop("[total]\nallocations = '<= 1000'\n");
    let child = workshop.compile("child", PROGRAM, &["-static"]);
    let source = format!(
        "#include <stdlib.h>\nint main(void)\n{{\n    return system(\"{} 5000 >&2\");\n}}\n",
        text(&child)
    );
    workshop.compile("program", &source, &[]);
    let answer = check(&workshop, &[], &[]);
    let why = format!(
        "{}, is statically linked, so nothing can be preloaded: nothing is compared",
        text(&child)
    );
    answer.ended_with(1).says(&why);
    assert_eq!(answer.output, "");
    // A trace is checked as it is, with a warning.
    let program = workshop.path("program");
    workshop
        .hakmem(&["record", "--", text(&program)])
        .ended_with(0);
    let trace = ["check", "--budget", "budget.toml", "--trace", "trace.hkt"];
    workshop
        .hakmem(&trace)
        .ended_with(0)
        .says("hakmem: warning: trace.hkt lacks process ")
        .says("is statically linked");
    // Resident memory can also be measured for this program.
    workshop.write("budget.toml", "[total]\npeak_resident = '<= 1GiB'\n");
    check(&workshop, &["--runs", "1"], &[]).ended_with(0);
}

/// If a function was renamed, or a program has no names, the check must not pass silently.
#[test]
fn a_call_site_that_is_not_found_is_named() {
    let workshop = shop("[site.'parse_*']\nallocated = '<= 1'\n[site.gone]\nallocated = '<= 1'\n");
    let warning = |site: &str| format!("hakmem: warning: nothing was allocated in {site}: ");
    let named = check(&workshop, &[], &["100"]);
    named
        .ended_with(1)
        .says("1 of 2 limits are not kept")
        .says(&warning("gone"));
    assert!(!named.errors.contains("in parse_"), "{}", named.errors);
    workshop.compile("program", PROGRAM, &["-s"]);
    let stripped = check(&workshop, &[], &["100"]);
    stripped.says(&warning("parse_*")).says(&warning("gone"));
}

/// Keeps everything that it reads.
const READER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    size_t held = 0;
    char *text = malloc(1 << 16);
    for (size_t count; (count = fread(text + held, 1, 1 << 16, stdin)) > 0;) {
        held += count;
        text = realloc(text, held + (1 << 16));
    }
    return 0;
}
"#;

#[test]
fn each_run_reads_standard_input_from_its_beginning() {
    let workshop = shop("[total]\npeak_resident = '<= 20MiB'\n");
    let program = workshop.compile("program", READER, &[]);
    fs::write(workshop.path("input"), vec![b'x'; 30 << 20]).unwrap();
    let words = ["check", "--budget", "budget.toml", "--", text(&program)];
    let from = |input: Stdio| {
        let mut command = workshop.command(&words);
        command.stdin(input);
        support::answer(command)
    };
    let file = || fs::File::open(workshop.path("input")).unwrap();
    from(file().into())
        .ended_with(1)
        .says("1 of 1 limits are not kept");
    let mut cat = Command::new("cat")
        .stdin(file())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pipe = cat.stdout.take().unwrap();
    from(pipe.into()).is_one_line(
        1,
        "the program has read standard input from a pipe, which a second run cannot read: give it a file",
    );
    cat.wait().unwrap();
    from(Stdio::null()).ended_with(0);
}

#[test]
fn a_program_that_leaves_processes_running_is_not_compared() {
    let workshop = shop("[total]\npeak_resident = '<= 64MiB'\n");
    let line = ["--budget", "budget.toml", "--", "sh", "-c", "sleep 5 &"];
    workshop
        .hakmem(&[&["check"], &line[..]].concat())
        .ended_with(1)
        .says("leaves processes running");
}
