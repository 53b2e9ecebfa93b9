//! Units that were free and now contain descriptors, as the kernel had no more memory: how commands show them.

mod support;

use serde_json::Value;
use std::process::Command;
use support::dump::dump;
use support::waiting::Waiting;
use support::{Workshop, library};

/// Allocates large blocks until memory is exhausted, then small ones in place of most of them.
const FULL: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
static void *larges[4000];
static size_t mapped(void)
{
    size_t pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (fscanf(file, "%zu", &pages) != 1)
        abort();
    fclose(file);
    return pages * 4096;
}
int main(void)
{
    puts("ready");
    fflush(stdout);
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = mapped() + (64 << 20);
    setrlimit(RLIMIT_AS, &limit);
    int count = 0;
    while (count < 4000 && (larges[count] = malloc(60000)) != NULL)
        count++;
    for (int i = 0; i < count; i++)
        if (i % 64 != 0)
            free(larges[i]);
    for (char *volatile block; (block = malloc(16)) != NULL;)
        *block = 1;
    write(1, "full\n", 5);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

#[test]
fn they_are_descriptors_to_every_command() {
    let workshop = Workshop::open();
    let program = workshop.compile("full", FULL, &[]);
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library());
    let mut process = Waiting::start(&mut command);
    assert_eq!(process.next_line(), "full\n");
    let pid = process.pid();
    let map = workshop.hakmem(&[
        "map", &pid, "--all", "--html", "map.html", "--svg", "map.svg",
    ]);
    map.ended_with(0);
    let map = workshop.hakmem(&["map", &pid, "--all"]);
    map.ended_with(0).says("• descriptors");
    let squares = map.output.matches('•').count() - 1; // one is in the legend
    assert!(squares > 0, "{}", map.output);
    let svg = std::fs::read_to_string(workshop.path("map.svg")).unwrap();
    assert_eq!(svg.matches("<title>descriptors</title>").count(), squares);
    // The page contains their addresses.
    let page = std::fs::read_to_string(workshop.path("map.html")).unwrap();
    let data = page.split_once("const heap = ").unwrap().1;
    let data: Value = serde_json::from_str(data.split_once(";\n").unwrap().0).unwrap();
    let mut places = Vec::new();
    for one in data["supers"].as_array().unwrap() {
        let base = u64::from_str_radix(&one["base"].as_str().unwrap()[2..], 16).unwrap();
        let units = one["metadata"].as_str().unwrap().match_indices('1');
        places.extend(units.map(|(unit, _)| base + unit as u64 * 65536));
    }
    assert_eq!(places.len(), squares);
    dump(&pid, &workshop.path("dump"), |_, _| {});
    let address = (places[0] + 8).to_string();
    let said = workshop.hakmem(&["core", "dump", &address]);
    said.ended_with(0).says("hakmem's own, descriptors");
    let json = |arguments: &[&str]| -> Value {
        serde_json::from_str(&workshop.hakmem(arguments).ended_with(0).output).unwrap()
    };
    let stats = json(&["stats", &pid, "--json"]);
    assert_eq!(stats["metadata_unit_bytes"], 65536 * squares as u64);
    let stats = workshop.hakmem(&["stats", &pid]);
    stats.ended_with(0).says("units of descriptors");
    // Nothing is counted twice.
    let ledger = json(&["ledger", &pid, "--json"]);
    assert_eq!(ledger["remainder_bytes"], 0, "{ledger}");
}
