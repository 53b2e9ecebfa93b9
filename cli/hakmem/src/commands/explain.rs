//! `hakmem explain`: what a process's settings do, where they contradict each other, and what trials and the learner have
//! decided.

use crate::output::{print_json, show, terminal};
use crate::refusals::time_of_day;
use crate::target::Target;
use clap::Args;
use hakmem_heap::decisions::{self, Decision, Decisions};
use hakmem_heap::effects::{Effect, Hint, effects, hints};
use hakmem_heap::figures::Figures;
use hakmem_heap::options::Setting;
use hakmem_lab::error::Result;
use hakmem_lab::render::{Cell, Form, Table};
use serde_json::json;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  hakmem explain $(pidof redis-server)
  hakmem explain 4711 --all
  HAKMEM_AB='magazine_bytes=1M|16M' hakmem run -- ./server & hakmem explain $!

docs/learning.md says how a trial works; `hakmem options --explain` says what each option does.";

/// Show a process's options: who set them, what they did, which have no effect, and what trials decided
#[derive(Args)]
#[command(after_help = EXAMPLES, override_usage = "hakmem explain [OPTIONS] PID\n       hakmem explain [OPTIONS] --core FILE")]
pub struct Arguments {
    #[command(flatten)]
    target: Target,
    /// List every option, even those that have their defaults
    #[arg(short, long)]
    all: bool,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
}

pub fn execute(arguments: &Arguments) -> Result<ExitCode> {
    let opened = arguments.target.open()?;
    let settings = opened.settings()?;
    let decisions = opened.ask(decisions::read)?;
    let figures = Figures::of(&opened.heap()?);
    let effects = effects(&figures);
    let hints = hints(&settings, &figures, &decisions);
    let contradictions = contradictions(&settings, &decisions);
    if arguments.json {
        print_json(&json!({
            "settings": settings,
            "effects": effects,
            "contradictions": contradictions,
            "decisions": decisions,
            "hints": hints,
        }))?;
    } else {
        let form = terminal();
        let parts = [
            format!("{}\n\n", form.strong(&opened.title())),
            settings_text(&settings, &decisions, arguments.all, form),
            effects_text(&effects, form),
            contradictions_text(&contradictions, form),
            decisions_text(&decisions, &settings, form),
            hints_text(&hints, &settings),
        ];
        show(&parts.concat());
    }
    Ok(ExitCode::SUCCESS)
}

/// Settings that differ from their defaults, with what was measured here.
fn settings_text(settings: &[Setting], decisions: &Decisions, all: bool, form: Form) -> String {
    let mut table = Table::default();
    table.text_column("option", 0);
    table.number_column("value", 0);
    table.text_column("set by", 0);
    table.number_column("default", 1);
    table.text_column("measured here", 0);
    let measured = |setting: &Setting| {
        let mut all = decisions
            .running
            .iter()
            .chain(decisions.latest.iter().rev());
        all.find(|one| one.option.as_ref() == Some(&setting.name))
    };
    let mut is_empty = true;
    for setting in settings {
        let trial = measured(setting);
        if setting.source == "default" && trial.is_none() && !all {
            continue;
        }
        is_empty = false;
        table.row(vec![
            Cell::new(&setting.name),
            Cell::new(setting.text(setting.value)),
            Cell::new(setting.source),
            Cell::new(setting.text(setting.initial)),
            Cell::new(trial.map_or_else(|| "-".into(), |one| outcome(one, settings))),
        ]);
    }
    if is_empty {
        return "every option has its default\n".into();
    }
    let rest = if all {
        ""
    } else {
        "all other options have their defaults\n"
    };
    format!("{}\n{rest}", table.render(form))
}

fn effects_text(effects: &[Effect], form: Form) -> String {
    let lines: Vec<String> = effects
        .iter()
        .map(|effect| format!("  {}: {}\n", effect.option, effect.text))
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}", form.strong("counted here"), lines.concat())
}

