//! A function's name is right, or it is not given, with the reason: of files that were replaced, removed, unloaded, or
//! that lie elsewhere in another mount namespace.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};
use support::waiting::Waiting;
use support::{Workshop, dump, library, text};

/// Keeps one block of 66,666 bytes that function NAME has allocated, and waits.
const KEEPER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef SHIFT
int shift(int x) { return x * 3 + 1; }
int shift_more(int x) { return shift(x) + shift(x + 1); }
#endif
__attribute__((noinline)) void NAME(void)
{
    void *volatile block = malloc(66666);
    memset(block, 1, 66666);
}
int main(void)
{
    NAME();
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

/// Two builds of one program, whose code lies at different places.
fn two_builds(workshop: &Workshop) {
    workshop.compile("old", KEEPER, &["-g", "-DNAME=old_function"]);
    workshop.compile("new", KEEPER, &["-g", "-DNAME=new_function", "-DSHIFT"]);
}

fn sampled(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library());
    command.env("HAKMEM_SAMPLE_BYTES", "1");
    command
}

#[test]
fn a_replaced_or_removed_program_has_its_own_names() {
    let workshop = Workshop::open();
    two_builds(&workshop);
    let program = workshop.path("program");
    std::fs::rename(workshop.path("old"), &program).unwrap();
    let process = Waiting::start(&mut sampled(&program));
    std::fs::rename(workshop.path("new"), &program).unwrap();
    for _ in 0..2 {
        for command in ["profile", "leaks"] {
            let answer = workshop.hakmem(&[command, &process.pid()]);
            answer.ended_with(0).says("old_function (old.c:");
            assert!(!answer.output.contains("new_function"));
        }
        let _ = std::fs::remove_file(&program); // and once more without any
    }
}

#[test]
fn a_replaced_file_gives_no_names_to_a_core_dump() {
    let workshop = Workshop::open();
    two_builds(&workshop);
    let program = workshop.path("program");
    std::fs::rename(workshop.path("old"), &program).unwrap();
    let process = Waiting::start(&mut sampled(&program));
    let core = workshop.path("core");
    dump::dump(&process.pid(), &core, |_, _| {});
    drop(process);
    let leaks = ["leaks", "--core", text(&core)];
    workshop.hakmem(&leaks).ended_with(0).says("old_function");
    std::fs::rename(workshop.path("new"), &program).unwrap();
    let answer = workshop.hakmem(&leaks);
    answer.ended_with(0).says("program+0x").says("is there now");
    assert!(!answer.output.contains("_function"), "{}", answer.output);
}

/// Run as another user than root it needs user namespaces, which not every machine allows.
#[test]
fn a_file_of_another_mount_namespace_is_not_mixed_up() {
    let workshop = Workshop::open();
    two_builds(&workshop);
    let [inside, outside] = ["inside", "app"].map(|name| {
        let folder = workshop.path(name);
        std::fs::create_dir(&folder).unwrap();
        folder.join("program")
    });
    std::fs::rename(workshop.path("old"), inside).unwrap();
    std::fs::rename(workshop.path("new"), &outside).unwrap();
    let unshare = |command: &str| {
        let mut unshare = Command::new("unshare");
        unshare.args(["-rm", "sh", "-c", command]);
        unshare.current_dir(workshop.folder());
        unshare
    };
    let bind = "mount --bind inside app";
    let is_possible = unshare(bind).stderr(Stdio::null()).status();
    if !is_possible.is_ok_and(|status| status.success()) {
        eprintln!("left out: no mount namespaces here");
        return;
    }
    let library = library();
    let run = format!(
        "{bind} && exec env LD_PRELOAD={} HAKMEM_SAMPLE_BYTES=1 {}",
        text(&library),
        text(&outside)
    );
    let process = Waiting::start(&mut unshare(&run));
    for command in ["profile", "leaks"] {
        let answer = workshop.hakmem(&[command, &process.pid()]);
        answer.ended_with(0).says("old_function");
        assert!(!answer.output.contains("new_function"));
    }
}
