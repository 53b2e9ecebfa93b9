//! Which of the learner's strategies suits a program best, over repeated runs: the offline half of
//! `src/policy`, with the same table of strategies and the same rules.

use crate::error::Result;
use crate::failed;
use crate::render::{Cell, Form, Table};
use crate::statistics::generator_for;
use std::fmt::Write;

const TABLE: &str = include_str!("../../../src/policy/strategies.def");
const FIRST_RATING: f64 = 1500.0;
/// Points that a rating can gain in a game, less the more have been played.
const STEP_FIRST: f64 = 40.0;
const STEP_LEAST: f64 = 8.0;
/// Standard errors by which the best must be better before a strategy is out: more than in src/policy/race.c,
/// where a canary follows, for the luckiest of a dozen is compared.
const SURE: f64 = 3.0;
const NOISE_LEAST: f64 = 0.002;
const LAPS_LEAST: usize = 2;
/// A gigabyte that is resident costs so much of a processor: src/policy/score.h.
const GIB_IN_PROCESSORS: f64 = 0.125;
const KIB_IN_GIB: f64 = 1024.0 * 1024.0;

/// Values of options, under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    pub name: String,
    pub help: String,
    pub settings: Vec<(String, String)>,
}

/// Those of the table; the first is the baseline.
pub fn strategies() -> Vec<Strategy> {
    let mut found: Vec<Strategy> = Vec::new();
    for line in TABLE.lines() {
        if let Some(fields) = fields_of(line, "HAK_STRATEGY(") {
            found.push(Strategy {
                name: fields[0].into(),
                help: fields[1].trim_matches('"').into(),
                settings: Vec::new(),
            });
        } else if let Some(fields) = fields_of(line, "HAK_STRATEGY_SETS(") {
            if let Some(strategy) = found.iter_mut().find(|one| one.name == fields[0]) {
                let value = fields[2].to_string();
                strategy.settings.push((fields[1].into(), value));
            }
        }
    }
    found
}

fn fields_of<'a>(line: &'a str, start: &str) -> Option<Vec<&'a str>> {
    let inside = line.strip_prefix(start)?.strip_suffix(')')?;
    let parts = if start.contains("SETS") { 3 } else { 2 };
    let fields: Vec<&str> = inside.splitn(parts, ',').map(str::trim).collect();
    (fields.len() == parts).then_some(fields)
}

/// Processor seconds of a run, with memory in the same unit.
pub fn score(processor_s: f64, wall_s: f64, resident_kib: f64) -> f64 {
    processor_s + wall_s * GIB_IN_PROCESSORS * resident_kib / KIB_IN_GIB
}

#[derive(Clone, Debug)]
pub struct Runner {
    pub strategy: Strategy,
    /// The lap after which it was out.
    pub out: Option<usize>,
    pub games: u32,
    pub rating: f64,
    /// Of each lap, from the first to that after which it was out.
    pub scores: Vec<f64>,
}

/// Played in laps, as src/policy/race.h says.
pub struct Race {
    pub runners: Vec<Runner>,
    pub laps: usize,
}

impl Race {
    pub fn new(strategies: Vec<Strategy>) -> Race {
        let runner = |strategy| Runner {
            strategy,
            out: None,
            games: 0,
            rating: FIRST_RATING,
            scores: Vec::new(),
        };
        Race {
            runners: strategies.into_iter().map(runner).collect(),
            laps: 0,
        }
    }

