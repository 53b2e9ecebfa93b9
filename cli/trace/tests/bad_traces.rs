//! A damaged or incomplete trace gives its intact part with a warning, or an error line; never a panic, and never events that
//! were not written.

mod support;

use hakmem_trace::format;
use hakmem_trace::reader::Reader;
use std::fs;
use support::{Threads, free, malloc, read, write, write_begun};

fn some_threads() -> Threads {
    let events = |thread: u64| {
        (0..200)
            .flat_map(|i| {
                [
                    malloc(i * 10, (thread << 40) + i * 64, i % 70),
                    free(i * 10 + 5, (thread << 40) + i * 64),
                ]
            })
            .collect()
    };
    Threads::from([(1, events(1)), (2, events(2))])
}

fn is_prefix(part: &Threads, whole: &Threads) -> bool {
    part.iter()
        .all(|(thread, events)| whole[thread].starts_with(events))
}

#[test]
fn cut_at_any_byte_it_has_what_came_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let whole = some_threads();
    write(&path, &whole, 50);
    let bytes = fs::read(&path).unwrap();
    for length in 0..bytes.len() {
        fs::write(&path, &bytes[..length]).unwrap();
        match read(&path) {
            Ok(part) => assert!(is_prefix(&part, &whole), "cut at {length}"),
            Err(line) => {
                assert!(
                    length < format::FILE_HEAD_BYTES as usize,
                    "cut at {length}: {line}"
                );
                let why = if length == 0 {
                    "is empty"
                } else {
                    "is not a trace"
                };
                assert!(line.contains(why), "{line}");
            }
        }
    }
}

#[test]
fn a_recording_that_was_cut_off_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let whole = some_threads();
    drop(write_begun(&path, &whole, 50));
    let reader = Reader::open(&path).unwrap();
    let warning = reader.warning.as_deref().unwrap_or_default();
    assert!(
        warning.contains("was cut off") && warning.contains("first 800 events"),
        "{warning}"
    );
    assert_eq!(read(&path).unwrap(), whole);
}

#[test]
fn a_byte_changed_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let whole = some_threads();
    write(&path, &whole, 50);
    let bytes = fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 0x41;
        fs::write(&path, &changed).unwrap();
        match read(&path) {
            Ok(part) => {
                assert!(is_part(&part, &whole), "byte {at}");
                let events: usize = part.values().map(Vec::len).sum();
                assert!(events >= 800 - 50, "byte {at}: more than a chunk is lost");
                let warning = Reader::open(&path).unwrap().warning.unwrap_or_default();
                let is_unused = (12..16).contains(&at);
                assert!(is_unused || warning.contains("is damaged"), "byte {at}");
            }
            // Nothing is known about another version.
            Err(line) => assert!((8..12).contains(&at), "byte {at}: {line}"),
        }
    }
}

/// Does `part` contain only events of `whole`, in order?
fn is_part(part: &Threads, whole: &Threads) -> bool {
    part.iter().all(|(thread, events)| {
        let mut rest = whole[thread].iter();
        events.iter().all(|event| rest.any(|other| other == event))
    })
}

#[test]
fn a_hole_costs_what_was_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let whole = some_threads();
    write(&path, &whole, 50);
    let bytes = fs::read(&path).unwrap();
    let third = bytes.len() / 3;
    let mut changed = bytes.clone();
    changed[third..third + 64].fill(0);
    // A second place lacks some bytes.
    changed.drain(2 * third..2 * third + 10);
    fs::write(&path, &changed).unwrap();
    let part = read(&path).unwrap();
    assert!(is_part(&part, &whole));
    let events: usize = part.values().map(Vec::len).sum();
    assert!((800 - 4 * 50..800).contains(&events), "{events}");
    let warning = Reader::open(&path).unwrap().warning.unwrap();
    assert!(warning.contains("is damaged in 2 places"), "{warning}");
}

/// Version 2 only adds events without times of their own.
#[test]
fn the_older_version_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    write(&path, &some_threads(), 50);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 1;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(read(&path).unwrap(), some_threads());
}

#[test]
fn a_newer_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    write(&path, &some_threads(), 50);
    let mut bytes = fs::read(&path).unwrap();
    bytes[8] = 4;
    fs::write(&path, &bytes).unwrap();
    let line = read(&path).unwrap_err();
    assert!(
        line.contains("has trace format 4; this hakmem reads up to 3"),
        "{line}"
    );
}

/// As in the fuzz target, for a short time: many bytes are changed, with correct checksums.
#[test]
fn damage_behind_a_right_checksum_is_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    write(&path, &some_threads(), 50);
    let bytes = fs::read(&path).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..1000 {
        let mut changed = bytes.clone();
        for _ in 0..random.usize(1..5) {
            let at = random.usize(format::FILE_HEAD_BYTES as usize..changed.len());
            changed[at] = random.u8(..);
        }
        format::mend_checksums(&mut changed);
        fs::write(&path, &changed).unwrap();
        if let Err(line) = read(&path) {
            assert_eq!(line.lines().count(), 1, "{line}");
        }
    }
}

#[test]
fn what_is_behind_the_end_is_said_and_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace");
    let whole = some_threads();
    write(&path, &whole, 50);
    let bytes = fs::read(&path).unwrap();
    let other = Threads::from([(7, vec![malloc(0, 64, 1)])]);
    write(&path, &other, 50);
    let other = fs::read(&path).unwrap();
    for behind in [&b"garbage\n"[..], &bytes[..], &other[..]] {
        fs::write(&path, [&bytes[..], behind].concat()).unwrap();
        assert_eq!(read(&path).unwrap(), whole);
        let reader = Reader::open(&path).unwrap();
        let warning = reader.warning.as_deref().unwrap_or_default();
        let said = format!("has {} bytes after its end", behind.len());
        assert!(warning.contains(&said), "{warning}");
        assert!(!warning.contains("damaged"), "{warning}");
    }
}
