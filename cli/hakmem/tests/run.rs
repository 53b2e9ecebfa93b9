//! `hakmem run`: the program's input, output, signals and end are the same as without hakmem.

mod support;

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use support::{Workshop, answer, library, text};

/// Prints which file contains its malloc.
const WHERE: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    Dl_info found;
    dladdr((void *)malloc, &found);
    void *volatile block = malloc(10);
    puts(found.dli_fname);
    return block == NULL;
}
"#;

#[test]
fn the_programs_malloc_is_hakmems_and_so_is_its_childrens() {
    let workshop = Workshop::open();
    let program = workshop.compile("where", WHERE, &["-Wl,-z,now"]);
    let found = workshop.hakmem(&["run", "--", text(&program)]);
    assert_eq!(found.output.trim(), text(&library()));
    let found = workshop.hakmem(&["run", "--", "sh", "-c", "./where; ./where"]);
    assert_eq!(found.output, format!("{0}\n{0}\n", text(&library())));
}

#[test]
fn the_exit_code_is_the_programs() {
    let workshop = Workshop::open();
    for statistics in [&[][..], &["--stats"]] {
        let arguments = [&["run"], statistics, &["--", "sh", "-c", "exit 37"]].concat();
        workshop.hakmem(&arguments).ended_with(37);
    }
}

#[test]
fn a_signal_that_ends_the_program_ends_us() {
    let workshop = Workshop::open();
    for statistics in [&[][..], &["--stats"]] {
        let arguments = [&["run"], statistics, &["--", "sh", "-c", "kill -TERM $$"]].concat();
        let status = workshop
            .command(&arguments)
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert_eq!(status.signal(), Some(15));
    }
}

