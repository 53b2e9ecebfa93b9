//! Output fits the screen on which it is printed, and contains nothing that the screen cannot show.

mod support;

use std::process::{Command, Stdio};
use support::waiting::Waiting;
use support::{Workshop, library, text};

/// Names that would fill several lines of any screen in full.
const LONG: &str = r#"
#include <map>
#include <string>
#include <unistd.h>
#include <vector>
std::map<std::string, std::vector<std::string>> kept;
int main()
{
    for (int i = 0; i < 100; i++)
        kept["a key that is too long to be kept inside the string " + std::to_string(i)].push_back(std::string(100, 'x'));
    _exit(0);
}
"#;

/// Small blocks of many classes, a large one, and a refused allocation.
const READY: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *kept[1000];
int main(void)
{
    for (int i = 0; i < 1000; i++)
        kept[i] = malloc(10 + i * 7);
    kept[0] = malloc(8 << 20);
    kept[1] = malloc((size_t)1 << 50);
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

/// The bytes that a command prints on a terminal of this width.
fn on_terminal(columns: usize, environment: &[(&str, &str)], words: &[&str]) -> String {
    let line = format!(
        "stty rows 24 cols {columns}; exec {} {}",
        env!("CARGO_BIN_EXE_hakmem"),
        words.join(" ")
    );
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]);
    for name in [
        "CI", "NO_COLOR", "CLICOLOR", "LC_ALL", "LC_CTYPE", "LANG", "TERM",
    ] {
        command.env_remove(name);
    }
    command.envs(environment.iter().copied());
    let output = command.stdin(Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Without the parts that a terminal does not show.
fn seen(sent: &str) -> String {
    let mut text = String::new();
    let mut rest = sent;
    while let Some(at) = rest.find('\x1b') {
        text += &rest[..at];
        let end = rest[at..].find(|letter: char| letter.is_ascii_alphabetic());
        rest = end.map_or("", |end| &rest[at + end + 1..]);
    }
    (text + rest).replace('\r', "")
}

fn widest(text: &str) -> usize {
    text.lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

fn start(workshop: &Workshop) -> Waiting {
    let program = workshop.compile("fits", READY, &[]);
    let mut command = Command::new(&program);
    command
        .env("LD_PRELOAD", library())
        .env("HAKMEM_SAMPLE_BYTES", "1");
    Waiting::start(&mut command)
}

fn long_names(workshop: &Workshop) -> String {
    workshop.write("long.cpp", LONG);
    let made = Command::new("c++")
        .args(["-g", "-O1", "-o", "long", "long.cpp"])
        .current_dir(workshop.folder())
        .status()
        .unwrap();
    assert!(made.success());
    text(&workshop.path("long")).to_string()
}

#[test]
fn names_of_templates_fit() {
    let workshop = Workshop::open();
    let program = long_names(&workshop);
    for columns in [20, 40, 80, 200] {
        let sent = on_terminal(
            columns,
            &[("TERM", "xterm")],
            &["leaks", "--exit", "--", &program],
        );
        let text = seen(&sent);
        let table: Vec<&str> = text.lines().filter(|line| !line.contains('/')).collect();
        assert!(widest(&table.join("\n")) <= columns, "{columns}:\n{text}");
        assert!(
            text.contains(if columns > 20 { "main (" } else { "main" }),
            "{columns}:\n{text}"
        );
        assert!(
            text.contains("map<…>::operator[]") || columns != 80,
            "{columns}:\n{text}"
        );
    }
    let piped = workshop.hakmem(&["leaks", "--exit", "--", &program]);
    let output = &piped.ended_with(0).output;
    assert!(output.contains("blocks") && output.contains("main ("));
    assert!(output.contains("std::vector<std::string>::push_back"));
    assert!(widest(output) <= 200, "{output}");
    // libstdc++'s own memory is no leak of the program.
    assert!(!output.contains("libstdc++.so"), "{output}");
    piped.says("libstdc++'s memory for exceptions); --all shows it");
    let all = workshop.hakmem(&["leaks", "--exit", "--all", "--", &program]);
    all.ended_with(0).says("71.0 KiB").says("libstdc++.so");
    // The whole name as the compiler wrote it.
    let whole = workshop.hakmem(&["leaks", "--exit", "--json", "--", &program]);
    whole
        .ended_with(0)
        .says("std::allocator<std::__cxx11::basic_string");
}

#[test]
fn stacks_of_a_trace_fit() {
    let workshop = Workshop::open();
    let program = long_names(&workshop);
    let trace = workshop.path("long.hkt");
    let trace = text(&trace);
    let recorded = workshop.hakmem(&["record", "--stacks=20", "-o", trace, &program]);
    recorded.ended_with(0);
    let text = seen(&on_terminal(
        80,
        &[("TERM", "xterm")],
        &["trace", "top-sites", trace],
    ));
    assert!(widest(&text) <= 80, "{text}");
    assert!(text.contains("    main (long.cpp:"), "{text}");
    assert!(text.contains("of the language or the system"), "{text}");
    let pool = |words: &[&str]| {
        let live = [
            &["trace", "top-sites", "-n", "20", "--by", "live", trace],
            words,
        ]
        .concat();
        workshop
            .hakmem(&live)
            .ended_with(0)
            .output
            .contains("libstdc++.so")
    };
    assert!(!pool(&[]) && pool(&["--all"]));
    let whole = workshop.hakmem(&["trace", "top-sites", "--full", trace]);
    whole
        .ended_with(0)
        .says("std::allocator_traits<std::allocator<std::__cxx11");
}

#[test]
fn every_table_fits() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let pid = process.pid();
    for command in [
        "stats", "ledger", "map", "options", "explain", "failures", "leaks", "profile", "why",
        "verify", "doctor",
    ] {
        for columns in [20, 30, 40, 80, 200] {
            fits(columns, &[command, &pid]);
        }
    }
    for columns in [20, 40, 80, 200] {
        fits(columns, &["cold", &pid, "--seconds", "0", "--price", "3.5"]);
    }
    // The lines are about the functions that made the requests.
    let refused = fits(80, &["failures", &pid]);
    assert!(refused.contains("main (fits"), "{refused}");
}

#[test]
fn a_trace_of_many_processes_fits() {
    let workshop = Workshop::open();
    let trace = workshop.path("many.hkt");
    let many = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24; do /bin/sh -c :; done";
    let record = ["record", "-o", text(&trace), "--", "/bin/sh", "-c", many];
    workshop.hakmem(&record).ended_with(0);
    let said = fits(40, &["trace", "info", text(&trace)]);
    assert!(
        said.replace('\n', " ").contains("smaller processes"),
        "{said}"
    );
}

/// No line of several words is longer than the screen. A single longer word is no table, but for example a path.
fn fits(columns: usize, words: &[&str]) -> String {
    let text = seen(&on_terminal(columns, &[("TERM", "xterm")], words));
    let long = text
        .lines()
        .find(|line| line.chars().count() > columns && line.trim().contains(' '));
    assert!(long.is_none(), "{words:?}, {columns}: {long:?}\n{text}");
    assert!(text.lines().count() > 2, "{words:?}, {columns}:\n{text}");
    text
}

#[test]
fn help_usage_and_what_a_run_took_fit() {
    for columns in [20, 30, 80, 200] {
        fits(columns, &["--help"]);
        fits(columns, &["compare", "--help"]);
        fits(columns, &["trace", "top-sites", "--help"]);
        fits(columns, &["verify", "--what"]);
        fits(columns, &["leaks", "--exit"]);
        let said = fits(columns, &["run", "--stats", "--", "true"]);
        assert!(said.contains("its address map") || columns < 80, "{said}");
    }
    // Arguments that are repeated in a message do nothing to the screen.
    let sent = on_terminal(80, &[("TERM", "xterm")], &["$'\\e]0;title\\a\\e[7m'"]);
    assert!(sent.contains("unrecognized") && !sent.contains("\x1b]") && !sent.contains('\x07'));
}

#[test]
fn where_there_is_no_screen_there_is_plain_text() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let pid = process.pid();
    for command in [
        vec!["stats", &pid],
        vec!["leaks", &pid],
        vec!["top", &pid, "-d", "0.1", "-n", "2"],
        vec!["--help"],
    ] {
        for environment in [&[][..], &[("TERM", "dumb")], &[("CI", "true")]] {
            let sent = on_terminal(80, environment, &command);
            assert!(
                !sent.contains('\x1b'),
                "{command:?}, {environment:?}: {sent:?}"
            );
        }
    }
    // Without -n, top ends with the process.
    let program = workshop.compile(
        "short",
        "#include <unistd.h>\nint main(void) { return sleep(2); }",
        &[],
    );
    let mut short = Command::new(program)
        .env("LD_PRELOAD", library())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let number = short.id().to_string();
    let sent = on_terminal(80, &[("TERM", "dumb")], &["top", &number, "-d", "0.1"]);
    assert!(
        !sent.contains('\x1b') && sent.contains("resident"),
        "{sent:?}"
    );
    assert!(widest(&seen(&sent)) <= 80, "{sent}");
    short.wait().unwrap();
}

