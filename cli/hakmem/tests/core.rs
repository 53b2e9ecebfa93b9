//! `hakmem core`, `map`, `stats` and `ledger` with programs whose blocks are known.

mod support;

use serde_json::Value;
use std::process::Command;
use support::dump::dump;
use support::waiting::Waiting;
use support::{Workshop, library, text};

/// Prints the addresses of blocks in all states.
const BLOCKS: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void *blocks[500], *other;
static void *free_other(void *unused)
{
    free(malloc(48));
    free(other);
    write(1, "", 1);
    pause();
    return unused;
}
int main(void)
{
    char end;
    int pipe_ends[2];
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 500; i++) {
        blocks[i] = malloc(3000);
        memset(blocks[i], 1, 3000);
    }
    void *large = malloc(100000), *kept = malloc(300000);
    memset(large, 1, 100000);
    other = malloc(48);
    memset(other, 1, 48);
    for (int i = 0; i < 200; i += 2) {
        free(blocks[i]);
    }
    free(kept);
    puts("ready");
    printf("%p %p %p %p %p %p\n", blocks[200], blocks[0], blocks[198], large, kept, other);
    pthread_t thread;
    pthread_create(&thread, NULL, free_other, NULL);
    read(0, &end, 1);
    return 0;
}
"#;

struct Known {
    process: Waiting,
    /// Live, in the slab, in a magazine, large, kept, freed by another thread.
    addresses: Vec<String>,
}

fn start(workshop: &Workshop, preload: &str) -> Known {
    let program = workshop.compile("blocks", BLOCKS, &["-pthread"]);
    let mut command = Command::new(&program);
    command.env("LD_PRELOAD", preload);
    command.env("HAKMEM_PURGER", "0").env("HAKMEM_ACE", "0"); // freed blocks stay where they are
    let mut process = Waiting::start(&mut command);
    let line = process.next_line();
    process.wait_for_byte();
    Known {
        process,
        addresses: line.split_whitespace().map(str::to_string).collect(),
    }
}

#[test]
fn a_core_dump_explains_every_pointer_also_without_the_library() {
    let workshop = Workshop::open();
    let copy = workshop.path("libcopy.so");
    std::fs::copy(library(), &copy).unwrap();
    let known = start(&workshop, text(&copy));
    dump(&known.process.pid(), &workshop.path("dump"), |_, _| {});
    std::fs::remove_file(&copy).unwrap();
    let mut arguments = vec!["core", "dump", "--json"];
    arguments.extend(known.addresses.iter().map(String::as_str));
    arguments.push("16");
    let answer = workshop.hakmem(&arguments);
    let said: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    let pointers = said["pointers"].as_array().unwrap();
    let states: Vec<&str> = pointers
        .iter()
        .map(|one| one["state"].as_str().unwrap())
        .collect();
    let expected = [
        "live",
        "free, in its slab",
        "free, in a magazine",
        "live",
        "free, kept in BigCache",
        "freed by another thread, on its way to its owner",
        "no memory of hakmem's",
    ];
    assert_eq!(states, expected);
    assert_eq!(pointers[0]["block"], known.addresses[0].as_str());
    assert_eq!(pointers[0]["bytes"], 3072);
    assert_eq!(said["damage"], serde_json::json!([]));
    // An address inside a block leads to the block.
    let inside = u64::from_str_radix(&known.addresses[0][2..], 16).unwrap() + 100;
    workshop
        .hakmem(&["core", "dump", &inside.to_string()])
        .ended_with(0)
        .says(&format!(
            "live; 100 bytes into block {}, 3072 bytes",
            known.addresses[0]
        ));
    workshop
        .hakmem(&["stats", "--core", "dump"])
        .ended_with(0)
        .says("hakmem 1.0.0");
}

