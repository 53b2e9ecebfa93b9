//! Writes core dumps of running programs as the kernel does, so tests work anywhere, and can leave parts out.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;

struct Area {
    start: u64,
    end: u64,
    is_writable: bool,
    offset: u64,
    line: String,
    file: String,
}

fn areas(pid: &str) -> Vec<Area> {
    let text = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let parse = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (start, end) = words[0].split_once('-').unwrap();
        Area {
            start: u64::from_str_radix(start, 16).unwrap(),
            end: u64::from_str_radix(end, 16).unwrap(),
            is_writable: words[1].starts_with("rw"),
            offset: u64::from_str_radix(words[2], 16).unwrap(),
            line: line.to_string(),
            file: words.get(5).unwrap_or(&"").to_string(),
        }
    };
    text.lines().map(parse).collect()
}

/// What the kernel keeps: pages that were written to (here: all that is writable, and the RELRO area before it in the same
/// file); and the first page of each program and library.
fn kept(areas: &[Area]) -> Vec<(&Area, u64)> {
    let is_kept = |index: &usize| {
        let area = &areas[*index];
        let behind = areas.get(index + 1);
        let is_relocated = behind.is_some_and(|next| {
            next.is_writable && next.start == area.end && next.file == area.file
        });
        area.is_writable || (is_relocated && area.line.contains(" r--p "))
    };
    let bytes = |index: usize| {
        let area = &areas[index];
        let is_head = area.offset == 0 && area.file.starts_with('/');
        let all = area.end - area.start;
        let kept = is_kept(&index).then_some(all);
        kept.or(is_head.then_some(all.min(4096)))
    };
    (0..areas.len())
        .filter_map(|index| Some((&areas[index], bytes(index)?)))
        .collect()
}

fn note(kind: u32, content: &[u8]) -> Vec<u8> {
    let mut note = Vec::new();
    note.extend(5_u32.to_le_bytes());
    note.extend(u32::try_from(content.len()).unwrap().to_le_bytes());
    note.extend(kind.to_le_bytes());
    note.extend(b"CORE\0\0\0\0");
    note.extend(content);
    note.resize(note.len().next_multiple_of(4), 0);
    note
}

fn file_note(areas: &[Area]) -> Vec<u8> {
    let files: Vec<&Area> = areas
        .iter()
        .filter(|area| area.file.starts_with('/'))
        .collect();
    let mut content = Vec::new();
    content.extend((files.len() as u64).to_le_bytes());
    content.extend(4096_u64.to_le_bytes());
    for area in &files {
        content.extend(area.start.to_le_bytes());
        content.extend(area.end.to_le_bytes());
        content.extend((area.offset / 4096).to_le_bytes());
    }
    for area in &files {
        content.extend(area.file.as_bytes());
        content.push(0);
    }
    note(0x4649_4c45, &content)
}

fn header(kind: u32, flags: u32, offset: u64, start: u64, bytes: u64) -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(kind.to_le_bytes());
    header.extend(flags.to_le_bytes());
    for word in [offset, start, 0, bytes, bytes, 1] {
        header.extend(word.to_le_bytes());
    }
    header
}

/// Writes a core dump of a process that stands still; `change` may alter the bytes of an area.
pub fn dump(pid: &str, path: &Path, mut change: impl FnMut(u64, &mut Vec<u8>)) {
    let areas = areas(pid);
    let kept = kept(&areas);
    let notes = file_note(&areas);
    let count = kept.len() + 1;
    let mut offset = (64 + 56 * count) as u64;
    let mut headers = header(4, 0, offset, 0, notes.len() as u64);
    offset += notes.len() as u64;
    let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut contents = Vec::new();
    for (area, bytes) in kept {
        let mut bytes = vec![0; usize::try_from(bytes).unwrap()];
        let mut done = 0;
        while done < bytes.len() {
            // There is nothing behind the end of a file.
            let end = bytes.len().min(done + 4096);
            let _ = memory.read_exact_at(&mut bytes[done..end], area.start + done as u64);
            done = end;
        }
        change(area.start, &mut bytes);
        let flags = if area.is_writable { 6 } else { 4 };
        headers.extend(header(1, flags, offset, area.start, bytes.len() as u64));
        offset += bytes.len() as u64;
        contents.push(bytes);
    }
    let mut file = File::create(path).unwrap();
    let machine: u16 = if cfg!(target_arch = "x86_64") {
        62
    } else {
        183
    };
    file.write_all(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0")
        .unwrap();
    file.write_all(&4_u16.to_le_bytes()).unwrap();
    file.write_all(&machine.to_le_bytes()).unwrap();
    file.write_all(&1_u32.to_le_bytes()).unwrap();
    for word in [0_u64, 64, 0] {
        file.write_all(&word.to_le_bytes()).unwrap();
    }
    file.write_all(&0_u32.to_le_bytes()).unwrap();
    for half in [64, 56, u16::try_from(count).unwrap(), 0, 0, 0] {
        file.write_all(&u16::to_le_bytes(half)).unwrap();
    }
    file.write_all(&headers).unwrap();
    file.write_all(&notes).unwrap();
    for bytes in contents {
        file.write_all(&bytes).unwrap();
    }
}
