//! Compares two profiles by call stack.

use super::{ROWS, Site, Snapshot, View};
use crate::frames::Folded;
use hakmem_lab::render::number::{bytes, counted, signed_bytes};
use hakmem_lab::render::{Cell, Form, Table};
use std::collections::{HashMap, HashSet};

/// A call stack with fewer or more bytes than before.
struct Change<'a> {
    bytes: f64,
    blocks: f64,
    /// Two standard deviations of the bytes.
    noise: f64,
    frames: &'a [String],
}

/// The largest changes first.
fn found<'a>(before: &'a Snapshot, after: &'a Snapshot, view: View) -> Vec<Change<'a>> {
    let by_frames = |snapshot: &'a Snapshot| -> HashMap<&'a [String], &'a Site> {
        let sites = snapshot.sites.iter();
        sites.map(|site| (site.frames.as_slice(), site)).collect()
    };
    let (old, new) = (by_frames(before), by_frames(after));
    let all: HashSet<&[String]> = old.keys().chain(new.keys()).copied().collect();
    let nothing = Site::default();
    let mut changes: Vec<Change> = all
        .into_iter()
        .map(|frames| {
            let old = old.get(frames).copied().unwrap_or(&nothing);
            let new = new.get(frames).copied().unwrap_or(&nothing);
            let (was, is) = (view.of(old), view.of(new));
            Change {
                bytes: is.bytes - was.bytes,
                blocks: is.blocks - was.blocks,
                noise: off(before, old, view).hypot(off(after, new, view)),
                frames,
            }
        })
        .filter(|change| change.bytes != 0.0)
        .collect();
    // Equal changes are sorted by name, as tables have no order of their own.
    changes.sort_by(|a, b| {
        b.bytes
            .abs()
            .total_cmp(&a.bytes.abs())
            .then(a.frames.cmp(b.frames))
    });
    changes
}

/// How far a site's bytes may be off.
fn off(snapshot: &Snapshot, site: &Site, view: View) -> f64 {
    match view {
        View::Live => site.live_off,
        _ if snapshot.every <= 1 => 0.0,
        _ => view.of(site).bytes_off(),
    }
}

/// A table of what there is more or less than before, and how far that may be off.
pub fn changes(before: &Snapshot, after: &Snapshot, view: View, form: Form) -> String {
    let limits = limits(before, after);
    let rows = found(before, after, view);
    if rows.is_empty() {
        let among = if limits.is_empty() {
            ""
        } else {
            " in what is known"
        };
        return format!("{limits}nothing has changed{among}\n");
    }
    let mut table = Table::default();
    table.number_column(&format!("{} bytes", view.name()), 0);
    table.number_column("noise", 2);
    table.number_column("blocks", 1);
    table.text_column("allocated by", 0);
    let shown = &rows[..rows.len().min(ROWS)];
    let stacks: Vec<&[String]> = shown.iter().map(|change| change.frames).collect();
    for (change, place) in shown.iter().zip(Folded::default().places(&stacks)) {
        let noise = match () {
            () if change.noise > 0.0 => format!("± {}", bytes(change.noise as u64)),
            () if limits.is_empty() => "exact".into(),
            () => "not whole".into(),
        };
        table.row(vec![
            Cell::new(signed_bytes(change.bytes)),
            Cell::new(noise),
            Cell::new(format!("{:+.0}", change.blocks)),
            Cell::fitting(place),
        ]);
    }
    let more = match rows.len().saturating_sub(ROWS) {
        0 => String::new(),
        more => format!("and {}\n", counted(more as u64, "more place")),
    };
    let total: f64 = rows.iter().map(|change| change.bytes).sum();
    let total = signed_bytes(total);
    format!("{limits}{}\n{more}\n{total} in all\n", table.render(form))
}

/// What one of the two profiles does not know.
fn limits(before: &Snapshot, after: &Snapshot) -> String {
    let mut text = String::new();
    for (which, snapshot) in [("before", before), ("after", after)] {
        for line in snapshot.part.iter().chain(&snapshot.limits()) {
            text += &format!("{which}: {line}\n");
        }
    }
    if text.is_empty() { text } else { text + "\n" }
}
