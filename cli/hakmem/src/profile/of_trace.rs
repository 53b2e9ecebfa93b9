//! A trace as a profile: what all of its processes have allocated, by call stack, and have left.

use super::{KIND, Site, Snapshot};
use crate::traces::{self, Which, choose};
use hakmem_heap::profile::Sums;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::failed;
use hakmem_trace::analysis::analyse;
use hakmem_trace::symbols::Symbols;
use std::path::Path;

impl Snapshot {
    pub fn of_trace(path: &Path) -> Result<Snapshot> {
        let reader = traces::open(path)?;
        let (processes, _) = choose(&reader, Some(Which::All))?;
        let mut snapshot = Snapshot {
            kind: KIND.into(),
            title: reader.beginning.command.join(" "),
            every: 1,
            seconds: 0.0,
            samples_taken: 0,
            samples_dropped: 0,
            samples_stackless: 0,
            spent_ms: 0.0,
            sites: Vec::new(),
            part: reader.warning.clone(),
            notes: Vec::new(),
            processes: Vec::new(),
        };
        for process in processes {
            let mut symbols = Symbols::of(&reader, process)?;
            let sites = analyse(&reader, process)?.sites;
            let sites = sites.iter().map(|site| Site {
                frames: symbols.stack(site.stack),
                allocated: sums(site.count, site.bytes),
                live: sums(site.live_blocks, site.live_bytes),
                ..Site::default()
            });
            let of_process = Snapshot {
                sites: sites.collect(),
                notes: symbols.names.notes().to_vec(),
                ..snapshot.clone()
            };
            snapshot.add(of_process);
        }
        if snapshot.sites.is_empty() {
            return Err(failed!(
                "{} has no call stacks: record it with hakmem record --stacks",
                path.shown()
            ));
        }
        Ok(snapshot)
    }
}

fn sums(blocks: u64, bytes: u64) -> Sums {
    Sums {
        samples: blocks,
        bytes: bytes as f64,
        blocks: blocks as f64,
    }
}
