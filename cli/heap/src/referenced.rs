//! How much of a heap's mappings was accessed since a given time: the kernel clears the referenced bits of a process's pages
//! (clear_refs), and later counts those that are set, by mapping.

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

/// Sums over all mappings that contain a part of the heap.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Referenced {
    pub resident_bytes: u64,
    /// Read or written since.
    pub referenced_bytes: u64,
    /// How long the process could not map or unmap anything.
    pub clear_ms: f64,
}

impl Cleared {
    /// Clears the bits. This takes the process's lock for mappings, and walks all its page tables. It does not flush TLBs: the
    /// next access to a page whose entry stays in a TLB is not seen.
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

    /// Counts mappings that contain a part of the heap.
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