#[test]
fn a_c_locale_gets_ascii() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let pid = process.pid();
    for command in ["profile", "why", "leaks", "map", "diff"] {
        let sent = on_terminal(80, &[("LC_ALL", "C")], &[command, "--help"]);
        assert!(sent.is_ascii(), "{command} --help: {sent}");
    }
    for command in [
        "stats", "map", "leaks", "ledger", "why", "options", "doctor",
    ] {
        for locale in [("LC_ALL", "C"), ("LANG", "POSIX")] {
            let sent = on_terminal(80, &[("TERM", "xterm"), locale], &[command, &pid]);
            assert!(sent.is_ascii(), "{command}: {sent}");
            assert!(widest(&seen(&sent)) <= 80, "{command}: {sent}");
        }
        let sent = on_terminal(
            80,
            &[("TERM", "xterm"), ("LC_ALL", "C.UTF-8")],
            &[command, &pid],
        );
        assert!(!sent.is_ascii(), "{command}: {sent}");
    }
}

#[test]
fn no_color_is_no_colour() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let pid = process.pid();
    for command in ["stats", "map", "leaks"] {
        let sent = on_terminal(
            80,
            &[("TERM", "xterm"), ("NO_COLOR", "1")],
            &[command, &pid],
        );
        assert!(!sent.contains('\x1b'), "{command}: {sent:?}");
        for empty in [
            &[("TERM", "xterm")][..],
            &[("TERM", "xterm"), ("NO_COLOR", "")],
        ] {
            let sent = on_terminal(80, empty, &[command, &pid]);
            assert!(sent.contains('\x1b'), "{command}: {sent:?}");
        }
        let sent = on_terminal(80, &[("TERM", "")], &[command, &pid]);
        assert!(!sent.contains('\x1b'), "{command}: {sent:?}");
    }
}

