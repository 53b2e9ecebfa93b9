//! One workload with several allocators: a row for each, and the winner.

use super::number::{count, duration, memory, percent};
use super::table::{Cell, Form, Table, Tone};
use crate::document::{Document, Sample};
use crate::statistics::{self, Difference, Estimate, Ratio};
use crate::summary::{self, Metric, Standing};
use indexmap::IndexMap;

type Row = IndexMap<String, Vec<f64>>;

pub fn parts(document: &Document, form: Form) -> Vec<String> {
    let Some(variant) = document.variants.keys().next() else {
        return Vec::new();
    };
    let baseline = summary::default_baseline(document);
    let row = |metric| {
        summary::values(document, metric)
            .swap_remove(variant)
            .unwrap_or_default()
    };
    let [time, cpu, peak] = [Metric::Time, Metric::Cpu, Metric::Peak].map(row);
    if time.is_empty() {
        return Vec::new();
    }
    let mut table = Table::default();
    table.text_column("allocator", 0);
    table.number_column("time", 0);
    table.number_column("±", 5);
    table.number_column(&format!("× {baseline}"), 0);
    table.number_column("95 % interval", 2);
    table.text_column("", 0);
    table.number_column("CPU", 4);
    table.number_column(&format!("× {baseline}"), 4);
    table.number_column("peak", 0);
    table.number_column(&format!("× {baseline}"), 1);
    table.number_column("1 s later", 6);
    table.number_column("group", 8);
    table.number_column("faults", 3);
    table.number_column("switches", 7);
    for name in time.keys() {
        table.row(cells(
            document,
            variant,
            name,
            &baseline,
            [&time, &cpu, &peak],
        ));
    }
    let mut parts = vec![table.render(form)];
    let sentences = [
        winner(&time, "the fastest", "slower"),
        winner(&cpu, "the lightest on the CPU", "heavier"),
        winner(&peak, "the smallest", "larger"),
    ];
    parts.push(
        sentences
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("\n"),
    );
    parts
}

fn cells(
    document: &Document,
    variant: &str,
    name: &str,
    baseline: &str,
    [time, cpu, peak]: [&Row; 3],
) -> Vec<Cell> {
    let time = summary::standing(time, name, baseline, Estimate::Median);
    let peak = summary::standing(peak, name, baseline, Estimate::Median);
    let cpu = summary::standing(cpu, name, baseline, Estimate::Median);
    let middle = |read: &dyn Fn(&Sample) -> f64| {
        let numbers: Vec<f64> = document.samples_of(variant, name).map(read).collect();
        statistics::median(&numbers)
    };
    let known = |read: fn(&Sample) -> Option<u64>| {
        let samples = document.samples_of(variant, name).filter_map(read);
        let numbers: Vec<f64> = samples.map(|kib| kib as f64).collect();
        Cell::new(if numbers.is_empty() {
            "-".into()
        } else {
            memory(statistics::median(&numbers))
        })
    };
    let shown = |standing: &Option<Standing>, show: fn(f64) -> String| {
        Cell::new(
            standing
                .as_ref()
                .map_or("-".into(), |standing| show(standing.figure)),
        )
    };
    let ratio = |standing: &Option<Standing>| match standing {
        Some(Standing {
            ratio: Some(ratio),
            verdict,
            ..
        }) => Cell::toned(format!("{:.3}", ratio.value), tone(*verdict)),
        _ => Cell::toned(if name == baseline { "1" } else { "-" }, Tone::Faint),
    };
    let time_ratio = time.as_ref().and_then(|standing| standing.ratio);
    vec![
        Cell::new(name),
        shown(&time, duration),
        // One or two runs have no spread.
        Cell::toned(
            time.as_ref()
                .filter(|_| document.samples_of(variant, name).count() > 2)
                .map_or(String::new(), |standing| {
                    format!("{:.1} %", standing.spread * 100.0)
                }),
            Tone::Faint,
        ),
        ratio(&time),
        Cell::toned(time_ratio.map_or(String::new(), interval), Tone::Faint),
        verdict(time.as_ref()),
        shown(&cpu, duration),
        ratio(&cpu),
        shown(&peak, memory),
        ratio(&peak),
        known(|sample| sample.after_peak_kib),
        known(|sample| sample.group_peak_kib),
        Cell::new(count(middle(&|sample| {
            (sample.minor_faults + sample.major_faults) as f64
        }))),
        Cell::new(count(middle(&|sample| {
            (sample.voluntary_switches + sample.involuntary_switches) as f64
        }))),
    ]
}

