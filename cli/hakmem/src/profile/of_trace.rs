//! A trace as a profile: by call stack, what all of its processes have allocated, have left, and had at the peak.

use super::{KIND, Site, Snapshot};
use crate::traces::{self, Which, choose};
use hakmem_heap::profile::Sums;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::{Error, Result};
use hakmem_lab::failed;
use hakmem_trace::analysis::{self, Analysis, analyse};
use hakmem_trace::reader::Reader;
use hakmem_trace::symbols::Symbols;
use std::collections::HashMap;
use std::path::Path;

impl Snapshot {
    pub fn of_trace(path: &Path) -> Result<Snapshot> {
        let reader = traces::open(path)?;
        let (processes, _) = choose(&reader, Some(Which::All))?;
        let mut sum: Option<Snapshot> = None;
        for process in processes {
            let mut symbols = Symbols::of(&reader, process)?;
            let analysis = analyse(&reader, process)?;
            let snapshot = Snapshot::of_analysis(&reader, &analysis, &mut symbols);
            match &mut sum {
                Some(sum) => sum.add(snapshot),
                None => sum = Some(snapshot),
            }
        }
        sum.filter(|sum| !sum.sites.is_empty() || reader.has_stacks())
            .ok_or_else(|| has_no_stacks(path))
    }

    /// One process of a trace.
    pub fn of_analysis(reader: &Reader, analysis: &Analysis, symbols: &mut Symbols) -> Snapshot {
        let sites = named(analysis, symbols, |site, named| {
            let held = &site.held;
            named.allocated.add(&sums(site.count, site.bytes));
            named.live.add(&sums(held.live_blocks, held.live_bytes));
            let at_peak = sums(held.at_peak_blocks, held.at_peak_bytes);
            named.peak.add(&at_peak);
        });
        Snapshot {
            kind: KIND.into(),
            title: reader.beginning.command.join(" "),
            every: 1,
            seconds: 0.0,
            samples_taken: 0,
            samples_dropped: 0,
            samples_stackless: 0,
            spent_ms: 0.0,
            sites,
            threads: Vec::new(),
            part: reader.warning.clone(),
            notes: symbols.names.notes().to_vec(),
            processes: Vec::new(),
        }
    }
}

/// The temporary blocks of one process, counted as allocated.
pub fn temporary(analysis: &Analysis, symbols: &mut Symbols) -> Vec<Site> {
    named(analysis, symbols, |site, named| {
        let temporary = sums(site.temporary_blocks, site.temporary_bytes);
        named.allocated.add(&temporary);
    })
}

pub fn has_no_stacks(path: &Path) -> Error {
    failed!(
        "{} has no call stacks: record it with hakmem record --stacks",
        path.shown()
    )
}

/// One site for all stacks with the same names.
fn named(
    analysis: &Analysis,
    symbols: &mut Symbols,
    add: impl Fn(&analysis::Site, &mut Site),
) -> Vec<Site> {
    let mut sites: Vec<Site> = Vec::new();
    let mut known: HashMap<Vec<String>, usize> = HashMap::new();
    for site in &analysis.sites {
        let frames = symbols.stack(site.stack);
        let index = *known.entry(frames.clone()).or_insert_with(|| {
            sites.push(Site {
                frames,
                ..Site::default()
            });
            sites.len() - 1
        });
        add(site, &mut sites[index]);
    }
    sites
}

fn sums(blocks: u64, bytes: u64) -> Sums {
    Sums {
        samples: blocks,
        bytes: bytes as f64,
        blocks: blocks as f64,
    }
}
