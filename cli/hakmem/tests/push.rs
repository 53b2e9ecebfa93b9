//! Servers receive profiles in their own formats (push.v1 of Pyroscope, profilestore.v1alpha1 of Parca by gRPC-Web,
//! profiles.v1development of OTLP), and refusals are reported in one line. The servers are the test's own.

mod support;

use flate2::read::GzDecoder;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use support::protobuf::{Message, content, message, parts, texts};
use support::waiting::Waiting;
use support::{Workshop, library};

/// Keeps one block of 66,666 bytes, and waits.
const KEEPER: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) void keep(void)
{
    void *volatile block = malloc(66666);
    memset(block, 1, 66666);
}
int main(void)
{
    keep();
    puts("ready");
    fflush(stdout);
    char end;
    return read(0, &end, 1) != 0;
}
"#;

struct Request {
    head: String,
    body: Vec<u8>,
}

/// Answers one request after the other.
struct Server {
    port: u16,
    requests: Receiver<Request>,
}

impl Server {
    /// `answers` are status lines and contents; after the last one, the server ends.
    fn start(answers: &'static [(&'static str, &'static [u8])]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for (status, answer) in answers {
                let mut stream = BufReader::new(listener.accept().unwrap().0);
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n") {
                    assert!(stream.read_line(&mut head).unwrap() > 0, "{head}");
                }
                let lower = head.to_lowercase();
                let length = lower
                    .lines()
                    .find_map(|line| line.strip_prefix("content-length:"));
                let mut body = vec![0; length.unwrap().trim().parse().unwrap()];
                stream.read_exact(&mut body).unwrap();
                // Recorded before the client gets the answer.
                sender.send(Request { head, body }).unwrap();
                let length = answer.len();
                let answered = format!(
                    "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
                );
                stream.get_mut().write_all(answered.as_bytes()).unwrap();
                stream.get_mut().write_all(answer).unwrap();
            }
        });
        Server { port, requests }
    }

    fn url(&self, kind: &str) -> String {
        format!("{kind}+http://127.0.0.1:{}", self.port)
    }

    fn request(&self) -> Request {
        self.requests.recv_timeout(Duration::from_secs(60)).unwrap()
    }
}

fn keeper(workshop: &Workshop, is_sampled: bool) -> Waiting {
    let program = workshop.compile("keeper", KEEPER, &["-g"]);
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", library());
    if is_sampled {
        command.env("HAKMEM_SAMPLE_BYTES", "1");
    }
    Waiting::start(&mut command)
}

/// Names and values, as in Pyroscope's and Parca's messages.
fn labels(of: &Message) -> Vec<(String, String)> {
    let labels = parts(of, 1);
    let labels = labels
        .iter()
        .map(|label| (content(label, 1), content(label, 2)));
    labels.collect()
}

fn check_series(labels: &[(String, String)], sample: &Message) {
    for (name, value) in [
        ("__name__", "memory"),
        ("service_name", "orders"),
        ("k8s_pod", "a"),
    ] {
        assert!(labels.contains(&(name.into(), value.into())), "{labels:?}");
    }
    assert!(labels.iter().any(|(name, _)| name == "host"), "{labels:?}");
    let raw = sample.iter().find(|(field, ..)| *field == 1).unwrap();
    let mut pprof = Vec::new();
    GzDecoder::new(&raw.2[..]).read_to_end(&mut pprof).unwrap();
    let texts = texts(&message(&pprof), 6);
    assert!(texts.iter().any(|text| text == "keep"), "{texts:?}");
}

#[test]
fn each_server_gets_what_its_protocol_says() {
    let workshop = Workshop::open();
    let process = keeper(&workshop, true);
    let push = |url: &str| {
        let pid = process.pid();
        let labels = ["--label=service=orders", "--label=k8s.pod=a"];
        workshop.hakmem(&[&["profile", &pid, "--push", url][..], &labels].concat())
    };

    let pyroscope = Server::start(&[("200 OK", b"")]);
    let said = push(&pyroscope.url("pyroscope"));
    said.ended_with(0)
        .says("the profile is at http://127.0.0.1:")
        .says("keep (keeper.c");
    let request = pyroscope.request();
    assert!(
        request
            .head
            .starts_with("POST /push.v1.PusherService/Push HTTP/1.1")
    );
    assert!(
        request
            .head
            .to_lowercase()
            .contains("content-type: application/proto\r\n")
    );
    let series = &parts(&message(&request.body), 1)[0];
    let sample = &parts(
        &vec![
            series
                .iter()
                .find(|(field, ..)| *field == 2)
                .unwrap()
                .clone(),
        ],
        2,
    )[0];
    check_series(&labels(series), sample);
    assert_eq!(content(sample, 2).len(), 36);

    let parca = Server::start(&[("200 OK", b"\0\0\0\0\0\x80\0\0\0\x0fgrpc-status: 0\r")]);
    push(&parca.url("parca")).ended_with(0);
    let request = parca.request();
    let service = "POST /parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw HTTP/1.1";
    assert!(request.head.starts_with(service), "{}", request.head);
    let (frame, body) = request.body.split_at(5);
    assert_eq!(
        (frame[0], u32::from_be_bytes(frame[1..].try_into().unwrap())),
        (0, body.len() as u32)
    );
    let series = &parts(&message(body), 2)[0];
    check_series(&labels(&parts(series, 1)[0]), &parts(series, 2)[0]);

    let otlp = Server::start(&[("200 OK", b"")]);
    push(&otlp.url("otlp")).ended_with(0);
    let request = otlp.request();
    assert!(
        request
            .head
            .starts_with("POST /v1development/profiles HTTP/1.1")
    );
    check_otlp(&message(&request.body));
}