/// Hints that only a trial could confirm.
fn hints_text(hints: &[Hint], settings: &[Setting]) -> String {
    let line = |hint: &Hint| {
        let setting = settings.iter().find(|one| one.name == hint.option)?;
        let (now, then) = (setting.text(setting.value), setting.text(hint.value));
        let (option, reason) = (hint.option, &hint.reason);
        Some(format!(
            "to try: HAKMEM_AB='{option}={now}|{then}'; {reason}\n"
        ))
    };
    hints.iter().filter_map(line).collect()
}

fn contradictions_text(lines: &[String], form: Form) -> String {
    if lines.is_empty() {
        return "\nno contradictions\n".into();
    }
    let lines: Vec<String> = lines.iter().map(|line| format!("  {line}\n")).collect();
    format!("\n{}\n{}", form.strong("contradictions"), lines.concat())
}

/// "16M costs less than 4K: 41.2 % of both costs (38.0 to 44.1) in 11 pairs"
fn outcome(decision: &Decision, settings: &[Setting]) -> String {
    let option = settings
        .iter()
        .find(|one| Some(&one.name) == decision.option.as_ref());
    let name = |variant: usize| {
        let value = decision.values.get(variant).copied().unwrap_or(0);
        let strategy = decision.strategies.get(variant).cloned();
        strategy.unwrap_or_else(|| option.map_or_else(|| value.to_string(), |one| one.text(value)))
    };
    let (first, second) = (name(0), name(1));
    if decision.kind == "learner" && first == second {
        return format!("{first} stays: no other strategy was ahead by enough");
    }
    let verdict = match decision.verdict.as_str() {
        "first" if decision.kind == "learner" => {
            format!("{first} stays: {second} is not surely better")
        }
        "first" => format!("{first} costs less than {second}"),
        "second" => format!("{second} costs less than {first}"),
        "same" => format!("{first} and {second} cost the same"),
        _ => format!("{first} or {second}: not decided yet"),
    };
    format!(
        "{verdict}: {:+.1} % of both costs ({:+.1} to {:+.1}), {} pairs",
        decision.difference * 100.0,
        decision.low * 100.0,
        decision.high * 100.0,
        decision.games
    )
}

fn decisions_text(decisions: &Decisions, settings: &[Setting], form: Form) -> String {
    if decisions.count == 0 && decisions.running.is_none() {
        return "\nnothing was tried\n".into();
    }
    let mut table = Table::default();
    table.text_column("when", 0);
    table.text_column("who", 0);
    table.text_column("option", 0);
    table.text_column("outcome", 0);
    table.text_column("slow paths, ms", 1);
    table.text_column("page faults", 1);
    for decision in decisions.latest.iter().chain(&decisions.running) {
        let each = |figure: &dyn Fn(usize) -> Option<u64>| {
            let figures = (0..decision.costs.len()).filter_map(figure);
            let texts: Vec<String> = figures.map(|figure| figure.to_string()).collect();
            texts.join(", ")
        };
        table.row(vec![
            Cell::new(time_of_day(decision.date_ns)),
            Cell::new(&decision.kind),
            Cell::new(decision.option.as_deref().unwrap_or("-")),
            Cell::new(outcome(decision, settings)),
            Cell::new(each(&|variant| {
                decision
                    .costs
                    .get(variant)
                    .map(|cost| cost.allocator_ns / 1_000_000)
            })),
            Cell::new(each(&|variant| {
                decision.costs.get(variant).map(|cost| cost.faults)
            })),
        ]);
    }
    let mut text = format!("\n{}\n{}\n", form.strong("trials"), table.render(form));
    for decision in &decisions.latest {
        text += &recommended(decision, settings);
    }
    text
}

/// The better value, with the interval of its saving.
fn recommended(decision: &Decision, settings: &[Setting]) -> String {
    let variant = match decision.verdict.as_str() {
        "first" => 0,
        "second" => 1,
        _ => return String::new(),
    };
    let option = decision.option.as_ref();
    let Some(setting) = settings.iter().find(|one| Some(&one.name) == option) else {
        return String::new();
    };
    let value = decision.values.get(variant).copied().unwrap_or(0);
    let is_in_force = if setting.value == value {
        ", the present value"
    } else {
        ""
    };
    let ends = [decision.low.abs(), decision.high.abs()];
    let (least, most) = (ends[0].min(ends[1]), ends[0].max(ends[1]));
    format!(
        "recommended: HAKMEM_{}={}{is_in_force}; it saves {:.1} to {:.1} % of both costs\n",
        setting.name.to_uppercase(),
        setting.text(value),
        least * 100.0,
        most * 100.0
    )
}

