//! `hakmem compare --server`: servers and their clients.

mod support;

use serde_json::Value;
use std::time::{Duration, Instant};
use support::{Workshop, text};

#[test]
fn a_server_is_measured_by_its_clients() {
    let workshop = Workshop::open();
    let server = workshop.write(
        "server.py",
        "import socket\n\
         s = socket.socket(socket.AF_UNIX); s.bind('socket'); s.listen()\n\
         while True:\n    c, _ = s.accept(); c.sendall(b'hello'); c.close()\n",
    );
    let client = workshop.write(
        "client.py",
        "import socket\ns = socket.socket(socket.AF_UNIX); s.connect('socket'); print(s.recv(9))\n",
    );
    let server = format!("/usr/bin/python3 {}", text(&server));
    let client = format!("/usr/bin/python3 {}", text(&client));
    // Each server leaves its socket's file behind, as did one before this comparison.
    drop(std::os::unix::net::UnixListener::bind(workshop.path("socket")).unwrap());
    let arguments = [
        "compare",
        "-n",
        "2",
        "-a",
        "hakmem,glibc",
        "--server",
        &server,
        "--client",
        &client,
        "--ready",
        "socket",
        "--export",
        "result.json",
    ];
    workshop.hakmem(&arguments).ended_with(0);
    let result = std::fs::read(workshop.path("result.json")).unwrap();
    let document: Value = serde_json::from_slice(&result).unwrap();
    assert_eq!(document["samples"].as_array().unwrap().len(), 4);
    assert!(document["samples"][0]["peak_kib"].as_u64().unwrap() > 5000);
}

#[test]
fn a_client_that_fails_is_named() {
    let workshop = Workshop::open();
    let server = "/usr/bin/python3 -c \"import time; open('ready', 'w'); time.sleep(60)\"";
    let arguments = [
        "compare",
        "-n",
        "2",
        "-a",
        "glibc",
        "--server",
        server,
        "--client",
        "rm ready; exit 3",
        "--ready",
        "ready",
    ];
    let answer = workshop.hakmem(&arguments);
    answer
        .ended_with(1)
        .says("client 'rm ready; exit 3' failed (exit status: 3)");
}

#[test]
fn a_client_that_hangs_is_ended() {
    let workshop = Workshop::open();
    let server = "/usr/bin/python3 -c \"import time; open('ready', 'w'); time.sleep(60)\"";
    let options = ["--ready", "ready", "-a", "glibc", "--timeout", "1"];
    let command = ["--server", server, "--client", "rm ready; sleep 60 & wait"];
    let begun = Instant::now();
    let answer = workshop.hakmem(&[&["compare"], &options[..], &command].concat());
    answer.ended_with(1).says("not finished after 1 s");
    assert!(begun.elapsed() < Duration::from_secs(45));
}

#[test]
fn a_server_may_take_its_time_to_be_ready() {
    let workshop = Workshop::open();
    let server = "/usr/bin/python3 -c \"import os, time; os.path.exists('late') or (open('late', 'w'), \
        time.sleep(11)); open('ready', 'w'); time.sleep(60)\"";
    let options = ["--ready", "ready", "-a", "glibc", "-n", "2"];
    let command = ["--server", server, "--client", "rm ready"];
    let answer = workshop.hakmem(&[&["compare"], &options[..], &command].concat());
    answer
        .ended_with(1)
        .says("the server was not ready after 10 s; --timeout SECONDS gives it more");
    std::fs::remove_file(workshop.path("late")).unwrap();
    let options = [&options[..], &["--timeout", "60"]].concat();
    let answer = workshop.hakmem(&[&["compare"], &options[..], &command].concat());
    answer.ended_with(0);
}

#[test]
fn an_address_that_answers_already_is_refused() {
    let workshop = Workshop::open();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let arguments = [
        "compare", "--server", "sleep 60", "--client", "true", "--ready", &port, "-a", "glibc",
    ];
    let line = format!("another server already answers at {port}, and would be measured instead");
    workshop.hakmem(&arguments).is_one_line(2, &line);
}
