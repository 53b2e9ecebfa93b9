//! Frames of Python programs, for each installed interpreter: function, file and line, in place of the interpreter's own code.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;
use support::waiting::Waiting;
use support::{Workshop, library, text};

/// Each function that is named by a comment behind a line keeps one block, which is large enough to be sampled. Without a
/// global lock, objects come from the interpreter's own allocator, which maps memory itself.
const ORDERS: &str = r#"
import _thread, json, os, sys, sysconfig, threading
KEPT = []
MAKE = "bytearray"
if sysconfig.get_config_var("Py_GIL_DISABLED"):
    MAKE = "__import__('ctypes').CDLL(None).malloc"
make = eval(MAKE)
def keep():
    KEPT.append(make(200_000))  # keep
class Orders:
    def export(self):
        return (1 +
                self.add())  # export
    def add(self):
        keep()
        return 2
def numbers():
    yield 1
    keep()  # numbers
    yield 2
def total():
    return sum(numbers())  # total
def doubled():
    return [keep() for _ in range(1)]  # doubled
def encode(value):
    keep()  # encode
    return "é"
def as_text():
    return json.dumps([object()], default=encode)  # as_text
def deep(depth):
    if depth:
        return deep(depth - 1)  # deep
    keep()
def nämlich():
    keep()  # nämlich
def compiled():
    exec(compile("def made():\n\n  keep()\nmade()", "<made>", "exec"), {"keep": keep})
def in_thread():
    keep()  # in_thread
def in_child():
    keep()  # in_child
def in_interpreter():
    names = {11: "_xxsubinterpreters", 12: "_xxsubinterpreters"}
    interpreters = __import__(names.get(sys.version_info[1], "_interpreters"))
    KEPT.append(interpreters.create())
    interpreters.run_string(KEPT[-1], f"def inner():\n  return {MAKE}(200_000)\nkept = inner()")
Orders().export()
total()
doubled()
as_text()
deep(300)
nämlich()
for _ in range(50):
    compiled()
thread = threading.Thread(target=in_thread)
thread.start()
thread.join()
# Before there are more interpreters: with them 3.13.0 does not survive a fork.
told, tells = os.pipe()
child = os.fork()
if child == 0:
    in_child()
    os.write(tells, b".")
    os.read(0, 1)
    os._exit(0)
os.read(told, 1)
in_interpreter()
print("ready", flush=True)
print(child, flush=True)
os.read(0, 1)
"#;

/// At its end, threads are in SQLite without the interpreter's lock.
const ENDS: &str = r#"
import sqlite3, sys, threading, time
def insert_rows():
    while True:
        base = sqlite3.connect(":memory:")
        base.execute("create table t (a)")
        base.executemany("insert into t values (zeroblob(3000 + ?))", ((i % 9,) for i in range(2000)))
for _ in range(3):
    threading.Thread(target=insert_rows, daemon=True).start()
if len(sys.argv) > 1:
    print("ready", flush=True)
    sys.stdin.read(1)
time.sleep(0.2)
"#;

/// CPython 3.11 and later, one of each version, from the path and from pyenv's folders.
fn interpreters() -> Vec<PathBuf> {
    let home = std::env::var("HOME").unwrap_or_default();
    let versions = Path::new(&home).join(".pyenv/versions");
    let kept = std::fs::read_dir(versions).into_iter().flatten().flatten();
    let kept = kept.map(|version| version.path().join("bin/python3"));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let versions =
        (11..20).flat_map(|minor| ["", "t"].map(|kind| format!("python3.{minor}{kind}")));
    let names: Vec<String> = versions.chain(["python3".into()]).collect();
    let on_path = std::env::split_paths(&paths).flat_map(|folder| {
        names
            .iter()
            .map(move |name| folder.join(name))
            .collect::<Vec<_>>()
    });
    let mut found: Vec<(String, PathBuf)> = Vec::new();
    for path in kept.chain(on_path).filter(|path| path.is_file()) {
        // Wrappers are scripts; the interpreter itself tells its own path.
        let tells = "import sys; print(sys.version_info >= (3, 11), sys.version, sys.executable, sep='\\n')";
        let Ok(answer) = Command::new(&path).args(["-c", tells]).output() else {
            continue;
        };
        let answer = String::from_utf8_lossy(&answer.stdout).into_owned();
        let mut lines = answer.lines();
        let is_new = lines.next() == Some("True");
        let (Some(version), Some(path)) = (lines.next(), answer.lines().last()) else {
            continue;
        };
        if is_new && found.iter().all(|(known, _)| known != version) {
            found.push((version.into(), path.into()));
        }
    }
    if found.is_empty() {
        println!("skipped: no CPython from 3.11 on is installed");
    }
    found.into_iter().map(|(_, path)| path).collect()
}

