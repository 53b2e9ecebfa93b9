//! Finds the function names of a stripped file: in a file beside it or below /usr/lib/debug, where distributions install them,
//! by build id or by the name in .gnu_debuglink.

use crate::debuginfod;
use hakmem_heap::code::is_id;
use hakmem_heap::code_files::by_build_id;
use object::{Object, ReadCache, ReadRef};
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file with debugging information, and the file that it shares with others, if it needs one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugFile {
    pub path: PathBuf,
    pub shared: Option<PathBuf>,
}

/// Where to look for such files.
pub struct Places<'a> {
    /// The path by which we open the file itself.
    pub path: &'a Path,
    /// The path by which the program knows it.
    pub named: &'a Path,
    /// Folders such as /usr/lib/debug.
    pub roots: &'a [PathBuf],
}

impl DebugFile {
    /// The debugging information for `file`; None if the file contains its own, or if none is found.
    pub fn of<'data, R: ReadRef<'data>>(
        file: &object::File<'data, R>,
        places: &Places,
    ) -> Option<DebugFile> {
        if file.section_by_name(".debug_info").is_some() {
            let shared = shared(places.path, file, places.roots)?;
            return Some(DebugFile {
                path: places.path.into(),
                shared: Some(shared),
            });
        }
        let build_id = file.build_id().ok().flatten().filter(|id| is_id(id));
        let by_id = build_id.map(|id| by_build_id(id, ".debug"));
        let by_id = by_id.iter();
        let by_id = by_id.flat_map(|name| places.roots.iter().map(move |root| root.join(name)));
        let by_name = file.gnu_debuglink().ok().flatten();
        let by_name = by_name.map_or(Vec::new(), |(name, _)| linked(name, places));
        let kept = by_id.chain(by_name);
        let served = std::iter::once_with(|| debuginfod::find(build_id?));
        kept.chain(served.flatten()).find_map(|candidate| {
            let cache = ReadCache::new(File::open(&candidate).ok()?);
            let found = object::File::parse(&cache).ok()?;
            // The information of another release would give wrong names.
            let is_of_it = build_id.is_some() && found.build_id().ok().flatten() == build_id
                || build_id.is_none() && has_sum(&candidate, file);
            is_of_it.then(|| DebugFile {
                shared: shared(&candidate, &found, places.roots),
                path: candidate.clone(),
            })
        })
    }
}

/// The paths that a name in .gnu_debuglink may refer to.
fn linked(name: &[u8], places: &Places) -> Vec<PathBuf> {
    let name = Path::new(OsStr::from_bytes(name));
    let (Some(folder), Some(named)) = (places.path.parent(), places.named.parent()) else {
        return Vec::new();
    };
    let below = named.strip_prefix("/").unwrap_or(named);
    let near = [
        folder.into(),
        folder.join(".debug"),
        named.into(),
        named.join(".debug"),
    ];
    let far = places.roots.iter().map(|root| root.join(below));
    near.into_iter()
        .chain(far)
        .map(|folder: PathBuf| folder.join(name))
        .filter(|candidate| candidate != places.path)
        .collect()
}

/// Does the candidate have the checksum that is in the link of `file`?
fn has_sum<'data, R: ReadRef<'data>>(candidate: &Path, file: &object::File<'data, R>) -> bool {
    let wanted = file.gnu_debuglink().ok().flatten();
    let bytes = std::fs::read(candidate).ok();
    wanted
        .zip(bytes)
        .is_some_and(|((_, sum), bytes)| crc32fast::hash(&bytes) == sum)
}

/// The file that .gnu_debugaltlink names; dwz makes such files.
fn shared<'data, R: ReadRef<'data>>(
    path: &Path,
    file: &object::File<'data, R>,
    roots: &[PathBuf],
) -> Option<PathBuf> {
    let (name, id) = file.gnu_debugaltlink().ok().flatten()?;
    let named = path.parent()?.join(OsStr::from_bytes(name));
    let by_id = roots
        .iter()
        .map(|root| root.join(by_build_id(id, ".debug")));
    std::iter::once(named)
        .chain(by_id)
        .find(|path| path.is_file())
        .or_else(|| debuginfod::find(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn found(program: &Path, root: &Path) -> Option<DebugFile> {
        let cache = ReadCache::new(File::open(program).unwrap());
        let places = Places {
            path: program,
            named: program,
            roots: &[root.into()],
        };
        DebugFile::of(&object::File::parse(&cache).unwrap(), &places)
    }

    /// False if the machine lacks the command.
    fn run(command: &str, folder: &Path) -> bool {
        let mut words = command.split(' ');
        let status = Command::new(words.next().unwrap())
            .args(words)
            .current_dir(folder)
            .status();
        status.is_ok_and(|status| status.success())
    }

    #[test]
    fn a_stripped_program_has_its_names_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let source = "int known_only_there(void) { return 1; }\nint main(void) { return known_only_there(); }\n";
        std::fs::write(at("program.c"), source).unwrap();
        let commands = [
            "cc -g -O0 -Wl,--build-id=0xabcdef0123 program.c -o program",
            "objcopy --only-keep-debug program program.debug",
            "objcopy --strip-all program stripped",
            "objcopy --strip-all --add-gnu-debuglink=program.debug program linked",
        ];
        if !commands.iter().all(|command| run(command, folder.path())) {
            return; // binutils is not installed, so nothing can be stripped
        }
        let (root, program) = (at("debug"), at("stripped"));
        assert_eq!(found(&program, &root), None);
        assert_eq!(found(&at("program"), &root), None, "it has its own");
        let expected = |path: PathBuf| Some(DebugFile { path, shared: None });
        assert_eq!(found(&at("linked"), &root), expected(at("program.debug")));
        let by_id = root.join(".build-id/ab/cdef0123.debug");
        std::fs::create_dir_all(by_id.parent().unwrap()).unwrap();
        std::fs::copy(at("program.debug"), &by_id).unwrap();
        assert_eq!(found(&program, &root), expected(by_id.clone()));
        // Another program's information is not used.
        std::fs::copy("/proc/self/exe", &by_id).unwrap();
        assert_eq!(found(&program, &root), None);
    }
}
