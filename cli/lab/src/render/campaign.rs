//! Many workloads: a row for each, means, and the figures of the project's goals.

use super::features;
use super::number::{duration, memory, plain};
use super::section;
use super::table::{Cell, Form, Table, Tone};
use crate::allocator::is_ours;
use crate::document::{DAY, Document, LATENCY, VariantRecord};
use crate::statistics::{self, Difference, Estimate, Ratio};
use crate::summary::{self, Metric, Values};
use indexmap::IndexMap;

/// The peers that the goals name for memory.
const MEMORY_PEERS: [&str; 3] = ["mimalloc3", "jemalloc", "snmalloc"];
/// Title, and the two variants whose reported throughput is divided.
const SCALING: [(&str, &str, &str); 3] = [
    (
        "slowdown from 256 to 8,192 live blocks",
        "random-mixed-256",
        "random-mixed-8192",
    ),
    (
        "larson's throughput, 2 threads against 1",
        "larson-2",
        "larson-1",
    ),
    (
        "larson's throughput, 4 threads against 1",
        "larson-4",
        "larson-1",
    ),
];

pub fn parts(document: &Document, form: Form) -> Vec<String> {
    let time = summary::counted(document, Metric::Time);
    let cpu = summary::counted(document, Metric::Cpu);
    let peak = summary::counted(document, Metric::Peak);
    let estimates =
        [Metric::Time, Metric::Cpu, Metric::Peak].map(|metric| summary::estimate(document, metric));
    let titles = match document.settings.least {
        true => [
            "Time, the least of the runs (* lowest, ~ too few runs to tell)",
            "Processor time, the least of the runs",
        ],
        false => ["Time (* lowest, ~ noisy)", "CPU time"],
    };
    let table = |values, estimate, show| value_table(document, values, estimate, show, form);
    let mut parts = vec![
        section(titles[0], &table(&time, estimates[0], duration), form),
        section(titles[1], &table(&cpu, estimates[1], duration), form),
        section(
            "Peak memory (VmHWM)",
            &table(&peak, estimates[2], memory),
            form,
        ),
    ];
    parts.extend(scaling_table(document, form).map(|table| section("Scaling", &table, form)));
    let means = means_table(document, [&time, &cpu, &peak], form);
    parts.push(section(
        "Geometric means against the best of each workload",
        &means,
        form,
    ));
    if let Some(table) = features::table(document, &time, &peak, form) {
        let title = "Features: what a setting adds, as a factor of what it was added to";
        parts.push(section(title, &table, form));
    }
    let judged = match summary::time_metric(document) {
        Metric::Cpu => &cpu,
        _ => &time,
    };
    parts.push(goal_lines(document, judged, &peak, form).join("\n"));
    parts
}

/// The results that workloads measured themselves.
pub fn reported(document: &Document, form: Form) -> Vec<String> {
    let of_variant = |(name, variant): (&String, &VariantRecord)| {
        let what = match variant.group.as_str() {
            LATENCY => "Latency",
            DAY => "Memory over time",
            _ => return None,
        };
        let title = format!("{what}: {}", variant.about);
        Some(section(&title, &reported_table(document, name, form), form))
    };
    document.variants.iter().filter_map(of_variant).collect()
}

/// The memory of services at the moments that they name; nothing for other workloads.
pub fn moments(document: &Document, form: Form) -> Vec<String> {
    let names = summary::moment_names(document);
    let tables = names.into_iter().map(|name| {
        let values = summary::at_moment(document, name);
        let title = format!("Resident memory: {name}");
        section(
            &title,
            &value_table(document, &values, Estimate::Median, memory, form),
            form,
        )
    });
    tables.collect()
}

fn ours_in(document: &Document) -> Vec<&String> {
    document
        .allocators
        .keys()
        .filter(|name| is_ours(name))
        .collect()
}

/// A table of one metric, with hakmem's ratio to the best peer of the row.
fn value_table(
    document: &Document,
    values: &Values,
    estimate: Estimate,
    show: fn(f64) -> String,
    form: Form,
) -> String {
    let ours = ours_in(document).first().map(|name| name.as_str());
    let mut table = Table::default();
    table.text_column("workload", 0);
    for name in document.allocators.keys() {
        // hakmem's column stays on the narrowest terminal.
        table.number_column(name, u8::from(Some(name.as_str()) != ours) * 2);
    }
    if let Some(ours) = ours {
        table.text_column("best peer", 0);
        table.number_column(&format!("{ours} / best"), 0);
        table.number_column("95 % interval", 1);
    }
    for (variant, row) in values {
        let figures = summary::figures(row, estimate);
        let lowest = summary::lowest(&figures);
        let mut cells = vec![Cell::new(variant)];
        for name in document.allocators.keys() {
            cells.push(match figures.get(name.as_str()) {
                None if document.is_refused(variant, name) => Cell::toned("refused", Tone::Bad),
                None => Cell::toned("-", Tone::Faint),
                Some(figure) => {
                    let is_lowest = lowest == Some(name);
                    let is_noisy = estimate.is_noisy(&row[name]);
                    let marks = [(is_noisy, "~"), (is_lowest, "*")]
                        .map(|(is, mark)| if is { mark } else { "" });
                    let tone = if is_lowest { Tone::Good } else { Tone::Plain };
                    Cell::toned(format!("{}{}", marks.concat(), show(*figure)), tone)
                }
            });
        }
        if let Some(ours) = ours {
            cells.extend(against_best(row, &figures, ours, estimate));
        }
        table.row(cells);
    }
    table.render(form)
}

