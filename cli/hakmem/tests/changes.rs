//! The changes between two profiles or traces, as a table and as a flame graph in two colours.

mod support;

use support::{Workshop, text};

/// Keeps blocks of the given sizes, from two functions, and frees another one.
const PROGRAM: &str = r#"
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static void *orders(size_t bytes) { return memset(malloc(bytes), 1, bytes); }
__attribute__((noinline)) static void *invoices(size_t bytes) { return memset(malloc(bytes), 1, bytes); }
static void *kept[2];
int main(int count, char **words)
{
    kept[0] = orders((size_t)atoi(words[1]));
    kept[1] = invoices((size_t)atoi(words[2]));
    free(orders((size_t)atoi(words[3])));
    return count != 4;
}
"#;
const BEFORE: [&str; 3] = ["30000", "70000", "10"];
const AFTER: [&str; 3] = ["90000", "50000", "200000"];

/// Saves or records what the program has left, as "before" and "after".
fn two(workshop: &Workshop, command: &[&str]) {
    let program = workshop.compile("program", PROGRAM, &["-g"]);
    for (name, words) in [("before", BEFORE), ("after", AFTER)] {
        let run = [command, &[name, "--", text(&program)], &words].concat();
        workshop.hakmem(&run).ended_with(0);
    }
}

#[test]
fn a_flame_graph_has_what_was_before_beside_what_is_now() {
    let workshop = Workshop::open();
    two(&workshop, &["leaks", "--exit", "--save"]);
    let graph = ["diff", "before", "after", "--flamegraph", "change.html"];
    let answer = workshop.hakmem(&graph);
    answer.ended_with(0).says("+58.6 KiB").says("-19.5 KiB");
    let page = std::fs::read_to_string(workshop.path("change.html")).unwrap();
    for (function, now, before) in [("orders", 90000, 30000), ("invoices", 50000, 70000)] {
        let of_it = format!("\"name\":\"{function} (program.c:");
        let at = page
            .find(&of_it)
            .unwrap_or_else(|| panic!("no {function} in {page}"));
        let node = page[at..].split('}').next().unwrap();
        assert!(node.contains(&format!("\"bytes\":{now}.0")), "{node}");
        assert!(node.contains(&format!("\"before\":{before}.0")), "{node}");
    }
}

#[test]
fn traces_are_compared_as_profiles_are() {
    let workshop = Workshop::open();
    two(&workshop, &["record", "--stacks", "-o"]);
    let lives = workshop.hakmem(&["diff", "before", "after"]);
    lives.ended_with(0).says("+58.6 KiB").says("live bytes");
    let allocated = [
        "diff",
        "before",
        "after",
        "--allocated",
        "--flamegraph=all.html",
    ];
    let answer = workshop.hakmem(&allocated);
    answer
        .ended_with(0)
        .says("+195 KiB")
        .says("allocated bytes");
    let page = std::fs::read_to_string(workshop.path("all.html")).unwrap();
    assert!(page.contains("\"view\":\"allocated\""));
    assert!(page.contains("\"every\":0"), "it is exact");
}

#[test]
fn what_is_no_profile_has_no_flame_graph() {
    let workshop = Workshop::open();
    workshop.write("one.json", "{\"mapped_bytes\": 1}");
    workshop.write("two.json", "{\"mapped_bytes\": 2}");
    let graph = [
        "diff",
        "one.json",
        "two.json",
        "--flamegraph",
        "change.html",
    ];
    let text =
        "a flame graph needs two profiles (profile --save, leaks --save), traces or snapshots";
    workshop.hakmem(&graph).is_one_line(2, text);
    assert!(!workshop.path("change.html").exists());
    let over = ["diff", "one.json", "two.json", "--flamegraph", "two.json"];
    workshop
        .hakmem(&over)
        .ended_with(2)
        .says("would be overwritten");
}
