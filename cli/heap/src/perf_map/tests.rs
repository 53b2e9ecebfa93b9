use super::*;
use std::io::Write;
use std::os::unix::fs::{chown, symlink};
use std::path::Path;

fn parse(text: &[u8]) -> PerfMap {
    PerfMap::parse(text.to_vec())
}

fn names<const COUNT: usize>(map: &PerfMap, addresses: [u64; COUNT]) -> [String; COUNT] {
    addresses.map(|address| map.name(address).unwrap_or_default())
}

#[test]
fn an_address_has_the_name_of_its_line() {
    let map = parse(b"1000 10 one\n0x2000 0x8 two words and more\r\n3000 1 \xff\x1b\n");
    assert_eq!(
        names(&map, [0xfff, 0x1000, 0x100f, 0x1010, 0x2007, 0x3000]),
        [
            "",
            "one (jit)",
            "one (jit)",
            "",
            "two words and more (jit)",
            "\\xff\\x1b (jit)"
        ]
    );
}

#[test]
fn what_was_written_last_counts() {
    let map =
        parse(b"1000 100 old\n1040 10 inside\n10f0 20 behind\nff0 20 before\n1040 10 again\n");
    assert_eq!(
        names(
            &map,
            [
                0xff0, 0x100f, 0x1010, 0x103f, 0x1040, 0x1050, 0x10ef, 0x10f0, 0x110f
            ]
        ),
        [
            "before", "before", "old", "old", "again", "old", "old", "behind", "behind"
        ]
        .map(|name| format!("{name} (jit)"))
    );
    // A later range covers several earlier ones.
    let map = parse(b"1000 10 a\n1020 10 b\n1040 10 c\n1008 30 all\n");
    assert_eq!(
        names(&map, [0x1007, 0x1008, 0x1020, 0x1037, 0x1038, 0x1040]),
        [
            "a (jit)",
            "all (jit)",
            "all (jit)",
            "all (jit)",
            "",
            "c (jit)"
        ]
    );
}

#[test]
fn what_is_no_line_is_skipped() {
    let map = parse(
        b"\n \nx 1 a\n1000\n1000 0 empty\n1000 10\n1000 10 \nffffffffffffffff 2 over\n-1 2 b\n\
          2000 10000000000000000 long\n3000 10 good\n4000 10 cut",
    );
    assert_eq!(map.ranges.len(), 1);
    assert_eq!(names(&map, [0x3000, 0x4000]), ["good (jit)", ""]);
}

/// For any lines, no two ranges overlap, and each address has the name of its last line.
#[test]
fn ranges_are_those_of_the_last_lines() {
    let mut random = fastrand::Rng::with_seed(7);
    for _ in 0..500 {
        let mut text = String::new();
        let mut expected = [None; 80];
        for line in 0..random.usize(1..40) {
            let (start, bytes) = (random.usize(..64), random.usize(1..16));
            text += &format!("{start:x} {bytes:x} f{line}\n");
            expected[start..start + bytes].fill(Some(line));
        }
        let map = parse(text.as_bytes());
        for (address, line) in expected.iter().enumerate() {
            let name = line.map(|line| format!("f{line} (jit)"));
            assert_eq!(map.name(address as u64), name, "{address:x} of\n{text}");
        }
    }
}

/// For any bytes, all names can be written to a terminal, and every range has one.
#[test]
fn any_bytes_are_a_map() {
    let mut random = fastrand::Rng::with_seed(3);
    let whole = b"7f00 1b8 JS:~tick /srv/app.js:4:14\n0x2000 8 py::Order.export:/srv/views.py\n\
                  ffffffffffffff00 ff Function:^ file:///x.js:1:1\n1000 10 void a.B.c(int)\n";
    for _ in 0..5000 {
        let mut text = whole.to_vec();
        for _ in 0..random.usize(1..9) {
            let at = random.usize(..text.len());
            match random.u8(..4) {
                0 => text[at] = random.u8(..),
                1 => drop(text.drain(at..text.len().min(at + random.usize(..9)))),
                2 => text.extend_from_within(at..),
                _ => text.insert(at, b" \n:/0f"[random.usize(..6)]),
            }
            if text.is_empty() {
                break;
            }
        }
        let map = PerfMap::parse(text);
        let mut end = 0;
        for (start, range) in &map.ranges {
            assert!(end <= *start && *start < range.end);
            end = range.end;
            let name = map.name(range.end - 1).unwrap();
            assert!(!name.chars().any(char::is_control), "{name:?}");
            assert!(!name.is_empty() && name.len() < 8 * NAME_MAX);
        }
    }
}

#[test]
fn of_a_long_file_the_end_is_read() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"1000 10 first\n2000 10 second\n3000 10 third\n")
        .unwrap();
    let mut end = |most: u64| String::from_utf8(read_end(&mut file, most).unwrap()).unwrap();
    assert_eq!(
        end(1 << 20),
        "1000 10 first\n2000 10 second\n3000 10 third\n"
    );
    assert_eq!(end(20), "3000 10 third\n");
    assert_eq!(end(14), "3000 10 third\n");
    assert_eq!(end(13), "");
}

fn place(folder: &Path) -> MapPlace {
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY;
    MapPlace {
        folder: open(folder, flags, Mode::empty()).unwrap(),
        name: "perf-1.map".into(),
        user: nix::unistd::geteuid().as_raw(),
        since: None,
        dump: None,
    }
}

fn refusal(place: &MapPlace) -> &'static str {
    match place.read() {
        Ok(_) => "read",
        Err(Absent::Never) => "never",
        Err(Absent::Refused { why, .. }) => why,
    }
}

#[test]
fn only_a_file_of_the_process_is_believed() {
    let folder = tempfile::tempdir().unwrap();
    let mut place = place(folder.path());
    let path = folder.path().join("perf-1.map");
    assert_eq!(refusal(&place), "never");
    fs::write(&path, "1000 10 f\n").unwrap();
    assert_eq!(place.read().unwrap().name(0x1000).unwrap(), "f (jit)");
    place.since = SystemTime::now().checked_add(Duration::from_secs(60));
    assert_eq!(refusal(&place), "it is older than the process");
    place.since = None;
    if place.user == 0 {
        chown(&path, Some(12345), None).unwrap();
        assert_eq!(
            refusal(&place),
            "neither the process's user nor root owns it"
        );
        place.user = 12345;
        assert_eq!(refusal(&place), "read");
        chown(&path, Some(0), None).unwrap();
        assert_eq!(refusal(&place), "read");
    }
    let other = folder.path().join("other");
    fs::rename(&path, &other).unwrap();
    symlink(&other, &path).unwrap();
    assert_eq!(refusal(&place), "it is a symbolic link");
    fs::remove_file(&path).unwrap();
    nix::unistd::mkfifo(&path, Mode::S_IRUSR).unwrap();
    assert_eq!(refusal(&place), "it is not a file");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    assert_eq!(refusal(&place), "it is not a file");
}

#[test]
fn this_process_writes_where_it_is_looked_for() {
    let own = i32::try_from(std::process::id()).unwrap();
    let place = MapPlace::of(own).unwrap();
    assert_eq!(place.name, format!("perf-{own}.map"));
    assert_eq!(place.user, nix::unistd::geteuid().as_raw());
    let now = SystemTime::now();
    let since = place.since.unwrap();
    assert!(since < now + CLOCKS_OFF && now < since + Duration::from_secs(3600));
    assert!(MapPlace::of(i32::MAX).is_none());
}
