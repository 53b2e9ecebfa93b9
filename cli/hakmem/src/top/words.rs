//! What the screen says of a look, whosever heap it is.

use super::table::Cell;
use super::{Seen, Watched, others, ours};
use ratatui::style::Color;

pub struct Words {
    /// "hakmem 1.0.0"
    pub allocator: String,
    /// By how much figures may be off, if they are.
    pub off: Option<String>,
    pub figures: Vec<String>,
    /// What memory is: name, bytes, colour.
    pub parts: [(&'static str, u64, Color); 5],
    pub live: String,
    /// What the third history is, and how much of it there is now.
    pub third: (&'static str, String),
    pub rates: Vec<String>,
    /// What the words of the legend mean.
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
