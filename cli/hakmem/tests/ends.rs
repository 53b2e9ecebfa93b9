//! Commands with a process that ends, or executes another program, while they look at it.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::waiting::Waiting;
use support::{Answer, Workshop, library, text};

/// Allocates until it reads a letter. With "e" it executes `cat`, which ends with its input.
const BUSY: &str = r#"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *kept[1000];
__attribute__((noinline)) void *pass(int bytes) { void *volatile block = malloc(bytes); return block; }
int main(void)
{
    struct pollfd input = {0, POLLIN, 0};
    char letter = 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    puts("ready");
    for (int i = 0; poll(&input, 1, 0) == 0; i = (i + 1) % 1000) {
        free(kept[i]);
        kept[i] = pass(2000);
    }
    if (read(0, &letter, 1) == 1 && letter == 'e') {
        execl("/bin/cat", "cat", (char *)NULL);
    }
    return 0;
}
"#;

fn busy(workshop: &Workshop) -> Waiting {
    let program = workshop.compile("busy", BUSY, &[]);
    Waiting::start(Command::new(program).env("LD_PRELOAD", library()))
}

/// How the process goes away.
#[derive(Clone, Copy)]
enum Way {
    Ends,
    Becomes,
}

impl Way {
    const BOTH: [Way; 2] = [Way::Ends, Way::Becomes];

    fn go(self, process: &mut Waiting) {
        match self {
            Way::Ends => process.end(),
            Way::Becomes => process.tell("e"),
        }
    }

    fn line(self, pid: &str) -> String {
        match self {
            Way::Ends => format!("process {pid} has ended"),
            Way::Becomes => format!("process {pid} has become another program (exec)"),
        }
    }
}

