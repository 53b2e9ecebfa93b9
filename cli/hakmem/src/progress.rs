//! Shows the progress of a measurement on standard error.

use crate::output::is_screen;
use console::Term;
use hakmem_lab::campaign::{Observer, Position};
use hakmem_lab::document::{Document, Refused};
use hakmem_lab::error::Result;
use hakmem_lab::render::text::is_ascii;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::path::PathBuf;

/// Shows only messages if standard error is no screen.
pub fn target() -> ProgressDrawTarget {
    if is_screen(&Term::stderr()) {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}

pub struct Progress {
    bar: ProgressBar,
    /// Where the document is saved after each round.
    file: Option<PathBuf>,
    has_one_variant: bool,
}

impl Progress {
    pub fn new(file: Option<PathBuf>, variants: usize) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(1), target());
        let template = "{bar:24.green/dim} {pos}/{len} runs  {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.progress_chars(if is_ascii() { "##-" } else { "━━╌" }));
        }
        Progress {
            bar,
            file,
            has_one_variant: variants == 1,
        }
    }

    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }
}

impl Observer for Progress {
    fn run_begins(&mut self, position: &Position) {
        self.bar.set_length(position.runs_in_all as u64);
        self.bar.set_position(position.runs_done as u64);
        let left = position
            .left_s
            .map_or(String::new(), |left| format!("  {} left", clock(left)));
        let what = if position.round == 0 {
            "warm-up".into()
        } else {
            format!("run {}", position.round)
        };
        let variant = if self.has_one_variant {
            String::new()
        } else {
            format!("{} ", position.variant)
        };
        self.bar
            .set_message(format!("{variant}{} {what}{left}", position.allocator));
        self.bar.tick();
    }

    fn refused(&mut self, refused: &Refused) {
        let variant = if self.has_one_variant {
            String::new()
        } else {
            format!("{} under ", refused.variant)
        };
        self.say(&format!(
            "refused: {variant}{}: {}",
            refused.allocator, refused.reason
        ));
    }

    fn noted(&mut self, note: &str) {
        self.say(&format!("note: {note}"));
    }

    fn round_ended(&mut self, document: &Document) -> Result<()> {
        self.file
            .as_ref()
            .map_or(Ok(()), |file| document.store(file))
    }
}

/// "3:05"
fn clock(seconds: f64) -> String {
    let seconds = seconds.round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
