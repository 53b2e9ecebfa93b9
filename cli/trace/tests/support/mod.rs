//! Artificial traces.

#![allow(dead_code)] // each test uses some of it

use hakmem_trace::codec::{Decoder, Encoder};
use hakmem_trace::event::{Event, Kind};
use hakmem_trace::format::{Beginning, Ending, Process, Tag};
use hakmem_trace::reader::Reader;
use hakmem_trace::writer::Writer;
use std::collections::BTreeMap;
use std::path::Path;

pub fn event(time: u64, kind: Kind, address: u64, size: u64) -> Event {
    Event {
        time,
        address,
        size,
        stack: 0,
        kind,
        alignment_log2: 0,
    }
}

pub fn malloc(time: u64, address: u64, size: u64) -> Event {
    event(time, Kind::Malloc, address, size)
}

pub fn free(time: u64, address: u64) -> Event {
    event(time, Kind::Free, address, 0)
}

pub type Threads = BTreeMap<u32, Vec<Event>>;

/// Writes one process's threads, in chunks of `chunk_events` events. A unit is a nanosecond.
pub fn write(path: &Path, threads: &Threads, chunk_events: usize) {
    write_begun(path, threads, chunk_events)
        .finish(Ending {
            units_per_second: 1e9,
            ..Ending::default()
        })
        .unwrap();
}

/// The same, without an end.
pub fn write_begun(path: &Path, threads: &Threads, chunk_events: usize) -> Writer {
    let _ = std::fs::remove_file(path); // a test may write several
    let mut writer = Writer::create(path, None).unwrap();
    writer
        .json(
            Tag::Begin,
            &Beginning {
                units_per_second: 1e9,
                ..Beginning::default()
            },
        )
        .unwrap();
    writer
        .json(
            Tag::Process,
            &Process {
                process: 1,
                ..Process::default()
            },
        )
        .unwrap();
    for (&thread, events) in threads {
        for chunk in events.chunks(chunk_events) {
            let mut encoder = Encoder::new(1, thread);
            chunk.iter().for_each(|event| encoder.push(*event));
            writer.chunk(&mut encoder).unwrap();
        }
    }
    writer
}

/// All events, or the error line.
pub fn read(path: &Path) -> Result<Threads, String> {
    let reader = Reader::open(path).map_err(|error| error.to_string())?;
    let mut decoder = Decoder::new().unwrap();
    let mut threads = Threads::new();
    for chunk in &reader.chunks {
        let events = threads.entry(chunk.head.thread).or_default();
        reader
            .read_chunk(chunk, &mut decoder, events)
            .map_err(|error| error.to_string())?;
    }
    Ok(threads)
}

/// The results of the project's build.
pub mod build {
    use std::fs;
    use std::path::Path;

    pub fn path(name: &str) -> String {
        let build = std::env::var("HAKMEM_BUILD")
            .unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../build").into());
        let path = Path::new(&build).join(name);
        path.canonicalize()
            .unwrap_or_else(|_| {
                panic!(
                    "{} is missing: run tools/build release tests",
                    path.display()
                )
            })
            .to_string_lossy()
            .into_owned()
    }

    /// A line that tests/trace/tally.c writes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Tally {
        pub thread: i32,
        pub kind: i32,
        pub address: u64,
        pub size: u64,
        pub alignment: u64,
        pub process: i32,
    }

    impl Tally {
        pub fn read(path: &Path) -> Vec<Tally> {
            let bytes = fs::read(path).unwrap();
            let parse = |line: &[u8]| {
                let word = |at: usize| i32::from_le_bytes(line[at..at + 4].try_into().unwrap());
                let long = |at: usize| u64::from_le_bytes(line[at..at + 8].try_into().unwrap());
                Tally {
                    thread: word(0),
                    kind: word(4),
                    address: long(8),
                    size: long(16),
                    alignment: long(24),
                    process: word(32),
                }
            };
            bytes.chunks_exact(40).map(parse).collect()
        }
    }
}
