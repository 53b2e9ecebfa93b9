use super::*;
use crate::live::parse_areas;
use std::io::Cursor;

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn halves(halves: &[u32]) -> Vec<u8> {
    halves.iter().flat_map(|half| half.to_ne_bytes()).collect()
}

/// Longer than the smallest header.
fn head() -> Vec<u8> {
    let mut head = halves(&[MAGIC, 1, 48, 62, 0, 1]);
    head.resize(48, 0);
    head
}

fn record(kind: u32, content: &[u8]) -> Vec<u8> {
    let bytes = RECORD_HEAD + content.len() as u64;
    let head = [halves(&[kind, bytes as u32]), words(&[0])].concat();
    [&head, content].concat()
}

/// Each piece has as much code as its size states.
fn load(start: u64, bytes: u64, name: &[u8]) -> Vec<u8> {
    let code = vec![0x90; bytes as usize];
    let numbers = words(&[0, start, start, bytes, 1]);
    record(LOAD, &[&numbers, name, b"\0", &code].concat())
}

fn moved(old: u64, new: u64, bytes: u64) -> Vec<u8> {
    record(MOVE, &words(&[0, 0, old, new, bytes, 1]))
}

fn read(bytes: Vec<u8>) -> PerfMap {
    let mut map = PerfMap::parse(b"5000 10 of a line\n".to_vec());
    map.add_dump(Cursor::new(bytes)).unwrap_err();
    map
}

fn name(map: &PerfMap, address: u64) -> String {
    map.name(address).unwrap_or_default()
}

#[test]
fn code_has_the_name_of_its_record() {
    let map = read(
        [
            head(),
            load(0x1000, 0x10, b"JS:~tick /srv/app.js:4:14"),
            record(2, &[7; 100]), // line numbers
            load(0x2000, 0x3000, b"py::export:/srv/views.py"),
            load(0x1000, 8, b"again"),
            moved(0x2000, 0x9000, 0x3000),
            load(0x7000, 8, b""),
            moved(0x8888, 0x7000, 8),
            record(3, b""),
        ]
        .concat(),
    );
    for (address, expected) in [
        (0x1007, "again (jit)"),
        (0x100f, "tick (app.js:4)"),
        (0x1010, ""),
        (0x4fff, "export (views.py)"),
        (0x5000, "of a line (jit)"),
        (0xbfff, "export (views.py)"),
        (0x7000, ""),
    ] {
        assert_eq!(name(&map, address), expected, "{address:x}");
    }
}

#[test]
fn what_is_not_whole_ends_it() {
    let whole = [
        head(),
        load(0x1000, 0x10, b"one"),
        load(0x2000, 0x10, b"two"),
    ]
    .concat();
    let second = whole.len() - load(0x2000, 0x10, b"two").len();
    let cut = read(whole[..second + 20].to_vec());
    assert_eq!([name(&cut, 0x1000), name(&cut, 0x2000)], ["one (jit)", ""]);
    let mut nothing = whole.clone();
    nothing[second + 4..second + 8].copy_from_slice(&15_u32.to_ne_bytes());
    let nothing = read(nothing);
    assert_eq!(name(&nothing, 0x2000), "");
    for at in [0, 8] {
        let mut other = whole.clone();
        other[at] ^= 0xff;
        other[at + 1] = 0;
        assert_eq!(name(&read(other), 0x1000), "", "{at}");
    }
    assert_eq!(name(&read(Vec::new()), 0x5000), "of a line (jit)");
}

/// For any bytes, all names can be written to a terminal, and no two ranges overlap.
#[test]
fn any_bytes_are_a_dump() {
    let mut random = fastrand::Rng::with_seed(5);
    let whole = [
        head(),
        load(0x1000, 0x10, b"one"),
        moved(0x1000, 0x3000, 0x10),
        load(u64::MAX - 4, 4, b"two\x1b\xff"),
        record(2, &[7; 40]),
    ]
    .concat();
    for _ in 0..5000 {
        let mut bytes = whole.clone();
        for _ in 0..random.usize(1..9) {
            let at = random.usize(..bytes.len());
            match random.u8(..3) {
                0 => bytes[at] = random.u8(..),
                1 => bytes[at] ^= 1 << random.u8(..8),
                _ => bytes.truncate(at + 1),
            }
        }
        let mut map = PerfMap::default();
        map.add_dump(Cursor::new(bytes)).unwrap_err();
        let mut end = 0;
        for (start, range) in &map.ranges {
            assert!(end <= *start && *start < range.end);
            end = range.end;
            let name = map.name(range.end - 1).unwrap();
            assert!(!name.is_empty() && !name.chars().any(char::is_control));
        }
    }
}

fn open_among(path: &[u8], user: u32) -> Option<File> {
    let line = [b"1000-2000 r-xp 00000000 08:01 1 ", path].concat();
    let root = OFlag::O_PATH | OFlag::O_DIRECTORY;
    let root = nix::fcntl::open("/", root, nix::sys::stat::Mode::empty()).unwrap();
    among(&parse_areas(&line), &root, 7, user)
}

#[test]
fn only_a_file_of_the_process_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let path = folder.join("jit-7.dump");
    std::fs::write(&path, [head(), load(0x1000, 0x10, b"one")].concat()).unwrap();
    let user = nix::unistd::geteuid().as_raw();
    let open = |name: &str, user: u32| open_among(folder.join(name).as_os_str().as_bytes(), user);
    let mut map = PerfMap::default();
    map.add_dump(open("jit-7.dump", user).unwrap()).unwrap_err();
    assert_eq!(name(&map, 0x1000), "one (jit)");
    std::fs::copy(&path, folder.join("jit-8.dump")).unwrap();
    assert!(open("jit-8.dump", user).is_none());
    if user == 0 {
        std::os::unix::fs::chown(&path, Some(12345), None).unwrap();
        assert!(open("jit-7.dump", user).is_none());
        assert!(open("jit-7.dump", 12345).is_some());
    }
    std::fs::rename(&path, folder.join("other")).unwrap();
    std::os::unix::fs::symlink(folder.join("other"), &path).unwrap();
    assert!(open("jit-7.dump", 12345).is_none());
    std::fs::remove_file(&path).unwrap();
    assert!(open("jit-7.dump", user).is_none());
}
