//! `hakmem profile --push`: sends profiles to a server, once or regularly.

use super::Arguments;
use crate::profile::Snapshot;
use crate::profile::look::{between_looks, look};
use crate::push::labels::{self, Labels};
use crate::push::{Parcel, Server};
use crate::signals::EndsHeld;
use clap::Args;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use hakmem_heap::profile::{Profile, Sampling};
use hakmem_lab::error::Result;
use hakmem_lab::{failed, usage};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How many profiles wait for a server that does not answer: at one per minute, those of an hour.
const WAITING_MAX: usize = 60;

#[derive(Args)]
pub struct Push {
    /// Send the profile to Pyroscope, to Parca, or as OTLP. The port says which (4040, 7070, 4318), or a prefix of the URL:
    /// pyroscope+, parca+ or otlp+
    #[arg(long = "push", value_name = "URL", value_parser = Server::parse, conflicts_with = "core")]
    to: Option<Server>,
    /// With --push: send a profile at this interval, until the process ends or --seconds have passed
    #[arg(long, value_name = "SECONDS", requires = "to", conflicts_with_all = ["pprof", "flamegraph", "save", "json", "view"])]
    interval: Option<f64>,
    /// With --push: a label of the profile, besides service (the program), host and container
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = labels::parse, requires = "to")]
    labels: Vec<(String, String)>,
}

impl Push {
    pub fn is_regular(&self) -> bool {
        self.interval.is_some()
    }

    /// Sends a profile, if requested.
    pub fn once(&self, snapshot: &Snapshot, pid: Option<i32>) -> Result<()> {
        let (Some(server), Some(pid)) = (&self.to, pid) else {
            return Ok(());
        };
        let labels = Labels::of(pid, &self.labels);
        server
            .send(&server.parcel(snapshot, &labels))
            .map_err(|why| failed!("{why}"))?;
        eprintln!("hakmem: the profile is at {}", server.shown());
        Ok(())
    }
}

/// Profiles that are not sent yet, the oldest first.
struct Outbox<'a> {
    server: &'a Server,
    waiting: VecDeque<Parcel>,
    sent: usize,
    lost: usize,
    /// The error of the last attempt.
    trouble: Option<String>,
}

impl Outbox<'_> {
    /// Sends a profile after all that wait. Those that cannot be sent stay, and this is reported once.
    fn send(&mut self, parcel: Parcel, go_on: impl Fn()) {
        self.waiting.push_back(parcel);
        while let Some(parcel) = self.waiting.front() {
            go_on();
            if let Err(why) = self.server.send(parcel) {
                if self.trouble.as_ref() != Some(&why) {
                    eprintln!(
                        "hakmem: warning: {why}; this profile will be sent again with the next one"
                    );
                }
                self.trouble = Some(why);
                break;
            }
            self.waiting.pop_front();
            self.sent += 1;
            if self.trouble.take().is_some() {
                eprintln!("hakmem: {} accepts profiles again", self.server.shown());
            }
        }
        if self.waiting.len() > WAITING_MAX {
            self.waiting.pop_front();
            self.lost += 1;
            eprintln!(
                "hakmem: warning: {WAITING_MAX} profiles wait, and the oldest is dropped: {} so far",
                self.lost
            );
        }
    }

    fn has_some(&self) -> bool {
        self.sent + self.waiting.len() + self.lost > 0
    }

    fn end(self) -> Result<()> {
        let not_sent = self.waiting.len() + self.lost;
        if not_sent == 0 {
            eprintln!(
                "hakmem: {} profiles are at {}",
                self.sent,
                self.server.shown()
            );
            return Ok(());
        }
        let why = self.trouble.unwrap_or_default();
        Err(failed!(
            "{not_sent} of {} profiles were not sent: {why}",
            self.sent + not_sent
        ))
    }
}

/// Sends until the process ends, a signal comes, or the time is over. What was seen until then is also sent.
pub fn regularly(
    process: &LiveProcess,
    title: &str,
    arguments: &Arguments,
    first: Profile,
) -> Result<()> {
    let push = &arguments.push;
    let (Some(server), Some(interval)) = (&push.to, push.interval) else {
        return Ok(());
    };
    if !(1.0..=86_400.0).contains(&interval) {
        return Err(usage!("--interval is from 1 to 86,400 seconds"));
    }
    let is_on = first.every != 0 && !first.is_lent;
    let every = if is_on { first.every } else { arguments.every };
    let sampling = match is_on {
        true => None,
        false => Some(between_looks(process, every)?),
    };
    let end = arguments.seconds.map(Duration::from_secs_f64);
    let end = end.and_then(|time| Instant::now().checked_add(time));
    let mut outbox = Outbox {
        server,
        waiting: VecDeque::new(),
        sent: 0,
        lost: 0,
        trouble: None,
    };
    let regular = Regular {
        process,
        title,
        labels: Labels::of(process.pid, &push.labels),
        every: sampling.as_ref().map_or(every, |sampling| sampling.every),
        sampling,
        end,
        interval,
    };
    // Also while a profile is sent.
    let ends = EndsHeld::begin();
    let mut before = Some(first);
    while let Some(seen) = before {
        before = regular.next(&seen, &mut outbox)?;
    }
    if let Some(sampling) = regular.sampling.filter(|_| process.lost().is_none()) {
        // If something else has ended it, the result does not matter.
        let _ = sampling.end();
    }
    drop(ends);
    outbox.end()
}

struct Regular<'a> {
    process: &'a LiveProcess,
    title: &'a str,
    labels: Labels,
    every: u64,
    /// None: sampling was already on.
    sampling: Option<Sampling<'a>>,
    end: Option<Instant>,
    interval: f64,
}

impl Regular<'_> {
    /// Looks for one interval, and sends what was seen. None: that was the last interval.
    fn next(&self, before: &Profile, outbox: &mut Outbox) -> Result<Option<Profile>> {
        let process = self.process;
        let rest = self
            .end
            .map(|end| end.saturating_duration_since(Instant::now()));
        let seconds = rest.map_or(self.interval, |rest| rest.as_secs_f64().min(self.interval));
        let looked = match look(process, seconds, self.every, self.sampling.is_none()) {
            Ok(looked) => looked,
            // The process ended between two looks; what was seen of it is sent already.
            Err(error) if outbox.has_some() && process.lost().is_some() => {
                eprintln!("hakmem: {error}");
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let snapshot = looked.snapshot(process, self.title.into(), before);
        outbox.send(outbox.server.parcel(&snapshot, &self.labels), || {
            // A server may be slow, and the process's lease must be renewed in time.
            if let Some(sampling) = &self.sampling {
                let _ = sampling.renew();
            }
        });
        let limits = snapshot.limits();
        limits
            .iter()
            .for_each(|line| eprintln!("hakmem: warning: {line}"));
        if let Some(part) = &looked.part {
            eprintln!("hakmem: {part}");
        }
        let is_over = self.end.is_some_and(|end| Instant::now() >= end);
        let is_last = looked.is_stopped || looked.part.is_some() || is_over;
        Ok((!is_last).then(|| looked.profile()))
    }
}
