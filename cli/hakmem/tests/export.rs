//! `hakmem export`: the figures of a process for monitoring. tests/observe/ checks that a real Prometheus accepts them.

mod support;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};
use support::waiting::Waiting;
use support::{Workshop, library, text};

const HOLDS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 1000; i++) {
        void *volatile block = malloc(100);
    }
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

fn holds(workshop: &Workshop) -> Waiting {
    let mut command = Command::new(workshop.compile("holds", HOLDS, &[]));
    Waiting::start(command.env("LD_PRELOAD", library()))
}

#[test]
fn each_metric_has_its_help_and_type() {
    let workshop = Workshop::open();
    let process = holds(&workshop);
    let pid = process.pid();
    let answer = workshop.hakmem(&["export", &pid, "--prometheus"]);
    answer
        .ended_with(0)
        .says("# HELP hakmem_maps_total mmap\n# TYPE hakmem_maps_total counter\n")
        .says(&format!(
            "hakmem_class_live_blocks{{program=\"holds\",pid=\"{pid}\",block_bytes=\"112\"}} 100"
        ));
    for line in answer.output.lines().filter(|line| !line.starts_with('#')) {
        let name = line.split('{').next().unwrap();
        assert!(answer.output.contains(&format!("# HELP {name} ")), "{name}");
        assert!(answer.output.contains(&format!("# TYPE {name} ")), "{name}");
        let value = line.rsplit(' ').next().unwrap();
        assert!(value.parse::<u64>().is_ok(), "{line}");
    }
}

#[test]
fn each_metric_is_explained() {
    let workshop = Workshop::open();
    let process = holds(&workshop);
    let answer = workshop.hakmem(&["export", &process.pid(), "--prometheus"]);
    let pages = concat!(
        include_str!("../../../docs/statistics.md"),
        include_str!("../../../docs/monitoring.md")
    );
    for line in answer
        .ended_with(0)
        .output
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let name = line.split('{').next().unwrap();
        let figure = name
            .trim_start_matches("hakmem_")
            .trim_start_matches("class_")
            .trim_end_matches("_total");
        assert!(
            [name, figure]
                .iter()
                .any(|word| pages.contains(&format!("`{word}`"))),
            "{name}"
        );
    }
}

#[test]
fn a_file_has_the_same_and_is_whole() {
    let workshop = Workshop::open();
    let process = holds(&workshop);
    let file = workshop.path("hakmem.prom");
    let arguments = [
        "export",
        &process.pid(),
        "--prometheus",
        "--textfile",
        text(&file),
    ];
    workshop.hakmem(&arguments).ended_with(0);
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# HELP hakmem_info ") && written.ends_with('\n'));
    let names = std::fs::read_dir(workshop.folder()).unwrap();
    let beside = names.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with("hakmem.prom.")
    });
    assert_eq!(beside.count(), 0);
}

#[test]
fn only_this_machine_can_ask() {
    let workshop = Workshop::open();
    let process = holds(&workshop);
    workshop
        .hakmem(&[
            "export",
            &process.pid(),
            "--prometheus",
            "--listen",
            "0.0.0.0:0",
        ])
        .is_one_line(
            2,
            "0.0.0.0:0 can be reached from other machines: listen on 127.0.0.1, and let a proxy \
             guard the access",
        );
}

#[test]
fn a_file_that_cannot_be_written_is_named() {
    let workshop = Workshop::open();
    let process = holds(&workshop);
    let arguments = [
        "export",
        &process.pid(),
        "--prometheus",
        "--textfile",
        "/no/such/folder/a.prom",
    ];
    workshop.hakmem(&arguments).is_one_line(
        2,
        "cannot write /no/such/folder/a.prom: No such file or directory (os error 2)",
    );
}

