//! `hakmem record` writes exactly the program's calls: every event is compared with the tally of another library
//! (tests/trace/tally.c).

mod support;

use hakmem_trace::event::Kind;
use hakmem_trace::order::Ordered;
use hakmem_trace::reader::Reader;
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use support::build::{self, Tally};

/// The calls of each process and thread: kind, address, size, alignment.
type Calls = Vec<(u8, u64, u64, u8)>;

fn tallied(path: &Path) -> HashMap<i32, Vec<Calls>> {
    let mut threads: BTreeMap<(i32, i32), Calls> = BTreeMap::new();
    for line in Tally::read(path) {
        let log2 = if line.kind == Kind::Aligned as i32 {
            line.alignment.ilog2() as u8
        } else {
            0
        };
        let call = (line.kind as u8, line.address, line.size, log2);
        threads
            .entry((line.process, line.thread))
            .or_default()
            .push(call);
    }
    let mut processes: HashMap<i32, Vec<Calls>> = HashMap::new();
    for ((process, _), calls) in threads {
        processes.entry(process).or_default().push(calls);
    }
    processes
}

fn recorded(reader: &Reader) -> HashMap<i32, Vec<Calls>> {
    let mut decoder = hakmem_trace::codec::Decoder::new().unwrap();
    let mut threads: BTreeMap<(i32, u32), Calls> = BTreeMap::new();
    for chunk in &reader.chunks {
        let mut events = Vec::new();
        reader.read_chunk(chunk, &mut decoder, &mut events).unwrap();
        let process = reader
            .processes
            .iter()
            .find(|process| process.process == chunk.head.process)
            .unwrap();
        if !process.program.ends_with("trace_calls") {
            continue; // env before its exec
        }
        threads
            .entry((process.id, chunk.head.thread))
            .or_default()
            .extend(events.iter().map(|event| {
                (
                    event.kind as u8,
                    event.address,
                    event.size,
                    event.alignment_log2,
                )
            }));
    }
    let mut processes: HashMap<i32, Vec<Calls>> = HashMap::new();
    for ((process, _), calls) in threads {
        processes.entry(process).or_default().push(calls);
    }
    processes
}

/// Records `calls ARGUMENTS`; the trace must agree with the tally. Returns the exit code.
fn check(arguments: &[&str]) -> Option<i32> {
    let folder = tempfile::tempdir().unwrap();
    let (trace, tally) = (folder.path().join("trace.hkt"), folder.path().join("tally"));
    let both = format!(
        "{}:{}",
        build::path("tests/libtally.so"),
        build::path("libhakmem_record.so")
    );
    let status = Command::new(build::path("hakmem"))
        .args(["record", "-o"])
        .arg(&trace)
        .args([
            "--",
            "env",
            &format!("LD_PRELOAD={both}"),
            &build::path("tests/trace_calls"),
        ])
        .args(arguments)
        .env("TALLY", &tally)
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let reader = Reader::open(&trace).unwrap();
    assert_eq!(reader.warning, None);
    let mut expected = tallied(&tally);
    let mut found = recorded(&reader);
    let processes: Vec<i32> = expected.keys().copied().collect();
    for process in processes {
        let (mut expected, mut found) = (
            expected.remove(&process).unwrap(),
            found.remove(&process).unwrap(),
        );
        expected.sort();
        found.sort();
        if expected != found {
            let lengths = |threads: &[Calls]| threads.iter().map(Vec::len).collect::<Vec<_>>();
            panic!(
                "{arguments:?}: tally {:?}, trace {:?}",
                lengths(&expected),
                lengths(&found)
            );
        }
    }
    for process in &reader.processes {
        let mut ordered = Ordered::new(&reader, process.process).unwrap();
        while ordered.step().unwrap().is_some() {}
        // A forked child frees its parent's blocks.
        if process.parent == 0 {
            assert_eq!((ordered.foreign, ordered.implied), (0, 0));
        }
    }
    status.code()
}

#[test]
fn one_thread() {
    assert_eq!(check(&["1", "20000", "1"]), Some(7));
}

#[test]
fn threads_that_free_each_others_blocks() {
    assert_eq!(check(&["4", "20000", "2"]), Some(7));
}

#[test]
fn threads_that_come_and_go() {
    assert_eq!(check(&["8", "3000", "3", "churn"]), Some(0));
}

#[test]
fn a_forked_child_has_its_own_events() {
    assert_eq!(check(&["3", "5000", "4", "fork"]), Some(7));
}