/// Settings, and the contradictions that are found.
struct Judge<'a> {
    settings: &'a [Setting],
    found: Vec<String>,
}

impl Judge<'_> {
    fn find(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|one| one.name == name)
    }

    fn number(&self, name: &str) -> u64 {
        self.find(name).map_or(0, |one| one.value)
    }

    fn is_on(&self, name: &str) -> bool {
        self.number(name) != 0
    }

    fn is_off(&self, name: &str) -> bool {
        self.find(name).is_some_and(|one| one.value == 0)
    }

    fn is_word(&self, name: &str, word: &str) -> bool {
        self.find(name)
            .is_some_and(|one| one.text(one.value) == word)
    }

    /// Has the user chosen this very option?
    fn is_chosen(&self, name: &str) -> bool {
        let source = self.find(name).map_or("default", |one| one.source);
        !["default", "mode", "machine", "learner"].contains(&source)
    }

    fn note(&mut self, is_so: bool, line: impl Into<String>) {
        if is_so {
            self.found.push(line.into());
        }
    }

    fn judge_background(&mut self, decisions: &Decisions) {
        for name in ["elo", "pressure", "ab"] {
            let is_on = self.is_on(name);
            self.note(
                is_on && !self.is_on("purger"),
                format!("{name} has no effect: it works in the background, and purger is off"),
            );
            self.note(
                is_on && self.is_on("deterministic"),
                format!("{name} has no effect: deterministic allows no work in the background"),
            );
        }
        for name in ["decay_ms", "purge_start_bytes"] {
            self.note(
                self.is_chosen(name) && self.is_off("purger"),
                format!(
                    "{name} has no effect: nothing is purged in the background, as purger is off"
                ),
            );
        }
        self.note(
            self.is_on("ab") && self.is_on("elo"),
            "ab has no effect: the learner (elo) sets options",
        );
        let running = decisions.running.iter().chain(&decisions.latest);
        for name in running.filter_map(|decision| decision.option.as_ref()) {
            self.note(
                self.is_chosen(name),
                format!("ab does not set the better value: {name} was set by the user"),
            );
        }
    }

    fn judge_magazines(&mut self) {
        self.note(
            self.is_off("ace") && self.is_chosen("magazine_bytes"),
            "magazine_bytes has no effect: magazines do not grow without ace",
        );
        let direct = ["check", "quarantine_bytes", "zero_on_free", "canaries"];
        for without in direct.iter().chain(&["fail_at", "fail_rate"]) {
            for name in ["magazine_bytes", "prewarm_tls"] {
                self.note(
                    self.is_on(without) && self.is_chosen(name),
                    format!("{name} has no effect: there are no magazines with {without}"),
                );
            }
        }
    }

    fn judge_memory(&mut self) {
        self.note(
            self.number("purge_start_bytes") > self.number("dirty_bytes")
                && (self.is_chosen("purge_start_bytes") || self.is_chosen("dirty_bytes")),
            "purge_start_bytes is above dirty_bytes: only threads that free memory purge it, and \
             have to wait meanwhile",
        );
        self.note(
            self.is_word("free_policy", "keep") && self.is_chosen("decay_ms"),
            "decay_ms has little effect: free_policy=keep purges no memory because of its age",
        );
        self.note(
            self.is_word("free_policy", "lazy") && self.is_on("batch_madvise"),
            "batch_madvise has no effect: free_policy=lazy needs a call for each range",
        );
        self.note(
            self.is_word("thp", "never") && self.is_chosen("huge_start_bytes"),
            "huge_start_bytes has no effect: thp is never",
        );
        self.note(
            self.is_word("thp", "always") && self.is_chosen("huge_start_bytes"),
            "huge_start_bytes has no effect: thp is always",
        );
        let (soft, hard) = (self.number("limit_soft"), self.number("limit_hard"));
        self.note(
            soft > hard && hard != 0,
            "limit_soft has no effect: it is above limit_hard",
        );
        self.note(
            self.number("fail_min_bytes") > self.number("fail_max_bytes"),
            "no allocation fails on purpose: fail_min_bytes is above fail_max_bytes",
        );
    }
}