#[test]
fn it_ends_with_the_process() {
    let workshop = Workshop::open();
    let process = holds(&workshop);
    let file = workshop.path("a.prom");
    let arguments = [
        "export",
        &process.pid(),
        "--prometheus",
        "--textfile",
        text(&file),
        "--every",
        "1",
    ];
    let child = workshop
        .command(&arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(process);
    let ended = child.wait_with_output().unwrap();
    // The process may have ended before the first look.
    assert!(ended.status.code().is_some());
    assert!(!ended.stderr.is_empty());
}

/// Nothing updates the file any more: its figures would be taken for current ones.
#[test]
fn who_is_told_to_stop_leaves_no_file() {
    let workshop = Workshop::open();
    let process = holds(&workshop);
    let file = workshop.path("a.prom");
    let told = ["--prometheus", "--textfile", text(&file), "--every", "1"];
    let mut child = workshop
        .command(&[&["export", &process.pid()][..], &told].concat())
        .spawn()
        .unwrap();
    while !file.exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let pid = child.id().to_string();
    Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    let ended = std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap());
    assert_eq!(ended, Some(15));
    assert!(!file.exists());
    assert!(std::fs::read_dir(workshop.folder()).unwrap().all(|entry| {
        let name = entry.unwrap().file_name();
        !name.to_string_lossy().contains("prom")
    }));
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_there() {
        assert!(
            begin.elapsed() < Duration::from_secs(30),
            "{what} did not come"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(signal: &str, child: &Child) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status();
    assert!(sent.unwrap().success());
}

/// Logging out must not stop it: once, the file was then removed and not written again.
#[test]
fn under_nohup_it_goes_on() {
    let workshop = Workshop::open();
    let process = holds(&workshop);
    let file = workshop.path("a.prom");
    let line = format!(
        "trap '' HUP; exec {} export {} --prometheus --textfile {} --every 1",
        env!("CARGO_BIN_EXE_hakmem"),
        process.pid(),
        text(&file)
    );
    let mut child = Command::new("/bin/sh").args(["-c", &line]).spawn().unwrap();
    wait_for("the file", || file.exists());
    send("-HUP", &child);
    let sent = SystemTime::now();
    let is_later = || {
        let data = std::fs::metadata(&file);
        data.is_ok_and(|data| data.modified().unwrap() > sent)
    };
    wait_for("the file's next content", is_later);
    send("-TERM", &child);
    let ended = std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap());
    assert_eq!(ended, Some(15));
    assert!(!file.exists());
}

/// After "e", it runs a program without hakmem for a moment, and then one with hakmem.
const CHANGES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int count, char **words)
{
    char *bare[] = {NULL};
    char preload[4096];
    char *with[] = {preload, NULL};
    char letter;
    if (count == 2) { /* without hakmem */
        usleep(700000);
        snprintf(preload, sizeof(preload), "LD_PRELOAD=%s", words[1]);
        execle("/proc/self/exe", "later", "with", "hakmem", NULL, with);
    }
    if (count == 1) {
        puts("ready");
        fflush(stdout);
        if (read(0, &letter, 1) == 1) {
            char *library = getenv("LD_PRELOAD");
            execle("/proc/self/exe", "bare", library, NULL, bare);
        }
    }
    return read(0, &letter, 1) == 1;
}
"#;

/// A service that is started by wrapper scripts runs several programs in turn.
#[test]
fn it_goes_on_where_a_program_becomes_another() {
    let workshop = Workshop::open();
    let mut command = Command::new(workshop.compile("changes", CHANGES, &[]));
    let mut process = Waiting::start(command.env("LD_PRELOAD", library()));
    let pid = process.pid();
    let file = workshop.path("a.prom");
    let export = ["export", &pid, "--prometheus"];
    let mut writes = workshop.command(&export);
    writes.args(["--every", "1", "--textfile", text(&file)]);
    let mut serves = workshop.command(&export);
    serves.args(["--listen", "127.0.0.1:0"]);
    let both = [&mut writes, &mut serves].map(|command| {
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    });
    wait_for("the file", || file.exists());
    std::thread::sleep(Duration::from_millis(500)); // both have opened the process
    process.tell("e");
    std::thread::sleep(Duration::from_secs(4));
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("program=\"later\"")
            || std::fs::read_to_string(&file)
                .unwrap()
                .contains("program=\"exe\"")
    );
    process.end();
    for child in both {
        let answer = support::Answer::from(child.wait_with_output().unwrap());
        answer.ended_with(0);
        assert_eq!(answer.errors, format!("hakmem: process {pid} has ended\n"));
    }
    assert!(!file.exists());
}