/// In mode secure, a block above 32 KiB ends at its guard, so it begins somewhere inside its mapping. A small block may be in a
/// guard's slot; a block of no bytes is at the slot's end.
#[test]
fn a_block_between_guards_is_known_from_its_first_byte_to_its_last() {
    let workshop = Workshop::open();
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
    char end, *block = NULL;
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int i = 0; i < 100; i++) {
        block = memset(malloc(100000), 1, 100000);
    }
    puts("ready");
    printf("%p %p %p %p %p\n", block, block + 99999, block + 100000, block - 1, malloc(0));
    read(0, &end, 1);
    return 0;
}
"#;
    let mut command = Command::new(workshop.compile("large", source, &[]));
    command
        .env("LD_PRELOAD", library())
        .env("HAKMEM_MODE", "secure")
        .env("HAKMEM_GUARD_SAMPLE", "1");
    let mut process = Waiting::start(&mut command);
    let line = process.next_line();
    let addresses: Vec<&str> = line.split_whitespace().collect();
    let block = addresses[0];
    let mut core = vec!["core", "dump"];
    core.extend(&addresses);
    dump(&process.pid(), &workshop.path("dump"), |_, _| {});
    let answer = workshop.hakmem(&core);
    answer.ended_with(0);
    for place in [
        "live; the start of",
        "live; 99999 bytes into",
        "after the last block; 0 bytes past the end of",
        "before the block; 1 bytes before",
    ] {
        answer.says(&format!(": {place} block {block}, 100000 bytes"));
    }
    answer.says(&format!(
        ": live; the start of block {}, 0 bytes",
        addresses[4]
    ));
    // Commands that count pages say the same.
    let number = |arguments: &[&str], place: &str| {
        let answer = workshop.hakmem(arguments);
        let said: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
        said.pointer(place).and_then(Value::as_f64).unwrap()
    };
    let pid = process.pid();
    let ledger = number(&["ledger", &pid, "--json"], "/resident/live");
    let cold = ["cold", &pid, "--seconds", "1", "--json"];
    let seen = number(&cold, "/total/resident_bytes");
    let live = 100.0 * 100_000.0;
    for found in [ledger, seen] {
        assert!((live..live + 8192.0).contains(&found), "{ledger} {seen}");
    }
    // It has no superslab, but the map shows its mappings.
    workshop
        .hakmem(&["map", &pid])
        .ended_with(0)
        .says("one block in a mapping of its own");
}

#[test]
fn damage_is_found() {
    let workshop = Workshop::open();
    let known = start(&workshop, text(&library()));
    let live = u64::from_str_radix(&known.addresses[0][2..], 16).unwrap();
    let in_magazine = u64::from_str_radix(&known.addresses[2][2..], 16).unwrap();
    // Replaces the block in the magazine by the address of a live block, twice.
    let mut changed = 0;
    dump(&known.process.pid(), &workshop.path("dump"), |_, bytes| {
        for word in bytes.chunks_exact_mut(8) {
            if word == in_magazine.to_le_bytes() {
                word.copy_from_slice(&(live + 8).to_le_bytes());
                changed += 1;
            }
        }
    });
    assert!(changed > 0);
    let answer = workshop.hakmem(&["core", "dump"]);
    answer
        .ended_with(1)
        .says("waits for reuse, and lies 8 bytes into a block of 3072");
}

#[test]
fn a_dump_that_was_cut_says_so() {
    let workshop = Workshop::open();
    let known = start(&workshop, text(&library()));
    let path = workshop.path("dump");
    dump(&known.process.pid(), &path, |_, _| {});
    let bytes = std::fs::read(&path).unwrap();
    let parts = [0, 40, 64, 500, 3000, 20_000].into_iter();
    let percents = [3, 10, 30, 60, 90].map(|part| bytes.len() / 100 * part);
    for length in parts.chain(percents).chain([bytes.len() - 4096]) {
        std::fs::write(&path, &bytes[..length]).unwrap();
        for arguments in [
            &["core", "dump"][..],
            &["stats", "--core", "dump"],
            &["leaks", "--core", "dump"],
            &["why", "--core", "dump"],
            &["map", "--core", "dump"],
            &["profile", "--core", "dump"],
            &["failures", "--core", "dump"],
        ] {
            let answer = workshop.hakmem(arguments);
            answer.says("cut short");
            let errors = &answer.errors;
            assert!(errors.lines().count() <= 1, "{errors}");
            assert!(!errors.contains("a bug in hakmem"), "{errors}");
        }
    }
    // A truncated dump is shown as far as it goes.
    std::fs::write(&path, &bytes[..bytes.len() / 100]).unwrap();
    workshop
        .hakmem(&["core", "dump"])
        .ended_with(1)
        .says("hakmem's tables are in the missing part");
}

#[test]
fn the_ledger_adds_up_to_the_kernels_figure() {
    let workshop = Workshop::open();
    let known = start(&workshop, text(&library()));
    let answer = workshop.hakmem(&["ledger", "--json", &known.process.pid()]);
    let said: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    let number = |value: &Value| value.as_i64().unwrap();
    let sum: i64 = said["resident"]
        .as_object()
        .unwrap()
        .values()
        .map(number)
        .sum();
    assert_eq!(sum, number(&said["known_bytes"]));
    assert_eq!(
        number(&said["kernel_bytes"]) - sum,
        number(&said["remainder_bytes"])
    );
    // The difference is zero pages; the process stands still.
    assert!(number(&said["remainder_bytes"]).abs() < 256 << 10, "{said}");
    let live = number(&said["resident"]["live"]);
    assert!((400 * 3072 + 100_000..2_500_000).contains(&live), "{said}");
    assert!(number(&said["resident"]["in_transit"]) >= 48);
    workshop
        .hakmem(&["ledger", &known.process.pid()])
        .ended_with(0)
        .says("the kernel's figure");
}

