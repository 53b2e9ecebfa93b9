//! The profile as a flame graph: one HTML file that needs no network.

use super::{Snapshot, View};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("flame.html");

/// A function, with what its callees have allocated; by name.
#[derive(Default)]
struct Node {
    bytes: f64,
    blocks: f64,
    below: BTreeMap<String, Node>,
}

pub fn draw(snapshot: &Snapshot, view: View) -> String {
    let mut root = Node::default();
    for site in &snapshot.sites {
        let sums = view.of(site);
        let mut node = &mut root;
        node.bytes += sums.bytes;
        node.blocks += sums.blocks;
        for frame in site.frames.iter().rev() {
            node = node.below.entry(frame.clone()).or_default();
            node.bytes += sums.bytes;
            node.blocks += sums.blocks;
        }
    }
    let data = json!({
        "title": snapshot.title,
        "view": view.name(),
        "every": snapshot.every,
        "root": value("all", &root),
    });
    // A program may have any name: it must not end the script.
    let text = data.to_string().replace('<', "\\u003c");
    PAGE.replacen("/*DATA*/", &text, 1)
}

fn value(name: &str, node: &Node) -> Value {
    let below = node.below.iter();
    json!({
        "name": name,
        "bytes": node.bytes.round(),
        "blocks": node.blocks.round(),
        "below": below.filter(|(_, node)| node.bytes > 0.0)
            .map(|(name, node)| value(name, node)).collect::<Vec<_>>(),
    })
}
