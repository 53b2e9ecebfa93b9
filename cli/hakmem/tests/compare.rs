//! `hakmem compare`: errors are reported before any number, and the file contains everything else.

mod support;

use serde_json::Value;
use std::process::Stdio;
use support::{Answer, PROGRAM, Workshop, answer, text};

/// Compares glibc and others with this program, three runs each.
fn compare(workshop: &Workshop, arguments: &[&str], command: &[&str]) -> Answer {
    let all = [&["compare", "-n", "3"], arguments, &["--"], command].concat();
    workshop.hakmem(&all)
}

fn exported(workshop: &Workshop) -> Value {
    serde_json::from_slice(&std::fs::read(workshop.path("result.json")).unwrap()).unwrap()
}

/// Has the allocator no figure, for a reason that contains this text?
fn is_refused(document: &Value, allocator: &str, reason: &str) -> bool {
    document["refused"].as_array().unwrap().iter().any(|one| {
        one["allocator"] == allocator && one["reason"].as_str().unwrap().contains(reason)
    })
}

#[test]
fn every_run_is_kept_with_all_that_it_takes_to_repeat_it() {
    let workshop = Workshop::open();
    let program = workshop.program();
    let arguments = ["-a", "hakmem,glibc", "--export", "result.json"];
    compare(&workshop, &arguments, &[text(&program), "a b"]).ended_with(0);
    let document = exported(&workshop);
    let samples = document["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 6);
    for sample in samples {
        assert!(sample["wall_s"].as_f64().unwrap() > 0.0);
        assert!(sample["tree_peak_kib"].as_u64().unwrap() > 500);
        assert_eq!(sample["owners"].as_array().unwrap().len(), 1);
    }
    let hakmem = &document["allocators"]["hakmem"];
    assert_eq!(hakmem["sha256"].as_str().unwrap().len(), 64);
    assert!(hakmem["build_id"].as_str().unwrap().len() >= 16);
    assert!(document["machine"]["kernel"].is_string());
    assert!(document["machine"]["transparent_huge_pages"].is_string());
    let line = document["variants"]["program"]["commands"]["hakmem"]
        .as_str()
        .unwrap();
    assert!(
        line.starts_with("LD_PRELOAD=") && line.ends_with("/program 'a b'"),
        "{line}"
    );
    // The command line repeats the run.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", line]).current_dir(support::root());
    assert_eq!(answer(shell).output, "a b\n");
}

#[test]
fn a_table_can_be_made_again_from_the_file() {
    let workshop = Workshop::open();
    let program = workshop.program();
    let arguments = ["-a", "hakmem,glibc", "--export", "result.json"];
    let first = compare(&workshop, &arguments, &[text(&program)]);
    let again = workshop.hakmem(&["report", "result.json"]);
    assert_eq!(again.output, first.output);
    let csv = workshop.hakmem(&["report", "result.json", "--csv"]).output;
    assert_eq!(csv.lines().count(), 7);
    let json = workshop.hakmem(&["report", "result.json", "--json"]).output;
    assert_eq!(
        json,
        std::fs::read_to_string(workshop.path("result.json")).unwrap()
    );
    let markdown = workshop
        .hakmem(&["report", "result.json", "--markdown"])
        .output;
    assert!(markdown.contains("| allocator | time |"));
}

#[test]
fn the_baseline_is_any_allocator() {
    let workshop = Workshop::open();
    workshop.allocator("libmine.so", &[]);
    let program = workshop.program();
    for (allocators, baseline) in [
        ("mine=libmine.so,glibc", "mine"),
        ("glibc", "mine=libmine.so"),
        ("mine=libmine.so,glibc", "mine=libmine.so"),
    ] {
        let arguments = ["-a", allocators, "-b", baseline, "--export", "result.json"];
        compare(&workshop, &arguments, &[text(&program)])
            .ended_with(0)
            .says("× mine");
        let document = exported(&workshop);
        assert_eq!(document["settings"]["baseline"], "mine");
        assert_eq!(document["allocators"].as_object().unwrap().len(), 2);
    }
}

#[test]
fn a_process_without_the_library_is_refused() {
    let workshop = Workshop::open();
    let program = workshop.program();
    // A benchmark that clears the environment before its work would measure the C library.
    let script = workshop.script("bench", &format!("#!/bin/sh\nenv -i {}\n", text(&program)));
    let arguments = ["-a", "hakmem,glibc", "--export", "result.json"];
    let answer = compare(&workshop, &arguments, &[text(&script)]);
    answer
        .ended_with(1)
        .says("hakmem has no figure: program used")
        .says("libc.so.6 instead of hakmem");
    let document = exported(&workshop);
    let samples = document["samples"].as_array().unwrap();
    assert!(samples.iter().all(|sample| sample["allocator"] == "glibc"));
}

#[test]
fn a_program_with_an_allocator_inside_is_refused_under_all() {
    let workshop = Workshop::open();
    let source = format!("void *_rjem_malloc(unsigned long bytes) {{ return 0; }}\n{PROGRAM}");
    let program = workshop.compile("bundled", &source, &[]);
    let arguments = ["-a", "hakmem,glibc", "--export", "result.json"];
    compare(&workshop, &arguments, &[text(&program)]).ended_with(1);
    let document = exported(&workshop);
    assert!(document["samples"].as_array().unwrap().is_empty());
    assert!(is_refused(&document, "hakmem", "has jemalloc inside"));
    assert!(is_refused(&document, "glibc", "has jemalloc inside"));
}

#[test]
fn a_program_that_is_linked_with_an_allocator_gets_the_c_librarys_for_the_baseline() {
    let workshop = Workshop::open();
    let library = workshop.allocator("libother.so", &[]);
    let here = format!("-Wl,--no-as-needed,-rpath,{}", text(workshop.folder()));
    let program = workshop.compile("linked", PROGRAM, &[&here, text(&library)]);
    let answer = compare(&workshop, &["-a", "hakmem,glibc"], &[text(&program)]);
    answer
        .ended_with(0)
        .says("for glibc the C library is preloaded");
}

#[test]
fn an_allocator_that_crashes_is_refused_and_the_others_are_not() {
    let workshop = Workshop::open();
    workshop.allocator("libbad.so", &["-DBREAKS=1"]);
    let program = workshop.compile(
        "twice",
        "#include <stdlib.h>\nint main(void) { void *volatile a = malloc(9), *volatile b = malloc(9);\n\
         return a == b; }\n",
        &[],
    );
    let arguments = ["-a", "bad=libbad.so,glibc", "--export", "result.json"];
    let answer = compare(&workshop, &arguments, &[text(&program)]);
    answer.ended_with(1).says("bad has no figure: ended by SIG");
    assert_eq!(exported(&workshop)["samples"].as_array().unwrap().len(), 3);
}

#[test]
fn output_that_differs_is_said_before_any_number() {
    let workshop = Workshop::open();
    // It prints the preloaded library: a different output for each allocator.
    let script = workshop.script("shows", "#!/bin/sh\necho \"$LD_PRELOAD\"\n");
    let command = [text(&script)];
    let differing = compare(&workshop, &["-a", "hakmem,glibc"], &command);
    differing
        .ended_with(1)
        .says("its output differs from that without preload");
    assert!(differing.output.find("Notes") < differing.output.find("allocator"));
    compare(
        &workshop,
        &["-a", "hakmem,glibc", "--ignore-output"],
        &command,
    )
    .ended_with(0);
    compare(
        &workshop,
        &["-a", "hakmem,glibc", "--filter", "wc -l"],
        &command,
    )
    .ended_with(0);
    for (filter, line) in [
        ("exit 3", "failed (exit status: 3), and did not say why"),
        ("echo why >&2; exit 3", "failed (exit status: 3): why"),
        (
            "grep nothing-of-that-name",
            "failed (exit status: 1), and left nothing; if it may, as 'grep' may that finds no line, end it with '|| true'",
        ),
    ] {
        let choice = ["-a", "hakmem,glibc", "--filter", filter];
        compare(&workshop, &choice, &command)
            .ended_with(2)
            .says(&format!("the filter '{filter}' {line}"));
    }
    let hangs = [
        "-a",
        "hakmem,glibc",
        "--filter",
        "sleep 60 & wait",
        "--timeout",
        "2",
    ];
    compare(&workshop, &hangs, &command)
        .ended_with(2)
        .says("the filter 'sleep 60 & wait' had not finished after 2 s");
    let kept = [
        "-a",
        "hakmem,glibc",
        "--filter",
        "grep nothing-of-that-name || true",
    ];
    compare(&workshop, &kept, &command).ended_with(0);
}

#[test]
fn an_exit_code_that_differs_is_refused_and_one_that_does_not_is_no_failure() {
    let workshop = Workshop::open();
    let fails = workshop.script("fails", "#!/bin/sh\nexit 4\n");
    compare(&workshop, &["-a", "hakmem,glibc"], &[text(&fails)])
        .ended_with(0)
        .says("fails ends with exit code 4 without preload, too");
    let differs = workshop.script("differs", "#!/bin/sh\ntest -z \"$LD_PRELOAD\"\n");
    let answer = compare(&workshop, &["-a", "hakmem,glibc"], &[text(&differs)]);
    answer
        .ended_with(1)
        .says("hakmem has no figure: ends with exit code 1 instead of exit code 0");
}

#[test]
fn output_that_is_new_each_time_is_not_compared_and_that_is_said() {
    let workshop = Workshop::open();
    let script = workshop.script("random", "#!/bin/sh\ncat /proc/sys/kernel/random/uuid\n");
    let answer = compare(&workshop, &["-a", "hakmem,glibc"], &[text(&script)]);
    answer
        .ended_with(0)
        .says("random prints something else each time");
}

#[test]
fn a_program_that_hangs_is_ended() {
    let workshop = Workshop::open();
    let script = workshop.script("hangs", "#!/bin/sh\nexec sleep 60\n");
    let answer = compare(
        &workshop,
        &["-a", "glibc", "--timeout", "1"],
        &[text(&script)],
    );
    answer.ended_with(1).says("not finished after 1 s");
}

#[test]
fn what_is_finished_before_ctrl_c_is_kept() {
    let workshop = Workshop::open();
    // The sixth run reports this, and then waits.
    let script = workshop.script(
        "slow",
        "#!/bin/sh\necho >> runs\ntest $(wc -l < runs) -lt 6 || { touch waiting; exec sleep 60; }\n",
    );
    let child = workshop
        .command(&[
            "compare",
            "-a",
            "glibc",
            "--export",
            "result.json",
            "--",
            text(&script),
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    while !workshop.path("waiting").exists() {
        std::thread::yield_now();
    }
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    let ended = Answer::from(child.wait_with_output().unwrap());
    ended
        .ended_with(1)
        .says("hakmem: stopped; the results so far are above")
        .says("UNFINISHED");
    // Two reference runs and a warm-up are not recorded, two runs are.
    assert_eq!(exported(&workshop)["samples"].as_array().unwrap().len(), 2);
}

#[test]
fn processes_that_threads_start_are_traced_without_being_asked() {
    let workshop = Workshop::open();
    let script = "import subprocess, threading\n\
                  t = threading.Thread(target=lambda: subprocess.run(['/bin/true'])); t.start(); t.join()";
    let arguments = ["-a", "hakmem,glibc", "--export", "result.json"];
    compare(&workshop, &arguments, &["/usr/bin/python3", "-c", script]).ended_with(0);
    assert_eq!(exported(&workshop)["samples"][0]["process_count"], 2);
}

#[test]
fn a_program_is_called_by_the_name_that_was_given() {
    let workshop = Workshop::open();
    let command = ["sh", "-c", "echo $0"];
    let options = ["-a", "glibc", "--filter", "tee said"];
    compare(&workshop, &options, &command).ended_with(0);
    let said = std::fs::read_to_string(workshop.path("said")).unwrap();
    assert_eq!(said, "sh\n");
    for start in [&["run"][..], &["run", "--stats"], &["leaks", "--exit"]] {
        let answer = workshop.hakmem(&[start, &["--"], &command].concat());
        assert_eq!(answer.output.lines().next(), Some("sh"), "{start:?}");
    }
}

#[test]
fn wrong_usage_is_one_line_and_exit_code_2() {
    let workshop = Workshop::open();
    let unknown = compare(&workshop, &["-a", "nomalloc"], &["true"]);
    unknown
        .ended_with(2)
        .says("there is no allocator 'nomalloc'")
        .says("'hakmem peers install'");
    let line = "hakmem is given twice; give the second copy another name: NAME=PATH";
    compare(&workshop, &["-a", "hakmem,hakmem,glibc"], &["true"]).is_one_line(2, line);
    let line = "'NOVALUE' after '+' is not NAME=VALUE";
    compare(&workshop, &["-a", "hakmem+NOVALUE"], &["true"]).is_one_line(2, line);
    let line = "no-input: No such file or directory (os error 2)";
    let answer = compare(
        &workshop,
        &["-a", "glibc", "--input", "no-input"],
        &["true"],
    );
    answer.ended_with(2).says(line);
    // A pipe is read by one run only, or by none if nobody writes into it.
    let pipe = workshop.path("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    compare(&workshop, &["--input", "pipe"], &["true"])
        .ended_with(2)
        .says("pipe: each run reads it from its beginning, so it has to be a file");
    workshop.hakmem(&["report", "gone.json"]).is_one_line(
        2,
        "cannot read gone.json: No such file or directory (os error 2)",
    );
    workshop.write("broken.json", "{\"format\": 2, \"samples\": [");
    workshop
        .hakmem(&["report", "broken.json"])
        .ended_with(2)
        .says("broken.json was cut short");
    workshop.write("newer.json", "{\"format\": 9}");
    let line = "newer.json is a result file of format 9, and this hakmem reads up to 2";
    workshop
        .hakmem(&["report", "newer.json"])
        .is_one_line(2, line);
}

#[test]
fn what_takes_no_result_is_said_before_the_work() {
    let workshop = Workshop::open();
    let answer = compare(
        &workshop,
        &["-a", "glibc", "--export", "/dev/full"],
        &["true"],
    );
    let line = "cannot write /dev/full: No space left on device (os error 28)";
    answer.is_one_line(2, line);
}

#[test]
fn variables_and_paths_that_are_no_text_reach_the_program() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let workshop = Workshop::open();
    let library = workshop.allocator("other.so", &[]);
    let folder = workshop.path("odd").join(OsStr::from_bytes(b"f\xff"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(&library, folder.join("other.so")).unwrap();
    let mut command = workshop.command(&[
        "compare",
        "-n",
        "1",
        "-a",
        "glibc,hakmem",
        "--export",
        "result.json",
        "--",
        "sh",
        "-c",
        "test \"$ODD\" = \"$(printf 'a\\376')\" && echo is there",
    ]);
    command
        .env("ODD", OsStr::from_bytes(b"a\xfe"))
        .env("LD_PRELOAD", folder.join("other.so"));
    let said = answer(command);
    said.ended_with(0)
        .says("LD_PRELOAD is set here; it is not passed on");
    let kept = std::fs::read_to_string(workshop.path("result.json")).unwrap();
    assert!(kept.contains(r"a\\xfe"), "{kept}");

    let mut command = workshop.command(&["run", "--", "sh", "-c", "echo $LD_PRELOAD; echo $ODD"]);
    command
        .env("ODD", OsStr::from_bytes(b"a\xfe"))
        .env("LD_PRELOAD", folder.join("other.so"));
    let output = command.output().unwrap().stdout;
    assert!(output.ends_with(b"/odd/f\xff/other.so\na\xfe\n"));
}

/// Every run reads nothing, or the file of --input. If standard input is a file, the user must learn that it is ignored.
#[test]
fn a_standard_input_that_is_not_passed_on_is_said() {
    let workshop = Workshop::open();
    let program = workshop.program();
    workshop.write("input", "much");
    let said = |words: &[&str]| {
        let mut command = workshop.command(&[words, &["--", text(&program)]].concat());
        command.stdin(std::fs::File::open(workshop.path("input")).unwrap());
        answer(command)
    };
    let note = "standard input is a file here, and no run reads it";
    let compare = ["compare", "-n", "1", "-a", "glibc"];
    said(&compare).ended_with(0).says(note);
    let named = [&compare[..], &["--input", "input"]].concat();
    assert!(!said(&named).ended_with(0).output.contains(note));
    let tune = ["tune", "--laps", "2"];
    said(&tune).ended_with(0).says(note);
    assert!(
        !workshop
            .hakmem(&[&compare[..], &["--", text(&program)]].concat())
            .output
            .contains(note)
    );
}