fn interval(ratio: Ratio) -> String {
    format!("{:.3} to {:.3}", ratio.low, ratio.high)
}

fn tone(verdict: Option<Difference>) -> Tone {
    match verdict {
        Some(Difference::Less) => Tone::Good,
        Some(Difference::More) => Tone::Bad,
        Some(Difference::NotShown) | None => Tone::Plain,
    }
}

fn verdict(standing: Option<&Standing>) -> Cell {
    let verdict = standing.and_then(|standing| standing.verdict);
    let text = match (verdict, standing.and_then(|standing| standing.ratio)) {
        (Some(Difference::Less), _) => "faster",
        (Some(Difference::More), _) => "slower",
        (Some(Difference::NotShown), _) => "no proven difference",
        (None, Some(_)) => "too few runs",
        (None, None) => "",
    };
    Cell::toned(text, tone(verdict))
}

/// The first allocator, and its distance to the next one that differs from it.
fn winner(row: &Row, first: &str, behind: &str) -> Option<String> {
    let medians = summary::figures(row, Estimate::Median);
    let best = summary::lowest(&medians)?;
    if row.len() < 2
        || row
            .values()
            .any(|samples| samples.len() < summary::RUNS_MIN)
    {
        return None;
    }
    let mut sharing = vec![best.to_string()];
    let mut next: Option<(&str, Ratio)> = None;
    let mut others: Vec<(&str, f64)> = medians
        .iter()
        .map(|(name, at)| (*name, *at))
        .filter(|(name, _)| *name != best)
        .collect();
    others.sort_by(|one, other| one.1.total_cmp(&other.1));
    for (name, _) in others {
        let ratio = statistics::ratio(&row[name], &row[best], &format!("{name} {best}"))?;
        match ratio.difference() {
            Difference::NotShown => sharing.push(name.to_string()),
            Difference::More => next = next.or(Some((name, ratio))),
            // Medians and pairs of runs contradict each other, so there is no winner.
            Difference::Less => return None,
        }
    }
    let lead = if sharing.len() == 1 {
        format!("{best} is {first}")
    } else {
        format!(
            "{} are {first}, with no proven difference",
            join_names(&sharing)
        )
    };
    let distance = next.map_or(String::new(), |(name, ratio)| {
        format!(
            "; then {name}, {} {behind} (95 % interval {} to {})",
            percent(ratio.value),
            percent(ratio.low),
            percent(ratio.high)
        )
    });
    Some(format!("{lead}{distance}."))
}

fn join_names(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slow moments of the machine hit one allocator harder: it has the lower median, but loses most pairs.
    #[test]
    fn who_is_slower_by_pairs_is_not_called_the_fastest() {
        let is_slow = |round: usize| round % 2 == 1;
        let of = |slow: f64, fast: f64| -> Vec<f64> {
            let rounds = 0..61;
            rounds
                .map(|round| if is_slow(round) { slow } else { fast })
                .collect()
        };
        let row: Row = [("one", of(9.0, 1.0)), ("other", of(5.0, 1.001))]
            .map(|(name, times)| (name.to_string(), times))
            .into();
        let ratio = statistics::ratio(&row["other"], &row["one"], "").unwrap();
        assert_eq!(ratio.difference(), Difference::Less);
        assert_eq!(winner(&row, "the fastest", "slower"), None);
        let row: Row = [("one", of(1.0, 1.0)), ("other", of(1.5, 1.5))]
            .map(|(name, times)| (name.to_string(), times))
            .into();
        let said = winner(&row, "the fastest", "slower").unwrap();
        assert!(
            said.starts_with("one is the fastest; then other, 50 % slower"),
            "{said}"
        );
    }
}
