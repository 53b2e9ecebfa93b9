//! `hakmem snapshot`: commands show the same for the file as for the process, and it contains nothing of the program's data.

mod support;

use hakmem_heap::snapshot::Image;
use serde_json::Value;
use std::process::Command;
use support::dump::dump;
use support::waiting::Waiting;
use support::{Workshop, library, text};

/// In live and freed blocks, in a variable and on the stack; the program's file contains it in another form.
const SECRET: &str = "nobody may see me";
const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char variable[100000];
static void fill(char *to, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        to[i] = "jkfk`}$ie}$waa$ia"[i % 17] ^ 4;
    }
}
__attribute__((noinline)) void keep_some(int count)
{
    for (int i = 0; i < count; i++) {
        size_t bytes = 16 + i * 37 % 3000;
        char *volatile block = malloc(bytes);
        fill(block, bytes);
        if (i % 3 == 0) {
            free(block);
        }
    }
}
int main(void)
{
    char stack[1000];
    setvbuf(stdout, NULL, _IONBF, 0);
    fill(variable, sizeof variable);
    fill(stack, sizeof stack);
    keep_some(6000);
    for (int i = 0; i < 4; i++) {
        char *volatile block = malloc(200000 * (i + 1));
        fill(block, 200000 * (i + 1));
    }
    puts("ready");
    for (char what; read(0, &what, 1) == 1;) {
        keep_some(30000);
        puts("grown");
    }
    return stack[0] == variable[1];
}
"#;

fn start(workshop: &Workshop, environment: &[(&str, &str)]) -> Waiting {
    let program = workshop.compile("keeper", PROGRAM, &[]);
    let mut command = Command::new(program);
    Waiting::start(command.envs(environment.iter().copied()))
}

fn under_hakmem(workshop: &Workshop) -> Waiting {
    let library = library();
    let environment = [
        ("LD_PRELOAD", text(&library)),
        ("HAKMEM_PURGER", "0"), // freed blocks stay where they are
        ("HAKMEM_ACE", "0"),
        ("HAKMEM_SAMPLE_BYTES", "4096"),
    ];
    start(workshop, &environment)
}

fn take(workshop: &Workshop, process: &Waiting, name: &str) -> Image {
    workshop
        .hakmem(&["snapshot", &process.pid(), "-o", name])
        .ended_with(0)
        .says("no contents of the program's memory");
    Image::open(&workshop.path(name)).unwrap()
}

fn json(workshop: &Workshop, arguments: &[&str]) -> Value {
    let answer = workshop.hakmem(arguments);
    serde_json::from_str(&answer.ended_with(0).output).unwrap()
}

fn has(bytes: &[u8], wanted: &str) -> bool {
    // No part of it may be there either.
    let parts: Vec<&[u8]> = wanted.as_bytes().windows(8).collect();
    bytes.windows(8).any(|eight| parts.contains(&eight))
}

#[test]
fn nothing_that_the_program_holds_is_in_it() {
    let workshop = Workshop::open();
    for environment in [true, false] {
        let process = match environment {
            true => under_hakmem(&workshop),
            false => start(&workshop, &[]),
        };
        let image = take(&workshop, &process, "kept.hks");
        assert_eq!(environment, image.memory_bytes() > 10_000);
        assert!(!has(image.text.as_bytes(), SECRET));
        for (start, bytes) in image.stretches() {
            assert!(!has(bytes, SECRET), "{start:#x}");
        }
        dump(&process.pid(), &workshop.path("core"), |_, _| {});
        let core = std::fs::read(workshop.path("core")).unwrap();
        let mut places = core.windows(SECRET.len());
        let is_there = places.any(|place| place == SECRET.as_bytes());
        assert!(is_there, "it is not seen where it is");
        let bytes = std::fs::metadata(workshop.path("kept.hks")).unwrap().len();
        assert!(bytes < 200_000, "{bytes}");
    }
}