    /// Who plays in the next lap, in an order drawn anew.
    pub fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.runners.len())
            .filter(|&index| self.runners[index].out.is_none())
            .collect();
        generator_for(&format!("lap {}", self.laps)).shuffle(&mut order);
        order
    }

    /// A lap is over. True when one is left.
    pub fn note(&mut self, scores: &[(usize, f64)]) -> bool {
        for &(index, score) in scores {
            self.runners[index].scores.push(score);
        }
        self.laps += 1;
        let noise = (2.0 * self.variance()).sqrt();
        for (place, &(a, score)) in scores.iter().enumerate() {
            for &(b, other) in &scores[place + 1..] {
                self.play(a, b, (other / score).ln(), noise);
            }
        }
        self.drop_losers() == 1
    }

    /// The logarithms of a runner's scores, less the mean of its lap: what a lap had in common, as a machine
    /// that was busy, does not count, and what is dear is as noisy as the rest. The mean is of those that
    /// have played all laps, or it would fall when the dear ones are out.
    fn relative(&self, index: usize) -> Vec<f64> {
        let lap_mean = |lap: usize| {
            let all = self
                .runners
                .iter()
                .filter(|one| one.scores.len() == self.laps);
            mean(&all.map(|one| one.scores[lap].ln()).collect::<Vec<f64>>())
        };
        let scores = self.runners[index].scores.iter().enumerate();
        scores
            .map(|(lap, score)| score.ln() - lap_mean(lap))
            .collect()
    }

    fn level(&self, index: usize) -> f64 {
        mean(&self.relative(index))
    }

    fn play(&mut self, a: usize, b: usize, lead: f64, noise: f64) {
        let result = if lead > noise {
            1.0
        } else if lead < -noise {
            0.0
        } else {
            0.5
        };
        let difference = self.runners[a].rating - self.runners[b].rating;
        let surprise = result - 1.0 / (1.0 + 10f64.powf(-difference / 400.0));
        for (index, sign) in [(a, 1.0), (b, -1.0)] {
            let runner = &mut self.runners[index];
            let step = (STEP_FIRST / (1.0 + f64::from(runner.games) / 16.0)).max(STEP_LEAST);
            runner.rating += sign * step * surprise;
            runner.games += 1;
        }
    }

    /// Of one run, of all runners together.
    fn variance(&self) -> f64 {
        let mut sum = 0.0;
        let mut freedom = 0.0;
        for index in 0..self.runners.len() {
            let relative = self.relative(index);
            if relative.len() > 1 {
                let mean = mean(&relative);
                sum += relative.iter().map(|one| (one - mean).powi(2)).sum::<f64>();
                freedom += relative.len() as f64 - 1.0;
            }
        }
        freedom -= self.laps as f64 - 1.0; // each lap has its own mean
        let variance = if freedom > 0.0 { sum / freedom } else { 1.0 };
        variance.max(NOISE_LEAST * NOISE_LEAST)
    }

    fn error_between(&self, a: usize, b: usize) -> f64 {
        let part = |index: usize| 1.0 / self.runners[index].scores.len().max(1) as f64;
        SURE * (self.variance() * (part(a) + part(b))).sqrt()
    }

    fn drop_losers(&mut self) -> usize {
        let best = self.best();
        for index in 0..self.runners.len() {
            let behind = self.level(index) - self.level(best);
            let is_beaten = behind > self.error_between(index, best);
            if self.laps >= LAPS_LEAST && self.runners[index].out.is_none() && is_beaten {
                self.runners[index].out = Some(self.laps);
            }
        }
        self.runners.iter().filter(|one| one.out.is_none()).count()
    }

    fn best(&self) -> usize {
        (0..self.runners.len())
            .filter(|&index| self.runners[index].out.is_none())
            .min_by(|&a, &b| self.level(a).total_cmp(&self.level(b)))
            .unwrap_or(0)
    }

    /// The baseline, unless it is out.
    pub fn winner(&self) -> usize {
        if self.runners[0].out.is_some() {
            self.best()
        } else {
            0
        }
    }

    /// How much better than the baseline a strategy is, as a part of the score, and the half of its
    /// interval.
    pub fn gain(&self, index: usize) -> (f64, f64) {
        let factor = (self.level(index) - self.level(0)).exp();
        (1.0 - factor, factor * self.error_between(0, index).sinh())
    }

    /// The ratings as lines of text, best first.
    pub fn table(&self) -> String {
        let mut order: Vec<usize> = (0..self.runners.len()).collect();
        order.sort_by(|&a, &b| self.runners[b].rating.total_cmp(&self.runners[a].rating));
        let mut text = format!(
            "{:<16} {:>6} {:>6} {:>5} {:>11} {:>18}  {}\n",
            "strategy", "rating", "games", "runs", "mean score", "gain", "what became of it"
        );
        for index in order {
            let runner = &self.runners[index];
            let (gain, interval) = self.gain(index);
            let fate = match runner.out {
                Some(lap) => format!("out after lap {lap}"),
                None if index == self.winner() => "stays".into(),
                None => "not told from the best".into(),
            };
            let gain = if index == 0 {
                "baseline".into()
            } else {
                format!("{:+.1} % ± {:.1}", 100.0 * gain, 100.0 * interval)
            };
            let _ = writeln!(
                text,
                "{:<16} {:>6.0} {:>6} {:>5} {:>11.4} {:>18}  {}",
                runner.strategy.name,
                runner.rating,
                runner.games,
                runner.scores.len(),
                mean(&runner.scores),
                gain,
                fate
            );
        }
        text
    }

    /// A file for HAKMEM_PROFILE: the winner's settings, with the evidence as comments.
    pub fn profile(&self, command: &str, machine: &str) -> String {
        let winner = &self.runners[self.winner()];
        let mut text = format!("# hakmem tune -- {command}\n# {machine}\n#\n");
        for line in self.table().lines() {
            let _ = writeln!(text, "# {line}");
        }
        let _ = writeln!(
            text,
            "#\n# {}: {}",
            winner.strategy.name, winner.strategy.help
        );
        for (option, value) in &winner.strategy.settings {
            let _ = writeln!(text, "{option} = {value}");
        }
        text + END
    }
}

