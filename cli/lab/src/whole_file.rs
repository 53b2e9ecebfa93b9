//! Results are written whole, or what was there is kept.

use crate::error::{Error, Result};
use crate::{failed, usage};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Replace a file in one step; folders that it needs are made.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    if path.metadata().is_ok_and(|status| !status.is_file()) {
        // A pipe or a device is written to, not replaced.
        return fs::write(path, text).map_err(|error| unwritten(path, &error));
    }
    replace_by(path, |mut file| {
        file.write_all(text.as_bytes())
            .map_err(|error| unwritten(path, &error))
    })
}

/// The same, with something that writes into the file it is given.
pub fn replace_by<T>(path: &Path, write: impl FnOnce(File) -> Result<T>) -> Result<T> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| unwritten(path, &error))?;
    }
    let mut temporary = path.as_os_str().to_os_string();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    let written = File::create(&temporary)
        .map_err(|error| unwritten(path, &error))
        .and_then(write)
        .and_then(|answer| {
            fs::rename(&temporary, path)
                .map_err(|error| unwritten(path, &error))
                .map(|()| answer)
        });
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// For what is too large to be lost by a mistyped name.
pub fn refuse_existing(path: &Path) -> Result<()> {
    if path.exists() {
        return Err(usage!(
            "{} exists: remove it, or name another file",
            path.display()
        ));
    }
    Ok(())
}

/// Why there is no file at `path`, or no new one.
pub fn unwritten(path: &Path, error: &io::Error) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            failed!(
                "{}: the disk is full; what is there already is kept",
                path.display()
            )
        }
        _ => failed!("{}: {error}", path.display()),
    }
}