/// The kernel puts the next mapping below the previous one: here, descriptors below the program's own mappings.
#[test]
fn what_the_program_maps_is_no_stack() {
    let workshop = Workshop::open();
    let source = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
    char end;
    for (int i = 0; i < 16; i++) {
        memset(mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 1, 1 << 20);
    }
    for (int i = 0; i < 100000; i++) {
        *(volatile char *)malloc(64) = 1;
    }
    puts("ready");
    fflush(stdout);
    read(0, &end, 1);
    return 0;
}
"#;
    let mut command = Command::new(workshop.compile("maps", source, &[]));
    let process = Waiting::start(command.env("LD_PRELOAD", library()));
    let answer = workshop.hakmem(&["ledger", &process.pid(), "--json"]);
    let said: Value = serde_json::from_str(&answer.ended_with(0).output).unwrap();
    assert!(
        said["resident"]["other"].as_u64().unwrap() >= 16 << 20,
        "{said}"
    );
    assert!(
        said["resident"]["stacks"].as_u64().unwrap() < 1 << 20,
        "{said}"
    );
}

#[test]
fn the_picture_shows_each_unit() {
    let workshop = Workshop::open();
    let known = start(&workshop, text(&library()));
    let pid = known.process.pid();
    let answer = workshop.hakmem(&["map", &pid]);
    answer
        .ended_with(0)
        .says("a line: a superslab")
        .says("▓▓")
        .says("▒▒▒▒▒");
    let row = answer
        .output
        .lines()
        .find(|line| line.starts_with("   +0M "))
        .unwrap();
    assert_eq!(row.chars().count(), 7 + 64 + 6 + 8, "{row}");
    assert!(row.ends_with('s'), "its age: {row}");
    workshop
        .hakmem(&[
            "map",
            &pid,
            "--svg",
            "heap.svg",
            "--png",
            "heap.png",
            "--html",
            "heap.html",
        ])
        .ended_with(0);
    let svg = std::fs::read_to_string(workshop.path("heap.svg")).unwrap();
    let png = std::fs::read(workshop.path("heap.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG\r\n\x1a\n") && png.ends_with(b"IEND\xaeB`\x82"));
    assert!(svg.contains("3072 B blocks") && svg.ends_with("</svg>\n"));
    let html = std::fs::read_to_string(workshop.path("heap.html")).unwrap();
    let data = html.split_once("const heap = ").unwrap().1;
    let data: Value = serde_json::from_str(data.split_once(";\n").unwrap().0).unwrap();
    let runs = data["supers"][0]["runs"].as_array().unwrap();
    let of_class = |run: &&Value| {
        run["class"]
            .as_u64()
            .is_some_and(|class| data["classes"][class as usize]["bytes"] == 3072)
    };
    let live: u64 = runs
        .iter()
        .filter(of_class)
        .map(|run| run["live"].as_u64().unwrap())
        .sum();
    assert_eq!(live, 400);
    let ages = runs.iter().map(|run| run["age"].as_f64().unwrap());
    assert!(ages.clone().all(|age| (0.0..600.0).contains(&age)));
    assert_eq!(data["by"], "size");
    for by in ["age", "owner"] {
        workshop.hakmem(&["map", &pid, "--by", by]).ended_with(0);
        let to_page = ["map", &pid, "--by", by, "--html", "by.html"];
        workshop.hakmem(&to_page).ended_with(0);
        let page = std::fs::read_to_string(workshop.path("by.html")).unwrap();
        assert!(page.contains(&format!("\"by\":\"{by}\"")), "{by}");
    }
    assert!(!html.contains("http"), "it needs no network");
    dump(&pid, &workshop.path("dump"), |_, _| {});
    workshop
        .hakmem(&["map", "--core", "dump"])
        .ended_with(0)
        .says("▓▓");
    workshop
        .hakmem(&["map", &pid, "--svg", "no/such/folder"])
        .is_one_line(
            2,
            "cannot write no/such/folder: No such file or directory (os error 2)",
        );
}

#[test]
fn another_form_of_the_control_block_is_named() {
    let workshop = Workshop::open();
    let known = start(&workshop, text(&library()));
    dump(&known.process.pid(), &workshop.path("dump"), |_, bytes| {
        let magic = b"hakmem\0\0\x02\0\0\0";
        if let Some(at) = bytes.windows(magic.len()).position(|part| part == magic) {
            bytes[at + 8] = 9;
        }
    });
    let line = "dump: its hakmem has a control block of version 9, and this command reads version 2: \
                use the command of the same release";
    workshop
        .hakmem(&["stats", "--core", "dump"])
        .is_one_line(1, line);
}

/// A dump has no clock.
#[test]
fn ages_in_a_dump_are_as_of_the_last_slab() {
    let workshop = Workshop::open();
    let known = start(&workshop, text(&library()));
    dump(&known.process.pid(), &workshop.path("dump"), |_, _| {});
    workshop
        .hakmem(&["map", "--core", "dump", "--by", "age"])
        .ended_with(0)
        .says("made within 1 s of the last");
}