fn start(workshop: &Workshop, arguments: &[&str]) -> Child {
    let mut command = workshop.command(arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn wait_for(what: &str, is_there: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_there() {
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "{what} did not come"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_sampled(workshop: &Workshop, pid: &str) -> bool {
    let options = workshop.hakmem(&["options", pid]).output;
    let mut lines = options.lines();
    let line = lines.find(|line| line.starts_with("sample_bytes")).unwrap();
    line.split_whitespace().nth(1) != Some("0")
}

/// The process goes away after something was sampled.
fn profiled(workshop: &Workshop, way: Way, more: &[&str]) -> (Answer, String) {
    let mut process = busy(workshop);
    let pid = process.pid();
    let look = ["profile", &pid, "--seconds", "600", "--every", "16384"];
    let child = start(workshop, &[&look, more].concat());
    wait_for("sampling", || is_sampled(workshop, &pid));
    std::thread::sleep(Duration::from_secs(2)); // on a busy machine, too, it was looked at by then
    way.go(&mut process);
    let answer = Answer::from(child.wait_with_output().unwrap());
    (answer, way.line(&pid))
}

#[test]
fn a_profile_of_what_goes_away_is_part_and_not_lost() {
    for way in Way::BOTH {
        let workshop = Workshop::open();
        let files = [
            "--save",
            "saved",
            "--flamegraph",
            "graph",
            "--pprof",
            "pprof",
        ];
        let (answer, line) = profiled(&workshop, way, &files);
        answer
            .ended_with(0)
            .says(&format!("{line}: the result is partial"))
            .says("pass (busy) < main (busy)");
        assert!(workshop.path("graph").exists() && workshop.path("pprof").exists());
        workshop
            .hakmem(&["diff", "saved", "saved"])
            .ended_with(0)
            .says(&format!("before: {line}: the result is partial"));
    }
}

/// Waits until the process does nothing but wait for the time of its next look.
fn wait_until_asleep(pid: u32) {
    let state = || {
        let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let rest = text.rsplit_once(") ").unwrap().1;
        let words: Vec<String> = rest.split(' ').map(String::from).collect();
        (words[0] == "S").then(|| words[11].clone()) // together with its CPU time
    };
    let mut seen = None;
    let mut times = 0;
    while times < 4 {
        std::thread::sleep(Duration::from_millis(20));
        let now = state();
        times = if now.is_some() && now == seen {
            times + 1
        } else {
            0
        };
        seen = now;
    }
}

#[test]
fn why_compares_with_what_was_seen_last() {
    for way in Way::BOTH {
        let workshop = Workshop::open();
        let mut process = busy(&workshop);
        let pid = process.pid();
        let child = start(&workshop, &["why", &pid, "--seconds", "600"]);
        wait_until_asleep(child.id());
        way.go(&mut process);
        Answer::from(child.wait_with_output().unwrap())
            .ended_with(0)
            .says(&format!("{}: the result is partial", way.line(&pid)))
            .says("resident memory: ");
    }
}

#[test]
fn top_and_export_say_why_they_end() {
    for way in Way::BOTH {
        let workshop = Workshop::open();
        let mut process = busy(&workshop);
        let pid = process.pid();
        let mut top = start(&workshop, &["top", &pid, "-n", "1000", "-d", "0.1"]);
        let mut lines = BufReader::new(top.stdout.take().unwrap()).lines();
        assert!(lines.nth(1).unwrap().unwrap().contains("MiB")); // the line below the header
        let file = workshop.path("figures.prom");
        let export = ["export", &pid, "--prometheus", "--every", "1", "--textfile"];
        let mut export = start(&workshop, &[&export[..], &[text(&file)]].concat());
        wait_for("the file", || file.exists());
        way.go(&mut process);
        let line = format!("hakmem: {}\n", way.line(&pid));
        lines.for_each(drop);
        let top = Answer::from(top.wait_with_output().unwrap());
        assert_eq!(top.ended_with(0).errors, line);
        if matches!(way, Way::Becomes) {
            // That program uses hakmem, too, so sampling continues to the end.
            let has_both = || {
                std::fs::read_to_string(&file)
                    .unwrap()
                    .contains("program=\"cat\"")
            };
            wait_for("the other program's figures", has_both);
            assert!(export.try_wait().unwrap().is_none());
            process.end();
        }
        let export = Answer::from(export.wait_with_output().unwrap());
        assert_eq!(
            export.ended_with(0).errors,
            format!("hakmem: {}\n", Way::Ends.line(&pid))
        );
        assert!(!file.exists());
    }
}

/// The process may go away at any moment of a read: the answer is complete, or an error line. Partial reads once counted as
/// complete.
#[test]
fn what_goes_away_in_the_middle_is_no_finding() {
    let workshop = Workshop::open();
    let program = workshop.compile("busy", BUSY, &[]);
    let looks: [(&[&str], &str); 3] = [
        (&["doctor"], "malloc is hakmem"),
        (&["profile", "--allocated"], "pass (busy) < main (busy)"),
        (&["verify"], "\n  uses hakmem\n"),
    ];
    for (look, finding) in looks {
        let mut time = Duration::ZERO;
        for part in 0..7 {
            let way = Way::BOTH[part % 2];
            let mut command = Command::new(&program);
            command.env("LD_PRELOAD", library());
            let mut process = Waiting::start(command.env("HAKMEM_SAMPLE_BYTES", "4096"));
            let pid = process.pid();
            let begin = Instant::now();
            let child = start(&workshop, &[look, &[&pid]].concat());
            if part == 0 {
                child.wait_with_output().unwrap();
                time = begin.elapsed();
                continue;
            }
            std::thread::sleep(time * (part as u32 - 1) / 6);
            way.go(&mut process);
            let answer = Answer::from(child.wait_with_output().unwrap());
            let has_ended = format!("there is no process {pid}, or it has just ended");
            let was_other = format!("process {pid}: cat\n"); // it executed `cat` before it was looked at
            match answer.errors.as_str() {
                "" => assert!(
                    answer.output.contains(finding) || answer.output.starts_with(&was_other),
                    "{}",
                    answer.output
                ),
                line => assert!(
                    line.contains(&way.line(&pid))
                        || line.contains(&has_ended)
                        || line.contains("it has become another program (exec)")
                        || line.contains("hakmem is loaded there, but has not started yet"),
                    "{line}"
                ),
            }
        }
    }
}

/// Its other threads continue, and it keeps its number, but /proc tells nothing under that number.
#[test]
fn a_process_whose_first_thread_has_ended_is_there() {
    const HEADLESS: &str = r#"
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void pass(void) { void *volatile block = malloc(3000); free(block); }
static void *work(void *first)
{
    struct pollfd input = {0, POLLIN, 0};
    pthread_join(*(pthread_t *)first, NULL);
    puts("ready");
    while (poll(&input, 1, 0) == 0) {
        pass();
    }
    exit(0);
}
int main(void)
{
    static pthread_t first, other;
    setvbuf(stdout, NULL, _IONBF, 0);
    first = pthread_self();
    pthread_create(&other, NULL, work, &first);
    pthread_exit(NULL);
}
"#;
    let workshop = Workshop::open();
    let program = workshop.compile("headless", HEADLESS, &["-pthread"]);
    let process = Waiting::start(Command::new(program).env("LD_PRELOAD", library()));
    let pid = process.pid();
    let look = ["profile", &pid, "--seconds", "0.5", "--every", "16384"];
    let answer = workshop.hakmem(&look);
    answer
        .ended_with(0)
        .says("pass (headless) < work (headless)");
    for command in [
        "stats", "ledger", "leaks", "why", "map", "options", "failures", "doctor",
    ] {
        let answer = workshop.hakmem(&[command, &pid]);
        answer.ended_with(0);
        assert_eq!(answer.errors, "", "{command}");
    }
    workshop.hakmem(&["doctor", &pid]).says("malloc is hakmem");
    let verified = workshop.hakmem(&["verify", &pid]);
    verified.ended_with(0).says("uses hakmem");
    let figures = workshop.hakmem(&["export", &pid, "--prometheus"]);
    let resident = format!("hakmem_resident_bytes{{program=\"headless\",pid=\"{pid}\"}} 0\n");
    assert!(!figures.ended_with(0).output.contains(&resident));
    let top = workshop.hakmem(&["top", &pid, "-n", "2", "-d", "0.1"]);
    assert_eq!(top.ended_with(0).output.lines().count(), 3);
}

/// The tool that ends first leaves sampling on for the other.
#[test]
fn two_profiles_at_once_are_both_whole() {
    let workshop = Workshop::open();
    let process = busy(&workshop);
    let pid = process.pid();
    let profile = ["profile", &pid, "--every", "16384", "--seconds"];
    let long = start(&workshop, &[&profile[..], &["600"]].concat());
    wait_for("sampling", || is_sampled(&workshop, &pid));
    let short = workshop.hakmem(&[&profile[..], &["0.5"]].concat());
    short.ended_with(0).says("pass (busy) < main (busy)");
    assert!(is_sampled(&workshop, &pid));
    let mut kill = Command::new("kill");
    kill.args(["-TERM", &long.id().to_string()]);
    assert!(kill.status().unwrap().success());
    let long = Answer::from(long.wait_with_output().unwrap());
    long.ended_with(0).says("pass (busy) < main (busy)");
    assert!(!is_sampled(&workshop, &pid));
}

#[test]
fn leaks_names_what_was_there_before_exec() {
    const BECOMES: &str = r#"
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 100; i++) {
        void *volatile block = malloc(1000);
    }
    execl("/bin/true", "true", (char *)NULL);
    return 1;
}
"#;
    let workshop = Workshop::open();
    let program = workshop.compile("becomes", BECOMES, &[]);
    let line = "became other programs by exec, and their blocks are not shown: ";
    workshop
        .hakmem(&["leaks", "--exit", "--", text(&program)])
        .ended_with(0)
        .says(&format!("{line}{} (process ", text(&program)));
    // A child before its first exec did not execute another program.
    let plain = workshop.hakmem(&["leaks", "--exit", "--", "/bin/sh", "-c", "/bin/true; true"]);
    assert!(
        !plain.ended_with(0).output.contains(line),
        "{}",
        plain.output
    );
}

#[test]
fn what_a_program_leaves_running_goes_on() {
    for command in [["run", "--stats"], ["leaks", "--exit"]] {
        let workshop = Workshop::open();
        let program = ["--", "sh", "-c", "(sleep 5; touch done) & exit 0"];
        let said = workshop.hakmem(&[&command[..], &program].concat());
        said.ended_with(0);
        let all = said.output.clone() + &said.errors;
        assert!(
            all.contains("2 processes still run, and are not counted"),
            "{all}"
        );
        let until = Instant::now() + Duration::from_secs(20);
        while !workshop.path("done").exists() {
            assert!(Instant::now() < until, "it was ended");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}
