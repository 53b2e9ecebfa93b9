//! `hakmem replay --limit`: with which allocators a program would have fitted into a limit, and where it would not have.

use crate::frames::place;
use hakmem_lab::allocator::Catalogue;
use hakmem_lab::budget::amount;
use hakmem_lab::error::Result;
use hakmem_lab::render::number::{bytes_and_tenths, grouped};
use hakmem_lab::render::{Cell, Form, Table, Tone};
use hakmem_trace::limit::{Limit, Verdict};
use hakmem_trace::plan::Place;
use hakmem_trace::reader::Reader;
use hakmem_trace::replay::ReplayDocument;
use hakmem_trace::replayer::Touch;
use hakmem_trace::symbols::Symbols;

/// Settings with which allocators keep less memory; with all allocators, these are tried, too.
const LEANER: [(&str, &str); 4] = [
    ("hakmem", "HAKMEM_MODE=memory"),
    ("glibc", "MALLOC_ARENA_MAX=1"),
    ("mimalloc2", "MIMALLOC_PURGE_DELAY=0"),
    ("mimalloc3", "MIMALLOC_PURGE_DELAY=0"),
];

pub fn parse(text: &str) -> std::result::Result<u64, String> {
    let bytes = amount(text.trim()).filter(|bytes| *bytes >= 1.0);
    bytes
        .map(|bytes| bytes as u64)
        .ok_or_else(|| "a limit is a size such as 384MiB, 1.5GiB or 500000000".into())
}

/// All allocators, and some of them with settings.
pub fn all_with_settings(catalogue: &Catalogue) -> Vec<String> {
    let names: Vec<String> = catalogue.all().iter().map(|one| one.name.clone()).collect();
    let leaner = LEANER
        .iter()
        .filter(|(name, _)| names.iter().any(|one| one == name));
    let leaner: Vec<String> = leaner
        .map(|(name, setting)| format!("{name}+{setting}"))
        .collect();
    names.into_iter().chain(leaner).collect()
}

/// Names the callers of the calls that were found.
pub fn name_calls(document: &mut ReplayDocument, reader: &Reader) -> Result<()> {
    let process = document.process;
    let Some(limit) = &mut document.limit else {
        return Ok(());
    };
    let mut symbols = Symbols::of(reader, process)?;
    let places = limit
        .verdicts
        .iter_mut()
        .filter_map(|one| one.place.as_mut());
    places.for_each(|place| place.frames = symbols.stack(place.stack));
    Ok(())
}

pub fn text(document: &ReplayDocument, limit: &Limit, form: Form) -> String {
    let mut lines = vec![form.strong(&format!(
        "limit {}, for blocks only; code, stacks and files need more",
        bytes_and_tenths(limit.bytes)
    ))];
    if document.live_bytes_peak > limit.bytes {
        lines.push(format!(
            "The program asked for {} at a time: no allocator can fit that.",
            bytes_and_tenths(document.live_bytes_peak)
        ));
    }
    let mut table = Table::default();
    table.text_column("allocator", 0);
    table.text_column("fits", 0);
    table.number_column("peak", 0);
    table.number_column("of the limit", 2);
    table.text_column("exceeds it with", 0);
    let mut verdicts: Vec<&Verdict> = limit.verdicts.iter().collect();
    verdicts.sort_by_key(|verdict| verdict.peak);
    for verdict in verdicts {
        table.row(row(verdict, limit.bytes));
    }
    lines.push(format!("\n{}", table.render(form)));
    let touched = match document.touch {
        Touch::Pages => {
            "the first byte of each page of every block is written, which is the most (--touch none: the least)"
        }
        Touch::All => "all of every block is written, which is the most (--touch none: the least)",
        Touch::None => "nothing is written, which is the least (--touch pages: the most)",
    };
    lines.push(format!(
        "\npeak: of all runs, exact to some hundred KiB. Which pages the program touched is not recorded but estimated: {touched}."
    ));
    lines.join("\n") + "\n"
}

fn row(verdict: &Verdict, limit: u64) -> Vec<Cell> {
    let fits = match verdict.runs_over {
        0 => Cell::toned("yes", Tone::Good),
        over if over == verdict.runs => Cell::toned("no", Tone::Bad),
        over => Cell::toned(format!("not in {over} of {} runs", verdict.runs), Tone::Bad),
    };
    let part = 100.0 * verdict.peak as f64 / limit.max(1) as f64;
    vec![
        Cell::new(verdict.allocator.as_str()),
        fits,
        Cell::new(bytes_and_tenths(verdict.peak)),
        Cell::new(format!("{part:.0} %")),
        Cell::fitting(excess(verdict)),
    ]
}

/// The excess in shorter and shorter forms.
fn excess(verdict: &Verdict) -> Vec<String> {
    match (&verdict.place, verdict.between) {
        (Some(place), _) => call(place),
        (None, Some((from, to))) => vec![format!("between {from:.3} s and {to:.3} s")],
        (None, None) => vec![String::new()],
    }
}

fn call(found: &Place) -> Vec<String> {
    let number = format!("call {}", grouped(found.operation));
    let at = format!("{number} at {:.3} s", found.seconds);
    let size = match found.call.as_str() {
        "free" => "free".to_string(),
        call => format!("{call} of {}", bytes_and_tenths(found.size)),
    };
    let what = format!("{at}: {size} by thread {}", found.thread);
    let mut forms = Vec::new();
    if found.frames.is_empty() {
        forms.extend([what, at]);
    } else {
        // The caller tells more than the time.
        let places = place(&found.frames);
        forms.extend(places.iter().map(|place| format!("{what}, {place}")));
        forms.extend(places.last().map(|place| format!("{number}: {place}")));
    }
    forms.push(number);
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_has_a_unit() {
        assert_eq!(parse("384MiB"), Ok(384 << 20));
        assert_eq!(parse("1.5 GiB"), Ok(3 << 29));
        for text in ["", "0", "-1MiB", "much"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_call_is_named_as_far_as_there_is_room() {
        let mut place = Place {
            operation: 12_345,
            seconds: 1.5,
            thread: 2,
            call: "malloc".into(),
            size: 4096,
            frames: vec!["parse(int) (a.cpp:5)".into()],
            ..Place::default()
        };
        let forms = call(&place);
        assert_eq!(
            forms[0],
            "call 12,345 at 1.500 s: malloc of 4.0 KiB by thread 2, parse(int) (a.cpp:5)"
        );
        assert!(
            forms
                .iter()
                .zip(&forms[1..])
                .all(|(a, b)| a.len() >= b.len())
        );
        place.frames.clear();
        assert_eq!(call(&place).last().unwrap(), "call 12,345");
    }
}
