//! Finds the file that code was mapped from, or its debugging information.

use crate::debuginfod;
use hakmem_heap::code::Code;
use hakmem_heap::code_files::{Missing, ROOT, Sources, by_build_id, find_mapped};
use std::fs::File;
use std::path::{Path, PathBuf};

/// A file that was found.
pub struct Found {
    pub path: PathBuf,
    /// It contains names only, no code.
    pub is_debug_only: bool,
}

/// Finds the file, or else its debugging information.
pub fn find(code: &Code, sources: &Sources) -> Result<Found, Missing> {
    let missing = match find_mapped(code, sources) {
        Ok(path) => {
            return Ok(Found {
                path,
                is_debug_only: false,
            });
        }
        Err(missing) => missing,
    };
    let Some(id) = code.identity.build_id() else {
        return Err(missing);
    };
    let debug = Path::new(ROOT).join(by_build_id(id, ".debug"));
    let debug = [Some(debug), debuginfod::find(id)];
    let is_of_it = |path: &PathBuf| File::open(path).is_ok_and(|file| has_build_id(&file, id));
    let found = debug.into_iter().flatten().find(is_of_it);
    // Only with the address of the file's beginning can a code address be found in debugging information.
    match found.filter(|_| code.base.is_some()) {
        Some(path) => Ok(Found {
            path,
            is_debug_only: true,
        }),
        None => Err(missing),
    }
}

fn has_build_id(file: &File, id: &[u8]) -> bool {
    use object::Object;
    let Ok(copy) = file.try_clone() else {
        return false;
    };
    let cache = object::ReadCache::new(copy);
    let parsed = object::File::parse(&cache);
    parsed.is_ok_and(|parsed| parsed.build_id().ok().flatten() == Some(id))
}
