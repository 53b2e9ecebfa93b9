//! Finds the allocators in a process, and runtimes with memory of their own.

use super::Moment;
use crate::target::Opened;
use hakmem_heap::code::Code;
use hakmem_heap::code_files::{Sources, file_name, find_mapped};
use hakmem_heap::shown::shown;
use hakmem_lab::allocator::OURS;
use hakmem_lab::process::Blind;
use hakmem_lab::proof::Proof;
use hakmem_lab::{elf, fingerprint, input};
use memchr::memmem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// An allocator and the file that contains it.
#[derive(Clone, Serialize, Deserialize)]
pub struct Used {
    pub path: String,
    /// The names by which it was recognised; empty if nothing was recognised.
    pub names: Vec<String>,
    pub version: Option<String>,
    /// Does malloc resolve to it? If not, the file uses it only for itself.
    pub is_malloc: bool,
}

/// Runtimes that map memory themselves, by the beginning of a file's name.
const RUNTIMES: [(&str, &str); 11] = [
    (
        "libjvm.so",
        "the Java virtual machine, which maps its heap, code and metadata itself",
    ),
    ("libcoreclr.so", ".NET, which maps its heap itself"),
    ("node", "V8, which maps the heap of JavaScript itself"),
    ("libnode", "V8, which maps the heap of JavaScript itself"),
    (
        "python",
        "Python, which maps arenas for objects of up to 512 bytes itself",
    ),
    (
        "libpython",
        "Python, which maps arenas for objects of up to 512 bytes itself",
    ),
    ("ruby", "Ruby, which has a heap of its own for objects"),
    ("libruby", "Ruby, which has a heap of its own for objects"),
    (
        "php",
        "PHP, which has a heap of its own for requests, in chunks of 2 MiB",
    ),
    (
        "libluajit",
        "LuaJIT, which maps memory for its objects itself",
    ),
    ("beam.smp", "Erlang, which maps its carriers itself"),
];

impl Used {
    /// "jemalloc 5.3.0"
    pub fn name(&self) -> String {
        let names = self.names.join(" and ");
        let name = match names.as_str() {
            "" => "an unknown allocator",
            fingerprint::LIBC_OF_GNU => "glibc",
            name => name,
        };
        match &self.version {
            Some(version) => format!("{name} {version}"),
            None => name.into(),
        }
    }

    pub fn is_hakmem(&self) -> bool {
        self.is_malloc && self.has(OURS)
    }

    pub fn is_glibc(&self) -> bool {
        self.has(fingerprint::LIBC_OF_GNU)
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
    }
}

/// The allocators, with malloc's first, and the runtimes.
pub fn of(opened: &Opened) -> (Vec<Used>, Vec<String>) {
    let (code, sources) = match opened {
        Opened::Live(process) => {
            let sources = Sources {
                process: Some(process.task()),
                ..Sources::default()
            };
            (process.code(), sources)
        }
        Opened::Core(core) => (core.code(), Sources::default()),
        Opened::Snapshot(snapshot) => {
            let visit = snapshot.visit();
            return (visit.allocators.clone(), visit.runtimes.clone());
        }
    };
    let owners = match opened {
        Opened::Live(process) => owners(process.task()),
        Opened::Core(_) | Opened::Snapshot(_) => BTreeSet::new(),
    };
    let mut seen = BTreeSet::new();
    let mut used = Vec::new();
    let mut runtimes = BTreeSet::new();
    // What hakmem remembers may be unmapped by now, or be listed under the path that it had before it was removed.
    let mapped = code.iter().filter(|code| code.number == 0);
    for code in mapped.filter(|code| seen.insert(code.path.clone())) {
        let name = file_name(&code.path);
        let known = RUNTIMES.iter().find(|(start, _)| name.starts_with(start));
        runtimes.extend(known.map(|(_, what)| (*what).to_string()));
        used.extend(in_file(code, &sources, &owners));
    }
    used.sort_by_key(|one| !one.is_malloc);
    (used, runtimes.into_iter().collect())
}

