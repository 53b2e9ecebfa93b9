//! The costs and gains of each feature, alone and together with others. The result must contain `hakmem`, hakmem with mode
//! minimal, and both with one more setting.

use super::table::{Cell, Form, Table, Tone};
use crate::allocator::OURS;
use crate::document::Document;
use crate::statistics::{self, Difference, Estimate, Ratio};
use crate::summary::{self, Values};

/// hakmem without any feature.
pub const MINIMAL: &str = "hakmem+HAKMEM_MODE=minimal";

/// None for other results.
pub fn table(document: &Document, time: &Values, peak: &Values, form: Form) -> Option<String> {
    let names = || document.allocators.keys().map(String::as_str);
    if !names().any(|name| name == OURS) || !names().any(|name| name == MINIMAL) {
        return None;
    }
    let mut table = Table::default();
    table.text_column("what is added", 0);
    table.text_column("to", 0);
    for title in ["time", "peak memory"] {
        table.number_column(title, 0);
        table.number_column("95 % interval", 1);
    }
    table.text_column("slowest against it", 1);
    let mut row = |added: &str, base_name: &str, name: &str, base: &str| {
        let ratios =
            [time, peak].map(|values| summary::mean_ratio(values, name, base, Estimate::Median));
        let mut cells = vec![Cell::new(added), Cell::toned(base_name, Tone::Faint)];
        cells.extend(ratios.into_iter().flat_map(ratio_cells));
        cells.push(Cell::toned(slowest(time, name, base), Tone::Faint));
        table.row(cells);
    };
    row("all of balanced", "minimal", OURS, MINIMAL);
    for name in names() {
        let after = |base: &str| name.strip_prefix(base)?.strip_prefix('+');
        if let Some(setting) = after(MINIMAL) {
            row(setting, "minimal", name, MINIMAL);
        } else if let Some(setting) = after(OURS).filter(|_| name != MINIMAL) {
            row(setting, "balanced", name, OURS);
        }
    }
    Some(table.render(form))
}

fn ratio_cells(ratio: Option<Ratio>) -> [Cell; 2] {
    let Some(ratio) = ratio else {
        return [Cell::new("-"), Cell::new("-")];
    };
    let tone = match ratio.difference() {
        Difference::Less => Tone::Good,
        Difference::More => Tone::Bad,
        Difference::NotShown => Tone::Plain,
    };
    let interval = format!("{:.3} to {:.3}", ratio.low, ratio.high);
    [
        Cell::toned(format!("{:.3}", ratio.value), tone),
        Cell::toned(interval, Tone::Faint),
    ]
}

/// The workload with the greatest loss, and its factor.
fn slowest(time: &Values, name: &str, base: &str) -> String {
    let factors = time.iter().filter_map(|(variant, row)| {
        let (ours, theirs) = (row.get(name)?, row.get(base)?);
        Some((
            variant,
            statistics::median(ours) / statistics::median(theirs),
        ))
    });
    let worst = factors.max_by(|one, other| one.1.total_cmp(&other.1));
    worst.map_or("-".into(), |(variant, factor)| {
        format!("{variant} {factor:.3}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{AllocatorRecord, Sample, VariantRecord};
    use crate::summary::{Metric, counted};

    const FORM: Form = Form::Text {
        colour: false,
        width: 200,
    };

    fn example(names: &[(&str, f64)]) -> Document {
        let mut document = Document::default();
        let variant = VariantRecord::default();
        document.variants.insert("work".into(), variant);
        for (name, time) in names {
            let record = AllocatorRecord::default();
            document.allocators.insert((*name).into(), record);
            document.samples.extend((1..=5).map(|round| Sample {
                variant: "work".into(),
                allocator: (*name).into(),
                round,
                wall_s: *time,
                peak_kib: 100,
                ..Sample::default()
            }));
        }
        document
    }

    fn shown(document: &Document) -> Option<String> {
        let [time, peak] = [Metric::Time, Metric::Peak].map(|metric| counted(document, metric));
        table(document, &time, &peak, FORM)
    }

    #[test]
    fn each_setting_is_compared_with_what_it_was_added_to() {
        let text = shown(&example(&[
            ("hakmem", 1.0),
            (MINIMAL, 2.0),
            ("hakmem+HAKMEM_MODE=minimal+HAKMEM_ACE=1", 1.5),
            ("hakmem+HAKMEM_ACE=0", 1.25),
        ]))
        .unwrap();
        let row = |start: &str| {
            let line = text.lines().find(|line| line.starts_with(start)).unwrap();
            line.split_whitespace()
                .map(str::to_string)
                .collect::<Vec<_>>()
        };
        assert_eq!(row("all of balanced")[3..5], ["minimal", "0.500"]);
        assert_eq!(row("HAKMEM_ACE=1")[1..3], ["minimal", "0.750"]);
        assert_eq!(row("HAKMEM_ACE=0")[1..3], ["balanced", "1.250"]);
    }

    #[test]
    fn other_results_have_no_such_table() {
        assert_eq!(shown(&example(&[("hakmem", 1.0), ("glibc", 2.0)])), None);
    }
}
