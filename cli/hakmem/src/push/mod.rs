//! Sends profiles to a server: Pyroscope, Parca, or any server that takes OTLP. Always by HTTP/1.1: Pyroscope's push service is
//! Connect, which is a POST; Parca's is gRPC, and its server accepts gRPC-Web on the same port.

pub mod labels;
mod otlp;

use crate::numbers::NO_PORT;
use crate::profile::{Snapshot, pprof};
use crate::protobuf::{Fields, Message};
use labels::Labels;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use ureq::Agent;

/// The process stops sampling if its lease is not renewed for 10 s.
const TIMEOUT: Duration = Duration::from_secs(8);
/// How much of an answer to read.
const ANSWER_MAX: u64 = 64 << 10;
/// The length of the header before a gRPC message: flags and a length.
const FRAME: usize = 5;
/// Marks a frame that contains the call's status instead of a message.
const TRAILER: u8 = 0x80;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Pyroscope,
    Parca,
    Otlp,
}

/// The name in a URL, the usual port, and the path for profiles.
const KINDS: [(Kind, &str, u16, &str); 3] = [
    (
        Kind::Pyroscope,
        "pyroscope",
        4040,
        "/push.v1.PusherService/Push",
    ),
    (
        Kind::Parca,
        "parca",
        7070,
        "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
    ),
    (Kind::Otlp, "otlp", 4318, "/v1development/profiles"),
];

/// A server that accepts profiles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    kind: Kind,
    url: String,
    /// The URL without its secrets.
    shown: String,
}

/// A profile, ready to be sent.
pub struct Parcel(Vec<u8>);

impl Server {
    pub fn parse(text: &str) -> Result<Server, String> {
        let named = KINDS
            .iter()
            .find_map(|kind| Some((kind, text.strip_prefix(kind.1)?.strip_prefix('+')?)));
        let url = named.map_or(text, |(_, url)| url);
        let rest = ["http://", "https://"]
            .iter()
            .find_map(|scheme| url.strip_prefix(scheme))
            .ok_or("a URL begins with http:// or https://, and may have pyroscope+, parca+ or otlp+ before that")?;
        let (place, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = place.rsplit('@').next().unwrap_or_default();
        if host.is_empty() || host.starts_with(':') || url.contains(char::is_whitespace) {
            return Err("the URL names no host".into());
        }
        let port: Option<u16> = host
            .rsplit_once(':')
            .and_then(|(_, port)| port.parse().ok());
        let digits = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit());
        if port.is_none_or(|port| port == 0)
            && host.rsplit_once(':').is_some_and(|(_, port)| digits(port))
        {
            return Err(NO_PORT.into());
        }
        let usual = KINDS.iter().find(|kind| Some(kind.2) == port);
        let (kind, _, _, endpoint) = match named.map(|(kind, _)| kind).or(usual) {
            Some(kind) => *kind,
            None if port == Some(4317) => {
                return Err(
                    "port 4317 is for OTLP by gRPC: use port 4318, for OTLP by HTTP".into(),
                );
            }
            None => {
                return Err(
                    "the port does not say which server that is: pyroscope+http://…, \
                     parca+http://… or otlp+http://…"
                        .into(),
                );
            }
        };
        let base = url.trim_end_matches('/');
        let url = if base.ends_with(endpoint) {
            base.to_string()
        } else {
            format!("{base}{endpoint}")
        };
        let scheme = &url[..url.find("//").unwrap_or(0)];
        Ok(Server {
            kind,
            shown: format!("{scheme}//{host}{}", path.trim_end_matches('/')),
            url,
        })
    }

    pub fn shown(&self) -> &str {
        &self.shown
    }

    pub fn parcel(&self, snapshot: &Snapshot, labels: &Labels) -> Parcel {
        let begin = SystemTime::now() - Duration::from_secs_f64(snapshot.seconds);
        let begin_ns = begin.duration_since(UNIX_EPOCH);
        let begin_ns = begin_ns.map_or(0, |time| time.as_nanos() as u64);
        Parcel(match self.kind {
            Kind::Pyroscope => series(snapshot, labels, Kind::Pyroscope).0,
            Kind::Parca => {
                let request = series(snapshot, labels, Kind::Parca).0;
                let mut framed = vec![0];
                framed.extend((request.len() as u32).to_be_bytes());
                framed.extend(request);
                framed
            }
            Kind::Otlp => otlp::request(snapshot, labels, begin_ns),
        })
    }

    /// An error is one line that says why the profile was not accepted.
    pub fn send(&self, parcel: &Parcel) -> Result<(), String> {
        let config = Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .user_agent(concat!("hakmem/", env!("CARGO_PKG_VERSION")))
            .build();
        let kind = match self.kind {
            Kind::Pyroscope => "application/proto",
            Kind::Parca => "application/grpc-web+proto",
            Kind::Otlp => "application/x-protobuf",
        };
        let cannot = |error: ureq::Error| format!("cannot push to {}: {error}", self.shown);
        let request = Agent::new_with_config(config)
            .post(&self.url)
            .header("Content-Type", kind);
        let mut response = request.send(&parcel.0[..]).map_err(cannot)?;
        let status = response.status();
        let header = |name: &str| {
            let value = response.headers().get(name)?;
            value.to_str().ok().map(String::from)
        };
        let (code, message) = (header("grpc-status"), header("grpc-message"));
        let answer = response
            .body_mut()
            .with_config()
            .limit(ANSWER_MAX)
            .read_to_vec();
        let refused = |why: String| Err(format!("{} refused the profile: {why}", self.shown));
        if !status.is_success() {
            let line = first_line(&answer.unwrap_or_default());
            return refused(format!(
                "{status}{}{line}",
                if line.is_empty() { "" } else { ": " }
            ));
        }
        let answer = answer.map_err(cannot)?;
        let why = match self.kind {
            Kind::Pyroscope => None,
            Kind::Parca => refusal_of_grpc(&answer, code, message),
            Kind::Otlp => refusal_of_otlp(&answer),
        };
        why.map_or(Ok(()), refused)
    }
}