#[test]
fn commands_say_the_same_of_it_as_of_the_process() {
    let workshop = Workshop::open();
    let mut process = under_hakmem(&workshop);
    let pid = process.pid();
    take(&workshop, &process, "first.hks"); // makes pages of hakmem's own data resident
    take(&workshop, &process, "kept.hks");
    for command in ["stats", "options", "failures", "explain", "ledger"] {
        let live = json(&workshop, &[command, &pid, "--json"]);
        let kept = json(&workshop, &[command, "--core", "kept.hks", "--json"]);
        assert_eq!(live, kept, "{command}");
    }
    let sites = |arguments: &[&str]| {
        let profile = json(&workshop, arguments);
        let sites = profile["sites"].as_array().unwrap().iter();
        let sites = sites.map(|site| (site["frames"].clone(), site["live"].clone()));
        sites.collect::<Vec<_>>()
    };
    let live = sites(&["profile", &pid, "--live", "--json"]);
    process.end();
    std::fs::remove_file(workshop.path("keeper")).unwrap();
    assert_eq!(live, sites(&["profile", "--core", "kept.hks", "--json"]));
    for (arguments, part) in [
        (&["leaks", "--core", "kept.hks"][..], "keep_some"),
        (&["why", "--core", "kept.hks"], "slabs that are at most"),
        (&["map", "--core", "kept.hks"], "a line: a superslab"),
        (&["map", "--core", "kept.hks", "--html", "map.html"], ""),
        (&["doctor", "kept.hks"], "malloc is hakmem"),
        (&["stats", "--core", "kept.hks"], "keeper"),
    ] {
        workshop.hakmem(arguments).ended_with(0).says(part);
    }
}

