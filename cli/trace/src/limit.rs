//! Would a program have fitted into a memory limit with an allocator, and which call would have exceeded it? Resident bytes are
//! compared with the limit. No real limit is set, as the system counts other memory than blocks, too.

use crate::plan::Place;
use crate::replay::ReplayDocument;
use serde::{Deserialize, Serialize};

/// The limit, and the verdict on each allocator.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Limit {
    pub bytes: u64,
    pub verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Verdict {
    pub allocator: String,
    /// The highest peak of all runs.
    pub peak: u64,
    pub runs: u32,
    pub runs_over: u32,
    /// In which part of the recording the first run exceeded the limit, in seconds.
    pub between: Option<(f64, f64)>,
    /// The call with which an additional run exceeded it.
    pub place: Option<Place>,
}

impl Verdict {
    pub fn fits(&self) -> bool {
        self.runs_over == 0
    }

    /// The verdict without `place`, and the first window in which the limit was exceeded.
    pub fn of(document: &ReplayDocument, allocator: &str, bytes: u64) -> (Verdict, Option<usize>) {
        let mut verdict = Verdict {
            allocator: allocator.into(),
            ..Verdict::default()
        };
        let mut first: Option<usize> = None;
        for run in document.runs_of(allocator) {
            verdict.runs += 1;
            verdict.peak = verdict.peak.max(run.resident_peak);
            if let Some(over) = run.peaks.iter().position(|&peak| peak > bytes) {
                verdict.runs_over += 1;
                first = Some(first.map_or(over, |first| first.min(over)));
            }
        }
        verdict.between = first.map(|window| {
            let begin = window.checked_sub(1).map(|before| &document.live[before]);
            let begin = begin.map_or(0.0, |live| live.seconds);
            (begin, document.live[window].seconds)
        });
        (verdict, first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::{Live, Run};

    #[test]
    fn a_run_over_the_limit_is_one_too_many() {
        let run = |allocator: &str, peaks: [u64; 3]| Run {
            allocator: allocator.into(),
            resident_peak: peaks.into_iter().max().unwrap_or(0),
            peaks: peaks.into(),
            ..Run::default()
        };
        let live = |seconds| Live {
            seconds,
            ..Live::default()
        };
        let document = ReplayDocument {
            runs: vec![
                run("a", [10, 100, 90]),
                run("a", [10, 90, 101]),
                run("a", [10, 101, 101]),
                run("b", [10, 100, 20]),
            ],
            live: vec![live(1.0), live(2.0), live(3.0)],
            ..ReplayDocument::default()
        };
        let (a, window) = Verdict::of(&document, "a", 100);
        assert_eq!((a.runs, a.runs_over, a.peak), (3, 2, 101));
        assert_eq!((window, a.between), (Some(1), Some((1.0, 2.0))));
        let (b, window) = Verdict::of(&document, "b", 100);
        assert!(b.fits() && window.is_none() && b.between.is_none());
    }
}
