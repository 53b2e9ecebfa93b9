//! The allocators that can be preloaded: where they are, and with which settings they run.
//!
//! A name on the command line is one of
//!
//! - `hakmem`: the library beside this command
//! - `glibc`, or `musl` if the command was built for it: nothing is preloaded
//! - `mimalloc3`, `jemalloc`, …: a peer that was built, added or found in the system
//! - `NAME=PATH`: any shared library
//!
//! Settings may follow it, to compare settings of one allocator: `hakmem+HAKMEM_DECAY_MS=0`.

use crate::c_library;
use crate::elf;
use crate::error::Result;
use crate::family;
use crate::fingerprint;
use crate::peers::Manifest;
use crate::places::Places;
use crate::{failed, usage};
use hakmem_heap::shown::ShownPath;
use indexmap::IndexMap;
use sha2::{Digest, Sha256};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const OURS: &str = "hakmem";
pub const BASELINE: &str = c_library::NAME;

/// Names of installed libraries, as in Debian and others, and the names under which they are offered here.
const IN_SYSTEM: [(&str, &str, &str); 6] = [
    ("jemalloc-system", "jemalloc", "libjemalloc.so.2"),
    ("mimalloc3-system", "mimalloc3", "libmimalloc.so.3"),
    ("mimalloc2-system", "mimalloc2", "libmimalloc.so.2"),
    ("mimalloc2-system", "mimalloc2", "libmimalloc.so.2.0"),
    (
        "gperftools-system",
        "gperftools",
        "libtcmalloc_minimal.so.4",
    ),
    ("hardened-system", "hardened", "libhardened_malloc.so"),
];

/// An allocator with its settings; one column of a table.
#[derive(Clone, Debug, Default)]
pub struct Allocator {
    pub name: String,
    /// None: nothing is preloaded.
    pub library: Option<PathBuf>,
    /// The path to show in results, if `library` is our copy of the file.
    pub shown_library: Option<PathBuf>,
    pub version: String,
    pub compiler: String,
    /// The variables that it needs, and the settings that were requested.
    pub environment: IndexMap<String, String>,
    pub sha256: String,
    pub build_id: Option<String>,
}

impl Allocator {
    /// The library that belongs to this command.
    pub fn ours(places: &Places) -> Result<Allocator> {
        let mut ours =
            Allocator::from_library(OURS, &places.library()?, env!("CARGO_PKG_VERSION"))?;
        if let Some(commit) = places.root().and_then(crate::machine::commit) {
            ours.version = commit;
        }
        Ok(ours)
    }

    /// The allocator of programs if nothing is preloaded.
    pub fn of_system() -> Allocator {
        Allocator {
            name: BASELINE.into(),
            version: c_library::version(),
            ..Allocator::default()
        }
    }

    /// A library under a name. It must be an allocator, and the name must not contradict it.
    pub fn from_library(name: &str, path: &Path, version: &str) -> Result<Allocator> {
        let library = path
            .canonicalize()
            .map_err(|error| usage!("{}: {error}", path.shown()))?;
        let file = elf::read_cached(&library)
            .map_err(|error| usage!("{} is not a shared library: {}", path.shown(), error.0))?;
        if file.machine != crate::executable::own_machine() {
            return Err(usage!("{} is for another kind of machine", path.shown()));
        }
        if let Some(libc) = &file.other_libc {
            return Err(usage!("{} is for another C library ({libc})", path.shown()));
        }
        let missing: Vec<&str> = family::CORE
            .into_iter()
            .filter(|name| !file.exports(name))
            .collect();
        if !missing.is_empty() {
            return Err(usage!(
                "{} cannot replace malloc: it does not define {}",
                path.shown(),
                missing.join(", ")
            ));
        }
        let found = file.bundled();
        if fingerprint::contradicts(name, &found) {
            return Err(usage!(
                "{} is called {name}, but it is {}",
                path.shown(),
                found.join(" and ")
            ));
        }
        if name == OURS && !found.contains(&OURS) {
            return Err(usage!("{} is called hakmem, but it is not", path.shown()));
        }
        Ok(Allocator {
            name: name.into(),
            sha256: file_sha256(&library)?,
            build_id: file.build_id.clone(),
            shown_library: Some(library.clone()),
            library: Some(library),
            version: version.into(),
            ..Allocator::default()
        })
    }

