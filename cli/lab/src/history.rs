//! Has hakmem become worse? Compares a result with an earlier one of the same machine and workloads.
//!
//! Times of different days are not compared directly, as the machine may have another load or clock. Instead, hakmem's ratio to
//! glibc, which has not changed, is compared. Memory is compared directly. If glibc is missing in either result, times are
//! compared directly, and the output says so.

use crate::allocator::{BASELINE, is_ours};
use crate::document::Document;
use crate::error::Result;
use crate::statistics::{Difference, Estimate, Ratio};
use crate::summary::{self, Metric, Values};
use crate::usage;
use hakmem_heap::shown::ShownPath;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A smaller change does not matter, however certain it is.
const SMALLEST: f64 = 0.03;

/// An earlier result.
pub struct Past {
    pub path: PathBuf,
    pub document: Document,
}

/// The change of one metric, for one workload and one hakmem.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub variant: String,
    pub allocator: String,
    pub metric: String,
    /// The new figure divided by the old one; None: there is no new figure.
    pub ratio: Option<Ratio>,
    is_enough: bool,
}

impl Change {
    pub fn is_worse(&self) -> bool {
        match self.ratio {
            None => true,
            Some(ratio) => {
                self.is_enough
                    && ratio.difference() == Difference::More
                    && ratio.value > 1.0 + SMALLEST
            }
        }
    }

    pub fn is_better(&self) -> bool {
        self.ratio.is_some_and(|ratio| {
            self.is_enough && ratio.difference() == Difference::Less && ratio.value < 1.0 - SMALLEST
        })
    }
}

/// The newest result in the same folder that shares a workload in the same size, and has this label (if not empty).
pub fn last(document: &Document, path: &Path, label: &str) -> Result<Past> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let entries = std::fs::read_dir(folder);
    let mut found: Vec<Past> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|other| {
            other
                .extension()
                .is_some_and(|extension| extension == "json")
                && other.file_name() != path.file_name()
        })
        .filter_map(|other| {
            Some(Past {
                document: Document::load(&other).ok()?,
                path: other,
            })
        })
        .filter(|past| label.is_empty() || past.document.label == label)
        .filter(|past| {
            document
                .variants
                .keys()
                .any(|name| is_same(&past.document, document, name))
        })
        .collect();
    found.sort_by(|one, other| one.document.started.cmp(&other.document.started));
    found.pop().ok_or_else(|| {
        let of_label = match label {
            "" => String::new(),
            label => format!(" labelled {label}"),
        };
        usage!(
            "{} has no earlier result{of_label} of these workloads to compare with",
            folder.shown()
        )
    })
}

fn is_same(past: &Document, now: &Document, variant: &str) -> bool {
    let (Some(then), Some(now)) = (past.variants.get(variant), now.variants.get(variant)) else {
        return false;
    };
    (&then.args, &then.program) == (&now.args, &now.program)
}

/// Everything that can be compared, by workload.
pub fn compare(past: &Document, now: &Document) -> Vec<Change> {
    let mut changes = Vec::new();
    let time = match summary::time_metric(now) {
        Metric::Cpu => (Metric::Cpu, "processor time"),
        metric => (metric, "time"),
    };
    for (metric, title) in [time, (Metric::Peak, "peak memory")] {
        let (then, current) = (summary::values(past, metric), summary::values(now, metric));
        let against_glibc = metric != Metric::Peak;
        let estimate = summary::estimate(now, metric);
        let kind = Kind {
            title,
            against_glibc,
            estimate,
        };
        changes.extend(changes_of(past, now, &kind, &then, &current));
    }
    for moment in summary::moment_names(now) {
        let then = summary::at_moment(past, moment);
        let current = summary::at_moment(now, moment);
        let title = format!("memory, {moment}");
        let kind = Kind {
            title: &title,
            against_glibc: false,
            estimate: Estimate::Median,
        };
        changes.extend(changes_of(past, now, &kind, &then, &current));
    }
    changes
}

/// How a metric is compared.
struct Kind<'a> {
    title: &'a str,
    /// Compare its ratio to glibc's.
    against_glibc: bool,
    estimate: Estimate,
}

/// The changes of one metric.
fn changes_of(
    past: &Document,
    now: &Document,
    kind: &Kind,
    then: &Values,
    current: &Values,
) -> Vec<Change> {
    let mut changes = Vec::new();
    for variant in now.variants.keys().filter(|name| is_same(past, now, name)) {
        let (Some(then), Some(current)) = (then.get(variant), current.get(variant)) else {
            continue;
        };
        for (allocator, before) in then.iter().filter(|(name, _)| is_ours(name)) {
            if !now.allocators.contains_key(allocator) {
                continue;
            }
            let ratio = current.get(allocator).and_then(|after| {
                let base = kind
                    .against_glibc
                    .then(|| current.get(BASELINE).zip(then.get(BASELINE)))
                    .flatten();
                let mut pairs = vec![(after.as_slice(), before.as_slice())];
                if let Some((base_now, base_then)) = base {
                    pairs.push((base_then.as_slice(), base_now.as_slice()));
                }
                product(&pairs, kind.estimate, variant)
            });
            let counts = [Some(before), current.get(allocator)];
            let is_enough = counts
                .iter()
                .flatten()
                .all(|samples| samples.len() >= summary::RUNS_MIN);
            changes.push(Change {
                variant: variant.clone(),
                allocator: allocator.clone(),
                metric: kind.title.into(),
                ratio,
                is_enough,
            });
        }
    }
    changes
}