/// Settings that cancel each other's effect.
fn contradictions(settings: &[Setting], decisions: &Decisions) -> Vec<String> {
    let mut judge = Judge {
        settings,
        found: Vec::new(),
    };
    judge.judge_background(decisions);
    judge.judge_magazines();
    judge.judge_memory();
    judge.found
}

#[cfg(test)]
mod tests {
    use super::*;
    use hakmem_heap::options::Kind;

    fn setting(name: &str, kind: Kind, value: u64) -> Setting {
        Setting {
            name: name.into(),
            kind,
            unit: String::new(),
            help: String::new(),
            value,
            source: "environment",
            initial: 0,
            least: 0,
            most: 1 << 40,
            at_run_time: true,
        }
    }

    fn trial(verdict: &str) -> Decision {
        Decision {
            number: 1,
            date_ns: 1,
            kind: "trial".into(),
            verdict: verdict.into(),
            option: Some("magazine_bytes".into()),
            values: vec![4096, 16 << 20],
            strategies: Vec::new(),
            games: 11,
            difference: 0.41,
            low: 0.2,
            high: 0.6,
            costs: Vec::new(),
        }
    }

    fn decided(decision: Decision) -> Decisions {
        Decisions {
            count: 1,
            running: None,
            latest: vec![decision],
        }
    }

    fn found(settings: &[Setting]) -> Vec<String> {
        contradictions(settings, &Decisions::default())
    }

    #[test]
    fn what_works_in_the_background_needs_it() {
        let mut settings = vec![
            setting("elo", Kind::Switch, 1),
            setting("purger", Kind::Switch, 0),
        ];
        assert_eq!(found(&settings).len(), 1);
        settings[1].value = 1;
        assert!(found(&settings).is_empty());
    }

    #[test]
    fn what_is_given_back_by_nobody_does_not_wait() {
        let mut settings = vec![
            setting("decay_ms", Kind::Number, 2000),
            setting("purger", Kind::Switch, 0),
        ];
        assert_eq!(
            found(&settings),
            ["decay_ms has no effect: nothing is purged in the background, as purger is off"]
        );
        settings[0].source = "mode";
        assert!(found(&settings).is_empty());
    }

    #[test]
    fn magazines_that_do_not_grow_have_no_budget() {
        let mut settings = vec![
            setting("magazine_bytes", Kind::Number, 4096),
            setting("ace", Kind::Switch, 0),
        ];
        assert_eq!(found(&settings).len(), 1);
        settings[1].value = 1;
        assert!(found(&settings).is_empty());
    }

    #[test]
    fn limits_stand_in_order() {
        let mut settings = vec![
            setting("limit_soft", Kind::Number, 2 << 20),
            setting("limit_hard", Kind::Number, 1 << 20),
        ];
        assert_eq!(
            found(&settings),
            ["limit_soft has no effect: it is above limit_hard"]
        );
        settings[1].value = 0;
        assert!(found(&settings).is_empty());
    }

    #[test]
    fn what_somebody_has_chosen_is_not_overruled() {
        let mut settings = vec![setting("magazine_bytes", Kind::Number, 1 << 20)];
        let decisions = decided(trial("second"));
        assert_eq!(contradictions(&settings, &decisions).len(), 1);
        settings[0].source = "learner";
        assert!(contradictions(&settings, &decisions).is_empty());
    }

    #[test]
    fn a_recommendation_says_how_sure_it_is() {
        let settings = vec![setting("magazine_bytes", Kind::Number, 16 << 20)];
        assert_eq!(
            outcome(&trial("second"), &settings),
            "16M costs less than 4K: +41.0 % of both costs (+20.0 to +60.0), 11 pairs"
        );
        assert_eq!(
            recommended(&trial("second"), &settings),
            "recommended: HAKMEM_MAGAZINE_BYTES=16M, the present value; it saves 20.0 to 60.0 % of both costs\n"
        );
        assert_eq!(recommended(&trial("none"), &settings), "");
    }
}
