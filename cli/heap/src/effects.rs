//! The effects of a process's options, from its counters, and the trials that these suggest.

use crate::decisions::Decisions;
use crate::figures::Figures;
use crate::options::Setting;
use serde::Serialize;

/// The cost of a page fault for the learner (`src/policy/score.h`).
const FAULT_NS: u64 = 700;
const PAGE: u64 = 4096;
/// Fewer purged bytes give no hint.
const PURGED_LEAST: u64 = 64 << 20;
const REFILLS_LEAST: u64 = 10_000;

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Effect {
    pub option: &'static str,
    pub text: String,
}

/// Another value that may be better. Only a trial can tell whether it is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hint {
    pub option: &'static str,
    pub value: u64,
    pub reason: String,
}

/// The sums over all classes, and the block size of the class with the most.
struct Misses {
    refills: u64,
    spills: u64,
    most_bytes: u64,
}

impl Misses {
    fn of(figures: &Figures) -> Misses {
        let classes = &figures.classes;
        let most = classes
            .iter()
            .max_by_key(|class| class.refills.saturating_add(class.spills));
        Misses {
            refills: classes.iter().map(|class| class.refills).sum(),
            spills: classes.iter().map(|class| class.spills).sum(),
            most_bytes: most.map_or(0, |class| class.bytes),
        }
    }
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

pub fn effects(figures: &Figures) -> Vec<Effect> {
    let counters = &figures.counters;
    let mut effects = Vec::new();
    let mut note = |option, is_any: bool, text: String| {
        if is_any {
            effects.push(Effect { option, text });
        }
    };
    let (purged, retaken) = (counters.os.purged_bytes, counters.retaken_bytes);
    note(
        "decay_ms",
        purged > 0,
        format!(
            "{} were purged, {} of whole units were used again: {} page faults, about {} ms",
            mib(purged),
            mib(retaken),
            retaken / PAGE,
            retaken / PAGE * FAULT_NS / 1_000_000
        ),
    );
    let misses = Misses::of(figures);
    note(
        "magazine_bytes",
        misses.refills > 0,
        format!(
            "magazines were empty {} times and full {} times, most often of {} bytes",
            misses.refills, misses.spills, misses.most_bytes
        ),
    );
    let parcels = counters.caches.sent_parcels;
    note(
        "parcel_bytes",
        parcels > 0,
        format!(
            "{} blocks went back to other threads, {} in each parcel",
            counters.caches.sent_blocks,
            counters.caches.sent_blocks / parcels.max(1)
        ),
    );
    let advices = counters.os.huge_advices;
    note(
        "thp",
        advices > 0,
        format!("{advices} calls asked for huge pages"),
    );
    effects
}

/// Hints about options that were not tried in this process.
pub fn hints(settings: &[Setting], figures: &Figures, decisions: &Decisions) -> Vec<Hint> {
    let purged = figures.counters.os.purged_bytes;
    let retaken = figures.counters.retaken_bytes;
    let misses = Misses::of(figures);
    let candidates = [
        (
            "decay_ms",
            purged >= PURGED_LEAST && retaken >= purged / 2,
            format!(
                "{:.0} % of the purged memory was used again",
                100.0 * retaken as f64 / purged.max(1) as f64
            ),
        ),
        (
            "magazine_bytes",
            misses.refills >= REFILLS_LEAST && misses.spills >= misses.refills / 2,
            format!(
                "blocks move back and forth between slabs and magazines, most of {} bytes",
                misses.most_bytes
            ),
        ),
    ];
    let was_tried = |option: &str| {
        let mut all = decisions.running.iter().chain(&decisions.latest);
        all.any(|decision| decision.option.as_deref() == Some(option))
    };
    let hint = |(option, is_so, reason): (&'static str, bool, String)| {
        let setting = settings.iter().find(|setting| setting.name == option)?;
        let value = setting.value.saturating_mul(4).min(setting.most);
        let is_new = is_so && value > setting.value && !was_tried(option);
        is_new.then_some(Hint {
            option,
            value,
            reason,
        })
    };
    candidates.into_iter().filter_map(hint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decisions::Decision;
    use crate::figures::ClassFigures;
    use crate::options::Kind;

    fn settings() -> Vec<Setting> {
        let values = [
            ("decay_ms", 500, 3_600_000),
            ("magazine_bytes", 16 << 20, 64 << 20),
        ];
        values
            .map(|(name, value, most)| Setting {
                name: name.into(),
                kind: Kind::Number,
                unit: String::new(),
                help: String::new(),
                value,
                source: "default",
                initial: value,
                least: 0,
                most,
                at_run_time: true,
            })
            .into()
    }

    fn tried(option: &str) -> Decisions {
        let decision = Decision {
            option: Some(option.into()),
            ..Decision::default()
        };
        Decisions {
            count: 1,
            running: None,
            latest: vec![decision],
        }
    }

    fn purged(retaken_mib: u64) -> Figures {
        let mut figures = Figures::default();
        figures.counters.os.purged_bytes = 100 << 20;
        figures.counters.retaken_bytes = retaken_mib << 20;
        figures
    }

    #[test]
    fn what_comes_back_hints_at_a_longer_wait_unless_that_was_tried() {
        let hint = &hints(&settings(), &purged(60), &Decisions::default())[0];
        assert_eq!((hint.option, hint.value), ("decay_ms", 2000));
        assert_eq!(hint.reason, "60 % of the purged memory was used again");
        assert!(hints(&settings(), &purged(40), &Decisions::default()).is_empty());
        assert!(hints(&settings(), &purged(60), &tried("decay_ms")).is_empty());
        assert_eq!(hints(&settings(), &purged(60), &tried("ace")).len(), 1);
    }

    #[test]
    fn swings_beyond_the_magazines_hint_at_larger_ones() {
        let mut figures = Figures::default();
        for (bytes, refills, spills) in [(16, 5, 5), (64, 20_000, 15_000)] {
            figures.classes.push(ClassFigures {
                bytes,
                refills,
                spills,
                ..ClassFigures::default()
            });
        }
        let hint = &hints(&settings(), &figures, &Decisions::default())[0];
        assert_eq!((hint.option, hint.value), ("magazine_bytes", 64 << 20));
        assert!(
            effects(&figures)[0]
                .text
                .ends_with("most often of 64 bytes")
        );
        // No value is above the largest.
        let mut largest = settings();
        largest[1].value = 64 << 20;
        assert!(hints(&largest, &figures, &Decisions::default()).is_empty());
    }

    #[test]
    fn a_page_that_comes_back_is_a_page_fault() {
        let text = &effects(&purged(40))[0].text;
        let faults = "40.0 MiB of whole units were used again: 10240 page faults, about 7 ms";
        assert!(text.ends_with(faults), "{text}");
        assert!(effects(&Figures::default()).is_empty());
    }
}
