//! Reasons not to trust small differences in a document.

use crate::document::{Document, Sample};
use crate::statistics::{self, Estimate, NOISY_SPREAD};
use crate::summary::{Metric, RUNS_MIN, time_metric, values};

/// If other programs used more CPU time than this share of a run, a warning is given.
const BUSY_PART: f64 = 0.10;
/// If the clock changed by more than this share within a run, a warning is given.
const FREQUENCY_PART: f64 = 0.05;

/// One line per reason.
pub fn noise(document: &Document) -> Vec<String> {
    let mut lines = Vec::new();
    let fewest = document
        .variants
        .keys()
        .flat_map(|variant| document.allocators.keys().map(move |name| (variant, name)))
        .map(|(variant, name)| document.samples_of(variant, name).count())
        .filter(|count| *count > 0)
        .min();
    if let Some(count) = fewest.filter(|count| *count < RUNS_MIN) {
        lines.push(format!(
            "too few runs ({count}): differences need at least {RUNS_MIN} runs (-n)"
        ));
    }
    lines.extend(match document.settings.least {
        true => unknown_leasts(document),
        false => noisy_times(document),
    });
    let count_of = |test: &dyn Fn(&Sample) -> bool| {
        document
            .samples
            .iter()
            .filter(|sample| test(sample))
            .count()
    };
    let busy = count_of(&|sample| sample.other_cpu_s > 0.05 + BUSY_PART * sample.wall_s);
    let all = document.samples.len();
    if busy > 0 {
        lines.push(format!(
            "other programs took CPU time during {busy} of {all} runs"
        ));
    }
    let clocked = count_of(&|sample| {
        sample.frequency_khz.is_some_and(|(before, after)| {
            before.abs_diff(after) as f64 > FREQUENCY_PART * before.max(after) as f64
        })
    });
    if clocked > 0 {
        lines.push(format!(
            "the processor's clock changed during {clocked} of {all} runs (set the governor to performance)"
        ));
    }
    let load = document.machine.load_before;
    if load > document.machine.usable_cpus as f64 * 0.5 {
        lines.push(format!(
            "the machine was busy before the start (load {load:.1})"
        ));
    }
    lines
}

/// Workloads whose times vary a lot, with the allocator that varies most.
fn noisy_times(document: &Document) -> Option<String> {
    let values = values(document, Metric::Time);
    let noisy: Vec<String> = values
        .iter()
        .filter_map(|(variant, row)| {
            let spreads = row
                .iter()
                .map(|(name, samples)| (name, statistics::spread(samples)));
            let (name, spread) = spreads.max_by(|one, other| one.1.total_cmp(&other.1))?;
            let what = if values.len() == 1 {
                name.clone()
            } else {
                format!("{variant} ({name})")
            };
            (spread > NOISY_SPREAD).then(|| format!("{what} {:.0} %", spread * 100.0))
        })
        .collect();
    if noisy.is_empty() {
        return None;
    }
    let limit = NOISY_SPREAD * 100.0;
    Some(format!(
        "noisy: the middle half of the times spreads over more than {limit:.0} %: {}",
        noisy.join(", ")
    ))
}

/// Workloads for which more runs might find a lower time.
fn unknown_leasts(document: &Document) -> Option<String> {
    let values = values(document, time_metric(document));
    let unknown: Vec<String> = values
        .iter()
        .filter_map(|(variant, row)| {
            let mut names = row.iter();
            let (name, _) = names.find(|(_, samples)| Estimate::Least.is_noisy(samples))?;
            Some(format!("{variant} ({name})"))
        })
        .collect();
    (!unknown.is_empty()).then(|| {
        format!(
            "too few runs (-n) to know the lowest processor time to 5 %: {}",
            unknown.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::tests::example;
    use crate::summary::{estimate, figures};

    #[test]
    fn a_busy_machine_and_a_changing_clock_are_said() {
        let mut document = example(5);
        document.samples[0].other_cpu_s = 0.5;
        document.samples[1].frequency_khz = Some((2_000_000, 3_000_000));
        document.machine.load_before = 3.0;
        document.machine.usable_cpus = 2;
        let lines = noise(&document);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].contains("during 1 of 20 runs"));
        assert!(lines[1].contains("clock changed"));
        assert!(lines[2].contains("load 3.0"));
    }

    #[test]
    fn noisy_times_are_named() {
        let mut document = example(5);
        document.samples[0].wall_s = 1.5;
        document.samples[1].wall_s = 1.3;
        let line = &noise(&document)[0];
        assert!(line.ends_with("first (hakmem) 30 %"), "{line}");
    }

    #[test]
    fn where_more_runs_might_find_less_that_is_said() {
        let mut document = example(5);
        document.settings.least = true;
        for (number, sample) in document.samples.iter_mut().enumerate() {
            sample.cpu_s = 1.0 + number as f64 / 100.0;
        }
        let line = &noise(&document)[0];
        assert!(line.ends_with("first (hakmem), second (hakmem)"), "{line}");
        let figure = |document: &Document| {
            let row = &values(document, Metric::Cpu)["first"];
            figures(row, estimate(document, Metric::Cpu))["hakmem"]
        };
        assert_eq!(figure(&document), 1.0);
        document.settings.least = false;
        assert_eq!(figure(&document), 1.02);
    }
}
