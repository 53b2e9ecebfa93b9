//! Why memory grew: compares a process at two moments, by the contents of its pages, by size and by call site.

use crate::doctor::{Patient, Visit, words};
use crate::holds::rows;
use crate::profile::changes::changes;
use crate::profile::flame::{self, Held};
use crate::profile::look::{Pace, part, snapshot};
use crate::profile::{Snapshot, View};
use crate::signals::EndsHeld;
use crate::target::{Opened, open_file};
use hakmem_heap::figures::Figures;
use hakmem_heap::heap::Heap;
use hakmem_heap::ledger::signed;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::document::refuse_cut;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::{bytes, counted, signed_bytes};
use hakmem_lab::render::{Cell, Form, Table, Tone};
use hakmem_lab::{failed, input, usage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Identifies a saved moment.
const KIND: &str = "hakmem moment";
/// How many rows the table of sizes has.
const SIZES: usize = 8;

/// The part of a process's state that is compared.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Moment {
    kind: String,
    title: String,
    /// For a snapshot: when it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    taken: Option<String>,
    /// The kernel's figure; unknown for a core dump.
    resident_bytes: u64,
    /// The contents of resident memory, as the ledger's lines.
    holds: Vec<(String, u64)>,
    /// The program's blocks by size; large blocks of all sizes come last.
    sizes: Vec<Size>,
    failures: u64,
    /// The heap is not hakmem's: sizes are ranges, and call sites are unknown.
    #[serde(default)]
    is_others: bool,
    pub profile: Snapshot,
    /// Why it is earlier than requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Size {
    /// 0: large blocks.
    block_bytes: u64,
    blocks: u64,
    bytes: u64,
}

impl Moment {
    /// The process as it is now.
    pub fn now(opened: &Opened) -> Result<Moment> {
        let named = snapshot(opened)?;
        Moment::of(opened, &opened.heap()?, named)
    }

    /// The moment of a snapshot, of any allocator's heap.
    pub fn of_snapshot(path: &Path) -> Result<Moment> {
        let opened = open_file(path)?;
        let told = match &opened {
            Opened::Snapshot(snapshot) => Some(snapshot.told_at()),
            _ => None,
        };
        let told = told.map(|(title, taken)| (title.to_string(), taken.to_string()));
        let moment = match opened.uses_hakmem() {
            true => Moment::now(&opened)?,
            false => Moment::of_visit(&Visit::pay(&Patient::of(opened), None)?),
        };
        Ok(match told {
            Some((title, taken)) => Moment {
                title,
                taken: Some(taken),
                ..moment
            },
            None => moment,
        })
    }

    fn of_visit(visit: &Visit) -> Moment {
        let lines = words::explained(visit).into_iter();
        let lines = lines.filter(|(_, tone)| *tone != Tone::Strong); // no sums
        let glibc = visit.now.glibc.iter().map(|heap| &heap.live_sizes);
        let others = visit.now.others.iter().map(|heap| &heap.live_sizes);
        let sizes = glibc.chain(others).flatten().map(|size| Size {
            block_bytes: size.up_to_bytes,
            blocks: size.blocks,
            bytes: size.bytes,
        });
        Moment {
            kind: KIND.into(),
            title: visit.title.clone(),
            taken: None,
            resident_bytes: visit.now.ledger.kernel_bytes,
            holds: lines.map(|((name, count, _), _)| (name, count)).collect(),
            sizes: sizes.collect(),
            failures: 0,
            is_others: true,
            profile: Snapshot::default(),
            part: None,
        }
    }

    pub fn of(opened: &Opened, heap: &Heap, profile: Snapshot) -> Result<Moment> {
        let mut moment = Moment {
            kind: KIND.into(),
            title: opened.title(),
            taken: None,
            resident_bytes: 0,
            holds: Vec::new(),
            sizes: sizes(heap),
            failures: heap.failures.count,
            is_others: false,
            profile,
            part: None,
        };
        if let Some(account) = opened.account(heap)? {
            moment.resident_bytes = account.kernel_bytes;
            moment.holds = rows(&account.resident)
                .map(|(name, count, _)| (name.to_string(), count))
                .collect();
        }
        Ok(moment)
    }

