//! Names by build id: from a debuginfod server, which may be slow, absent or wrong; from its client's cache; and from
//! /usr/lib/debug/.build-id.

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use support::waiting::Waiting;
use support::{Answer, Workshop, dump, library, text};

const PROGRAM: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) static void NAME(void) { *(volatile char *)malloc(66666) = 1; }
int main(void)
{
    NAME();
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

/// A program without names, and its debugging information. None if binutils are missing.
fn split(workshop: &Workshop, id: &str) -> Option<(PathBuf, PathBuf)> {
    let build_id = format!("-Wl,--build-id=0x{id}");
    let name = format!("-DNAME=known_{id}");
    let whole = workshop.compile("whole", PROGRAM, &["-g", &build_id, &name]);
    let (stripped, debug) = (workshop.path("program"), workshop.path("debug"));
    for (how, output) in [("--only-keep-debug", &debug), ("--strip-all", &stripped)] {
        let mut objcopy = Command::new("objcopy");
        let status = objcopy.arg(how).arg(&whole).arg(output).status();
        if !status.is_ok_and(|status| status.success()) {
            eprintln!("left out: no binutils");
            return None;
        }
    }
    std::fs::remove_file(whole).unwrap();
    Some((stripped, debug))
}

fn sampled(program: &Path) -> Waiting {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library());
    Waiting::start(command.env("HAKMEM_SAMPLE_BYTES", "1"))
}

/// Ends with the test.
fn serve(answer: impl Fn(&str, &mut TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap_or(0);
            let request = String::from_utf8_lossy(&request[..length]).into_owned();
            let path = request.split(' ').nth(1).unwrap_or("").to_string();
            answer(&path, &mut stream);
        }
    });
    address
}

fn send(stream: &mut TcpStream, status: &str, body: &[u8]) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body);
}

fn leaks(workshop: &Workshop, process: &Waiting, servers: &str) -> Answer {
    let mut command = workshop.command(&["leaks", &process.pid()]);
    command.env("DEBUGINFOD_URLS", servers);
    command.env("DEBUGINFOD_CACHE_PATH", workshop.path("cache"));
    command.env_remove("DEBUGINFOD_TIMEOUT");
    let begin = Instant::now();
    let answer = support::answer(command);
    answer.ended_with(0).says("65.1 KiB");
    assert!(
        begin.elapsed() < Duration::from_secs(40),
        "it waits too long"
    );
    answer
}

fn has_client() -> bool {
    let found = Command::new("debuginfod-find")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    let is_there = found.is_ok_and(|status| status.success());
    if !is_there {
        eprintln!("left out: debuginfod-find is not installed");
    }
    is_there
}

#[test]
fn a_server_has_the_names_and_the_cache_keeps_them() {
    let workshop = Workshop::open();
    let Some((program, debug)) = split(&workshop, "abcdef0123456789").filter(|_| has_client())
    else {
        return;
    };
    let debug = std::fs::read(debug).unwrap();
    let server = serve(move |path, stream| match path {
        "/buildid/abcdef0123456789/debuginfo" => send(stream, "200 OK", &debug),
        _ => send(stream, "404 Not Found", b"not here"),
    });
    let process = sampled(&program);
    let known = "known_abcdef0123456789 (whole.c:5)";
    leaks(&workshop, &process, &server).says(known);
    leaks(&workshop, &process, "").says(known);
}

/// The cache is a folder of files, so it works without the client.
#[test]
fn what_the_cache_has_is_believed_if_it_is_of_that_build() {
    let workshop = Workshop::open();
    let Some((program, debug)) = split(&workshop, "1234567890abcdef") else {
        return;
    };
    let process = sampled(&program);
    let folder = workshop.path("cache/1234567890abcdef");
    std::fs::create_dir_all(&folder).unwrap();
    let kept = folder.join("debuginfo");
    std::fs::copy(&debug, &kept).unwrap();
    leaks(&workshop, &process, "").says("known_1234567890abcdef (whole.c:5)");
    let elsewhere = Workshop::open();
    let (_, other) = split(&elsewhere, "fedcba0987654321").unwrap();
    for wrong in [std::fs::read(other).unwrap(), b"nonsense".to_vec(), vec![]] {
        std::fs::write(&kept, wrong).unwrap();
        let answer = leaks(&workshop, &process, "");
        answer.says("program+0x");
        assert!(!answer.output.contains("known_"), "{}", answer.output);
    }
}

