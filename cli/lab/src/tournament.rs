//! Finds the strategy that suits a program best, over repeated runs: with the learner's table of strategies and the learner's
//! race.

use crate::race;
use crate::render::{Cell, Form, Table};
use std::fmt::Write;

const TABLE: &str = include_str!("../../../src/policy/strategies.def");
/// A resident gigabyte costs this much of a processor: src/policy/score.h.
const GIB_IN_PROCESSORS: f64 = 0.125;
const KIB_IN_GIB: f64 = 1024.0 * 1024.0;

/// A named set of values for options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strategy {
    pub name: String,
    pub help: String,
    pub settings: Vec<(String, String)>,
}

/// The strategies of the table; the first is the baseline.
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

/// The processor seconds of a run, plus its memory in the same unit.
pub fn score(processor_s: f64, wall_s: f64, resident_kib: f64) -> f64 {
    processor_s + wall_s * GIB_IN_PROCESSORS * resident_kib / KIB_IN_GIB
}

#[derive(Clone, Debug)]
pub struct Runner {
    pub strategy: Strategy,
    /// The scores of its runs, first those of the laps.
    pub scores: Vec<f64>,
}

/// Laps find a candidate, and a duel tells whether it is better than the baseline: src/policy/race.h.
pub struct Race {
    pub runners: Vec<Runner>,
    race: race::Race,
    /// How many laps and pairs there is time for.
    rounds: u32,
}

impl Race {
    pub fn new(strategies: Vec<Strategy>, rounds: u32) -> Race {
        let runner = |strategy| Runner {
            strategy,
            scores: Vec::new(),
        };
        let runners: Vec<Runner> = strategies.into_iter().map(runner).collect();
        Race {
            race: race::Race::new(runners.len(), 1),
            runners,
            rounds,
        }
    }

    /// The runner that plays next; None when the race is over.
    pub fn turn(&mut self) -> Option<usize> {
        if self.race.place == 0 && self.race.laps + self.race.pairs() >= self.rounds {
            self.race.end();
        }
        self.race.turn()
    }

    /// A line for the beginning of a lap or pair; None within one.
    pub fn heading(&self) -> Option<String> {
        let race = &self.race;
        let candidate = &self.runners[race.candidate as usize].strategy.name;
        (race.place == 0).then(|| match race.candidate {
            0 => format!("lap {}: {} strategies", race.laps + 1, race.in_lap),
            _ => format!("pair {}: baseline and {candidate}", race.pairs() + 1),
        })
    }

    /// Records the score of the runner whose turn it was.
    pub fn note(&mut self, turn: usize, score: f64) {
        self.runners[turn].scores.push(score);
        self.race.note(score);
    }

    /// The baseline, unless another strategy is better beyond chance.
    pub fn winner(&self) -> usize {
        self.race.winner as usize
    }

    /// How much better than the baseline a strategy is, as a share of the baseline's score: in the duel, or in the laps.
    pub fn gain(&self, index: usize) -> f64 {
        part_of_baseline(if index == self.race.candidate as usize {
            self.race.estimate().mean
        } else {
            self.race.saving(index)
        })
    }