#[test]
fn another_allocators_heap_is_kept_as_the_doctor_sees_it() {
    let workshop = Workshop::open();
    let mut process = start(&workshop, &[]);
    let pid = process.pid();
    take(&workshop, &process, "one.hks");
    let live = json(&workshop, &["doctor", &pid, "--json"]);
    let kept = json(&workshop, &["doctor", "one.hks", "--json"]);
    for path in ["glibc", "ledger", "allocators", "judgement", "threads"] {
        assert_eq!(live[path], kept[path], "{path}");
    }
    process.answers("g", "grown");
    take(&workshop, &process, "two.hks");
    process.end();
    workshop
        .hakmem(&["diff", "one.hks", "two.hks"])
        .ended_with(0)
        .says("blocks in use")
        .says("up to ")
        .says("call stacks are not known");
    for (arguments, part) in [
        (&["map", "--core", "two.hks"][..], "main arena"),
        (&["ledger", "--core", "two.hks"], "glibc's heap"),
        (&["stats", "--core", "two.hks"], "ends of arenas"),
        (&["doctor", "two.hks"], "'hakmem diff' of this snapshot"),
    ] {
        workshop.hakmem(arguments).ended_with(0).says(part);
    }
    workshop
        .hakmem(&[
            "map", "--core", "two.hks", "--svg", "two.svg", "--png", "two.png",
        ])
        .ended_with(0);
    let svg = std::fs::read_to_string(workshop.path("two.svg")).unwrap();
    for part in ["in use in ", "glibc, main arena", "free, and resident"] {
        assert!(svg.contains(part), "{part}");
    }
    let png = std::fs::read(workshop.path("two.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"), "{} bytes", png.len());
    workshop
        .hakmem(&["options", "--core", "two.hks"])
        .is_one_line(1, "two.hks: hakmem is not in it");
    workshop
        .hakmem(&["diff", "one.hks", "two.hks", "--flamegraph", "grew.html"])
        .ended_with(0)
        .says("call stacks are not known");
    let page = std::fs::read_to_string(workshop.path("grew.html")).unwrap();
    for part in ["blocks in use", "pages of files", "\"isHeld\":true"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn two_snapshots_say_who_has_grown() {
    let workshop = Workshop::open();
    let mut process = under_hakmem(&workshop);
    take(&workshop, &process, "one.hks");
    process.answers("g", "grown");
    take(&workshop, &process, "two.hks");
    workshop
        .hakmem(&["diff", "one.hks", "two.hks", "--flamegraph", "grew.html"])
        .ended_with(0)
        .says("live blocks")
        .says("keep_some");
    let page = std::fs::read_to_string(workshop.path("grew.html")).unwrap();
    assert!(page.contains("keep_some"));
}

/// A core dump tells less, and that is kept.
#[test]
fn a_core_dump_becomes_a_small_file() {
    let workshop = Workshop::open();
    let process = under_hakmem(&workshop);
    dump(&process.pid(), &workshop.path("core"), |_, _| {});
    workshop
        .hakmem(&["snapshot", "--core", "core", "-o", "small.hks"])
        .ended_with(0);
    let of = |file| json(&workshop, &["stats", "--core", file, "--json"]);
    assert_eq!(of("core"), of("small.hks"));
    workshop
        .hakmem(&["ledger", "--core", "small.hks"])
        .is_one_line(1, "a core dump does not say what was resident");
}

/// Parts that another build has written differently are named, and not misread.
#[test]
fn a_snapshot_of_another_build_says_what_is_missing() {
    let workshop = Workshop::open();
    let process = under_hakmem(&workshop);
    let mut image = take(&workshop, &process, "new.hks");
    let mut told: Value = serde_json::from_str(&image.text).unwrap();
    let account = told["visit"]["now"].as_object_mut().unwrap();
    assert!(account.remove("hakmem").is_some());
    image.text = told.to_string();
    std::fs::write(workshop.path("old.hks"), image.encode().unwrap()).unwrap();
    workshop
        .hakmem(&["ledger", "--core", "old.hks"])
        .is_one_line(
            1,
            "old.hks: the resident part of hakmem's heap is not known, as another build of hakmem \
         took this snapshot, in another format: 'hakmem stats' shows the heap",
        );
    let doctor = workshop.hakmem(&["doctor", "old.hks"]);
    let line = "How much of hakmem's heap was resident: another build of hakmem took this snapshot";
    doctor.ended_with(0).says(line);
    workshop
        .hakmem(&["diff", "new.hks", "old.hks"])
        .ended_with(0)
        .says("resident memory cannot be compared: core dumps do not have it, and snapshots of");
    for command in ["stats", "map"] {
        let heap = workshop.hakmem(&[command, "--core", "old.hks"]);
        heap.ended_with(0).says("hakmem 1.0.0");
    }
    // Its tables have other names.
    dump(&process.pid(), &workshop.path("dump"), |_, bytes| {
        let name = b"\0hak_owner\0";
        while let Some(at) = bytes.windows(name.len()).position(|part| part == name) {
            bytes[at + 1] = b'H';
        }
    });
    workshop.hakmem(&["stats", "--core", "dump"]).is_one_line(
        1,
        "dump: its hakmem is another build of 1.0.0, without struct hak_owner: use the command that was built with it",
    );
}

#[test]
fn a_file_that_is_none_is_one_line() {
    let workshop = Workshop::open();
    let process = start(&workshop, &[]);
    take(&workshop, &process, "whole.hks");
    let whole = std::fs::read(workshop.path("whole.hks")).unwrap();
    let with = |at: usize, byte: u8| {
        let mut file = whole.clone();
        file[at] = byte;
        file
    };
    let says = "is not a readable snapshot: ";
    for (file, why) in [
        (whole[..200].to_vec(), "it was cut short, at 200 of "),
        (
            with(8, 9),
            "it is of version 9, and this command reads version 1",
        ),
        (
            with(300, !whole[300]),
            "it is damaged: its checksum does not match",
        ),
    ] {
        std::fs::write(workshop.path("bad.hks"), file).unwrap();
        for arguments in [
            &["doctor", "bad.hks"][..],
            &["stats", "--core", "bad.hks"],
            &["diff", "bad.hks", "whole.hks"],
        ] {
            let answer = workshop.hakmem(arguments);
            answer.ended_with(2).says(&format!("bad.hks {says}{why}"));
            assert_eq!(answer.errors.lines().count(), 1);
        }
    }
    workshop.hakmem(&["core", "whole.hks"]).ended_with(2).says(
        "whole.hks is a snapshot: 'hakmem doctor whole.hks' reads it, and commands with --core",
    );
    workshop
        .hakmem(&["snapshot", "--core", "whole.hks", "-o", "again.hks"])
        .is_one_line(2, "whole.hks is a snapshot already");
    workshop
        .hakmem(&["snapshot", &process.pid(), "-o", "/dev/full"])
        .ended_with(2)
        .says("cannot write /dev/full");
}
