//! `hakmem trace peak`: who held what when the most bytes were live, and which blocks were temporary.

use super::{add_row, percent, print_table, size_range, table};
use crate::frames::{By, Folded, place};
use crate::numbers::rows;
use crate::output::{self, line, print_json};
use crate::profile::at_peak::{AtPeak, Which};
use crate::profile::of_trace::has_no_stacks;
use crate::profile::{View, flame, notes};
use crate::say;
use crate::traces::{Source, choose, open};
use clap::Args;
use hakmem_heap::shown::ShownPath;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::{bytes_and_tenths, counted, grouped};
use hakmem_lab::render::{Cell, Table};
use hakmem_lab::usage;
use hakmem_trace::analysis::{SizeClass, TEMPORARY_WITHIN, analyse_within};
use std::cmp::Reverse;
use std::path::PathBuf;

#[derive(Args)]
pub struct Peak {
    #[command(flatten)]
    source: Source,

    /// What to group by: the tables have a row for each group
    #[arg(long, value_enum, default_value = "stack")]
    by: By,

    #[command(flatten)]
    folded: Folded,

    /// Number of rows
    #[arg(short = 'n', long, value_name = "NUMBER", default_value = "10", value_parser = rows)]
    count: usize,

    /// A block is temporary if its thread frees it after at most this many further allocations
    #[arg(long, value_name = "NUMBER", default_value_t = TEMPORARY_WITHIN)]
    within: u64,

    /// Write a flame graph of what was live at the peak: one HTML file that needs no network
    #[arg(long, value_name = "FILE")]
    flamegraph: Option<PathBuf>,
}

pub fn peak(question: &Peak) -> Result<()> {
    let trace = &question.source.trace;
    if question.by == By::Thread {
        return Err(usage!(
            "--by thread works with samples: 'hakmem profile', 'hakmem leaks'"
        ));
    }
    let graph = question.flamegraph.as_ref();
    output::keep_apart(&[graph], std::slice::from_ref(trace))?;
    let reader = open(trace)?;
    let (processes, which) = choose(&reader, question.source.process)?;
    let [process] = processes[..] else {
        return Err(usage!(
            "{} has {} processes, each with a peak of its own: --process NUMBER says of which, and \
             'hakmem trace info' lists them",
            trace.shown(),
            processes.len()
        ));
    };
    let to_graph = output::planned_page(graph)?;
    let analysis = analyse_within(&reader, process, question.within)?;
    let found = AtPeak::of(&reader, &analysis)?;
    if to_graph.is_some() && !reader.has_stacks() {
        return Err(has_no_stacks(trace));
    }
    say::keep();
    let written = to_graph.map(|file| file.write(flame::draw(&found.held, View::Peak)));
    if question.source.json {
        print_json(&found.json())?;
    } else {
        line(&format!("{which}\n"));
        print(&found, question);
        output::show(&notes(&found.held.notes));
    }
    output::all_written(written)
}

fn print(found: &AtPeak, question: &Peak) {
    let peak = &found.analysis.peak;
    if peak.operations == 0 {
        line("nothing was allocated");
        return;
    }
    line(&format!(
        "the peak was {:.3} s after the first call, after {} of {} calls: {} in {} blocks",
        peak.seconds,
        grouped(peak.operation),
        grouped(peak.operations),
        bytes_and_tenths(peak.live_bytes),
        grouped(peak.live_blocks)
    ));
    let place = match found.by.is_empty() {
        true => String::new(),
        false => format!(": {}", place(&found.by)[0]),
    };
    line(&format!(
        "it was reached by {} for thread {}{place}\n",
        bytes_and_tenths(peak.size),
        peak.thread
    ));
    if found.held.sites.is_empty() {
        print_sizes(&found.analysis.sizes, peak.live_bytes);
        line("\na trace of 'hakmem record --stacks' shows who allocated it");
    } else {
        print_sites(found, Which::Held, question);
    }
    let allocations: u64 = found.analysis.sizes.iter().map(|class| class.count).sum();
    let blocks = found.analysis.temporary_blocks;
    let others = match question.within {
        0 => "asked for another".to_string(),
        within => format!("asked for more than {within} other{}", plural(within)),
    };
    let count = match blocks {
        0 => "no".to_string(),
        _ => grouped(blocks),
    };
    line(&format!(
        "\n{count} temporary block{}, {} of all: their own thread freed them before it {others}",
        plural(blocks),
        percent(blocks, allocations)
    ));
    if found
        .temporary
        .iter()
        .any(|site| site.allocated.samples > 0)
    {
        line("");
        print_sites(found, Which::Temporary, question);
    }
}

fn plural(number: u64) -> &'static str {
    if number == 1 { "" } else { "s" }
}

fn print_sites(found: &AtPeak, which: Which, question: &Peak) {
    let (rows, more) = found.rows(which, question.by, &question.folded, question.count);
    let heads = match which {
        Which::Held => ["live at the peak", "share", "blocks"],
        Which::Temporary => ["temporary blocks", "share", "bytes"],
    };
    let mut table = Table::default();
    let columns = heads.iter().zip([0, 1, 2]);
    columns.for_each(|(head, dispensable)| table.number_column(head, dispensable));
    table.text_column("allocated by", 0);
    for row in rows {
        let (bytes, blocks) = (bytes_and_tenths(row.bytes), grouped(row.blocks));
        let (first, last) = match which {
            Which::Held => (bytes, blocks),
            Which::Temporary => (blocks, bytes),
        };
        table.row(vec![
            Cell::new(first),
            Cell::new(format!("{:.1} %", 100.0 * row.share)),
            Cell::new(last),
            Cell::fitting(row.place),
        ]);
    }
    print_table(&table);
    if more > 0 {
        line(&format!(
            "and {}; -n shows more, --json all",
            counted(more as u64, "more place")
        ));
    }
}

fn print_sizes(classes: &[SizeClass], whole: u64) {
    let mut classes: Vec<&SizeClass> = classes.iter().collect();
    classes.retain(|class| class.held.at_peak_blocks > 0);
    classes.sort_by_key(|class| Reverse(class.held.at_peak_bytes));
    let mut table = table(
        "size",
        &[("live at the peak", 0), ("share", 2), ("blocks", 1)],
    );
    for class in classes {
        let held = &class.held;
        add_row(
            &mut table,
            [
                size_range(class),
                bytes_and_tenths(held.at_peak_bytes),
                percent(held.at_peak_bytes, whole),
                grouped(held.at_peak_blocks),
            ],
        );
    }
    print_table(&table);
}