    /// The interval of the candidate's gain; None if there are too few pairs.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let duel = self.race.estimate();
        (duel.low > -1.0).then(|| (part_of_baseline(duel.low), part_of_baseline(duel.high)))
    }

    fn gain_text(&self, index: usize) -> String {
        let gain = 100.0 * self.gain(index);
        match self.interval() {
            _ if index == 0 => "baseline".into(),
            Some((low, high)) if index == self.race.candidate as usize => {
                format!("{gain:+.1} % ({:+.1} to {:+.1})", 100.0 * low, 100.0 * high)
            }
            _ => format!("{gain:+.1} %"),
        }
    }

    fn fate(&self, index: usize) -> String {
        let pairs = self.race.pairs();
        if index == self.winner() {
            "stays".into()
        } else if index == self.race.candidate as usize {
            format!("not better beyond chance in {pairs} pairs")
        } else if index == 0 {
            format!("lost in {pairs} pairs")
        } else if self.race.is_left(index) {
            format!("undecided after {} laps (-l)", self.race.laps)
        } else {
            format!("out after lap {}", self.runners[index].scores.len())
        }
    }

    /// The results as lines of text; the strategies that came furthest are first.
    pub fn table(&self) -> String {
        let mut order: Vec<usize> = (0..self.runners.len()).collect();
        let runs = |index: usize| self.runners[index].scores.len();
        order.sort_by(|&a, &b| {
            let order = runs(b).cmp(&runs(a));
            order.then(self.gain(b).total_cmp(&self.gain(a)))
        });
        let mut text = format!(
            "{:<16} {:>5} {:>11} {:>25}  {}\n",
            "strategy", "runs", "mean score", "gain", "what became of it"
        );
        for index in order {
            let runner = &self.runners[index];
            let _ = writeln!(
                text,
                "{:<16} {:>5} {:>11.4} {:>25}  {}",
                runner.strategy.name,
                runner.scores.len(),
                mean(&runner.scores),
                self.gain_text(index),
                self.fate(index)
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

/// The last line of a profile: if it is missing, the file may be truncated.
const END: &str = "# end\n";

/// The evidence in a profile, which is in its comments; and whether it is complete. None for other files.
pub fn evidence(profile: &str) -> Option<(String, bool)> {
    if !profile.starts_with("# hakmem tune") {
        return None;
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
    Some((text, whole.is_some()))
}

/// Converts a saving, which refers to both costs together, to a share of the baseline's cost.
fn part_of_baseline(saving: f64) -> f64 {
    2.0 * saving / (1.0 + saving)
}

/// Fits a text that contains such a table, maybe from an older version, to a screen that may be too narrow for all columns.
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
    let names: Vec<&str> = rows[0].split("  ").map(str::trim).collect();
    let names: Vec<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    let mut table = Table::default();
    for name in &names {
        match *name {
            "strategy" => table.text_column(name, 0),
            "gain" => table.number_column(name, 0),
            "what became of it" => table.text_column(name, 1),
            _ => table.number_column(name, 4),
        }
    }
    for row in rows[1..].iter().map(|line| cells(line)) {
        // In a truncated file, the last row may be short.
        if row.len() == names.len() {
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
    use crate::statistics::generator_for;

    fn played(costs: &dyn Fn(usize) -> f64, noise: f64) -> Race {
        played_on(costs, noise, &|_| 1.0)
    }

    fn played_on(
        costs: &dyn Fn(usize) -> f64,
        noise: f64,
        slowness: &dyn Fn(usize) -> f64,
    ) -> Race {
        let mut race = Race::new(strategies(), 20);
        let mut generator = generator_for("noise");
        let mut runs = 0;
        while let Some(turn) = race.turn() {
            race.note(
                turn,
                costs(turn) * slowness(runs) * (1.0 + noise * (generator.f64() - 0.5)),
            );
            runs += 1;
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
        let (low, high) = race.interval().unwrap();
        assert!(race.gain(5) > 0.15 && low > 0.1 && high < 0.35);
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
        assert!(text.contains("mean score") && is_whole);
        // The profile is incomplete wherever it is cut.
        for end in 20..profile.len() {
            let cut = evidence(&String::from_utf8_lossy(&profile.as_bytes()[..end]));
            assert!(!cut.unwrap().1);
        }
        assert!(evidence("decay_ms = 5\n").is_none());
    }

    fn assert_found(race: &Race, best: usize, better: f64) {
        assert_eq!(race.winner(), best);
        let (low, high) = race.interval().unwrap();
        assert!(low > 0.0 && low < better && high > better && high < 3.0 * better);
    }

    /// A strategy that is much worse is out after the first lap, and does not distort the rest.
    #[test]
    fn dear_strategies_do_not_hide_the_best() {
        let costs = |index: usize| match index {
            5 => 0.85,
            12.. => 20.0,
            _ => 1.0,
        };
        let race = played(&costs, 0.05);
        assert_found(&race, 5, 0.15);
        let dear = &race.runners[12..];
        assert!(dear.iter().all(|one| one.scores.len() == 1));
    }

    #[test]
    fn a_machine_that_is_slow_for_a_while_hides_nothing() {
        let costs = |index| if index == 5 { 0.85 } else { 1.0 };
        let slow = |run| {
            if (17..26).contains(&run) || run >= 34 {
                3.0
            } else {
                1.0
            }
        };
        assert_found(&played_on(&costs, 0.05, &slow), 5, 0.15);
    }

    /// The baseline's runs in the laps were bad luck: the duel has runs of its own.
    #[test]
    fn a_candidate_that_was_only_lucky_does_not_win() {
        let mut race = Race::new(strategies(), 20);
        while let Some(turn) = race.turn() {
            let is_bad = turn == 0 && race.runners[0].scores.len() < 4;
            race.note(turn, if is_bad { 1.3 } else { 1.0 });
        }
        assert_eq!(race.winner(), 0);
        assert!(race.table().contains("not better beyond chance in"));
    }

    #[test]
    fn when_its_time_is_up_the_baseline_stays() {
        let mut race = Race::new(strategies(), 2);
        let mut headings = Vec::new();
        while let Some(turn) = race.turn() {
            headings.extend(race.heading());
            race.note(turn, if turn == 5 { 0.5 } else { 1.0 });
        }
        assert_eq!(headings, ["lap 1: 17 strategies", "lap 2: 9 strategies"]);
        assert_eq!(race.winner(), 0);
        let table = race.table();
        let fates = [
            "undecided after 2 laps",
            "out after lap 2",
            "out after lap 1",
        ];
        let counts = fates.map(|fate| table.matches(fate).count());
        assert_eq!(counts, [4, 4, 8], "{table}");
    }

    #[test]
    fn noise_alone_keeps_the_baseline() {
        let race = played(&|_| 1.0, 0.02);
        assert_eq!(race.winner(), 0);
        let profile = race.profile("./program", "a machine");
        assert!(profile.lines().all(|line| line.starts_with('#')));
    }
}