    /// Now, and again after some time or at Ctrl-C. If the process ends or executes another program meanwhile, the second
    /// moment is the last that was seen.
    pub fn twice(opened: &Opened, time: Duration) -> Result<(Moment, Moment)> {
        let before = Moment::now(opened)?;
        let ends = EndsHeld::begin();
        let mut pace = Pace::begin(time);
        let (mut last, mut at) = (before.clone(), Instant::now());
        let error = loop {
            let is_stopped = ends.wait(pace.rest());
            let is_last = is_stopped || pace.is_over();
            let since = Instant::now();
            match Moment::now(opened) {
                Ok(now) if is_last => {
                    let stopped = || format!("stopped after {:.1} s", pace.elapsed().as_secs_f64());
                    let part = is_stopped.then(stopped);
                    return Ok((before, Moment { part, ..now }));
                }
                Ok(now) => (last, at) = (now, Instant::now()),
                Err(error) if is_last || opened.lost().is_some() => break error,
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

    /// In the format that `load` reads.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string(self).map_err(|error| failed!("{error}"))
    }

    /// The changes since `before`.
    pub fn text(&self, before: &Moment, form: Form) -> String {
        let mut lines = vec![form.strong(&self.title)];
        if self.title != before.title {
            lines.push(format!("compared with another process, {}", before.title));
        }
        if let (Some(before), Some(taken)) = (&before.taken, &self.taken) {
            lines.push(format!("from {before} to {taken}"));
        }
        lines.extend(self.part.clone());
        lines.push(String::new());
        if self.holds.is_empty() || before.holds.is_empty() {
            lines.push(
                "resident memory cannot be compared: core dumps do not have it, and snapshots of \
                 another build of hakmem have another format"
                    .into(),
            );
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
        if self.is_others || before.is_others {
            lines.push("call stacks are not known: both heaps have to be hakmem's".into());
        } else if before.profile.samples_taken == 0 && self.profile.samples_taken == 0 {
            lines.push(
                "call stacks are not known: sampling has to be on (HAKMEM_SAMPLE_BYTES=524288, or \
                 'hakmem profile')"
                    .into(),
            );
        } else {
            lines.push("by call stack, estimated from samples\n".into());
            let sites = changes(&before.profile, &self.profile, View::Live, form);
            lines.push(sites.trim_end().into());
        }
        let refused = self.failures.saturating_sub(before.failures);
        if refused > 0 {
            lines.push(format!(
                "\n{} refused meanwhile: 'hakmem failures' says why",
                counted(refused, "allocation")
            ));
        }
        lines.join("\n") + "\n"
    }

    fn holds_table(&self, before: &Moment, form: Form) -> String {
        let mut table = Table::default();
        table.text_column("change of", 0);
        table.number_column("bytes", 0);
        let of = |holds: &[(String, u64)], name: &str| {
            let found = holds.iter().find(|(other, _)| other == name);
            found.map_or(0, |(_, count)| *count)
        };
        let names = self.holds.iter().map(|(name, _)| name.as_str());
        let gone = before.holds.iter().map(|(name, _)| name.as_str());
        let gone = gone.filter(|name| self.holds.iter().all(|(other, _)| other != name));
        let mut rows: Vec<(f64, &str)> = names
            .chain(gone)
            .map(|name| {
                (
                    difference(of(&before.holds, name), of(&self.holds, name)),
                    name,
                )
            })
            .filter(|(change, _)| *change != 0.0)
            .collect();
        rows.sort_by(|a, b| b.0.abs().total_cmp(&a.0.abs()));
        let known: f64 = rows.iter().map(|(change, _)| change).sum();
        let rest = difference(before.resident_bytes, self.resident_bytes) - known;
        if rows.is_empty() && rest == 0.0 {
            return "nothing has changed".into();
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
        if self.is_others != before.is_others {
            return "sizes of blocks are not compared: the heaps are of different allocators"
                .into();
        }
        let of = |sizes: &[Size], bytes: u64| {
            let found = sizes.iter().find(|size| size.block_bytes == bytes);
            found.copied().unwrap_or_default()
        };
        let sizes = before.sizes.iter().chain(&self.sizes);
        let sizes: BTreeSet<u64> = sizes.map(|size| size.block_bytes).collect();
        let mut changes: Vec<(f64, i64, u64)> = sizes
            .into_iter()
            .map(|bytes| {
                let (was, now) = (of(&before.sizes, bytes), of(&self.sizes, bytes));
                let blocks = signed(now.blocks) - signed(was.blocks);
                (difference(was.bytes, now.bytes), blocks, bytes)
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
            table.row(vec![
                Cell::new(self.size_name(*block_bytes)),
                Cell::new(format!("{blocks:+}")),
                Cell::new(signed_bytes(*change)),
            ]);
        }
        let more = changes.len().saturating_sub(SIZES);
        let more = if more > 0 {
            format!("\nand {more} more sizes")
        } else {
            String::new()
        };
        table.render(form) + &more
    }
}

/// The ledger's lines that contain blocks in use.
const OF_BLOCKS: [&str; 3] = ["blocks in use", "large blocks in use", "live blocks"];

impl Moment {
    /// The changes in two colours: by call stack or, if call sites are unknown, by kind of memory.
    pub fn flame_graph(&self, before: &Moment, view: View) -> String {
        if before.profile.sites.is_empty() && self.profile.sites.is_empty() {
            let (held, was) = (self.held(), before.held());
            return flame::draw_held((&before.title, &was), (&self.title, &held));
        }
        flame::draw_changes(&before.profile, &self.profile, view)
    }

    /// Also by size: each size gets the same share of the resident bytes as it has of all bytes.
    fn held(&self) -> Vec<Held> {
        let is_of_blocks = |name: &str| OF_BLOCKS.contains(&name);
        let (blocks, rest): (Vec<_>, Vec<_>) =
            self.holds.iter().partition(|(name, _)| is_of_blocks(name));
        let all: u64 = self.sizes.iter().map(|size| size.bytes).sum();
        let resident = match self.holds.is_empty() {
            true => all, // unknown for a core dump
            false => blocks.iter().map(|(_, count)| count).sum(),
        };
        let share = resident as f64 / all.max(1) as f64;
        let sizes = self.sizes.iter().map(|size| Held {
            path: vec!["blocks in use".into(), self.size_name(size.block_bytes)],
            bytes: size.bytes as f64 * share,
            blocks: size.blocks as f64,
        });
        let rest = rest.into_iter().map(|(name, count)| Held {
            path: vec![name.clone()],
            bytes: *count as f64,
            blocks: 0.0,
        });
        rest.chain(sizes).collect()
    }

    fn size_name(&self, block_bytes: u64) -> String {
        match (block_bytes, self.is_others) {
            (0, _) => "above 32 KiB".into(),
            (1025.., true) => format!("up to {}", bytes(block_bytes)),
            _ => bytes(block_bytes),
        }
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