fn check_otlp(request: &Message) {
    let of_resource = &parts(request, 1)[0];
    let attributes = parts(&parts(of_resource, 1)[0], 1);
    let attributes: Vec<(String, String)> = attributes
        .iter()
        .map(|one| (content(one, 1), content(&parts(one, 2)[0], 1)))
        .collect();
    for (name, value) in [("service.name", "orders"), ("k8s.pod", "a")] {
        assert!(
            attributes.contains(&(name.into(), value.into())),
            "{attributes:?}"
        );
    }
    let dictionary = &parts(request, 2)[0];
    let texts = texts(dictionary, 5);
    assert_eq!(texts[0], "");
    // Entry 0 of each table exists and is empty.
    for table in [1, 2, 3, 4, 6, 7] {
        assert!(parts(dictionary, table)[0].is_empty(), "table {table}");
    }
    let text = |of: &Message, field| texts[support::protobuf::number(of, field) as usize].as_str();
    let profiles = parts(&parts(of_resource, 2)[0], 2);
    let kinds: Vec<&str> = profiles
        .iter()
        .map(|one| text(&parts(one, 1)[0], 1))
        .collect();
    assert_eq!(
        kinds,
        [
            "alloc_objects",
            "alloc_space",
            "inuse_objects",
            "inuse_space"
        ]
    );
    let functions = parts(dictionary, 3);
    let locations = parts(dictionary, 2);
    let stacks = parts(dictionary, 7);
    let packed = |of: &Message, field| -> Vec<u8> {
        let found = of.iter().find(|(number, ..)| *number == field);
        found.map_or(Vec::new(), |(.., bytes)| bytes.clone())
    };
    let has_name = |stack: &Message| {
        // There are few places, so each number is one byte.
        packed(stack, 1).iter().any(|place| {
            let lines = parts(&locations[usize::from(*place)], 3);
            let number = |line| support::protobuf::number(line, 1) as usize;
            lines
                .iter()
                .any(|line| text(&functions[number(line)], 1) == "keep")
        })
    };
    let samples = parts(&profiles[3], 2);
    let of_keep: Vec<Vec<u8>> = samples
        .iter()
        .filter(|sample| has_name(&stacks[support::protobuf::number(sample, 1) as usize]))
        .map(|sample| packed(sample, 4))
        .collect();
    assert_eq!(of_keep, [[0xEA, 0x88, 0x04]]); // 66,666
}

#[test]
fn what_a_server_refuses_is_one_line() {
    let workshop = Workshop::open();
    let process = keeper(&workshop, true);
    let push = |url: &str| workshop.hakmem(&["profile", &process.pid(), "--json", "--push", url]);
    let full = Server::start(&[("503 Service Unavailable", b"no room left\nat all")]);
    let url = full.url("pyroscope");
    let shown = url.trim_start_matches("pyroscope+");
    let said = push(&url);
    let line =
        format!("hakmem: {shown} refused the profile: 503 Service Unavailable: no room left");
    assert_eq!(
        (said.errors.trim_end(), said.code),
        (line.as_str(), Some(1))
    );
    let parca = Server::start(&[(
        "200 OK",
        b"\x80\0\0\0\x26grpc-status:3\r\ngrpc-message:no labels\r\n",
    )]);
    push(&parca.url("parca"))
        .ended_with(1)
        .says("gRPC status 3: no labels");
    let rejects = Server::start(&[("200 OK", b"\x0a\x09\x08\x04\x12\x05large")]);
    push(&rejects.url("otlp"))
        .ended_with(1)
        .says("4 rejected: large");
    let nobody = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let refused = push(&format!("otlp+http://{nobody}"));
    refused
        .ended_with(1)
        .says("cannot push to http://127.0.0.1:")
        .says("refused");
    assert_eq!(refused.errors.lines().count(), 1, "{}", refused.errors);
    push("ftp://host:4040")
        .ended_with(2)
        .says("begins with http://");
}

/// A server refuses the first profile. Nothing is lost, and the last profile is sent when the process ends.
#[test]
fn profiles_go_out_until_the_process_ends() {
    let workshop = Workshop::open();
    let mut process = keeper(&workshop, false);
    let server = Server::start(&[
        ("503 Service Unavailable", b""),
        ("200 OK", b""),
        ("200 OK", b""),
        ("200 OK", b""),
    ]);
    let url = server.url("pyroscope");
    let mut command =
        workshop.command(&["profile", &process.pid(), "--push", &url, "--interval=1"]);
    let pushing = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    server.request(); // refused
    server.request(); // sent again
    server.request(); // with the second profile behind it
    process.end();
    let said = support::Answer::from(pushing.wait_with_output().unwrap());
    // One more, unless the process has ended between two looks.
    let sent = 2 + server.requests.try_iter().count();
    said.ended_with(0)
        .says("503 Service Unavailable; this profile will be sent again with the next one")
        .says("accepts profiles again")
        .says(&format!("{sent} profiles are at http://127.0.0.1:"));
}