#[test]
fn servers_that_are_of_no_use_cost_some_seconds_and_no_names() {
    let workshop = Workshop::open();
    let Some((program, _)) = split(&workshop, "0011223344556677").filter(|_| has_client()) else {
        return;
    };
    let process = sampled(&program);
    let elsewhere = Workshop::open();
    let (_, other) = split(&elsewhere, "7766554433221100").unwrap();
    let other = std::fs::read(other).unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    let useless = [
        ("absent", format!("http://{}/", closed.unwrap())),
        ("no address", "no address at all".into()),
        (
            "silent",
            serve(|_, _| std::thread::sleep(Duration::from_secs(100))),
        ),
        (
            "slow",
            serve(|_, stream| {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
                while stream.write_all(b"x").is_ok() {
                    std::thread::sleep(Duration::from_millis(200));
                }
            }),
        ),
        (
            "failing",
            serve(|_, stream| send(stream, "500 Internal Server Error", b"oh")),
        ),
        (
            "no HTTP",
            serve(|_, stream| {
                let _ = stream.write_all(b"nonsense");
            }),
        ),
        (
            "nonsense",
            serve(|_, stream| send(stream, "200 OK", b"nonsense")),
        ),
        (
            "another build",
            serve(move |_, stream| send(stream, "200 OK", &other)),
        ),
    ];
    for (what, server) in useless {
        let _ = std::fs::remove_dir_all(workshop.path("cache"));
        let answer = leaks(&workshop, &process, &server);
        let all = &answer.output;
        assert!(
            all.contains("program+0x") && !all.contains("known_"),
            "{what}: {all}"
        );
    }
}

/// In a mount namespace with a /usr/lib/debug of its own, if that is allowed.
#[test]
fn a_file_that_is_gone_has_its_names_in_the_folder_of_debuggers() {
    let workshop = Workshop::open();
    let Some((program, debug)) = split(&workshop, "99aabbccddeeff00") else {
        return;
    };
    let process = sampled(&program);
    let core = workshop.path("core");
    dump::dump(&process.pid(), &core, |_, _| {});
    drop(process);
    std::fs::remove_file(program).unwrap();
    let folder = workshop.path("root/.build-id/99");
    std::fs::create_dir_all(&folder).unwrap();
    let inside = |command: &str| {
        let mut unshare = Command::new("unshare");
        let script = format!("mount --bind root /usr/lib/debug && exec {command}");
        unshare.args(["-rm", "sh", "-c", &script]);
        unshare.current_dir(workshop.folder());
        support::answer(unshare)
    };
    if inside("true").code != Some(0) {
        eprintln!("left out: no mount namespaces here, or no /usr/lib/debug");
        return;
    }
    let leaks = format!(
        "{} leaks --core {}",
        env!("CARGO_BIN_EXE_hakmem"),
        text(&core)
    );
    inside(&leaks)
        .ended_with(0)
        .says("program+0x")
        .says("it is gone");
    std::fs::copy(debug, folder.join("aabbccddeeff00.debug")).unwrap();
    inside(&leaks)
        .ended_with(0)
        .says("known_99aabbccddeeff00 (whole.c:5)");
}

/// Fedora packs a few names into each stripped file like this.
#[test]
fn names_may_be_packed_into_the_stripped_file() {
    let workshop = Workshop::open();
    let program = workshop.compile("packed", PROGRAM, &["-DNAME=packed_function"]);
    let run = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(workshop.folder());
        shell.status().unwrap().success()
    };
    let is_packed = run("objcopy --only-keep-debug packed few && xz -kf few")
        && run("strip packed && objcopy --add-section .gnu_debugdata=few.xz packed");
    if !is_packed {
        eprintln!("left out: no binutils, or no xz");
        return;
    }
    let process = sampled(&program);
    workshop
        .hakmem(&["leaks", &process.pid()])
        .ended_with(0)
        .says("packed_function (packed)");
}
