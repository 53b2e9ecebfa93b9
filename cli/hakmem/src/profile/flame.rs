//! A profile, or how it has changed, as a flame graph: one HTML file that needs no network.

use super::{Site, Snapshot, View};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("flame.html");

/// A function, with what its callees have allocated; by name.
#[derive(Default)]
struct Node {
    now: Amount,
    /// Of what it is compared with.
    before: Amount,
    below: BTreeMap<String, Node>,
}

#[derive(Clone, Copy, Default)]
struct Amount {
    bytes: f64,
    blocks: f64,
}

impl Node {
    /// `which`: the one of a node's amounts that a site's is added to.
    fn add(&mut self, site: &Site, view: View, which: fn(&mut Node) -> &mut Amount) {
        let sums = view.of(site);
        let note = |node: &mut Node| {
            let amount = which(node);
            amount.bytes += sums.bytes;
            amount.blocks += sums.blocks;
        };
        let mut node = self;
        note(node);
        for frame in site.frames.iter().rev() {
            node = node.below.entry(frame.clone()).or_default();
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

pub fn draw(snapshot: &Snapshot, view: View) -> String {
    let mut root = Node::default();
    for site in &snapshot.sites {
        root.add(site, view, |node| &mut node.now);
    }
    page(&json!({
        "title": snapshot.title,
        "view": view.name(),
        "every": snapshot.every,
        "root": root.value("all", false),
    }))
}

/// Of the later one, in two colours: what has grown, and what has shrunk. What is gone is there as well.
pub fn draw_changes(before: &Snapshot, after: &Snapshot, view: View) -> String {
    let mut root = Node::default();
    for site in &before.sites {
        root.add(site, view, |node| &mut node.before);
    }
    for site in &after.sites {
        root.add(site, view, |node| &mut node.now);
    }
    let title = if before.title == after.title {
        format!("{}, before and after", after.title)
    } else {
        format!("{} → {}", before.title, after.title)
    };
    page(&json!({
        "title": title,
        "view": view.name(),
        "every": before.every.max(after.every),
        "root": root.value("all", true),
    }))
}

/// A program may have any name: it must not end the script.
fn page(data: &Value) -> String {
    let text = data.to_string().replace('<', "\\u003c");
    PAGE.replacen("/*DATA*/", &text, 1)
}
