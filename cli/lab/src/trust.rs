//! Does a process's proof show the allocator that was requested?

use crate::allocator::Allocator;
use crate::proof::Proof;
use hakmem_heap::shown::ShownPath;
use std::path::Path;

/// Why a process contradicts the requested allocator; None if it does not.
pub fn contradiction(
    proof: &Proof,
    allocator: &Allocator,
    relative: &dyn Fn(&str) -> String,
) -> Option<String> {
    let foreign: Vec<String> = proof
        .owners()
        .into_iter()
        .filter(|path| !allocator.owns(path, proof.build_ids.get(*path)))
        .map(|path| relative(&path.shown()))
        .collect();
    let inside = proof.inside_program().filter(|_| {
        // hakmem linked into the program only counts if hakmem was requested.
        !proof.owners().contains(proof.program.as_path())
    });
    if let Some(inside) = inside {
        return Some(inside);
    }
    if !foreign.is_empty() {
        return Some(format!(
            "used {} instead of {}",
            foreign.join(", "),
            allocator.name
        ));
    }
    if proof.owners().is_empty() {
        return Some(format!("used nothing instead of {}", allocator.name));
    }
    if allocator.is_ours() && proof.blocks.is_none() {
        return Some(format!(
            "has a hakmem whose address map this hakmem cannot read: {}",
            proof.no_blocks
        ));
    }
    None
}

/// The C library's own requests to malloc prove nothing about the program.
pub fn is_libc(path: &Path) -> bool {
    let name = file_name(path);
    ["libc.so", "ld-linux", "ld-musl", "libpthread.so"]
        .iter()
        .any(|start| name.starts_with(start))
}

pub fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).shown()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The proof of a process that has all its memory from one library.
    fn proof(owner: &str) -> Proof {
        let mut proof = Proof {
            program: "/bin/program".into(),
            ..Proof::default()
        };
        proof.definers.insert("malloc", owner.into());
        proof
    }

    fn refusal(proof: &Proof) -> Option<String> {
        let library = Some("/lib/libpeer.so".into());
        let peer = Allocator {
            name: "peer".into(),
            library,
            ..Allocator::default()
        };
        contradiction(proof, &peer, &str::to_string)
    }

    #[test]
    fn only_the_right_owner_alone_passes() {
        assert_eq!(refusal(&proof("/lib/libpeer.so")), None);
        let other = refusal(&proof("/lib/libc.so.6")).unwrap();
        assert_eq!(other, "used /lib/libc.so.6 instead of peer");
        let mut second = proof("/lib/libpeer.so");
        second.definers.insert("free", "/bin/own".into());
        assert_eq!(refusal(&second).unwrap(), "used /bin/own instead of peer");
        let nothing = Proof::default();
        assert_eq!(refusal(&nothing).unwrap(), "used nothing instead of peer");
    }

    #[test]
    fn a_function_outside_the_core_may_come_from_elsewhere() {
        let mut proof = proof("/lib/libpeer.so");
        proof
            .definers
            .insert("malloc_trim", "/lib/libc.so.6".into());
        assert_eq!(refusal(&proof), None);
    }

    #[test]
    fn a_malloc_inside_the_program_is_refused() {
        let mut private = proof("/lib/libpeer.so");
        private.private.insert("malloc");
        assert!(
            refusal(&private)
                .unwrap()
                .contains("no library can replace")
        );
        let mut bundled = proof("/lib/libpeer.so");
        bundled
            .bundled
            .push(("/bin/program".into(), vec!["jemalloc"]));
        assert_eq!(refusal(&bundled).unwrap(), "has jemalloc inside");
        bundled.bundled[0].0 = "/lib/plugin.so".into();
        assert_eq!(refusal(&bundled), None);
    }
}
