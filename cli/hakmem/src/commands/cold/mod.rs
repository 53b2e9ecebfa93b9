//! `hakmem cold`: which live blocks are untouched, all zero, or resident only because of a neighbour; by call site and size.

mod rows;
mod text;

use crate::frames::{By, Folded};
use crate::output::{print_json, show, terminal};
use crate::profile::{limits, notes};
use crate::target::{Opened, ended, open_process, process_number, told};
use clap::Args;
use hakmem_foreign::glibc::cold::Looked;
use hakmem_foreign::heaps::Heaps;
use hakmem_foreign::space::Space;
use hakmem_heap::cold::{Before, Blocks, Bytes, Cold, How};
use hakmem_heap::error::Error as HeapError;
use hakmem_heap::live::LiveProcess;
use hakmem_heap::memory::Memory;
use hakmem_heap::profile::Profile;
use hakmem_lab::error::{Error, Result};
use hakmem_lab::{failed, usage};
use rows::{Site, Size};
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  hakmem cold 4711                               what was not touched for 10 seconds
  hakmem cold 4711 --seconds 600 --price 3.50    for ten minutes, with what it costs a month
  hakmem cold 4711 --by function --fold 'pool_*'
  hakmem cold 4711 --referenced                  how much was read or written, as the kernel says
  HAKMEM_SAMPLE_BYTES=524288 hakmem run -- program     from the start; then cold shows call sites

The table by size has all live blocks, the one by call site those that were sampled, as in
'hakmem profile'. Pages with live blocks are read twice and compared, which finds each block that
was not written to. Reads are known only to root, on a kernel with idle page bits; without these, a
block that was only read is cold as well. The process is not stopped. A process that uses glibc's
malloc is shown by size only. docs/profiling.md says more.";

/// Show live blocks that the program does not touch, by call site and size, and what they cost
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The process ID
    #[arg(value_parser = process_number)]
    pid: i32,
    /// A block is cold if it was not touched for this long
    #[arg(long, default_value_t = 10.0, allow_negative_numbers = true)]
    seconds: f64,
    /// The price of a GiB per month, to show what cold memory costs
    #[arg(long, value_name = "PRICE", allow_negative_numbers = true)]
    price: Option<f64>,
    /// What to group by: the table has a row for each group
    #[arg(long, value_enum, default_value = "stack")]
    by: By,
    #[command(flatten)]
    folded: Folded,
    /// Also ask the kernel how much of each mapping was read or written. This clears the accessed bits of the process's
    /// pages (clear_refs), and its page faults may have to wait meanwhile
    #[arg(long)]
    referenced: bool,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Allocator {
    Hakmem,
    Glibc,
}

