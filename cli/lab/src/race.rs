//! A race of variants: the learner's own, compiled from the same C code (`src/policy/race.h`).

use std::mem::zeroed;

const MOST: usize = 32;

/// Savings: the difference of the costs of a variant and the baseline, divided by their sum.
#[repr(C)]
struct Sequence {
    count: u64,
    mean: f64,
    squares: f64,
}

/// The mean of the savings, with an interval that holds at any moment.
#[repr(C)]
pub struct Estimate {
    pub mean: f64,
    pub low: f64,
    pub high: f64,
}

/// The same fields as in C; the test below would notice a difference.
#[repr(C)]
pub struct Race {
    random: u64,
    state: u32,
    left: u32,
    /// Laps that are over.
    pub laps: u32,
    /// In the present lap or pair.
    pub place: u32,
    pub in_lap: u32,
    /// The variant that plays the duel with the baseline, or has played it; 0: none.
    pub candidate: u32,
    /// The baseline, unless another variant is better beyond chance.
    pub winner: u32,
    is_swapped: u32,
    order: [u8; MOST],
    costs: [f64; MOST],
    savings: [Sequence; MOST],
    duel: Sequence,
}

const IS_OVER: u32 = 2;

unsafe extern "C" {
    fn hak_race_start(race: &mut Race, variants: u32, seed: u64);
    fn hak_race_turn(race: &Race) -> u32;
    fn hak_race_note(race: &mut Race, cost: f64, is_out: bool);
    fn hak_race_end(race: &mut Race);
    fn hak_sequence_estimate(sequence: &Sequence) -> Estimate;
}

impl Race {
    /// A race of the baseline, which is number 0, and other variants.
    pub fn new(variants: usize, seed: u64) -> Race {
        assert!(variants < MOST);
        // SAFETY: the struct consists of numbers only, so all zeros are valid.
        let mut race = unsafe { zeroed() };
        // SAFETY: the struct has places for that many variants.
        unsafe { hak_race_start(&mut race, (1 << variants) - 1, seed) };
        race
    }

    /// The variant that plays next; None when the race is over.
    pub fn turn(&self) -> Option<usize> {
        // SAFETY: the race was started.
        (self.state != IS_OVER).then(|| unsafe { hak_race_turn(self) } as usize)
    }

    /// Records the cost of the variant whose turn it is.
    pub fn note(&mut self, cost: f64) {
        assert!(self.state != IS_OVER);
        // SAFETY: as above, and it is a variant's turn.
        unsafe { hak_race_note(self, cost, false) }
    }

    /// Ends the race: there is no time for more.
    pub fn end(&mut self) {
        // SAFETY: as above.
        unsafe { hak_race_end(self) }
    }

    /// May the variant still become the candidate? So it is for several, if the race was ended during its laps.
    pub fn is_left(&self, variant: usize) -> bool {
        self.state == IS_OVER && self.left.count_ones() > 1 && self.left >> variant & 1 != 0
    }

    /// The pairs of the duel that are over.
    pub fn pairs(&self) -> u32 {
        self.duel.count as u32
    }

    /// The mean of a variant's savings in the laps.
    pub fn saving(&self, variant: usize) -> f64 {
        self.savings[variant].mean
    }

    /// The candidate's savings in the duel.
    pub fn estimate(&self) -> Estimate {
        // SAFETY: it only reads numbers.
        unsafe { hak_sequence_estimate(&self.duel) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected numbers are known: with a field in another place, one of them would differ.
    #[test]
    fn every_field_is_where_it_is_in_c() {
        let mut race = Race::new(3, 7);
        assert!((race.in_lap, race.left, race.random != 7) == (3, 6, true) && race.place == 0);
        while let Some(turn) = race.turn() {
            assert!(race.laps > 0 || race.order[race.place as usize] == turn as u8);
            race.note([3.0, 2.0, 1.0][turn]);
            let is_first = race.laps == 0 && race.place > 0;
            assert!(!is_first || race.costs[turn] == 3.0 - turn as f64);
        }
        assert!(race.is_swapped < 2);
        assert_eq!((race.laps, race.pairs(), race.left), (1, 6, 4));
        assert_eq!((race.candidate, race.winner), (2, 2));
        assert!((race.saving(1) - 0.2).abs() < 1e-9 && (race.saving(2) - 0.5).abs() < 1e-9);
        assert!(race.duel.squares < 1e-9 && race.savings[2].count == 1);
        let duel = race.estimate();
        assert!((duel.mean - 0.5).abs() < 1e-9 && duel.low > 0.49 && duel.high < 0.51);
        let mut race = Race::new(3, 7);
        race.end();
        assert!(race.turn().is_none() && race.winner == 0);
    }
}