/// A client that sends a letter now and then once blocked all others.
#[test]
fn who_is_slow_keeps_nobody_waiting() {
    let workshop = Workshop::open();
    let process = holds(&workshop);
    let mut child = workshop
        .command(&["export", &process.pid(), "--prometheus"])
        .args(["--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("http://").unwrap();
    let address = address.strip_suffix("/metrics").unwrap().to_string();
    let mut slow = TcpStream::connect(&address).unwrap();
    slow.write_all(b"G").unwrap();
    let slow = std::thread::spawn(move || {
        (0..20).all(|_| {
            std::thread::sleep(Duration::from_millis(500));
            slow.write_all(b"G").is_ok()
        })
    });
    let mut other = TcpStream::connect(&address).unwrap();
    other
        .set_read_timeout(Some(Duration::from_secs(8)))
        .unwrap();
    other
        .write_all(b"GET /metrics?of=heap HTTP/1.1\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    let read = other.read_to_string(&mut answer);
    let mut checker = TcpStream::connect(&address).unwrap();
    checker.write_all(b"HEAD / HTTP/1.1\r\n\r\n").unwrap();
    let mut head = String::new();
    checker.read_to_string(&mut head).unwrap();
    send("-TERM", &child);
    child.wait().unwrap();
    read.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    let (length, rest) = head.split_once("Content-Length: ").expect(&head);
    assert!(length.starts_with("HTTP/1.1 200 OK"), "{head}");
    assert!(
        !rest.starts_with("0\r") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    assert!(!slow.join().unwrap(), "it was listened to for ten seconds");
}

/// Many threads begin and end together; in between, their caches become dead and are purged.
const CROWDS: &str = r#"
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static void *work(void *unused)
{
    void *blocks[200] = {NULL};
    unsigned seed = 1;
    for (int i = 0; i < 1000; i++) {
        int place = rand_r(&seed) % 200;
        free(blocks[place]);
        blocks[place] = malloc(16 + rand_r(&seed) % 3000);
    }
    for (int i = 0; i < 200; i++) {
        free(blocks[i]);
    }
    return unused;
}
int main(void)
{
    struct pollfd input = {0, POLLIN, 0};
    puts("ready");
    fflush(stdout);
    do {
        for (int crowd = 0; crowd < 5; crowd++) {
            pthread_t threads[100];
            for (int i = 0; i < 100; i++) {
                pthread_create(&threads[i], NULL, work, NULL);
            }
            for (int i = 0; i < 100; i++) {
                pthread_join(threads[i], NULL);
            }
        }
    } while (poll(&input, 1, 1500) == 0);
    return 0;
}
"#;

/// Readers take a decreasing counter for a restart, and its whole value for new. And blocks that moved during a read were once
/// counted as some 2^64.
#[test]
fn counters_only_grow() {
    let workshop = Workshop::open();
    let mut command = Command::new(workshop.compile("crowds", CROWDS, &["-pthread"]));
    let process = Waiting::start(command.env("LD_PRELOAD", library()));
    let pid = process.pid();
    let mut last: HashMap<String, u64> = HashMap::new();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(8) {
        let answer = workshop.hakmem(&["export", &pid, "--prometheus"]);
        for line in answer.ended_with(0).output.lines() {
            let Some((name, value)) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))
            else {
                continue;
            };
            let value: u64 = value.parse().unwrap();
            assert!(value < 1 << 50, "{line}");
            if name.contains("_total{") {
                let before = last.insert(name.into(), value).unwrap_or(0);
                assert!(before <= value, "{name}: {before}, then {value}");
            }
        }
    }
}
