//! What a program is before it starts, and whether a library can be preloaded into it.

use crate::allocator::OURS;
use crate::c_library;
use crate::elf::{self, ElfFile};
use crate::error::Result;
use crate::usage;
use hakmem_heap::shown::ShownPath;
use nix::libc;
use object::elf as numbers;
use std::ffi::{CString, OsStr};
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A script's interpreter may be a script itself; the kernel follows this many levels.
const INTERPRETERS_MAX: usize = 4;

/// A program that can be started, and the ELF file that will run.
pub struct Executable {
    /// The path at which it was found.
    pub path: PathBuf,
    /// The same path or, for a script, its interpreter.
    pub binary: PathBuf,
    pub file: Arc<ElfFile>,
}

/// The advice for programs that nothing can be preloaded into.
pub const LINK_IT_IN: &str =
    "link libhakmem.a into it instead, or in Rust use the crate hakmem-allocator (rust/)";

/// Why a library cannot be preloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    Static(Vec<&'static str>),
    OtherMachine(&'static str),
    OtherLibc(String),
    /// It runs with another user's rights, so the dynamic linker ignores LD_PRELOAD.
    Privileged(&'static str),
    /// It contains an allocator that must see each of its calls.
    Sanitized(&'static str),
}

impl Obstacle {
    /// A phrase that follows the program's name.
    pub fn reason(&self) -> String {
        match self {
            Obstacle::Static(inside) => {
                let inside = if inside.is_empty() {
                    String::new()
                } else {
                    format!(" with {} inside", inside.join(" and "))
                };
                format!("is statically linked{inside}, so nothing can be preloaded")
            }
            Obstacle::OtherMachine(machine) => {
                format!("is for {machine}, and libhakmem.so is not")
            }
            Obstacle::OtherLibc(linker) => {
                format!(
                    "is linked with another C library ({linker}), and libhakmem.so needs {}",
                    c_library::NAME
                )
            }
            Obstacle::Privileged(how) => {
                format!("{how}, so the dynamic linker ignores LD_PRELOAD for this user")
            }
            Obstacle::Sanitized(sanitizer) => {
                format!("is built with {sanitizer}, which has to be the program's allocator")
            }
        }
    }

    /// The reason, and how the program can use hakmem nevertheless.
    pub fn sentence(&self) -> String {
        let other_build = format!(
            "use the program's build for {}, or hakmem's for that C library (docs/install.md)",
            c_library::NAME
        );
        let instead = match self {
            Obstacle::Static(inside) if inside.contains(&OURS) => "start it without this",
            Obstacle::Static(_) => LINK_IT_IN,
            Obstacle::OtherMachine(_) => "use the program's build for this machine",
            Obstacle::OtherLibc(_) => &other_build,
            Obstacle::Privileged(_) => LINK_IT_IN,
            Obstacle::Sanitized(_) => "use the program's build without it",
        };
        format!("{}; {instead}", self.reason())
    }
}

impl Executable {
    /// Finds a program as a shell would, and reads its kind.
    pub fn find(name: &OsStr) -> Result<Executable> {
        let path = find_in_path(name)?;
        let binary = follow_interpreters(&path)?;
        let file = elf::read_cached(&binary).or_else(|error| {
            // 32-bit programs are not read further; their kind is known nevertheless.
            if error.0.contains("32 bits") {
                return Ok(Arc::new(ElfFile::default()));
            }
            Err(usage!("{} is not a program: {}", binary.shown(), error.0))
        })?;
        if file.is_library {
            return Err(usage!(
                "{} is a shared library, not a program",
                binary.shown()
            ));
        }
        Ok(Executable { path, binary, file })
    }

    pub fn is_script(&self) -> bool {
        self.binary.file_name() != self.path.canonicalize().unwrap_or_default().file_name()
    }

    /// Its path; for a script, also its interpreter.
    pub fn title(&self) -> String {
        let path = self.path.shown();
        if self.is_script() {
            format!("{path}, run by {}", self.binary.shown())
        } else {
            path.to_string()
        }
    }

    pub fn obstacle(&self) -> Option<Obstacle> {
        let file = &self.file;
        if file.machine != own_machine() {
            return Some(Obstacle::OtherMachine(machine_name(file.machine)));
        }
        let Some(linker) = &file.interpreter else {
            return Some(Obstacle::Static(file.bundled()));
        };
        if !linker.contains(c_library::LINKER) {
            return Some(Obstacle::OtherLibc(linker.clone()));
        }
        privilege(&self.binary)
            .map(Obstacle::Privileged)
            .or_else(|| file.sanitizer().map(Obstacle::Sanitized))
    }
}

fn find_in_path(name: &OsStr) -> Result<PathBuf> {
    let given = Path::new(name);
    if name.as_bytes().contains(&b'/') {
        return check_file(given).map(|()| given.to_path_buf());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(given))
        .find(|candidate| check_file(candidate).is_ok())
        .ok_or_else(|| usage!("there is no program '{}' in PATH", given.shown()))
}

fn check_file(path: &Path) -> Result<()> {
    let status = fs::metadata(path).map_err(|error| usage!("{}: {error}", path.shown()))?;
    if !status.is_file() {
        return Err(usage!("{} is not a file", path.shown()));
    }
    if status.mode() & 0o111 == 0 {
        return Err(usage!("{} is not executable (chmod +x)", path.shown()));
    }
    Ok(())
}

fn follow_interpreters(script: &Path) -> Result<PathBuf> {
    let mut path = script.to_path_buf();
    for _ in 0..=INTERPRETERS_MAX {
        let Some(line) = first_line(&path)? else {
            return Ok(path.canonicalize().unwrap_or(path));
        };
        let mut words = line.split_ascii_whitespace();
        let interpreter = PathBuf::from(words.next().unwrap_or_default());
        let is_env = interpreter.file_name() == Some(OsStr::new("env"));
        path = match words.find(|word| !word.starts_with('-') && !word.contains('=')) {
            Some(name) if is_env => find_in_path(OsStr::new(name))?,
            _ => interpreter,
        };
        if !path.is_file() {
            return Err(usage!(
                "{}: its interpreter {} is missing",
                script.shown(),
                path.shown()
            ));
        }
    }
    Err(usage!(
        "{}: too many interpreters, one after the other",
        script.shown()
    ))
}

/// The text after `#!`; None for a file that does not begin with that.
fn first_line(path: &Path) -> Result<Option<String>> {
    let mut start = Vec::new();
    crate::input::open(path)
        .and_then(|file| file.take(256).read_to_end(&mut start))
        .map_err(|error| usage!("{}: {error}", path.shown()))?;
    let Some(rest) = start.strip_prefix(b"#!") else {
        return Ok(None);
    };
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(Some(String::from_utf8_lossy(line).into_owned()))
}

pub fn own_machine() -> numbers::Machine {
    if cfg!(target_arch = "aarch64") {
        numbers::EM_AARCH64
    } else {
        numbers::EM_X86_64
    }
}

fn machine_name(machine: numbers::Machine) -> &'static str {
    match machine {
        numbers::EM_X86_64 => "x86-64",
        numbers::EM_AARCH64 => "64-bit ARM",
        numbers::EM_RISCV => "RISC-V",
        numbers::EM_PPC64 => "POWER",
        numbers::EM_S390 => "IBM Z",
        numbers::Machine(0) => "32 bits",
        _ => "another processor",
    }
}

/// Why a file would run with other rights than ours.
fn privilege(path: &Path) -> Option<&'static str> {
    let status = fs::metadata(path).ok()?;
    // SAFETY: these calls only return numbers.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    if status.mode() & libc::S_ISUID != 0 && status.uid() != user {
        return Some("is set-user-ID");
    }
    if status.mode() & libc::S_ISGID != 0 && status.gid() != group {
        return Some("is set-group-ID");
    }
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: both names end with NUL; with a size of 0 nothing is written.
    let bytes = unsafe {
        libc::getxattr(
            name.as_ptr(),
            c"security.capability".as_ptr(),
            std::ptr::null_mut(),
            0,
        )
    };
    (bytes > 0 && user != 0).then_some("has capabilities of its own")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_script_runs_in_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        fs::write(&script, "#!/usr/bin/env -S sh -e\n").unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let found = Executable::find(script.as_os_str()).unwrap();
        assert_eq!(found.binary, Path::new("/bin/sh").canonicalize().unwrap());
        assert_eq!(found.obstacle(), None);
    }

    #[test]
    fn a_missing_program_is_the_users_mistake() {
        let error = Executable::find(OsStr::new("no-such-program-here"))
            .err()
            .unwrap();
        assert_eq!(error.exit_code(), 2);
        assert_eq!(
            error.to_string(),
            "there is no program 'no-such-program-here' in PATH"
        );
    }

    #[test]
    fn a_set_user_id_program_of_another_user_is_an_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join("copy");
        fs::copy("/bin/ls", &copy).unwrap();
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
        // Only root can change a file's owner; for other users the program stays their own.
        if std::os::unix::fs::chown(&copy, Some(65534), None).is_ok() {
            fs::set_permissions(&copy, fs::Permissions::from_mode(0o4755)).unwrap();
            let found = Executable::find(copy.as_os_str()).unwrap();
            assert_eq!(
                found.obstacle(),
                Some(Obstacle::Privileged("is set-user-ID"))
            );
        }
    }
}
