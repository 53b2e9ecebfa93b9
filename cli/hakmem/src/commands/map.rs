//! `hakmem map`: the heap of a process or of a core dump, as a picture.

use super::stats::bytes;
use crate::output::terminal;
use crate::picture;
use crate::target::{Opened, Target};
use clap::Args;
use console::Term;
use hakmem_heap::figures::Figures;
use hakmem_lab::error::Result;
use hakmem_lab::failed;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem map 4711                        in the terminal
  hakmem map 4711 --html heap.html       to point at and to filter; every slab with its blocks
  hakmem map --core core.4711 --svg heap.svg";

/// What else is on the screen.
const OTHER_LINES: usize = 10;

/// Draw a heap: each superslab, slab and block, by what it is used for
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem map [OPTIONS] PID\n       hakmem map [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// Draw all superslabs, not only those that the terminal has room for
    #[arg(long)]
    all: bool,
    /// Write an SVG file instead
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write a PNG file instead
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Write an HTML file instead
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let opened = arguments.target.open()?;
    let heap = opened.heap()?;
    let totals = Figures::of(&heap).totals;
    let summary = format!(
        "hakmem {}: {} live in {} blocks, of {} mapped",
        heap.release,
        bytes(totals.live_bytes),
        totals.live_blocks,
        bytes(totals.mapped_bytes)
    );
    let title = opened.title();
    if let Some(path) = &arguments.svg {
        store(path, picture::svg::draw(&heap, &title, &summary))?;
    }
    if let Some(path) = &arguments.png {
        let image = picture::png::draw(&heap, &title, &summary);
        store(
            path,
            image.map_err(|error| failed!("{}: {error}", path.display()))?,
        )?;
    }
    if let Some(path) = &arguments.html {
        let thread_name = |thread: u64| match &opened {
            Opened::Live(process) => process.thread_name(thread),
            Opened::Core(_) => None,
        };
        let owners = picture::owner_names(&heap, &thread_name);
        store(path, picture::html::draw(&heap, &title, &summary, &owners))?;
    }
    if arguments.svg.is_none() && arguments.png.is_none() && arguments.html.is_none() {
        let form = terminal();
        let screen = Term::stdout();
        let is_limited = screen.is_term() && !arguments.all;
        let rows = usize::from(screen.size().0)
            .saturating_sub(OTHER_LINES)
            .max(5);
        let lines = if is_limited { rows } else { usize::MAX };
        println!("{}\n{summary}\n", form.strong(&title));
        print!("{}", picture::terminal::draw(&heap, form, lines));
    }
    Ok(ExitCode::SUCCESS)
}

fn store(path: &Path, content: impl AsRef<[u8]>) -> Result<()> {
    std::fs::write(path, content).map_err(|error| failed!("{}: {error}", path.display()))
}