#[test]
fn a_signal_that_is_sent_to_us_reaches_the_program() {
    let workshop = Workshop::open();
    let script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let mut child = workshop
        .command(&["run", "--stats", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(child.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "caught");
    assert_eq!(child.wait().unwrap().code(), Some(5));
}

#[test]
fn standard_input_is_passed_through() {
    let workshop = Workshop::open();
    for statistics in [&[][..], &["--stats"]] {
        let mut child = workshop
            .command(&[&["run"], statistics, &["--", "wc", "-c"]].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"12345").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "5");
    }
}

#[test]
fn what_was_preloaded_before_stays_behind_hakmem() {
    let workshop = Workshop::open();
    let other = workshop.compile("libother.so", "int other;\n", &["-shared", "-fPIC"]);
    let mut command = workshop.command(&["run", "--", "sh", "-c", "echo $LD_PRELOAD"]);
    command.env("LD_PRELOAD", &other);
    let found = answer(command).output;
    assert_eq!(
        found.trim(),
        format!("{}:{}", text(&library()), text(&other))
    );
}

#[test]
fn a_path_that_cannot_be_preloaded_is_refused() {
    let workshop = Workshop::open();
    for name in ["lib other.so", "lib:other.so"] {
        let other = workshop.allocator(name, &[]);
        workshop
            .hakmem(&[
                "run",
                "-a",
                &format!("other={}", text(&other)),
                "--",
                "true",
            ])
            .ended_with(2)
            .says("cannot be preloaded: ld.so ends a path in LD_PRELOAD at a space or a colon");
    }
}

#[test]
fn statistics_come_at_the_end_and_only_when_asked_for() {
    let workshop = Workshop::open();
    let program = workshop.program();
    assert_eq!(workshop.hakmem(&["run", "--", text(&program)]).errors, "");
    let said = workshop.hakmem(&["run", "--stats", "--", text(&program), "hello"]);
    assert_eq!(said.output, "hello\n");
    said.says("hakmem: program took")
        .says("memory      peak")
        .says("live at the end in")
        .says("slow calls")
        .says("in 1 process;");
}

#[test]
fn another_allocator_can_be_run_under() {
    let workshop = Workshop::open();
    let program = workshop.compile("where", WHERE, &["-Wl,-z,now"]);
    let mine = workshop.allocator("libmine.so", &[]);
    let found = workshop.hakmem(&["run", "-a", "mine=libmine.so", "--", text(&program)]);
    assert_eq!(found.output.trim(), text(&mine));
}

#[test]
fn the_library_is_found_where_distributions_put_it() {
    let debian = format!("lib/{}-linux-gnu", std::env::consts::ARCH);
    for folder in ["lib", "lib64", &debian] {
        let workshop = Workshop::open();
        let copy = workshop.path("usr").join(folder).join("libhakmem.so.1");
        std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
        std::fs::copy(library(), &copy).unwrap();
        let program = workshop.path("usr/bin/hakmem");
        std::fs::create_dir(program.parent().unwrap()).unwrap();
        let built = std::fs::read(env!("CARGO_BIN_EXE_hakmem")).unwrap();
        support::make_program(&program, &built);
        let mut command = Command::new(program);
        command.args(["run", "--", "sh", "-c", "echo $LD_PRELOAD"]);
        command.env_remove("LD_PRELOAD");
        let found = answer(command);
        assert_eq!(found.output.trim(), text(&copy), "{}", found.errors);
    }
}

#[test]
fn a_static_program_is_refused_with_the_alternative() {
    let workshop = Workshop::open();
    let program = workshop.compile("still", support::PROGRAM, &["-static"]);
    let line = format!(
        "{} is statically linked, so nothing can be preloaded; link libhakmem.a into it instead, or in Rust \
         use the crate hakmem-allocator (rust/)",
        text(&program)
    );
    workshop
        .hakmem(&["run", "--", text(&program)])
        .is_one_line(1, &line);
}

#[test]
fn a_program_for_musl_is_refused() {
    let workshop = Workshop::open();
    let linker = "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1";
    let program = workshop.compile("other", support::PROGRAM, &[linker]);
    let line = format!(
        "{} is linked with another C library (/lib/ld-musl-x86_64.so.1), and libhakmem.so needs glibc; use the \
         program's build for glibc, or hakmem's for that C library (docs/install.md)",
        text(&program)
    );
    for command in [&["run"][..], &["leaks", "--exit"], &["tune"], &["compare"]] {
        let arguments = [command, &["--", text(&program)]].concat();
        workshop.hakmem(&arguments).is_one_line(1, &line);
    }
}

/// Only root can change a file's owner; for other users a set-user-ID program is their own.
#[test]
fn a_set_user_id_program_is_refused_with_the_alternative() {
    let workshop = Workshop::open();
    let program = workshop.program();
    if std::os::unix::fs::chown(&program, Some(65534), Some(65534)).is_err() {
        return;
    }
    for (mode, how) in [(0o4755, "is set-user-ID"), (0o2755, "is set-group-ID")] {
        std::fs::set_permissions(&program, PermissionsExt::from_mode(mode)).unwrap();
        let line = format!(
            "{} {how}, so the dynamic linker ignores LD_PRELOAD for this user; link libhakmem.a into it instead, \
             or in Rust use the crate hakmem-allocator (rust/)",
            text(&program)
        );
        workshop
            .hakmem(&["run", "--", text(&program)])
            .is_one_line(1, &line);
    }
}

/// The program with a sanitizer, if there is a compiler that supports it.
fn sanitized(workshop: &Workshop, compiler: &str, sanitizer: &str) -> Option<PathBuf> {
    let source = workshop.write("where.c", WHERE);
    let program = workshop.path(&format!("{compiler}-{sanitizer}"));
    let made = Command::new(compiler)
        .args(["-w", "-Wl,-z,now", &format!("-fsanitize={sanitizer}"), "-o"])
        .args([&program, &source])
        .stderr(Stdio::null())
        .status();
    made.is_ok_and(|status| status.success()).then_some(program)
}

/// gcc's run-time libraries are shared; clang's are linked in.
#[test]
fn a_program_with_a_sanitizer_is_refused() {
    let workshop = Workshop::open();
    for (sanitizer, name) in [
        ("address", "AddressSanitizer"),
        ("leak", "LeakSanitizer"),
        ("thread", "ThreadSanitizer"),
        ("memory", "MemorySanitizer"),
    ] {
        for program in ["cc", "clang", "clang-19"]
            .into_iter()
            .filter_map(|compiler| sanitized(&workshop, compiler, sanitizer))
        {
            let line = format!(
                "{} is built with {name}, which has to be the program's allocator; use the program's build \
                 without it",
                text(&program)
            );
            for command in [&["run"][..], &["verify", "--preload"]] {
                workshop
                    .hakmem(&[command, &["--", text(&program)]].concat())
                    .is_one_line(1, &line);
            }
            // What it uses is shown nevertheless.
            let said = workshop.hakmem(&["verify", text(&program)]);
            assert!(!said.errors.contains("is built with"), "{}", said.errors);
        }
    }
}

/// This sanitizer has no allocator.
#[test]
fn a_program_with_undefined_behaviour_sanitizer_runs() {
    let workshop = Workshop::open();
    for program in ["cc", "clang-19"]
        .into_iter()
        .filter_map(|compiler| sanitized(&workshop, compiler, "undefined"))
    {
        let found = workshop.hakmem(&["run", "--", text(&program)]);
        assert_eq!(found.output.trim(), text(&library()));
    }
}

#[test]
fn a_program_for_another_machine_is_refused() {
    let workshop = Workshop::open();
    let program = workshop.program();
    let mut bytes = std::fs::read(&program).unwrap();
    bytes[18..20].copy_from_slice(&243u16.to_le_bytes()); // the machine: RISC-V
    std::fs::write(&program, &bytes).unwrap();
    workshop
        .hakmem(&["run", "--", text(&program)])
        .ended_with(1)
        .says("is for RISC-V");
    bytes[4] = 1; // the class: 32 bits
    std::fs::write(&program, &bytes).unwrap();
    workshop
        .hakmem(&["run", "--", text(&program)])
        .ended_with(1)
        .says("is for 32 bits");
}

#[test]
fn a_program_that_would_not_use_it_is_refused() {
    let workshop = Workshop::open();
    let own = format!("{}\n{}", support::ALLOCATOR, support::PROGRAM);
    let program = workshop.compile("own", &own, &[]);
    let said = workshop.hakmem(&["run", "--", text(&program)]);
    said.ended_with(1).says("instead of hakmem");
}

#[test]
fn what_cannot_be_started_is_said_in_one_line() {
    let workshop = Workshop::open();
    let line = "there is no program 'no-such-program' in PATH";
    workshop
        .hakmem(&["run", "--", "no-such-program"])
        .is_one_line(2, line);
    let file = workshop.write("data", "text");
    let line = format!("{} is not executable (chmod +x)", text(&file));
    workshop
        .hakmem(&["run", "--", text(&file)])
        .is_one_line(2, &line);
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
    let line = format!("{} is not a program: not an ELF file", text(&file));
    workshop
        .hakmem(&["run", "--", text(&file)])
        .is_one_line(2, &line);
    let script = workshop.script("script", "#!/no/such/interpreter\n");
    let line = format!(
        "{}: its interpreter /no/such/interpreter is missing",
        text(&script)
    );
    workshop
        .hakmem(&["run", "--", text(&script)])
        .is_one_line(2, &line);
}

/// The C library sets signals 32 and 33 itself when a thread starts.
const OF_THE_C_LIBRARY: u64 = 3 << 31;

/// As under nohup, or in a service that ignores SIGPIPE.
#[test]
fn the_program_finds_the_signals_that_we_found() {
    let workshop = Workshop::open();
    let hakmem = env!("CARGO_BIN_EXE_hakmem");
    let ways = [
        "exec".to_string(),
        format!("exec {hakmem} run --"),
        format!("exec {hakmem} run --stats --"),
        format!("exec {hakmem} record -o trace --"),
    ];
    let found = ways.map(|way| {
        let line =
            format!("trap '' PIPE HUP TERM XFSZ; {way} grep -E '^Sig(Blk|Ign)' /proc/self/status");
        let mut shell = Command::new("/bin/sh");
        shell
            .args(["-c", &line])
            .current_dir(workshop.folder())
            .env("HOME", workshop.folder())
            .env_remove("LD_PRELOAD");
        let lines = answer(shell).output;
        let signals = |name| {
            let line = lines.lines().find_map(|line| line.strip_prefix(name));
            u64::from_str_radix(line.unwrap(), 16).unwrap() & !OF_THE_C_LIBRARY
        };
        (signals("SigBlk:\t"), signals("SigIgn:\t"))
    });
    assert_eq!(found[0].1 & 0x100_5001, 0x100_5001);
    for other in &found[1..] {
        assert_eq!(*other, found[0]);
    }
}

#[test]
fn output_that_cannot_be_written_is_said_in_one_line() {
    let workshop = Workshop::open();
    let mut command = workshop.command(&["options"]);
    command.stdout(std::fs::File::create("/dev/full").unwrap());
    let said = answer(command);
    said.is_one_line(
        1,
        "cannot write to standard output: No space left on device (os error 28)",
    );
}
