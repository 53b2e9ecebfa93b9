//! A profile, or its changes, as a flame graph: one HTML file that works offline.

use super::{Site, Snapshot, View};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("flame.html");

/// A function, with the allocations of its callees by name.
#[derive(Default)]
struct Node {
    now: Amount,
    /// The amount in the earlier profile.
    before: Amount,
    below: BTreeMap<String, Node>,
}

#[derive(Clone, Copy, Default)]
struct Amount {
    bytes: f64,
    blocks: f64,
}

/// A part of memory; `path` names it, the outermost part first.
pub struct Held {
    pub path: Vec<String>,
    pub bytes: f64,
    pub blocks: f64,
}

/// Selects one of a node's amounts.
type Which = fn(&mut Node) -> &mut Amount;

impl Node {
    fn add(&mut self, site: &Site, view: View, which: Which) {
        let sums = view.of(site);
        let more = Amount {
            bytes: sums.bytes,
            blocks: sums.blocks,
        };
        self.add_path(site.frames.iter().rev(), more, which);
    }

    fn add_path<'a>(&mut self, path: impl Iterator<Item = &'a String>, more: Amount, which: Which) {
        let note = |node: &mut Node| {
            let amount = which(node);
            amount.bytes += more.bytes;
            amount.blocks += more.blocks;
        };
        let mut node = self;
        note(node);
        for part in path {
            node = node.below.entry(part.clone()).or_default();
            note(node);
        }
    }

    fn value(&self, name: &str, is_compared: bool) -> Value {
        let below = self.below.iter();
        let below = below.filter(|(_, node)| node.now.bytes > 0.0 || node.before.bytes > 0.0);
        let mut value = json!({
            "name": name,
            "bytes": self.now.bytes.round(),
            "blocks": self.now.blocks.round(),
            "below": below.map(|(name, node)| node.value(name, is_compared)).collect::<Vec<_>>(),
        });
        if is_compared {
            value["before"] = json!(self.before.bytes.round());
        }
        value
    }
}

/// The distance between samples; 0 if every block is known, and nothing is estimated.
fn distance(every: u64) -> u64 {
    if every > 1 { every } else { 0 }
}

pub fn draw(snapshot: &Snapshot, view: View) -> String {
    let mut root = Node::default();
    for site in &snapshot.sites {
        root.add(site, view, |node| &mut node.now);
    }
    page(&json!({
        "title": snapshot.title,
        "view": view.name(),
        "every": distance(snapshot.every),
        "root": root.value("all", false),
    }))
}

/// A flame graph of changes in two colours: for growth and for shrinkage. Stacks that are gone are included.
pub fn draw_changes(before: &Snapshot, after: &Snapshot, view: View) -> String {
    let mut root = Node::default();
    for site in &before.sites {
        root.add(site, view, |node| &mut node.before);
    }
    for site in &after.sites {
        root.add(site, view, |node| &mut node.now);
    }
    page(&json!({
        "title": both(&before.title, &after.title),
        "view": view.name(),
        "every": distance(before.every.max(after.every)),
        "root": root.value("all", true),
    }))
}

/// The same for two moments without call sites: by kind of memory, each moment with its title.
pub fn draw_held(before: (&str, &[Held]), after: (&str, &[Held])) -> String {
    let mut root = Node::default();
    let moments: [(&[Held], Which); 2] = [
        (before.1, |node| &mut node.before),
        (after.1, |node| &mut node.now),
    ];
    for (held, which) in moments {
        for part in held {
            let more = Amount {
                bytes: part.bytes,
                blocks: part.blocks,
            };
            root.add_path(part.path.iter(), more, which);
        }
    }
    page(&json!({
        "title": both(before.0, after.0),
        "view": "resident",
        "every": 0,
        "isHeld": true,
        "root": root.value("all", true),
    }))
}

fn both(before: &str, after: &str) -> String {
    match before == after {
        true => format!("{after}, before and after"),
        false => format!("{before} → {after}"),
    }
}

/// A program may have any name, but it must not end the script.
fn page(data: &Value) -> String {
    let text = data.to_string().replace('<', "\\u003c");
    PAGE.replacen("/*DATA*/", &text, 1)
}
