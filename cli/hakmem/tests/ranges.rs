//! A number that is outside of what it can mean is refused before the work begins, and the line says what it can be.

mod support;

use support::{Workshop, library, text};

#[test]
fn what_can_mean_nothing_is_refused() {
    let workshop = Workshop::open();
    let server = "--server=sleep 60";
    for (words, range) in [
        (
            &["compare", server, "--client=true", "--ready=70000"][..],
            "port",
        ),
        (&["compare", server, "--client=true", "--ready=0"], "port"),
        (&["compare", server, "--client=true", "--ready=-7"], "port"),
        (
            &["compare", "--timeout", "0", "--", "true"],
            "0 is not in 1..",
        ),
        // What is kept of so many runs has no room.
        (&["compare", "-n", "1000001", "--", "true"], "1..=1000000"),
        (&["bench", "-n", "1000001", "-w", "nothing"], "1..=1000000"),
        (&["replay", "-n", "1000001", "trace.hkt"], "1..=1000000"),
        (&["tune", "-l", "1000001", "--", "true"], "2..=1000000"),
        // The library takes no more, and would sample nothing.
        (
            &["leaks", "--every", "1099511627777", "--exit", "--", "true"],
            "..=1099511627776",
        ),
        (
            &["profile", "--every", "1099511627777", "1"],
            "..=1099511627776",
        ),
        (
            &["profile", "1", "--push", "pyroscope+http://127.0.0.1:70000"],
            "port",
        ),
        (&["profile", "1", "--push", "otlp+http://[::1]:0"], "port"),
        (&["top", "-n", "0"], "0 is not in 1.."),
        (&["top", "-d", "-1"], "from 0.05 to 3600"),
        (&["cold", "1", "--price", "-1"], "a number from 0 on"),
        (&["cold", "1", "--seconds", "-1"], "from 0 to a million"),
        (&["trace", "top-sites", "-n", "0", "trace.hkt"], "from 1 on"),
        (&["trace", "peak", "-n", "0", "trace.hkt"], "from 1 on"),
    ] {
        let answer = workshop.hakmem(words);
        answer.ended_with(2);
        let errors = &answer.errors;
        assert!(errors.contains(range), "{words:?}: {errors}");
        assert!(
            !errors.contains("unexpected argument"),
            "{words:?}: {errors}"
        );
    }
}

/// Its column would have the figures of another setting.
#[test]
fn a_setting_that_the_library_does_not_take_is_not_measured() {
    let workshop = Workshop::open();
    let copy = format!("copy={}+HAKMEM_DECAY_MS=abc", text(&library()));
    for (allocator, line) in [
        (
            "hakmem+HAKMEM_DECAY_MS=abc",
            "HAKMEM_DECAY_MS=abc is not a number from 0 to 3600000",
        ),
        ("hakmem+HAKMEM_NOSUCH=1", "HAKMEM_NOSUCH is not an option"),
        ("hakmem+HAKMEM_OPTIONS=nosuch=1", "nosuch is not an option"),
        (
            "hakmem+HAKMEM_CONFIG=/nonexistent",
            "this file of options cannot be read",
        ),
        (&copy, "HAKMEM_DECAY_MS=abc is not a number"),
    ] {
        let answer = workshop.hakmem(&["compare", "-n", "1", "-a", allocator, "--", "true"]);
        answer.ended_with(2).says(line);
        assert_eq!(answer.errors.lines().count(), 1, "{}", answer.errors);
    }
    let mut command = workshop.command(&["compare", "-n", "1", "-a", "hakmem,glibc", "--", "true"]);
    command.env("HAKMEM_DECAY_MS", "abc");
    let line = "hakmem: HAKMEM_DECAY_MS=abc is not a number from 0 to 3600000; ignored";
    support::answer(command).is_one_line(2, line);
    let taken = [
        "compare",
        "-n",
        "1",
        "-a",
        "hakmem+HAKMEM_DECAY_MS=0",
        "--",
        "sort",
        "/dev/null",
    ];
    workshop.hakmem(&taken).ended_with(0);
}
