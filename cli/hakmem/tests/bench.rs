//! `hakmem bench` with the project's own workloads, with the smallest inputs.

mod support;

use serde_json::Value;
use support::{Answer, Workshop, root, text};

fn bench(workshop: &Workshop, arguments: &[&str]) -> Answer {
    let all = [&["bench"], arguments].concat();
    workshop.hakmem(&all)
}

const SMALL: [&str; 7] = [
    "--quick",
    "-w",
    "tiny-16",
    "-w",
    "simple",
    "-a",
    "hakmem,glibc",
];

fn document(workshop: &Workshop, name: &str) -> Value {
    serde_json::from_slice(&std::fs::read(workshop.path(name)).unwrap()).unwrap()
}

#[test]
fn workloads_answer_right_and_have_figures() {
    let workshop = Workshop::open();
    let answer = bench(
        &workshop,
        &[&SMALL[..], &["-n", "2", "--export", "one.json"]].concat(),
    );
    answer
        .ended_with(0)
        .says("Peak memory (VmHWM)")
        .says("too few runs (2)");
    let document = document(&workshop, "one.json");
    assert_eq!(document["samples"].as_array().unwrap().len(), 8);
    assert!(
        document["samples"][0]["reported"]["ops/s"]
            .as_f64()
            .unwrap()
            > 0.0
    );
    assert!(document["commit"].as_str().unwrap().len() >= 8);
    let line = document["variants"]["tiny-16"]["commands"]["hakmem"]
        .as_str()
        .unwrap();
    assert!(
        line.starts_with("LD_PRELOAD=build/libhakmem.so build/bench/bench_tiny"),
        "{line}"
    );
}

#[test]
fn services_are_looked_at_when_they_are_full_and_when_they_have_dropped_their_data() {
    let workshop = Workshop::open();
    let small = ["--after-peak", "--quick", "-w", "perl-sessions"];
    let run = |extra: &[&str]| bench(&workshop, &[&small[..], &["-a", "hakmem"], extra].concat());
    run(&["-n", "1", "--export", "one.json"])
        .ended_with(0)
        .says("Resident memory: full")
        .says("Resident memory: empty, 6 s later");
    let mut one = document(&workshop, "one.json");
    let moments = one["samples"][0]["moments"].as_object_mut().unwrap();
    assert_eq!(moments.len(), 3);
    assert!(moments["full"][1].as_u64().unwrap() > 4000);
    // An earlier result, in which hakmem kept less at each moment.
    for (_, moment) in moments.iter_mut() {
        moment[1] = 100.into();
    }
    let sample = one["samples"][0].clone();
    one["samples"] = vec![sample; 5].into();
    one["started"] = "2020-01-01T00:00:00Z".into();
    workshop.write("one.json", &one.to_string());
    run(&["-n", "5", "--export", "two.json", "--check"])
        .ended_with(1)
        .says("worse   perl-sessions: memory, full of hakmem");
}

#[test]
fn a_service_tells_what_it_has_for_what_it_holds_over_a_day() {
    let workshop = Workshop::open();
    let small = ["--day", "--quick", "-n", "1", "-a", "hakmem"];
    bench(&workshop, &[&small[..], &["--export", "one.json"]].concat())
        .ended_with(0)
        .says("Memory over time: a service's day")
        .says("resident over live");
    let one = document(&workshop, "one.json");
    let sample = &one["samples"][0];
    assert!(sample["reported"]["resident over live"].as_f64().unwrap() > 0.9);
    assert!(sample["timeline"].as_array().unwrap().len() > 10);
}

