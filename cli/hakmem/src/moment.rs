//! Why memory grew: a process at two moments, compared by what its pages hold, by size and by call site.

use crate::holds::rows;
use crate::profile::changes::changes;
use crate::profile::look::{Pace, part, snapshot};
use crate::profile::{Snapshot, View};
use crate::target::{Opened, told};
use hakmem_heap::figures::Figures;
use hakmem_heap::heap::Heap;
use hakmem_heap::ledger::Account;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::document::refuse_cut;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::{bytes, signed_bytes};
use hakmem_lab::render::{Cell, Form, Table, Tone};
use hakmem_lab::{failed, input, usage};
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::{Duration, Instant};

/// What a saved moment says of itself.
const KIND: &str = "hakmem moment";
/// Rows of the table of sizes.
const SIZES: usize = 8;

/// A process as far as it is compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Moment {
    kind: String,
    title: String,
    /// Resident memory, as the kernel says; of a core dump nobody knows.
    resident_bytes: u64,
    /// And what it holds, as the ledger's lines.
    holds: Vec<(String, u64)>,
    /// What the program holds, by size of block; large blocks are the last, of any size.
    sizes: Vec<Size>,
    failures: u64,
    pub profile: Snapshot,
    /// Why it is earlier than was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Size {
    /// 0: of large blocks.
    block_bytes: u64,
    blocks: u64,
    bytes: u64,
}

impl Moment {
    /// As it is now.
    pub fn now(opened: &Opened) -> Result<Moment> {
        let named = snapshot(opened)?;
        Moment::of(opened, &opened.heap()?, named)
    }

    pub fn of(opened: &Opened, heap: &Heap, profile: Snapshot) -> Result<Moment> {
        let mut moment = Moment {
            kind: KIND.into(),
            title: opened.title(),
            resident_bytes: 0,
            holds: Vec::new(),
            sizes: sizes(heap),
            failures: heap.failures.count,
            profile,
            part: None,
        };
        if let Opened::Live(process) = opened {
            let account = Account::of(process, heap).map_err(|error| {
                told(
                    &error,
                    &format!("process {}", process.pid),
                    Some(process.pid),
                )
            })?;
            moment.resident_bytes = account.kernel_bytes;
            moment.holds = rows(&account.resident)
                .map(|(name, count, _)| (name.to_string(), count))
                .collect();
        }
        Ok(moment)
    }

    /// Now and after a while. A process that ends meanwhile, or becomes another program, is as it was seen last.
    pub fn twice(opened: &Opened, time: Duration) -> Result<(Moment, Moment)> {
        let before = Moment::now(opened)?;
        let mut pace = Pace::begin(time);
        let (mut last, mut at) = (before.clone(), Instant::now());
        let error = loop {
            std::thread::sleep(pace.rest());
            let since = Instant::now();
            match Moment::now(opened) {
                Ok(now) if pace.is_over() => return Ok((before, now)),
                Ok(now) => (last, at) = (now, Instant::now()),
                Err(error) if pace.is_over() || opened.lost().is_some() => break error,
                Err(_) => {} // it changed too fast
            }
            pace.looked(since);
        };
        let why = opened.lost().ok_or(error)?;
        let part = Some(part(&why, at.elapsed()));
        Ok((before, Moment { part, ..last }))
    }

    pub fn load(path: &Path) -> Result<Moment> {
        let text = input::read_to_string(path)
            .map_err(|error| usage!("cannot read {}: {error}", path.shown()))?;
        refuse_cut(path, text.as_bytes())?;
        let moment: Option<Moment> = serde_json::from_str(&text).ok();
        moment
            .filter(|moment| moment.kind == KIND)
            .ok_or_else(|| usage!("{} was not written by 'hakmem why --save'", path.shown()))
    }

