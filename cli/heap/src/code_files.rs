//! Finds the very file that code was mapped from; another build of it does not count.

use crate::code::{Code, Identity};
use crate::perf_map::MapPlace;
use crate::shown::{hexadecimal, shown};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// Where debuggers look for debug files.
pub const ROOT: &str = "/usr/lib/debug";

/// Where to look for files.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The process that has, or had, the code.
    pub process: Option<i32>,
    /// When the code was seen. If its identity is unknown, a file that was changed after that is not trusted.
    pub as_of: Option<SystemTime>,
    /// Files of the process that were kept open.
    pub held: Arc<Held>,
    /// Where the process writes the names of code that it generates, if it may have ended.
    pub map: Option<Arc<MapPlace>>,
}

/// Open files that can only be found while their process runs, for example removed files or files of another mount namespace.
/// They can still be read after its end.
#[derive(Debug, Default)]
pub struct Held(HashMap<Identity, File>);

/// The most descriptors that one process's files may take; the usual limit for all is 1,024.
const HELD_MAX: usize = 32;

impl Held {
    pub fn of(code: &[Code], pid: i32) -> Held {
        let inside = Sources {
            process: Some(pid),
            ..Sources::default()
        };
        let mut held = HashMap::new();
        let mut tried = HashSet::new();
        for one in code.iter().filter(|one| one.identity != Identity::Unknown) {
            let is_new = tried.insert(&one.identity);
            if held.len() >= HELD_MAX || !is_new || find_mapped(one, &Sources::default()).is_ok() {
                continue;
            }
            let found = find_mapped(one, &inside).ok();
            if let Some(file) = found.and_then(|path| open(&path).ok()) {
                held.insert(one.identity.clone(), file);
            }
        }
        Held(held)
    }

    fn path(&self, identity: &Identity) -> Option<PathBuf> {
        let file = self.0.get(identity)?;
        Some(format!("/proc/self/fd/{}", file.as_raw_fd()).into())
    }
}

/// Why the file was not found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    Gone,
    /// Another build of the file is there.
    Other {
        wanted: Identity,
        there: Identity,
    },
    /// It may be another build: it was changed after the code was seen.
    Younger,
    Unreadable(String),
}

impl Missing {
    /// A sentence about the file of `code`.
    pub fn text(&self, code: &Code) -> String {
        let path = shown(undeleted(&code.path));
        format!("no names from {path}: {}", self.why())
    }

    pub fn why(&self) -> String {
        match self {
            Missing::Gone => "it is gone".into(),
            Missing::Other { wanted, there } => match (wanted.build_id(), there.build_id()) {
                (Some(wanted), Some(there)) => format!(
                    "build {} was mapped, and build {} is there now",
                    short(wanted),
                    short(there)
                ),
                _ => "another file is there now".into(),
            },
            Missing::Younger => "it was changed later".into(),
            Missing::Unreadable(error) => format!("it cannot be read: {error}"),
        }
    }
}

/// The first half of a build id is enough to tell two builds apart.
fn short(id: &[u8]) -> String {
    hexadecimal(&id[..id.len().min(8)])
}

/// The kernel appends this to the path of a removed file. A file's real name may end with it, too.
const DELETED: &[u8] = b" (deleted)";

fn undeleted(path: &[u8]) -> &[u8] {
    path.strip_suffix(DELETED).unwrap_or(path)
}

/// The file's name without folders, to be shown.
pub fn file_name(path: &[u8]) -> String {
    let name = undeleted(path).rsplit(|byte| *byte == b'/').next();
    shown(name.unwrap_or_default())
}

/// Finds the file that was mapped.
pub fn find_mapped(code: &Code, sources: &Sources) -> Result<PathBuf, Missing> {
    let mut missing = Missing::Gone;
    let named = by_name(code, sources);
    let others = others(code, sources);
    for (index, path) in named.iter().chain(&others).enumerate() {
        match check(path, code, sources) {
            Ok(()) => return Ok(path.clone()),
            // The first reason that says more than that the file is gone.
            Err(why) if index < named.len() && missing == Missing::Gone => missing = why,
            Err(_) => {}
        }
    }
    Err(missing)
}

/// ".build-id/ab/cdef.debug"
pub fn by_build_id(id: &[u8], ending: &str) -> PathBuf {
    let (first, rest) = id.split_at(id.len().min(1));
    format!(
        ".build-id/{}/{}{ending}",
        hexadecimal(first),
        hexadecimal(rest)
    )
    .into()
}

