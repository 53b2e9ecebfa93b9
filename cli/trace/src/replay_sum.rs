//! Adds up the replays of a trace's processes.

use crate::replay::{LatencyCurve, Live, Refused, ReplayDocument, Run};

impl ReplayDocument {
    /// Processes are replayed one after the other, so times add up. Peaks are added, too: the sum is an upper bound. An
    /// allocator that one of the processes refused has no sum. `None` if there are no replays.
    pub fn sum(parts: Vec<ReplayDocument>) -> Option<ReplayDocument> {
        let mut sum = parts.first()?.clone();
        sum.process = 0;
        sum.program.clear();
        (
            sum.threads,
            sum.operations,
            sum.skipped,
            sum.live_bytes_peak,
        ) = (0, 0, 0, 0);
        sum.live = ends(parts.iter().map(|part| {
            let all = part.live.iter().map(|live| live.bytes).sum();
            (all, part.live.last().map_or(0, |live| live.bytes))
        }))
        .map(|bytes| Live {
            bytes,
            ..Live::default()
        })
        .into();
        let last = parts.iter().filter_map(|part| part.live.last());
        sum.live[1].blocks = last.map(|live| live.blocks).sum();
        (sum.refused, sum.runs, sum.latencies) = Default::default();
        for part in &parts {
            sum.threads += part.threads;
            sum.operations += part.operations;
            sum.skipped += part.skipped;
            sum.live_bytes_peak += part.live_bytes_peak;
            sum.refused.extend(part.refused.iter().map(|one| Refused {
                allocator: one.allocator.clone(),
                reason: format!("process {}: {}", part.process, one.reason),
            }));
        }
        for run in &parts[0].runs {
            sum.runs.extend(sum_of_runs(&parts, run));
        }
        for part in &parts {
            for curve in &part.latencies {
                add_curve(&mut sum.latencies, curve);
            }
        }
        let has_sum = |name: &String| sum.runs.iter().any(|run| run.allocator == *name);
        sum.latencies.retain(|curve| has_sum(&curve.allocator));
        sum.latencies.iter_mut().for_each(measure);
        sum.parts = parts;
        Some(sum)
    }
}

/// Two sums: over all moments but the last, and of the last ones. Moments of different processes have no common time.
fn ends(all_and_last: impl Iterator<Item = (u64, u64)>) -> [u64; 2] {
    let (all, last) = all_and_last.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    [all - last, last]
}

/// The sum of the runs of all processes that correspond to this run of the first process.
fn sum_of_runs(parts: &[ReplayDocument], first: &Run) -> Option<Run> {
    let is_same = |run: &&Run| run.allocator == first.allocator && run.round == first.round;
    let runs: Option<Vec<&Run>> = parts
        .iter()
        .map(|part| part.runs.iter().find(is_same))
        .collect();
    let runs = runs?;
    Some(Run {
        seconds: runs.iter().map(|run| run.seconds).sum(),
        resident: ends(
            runs.iter()
                .map(|run| (run.resident.iter().sum(), run.resident_end())),
        )
        .into(),
        peaks: Vec::new(),
        resident_peak: runs.iter().map(|run| run.resident_peak).sum(),
        failed: runs.iter().map(|run| run.failed).sum(),
        ..first.clone()
    })
}

fn add_curve(curves: &mut Vec<LatencyCurve>, more: &LatencyCurve) {
    let is_same = |curve: &&mut LatencyCurve| {
        (&curve.allocator, &curve.call, curve.size_above)
            == (&more.allocator, &more.call, more.size_above)
    };
    match curves.iter_mut().find(is_same) {
        Some(curve) => {
            curve.count += more.count;
            curve.counts.extend(&more.counts);
        }
        None => curves.push(more.clone()),
    }
}

/// Computes the quantiles of a curve.
fn measure(curve: &mut LatencyCurve) {
    curve.counts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let quantile = |part: f64| {
        let wanted = (curve.count as f64 * part).ceil() as u64;
        let mut seen = 0;
        let found = curve.counts.iter().find(|(_, count)| {
            seen += count;
            seen >= wanted
        });
        found.map_or(0.0, |(nanoseconds, _)| *nanoseconds)
    };
    let all = [0.5, 0.99, 0.999, 0.99999].map(quantile);
    [curve.p50, curve.p99, curve.p99_9, curve.p99_999] = all;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(process: u32, factor: u64) -> ReplayDocument {
        let run = |round| Run {
            allocator: "one".into(),
            round,
            seconds: factor as f64 * f64::from(round + 1),
            resident: vec![10 * factor, 20 * factor, 5 * factor],
            resident_peak: 30 * factor,
            ..Run::default()
        };
        let live = |bytes| Live {
            bytes,
            blocks: factor,
            ..Live::default()
        };
        let curve = LatencyCurve {
            allocator: "one".into(),
            call: "malloc".into(),
            count: 10,
            counts: vec![(factor as f64, 10)],
            ..LatencyCurve::default()
        };
        ReplayDocument {
            process,
            operations: factor,
            threads: 1,
            live: vec![live(8 * factor), live(4 * factor), live(2 * factor)],
            runs: vec![run(0), run(1)],
            latencies: vec![curve],
            ..ReplayDocument::default()
        }
    }

    #[test]
    fn times_ends_and_overheads_are_those_of_all() {
        let sum = ReplayDocument::sum(vec![part(1, 1), part(2, 3)]).unwrap();
        assert_eq!((sum.operations, sum.threads, sum.parts.len()), (4, 2, 2));
        let seconds: Vec<f64> = sum.runs.iter().map(|run| run.seconds).collect();
        assert_eq!(seconds, [4.0, 8.0]);
        assert_eq!(sum.runs[0].resident_end(), 20);
        assert_eq!(sum.runs[0].resident_peak, 120);
        assert_eq!(sum.overhead(&sum.runs[0]), 35.0 / 14.0);
        assert_eq!(sum.live[1].blocks, 4);
        let curve = &sum.latencies[0];
        assert_eq!((curve.count, curve.p50, curve.p99), (20, 1.0, 3.0));
    }

    #[test]
    fn what_one_process_refused_has_no_sum() {
        let mut other = part(2, 3);
        other.runs.clear();
        other.refused.push(Refused {
            allocator: "one".into(),
            reason: "crashed".into(),
        });
        let sum = ReplayDocument::sum(vec![part(1, 1), other]).unwrap();
        assert!(sum.runs.is_empty() && sum.latencies.is_empty());
        assert_eq!(sum.refused[0].reason, "process 2: crashed");
        assert!(ReplayDocument::sum(Vec::new()).is_none());
    }
}