    /// As `load` reads it.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| failed!("{error}"))
    }

    /// What has changed since.
    pub fn text(&self, before: &Moment, form: Form) -> String {
        let mut lines = vec![form.strong(&self.title)];
        if self.title != before.title {
            lines.push(format!("compared with another process, {}", before.title));
        }
        lines.extend(self.part.clone());
        lines.push(String::new());
        if self.holds.is_empty() || before.holds.is_empty() {
            lines.push("what the kernel counts as resident is not in a core dump".into());
        } else {
            lines.push(format!(
                "resident memory: {} before, {} now, {}",
                bytes(before.resident_bytes),
                bytes(self.resident_bytes),
                signed_bytes(difference(before.resident_bytes, self.resident_bytes))
            ));
            lines.push(String::new());
            lines.push(self.holds_table(before, form));
        }
        lines.push(String::new());
        lines.push(self.sizes_table(before, form));
        lines.push(String::new());
        if before.profile.samples_taken == 0 && self.profile.samples_taken == 0 {
            lines.push(
                "who allocated it is not known: sampling has to be on (HAKMEM_SAMPLE_BYTES=524288, or \
                 'hakmem profile')"
                    .into(),
            );
        } else {
            lines.push("by who allocated it, estimated from samples\n".into());
            let sites = changes(&before.profile, &self.profile, View::Live, form);
            lines.push(sites.trim_end().into());
        }
        let refused = self.failures.saturating_sub(before.failures);
        if refused > 0 {
            lines.push(format!(
                "\n{refused} allocations were refused meanwhile: 'hakmem failures' says why"
            ));
        }
        lines.join("\n") + "\n"
    }

    fn holds_table(&self, before: &Moment, form: Form) -> String {
        let mut table = Table::default();
        table.text_column("it is more or less by", 0);
        table.number_column("bytes", 0);
        let was = |name: &str| before.holds.iter().find(|(other, _)| other == name);
        let mut rows: Vec<(f64, &str)> = self
            .holds
            .iter()
            .map(|(name, now)| {
                let was = was(name).map_or(0, |(_, count)| *count);
                (difference(was, *now), name.as_str())
            })
            .filter(|(change, _)| *change != 0.0)
            .collect();
        rows.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
        let known: f64 = rows.iter().map(|(change, _)| change).sum();
        let rest = difference(before.resident_bytes, self.resident_bytes) - known;
        if rows.is_empty() && rest == 0.0 {
            return "it holds what it held before".into();
        }
        for (change, name) in rows {
            table.row(vec![Cell::new(name), Cell::new(signed_bytes(change))]);
        }
        if rest != 0.0 {
            table.row(vec![
                Cell::toned("remainder", Tone::Faint),
                Cell::toned(signed_bytes(rest), Tone::Faint),
            ]);
        }
        table.render(form)
    }

    fn sizes_table(&self, before: &Moment, form: Form) -> String {
        let mut changes: Vec<(f64, i64, u64)> = self
            .sizes
            .iter()
            .map(|now| {
                let same = |was: &&Size| was.block_bytes == now.block_bytes;
                let was = before.sizes.iter().find(same).copied().unwrap_or_default();
                let blocks = i64::try_from(now.blocks).unwrap_or(i64::MAX)
                    - i64::try_from(was.blocks).unwrap_or(i64::MAX);
                (difference(was.bytes, now.bytes), blocks, now.block_bytes)
            })
            .filter(|(change, blocks, _)| *change != 0.0 || *blocks != 0)
            .collect();
        if changes.is_empty() {
            return "the program holds as many blocks of each size as before".into();
        }
        changes.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
        let mut table = Table::default();
        table.text_column("the program's blocks of", 0);
        table.number_column("blocks", 0);
        table.number_column("bytes", 0);
        for (change, blocks, block_bytes) in changes.iter().take(SIZES) {
            let name = if *block_bytes == 0 {
                "above 32 KiB".into()
            } else {
                bytes(*block_bytes)
            };
            table.row(vec![
                Cell::new(name),
                Cell::new(format!("{blocks:+}")),
                Cell::new(signed_bytes(*change)),
            ]);
        }
        let more = changes.len().saturating_sub(SIZES);
        let more = if more > 0 {
            format!("\nand {more} sizes more")
        } else {
            String::new()
        };
        table.render(form) + &more
    }
}

fn difference(was: u64, now: u64) -> f64 {
    now as f64 - was as f64
}

fn sizes(heap: &Heap) -> Vec<Size> {
    let figures = Figures::of(heap);
    let small = figures.classes.iter().map(|class| Size {
        block_bytes: class.bytes,
        blocks: class.live_blocks,
        bytes: class.live_bytes(),
    });
    let large = Size {
        block_bytes: 0,
        blocks: figures.totals.large_live_blocks,
        bytes: figures.totals.large_live_bytes,
    };
    small.chain([large]).collect()
}