/// The last line of a profile: where it is missing, more may be.
const END: &str = "# end\n";

/// The evidence of a profile: its comments; and whether it is all that was written.
pub fn evidence(profile: &str) -> Result<(String, bool)> {
    if !profile.starts_with("# hakmem tune") {
        return Err(failed!("this is no profile that 'hakmem tune' has written"));
    }
    let whole = profile.strip_suffix(END);
    let text = whole
        .unwrap_or(profile)
        .lines()
        .map(|line| {
            line.strip_prefix('#')
                .map_or(line, |text| text.strip_prefix(' ').unwrap_or(text))
        })
        .fold(String::new(), |text, line| text + line + "\n");
    Ok((text, whole.is_some()))
}

/// A text with such a table in it, for a screen that may be too narrow for all of its columns.
pub fn fitted(text: &str, form: Form) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let is_head = |line: &&str| line.starts_with("strategy ");
    let Some(first) = lines.iter().position(is_head) else {
        return text.to_string();
    };
    let rows = &lines[first..];
    let end = rows.iter().position(|line| line.is_empty());
    let (rows, rest) = rows.split_at(end.unwrap_or(rows.len()));
    let cells = |line: &str| {
        let parts = line.split("  ").map(str::trim);
        parts
            .filter(|part| !part.is_empty())
            .map(Cell::new)
            .collect::<Vec<Cell>>()
    };
    let mut table = Table::default();
    table.text_column("strategy", 0);
    table.number_column("rating", 3);
    table.number_column("games", 5);
    table.number_column("runs", 5);
    table.number_column("mean score", 4);
    table.number_column("gain", 0);
    table.text_column("what became of it", 1);
    for row in rows[1..].iter().map(|line| cells(line)) {
        // The last row of a file that was cut may be short.
        if row.len() == 7 {
            table.row(row);
        }
    }
    let before = lines[..first].iter().map(|line| format!("{line}\n"));
    let after = rest.iter().map(|line| format!("{line}\n"));
    let table = table.render(form) + "\n";
    before.chain([table]).chain(after).collect()
}

