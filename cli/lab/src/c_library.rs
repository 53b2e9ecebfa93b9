//! The C library that programs run with: the one that this command was built for, and the library beside it.

use crate::error::Result;
use crate::failed;
use hakmem_heap::live::parse_areas;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

pub const NAME: &str = if IS_MUSL { "musl" } else { "glibc" };
/// A part of the name of its dynamic linker.
pub const LINKER: &str = if IS_MUSL { "ld-musl" } else { "ld-linux" };

const IS_MUSL: bool = cfg!(target_env = "musl");

/// Is a file the C library, by its name without folders? musl's is also its dynamic linker.
pub fn is_named(name: &[u8]) -> bool {
    if IS_MUSL {
        name == b"libc.so" || name.starts_with(b"ld-musl-")
    } else {
        // Before 2.34, the file's name contained the version, and libc.so.6 was a link.
        name == b"libc.so.6" || (name.starts_with(b"libc-2.") && name.ends_with(b".so"))
    }
}

/// Does a library that needs this one belong to another C library?
pub fn is_other(needed: &[u8]) -> bool {
    let is_musl = needed == b"libc.so" || needed.starts_with(b"libc.musl-"); // Debian's, Alpine's
    if IS_MUSL {
        needed == b"libc.so.6"
    } else {
        is_musl
    }
}

/// Its file. If a program is linked with another allocator, preloading this file gives it the C library's malloc back.
pub fn path() -> Result<PathBuf> {
    let maps = fs::read("/proc/self/maps")
        .map_err(|error| failed!("cannot read own mappings: {error}"))?;
    parse_areas(&maps)
        .into_iter()
        .find(|area| {
            let last = area.name.rsplit(|byte| *byte == b'/').next();
            area.name.starts_with(b"/") && last.is_some_and(is_named)
        })
        .map(|area| PathBuf::from(OsString::from_vec(area.name)))
        .ok_or_else(|| failed!("this command has no C library that was loaded from a file"))
}

#[cfg(not(target_env = "musl"))]
pub fn version() -> String {
    // SAFETY: glibc returns a text that lives as long as the process.
    let text = unsafe { std::ffi::CStr::from_ptr(nix::libc::gnu_get_libc_version()) };
    text.to_string_lossy().into_owned()
}

/// musl has no function for its version; its file prints it when run as a program.
#[cfg(target_env = "musl")]
pub fn version() -> String {
    let answer = path().map(|path| std::process::Command::new(path).output());
    let said = answer.ok().and_then(std::io::Result::ok);
    let said = said.map_or_else(Vec::new, |output| output.stderr);
    let said = String::from_utf8_lossy(&said);
    let version = said.lines().find_map(|line| line.strip_prefix("Version "));
    version.unwrap_or("of unknown version").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(not(target_env = "musl"))]
    fn old_files_of_glibc_are_known() {
        assert!(is_named(b"libc.so.6") && is_named(b"libc-2.31.so"));
        assert!(!is_named(b"libc-2.31.so.debug") && !is_named(b"libcrypt-2.31.so"));
    }

    #[test]
    fn only_another_c_library_is_another() {
        let glibc: &[u8] = b"libc.so.6";
        let musl: [&[u8]; 2] = [b"libc.so", b"libc.musl-x86_64.so.1"];
        assert_eq!(is_other(glibc), IS_MUSL);
        assert!(musl.iter().all(|name| is_other(name) != IS_MUSL));
        assert!(!is_other(b"libm.so.6") && !is_other(b"libcrypt.so.1"));
    }
}
