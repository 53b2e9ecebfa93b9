//! Results are written whole, or what was there is kept.

use crate::error::Result;
use crate::failed;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Replace a file in one step; folders that it needs are made.
pub fn replace(path: &Path, text: &str) -> Result<()> {
    let explain = |error: io::Error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            failed!(
                "{}: the disk is full; what is there already is kept",
                path.display()
            )
        }
        _ => failed!("{}: {error}", path.display()),
    };
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(explain)?;
    }
    if path.metadata().is_ok_and(|status| !status.is_file()) {
        // A pipe or a device is written to, not replaced.
        return fs::write(path, text).map_err(explain);
    }
    let mut temporary = path.as_os_str().to_os_string();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    fs::write(&temporary, text)
        .and_then(|()| fs::rename(&temporary, path))
        .map_err(|error| {
            let _ = fs::remove_file(&temporary);
            explain(error)
        })
}