    pub fn is_ours(&self) -> bool {
        is_ours(&self.name)
    }

    /// The value for LD_PRELOAD. The dynamic linker takes spaces and colons in it for separators, and they cannot be quoted
    /// (ld.so(8)).
    pub fn preload(&self) -> Result<Option<&Path>> {
        let Some(library) = self.library.as_deref() else {
            return Ok(None);
        };
        let bytes = library.as_os_str().as_encoded_bytes();
        if bytes.iter().any(|byte| matches!(byte, b' ' | b':')) {
            return Err(usage!(
                "'{}' cannot be preloaded: ld.so ends a path in LD_PRELOAD at a space or a colon; move it, or name a copy or a \
                 link elsewhere",
                library.shown()
            ));
        }
        Ok(Some(library))
    }

    /// Is a file that defines malloc this allocator: the same file, or a copy of the same build?
    pub fn owns(&self, path: &Path, build_id: Option<&String>) -> bool {
        match &self.library {
            Some(library) => {
                path == library || build_id.is_some() && build_id == self.build_id.as_ref()
            }
            None => path
                .file_name()
                .is_some_and(|name| c_library::is_named(name.as_bytes())),
        }
    }

    /// An error if its file has changed since the results were begun.
    pub fn check_unchanged(&self) -> Result<()> {
        let Some(library) = &self.library else {
            return Ok(());
        };
        if file_sha256(library)? == self.sha256 {
            return Ok(());
        }
        Err(failed!(
            "{} ({}) has changed since the measurement began: its figures would mix two libraries",
            self.name,
            library.shown()
        ))
    }

    fn with_settings(&self, settings: &[&str]) -> Result<Allocator> {
        let mut changed = self.clone();
        for setting in settings {
            let (name, value) = setting
                .split_once('=')
                .ok_or_else(|| usage!("'{setting}' after '+' is not NAME=VALUE"))?;
            changed.environment.insert(name.into(), value.into());
            changed.name = format!("{}+{setting}", changed.name);
        }
        if !settings.is_empty() {
            changed.check_settings()?;
        }
        Ok(changed)
    }

    /// An error if hakmem does not take a setting, its own or one of our environment. It says so at a program's start, and goes on
    /// without: what would be measured then is not what was asked for.
    pub fn check_settings(&self) -> Result<()> {
        let Some(library) = self.preload()? else {
            return Ok(());
        };
        let mut program = Command::new("true");
        program.envs(&self.environment).env("LD_PRELOAD", library);
        let errors = program.output().map(|output| output.stderr);
        let errors = String::from_utf8_lossy(&errors.unwrap_or_default()).into_owned();
        let mut lines = errors.lines();
        match lines.find_map(|line| line.strip_prefix("hakmem: ")) {
            Some(line) => Err(usage!("{}: {line}", self.name)),
            None => Ok(()),
        }
    }
}

/// Is it hakmem, with or without settings?
pub fn is_ours(name: &str) -> bool {
    name == OURS || name.starts_with("hakmem+")
}

pub fn file_sha256(path: &Path) -> Result<String> {
    let content = fs::read(path).map_err(|error| failed!("{}: {error}", path.shown()))?;
    Ok(elf::hexadecimal(&Sha256::digest(&content)))
}

/// All allocators that are there, in the order of a table's columns.
pub struct Catalogue {
    allocators: Vec<Allocator>,
    /// Libraries that should be there but cannot be used, with the reasons.
    pub left_out: Vec<String>,
}