fn mean(numbers: &[f64]) -> f64 {
    if numbers.is_empty() {
        return 0.0;
    }
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::text::width_of;

    fn played(costs: &dyn Fn(usize) -> f64, noise: f64) -> Race {
        played_on(costs, noise, &|_| 1.0)
    }

    fn played_on(
        costs: &dyn Fn(usize) -> f64,
        noise: f64,
        slowness: &dyn Fn(usize) -> f64,
    ) -> Race {
        let mut race = Race::new(strategies());
        let mut generator = generator_for("noise");
        for lap in 0..6 {
            let scores: Vec<(usize, f64)> = race
                .order()
                .into_iter()
                .map(|index| {
                    (
                        index,
                        costs(index) * slowness(lap) * (1.0 + noise * (generator.f64() - 0.5)),
                    )
                })
                .collect();
            if race.note(&scores) {
                break;
            }
        }
        race
    }

    #[test]
    fn the_table_has_a_baseline_and_a_dozen_strategies_that_set_something() {
        let all = strategies();
        assert_eq!(all[0].name, "baseline");
        assert!(all[0].settings.is_empty() && all.len() > 12);
        assert!(
            all[1..]
                .iter()
                .all(|one| !one.settings.is_empty() && !one.help.is_empty())
        );
        assert!(
            all[1..]
                .iter()
                .flat_map(|one| &one.settings)
                .all(|(_, value)| value.parse::<u64>().is_ok())
        );
    }

    #[test]
    fn the_best_wins_and_its_settings_are_in_the_profile() {
        let race = played(&|index| if index == 5 { 1.0 } else { 1.3 }, 0.05);
        assert_eq!(race.winner(), 5);
        let (gain, interval) = race.gain(5);
        assert!(gain > 0.15 && gain - interval > 0.0);
        let profile = race.profile("./program", "a machine");
        let (option, value) = &race.runners[5].strategy.settings[0];
        assert!(profile.contains(&format!("\n{option} = {value}\n")));
        let narrow = Form::Text {
            colour: false,
            width: 60,
        };
        let fitted = fitted(&evidence(&profile).unwrap().0, narrow);
        let table = fitted.lines().skip(3).take_while(|line| !line.is_empty());
        let widths: Vec<usize> = table.map(width_of).collect();
        assert!(widths.len() > 3 && widths.iter().all(|width| *width <= 60));
        assert!(
            fitted.contains("gain") && fitted.contains("what became"),
            "{fitted}"
        );
        let (text, is_whole) = evidence(&profile).unwrap();
        assert!(text.contains("rating") && is_whole);
        // Cut anywhere it is not whole.
        for end in 20..profile.len() {
            let cut = evidence(&String::from_utf8_lossy(&profile.as_bytes()[..end]));
            assert!(!cut.unwrap().1);
        }
        assert!(evidence("decay_ms = 5\n").is_err());
    }

    fn assert_found(race: &Race, best: usize, better: f64) {
        assert_eq!(race.winner(), best);
        let (gain, interval) = race.gain(best);
        assert!(
            (gain - better).abs() < 0.05 && interval < 0.06,
            "{gain} ± {interval}"
        );
    }

    /// What is much dearer is out after two laps, and blurs nothing: not while it plays, nor as it is gone.
    #[test]
    fn dear_strategies_do_not_hide_the_best() {
        let costs = |index: usize| match index {
            5 => 0.85,
            12.. => 20.0,
            _ => 1.0,
        };
        let race = played(&costs, 0.05);
        assert_found(&race, 5, 0.15);
        assert!(
            race.runners[12..]
                .iter()
                .all(|one| one.out == Some(LAPS_LEAST))
        );
    }

    #[test]
    fn a_lap_on_a_slow_machine_counts_as_any_other() {
        let costs = |index| if index == 5 { 0.85 } else { 1.0 };
        let race = played_on(&costs, 0.05, &|lap| if lap == 1 { 3.0 } else { 1.0 });
        assert_found(&race, 5, 0.15);
    }

    #[test]
    fn noise_alone_keeps_the_baseline() {
        let race = played(&|_| 1.0, 0.02);
        assert_eq!(race.winner(), 0);
        let profile = race.profile("./program", "a machine");
        assert!(profile.lines().all(|line| line.starts_with('#')));
    }
}
