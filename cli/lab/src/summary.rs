//! What a document's samples show; only numbers, nothing is printed.

use crate::allocator::{BASELINE, is_ours};
use crate::document::{Document, LATENCY, Sample};
use crate::statistics::{self, Difference, Estimate, Ratio};
use indexmap::IndexMap;

/// With fewer runs, intervals are too narrow: one in ten comparisons of two copies of one allocator would show a difference.
pub const RUNS_MIN: usize = 5;
/// The metrics that can be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    Time,
    Cpu,
    Peak,
}

impl Metric {
    pub fn of(self, sample: &Sample) -> f64 {
        match self {
            Metric::Time => sample.wall_s,
            Metric::Cpu => sample.cpu_s,
            Metric::Peak => sample.tree_peak_kib.max(sample.peak_kib) as f64,
        }
    }
}

/// variant → allocator → samples, in the document's order; allocators without samples are left out.
pub type Values = IndexMap<String, IndexMap<String, Vec<f64>>>;

pub fn values(document: &Document, metric: Metric) -> Values {
    document
        .variants
        .keys()
        .map(|variant| {
            let row = document
                .allocators
                .keys()
                .map(|allocator| {
                    let samples = document.samples_of(variant, allocator);
                    (
                        allocator.clone(),
                        samples.map(|sample| metric.of(sample)).collect(),
                    )
                })
                .filter(|(_, samples): &(String, Vec<f64>)| !samples.is_empty())
                .collect();
            (variant.clone(), row)
        })
        .collect()
}

/// The value that represents a document's runs.
pub fn estimate(document: &Document, metric: Metric) -> Estimate {
    match metric {
        Metric::Time | Metric::Cpu if document.settings.least => Estimate::Least,
        _ => Estimate::Median,
    }
}

/// The time that is judged: others lengthen both kinds, but processor time less.
pub fn time_metric(document: &Document) -> Metric {
    match document.settings.least {
        true => Metric::Cpu,
        false => Metric::Time,
    }
}

/// Leaves out variants whose result is a latency.
pub fn counted(document: &Document, metric: Metric) -> Values {
    let mut values = values(document, metric);
    values.retain(|variant, _| document.variants[variant].group != LATENCY);
    values
}

/// The names of the moments of workloads, in order.
pub fn moment_names(document: &Document) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in document.samples.iter().flat_map(|one| one.moments.keys()) {
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

/// Resident KiB at one of these moments.
pub fn at_moment(document: &Document, moment: &str) -> Values {
    let mut values = Values::new();
    for sample in &document.samples {
        if let Some((_, kib)) = sample.moments.get(moment) {
            let row = values.entry(sample.variant.clone()).or_default();
            let runs = row.entry(sample.allocator.clone()).or_default();
            runs.push(*kib as f64);
        }
    }
    values
}

/// The value that represents each allocator's runs.
pub fn figures(row: &IndexMap<String, Vec<f64>>, estimate: Estimate) -> IndexMap<&str, f64> {
    row.iter()
        .map(|(name, samples)| (name.as_str(), estimate.of(samples)))
        .collect()
}

/// The allocator with the lowest value.
pub fn lowest<'a>(figures: &IndexMap<&'a str, f64>) -> Option<&'a str> {
    figures
        .iter()
        .min_by(|one, other| one.1.total_cmp(other.1))
        .map(|(name, _)| *name)
}

/// The allocator with the lowest value, apart from hakmem.
pub fn best_peer<'a>(figures: &IndexMap<&'a str, f64>) -> Option<&'a str> {
    let peers = figures
        .iter()
        .filter(|(name, _)| !is_ours(name))
        .map(|(name, at)| (*name, *at));
    lowest(&peers.collect())
}

/// For each allocator: the geometric mean, over variants, of its ratio to the best one (hakmem included), and the number of
/// variants.
pub fn means_against_best(values: &Values, estimate: Estimate) -> IndexMap<String, (f64, usize)> {
    let mut factors: IndexMap<String, Vec<f64>> = IndexMap::new();
    for row in values.values() {
        let figures = figures(row, estimate);
        let best = figures.values().copied().fold(f64::INFINITY, f64::min);
        for (name, figure) in figures {
            factors
                .entry(name.to_string())
                .or_default()
                .push(figure / best);
        }
    }
    factors
        .into_iter()
        .map(|(name, factors)| {
            let count = factors.len();
            (name, (statistics::geometric_mean(factors), count))
        })
        .collect()
}

/// The geometric mean of our ratio to one peer, over the variants that both finished.
pub fn mean_ratio(values: &Values, ours: &str, peer: &str, estimate: Estimate) -> Option<Ratio> {
    let pairs: Vec<(&[f64], &[f64])> = values
        .values()
        .filter_map(|row| Some((row.get(ours)?.as_slice(), row.get(peer)?.as_slice())))
        .collect();
    estimate.mean_ratio(&pairs, &format!("{ours} {peer}"))
}

/// The peer with the lowest geometric mean over the variants that all peers finished; `among` limits the choice.
pub fn best_single_peer(
    values: &Values,
    among: Option<&[&str]>,
    estimate: Estimate,
) -> Option<String> {
    let mut names: Vec<&str> = Vec::new();
    for name in values.values().flat_map(IndexMap::keys) {
        let is_wanted = !is_ours(name) && among.is_none_or(|among| among.contains(&name.as_str()));
        if is_wanted && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let common: Vec<_> = values
        .values()
        .filter(|row| names.iter().all(|name| row.contains_key(*name)))
        .collect();
    let mean =
        |name: &str| statistics::geometric_mean(common.iter().map(|row| estimate.of(&row[name])));
    if common.is_empty() {
        return None;
    }
    names.sort_unstable();
    names
        .into_iter()
        .min_by(|one, other| mean(one).total_cmp(&mean(other)))
        .map(str::to_string)
}

/// How an allocator compares with the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    pub figure: f64,
    pub spread: f64,
    /// None for the baseline itself, or if the baseline has no figure.
    pub ratio: Option<Ratio>,
    /// None if there are too few runs.
    pub verdict: Option<Difference>,
}