impl Catalogue {
    pub fn load(places: &Places) -> Result<Catalogue> {
        let mut catalogue = Catalogue {
            allocators: Vec::new(),
            left_out: Vec::new(),
        };
        catalogue.allocators.push(Allocator::ours(places)?);
        for (name, peer) in Manifest::load(&places.peers())?.peers {
            let path = places.peers().join(&peer.file);
            match Allocator::from_library(&name, &path, &peer.version) {
                Ok(allocator) => catalogue.allocators.push(Allocator {
                    compiler: peer.compiler,
                    environment: peer.environment,
                    ..allocator
                }),
                Err(error) => catalogue
                    .left_out
                    .push(format!("{name} is left out: {error}")),
            }
        }
        for (name, stands_for, path) in in_system() {
            let is_there = |wanted: &str| catalogue.allocators.iter().any(|one| one.name == wanted);
            if is_there(name) || is_there(stands_for) {
                continue;
            }
            let version = soname_version(&path);
            catalogue
                .allocators
                .extend(Allocator::from_library(name, &path, &version));
        }
        catalogue.allocators.push(Allocator::of_system());
        Ok(catalogue)
    }

    pub fn all(&self) -> &[Allocator] {
        &self.allocators
    }

    /// The allocators with these names; all of them if no names are given.
    pub fn choose(&self, names: &[String]) -> Result<Vec<Allocator>> {
        if names.is_empty() {
            return Ok(self.allocators.clone());
        }
        let chosen: Vec<Allocator> = names
            .iter()
            .map(|name| self.choose_one(name))
            .collect::<Result<_>>()?;
        for (at, one) in chosen.iter().enumerate() {
            if chosen[..at].iter().any(|other| other.name == one.name) {
                return Err(usage!(
                    "{} is given twice; give the second copy another name: NAME=PATH",
                    one.name
                ));
            }
        }
        Ok(chosen)
    }

    /// The name of the allocator that ratios compare with: one of those chosen, or an additional one.
    pub fn choose_baseline(&self, text: &str, chosen: &mut Vec<Allocator>) -> Result<String> {
        if chosen.iter().any(|one| one.name == text) {
            return Ok(text.into());
        }
        let one = self.choose_one(text)?;
        let name = one.name.clone();
        if !chosen.iter().any(|known| known.name == name) {
            chosen.push(one);
        }
        Ok(name)
    }

    fn choose_one(&self, text: &str) -> Result<Allocator> {
        let mut parts = text.split('+');
        let name = parts.next().unwrap_or_default();
        let settings: Vec<&str> = parts.collect();
        let base = match name.split_once('=') {
            Some((name, path)) => Allocator::from_library(name, Path::new(path), "given")?,
            None => self.allocators.iter().find(|one| one.name == name).cloned().ok_or_else(|| {
                let known: Vec<&str> = self.allocators.iter().map(|one| one.name.as_str()).collect();
                usage!(
                    "there is no allocator '{name}', only {}; 'hakmem peers install' builds others, \
                     and NAME=PATH is any library",
                    known.join(", ")
                )
            })?,
        };
        base.with_settings(&settings)
    }
}

/// The allocators that the system has installed.
fn in_system() -> impl Iterator<Item = (&'static str, &'static str, PathBuf)> {
    let triplet = format!("{}-linux-gnu", std::env::consts::ARCH);
    let folders = [
        "/usr/local/lib".into(),
        format!("/usr/lib/{triplet}"),
        "/usr/lib64".into(),
        "/usr/lib".into(),
    ];
    IN_SYSTEM
        .into_iter()
        .filter_map(move |(name, stands_for, file)| {
            let found = folders
                .iter()
                .map(|folder| Path::new(folder).join(file))
                .find(|path| path.is_file())?;
            Some((name, stands_for, found))
        })
}

/// "2" of libjemalloc.so.2, with links resolved: a file tells no more about its version.
fn soname_version(path: &Path) -> String {
    let real = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    let name = real.file_name().unwrap_or_default().shown();
    name.split_once(".so.").map_or_else(
        || "installed".into(),
        |(_, version)| format!("so.{version}"),
    )
}