#[test]
fn a_program_that_is_killed_loses_nothing() {
    assert_eq!(check(&["3", "5000", "5", "kill"]), Some(128 + 9));
}

#[test]
fn more_threads_than_rings_lose_nothing() {
    // There are 512 rings: the last threads share one.
    assert_eq!(check(&["600", "40", "6"]), Some(7));
}

fn record(arguments: &[&str], command: &[&str]) -> (std::process::Output, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(build::path("hakmem"))
        .args(["record", "-o", "trace.hkt"])
        .args(arguments)
        .arg("--")
        .args(command)
        .current_dir(folder.path())
        .output()
        .unwrap();
    (output, folder)
}

#[test]
fn a_limit_ends_the_recording_and_not_the_program() {
    let calls = build::path("tests/trace_calls");
    let (output, folder) = record(&["--limit", "1M"], &[&calls, "2", "100000", "1"]);
    assert_eq!(output.status.code(), Some(7));
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(line.contains("reached --limit"), "{line}");
    let trace = folder.path().join("trace.hkt");
    assert!(fs::metadata(&trace).unwrap().len() <= 1 << 20);
    let reader = Reader::open(&trace).unwrap();
    assert!(reader.events() > 1000, "{} events", reader.events());
}

/// Uses a small disk; needs the right to mount one.
#[test]
fn a_full_disk_leaves_a_whole_trace() {
    let folder = tempfile::tempdir().unwrap();
    let command = format!(
        "mount -t tmpfs -o size=1m none {0} && cd {0} || exit 77; {1} record -o t -- {2} 2 300000 1; \
         code=$?; {1} trace info t; exit $code",
        folder.path().display(),
        build::path("hakmem"),
        build::path("tests/trace_calls")
    );
    let output = Command::new("unshare")
        .args(["-rm", "bash", "-c", &command])
        .output()
        .unwrap();
    if matches!(output.status.code(), Some(77)) {
        eprintln!("skipped: cannot mount a small disk here");
        return;
    }
    let line = String::from_utf8(output.stderr).unwrap();
    assert!(line.contains("no space left"), "{line}");
    // Nothing else is wrong with it.
    let warning = "hakmem: warning: t ends where the disk was full, before the program ended\n";
    assert!(line.ends_with(warning), "{line}");
    assert_eq!(output.status.code(), Some(1), "{line}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("ends where the disk was full"), "{text}");
}

#[test]
fn when_the_recording_is_killed_the_program_goes_on_and_the_trace_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.hkt");
    // When the trace has its first events, the program kills its recorder. Then it makes far more calls than its ring can hold.
    let script = "until HAKMEM trace info --json trace.hkt | grep -q '\"events\": [1-9]'; do sleep 0.1; \
                  done; kill -9 $PPID; sleep 0.1; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); a[$i]=x$i; done; \
                  echo done > done";
    let hakmem = build::path("hakmem");
    let output = Command::new(&hakmem)
        .args(["record", "-o", "trace.hkt", "--", "bash", "-c"])
        .arg(script.replace("HAKMEM", &hakmem))
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(!output.status.success());
    let wait = || {
        (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            folder.path().join("done").exists()
        })
    };
    assert!(wait(), "the program did not go on without its recorder");
    let reader = Reader::open(&trace).unwrap();
    assert!(
        reader
            .warning
            .as_deref()
            .unwrap_or_default()
            .contains("was cut off")
    );
    assert!(reader.events() > 0, "what was flushed before is there");
}

#[test]
fn an_interrupt_ends_the_program_and_finishes_the_trace() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.hkt");
    let child = Command::new(build::path("hakmem"))
        .args(["record", "-o"])
        .arg(&trace)
        .args([
            "--",
            "bash",
            "-c",
            "trap 'exit 5' INT; echo; while :; do sleep 0.05; done",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = child;
    let mut first = [0];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    let id = child.id().to_string();
    Command::new("kill").args(["-INT", &id]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{:?}", output);
    assert_eq!(Reader::open(&trace).unwrap().warning, None);
}

#[test]
fn stacks_name_the_callers() {
    let calls = build::path("tests/trace_calls");
    let (_, folder) = record(&["--stacks"], &[&calls, "2", "500", "1"]);
    let output = Command::new(build::path("hakmem"))
        .args(["trace", "top-sites", "trace.hkt"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("allocate (calls.c:") && text.contains("work (calls.c:"),
        "{text}"
    );
}