/// A series, in the terms of Pyroscope and Parca: labels, and pprof's file as the only sample.
fn series(snapshot: &Snapshot, labels: &Labels, kind: Kind) -> Message {
    let mut all = Message::default();
    let name = [("__name__", "memory")];
    for (name, value) in name.into_iter().chain(labels.all()) {
        let mut label = Message::default();
        label.bytes(1, labels::as_word(name).as_bytes());
        label.bytes(2, value.as_bytes());
        all.part(1, &label);
    }
    let mut sample = Message::default();
    sample.bytes(1, &pprof::encode(snapshot));
    let mut series = Message::default();
    let mut request = Message::default();
    if kind == Kind::Pyroscope {
        sample.bytes(2, labels::random_uuid().as_bytes());
        series.0 = all.0;
        series.part(2, &sample);
        request.part(1, &series);
    } else {
        series.part(1, &all);
        series.part(2, &sample);
        request.part(2, &series);
    }
    request
}

fn first_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let line = text.lines().find(|line| !line.trim().is_empty());
    let line = line.unwrap_or_default().trim();
    let seen = line.chars().filter(|letter| !letter.is_control());
    seen.take(300).collect()
}

/// The status of a call is in the headers, or in a separate frame after the answer.
fn refusal_of_grpc(
    mut answer: &[u8],
    mut code: Option<String>,
    mut message: Option<String>,
) -> Option<String> {
    while let Some((head, rest)) = answer.split_at_checked(FRAME) {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let (frame, rest) = rest.split_at(length.min(rest.len()));
        answer = rest;
        if head[0] & TRAILER == 0 {
            continue;
        }
        for line in String::from_utf8_lossy(frame).lines() {
            match line.split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("grpc-status") => {
                    code = Some(value.trim().into());
                }
                Some((name, value)) if name.eq_ignore_ascii_case("grpc-message") => {
                    message = Some(value.trim().into());
                }
                _ => {}
            }
        }
    }
    match code.as_deref() {
        Some("0") => None,
        Some(code) => Some(format!(
            "gRPC status {code}: {}",
            first_line(message.unwrap_or_default().as_bytes())
        )),
        None => Some("it gave no gRPC status: it may not be Parca".into()),
    }
}

fn refusal_of_otlp(answer: &[u8]) -> Option<String> {
    let partial = Fields(answer).part(1);
    let rejected = Fields(partial).number(1);
    let message = first_line(Fields(partial).part(2));
    (rejected > 0).then(|| format!("{rejected} rejected: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Result<(Kind, String), String> {
        Server::parse(text).map(|server| (server.kind, server.url))
    }

    #[test]
    fn a_url_says_which_server_it_is() {
        let push = "http://host:4040/push.v1.PusherService/Push";
        for text in ["http://host:4040", "http://host:4040/", push] {
            assert_eq!(url(text), Ok((Kind::Pyroscope, push.into())));
        }
        let (kind, _) = url("parca+https://host/prefix").unwrap();
        assert_eq!(kind, Kind::Parca);
        let otlp = "https://host/otlp/v1development/profiles".to_string();
        assert_eq!(url("otlp+https://host/otlp"), Ok((Kind::Otlp, otlp)));
        let with_password = Server::parse("http://user:secret@host:4318").unwrap();
        assert_eq!(with_password.shown(), "http://host:4318");
        for (text, why) in [
            ("ftp://host:4040", "begins with http://"),
            ("host:4040", "begins with http://"),
            ("http://host:8080", "does not say which server"),
            ("http://host:4317", "4318"),
            ("pyroscope+http://", "no host"),
            ("http://:4040", "no host"),
        ] {
            assert!(url(text).unwrap_err().contains(why), "{text}");
        }
    }

    #[test]
    fn what_a_server_refuses_is_said() {
        let frame = |flags: u8, text: &str| {
            let mut frame = vec![flags];
            frame.extend((text.len() as u32).to_be_bytes());
            frame.extend(text.as_bytes());
            frame
        };
        let good = [frame(0, ""), frame(TRAILER, "grpc-status: 0\r\n")].concat();
        assert_eq!(refusal_of_grpc(&good, None, None), None);
        let bad = frame(TRAILER, "grpc-status:3\r\ngrpc-message:no labels\r\n");
        let why = refusal_of_grpc(&bad, None, None).unwrap();
        assert_eq!(why, "gRPC status 3: no labels");
        assert!(refusal_of_grpc(b"<html>", None, None).is_some());
        let mut partial = Message::default();
        partial.number(1, 4);
        partial.bytes(2, b"too large");
        let mut answer = Message::default();
        answer.part(1, &partial);
        assert_eq!(refusal_of_otlp(&answer.0).unwrap(), "4 rejected: too large");
        assert_eq!(refusal_of_otlp(b""), None);
    }
}
