//! Whatever a budget and its baseline contain, each is refused in one line, or each limit gets a verdict and a place in the
//! report.
//!
//! The input consists of the budget, a zero byte, and the baseline.
#![no_main]

use hakmem_lab::budget::{Measured, Measurements, Verdict, junit, parse};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let mut part = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (budget, baseline) = (part(), part());
    let was = Measurements::parse(Path::new("baseline.json"), &baseline);
    if let Err(refusal) = &was {
        assert!(!refusal.to_string().contains('\n'));
    }
    let limits = match parse(Path::new("budget.toml"), &budget) {
        Ok(limits) => limits,
        Err(refusal) => {
            assert!(!refusal.to_string().contains('\n'));
            return;
        }
    };
    assert!(!limits.is_empty());
    // Every second limit was measured.
    let mut now = Measurements::default();
    for limit in limits.iter().step_by(2) {
        let value = limit.text.len() as f64 * 1e6;
        now.figures.insert(limit.name(), Measured { value, spread: 0.0 });
    }
    let verdicts: Vec<Verdict> =
        limits.iter().map(|limit| Verdict::of(limit, &now, was.as_ref().ok())).collect();
    for verdict in &verdicts {
        assert!(verdict.is_kept || !verdict.reason().is_empty());
        let _ = verdict.change();
    }
    let report = junit(&budget, &verdicts);
    let failures = verdicts.iter().filter(|verdict| !verdict.is_kept).count();
    assert_eq!(report.matches("<failure ").count(), failures);
    assert!(!report.contains('\0'));
});