#[test]
fn a_refused_peer_is_named_and_fails_nothing() {
    let workshop = Workshop::open();
    workshop.allocator("libbad.so", &["-DBREAKS=1"]);
    let small = ["--quick", "-w", "tiny-16", "-n", "1"];
    let beside = ["-a", "hakmem,bad=libbad.so", "--export", "one.json"];
    let answer = bench(&workshop, &[&small[..], &beside].concat());
    answer
        .ended_with(0)
        .says("refused: bad: ended by SIG")
        .says("bad has no figure: ended by SIG");
    assert_eq!(
        document(&workshop, "one.json")["samples"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let alone = ["-a", "bad=libbad.so", "--export", "two.json"];
    bench(&workshop, &[&small[..], &alone].concat()).ended_with(1);
}

#[test]
fn hakmem_refused_fails() {
    let workshop = Workshop::open();
    workshop.write("libc.so.6", "broken");
    let ours = format!("hakmem+LD_LIBRARY_PATH={},glibc", text(workshop.folder()));
    let arguments = [
        "--quick", "-w", "tiny-16", "-n", "1", "-a", &ours, "--export", "one.json",
    ];
    let answer = bench(&workshop, &arguments);
    answer.ended_with(1).says("has no figure: exit code 127");
}

#[test]
fn a_stopped_result_is_gone_on_with() {
    let workshop = Workshop::open();
    bench(
        &workshop,
        &[&SMALL[..], &["-n", "2", "--export", "one.json"]].concat(),
    )
    .ended_with(0);
    let whole = document(&workshop, "one.json");
    let mut part = whole.clone();
    part["samples"].as_array_mut().unwrap().truncate(3);
    part.as_object_mut().unwrap().remove("finished");
    workshop.write("part.json", &part.to_string());
    bench(&workshop, &["--resume", "part.json"]).ended_with(0);
    let again = document(&workshop, "part.json");
    assert_eq!(again["samples"].as_array().unwrap().len(), 8);
    assert_eq!(again["samples"][0], whole["samples"][0]);
}

#[test]
fn the_check_says_what_has_become_worse() {
    let workshop = Workshop::open();
    let run = |extra: &[&str]| {
        bench(
            &workshop,
            &[&SMALL[..5], &["-n", "5", "-a", "hakmem"], extra].concat(),
        )
    };
    run(&["--export", "before.json"]).ended_with(0);
    // An earlier result, in which hakmem used a tenth of the memory, and took very long.
    let mut before = document(&workshop, "before.json");
    for sample in before["samples"].as_array_mut().unwrap() {
        sample["tree_peak_kib"] = 100.into();
        sample["peak_kib"] = 100.into();
        sample["wall_s"] = 1000.0.into();
    }
    before["started"] = "2020-01-01T00:00:00Z".into();
    before["label"] = "release".into();
    workshop.write("before.json", &before.to_string());
    let answer = run(&["--export", "after.json", "--check"]);
    answer
        .ended_with(1)
        .says("worse   tiny-16: peak memory of hakmem")
        .says("better  tiny-16: time");
    // The previous result is the last one, and the release is the one before that.
    run(&["--export", "again.json", "--check"]).says("after.json");
    run(&["--export", "again.json", "--check=release"])
        .ended_with(1)
        .says("worse   tiny-16: peak memory of hakmem");
    run(&["--export", "again.json", "--check=other"]).is_one_line(
        2,
        ". has no earlier result labelled other of these workloads to compare with",
    );
}

#[test]
fn the_check_says_what_it_has_nothing_to_compare_with() {
    let workshop = Workshop::open();
    let run = |extra: &[&str]| {
        let small = [&SMALL[..5], &["-n", "1", "-a", "hakmem"]].concat();
        bench(&workshop, &[&small[..], extra].concat())
    };
    run(&["--export", "before.json"]).ended_with(0);
    let mut before = document(&workshop, "before.json");
    before["variants"]
        .as_object_mut()
        .unwrap()
        .remove("simple")
        .unwrap();
    let samples = before["samples"].as_array_mut().unwrap();
    samples.retain(|sample| sample["variant"] != "simple");
    before["started"] = "2020-01-01T00:00:00Z".into();
    workshop.write("before.json", &before.to_string());
    run(&["--export", "after.json", "--check"])
        .says("1 workload is not in it: simple")
        .says("glibc was not measured both times: absolute times are compared");
}

#[test]
fn the_plan_can_be_seen_without_running_it() {
    let workshop = Workshop::open();
    let answer = bench(&workshop, &["--list", "-w", "larson*", "-a", "glibc"]);
    answer
        .ended_with(0)
        .says("allocators: glibc")
        .says("larson-4");
}

#[test]
fn what_is_not_there_is_one_line() {
    let workshop = Workshop::open();
    bench(&workshop, &["-w", "no-such"]).is_one_line(2, "no workload matches no-such");
    let line = "gone.json: No such file or directory (os error 2)";
    bench(&workshop, &["--resume", "gone.json"]).is_one_line(2, line);
    let answer = bench(
        &workshop,
        &[&SMALL[..], &["--check", "--export", "x.json"]].concat(),
    );
    answer
        .ended_with(2)
        .says("has no earlier result of these workloads to compare with");
    let line = "this needs the project's sources: run the build/hakmem of a checkout";
    workshop.installed(&["bench"]).is_one_line(2, line);
}

#[test]
fn the_results_of_the_earlier_runner_can_still_be_read() {
    let workshop = Workshop::open();
    let path = root().join("bench/results/amd-epyc-2cpu/2026-11-21-1fbe08ef32-full.json");
    let answer = workshop.hakmem(&["report", text(&path)]);
    // The same means as were published from this file.
    answer
        .ended_with(0)
        .says("hakmem     1.371  1.361        1.791         32");
}
