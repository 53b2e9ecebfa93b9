//! Tests the measurement itself with artificial numbers: two copies of one allocator must hardly ever look different, and one
//! that is 5 % slower must be found.

use hakmem_lab::allocator::Allocator;
use hakmem_lab::campaign::{self, Campaign, Observer, Outcome, Position, Silent};
use hakmem_lab::document::{Document, Refused, Sample, Settings};
use hakmem_lab::error;
use hakmem_lab::meter::{Meter, Stop};
use hakmem_lab::statistics::{Difference, Estimate, generator_for};
use hakmem_lab::summary::{self, Metric};
use hakmem_lab::workload::{Judge, Workload};
use indexmap::IndexMap;
use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How many comparisons are made of each kind.
const COMPARISONS: usize = 300;
const RUNS: u32 = 20;
/// How much two runs usually differ, as a share of the workload's time: on a quiet machine, and on one with neighbours (for the
/// one in docs/measuring.md: 7 to 9 %).
const NOISE: f64 = 0.02;
const NOISE_OF_NEIGHBOURS: f64 = 0.07;
/// How many comparisons continue until they are certain.
const LONG_COMPARISONS: usize = 100;
const RUNS_MAX: u32 = 100;

/// Other changes of the machine: it becomes slower and slower, and has good and bad minutes.
const DRIFT_A_RUN: f64 = 0.001;
const WEATHER: f64 = 0.01;
const WEATHER_STAYS: f64 = 0.9;

/// Takes about 100 ms; allocators named slow… take 5 % more.
struct FakeMeter {
    generator: fastrand::Rng,
    noise: f64,
    runs: f64,
    weather: f64,
    /// The order in which allocators were measured.
    order: Vec<String>,
    /// A different answer, which one of them prints.
    other_answer: Option<&'static str>,
    stop_after: Option<usize>,
    /// How long a run really takes.
    sleeps: Duration,
}

impl FakeMeter {
    fn new(seed: &str) -> FakeMeter {
        FakeMeter {
            generator: generator_for(seed),
            noise: NOISE,
            runs: 0.0,
            weather: 0.0,
            order: Vec::new(),
            other_answer: None,
            stop_after: None,
            sleeps: Duration::ZERO,
        }
    }

    /// Mostly small deviations, and a large one now and then, as on real machines.
    fn noise(&mut self) -> f64 {
        let near: f64 = (0..4).map(|_| self.generator.f64() - 0.5).sum();
        let is_disturbed = self.generator.f64() < 0.05;
        1.0 + self.noise * near * 1.7
            + if is_disturbed {
                0.2 * self.generator.f64()
            } else {
                0.0
            }
    }
}

impl Meter for FakeMeter {
    fn measure(&mut self, _: &Workload, allocator: &Allocator) -> Result<Sample, Stop> {
        if self.stop_after == Some(self.order.len()) {
            return Err(Stop::Interrupted);
        }
        std::thread::sleep(self.sleeps);
        self.order.push(allocator.name.clone());
        self.runs += 1.0;
        let change = (self.generator.f64() - 0.5) * 12f64.sqrt() * WEATHER;
        self.weather = WEATHER_STAYS * self.weather + change;
        let drift = 1.0 + self.runs * DRIFT_A_RUN + self.weather;
        let own = if allocator.name.starts_with("slow") {
            1.05
        } else {
            1.0
        };
        let answer = match self.other_answer {
            Some(name) if name == allocator.name => "something else",
            _ => "right",
        };
        Ok(Sample {
            wall_s: 0.1 * drift * own * self.noise(),
            peak_kib: 1000,
            answer: answer.into(),
            ..Sample::default()
        })
    }
}

fn workload() -> Workload {
    Workload {
        name: "work".into(),
        about: String::new(),
        group: "compare".into(),
        threads: 1,
        program: PathBuf::from("/bin/true"),
        called: "true".into(),
        needs: Vec::new(),
        arguments: Vec::new(),
        environment: IndexMap::new(),
        own_environment: IndexMap::new(),
        folder: PathBuf::from("/"),
        stdin: None,
        judge: Judge::Reference,
        filter: None,
        scratch: None,
        prepare: Vec::new(),
        verify: Vec::new(),
        outputs: Vec::new(),
        server: None,
        trace_threads: false,
        bundles_malloc: false,
        timeout: None,
    }
}

