//! `hakmem replay` makes exactly the calls of the trace: every call of every thread, on the same block. They are compared with
//! the tally of another library.

mod support;

use hakmem_trace::event::Kind;
use hakmem_trace::order::{Ordered, What};
use hakmem_trace::reader::Reader;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::process::{Command, Output};
use support::build::{self, Tally};

/// A call: its kind, its arguments, and the allocation that its block came from: the thread, and the number of the call there.
/// `named_alike` names the threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Call {
    kind: u8,
    size: u64,
    alignment: u64,
    origin: Option<(u64, usize)>,
}

type Threads = BTreeMap<u64, Vec<Call>>;

/// Adds a call, and finds the origin of its block.
fn add(
    threads: &mut Threads,
    live: &mut HashMap<u64, (u64, usize)>,
    thread: u64,
    block: u64,
    call: Call,
) {
    let calls = threads.entry(thread).or_default();
    let gives = Kind::from_number(call.kind).unwrap().gives();
    let origin = if gives {
        live.insert(block, (thread, calls.len()));
        None
    } else {
        live.remove(&block)
    };
    calls.push(Call { origin, ..call });
}

fn of_trace(path: &Path) -> Threads {
    let reader = Reader::open(path).unwrap();
    let mut ordered = Ordered::new(&reader, 1).unwrap();
    let (mut threads, mut live) = (Threads::new(), HashMap::new());
    while let Some(step) = ordered.step().unwrap() {
        let thread = u64::from(ordered.threads[step.thread]);
        let call = |kind: Kind, size, alignment| Call {
            kind: kind as u8,
            size,
            alignment,
            origin: None,
        };
        let slot = u64::from(step.slot);
        let mut put = |call| add(&mut threads, &mut live, thread, slot, call);
        match step.what {
            What::Malloc => put(call(Kind::Malloc, step.size, 0)),
            What::Calloc => put(call(Kind::Calloc, step.size, 0)),
            What::Aligned { log2 } => put(call(Kind::Aligned, step.size, 1 << log2)),
            What::Free => put(call(Kind::Free, 0, 0)),
            What::Realloc => {
                put(call(Kind::ReallocFrom, 0, 0));
                put(call(Kind::ReallocTo, step.size, 0));
            }
            What::Failed | What::ForeignFree => {}
        }
    }
    threads
}

fn of_replay(path: &Path) -> Threads {
    let (mut threads, mut live) = (Threads::new(), HashMap::new());
    for line in Tally::read(path) {
        if line.thread != line.process {
            // The first thread only directs the others; it is not the program's.
            let call = Call {
                kind: line.kind as u8,
                size: line.size,
                alignment: line.alignment,
                origin: None,
            };
            add(
                &mut threads,
                &mut live,
                line.thread as u64,
                line.address,
                call,
            );
        }
    }
    threads
}

/// Gives threads the same names in both: they are sorted by their calls, which differ between threads.
fn named_alike(threads: Threads) -> Vec<Vec<Call>> {
    let plain = |calls: &[Call]| -> Vec<(u8, u64, u64)> {
        calls
            .iter()
            .map(|call| (call.kind, call.size, call.alignment))
            .collect()
    };
    let mut order: Vec<u64> = threads.keys().copied().collect();
    order.sort_by_key(|thread| plain(&threads[thread]));
    let names: HashMap<u64, u64> = order
        .iter()
        .enumerate()
        .map(|(name, &thread)| (thread, name as u64))
        .collect();
    order
        .iter()
        .map(|thread| {
            let mut calls = threads[thread].clone();
            for call in &mut calls {
                call.origin = call.origin.map(|(thread, at)| (names[&thread], at));
            }
            calls
        })
        .collect()
}

fn record(folder: &Path, arguments: &[&str]) -> std::path::PathBuf {
    let trace = folder.join("trace.hkt");
    Command::new(build::path("hakmem"))
        .args(["record", "-o"])
        .arg(&trace)
        .args(["--", &build::path("tests/trace_calls")])
        .args(arguments)
        .output()
        .unwrap();
    trace
}

fn replay(trace: &Path, arguments: &[&str]) -> Output {
    Command::new(build::path("hakmem"))
        .arg("replay")
        .arg(trace)
        .args(arguments)
        .output()
        .unwrap()
}

fn check(arguments: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let trace = record(folder.path(), arguments);
    let tally = folder.path().join("tally");
    let allocator = format!(
        "tally={}+TALLY={}",
        build::path("tests/libtally.so"),
        tally.display()
    );
    // One plain run and one with latencies: the tally contains both, and the second is compared.
    let output = replay(&trace, &["-n", "1", "-a", &allocator, "--json"]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let lines = Tally::read(&tally);
    let last = lines.last().unwrap().process;
    let bytes = std::fs::read(&tally).unwrap();
    let first = lines.iter().position(|line| line.process == last).unwrap();
    std::fs::write(&tally, &bytes[first * 40..]).unwrap();
    let expected = named_alike(of_trace(&trace));
    let found = named_alike(of_replay(&tally));
    assert_eq!(expected.len(), found.len(), "threads");
    for (expected, found) in expected.iter().zip(&found) {
        let different = expected
            .iter()
            .zip(found)
            .position(|(one, other)| one != other);
        let around = |calls: &[Call]| different.map(|at| calls[at]);
        assert_eq!(around(expected), around(found), "call {different:?}");
        assert_eq!(expected.len(), found.len(), "calls");
    }
}

#[test]
fn one_thread() {
    check(&["1", "5000", "1"]);
}

#[test]
fn threads_that_free_each_others_blocks() {
    check(&["4", "10000", "2"]);
}

#[test]
fn threads_that_come_and_go() {
    check(&["4", "1000", "3", "churn"]);
}

#[test]
fn an_allocator_that_crashes_is_refused_and_the_others_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let trace = record(folder.path(), &["2", "500", "1"]);
    let source = folder.path().join("crash.c");
    let library = folder.path().join("libcrash.so");
    std::fs::write(
        &source,
        "#include <stddef.h>\nvoid *malloc(size_t n) { (void)n; __builtin_trap(); }\n\
         void *calloc(size_t c, size_t n) { return malloc(c * n); }\n\
         void *realloc(void *b, size_t n) { (void)b; return malloc(n); }\n\
         void free(void *b) { (void)b; }\n\
         int posix_memalign(void **b, size_t a, size_t n) { (void)a; *b = malloc(n); return 0; }\n\
         void *aligned_alloc(size_t a, size_t n) { (void)a; return malloc(n); }\n\
         void *memalign(size_t a, size_t n) { (void)a; return malloc(n); }\n\
         size_t malloc_usable_size(void *b) { (void)b; return 0; }\n",
    )
    .unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-fno-builtin", "-o"])
        .args([&library, &source])
        .status()
        .unwrap();
    assert!(compiled.success());
    let allocators = format!("crash={},hakmem", library.display());
    let output = replay(&trace, &["-n", "1", "-a", &allocators]);
    let (out, line) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(1), "{line}");
    assert!(line.contains("crash: refused: ended by SIG"), "{line}");
    assert!(out.contains("\nhakmem") && out.contains("\nglibc"), "{out}");
}

#[test]
fn what_is_no_trace_is_said_in_one_line() {
    let output = replay(Path::new("/etc/hostname"), &[]);
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        line.contains("/etc/hostname is not a trace") && line.lines().count() == 1,
        "{line}"
    );
}