/// The values of PYTHONMALLOC: without a global lock, the interpreter has only one allocator.
fn allocators(python: &Path) -> Vec<&'static str> {
    let mut command = Command::new(python);
    let answer = command
        .args(["-c", ""])
        .env("PYTHONMALLOC", "malloc")
        .output();
    match answer.is_ok_and(|answer| answer.status.success()) {
        true => vec!["default", "malloc"],
        false => vec!["default"],
    }
}

fn sampled(python: &Path, program: &Path, allocator: &str) -> Command {
    let mut command = Command::new(python);
    command.arg(program);
    command.env("LD_PRELOAD", library());
    command.env("HAKMEM_SAMPLE_BYTES", "131072");
    command.env("HAKMEM_SAMPLE_RATE", "0"); // or fast allocations might leave a block of 200,000 bytes unsampled
    command.env("PYTHONMALLOC", allocator);
    command
}

/// The stacks of a process, one per line, the innermost function first.
fn stacks(workshop: &Workshop, pid: &str) -> Vec<String> {
    let answer = workshop.hakmem(&["leaks", pid, "--all", "--json"]);
    answer.ended_with(0);
    let value: serde_json::Value = serde_json::from_str(&answer.output).unwrap();
    let sites = value["sites"].as_array().unwrap().clone();
    let frames = sites
        .iter()
        .map(|site| site["frames"].as_array().unwrap().clone());
    let texts = frames.map(|frames| {
        let texts: Vec<String> = frames
            .iter()
            .map(|frame| frame.as_str().unwrap().into())
            .collect();
        texts.join(" < ")
    });
    texts.collect()
}

/// "file:line" of the line with this comment.
fn at(file: &Path, comment: &str) -> String {
    let line = ORDERS
        .lines()
        .position(|line| line.ends_with(&format!("# {comment}")));
    format!("{}:{}", text(file), line.unwrap() + 1)
}

fn check(stacks: &[String], parts: &[&str]) {
    let has_all = |stack: &&String| {
        let mut rest = stack.as_str();
        parts.iter().all(|part| {
            let found = rest.find(part);
            rest = found.map_or("", |at| &rest[at + part.len()..]);
            found.is_some()
        })
    };
    let found = stacks.iter().find(has_all);
    assert!(
        found.is_some(),
        "{parts:?} is not among\n{}",
        stacks.join("\n")
    );
}

#[test]
fn python_programs_have_their_own_frames() {
    let workshop = Workshop::open();
    let file = workshop.write("orders.py", ORDERS);
    let place = |name: &str, comment: &str| format!("{name} ({})", at(&file, comment));
    for python in interpreters() {
        for allocator in allocators(&python) {
            println!("{} with {allocator}", text(&python));
            let mut process = Waiting::start(&mut sampled(&python, &file, allocator));
            let child = process.next_line();
            let found = stacks(&workshop, &process.pid());
            let kept = place("keep", "keep");
            let export = place("Orders.export", "export");
            check(
                &found,
                &[&kept, " < Orders.add (", &export, " < <module> (", "_start"],
            );
            check(
                &found,
                &[
                    &kept,
                    &place("numbers", "numbers"),
                    &place("total", "total"),
                ],
            );
            check(&found, &[&kept, &place("doubled", "doubled")]);
            let (encode, as_text) = (place("encode", "encode"), place("as_text", "as_text"));
            check(&found, &[&kept, &encode, "dumps (", &as_text]);
            check(
                &found,
                &[&kept, &place("deep", "deep"), "more callers: 128 frames"],
            );
            check(&found, &[&kept, &place("nämlich", "nämlich")]);
            check(
                &found,
                &[
                    &kept,
                    " < made (<made>:3) < <module> (<made>:4)",
                    "compiled (",
                ],
            );
            check(
                &found,
                &[
                    &kept,
                    &place("in_thread", "in_thread"),
                    "Thread.run",
                    "clone",
                ],
            );
            check(&found, &["inner (<", ">:2) < <module> (<", ">:3)"]);
            assert!(
                found.iter().all(|stack| !stack.contains("keep (")
                    || !stack.contains("_PyEval_EvalFrameDefault"))
            );
            check(
                &stacks(&workshop, child.trim()),
                &[&kept, &place("in_child", "in_child")],
            );
            process.tell("..");
        }
    }
}

#[test]
fn threads_that_gave_the_lock_away_have_frames_until_the_interpreter_ends() {
    let workshop = Workshop::open();
    let file = workshop.write("ends.py", ENDS);
    for python in interpreters() {
        for _ in 0..3 {
            let mut command = sampled(&python, &file, "default");
            let answer = command.env("HAKMEM_SAMPLE_BYTES", "256").output().unwrap();
            assert!(answer.status.success(), "{}: {answer:?}", text(&python));
        }
        let mut command = sampled(&python, &file, "default");
        let mut process = Waiting::start(command.arg("waits").env("HAKMEM_SAMPLE_BYTES", "65536"));
        let answer = workshop.hakmem(&["profile", &process.pid(), "--seconds", "1", "--json"]);
        answer.ended_with(0).says("insert_rows (").says("ends.py:7");
        process.tell(".");
    }
}