fn allocators(names: &[&str]) -> Vec<Allocator> {
    names
        .iter()
        .map(|name| Allocator {
            name: (*name).into(),
            ..Allocator::default()
        })
        .collect()
}

fn document(names: &[&str]) -> Document {
    let settings = Settings {
        runs: RUNS,
        baseline: names[0].into(),
        ..Settings::default()
    };
    let mut document = Document {
        settings,
        ..Document::default()
    };
    campaign::describe(
        &mut document,
        &[workload()],
        &allocators(names),
        &str::to_string,
    )
    .unwrap();
    document
}

fn run(meter: &mut FakeMeter, names: &[&str]) -> (Document, Outcome) {
    go_on(meter, names, document(names))
}

fn go_on(meter: &mut FakeMeter, names: &[&str], document: Document) -> (Document, Outcome) {
    watched(meter, names, document, &mut Silent)
}

fn watched(
    meter: &mut FakeMeter,
    names: &[&str],
    document: Document,
    observer: &mut dyn Observer,
) -> (Document, Outcome) {
    let mut campaign = Campaign::new(
        document,
        vec![workload()],
        allocators(names),
        meter,
        observer,
    );
    let outcome = campaign.run().unwrap();
    (campaign.document, outcome)
}

fn verdict(names: [&str; 2], seed: usize) -> Option<Difference> {
    let (document, _) = run(&mut FakeMeter::new(&format!("{names:?} {seed}")), &names);
    let row = &summary::values(&document, Metric::Time)["work"];
    summary::standing(row, names[1], names[0], Estimate::Median)
        .unwrap()
        .verdict
}

fn share(names: [&str; 2], wanted: Difference) -> f64 {
    let count = (0..COMPARISONS)
        .filter(|seed| verdict(names, *seed) == Some(wanted))
        .count();
    count as f64 / COMPARISONS as f64
}

#[test]
fn two_copies_of_one_allocator_show_no_difference_in_95_percent_of_comparisons() {
    let share = share(["one", "two"], Difference::NotShown);
    assert!(share >= 0.95, "only in {share}");
}

#[test]
fn an_allocator_that_is_5_percent_slower_is_found() {
    let share = share(["one", "slow"], Difference::More);
    assert!(share >= 0.95, "only in {share}");
}

/// The share of comparisons with the wanted difference, if they continue while they are uncertain, and their average number of
/// runs.
fn long_share(names: [&str; 2], noise: f64, wanted: Difference) -> (f64, f64) {
    let (mut count, mut runs) = (0, 0);
    for seed in 0..LONG_COMPARISONS {
        let mut meter = FakeMeter::new(&format!("long {names:?} {seed}"));
        meter.noise = noise;
        let mut document = document(&names);
        document.settings.runs = 10;
        document.settings.runs_max = RUNS_MAX;
        let (document, _) = go_on(&mut meter, &names, document);
        let row = &summary::values(&document, Metric::Time)["work"];
        assert_eq!(row[names[0]].len(), document.settings.runs as usize);
        let standing = summary::standing(row, names[1], names[0], Estimate::Median).unwrap();
        count += usize::from(standing.verdict == Some(wanted));
        runs += row[names[0]].len();
    }
    let all = LONG_COMPARISONS as f64;
    (count as f64 / all, runs as f64 / all)
}

#[test]
fn more_runs_make_up_for_a_noisy_machine() {
    let (same, runs) = long_share(["one", "two"], NOISE_OF_NEIGHBOURS, Difference::NotShown);
    assert!(same >= 0.95, "only in {same}, with {runs} runs");
    let (found, runs) = long_share(["one", "slow"], NOISE_OF_NEIGHBOURS, Difference::More);
    assert!(found >= 0.95, "only in {found}, with {runs} runs");
    let (_, quiet_runs) = long_share(["one", "two"], NOISE, Difference::NotShown);
    assert!(quiet_runs < runs / 2.0, "{quiet_runs} and {runs} runs");
}

/// The order of each round, without two reference runs of the plain system and the warm-up.
fn rounds_of(names: &[&str]) -> Vec<Vec<String>> {
    let mut meter = FakeMeter::new("order");
    run(&mut meter, names);
    let runs = &meter.order[2..];
    runs.chunks(names.len())
        .skip(1)
        .map(<[_]>::to_vec)
        .collect()
}