/// The product of ratios: their geometric mean, raised to the power of their number.
fn product(pairs: &[(&[f64], &[f64])], estimate: Estimate, seed: &str) -> Option<Ratio> {
    let mean = estimate.mean_ratio(pairs, seed)?;
    let count = pairs.len() as i32;
    Some(Ratio {
        value: mean.value.powi(count),
        low: mean.low.powi(count),
        high: mean.high.powi(count),
    })
}

/// What this result contains and the earlier one lacks, one line each.
pub fn gaps(past: &Document, now: &Document) -> Vec<String> {
    let names = now.variants.keys().map(String::as_str);
    let missing: Vec<&str> = names.filter(|name| !is_same(past, now, name)).collect();
    let mut lines = Vec::new();
    if !missing.is_empty() {
        let are = if missing.len() == 1 { " is" } else { "s are" };
        let (count, names) = (missing.len(), missing.join(", "));
        lines.push(format!("{count} workload{are} not in it: {names}"));
    }
    let has_baseline = |document: &Document| document.allocators.contains_key(BASELINE);
    if !has_baseline(past) || !has_baseline(now) {
        lines.push(format!(
            "{BASELINE} was not measured both times: absolute times are compared"
        ));
    }
    lines
}

pub fn text(changes: &[Change], gaps: &[String], against: &str) -> String {
    let mut text = format!("Against {against}\n");
    let mut unsure = 0;
    for one in changes {
        let Change {
            variant,
            allocator,
            metric,
            ..
        } = one;
        match one.ratio {
            None => {
                let _ = writeln!(
                    text,
                    "  worse   {variant}: {allocator} has no {metric} any more"
                );
            }
            Some(ratio) if one.is_worse() || one.is_better() => {
                let word = if one.is_worse() { "worse " } else { "better" };
                let _ = writeln!(
                    text,
                    "  {word}  {variant}: {metric} of {allocator} × {:.3} ({:.3} to {:.3})",
                    ratio.value, ratio.low, ratio.high
                );
            }
            Some(_) => unsure += usize::from(!one.is_enough),
        }
    }
    let worse = changes.iter().filter(|one| one.is_worse()).count();
    let better = changes.iter().filter(|one| one.is_better()).count();
    let same = changes.len() - worse - better - unsure;
    let _ = writeln!(
        text,
        "  {worse} worse, {better} better, {same} without a proven difference"
    );
    if unsure > 0 {
        let _ = writeln!(
            text,
            "  {unsure} with fewer than {} runs, then or now: not compared",
            summary::RUNS_MIN
        );
    }
    for gap in gaps {
        let _ = writeln!(text, "  {gap}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{AllocatorRecord, Sample, VariantRecord};

    /// One workload with hakmem and glibc, with these times.
    fn document(hakmem: [f64; 6], glibc: [f64; 6]) -> Document {
        let mut document = Document::default();
        document
            .variants
            .insert("work".into(), VariantRecord::default());
        for (name, times) in [("hakmem", hakmem), ("glibc", glibc)] {
            document
                .allocators
                .insert(name.into(), AllocatorRecord::default());
            document.samples.extend(times.iter().map(|time| Sample {
                variant: "work".into(),
                allocator: name.into(),
                wall_s: *time,
                peak_kib: 100,
                ..Sample::default()
            }));
        }
        document
    }

    const ONE: [f64; 6] = [0.99, 1.0, 1.0, 1.0, 1.0, 1.01];
    const TWO: [f64; 6] = [1.98, 2.0, 2.0, 2.0, 2.0, 2.02];

    #[test]
    fn a_slower_machine_is_no_regression() {
        let changes = compare(&document(ONE, ONE), &document(TWO, TWO));
        assert!(!changes.iter().any(|one| one.is_worse() || one.is_better()));
    }

    #[test]
    fn a_slower_hakmem_is_one() {
        let changes = compare(&document(ONE, ONE), &document(TWO, ONE));
        let worse: Vec<&Change> = changes.iter().filter(|one| one.is_worse()).collect();
        assert_eq!(worse.len(), 1);
        assert!((worse[0].ratio.unwrap().value - 2.0).abs() < 1e-9);
        assert!(text(&changes, &[], "before").contains("worse   work: time of hakmem × 2.000"));
    }

    #[test]
    fn a_figure_that_is_missing_now_is_worse() {
        let mut now = document(ONE, ONE);
        now.samples.retain(|sample| sample.allocator != "hakmem");
        assert!(
            compare(&document(ONE, ONE), &now)
                .iter()
                .all(Change::is_worse)
        );
    }

    #[test]
    fn more_memory_is_worse() {
        let mut now = document(ONE, ONE);
        now.samples
            .iter_mut()
            .for_each(|sample| sample.peak_kib = 110);
        let worse = compare(&document(ONE, ONE), &now)
            .iter()
            .filter(|one| one.is_worse())
            .count();
        assert_eq!(worse, 1);
    }
}
