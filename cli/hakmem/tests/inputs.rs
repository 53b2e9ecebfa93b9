//! Inputs that are not files: a pipe without a writer delays nothing, and one with a writer is read.

mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::waiting::{WAITS, Waiting};
use support::{Workshop, library};

fn workshop_with_pipe() -> Workshop {
    let workshop = Workshop::open();
    let made = Command::new("mkfifo").arg(workshop.path("pipe")).status();
    assert!(made.unwrap().success());
    workshop
}

#[test]
fn a_pipe_that_nobody_writes_holds_nothing_up() {
    let workshop = workshop_with_pipe();
    let nobody = "cannot read pipe: it is a pipe without a writer";
    let no_file = "it is a pipe, not a regular file";
    let begin = Instant::now();
    workshop.hakmem(&["report", "pipe"]).is_one_line(2, nobody);
    workshop
        .hakmem(&["diff", "pipe", "pipe"])
        .is_one_line(2, nobody);
    for arguments in [&["replay", "pipe"][..], &["trace", "info", "pipe"]] {
        workshop
            .hakmem(arguments)
            .is_one_line(2, &format!("cannot open the trace pipe: {no_file}"));
    }
    for arguments in [&["core", "pipe"][..], &["stats", "--core", "pipe"]] {
        workshop
            .hakmem(arguments)
            .is_one_line(2, &format!("cannot read pipe: {no_file}"));
    }
    assert!(begin.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_result_is_read_from_a_pipe_that_somebody_writes() {
    let workshop = workshop_with_pipe();
    let program = workshop.program();
    workshop
        .hakmem(&[
            "compare",
            "-n",
            "1",
            "-a",
            "hakmem,glibc",
            "--export",
            "result.json",
            "--",
            support::text(&program),
        ])
        .says("hakmem");
    let mut writer = Command::new("sh")
        .args(["-c", "sleep 0.2; cat result.json >pipe"])
        .current_dir(workshop.folder())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let said = workshop.hakmem(&["report", "pipe", "--csv"]);
    let _ = writer.wait();
    let wanted = workshop.hakmem(&["report", "result.json", "--csv"]);
    assert_eq!(said.ended_with(0).output, wanted.output);
    assert!(wanted.output.lines().count() > 2);
}

/// A file of each kind that commands can write and read again, and its content.
fn one_of_each(workshop: &Workshop, pid: &str) -> Vec<(&'static str, Vec<u8>)> {
    let program = workshop.program();
    let program = support::text(&program);
    let lines = [
        (
            "compared.json",
            "compare -n 1 -a glibc --export compared.json -- PROGRAM",
        ),
        ("profile.json", "profile PID --live --save profile.json"),
        ("moment.json", "why PID --save moment.json"),
        ("trace.hkt", "record -o trace.hkt -- PROGRAM"),
        (
            "replayed.json",
            "replay trace.hkt -n 1 -a glibc --export replayed.json",
        ),
        ("tuned", "tune -l 2 -o tuned -- PROGRAM"),
    ];
    let made = lines.iter().map(|(file, line)| {
        let line = line.replace("PROGRAM", program).replace("PID", pid);
        let words: Vec<&str> = line.split(' ').collect();
        workshop.hakmem(&words).ended_with(0);
        (*file, std::fs::read(workshop.path(file)).unwrap())
    });
    made.collect()
}

/// Wherever it is cut, it is never taken for another kind of file, or for a complete one.
#[test]
fn a_file_that_was_cut_short_is_called_so() {
    let workshop = Workshop::open();
    let waits = workshop.compile("waits", WAITS, &[]);
    let process = Waiting::start(Command::new(waits).env("LD_PRELOAD", library()));
    let pid = process.pid();
    let made = one_of_each(&workshop, &pid);
    let whole = workshop.hakmem(&["tune", "--explain", "tuned"]);
    assert_eq!(whole.ended_with(0).errors, "");
    std::fs::copy(workshop.path("profile.json"), workshop.path("other.json")).unwrap();
    for part in [0, 40, 90] {
        for (file, content) in &made {
            std::fs::write(workshop.path(file), &content[..content.len() * part / 100]).unwrap();
        }
        let (how, of_trace, of_tuned) = match part {
            0 => ("is empty", "is empty", "not a profile"),
            _ => ("was cut short", "was cut off at byte", "was cut short"),
        };
        for (file, line) in [
            ("compared.json", "report compared.json"),
            (
                "compared.json",
                "report compared.json trace.hkt --html page.html",
            ),
            ("compared.json", "bench --resume compared.json"),
            ("replayed.json", "report replayed.json"),
            ("profile.json", "diff profile.json other.json"),
            ("profile.json", "diff other.json profile.json"),
            ("moment.json", "why PID --since moment.json"),
        ] {
            let line = line.replace("PID", &pid);
            let said = workshop.hakmem(&line.split(' ').collect::<Vec<&str>>());
            said.ended_with(2).says(&format!("{file} {how}"));
            assert_eq!(said.errors.lines().count(), 1, "{}", said.errors);
        }
        workshop
            .hakmem(&["tune", "--explain", "tuned"])
            .says(of_tuned);
        for view in ["info", "sizes", "lifetimes"] {
            let said = workshop.hakmem(&["trace", view, "trace.hkt"]);
            said.says(&format!("trace.hkt {of_trace}"));
        }
    }
}

#[test]
fn a_program_that_was_cut_short_is_not_run() {
    let workshop = Workshop::open();
    let whole = std::fs::read(workshop.program()).unwrap();
    for part in [0, 5, 90] {
        support::make_program(&workshop.path("cut"), &whole[..whole.len() * part / 100]);
        for arguments in [
            &["run", "./cut"][..],
            &["verify", "--preload", "./cut"],
            &["record", "./cut"],
            &["compare", "-n", "1", "./cut"],
            &["leaks", "--exit", "./cut"],
            &["tune", "./cut"],
        ] {
            let said = workshop.hakmem(arguments);
            said.ended_with(2).says("/cut is not a program: ");
            assert_eq!(said.errors.lines().count(), 1, "{}", said.errors);
        }
    }
    std::fs::write(
        workshop.path("cut.so"),
        &std::fs::read(library()).unwrap()[..3000],
    )
    .unwrap();
    for command in ["run", "compare"] {
        let said = workshop.hakmem(&[command, "-a", "cut=./cut.so", "--", "true"]);
        said.ended_with(2)
            .says("./cut.so is not a shared library: ");
    }
}

#[test]
fn who_names_a_process_is_told_how_to_find_its_number() {
    let workshop = Workshop::open();
    let told = "not a process ID: 'pidof -s NAME' prints one, 'hakmem top' lists all";
    for command in ["stats", "top", "map", "cold", "export", "doctor"] {
        for subject in ["redis-server", "4711 4712"] {
            let mut words = vec![command, subject];
            if command == "export" {
                words.push("--prometheus");
            }
            let answer = workshop.hakmem(&words);
            answer.ended_with(2);
            assert!(answer.errors.contains(told), "{command}: {}", answer.errors);
        }
    }
}

/// JSON of other kinds has no figures of a heap. A profile is recognised by its kind.
#[test]
fn what_is_something_else_is_called_so() {
    let workshop = Workshop::open();
    workshop.write("result.json", "{\"format\": 1, \"runs\": [1, 2]}");
    workshop
        .hakmem(&["diff", "result.json", "result.json"])
        .is_one_line(
            2,
            "result.json is neither a profile (profile --save), nor a trace, a snapshot or an output of 'stats --json'",
        );
    workshop
        .hakmem(&["tune", "--explain", "result.json"])
        .is_one_line(2, "result.json is not a profile of 'hakmem tune'");
    let none = "it is not a process ID: 'pidof -s NAME' prints one, 'hakmem top' lists all";
    workshop
        .hakmem(&["doctor", ""])
        .is_one_line(2, &format!("there is no file '', and {none}"));
    workshop
        .hakmem(&["doctor", "1", "--seconds", "1e30"])
        .ended_with(2)
        .says("a number of seconds from 0 to 1e19");
}

/// A folder that contains a link to itself is read once, and a pipe in it is not waited for.
#[test]
fn each_file_of_a_folder_is_shown_once() {
    let workshop = Workshop::open();
    std::fs::create_dir(workshop.path("all")).unwrap();
    std::os::unix::fs::symlink(".", workshop.path("all/again")).unwrap();
    let pipe = workshop.path("all/pipe.json");
    assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
    let program = workshop.program();
    let record = ["record", "-o", "all/one.hkt", support::text(&program)];
    workshop.hakmem(&record).ended_with(0);
    workshop.hakmem(&["report", "all"]).ended_with(0);
    let page = std::fs::read_to_string(workshop.path("report.html")).unwrap();
    assert_eq!(page.matches("\"one.hkt\"").count(), 1);
    std::os::unix::fs::symlink("all/one.hkt", workshop.path("link")).unwrap();
    workshop
        .hakmem(&["record", "-o", "link", support::text(&program)])
        .is_one_line(2, "link is a link to a file that exists: name another one");
    workshop.write("text.json", "words");
    workshop.hakmem(&["report", "text.json"]).is_one_line(
        2,
        "text.json is not a result file; 'hakmem bench' and 'hakmem compare --export' write one",
    );
}

/// The message says how the program ended.
#[test]
fn a_program_that_fails_is_not_tuned() {
    let workshop = Workshop::open();
    for (program, end) in [
        ("exit 3", "with exit code 3"),
        ("kill -9 $$", "by SIGKILL"),
        ("sleep 5 &", "before processes that it had started"),
    ] {
        workshop
            .hakmem(&["tune", "-l", "2", "--", "sh", "-c", program])
            .ended_with(1)
            .says(&format!(
                "with baseline the program ended {end}; tuning needs a program that ends with exit code 0, after \
                 all of its processes"
            ));
    }
}

/// Rust reads `nan` and `inf` as numbers.
#[test]
fn what_is_no_number_of_seconds_or_per_cent_is_refused() {
    let workshop = Workshop::open();
    for word in ["nan", "inf", "-1", "1e300", "10s"] {
        for (line, says) in [
            (
                ["leaks", "1", "--older"],
                "a number of seconds from 0 to 1e19",
            ),
            (
                ["why", "1", "--seconds"],
                "a number of seconds from 0 to 1e19",
            ),
            (["why", "1", "--sparse"], "a number from 0 to 100"),
            (
                ["doctor", "1", "--seconds"],
                "a number of seconds from 0 to 1e19",
            ),
            (
                ["profile", "1", "--seconds"],
                "a number of seconds from 0 to 1e19",
            ),
        ] {
            let said = workshop.hakmem(&[&line[..], &[word]].concat());
            said.ended_with(2).says(says);
        }
    }
    for line in ["profile 1 --every 0", "leaks --exit --every 0 -- true"] {
        let words: Vec<&str> = line.split(' ').collect();
        workshop
            .hakmem(&words)
            .ended_with(2)
            .says("'--every <BYTES>': 0 is not in 1..");
    }
}

/// For any command that gets it in place of a process.
#[test]
fn what_reads_a_file_is_said_where_a_process_is_wanted() {
    let workshop = Workshop::open();
    let program = workshop.program();
    let record = ["record", "-o", "a.hkt", "--", support::text(&program)];
    workshop.hakmem(&record).ended_with(0);
    let waits = workshop.compile("waits", WAITS, &[]);
    let process = Waiting::start(Command::new(waits).env("LD_PRELOAD", library()));
    let keep = ["snapshot", &process.pid(), "-o", "a.hks"];
    workshop.hakmem(&keep).ended_with(0);
    std::fs::write(
        workshop.path("core"),
        b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x04\0",
    )
    .unwrap();
    for (file, reads) in [
        (
            "a.hkt",
            "is a trace: 'hakmem trace info a.hkt' and 'hakmem replay a.hkt' read it",
        ),
        (
            "a.hks",
            "is a snapshot: 'hakmem doctor a.hks' reads it, and commands with --core",
        ),
        (
            "core",
            "is a core dump: 'hakmem doctor core' reads it, and commands with --core",
        ),
    ] {
        for command in [
            "stats", "profile", "leaks", "why", "cold", "map", "top", "export", "explain",
        ] {
            workshop.hakmem(&[command, file]).ended_with(2).says(reads);
        }
    }
    for line in [
        &["doctor", "a.hkt"][..],
        &["core", "a.hkt"],
        &["stats", "--core", "a.hkt"],
    ] {
        workshop
            .hakmem(line)
            .ended_with(2)
            .says("a.hkt is a trace: ");
    }
}
