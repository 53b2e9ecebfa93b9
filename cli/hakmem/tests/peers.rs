//! `hakmem peers`, as installed: its files are in the user's cache.

mod support;

use support::{Workshop, text};

#[test]
fn what_is_there_is_listed_and_what_is_not_is_said() {
    let workshop = Workshop::open();
    let answer = workshop.installed(&["peers", "list"]);
    answer
        .ended_with(0)
        .says("libhakmem.so")
        .says("the C library's own");
    answer.says("not built: mimalloc3, mimalloc2, snmalloc, jemalloc, tcmalloc, rpmalloc");
}

/// Also for the command of a checkout.
#[test]
fn paths_can_be_used_from_any_folder() {
    let workshop = Workshop::open();
    let listed = workshop.hakmem(&["peers", "list"]);
    let output = &listed.ended_with(0).output;
    let words = output.split_whitespace();
    let libraries: Vec<&str> = words.filter(|word| word.contains(".so")).collect();
    assert!(!libraries.is_empty(), "{output}");
    for library in libraries {
        assert!(std::path::Path::new(library).is_absolute(), "{library}");
        assert!(std::path::Path::new(library).exists(), "{library}");
    }
}

#[test]
fn a_library_can_be_added_used_and_removed() {
    let workshop = Workshop::open();
    let library = workshop.allocator("libmine.so", &[]);
    workshop
        .installed(&["peers", "add", "mine", "libmine.so", "--env", "A=1"])
        .ended_with(0);
    workshop
        .installed(&["peers", "list"])
        .says(text(&library))
        .says("A=1");
    workshop
        .installed(&["run", "-a", "mine", "--", "sh", "-c", "echo $A"])
        .says("1\n");
    workshop
        .installed(&["peers", "remove", "mine"])
        .ended_with(0);
    let line = "'mine' was neither added nor built";
    workshop
        .installed(&["peers", "remove", "mine"])
        .is_one_line(2, line);
}

#[test]
fn a_library_that_is_gone_is_left_out_and_that_is_said() {
    let workshop = Workshop::open();
    let library = workshop.allocator("libmine.so", &[]);
    workshop
        .installed(&["peers", "add", "mine", "libmine.so"])
        .ended_with(0);
    std::fs::remove_file(library).unwrap();
    workshop
        .installed(&["peers", "list"])
        .ended_with(0)
        .says("mine is left out");
}

#[test]
fn only_an_allocator_that_works_can_be_added() {
    let workshop = Workshop::open();
    workshop.compile("libempty.so", "int nothing;\n", &["-shared", "-fPIC"]);
    workshop
        .installed(&["peers", "add", "x", "libempty.so"])
        .ended_with(2)
        .says("cannot replace malloc");
    workshop.allocator("libbad.so", &["-DBREAKS=0"]);
    workshop
        .installed(&["peers", "add", "x", "libbad.so"])
        .ended_with(1)
        .says("does not run /bin/ls");
    workshop.allocator("libgood.so", &[]);
    let line = "'jemalloc' is the name of another allocator";
    workshop
        .installed(&["peers", "add", "jemalloc", "libgood.so"])
        .is_one_line(2, line);
    let line = "'a b' is not a valid name: use letters, digits, '-', '_' and '.'";
    workshop
        .installed(&["peers", "add", "a b", "libgood.so"])
        .is_one_line(2, line);
}

#[test]
fn a_peer_that_nobody_knows_cannot_be_built() {
    let workshop = Workshop::open();
    let answer = workshop.installed(&["peers", "install", "nomalloc"]);
    answer.is_one_line(
        2,
        "no peer is called 'nomalloc'; there are mimalloc3, mimalloc2, snmalloc, jemalloc, tcmalloc, rpmalloc",
    );
}