/// If nothing tells which file malloc resolves to, as in a core dump, it is the allocator whose heap is there.
pub fn settle(used: &mut Vec<Used>, moment: &Moment) {
    if used.iter().any(|one| one.is_malloc) {
        return;
    }
    let has_hakmem = moment.ledger.hakmem_bytes > 0;
    for one in used.iter_mut() {
        let mut others = moment.others.iter();
        one.is_malloc = match moment.others.is_empty() {
            _ if has_hakmem => one.has(OURS),
            true => one.is_glibc() && moment.glibc.is_some(),
            false => others.any(|heap| one.names.contains(&heap.allocator)),
        };
    }
    if used.iter().any(|one| one.is_malloc) {
        used.retain(|one| one.is_malloc || !one.is_glibc());
    }
    used.sort_by_key(|one| !one.is_malloc);
}

/// The files to which functions of the malloc family resolve.
fn owners(task: i32) -> BTreeSet<PathBuf> {
    let proof = Proof::collect(task).or_else(|blind| match blind {
        Blind::Static => {
            let program = std::fs::read_link(format!("/proc/{task}/exe"));
            Proof::of_static(&program.map_err(|_| Blind::Gone)?, None)
        }
        other => Err(other),
    });
    let owners = proof.as_ref().map(Proof::owners).unwrap_or_default();
    owners.into_iter().map(Path::to_path_buf).collect()
}

fn in_file(code: &Code, sources: &Sources, owners: &BTreeSet<PathBuf>) -> Option<Used> {
    let path = shown(&code.path);
    let is_malloc = owners.contains(Path::new(&path));
    let file = find_mapped(code, sources).ok()?;
    let names: Vec<&'static str> = elf::read_cached(&file)
        .map(|file| file.allocators.iter().copied().collect())
        .unwrap_or_default();
    // Every program has a C library with a malloc; another allocator may replace it.
    let is_worth = is_malloc || names.iter().any(|name| !fingerprint::is_of_language(name));
    let is_libc = names.contains(&fingerprint::LIBC_OF_GNU);
    (is_worth || is_libc && owners.is_empty()).then(|| Used {
        version: input::read(&file)
            .ok()
            .and_then(|content| version(&names, &path, &content)),
        path,
        names: names.into_iter().map(String::from).collect(),
        is_malloc,
    })
}

/// The version, from the allocator's own texts or from its file's name.
fn version(names: &[&str], path: &str, content: &[u8]) -> Option<String> {
    let of = |name: &str| names.contains(&name);
    if of(fingerprint::LIBC_OF_GNU) {
        let found = behind(content, b"release version ")?;
        return Some(found.trim_end_matches('.').to_string());
    }
    if of("gperftools") {
        return behind(content, b"gperftools ");
    }
    if of("mimalloc") {
        let (_, version) = path.rsplit_once(".so.")?; // no text contains the version
        return version.contains('.').then(|| version.to_string());
    }
    of("jemalloc").then(|| jemalloc_version(content)).flatten()
}

/// The digits and dots that follow a text.
fn behind(content: &[u8], text: &[u8]) -> Option<String> {
    let at = memmem::find(content, text)?;
    let rest = content[at + text.len()..].iter();
    let digits = rest.take_while(|byte| byte.is_ascii_digit() || **byte == b'.');
    let found: String = digits.map(|byte| char::from(*byte)).collect();
    (!found.is_empty()).then_some(found)
}

/// "5.3.0-0-g54eaed1d…": the text that mallctl("version") returns.
fn jemalloc_version(content: &[u8]) -> Option<String> {
    let texts = content.split(|byte| *byte == 0);
    let is_version = |text: &&[u8]| {
        let dots = text.iter().filter(|byte| **byte == b'.').count();
        text.len() < 80
            && text.first().is_some_and(u8::is_ascii_digit)
            && dots == 2
            && text.windows(2).any(|two| two == b"-g")
    };
    let text = texts.into_iter().find(is_version)?;
    let number = text.split(|byte| *byte == b'-').next()?;
    String::from_utf8(number.to_vec()).ok()
}