/// Everything that is shown.
#[derive(Serialize)]
struct Report {
    title: String,
    /// The allocator of the heap.
    allocator: Allocator,
    /// Is a block that was only read known to be in use? If not, it counts as cold.
    reads_are_known: bool,
    price_of_a_gib: Option<f64>,
    total: Figures,
    /// The mean distance of samples in bytes; 0: sampling is off.
    every: u64,
    sites: Vec<Site>,
    sizes: Vec<Size>,
    how: How,
    /// What is missing in the samples, and why some frames have no names: one sentence each.
    limits: Vec<String>,
    notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Figures {
    live_bytes: u64,
    resident_bytes: u64,
    cold_bytes: u64,
    /// Two standard deviations; 0: exact.
    cold_off_bytes: u64,
    beside_bytes: u64,
    zero_bytes: u64,
    /// The price of cold memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<f64>,
}

impl Figures {
    fn of(bytes: &Bytes, price_of_a_gib: Option<f64>) -> Figures {
        Figures {
            live_bytes: bytes.live as u64,
            resident_bytes: bytes.resident as u64,
            cold_bytes: bytes.cold as u64,
            cold_off_bytes: bytes.cold_off() as u64,
            beside_bytes: bytes.beside as u64,
            zero_bytes: bytes.zero as u64,
            price: price_of_a_gib.map(|price| price * bytes.cold / f64::from(1 << 30)),
        }
    }
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    if !(0.0..=1e6).contains(&arguments.seconds) {
        return Err(usage!("--seconds is from 0 to a million"));
    }
    if arguments
        .price
        .is_some_and(|price| !(0.0..=1e12).contains(&price))
    {
        return Err(usage!(
            "--price is what a GiB costs a month, a number from 0 on"
        ));
    }
    if arguments.by == By::Thread {
        return Err(usage!(
            "cold memory cannot be grouped by thread: use another value of --by"
        ));
    }
    let opened = Opened::Live(open_process(arguments.pid)?);
    let report = report(&opened, arguments)?;
    if arguments.json {
        print_json(&report)?;
    } else {
        show(&text::text(&report, &arguments.folded, terminal()));
        show(&notes(&report.limits));
        show(&notes(&report.notes));
    }
    Ok(ExitCode::SUCCESS)
}

fn report(opened: &Opened, arguments: &Arguments) -> Result<Report> {
    let Opened::Live(process) = opened else {
        return Err(failed!("a core dump does not say what was touched"));
    };
    let allocator = match opened.uses_hakmem() {
        true => Allocator::Hakmem,
        false => Allocator::Glibc,
    };
    let (cold, profile) = look(opened, process, allocator, arguments)?;
    let mut total = Bytes::default();
    for size in &cold.sizes {
        total.add(&size.bytes);
    }
    let mut names = opened.names();
    let sites = rows::sites(&cold.stacks, &profile, &mut names, arguments);
    Ok(Report {
        title: opened.title(),
        allocator,
        reads_are_known: cold.how.without_idle_bits.is_none(),
        price_of_a_gib: arguments.price,
        total: Figures::of(&total, arguments.price),
        every: profile.every,
        sites,
        sizes: rows::sizes(&cold.sizes, arguments.price),
        how: cold.how,
        limits: limits(profile.taken, profile.dropped, profile.stackless),
        notes: names.notes().to_vec(),
    })
}

/// Makes two looks, with the time between them.
fn look(
    opened: &Opened,
    process: &LiveProcess,
    allocator: Allocator,
    arguments: &Arguments,
) -> Result<(Cold, Profile)> {
    let lost = |error: HeapError| lost(process, &error);
    let (blocks, profile) = read(opened, process, allocator)?;
    let before = Before::look(process, blocks, &profile, arguments.referenced);
    let before = before.map_err(lost)?;
    let time = Duration::from_secs_f64(arguments.seconds);
    opened.wait(time).map_err(lost)?;
    let after = before.end(process).map_err(lost)?;
    let cold = read(opened, process, allocator).and_then(|(mut blocks, profile)| {
        let cold = after.compare(process, blocks.as_mut(), &profile);
        Ok((cold.map_err(lost)?, profile))
    });
    // What was read of a process that has ended meanwhile is discarded.
    match process.lost() {
        Some(error) => Err(lost(error)),
        None => cold,
    }
}

/// The process's blocks, and their samples. glibc has no samples.
fn read<'a>(
    opened: &Opened,
    process: &'a LiveProcess,
    allocator: Allocator,
) -> Result<(Box<dyn Blocks + 'a>, Profile)> {
    if allocator == Allocator::Hakmem {
        return Ok((Box::new(opened.heap()?), opened.profile()?));
    }
    let space = Space::of_process(process).map_err(|error| lost(process, &error))?;
    let heaps = Heaps::read(&space);
    match heaps.glibc.filter(|_| heaps.others.is_empty()) {
        Some(heap) => Ok((Box::new(Looked::new(space, heap)), Profile::default())),
        None => Err(failed!(
            "{}; cold reads hakmem's heap, and glibc's by size",
            opened.refused(&HeapError::NotHakmem)
        )),
    }
}

/// The error for a process that could be opened, but not read.
fn lost(process: &LiveProcess, error: &HeapError) -> Error {
    match error {
        HeapError::Gone(_) | HeapError::Became(_) => failed!(
            "{}: it ended too early to tell what it does not touch",
            ended(error)
        ),
        _ => told(
            error,
            &format!("process {}", process.pid),
            Some(process.pid),
        ),
    }
}