/// Paths to try by the file's name. They come first, as debuggers look for debug files beside the file.
fn by_name(code: &Code, sources: &Sources) -> Vec<PathBuf> {
    let mut names = vec![code.path.as_slice()];
    if code.path.ends_with(DELETED) {
        names.push(undeleted(&code.path));
    }
    let mut found: Vec<PathBuf> = Vec::new();
    if let Some(pid) = sources.process {
        for name in &names {
            let folder = if name.starts_with(b"/") {
                "root"
            } else {
                "cwd/"
            };
            let mut path = OsString::from(format!("/proc/{pid}/{folder}"));
            path.push(OsStr::from_bytes(name));
            found.push(path.into());
        }
    }
    // A relative name may lead to any file, so it needs a known identity.
    let may_be_there = |name: &&[u8]| name.starts_with(b"/") || code.identity != Identity::Unknown;
    let plain = names.into_iter().filter(may_be_there);
    found.extend(plain.map(|name| PathBuf::from(OsString::from_vec(name.to_vec()))));
    found
}

/// Paths to try that do not depend on the file's name. A different file there is not reported.
fn others(code: &Code, sources: &Sources) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    if let Some(pid) = sources.process {
        found.push(format!("/proc/{pid}/exe").into());
        found.extend(mapped_file(pid, code));
    }
    found.extend(sources.held.path(&code.identity));
    if let Some(id) = code.identity.build_id() {
        found.push(Path::new(ROOT).join(by_build_id(id, "")));
    }
    found
}

/// The kernel's link to a mapped file, which works even if the file has no name any more.
fn mapped_file(pid: i32, code: &Code) -> Option<PathBuf> {
    let folder = format!("/proc/{pid}/map_files");
    let begins = format!("{:x}-", code.base.unwrap_or(code.range.start));
    let entries = std::fs::read_dir(folder).ok()?;
    let mut names = entries.filter_map(|entry| Some(entry.ok()?.path()));
    names.find(|path| {
        let name = path.file_name().unwrap_or_default();
        name.as_bytes().starts_with(begins.as_bytes())
    })
}

fn check(path: &Path, code: &Code, sources: &Sources) -> Result<(), Missing> {
    let file = open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Missing::Gone,
        _ => Missing::Unreadable(error.to_string()),
    })?;
    let there = Identity::of_file(&file);
    if code.identity != Identity::Unknown {
        return if there == code.identity {
            Ok(())
        } else {
            Err(Missing::Other {
                wanted: code.identity.clone(),
                there,
            })
        };
    }
    // The identity is unknown, and `exe` may be a different file.
    if path.ends_with("exe") && path.starts_with("/proc") {
        return Err(Missing::Gone);
    }
    let changed = file.metadata().and_then(|data| data.modified()).ok();
    match (changed, sources.as_of) {
        (Some(changed), Some(seen)) if changed > seen => Err(Missing::Younger),
        _ => Ok(()),
    }
}

/// Opens an ordinary file; does not wait for a writer if the name is a pipe's.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(nix::libc::O_NONBLOCK)
        .open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::from(ErrorKind::NotFound))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(path: &Path) -> Code {
        Code {
            range: 0x1000..0x2000,
            base: Some(0x1000),
            path: path.as_os_str().as_bytes().to_vec(),
            identity: Identity::of_file(&File::open(path).unwrap()),
            ..Code::default()
        }
    }

    fn write(path: &Path, build: &[u8]) {
        std::fs::write(path, build).unwrap();
    }

    #[test]
    fn another_file_at_the_path_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a b\nc");
        write(&path, b"one build");
        let code = code(&path);
        let sources = Sources::default();
        assert_eq!(find_mapped(&code, &sources).unwrap(), path);
        write(&path, b"another build");
        let why = find_mapped(&code, &sources).err().unwrap();
        assert!(matches!(why, Missing::Other { .. }));
        assert!(
            why.text(&code)
                .ends_with("a b\\nc: another file is there now")
        );
        std::fs::remove_file(&path).unwrap();
        assert_eq!(find_mapped(&code, &sources).err(), Some(Missing::Gone));
    }

    #[test]
    fn a_file_may_be_called_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x (deleted)");
        write(&path, b"one build");
        let mut code = code(&path);
        assert_eq!(find_mapped(&code, &Sources::default()).unwrap(), path);
        code.path.extend(DELETED); // as the kernel shows a file that was removed and made again
        assert_eq!(find_mapped(&code, &Sources::default()).unwrap(), path);
    }

    #[test]
    fn what_cannot_be_compared_has_to_be_older() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        write(&path, b"one build");
        let mut code = code(&path);
        code.identity = Identity::Unknown;
        let mut sources = Sources::default();
        assert!(find_mapped(&code, &sources).is_ok());
        sources.as_of = Some(SystemTime::UNIX_EPOCH);
        assert_eq!(find_mapped(&code, &sources).err(), Some(Missing::Younger));
    }
}