/// Text that tells rows apart is not cut; instead, a column is dropped.
#[test]
fn ranges_of_a_trace_stay_whole() {
    let workshop = Workshop::open();
    let program = long_names(&workshop);
    let trace = workshop.path("long.hkt");
    let trace = text(&trace);
    workshop
        .hakmem(&["record", "-o", trace, &program])
        .ended_with(0);
    for (view, columns, wanted) in [
        ("sizes", 40, "\n65 – 128 "),
        ("sizes", 60, "\n65,537 – 131,072 "),
        ("lifetimes", 40, "never freed"),
        ("lifetimes", 60, "by another thread"),
        ("info", 60, "peak live"),
    ] {
        let text = fits(columns, &["trace", view, trace]);
        assert!(text.contains(wanted), "{view}, {columns}:\n{text}");
        assert!(!text.contains('…'), "{view}, {columns}:\n{text}");
    }
}

#[test]
fn a_mark_stays_with_what_it_means() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let text = seen(&on_terminal(
        40,
        &[("TERM", "xterm")],
        &["map", &process.pid()],
    ));
    for entry in [
        "▁▄█ to 32 KiB",
        "▒ large, free, kept for reuse",
        "░ free, to be purged",
    ] {
        assert!(text.contains(entry), "{entry}:\n{text}");
    }
}

/// As `watch` tells its programs.
#[test]
fn a_pipe_is_as_wide_as_its_reader_says() {
    let workshop = Workshop::open();
    let process = start(&workshop);
    let mut command = workshop.command(&["stats", &process.pid()]);
    let output = command.env("COLUMNS", "60").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().count() > 5 && widest(&text) <= 60, "{text}");
}