#[test]
fn each_allocator_runs_once_a_round_and_follows_each_other_one_equally_often() {
    for names in [
        &["a", "b"] as &[&str],
        &["a", "b", "c"],
        &["a", "b", "c", "d"],
        &["a", "b", "c", "d", "e"],
    ] {
        let rounds = rounds_of(names);
        assert_eq!(rounds.len(), RUNS as usize);
        let balanced = names.len() * (1 + names.len() % 2);
        let mut follows: HashMap<(String, String), usize> = HashMap::new();
        for round in &rounds[..balanced] {
            let mut sorted = round.clone();
            sorted.sort();
            assert_eq!(sorted, names);
            for pair in round.windows(2) {
                *follows
                    .entry((pair[0].clone(), pair[1].clone()))
                    .or_default() += 1;
            }
        }
        assert_eq!(follows.len(), names.len() * (names.len() - 1));
        let each = balanced / names.len();
        assert!(follows.values().all(|times| *times == each), "{follows:?}");
    }
}

#[test]
fn an_allocator_under_which_the_output_differs_has_no_figure() {
    let mut meter = FakeMeter::new("differs");
    meter.other_answer = Some("two");
    let (document, outcome) = run(&mut meter, &["one", "two"]);
    assert_eq!(outcome, Outcome::Finished);
    assert!(
        document
            .samples
            .iter()
            .all(|sample| sample.allocator == "one")
    );
    assert_eq!(document.refused.len(), 1);
    assert!(
        document.refused[0]
            .reason
            .starts_with("its output differs from that without preload")
    );
}

/// When each run began, and how much time was left then.
#[derive(Default)]
struct Begins(Vec<(Instant, Option<f64>)>);

impl Observer for Begins {
    fn run_begins(&mut self, position: &Position) {
        self.0.push((Instant::now(), position.left_s));
    }
    fn refused(&mut self, _: &Refused) {}
    fn noted(&mut self, _: &str) {}
    fn round_ended(&mut self, _: &Document) -> error::Result<()> {
        Ok(())
    }
}

#[test]
fn the_time_that_is_left_has_no_runs_of_a_refused_allocator() {
    let names = ["one", "two"];
    let mut meter = FakeMeter::new("left");
    meter.other_answer = Some("two");
    meter.sleeps = Duration::from_millis(5);
    let mut begins = Begins::default();
    watched(&mut meter, &names, document(&names), &mut begins);
    let [(first, _), .., (last, left_s)] = begins.0[..] else {
        panic!("too few runs");
    };
    // In the last round, half a round; so half of what a run took, on average.
    let run_s = (last - first).as_secs_f64() / (begins.0.len() - 1) as f64;
    assert!(left_s.unwrap() < run_s * 0.75, "{left_s:?} of {run_s}");
}

#[test]
fn a_stopped_campaign_goes_on_where_it_was() {
    let names = ["one", "two"];
    let mut meter = FakeMeter::new("stopped");
    meter.stop_after = Some(11);
    let (stopped, outcome) = run(&mut meter, &names);
    assert_eq!(outcome, Outcome::Interrupted);
    assert!(stopped.finished.is_none());
    let kept = stopped.samples.clone();
    assert!(!kept.is_empty());

    let mut meter = FakeMeter::new("went on");
    let (finished, outcome) = go_on(&mut meter, &names, stopped);
    assert_eq!(outcome, Outcome::Finished);
    assert_eq!(finished.samples[..kept.len()], kept[..]);
    assert_eq!(finished.samples.len(), 2 * RUNS as usize);
}

#[test]
fn a_result_file_holds_what_was_stored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    let (document, _) = run(&mut FakeMeter::new("stored"), &["one", "two"]);
    let stored = Document {
        format: 2,
        ..document
    };
    stored.store(&path).unwrap();
    let loaded = Document::load(&path).unwrap();
    assert_eq!(loaded.samples, stored.samples);
    assert_eq!(loaded.to_text(), stored.to_text());
    // One sample a line.
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        text.lines()
            .filter(|line| line.contains("\"wall_s\""))
            .count(),
        2 * RUNS as usize
    );
}