fn against_best(
    row: &IndexMap<String, Vec<f64>>,
    figures: &IndexMap<&str, f64>,
    ours: &str,
    estimate: Estimate,
) -> [Cell; 3] {
    let none = || Cell::toned("-", Tone::Faint);
    let Some(best) = summary::best_peer(figures) else {
        return [none(), none(), none()];
    };
    let standing = summary::standing(row, ours, best, estimate);
    let Some(ratio) = standing.as_ref().and_then(|standing| standing.ratio) else {
        return [Cell::new(best), none(), none()];
    };
    let tone = match standing.and_then(|standing| standing.verdict) {
        Some(Difference::Less) => Tone::Good,
        Some(Difference::More) => Tone::Bad,
        _ => Tone::Plain,
    };
    [
        Cell::new(best),
        Cell::toned(format!("{:.3}", ratio.value), tone),
        Cell::toned(
            format!("{:.3} to {:.3}", ratio.low, ratio.high),
            Tone::Faint,
        ),
    ]
}

fn means_table(document: &Document, metrics: [&Values; 3], form: Form) -> String {
    let kinds = [Metric::Time, Metric::Cpu, Metric::Peak];
    let means = [0, 1, 2].map(|index| {
        let estimate = summary::estimate(document, kinds[index]);
        summary::means_against_best(metrics[index], estimate)
    });
    let mut table = Table::default();
    table.text_column("allocator", 0);
    for title in ["time", "CPU", "peak memory", "workloads"] {
        table.number_column(title, 0);
    }
    for name in document.allocators.keys() {
        let counted = means.each_ref().map(|means| means.get(name).copied());
        let mut cells = vec![Cell::new(name)];
        cells.extend(
            counted
                .iter()
                .map(|mean| Cell::new(mean.map_or("-".into(), |(value, _)| format!("{value:.3}")))),
        );
        cells.push(Cell::new(
            counted[0].map_or(0, |(_, count)| count).to_string(),
        ));
        table.row(cells);
    }
    table.render(form)
}

fn show_ratio(ratio: Option<Ratio>) -> String {
    ratio.map_or("-".into(), |ratio| {
        format!("{:.3} ({:.3} to {:.3})", ratio.value, ratio.low, ratio.high)
    })
}

/// The figures in which the project's goals are stated.
fn goal_lines(document: &Document, time: &Values, peak: &Values, form: Form) -> Vec<String> {
    let bullet = if form == Form::Markdown { "- " } else { "" };
    let metric = summary::time_metric(document);
    let estimate = summary::estimate(document, metric);
    let title = match metric {
        Metric::Cpu => "processor time",
        _ => "time",
    };
    let mut lines = Vec::new();
    for ours in ours_in(document) {
        if let Some(fastest) = summary::best_single_peer(time, None, estimate) {
            let ratio = show_ratio(summary::mean_ratio(time, ours, &fastest, estimate));
            lines.push(format!(
                "{bullet}{ours}: {title} against the best single peer ({fastest}): {ratio}"
            ));
        }
        if let Some(smallest) =
            summary::best_single_peer(peak, Some(&MEMORY_PEERS), Estimate::Median)
        {
            let ratio = show_ratio(summary::mean_ratio(peak, ours, &smallest, Estimate::Median));
            lines.push(format!(
                "{bullet}{ours}: peak memory against the best of {} ({smallest}): {ratio}",
                MEMORY_PEERS.join(", ")
            ));
        }
    }
    lines
}

/// How throughput changes with the working set and with threads; None if it was not run.
fn scaling_table(document: &Document, form: Form) -> Option<String> {
    let speed = |variant: &str, allocator: &str| {
        let speeds: Vec<f64> = document
            .samples_of(variant, allocator)
            .filter_map(|sample| sample.reported.get("ops/s").copied())
            .collect();
        (!speeds.is_empty()).then(|| statistics::median(&speeds))
    };
    let mut table = Table::default();
    table.text_column("", 0);
    for name in document.allocators.keys() {
        table.number_column(name, u8::from(!is_ours(name)));
    }
    let mut is_empty = true;
    for (title, upper, lower) in SCALING {
        let ratios: Vec<Option<f64>> = document
            .allocators
            .keys()
            .map(|name| Some(speed(upper, name)? / speed(lower, name)?))
            .collect();
        if ratios.iter().all(Option::is_none) {
            continue;
        }
        is_empty = false;
        let cells = ratios
            .iter()
            .map(|ratio| Cell::new(ratio.map_or("-".into(), |ratio| format!("{ratio:.2}"))));
        table.row(std::iter::once(Cell::new(title)).chain(cells).collect());
    }
    (!is_empty).then(|| table.render(form))
}

/// The results that a workload measured itself.
fn reported_table(document: &Document, variant: &str, form: Form) -> String {
    let mut table = Table::default();
    table.text_column(variant, 0);
    let names: Vec<&String> = document
        .allocators
        .keys()
        .filter(|name| document.samples_of(variant, name).next().is_some())
        .collect();
    for name in &names {
        table.number_column(name, u8::from(!is_ours(name)));
    }
    let mut keys: Vec<&String> = Vec::new();
    for sample in document
        .samples
        .iter()
        .filter(|sample| sample.variant == variant)
    {
        for key in sample.reported.keys() {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }
    for key in keys {
        let mut cells = vec![Cell::new(key)];
        cells.extend(names.iter().map(|name| {
            let numbers: Vec<f64> = document
                .samples_of(variant, name)
                .filter_map(|sample| sample.reported.get(key).copied())
                .collect();
            let median = statistics::median(&numbers);
            Cell::new(if numbers.is_empty() {
                "-".into()
            } else {
                plain(median)
            })
        }));
        table.row(cells);
    }
    table.render(form)
}
