//! The decisions of a process's hakmem about its own options, and the evidence for each.

use crate::control::Control;
use crate::error::Result;
use crate::fields::{
    Decision as DecisionFields, Decisions as DecisionsFields, Round as RoundFields,
};
use crate::memory::Memory;
use serde::Serialize;

/// Limit: more decisions than any release keeps.
const KEPT_MAX: usize = 1 << 10;

#[derive(Clone, Debug, Default, Serialize)]
pub struct Decisions {
    /// All decisions since the start of the process.
    pub count: u64,
    /// The trial that is running.
    pub running: Option<Decision>,
    /// The decisions that the process still keeps, the oldest first.
    pub latest: Vec<Decision>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct Decision {
    /// The first decision has number 1.
    pub number: u64,
    /// Since 1970.
    pub date_ns: u64,
    /// "trial" or "learner"; a number if this release does not know the kind.
    pub kind: String,
    /// "none", "first", "second" or "same".
    pub verdict: String,
    /// The option on trial; none for a decision of the learner.
    pub option: Option<String>,
    /// The option's two values.
    pub values: Vec<u64>,
    /// The two strategies that the learner compared: the baseline and another one.
    pub strategies: Vec<String>,
    /// The number of pairs that were compared.
    pub games: u64,
    /// The difference of the costs, divided by their sum: below 0 if the first is cheaper.
    pub difference: f64,
    pub low: f64,
    pub high: f64,
    pub costs: Vec<Costs>,
}

/// The total costs of one of the values.
#[derive(Clone, Debug, Serialize)]
pub struct Costs {
    pub processor_ns: u64,
    pub allocator_ns: u64,
    pub faults: u64,
}

pub fn read(control: &Control, memory: &dyn Memory) -> Result<Decisions> {
    let all = DecisionsFields::find(control)?;
    let one = DecisionFields::find(control)?;
    let round = RoundFields::find(control)?;
    let root = control.root("hak_decisions")?;
    let record = memory.read_vec(root.address, all.size)?;
    let decision =
        |part: &[u8]| (one.number.number(part) != 0).then(|| decision(control, &one, &round, part));
    let places = 0..all.latest.count.min(KEPT_MAX);
    let mut latest: Vec<Decision> = places
        .filter_map(|index| decision(all.latest.part(&record, index)))
        .collect();
    latest.sort_by_key(|decision| decision.number);
    Ok(Decisions {
        count: all.count.number(&record),
        running: decision(all.running.part(&record, 0)),
        latest,
    })
}

fn decision(
    control: &Control,
    fields: &DecisionFields,
    round: &RoundFields,
    part: &[u8],
) -> Decision {
    let word = |prefix, value: u64| {
        let word = control.word(prefix, value);
        word.map_or_else(|| value.to_string(), str::to_string)
    };
    let kind = word("decision_", fields.kind.number(part));
    let variants = fields.values.count.min(KEPT_MAX);
    let values: Vec<u64> = (0..variants)
        .map(|variant| fields.values.number_at(part, variant))
        .collect();
    let is_trial = kind == "trial";
    let option = usize::try_from(fields.option.number(part)).unwrap_or(usize::MAX);
    let costs = (0..fields.costs.count.min(KEPT_MAX)).map(|variant| {
        let part = fields.costs.part(part, variant);
        Costs {
            processor_ns: round.processor_ns.number(part),
            allocator_ns: round.allocator_ns.number(part),
            faults: round.faults.number(part),
        }
    });
    let strategies = values.iter().map(|value| word("strategy_", *value));
    Decision {
        number: fields.number.number(part),
        date_ns: fields.date_ns.number(part),
        verdict: word("verdict_", fields.verdict.number(part)),
        option: is_trial.then(|| {
            let described = control.options().get(option);
            described.map_or_else(|| option.to_string(), |option| option.name.clone())
        }),
        strategies: if is_trial {
            Vec::new()
        } else {
            strategies.collect()
        },
        games: fields.games.number(part),
        difference: millionths(fields.difference_ppm.number(part)),
        low: millionths(fields.low_ppm.number(part)),
        high: millionths(fields.high_ppm.number(part)),
        costs: costs.collect(),
        values,
        kind,
    }
}

/// A signed number in two's complement.
fn millionths(number: u64) -> f64 {
    i64::from_le_bytes(number.to_le_bytes()) as f64 / 1e6
}
