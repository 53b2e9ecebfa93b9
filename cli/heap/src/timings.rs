//! How long slow paths took while option `debug_timing` was on.

use crate::control::Control;
use crate::error::Result;
use crate::fields::Timing as TimingFields;
use crate::memory::Memory;
use serde::Serialize;

/// Limit: more paths than any release has.
const PATHS_MAX: usize = 1 << 8;
const STEPS_MAX: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Timing {
    pub name: String,
    /// The sum of all times.
    pub cycles: u64,
    /// Entry n: how many times were at least 2^n cycles and below twice that.
    pub times: Vec<u64>,
}

impl Timing {
    pub fn count(&self) -> u64 {
        self.times
            .iter()
            .fold(0, |sum, times| sum.wrapping_add(*times))
    }

    /// The power of two below which this share of the times lies.
    pub fn below(&self, share: f64) -> u32 {
        let wanted = self.count() as f64 * share;
        let mut seen = 0.0;
        let step = self.times.iter().position(|times| {
            seen += *times as f64;
            seen >= wanted
        });
        step.map_or(0, |step| u32::try_from(step).unwrap_or(0) + 1)
    }
}

/// The paths that were measured at least once.
pub fn read(control: &Control, memory: &dyn Memory) -> Result<Vec<Timing>> {
    let fields = TimingFields::find(control)?;
    let root = control.root("hak_timings")?;
    let count = root.count.min(PATHS_MAX);
    let table = memory.read_vec(root.address, count.saturating_mul(fields.size))?;
    let timings = table.chunks_exact(fields.size.max(1)).enumerate();
    let timings = timings.map(|(path, record)| Timing {
        name: control
            .word("timing_", path as u64)
            .map_or(path.to_string(), str::to_string),
        cycles: fields.cycles.number(record),
        times: (0..fields.times.count.min(STEPS_MAX))
            .map(|step| fields.times.number_at(record, step))
            .collect(),
    });
    Ok(timings.filter(|timing| timing.count() > 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_lies_below_a_power_of_two() {
        let mut times = vec![0; 40];
        times[10] = 98;
        times[14] = 1;
        times[20] = 1;
        let timing = Timing {
            name: "refill".into(),
            cycles: 0,
            times,
        };
        assert_eq!(timing.count(), 100);
        assert_eq!(timing.below(0.5), 11);
        assert_eq!(timing.below(0.99), 15);
        assert_eq!(timing.below(1.0), 21);
    }
}
