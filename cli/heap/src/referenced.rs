//! How much of a heap's mappings was read or written since: the kernel forgets for a process which of its pages were used
//! (clear_refs), and counts them again by mapping.

use crate::error::{Error, Result};
use crate::live::LiveProcess;
use crate::resident::read_areas;
use serde::Serialize;
use std::io::ErrorKind;
use std::ops::Range;
use std::time::{Duration, Instant};

pub struct Cleared {
    took: Duration,
}

/// Of all mappings that the heap lies in.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Referenced {
    pub resident_bytes: u64,
    /// Read or written meanwhile.
    pub referenced_bytes: u64,
    /// So long the process could not map or unmap anything.
    pub clear_ms: f64,
}

impl Cleared {
    /// Takes the process's lock for mappings, and passes over all its page tables. TLBs stay as they are: of a page that a
    /// processor has there all the time, the next use is not seen.
    pub fn clear(process: &LiveProcess) -> Result<Cleared> {
        let start = Instant::now();
        std::fs::write(format!("/proc/{}/clear_refs", process.task()), "1").map_err(|error| {
            match error.kind() {
                ErrorKind::PermissionDenied => Error::Forbidden(process.pid),
                _ => Error::Gone(process.pid),
            }
        })?;
        Ok(Cleared {
            took: start.elapsed(),
        })
    }

    /// Of mappings in which a part of the heap lies.
    pub fn count(
        &self,
        process: &LiveProcess,
        is_heap: impl Fn(&Range<u64>) -> bool,
    ) -> Result<Referenced> {
        let mut found = Referenced {
            resident_bytes: 0,
            referenced_bytes: 0,
            clear_ms: self.took.as_secs_f64() * 1e3,
        };
        for area in read_areas(process.task())? {
            if is_heap(&area.range) {
                found.resident_bytes += area.resident_bytes;
                found.referenced_bytes += area.referenced_bytes;
            }
        }
        Ok(found)
    }
}
