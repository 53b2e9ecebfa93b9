//! A process's live blocks at the peak of a trace, and its temporary blocks, with names.

use super::group::grouped;
use super::of_trace::temporary;
use super::{Site, Snapshot, View, sorted};
use crate::frames::{By, Folded};
use hakmem_lab::error::Result;
use hakmem_trace::analysis::Analysis;
use hakmem_trace::reader::Reader;
use hakmem_trace::symbols::Symbols;
use serde_json::{Value, json};

/// How many rows a table of the page has.
const ROWS: usize = 30;

pub struct AtPeak<'a> {
    pub analysis: &'a Analysis,
    /// To be seen with `View::Peak`.
    pub held: Snapshot,
    /// To be seen with `View::Allocated`.
    pub temporary: Vec<Site>,
    /// The stack of the call that made the peak.
    pub by: Vec<String>,
}

/// The blocks of one place.
pub struct Row {
    /// In several forms, the longest first.
    pub place: Vec<String>,
    pub bytes: u64,
    pub blocks: u64,
    /// A share of the bytes at the peak, or of all temporary blocks.
    pub share: f64,
}

/// Which blocks to list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Held,
    Temporary,
}

impl AtPeak<'_> {
    pub fn of<'a>(reader: &Reader, analysis: &'a Analysis) -> Result<AtPeak<'a>> {
        let mut symbols = Symbols::of(reader, analysis.process)?;
        Ok(AtPeak {
            held: Snapshot::of_analysis(reader, analysis, &mut symbols),
            temporary: temporary(analysis, &mut symbols),
            by: symbols.stack(analysis.peak.stack),
            analysis,
        })
    }

    /// The largest rows first, by their share; and how many rows were left out.
    pub fn rows(&self, which: Which, by: By, folded: &Folded, count: usize) -> (Vec<Row>, usize) {
        let (sites, view, whole) = match which {
            Which::Held => (&self.held.sites, View::Peak, self.analysis.peak.live_bytes),
            Which::Temporary => (
                &self.temporary,
                View::Allocated,
                self.analysis.temporary_blocks,
            ),
        };
        let sites: Vec<&Site> = sites.iter().collect();
        let sites = grouped(&sites, by, folded);
        let mut sites = sorted(&sites, view);
        if which == Which::Temporary {
            sites.sort_by(|a, b| b.allocated.blocks.total_cmp(&a.allocated.blocks));
        }
        let shown = &sites[..sites.len().min(count)];
        let stacks: Vec<&[String]> = shown.iter().map(|site| site.frames.as_slice()).collect();
        let rows = shown.iter().zip(folded.places(&stacks));
        let rows = rows.map(|(site, place)| {
            let sums = view.of(site);
            let part = match which {
                Which::Held => sums.bytes,
                Which::Temporary => sums.blocks,
            };
            Row {
                place,
                bytes: sums.bytes as u64,
                blocks: sums.blocks as u64,
                share: part / whole.max(1) as f64,
            }
        });
        (rows.collect(), sites.len() - shown.len())
    }

    /// All figures as JSON.
    pub fn json(&self) -> Value {
        let held = self.held.sites.iter().map(|site| {
            json!({ "frames": site.frames, "bytes": site.peak.bytes as u64, "blocks": site.peak.blocks as u64 })
        });
        let temporary = self.temporary.iter().map(|site| {
            let sums = &site.allocated;
            json!({ "frames": site.frames, "bytes": sums.bytes as u64, "blocks": sums.blocks as u64 })
        });
        let some = |site: &Value| site["blocks"].as_u64() > Some(0);
        json!({
            "process": self.analysis.process, "program": self.analysis.program,
            "peak": self.analysis.peak, "by": self.by,
            "held": held.filter(some).collect::<Vec<_>>(),
            "sizes": self.analysis.sizes,
            "temporary_blocks": self.analysis.temporary_blocks,
            "temporary": temporary.filter(some).collect::<Vec<_>>(),
        })
    }

    /// The part that a page shows.
    pub fn for_page(&self) -> Value {
        let rows = |which| {
            let (rows, more) = self.rows(which, By::Stack, &Folded::default(), ROWS);
            let rows = rows.iter().map(|row| {
                json!({ "place": row.place[0], "bytes": row.bytes, "blocks": row.blocks, "share": row.share })
            });
            json!({ "rows": rows.collect::<Vec<_>>(), "more": more })
        };
        json!({ "held": rows(Which::Held), "temporary": rows(Which::Temporary) })
    }
}
