//! `hakmem map`: the heap of a process or of a core dump, as a picture.

use crate::doctor::seen::{self, Seen};
use crate::doctor::{self, Visit, page};
use crate::output::{self, show, terminal};
use crate::picture::{self, By, View};
use crate::profile::look::now_ns;
use crate::target::{Opened, Target};
use clap::Args;
use console::Term;
use hakmem_heap::figures::Figures;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::bytes;
use hakmem_lab::whole_file::Planned;
use hakmem_lab::{failed, usage};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem map 4711                        in the terminal
  hakmem map 4711 --by age               coloured by when each slab was made
  hakmem map 4711 --html heap.html       interactive: shows the blocks of each slab, has filters
  hakmem map --core core.4711 --svg heap.svg   a core dump or a snapshot

For other allocators, a square is a range of addresses. It is filled as far as it is resident, in
colours for blocks in use, thread caches, the allocator's own data, and free memory.";

/// How many other lines are on the screen.
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
    /// Colour slabs by size class, by owner, or by age
    #[arg(long, value_enum, value_name = "WHAT", default_value = "class")]
    by: By,
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
    let files = [&arguments.svg, &arguments.png, &arguments.html];
    output::keep_apart(&files.map(Option::as_ref), &[])?;
    let opened = arguments.target.open()?;
    let [to_svg, to_png, to_html] = [
        output::planned(arguments.svg.as_ref())?,
        output::planned(arguments.png.as_ref())?,
        output::planned(arguments.html.as_ref())?,
    ];
    let (opened, heap) = match Seen::of(opened, true)? {
        Seen::Ours { opened, heap } => (opened, heap),
        Seen::Others(_) if arguments.by != By::Class => {
            return Err(usage!(
                "--by is for hakmem's heaps: the map of another allocator shows how much is in use"
            ));
        }
        Seen::Others(visit) => {
            others(&visit, [to_svg, to_png, to_html], arguments.all)?;
            return Ok(ExitCode::SUCCESS);
        }
    };
    let is_for_screen = to_svg.is_none() && to_png.is_none() && to_html.is_none();
    let totals = Figures::of(&heap).totals;
    let summary = format!(
        "hakmem {}: {} live in {} blocks, of {} mapped",
        heap.release,
        bytes(totals.live_bytes),
        totals.live_blocks,
        bytes(totals.mapped_bytes)
    );
    let title = opened.title();
    let view = View {
        heap: &heap,
        by: arguments.by,
        now: now(&opened).max(heap.arena.clock),
        is_core: matches!(opened, Opened::Core(_)),
        owners: picture::owner_names(&heap, &|thread| opened.thread_name(thread)),
    };
    if let Some(file) = to_svg {
        file.write(picture::svg::draw(&view, &title, &summary))?;
    }
    if let Some(file) = to_png {
        let image = picture::png::draw(&view, &title, &summary)
            .map_err(|error| failed!("{}: {error}", file.path().shown()))?;
        file.write(image)?;
    }
    if let Some(file) = to_html {
        file.write(picture::html::draw(&view, &title, &summary)?)?;
    }
    if is_for_screen {
        let form = terminal();
        let picture = picture::terminal::draw(&view, form, lines(arguments.all));
        show(&format!("{}\n{summary}\n\n{picture}", form.strong(&title)));
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws another allocator's heap into each of these files, or else on the terminal.
fn others(visit: &Visit, files: [Option<Planned>; 3], all: bool) -> Result<()> {
    let [to_svg, to_png, to_html] = files;
    let is_for_screen = to_svg.is_none() && to_png.is_none() && to_html.is_none();
    let (map, title, summary) = (&visit.now.map, &visit.title, seen::summary(visit));
    if let Some(file) = to_svg {
        file.write(doctor::svg::draw(map, title, &summary))?;
    }
    if let Some(file) = to_png {
        let image = doctor::png::draw(map, title, &summary)
            .map_err(|error| failed!("{}: {error}", file.path().shown()))?;
        file.write(image)?;
    }
    if let Some(file) = to_html {
        file.write(page::draw(visit))?;
    }
    if is_for_screen {
        show(&seen::map(visit, terminal(), lines(all)));
    }
    Ok(())
}

/// As many lines as fit on the screen.
fn lines(all: bool) -> usize {
    let screen = Term::stdout();
    if !screen.is_term() || all {
        return usize::MAX;
    }
    let rows = usize::from(screen.size().0);
    rows.saturating_sub(OTHER_LINES).max(5)
}

/// The current time of the clock by which slabs are dated, in tenths of a second; in a core dump, the latest that the process
/// has read.
fn now(opened: &Opened) -> u64 {
    now_ns(opened).map_or(0, |now| now / 100_000_000)
}
