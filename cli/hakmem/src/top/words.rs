//! The words on the screen for a look at any heap.

use super::table::Cell;
use super::{Seen, Watched, others, ours};
use ratatui::style::Color;

pub struct Words {
    /// "hakmem 1.0.0"
    pub allocator: String,
    /// How far figures may be off, if they are.
    pub off: Option<String>,
    pub figures: Vec<String>,
    /// The parts of memory: name, bytes, colour.
    pub parts: [(&'static str, u64, Color); 5],
    pub live: String,
    /// The name of the third history, and its current value.
    pub third: (&'static str, String),
    pub rates: Vec<String>,
    /// The meanings of the legend's words.
    pub help: &'static [&'static str],
}

impl Watched {
    pub fn words(&self) -> Words {
        match &self.last.seen {
            Seen::Ours { figures, .. } => ours::words(self, figures),
            Seen::Others(moment) => others::words(self, moment),
        }
    }
}

/// "16 threads"
pub fn threads(count: u64) -> String {
    let threads = if count == 1 { "thread" } else { "threads" };
    format!("{count} {threads}")
}

pub fn text(value: impl Into<String>) -> Cell {
    Cell {
        text: value.into(),
        key: 0.0,
    }
}