pub fn standing(
    row: &IndexMap<String, Vec<f64>>,
    allocator: &str,
    baseline: &str,
    estimate: Estimate,
) -> Option<Standing> {
    let samples = row.get(allocator)?;
    let base = row.get(baseline).filter(|_| allocator != baseline);
    let ratio =
        base.and_then(|base| estimate.ratio(samples, base, &format!("{allocator} {baseline}")));
    let is_enough = samples.len() >= RUNS_MIN && base.is_some_and(|base| base.len() >= RUNS_MIN);
    Some(Standing {
        figure: estimate.of(samples),
        spread: statistics::spread(samples),
        ratio,
        verdict: ratio.filter(|_| is_enough).map(|ratio| ratio.difference()),
    })
}

/// The width of an interval that tells apart allocators that differ by 5 %.
const NARROW: f64 = 1.05;

/// Are all ratios of a comparison certain enough? Only the widths of the intervals count, not their places: a user who stops as
/// soon as a difference shows will find one in the end.
pub fn is_certain(document: &Document, variant: &str) -> bool {
    let values = values(document, Metric::Time);
    let baseline = default_baseline(document);
    let Some(row) = values.get(variant) else {
        return true;
    };
    row.keys().all(|name| {
        let ratio =
            standing(row, name, &baseline, Estimate::Median).and_then(|standing| standing.ratio);
        ratio.is_none_or(|ratio| ratio.high / ratio.low <= NARROW)
    })
}

/// The default baseline: glibc if it is there, else the first allocator.
pub fn default_baseline(document: &Document) -> String {
    let chosen = &document.settings.baseline;
    if document.allocators.contains_key(chosen) {
        return chosen.clone();
    }
    let first = document
        .allocators
        .keys()
        .next()
        .cloned()
        .unwrap_or_default();
    if document.allocators.contains_key(BASELINE) {
        BASELINE.into()
    } else {
        first
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::document::{AllocatorRecord, Refused, VariantRecord};
    use crate::render::{Form, render};

    /// Two workloads: on the first, hakmem takes half the peer's time; on the second, twice its time.
    pub(crate) fn example(runs: u32) -> Document {
        let mut document = Document::default();
        for name in ["hakmem", "peer"] {
            document
                .allocators
                .insert(name.into(), AllocatorRecord::default());
        }
        for (variant, times) in [("first", [1.0, 2.0]), ("second", [2.0, 1.0])] {
            document
                .variants
                .insert(variant.into(), VariantRecord::default());
            for (allocator, time) in ["hakmem", "peer"].into_iter().zip(times) {
                document.samples.extend((1..=runs).map(|round| Sample {
                    variant: variant.into(),
                    allocator: allocator.into(),
                    round,
                    wall_s: time,
                    peak_kib: 1024,
                    ..Sample::default()
                }));
            }
        }
        document
    }

    #[test]
    fn a_mean_over_opposite_workloads_is_one() {
        let values = values(&example(5), Metric::Time);
        let ratio = mean_ratio(&values, "hakmem", "peer", Estimate::Median).unwrap();
        assert!((ratio.value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn means_are_against_the_best_of_each_workload() {
        let means = means_against_best(&values(&example(5), Metric::Time), Estimate::Median);
        let (mean, count) = means["hakmem"];
        assert!((mean - 2.0f64.sqrt()).abs() < 1e-12);
        assert_eq!(count, 2);
    }

    #[test]
    fn our_own_settings_are_no_peers() {
        let medians = IndexMap::from([("hakmem", 1.0), ("hakmem+A=1", 2.0), ("peer", 3.0)]);
        assert_eq!(best_peer(&medians), Some("peer"));
        assert_eq!(lowest(&medians), Some("hakmem"));
    }

    #[test]
    fn latency_stays_out_of_the_means() {
        let mut document = example(5);
        document.variants["second"].group = LATENCY.into();
        assert_eq!(
            counted(&document, Metric::Time).keys().collect::<Vec<_>>(),
            ["first"]
        );
    }

    #[test]
    fn with_few_runs_nothing_is_called_a_difference() {
        let verdict = |runs| {
            let row = &values(&example(runs), Metric::Time)["first"];
            standing(row, "hakmem", "peer", Estimate::Median)
                .unwrap()
                .verdict
        };
        assert_eq!(verdict(4), None);
        assert_eq!(verdict(5), Some(Difference::Less));
        assert!(crate::noise::noise(&example(4))[0].starts_with("too few runs (4)"));
        assert_eq!(crate::noise::noise(&example(5)), [""; 0]);
    }

    #[test]
    fn what_was_refused_is_said_before_any_number() {
        let mut document = example(5);
        document.refuse(Refused {
            variant: "first".into(),
            allocator: "peer".into(),
            round: 0,
            reason: "wrong answer".into(),
        });
        let text = render(
            &document,
            Form::Text {
                colour: false,
                width: 100,
            },
        );
        let said = text
            .find("first under peer has no figure: wrong answer")
            .unwrap();
        assert!(said < text.find("workload").unwrap());
        let row = text
            .lines()
            .find(|line| line.starts_with("first "))
            .unwrap();
        assert!(row.contains("refused"), "{row}");
    }
}
